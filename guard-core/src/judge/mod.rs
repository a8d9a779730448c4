//! The checks: pure functions from facts to findings. They use no file, environment, process or clock.

pub mod build;
pub mod fleet;
#[cfg(feature = "command")]
pub mod linked;
#[cfg(feature = "command")]
pub mod run;
pub(crate) mod wording;
