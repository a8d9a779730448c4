//! Trials that cannot be done here: skipped, by name, with the reason and with what would bring them back; never silently
//! passed.

use std::panic;

/// What a trial lacks on this machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lack {
    /// In a few words: `strace`, `mount namespaces`.
    pub what: String,
    /// What would bring the trial back.
    pub cure: Cure,
}

/// What would bring a trial back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cure {
    /// `apt install` of these packages of Debian's.
    Packages(&'static str),
    /// Something else, in words.
    MessageTemplate(String),
    /// Another machine: nothing that could be installed or allowed on this one. `CUDAGUARD_NO_SKIP` does not ask for it.
    Machine(&'static str),
}

/// Why a trial is skipped: the payload that [`run`](crate::run()) looks for.
#[derive(Debug)]
pub(crate) struct Skip(pub(crate) Vec<Lack>);

/// Ends this trial: not done here for want of this, which `cure` would bring. A failure where `CUDAGUARD_NO_SKIP` is set.
pub fn skip(what: impl Into<String>, cure: impl Into<String>) -> ! {
    skip_all(vec![Lack { what: what.into(), cure: Cure::MessageTemplate(cure.into()) }])
}

/// Ends this trial, which no change to this machine would bring: it is skipped wherever it runs.
pub fn skip_machine(what: &str, machine: &'static str) -> ! {
    skip_all(vec![Lack { what: what.to_owned(), cure: Cure::Machine(machine) }])
}

/// The same for want of several things.
pub fn skip_all(lacks: Vec<Lack>) -> ! {
    panic::resume_unwind(Box::new(Skip(lacks)))
}
