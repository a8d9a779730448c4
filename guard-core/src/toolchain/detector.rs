//! Detects the toolkits, the compilers and the libraries that a build uses.

mod libraries;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::archs::{DeclaredArchs, ProjectNvccFlags};
use super::build_system::{BuildSystem, BuildSystemFacts};
use super::host_compiler::HostCompiler;
use super::nvcc::Nvcc;
use super::places::{Layout, Precedence, ROOTS, ToolkitPlace};
use super::toolkit_files::{cudart_in, headers_in, limits_of, read_lossy, read_start, stated_in};
use super::{
    DetectOptions, Detector, NvccCandidate, Selection, Sourced, Toolchain, Toolkit, ToolkitHeaders, archs,
    host_compiler, nvcc, pkg_config, places,
};
use crate::sys::{files, subprocess};

pub(super) fn detect_toolchain(request: &DetectOptions) -> Toolchain {
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
    pub(super) fn add_place(&mut self, place: &ToolkitPlace) -> Option<usize> {
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
    pub(super) fn find_known(&self, root: &Path, headers: Option<&ToolkitHeaders>) -> Option<usize> {
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
                Some(Sourced::new(folder.to_string_lossy().into_owned(), "nvcc.profile next to nvcc"))
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

pub(super) fn same_file(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().ok().is_some_and(|real| other.canonicalize().ok() == Some(real))
}

/// Runs an nvcc to get its release and, with `top`, its root.
pub(super) fn ask_nvcc(
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
            let output = lines.find(|line| !line.is_empty()).map_or("it prints nothing".to_owned(), nvcc::clip_line);
            format!("fails with --version: {failed}: {output}")
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
