//! Detects what each crate of a graph would do in this environment: the level, the compiler and the headers that it
//! selects. Each crate has its own rules (`data/crates.toml`), which differ from those of the toolchain search.

use std::path::{Path, PathBuf};

use super::Crate;
use super::table::{CrateRow, DownloadRule, HeaderLevelRule, LevelRule, LibraryRule, Mode};
use cudaguard::internal::arch::{Arch, Suffix, Target};
use cudaguard::internal::cudnn;
use cudaguard::internal::env::Env;
use cudaguard::internal::subprocess::in_path;
use cudaguard::internal::tables::Cc;
use cudaguard::internal::toolchain::{Native, Toolchain};
use cudaguard::internal::version::{CudaVersion, Version};

/// A fact about a crate, and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetectedLevel<T> {
    /// The fact.
    pub value: T,
    /// A description of the source: `feature cuda-12080`, `nvcc in PATH`.
    pub by: String,
    /// How certain it is.
    pub chosen: Chosen,
}

/// How certain a level is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// A feature or a variable sets it, whatever the toolkit is.
    Fixed,
    /// The building environment determines it.
    Found,
    /// The environment contains no toolkit, and the crate uses the newest level that it knows.
    Assumed,
}

/// The CUDA level of a crate.
pub type CudaLevel = DetectedLevel<CudaVersion>;

/// The cuDNN level of a crate: the major, and the minor if it is known.
pub type LibraryLevel = DetectedLevel<(u32, Option<u32>)>;

/// The compiler that a crate would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrateCompiler {
    /// The program.
    pub path: PathBuf,
    /// Its release; `None` if it prints none.
    pub release: Option<Version>,
    /// The origin of its path: `PATH`, `NVCC`, `/usr/local/cuda/bin/nvcc`.
    pub by: String,
}

/// The `cuda.h` that a crate would pass to the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrateHeaders {
    /// Path of the file.
    pub path: PathBuf,
    /// Its release; `None` if it contains none.
    pub release: Option<CudaVersion>,
    /// The origin of its path: `CUDA_PATH`, `/usr/local/cuda/include`.
    pub by: String,
    /// True if the crate in whose build script it runs is known to pass these headers on.
    pub named: bool,
}

/// Source of the one architecture that a crate compiles for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchUse {
    /// A variable.
    Named {
        /// The result: machine code and PTX of one architecture.
        arch: Arch,
        /// The variable.
        variable: String,
        /// Its value.
        text: String,
    },
    /// The GPU of the building machine.
    BuildSystem {
        /// The variable that is not set.
        variable: String,
        /// The GPUs of the machine, if they were queried and answered.
        gpus: Option<Vec<Cc>>,
        /// True if the crate adds the suffix by itself.
        suffix: bool,
    },
}

/// Why a crate's build script would fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It has no bindings for the selected release.
    UnknownRelease {
        /// The release.
        asked: CudaVersion,
        /// The source of the release.
        by: String,
        /// The newest release that it knows.
        newest: CudaVersion,
        /// The variable that selects another one.
        variable: String,
    },
    /// It reads the release from nvcc, and `PATH` contains none.
    NoCompiler,
    /// It generates its bindings from `cuda.h`, and no toolkit that it searches has one of an accepted release.
    NoHeaders {
        /// The oldest release that it accepts.
        oldest: CudaVersion,
        /// The release and the source of the toolkit that a variable names, if that is too old.
        found: Option<(CudaVersion, String)>,
        /// The searched roots.
        roots: Vec<String>,
    },
    /// It compiles for the GPU that nvidia-smi reports, and nvidia-smi reports none.
    NoGpu {
        /// The variable that would name one.
        variable: String,
        /// Why nvidia-smi reports none.
        why: String,
    },
    /// Its library search finds nothing.
    NoLibraries {
        /// The searched places.
        places: Vec<String>,
    },
    /// A variable and a feature select two releases, so the crate contains two versions of its bindings.
    TwoReleases {
        /// The variable.
        variable: String,
        /// Its value.
        text: String,
        /// The feature.
        feature: String,
    },
    /// The linker does not find a library.
    NotLinked {
        /// The stem of the library.
        library: String,
        /// The directories that the build script passes to the linker.
        places: Vec<String>,
    },
    /// It downloads a library for the selected CUDA major, and there is none.
    NoDownload {
        /// The variable that selects the major.
        variable: String,
        /// Its value.
        text: String,
        /// The majors for which there is one.
        majors: Vec<u32>,
    },
    /// It has no bindings for the release of the headers.
    UnknownLibrary {
        /// The version of the header.
        asked: Version,
        /// The header.
        header: PathBuf,
        /// The versions that it has.
        known: Vec<(u32, u32)>,
    },
}

