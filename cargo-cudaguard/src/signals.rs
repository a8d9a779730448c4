//! Ctrl-C while cargo runs: cargo and what it started get it from the terminal themselves, and may need a while to end.
//! As `system(3)` does, we wait for them, and then end as they did.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus};

#[allow(unsafe_code)]
mod libc {
    unsafe extern "C" {
        pub(super) safe fn signal(number: i32, handler: usize) -> usize;
        pub(super) safe fn raise(number: i32) -> i32;
    }
}

const SIGINT: i32 = 2;
const SIGQUIT: i32 = 3;
const DEFAULT: usize = 0;
const IGNORE: usize = 1;

/// From here on Ctrl-C is for cargo alone. To be called once the child runs: children inherit what is ignored.
pub(crate) fn leave_to_cargo() {
    for number in [SIGINT, SIGQUIT] {
        libc::signal(number, IGNORE);
    }
}

/// Ends as the child did: with its status, or by its signal.
pub(crate) fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(number) = status.signal() {
        libc::signal(number, DEFAULT);
        libc::raise(number);
        // Still here: the signal is blocked. What a shell says of such a child:
        return ExitCode::from(u8::try_from(128 + number).unwrap_or(u8::MAX));
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
