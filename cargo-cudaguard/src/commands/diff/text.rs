//! The comparison for the terminal.

use std::fmt::Write as _;

use cudaguard::internal::sanitize;

use super::compare::{ReleaseDiff, ValueChange};
use super::release_facts::describe_driver;
use super::wording::{describe_guard, describe_state, group_changes, labels, or_dash, size_rows, summary};

pub(super) fn render_text(diff: &ReleaseDiff) -> String {
    let mut text = String::new();
    let line = |text: &mut String, content: String| {
        let _ = writeln!(text, "{}", sanitize::sanitize_line(&content));
    };
    line(&mut text, format!("{} → {}: {}", diff.old.title, diff.new.title, summary(diff)));
    if diff.old.processor != diff.new.processor {
        line(&mut text, format!("processor: {} → {}", or_dash(&diff.old.processor), or_dash(&diff.new.processor)));
    }
    if !diff.gpus.is_empty() {
        line(&mut text, "GPUs".to_owned());
    }
    for group in group_changes(&diff.gpus) {
        let (old, new) = (group[0].old, group[0].new);
        let change = format!("{} → {}", describe_state(old), describe_state(new));
        line(&mut text, format!("  {:<9} {}: {change}", group[0].kind(), labels(&group)));
    }
    if !diff.drivers.is_empty() || diff.driver.is_some() {
        line(&mut text, "oldest driver".to_owned());
    }
    for group in group_changes(&diff.drivers) {
        let driver = |driver: Option<_>| driver.map_or("any".to_owned(), describe_driver);
        let change = format!("{} → {}", driver(group[0].old.driver), driver(group[0].new.driver));
        line(&mut text, format!("  {:<9} {}: {change}", group[0].kind(), labels(&group)));
    }
    let values = |text: &mut String, title: &str, changes: &[ValueChange]| {
        if !changes.is_empty() {
            line(text, title.to_owned());
        }
        for ValueChange { name, old, new } in changes {
            line(text, format!("  {name}: {} → {}", or_dash(old), or_dash(new)));
        }
    };
    if let Some(change) = &diff.driver {
        line(&mut text, format!("  any GPU: {} → {}", or_dash(&change.old), or_dash(&change.new)));
    }
    if let Some(change) = &diff.cudnn {
        line(&mut text, format!("oldest cuDNN: {} → {}", or_dash(&change.old), or_dash(&change.new)));
    }
    values(&mut text, "libraries inside", &diff.inside);
    values(&mut text, "libraries from elsewhere", &diff.elsewhere);
    values(&mut text, "requirements of the package", &diff.requires);
    if !diff.sizes.is_empty() {
        line(&mut text, "GPU code".to_owned());
    }
    for (arch, old, new) in size_rows(diff) {
        line(&mut text, format!("  {arch:<12} {old} → {new}"));
    }
    if !diff.guard.is_empty() {
        line(&mut text, "guard".to_owned());
    }
    for (file, old, new) in &diff.guard {
        line(&mut text, format!("  {file}: {} → {}", describe_guard(*old), describe_guard(*new)));
    }
    for (side, facts) in [("old", &diff.old), ("new", &diff.new)] {
        for part in &facts.not_examined {
            line(&mut text, format!("not examined ({side}): {part}"));
        }
    }
    text
}
