//! The facts of a machine: detected ([`detect_machine()`]), read from a host file ([`Machine::read`]) or specified by
//! the caller. The judge reads it as a [`Host`]. Unknown facts are absent.
//!
//! `docs/reference/host-file.md` documents the keys of the host file.

mod change;
mod components;
mod described_libraries;
pub(crate) mod detect;
mod driver;
mod driver_probe;
pub mod fleet_judge;
mod gpu_state;
mod host_file;
mod host_file_writer;
pub mod judge;
pub mod map;
pub mod oldest_driver;
pub mod placement;
#[cfg(target_os = "linux")]
mod probe_child;
mod process_host;
pub(crate) mod redact;
mod together;
mod unknown_keys;
pub(crate) mod windows;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

pub use components::{
    Alternatives, BroughtCudnn, Choice, Components, LinkedCudnn, LoadedModule, Needed, OpenedByName, Variant,
};
pub(crate) use components::{HERE, cudnn_soname, extend_new, is_cudnn_row, mark_idle, opened_cudnn};
pub use cudaguard::internal::tables::pci::compute_capability as cc_of_pci_device;
pub(crate) use described_libraries::{OTHER_LIBRARIES, install_hint};
pub use detect::detect_machine;
pub(crate) use detect::{detect_for_graph, read_parts_of};
pub(crate) use driver::agreed_release;
pub use driver::{CompatPackage, Driver};
pub use driver_probe::DriverProbe;
pub use gpu_state::GpuState;
pub use host_file::{ParseError, parse_release};
pub use host_file_writer::HostFileView;
#[cfg(target_os = "linux")]
pub use probe_child::run_probe_child;
pub use process_host::{DriverSupport, Host, HostGpu, LibraryState};
pub(crate) use together::{answers_together, worst_service};
pub use unknown_keys::UnknownKeys;

use crate::binary::file::TargetOs;
use crate::binary::symbols::Bound;
use crate::knowledge::vendor;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{Finding, MessageTemplate, Values};
use cudaguard::internal::tables;
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};
use serde::{Deserialize, Serialize};

/// The revision of the host file that this version writes.
pub const REVISION: u32 = 1;

/// Variables that change what a driver lists or does; a host file contains no other variables.
pub const VARIABLES: [&str; 4] =
    ["CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_FORCE_PTX_JIT", "CUDA_DISABLE_PTX_JIT"];

/// The known facts of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Machine {
    /// A label from the list of machines; [`detect_machine()`] sets none.
    pub name: Option<String>,
    /// Processor and operating system: `x86_64-linux`.
    pub platform: Option<String>,
    /// The kind of machine, if drivers follow other rules on it.
    pub kind: Option<MachineKind>,
    /// The driver; `None`: not checked.
    pub driver: Option<Driver>,
    /// The GPUs; `None`: not checked, or the check failed.
    pub gpus: Option<Vec<Gpu>>,
    /// The files of each library in the order of the loader, by the key of the library's descriptor. NVIDIA's other libraries have one
    /// key, `libraries`. Libraries that were not checked have no entry.
    #[serde(flatten, serialize_with = "host_file_writer::libraries")]
    pub libraries: BTreeMap<&'static str, Vec<HostLibrary>>,
    /// The [`VARIABLES`] that are set, with their values.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "host_file_writer::texts")]
    pub variables: Vec<(String, String)>,
    /// The source of each fact: the key of the fact, and the location.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "host_file_writer::texts")]
    pub sources: Vec<(String, String)>,
    /// Messages about facts that could not be determined.
    #[serde(rename = "doubts", skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A machine on which drivers follow other rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MachineKind {
    /// Windows Subsystem for Linux: libcuda comes from Windows, and its file name contains no release.
    Wsl2,
    /// A Jetson or another Tegra: the driver is a part of the system.
    Jetson,
}

impl MachineKind {
    /// Returns the name that the host file uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wsl2 => "wsl2",
            Self::Jetson => "jetson",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Wsl2, Self::Jetson].into_iter().find(|kind| kind.name() == name)
    }
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, expecting = "a GPU: an object, `{ … }`")]
pub struct Gpu {
    /// The product's name.
    pub name: Option<String>,
    /// The compute capability.
    #[serde(deserialize_with = "host_file::a_cc", serialize_with = "host_file_writer::dotted")]
    pub cc: Option<(u8, u8)>,
    /// `GPU-…`.
    pub uuid: Option<String>,
    /// The PCI address: `0000:3b:00.0`.
    pub pci: Option<String>,
    /// True if a process can use it. `None`: unknown if `CUDA_VISIBLE_DEVICES` is set, otherwise visible.
    pub visible: Option<bool>,
    /// The state that prevents CUDA programs from using it, if it is in one.
    #[serde(deserialize_with = "host_file::a_state", skip_serializing_if = "Option::is_none")]
    pub state: Option<GpuState>,
    /// True if the driver listed the GPU and therefore supports it.
    #[serde(skip)]
    pub listed: bool,
}

