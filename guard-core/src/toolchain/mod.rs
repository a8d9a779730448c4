//! Detects the toolchain of a build: each fact with its source.
//!
//! These are *in use*:
//!
//! - **the compiler**: `NVCC`, `CUDACXX`, the first nvcc in `PATH`, then `bin/nvcc` of the roots in `CUDA_HOME`,
//!   `CUDA_PATH`, `CUDA_ROOT`, `CUDA_TOOLKIT_ROOT_DIR` and `CUDAToolkit_ROOT`, then of `/usr/local/cuda`,
//!   `/opt/cuda`, `/usr/lib/cuda`, `/usr`, `/usr/local/cuda-X.Y` newest first. This is cudaforge's order, with
//!   `CUDACXX` at the place where CMake reads it.
//! - **the headers**: those of the first of these roots that a variable names and that has a `cuda.h`, as in cudarc,
//!   `bindgen_cuda` and `PyTorch`; otherwise the compiler's own.
//! - **cudart and cuDNN**: the first directory on the linker's search path: `-L` of `RUSTFLAGS`, `LIBRARY_PATH`, the
//!   toolkit's directories, the system's. For cuDNN its own variables come first.
//!
//! A toolkit or library in a conda or virtual environment, the HPC SDK or a `.pc` file is listed. It is in use only
//! if one of the above names it, because no build script searches there by itself.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::arch::{ArchRequest, Target};
use crate::model::version::{CudaVersion, Version};
use crate::sys::env::Env;

mod archs;
mod build_system;
mod detector;
mod display;
mod host_compiler;
mod installs;
mod library;
mod math_headers;
mod nvcc;
mod pkg_config;
mod places;
mod toolkit_files;
mod toolkits;

pub use archs::{Declared, DeclaredArchs, Native};
pub use build_system::{BuildSystem, BuildSystemFacts, include_flags};
use detector::{ask_nvcc, detect_toolchain, same_file};
pub use host_compiler::{CompilerFamily, HostCompiler, Limits};
pub use installs::{
    CudnnHeaders as LibraryHeaders, Install, InstalledLibrary as LibraryFile, InstalledPart as LibraryPart,
    resolve_library,
};
pub use math_headers::MathConflict;
pub use nvcc::Nvcc;
use places::Precedence;
pub use toolkit_files::cuda_h_release;
use toolkit_files::{OWN_DIR, headers_in, read_lossy};

/// A fact and a description of its source: `CUDA_HOME`, `/usr/local/cuda/include/cuda.h`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The fact.
    pub value: T,
    /// Its source.
    pub source: String,
}

impl<T> Sourced<T> {
    /// Builds a fact with a source.
    pub fn new(value: T, source: impl Into<String>) -> Self {
        Self { value, source: source.into() }
    }
}

/// The variable that names a root other than `/`: a sysroot, or the unpacked image of a container. Paths in variables
/// are used unchanged.
pub const SYSROOT: &str = "CUDAGUARD_SYSROOT";

/// The inputs of a detection.
#[derive(Clone, Debug)]
pub struct DetectOptions {
    /// The environment.
    pub env: Env,
    /// The target triple.
    pub target: String,
    /// True for a release build.
    pub release: bool,
    /// Architectures that the builder declares: one list, in any spelling.
    pub archs: Option<String>,
    /// `[gpu] archs` of the policy.
    pub policy_archs: Vec<ArchRequest>,
    /// The root of the file system (`/usr`, `/usr/local/cuda`, …): `/`, or a sysroot ([`SYSROOT`]).
    pub system_root: PathBuf,
    /// Time limit for a compiler or the driver.
    pub patience: Duration,
    /// The facts of a build system. If present, no variable and no usual directory is searched for a toolkit.
    pub given: Option<BuildSystemFacts>,
}

impl DetectOptions {
    /// Returns the inputs of a dev build for this target and environment, on this machine or in [`SYSROOT`], without
    /// declarations.
    pub fn new(env: &Env, target: impl Into<String>) -> Self {
        Self {
            env: env.clone(),
            target: target.into(),
            release: false,
            archs: None,
            policy_archs: Vec::new(),
            system_root: env.var_os(SYSROOT).map_or_else(|| PathBuf::from("/"), PathBuf::from),
            patience: Duration::from_secs(10),
            given: None,
        }
    }
}

