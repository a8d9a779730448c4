//! Ctrl-C while cargo runs: cargo and what it started get it from the terminal themselves, and may need a while to end.
//! As `system(3)` does, we wait for them, and then end as they did.
//!
//! And what the kernel sends where a mapped file is cut off while it is being read: a word instead of a core dump.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::report::EXIT_ERROR;

/// What this signal does from here on; says what it did.
#[allow(unsafe_code)]
fn set(number: i32, to: libc::sighandler_t) -> libc::sighandler_t {
    // SAFETY: signal() takes numbers; each handler given here calls nothing but what may be called in one.
    unsafe { libc::signal(number, to) }
}

/// What SIGPIPE did when this process began: Rust ignores it before `main`, and sets it to the default for what it starts.
static PIPES: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

extern "C" fn remember_pipes() {
    let was = set(libc::SIGPIPE, libc::SIG_DFL);
    set(libc::SIGPIPE, was);
    PIPES.store(was, Ordering::Relaxed);
}

// SAFETY: the loader calls what stands in this section before `main`, as a C function; it uses nothing of Rust's runtime.
#[allow(unsafe_code)]
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
static AT_START: extern "C" fn() = remember_pipes;

/// What this process becomes finds SIGPIPE as our caller left it.
pub(crate) fn restore_signals(command: &mut Command) {
    if PIPES.load(Ordering::Relaxed) == libc::SIG_IGN {
        // SAFETY: signal() may be called between fork and exec, and nothing else is.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(|| {
                set(libc::SIGPIPE, libc::SIG_IGN);
                Ok(())
            });
        }
    }
}

/// From here on Ctrl-C is for cargo alone. To be called once the child runs: children inherit what is ignored.
pub(crate) fn leave_to_cargo() {
    for number in [libc::SIGINT, libc::SIGQUIT] {
        set(number, libc::SIG_IGN);
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
    set(libc::SIGBUS, handler as libc::sighandler_t);
}

/// Calls nothing but what may be called in a handler: the text is there already.
extern "C" fn shorter(_: i32) {
    if let Some(text) = SHORTER.get() {
        // SAFETY: the pointer and the length are those of a text that nobody changes or frees.
        #[allow(unsafe_code)]
        unsafe {
            libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
        }
    }
    // SAFETY: it ends the process, and runs nothing of it.
    #[allow(unsafe_code)]
    unsafe {
        libc::_exit(EXIT_ERROR.into())
    }
}

/// Ends as the child did: with its status, or by its signal.
pub(crate) fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(number) = status.signal() {
        set(number, libc::SIG_DFL);
        // SAFETY: it takes a number.
        #[allow(unsafe_code)]
        unsafe {
            libc::raise(number);
        }
        // Still here: the signal is blocked. What a shell says of such a child:
        return ExitCode::from(u8::try_from(128 + number).unwrap_or(u8::MAX));
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
