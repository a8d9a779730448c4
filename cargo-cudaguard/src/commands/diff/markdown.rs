//! The comparison as Markdown, for a pull request or release notes.

use std::fmt::Write as _;

use cudaguard::sanitize;

use super::{
    ReleaseDiff, ValueChange, describe_driver, describe_guard, describe_state, group_changes, labels, or_dash,
    size_rows, summary,
};

pub(super) fn render_markdown(diff: &ReleaseDiff) -> String {
    let mut text = format!("### {} → {}\n\n", cell(&diff.old.title), cell(&diff.new.title));
    let _ = writeln!(text, "{}.", cell(&capitalized(&summary(diff))));
    let gpus = group_changes(&diff.gpus).into_iter().map(|group| {
        let (old, new) = (group[0].old, group[0].new);
        vec![labels(&group), group[0].kind().to_owned(), describe_state(old), describe_state(new)]
    });
    table(&mut text, &["GPU", "change", "old", "new"], gpus);
    let drivers = group_changes(&diff.drivers).into_iter().map(|group| {
        let driver = |driver: Option<_>| driver.map_or("any".to_owned(), describe_driver);
        let (old, new) = (driver(group[0].old.driver), driver(group[0].new.driver));
        vec![labels(&group), group[0].kind().to_owned(), old, new]
    });
    table(&mut text, &["GPU", "oldest driver", "old", "new"], drivers);
    let values = |what: &'static str, changes: &[ValueChange]| {
        changes
            .iter()
            .map(move |ValueChange { name, old, new }| {
                vec![name.clone(), what.to_owned(), or_dash(old).to_owned(), or_dash(new).to_owned()]
            })
            .collect::<Vec<_>>()
    };
    let single = |what: &'static str, change: &Option<ValueChange>| {
        change.as_ref().map(|change| values(what, std::slice::from_ref(change))).unwrap_or_default()
    };
    let libraries = single("oldest", &diff.driver)
        .into_iter()
        .chain(single("oldest", &diff.cudnn))
        .chain(values("inside", &diff.inside))
        .chain(values("from elsewhere", &diff.elsewhere))
        .chain(values("required", &diff.requires));
    table(&mut text, &["library", "where", "old", "new"], libraries);
    let sizes = size_rows(diff).into_iter().map(|(arch, old, new)| vec![arch, old, new]);
    table(&mut text, &["GPU code", "old", "new"], sizes);
    let guard = diff
        .guard
        .iter()
        .map(|(file, old, new)| vec![file.clone(), describe_guard(*old).to_owned(), describe_guard(*new).to_owned()]);
    table(&mut text, &["file", "old", "new"], guard);
    let open = [("old", &diff.old), ("new", &diff.new)];
    let open = open
        .iter()
        .flat_map(|(side, facts)| facts.not_examined.iter().map(|part| vec![(*side).to_owned(), part.clone()]));
    table(&mut text, &["release", "not examined"], open);
    text
}

/// Writes a table, unless it has no rows.
fn table(text: &mut String, head: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    for (at, cells) in rows.enumerate() {
        if at == 0 {
            text.push('\n');
            text.push_str(&row(head.iter().map(|name| (*name).to_owned()).collect()));
            text.push_str(&row(head.iter().map(|_| "---".to_owned()).collect()));
        }
        text.push_str(&row(cells.iter().map(|content| cell(content)).collect()));
    }
}

/// Text in which Markdown and HTML have no meaning.
fn cell(text: &str) -> String {
    let mut escaped = String::new();
    for c in sanitize::sanitize_line(text).chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' => {
                escaped.push('\\');
                escaped.push(c);
            }
            _ => escaped.push(c),
        }
    }
    escaped
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_meaning_in_markdown() {
        assert_eq!(cell("a|b_<c>"), "a\\|b\\_&lt;c&gt;");
        let mut text = String::new();
        table(&mut text, &["x", "y"], [vec!["1".to_owned(), "2".to_owned()]].into_iter());
        assert_eq!(text, "\n| x | y |\n| --- | --- |\n| 1 | 2 |\n");
    }
}
