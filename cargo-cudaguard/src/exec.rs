//! `exec`: says beforehand what would stop the loader, in our words; then this process becomes the program.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use cudaguard::env::Env;
use cudaguard::machine::Asker;

use crate::handover::{self, Build};
use crate::report::{self, NO_START, Stop};
use crate::signals;

pub(crate) fn run(env: &Env, program: &OsStr, arguments: &[OsString]) -> Result<ExitCode, Stop> {
    let mut command = Command::new(program);
    command.args(arguments);
    signals::as_they_came(&mut command);
    let Some(others) = env.var(handover::RUNNER).and_then(|count| count.parse::<usize>().ok()) else {
        return start(env, program, &mut command);
    };
    // At the end of `cargo cudaguard run`: cargo has built, and calls us to start what it built.
    let build = env.var_os(handover::BUILD).and_then(|file| Build::read(Path::new(&file)));
    if let Some(build) = &build {
        build.summary();
    }
    handover::leave_no_trace(env, &mut command);
    if others > 0 {
        // Another runner knows where the program will run: an emulator, another machine. We do not.
        if build.is_some_and(|build| !build.quiet) {
            let runner = Path::new(program).display();
            report::line(&format!(
                "cudaguard: {runner} starts the program, and whether the loader finds all there is not looked at"
            ));
        }
        return Err(cannot_start(program, &command.exec()));
    }
    start(env, program, &mut command)
}

fn start(env: &Env, program: &OsStr, command: &mut Command) -> Result<ExitCode, Stop> {
    let switch = env.var("CUDAGUARD");
    if switch.as_deref() != Some("off") {
        if let Ok(file) = which::which(program) {
            let findings = cudaguard::dry_run::start_here(&file, env, &Asker::own());
            report::findings(&findings);
            if report::refuses(&findings) && switch.as_deref() != Some("warn") {
                return Ok(ExitCode::from(NO_START));
            }
        }
    }
    Err(cannot_start(program, &command.exec()))
}

fn cannot_start(program: &OsStr, error: &std::io::Error) -> Stop {
    Stop::no_look(format_args!("cannot start {}: {error}", Path::new(program).display()))
}
