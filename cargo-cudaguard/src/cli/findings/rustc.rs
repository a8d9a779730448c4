//! Converts findings to rustc's diagnostics, and to cargo's messages with them.

use cudaguard::internal::finding::{Finding, Severity};
use serde_json::{Value, json};

use crate::cli::report;

/// Format of diagnostics among cargo's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageFormat {
    /// Set if the rendered text has only one line.
    short: bool,
    /// Set if the rendered text contains colors.
    ansi: bool,
    /// Set if diagnostics are printed as text on stderr instead of as messages.
    pub(crate) on_stderr: bool,
}

impl MessageFormat {
    /// Parses the values of `--message-format`; `None` if cargo prints no messages.
    pub(crate) fn from_values(values: &[String]) -> Option<Self> {
        let any = |name: &str| values.iter().any(|value| value == name);
        values.iter().any(|value| value.starts_with("json")).then(|| Self {
            short: any("json-diagnostic-short"),
            ansi: any("json-diagnostic-rendered-ansi"),
            on_stderr: any("json-render-diagnostics"),
        })
    }

    /// Returns the format that these arguments select for rustc; `None` unless rustc reports diagnostics as JSON. Cargo
    /// always requests JSON and prints the rendered text.
    pub(crate) fn from_rustc_args(words: &[String]) -> Option<Self> {
        let value = |option: &str| {
            let glued = words.iter().find_map(|word| word.strip_prefix(option)?.strip_prefix('='));
            glued.or_else(|| words.windows(2).find(|pair| pair[0] == option).map(|pair| pair[1].as_str()))
        };
        let json = value("--json").unwrap_or_default();
        (value("--error-format") == Some("json")).then(|| Self {
            short: json.contains("diagnostic-short"),
            ansi: json.contains("diagnostic-rendered-ansi"),
            on_stderr: false,
        })
    }

    /// Returns an error that is not a finding in the form of a rustc diagnostic.
    pub(crate) fn error(self, message: &str) -> Value {
        let name = "error";
        let label = if self.ansi { report::in_colour(Severity::Error, name) } else { name.to_owned() };
        json!({
            "$message_type": "diagnostic",
            "message": message,
            "code": null,
            "level": name,
            "spans": [],
            "children": [],
            "rendered": format!("{label}: {message}\n"),
        })
    }

    /// Returns a finding in the form of a rustc diagnostic. Its location is the first line of this manifest, because
    /// editors do not show a diagnostic without a location.
    pub(crate) fn to_diagnostic(self, finding: &Finding, manifest: &str) -> Value {
        let (level, name) = match finding.severity {
            Severity::Error => ("error", "error"),
            Severity::Warning => ("warning", "warning"),
            Severity::Info => ("note", "info"),
        };
        let first = finding.first_line();
        let short = || format!("{manifest}:1:1: {level}[{}]: {first}\n", finding.code);
        let mut rendered = if self.short { short() } else { finding.render() + "\n" };
        if self.ansi {
            rendered = rendered.replacen(name, &report::in_colour(finding.severity, name), 1);
        }
        let span = json!({
            "file_name": manifest,
            "byte_start": 0,
            "byte_end": 0,
            "line_start": 1,
            "line_end": 1,
            "column_start": 1,
            "column_end": 1,
            "is_primary": true,
            "text": [],
            "label": null,
            "suggested_replacement": null,
            "suggestion_applicability": null,
            "expansion": null,
        });
        let hint = json!({
            "message": finding.hint,
            "code": null,
            "level": "help",
            "spans": [],
            "children": [],
            "rendered": null,
        });
        let children = if finding.hint.is_empty() { json!([]) } else { json!([hint]) };
        json!({
            "$message_type": "diagnostic",
            "message": finding.message,
            "code": { "code": finding.code.to_string(), "explanation": null },
            "level": level,
            "spans": [span],
            "children": children,
            "rendered": rendered,
        })
    }

    /// Returns the message line of cargo for a finding. `about` contains the package data of each message.
    pub(crate) fn json_line(self, finding: &Finding, about: &Value) -> String {
        let mut message = json!({ "reason": "compiler-message" });
        for key in ["package_id", "manifest_path", "target"] {
            message[key] = about[key].clone();
        }
        message["message"] = self.to_diagnostic(finding, about["manifest_path"].as_str().unwrap_or_default());
        format!("{message}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> Option<MessageFormat> {
        MessageFormat::from_values(&text.split(',').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn message_formats_match_cargo() {
        let plain = MessageFormat { short: false, ansi: false, on_stderr: false };
        for (text, expected) in [
            ("human", None),
            ("short", None),
            ("", None),
            ("json", Some(plain)),
            ("json-diagnostic-short", Some(MessageFormat { short: true, ..plain })),
            ("json,json-diagnostic-rendered-ansi", Some(MessageFormat { ansi: true, ..plain })),
            ("json-render-diagnostics", Some(MessageFormat { on_stderr: true, ..plain })),
        ] {
            assert_eq!(form(text), expected, "{text}");
        }
    }
}
