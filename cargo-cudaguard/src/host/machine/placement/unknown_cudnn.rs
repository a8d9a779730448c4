//! GPUs that no accepted cuDNN release supports, on a machine whose cuDNN is unknown.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::library::{known_releases_in, library_map};
use crate::host::machine::{Components, Machine};
use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::cudnn;
use cudaguard::internal::finding::{Code, Finding};
use cudaguard::internal::manifest::{Linkage, Requirement};
use cudaguard::internal::version::Version;

impl Components {
    /// Returns the findings about cuDNN and the GPUs of a machine that do not depend on the release of its cuDNN.
    pub(in crate::host::machine) fn findings_of_every_cudnn(&self, machine: &Machine, place: &str) -> Vec<Finding> {
        if machine.library_files(&CUDNN).is_some() {
            return Vec::new();
        }
        let accepted = self.manifests.iter().flat_map(|manifest| &manifest.requires).filter_map(|row| match row {
            Requirement::Library { min, below, linkage, required, .. }
                // A machine without cuDNN may run a program that only opens it.
                if *required || *linkage == Linkage::Linked =>
            {
                Some((*min, *below))
            }
            _ => None,
        });
        let Some((min, below)) = accepted.reduce(|one, other| (one.0.max(other.0), one.1.min(other.1))) else {
            return Vec::new();
        };
        let ccs = machine.visible_ccs();
        let floor = cudnn::RELEASES.gpu_floor(min);
        let is_dropped = floor.is_some_and(|(_, floor)| ccs.iter().any(|cc| *cc < floor));
        let is_newer = newest_gpus(min.major).is_some_and(|newest| ccs.iter().any(|cc| cc.0 > newest));
        let release = match (is_dropped, is_newer) {
            (true, _) => Some(min),
            (_, true) => known_releases_in(min, below).last().copied(),
            _ => None,
        };
        let Some(release) = release else { return Vec::new() };
        let machine = Machine { libraries: library_map(release), ..machine.clone() };
        let mut found = self.check_on(&machine, place);
        found.retain(|finding| matches!(finding.code, Code::CudnnBeforeThisGpu | Code::CudnnTooNewForGpu));
        found
    }
}

/// Returns the newest GPUs, as majors of their compute capabilities, that any release of a major of cuDNN has code for, if it does
/// not support later ones.
fn newest_gpus(major: u32) -> Option<u8> {
    static NEWEST: OnceLock<BTreeMap<u32, u8>> = OnceLock::new();
    let newest = NEWEST.get_or_init(|| {
        let newest = CUDNN.majors.clone().filter_map(|major| {
            let last = Version::new(major, u32::MAX, 0);
            Some((major, cudnn::RELEASES.newest_gpus(major)?.newest_for(last, None)?))
        });
        newest.collect()
    });
    newest.get(&major).copied()
}