/// A library that was found, and the version in its files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, expecting = "a library: an object, `{ … }`")]
pub struct HostLibrary {
    /// The name it was found under: its soname.
    pub soname: Option<String>,
    /// Version of the symbol.
    #[serde(deserialize_with = "host_file::a_version", serialize_with = "host_file_writer::text")]
    pub version: Option<Version>,
    /// The release in the library's own file, which can differ from that of its parts.
    #[serde(deserialize_with = "host_file::a_loader", skip_serializing_if = "LoaderVersion::is_unknown")]
    pub loader: LoaderVersion,
    /// The release of the cudart that is linked into it, if any.
    #[serde(deserialize_with = "host_file::a_cuda_version", serialize_with = "host_file_writer::text")]
    pub cuda: Option<CudaVersion>,
    /// Path of the file.
    pub path: Option<String>,
    /// The search rule of the loader: `LD_LIBRARY_PATH: /opt/lib`.
    pub by: Option<String>,
    /// True if the loader resolves the soname to this file; false if another file precedes it, or if the loader does
    /// not search its directory.
    #[serde(default = "host_file::yes", deserialize_with = "host_file::is_not_false")]
    #[serde(skip_serializing_if = "host_file_writer::is_set")]
    pub taken: bool,
    /// Why the loader cannot load the file: it fails at a damaged file, and skips one for another processor.
    pub problem: Option<String>,
    /// The libraries of NVIDIA that it needs, by soname.
    #[serde(deserialize_with = "host_file::list_or_empty", skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// The newest function of each of these that it binds, if the first releases lack it.
    #[serde(deserialize_with = "host_file::bound_functions", serialize_with = "host_file_writer::bound_functions")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub binds: Vec<Bound>,
    /// The libraries that it loads with dlopen and that exist; `None`: not checked.
    #[serde(deserialize_with = "host_file::list", skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<HostLibraryPart>>,
}

/// A library that another one loads with dlopen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, expecting = "a library: an object, `{ … }`")]
pub struct HostLibraryPart {
    /// The file name.
    #[serde(deserialize_with = "host_file::or_default")]
    pub file: String,
    /// The version, if known.
    #[serde(deserialize_with = "host_file::a_version", serialize_with = "host_file_writer::text")]
    pub version: Option<Version>,
    /// The file, if it is on this machine.
    #[serde(skip)]
    pub path: Option<PathBuf>,
}

/// Release of a library that opens its parts by itself, from its own file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LoaderVersion {
    /// Unknown.
    #[default]
    Unknown,
    /// Release in the file name.
    Version(Version),
    /// Major and minor, from a host file.
    Minor(u32, u32),
}

fn hides_all(list: &str) -> bool {
    matches!(list, "" | "-1")
}

impl Gpu {
    /// Returns its compute capability, from its name if it is not stated.
    fn known_cc(&self) -> Option<(u8, u8)> {
        self.cc.or_else(|| tables::gpu_cc(self.name.as_deref()?))
    }
}

impl Machine {
    /// Returns the files of a library, in the order of the loader; `None`: not checked.
    pub fn library_files(&self, library: &vendor::Library) -> Option<&[HostLibrary]> {
        self.libraries.get(library.key).map(Vec::as_slice)
    }

    /// Returns the processor: the part of the platform before the first dash.
    fn processor_name(&self) -> Option<&str> {
        self.platform.as_deref()?.split('-').next().filter(|name| !name.is_empty())
    }

    /// Returns true for a machine with Windows.
    pub(crate) fn is_windows(&self) -> bool {
        self.platform
            .as_deref()
            .is_some_and(|platform| platform.to_ascii_lowercase().contains(TargetOs::Windows.name()))
    }

