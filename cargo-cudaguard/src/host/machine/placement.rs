//! Derives what a machine must have to run files: the GPUs, the oldest driver for each, and the cuDNN releases.
//!
//! Adds no rules. It runs the runtime checks for every compute capability at which the rows change or
//! that the tables know, with every CUDA version that a driver may support. Only GPUs with the verdict
//! `runs` are suitable.

mod library;
mod unknown_cudnn;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::oldest_driver::{OldestDriver, known_cuda_versions, needs_of_files};
use super::{Components, Driver, Gpu, Machine, worst_service};
use crate::binary::examined;
use crate::host::machine::judge::gpu_answer::Service;
use crate::knowledge::vendor::CUDNN;
use crate::verdict::Verdict;
use cudaguard::internal::finding::{Code, Finding};
use cudaguard::internal::manifest::Requirement;
use cudaguard::internal::tables;
use cudaguard::internal::version::{CudaVersion, Version};
pub use library::{LibraryRange, OfLibrary};
use library::{library_map, no_library};

/// The requirements of a machine that is to run all files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The processor; empty if the files run on any.
    pub processor: String,
    /// The GPUs that run the files, oldest first. Adjacent compute capabilities with the same result are merged.
    pub fit: Vec<GpuRange>,
    /// The other GPUs, with the reason.
    pub unfit: Vec<Unfit>,
    /// True if a driver is required.
    pub needs_driver: bool,
    /// The cuDNN requirement, if the files need or can use cuDNN.
    pub library: Option<OfLibrary>,
}

/// An inclusive range of compute capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuRange {
    /// The first compute capability.
    pub from: (u8, u8),
    /// The last compute capability; a minor of 255 is the entire major; `None`: no upper bound.
    pub to: Option<(u8, u8)>,
    /// The GPU support; `None` if there are no kernels, so that any GPU is suitable.
    pub by: Option<Service>,
    /// The oldest driver; `None`: any that supports the GPU.
    pub driver: Option<OldestDriver>,
    /// The cuDNN releases that support the GPUs, if the files need or can use cuDNN. `None` also if they can use it, and no
    /// release is known to support the GPUs.
    pub library: Option<LibraryRange>,
}

/// GPUs that do not run the files, or for which that is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The first compute capability.
    pub from: (u8, u8),
    /// The last compute capability, as in [`GpuRange`].
    pub to: Option<(u8, u8)>,
    /// The finding of the check with the newest driver of the tables.
    pub why: Finding,
}

/// Why no machine is known to run files together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementError {
    /// A fact about a file is unknown on every machine.
    Unknown {
        /// The file.
        file: String,
        /// The first line of the finding about it.
        finding: String,
    },
    /// A file brings a libcuda, which belongs to one driver.
    OwnDriver {
        /// The file.
        file: String,
        /// The name of the libcuda.
        libcuda: String,
    },
    /// No known GPU runs the files, with the reason.
    NoGpu(String),
    /// Two files are for different processors: each file and its processor.
    Processors([(String, String); 2]),
    /// No release of cuDNN fits all files.
    NoCudnn,
    /// No release of cuDNN supports all GPUs.
    NoCommonCudnn,
}

impl fmt::Display for PlacementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { file, finding } => write!(f, "{file}: {finding}"),
            Self::OwnDriver { file, libcuda } => {
                write!(f, "{file}: brings {libcuda}, which only runs with the kernel module of its own driver")
            }
            Self::NoGpu(why) => write!(f, "no known GPU runs it with any known driver: {why}"),
            Self::Processors([(one, processor), (other, others)]) => {
                write!(f, "no machine runs both: {one} is for {processor}, {other} for {others}")
            }
            Self::NoCudnn => write!(f, "no release of {} fits all files", CUDNN.name),
            Self::NoCommonCudnn => write!(f, "no release of {} supports all of these GPUs", CUDNN.name),
        }
    }
}

impl std::error::Error for PlacementError {}

/// An interval of compute capabilities, from which a row is built.
type CcInterval = ((u8, u8), Option<(u8, u8)>);

