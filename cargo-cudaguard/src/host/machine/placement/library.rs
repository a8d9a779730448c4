//! The cuDNN releases that files accept, and those that support a GPU.

use std::collections::{BTreeMap, BTreeSet};

use super::{GpuRange, Placement, PlacementError, PlacementQuery, known_cuda_versions};
use crate::host::machine::{Components, Driver, Gpu, HostLibrary, Machine};
use crate::knowledge::vendor::CUDNN;
use crate::verdict::{Verdict, is_about_cudnn};
use cudaguard::internal::cudnn;
use cudaguard::internal::finding::{Code, Finding};
use cudaguard::internal::manifest::{Linkage, Requirement};
use cudaguard::internal::version::Version;

/// The cuDNN requirement of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfLibrary {
    /// The oldest release.
    pub min: Version,
    /// The first newer release that is too new.
    pub below: Version,
    /// True if the files do not run without cuDNN.
    pub needed: bool,
    /// The first release in between that does not support one of the suitable GPUs.
    pub gpus_dropped_in: Option<Version>,
}

/// The cuDNN releases that support a GPU, within those that the files accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryRange {
    /// The oldest release.
    pub min: Version,
    /// The first newer release that does not support the GPU, or that the files do not accept.
    pub below: Version,
}

impl OfLibrary {
    /// Returns the requirement on a machine that has any of these GPUs.
    pub(super) fn of_gpus(self, fit: &[GpuRange]) -> Self {
        let ranges = fit.iter().filter_map(|gpus| gpus.library);
        let dropped = ranges.clone().map(|range| range.below).min().filter(|below| *below < self.below);
        Self { min: ranges.map(|range| range.min).min().unwrap_or(self.min), gpus_dropped_in: dropped, ..self }
    }
}

impl Placement {
    /// Returns the releases for these GPUs, if they do not support all GPUs that run the files.
    pub fn differing_library(&self, gpus: &GpuRange) -> Option<LibraryRange> {
        let (whole, range) = (self.library?, gpus.library?);
        ((range.min, range.below) != (whole.min, whole.below)).then_some(range)
    }

    /// Returns the releases that support all suitable GPUs.
    ///
    /// # Errors
    /// If the files need cuDNN and there is no such release.
    pub fn common_library(&self) -> Result<Option<LibraryRange>, PlacementError> {
        let ranges = self.fit.iter().filter_map(|gpus| gpus.library);
        let min = ranges.clone().map(|range| range.min).max();
        let Some((min, below)) = min.zip(ranges.map(|range| range.below).min()) else { return Ok(None) };
        if min >= below && self.library.is_some_and(|library| !library.needed) {
            return Ok(None);
        }
        if min >= below {
            return Err(PlacementError::NoCommonCudnn);
        }
        Ok(Some(LibraryRange { min, below }))
    }

    /// Returns the GPUs that do not work with the oldest accepted release, for formats that cannot express cuDNN. If the files
    /// need cuDNN, removes these GPUs.
    pub fn split_off_newer_library(&mut self) -> Vec<GpuRange> {
        let Some(library) = self.library else { return Vec::new() };
        let (fit, other): (Vec<GpuRange>, Vec<GpuRange>) =
            self.fit.iter().copied().partition(|gpus| gpus.library.is_none_or(|range| range.min <= library.min));
        if library.needed {
            self.fit = fit;
        }
        other
    }
}

impl PlacementQuery<'_> {
    /// Returns the oldest accepted release that supports a GPU; the oldest accepted one if none is known to support it.
    pub(super) fn oldest_library(&self, cc: Option<(u8, u8)>) -> Option<Version> {
        let library = self.library?;
        let Some(cc) = cc else { return Some(library.min) };
        if let Some(known) = self.oldest.borrow().get(&cc) {
            return Some(*known);
        }
        let later = known_releases_in(library.min, library.below).into_iter().filter(|release| *release > library.min);
        let fitting = std::iter::once(library.min).chain(later).find(|release| {
            let found = self.findings_on(&machine_with(cc, *release));
            !found.iter().any(|finding| finding.code == Code::CudnnBeforeThisGpu)
        });
        let oldest = fitting.unwrap_or(library.min);
        self.oldest.borrow_mut().insert(cc, oldest);
        Some(oldest)
    }

    /// Returns the accepted releases that support a GPU. `None` if none is known to.
    pub(super) fn library_range(&self, cc: (u8, u8)) -> Option<LibraryRange> {
        let library = self.library?;
        let min = self.oldest_library(Some(cc))?;
        if !library.needed && Verdict::from_findings(&self.findings_on(&machine_with(cc, min))) != Verdict::Runs {
            return None;
        }
        let majors = library.min.major..=library.below.major;
        let mut dropped = majors.flat_map(|major| cudnn::RELEASES.gpu_floors(major)).map(|(from, _)| from);
        let refused = dropped.find(|release| {
            (min..library.below).contains(release)
                && Verdict::from_findings(&self.findings_on(&machine_with(cc, *release))) == Verdict::Refused
        });
        Some(LibraryRange { min, below: refused.unwrap_or(library.below) })
    }
}

