//! `verify`: checks if files run on this machine, on a machine that a file or options describe, or on each machine of a
//! fleet.
//!
//! The steps for each file: open it once, check it on the machines, check it against the requirements of a release,
//! combine the answers, print them. [`run_verify`] ends with the exit status of all answers. [`super::fleet`] contains
//! the steps for a fleet.

mod answer;
mod examine;
mod machines;
mod output;

use std::path::Path;
use std::process::ExitCode;

use cudaguard::internal::env::Env;
use cudaguard::internal::finding::Finding;

use crate::cli::arguments::{Output, VerifyOptions};
use crate::cli::findings;
use crate::cli::report::{self, CliError};
use crate::commands::release::Gate;
use crate::verdict::Verdict;

use answer::add_strict_errors;
pub(crate) use answer::{FileAnswer, PackageRow, add_unknown_facts};
pub(crate) use examine::{
    MachineAnswer, OpenArtifact, check_components, components_of_all, not_judged, read_components,
};
#[cfg(target_os = "linux")]
pub(crate) use machines::machine_from_options;
pub(crate) use machines::{HERE, Machines, open_input, position_text};
pub(crate) use output::{VerdictView, file_names, not_judged_in_words, packages_to_text, warn_of_not_examined};

/// Runs `verify` for this machine or for described machines.
pub(crate) fn run_verify(env: &Env, question: &VerifyOptions) -> Result<ExitCode, CliError> {
    let machines = Machines::from_options(question.host.as_deref(), &question.flags)?;
    let gate = Gate::from_options(env, &question.gate, machines.are_described())?;
    let mut answers = Vec::new();
    for file in &question.files {
        let answer = check_file(env, file, &question.packages, &machines, gate.as_ref())?;
        print_answer(question, &answer, &machines, gate.as_ref())?;
        answers.push(answer);
    }
    if let Some(gate) = &gate {
        findings::print_text(&stale_exceptions(gate, &answers));
    }
    let wheels = question.files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "whl"));
    if wheels.count() > 1 {
        report::note("info: each wheel was checked alone; to check wheels that run together, name their directory");
    }
    if question.format.get() == Output::Sarif {
        let files: Vec<_> = answers.iter().map(|answer| (answer.file.to_owned(), answer.findings())).collect();
        report::print_result(&findings::files_to_sarif(&files))?;
    }
    let worst = answers.iter().map(FileAnswer::verdict).max();
    Ok(report::exit_status(worst.unwrap_or(Verdict::Runs)))
}

/// Opens one file, and checks it on the machines and against the requirements of a release. If a release is checked,
/// this machine does not matter.
fn check_file<'a>(
    env: &Env,
    file: &'a Path,
    packages: &[String],
    machines: &Machines,
    gate: Option<&Gate>,
) -> Result<FileAnswer<'a>, CliError> {
    let mut artifact = OpenArtifact::open(file)?;
    let mut on_machine = match machines {
        Machines::Here if gate.is_some() => None,
        Machines::Here => Some(artifact.check_here(env, packages)?),
        Machines::Described { machines, place, .. } => Some(artifact.check_on(env, packages, machines, place)?),
    };
    let requirements = gate.filter(|gate| gate.has_requirements());
    let mut release = requirements.map(|gate| artifact.check_release(gate, packages)).transpose()?;
    let mut unasked = machines.codes_not_asked();
    if let Some(gate) = gate.filter(|gate| gate.requirements.strict) {
        add_strict_errors(file, gate, on_machine.as_mut(), release.as_mut());
        unasked.clear();
    }
    Ok(FileAnswer { file, on_machine, release, unasked })
}

/// Prints the answer for one file. SARIF has one document for all files, so it is printed at the end.
fn print_answer(
    question: &VerifyOptions,
    answer: &FileAnswer<'_>,
    machines: &Machines,
    gate: Option<&Gate>,
) -> Result<(), CliError> {
    match question.format.get() {
        Output::Sarif => Ok(()),
        Output::Json => {
            // Several files get one line each, so that readers can separate them.
            report::print_result(&output::answer_to_json(answer, gate, question.files.len() > 1))
        }
        Output::Text => {
            findings::print_text(&answer.findings());
            report::print_result(&output::answer_to_text(answer, machines.label(), gate))
        }
    }
}

/// Returns findings about exceptions of the release that matched no file.
fn stale_exceptions(gate: &Gate, answers: &[FileAnswer<'_>]) -> Vec<Finding> {
    let reports: Vec<_> = answers.iter().filter_map(|answer| Some((answer.file, answer.release.as_ref()?))).collect();
    if gate.has_requirements() { gate.stale_exceptions(&reports) } else { Vec::new() }
}
