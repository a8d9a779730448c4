//! Trials that cannot be done here: skipped, by name and with the reason, never silently passed.

use std::panic;

/// Why a trial is skipped: the payload that [`trial`](crate::trial) looks for.
#[derive(Debug)]
pub struct Skip(pub String);

/// Ends this trial: not done here, because. A failure where `CUDAGUARD_NO_SKIP` is set.
pub fn skip(why: impl Into<String>) -> ! {
    panic::resume_unwind(Box::new(Skip(why.into())))
}
