//! The verdicts of `verify --fleet`: a line of JSON for each machine, or a summary of all.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{Code, Effect};
use cudaguard::internal::json;
use cudaguard::internal::sanitize;

use super::{FleetSize, InputPlace, LONGEST_LABEL, pluralize, read_fleet, shorten};
use crate::cli::arguments::{Output, VerifyOptions};
use crate::cli::json_output;
use crate::cli::report::{self, CliError, EXIT_ERROR, REFUSED};
use crate::commands::verify::{self, VerdictView, add_unknown_facts, not_judged, read_components};
use crate::host::machine::fleet_judge::{Change, FleetOutcome, Outcomes, check_files};
use crate::verdict::Verdict;

/// Maximum number of machines that the summary names for each finding.
const NAMED: usize = 3;

pub(crate) fn run_fleet(env: &Env, question: &VerifyOptions, list: &Path) -> Result<ExitCode, CliError> {
    let VerifyOptions { files, packages, .. } = question;
    let json = question.format.get() == Output::Json;
    let read = files.iter().map(|file| read_components(env, file, packages)).collect::<Result<Vec<_>, _>>()?;
    let open: Vec<_> =
        read.iter().map(|components| not_judged(&components.manifests, &components.not_examined)).collect();
    let mut summary = FleetSummary {
        files,
        open: &open,
        json,
        counts: files.iter().map(|_| Count::default()).collect(),
        together: Count::default(),
        out: BufWriter::with_capacity(256 * 1024, std::io::stdout().lock()),
    };
    let fleet = read_fleet(
        list,
        |machine| FleetReport::from_outcomes(&check_files(&read, machine), files, &open, json),
        &mut |fleet_report, label, place| summary.add(fleet_report, label, place),
    )?;
    let Some(fleet) = fleet else { return Ok(ExitCode::from(EXIT_ERROR)) };
    summary.print(&fleet)
}

/// The verdicts of `verify --fleet`.
struct FleetSummary<'a> {
    files: &'a [PathBuf],
    /// The parts of each file that no rule has checked.
    open: &'a [Vec<String>],
    json: bool,
    counts: Vec<Count>,
    /// The counts for all files together on one machine.
    together: Count,
    out: BufWriter<std::io::StdoutLock<'static>>,
}

impl FleetSummary<'_> {
    /// Adds a machine. Returns false if the reader has closed the output.
    fn add(&mut self, fleet_report: &FleetReport, label: Option<&str>, place: InputPlace) -> Result<bool, CliError> {
        for (of_file, count) in fleet_report.each.iter().zip(&mut self.counts) {
            count.add_verdict(of_file, label, place);
            if self.json && !report::check_written(write_verdict(&mut self.out, of_file, label, place))? {
                return Ok(false);
            }
        }
        self.together.add_verdict(&fleet_report.together, label, place);
        Ok(true)
    }

    fn print(mut self, fleet: &FleetSize) -> Result<ExitCode, CliError> {
        if !self.json {
            for ((file, count), open) in self.files.iter().zip(&self.counts).zip(self.open) {
                let text = count.summary_text(&file.display().to_string(), fleet.machines, "it");
                report::check_written(self.out.write_all((text + &verify::not_judged_in_words(open)).as_bytes()))?;
            }
            if self.files.len() > 1 {
                let all = format!("all {} files together", self.files.len());
                let text = self.together.summary_text(&all, fleet.machines, "all of them");
                report::check_written(self.out.write_all(text.as_bytes()))?;
            }
        }
        report::check_written(self.out.flush())?;
        let mut counts = self.counts.iter().chain([&self.together]);
        Ok(if counts.clone().any(|count| count.refused > 0) {
            ExitCode::from(REFUSED)
        } else if fleet.unread > 0 || counts.any(|count| count.unknown > 0) {
            ExitCode::from(EXIT_ERROR)
        } else {
            ExitCode::SUCCESS
        })
    }
}

/// Writes one verdict as a line of JSON: the object of a single machine, plus the label of the machine and its position
/// in the input.
fn write_verdict(
    out: &mut impl std::io::Write,
    fleet_report: &FileEntry,
    label: Option<&str>,
    place: InputPlace,
) -> std::io::Result<()> {
    out.write_all(fleet_report.json.as_bytes())?;
    if let Some(label) = label {
        let label = json::quote(label);
        out.write_all(b",\"host\":")?;
        out.write_all(sanitize::sanitize_text(&label).as_bytes())?;
    }
    match place {
        InputPlace::Line(number) => write!(out, ",\"line\":{number}")?,
        InputPlace::Item(number) => write!(out, ",\"item\":{number}")?,
        InputPlace::EntireInput => {}
    }
    out.write_all(b"}\n")
}

/// The report that all machines with equal properties share.
struct FleetReport {
    each: Vec<FileEntry>,
    /// The worst verdict of all files.
    together: FileEntry,
}

struct FileEntry {
    verdict: Verdict,
    /// The codes that determine the verdict, without duplicates.
    why: Vec<Code>,
    change: Option<Change>,
    /// The beginning of the JSON line, up to the fields that identify the machine; used only for JSON output.
    json: String,
}

