//! Signal handling. While cargo runs, the terminal sends Ctrl-C to cargo and its children too, and they may need time
//! to end. As `system(3)` does, this process waits for them and then ends in the same way.
//!
//! The kernel sends SIGBUS if a mapped file becomes shorter while it is read: the handler prints an error message
//! instead of dumping core.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cli::report::EXIT_ERROR;

/// Sets the disposition of a signal and returns the previous one.
#[allow(unsafe_code)]
fn set_handler(number: i32, to: libc::sighandler_t) -> libc::sighandler_t {
    // SAFETY: signal() takes numbers; each handler that is passed here calls only async-signal-safe functions.
    unsafe { libc::signal(number, to) }
}

/// The disposition of SIGPIPE when this process began. Rust ignores SIGPIPE before `main`, and sets it to the default
/// for child processes.
static PIPES: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

extern "C" fn remember_pipes() {
    let was = set_handler(libc::SIGPIPE, libc::SIG_DFL);
    set_handler(libc::SIGPIPE, was);
    PIPES.store(was, Ordering::Relaxed);
}

// SAFETY: the dynamic linker calls the functions of this section before `main`, as C functions; this one does not use
// the Rust runtime.
#[allow(unsafe_code)]
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
static AT_START: extern "C" fn() = remember_pipes;

/// Restores the disposition of SIGPIPE that the caller set, for the program that replaces this process.
pub(crate) fn restore_signals(command: &mut Command) {
    if PIPES.load(Ordering::Relaxed) == libc::SIG_IGN {
        // SAFETY: signal() may be called between fork and exec, and the closure calls nothing else.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(|| {
                set_handler(libc::SIGPIPE, libc::SIG_IGN);
                Ok(())
            });
        }
    }
}

/// Ignores Ctrl-C from now on, so that only cargo handles it. Call this after the child has started, because children
/// inherit ignored signals.
pub(crate) fn leave_to_cargo() {
    for number in [libc::SIGINT, libc::SIGQUIT] {
        set_handler(number, libc::SIG_IGN);
    }
}

/// Installs a SIGBUS handler. Other processes may shorten the files that the command reads, and a read beyond the new
/// end of a mapped file sends SIGBUS.
pub(crate) fn guard_mappings() {
    let handler: extern "C" fn(i32) = end_after_truncation;
    set_handler(libc::SIGBUS, handler as libc::sighandler_t);
}

extern "C" fn end_after_truncation(_: i32) {
    write_to_stderr(
        b"error: another process truncated a file during the read, or its disk failed\n  \
          hint: run the command again when no process writes to the file\n",
    );
    exit_now();
}

/// Writes unchanged text without a lock and without heap allocations.
pub(crate) fn write_to_stderr(text: &[u8]) {
    // SAFETY: the pointer and the length are those of the text.
    #[allow(unsafe_code)]
    unsafe {
        libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
    }
}

/// Ends the process with the status of an I/O error, without running exit handlers.
pub(crate) fn exit_now() -> ! {
    // SAFETY: the call takes only a number.
    #[allow(unsafe_code)]
    unsafe {
        libc::_exit(EXIT_ERROR.into())
    }
}

/// Ends as the child did: with its status, or by its signal.
pub(crate) fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(number) = status.signal() {
        set_handler(number, libc::SIG_DFL);
        // SAFETY: the call takes only a number.
        #[allow(unsafe_code)]
        unsafe {
            libc::raise(number);
        }
        // The signal is blocked. A shell reports this status for such a child.
        return ExitCode::from(u8::try_from(128 + number).unwrap_or(u8::MAX));
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
