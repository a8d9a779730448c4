//! Processes with an environment that does not depend on this machine, a time limit and captured output.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fmt;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::{cost, json_schema};

/// The variables that a child inherits: those that programs, cargo and the network need. Variables of CUDA, of the
/// dynamic linker and of the cargo that runs the tests are removed; a test sets the ones that it needs.
const INHERITED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "TMPDIR",
    "TERM",
    "LANG",
    "SHELL",
    "CARGO_HOME",
    "CARGO_BUILD_JOBS",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "CUDAGUARD_PARTS",
    "CUDAGUARD_TEMPLATES",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];
const INHERITED_FAMILIES: &[&str] = &["PIP_", "CARGO_NET_", "CARGO_HTTP_", "CARGO_REGISTRIES_", "CARGO_SOURCE_"];

thread_local! {
    static USED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Returns the processor time of all processes that this thread ran, and of their children.
pub(crate) fn used_by_processes() -> Duration {
    USED.get()
}

/// Blocks until this child has ended, but does not reap it.
fn wait_for_end(child: u32) {
    let mut information = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the call writes to the variable.
    while unsafe { libc::waitid(libc::P_PID, child, information.as_mut_ptr(), libc::WEXITED | libc::WNOWAIT) } != 0 {
        let error = std::io::Error::last_os_error();
        assert!(error.kind() == std::io::ErrorKind::Interrupted, "a child can be waited for: {error}");
    }
}

/// Reaps a child that has ended, and adds its processor time to that of the thread.
fn reap(child: u32) -> ExitStatus {
    let child = libc::pid_t::try_from(child).expect("the kernel's own number");
    let (mut status, mut used) = (0, MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: the call writes to both variables, and zeroes are a valid rusage.
    let found = unsafe { libc::wait4(child, &raw mut status, 0, used.as_mut_ptr()) };
    assert!(found == child, "the child has ended");
    // SAFETY: see above.
    USED.set(USED.get() + cost::processor_time(unsafe { used.assume_init_ref() }));
    ExitStatus::from_raw(status)
}

/// Prepares a process. Returns a function to call after its success.
type Preparation = Box<dyn FnOnce(&Command) -> Option<Box<dyn FnOnce()>> + Send>;

/// A process to run.
pub struct Call {
    command: Command,
    limit: Duration,
    preparation: Option<Preparation>,
}

/// Starts a program that may have just been written. A child that another test forks meanwhile has the file open for
/// writing until it calls exec; until then, the kernel reports the file as busy (`ETXTBSY`).
pub fn unless_busy<T>(mut start: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    let began = Instant::now();
    loop {
        match start() {
            Err(error)
                if error.kind() == std::io::ErrorKind::ExecutableFileBusy
                    && began.elapsed() < Duration::from_secs(20) =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

impl Call {
    /// Creates a call of this program with a minimal environment such as `PATH` and `HOME`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.env_clear();
        command.envs(std::env::vars_os().filter(|(name, _)| {
            let name = name.to_string_lossy();
            INHERITED.contains(&&*name) || INHERITED_FAMILIES.iter().any(|family| name.starts_with(family))
        }));
        // Progress lines are disabled, because they depend on the load of the machine.
        command.env("CUDAGUARD_LOG", "warn");
        // Small packages are compiled once or twice.
        command.env("CARGO_INCREMENTAL", "0");
        Self { command, limit: Duration::from_secs(600), preparation: None }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Removes a variable.
    #[must_use]
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Sets the time limit, after which the process and its children are killed. The default of ten minutes only
    /// prevents hanging tests.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Calls this function with the complete call just before it runs, and the function that it returns after a success.
    #[must_use]
    pub fn prepared(mut self, by: impl FnOnce(&Command) -> Option<Box<dyn FnOnce()>> + Send + 'static) -> Self {
        self.preparation = Some(Box::new(by));
        self
    }

    /// Returns the call as a command line: directory, changed variables, program and arguments.
    fn spelled(&self) -> String {
        let dir = self.command.get_current_dir().map(|dir| format!("cd {} && ", dir.display()));
        let given = self.command.get_envs().filter(|(name, value)| std::env::var_os(name).as_deref() != *value);
        let given = given.map(|(name, value)| format!("{}={:?} ", name.to_string_lossy(), value.unwrap_or_default()));
        let program = [self.command.get_program()].into_iter().chain(self.command.get_args());
        let words: Vec<_> = program.map(|word| format!("{word:?}")).collect();
        dir.unwrap_or_default() + &given.collect::<String>() + &words.join(" ")
    }

    /// Runs the process to its end.
    #[expect(clippy::zombie_processes, reason = "the function reap() of this file reaps it")]
    pub fn run(mut self) -> Outcome {
        let what = self.spelled();
        let program = self.command.get_program().to_owned();
        let arguments: Vec<_> = self.command.get_args().map(OsStr::to_owned).collect();
        let after_success = self.preparation.take().and_then(|prepare| prepare(&self.command));
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child =
            unless_busy(|| self.command.spawn()).unwrap_or_else(|error| panic!("cannot start {what}: {error}"));
        let stdout = collect(child.stdout.take().expect("piped"));
        let stderr = collect(child.stderr.take().expect("piped"));
        let (id, limit) = (child.id(), self.limit);
        let (end, ended) = mpsc::channel::<()>();
        let watchdog = thread::spawn(move || {
            let late = ended.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
            if late {
                end_with_children(id);
            }
            late
        });
        wait_for_end(id);
        drop(end);
        let late = watchdog.join().expect("waiting does not panic");
        let status = reap(id);
        let text = |thread: thread::JoinHandle<Vec<u8>>| {
            String::from_utf8_lossy(&thread.join().expect("reading does not panic")).into_owned()
        };
        let outcome = Outcome { what, status, stdout: text(stdout), stderr: text(stderr) };
        assert!(!late, "stopped after {:?}: {outcome}", self.limit);
        if let Some(after_success) = after_success.filter(|_| status.success()) {
            after_success();
        }
        let checked =
            json_schema::check_output(&program, arguments.iter().map(std::ffi::OsString::as_os_str), &outcome.stdout);
        assert!(checked.is_ok(), "{}: {outcome}", checked.unwrap_err());
        outcome
    }
}

/// Kills this process and the other processes of its group.
fn end_with_children(leader: u32) {
    let group = libc::pid_t::try_from(leader).expect("the kernel's own number");
    // SAFETY: the call takes two numbers. The child has not been reaped, so no other process group has this number.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

fn collect(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut printed = Vec::new();
        let _ = pipe.read_to_end(&mut printed);
        printed
    })
}

/// The result of a process.
#[derive(Clone, Debug)]
pub struct Outcome {
    what: String,
    status: ExitStatus,
    /// The text on stdout.
    pub stdout: String,
    /// The text on stderr.
    pub stderr: String,
}

impl Outcome {
    /// Returns the exit status; `None` if a signal ended the process.
    pub fn status(&self) -> Option<i32> {
        self.status.code()
    }

    /// Returns the signal that ended the process.
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Panics with the complete output unless the status is this one.
    #[must_use]
    #[track_caller]
    pub fn expect(self, status: i32) -> Self {
        assert!(self.status() == Some(status), "expected status {status}: {self}");
        self
    }

    /// Panics with the complete output unless the process succeeded.
    #[must_use]
    #[track_caller]
    pub fn success(self) -> Self {
        self.expect(0)
    }

    /// Parses stdout as JSON. Panics with the complete output if it is not.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Returns stderr without lines that depend on the load of the machine.
    pub fn clean_stderr(&self) -> String {
        clean(&self.stderr)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}\n--- stdout\n{}--- stderr\n{}", self.what, self.status, self.stdout, self.stderr)
    }
}

/// Removes the lines of cargo's stderr that only report another running cargo.
pub fn clean(stderr: &str) -> String {
    let kept = stderr.lines().filter(|line| !line.contains("Blocking waiting for file lock"));
    kept.fold(String::new(), |text, line| text + line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_environment_is_isolated() {
        let outcome = Call::new("env").env("CUDA_HOME", "/given").run().success();
        for line in outcome.stdout.lines() {
            let name = line.split('=').next().unwrap_or_default();
            assert!(!name.starts_with("LD_") && name != "CARGO_MANIFEST_DIR", "{line}");
        }
        assert!(outcome.stdout.contains("CUDA_HOME=/given"), "{outcome}");
    }
}
