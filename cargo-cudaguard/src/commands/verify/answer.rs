//! The answer for one file: on the machines, and against the requirements of a release.

use std::collections::BTreeSet;
use std::path::Path;

use cudaguard::internal::finding::{self, Code, Effect, Finding, MessageTemplate, Values};
use cudaguard::internal::tables;

use super::examine::MachineAnswer;
use crate::binary::examined::{self, NotExamined};
use crate::commands::release::GateReport;
use crate::host::judge::answer::Service;
use crate::verdict::Verdict;

/// Adds what these findings say is unknown to the items that could not be examined.
pub(crate) fn add_unknown_facts<'a>(items: &mut Vec<String>, findings: impl IntoIterator<Item = &'a Finding>) {
    for finding in findings {
        let line = finding.message.lines().next().unwrap_or_default().to_owned();
        if !items.contains(&line) {
            items.push(line);
        }
    }
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

impl FileAnswer<'_> {
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

    fn verdict_of(&self, mut findings: Vec<Finding>, not_examined: &[NotExamined]) -> Verdict {
        findings.retain(|finding| !self.unasked.contains(&finding.code));
        examined::verdict(&findings, not_examined)
    }
}

/// Adds an error for each unknown of these answers, and for each GPU that only a part of the code serves: nothing unknown is accepted.
pub(super) fn add_strict_errors(file: &Path, on_machine: Option<&mut MachineAnswer>, release: Option<&mut GateReport>) {
    let values = || Values::default().with("file", file.display());
    let mut unknown = Vec::new();
    if let Some(answer) = on_machine {
        // Code for GPUs of other vendors is no unknown.
        let others = answer.not_examined.iter().filter(|part| !part.may_contradict).map(ToString::to_string);
        let others: Vec<String> = others.collect();
        unknown.extend(answer.open.iter().filter(|part| !others.contains(part)).cloned());
        add_unknown_facts(&mut unknown, open_findings(&answer.findings));
        let partial = answer.gpus.iter().filter(|gpu| gpu.service == Service::Partial);
        let gpus: BTreeSet<String> = partial.map(|gpu| tables::dotted_cc(gpu.cc)).collect();
        let partial =
            gpus.iter().map(|gpu| MessageTemplate::StrictUnknownPartial.to_finding(&values().with("gpus", gpu)));
        answer.findings.extend(partial.chain(strict_errors(&unknown, &values())));
    }
    if let Some(report) = release {
        let mut of_release: Vec<String> =
            report.not_examined.iter().filter(|part| part.may_contradict).map(ToString::to_string).collect();
        add_unknown_facts(&mut of_release, open_findings(&report.findings));
        of_release.retain(|known| !unknown.contains(known));
        report.findings.extend(strict_errors(&of_release, &values()));
    }
}

fn open_findings(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(|finding| finding.code.effect() == Effect::Open)
}

fn strict_errors(unknown: &[String], values: &Values) -> Vec<Finding> {
    let error = |why: &String| MessageTemplate::StrictUnknown.to_finding(&values.clone().with("why", why));
    unknown.iter().map(error).collect()
}
