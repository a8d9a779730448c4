//! The answers of `verify` as text and JSON.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cudaguard::internal::finding::{Code, Finding, Severity};
use cudaguard::internal::sanitize;
use serde::Serialize;

use super::answer::{FileAnswer, PackageRow};
use super::examine::MachineAnswer;
use crate::cli::json_output::{self, FindingView};
use crate::cli::{counts, report};
use crate::commands::inspect::group_by_reason;
use crate::commands::release::{Gate, GateView};
use crate::host::dry_run::Loaded;
use crate::host::machine::Components;
use crate::host::machine::judge::gpu_answer::{GpuAnswer, Service};
use crate::verdict::Verdict;

/// Maximum number of components that are listed one by one; the others are counted.
const TOLD: usize = 12;

/// Returns the names of the files without their directories.
pub(crate) fn file_names(files: &[PathBuf]) -> String {
    let name = |file: &PathBuf| file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    files.iter().map(name).collect::<Vec<_>>().join(", ")
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

/// The answer for one file as JSON. An answer of a fleet has no packages, GPUs, libraries and release.
#[derive(Default, Serialize)]
pub(crate) struct VerdictView<'a> {
    file: Cow<'a, str>,
    verdict: &'static str,
    findings: Vec<FindingView<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_judged: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    packages: Vec<PackageRow>,
    #[serde(skip_serializing_if = "<[GpuAnswer]>::is_empty")]
    gpus: &'a [GpuAnswer],
    libraries: Option<&'a [Loaded]>,
    release: Option<GateView<'a>>,
    pub(crate) change: Option<String>,
}

impl<'a> VerdictView<'a> {
    pub(crate) fn new(file: &'a Path, verdict: Verdict, findings: &'a [Finding], not_judged: Vec<String>) -> Self {
        Self {
            file: file.to_string_lossy(),
            verdict: verdict.name(),
            findings: FindingView::sorted(findings),
            not_judged,
            ..Self::default()
        }
    }
}

/// Returns the answer for one file as JSON: in one line, or over several.
pub(super) fn answer_to_json(answer: &FileAnswer<'_>, gate: Option<&Gate>, in_one_line: bool) -> String {
    let machine = answer.on_machine.as_ref();
    let findings = answer.findings();
    let view = VerdictView {
        packages: answer.package_rows(),
        gpus: machine.map_or(&[], |machine| &machine.gpus),
        libraries: machine.and_then(|machine| machine.libraries.as_deref()),
        release: answer.release.as_ref().zip(gate).map(|(report, gate)| report.view(gate)),
        ..VerdictView::new(answer.file, answer.verdict(), &findings, answer.not_judged())
    };
    if in_one_line { json_output::render_line(&view) } else { json_output::render(&view) }
}

/// Returns the answer for one file as text, without its findings.
pub(super) fn answer_to_text(answer: &FileAnswer<'_>, machine_name: &str, gate: Option<&Gate>) -> String {
    let open = not_judged_in_words(&answer.not_judged());
    let mut text = String::new();
    if let Some(machine) = &answer.on_machine {
        text += &machine_to_text(answer, machine_name, machine, &open);
    }
    if let Some((report, gate)) = answer.release.as_ref().zip(gate) {
        text += &report.to_text(answer.file, gate);
        if answer.on_machine.is_none() {
            text += &open;
        }
    }
    text
}

fn machine_to_text(answer: &FileAnswer<'_>, machine_name: &str, machine: &MachineAnswer, open: &str) -> String {
    let verdict = answer.verdict_on(machine);
    let is_limited = verdict == Verdict::Runs && !answer.unasked_findings().is_empty();
    let limit = if is_limited { ", judged by the options alone" } else { "" };
    let head = format!("{}: {}{limit} ({machine_name})", answer.file.display(), verdict.name());
    let mut text = sanitize::sanitize_line(&head).into_owned() + "\n";
    if machine.packages.is_empty() {
        for component in machine.components.iter().take(TOLD) {
            let _ = writeln!(text, "  {}", sanitize::sanitize_line(component));
        }
        if machine.components.len() > TOLD {
            let _ = writeln!(text, "  and {} more", machine.components.len() - TOLD);
        }
    } else {
        text.push_str(&packages_to_text(&answer.package_rows()));
    }
    text.push_str(open);
    for answer in machine.gpus.iter().filter(|_| machine.packages.is_empty()) {
        // Of several components, the line names the one that lacks code. The driver is that of all.
        let is_served = matches!(answer.service, Service::Native | Service::Jit);
        let is_named = machine.components.len() > 1 && !is_served;
        let of = if is_named { format!("{}: ", answer.component) } else { String::new() };
        let _ = writeln!(text, "  {}", sanitize::sanitize_line(&format!("{of}{answer}")));
    }
    for gpu in &machine.unusable {
        let _ = writeln!(text, "  {}", sanitize::sanitize_line(gpu));
    }
    for loaded in machine.libraries.iter().flatten() {
        let _ = writeln!(text, "  loads {}", sanitize::sanitize_line(&loaded.describe()));
    }
    if verdict == Verdict::Refused {
        let code = error_codes(&machine.findings).next().map(|code| code.to_string());
        let _ = writeln!(text, "  run `cargo cudaguard explain {}` for details", code.unwrap_or_default());
    }
    text
}

/// Returns a table with one line for each package.
pub(crate) fn packages_to_text(rows: &[PackageRow]) -> String {
    let cells = |row: &PackageRow| match &row.package {
        Some(package) => [package.name.clone(), package.version.clone(), row.verdict.to_owned()],
        None => ["(other files)".to_owned(), String::new(), row.verdict.to_owned()],
    };
    let cells: Vec<[String; 3]> = rows.iter().map(cells).collect();
    let widths = [0, 1, 2].map(|column| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or_default());
    let mut text = String::new();
    for (row, [name, version, verdict]) in rows.iter().zip(&cells) {
        let [first, second, third] = widths;
        let code = row.code.as_ref().map(|code| format!("{code}: ")).unwrap_or_default();
        let reason = row.reason.as_deref().unwrap_or_default();
        let line = format!("  {name:first$}  {version:second$}  {verdict:third$}  {code}{reason}");
        text += sanitize::sanitize_line(line.trim_end()).as_ref();
        text.push('\n');
    }
    text
}

fn error_codes(findings: &[Finding]) -> impl Iterator<Item = Code> + '_ {
    findings.iter().filter(|finding| finding.severity == Severity::Error).map(|finding| finding.code)
}
