//! The answer for one file: on the machines, and against the requirements of a release.

use std::collections::BTreeSet;
use std::path::Path;

use cudaguard::internal::finding::{self, Code, Effect, Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::tables;
use serde::Serialize;

use super::examine::{MachineAnswer, PackageAnswer};
use crate::binary::examined::{self, NotExamined};
use crate::commands::artifact_report::PackageId;
use crate::commands::release::{Gate, GateReport};
use crate::host::machine::judge::gpu_answer::Service;
use crate::verdict::Verdict;

/// Adds what these findings say is unknown to the items that could not be examined.
pub(crate) fn add_unknown_facts<'a>(items: &mut Vec<String>, findings: impl IntoIterator<Item = &'a Finding>) {
    for finding in findings {
        let line = finding.first_line().to_owned();
        if !items.contains(&line) {
            items.push(line);
        }
    }
}

/// A package of an environment in the output.
#[derive(Serialize)]
pub(crate) struct PackageRow {
    #[serde(flatten)]
    pub(crate) package: Option<PackageId>,
    pub(crate) verdict: &'static str,
    /// The code of the finding that gives the reason.
    pub(crate) code: Option<String>,
    pub(crate) reason: Option<String>,
}

/// The answer for one file.
pub(crate) struct FileAnswer<'a> {
    pub(crate) file: &'a Path,
    /// `None` if only the requirements of a release are checked.
    pub(crate) on_machine: Option<MachineAnswer>,
    /// `None` if nothing is required of a release.
    pub(crate) release: Option<GateReport>,
    /// The findings that report the absence of facts which no option asks about. They do not count.
    pub(crate) unasked: Vec<Code>,
}

impl<'a> FileAnswer<'a> {
    /// Creates the answer for an artifact on one machine.
    pub(crate) const fn on_machine(file: &'a Path, answer: MachineAnswer) -> Self {
        Self { file, on_machine: Some(answer), release: None, unasked: Vec::new() }
    }

    /// Returns the findings of both checks, in report order.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let on_machine = self.on_machine.iter().flat_map(|answer| &answer.findings);
        let of_release = self.release.iter().flat_map(|report| &report.findings);
        let mut findings: Vec<Finding> = on_machine.chain(of_release).cloned().collect();
        finding::sort_findings(&mut findings);
        findings
    }

    /// Returns the parts that a check did not examine, each once.
    pub(crate) fn not_examined(&self) -> Vec<NotExamined> {
        let mut all = self.on_machine.as_ref().map(|answer| answer.not_examined.clone()).unwrap_or_default();
        all.extend(self.only_release_left_out().cloned());
        all
    }

    /// Describes the parts that no rule has checked, those that were not examined, and the facts that are unknown.
    pub(crate) fn not_judged(&self) -> Vec<String> {
        let mut all = self.on_machine.as_ref().map(|answer| answer.open.clone()).unwrap_or_default();
        all.extend(self.only_release_left_out().map(ToString::to_string));
        let is_open =
            |finding: &&Finding| finding.code.effect() == Effect::Open || self.unasked.contains(&finding.code);
        add_unknown_facts(&mut all, self.findings().iter().filter(is_open));
        all
    }

    /// Returns the findings about facts that no option states.
    pub(crate) fn unasked_findings(&self) -> Vec<Finding> {
        let mut findings = self.findings();
        findings.retain(|finding| self.unasked.contains(&finding.code));
        findings
    }

    fn only_release_left_out(&self) -> impl Iterator<Item = &NotExamined> {
        let known = self.on_machine.as_ref().map_or(&[][..], |answer| &answer.not_examined);
        self.release.iter().flat_map(|report| &report.not_examined).filter(|part| !known.contains(part))
    }

    pub(crate) fn verdict(&self) -> Verdict {
        self.verdict_of(self.findings(), &self.not_examined())
    }

    /// Returns the verdict of the check on the machines alone.
    pub(crate) fn verdict_on(&self, machine: &MachineAnswer) -> Verdict {
        self.verdict_of(machine.findings.clone(), &machine.not_examined)
    }

    /// Returns one row for each package of an environment.
    pub(crate) fn package_rows(&self) -> Vec<PackageRow> {
        self.on_machine
            .iter()
            .flat_map(|answer| &answer.packages)
            .filter_map(|package| self.package_row(package))
            .collect()
    }

    /// Returns the row of a package. `None` for files of no package about which there is nothing to report.
    fn package_row(&self, package: &PackageAnswer) -> Option<PackageRow> {
        let PackageAnswer { package, answer } = package;
        let verdict = self.verdict_on(answer);
        let counts = |finding: &&Finding| !self.unasked.contains(&finding.code);
        let with = |severity: Severity| answer.findings.iter().filter(counts).find(|one| one.severity == severity);
        let left_out = || answer.not_examined.iter().find(|part| part.may_contradict).map(ToString::to_string);
        let finding = match verdict {
            Verdict::Refused => with(Severity::Error),
            Verdict::Unknown => answer.findings.iter().filter(counts).find(|one| one.code.effect() == Effect::Open),
            Verdict::Runs => with(Severity::Warning),
        };
        let reason = finding
            .map(|finding| finding.first_line().to_owned())
            .or_else(|| left_out().filter(|_| verdict == Verdict::Unknown));
        let directory = package.as_ref().map(|package| package.directory.as_str()).filter(|dir| !dir.is_empty());
        let reason = reason.map(|text| directory.map_or_else(|| text.clone(), |dir| text.replace(dir, "")));
        if package.is_none() && reason.is_none() {
            return None;
        }
        Some(PackageRow {
            package: package.clone(),
            verdict: verdict.name(),
            code: finding.map(|one| one.code.to_string()),
            reason,
        })
    }

    fn verdict_of(&self, mut findings: Vec<Finding>, not_examined: &[NotExamined]) -> Verdict {
        findings.retain(|finding| !self.unasked.contains(&finding.code));
        examined::verdict(&findings, not_examined)
    }
}

