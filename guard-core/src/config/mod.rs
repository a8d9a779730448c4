//! The files that a project writes: `cudaguard.toml` and `cudaguard.lock`.

pub mod lock;
pub mod policy;
