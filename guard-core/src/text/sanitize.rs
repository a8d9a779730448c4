//! Makes untrusted text safe to print: names, paths, notes and output of other programs can contain control sequences
//! that a terminal interprets.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns true if a terminal interprets the character instead of displaying it: moving the cursor, changing colours,
/// deleting, changing the text direction.
fn is_terminal_control(c: char) -> bool {
    // The callers handle tabs and newlines. The last ranges are the bidirectional marks, overrides and isolates, and
    // the separators that some programs treat as line ends.
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Prefixes of workflow commands of GitHub's runner: `::` after blanks at the start of a line, `##[` anywhere.
const RUNNER: [(&str, &str); 2] = [("::", "\\u003a:"), ("##[", "\\u0023#[")];

/// Escapes workflow commands of GitHub's runner in a line that may contain untrusted names.
fn without_workflow_commands(line: &str) -> Cow<'_, str> {
    let [(start, spelled), (anywhere, instead)] = RUNNER;
    let mut line = Cow::Borrowed(line);
    if line.trim_start().starts_with(start) {
        line = line.replacen(start, spelled, 1).into();
    }
    if line.contains(anywhere) { line.replace(anywhere, instead).into() } else { line }
}

/// Escapes the control characters of terminals, except those in `kept`.
fn escape_chars<'t>(text: &'t str, kept: &[char]) -> Cow<'t, str> {
    if !text.contains(|c| is_terminal_control(c) && !kept.contains(&c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_terminal_control(c) && !kept.contains(&c) {
            // Escaped as in JSON, so that JSON text keeps its value.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Escapes a text of several lines: control characters become `\u001b`.
pub fn sanitize_text(text: &str) -> Cow<'_, str> {
    escape_chars(text, &['\n', '\t'])
}

/// Escapes control characters and workflow commands in a text of several lines. The program prints no such commands,
/// but an untrusted name may look like one.
pub fn output(output: &str) -> Cow<'_, str> {
    let spelled = sanitize_text(output);
    if !spelled.lines().any(|line| !matches!(without_workflow_commands(line), Cow::Borrowed(_))) {
        return spelled;
    }
    spelled.split_inclusive('\n').map(without_workflow_commands).collect::<String>().into()
}

/// Escapes a text within a line, including newlines and tabs.
pub fn sanitize_line(text: &str) -> Cow<'_, str> {
    escape_chars(text, &[])
}

/// Escapes untrusted text that was joined into one line. Tabs, which separate names from values, are retained.
pub(crate) fn sanitize_joined(text: &str) -> Cow<'_, str> {
    escape_chars(text, &['\t'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_controls_are_escaped() {
        for (found, shown) in [
            ("lib\u{1b}[2Jx", "lib\\u001b[2Jx"),
            ("a\u{7f}\u{9b}31m\u{0}", "a\\u007f\\u009b31m\\u0000"),
            ("a\u{202e}b\u{2066}\u{200f}\u{61c}\u{2028}", "a\\u202eb\\u2066\\u200f\\u061c\\u2028"),
            ("a\rb", "a\\u000db"),
        ] {
            assert_eq!((&*sanitize_text(found), &*sanitize_line(found)), (shown, shown));
        }
        assert_eq!((&*sanitize_text("a\n\tb"), &*sanitize_line("a\n\tb")), ("a\n\tb", "a\\u000a\\u0009b"));
        assert_eq!(sanitize_joined("a\n\tb"), "a\\u000a\tb");
    }

    #[test]
    fn workflow_commands_are_escaped() {
        for (found, shown) in [
            ("::stop-commands::x: folder\n", "\\u003a:stop-commands::x: folder\n"),
            ("a\n  \t::set-env name=A::b\n", "a\n  \t\\u003a:set-env name=A::b\n"),
            ("x ##[error]y", "x \\u0023#[error]y"),
        ] {
            assert_eq!(output(found), shown);
        }
        for text in ["a::b\n", "{\"name\": \"::x\"}\n", "# [a]\n"] {
            assert!(matches!(output(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn other_texts_are_unchanged() {
        for text in ["", "Größe → 1.5 ≤ 2", "日本語 العربية 🙂", "ab\u{301}"] {
            assert!(matches!(sanitize_line(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn json_is_equivalent() {
        let value = serde_json::json!({ "name": "a\u{1b}\u{202e}\u{9b}\u{7f}\n\"\\" });
        let shown = sanitize_text(&value.to_string()).into_owned();
        assert!(!shown.contains(is_terminal_control));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON"), value);
    }
}
