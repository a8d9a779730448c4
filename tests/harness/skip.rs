//! Skipped tests: each is listed with what is missing and how to provide it.

use std::panic;

/// A prerequisite that this machine does not have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// Its name: `strace`, `mount namespaces`.
    pub what: String,
    /// How to provide it.
    pub remedy: Remedy,
}

/// How to provide a prerequisite.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// `apt install` of these Debian packages.
    Packages(&'static str),
    /// Another instruction.
    Instruction(String),
}

/// The payload of the panic that skips a test; see [`run`](crate::run()).
#[derive(Debug)]
pub(crate) struct Skip(pub(crate) Vec<Missing>);

/// Skips this test because a prerequisite is missing. With `CUDAGUARD_NO_SKIP` it fails.
pub fn skip(what: impl Into<String>, instruction: impl Into<String>) -> ! {
    skip_all(vec![Missing { what: what.into(), remedy: Remedy::Instruction(instruction.into()) }])
}

/// Skips this test because several prerequisites are missing.
pub fn skip_all(missing: Vec<Missing>) -> ! {
    panic::resume_unwind(Box::new(Skip(missing)))
}
