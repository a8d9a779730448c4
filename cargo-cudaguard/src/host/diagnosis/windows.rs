//! The libraries of a Windows machine.

use super::{CandidateState, DriverCandidate};
use crate::host::machine::Machine;
use crate::host::machine::windows::NVCUDA;

/// Returns the driver and the libraries that a program finds on this Windows machine.
pub(super) fn candidates(machine: &Machine) -> Vec<DriverCandidate> {
    let driver = machine.driver.as_ref().and_then(|driver| {
        Some(DriverCandidate {
            name: NVCUDA.to_owned(),
            path: driver.library.clone()?,
            version: driver.user.map(|release| release.to_string()),
            fate: CandidateState::Picked,
            why: "system".to_owned(),
        })
    });
    let libraries = machine.libraries.values().flatten().filter_map(|file| {
        Some(DriverCandidate {
            name: file.soname.clone()?,
            path: file.path.clone()?,
            version: file.version.map(|version| version.to_string()),
            fate: if file.taken { CandidateState::Picked } else { CandidateState::Behind },
            why: file.by.clone().unwrap_or_default(),
        })
    });
    let mut libraries: Vec<_> = libraries.collect();
    libraries.sort_by(|one, other| one.name.cmp(&other.name));
    driver.into_iter().chain(libraries).collect()
}