/// A directory of a search path.
#[derive(Clone, Debug)]
struct SearchDir {
    path: PathBuf,
    source: String,
    reach: Precedence,
}

/// A toolkit, or the parts of one in a root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toolkit {
    /// Its root, as found.
    pub root: PathBuf,
    /// The origins of the path: variables and places, the most certain first.
    pub found: Vec<String>,
    /// Its compiler.
    pub nvcc: Option<Nvcc>,
    /// Its `cuda.h`.
    pub headers: Option<ToolkitHeaders>,
    /// The release from `version.json`, `version.txt`, pkg-config or the directory name.
    pub stated: Option<Sourced<Version>>,
    /// Its libcudart.
    pub cudart: Option<LinkedCudart>,
    /// The host compilers that it accepts.
    pub limits: Option<Limits>,
}

/// A `cuda.h`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolkitHeaders {
    /// The path.
    pub path: PathBuf,
    /// Its `CUDA_VERSION`; `None` if it contains none.
    pub version: Option<CudaVersion>,
}

/// A libcudart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedCudart {
    /// The path as found.
    pub path: PathBuf,
    /// The version in its soname.
    pub major: Option<u32>,
    /// The version from the real file name or the toolkit's `version.json`.
    pub version: Option<Sourced<Version>>,
    /// The origin of its directory on the linker's search path.
    pub source: String,
}

impl LinkedCudart {
    /// Returns true if it is known to be of another release. Without the version in its file, only majors are compared.
    pub fn differs_from(&self, release: CudaVersion) -> bool {
        match (&self.version, self.major) {
            (Some(version), _) => CudaVersion::from(version.value) != release,
            (None, Some(major)) => major != release.major,
            (None, None) => false,
        }
    }

    /// Returns true if it comes from the toolkit: a linker finds it only with an explicit path.
    pub fn is_of_toolkit(&self) -> bool {
        self.source == OWN_DIR
    }
}

/// The entry in use, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Its index in the list.
    pub index: usize,
    /// The reason.
    pub reason: SelectionReason,
}

/// The reason why an entry is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectionReason {
    /// This variable or option names it.
    Named(String),
    /// Another reason: `first nvcc in PATH`.
    Other(String),
}

impl SelectionReason {
    /// Returns the variable or option that names the entry.
    pub fn named_by(&self) -> Option<&str> {
        match self {
            Self::Named(source) => Some(source),
            Self::Other(_) => None,
        }
    }
}

