//! A machine as a process on it sees it: the driver, the GPUs that the driver shows, and the libraries of a component.

use super::{Driver, Gpu, HERE, HostLibrary, Machine, agreed_release, hides_all};
use crate::knowledge::vendor::{CUDART, CUDNN};
use cudaguard::internal::manifest::{Linkage, Manifest, Requirement};
use cudaguard::internal::tables::{self, Floor};

/// A machine for the judge.
#[derive(Clone, Debug)]
pub struct Host<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// Names the machine for libraries without a path.
    pub place: &'a str,
    /// The driver, with releases that agree and with the CUDA version of its release. `None`: unknown.
    pub driver: Option<Driver>,
    /// The GPUs. `None`: unknown.
    pub gpus: Option<Vec<HostGpu<'a>>>,
}

/// A GPU as the driver shows it to a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostGpu<'a> {
    /// Its compute capability, if known.
    pub cc: Option<(u8, u8)>,
    /// Its product name, if known: `NVIDIA GeForce RTX 4090`.
    pub name: Option<&'a str>,
    /// True if the process can use it: its device can be opened and `CUDA_VISIBLE_DEVICES` does not hide it.
    pub visible: bool,
    /// Whether the driver supports it. A GPU that it does not support is not counted.
    pub support: DriverSupport,
}

/// Whether a driver supports GPUs of a compute capability, according to its release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriverSupport {
    /// It does, as far as is known.
    #[default]
    Supported,
    /// It is unknown; drivers from this floor on certainly do.
    Unknown(Floor),
    /// The first drivers that support them are newer.
    NotYet(Floor),
    /// This branch was the last that supported them.
    NoLonger(u32),
}

impl DriverSupport {
    /// Returns true if the driver certainly does not support the GPUs.
    pub const fn is_missing(self) -> bool {
        matches!(self, Self::NotYet(_) | Self::NoLonger(_))
    }
}

/// A library that a process gets.
#[derive(Clone, Copy, Debug)]
pub enum LibraryState<'a> {
    /// This one.
    Found(&'a HostLibrary),
    /// All places were searched: there is none.
    Absent,
    /// Not determined, or the process needs none.
    Unknown,
}

impl<'a> LibraryState<'a> {
    /// Returns the library.
    pub const fn found(self) -> Option<&'a HostLibrary> {
        match self {
            Self::Found(library) => Some(library),
            Self::Absent | Self::Unknown => None,
        }
    }
}

impl Host<'_> {
    /// Returns true if the machine is described, for example by a host file, so that the user can add missing facts.
    pub fn is_described(&self) -> bool {
        self.place != HERE
    }
}

impl Machine {
    /// Returns the machine as a process on it sees it.
    pub fn host<'a>(&'a self, place: &'a str) -> Host<'a> {
        Host { machine: self, place, driver: self.agreed_driver(), gpus: self.visible_gpu_list() }
    }

    /// Returns the driver with releases that agree, and with the CUDA version of its release. `None`: nothing is known about it.
    pub(super) fn agreed_driver(&self) -> Option<Driver> {
        let driver = self.driver.as_ref()?;
        let (user, kernel) = agreed_release(driver.user, driver.kernel);
        // Windows has one driver, which includes nvcuda.dll.
        let kernel = if self.is_windows() { kernel.or(user) } else { kernel };
        let cuda = self.tabled_driver().and_then(|driver| driver.cuda_version(self.kind));
        let is_known = driver.absent || user.is_some() || kernel.is_some() || cuda.is_some() || driver.init.is_some();
        is_known.then(|| Driver { user, kernel, cuda, ..driver.clone() })
    }

    /// Returns the branch of the driver as Linux numbers it. `None` if it is unknown, or if the last branch of a GPU does not apply, as
    /// on WSL and Jetson.
    pub(crate) fn linux_branch(&self) -> Option<u32> {
        let driver = self.tabled_driver().filter(|_| self.kind.is_none())?;
        driver.user.or(driver.kernel).map(|release| release.branch)
    }

