//! Output: results on stdout; findings, errors, the log and progress on stderr; colors only on a terminal.

use crate::verdict::Verdict;
use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use cudaguard::internal::env::Env;
use cudaguard::internal::finding::render::annotated_error;
use cudaguard::internal::finding::{Finding, Severity};
use cudaguard::internal::sanitize;
use cudaguard::internal::tables;
use cudaguard::internal::version::DriverRelease;

/// Verbosity of stderr, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Errors.
    Error,
    /// Also warnings and notes.
    Warn,
    /// Also each decision with its rule.
    Info,
    /// Also the examined inputs of each decision.
    Debug,
}

/// The level of this process. `Warn` until [`configure`] sets it.
static LEVEL: AtomicU8 = AtomicU8::new(Level::Warn as u8);
static SHOWS_PROGRESS: AtomicBool = AtomicBool::new(false);

/// Returns true if output of this level is shown.
pub(crate) fn shows(level: Level) -> bool {
    level as u8 <= LEVEL.load(Ordering::Relaxed)
}

/// Sets level and colors from the options, or else from `CUDAGUARD_LOG`, `CARGO_TERM_COLOR` and the variables that
/// anstream reads, such as `NO_COLOR`.
pub(crate) fn configure(env: &Env, color: clap::ColorChoice, quiet: bool, verbose: u8) {
    let choice = match (color, env.var("CARGO_TERM_COLOR").as_deref()) {
        (clap::ColorChoice::Always, _) | (clap::ColorChoice::Auto, Some("always")) => anstream::ColorChoice::Always,
        (clap::ColorChoice::Never, _) | (clap::ColorChoice::Auto, Some("never")) => anstream::ColorChoice::Never,
        _ => anstream::ColorChoice::Auto,
    };
    choice.write_global();
    let variable = env.var("CUDAGUARD_LOG");
    let level = match (quiet, verbose, variable.as_deref().unwrap_or_default()) {
        (true, ..) | (_, 0, "error" | "off") => Level::Error,
        (_, 2.., _) | (_, 0, "debug" | "trace") => Level::Debug,
        (_, 1, _) | (_, 0, "info") => Level::Info,
        (_, _, "" | "warn") => Level::Warn,
        (_, _, other) => {
            print_line(&format!("warning: CUDAGUARD_LOG={other}: expected error, warn, info or debug"));
            Level::Warn
        }
    };
    LEVEL.store(level as u8, Ordering::Relaxed);
    // Progress messages are not warnings: `CUDAGUARD_LOG=warn` hides them.
    SHOWS_PROGRESS.store(shows(Level::Warn) && variable.as_deref() != Some("warn"), Ordering::Relaxed);
}

/// Logs to stderr if the level is shown.
pub(crate) fn log(level: Level, text: impl FnOnce() -> String) {
    if shows(level) {
        let name = if level == Level::Debug { "debug" } else { "info" };
        print_line(&format!("cudaguard {name}: {}", text()));
    }
}

/// Prints this activity if the command still runs after a second, so that a long one is not silent.
pub(crate) fn progress(activity: String) {
    if SHOWS_PROGRESS.load(Ordering::Relaxed) {
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(1));
            print_line(&format!("cudaguard: {activity} ..."));
        });
    }
}

/// Exit status if findings refuse the input.
pub(crate) const REFUSED: u8 = 1;
/// Exit status of an error: the input could not be examined.
pub(crate) const EXIT_ERROR: u8 = 2;
/// Exit status of `explain` if nothing is known about its argument.
const EXIT_NOT_FOUND: u8 = 3;
/// Exit status of a refused start, used by the shim, `run` and `exec`.
pub(crate) const EXIT_REFUSED: u8 = 78;

/// Returns the exit status of a verdict.
pub(crate) fn exit_status(verdict: Verdict) -> ExitCode {
    match verdict {
        Verdict::Runs => ExitCode::SUCCESS,
        Verdict::Unknown => ExitCode::from(EXIT_ERROR),
        Verdict::Refused => ExitCode::from(REFUSED),
    }
}

/// An error that ends the command early.
#[derive(Debug)]
pub(crate) struct CliError {
    status: u8,
    text: String,
}

impl CliError {
    /// Creates an error for input that could not be examined, with the reason.
    pub(crate) fn operational(text: impl Display) -> Self {
        Self { status: EXIT_ERROR, text: text.to_string() }
    }

