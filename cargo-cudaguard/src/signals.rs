//! Ctrl-C while cargo runs: cargo and what it started get it from the terminal themselves, and may need a while to end.
//! As `system(3)` does, we wait for them, and then end as they did.
//!
//! And what the kernel sends where a mapped file is cut off while it is being read: a word instead of a core dump.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::sync::OnceLock;

use crate::report::NO_LOOK;

#[allow(unsafe_code)]
mod libc {
    unsafe extern "C" {
        pub(super) safe fn signal(number: i32, handler: usize) -> usize;
        pub(super) safe fn raise(number: i32) -> i32;
        pub(super) safe fn _exit(status: i32) -> !;
        pub(super) fn write(file: i32, text: *const u8, length: usize) -> isize;
    }
}

const SIGINT: i32 = 2;
const SIGQUIT: i32 = 3;
const SIGBUS: i32 = 7;
const STDERR: i32 = 2;
const DEFAULT: usize = 0;
const IGNORE: usize = 1;

/// From here on Ctrl-C is for cargo alone. To be called once the child runs: children inherit what is ignored.
pub(crate) fn leave_to_cargo() {
    for number in [SIGINT, SIGQUIT] {
        libc::signal(number, IGNORE);
    }
}

/// What to say where the file that is read next turns out to be shorter than it was, or cannot be read on its disk.
static SHORTER: OnceLock<Vec<u8>> = OnceLock::new();

/// From here on this file is being read: where it is cut off meanwhile, that is said, with the status of what could not be
/// looked at. Of several the first is named.
pub(crate) fn reading(file: &Path) {
    let text = format!(
        "error: {}: cut off by another process while it was being read, or its disk failed\n  hint: look again once nothing writes to it\n",
        file.display()
    );
    let _ = SHORTER.set(text.into_bytes());
    let handler: extern "C" fn(i32) = shorter;
    libc::signal(SIGBUS, handler as usize);
}

/// Calls nothing but what may be called in a handler: the text is there already.
extern "C" fn shorter(_: i32) {
    if let Some(text) = SHORTER.get() {
        // SAFETY: the pointer and the length are those of a text that nobody changes or frees.
        #[allow(unsafe_code)]
        unsafe {
            libc::write(STDERR, text.as_ptr(), text.len());
        }
    }
    libc::_exit(NO_LOOK.into());
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
