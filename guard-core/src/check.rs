//! The one door of the running program: what the shim in this very file found.

/// What the guard found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is wrong.
    Right,
    /// Something is wrong: in words.
    Wrong(String),
    /// It cannot be told: because.
    CannotTell(String),
}

/// Completes the shim's verdict about the file that this code was linked into, program or library, and returns it.
///
/// Right after a program has loaded cuDNN by itself this is the moment to ask. May take as long as loading cuDNN does,
/// once; safe from any thread; never ends the process. Without the guard: [`Verdict::CannotTell`].
pub fn check() -> Verdict {
    slot::ask().unwrap_or_else(|| Verdict::CannotTell("this file was built without the guard".to_owned()))
}

/// Rust has no weak references: the shim finds this slot by the section that it lies in, and leaves its address there
/// before `main`. A program without the guard links all the same, and the slot stays empty.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod slot {
    use std::ffi::{c_char, c_int};
    use std::sync::atomic::{AtomicPtr, Ordering};

    use super::Verdict;

    type Check = unsafe extern "C" fn(text: *mut c_char, size: usize) -> c_int;

    /// As `struct slot` in `templates/shim.c`; a change of it is a new layout number.
    #[repr(C)]
    struct Slot {
        layout: u32,
        size: u32,
        check: AtomicPtr<()>,
    }

    // SAFETY: the name is this project's own, every object in the section is a `Slot`, and `Slot` holds an atomic, so that
    // the section is writable as the shim needs it.
    #[unsafe(link_section = "cudaguard_slots")]
    #[used]
    static SLOT: Slot = Slot { layout: 1, size: size(), check: AtomicPtr::new(std::ptr::null_mut()) };

    #[allow(clippy::cast_possible_truncation)]
    const fn size() -> u32 {
        size_of::<Slot>() as u32
    }

    pub(super) fn ask() -> Option<Verdict> {
        let check = SLOT.check.load(Ordering::Acquire);
        if check.is_null() {
            return None;
        }
        // SAFETY: only the shim writes here, once, before `main`, and what it writes is the address of
        // `cudaguard_r1_check`, a C function of this type that lives as long as this file is loaded.
        let check = unsafe { std::mem::transmute::<*mut (), Check>(check) };
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

#[cfg(not(target_os = "linux"))]
mod slot {
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
