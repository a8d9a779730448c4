//! Hints: each row builds a fault on a machine, applies the hint of the output literally, and runs the command again. The finding must
//! be gone, and no other error may take its place.

mod builds;
mod machines;

use std::collections::BTreeSet;

use cudaguard_tests::{Test, e2e, test};
use serde_json::Value;

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    tests.extend(builds::ROWS.iter().map(|row| test(format!("applied::{}", row.name), || row.check())));
    tests.extend(machines::ROWS.iter().map(|row| test(format!("applied::{}", row.name), || row.check())));
    tests
}

/// Forms of hints that a test cannot apply to a real machine. A row of `machines` applies them to a simulated one.
const MARKED: [&str; 2] = ["driver", "reboot"];

/// Findings with a hint that no row applies and that is not marked. This number may only become smaller.
const WITHOUT_A_TEST: usize = 84;

/// Prints how many hints are applied, marked, or without a test.
#[e2e]
fn coverage() {
    let applied: BTreeSet<&str> =
        builds::ROWS.iter().map(|row| row.code).chain(machines::ROWS.iter().map(|row| row.code)).collect();
    let (mut marked, mut without) = (Vec::new(), Vec::new());
    let rows = cudaguard_findings::read().rows;
    for row in rows.iter().filter(|row| !row.no_action) {
        let code = format!("CG{}", row.code);
        if applied.contains(code.as_str()) {
            continue;
        }
        if MARKED.contains(&row.form.as_str()) {
            marked.push(code);
        } else {
            without.push(code);
        }
    }
    println!("hints: {} applied, {} marked, {} without a test", applied.len(), marked.len(), without.len());
    println!("without a test: {}", without.join(" "));
    assert!(without.len() <= WITHOUT_A_TEST, "{} findings have a hint without a test", without.len());
}

/// Returns the hint of the finding with this code, in the JSON output of a command.
fn hint_of(output: &Value, code: &str) -> String {
    let finding = output["findings"].as_array().into_iter().flatten().find(|finding| finding["code"] == code);
    let finding = finding.unwrap_or_else(|| panic!("no {code}: {output:#}"));
    finding["hint"].as_str().unwrap_or_else(|| panic!("no hint: {finding}")).to_owned()
}

/// Checks the output after the hint was applied.
fn is_solved(output: &Value, code: &str, hint: &str) {
    for finding in output["findings"].as_array().into_iter().flatten() {
        assert_ne!(finding["code"], code, "`{hint}` does not help: {output:#}");
        assert_ne!(finding["severity"], "error", "another error after `{hint}`: {output:#}");
    }
}

/// Returns the part of a hint between two texts.
fn part<'a>(hint: &'a str, before: &str, after: &str) -> &'a str {
    let rest = hint.split_once(before).unwrap_or_else(|| panic!("`{before}` is not in `{hint}`")).1;
    if after.is_empty() {
        return rest;
    }
    rest.split_once(after).unwrap_or_else(|| panic!("`{after}` is not in `{hint}`")).0
}
