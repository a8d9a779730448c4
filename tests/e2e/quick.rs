//! A first look: of each suite what tells most in a few seconds, on no other parts than those that `cargo demo` fetches.

/// The trials that `--quick` runs.
pub(crate) const TRIALS: &[&str] = &[];
