//! Environment, files, processes and object files.

pub mod bytes;
pub mod digest;
pub(crate) mod elf;
pub mod env;
pub mod file_error;
pub mod files;
pub mod subprocess;
