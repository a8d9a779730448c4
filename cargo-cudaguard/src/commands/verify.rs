//! `verify`: checks if files run on this machine, on a machine that a file or options describe, or on each machine of a
//! fleet.

mod examine;
mod machines;
mod output;

use std::process::ExitCode;

use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{self, Verdict};

use crate::binary::examined;
use crate::cli::arguments::{Output, VerifyArgs, Where};
use crate::cli::report::{self, CliError, EXIT_ERROR, REFUSED};
use crate::cli::sarif;
use crate::commands::release::Gate;
use crate::host::judge::answer::Service;

pub(crate) use examine::{components_of_all, read_components};
use examine::{verify_here, verify_on};
use machines::{described_by, read_host};
pub(crate) use machines::{open_input, position_text};
pub(crate) use output::{file_names, not_judged, not_judged_in_words, put_not_judged, to_json, warn_of_not_examined};
use output::{to_text, with_judged};

pub(crate) fn run_verify(env: &Env, question: &VerifyArgs) -> Result<ExitCode, CliError> {
    let machines = match &question.place {
        Where::Here => None,
        Where::Host(file) => Some((vec![read_host(file)?], file.display().to_string())),
        Where::Flags(flags) => {
            Some((described_by(flags).map_err(CliError::operational)?, "the described machine".to_owned()))
        }
    };
    let gate = Gate::from_options(env, &question.gate, machines.is_some())?;
    let (mut refused, mut not_examined, mut found) = (false, false, Vec::new());
    let mut gate_reports = Vec::new();
    for file in &question.files {
        let (mut findings, mut judged) = match &machines {
            None if gate.is_some() => Default::default(),
            None => verify_here(env, file)?,
            Some((machines, place)) => verify_on(env, file, machines, place)?,
        };
        let on_machine = (examined::verdict(&findings, &judged.not_examined), findings.clone());
        if let Some(gate) = gate.as_ref().filter(|gate| gate.has_requirements()) {
            let report = gate.check(file)?;
            findings.extend(report.findings.iter().cloned());
            finding::sort_findings(&mut findings);
            for part in &report.not_examined {
                if !judged.not_examined.contains(part) {
                    judged.not_examined.push(part.clone());
                    judged.open.push(part.to_string());
                }
            }
            gate_reports.push((file.clone(), report));
        }
        let verdict = examined::verdict(&findings, &judged.not_examined);
        let unknown = verdict == Verdict::Unknown && gate.is_some();
        let partial = judged.gpus.iter().any(|answer| answer.service == Service::Partial);
        let strict = gate.as_ref().is_some_and(|gate| gate.requirements.strict);
        refused |= verdict == Verdict::Refused || strict && (unknown || partial);
        not_examined |= !judged.not_examined.is_empty() || unknown;
        let gate_report =
            gate.as_ref().filter(|gate| gate.has_requirements()).zip(gate_reports.last().map(|(_, report)| report));
        if question.form == Output::Sarif {
            found.push((file.clone(), findings));
        } else if question.form == Output::Json {
            let value = to_json(file, verdict, &findings);
            let mut value = with_judged(value, &judged);
            value.insert_some("release", gate_report.map(|(gate, report)| report.to_json(gate)));
            // Several files get one line each, so that readers can separate them.
            let text = if question.files.len() > 1 { value.to_string() } else { value.to_pretty_string() };
            report::print_result(&format!("{text}\n"))?;
        } else {
            let place = machines.as_ref().map(|(machines, place)| {
                let name = machines.first().and_then(|machine| machine.name.as_ref());
                name.unwrap_or(place).as_str()
            });
            report::print_findings(&findings);
            match gate_report {
                Some((gate, report)) => {
                    if machines.is_some() {
                        let (verdict, findings) = &on_machine;
                        report::print_result(&to_text(file, place, *verdict, findings, &judged))?;
                    }
                    let open = if machines.is_none() { not_judged_in_words(&judged.open) } else { String::new() };
                    report::print_result(&(report.to_text(file, gate) + &open))?;
                }
                None => report::print_result(&to_text(file, place, verdict, &findings, &judged))?,
            }
        }
    }
    if let Some(gate) = gate.as_ref().filter(|gate| gate.has_requirements()) {
        report::print_findings(&gate.stale_exceptions(&gate_reports));
    }
    if question.form == Output::Sarif {
        report::print_result(&sarif::files_to_sarif(&found))?;
    }
    Ok(match (refused, not_examined) {
        (true, _) => ExitCode::from(REFUSED),
        (false, true) => ExitCode::from(EXIT_ERROR),
        (false, false) => ExitCode::SUCCESS,
    })
}
