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
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::knowledge::vendor;
use crate::model::arch::{ArchRequest, Target};
use crate::model::version::{CudaVersion, Version};
use crate::sys::env::Env;
use crate::sys::files;
use crate::sys::subprocess;
use crate::text::shell_words::split_words;

mod archs;
mod build_system;
mod display;
mod host_compiler;
mod installs;
mod library;
mod nvcc;
mod pkg_config;
mod places;

use archs::ProjectNvccFlags;
pub use archs::{Declared, DeclaredArchs, Native};
pub use build_system::{BuildSystem, BuildSystemFacts, include_flags};
pub use host_compiler::{CompilerFamily, HostCompiler, Limits};
pub use installs::{
    CudnnHeaders as LibraryHeaders, Install, InstalledLibrary as LibraryFile, InstalledPart as LibraryPart,
};
pub use nvcc::Nvcc;
use places::{Layout, Precedence, ROOTS, ToolkitPlace, path_below};

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

/// The origin of a libcudart that only its toolkit reaches.
const OWN_FOLDER: &str = "the toolkit's own folder";

impl LinkedCudart {
    /// Returns true if it comes from the toolkit: a linker finds it only with an explicit path.
    pub fn is_of_toolkit(&self) -> bool {
        self.source == OWN_FOLDER
    }
}

/// The entry in use, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Its index in the list.
    pub index: usize,
    /// The reason: `first nvcc in PATH`.
    pub reason: String,
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
    /// The architectures, by source.
    pub archs: DeclaredArchs,
    /// Stub directories in a runtime path, with the variable.
    pub stubs: Vec<Sourced<PathBuf>>,
    /// Variables that name a missing file or directory.
    pub dangling: Vec<Sourced<PathBuf>>,
    files: BTreeSet<PathBuf>,
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
        let others =
            self.including_toolkit().into_iter().chain(self.also_named.iter().map(|(index, _)| &self.toolkits[*index]));
        let mut all: Vec<_> =
            self.sourced_toolkit_version().into_iter().chain(others.filter_map(Toolkit::version)).collect();
        let mut seen = BTreeSet::new();
        all.retain(|fact| seen.insert(CudaVersion::from(fact.value)));
        all
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
        self.files.iter().cloned().collect()
    }
}

/// Returns the release in this `cuda.h`.
pub fn cuda_h_release(file: &Path) -> Option<CudaVersion> {
    read_start(file).as_deref().and_then(parse_cuda_h).or_else(|| parse_cuda_h(&read_lossy(file)?))
}

/// Queries of crates, whose build scripts have another search order.
impl Toolchain {
    /// Returns the first program of this name in `PATH`.
    pub fn in_path(env: &Env, name: &str) -> Option<PathBuf> {
        subprocess::in_path(name, env)
    }

    /// Returns the release of an nvcc: of the known toolkit that it belongs to, otherwise from its own output.
    pub fn release_of(&self, env: &Env, nvcc: &Path) -> Option<Version> {
        let known =
            self.toolkits.iter().find(|toolkit| toolkit.nvcc.as_ref().is_some_and(|own| same_file(&own.path, nvcc)));
        match known.and_then(Toolkit::version) {
            Some(version) => Some(version.value),
            None => ask_nvcc(nvcc, false, env.for_child().as_ref(), Duration::from_secs(10)).version,
        }
    }

    /// Returns the cuDNN of this soname that a linker finds first in these directories.
    pub fn library_taken(soname: &str, folders: &[PathBuf]) -> Option<LibraryFile> {
        installs::resolve_library(soname, folders)
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
        Selection { index: self.installs.len() - 1, reason: reason.to_owned() }
    }

    /// Returns true if the cuDNN headers are only the system's, which come after every `-I` of a build script.
    pub fn has_library_headers_of_system(&self) -> bool {
        let of_system = |choice: &Selection| choice.reason.starts_with(installs::SYSTEM);
        self.by == BuildSystem::Cargo && self.library_headers.as_ref().is_some_and(of_system)
    }

    /// Returns the `cuda.h` in exactly this directory.
    pub fn cuda_h(folder: &Path) -> Option<ToolkitHeaders> {
        headers_in(&[folder.to_owned()])
    }

    /// Returns the version in a cuDNN header.
    pub fn version_of_header(header: &Path) -> Option<Version> {
        installs::parse_header(&read_lossy(header)?)
    }

    /// Returns the GPUs of this machine, from `nvidia-smi`.
    pub fn gpus_here(env: &Env) -> Native {
        archs::ask_gpus(archs::who_knows(env, None), env.for_child().as_ref(), Duration::from_secs(10))
    }
}

