//! How the command speaks: findings and trouble on stderr, results on stdout, colour only on a terminal.

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use cudaguard::env::Env;
use cudaguard::finding::{self, Finding, Severity, Verdict, annotated_error};
use cudaguard::sanitize;

/// Findings that refuse.
pub(crate) const REFUSED: u8 = 1;
/// Could not look.
pub(crate) const EXIT_ERROR: u8 = 2;
/// Nothing is known of what `explain` was asked.
const EXIT_NOT_FOUND: u8 = 3;
/// Refused at start-up: the status of the shim, `run` and `exec`.
pub(crate) const EXIT_REFUSED: u8 = 78;

/// Why the command ends early.
#[derive(Debug)]
pub(crate) struct CliError {
    status: u8,
    text: String,
}

impl CliError {
    /// It could not look: what, and why.
    pub(crate) fn operational(text: impl Display) -> Self {
        Self { status: EXIT_ERROR, text: text.to_string() }
    }

    /// Nothing is known of it: what to try next.
    pub(crate) fn not_found(text: impl Display) -> Self {
        Self { status: EXIT_NOT_FOUND, text: text.to_string() }
    }

    /// Everything has been said already.
    pub(crate) const fn silent(status: u8) -> Self {
        Self { status, text: String::new() }
    }

    /// Whether it was looked at, and refused.
    pub(crate) fn refuses(&self) -> bool {
        self.status == REFUSED
    }

    /// Says it and gives the status.
    pub(crate) fn say(self) -> ExitCode {
        ExitCode::from(self.told())
    }

    /// The same as a number.
    pub(crate) fn told(self) -> u8 {
        if !self.text.is_empty() {
            raw(&format!("{}: {}", paint(Severity::Error, "error"), sanitize::text(&self.text)));
            if Env::from_process().is_github_workflow() {
                line(&annotated_error(&self.text));
            }
        }
        self.status
    }
}

/// One line (or a few) on stderr, without what a terminal would obey.
pub(crate) fn line(text: &str) {
    raw(&sanitize::text(text));
}

/// In one write, so that it stays whole among cargo's own.
fn raw(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Text on stdout, without what a terminal would obey; JSON stays the same JSON. A reader that has gone away (`| head`) is no trouble of ours.
pub(crate) fn result(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    written(out.write_all(sanitize::text(text).as_bytes()).and_then(|()| out.flush())).map(|_| ())
}

/// What came of a write to stdout: whether anybody still reads.
pub(crate) fn written(outcome: std::io::Result<()>) -> Result<bool, CliError> {
    match outcome {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(CliError::operational(format_args!("cannot write to stdout: {error}"))),
    }
}

/// Each finding once, the grave ones first.
pub(crate) fn findings(findings: &[Finding]) {
    for finding in finding::told(findings) {
        let text = finding.render();
        let head = finding.severity.name();
        raw(&text.replacen(head, &paint(finding.severity, head), 1));
    }
}

/// In a workflow of GitHub's, each finding that weighs as an annotation too. The runner reads both streams; stdout is a
/// program's, or a report's.
pub(crate) fn annotations(findings: &[Finding]) {
    if Env::from_process().is_github_workflow() {
        for finding in finding::told(findings).into_iter().filter(|finding| finding.severity > Severity::Info) {
            line(&finding.annotation());
        }
    }
}

/// Whether they refuse a start. Of a build [`cudaguard::walk::refuses`] says so, where a policy and the lock have their say.
pub(crate) fn refuses(findings: &[Finding]) -> bool {
    Verdict::of(findings) == Verdict::Refused
}

fn paint(severity: Severity, text: &str) -> String {
    if coloured() { in_colour(severity, text) } else { text.to_owned() }
}

/// A text in the colour of a weight.
pub(crate) fn in_colour(severity: Severity, text: &str) -> String {
    let colour = match severity {
        Severity::Info => 36,
        Severity::Warning => 33,
        Severity::Error => 31,
    };
    format!("\x1b[1;{colour}m{text}\x1b[0m")
}

/// cargo's own switch (`CARGO_TERM_COLOR`) and the common one (`NO_COLOR`), else whether a person reads.
fn coloured() -> bool {
    match Env::from_process().var("CARGO_TERM_COLOR").as_deref() {
        Some("always") => true,
        Some("never") => false,
        _ => Env::from_process().var_os("NO_COLOR").is_none() && std::io::stderr().is_terminal(),
    }
}
