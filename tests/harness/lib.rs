//! What every end to end suite shares: real parts, projects on disk, processes, snapshots.
//!
//! A suite is `tests/e2e/<suite>/main.rs`, with `harness = false`:
//!
//! ```no_run
//! fn starts() {}
//! cudaguard_tests::suite(cudaguard_tests::trials![starts]);
//! ```

// A panic is how a trial fails: nearly everything here does, with words.
#![allow(clippy::missing_panics_doc)]

pub mod command;
pub mod findings;
pub mod layout;
pub mod modules;
pub mod parts;
pub mod places;
pub mod project;
pub mod run;
pub mod scratch;
pub mod skip;
pub mod snapshot;
pub mod stand_in;
mod suite;
pub mod world;

pub use libtest_mimic::Trial;
pub use project::Project;
pub use run::{Call, Outcome};
pub use scratch::Scratch;
pub use skip::skip;
pub use suite::{suite, trial};