/// Behaviour of a crate in this environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrateUse {
    /// The crate.
    pub of: Crate,
    /// The CUDA release of its bindings.
    pub level: Option<CudaLevel>,
    /// The cuDNN release of its bindings.
    pub library: Option<LibraryLevel>,
    /// The compiler that it would run.
    pub compiler: Option<CrateCompiler>,
    /// The headers that it would pass to the compiler.
    pub headers: Option<CrateHeaders>,
    /// The source of its architecture, if it compiles kernels.
    pub arch: Option<ArchUse>,
    /// The CUDA major of the library that it downloads.
    pub downloaded: Option<u32>,
    /// Why its build would stop.
    pub stopped: Option<Stopped>,
}

/// Detects what these crates would do. `root` is the root of the file system, `/` except in tests. `ask_gpu`: query
/// the driver for the GPU of the builder if a crate would.
pub fn detect_crates(env: &Env, crates: &[Crate], toolchain: &Toolchain, root: &Path, ask_gpu: bool) -> Vec<CrateUse> {
    let looking = CrateDetector { env, toolchain, root, ask_gpu };
    crates.iter().map(|one| looking.detect_crate(one)).collect()
}

struct CrateDetector<'a> {
    env: &'a Env,
    toolchain: &'a Toolchain,
    root: &'a Path,
    ask_gpu: bool,
}

