//! Reports of guarded programs: a file that `CUDAGUARD_REPORT` names has one line of JSON for each guard.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Returns the last report in this file.
#[track_caller]
pub fn last_report(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("no report in {}: {error}", file.display()));
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"))
}
