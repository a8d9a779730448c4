//! Findings in the form of cargo's compiler messages (`--message-format json`): one line each on stdout, for editors
//! and other readers of cargo's messages.

use std::io::{BufRead as _, BufReader, Read, Write as _};

use cargo_metadata::{BuildScript, Message};
use cudaguard::internal::finding::{self, Finding};
use serde_json::{Value, json};

use crate::cli::findings::{self, MessageFormat};
use crate::cli::report;

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
    findings::print_text(&as_text);
    findings::print_annotations(&findings);
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