impl CrateDetector<'_> {
    fn detect_crate(&self, of: &Crate) -> CrateUse {
        let mut found = CrateUse {
            of: of.clone(),
            level: None,
            library: None,
            compiler: None,
            headers: None,
            arch: None,
            downloaded: None,
            stopped: None,
        };
        let Some(row) = of.table_row() else { return found };
        if let Some(rule) = &row.level {
            match self.detect_level(of, rule) {
                Ok(level) => found.level = level,
                Err(stopped) => found.stopped = Some(stopped),
            }
        }
        if let Some(rule) = &row.header_level {
            match self.detect_header_level(rule) {
                Ok(level) => found.level = Some(level),
                Err(stopped) => found.stopped = Some(stopped),
            }
        }
        if let Some(rule) = &row.library {
            match self.detect_library_level(of, rule) {
                Ok(library) => found.library = library,
                Err(stopped) => found.stopped = found.stopped.or(Some(stopped)),
            }
        }
        found.compiler = self.detect_compiler(&row.nvcc);
        found.headers = self.detect_headers(&row.headers, row.headers_for.iter().any(|one| one == of.calling_crate()));
        if let Some(rule) = &row.arch {
            match self.detect_arch(&rule.variable, rule.suffix) {
                Ok(arch) => found.arch = arch,
                Err(why) => found.stopped = Some(Stopped::NoGpu { variable: rule.variable.clone(), why }),
            }
        }
        if !row.stops_without_link.is_empty() && !self.has_libraries(&row.link) {
            found.stopped = Some(Stopped::NoLibraries { places: row.link.clone() });
        }
        if row.linker_searches && of.link_mode() == Mode::Linked {
            found.stopped = found.stopped.or_else(|| self.find_unlinked(of, row));
        }
        if let Some(rule) = row.download.as_ref().filter(|rule| self.downloads(of, rule)) {
            match self.detect_download(rule) {
                Ok(major) => found.downloaded = major,
                Err(stopped) => found.stopped = Some(stopped),
            }
        }
        found
    }

    fn detect_level(&self, of: &Crate, rule: &LevelRule) -> Result<Option<CudaLevel>, Stopped> {
        let known: Vec<CudaVersion> = of.known.iter().filter_map(|feature| rule.level_of(feature)).collect();
        let newest = known.iter().max().copied();
        let bindings = |value: CudaVersion, by: String, chosen| match newest {
            Some(newest) if !known.contains(&value) => {
                Err(Stopped::UnknownRelease { asked: value, by, newest, variable: rule.variable.clone() })
            }
            _ => Ok(Some(DetectedLevel { value, by, chosen })),
        };
        // If several features are enabled, the build script uses the newest.
        let named = of.features.iter().filter_map(|feature| Some((rule.level_of(feature)?, feature))).max();
        if let Some(text) = self.env.var(&rule.variable) {
            let variable = || rule.variable.clone();
            if let Some((value, feature)) = named.filter(|(value, _)| text != LevelRule::number_of(*value)) {
                let known = text.parse().ok().map(CudaVersion::from_int).is_some_and(|other| other != value);
                let two =
                    || Stopped::TwoReleases { variable: variable(), text: text.clone(), feature: feature.clone() };
                return if known { Err(two()) } else { Ok(None) };
            }
            let Some(value) = text.parse().ok().map(CudaVersion::from_int) else { return Ok(None) };
            return bindings(value, format!("{}={text}", rule.variable), Chosen::Fixed);
        }
        if let Some((value, feature)) = named {
            return Ok(Some(DetectedLevel { value, by: format!("feature {feature}"), chosen: Chosen::Fixed }));
        }
        if !of.features.contains(&rule.nvcc) {
            return Ok(None);
        }
        let nvcc = in_path("nvcc", self.env);
        let release = nvcc.as_ref().and_then(|nvcc| self.toolchain.release_of(self.env, nvcc));
        match (nvcc, release) {
            (Some(nvcc), Some(release)) => {
                bindings(release.into(), format!("{}, the first in PATH", nvcc.display()), Chosen::Found)
            }
            // It is unknown what the crate reads if there is no release.
            (Some(_), None) => Ok(None),
            (None, _) => {
                let assumes = rule.newest.as_ref().is_some_and(|feature| of.features.contains(feature));
                match newest.filter(|_| assumes) {
                    Some(value) => Ok(Some(DetectedLevel {
                        value,
                        by: "no nvcc in PATH: the newest known".to_owned(),
                        chosen: Chosen::Assumed,
                    })),
                    None => Err(Stopped::NoCompiler),
                }
            }
        }
    }

    /// Searches for `cuda.h` as `cuda-bindings` does (`build.rs:144-277` of 0.5.0).
    fn detect_header_level(&self, rule: &HeaderLevelRule) -> Result<CudaLevel, Stopped> {
        let tree = self.env.var(&rule.target).filter(|tree| !tree.trim().is_empty());
        let trees: &[&str] = if self.toolchain.target.starts_with("aarch64") {
            &["sbsa-linux", "aarch64-linux"]
        } else {
            &["x86_64-linux"]
        };
        let dirs: Vec<String> = if let Some(tree) = tree {
            vec![format!("targets/{tree}/include")]
        } else {
            let below = trees.iter().map(|tree| format!("targets/{tree}/include"));
            std::iter::once("include".to_owned()).chain(below).collect()
        };
        let mut too_old = None;
        for root in &rule.roots {
            let Some(path) = self.expand_place(root) else { continue };
            let file = dirs.iter().map(|dir| path.join(dir).join("cuda.h")).find(|file| file.is_file());
            let release = file.as_deref().and_then(cudaguard::internal::toolchain::cuda_h_release);
            let by = format!("cuda.h of {} ({})", path.display(), place_source(root));
            match release {
                Some(value) if value >= rule.oldest => {
                    return Ok(DetectedLevel { value, by, chosen: Chosen::Found });
                }
                Some(value) if root.starts_with('$') => too_old = Some((value, by)),
                _ => {}
            }
            if root.starts_with('$') {
                break;
            }
        }
        Err(Stopped::NoHeaders { oldest: rule.oldest, found: too_old, roots: rule.roots.clone() })
    }

    fn detect_library_level(&self, of: &Crate, rule: &LibraryRule) -> Result<Option<LibraryLevel>, Stopped> {
        let (headers, places, newest) = match rule {
            LibraryRule::Fixed { feature, major, .. } => {
                let on = of.features.contains(feature);
                let fixed_level =
                    || DetectedLevel { value: (*major, None), by: format!("feature {feature}"), chosen: Chosen::Fixed };
                return Ok(on.then(fixed_level));
            }
            LibraryRule::Named { headers, places, newest, .. } => (headers, places, newest),
        };
        let named = of.features.iter().filter_map(|feature| Some((rule.level_of(feature)?, feature))).max();
        if let Some(((major, minor), feature)) = named {
            let by = format!("feature {feature}");
            return Ok(Some(DetectedLevel { value: (major, Some(minor)), by, chosen: Chosen::Fixed }));
        }
        if !of.features.contains(headers) {
            return Ok(None);
        }
        let dirs: Vec<PathBuf> = places.iter().filter_map(|place| self.expand_place(place)).collect();
        let header =
            cudnn::HEADERS.iter().find_map(|name| dirs.iter().map(|dir| dir.join(name)).find(|file| file.exists()));
        let known: Vec<(u32, u32)> = of.known.iter().filter_map(|feature| rule.level_of(feature)).collect();
        let newest = known.iter().max().copied().filter(|_| of.features.contains(newest));
        let version = header.as_ref().and_then(|header| Toolchain::version_of_header(header));
        match (header, version) {
            (Some(header), Some(version)) if known.contains(&(version.major, version.minor)) => {
                Ok(Some(DetectedLevel {
                    value: (version.major, Some(version.minor)),
                    by: header.display().to_string(),
                    chosen: Chosen::Found,
                }))
            }
            (header, version) => match (newest, header, version) {
                (Some((major, minor)), ..) => Ok(Some(DetectedLevel {
                    value: (major, Some(minor)),
                    by: "the newest known".to_owned(),
                    chosen: Chosen::Assumed,
                })),
                (None, Some(header), Some(asked)) => Err(Stopped::UnknownLibrary { asked, header, known }),
                _ => Ok(None),
            },
        }
    }

    /// Converts a place of the table to a path: `$CUDA_PATH/include`, `/usr/include`. `None` if its variable is not
    /// set.
    fn expand_place(&self, place: &str) -> Option<PathBuf> {
        let Some(rest) = place.strip_prefix('$') else {
            return place.strip_prefix('/').map(|below| self.root.join(below));
        };
        let (variable, below) = rest.split_once('/').unwrap_or((rest, ""));
        let value = self.env.path(variable)?;
        Some(if below.is_empty() { value } else { value.join(below) })
    }

    fn detect_compiler(&self, places: &[String]) -> Option<CrateCompiler> {
        places.iter().find_map(|place| {
            let path = match place.as_str() {
                "PATH" => in_path("nvcc", self.env),
                place => self.expand_place(place).filter(|path| path.exists()),
            }?;
            let release = self.toolchain.release_of(self.env, &path);
            Some(CrateCompiler { path, release, by: place_source(place) })
        })
    }

    fn detect_headers(&self, places: &[String], named: bool) -> Option<CrateHeaders> {
        places.iter().find_map(|place| {
            let found = Toolchain::cuda_h(&self.expand_place(place)?)?;
            Some(CrateHeaders { path: found.path, release: found.version, by: place_source(place), named })
        })
    }

    /// Returns the architecture, or the reason why nvidia-smi reports no GPU.
    fn detect_arch(&self, variable: &str, suffix: bool) -> Result<Option<ArchUse>, String> {
        let Some(text) = self.env.var(variable) else {
            if in_path("nvidia-smi", self.env).is_none() {
                return Err("there is no nvidia-smi in PATH".to_owned());
            }
            let gpus = match self.ask_gpu.then(|| Toolchain::gpus_here(self.env)) {
                Some(Native::Gpus(gpus)) => Some(gpus.value),
                Some(Native::Unknown(why)) => return Err(why),
                None => None,
            };
            return Ok(Some(ArchUse::BuildSystem { variable: variable.to_owned(), gpus, suffix }));
        };
        let arch = if suffix { with_suffix(&text) } else { text.parse().ok().map(Arch::without_suffix) };
        Ok(arch.map(|arch| ArchUse::Named { arch, variable: variable.to_owned(), text }))
    }

    /// Returns true if any of these places has the libraries of a toolkit, as `find_cuda_helper` searches for them.
    fn has_libraries(&self, places: &[String]) -> bool {
        let mut dirs: Vec<PathBuf> = Vec::new();
        for place in places {
            if let Some(variable) = place.strip_prefix('$') {
                dirs.extend(self.env.path_list(variable));
            } else if let Some(prefix) = place.strip_suffix('*') {
                let prefix = self.root.join(prefix.trim_start_matches('/'));
                let name = prefix.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let entries = prefix.parent().and_then(|dir| std::fs::read_dir(dir).ok());
                dirs.extend(
                    entries
                        .into_iter()
                        .flatten()
                        .flatten()
                        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&name))
                        .map(|entry| entry.path()),
                );
            } else {
                dirs.extend(self.expand_place(place));
            }
        }
        dirs.iter().any(|dir| dir.join("lib64").is_dir() || dir.join("targets/x86_64-linux/include/cuda.h").is_file())
    }
}