    /// Creates the error for a file that cannot be written.
    pub(crate) fn cannot_write(path: &Path, error: &std::io::Error) -> Self {
        Self::operational(format_args!("cannot write {}: {error}", path.display()))
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Creates an error for an unknown argument, with the next thing to try.
    pub(crate) fn not_found(text: impl Display) -> Self {
        Self { status: EXIT_NOT_FOUND, text: text.to_string() }
    }

    /// Creates an error whose message was already printed.
    pub(crate) const fn already_reported(status: u8) -> Self {
        Self { status, text: String::new() }
    }

    /// Returns true if the input was examined and refused.
    pub(crate) fn is_refusal(&self) -> bool {
        self.status == REFUSED
    }

    /// Prints the error and returns its exit code.
    pub(crate) fn report(self) -> ExitCode {
        ExitCode::from(self.report_status())
    }

    /// Prints the error and returns its status as a number.
    pub(crate) fn report_status(self) -> u8 {
        if !self.text.is_empty() {
            let text = format!("error: {}", self.text);
            write_raw(&sanitize::output(&text).replacen("error", &in_colour(Severity::Error, "error"), 1));
            if Env::from_process().is_github_workflow() {
                write_raw(&sanitize::sanitize_text(&annotated_error(&self.text)));
            }
        }
        self.status
    }
}

/// The error of a lower layer says why the input could not be examined.
impl<E: std::error::Error> From<E> for CliError {
    fn from(error: E) -> Self {
        Self::operational(error)
    }
}

/// Prints one or a few lines on stderr, without sequences that a terminal or the runner of a workflow interprets.
pub(crate) fn print_line(text: &str) {
    write_raw(&sanitize::output(text));
}

/// Prints a warning or a note, unless `-q` is set.
pub(crate) fn note(text: &str) {
    if shows(Level::Warn) {
        print_line(text);
    }
}

/// Writes in one call, so that the text is not mixed with cargo's output. anstream removes unwanted colors.
pub(crate) fn write_raw(text: &str) {
    let mut stderr = std::io::stderr();
    let mut stream = anstream::AutoStream::new(Vec::new(), anstream::AutoStream::choice(&stderr));
    let _ = writeln!(stream, "{text}");
    let _ = stderr.write_all(&stream.into_inner());
}

/// Prints text on stdout, without sequences that a terminal interprets; JSON stays equivalent. It is no error if the
/// reader has closed the pipe (`| head`).
pub(crate) fn print_result(text: &str) -> Result<(), CliError> {
    print_part(text).map(|_| ())
}

/// Prints a part of the result: false if the reader has closed the pipe, so no other part is needed.
pub(crate) fn print_part(text: &str) -> Result<bool, CliError> {
    let mut out = std::io::stdout().lock();
    check_written(out.write_all(sanitize::output(text).as_bytes()).and_then(|()| out.flush()))
}

/// Prints commands for the runner of a GitHub workflow on stdout.
pub(crate) fn commands(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    check_written(out.write_all(sanitize::sanitize_text(text).as_bytes()).and_then(|()| out.flush())).map(|_| ())
}

/// Converts the result of a write to stdout: false if the reader has closed the pipe.
pub(crate) fn check_written(outcome: std::io::Result<()>) -> Result<bool, CliError> {
    match outcome {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(CliError::operational(format_args!("cannot write to stdout: {error}"))),
    }
}

/// Prints a note if the driver in an option is of a branch after those of the table: it may be new, or a mistake.
pub(crate) fn note_unknown_branch(flag: &str, release: DriverRelease) {
    let newest = tables::branch_rows().iter().map(|row| row.branch).max().unwrap_or_default();
    if release.branch > newest {
        let (branch, date) = (release.branch, tables::date());
        note(&format!(
            "info: {flag}: branch {branch} is newer than {newest}, the last one that this cudaguard knows ({date}): it is \
             assumed to support at least the same"
        ));
    }
}

/// Prints a note if no table contains the GPU in an option: it may be new, or a mistake.
pub(crate) fn note_unknown_gpu(flag: &str, cc: tables::Cc) {
    if tables::arch_rows().iter().all(|row| row.cc != cc) {
        let (cc, date) = (tables::dotted_cc(cc), tables::date());
        note(&format!(
            "info: {flag}: this cudaguard knows no GPU of compute capability {cc} ({date}): the general rules are applied"
        ));
    }
}

/// Returns true if the findings refuse a start. For a build, [`cudaguard::internal::pipeline::fails_build`] decides, which also
/// considers the policy and the lock.
pub(crate) fn has_errors(findings: &[Finding]) -> bool {
    Verdict::from_findings(findings) == Verdict::Refused
}

/// Returns the text with the color of a severity.
pub(crate) fn in_colour(severity: Severity, text: &str) -> String {
    let color = match severity {
        Severity::Info => anstyle::AnsiColor::Cyan,
        Severity::Warning => anstyle::AnsiColor::Yellow,
        Severity::Error => anstyle::AnsiColor::Red,
    };
    let style = color.on_default().bold();
    format!("{style}{text}{style:#}")
}
