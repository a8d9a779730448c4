//! `cargo cudaguard build --target …` and `embed!()` for other machines. The guard is built for the target; if this is
//! impossible, the build prints the reason.

mod aarch64;
mod fixture;
mod other_targets;
mod static_programs;