impl Placement {
    /// Derives the placement of these files together.
    ///
    /// # Errors
    /// If the requirements cannot be derived.
    pub fn from_components(files: &[Components]) -> Result<Self, PlacementError> {
        // A fact about a file that is unknown is unknown on every machine.
        for file in files.iter().flat_map(Components::units) {
            if let Some(warning) = file.findings.iter().find(|finding| {
                finding.code != Code::LibraryNotStated && Verdict::from_findings([*finding]) != Verdict::Runs
            }) {
                let (file, finding) = (file.file.clone(), first_line(warning).to_owned());
                return Err(PlacementError::Unknown { file, finding });
            }
            if let Some((libcuda, _)) = &file.own_libcuda {
                return Err(PlacementError::OwnDriver { file: file.file.clone(), libcuda: libcuda.clone() });
            }
        }
        let units = files.iter().flat_map(Components::units);
        let files = &units.map(Components::without_repeats).collect::<Vec<_>>()[..];
        let processor = common_processor(files)?;
        let asked = PlacementQuery::from_components(files)?;
        let (mut fit, mut unfit): (Vec<GpuRange>, Vec<Unfit>) = (Vec::new(), Vec::new());
        for (from, to) in cc_intervals(files, &processor) {
            match asked.support_for_gpu(from) {
                Ok((by, driver)) => {
                    let library = asked.library_range(from);
                    match fit.last_mut().filter(|last| (last.by, last.driver, last.library) == (by, driver, library)) {
                        Some(last) if is_adjacent(last.to, from) => last.to = to,
                        _ => fit.push(GpuRange { from, to, by, driver, library }),
                    }
                }
                Err(why) => match unfit.last_mut() {
                    Some(last) if last.why.code == why.code && is_adjacent(last.to, from) => last.to = to,
                    _ => unfit.push(Unfit { from, to, why }),
                },
            }
        }
        if fit.is_empty() {
            let why = unfit.iter().find(|row| row.why.code != Code::NoCodeForGpu).map(|row| first_line(&row.why));
            let why = why.unwrap_or("it has no code for any of them");
            return Err(PlacementError::NoGpu(why.to_owned()));
        }
        let needs_driver = asked
            .verdict_on(&Machine { driver: Some(absent_driver()), ..asked.sample_machine(None, None) })
            != Verdict::Runs;
        let library = asked.library.map(|library| library.of_gpus(&fit));
        Ok(Self { processor, fit, unfit, needs_driver, library })
    }

    /// Returns true if there are no requirements for driver and GPU.
    pub fn asks_nothing(&self) -> bool {
        !self.needs_driver
            && self.unfit.is_empty()
            && !self.fit.iter().any(|gpus| gpus.driver.is_some() || self.differing_library(gpus).is_some())
    }
}

/// Returns true if a compute capability is in this inclusive range.
fn is_within(cc: (u8, u8), from: (u8, u8), to: Option<(u8, u8)>) -> bool {
    from <= cc && to.is_none_or(|to| cc <= to)
}

impl Unfit {
    /// Returns true if a compute capability is in this range.
    pub fn contains(&self, cc: (u8, u8)) -> bool {
        is_within(cc, self.from, self.to)
    }
}

impl GpuRange {
    /// Returns true if a compute capability is in this range.
    pub fn contains(&self, cc: (u8, u8)) -> bool {
        is_within(cc, self.from, self.to)
    }

    /// Returns the first compute capability after the range; `None` if it has no upper bound.
    pub fn upper_bound(&self) -> Option<(u8, u8)> {
        self.to.and_then(next_cc)
    }
}

/// The input of the checks: the files and their cuDNN requirement.
pub(super) struct PlacementQuery<'a> {
    files: &'a [Components],
    library: Option<OfLibrary>,
    /// The oldest cuDNN release for each compute capability that was asked for.
    oldest: RefCell<BTreeMap<(u8, u8), Version>>,
}

impl<'a> PlacementQuery<'a> {
    pub(super) fn from_components(files: &'a [Components]) -> Result<Self, PlacementError> {
        Ok(Self { files, library: library::cudnn_interval(files)?, oldest: RefCell::default() })
    }

    pub(super) fn processor_name(&self) -> Result<String, PlacementError> {
        common_processor(self.files)
    }

    /// Returns a machine with this GPU, this driver, and the oldest accepted cuDNN that supports the GPU, or without cuDNN if the
    /// files run without it (decision 26).
    pub(super) fn sample_machine(&self, cc: Option<(u8, u8)>, cuda: Option<CudaVersion>) -> Machine {
        let gpus = cc.map(|cc| vec![Gpu { cc: Some(cc), visible: Some(true), ..Gpu::default() }]);
        // The driver of a sample machine supports its GPU: `cuInit` succeeded.
        let driver = cuda.map(|cuda| Driver { cuda: Some(cuda), init: Some(0), ..Driver::default() });
        let libraries = match self.library {
            Some(library) if !library.needed => no_library(),
            _ => self.oldest_library(cc).map(library_map).unwrap_or_default(),
        };
        Machine { driver, gpus, libraries, ..Machine::default() }
    }

    pub(super) fn findings_on(&self, machine: &Machine) -> Vec<Finding> {
        // Placements ask about GPUs, drivers and cuDNN.
        let all = self.files.iter().flat_map(|file| file.check_on(machine, "that machine"));
        all.filter(|finding| finding.code != Code::LibraryNotStated).collect()
    }

