//! The judges: pure functions of facts. No file, environment, process or clock in here.

pub mod build;
pub mod fleet;
#[cfg(feature = "command")]
pub mod linked;
#[cfg(feature = "command")]
pub mod run;
pub(crate) mod wording;
