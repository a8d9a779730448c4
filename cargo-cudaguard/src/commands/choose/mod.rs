//! `choose`: which of several builds runs on a machine. Adds no rules: each candidate is checked as `verify` checks it.

mod candidate;
mod output;

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{Code, Finding};
use cudaguard::internal::version::CudaVersion;

use crate::cli::arguments::ChooseOptions;
use crate::cli::report::{self, CliError, EXIT_ERROR};
use crate::commands::fleet;
use crate::commands::verify::{self, FileAnswer, HERE, MachineAnswer, Machines, OpenArtifact};
use crate::host::machine::judge::gpu_answer::Service;
use crate::host::machine::{self, DriverProbe, Machine};
use crate::verdict::Verdict;
use candidate::{Candidate, ReleaseKey};
use output::{MachineChoice, print_choice};

/// The machines of one answer: the candidate must run on each of them.
struct Question<'a> {
    machines: &'a [Machine],
    place: &'a str,
    /// The findings about facts that no option states.
    unasked: Vec<Code>,
    /// Set for this machine, on which a file is checked as it would start.
    here: Option<&'a Env>,
}

/// The result for a candidate.
struct JudgedCandidate {
    verdict: Verdict,
    /// The weakest code for a GPU; `None` if the candidate has no GPU code, or no GPU is known.
    service: Option<Service>,
    toolkit: Option<CudaVersion>,
    release: ReleaseKey,
    /// The codes and texts that determine the verdict, if it does not run.
    codes: Vec<Code>,
    reason: String,
    /// Facts and parts that were not checked.
    unchecked: Vec<String>,
    findings: Vec<Finding>,
}

/// Runs `choose`.
pub(crate) fn run_choose(env: &Env, options: &ChooseOptions) -> Result<ExitCode, CliError> {
    let machines = Machines::from_options(options.host.as_deref(), &options.flags)?;
    let is_for_here = options.fleet.is_none() && !machines.are_described();
    let mut names = options.candidates.clone();
    if let Some(index) = &options.index {
        names.extend(files_in_index(index)?);
    }
    let candidates = names.iter().map(|name| Candidate::read(env, name, is_for_here)).collect::<Result<Vec<_>, _>>()?;
    let format = options.format.get();
    if let Some(list) = &options.fleet {
        return choose_for_fleet(&candidates, list, options);
    }
    let unasked = machines.codes_not_asked();
    let detected;
    let question = match &machines {
        Machines::Here => {
            detected = [machine::detect_machine(env, Some(&DriverProbe::with_current_exe()))];
            Question { machines: &detected, place: HERE, unasked, here: Some(env) }
        }
        Machines::Described { machines, place, .. } => Question { machines, place, unasked, here: None },
    };
    let label = if is_for_here { "this machine" } else { machines.label() };
    let choice = MachineChoice::new(&candidates, question.judge_all(&candidates));
    print_choice(&choice, label, format)?;
    Ok(report::exit_status(choice.status(options.strict)))
}

/// Chooses for each machine of a list. Machines with equal facts are judged once.
fn choose_for_fleet(candidates: &[Candidate], list: &Path, options: &ChooseOptions) -> Result<ExitCode, CliError> {
    let mut worst = Verdict::Runs;
    let fleet = fleet::read_fleet(
        list,
        |machine| {
            let machines = std::slice::from_ref(machine);
            let question = Question { machines, place: "that machine", unasked: Vec::new(), here: None };
            MachineChoice::new(candidates, question.judge_all(candidates))
        },
        &mut |choice: &MachineChoice, label, place| {
            worst = worst.max(choice.status(options.strict));
            let place = place.describe();
            output::print_choice_of_fleet(choice, label.unwrap_or(&place), options.format.get())
        },
    )?;
    let is_complete = fleet.is_some_and(|fleet| fleet.unread == 0);
    Ok(if is_complete || worst == Verdict::Refused { report::exit_status(worst) } else { ExitCode::from(EXIT_ERROR) })
}

/// Returns the wheels and conda packages of a directory, and of its subdirectories: the layout of an index.
fn files_in_index(index: &Path) -> Result<Vec<String>, CliError> {
    let mut files = packages_in(index)?;
    for directory in fleet::in_order(index)?.iter().filter(|path| path.is_dir()) {
        files.extend(packages_in(directory)?);
    }
    if files.is_empty() {
        return Err(CliError::operational(format_args!("{}: contains no wheel or conda package", index.display())));
    }
    Ok(files.iter().map(|file| file.to_string_lossy().into_owned()).collect())
}