/// Returns the known releases that files accept, oldest first.
pub(super) fn known_releases_in(min: Version, below: Version) -> BTreeSet<Version> {
    let known = (0..=64).flat_map(|cuda| cudnn::RELEASES.releases_for(cuda).iter().copied());
    known.filter(|release| (min..below).contains(release)).collect()
}

/// Returns the state of a machine without cuDNN.
pub(super) fn no_library() -> BTreeMap<&'static str, Vec<HostLibrary>> {
    BTreeMap::from([(CUDNN.key, Vec::new())])
}

/// Returns a machine with this GPU, the newest driver and this release.
fn machine_with(cc: (u8, u8), release: Version) -> Machine {
    let gpu = Gpu { cc: Some(cc), visible: Some(true), ..Gpu::default() };
    let driver = Driver { cuda: known_cuda_versions().pop(), init: Some(0), ..Driver::default() };
    let libraries = library_map(release);
    Machine { driver: Some(driver), gpus: Some(vec![gpu]), libraries, ..Machine::default() }
}

pub(super) fn library_map(version: Version) -> BTreeMap<&'static str, Vec<HostLibrary>> {
    let library = HostLibrary { version: Some(version), taken: true, ..HostLibrary::default() };
    BTreeMap::from([(CUDNN.key, vec![library])])
}

/// Returns true if the files accept this cuDNN, or its absence.
fn runs_with_cudnn(files: &[Components], libraries: BTreeMap<&'static str, Vec<HostLibrary>>) -> bool {
    let machine = Machine { libraries, ..Machine::default() };
    let all = files.iter().flat_map(|file| file.check_on(&machine, "that machine"));
    // This machine has no known driver or GPU, so only the findings about the library count.
    let mine: Vec<Finding> = all.filter(|finding| is_about_cudnn(finding.code)).collect();
    Verdict::from_findings(&mine) == Verdict::Runs
}

/// Returns the interval of suitable cuDNN releases. The checks run for every release at which a row changes.
pub(super) fn cudnn_interval(files: &[Components]) -> Result<Option<OfLibrary>, PlacementError> {
    let (mut points, mut opened_below) = (BTreeSet::new(), None);
    for row in files.iter().flat_map(|file| &file.manifests).flat_map(|manifest| &manifest.requires) {
        if let Requirement::Library { min, below, built, linkage, .. } = row {
            points.extend([*min, *built, *below]);
            if *linkage == Linkage::Dlopened {
                opened_below = opened_below.into_iter().chain([*below]).min();
            }
        }
    }
    if points.is_empty() {
        return Ok(None);
    }
    let runs = points.into_iter().map(|version| (version, runs_with_cudnn(files, library_map(version))));
    let runs: Vec<(Version, bool)> = runs.collect();
    let Some(first) = runs.iter().position(|(_, runs)| *runs) else {
        return Err(PlacementError::NoCudnn);
    };
    let needed = !runs_with_cudnn(files, no_library());
    let refused = runs[first..].iter().find(|(_, runs)| !*runs).map(|(below, _)| *below);
    // A program that opens cuDNN by name does not find another major, and runs without it. Otherwise every release is suitable,
    // and so is a machine without cuDNN: the library is linked into the file.
    let Some(below) = refused.or(opened_below) else { return Ok(None) };
    Ok(Some(OfLibrary { min: runs[first].0, below, needed, gpus_dropped_in: None }))
}
