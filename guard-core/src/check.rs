//! The one door of the running program: what the shim in this very file found.

/// What the guard found, as [`check`] returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is wrong.
    Right,
    /// Something is wrong: in words, the lines that the guard would print at the start.
    Wrong(String),
    /// It cannot be told: why. No reason to stop: nothing that was found is wrong.
    CannotTell(String),
}

/// Completes the shim's verdict about the file that this code was linked into, program or library, and returns it.
///
/// Right after a program has loaded a library such as cuDNN by itself this is the moment to ask. May take as long as loading cuDNN does,
/// once; safe from any thread; never ends the process. Without the guard, or where there is none to be had (no Linux, another
/// processor than x86-64 and ARM's 64 bits): [`Verdict::CannotTell`].
///
/// ```
/// use cudaguard::Verdict;
///
/// match cudaguard::check() {
///     Verdict::Right => println!("the GPU it is"),
///     Verdict::Wrong(why) => eprintln!("not on this machine:\n{why}"),
///     Verdict::CannotTell(why) => println!("we shall see: {why}"),
/// }
/// ```
pub fn check() -> Verdict {
    shim::ask().unwrap_or_else(|| Verdict::CannotTell("this file was built without the guard".to_owned()))
}

/// A weak reference, which Rust can only make in assembly: a program without the guard links all the same, and finds
/// nothing. (A section that the shim would search for slots needs `__start_` symbols, which GNU ld exports.)
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[allow(unsafe_code)]
mod shim {
    use std::arch::asm;
    use std::ffi::{c_char, c_int};

    use super::Verdict;

    type Check = unsafe extern "C" fn(text: *mut c_char, size: usize) -> c_int;

    /// The address of `cudaguard_r1_check` of this very file; null where it has none. The name is hidden where it is
    /// defined, and not here: gold takes a hidden weak name that nobody defines for the file's start.
    fn door() -> *const () {
        let address: *const ();
        // SAFETY: loads one entry of this file's global offset table, which the linker fills with the symbol's address or,
        // the reference being weak, with 0; touches no memory, stack or flag of the program.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!(
                ".weak cudaguard_r1_check",
                "mov {address}, qword ptr [rip + cudaguard_r1_check@GOTPCREL]",
                address = out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
            #[cfg(target_arch = "aarch64")]
            asm!(
                ".weak cudaguard_r1_check",
                "adrp {address}, :got:cudaguard_r1_check",
                "ldr {address}, [{address}, :got_lo12:cudaguard_r1_check]",
                address = out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }

    pub(super) fn ask() -> Option<Verdict> {
        let door = door();
        if door.is_null() {
            return None;
        }
        // SAFETY: the name carries the revision of the shim, and in revision 1 it is a C function of this type.
        let check = unsafe { std::mem::transmute::<*const (), Check>(door) };
        let mut text = [0_u8; 2048];
        // SAFETY: the buffer is writable and of the size given; the function writes no further, and ends it with a NUL.
        let answer = unsafe { check(text.as_mut_ptr().cast(), text.len()) };
        let text = text.split(|&b| b == 0).next().unwrap_or_default();
        let text = String::from_utf8_lossy(text).into_owned();
        Some(match answer {
            0 => Verdict::Right,
            1 => Verdict::Wrong(text),
            _ => Verdict::CannotTell(text),
        })
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod shim {
    pub(super) fn ask() -> Option<super::Verdict> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_guard_it_cannot_tell() {
        assert_eq!(check(), Verdict::CannotTell("this file was built without the guard".to_owned()));
    }
}
