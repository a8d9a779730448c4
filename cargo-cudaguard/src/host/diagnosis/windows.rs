//! The diagnosis of a program on a Windows machine.

use std::path::Path;

use super::{CandidateState, DriverCandidate, component_that_needs_cuda, describe_unguarded};
use crate::binary::file::Binary;
use crate::host::dry_run;
use crate::host::machine::Machine;
use crate::host::machine::windows::NVCUDA;
use crate::verdict::mark_unchecked;
use cudaguard::internal::env::Env;
use cudaguard::internal::file_error::FileError;
use cudaguard::internal::finding::Finding;
use cudaguard::internal::manifest::Manifest;
use cudaguard::internal::vendor::{self, CUDART};

/// The result for one program.
pub(super) struct ProgramCheck {
    pub(super) findings: Vec<Finding>,
    pub(super) not_judged: Vec<String>,
    /// Code for GPUs of others.
    pub(super) not_covered: Vec<String>,
    /// The component that cannot work without a GPU.
    pub(super) needs_gpu: Option<String>,
}

/// Checks a program with its DLLs on this machine.
pub(super) fn check_program(program: &Path, env: &Env, machine: &Machine) -> Result<ProgramCheck, FileError> {
    let program = Binary::read(program)?;
    let components = dry_run::components_of_dlls(&program, Some(env));
    let names: Vec<String> = program.imported().filter(|name| vendor::is_beside_driver(name)).cloned().collect();
    let mut not_judged: Vec<String> = describe_unguarded(&components.manifests, &names).into_iter().collect();
    not_judged.extend(components.manifests.iter().filter_map(Manifest::not_judged).map(str::to_owned));
    let (open, others): (Vec<_>, Vec<_>) = components.not_examined.iter().partition(|part| part.may_contradict);
    not_judged.extend(open.into_iter().map(ToString::to_string));
    let not_covered = others.into_iter().map(ToString::to_string).collect();
    let links = program.needed.iter().any(|name| CUDART.is_named(name) || vendor::is_libcuda(name));
    let needs_gpu = component_that_needs_cuda(&program.path, &components.manifests, links);
    let mut findings = components.check_on(machine, "this machine");
    mark_unchecked(&mut findings, &components.manifests);
    Ok(ProgramCheck { findings, not_judged, not_covered, needs_gpu })
}

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
