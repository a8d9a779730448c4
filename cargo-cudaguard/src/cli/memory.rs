//! The memory limit of the command for reading untrusted files. It applies to every decoder, table and text.
//!
//! If a member is known to need much memory, it is refused by name before the allocation: see `artifact/bounds.rs`.
//! This limit covers all other allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use crate::cli::signals;

/// Limit in bytes, without mapped files. Together with the program and the overhead of the allocator, a command stays
/// below 256 MiB.
const LIMIT: isize = 208 << 20;

static LIMITED: AtomicBool = AtomicBool::new(false);
static USED: AtomicIsize = AtomicIsize::new(0);

/// Enables the limit: the process ends with an error message before it uses more memory than [`LIMIT`].
pub(crate) fn limit() {
    LIMITED.store(true, Ordering::Relaxed);
}

/// The system allocator with a counter of the allocated bytes.
#[derive(Debug)]
pub struct CountingAllocator;

fn count(size: usize) {
    if LIMITED.load(Ordering::Relaxed) {
        let size = isize::try_from(size).unwrap_or(isize::MAX);
        if USED.fetch_add(size, Ordering::Relaxed).saturating_add(size) > LIMIT {
            signals::write_to_stderr(b"error: reading the input needs more than 208 MiB of memory\n");
            signals::write_to_stderr(
                b"  hint: the input is damaged, or a decompression bomb; examine its parts separately\n",
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

// SAFETY: each call is forwarded unchanged to the system allocator.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller upholds the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        discount(layout.size());
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        discount(layout.size());
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}
