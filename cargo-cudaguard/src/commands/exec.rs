//! `exec`: reports problems that would stop the dynamic linker, then replaces this process with the program.

use crate::cli::platform;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::host::machine::DriverProbe;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{Finding, Severity};

use crate::cargo::build_context::{self, BuildContext};
use crate::cli::findings;
use crate::cli::report::{self, CliError, EXIT_REFUSED};
use crate::cli::signals;
use crate::commands::start;
use crate::commands::verify::OpenArtifact;

pub(crate) fn run_exec(env: &Env, program: &OsStr, arguments: &[OsString]) -> Result<ExitCode, CliError> {
    let mut command = Command::new(program);
    command.args(arguments);
    signals::restore_signals(&mut command);
    let Some(others) = env.var(build_context::RUNNER).and_then(|count| count.parse::<usize>().ok()) else {
        return start_program(env, program, &mut command);
    };
    // This is the end of `cargo cudaguard run`: cargo has built the program and calls this process as its runner.
    let build = env.var_os(build_context::BUILD).and_then(|file| BuildContext::read(Path::new(&file)));
    if let Some(build) = &build {
        build.print_summary();
    }
    build_context::clear_internal_env(env, &mut command);
    if others > 0 {
        // Another runner selects where the program runs, such as an emulator or another machine. cudaguard does not
        // know that place.
        if build.is_some_and(|build| !build.quiet) {
            let runner = Path::new(program).display();
            report::note(&format!(
                "cudaguard: {runner} starts the program; cudaguard does not check its libraries there"
            ));
        }
        return Err(cannot_start(program, &platform::replace_process(&mut command)));
    }
    start_program(env, program, &mut command)
}

fn start_program(env: &Env, program: &OsStr, command: &mut Command) -> Result<ExitCode, CliError> {
    let switch = env.var("CUDAGUARD");
    if switch.as_deref() != Some("off")
        && let Some(file) = platform::find_program(program)
    {
        let findings = errors_of_start(env, &file);
        findings::print_text(&findings);
        if report::has_errors(&findings) && switch.as_deref() != Some("warn") {
            return Ok(ExitCode::from(EXIT_REFUSED));
        }
    }
    Err(cannot_start(program, &platform::replace_process(command)))
}

/// Returns the errors with which `verify` refuses this program here, except those that its policy defers.
fn errors_of_start(env: &Env, program: &Path) -> Vec<Finding> {
    match OpenArtifact::open(program) {
        Ok(mut artifact) if artifact.is_never_loaded_here() => {
            let mut findings = artifact.check_here(env, &[]).map_or_else(|_| Vec::new(), |answer| answer.findings);
            findings.retain(|finding| finding.severity == Severity::Error);
            findings
        }
        _ => start::start_here(program, env, &DriverProbe::with_current_exe()),
    }
}

pub(crate) fn cannot_start(program: &OsStr, error: &std::io::Error) -> CliError {
    let file = Path::new(program);
    let is_here = file.file_name() == Some(program) && file.is_file() && platform::find_program(program).is_none();
    let hint = if is_here { format!("; the file in this directory is ./{}", file.display()) } else { String::new() };
    CliError::operational(format_args!("cannot start {}: {error}{hint}", file.display()))
}
