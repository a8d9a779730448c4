//! `exec`: what the loader would die of is said beforehand, in our words; then this process becomes the program.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use cudaguard::env;
use cudaguard::loader::Environment;

use crate::cargo;
use crate::report::{self, NO_START, Stop};

pub(crate) fn run(program: &OsStr, arguments: &[OsString]) -> Result<ExitCode, Stop> {
    let mut command = Command::new(program);
    command.args(arguments);
    start(program, &mut command)
}

/// As cargo's runner: the number of words of another runner, that runner, the program and its arguments.
pub(crate) fn run_for_cargo(words: Vec<OsString>) -> Result<ExitCode, Stop> {
    let wrong =
        || Stop::no_look("the runner is for cargo to call; to start a program: cargo cudaguard exec -- PROGRAM");
    let mut words = words.into_iter();
    let count: usize = words.next().and_then(|word| word.to_str()?.parse().ok()).ok_or_else(wrong)?;
    let line: Vec<OsString> = words.collect();
    let program = line.get(count).ok_or_else(wrong)?.clone();
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]);
    if let Some(build) = env::var_os(cargo::BUILD).and_then(|file| cargo::Build::read(Path::new(&file))) {
        build.summary();
    }
    cargo::leave_no_trace(&mut command);
    if count > 0 {
        // Another runner knows where the program will run: an emulator, another machine. We do not.
        return Err(cannot_start(&line[0], &command.exec()));
    }
    start(&program, &mut command)
}

fn start(program: &OsStr, command: &mut Command) -> Result<ExitCode, Stop> {
    let switch = env::var("CUDAGUARD");
    if switch.as_deref() != Some("off") {
        if let Some(file) = found(program) {
            let findings = cudaguard::foretell::start(&file, &Environment::here());
            report::findings(&findings);
            if report::refuses(&findings) && switch.as_deref() != Some("warn") {
                return Ok(ExitCode::from(NO_START));
            }
        }
    }
    Err(cannot_start(program, &command.exec()))
}

fn cannot_start(program: &OsStr, error: &std::io::Error) -> Stop {
    Stop::no_look(format_args!("cannot start {}: {error}", program.display()))
}

/// The file that would be started: by its path, or by `PATH`.
fn found(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 || path.is_absolute() {
        return path.is_file().then(|| path.to_owned());
    }
    std::env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(path)).find(|path| path.is_file())
}
