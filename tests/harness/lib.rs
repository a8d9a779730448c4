//! Support code of all end-to-end suites: real components, projects on disk, processes and snapshots.
//!
//! A suite is a directory of `tests/e2e`. The attribute [`e2e`] registers a test, and `tests/e2e/main.rs` runs all of them.

// A test fails by a panic, and nearly every function here panics with a message.
#![allow(clippy::missing_panics_doc)]

pub mod command;
pub mod compiled_once;
pub mod containers;
pub mod cost;
pub mod crates;
mod dice;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod environment;
pub mod face;
pub mod fake_library;
mod json_schema;
pub mod layout;
pub mod modules;
mod once;
pub mod parts;
#[cfg(test)]
mod picture;
pub mod places;
pub mod project;
pub mod report;
pub mod run;
pub mod scratch;
pub mod skip;
pub mod snapshot;
mod suite;
mod summary;
pub mod table;
pub mod tools;
pub mod world;

pub use cudaguard_test_attribute::e2e;
pub use dice::Dice;
pub use inventory;
pub use once::{BuiltOnce, once};
pub use project::Project;
pub use report::{codes, last_report, sorted_codes};
pub use run::{Call, Outcome};
pub use scratch::Scratch;
pub use skip::skip;
pub use suite::{Registered, Test, registered, rows, run, test};
pub use table::{Block, Table};
