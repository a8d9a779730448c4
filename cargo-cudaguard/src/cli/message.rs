//! Findings in the form of cargo's compiler messages (`--message-format json`): one line each on stdout, for editors
//! and other readers of cargo's messages.

use std::io::{BufRead as _, BufReader, Read, Write as _};

use cargo_metadata::{BuildScript, Message};
use cudaguard::internal::finding::{self, Finding, Severity};
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
        let first = finding.message.lines().next().unwrap_or_default();
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
    fn json_line(self, finding: &Finding, about: &Value) -> String {
        let mut message = json!({ "reason": "compiler-message" });
        for key in ["package_id", "manifest_path", "target"] {
            message[key] = about[key].clone();
        }
        message["message"] = self.to_diagnostic(finding, about["manifest_path"].as_str().unwrap_or_default());
        format!("{message}\n")
    }
}

/// Reports findings in the requested format: as lines on stdout if their package is known, otherwise as text on stderr.
pub(crate) fn report_findings(
    form: Option<MessageFormat>,
    findings: &[Finding],
    about: impl Fn(&Finding) -> Option<Value>,
) {
    let mut as_text = Vec::new();
    let mut lines = String::new();
    let mut findings = findings.to_vec();
    finding::sort_findings(&mut findings);
    for finding in &findings {
        match form.filter(|form| !form.on_stderr).and_then(|form| Some((form, about(finding)?))) {
            Some((form, about)) => lines += &form.json_line(finding, &about),
            None => as_text.push(finding.clone()),
        }
    }
    if !lines.is_empty() {
        let _ = report::print_result(&lines);
    }
    report::print_findings(&as_text);
    report::print_annotations(&findings);
}

/// Prints the last message of cargo.
pub(crate) fn report_finished(success: bool) {
    let _ = report::print_result(&format!("{}\n", json!({ "reason": "build-finished", "success": success })));
}

/// Forwards the stdout of cargo. Before the last message, calls `at_end` with the success of the build and the messages
/// of the build scripts; the result of `at_end` replaces the success. Later output of a test is forwarded unchanged.
pub(crate) fn pass_on(stdout: impl Read, mut at_end: impl FnMut(bool, &[BuildScript]) -> bool) {
    let mut reader = BufReader::new(stdout);
    let mut scripts = Vec::new();
    let mut line = Vec::new();
    let mut out = std::io::stdout();
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        match serde_json::from_slice(&line) {
            Ok(Message::BuildFinished(end)) => {
                let success = at_end(end.success, &scripts);
                if success == end.success {
                    let _ = out.write_all(&line);
                } else {
                    report_finished(success);
                }
                break;
            }
            Ok(Message::BuildScriptExecuted(script)) => scripts.push(script),
            _ => {}
        }
        if out.write_all(&line).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
    let mut rest = [0; 8192];
    while let Ok(length @ 1..) = reader.read(&mut rest) {
        if out.write_all(&rest[..length]).and_then(|()| out.flush()).is_err() {
            return;
        }
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