    fn verdict_on(&self, machine: &Machine) -> Verdict {
        Verdict::from_findings(&self.findings_on(machine))
    }

    /// Returns the verdict of these findings on the files.
    pub(super) fn verdict_of(&self, findings: &[Finding]) -> Verdict {
        self.files.iter().map(|file| examined::verdict(findings, &file.not_examined)).max().unwrap_or(Verdict::Unknown)
    }

    /// Returns the GPU support and the oldest driver, or the reason why no driver is suitable.
    fn support_for_gpu(&self, cc: (u8, u8)) -> Result<(Option<Service>, Option<OldestDriver>), Finding> {
        let newest = known_cuda_versions().pop();
        let all = self.findings_on(&self.sample_machine(Some(cc), newest));
        let worst = Verdict::from_findings(&all);
        if worst != Verdict::Runs {
            let why = all.into_iter().find(|finding| Verdict::from_findings([finding]) == worst);
            return Err(why.expect("a verdict rests on a finding"));
        }
        // A machine that schedules its GPUs has a driver that supports them.
        let driver = needs_of_files(self.files, &self.sample_machine(Some(cc), None)).certain();
        match driver.and_then(|driver| self.unsupported_gpu(cc, driver)) {
            Some(why) => Err(why),
            None => Ok((worst_service(self.files, cc), driver)),
        }
    }

    /// Returns the finding if this driver and all newer ones no longer support the GPU.
    fn unsupported_gpu(&self, cc: (u8, u8), driver: OldestDriver) -> Option<Finding> {
        let release = driver.release.filter(|_| tables::last_branch(cc).is_some());
        let driver = Driver { user: release, kernel: Some(release?), ..Driver::default() };
        let found = self.findings_on(&Machine { driver: Some(driver), ..self.sample_machine(Some(cc), None) });
        found.into_iter().find(|finding| finding.code == Code::GpuNotForDriver)
    }
}

fn absent_driver() -> Driver {
    Driver { absent: true, ..Driver::default() }
}

/// Returns the only processor that the files are built for.
///
/// # Errors
/// If the files are built for different processors.
fn common_processor(files: &[Components]) -> Result<String, PlacementError> {
    let mut named = files.iter().filter(|file| !file.processor.is_empty());
    let Some(first) = named.next() else { return Ok(String::new()) };
    match named.find(|file| file.processor != first.processor) {
        None => Ok(first.processor.clone()),
        Some(other) => {
            Err(PlacementError::Processors([first, other].map(|file| (file.file.clone(), file.processor.clone()))))
        }
    }
}

/// Returns intervals of compute capabilities in each of which the checks have the same result.
fn cc_intervals(files: &[Components], processor: &str) -> Vec<CcInterval> {
    let mut starts = BTreeSet::from([(0, 0)]);
    // Drivers and cuDNN support only some generations, and files that use them need not have kernels.
    starts.extend(tables::arch_rows().iter().map(|row| row.cc));
    for row in files.iter().flat_map(|file| &file.manifests).flat_map(|manifest| &manifest.requires) {
        if let Requirement::Gpu { from, to, .. } = row {
            starts.insert(*from);
            starts.extend(to.and_then(next_cc));
        }
    }
    let starts: Vec<(u8, u8)> = starts.into_iter().collect();
    let mut intervals: Vec<CcInterval> = Vec::new();
    for (at, from) in starts.iter().enumerate() {
        let to = starts.get(at + 1).map(|next| previous_cc(*next));
        match intervals.last_mut() {
            // A Tegra has another processor, so it is no machine for these files.
            Some(last) if processor == "x86_64" && tables::is_tegra(*from) => last.1 = to,
            _ => intervals.push((*from, to)),
        }
    }
    intervals
}

/// Returns the compute capability after this one; a minor of 255 ends its major.
fn next_cc((major, minor): (u8, u8)) -> Option<(u8, u8)> {
    match (major.checked_add(1), minor.checked_add(1)) {
        (_, Some(minor)) => Some((major, minor)),
        (Some(major), None) => Some((major, 0)),
        (None, None) => None,
    }
}

fn previous_cc((major, minor): (u8, u8)) -> (u8, u8) {
    minor.checked_sub(1).map_or((major.saturating_sub(1), u8::MAX), |minor| (major, minor))
}

fn is_adjacent(to: Option<(u8, u8)>, from: (u8, u8)) -> bool {
    to.and_then(next_cc) == Some(from)
}

fn first_line(finding: &Finding) -> &str {
    finding.message.lines().next().unwrap_or_default()
}