impl FleetReport {
    fn from_outcomes(outcomes: &Outcomes, files: &[PathBuf], open: &[Vec<String>], json: bool) -> Self {
        let all = outcomes.each.iter().zip(files).zip(open);
        let each: Vec<FileEntry> = all
            .map(|((outcome, file), open)| FileEntry {
                verdict: outcome.verdict,
                why: verdict_codes(outcome),
                change: outcome.change,
                json: if json { line_of(file, outcome, open) } else { String::new() },
            })
            .collect();
        let verdict = each.iter().map(|of| of.verdict).max().unwrap_or(Verdict::Runs);
        let mut why: Vec<Code> = each.iter().filter(|of| of.verdict == verdict).flat_map(|of| of.why.clone()).collect();
        why.sort_unstable();
        why.dedup();
        Self { each, together: FileEntry { verdict, why, change: outcomes.change, json: String::new() } }
    }
}

/// Returns the codes that determine the verdict.
fn verdict_codes(outcome: &FleetOutcome) -> Vec<Code> {
    if outcome.verdict == Verdict::Runs {
        return Vec::new();
    }
    let weighs = outcome.findings.iter().filter(|finding| Verdict::from_findings([*finding]) == outcome.verdict);
    let mut codes: Vec<Code> = weighs.map(|finding| finding.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// Returns the part of the JSON line that all machines with equal properties share. The object is not closed.
fn line_of(file: &Path, outcome: &FleetOutcome, open: &[String]) -> String {
    let mut not_judged = open.to_vec();
    add_unknown_facts(&mut not_judged, outcome.findings.iter().filter(|finding| finding.code.effect() == Effect::Open));
    let mut view = VerdictView::new(file, outcome.verdict, &outcome.findings, not_judged);
    view.change = outcome.change.map(Change::describe);
    sanitize::sanitize_text(json_output::render_line(&view).trim_end().trim_end_matches('}')).into_owned()
}

/// The number of machines, and the names of the first ones.
#[derive(Default)]
struct MachineNames {
    count: usize,
    first: Vec<String>,
}

impl MachineNames {
    fn add_name(&mut self, label: Option<&str>, place: InputPlace) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(label.map_or_else(|| place.describe(), |label| shorten(label, LONGEST_LABEL).into_owned()));
        }
    }

    /// Returns a line such as `       8  CG302 the driver is too old for the code: node-1, node-2, node-3, …`.
    fn summary_line(&self, width: usize, what: &str) -> String {
        let more = if self.count > self.first.len() { ", …" } else { "" };
        let names = self.first.join(", ");
        let names = sanitize::sanitize_line(&names);
        format!("  {:>width$}  {:>width$}  {what}: {names}{more}\n", "", self.count)
    }
}

/// The counts of one file.
#[derive(Default)]
struct Count {
    runs: usize,
    unknown: usize,
    refused: usize,
    /// The machines of each code that refuses a file or leaves its verdict unknown; the boolean is true if the verdict
    /// is unknown.
    why: BTreeMap<(bool, Code), MachineNames>,
    /// The refused machines, by the change that would admit them.
    changes: BTreeMap<Option<Change>, MachineNames>,
}

impl Count {
    fn add_verdict(&mut self, fleet_report: &FileEntry, label: Option<&str>, place: InputPlace) {
        let refused = match fleet_report.verdict {
            Verdict::Runs => {
                self.runs += 1;
                return;
            }
            Verdict::Unknown => {
                self.unknown += 1;
                false
            }
            Verdict::Refused => {
                self.refused += 1;
                true
            }
        };
        if refused {
            self.changes.entry(fleet_report.change).or_default().add_name(label, place);
        }
        for code in &fleet_report.why {
            self.why.entry((!refused, *code)).or_default().add_name(label, place);
        }
    }

    /// Returns the summary of a file or of all files; `it` refers to them in the text.
    fn summary_text(&self, what: &str, machines: usize, it: &str) -> String {
        let head = format!("{what}: {machines} {}", pluralize(machines, "machine", "machines"));
        let mut text = sanitize::sanitize_line(&head).into_owned() + "\n";
        let width = machines.to_string().len();
        let run = format!("run {it}");
        for (count, word, unknown) in
            [(self.runs, &*run, None), (self.refused, "refused", Some(false)), (self.unknown, "unknown", Some(true))]
        {
            if count > 0 {
                let _ = writeln!(text, "  {count:>width$}  {word}");
            }
            for ((_, code), named) in self.why.iter().filter(|((of, _), _)| Some(*of) == unknown) {
                text.push_str(&named.summary_line(width, &format!("{code} {}", code.title())));
            }
        }
        if self.refused > 0 {
            text.push_str("  changes that make refused machines compatible\n");
        }
        // Changes that admit more machines come first; among equal ones, the smaller change. Machines without a known
        // change come last.
        let mut changes: Vec<(&Option<Change>, &MachineNames)> = self.changes.iter().collect();
        changes.sort_by_key(|(change, named)| {
            (change.is_none(), std::cmp::Reverse(named.count), change.map(Change::change_count), **change)
        });
        for (change, named) in changes {
            let words = change
                .map_or_else(|| format!("no newer driver, other {} or additional code", CUDNN.name), Change::describe);
            text.push_str(&named.summary_line(width, &words));
        }
        text
    }
}
