//! The choice as text, JSON, and arguments of installers.

use std::fmt::Write as _;
use std::path::Path;

use cudaguard::internal::sanitize;
use cudaguard::internal::version::CudaVersion;
use serde::Serialize;

use super::candidate::Candidate;
use super::{JudgedCandidate, best_of};
use crate::cli::arguments::ChooseFormat;
use crate::cli::json_output::{self, FindingView};
use crate::cli::report::{self, CliError};
use crate::host::machine::judge::gpu_answer::Service;
use crate::verdict::Verdict;

/// What a name does not state.
const NOT_STATED: &str =
    "the GPU code of the package and its compression: a name states only its toolkit; give the file to check it";

/// The verdict for a name that nothing known contradicts.
const FITS: &str = "fits";

/// The choice for one machine.
pub(super) struct MachineChoice {
    chosen: Option<usize>,
    candidates: Vec<CandidateRow>,
    install: Option<InstallArguments>,
}

/// A candidate in the output.
struct CandidateRow {
    name: String,
    is_file: bool,
    judged: JudgedCandidate,
    /// Why it is not chosen; empty for the one that is.
    reason: String,
}

/// Arguments that select the candidate.
#[derive(Clone, Serialize)]
struct InstallArguments {
    pip: String,
    uv: String,
    conda: Option<String>,
    docker: Option<String>,
}

#[derive(Serialize)]
struct ChoiceView<'a> {
    machine: &'a str,
    verdict: &'static str,
    chosen: Option<&'a str>,
    install: Option<&'a InstallArguments>,
    candidates: Vec<CandidateView<'a>>,
}

#[derive(Serialize)]
struct CandidateView<'a> {
    candidate: &'a str,
    verdict: &'static str,
    by: Option<&'static str>,
    toolkit: Option<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    codes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_judged: Vec<&'a str>,
    findings: Vec<FindingView<'a>>,
}

impl MachineChoice {
    pub(super) fn new(candidates: &[Candidate], judged: Vec<JudgedCandidate>) -> Self {
        let chosen = best_of(&judged);
        let reasons: Vec<String> = judged
            .iter()
            .enumerate()
            .map(|(at, one)| match chosen {
                Some(best) if best == at => String::new(),
                _ if one.verdict != Verdict::Runs => format!("{}: {}", one.verdict.name(), one.reason),
                Some(best) => {
                    let runs = if candidates[at].file.is_some() { Verdict::Runs.name() } else { FITS };
                    format!("{runs}{}", reason_against(one, &judged[best], &candidates[best].name))
                }
                None => String::new(),
            })
            .collect();
        let install = chosen.map(|at| InstallArguments::new(&candidates[at], judged[at].toolkit));
        let rows = candidates.iter().zip(judged).zip(reasons).map(|((candidate, judged), reason)| CandidateRow {
            name: candidate.name.clone(),
            is_file: candidate.file.is_some(),
            judged,
            reason,
        });
        Self { chosen, candidates: rows.collect(), install }
    }

    /// Returns `Runs` if a candidate is chosen, `Refused` if none can be. If it is strict, a name is not certain to run.
    pub(super) fn status(&self, is_strict: bool) -> Verdict {
        let best = self.best();
        let is_open = is_strict && best.is_some_and(|row| !row.not_judged().is_empty());
        best.map_or(Verdict::Refused, |row| {
            if is_open { row.judged.verdict.max(Verdict::Unknown) } else { row.judged.verdict }
        })
    }

    /// Returns the chosen candidate, or one with the best verdict.
    fn best(&self) -> Option<&CandidateRow> {
        let chosen = self.chosen.map(|at| &self.candidates[at]);
        chosen.or_else(|| self.candidates.iter().min_by_key(|row| row.judged.verdict))
    }

    fn view<'a>(&'a self, machine: &'a str) -> ChoiceView<'a> {
        let candidates = self.candidates.iter().map(|row| CandidateView {
            candidate: &row.name,
            verdict: row.verdict(),
            by: row.judged.service.map(Service::name),
            toolkit: row.judged.toolkit.map(|toolkit| toolkit.to_string()),
            reason: &row.reason,
            codes: row.judged.codes.iter().map(ToString::to_string).collect(),
            not_judged: row.not_judged(),
            findings: row.judged.findings.iter().map(FindingView::new).collect(),
        });
        ChoiceView {
            machine,
            verdict: self.best().map_or(Verdict::Refused.name(), CandidateRow::verdict),
            chosen: self.chosen.map(|at| self.candidates[at].name.as_str()),
            install: self.install.as_ref(),
            candidates: candidates.collect(),
        }
    }

