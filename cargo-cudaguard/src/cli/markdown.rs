//! Markdown as GitHub renders it: tables, and text without markup.

use cudaguard::internal::sanitize;

/// Writes a table, unless it has no rows.
pub(crate) fn push_table(text: &mut String, head: &[String], rows: impl Iterator<Item = Vec<String>>) {
    let row = |cells: &[String]| {
        format!("| {} |\n", cells.iter().map(|content| escape(content)).collect::<Vec<_>>().join(" | "))
    };
    for (at, cells) in rows.enumerate() {
        if at == 0 {
            text.push('\n');
            text.push_str(&row(head));
            text.push_str(&(String::from("|") + &" --- |".repeat(head.len()) + "\n"));
        }
        text.push_str(&row(&cells));
    }
}

/// Escapes characters that have a meaning in Markdown or HTML.
pub(crate) fn escape(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_meaning_in_markdown() {
        assert_eq!(escape("a|b_<c>"), "a\\|b\\_&lt;c&gt;");
        let mut text = String::new();
        let words = |words: [&str; 2]| words.map(str::to_owned).to_vec();
        push_table(&mut text, &words(["x", "y"]), [words(["1", "2"])].into_iter());
        assert_eq!(text, "\n| x | y |\n| --- | --- |\n| 1 | 2 |\n");
    }
}
