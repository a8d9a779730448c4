//! Ctrl-C and the end of the process on Windows, which has no signals. A mapped file cannot become shorter there.

use std::io::Write as _;
use std::process::{Command, ExitCode, ExitStatus};

use crate::cli::report::EXIT_ERROR;

// SAFETY: kernel32 has these functions with these types on every Windows.
#[allow(unsafe_code)]
#[link(name = "kernel32")]
unsafe extern "system" {
    fn SetConsoleCtrlHandler(handler: Option<unsafe extern "system" fn(u32) -> i32>, add: i32) -> i32;
    fn ExitProcess(status: u32) -> !;
}

/// Does nothing: programs inherit no signal handlers.
pub(crate) fn restore_signals(_: &mut Command) {}

/// From here on, Ctrl-C is for cargo alone.
#[allow(unsafe_code)]
pub(crate) fn leave_to_cargo() {
    // SAFETY: without a handler, the call sets a flag of the process.
    unsafe {
        SetConsoleCtrlHandler(None, 1);
    }
}

/// Does nothing: Windows refuses to shorten a mapped file.
pub(crate) fn guard_mappings() {}

/// Writes to stderr without a buffer.
pub(crate) fn write_to_stderr(text: &[u8]) {
    let _ = std::io::stderr().write_all(text);
}

/// Ends the process with the status of an error, without running destructors.
#[allow(unsafe_code)]
pub(crate) fn exit_now() -> ! {
    // SAFETY: the call takes a number.
    unsafe { ExitProcess(EXIT_ERROR.into()) }
}

/// Returns the status of the child.
pub(crate) fn end_as(status: ExitStatus) -> ExitCode {
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