impl fmt::Display for SelectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(source) => write!(f, "{source} names it"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// All detected facts.
#[derive(Clone, Debug, Default)]
pub struct Toolchain {
    /// The target triple.
    pub target: String,
    /// True for a release build.
    pub release: bool,
    /// The tool that builds, which selects the wording of hints.
    pub by: BuildSystem,
    /// All toolkits, those in use first.
    pub toolkits: Vec<Toolkit>,
    /// Returns the toolkit whose nvcc compiles.
    pub compiler: Option<Selection>,
    /// Returns the toolkit whose headers are included.
    pub headers: Option<Selection>,
    /// Toolkits that other variables name, which some build scripts would use: (index, variable).
    pub also_named: Vec<(usize, String)>,
    /// The libcudart that the linker would probably use.
    pub cudart: Option<LinkedCudart>,
    /// All places with cuDNN, those in use first.
    pub installs: Vec<Install>,
    /// The place of the included headers.
    pub library_headers: Option<Selection>,
    /// The place of the library that the linker would probably use.
    pub library_file: Option<Selection>,
    /// The host compiler that nvcc would call.
    pub host: Option<HostCompiler>,
    /// The compiler that the `cc` crate passes to nvcc with `-ccbin`, if it is another one: `CXX`, otherwise `c++`.
    /// It overrides `NVCC_CCBIN`. Only the build script decides which of the two is used.
    pub host_of_cc: Option<HostCompiler>,
    /// True if nvcc's flags contain `-allow-unsupported-compiler`.
    pub any_host: bool,
    /// Functions that CUDA's math header and the C library of the host compiler declare differently.
    pub math_conflict: Option<MathConflict>,
    /// An installed toolkit that compiles for the architectures that the one in use is too old for, and its root.
    pub sufficient: Option<Sourced<Version>>,
    /// The architectures, by source.
    pub archs: DeclaredArchs,
    /// Stub directories in a runtime path, with the variable.
    pub stubs: Vec<Sourced<PathBuf>>,
    /// Variables that name a missing file, or a directory without a part of CUDA.
    pub dangling: Vec<Sourced<PathBuf>>,
    files: Vec<PathBuf>,
}

impl Toolchain {
    /// Detects everything: reads variables, directories and files, and runs the compilers in use.
    pub fn detect(request: &DetectOptions) -> Self {
        detect_toolchain(request)
    }

    /// Returns true if nothing of CUDA was found or requested.
    pub(crate) fn is_empty(&self) -> bool {
        self.toolkits.is_empty() && self.installs.is_empty() && self.archs.declared.is_empty()
    }

    /// Returns the toolkit whose nvcc compiles.
    pub fn compiling_toolkit(&self) -> Option<&Toolkit> {
        self.toolkits.get(self.compiler.as_ref()?.index)
    }

    /// Returns the toolkit whose headers are included.
    pub fn including_toolkit(&self) -> Option<&Toolkit> {
        self.toolkits.get(self.headers.as_ref()?.index)
    }

    /// Returns the release of the toolkit in use, with its source: from nvcc, otherwise from `cuda.h`, otherwise from
    /// its files. The third number is nvcc's build, and 0 if only `cuda.h` is known.
    pub fn sourced_toolkit_version(&self) -> Option<Sourced<Version>> {
        let by_nvcc = self.compiling_toolkit().and_then(Toolkit::nvcc_version);
        by_nvcc
            .or_else(|| self.including_toolkit().and_then(Toolkit::header_version))
            .or_else(|| self.compiling_toolkit().or_else(|| self.including_toolkit())?.stated.clone())
    }

    /// Returns the release of the toolkit in use: from nvcc, otherwise from `cuda.h`.
    pub fn toolkit_version(&self) -> Option<Version> {
        self.sourced_toolkit_version().map(|fact| fact.value)
    }

    /// Returns the releases of all toolkits that a build may use, with their sources: the one in use, then those of
    /// other variables.
    pub fn named_releases(&self) -> Vec<Sourced<Version>> {
        let named = self.also_named.iter().map(|(index, _)| self.toolkits[*index].version());
        let used = [self.sourced_toolkit_version(), self.including_toolkit().and_then(Toolkit::version)];
        let mut seen = BTreeSet::new();
        let mut releases = used.into_iter().chain(named).flatten().collect::<Vec<_>>();
        releases.retain(|fact| seen.insert(CudaVersion::from(fact.value)));
        releases
    }

    /// Returns the cuDNN headers in use.
    pub fn library_headers_used(&self) -> Option<&LibraryHeaders> {
        self.installs.get(self.library_headers.as_ref()?.index)?.headers.as_ref()
    }

    /// Returns the cuDNN library in use.
    pub fn library_used(&self) -> Option<&LibraryFile> {
        self.installs.get(self.library_file.as_ref()?.index)?.library.as_ref()
    }

    /// Returns the version of the cuDNN headers in use.
    pub fn library_version(&self) -> Option<Version> {
        self.library_headers_used()?.version
    }

    /// Returns the resulting architectures.
    pub fn declared_targets(&self) -> Vec<Target> {
        self.archs.in_force.clone()
    }

    /// Returns the host compiler: `gcc 12.2.0`.
    pub fn host_compiler(&self) -> Option<String> {
        self.host.as_ref()?.display_name()
    }

    /// Returns the files that were read, sorted: a change requires a new detection. The inner libraries of cuDNN
    /// (hundreds of MB) are omitted; the loader library and the headers change with them.
    pub fn read_files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }
}

