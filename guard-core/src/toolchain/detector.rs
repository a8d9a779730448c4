//! Detects the toolkits, the compilers and the libraries that a build uses.

mod libraries;
mod selection;

use std::collections::{BTreeMap, BTreeSet};
use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::archs::{DeclaredArchs, Native, ProjectNvccFlags};
use super::build_system::BuildSystem;
use super::host_compiler::HostCompiler;
use super::math_headers::{self, MathConflict};
use super::nvcc::{Nvcc, NvccCandidate};
use super::places::{Layout, Precedence, ToolkitPlace};
use super::toolkit_files::{headers_in, read_lossy, read_start};
use super::toolkits::{Detector, ToolkitList};
use super::{
    DetectOptions, SelectionReason, Sourced, Toolchain, Toolkit, archs, host_compiler, nvcc, pkg_config, places,
};
use crate::knowledge::cudnn;
use crate::knowledge::tables::{self, CcSupport};
use crate::model::version::Version;
use crate::sys::files;
use crate::sys::subprocess::{self, ProcessOutput};

use selection::NvccAnswers;

/// Detects everything. Each step returns a value that later steps get.
pub(super) fn detect_toolchain(request: &DetectOptions) -> Toolchain {
    let given = request.given.as_ref();
    let detector = Detector { request, layout: Layout::for_target(&request.target, std::env::consts::ARCH) };
    let places = detector.toolkit_places();
    let (candidate, dangling) = detector.compiler_in_use(&places);
    let flags = ProjectNvccFlags::read(&request.env, candidate.as_ref(), given);
    let declared = DeclaredArchs::read(request, &flags);
    let toolkits = ToolkitList::at_places(&places, &detector.layout);
    let answers = detector.run_tools(&toolkits, candidate.as_ref(), &flags, declared.wants_native());
    let used = detector.choose_toolkits(toolkits, candidate, answers.nvccs);
    let cudart = detector.find_cudart(&used);
    let cudnn = detector.find_cudnn(&used);
    let [host, host_of_cc] = answers.hosts;
    // nvcc's limits do not apply to the compiler of sources that nvcc does not compile.
    let other_host = given.filter(|given| !given.compiles);
    let found: Vec<&String> = used.list.toolkits.iter().flat_map(|toolkit| &toolkit.found).collect();
    // A build system names only what it uses.
    let missing = places
        .iter()
        .filter(|place| place.reach == Precedence::Named)
        .filter(|place| !place.root.is_dir() || given.is_none() && !found.contains(&&place.source));
    let missing = missing.map(|place| Sourced::new(place.root.clone(), place.source.clone()));
    let found: Vec<&String> = cudnn.all.iter().flat_map(|install| &install.found).collect();
    let roots =
        cudnn::ROOT_VARIABLES.iter().filter(|name| given.is_none() && !found.iter().any(|source| source == name));
    let missing: Vec<_> =
        missing.chain(roots.filter_map(|name| Some(Sourced::new(request.env.path(name)?, *name)))).collect();
    let toolchain = Toolchain {
        target: request.target.clone(),
        release: request.release,
        by: given.map_or(BuildSystem::Cargo, |given| given.by),
        toolkits: used.list.toolkits,
        compiler: used.compiler,
        headers: used.headers,
        also_named: used.also_named,
        cudart,
        installs: cudnn.all,
        library_headers: cudnn.headers,
        library_file: cudnn.library,
        host: other_host.map_or(host, |given| given.host_known.clone()),
        host_of_cc,
        any_host: other_host.is_some() || flags.allows_any_host(),
        math_conflict: None,
        sufficient: None,
        archs: DeclaredArchs { native: answers.native, ..declared },
        stubs: detector.find_stubs(),
        dangling: dangling.into_iter().chain(missing).collect::<Vec<_>>(),
        files: Vec::new(),
    };
    let release = toolchain.toolkit_version();
    let math_conflict = detector.find_math_conflict(&toolchain);
    let toolchain = Toolchain { archs: toolchain.archs.clone().resolved(release), math_conflict, ..toolchain };
    Toolchain { sufficient: detector.find_sufficient(&toolchain), files: used_files(&toolchain), ..toolchain }
}

/// The answers of the programs that a detection runs.
struct ToolAnswers {
    nvccs: NvccAnswers,
    /// The compiler that nvcc would call, and the one that the `cc` crate passes to it.
    hosts: [Option<HostCompiler>; 2],
    native: Option<Native>,
}

