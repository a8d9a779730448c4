//! The one door of the running program: what the shim in this very file found.

/// What the guard found, as [`check`] returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is wrong with what was judged.
    Right {
        /// What of the file nobody could look at, each by its name: `GPU code that stands as plain data`. Empty where
        /// everything was judged.
        not_judged: Vec<String>,
    },
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
///     Verdict::Right { not_judged } if not_judged.is_empty() => println!("the GPU it is"),
///     Verdict::Right { not_judged } => println!("the GPU, it seems; not judged: {}", not_judged.join(", ")),
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
    use std::ffi::c_int;

    use super::Verdict;

    type Door = unsafe extern "C" fn(to: *mut Told) -> c_int;

    /// `struct cudaguard_verdict` of cudaguard.h: members are only ever added behind the last.
    #[repr(C)]
    struct Told {
        size: usize,
        verdict: c_int,
        code: c_int,
        severity: c_int,
        level: c_int,
        subject: [u8; 16],
        component: [u8; 256],
        built: [u8; 32],
        found: [u8; 32],
        message: [u8; 2048],
        hint: [u8; 512],
        not_judged: [u8; 256],
    }

    /// The address of `cudaguard_r1_verdict` of this very file; null where it has none. The name is hidden where it is
    /// defined, and not here: gold takes a hidden weak name that nobody defines for the file's start.
    fn door() -> *const () {
        let address: *const ();
        // SAFETY: loads one entry of this file's global offset table, which the linker fills with the symbol's address or,
        // the reference being weak, with 0; touches no memory, stack or flag of the program.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!(
                ".weak cudaguard_r1_verdict",
                "mov {address}, qword ptr [rip + cudaguard_r1_verdict@GOTPCREL]",
                address = out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
            #[cfg(target_arch = "aarch64")]
            asm!(
                ".weak cudaguard_r1_verdict",
                "adrp {address}, :got:cudaguard_r1_verdict",
                "ldr {address}, [{address}, :got_lo12:cudaguard_r1_verdict]",
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
        let verdict = unsafe { std::mem::transmute::<*const (), Door>(door) };
        // What an older shim does not know stays as it is here: empty.
        let mut told = Told {
            size: size_of::<Told>(),
            verdict: 0,
            code: 0,
            severity: 0,
            level: 0,
            subject: [0; 16],
            component: [0; 256],
            built: [0; 32],
            found: [0; 32],
            message: [0; 2048],
            hint: [0; 512],
            not_judged: [0; 256],
        };
        // SAFETY: it is writable, and says its size; the function writes no further, and only what any of these may be.
        let answer = unsafe { verdict(&raw mut told) };
        let message = || match told.code {
            0 => text(&told.message),
            code => format!("[CG{code}] {}", text(&told.message)),
        };
        Some(match answer {
            0 => {
                let names = text(&told.not_judged);
                let names = names.split("; ").filter(|name| !name.is_empty());
                Verdict::Right { not_judged: names.map(str::to_owned).collect() }
            }
            1 => Verdict::Wrong(message()),
            _ => Verdict::CannotTell(message()),
        })
    }

    /// Up to its NUL.
    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes.split(|&b| b == 0).next().unwrap_or_default()).into_owned()
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