    /// Returns the machine with this operating system if its description names none.
    pub fn with_default_os(&self, os: Option<TargetOs>) -> Cow<'_, Self> {
        match os {
            Some(TargetOs::Windows) if self.platform.is_none() => {
                Cow::Owned(Self { platform: Some(format!("-{}", TargetOs::Windows.name())), ..self.clone() })
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// Replaces libcuda by a copy that a program brings. The kernel module stays; without its release, nothing is known about the
    /// copy. A driver that is assumed to work with the program stays.
    pub(super) fn use_libcuda(&mut self, name: &str, release: Option<DriverRelease>) {
        let installed = self.driver.take().unwrap_or_default();
        let kernel = installed.kernel.or(installed.user);
        let is_assumed = kernel.is_none() && installed.init == Some(0);
        if is_assumed || installed.library.as_deref() == Some(name) {
            self.driver = Some(installed);
            return;
        }
        self.driver = Some(Driver {
            absent: installed.absent && kernel.is_none(),
            user: release.filter(|_| kernel.is_some()),
            kernel,
            library: Some(name.to_owned()),
            ptx_compiler: installed.ptx_compiler,
            ordinary: true,
            ..Driver::default()
        });
    }

    /// States that the machine has no libraries of NVIDIA's but those that are described.
    pub(super) fn use_no_other_libraries(&mut self) {
        for key in vendor::DESCRIBED.into_iter().map(|library| library.key).chain([OTHER_LIBRARIES]) {
            let _ = self.libraries.entry(key).or_default();
        }
    }

    /// Returns the driver whose numbers the tables know.
    fn tabled_driver(&self) -> Option<Cow<'_, Driver>> {
        let driver = self.driver.as_ref()?;
        Some(if self.is_windows() { Cow::Owned(driver.with_linux_branches()) } else { Cow::Borrowed(driver) })
    }

    /// Returns the platform if its operating system is known and is another one than this.
    fn platform_without(&self, os: TargetOs) -> Option<&str> {
        let platform = self.platform.as_deref()?;
        let lower = platform.to_ascii_lowercase();
        let foreign: &[&str] = match os {
            TargetOs::Linux => &["windows", "darwin", "macos"],
            TargetOs::Windows => &["linux", "darwin", "macos"],
        };
        foreign.iter().any(|system| lower.contains(system)).then_some(platform)
    }

    /// Reads the [`VARIABLES`] of this process. An empty list hides every GPU, so an empty variable differs from an unset one.
    fn read_variables(&mut self, env: &Env) {
        for variable in VARIABLES {
            if let Some(value) = env.var_os_raw(variable) {
                self.variables.push((variable.to_owned(), value.to_string_lossy().into_owned()));
            }
        }
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns, if the list in `CUDA_VISIBLE_DEVICES` selects an unknown subset of the GPUs, the machine once for each
    /// GPU, with only that one visible; otherwise returns an empty list.
    pub(crate) fn each_alone(&self) -> Vec<Self> {
        let list = self.variable("CUDA_VISIBLE_DEVICES");
        let (Some(list), Some(gpus), None) = (list, &self.gpus, self.visible_gpu_list()) else { return Vec::new() };
        let numbers: Option<Vec<usize>> = list.split(',').map(|number| number.trim().parse().ok()).collect();
        let mut numbers = numbers.unwrap_or_default();
        let first = numbers.first().copied();
        numbers.sort_unstable();
        let twice = numbers.windows(2).any(|pair| pair[0] == pair[1]);
        if twice || first.is_none_or(|first| first >= gpus.len()) {
            return Vec::new();
        }
        let mut machines = vec![self.clone(); gpus.len()];
        for (alone, machine) in machines.iter_mut().enumerate() {
            for (at, gpu) in machine.gpus.iter_mut().flatten().enumerate() {
                gpu.visible = Some(at == alone);
            }
        }
        machines
    }

    /// Returns true if `CUDA_FORCE_PTX_JIT=1` is set: the driver ignores machine code.
    pub fn passes_over_machine_code(&self) -> bool {
        self.variable("CUDA_FORCE_PTX_JIT") == Some("1")
    }

    /// Returns true if `CUDA_DISABLE_PTX_JIT=1` is set: the driver does not compile PTX.
    pub(crate) fn disables_ptx(&self) -> bool {
        self.variable("CUDA_DISABLE_PTX_JIT") == Some("1")
    }

    /// Returns true if the driver finds its compiler of PTX. `None`: not checked; a complete driver has it.
    pub(crate) fn has_ptx_compiler(&self) -> Option<bool> {
        // The libcuda of WSL and of a Jetson finds its parts without the loader.
        self.driver.as_ref()?.ptx_compiler.filter(|there| *there || self.kind.is_none())
    }

    /// Returns a copy with another driver, which is not known to list these GPUs.
    fn with_driver(&self, driver: Driver) -> Self {
        let mut other = Self { driver: Some(driver), ..self.clone() };
        for gpu in other.gpus.iter_mut().flatten() {
            gpu.listed = false;
        }
        other
    }

    /// Returns true if there is a libcuda without a known result of `cuInit`: not called, or it crashed or hung.
    pub fn is_silent(&self) -> bool {
        self.driver.as_ref().is_none_or(|driver| !driver.absent && driver.init.is_none())
    }

    /// Returns the finding about facts that could not be determined; `None` if there are none.
    pub fn unknowns_finding(&self) -> Option<Finding> {
        let (first, rest) = self.warnings.split_first()?;
        let why = rest.iter().fold(first.clone(), |text, warning| text + "\n" + warning);
        Some(MessageTemplate::MachineUnreadable.to_finding(&Values::default().with("why", why)))
    }
}

impl HostLibrary {
    /// Returns true if the loader resolves the soname to this file and can load it.
    pub(crate) fn is_loaded(&self) -> bool {
        self.taken && self.problem.is_none()
    }

    /// Returns the part with this file name.
    pub(crate) fn part(&self, file: &str) -> Option<&HostLibraryPart> {
        self.parts.iter().flatten().find(|part| part.file == file)
    }

    /// Returns the major of its version, or of its soname if the version is unknown.
    pub fn major(&self) -> Option<u32> {
        self.version.map(|version| version.major).or_else(|| vendor::major_of(self.soname.as_deref()?))
    }
}

#[cfg(test)]
mod tests;
