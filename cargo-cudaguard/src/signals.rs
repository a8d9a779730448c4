//! Ctrl-C while cargo runs: cargo and what it started get it from the terminal themselves, and may need a while to end.
//! As `system(3)` does, we wait for them, and then end as they did.
//!
//! And what the kernel sends if a mapped file becomes shorter while it is read: an error message instead of a core dump.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::report::EXIT_ERROR;

/// What this signal does from here on; says what it did.
#[allow(unsafe_code)]
fn set_handler(number: i32, to: libc::sighandler_t) -> libc::sighandler_t {
    // SAFETY: signal() takes numbers; each handler given here calls nothing but what may be called in one.
    unsafe { libc::signal(number, to) }
}

/// What SIGPIPE did when this process began: Rust ignores it before `main`, and sets it to the default for what it starts.
static PIPES: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

extern "C" fn remember_pipes() {
    let was = set_handler(libc::SIGPIPE, libc::SIG_DFL);
    set_handler(libc::SIGPIPE, was);
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
                set_handler(libc::SIGPIPE, libc::SIG_IGN);
                Ok(())
            });
        }
    }
}

/// From here on Ctrl-C is for cargo alone. To be called once the child runs: children inherit what is ignored.
pub(crate) fn leave_to_cargo() {
    for number in [libc::SIGINT, libc::SIGQUIT] {
        set_handler(number, libc::SIG_IGN);
    }
}

/// From here on the command reads files that other processes may shorten: a read beyond the new end of a mapped file sends
/// SIGBUS. The command then names the file and ends with the status of an I/O error.
pub(crate) fn guard_mappings() {
    // SAFETY: the structure is filled in as sigaction() wants it; the handler calls async-signal-safe functions alone.
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
    // SAFETY: the kernel gives a handler with SA_SIGINFO this structure; for SIGBUS it has the address.
    #[allow(unsafe_code)]
    let address = unsafe { (*info).si_addr() } as usize;
    let mut name = [0; libc::PATH_MAX as usize];
    let length = mapped_file(address, &mut name);
    let name = if length == 0 { &b"a file"[..] } else { &name[..length] };
    for text in [
        b"error: ",
        name,
        b": another process shortened it while it was read, or its disk failed\n  hint: run the command again once nothing writes to it\n",
    ] {
        write_to_stderr(text);
    }
    exit_now();
}

/// Writes the name of the file that is mapped at this address; its length, or 0. Reads `/proc/self/maps` without a heap.
fn mapped_file(address: usize, name: &mut [u8]) -> usize {
    // SAFETY: the path ends with NUL.
    #[allow(unsafe_code)]
    let file = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    let (mut line, mut length) = ([0; 4096 + 128], 0);
    let mut piece = [0; 4096];
    loop {
        // SAFETY: it writes no more than the piece holds.
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
                    // What a terminal would obey is left out.
                    *to = if from.is_ascii_control() { b'?' } else { *from };
                }
                return length;
            }
            length = 0;
        }
    }
}

/// The path in a line such as `7f00-7fff r--s 00000000 08:01 42   /lib/x.so`, if the address lies in that range.
fn path_of_line(line: &[u8], address: usize) -> Option<&[u8]> {
    let number = |bytes: &[u8]| usize::from_str_radix(std::str::from_utf8(bytes).ok()?, 16).ok();
    let dash = line.iter().position(|byte| *byte == b'-')?;
    let blank = line.iter().position(|byte| *byte == b' ')?;
    let range = number(&line[..dash])?..number(line.get(dash + 1..blank)?)?;
    let path = line.iter().position(|byte| *byte == b'/')?;
    range.contains(&address).then(|| &line[path..])
}

/// Writes a text as it is, without a lock and without a heap.
pub(crate) fn write_to_stderr(text: &[u8]) {
    // SAFETY: the pointer and the length are those of the text.
    #[allow(unsafe_code)]
    unsafe {
        libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
    }
}

/// Ends the process with the status of an I/O error, and runs nothing of it.
pub(crate) fn exit_now() -> ! {
    // SAFETY: it takes a number.
    #[allow(unsafe_code)]
    unsafe {
        libc::_exit(EXIT_ERROR.into())
    }
}

/// Ends as the child did: with its status, or by its signal.
pub(crate) fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(number) = status.signal() {
        set_handler(number, libc::SIG_DFL);
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