impl Detector<'_> {
    fn toolkit_places(&self) -> Vec<ToolkitPlace> {
        if let Some(given) = &self.request.given {
            return given.toolkit_places();
        }
        let DetectOptions { env, system_root, .. } = self.request;
        let mut places = places::toolkit_places(env, system_root);
        places.extend(pkg_config::toolkit_places(env, system_root, &self.layout));
        places
    }

    /// Selects the nvcc that a build would run. Also returns the variables that name a missing nvcc.
    fn compiler_in_use(&self, places: &[ToolkitPlace]) -> (Option<NvccCandidate>, Vec<Sourced<PathBuf>>) {
        if let Some(given) = &self.request.given {
            return (given.nvcc_candidate(), Vec::new());
        }
        let mut dangling = Vec::new();
        for variable in ["NVCC", "CUDACXX"] {
            let Some(value) = self.request.env.var(variable) else { continue };
            let Some((program, flags)) = self.parse_command(&value) else { continue };
            // CMake can compile CUDA with clang too; then only the roots show the toolkit.
            if program.file_name().is_some_and(|name| name.to_string_lossy().contains("clang")) {
                continue;
            }
            match subprocess::find_program(&program, &self.request.env) {
                Some(path) => {
                    let (source, reason) = (variable.to_owned(), SelectionReason::Named(variable.to_owned()));
                    return (Some(NvccCandidate { path, flags, source, reason }), dangling);
                }
                None => dangling.push(Sourced::new(program, variable)),
            }
        }
        if let Some(path) = subprocess::in_path("nvcc", &self.request.env) {
            let (source, reason) = ("PATH".to_owned(), SelectionReason::Other("first nvcc in PATH".to_owned()));
            return (Some(NvccCandidate { path, flags: Vec::new(), source, reason }), dangling);
        }
        let usual = places.iter().filter(|place| place.reach < Precedence::Listed).find_map(|place| {
            let path = Some(place.root.join("bin").join(format!("nvcc{EXE_SUFFIX}")))
                .filter(|path| subprocess::is_executable(path))?;
            let reason = match place.reach {
                Precedence::Named => format!("{} names it; PATH has no nvcc", place.source),
                _ => format!("found in {}; no variable names a toolkit, and PATH has no nvcc", place.source),
            };
            Some(NvccCandidate {
                path,
                flags: Vec::new(),
                source: place.source.clone(),
                reason: SelectionReason::Other(reason),
            })
        });
        (usual, dangling)
    }

    /// Splits the value of a variable into program and flags.
    fn parse_command(&self, value: &str) -> Option<(PathBuf, Vec<String>)> {
        nvcc::parse_command(value, |path| self.request.env.current_dir().join(path).is_file())
    }

    /// Runs all programs at once: the nvcc in use, those of toolkits without a version, the host compiler, and the
    /// driver if `native` requires it.
    fn run_tools(
        &self,
        toolkits: &ToolkitList,
        candidate: Option<&NvccCandidate>,
        flags: &ProjectNvccFlags,
        wants_native: bool,
    ) -> ToolAnswers {
        let variables = self.request.env.for_child();
        let patience = self.request.patience;
        let mut asked: Vec<(Option<usize>, PathBuf, bool)> = Vec::new();
        if let Some(candidate) = candidate {
            asked.push((None, candidate.path.clone(), needs_top(&candidate.path, &self.layout)));
        }
        for (index, toolkit) in toolkits.toolkits.iter().enumerate() {
            let Some(nvcc) = &toolkit.nvcc else { continue };
            let detected = toolkit.header_version().is_some() || toolkit.stated.is_some();
            if !detected && candidate.is_none_or(|candidate| !same_file(&candidate.path, &nvcc.path)) {
                asked.push((Some(index), nvcc.path.clone(), false));
            }
        }
        let host = self.host_candidate(candidate, flags);
        let host_of_cc = host.as_ref().and_then(|(own, _)| self.host_of_cc_candidate(own));
        let native = wants_native.then(|| archs::who_knows(&self.request.env, self.request.given.as_ref()));
        let mut nvccs: Vec<Nvcc> = vec![Nvcc::default(); asked.len()];
        let (mut hosts, mut gpus) = ([None, None], None);
        let mut jobs: Vec<Box<dyn FnOnce() + Send + '_>> = Vec::new();
        for ((_, path, top), nvcc) in asked.iter().zip(&mut nvccs) {
            jobs.push(Box::new(|| *nvcc = ask_nvcc(path, *top, variables, patience)));
        }
        for (host, answer) in [host, host_of_cc].into_iter().zip(&mut hosts) {
            let Some((path, source)) = host else { continue };
            jobs.push(Box::new(move || {
                let output =
                    subprocess::run_with_timeout(&path, &["--version"], variables, patience).unwrap_or_default();
                let (family, version) = host_compiler::parse_version_output(&output.out);
                *answer = Some(HostCompiler { path, source, family, version });
            }));
        }
        if let Some(who) = native {
            jobs.push(Box::new(|| gpus = Some(archs::ask_gpus(who, variables, patience))));
        }
        std::thread::scope(|scope| {
            for job in jobs {
                scope.spawn(job);
            }
        });
        let mut answers = NvccAnswers::default();
        for ((index, ..), nvcc) in asked.into_iter().zip(nvccs) {
            match index {
                Some(index) => answers.others.push((index, nvcc)),
                None => answers.in_use = Some(nvcc),
            }
        }
        ToolAnswers { nvccs: answers, hosts, native: gpus }
    }

    fn find_math_conflict(&self, toolchain: &Toolchain) -> Option<MathConflict> {
        let limits = toolchain.compiling_toolkit()?.limits.as_ref();
        let (variables, patience) = (self.request.env.for_child(), self.request.patience);
        let by_nvcc = math_headers::detect_conflict(limits, toolchain.host.as_ref(), variables, patience)?;
        // Only the build script decides which of the two compilers is used.
        if toolchain.host_of_cc.is_some() {
            math_headers::detect_conflict(limits, toolchain.host_of_cc.as_ref(), variables, patience)?;
        }
        Some(by_nvcc)
    }

    /// Returns the oldest installed toolkit that compiles for all architectures, if the one in use is too old for one.
    fn find_sufficient(&self, toolchain: &Toolchain) -> Option<Sourced<Version>> {
        let release = toolchain.compiling_toolkit()?.version()?.value;
        let targets = &toolchain.archs.in_force;
        if !targets.iter().any(|target| matches!(tables::can_make(release, *target), CcSupport::TooNew { .. })) {
            return None;
        }
        let DetectOptions { env, system_root, given, .. } = self.request;
        // Facts of a build system name one toolkit only.
        let usual = given
            .as_ref()
            .map(|_| ToolkitList::at_places(&places::toolkit_places(env, system_root), &self.layout).toolkits);
        let installed = usual.as_ref().unwrap_or(&toolchain.toolkits).iter().filter(|toolkit| toolkit.nvcc.is_some());
        let versions = installed
            .filter_map(|toolkit| Some(Sourced::new(toolkit.version()?.value, toolkit.root.display().to_string())));
        let makes_all =
            |version: Version| targets.iter().all(|target| tables::can_make(version, *target) == CcSupport::Made);
        versions.filter(|one| makes_all(one.value)).min_by_key(|one| one.value)
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
                let dir = profile_of(&candidate.path)?;
                Some(Sourced::new(dir.to_string_lossy().into_owned(), "nvcc.profile next to nvcc"))
            });
        let Some(named) = named else {
            let names = if self.layout.cross {
                self.layout.triplets.iter().map(|triplet| format!("{triplet}-g++")).collect::<Vec<_>>()
            } else {
                // nvcc calls gcc for C++ too.
                vec![if cfg!(windows) { "cl" } else { "gcc" }.to_owned()]
            };
            let program = names.iter().find_map(|name| subprocess::in_path(name, &self.request.env))?;
            return Some((program, host_compiler::UNNAMED.to_owned()));
        };
        let value = self.request.env.current_dir().join(&named.value);
        let program = if value.is_dir() {
            ["gcc", "g++"].iter().map(|name| value.join(name)).find(|program| subprocess::is_executable(program))
        } else if Path::new(&named.value).components().count() > 1 {
            Some(value)
        } else {
            subprocess::in_path(&named.value, &self.request.env)
        };
        Some((program?, named.source))
    }

    /// Selects the compiler that the `cc` crate passes to nvcc with `-ccbin`, if it differs from nvcc's own choice.
    fn host_of_cc_candidate(&self, own: &Path) -> Option<(PathBuf, String)> {
        if self.request.given.is_some() {
            return None;
        }
        let target = &self.request.target;
        let kind = if self.layout.cross { "TARGET_CXX" } else { "HOST_CXX" };
        let names = [format!("CXX_{target}"), format!("CXX_{}", target.replace('-', "_")), kind.into(), "CXX".into()];
        let named = names.into_iter().find_map(|name| Some((self.request.env.var(&name)?, name)));
        let (program, source) = match named {
            Some((value, name)) => {
                let (program, _) = self.parse_command(&value)?;
                (subprocess::find_program(&program, &self.request.env)?, name)
            }
            // For another target it uses a compiler with the same prefix, and on Windows it finds that of Visual Studio.
            None if self.layout.cross || cfg!(windows) => return None,
            None => (subprocess::in_path("c++", &self.request.env)?, "c++, first in PATH".to_owned()),
        };
        (!host_compiler::is_same_compiler(&program, own)).then_some((program, source))
    }
}