impl CrateDetector<'_> {
    /// Returns the first library that the linker does not find. Directories in `RUSTFLAGS` are unknown.
    fn find_unlinked(&self, of: &Crate, row: &CrateRow) -> Option<Stopped> {
        let mut flags = ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"].into_iter().filter_map(|name| self.env.var(name));
        if flags.any(|flags| flags.contains("-L")) {
            return None;
        }
        let mut dirs = self.env.path_list("LIBRARY_PATH");
        let of_system =
            ["/usr/local/lib", "/usr/lib", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
        for place in row.link.iter().map(String::as_str).chain(of_system) {
            match place.strip_prefix('$') {
                Some(variable) => dirs.extend(self.env.path_list(variable)),
                None => dirs.push(self.root.join(place.trim_start_matches('/'))),
            }
        }
        let is_missing = |stem: &&str| !dirs.iter().any(|dir| dir.join(format!("lib{stem}.so")).exists());
        let library = of.library_stems().into_iter().find(is_missing)?;
        Some(Stopped::NotLinked { library: format!("lib{library}"), places: row.link.clone() })
    }

    /// Returns true if the crate downloads a library with CUDA.
    fn downloads(&self, of: &Crate, rule: &DownloadRule) -> bool {
        let is_on = |feature: &String| of.features.contains(feature);
        is_on(&rule.feature)
            && rule.cuda.iter().any(is_on)
            && !rule.unless.iter().any(is_on)
            && !rule.instead.iter().any(|variable| self.env.var(variable).is_some())
    }

    fn detect_download(&self, rule: &DownloadRule) -> Result<Option<u32>, Stopped> {
        let set = rule.variable.as_ref().and_then(|name| Some((name.clone(), self.env.var(name)?)));
        if let Some((variable, text)) = set
            && let Ok(major) = text.parse()
        {
            let has_it = rule.majors.contains(&major);
            let none = || Stopped::NoDownload { variable, text, majors: rule.majors.clone() };
            return if has_it { Ok(Some(major)) } else { Err(none()) };
        }
        let toolkit = self.toolchain.toolkit_version().map(|version| version.major);
        Ok(toolkit.filter(|major| rule.majors.contains(major)).or(rule.majors.first().copied()))
    }
}

