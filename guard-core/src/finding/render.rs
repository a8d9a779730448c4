//! The formats of findings that every front end uses: text, GitHub workflow commands and JSON. The command adds SARIF and
//! rustc's diagnostics.

use std::fmt::Write as _;

use super::{Finding, Severity};
use crate::text::json::{Value, array, object};
use crate::text::lists::IteratorExt as _;
use crate::text::sanitize;

/// Formats findings for people, one after the other.
pub fn to_text<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> String {
    findings.into_iter().map(|finding| finding.render() + "\n").join("")
}

/// Formats findings as commands of a GitHub workflow, one a line.
pub fn to_github<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> String {
    findings.into_iter().map(|finding| finding.github_annotation() + "\n").join("")
}

/// Formats findings as a JSON array.
pub fn to_json<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Value {
    array(findings.into_iter().map(Finding::to_json))
}

impl Finding {
    /// Formats the finding for people: `error[CG101]: …`, the facts indented, the hint last. Control characters are
    /// escaped.
    pub fn render(&self) -> String {
        let mut lines = self.message.lines();
        let mut text = format!("{}[{}]: {}", self.severity, self.code, lines.next().unwrap_or_default());
        for line in lines {
            let _ = write!(text, "\n  {line}");
        }
        if !self.hint.is_empty() {
            let _ = write!(text, "\n  hint: {}", self.hint.replace('\n', "\n  "));
        }
        sanitize::sanitize_text(&text).into_owned()
    }

    /// Returns message and hint as one text, for formats without a field for the hint.
    pub fn text(&self) -> String {
        if self.hint.is_empty() { self.message.clone() } else { format!("{}\nhint: {}", self.message, self.hint) }
    }

    /// Formats the finding as a GitHub workflow command, which the runner shows as an annotation. The result is one
    /// line, whatever the texts contain. Leading blanks are allowed; cargo puts them before the output of a build
    /// script.
    pub fn github_annotation(&self) -> String {
        let level = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "notice",
        };
        format_annotation(level, &format!("{}: {}", self.code, self.code.title()), &self.text())
    }

    /// The finding as a JSON object.
    pub fn to_json(&self) -> Value {
        let facts = self.facts.iter().map(|(name, fact)| (*name, fact.as_str()));
        let members = [
            ("code", &*self.code.to_string()),
            ("severity", self.severity.name()),
            ("component", &self.component),
            ("subject", &self.subject),
            ("message", &self.message),
            ("hint", &self.hint),
        ];
        object(members.into_iter().chain(facts).map(|(key, text)| (key, text.into())))
    }
}

/// Formats an error that is not a finding as a GitHub workflow command.
pub fn annotated_error(text: &str) -> String {
    format_annotation("error", "cudaguard", text)
}

fn format_annotation(level: &str, title: &str, text: &str) -> String {
    // The runner's `ActionCommand` decodes these escapes: `%` and line ends; in a property also `:` and `,`.
    let [title, text] = [title, text].map(|text| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A"));
    let line = format!("::{level} title={}::{text}", title.replace(':', "%3A").replace(',', "%2C"));
    sanitize::sanitize_line(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Code;

    #[test]
    fn annotations_stay_on_one_line() {
        let sample = |code, severity, message: &str, hint: &str| {
            Finding::from_record(code, severity, ["", "s", message, hint].map(str::to_owned)).github_annotation()
        };
        assert_eq!(
            sample(Code::ToolkitMixed, Severity::Error, "100%\r\nof: a, b", ""),
            "::error title=CG101%3A nvcc and cuda.h are from different releases::100%25%0D%0Aof: a, b"
        );
        let info = sample(Code::ToolkitMixed, Severity::Info, "m", "h");
        assert!(info.starts_with("::notice ") && info.ends_with("::m%0Ahint: h"), "{info}");
        // A title that contains a comma, which ends a property.
        let code = Code::ALL.iter().find(|code| code.title().contains(',')).expect("some title has a comma");
        assert!(sample(*code, Severity::Error, "m", "").split("::").nth(1).unwrap().contains("%2C"));
    }
}