impl Toolkit {
    fn nvcc_version(&self) -> Option<Sourced<Version>> {
        let nvcc = self.nvcc.as_ref()?;
        Some(Sourced::new(nvcc.version?, format!("{} --version", nvcc.path.display())))
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
            let same = |stated: &Sourced<Version>| {
                (stated.value.major, stated.value.minor) == (headers.value.major, headers.value.minor)
            };
            stated.filter(|stated| same(stated) && stated.value.patch != 0).or(Some(headers))
        })
    }
}

/// Parses `CUDA_VERSION` in a `cuda.h`.
fn parse_cuda_h(text: &str) -> Option<CudaVersion> {
    text.lines().find_map(|line| {
        let mut words = line.strip_prefix('#')?.split_whitespace();
        let found = words.next() == Some("define") && words.next() == Some("CUDA_VERSION");
        let number: u32 = found.then(|| words.next()?.parse().ok())??;
        (number >= 1000).then(|| CudaVersion::from_int(number))
    })
}

/// Parses the version of a component in a `version.json`: `"cuda"`, `"cuda_cudart"`, … It takes the first `"version"`
/// after the key, without a JSON parser, which this crate does not need otherwise.
fn parse_version_json(text: &str, component: &str) -> Option<Version> {
    let (_, rest) = text.split_once(&format!("\"{component}\""))?;
    let (object, _) = rest.split_once('}')?;
    let (_, rest) = object.split_once("\"version\"")?;
    rest.split('"').nth(1)?.parse().ok()
}

