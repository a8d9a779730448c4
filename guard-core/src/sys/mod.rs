//! Environment, files, processes and object files.

pub mod digest;
pub mod elf;
pub mod env;
pub mod file_error;
pub mod files;
pub mod subprocess;