/// Returns the files that were read for the parts in use.
fn used_files(toolchain: &Toolchain) -> Vec<PathBuf> {
    let compiling = toolchain.compiling_toolkit();
    let files = [
        compiling.and_then(|toolkit| Some(&*toolkit.nvcc.as_ref()?.path)),
        compiling.and_then(Toolkit::header_path),
        compiling.and_then(|toolkit| Some(Path::new(&toolkit.limits.as_ref()?.source))),
        toolchain.including_toolkit().and_then(Toolkit::header_path),
        toolchain.cudart.as_ref().map(|cudart| &*cudart.path),
        toolchain.library_headers_used().map(|headers| &*headers.path),
        toolchain.library_used().map(|library| &*library.path),
        toolchain.host.as_ref().map(|host| &*host.path),
        toolchain.host_of_cc.as_ref().map(|host| &*host.path),
    ];
    let also_named = toolchain.also_named.iter().filter_map(|(index, _)| toolchain.toolkits[*index].header_path());
    let files: BTreeSet<&Path> = files.into_iter().flatten().chain(also_named).collect();
    files.into_iter().map(Path::to_owned).collect()
}

/// Returns true if nvcc must be run to determine its root: always for scripts (a wrapper can be anywhere), for programs
/// only without headers next to them.
fn needs_top(nvcc: &Path, layout: &Layout) -> bool {
    use std::io::Read;
    let mut magic = [0; 4];
    let program =
        files::open_regular(nvcc).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && &magic == b"\x7fELF";
    !program || sibling_root(nvcc, layout).is_none()
}