/// The origin of a place: the variable's name, or the place itself.
fn place_source(place: &str) -> String {
    match place.strip_prefix('$') {
        Some(rest) => rest.split('/').next().unwrap_or(rest).to_owned(),
        None => place.to_owned(),
    }
}

/// Converts `90` to `sm_90a`, as cudaforge reads its variable (src/compute_cap.rs:34-84 of 0.1.6).
fn with_suffix(text: &str) -> Option<Arch> {
    let text = text.trim().to_lowercase();
    let text = text.strip_prefix("sm_").unwrap_or(&text);
    let (number, given) = match text.as_bytes().last()? {
        b'f' => (&text[..text.len() - 1], Some(Suffix::Family)),
        b'a' => (&text[..text.len() - 1], Some(Suffix::Specific)),
        _ => (text, None),
    };
    let number: u16 = number.parse().ok()?;
    // cudaforge reads `9` as 9.0.
    let number = if number < 20 { number * 10 } else { number };
    Some(Arch { number, suffix: given.unwrap_or_else(|| suffix_of(number)) })
}

/// The suffix that cudaforge adds to an architecture.
const fn suffix_of(number: u16) -> Suffix {
    match number {
        121.. => Suffix::Family,
        90..=120 => Suffix::Specific,
        _ => Suffix::None,
    }
}

impl CrateUse {
    /// Returns true if it opens this library by name at run time.
    pub fn opens_library(&self, stem: &str) -> bool {
        !self.of.tool && self.of.link_mode() == Mode::Loaded && self.of.library_stems().contains(&stem)
    }
}

impl ArchUse {
    /// The result, if it is known: machine code and PTX of the same architecture.
    pub fn compiled_targets(&self) -> Vec<Target> {
        let arch = match self {
            Self::Named { arch, .. } => Some(*arch),
            Self::BuildSystem { gpus, suffix, .. } => match gpus.as_deref() {
                Some([one]) => Arch::from_cc(*one)
                    .map(|arch| if *suffix { Arch { suffix: suffix_of(arch.number), ..arch } } else { arch }),
                _ => None,
            },
        };
        arch.map(|arch| vec![Target::Cubin(arch), Target::Ptx(arch)]).unwrap_or_default()
    }
}

// nvcc is a script there.
#[cfg(all(test, unix))]
mod tests;
