//! The answers of `verify` as text and JSON.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cudaguard::internal::finding::{self, Code, Finding, Severity, Verdict};
use cudaguard::internal::json::{Value, array, object};
use cudaguard::internal::manifest::Manifest;
use cudaguard::internal::sanitize;

use super::examine::VerifyResult;
use crate::binary::examined::NotExamined;
use crate::cli::{counts, json_output, report};
use crate::commands::inspect::{built_with, group_by_reason};
use crate::host::dry_run::Loaded;
use crate::host::judge::answer::GpuAnswer;
use crate::host::machine::Components;

/// Maximum number of components that are listed one by one; the others are counted.
const TOLD: usize = 12;

/// Returns the names of the files without their directories.
pub(crate) fn file_names(files: &[PathBuf]) -> String {
    let name = |file: &PathBuf| file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    files.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Describes the parts of these components that no rule has checked, and those that were not examined.
pub(crate) fn not_judged(manifests: &[Manifest], not_examined: &[NotExamined]) -> Vec<String> {
    let mut names: Vec<_> = manifests.iter().filter_map(Manifest::not_judged).map(str::to_owned).collect();
    names.dedup();
    names.extend(not_examined.iter().map(ToString::to_string));
    names
}

pub(crate) fn put_not_judged(value: &mut Value, names: &[String]) {
    value.insert_some("not_judged", (!names.is_empty()).then(|| array(names.iter().map(String::as_str))));
}

/// Returns one line for each name; if there are many, their number.
pub(crate) fn not_judged_in_words(names: &[String]) -> String {
    let line = |text: String, name: &String| text + "  not checked: " + &sanitize::sanitize_line(name) + "\n";
    let text = names.iter().take(TOLD).fold(String::new(), line);
    match names.len().saturating_sub(TOLD) {
        0 => text,
        more => text + &format!("  not checked: {more} more (--json has all)\n"),
    }
}

/// Prints how many parts of these files were not examined.
pub(crate) fn warn_of_not_examined(all: &[Components]) {
    for Components { file, not_examined, .. } in all {
        for (reason, names) in group_by_reason(not_examined) {
            let count = counts::count_of(names.len() as u64, "part");
            report::print_line(&format!(
                "warning: {file}: {count} not examined: {reason}: {}",
                counts::join_some(&names)
            ));
        }
    }
}

pub(super) fn describe_manifests(manifests: &[Manifest]) -> Vec<String> {
    // A component that was not built with cudaguard has no target.
    let one = |manifest: &Manifest| {
        let built =
            if manifest.target.is_empty() { String::new() } else { format!(", built with {}", built_with(manifest)) };
        format!("{}{built}", manifest.component)
    };
    manifests.iter().map(one).collect()
}

/// Returns the verdict as JSON, with the documented keys.
pub(crate) fn to_json(file: &Path, verdict: Verdict, findings: &[Finding]) -> Value {
    object([
        ("schema", json_output::SCHEMA.into()),
        ("file", file.to_string_lossy().as_ref().into()),
        ("verdict", verdict.name().into()),
        ("findings", array(finding::sorted_unique(findings).into_iter().map(Finding::to_json))),
    ])
}

pub(super) fn with_judged(mut value: Value, judged: &VerifyResult) -> Value {
    put_not_judged(&mut value, &judged.open);
    value.insert_some("gpus", (!judged.gpus.is_empty()).then(|| array(judged.gpus.iter().map(GpuAnswer::to_json))));
    value.insert_some("libraries", judged.libraries.as_ref().map(|loaded| array(loaded.iter().map(Loaded::to_json))));
    value
}

pub(super) fn to_text(
    file: &Path,
    place: Option<&str>,
    verdict: Verdict,
    findings: &[Finding],
    judged: &VerifyResult,
) -> String {
    let place = place.unwrap_or("here");
    let mut text =
        sanitize::sanitize_line(&format!("{}: {} ({place})", file.display(), verdict.name())).into_owned() + "\n";
    for component in judged.components.iter().take(TOLD) {
        let _ = writeln!(text, "  {}", sanitize::sanitize_line(component));
    }
    if judged.components.len() > TOLD {
        let _ = writeln!(text, "  and {} more", judged.components.len() - TOLD);
    }
    text.push_str(&not_judged_in_words(&judged.open));
    for answer in &judged.gpus {
        // If there are several components, each line names its component.
        let of = if judged.components.len() > 1 { format!("{}: ", answer.component) } else { String::new() };
        let _ = writeln!(text, "  {}", sanitize::sanitize_line(&format!("{of}{answer}")));
    }
    for gpu in &judged.undriven {
        let _ = writeln!(text, "  {}: not supported by the driver", sanitize::sanitize_line(gpu));
    }
    for loaded in judged.libraries.iter().flatten() {
        let _ = writeln!(text, "  loads {}", sanitize::sanitize_line(&loaded.describe()));
    }
    if verdict == Verdict::Refused {
        let codes: Vec<String> = error_codes(findings).map(|code| code.to_string()).collect();
        let _ =
            writeln!(text, "  run `cargo cudaguard explain {}` for details", codes.first().map_or("", String::as_str));
    }
    text
}

fn error_codes(findings: &[Finding]) -> impl Iterator<Item = Code> + '_ {
    findings.iter().filter(|finding| finding.severity == Severity::Error).map(|finding| finding.code)
}
