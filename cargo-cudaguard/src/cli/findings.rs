//! The formats of findings, one function each. No other module of the command formats a finding.
//!
//! | format | function |
//! | --- | --- |
//! | text | [`to_text`], or [`print_text`] for stderr |
//! | GitHub workflow commands | [`to_github`], or [`print_annotations`] inside a workflow |
//! | JSON | [`crate::cli::json_output::FindingView`] |
//! | SARIF | [`files_to_sarif`], [`to_sarif`] |
//! | rustc's diagnostics, cargo's messages | [`MessageFormat`] |

mod rustc;
mod sarif;

use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{self, Finding, Severity};
use cudaguard::internal::sanitize;

use crate::cli::report::{self, Level, in_colour, shows, write_raw};

pub(crate) use cudaguard::internal::finding::render::{to_github, to_text};
pub(crate) use rustc::MessageFormat;
pub(crate) use sarif::{SarifResult, files_to_sarif, to_sarif};

/// Prints findings as text, and inside a GitHub workflow as annotations too.
pub(crate) fn print(findings: &[Finding]) {
    print_text(findings);
    print_annotations(findings);
}

/// Prints each finding once, errors first: without warnings and notes under `-q`, with the rule of each finding under
/// `-v`.
pub(crate) fn print_text(findings: &[Finding]) {
    for finding in finding::sorted_unique(findings) {
        if finding.severity < Severity::Error && !shows(Level::Warn) {
            continue;
        }
        let text = finding.render();
        let text = sanitize::output(&text);
        let head = finding.severity.name();
        write_raw(&text.replacen(head, &in_colour(finding.severity, head), 1));
        report::log(Level::Info, || {
            let code = finding.code;
            let default = code.severity();
            let weight = if default == finding.severity {
                format!("severity {default}")
            } else {
                format!("severity {default}, changed to {} by policy, profile or evidence", finding.severity)
            };
            format!("rule {code} ({}): {weight}; run `cargo cudaguard explain {code}`", code.title())
        });
    }
}

/// In a GitHub workflow, prints each finding above `info` as an annotation too. The annotations go to stderr, because
/// stdout contains the output of a program or a report. The runner reads both.
pub(crate) fn print_annotations(findings: &[Finding]) {
    if Env::from_process().is_github_workflow() {
        let unique = finding::sorted_unique(findings);
        let text = to_github(unique.into_iter().filter(|finding| finding.severity > Severity::Info));
        for line in text.lines() {
            write_raw(&sanitize::sanitize_text(line));
        }
    }
}