fn packages_in(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    let mut files = fleet::in_order(directory)?;
    files.retain(|file| {
        let name = file.to_string_lossy();
        [".whl", ".conda", ".tar.bz2"].iter().any(|ending| name.ends_with(ending))
    });
    Ok(files)
}

impl Question<'_> {
    fn judge_all(&self, candidates: &[Candidate]) -> Vec<JudgedCandidate> {
        candidates.iter().map(|candidate| self.judge(candidate)).collect()
    }

    fn judge(&self, candidate: &Candidate) -> JudgedCandidate {
        if let (Some(env), Some(file)) = (self.here, &candidate.file) {
            let answer = OpenArtifact::open(file).and_then(|mut artifact| artifact.check_here(env, &[]));
            return self.judge_answer(candidate, answer);
        }
        let mut answers = Vec::new();
        for program in &candidate.programs {
            answers.push(match program {
                Ok(components) => {
                    let answer = verify::check_components(components, self.machines, self.place);
                    self.judge_answer(candidate, Ok(answer))
                }
                Err(error) => JudgedCandidate::unreadable(error),
            });
        }
        JudgedCandidate::combine(answers)
    }

    fn judge_answer(&self, candidate: &Candidate, answer: Result<MachineAnswer, CliError>) -> JudgedCandidate {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return JudgedCandidate::unreadable(&error),
        };
        let service = answer.gpus.iter().map(|gpu| gpu.service).min();
        let toolkit = answer.cuda.max(candidate.stated.map(candidate::StatedToolkit::oldest));
        let file = Path::new(&candidate.name);
        let answer = FileAnswer { file, on_machine: Some(answer), release: None, unasked: self.unasked.clone() };
        let verdict = answer.verdict();
        let unchecked = answer.not_judged();
        let findings = answer.findings();
        let deciding: Vec<&Finding> = findings
            .iter()
            .filter(|finding| verdict != Verdict::Runs && !self.unasked.contains(&finding.code))
            .filter(|finding| Verdict::from_findings([*finding]) == verdict)
            .collect();
        let reason = match deciding.first() {
            Some(finding) => format!("{}: {}", finding.code, finding.first_line()),
            None if verdict == Verdict::Runs => String::new(),
            None => unchecked.first().cloned().unwrap_or_default(),
        };
        let mut codes: Vec<Code> = deciding.iter().map(|finding| finding.code).collect();
        codes.dedup();
        JudgedCandidate {
            verdict,
            service,
            toolkit,
            release: candidate.release.clone(),
            codes,
            reason,
            unchecked,
            findings,
        }
    }
}

impl JudgedCandidate {
    /// Returns the result for a candidate that cannot be read or has nothing to check.
    fn unreadable(error: &CliError) -> Self {
        Self {
            verdict: Verdict::Unknown,
            service: None,
            toolkit: None,
            release: ReleaseKey::default(),
            codes: Vec::new(),
            reason: error.text().to_owned(),
            unchecked: vec![error.text().to_owned()],
            findings: Vec::new(),
        }
    }

    /// Combines the results of the builds that a name may mean: it is unknown whether a name runs if only some do.
    fn combine(answers: Vec<Self>) -> Self {
        let best = answers.iter().map(|answer| answer.verdict).min();
        let service = answers.iter().filter_map(|answer| answer.service).min();
        let weakest = answers.into_iter().max_by_key(|answer| answer.verdict).expect("a name means a build");
        if best == Some(weakest.verdict) {
            return Self { service, ..weakest };
        }
        let reason = format!("the name does not state the build: {}", weakest.reason);
        Self { verdict: Verdict::Unknown, service, unchecked: vec![reason.clone()], reason, ..weakest }
    }

    /// Returns the order of candidates that run: the better, the greater.
    fn rank(&self) -> (Service, Option<CudaVersion>, &ReleaseKey) {
        (self.service.unwrap_or(Service::Native), self.toolkit, &self.release)
    }
}

/// Returns the position of the best candidate that runs.
fn best_of(judged: &[JudgedCandidate]) -> Option<usize> {
    let runs = judged.iter().enumerate().filter(|(_, one)| one.verdict == Verdict::Runs);
    runs.max_by_key(|(at, one)| (one.rank(), Reverse(*at))).map(|(at, _)| at)
}
