//! The two judges: pure functions of facts. No file, environment, process or clock in here.

pub mod build;
pub mod run;
