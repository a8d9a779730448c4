//! The checks: pure functions from facts to findings. They use no file, environment, process or clock.

pub mod build;
pub mod fleet;
pub mod wording;
