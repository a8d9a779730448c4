//! The cost of processes, for benchmarks.

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// Elapsed time, and the processor time of all children, which other work on the machine hardly changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Elapsed time.
    pub wall: Duration,
    /// User and system time of the children and of their children.
    pub processor: Duration,
}

impl Cost {
    /// Measures the processes that `work` starts and waits for.
    pub fn measure(work: &mut dyn FnMut()) -> Self {
        let (began, before) = (Instant::now(), children());
        work();
        Self { wall: began.elapsed(), processor: children().saturating_sub(before) }
    }

    /// Returns the median of each time.
    pub fn median(costs: &[Self]) -> Self {
        let middle = |time: fn(&Self) -> Duration| {
            let mut all: Vec<Duration> = costs.iter().map(time).collect();
            all.sort_unstable();
            all[all.len() / 2]
        };
        Self { wall: middle(|cost| cost.wall), processor: middle(|cost| cost.processor) }
    }
}

/// Returns the processor time of all children that this process has waited for, and of their children.
pub fn children() -> Duration {
    let mut used = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes an rusage into this memory, and zeroes are a valid one.
    let used = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, used.as_mut_ptr());
        used.assume_init()
    };
    processor_time(&used)
}

/// Returns the user and system time of this record.
pub(crate) fn processor_time(used: &libc::rusage) -> Duration {
    [used.ru_utime, used.ru_stime].into_iter().fold(Duration::ZERO, |sum, time| {
        let seconds = Duration::from_secs(time.tv_sec.try_into().unwrap_or_default());
        sum + seconds + Duration::from_micros(time.tv_usec.try_into().unwrap_or_default())
    })
}

/// Returns the processor time of this thread.
pub(crate) fn this_thread() -> Duration {
    let mut used = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes an rusage into this memory, and zeroes are a valid one.
    let used = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, used.as_mut_ptr());
        used.assume_init()
    };
    processor_time(&used)
}
