//! The subcommands, with a module for each.

pub(crate) mod artifact_report;
pub(crate) mod cargo;
pub(crate) mod check;
pub(crate) mod choose;
pub(crate) mod cmake;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod fleet;
pub(crate) mod generic_build;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod lock;
pub(crate) mod map;
pub(crate) mod probe;
pub(crate) mod release;
pub(crate) mod requirements;
#[cfg(target_os = "linux")]
pub(crate) mod simulate;
pub mod start;
pub(crate) mod verify;
