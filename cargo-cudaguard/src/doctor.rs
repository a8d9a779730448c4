//! `doctor`: what is wrong with this machine, or with this program on it, and what to do.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use cudaguard::doctor::{self, Checkup, Choice};
use cudaguard::env::Env;
use cudaguard::finding::{self, Finding, Severity, Verdict};
use cudaguard::json::{Value, array, object};
use cudaguard::machine::DriverProbe;
use cudaguard::sanitize;

use crate::bundle;
use crate::probe;
use crate::report::{self, CliError, REFUSED};

pub(crate) fn run(env: &Env, program: Option<&Path>, json: bool, bundle: Option<&Path>) -> Result<ExitCode, CliError> {
    let checkup = doctor::checkup(program, env, &DriverProbe::own()).map_err(CliError::operational)?;
    let findings = finding::told(&checkup.findings);
    if let Some(bundle) = bundle {
        bundle::write(env, bundle, program, &to_json(program, &checkup, &findings))?;
    } else if json {
        report::result(&format!("{}\n", to_json(program, &checkup, &findings).pretty()))?;
    } else {
        report::result(&to_text(program, &checkup, &findings))?;
    }
    Ok(if report::refuses(&checkup.findings) { ExitCode::from(REFUSED) } else { ExitCode::SUCCESS })
}

fn to_json(program: Option<&Path>, checkup: &Checkup, findings: &[&Finding]) -> Value {
    let mut value = object::<&str>([]);
    value.put("file", program.map(|program| program.to_string_lossy().into_owned()));
    value.put("verdict", checkup.verdict.map(Verdict::name));
    value.put("findings", Some(array(findings.iter().map(|finding| finding.to_json()))));
    value.put("libraries", Some(array(checkup.choices.iter().map(Choice::to_json))));
    value.put("machine", Some(checkup.machine.to_json()));
    value
}

/// What was found first, then all that was looked at: the findings are the answer here, so they stand in the result.
fn to_text(program: Option<&Path>, checkup: &Checkup, findings: &[&Finding]) -> String {
    let mut text = probe::driver_and_gpus(&checkup.machine);
    let _ = writeln!(text, "libraries");
    let mut last = "";
    for choice in &checkup.choices {
        if choice.name != last {
            let _ = writeln!(text, "  {}", sanitize::line(&choice.name));
        }
        last = &choice.name;
        let version = choice.version.as_ref().map(|version| format!(" ({version})")).unwrap_or_default();
        let found = format!("{}{version}: {}", choice.path, choice.why);
        let _ = writeln!(text, "    {:<13} {}", choice.fate.name(), sanitize::line(&found));
    }
    if checkup.choices.is_empty() {
        let _ = writeln!(text, "  none of CUDA's, neither where the loader looks nor in the usual folders");
    }
    text.push('\n');
    for finding in findings {
        let _ = writeln!(text, "{}", finding.render());
    }
    let what = program
        .map_or("this machine".to_owned(), |program| sanitize::line(&program.display().to_string()).into_owned());
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    let worth = findings.iter().filter(|finding| finding.severity == Severity::Warning).count();
    if let (Some(verdict), Some(program)) = (checkup.verdict, program) {
        let _ = writeln!(text, "{}: {}", sanitize::line(&program.display().to_string()), verdict.words());
    }
    let _ = match (errors, worth) {
        (0, 0) => writeln!(text, "{what}: nothing is wrong that cudaguard knows of"),
        (0, _) => writeln!(text, "{what}: nothing that stops a program; {worth} to look at"),
        _ => writeln!(text, "{what}: {errors} that must be mended, {worth} to look at"),
    };
    text
}
