//! The command line, and what the command prints.

pub(crate) mod arguments;
pub(crate) mod counts;
pub(crate) mod crates_report;
pub(crate) mod findings;
pub(crate) mod json_output;
pub(crate) mod markdown;
pub(crate) mod memory;
pub(crate) mod message;
pub(crate) mod option_error;
pub(crate) mod platform;
pub(crate) mod report;
pub(crate) mod shells;
#[cfg(unix)]
pub(crate) mod signals;
#[cfg(windows)]
pub(crate) mod signals_windows;
pub(crate) mod toolchain_json;
pub(crate) mod toolchain_report;

#[cfg(windows)]
pub(crate) use signals_windows as signals;
