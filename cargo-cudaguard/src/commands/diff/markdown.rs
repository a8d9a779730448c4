//! The comparison as Markdown, for a pull request or release notes.

use std::fmt::Write as _;

use super::compare::{GuardChange, ReleaseDiff, ValueChange, describe_guard};
use super::release_facts::describe_driver;
use super::wording::{describe_state, group_changes, labels, or_dash, size_rows, summary};
use crate::cli::markdown::{escape, push_table};

pub(super) fn render_markdown(diff: &ReleaseDiff) -> String {
    let mut text = format!("### {} → {}\n\n", escape(&diff.old.title), escape(&diff.new.title));
    let _ = writeln!(text, "{}.", escape(&capitalized(&summary(diff))));
    let gpus = group_changes(&diff.gpus).into_iter().map(|group| {
        let (old, new) = (group[0].old, group[0].new);
        vec![labels(&group), group[0].change.to_owned(), describe_state(old), describe_state(new)]
    });
    push_table(&mut text, &head(["GPU", "change", "old", "new"]), gpus);
    let drivers = group_changes(&diff.drivers).into_iter().map(|group| {
        let [old, new] =
            [group[0].old, group[0].new].map(|state| state.driver.map_or("any".to_owned(), describe_driver));
        vec![labels(&group), group[0].change.to_owned(), old, new]
    });
    push_table(&mut text, &head(["GPU", "oldest driver", "old", "new"]), drivers);
    let mut libraries = Vec::new();
    for (what, changes) in [
        ("oldest", diff.driver.as_slice()),
        ("oldest", diff.cudnn.as_slice()),
        ("inside", &diff.inside[..]),
        ("from elsewhere", &diff.elsewhere[..]),
        ("required", &diff.requires[..]),
    ] {
        for ValueChange { name, old, new } in changes {
            libraries.push(vec![name.clone(), what.to_owned(), or_dash(old).to_owned(), or_dash(new).to_owned()]);
        }
    }
    push_table(&mut text, &head(["library", "where", "old", "new"]), libraries.into_iter());
    let sizes = size_rows(diff).into_iter().map(|(arch, old, new)| vec![arch, old, new]);
    push_table(&mut text, &head(["GPU code", "old", "new"]), sizes);
    let guard = diff.guard.iter().map(|GuardChange { name, old, new }| {
        vec![name.clone(), describe_guard(*old).to_owned(), describe_guard(*new).to_owned()]
    });
    push_table(&mut text, &head(["file", "old", "new"]), guard);
    let open = [("old", &diff.old), ("new", &diff.new)];
    let open = open
        .iter()
        .flat_map(|(side, facts)| facts.not_examined.iter().map(|part| vec![(*side).to_owned(), part.to_string()]));
    push_table(&mut text, &head(["release", "not examined"]), open);
    text
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}

fn head<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}