/// Queries of crates, whose build scripts have another search order.
impl Toolchain {
    /// Returns the release of an nvcc: of the known toolkit that it belongs to, otherwise from its own output.
    pub fn release_of(&self, env: &Env, nvcc: &Path) -> Option<Version> {
        let known =
            self.toolkits.iter().find(|toolkit| toolkit.nvcc.as_ref().is_some_and(|own| same_file(&own.path, nvcc)));
        match known.and_then(Toolkit::version) {
            Some(version) => Some(version.value),
            None => ask_nvcc(nvcc, false, env.for_child(), Duration::from_secs(10)).version,
        }
    }

    /// Replaces the detected cuDNN library by the one that the linker used.
    #[must_use]
    pub fn with_library_taken(&self, library: LibraryFile) -> Self {
        let mut toolchain = self.clone();
        toolchain.library_headers = None;
        let install = Install { library: Some(library), ..Install::default() };
        toolchain.library_file = Some(toolchain.choose(install, "the linker took it"));
        toolchain
    }

    /// Replaces the detected cuDNN headers by those that code was compiled with.
    #[must_use]
    pub fn with_library_included(&self, headers: LibraryHeaders, by: &Path) -> Self {
        let mut toolchain = self.clone();
        let install = Install { headers: Some(headers), ..Install::default() };
        toolchain.library_headers = Some(toolchain.choose(install, &format!("included, by {}", by.display())));
        toolchain
    }
    fn choose(&mut self, install: Install, reason: &str) -> Selection {
        self.installs.push(Install { found: vec![reason.to_owned()], ..install });
        Selection { index: self.installs.len() - 1, reason: SelectionReason::Other(reason.to_owned()) }
    }

    /// Returns true if a variable or option names the cuDNN headers or library.
    pub fn names_library(&self) -> bool {
        let chosen = [&self.library_headers, &self.library_file];
        chosen.into_iter().flatten().any(|choice| choice.reason.named_by().is_some())
    }

    /// Returns true if the cuDNN headers are only the system's, which come after every `-I` of a build script.
    pub fn has_library_headers_of_system(&self) -> bool {
        let chosen = self.library_headers.as_ref().map(|choice| &self.installs[choice.index]);
        self.by == BuildSystem::Cargo
            && chosen.and_then(|install| install.found.first()).is_some_and(|source| source == installs::SYSTEM)
    }

    /// Returns the `cuda.h` in exactly this directory.
    pub fn cuda_h(dir: &Path) -> Option<ToolkitHeaders> {
        headers_in(&[dir.to_owned()])
    }

    /// Returns the version in a cuDNN header.
    pub fn version_of_header(header: &Path) -> Option<Version> {
        installs::parse_header(&read_lossy(header)?)
    }

    /// Returns the GPUs of this machine, from `nvidia-smi`.
    pub fn gpus_here(env: &Env) -> Native {
        archs::ask_gpus(archs::who_knows(env, None), env.for_child(), Duration::from_secs(10))
    }
}

impl Toolkit {
    fn nvcc_version(&self) -> Option<Sourced<Version>> {
        let nvcc = self.nvcc.as_ref()?;
        Some(Sourced::new(nvcc.version?, format!("{} --version", nvcc.path.display())))
    }

    /// Returns the path of its `cuda.h`.
    pub(crate) fn header_path(&self) -> Option<&Path> {
        self.headers.as_ref().map(|headers| headers.path.as_path())
    }

    fn header_version(&self) -> Option<Sourced<Version>> {
        let headers = self.headers.as_ref()?;
        let version = headers.version?;
        Some(Sourced::new(Version::new(version.major, version.minor, 0), headers.path.display().to_string()))
    }

    /// Returns its release and source: from nvcc if it was run, otherwise from `cuda.h`, which has no third number.
    /// The toolkit's files may add the third number.
    pub fn version(&self) -> Option<Sourced<Version>> {
        let stated = self.stated.clone();
        self.nvcc_version().or_else(|| {
            let Some(headers) = self.header_version() else { return stated };
            let Version { major, minor, .. } = headers.value;
            stated
                .filter(|stated| (stated.value.major, stated.value.minor) == (major, minor) && stated.value.patch != 0)
                .or(Some(headers))
        })
    }
}
