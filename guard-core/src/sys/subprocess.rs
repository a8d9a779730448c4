//! Runs a program and captures its output, bounded in time and in size.

use std::collections::BTreeMap;
use std::env::consts::EXE_SUFFIX;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
#[cfg(unix)]
use std::os::fd::OwnedFd as Pipe;
#[cfg(windows)]
use std::os::windows::io::OwnedHandle as Pipe;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::sys::env::Env;
use crate::sys::files;

/// Maximum size of the captured output; nvcc's longest is a fiftieth of it.
const ENOUGH: u64 = 256 * 1024;

/// The output of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessOutput {
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// The kind of failure: `exit status 3`, `signal 9 (SIGKILL)`; `None` if it succeeded.
    pub failed: Option<String>,
}

/// Why a program gives no answer. The text follows the name of the program: `cannot be started: …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// It cannot be started, with the reason.
    NotStarted(String),
    /// It did not end in time, and was stopped.
    Timeout(Duration),
    /// It did not end in time, and cannot be stopped.
    Stuck,
    /// The system does not report its end, with the reason.
    NotAwaited(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(why) => write!(f, "cannot be started: {why}"),
            Self::Timeout(patience) => write!(f, "did not respond within {} s", patience.as_secs_f32()),
            Self::Stuck => f.write_str("did not respond, and cannot be stopped"),
            Self::NotAwaited(why) => write!(f, "cannot be waited for: {why}"),
        }
    }
}

impl std::error::Error for RunError {}

/// Runs the program and waits at most `patience` for its end. `variables`: the environment, as from
/// [`crate::sys::env::Env::for_child`].
///
/// # Errors
/// If the program cannot be started, or does not end in time.
pub fn run_with_timeout<A: AsRef<OsStr>>(
    program: &Path,
    arguments: &[A],
    variables: Option<&BTreeMap<String, OsString>>,
    patience: Duration,
) -> Result<ProcessOutput, RunError> {
    let until = Instant::now() + patience;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(variables) = variables {
        command.env_clear();
        for (name, value) in variables {
            command.env(name, value);
        }
    }
    // gcc translates even its version line.
    command.env("LC_ALL", "C");
    // A separate process group, so that the timeout also ends children of a wrapper script.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = spawn(&mut command).map_err(|error| RunError::NotStarted(error.to_string()))?;
    let out = read_in_thread(child.stdout.take().map(Pipe::from));
    let err = read_in_thread(child.stderr.take().map(Pipe::from));
    let (Some(out), Some(err)) = (receive_until(&out, until), receive_until(&err, until)) else {
        kill_and_wait(&mut child);
        return Err(RunError::Timeout(patience));
    };
    // Nearly all programs end when they close their streams.
    let mut pause = Duration::from_micros(20);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                let failed = (!status.success()).then(|| status.to_string().replacen(": ", " ", 1));
                return Ok(ProcessOutput { out, err, failed });
            }
            Ok(None) if Instant::now() < until => {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(1));
            }
            Ok(None) => {
                kill_and_wait(&mut child);
                return Err(RunError::Timeout(patience));
            }
            Err(error) => return Err(RunError::NotAwaited(error.to_string())),
        }
    }
}

/// Starts the program. Retries on `ETXTBSY`, which passes: if another thread has just written a script, a child that
/// was forked meanwhile may still have it open for writing.
fn spawn(command: &mut Command) -> std::io::Result<Child> {
    for _ in 0..20 {
        match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
    command.spawn()
}

/// Reads a pipe in a thread, which sends the text at its end.
fn read_in_thread(pipe: Option<Pipe>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let bytes = pipe.map(|pipe| files::read_at_most(File::from(pipe), ENOUGH).0).unwrap_or_default();
        // Nobody receives it after a timeout.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// Returns the text that a thread read. `None` if it is still reading at this time: a grandchild may keep the pipe
/// open forever.
fn receive_until(text: &Receiver<String>, until: Instant) -> Option<String> {
    text.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
}

fn kill_and_wait(child: &mut Child) {
    #[cfg(unix)]
    let _ = Command::new("kill")
        .args(["-KILL", "--", &format!("-{}", child.id())])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let _ = child.kill();
    let _ = child.wait();
}

/// Returns the first executable file with this name in `PATH`.
pub fn in_path(name: &str, env: &Env) -> Option<PathBuf> {
    // `clang` is `clang.exe` on Windows.
    let suffix = if name.ends_with(EXE_SUFFIX) { "" } else { EXE_SUFFIX };
    let file = format!("{name}{suffix}");
    env.path_list("PATH").into_iter().map(|dir| dir.join(&file)).find(|file| is_executable(file))
}

/// Returns the executable file that a variable or an option names: in `PATH` if the name has no directory.
pub(crate) fn find_program(name: &Path, env: &Env) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return Some(env.current_dir().join(name)).filter(|program| is_executable(program));
    }
    in_path(name.to_str()?, env)
}

/// Returns true if this is a file with an execute permission for any user.
pub fn is_executable(file: &Path) -> bool {
    let Ok(data) = file.metadata() else { return false };
    #[cfg(unix)]
    let may = std::os::unix::fs::PermissionsExt::mode(&data.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may = true;
    data.is_file() && may
}

#[cfg(all(test, unix))]
mod tests;