    fn to_text(&self, machine: &str) -> String {
        let head = match (self.chosen, self.status(false)) {
            (Some(at), _) => format!("{machine}: {}", self.candidates[at].name),
            (None, Verdict::Refused) => format!("{machine}: no candidate runs"),
            (None, _) => format!("{machine}: unknown: no candidate certainly runs"),
        };
        let mut text = sanitize::sanitize_line(&head).into_owned() + "\n";
        for row in self.candidates.iter().filter(|row| !row.reason.is_empty()) {
            let _ = writeln!(text, "  {}", sanitize::sanitize_line(&format!("{}: {}", row.name, row.reason)));
        }
        // The reason contains what is unknown about the others.
        for part in self.chosen.iter().flat_map(|at| self.candidates[*at].not_judged()) {
            let _ = writeln!(text, "  not checked: {}", sanitize::sanitize_line(part));
        }
        text
    }
}

impl CandidateRow {
    /// Returns the name of the verdict.
    fn verdict(&self) -> &'static str {
        match self.judged.verdict {
            Verdict::Runs if !self.is_file => FITS,
            verdict => verdict.name(),
        }
    }

    fn not_judged(&self) -> Vec<&str> {
        let stated = (!self.is_file).then_some(NOT_STATED);
        self.judged.unchecked.iter().map(String::as_str).chain(stated).collect()
    }
}

/// Returns why a candidate that runs is not chosen, as the rest of a sentence.
fn reason_against(one: &JudgedCandidate, best: &JudgedCandidate, best_name: &str) -> String {
    let ((service, toolkit, release), (best_service, best_toolkit, best_release)) = (one.rank(), best.rank());
    if service != best_service {
        let by = if service == Service::Jit { "through PTX" } else { "in part" };
        return format!(" {by}; {best_name} has {} code", best_service.name());
    }
    if toolkit != best_toolkit {
        return format!("; {best_name} has a newer toolkit");
    }
    if release != best_release {
        return format!("; {best_name} is a newer version");
    }
    format!("; {best_name} comes first")
}

impl InstallArguments {
    fn new(candidate: &Candidate, toolkit: Option<CudaVersion>) -> Self {
        let name = candidate.name.clone();
        let Some(stated) = candidate.stated.filter(|_| candidate.file.is_none()) else {
            let is_wheel = Path::new(&name).extension().is_some_and(|ending| ending == "whl");
            let conda = (candidate.file.is_some() && !is_wheel).then(|| name.clone());
            return Self { pip: name.clone(), uv: name, conda, docker: toolkit.map(|cuda| format!("cuda{cuda}")) };
        };
        let major = stated.major;
        let Some(minor) = stated.minor else {
            let is_bare = name == format!("cuda{major}") || name == format!("cu{major}");
            let package = if is_bare { format!("jax[cuda{major}]") } else { name };
            let conda = Some(format!("cuda-version={major}"));
            return Self { pip: package.clone(), uv: package, conda, docker: Some(format!("cuda{major}")) };
        };
        Self {
            pip: format!("--index-url https://download.pytorch.org/whl/cu{major}{minor}"),
            uv: format!("--torch-backend=cu{major}{minor}"),
            conda: Some(format!("cuda-version={major}.{minor}")),
            docker: Some(if name.contains(':') { name } else { format!("cuda{major}.{minor}") }),
        }
    }

    /// Returns the arguments in a format of an installer; `None` if the candidate has none, or for other formats.
    fn get(&self, format: ChooseFormat) -> Option<&str> {
        match format {
            ChooseFormat::Pip => Some(&self.pip),
            ChooseFormat::Uv => Some(&self.uv),
            ChooseFormat::Conda => self.conda.as_deref(),
            ChooseFormat::Docker => self.docker.as_deref(),
            ChooseFormat::Text | ChooseFormat::Json => None,
        }
    }
}

/// Prints the choice for one machine. If it is for an installer, stdout contains only the arguments.
pub(super) fn print_choice(choice: &MachineChoice, machine: &str, format: ChooseFormat) -> Result<(), CliError> {
    match format {
        ChooseFormat::Text => report::print_result(&choice.to_text(machine)),
        ChooseFormat::Json => report::print_result(&json_output::render(&choice.view(machine))),
        _ => {
            report::note(choice.to_text(machine).trim_end());
            print_install(choice, "", format).map(|_| ())
        }
    }
}

/// Prints the choice for a machine of a fleet, JSON in one line. Returns false if the reader has closed the pipe.
pub(super) fn print_choice_of_fleet(
    choice: &MachineChoice,
    machine: &str,
    format: ChooseFormat,
) -> Result<bool, CliError> {
    match format {
        ChooseFormat::Text => report::print_part(&choice.to_text(machine)),
        ChooseFormat::Json => report::print_part(&json_output::render_line(&choice.view(machine))),
        _ => print_install(choice, &format!("{machine}: "), format),
    }
}

fn print_install(choice: &MachineChoice, before: &str, format: ChooseFormat) -> Result<bool, CliError> {
    match choice.install.as_ref().map(|install| install.get(format)) {
        Some(Some(arguments)) => report::print_part(&format!("{before}{arguments}\n")),
        Some(None) => {
            Err(CliError::operational("the chosen candidate has no arguments for this format; use another one"))
        }
        None => Ok(true),
    }
}