/// Returns the root of an nvcc from the headers next to it: first with the path as named (nvcc does not follow links
/// to find its profile), then with links resolved.
fn sibling_root(nvcc: &Path, layout: &Layout) -> Option<PathBuf> {
    root_with_headers(nvcc, layout).or_else(|| root_with_headers(&nvcc.canonicalize().ok()?, layout))
}

fn root_with_headers(nvcc: &Path, layout: &Layout) -> Option<PathBuf> {
    let root = nvcc.parent()?.parent()?;
    let plain = root.join("include/cuda.h").is_file();
    (plain || headers_in(&layout.include_dirs(root)).is_some()).then(|| root.to_owned())
}

fn profile_of(nvcc: &Path) -> Option<PathBuf> {
    let here = nvcc.parent()?;
    nvcc::parse_profile(&read_lossy(&here.join("nvcc.profile"))?, here)
}

pub(super) fn same_file(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().ok().is_some_and(|real| other.canonicalize().ok() == Some(real))
}

/// Returns why nvcc prints no release, to append to its name.
fn describe_no_version(answer: &ProcessOutput) -> String {
    let Some(failed) = &answer.failed else { return nvcc::describe_no_version(&answer.out) };
    let output = format!("{}\n{}", answer.err, answer.out);
    let first = output.lines().map(str::trim).find(|line| !line.is_empty());
    let output = first.map_or("it prints nothing".to_owned(), nvcc::clip_line);
    format!("fails with --version: {failed}: {output}")
}

/// Runs an nvcc to get its release and, with `top`, its root.
pub(super) fn ask_nvcc(
    path: &Path,
    top: bool,
    variables: Option<&BTreeMap<String, OsString>>,
    patience: Duration,
) -> Nvcc {
    let mut nvcc = Nvcc { path: path.to_owned(), ..Nvcc::default() };
    match subprocess::run_with_timeout(path, &["--version"], variables, patience) {
        Ok(answer) => {
            nvcc.version = nvcc::parse_version(&answer.out);
            if nvcc.version.is_none() {
                nvcc.problem = Some(describe_no_version(&answer));
            }
        }
        Err(error) => nvcc.problem = Some(error.to_string()),
    }
    // A program that does not answer is not run again.
    if nvcc.problem.is_some() {
        return nvcc;
    }
    if top {
        // The file need not exist: nothing is compiled, and the answer is on either stream.
        let detected = subprocess::run_with_timeout(path, &["--dryrun", "cudaguard.cu"], variables, patience)
            .ok()
            .and_then(|answer| {
                let detected = nvcc::parse_dryrun(&format!("{}\n{}", answer.err, answer.out));
                let top = detected.top.clone().filter(|top| top.is_dir()).or_else(|| {
                    let dir = detected.includes.iter().find(|dir| dir.join("cuda.h").is_file())?;
                    let root = dir.ancestors().find(|root| root.join("bin").is_dir() || root.join("nvvm").is_dir())?;
                    Some(root.to_owned())
                })?;
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
