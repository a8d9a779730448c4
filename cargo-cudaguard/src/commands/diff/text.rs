//! The comparison for the terminal.

use std::fmt::Write as _;

use cudaguard::internal::sanitize;

use super::compare::{GuardChange, ReleaseDiff, ValueChange, describe_guard};
use super::release_facts::describe_driver;
use super::wording::{describe_state, group_changes, labels, or_dash, size_rows, summary};

pub(super) fn render_text(diff: &ReleaseDiff) -> String {
    let mut text = String::new();
    push_line(&mut text, &format!("{} → {}: {}", diff.old.title, diff.new.title, summary(diff)));
    if diff.old.processor != diff.new.processor {
        let (old, new) = (or_dash(&diff.old.processor), or_dash(&diff.new.processor));
        push_line(&mut text, &format!("processor: {old} → {new}"));
    }
    if !diff.gpus.is_empty() {
        push_line(&mut text, "GPUs");
    }
    for group in group_changes(&diff.gpus) {
        let (old, new) = (group[0].old, group[0].new);
        let change = format!("{} → {}", describe_state(old), describe_state(new));
        push_line(&mut text, &format!("  {:<9} {}: {change}", group[0].change, labels(&group)));
    }
    if !diff.drivers.is_empty() || diff.driver.is_some() {
        push_line(&mut text, "oldest driver");
    }
    for group in group_changes(&diff.drivers) {
        let [old, new] =
            [group[0].old, group[0].new].map(|state| state.driver.map_or("any".to_owned(), describe_driver));
        push_line(&mut text, &format!("  {:<9} {}: {old} → {new}", group[0].change, labels(&group)));
    }
    if let Some(change) = &diff.driver {
        push_line(&mut text, &format!("  any GPU: {} → {}", or_dash(&change.old), or_dash(&change.new)));
    }
    if let Some(change) = &diff.cudnn {
        push_line(&mut text, &format!("oldest cuDNN: {} → {}", or_dash(&change.old), or_dash(&change.new)));
    }
    for (title, changes) in [
        ("libraries inside", &diff.inside),
        ("libraries from elsewhere", &diff.elsewhere),
        ("requirements of the package", &diff.requires),
    ] {
        if !changes.is_empty() {
            push_line(&mut text, title);
        }
        for ValueChange { name, old, new } in changes {
            push_line(&mut text, &format!("  {name}: {} → {}", or_dash(old), or_dash(new)));
        }
    }
    if !diff.sizes.is_empty() {
        push_line(&mut text, "GPU code");
    }
    for (arch, old, new) in size_rows(diff) {
        push_line(&mut text, &format!("  {arch:<12} {old} → {new}"));
    }
    if !diff.guard.is_empty() {
        push_line(&mut text, "guard");
    }
    for GuardChange { name, old, new } in &diff.guard {
        push_line(&mut text, &format!("  {name}: {} → {}", describe_guard(*old), describe_guard(*new)));
    }
    for (side, facts) in [("old", &diff.old), ("new", &diff.new)] {
        for part in &facts.not_examined {
            push_line(&mut text, &format!("not examined ({side}): {part}"));
        }
    }
    text
}

fn push_line(text: &mut String, line: &str) {
    let _ = writeln!(text, "{}", sanitize::sanitize_line(line));
}
