//! The files that a project writes: `cudaguard.toml` and `cudaguard.lock`.

mod error;
pub mod lock;
pub mod policy;

pub use error::{ConfigError, check_regular_file};