/// Parses `CUDA Version 10.2.89` in a `version.txt`.
fn parse_version_txt(text: &str) -> Option<Version> {
    let (_, rest) = text.split_once("CUDA Version ")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Reads a file as text, with replacement characters for invalid UTF-8.
fn read_lossy(path: &Path) -> Option<String> {
    files::read_bytes(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads the start of a file: `CUDA_VERSION` is in the first tenth of a `cuda.h` of a megabyte.
fn read_start(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    files::open_regular(path).ok()?.take(128 << 10).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn headers_in(folders: &[PathBuf]) -> Option<ToolkitHeaders> {
    let path = folders.iter().map(|folder| folder.join("cuda.h")).find(|path| path.is_file())?;
    let version = read_start(&path).as_deref().and_then(parse_cuda_h).or_else(|| parse_cuda_h(&read_lossy(&path)?));
    Some(ToolkitHeaders { path, version })
}

fn stated_in(root: &Path, layout: &Layout) -> Option<Sourced<Version>> {
    let of = |path: PathBuf, parse: &dyn Fn(&str) -> Option<Version>| {
        Some(Sourced::new(parse(&read_lossy(&path)?)?, path.display().to_string()))
    };
    of(root.join("version.json"), &|text| parse_version_json(text, "cuda"))
        .or_else(|| of(root.join("version.txt"), &parse_version_txt))
        .or_else(|| {
            let folders = layout.library_dirs(root).into_iter().map(|folder| folder.join("pkgconfig"));
            folders.flat_map(|folder| places::entries_with_prefix(&folder, "cuda")).find_map(|file| {
                let wanted = file.extension().is_some_and(|extension| extension == "pc");
                wanted.then(|| of(file, &|text| pkg_config::field_value(text, "Version:")?.parse().ok()))?
            })
        })
        .or_else(|| match places::version_in_name(root)[..] {
            [major, minor] if root.file_name()?.to_str()?.starts_with("cuda-") => {
                Some(Sourced::new(Version::new(major, minor, 0), format!("the folder's name, {}", root.display())))
            }
            _ => None,
        })
}

/// Returns the libcudart of a directory. If its name does not contain the version, the `version.json` of the root
/// may.
fn cudart_in(layout: &Layout, folder: &Path, source: &str) -> Option<LinkedCudart> {
    let linked = folder.join("libcudart.so");
    let path = if linked.is_file() {
        linked
    } else {
        let found = layout.libraries_in(folder, "libcudart.so.").into_iter().find(|file| file.is_file());
        found.or_else(|| Some(folder.join("libcudart_static.a")).filter(|file| file.is_file()))?
    };
    let real = path.canonicalize().ok()?;
    let numbers = vendor::numbers_of(&real.file_name()?.to_string_lossy());
    let version = match numbers[..] {
        [major, minor, patch, ..] => Some(Sourced::new(Version::new(major, minor, patch), real.display().to_string())),
        // Up to 10.2 the soname contains the complete release (libcudart.so.10.2); for 11 it is always 11.0.
        [major @ ..=10, minor] => Some(Sourced::new(Version::new(major, minor, 0), real.display().to_string())),
        // lib, lib64 and targets/*/lib are at most three directories below the root.
        _ => folder.ancestors().skip(1).take(3).map(|root| root.join("version.json")).find_map(|file| {
            let version = parse_version_json(&read_lossy(&file)?, "cuda_cudart")?;
            Some(Sourced::new(version, file.display().to_string()))
        }),
    };
    // A version.json of another major belongs to another toolkit.
    let version = version.filter(|version| numbers.first().is_none_or(|major| *major == version.value.major));
    let major = numbers.first().copied().or(version.as_ref().map(|version| version.value.major));
    Some(LinkedCudart { path, major, version, source: source.to_owned() })
}

fn limits_of(headers: Option<&ToolkitHeaders>, root: &Path) -> Option<Limits> {
    let beside = headers.and_then(|headers| headers.path.parent()).map(|folder| folder.join("crt/host_config.h"));
    // CUDA 8 and older kept it next to the headers.
    let file = beside.into_iter().chain([root.join("include/crt/host_config.h")]).find(|file| file.is_file())?;
    let (gcc_max, clang_below) = host_compiler::parse_limits(&read_lossy(&file)?);
    Some(Limits { gcc_max, clang_below, source: file.display().to_string() })
}

/// A candidate for the compiler in use.
struct NvccCandidate {
    path: PathBuf,
    flags: Vec<String>,
    source: String,
    reason: String,
}

struct Detector<'a> {
    request: &'a DetectOptions,
    layout: Layout,
    out: Toolchain,
    /// The certainty of each entry of `out.toolkits`, in the same order.
    reach: Vec<Precedence>,
    /// The output of the nvcc in use.
    compiler: Option<Nvcc>,
}

fn detect_toolchain(request: &DetectOptions) -> Toolchain {
    let layout = Layout::for_target(&request.target, std::env::consts::ARCH);
    let out = Toolchain {
        target: request.target.clone(),
        release: request.release,
        by: request.given.as_ref().map_or(BuildSystem::Cargo, |given| given.by),
        ..Toolchain::default()
    };
    let mut looking = Detector { request, layout, out, reach: Vec::new(), compiler: None };
    looking.add_toolkits();
    looking.detect_cudart();
    looking.detect_cudnn();
    looking.detect_stubs();
    looking.read_files();
    looking.out
}

impl Detector<'_> {
    fn toolkit_places(&self) -> Vec<ToolkitPlace> {
        let DetectOptions { env, system_root, .. } = self.request;
        let mut places = places::toolkit_places(env, system_root);
        places.extend(pkg_config::toolkit_places(env, system_root, &self.layout));
        places
    }

    fn add_toolkits(&mut self) {
        let given = self.request.given.as_ref();
        let places = given.map_or_else(|| self.toolkit_places(), BuildSystemFacts::toolkit_places);
        let candidate = self.compiler_in_use(&places);
        for place in &places {
            if place.reach == Precedence::Named && !place.root.is_dir() {
                self.out.dangling.push(Sourced::new(place.root.clone(), place.source.clone()));
            }
            self.add_place(place);
        }
        let flags = ProjectNvccFlags::read(&self.request.env, candidate.as_ref(), given);
        self.out.any_host = flags.all_flags().any(|flag| flag.trim_start_matches('-') == "allow-unsupported-compiler");
        self.out.archs = DeclaredArchs::read(self.request, &flags);
        self.run_tools(candidate.as_ref(), &flags);
        if let Some(candidate) = candidate {
            let index = self.assign_compiler(&candidate);
            self.out.compiler = Some(Selection { index, reason: candidate.reason });
        }
        match given {
            Some(given) => {
                self.choose_given_headers(given);
                self.given_host(given);
            }
            None => self.choose_headers(),
        }
        let release = self.out.toolkit_version();
        self.out.archs.resolve(release);
        self.in_use_first();
    }

    /// Selects the nvcc that a build would run.
    fn compiler_in_use(&mut self, places: &[ToolkitPlace]) -> Option<NvccCandidate> {
        if let Some(given) = &self.request.given {
            return given.nvcc_candidate();
        }
        for variable in ["NVCC", "CUDACXX"] {
            let Some(value) = self.request.env.var(variable) else { continue };
            let Some((program, flags)) = nvcc::parse_command(&value, Path::is_file) else { continue };
            // CMake can compile CUDA with clang too; then only the roots show the toolkit.
            if program.file_name().is_some_and(|name| name.to_string_lossy().contains("clang")) {
                continue;
            }
            let found = if program.components().count() > 1 {
                Some(program.clone()).filter(|program| subprocess::is_executable(program))
            } else {
                subprocess::in_path(&program.to_string_lossy(), &self.request.env)
            };
            match found {
                Some(path) => {
                    let (source, reason) = (variable.to_owned(), format!("{variable} names it"));
                    return Some(NvccCandidate { path, flags, source, reason });
                }
                None => self.out.dangling.push(Sourced::new(program, variable)),
            }
        }
        if let Some(path) = subprocess::in_path("nvcc", &self.request.env) {
            let (source, reason) = ("PATH".to_owned(), "first nvcc in PATH".to_owned());
            return Some(NvccCandidate { path, flags: Vec::new(), source, reason });
        }
        places.iter().filter(|place| place.reach < Precedence::Listed).find_map(|place| {
            let path = Some(place.root.join("bin/nvcc")).filter(|path| subprocess::is_executable(path))?;
            let reason = match place.reach {
                Precedence::Named => format!("{} names it; PATH has no nvcc", place.source),
                _ => format!("found in {}; no variable names a toolkit, and PATH has no nvcc", place.source),
            };
            Some(NvccCandidate { path, flags: Vec::new(), source: place.source.clone(), reason })
        })
    }

    /// Adds the toolkit at a place, or one more origin to a known toolkit.
    fn add_place(&mut self, place: &ToolkitPlace) -> Option<usize> {
        // Debian splits this toolkit between `/usr` and other directories.
        let apart = place.source == "/usr/lib/nvidia-cuda-toolkit";
        if apart && self.out.toolkits.iter().any(|toolkit| toolkit.found.iter().any(|found| found == "/usr")) {
            return None;
        }
        let nvcc = Some(place.root.join("bin/nvcc")).filter(|path| subprocess::is_executable(path));
        let headers = headers_in(&self.layout.include_dirs(&place.root));
        let known = self.find_known(&place.root, headers.as_ref());
        if let Some(index) = known {
            let toolkit = &mut self.out.toolkits[index];
            if !toolkit.found.contains(&place.source) {
                toolkit.found.push(place.source.clone());
            }
            toolkit.nvcc = toolkit.nvcc.take().or_else(|| nvcc.map(|path| Nvcc { path, ..Nvcc::default() }));
            self.reach[index] = self.reach[index].min(place.reach);
            return Some(index);
        }
        let cudart = self
            .layout
            .library_dirs(&place.root)
            .iter()
            .find_map(|folder| cudart_in(&self.layout, folder, &place.source));
        // `/usr` is a toolkit only if Debian installed one there.
        let splayed = place.source == "/usr";
        if nvcc.is_none() && headers.is_none() && (cudart.is_none() || splayed) {
            return None;
        }
        let limits = limits_of(headers.as_ref(), &place.root);
        self.out.toolkits.push(Toolkit {
            root: place.root.clone(),
            found: vec![place.source.clone()],
            nvcc: nvcc.map(|path| Nvcc { path, ..Nvcc::default() }),
            stated: stated_in(&place.root, &self.layout),
            headers,
            cudart,
            limits,
        });
        self.reach.push(place.reach);
        Some(self.out.toolkits.len() - 1)
    }

    /// Finds the toolkit of this root by its real directory or its real `cuda.h`.
    fn find_known(&self, root: &Path, headers: Option<&ToolkitHeaders>) -> Option<usize> {
        let real = |path: &Path| path.canonicalize().ok();
        let (root, header) = (real(root), headers.and_then(|headers| real(&headers.path)));
        self.out.toolkits.iter().position(|known| {
            let same_root = root.is_some() && real(&known.root) == root;
            let same_header = header.is_some() && known.headers.as_ref().and_then(|own| real(&own.path)) == header;
            same_root || same_header
        })
    }

    /// Runs all programs at once: the nvcc in use, those of toolkits without a version, the host compiler, and the
    /// driver if `native` requires it.
    fn run_tools(&mut self, candidate: Option<&NvccCandidate>, flags: &ProjectNvccFlags) {
        let variables = self.request.env.for_child();
        let variables = variables.as_ref();
        let patience = self.request.patience;
        let mut asked: Vec<(Option<usize>, PathBuf, bool)> = Vec::new();
        if let Some(candidate) = candidate {
            asked.push((None, candidate.path.clone(), needs_top(&candidate.path, &self.layout)));
        }
        for (index, toolkit) in self.out.toolkits.iter().enumerate() {
            let Some(nvcc) = &toolkit.nvcc else { continue };
            let detected = toolkit.header_version().is_some() || toolkit.stated.is_some();
            if !detected && candidate.is_none_or(|candidate| !same_file(&candidate.path, &nvcc.path)) {
                asked.push((Some(index), nvcc.path.clone(), false));
            }
        }
        let host = self.host_candidate(candidate, flags);
        let host_of_cc = host.as_ref().and_then(|(own, _)| self.host_of_cc_candidate(own));
        let native =
            self.out.archs.wants_native().then(|| archs::who_knows(&self.request.env, self.request.given.as_ref()));
        let (answers, hosts, gpus) = std::thread::scope(|scope| {
            let running: Vec<_> = asked
                .iter()
                .map(|(_, path, top)| scope.spawn(move || ask_nvcc(path, *top, variables, patience)))
                .collect();
            let hosts = [host, host_of_cc].map(|host| {
                let (path, source) = host?;
                Some(scope.spawn(move || {
                    let output =
                        subprocess::run_with_timeout(&path, &["--version"], variables, patience).unwrap_or_default();
                    let (family, version) = host_compiler::parse_version_output(&output.out);
                    HostCompiler { path, source, family, version }
                }))
            });
            let gpus = native.map(|who| scope.spawn(move || archs::ask_gpus(who, variables, patience)));
            let answers: Vec<_> = running.into_iter().map(|thread| thread.join().unwrap_or_default()).collect();
            let hosts = hosts.map(|thread| thread.and_then(|thread| thread.join().ok()));
            (answers, hosts, gpus.and_then(|thread| thread.join().ok()))
        });
        [self.out.host, self.out.host_of_cc] = hosts;
        if let Some(gpus) = gpus {
            self.out.archs.native = Some(gpus);
        }
        for ((index, ..), nvcc) in asked.into_iter().zip(answers) {
            match index {
                Some(index) => self.out.toolkits[index].nvcc = Some(nvcc),
                None => self.compiler = Some(nvcc),
            }
        }
    }

    /// Adds the compiler in use to its toolkit, which may be new: the root that nvcc uses.
    fn assign_compiler(&mut self, candidate: &NvccCandidate) -> usize {
        let mut nvcc = self.compiler.take().unwrap_or_default();
        nvcc.compiler_bindir = profile_of(&candidate.path);
        // Debian's nvcc uses a directory without headers as TOP; they are next to the script.
        let top = nvcc.top.clone();
        let bare = top.as_ref().is_some_and(|top| headers_in(&self.layout.include_dirs(top)).is_none());
        let beside = || root_beside(&candidate.path, &self.layout);
        let root = if bare { beside().or(top) } else { top.or_else(beside) };
        let root = root.unwrap_or_else(|| {
            let real = candidate.path.canonicalize().unwrap_or_else(|_| candidate.path.clone());
            real.parent().and_then(Path::parent).unwrap_or(Path::new("/")).to_owned()
        });
        let place = ToolkitPlace { root, source: candidate.source.clone(), reach: Precedence::Named };
        let index = self.add_place(&place).unwrap_or_else(|| {
            self.out.toolkits.push(Toolkit {
                root: place.root.clone(),
                found: vec![candidate.source.clone()],
                stated: stated_in(&place.root, &self.layout),
                ..Toolkit::default()
            });
            self.reach.push(Precedence::Named);
            self.out.toolkits.len() - 1
        });
        let toolkit = &mut self.out.toolkits[index];
        // The origin of the compiler comes first.
        toolkit.found.retain(|source| *source != candidate.source);
        toolkit.found.insert(0, candidate.source.clone());
        toolkit.nvcc = Some(nvcc);
        index
    }

    /// Selects the host compiler that this nvcc would call, and its source.
    fn host_candidate(&self, candidate: Option<&NvccCandidate>, flags: &ProjectNvccFlags) -> Option<(PathBuf, String)> {
        let candidate = candidate?;
        let given = self.request.given.as_ref();
        if given.is_some_and(|given| !given.compiles) {
            return None;
        }
        let named = flags
            .host_compiler()
            .or_else(|| {
                let host = given?.host.as_ref()?;
                Some(Sourced::new(host.value.to_str()?.to_owned(), host.source.clone()))
            })
            .or_else(|| Some(Sourced::new(self.request.env.var("NVCC_CCBIN")?, "NVCC_CCBIN")))
            // Build scripts of cargo pass this one on; nvcc itself does not read it.
            .or_else(|| {
                Some(Sourced::new(self.request.env.var("CUDAHOSTCXX").filter(|_| given.is_none())?, "CUDAHOSTCXX"))
            })
            .or_else(|| {
                let folder = profile_of(&candidate.path)?;
                Some(Sourced::new(folder.to_string_lossy().into_owned(), "nvcc.profile beside nvcc"))
            });
        let in_path = |names: &[String]| names.iter().find_map(|name| subprocess::in_path(name, &self.request.env));
        let Some(named) = named else {
            // nvcc calls gcc for C++ too.
            let names = if self.layout.cross {
                self.layout.triplets.iter().map(|triplet| format!("{triplet}-g++")).collect()
            } else {
                vec!["gcc".to_owned()]
            };
            return Some((in_path(&names)?, host_compiler::UNNAMED.to_owned()));
        };
        let value = PathBuf::from(&named.value);
        let program = if value.is_dir() {
            ["gcc", "g++"].iter().map(|name| value.join(name)).find(|program| subprocess::is_executable(program))
        } else if value.components().count() > 1 {
            Some(value)
        } else {
            in_path(&[named.value])
        };
        Some((program?, named.source))
    }

    /// Selects the compiler that the `cc` crate passes to nvcc with `-ccbin`, if it differs from nvcc's own choice.
    fn host_of_cc_candidate(&self, own: &Path) -> Option<(PathBuf, String)> {
        if self.request.given.is_some() {
            return None;
        }
        let in_path = |name: &str| subprocess::in_path(name, &self.request.env);
        let target = &self.request.target;
        let kind = if self.layout.cross { "TARGET_CXX" } else { "HOST_CXX" };
        let names = [format!("CXX_{target}"), format!("CXX_{}", target.replace('-', "_")), kind.into(), "CXX".into()];
        let named = names.into_iter().find_map(|name| Some((self.request.env.var(&name)?, name)));
        let (program, source) = match named {
            Some((value, name)) => {
                let (program, _) = nvcc::parse_command(&value, Path::is_file)?;
                let found = if program.components().count() > 1 { program } else { in_path(program.to_str()?)? };
                (found, name)
            }
            // For another target it uses a compiler with the same prefix.
            None if self.layout.cross => return None,
            None => (in_path("c++")?, "c++, first in PATH".to_owned()),
        };
        (!host_compiler::is_same_compiler(&program, own)).then_some((program, source))
    }

    /// Selects the headers; see the module.
    fn choose_headers(&mut self) {
        let has = |index: &usize| self.out.toolkits[*index].headers.is_some();
        let of =
            |variable: &str| self.out.toolkits.iter().position(|toolkit| toolkit.found.iter().any(|f| f == variable));
        let mut named: Vec<(usize, String)> =
            ROOTS.iter().filter_map(|name| Some((of(name).filter(has)?, (*name).to_owned()))).collect();
        let chosen = if named.is_empty() {
            let own = self.out.compiler.as_ref().map(|choice| choice.index).filter(has);
            own.map(|index| (index, "the compiler's own".to_owned())).or_else(|| {
                let usual =
                    (0..self.reach.len()).find(|index| self.reach[*index] < Precedence::Listed && has(index))?;
                let place = &self.out.toolkits[usual].found[0];
                Some((usual, format!("found in {place}; no variable names a toolkit")))
            })
        } else {
            let (index, variable) = named.remove(0);
            Some((index, format!("{variable} names it")))
        };
        let Some((index, reason)) = chosen else { return };
        named.retain(|(other, _)| *other != index);
        self.out.also_named = named;
        self.out.headers = Some(Selection { index, reason });
    }

    /// Moves the toolkits in use to the front; the order of the others does not change.
    fn in_use_first(&mut self) {
        let used: Vec<usize> =
            [&self.out.compiler, &self.out.headers].into_iter().flatten().map(|choice| choice.index).collect();
        let mut order: Vec<usize> = (0..self.out.toolkits.len()).collect();
        order.sort_by_key(|index| used.iter().position(|used| used == index).unwrap_or(usize::MAX));
        let new_place = |old: usize| order.iter().position(|index| *index == old).unwrap_or(old);
        for choice in [&mut self.out.compiler, &mut self.out.headers].into_iter().flatten() {
            choice.index = new_place(choice.index);
        }
        for (index, _) in &mut self.out.also_named {
            *index = new_place(*index);
        }
        let mut old: Vec<_> = std::mem::take(&mut self.out.toolkits).into_iter().map(Some).collect();
        self.out.toolkits = order.iter().filter_map(|index| old[*index].take()).collect();
        self.reach = order.iter().map(|index| self.reach[*index]).collect();
    }

    /// Returns rustc's flags, if rustc builds.
    fn rust_flags(&self) -> Vec<(String, Vec<String>)> {
        if self.request.given.is_some() { Vec::new() } else { rust_flags(&self.request.env, &self.request.target) }
    }

    /// Returns the directories that the user specifies, which the linker searches before those of a toolkit.
    fn link_first(&self) -> Vec<SearchDir> {
        let given = self.request.given.as_ref();
        let mut folders: Vec<SearchDir> = given.map(BuildSystemFacts::link_first).unwrap_or_default();
        for (source, flags) in self.rust_flags() {
            let mut flags = flags.iter();
            while let Some(flag) = flags.next() {
                let Some(rest) = flag.strip_prefix("-L") else { continue };
                let value = if rest.is_empty() { flags.next().map_or("", String::as_str) } else { rest };
                let (kind, path) = value.split_once('=').unwrap_or(("all", value));
                if matches!(kind, "native" | "all") && !path.is_empty() {
                    let source = format!("-L in {source}");
                    folders.push(SearchDir { path: path.into(), source, reach: Precedence::Named });
                }
            }
        }
        // gcc as a cross compiler does not read LIBRARY_PATH.
        let variables: &[&str] = match given {
            _ if self.layout.cross => &[],
            Some(_) => &["LIBRARY_PATH"],
            None => &["LIBRARY_PATH", "CUDA_LIBRARY_PATH"],
        };
        for variable in variables {
            for path in self.request.env.path_list(variable) {
                folders.push(SearchDir { path, source: (*variable).to_owned(), reach: Precedence::Named });
            }
        }
        folders
    }

    /// Selects the libcudart on the linker's search path.
    fn detect_cudart(&mut self) {
        let first = self.link_first();
        let on_the_way = first.iter().find_map(|folder| cudart_in(&self.layout, &folder.path, &folder.source));
        let own = || {
            [&self.out.headers, &self.out.compiler]
                .into_iter()
                .flatten()
                .find_map(|choice| self.out.toolkits[choice.index].cudart.clone())
                .map(|cudart| LinkedCudart { source: OWN_FOLDER.to_owned(), ..cudart })
        };
        let system = || {
            let root = path_below(&self.request.system_root, "/usr");
            self.layout
                .library_dirs(&root)
                .iter()
                .find_map(|folder| cudart_in(&self.layout, folder, "the system's folder"))
        };
        self.out.cudart = on_the_way.or_else(own).or_else(system);
    }

    /// Finds every place with cuDNN, and selects the one in use.
    fn detect_cudnn(&mut self) {
        let used: Vec<usize> =
            [&self.out.headers, &self.out.compiler].into_iter().flatten().map(|choice| choice.index).collect();
        let mut toolkits: Vec<usize> = (0..self.out.toolkits.len()).collect();
        toolkits.sort_by_key(|index| used.iter().position(|used| used == index).unwrap_or(usize::MAX));
        let toolkits: Vec<ToolkitPlace> = toolkits
            .into_iter()
            // System directories keep their own names, and those of virtual environments too.
            .filter(|index| used.contains(index) || self.reach[*index] < Precedence::Listed)
            .map(|index| {
                let toolkit = &self.out.toolkits[index];
                let reach = if used.contains(&index) { Precedence::Usual } else { Precedence::Listed };
                ToolkitPlace { root: toolkit.root.clone(), source: toolkit.root.display().to_string(), reach }
            })
            .filter(|place| place.root != path_below(&self.request.system_root, "/usr"))
            .collect();
        let search = match &self.request.given {
            Some(given) => self.given_library(given),
            None => installs::search_installs(
                &self.request.env,
                &self.request.system_root,
                &self.layout,
                &toolkits,
                &self.link_first(),
            ),
        };
        let found = installs::read_installs(&search, &self.layout);
        self.out.library_headers = found.headers;
        self.out.library_file = found.library;
        self.out.installs = found.all;
    }

    /// Finds stub directories on the search path of the dynamic linker.
    fn detect_stubs(&mut self) {
        let mut named: Vec<Sourced<PathBuf>> = self
            .request
            .env
            .path_list("LD_LIBRARY_PATH")
            .into_iter()
            .map(|path| Sourced::new(path, "LD_LIBRARY_PATH"))
            .collect();
        for (source, flags) in self.rust_flags() {
            named.extend(rpath_dirs(&flags).into_iter().map(|path| Sourced::new(path, format!("-rpath in {source}"))));
        }
        // CMake has read it when it configured; the linked file shows the result.
        if let Some(flags) = self.request.env.var("LDFLAGS").filter(|_| self.request.given.is_none()) {
            named.extend(
                rpath_dirs(&split_words(&flags)).into_iter().map(|path| Sourced::new(path, "-rpath in LDFLAGS")),
            );
        }
        named.retain(|fact| fact.value.file_name().is_some_and(|name| name == "stubs") && fact.value.is_dir());
        self.out.stubs = named;
    }

    fn read_files(&mut self) {
        let out = &self.out;
        let mut files: BTreeSet<PathBuf> = BTreeSet::new();
        if let Some(toolkit) = out.compiling_toolkit() {
            files.extend(toolkit.nvcc.as_ref().map(|nvcc| nvcc.path.clone()));
            files.extend(toolkit.headers.as_ref().map(|headers| headers.path.clone()));
            files.extend(toolkit.limits.as_ref().map(|limits| PathBuf::from(&limits.source)));
        }
        for toolkit in
            out.including_toolkit().into_iter().chain(out.also_named.iter().map(|(index, _)| &out.toolkits[*index]))
        {
            files.extend(toolkit.headers.as_ref().map(|headers| headers.path.clone()));
        }
        files.extend(out.cudart.as_ref().map(|cudart| cudart.path.clone()));
        files.extend(out.library_headers_used().map(|headers| headers.path.clone()));
        files.extend(out.library_used().map(|library| library.path.clone()));
        files.extend([&out.host, &out.host_of_cc].into_iter().flatten().map(|host| host.path.clone()));
        self.out.files = files;
    }
}

/// Returns rustc's flags from variables, each with its variable, in cargo's order of preference. As in cargo, the
/// first one that is set wins.
fn rust_flags(env: &Env, target: &str) -> Vec<(String, Vec<String>)> {
    if let Some(encoded) = env.var("CARGO_ENCODED_RUSTFLAGS") {
        return vec![("RUSTFLAGS".to_owned(), encoded.split('\u{1f}').map(str::to_owned).collect())];
    }
    let of_target = format!("CARGO_TARGET_{}_RUSTFLAGS", target.to_uppercase().replace(['-', '.'], "_"));
    let plain = |name: &str| {
        let flags = env.var(name)?.split_whitespace().map(str::to_owned).collect();
        Some((name.to_owned(), flags))
    };
    plain("RUSTFLAGS").map_or_else(
        || [plain(&of_target), plain("CARGO_BUILD_RUSTFLAGS")].into_iter().flatten().collect(),
        |flags| vec![flags],
    )
}

/// Returns the directories of `-rpath` in flags of a linker or of rustc: `-Wl,-rpath,DIR`, `-Wl,-rpath=DIR`,
/// `link-arg=-Wl,-rpath,DIR`.
fn rpath_dirs(flags: &[String]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // `link-args` contains several, separated by blanks; elsewhere a blank is part of a path.
    let divides = |flag: &str| if flag.contains("link-args") { &[',', '=', ' '][..] } else { &[',', '='] };
    let words: Vec<&str> = flags.iter().flat_map(|flag| flag.split(divides(flag))).collect();
    for pair in words.windows(2) {
        if matches!(pair[0], "-rpath" | "--rpath" | "-R") {
            found.extend(pair[1].split(':').filter(|path| !path.is_empty()).map(PathBuf::from));
        }
    }
    found
}

/// Returns true if nvcc must be run to determine its root: always for scripts (a wrapper can be anywhere), for programs
/// only without headers next to them.
fn needs_top(nvcc: &Path, layout: &Layout) -> bool {
    use std::io::Read;
    let mut magic = [0; 4];
    let program =
        files::open_regular(nvcc).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && &magic == b"\x7fELF";
    !program || root_beside(nvcc, layout).is_none()
}

/// Returns the root of an nvcc from the headers next to it: first with the path as named (nvcc does not follow links
/// to find its profile), then with links resolved.
fn root_beside(nvcc: &Path, layout: &Layout) -> Option<PathBuf> {
    let real = nvcc.canonicalize().ok();
    [Some(nvcc), real.as_deref()].into_iter().flatten().find_map(|nvcc| {
        let root = nvcc.parent()?.parent()?;
        let plain = root.join("include/cuda.h").is_file();
        (plain || headers_in(&layout.include_dirs(root)).is_some()).then(|| root.to_owned())
    })
}

fn profile_of(nvcc: &Path) -> Option<PathBuf> {
    let here = nvcc.parent()?;
    nvcc::parse_profile(&read_lossy(&here.join("nvcc.profile"))?, here)
}

fn same_file(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().ok().is_some_and(|real| other.canonicalize().ok() == Some(real))
}

/// Runs an nvcc to get its release and, with `top`, its root.
fn ask_nvcc(
    path: &Path,
    top: bool,
    variables: Option<&std::collections::BTreeMap<String, std::ffi::OsString>>,
    patience: Duration,
) -> Nvcc {
    let mut nvcc = Nvcc { path: path.to_owned(), ..Nvcc::default() };
    let version = subprocess::run_with_timeout(path, &["--version"], variables, patience).and_then(|answer| {
        nvcc::parse_version(&answer.out).map_err(|trouble| {
            let Some(failed) = &answer.failed else { return trouble };
            let mut lines = answer.err.lines().chain(answer.out.lines()).map(str::trim);
            let output = lines.find(|line| !line.is_empty()).map_or("it says nothing".to_owned(), nvcc::clip_line);
            format!("fails when asked for --version, with {failed}: {output}")
        })
    });
    match version {
        Ok(version) => nvcc.version = Some(version),
        // A program that does not answer is not run again.
        Err(trouble) => {
            nvcc.trouble = Some(trouble);
            return nvcc;
        }
    }
    if top {
        // The file need not exist: nothing is compiled, and the answer is on either stream.
        let detected = subprocess::run_with_timeout(path, &["--dryrun", "cudaguard.cu"], variables, patience)
            .ok()
            .and_then(|answer| {
                let detected = nvcc::parse_dryrun(&format!("{}\n{}", answer.err, answer.out));
                let by_include = || {
                    let folder = detected.includes.iter().find(|folder| folder.join("cuda.h").is_file())?;
                    let root =
                        folder.ancestors().find(|root| root.join("bin").is_dir() || root.join("nvvm").is_dir())?;
                    Some(root.to_owned())
                };
                let top = detected.top.clone().filter(|top| top.is_dir()).or_else(by_include)?;
                // `/usr/local/cuda/bin/..` is `/usr/local/cuda`.
                Some(if top.ends_with("bin/..") { top.parent()?.parent()?.to_owned() } else { top })
            });
        nvcc.top = detected.or_else(|| {
            let called = nvcc::parse_wrapper(&read_start(path)?).filter(|called| subprocess::is_executable(called))?;
            Some(called.parent()?.parent()?.to_owned())
        });
    }
    nvcc
}