    /// Returns the cuDNN that this component would load, by the soname that it needs.
    pub fn cudnn_of(&self, manifest: &Manifest) -> LibraryState<'_> {
        let row = manifest.requires.iter().find_map(|requirement| match requirement {
            Requirement::Library { built, linkage, .. } => Some((built.major, *linkage)),
            _ => None,
        });
        let (Some((wanted, linkage)), Some(libraries)) = (row, self.library_files(&CUDNN)) else {
            return LibraryState::Unknown;
        };
        let mut taken = libraries.iter().filter(|library| library.is_loaded());
        let own = taken.clone().find(|library| library.major() == Some(wanted));
        match (own, linkage) {
            (Some(own), _) => LibraryState::Found(own),
            (None, Linkage::Dlopened) if libraries.iter().any(|library| library.problem.is_some()) => {
                LibraryState::Unknown
            }
            // The loader finds nothing under the soname that the file needs; another release of the library is the
            // reason.
            (None, Linkage::Linked) => taken.next_back().map_or(LibraryState::Absent, LibraryState::Found),
            (None, Linkage::Dlopened) => LibraryState::Absent,
            (None, _) => LibraryState::Unknown,
        }
    }

    /// Returns the libcudart that the loader finds under the soname that this component needs.
    pub(crate) fn cudart_of(&self, manifest: &Manifest) -> Option<&HostLibrary> {
        let (soname, built) = manifest.shared_cudart()?;
        let mut loaded = self.library_files(&CUDART)?.iter().filter(|library| library.is_loaded());
        loaded.find(|library| match &library.soname {
            Some(name) => *name == soname,
            None => library.version.is_some_and(|version| version.major == built.major),
        })
    }

    /// Returns the GPUs, or an empty list if they are unknown.
    pub fn known_gpus(&self) -> Vec<HostGpu<'_>> {
        self.visible_gpu_list().unwrap_or_default()
    }

    /// Returns the compute capabilities of the GPUs that a process can use, as far as they are known.
    pub(crate) fn visible_ccs(&self) -> Vec<(u8, u8)> {
        self.known_gpus().iter().filter(|gpu| gpu.visible).filter_map(|gpu| gpu.cc).collect()
    }

    /// Returns the GPUs. If their visibility was not checked, it is derived from `CUDA_VISIBLE_DEVICES`. Returns `None`
    /// if that does not determine which GPUs are visible.
    pub(super) fn visible_gpu_list(&self) -> Option<Vec<HostGpu<'_>>> {
        let list = self.variable("CUDA_VISIBLE_DEVICES").map(str::trim);
        if self.gpus.is_none() && list.is_some_and(hides_all) {
            return Some(Vec::new());
        }
        let gpus = self.gpus.as_ref()?;
        let mut all = self.gpus_of_driver(gpus);
        let driven = gpus.iter().zip(&all).filter(|(_, host)| !host.support.is_missing());
        let driven: Vec<&Gpu> = driven.map(|(gpu, _)| gpu).collect();
        let looked = gpus.iter().any(|gpu| gpu.visible.is_some());
        let shown = match list.filter(|_| !looked) {
            Some(list) => {
                let in_order = self.variable("CUDA_DEVICE_ORDER").map(str::trim) == Some("PCI_BUS_ID");
                let are_alike = driven.windows(2).all(|pair| {
                    let [one, other] = [pair[0], pair[1]].map(|gpu| (gpu.known_cc(), &gpu.name));
                    one.0.is_some() && one == other
                });
                visible_gpus(list, &driven, in_order || are_alike)?
            }
            None => driven.iter().map(|gpu| gpu.visible.unwrap_or(true)).collect(),
        };
        for (host, is_shown) in all.iter_mut().filter(|host| !host.support.is_missing()).zip(shown) {
            host.visible = is_shown;
        }
        for (host, gpu) in all.iter_mut().zip(gpus) {
            host.visible &= gpu.state.is_none();
        }
        Some(all)
    }

    /// Returns the GPUs with the support by the driver, without the selection of a variable.
    fn gpus_of_driver<'a>(&self, gpus: &'a [Gpu]) -> Vec<HostGpu<'a>> {
        // If the driver answered, it has already reported which GPUs it supports.
        let driver = self.tabled_driver().filter(|driver| driver.init.is_none());
        let driver = driver.as_deref();
        let release = driver.filter(|_| self.kind.is_none()).and_then(|driver| driver.kernel.or(driver.user));
        let most = driver.and_then(|driver| driver.supports_at_most(self.kind));
        let newer = |floor: Option<Floor>| {
            let floor = floor.filter(|floor| most.is_some_and(|most| most < floor.cuda))?;
            let on_windows = floor.release.filter(|_| self.is_windows());
            let on_windows = on_windows.map(|release| tables::windows_release(floor.cuda, release));
            Some(Floor { release: on_windows.or(floor.release), ..floor })
        };
        let host_gpu = |gpu: &'a Gpu| {
            let cc = gpu.known_cc();
            let support = cc.filter(|_| !gpu.listed).map(|cc| {
                let last = tables::last_branch(cc);
                let last = last.filter(|last| release.is_some_and(|release| release.branch > *last));
                let no_longer = last.map(DriverSupport::NoLonger);
                let not_yet = || newer(tables::first_of_generation(cc)).map(DriverSupport::NotYet);
                let unknown = || newer(tables::first_driver(cc)).map(DriverSupport::Unknown);
                no_longer.or_else(not_yet).or_else(unknown).unwrap_or_default()
            });
            let (name, visible) = (gpu.name.as_deref(), gpu.visible != Some(false));
            HostGpu { cc, name, visible, support: support.unwrap_or_default() }
        };
        gpus.iter().map(host_gpu).collect()
    }
}

/// Returns which of the GPUs a `CUDA_VISIBLE_DEVICES` list selects: an invalid entry hides all GPUs that follow it.
/// Returns `None` if that is unknown: indices with an unknown order of the GPUs, a GPU that is listed twice, MIG.
fn visible_gpus(list: &str, gpus: &[&Gpu], in_order: bool) -> Option<Vec<bool>> {
    let mut shown = vec![false; gpus.len()];
    if hides_all(list) {
        return Some(shown);
    }
    let mut numbers = false;
    for entry in list.split(',').map(str::trim) {
        let at = match entry.parse::<usize>() {
            Ok(number) => {
                numbers = true;
                Some(number).filter(|number| *number < gpus.len())
            }
            Err(_) if entry.starts_with("GPU-") => {
                if gpus.iter().any(|gpu| gpu.uuid.is_none()) {
                    return None;
                }
                let mut matching =
                    (0..gpus.len()).filter(|at| gpus[*at].uuid.as_ref().is_some_and(|uuid| uuid.starts_with(entry)));
                let found = matching.next();
                if matching.next().is_some() {
                    return None;
                }
                found
            }
            Err(_) if entry.starts_with("MIG-") => return None,
            Err(_) => None,
        };
        let Some(at) = at else { break };
        if std::mem::replace(&mut shown[at], true) {
            return None;
        }
    }
    let some = shown.contains(&true) && shown.contains(&false);
    (!numbers || in_order || !some).then_some(shown)
}
