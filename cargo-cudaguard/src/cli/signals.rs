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
/// end of a mapped file sends SIGBUS. The handler names the file and ends with the status of an I/O error.
pub(crate) fn guard_mappings() {
    // SAFETY: the structure is filled in as sigaction() requires; the handler calls only async-signal-safe functions.
    #[allow(unsafe_code)]
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = shortened;
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
    }
}

extern "C" fn shortened(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes this structure to a handler with SA_SIGINFO; for SIGBUS it contains the address.
    #[allow(unsafe_code)]
    let address = unsafe { (*info).si_addr() } as usize;
    let mut name = [0; libc::PATH_MAX as usize];
    let length = mapped_file(address, &mut name);
    let name = if length == 0 { &b"a file"[..] } else { &name[..length] };
    for text in [
        b"error: ",
        name,
        b": another process truncated it during the read, or its disk failed\n  hint: run the command again when no process writes to it\n",
    ] {
        write_to_stderr(text);
    }
    exit_now();
}

/// Writes the name of the file that is mapped at this address and returns its length, or 0. Reads `/proc/self/maps`
/// without heap allocations.
fn mapped_file(address: usize, name: &mut [u8]) -> usize {
    // SAFETY: the path ends with NUL.
    #[allow(unsafe_code)]
    let file = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    let (mut line, mut length) = ([0; 4096 + 128], 0);
    let mut piece = [0; 4096];
    loop {
        // SAFETY: the call writes at most `piece.len()` bytes.
        #[allow(unsafe_code)]
        let read = unsafe { libc::read(file, piece.as_mut_ptr().cast(), piece.len()) };
        let Ok(read @ 1..) = usize::try_from(read) else { return 0 };
        for byte in &piece[..read] {
            if *byte != b'\n' {
                if length < line.len() {
                    line[length] = *byte;
                    length += 1;
                }
                continue;
            }
            if let Some(path) = path_of_line(&line[..length], address) {
                let length = path.len().min(name.len());
                for (to, from) in name.iter_mut().zip(path) {
                    // Control characters are replaced because a terminal would interpret them.
                    *to = if from.is_ascii_control() { b'?' } else { *from };
                }
                return length;
            }
            length = 0;
        }
    }
}

/// Returns the path of a line such as `7f00-7fff r--s 00000000 08:01 42   /lib/x.so`, if the address is in its range.
fn path_of_line(line: &[u8], address: usize) -> Option<&[u8]> {
    let number = |bytes: &[u8]| usize::from_str_radix(std::str::from_utf8(bytes).ok()?, 16).ok();
    let dash = line.iter().position(|byte| *byte == b'-')?;
    let blank = line.iter().position(|byte| *byte == b' ')?;
    let range = number(&line[..dash])?..number(line.get(dash + 1..blank)?)?;
    let path = line.iter().position(|byte| *byte == b'/')?;
    range.contains(&address).then(|| &line[path..])
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
