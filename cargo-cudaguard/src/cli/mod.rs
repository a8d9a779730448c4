//! The command line, and what the command prints.

pub(crate) mod arguments;
pub(crate) mod counts;
pub(crate) mod crates_report;
pub(crate) mod json_output;
pub(crate) mod markdown;
pub(crate) mod memory;
pub(crate) mod message;
pub(crate) mod report;
pub(crate) mod sarif;
pub(crate) mod shells;
pub(crate) mod signals;
pub(crate) mod toolchain_report;
