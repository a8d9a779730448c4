//! `doctor`: diagnoses this machine, or a program on this machine.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use crate::binary::file::Binary;
use crate::binary::mapped_file::OpenFiles;
use crate::host::diagnosis::{self, Checkup, DriverCandidate};
use crate::host::machine::{DriverProbe, HostFileView};
use cudaguard::Status;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{self, Finding, Severity};
use cudaguard::internal::sanitize;
use serde::Serialize;

use crate::cli::arguments::TextOrJson;
use crate::cli::report::{self, CliError, EXIT_ERROR, REFUSED};
use crate::commands::verify::{FileAnswer, OpenArtifact, PackageRow, packages_to_text};
use crate::commands::{probe, start};

use crate::cli::findings;
use crate::cli::json_output::{self, FindingView};
use crate::cli::platform;
use crate::verdict::Verdict;

pub(crate) fn run_doctor(
    env: &Env,
    program: Option<&Path>,
    packages: &[String],
    format: TextOrJson,
) -> Result<ExitCode, CliError> {
    // A name without a slash denotes what `exec` starts, unless it is that of a directory, such as `env`.
    let is_name = |file: &&Path| file.file_name() == Some(file.as_os_str()) && !file.is_dir();
    let program = program.map(|file| {
        let found = Some(file).filter(is_name).and_then(|name| platform::find_program(name.as_os_str()));
        found.unwrap_or_else(|| file.to_owned())
    });
    let program = program.as_deref();
    let probe = DriverProbe::with_current_exe();
    let (started, artifact) = match program.map(OpenArtifact::open).transpose()? {
        Some(artifact) if cfg!(windows) || !packages.is_empty() || artifact.is_never_loaded_here() => {
            (None, Some(artifact))
        }
        Some(OpenArtifact::File(path, contents)) => (Some((path, contents)), None),
        artifact => (None, artifact),
    };
    let started = match started {
        Some((path, contents)) => {
            let program = Binary::from_contents(path, contents)?;
            let mut predicted = start::simulate_and_check(&program, env, &OpenFiles::default(), Some(&probe))?;
            start::add_packages(&mut predicted);
            Some((program, predicted))
        }
        None => None,
    };
    let mut checkup = diagnosis::examine_host(started, env, &probe);
    let mut rows = Vec::new();
    if let (Some(mut artifact), Some(file)) = (artifact, program) {
        let answer = FileAnswer::on_machine(file, artifact.check_here(env, packages)?);
        checkup.add_artifact(answer.verdict(), answer.findings(), answer.not_judged());
        rows = answer.package_rows();
    }
    let findings = finding::sorted_unique(&checkup.findings);
    report::print_result(&match format {
        TextOrJson::Json => json_output::render(&DoctorView::new(program, &checkup, &findings, &rows)),
        TextOrJson::Text => to_text(program, &checkup, &findings, &rows),
    })?;
    Ok(match checkup.status {
        Status::Incompatible => ExitCode::from(REFUSED),
        Status::Unknown if program.is_some() => ExitCode::from(EXIT_ERROR),
        _ => ExitCode::SUCCESS,
    })
}

/// The output of `doctor` as JSON.
#[derive(Serialize)]
struct DoctorView<'a> {
    file: Option<String>,
    verdict: Option<&'static str>,
    status: &'static str,
    findings: Vec<FindingView<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    not_judged: &'a [String],
    #[serde(skip_serializing_if = "<[PackageRow]>::is_empty")]
    packages: &'a [PackageRow],
    libraries: &'a [DriverCandidate],
    machine: HostFileView<'a>,
}

impl<'a> DoctorView<'a> {
    fn new(program: Option<&Path>, checkup: &'a Checkup, findings: &[&'a Finding], packages: &'a [PackageRow]) -> Self {
        Self {
            file: program.map(|program| program.to_string_lossy().into_owned()),
            verdict: checkup.verdict.map(Verdict::name),
            status: checkup.status.name(),
            findings: findings.iter().copied().map(FindingView::new).collect(),
            not_judged: &checkup.not_judged,
            packages,
            libraries: &checkup.choices,
            machine: checkup.machine.to_host_file(),
        }
    }
}

/// Describes the machine and the candidates for each library, then lists findings, what was not examined and the next step.
fn to_text(program: Option<&Path>, checkup: &Checkup, findings: &[&Finding], rows: &[PackageRow]) -> String {
    let mut text = probe::driver_and_gpus(&checkup.machine);
    let _ = writeln!(text, "libraries");
    let mut last = "";
    for choice in &checkup.choices {
        if choice.name != last {
            let _ = writeln!(text, "  {}", sanitize::sanitize_line(&choice.name));
        }
        last = &choice.name;
        let version = choice.version.as_ref().map(|version| format!(" ({version})")).unwrap_or_default();
        let found = format!("{}{version}: {}", choice.path, choice.why);
        let _ = writeln!(text, "    {:<13} {}", choice.fate.name(), sanitize::sanitize_line(&found));
    }
    if checkup.choices.is_empty() {
        let _ = writeln!(text, "  no CUDA library in the search path of the loader or in the usual directories");
    }
    text.push('\n');
    text += &findings::to_text(findings.iter().copied());
    if !checkup.not_judged.is_empty() {
        let _ = writeln!(text, "not examined");
    }
    for reason in &checkup.not_judged {
        let _ = writeln!(text, "  {}", sanitize::sanitize_line(reason));
    }
    if !rows.is_empty() {
        let _ = writeln!(text, "packages");
        text += &packages_to_text(rows);
    }
    let name = program
        .map_or("this machine".into(), |program| sanitize::sanitize_line(&program.display().to_string()).into_owned());
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let counts = [(errors, "error", "s"), (warnings, "warning", "s"), (checkup.not_judged.len(), "not examined", "")];
    let counts =
        counts.map(|(number, what, plural)| format!("{number} {what}{}", if number == 1 { "" } else { plural }));
    let _ = writeln!(text, "{name}: {}: {}", checkup.status, counts.join(", "));
    let _ = writeln!(text, "next step: {}", next_step(program, checkup, findings));
    text
}

/// Returns the action for the most serious finding, or the next thing to examine.
fn next_step(program: Option<&Path>, checkup: &Checkup, findings: &[&Finding]) -> String {
    let serious = findings.iter().find(|finding| finding.severity > Severity::Info && !finding.hint.is_empty());
    match (serious, program, checkup.status) {
        (Some(finding), ..) => finding.hint.lines().next().unwrap_or_default().to_owned(),
        (None, None, _) => "run `cargo cudaguard doctor PROGRAM` for a program that fails".to_owned(),
        (None, Some(_), Status::Unknown) => {
            "run the program; if it fails, run `cargo cudaguard explain` with its error text".to_owned()
        }
        (None, Some(_), _) => "run the program: nothing that was examined prevents it from working here".to_owned(),
    }
}
