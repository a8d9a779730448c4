//! The memory that the command may use to read files that others made: one limit for every decoder, table and text.
//!
//! What is known to need much memory is refused before it is allocated, with the name of the member: see `artefact/bounds.rs`.
//! This limit is for everything else.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use crate::signals;

/// Beside mapped files. With the program itself and what the allocator keeps, a command stays below 256 MiB.
const LIMIT: isize = 208 << 20;

static LIMITED: AtomicBool = AtomicBool::new(false);
static USED: AtomicIsize = AtomicIsize::new(0);

/// From here on the process ends with an error message before it needs more memory than [`LIMIT`].
pub(crate) fn limit() {
    LIMITED.store(true, Ordering::Relaxed);
}

/// The system's allocator, counted.
struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

fn count(size: usize) {
    if LIMITED.load(Ordering::Relaxed) {
        let size = isize::try_from(size).unwrap_or(isize::MAX);
        if USED.fetch_add(size, Ordering::Relaxed).saturating_add(size) > LIMIT {
            signals::write_to_stderr(b"error: reading the input needs more than 208 MiB of memory\n");
            signals::write_to_stderr(
                b"  hint: the input is damaged or made to exhaust memory; examine its parts one by one\n",
            );
            signals::exit_now();
        }
    }
}

fn discount(size: usize) {
    if LIMITED.load(Ordering::Relaxed) {
        USED.fetch_sub(isize::try_from(size).unwrap_or(isize::MAX), Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator as it is.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        discount(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        discount(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}