/// Adds an error for each unknown of these answers, and for each GPU that only a part of the code serves: nothing unknown is accepted,
/// except in files that the gate excludes.
pub(super) fn add_strict_errors(
    file: &Path,
    gate: &Gate,
    on_machine: Option<&mut MachineAnswer>,
    release: Option<&mut GateReport>,
) {
    let mut unknown = Vec::new();
    if let Some(answer) = on_machine {
        let excepted = answer.not_examined.iter().filter(|part| gate.excludes(file, &part.name));
        let excepted: Vec<String> = excepted.map(ToString::to_string).collect();
        for package in &mut answer.packages {
            add_strict_errors_on_machine(&package.name(file), &mut package.answer, &excepted, &mut unknown);
        }
        if answer.packages.is_empty() {
            add_strict_errors_on_machine(&file.display().to_string(), answer, &excepted, &mut unknown);
        } else {
            *answer = MachineAnswer::from_packages(std::mem::take(&mut answer.packages));
        }
    }
    if let Some(report) = release {
        let values = Values::default().with("file", file.display());
        let mut of_release: Vec<String> =
            report.not_examined.iter().filter(|part| part.may_contradict).map(ToString::to_string).collect();
        add_unknown_facts(&mut of_release, open_findings(&report.findings));
        of_release.retain(|known| !unknown.contains(known));
        report.findings.extend(strict_errors(&of_release, &values));
    }
}

/// Adds the errors for one answer, and what is unknown to `unknown`. `excepted` describes the parts that the gate excludes.
fn add_strict_errors_on_machine(
    name: &str,
    answer: &mut MachineAnswer,
    excepted: &[String],
    unknown: &mut Vec<String>,
) {
    let values = Values::default().with("file", name);
    let mut own = Vec::new();
    own.extend(answer.open.iter().filter(|part| !excepted.contains(part)).cloned());
    add_unknown_facts(&mut own, open_findings(&answer.findings));
    let partial = answer.gpus.iter().filter(|gpu| gpu.service == Service::Partial);
    let gpus: BTreeSet<String> = partial.map(|gpu| tables::dotted_cc(gpu.cc)).collect();
    let partial =
        gpus.iter().map(|gpu| MessageTemplate::StrictUnknownPartial.to_finding(&values.clone().with("gpus", gpu)));
    answer.findings.extend(partial.chain(strict_errors(&own, &values)));
    unknown.extend(own);
}

fn open_findings(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(|finding| finding.code.effect() == Effect::Open)
}

fn strict_errors(unknown: &[String], values: &Values) -> Vec<Finding> {
    unknown.iter().map(|why| MessageTemplate::StrictUnknown.to_finding(&values.clone().with("why", why))).collect()
}
