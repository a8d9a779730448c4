//! Reports of guarded programs: a file that `CUDAGUARD_REPORT` names has one line of JSON for each guard.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Returns code and severity of each finding in a report, or in the output of `verify --json`: `CG301 error`.
#[track_caller]
pub fn codes(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap_or_else(|| panic!("no findings: {report}"));
    let text = |finding: &Value, key: &str| finding[key].as_str().expect(key).to_owned();
    findings.iter().map(|finding| text(finding, "code") + " " + &text(finding, "severity")).collect()
}

/// Returns the codes of [`codes`] in their order.
#[track_caller]
pub fn sorted_codes(report: &Value) -> Vec<String> {
    let mut codes = codes(report);
    codes.sort();
    codes
}

/// Returns the last report in this file.
#[track_caller]
pub fn last_report(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("no report in {}: {error}", file.display()));
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"))
}
