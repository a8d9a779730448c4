//! The CMake package with real CMake (oldest supported and newest), real nvcc (13.0 and 11.8), Make, Ninja and Ninja
//! Multi-Config.
//!
//! Each configuration takes seconds, so a test configures a project once and checks many properties.

mod building;
mod detected;
mod failing_builds;
pub(crate) mod fixture;
mod header;
mod libraries;
mod lock;
mod package_discovery;
mod rebuilds;
mod several_targets;
mod third_party;
mod unguarded_targets;
