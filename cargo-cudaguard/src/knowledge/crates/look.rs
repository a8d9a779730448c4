//! Detects what each crate of a graph would do in this environment: the level, the compiler and the headers that it
//! selects. Each crate has its own rules (`data/crates.toml`), which differ from those of the toolchain search.

use std::path::{Path, PathBuf};

use super::Crate;
use super::table::{HeaderLevelRule, LevelRule, LibraryRule, Mode};
use cudaguard::internal::arch::{Arch, Suffix, Target};
use cudaguard::internal::env::Env;
use cudaguard::internal::tables::Cc;
use cudaguard::internal::toolchain::{Native, Toolchain};
use cudaguard::internal::vendor::CUDNN;
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
pub type Level = DetectedLevel<CudaVersion>;

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
    pub level: Option<Level>,
    /// The cuDNN release of its bindings.
    pub library: Option<LibraryLevel>,
    /// The compiler that it would run.
    pub compiler: Option<CrateCompiler>,
    /// The headers that it would pass to the compiler.
    pub headers: Option<CrateHeaders>,
    /// The source of its architecture, if it compiles kernels.
    pub arch: Option<ArchUse>,
    /// Why its build script would stop.
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
        found
    }

    fn detect_level(&self, of: &Crate, rule: &LevelRule) -> Result<Option<Level>, Stopped> {
        let known: Vec<CudaVersion> = of.known.iter().filter_map(|feature| rule.level_of(feature)).collect();
        let newest = known.iter().max().copied();
        let bindings = |value: CudaVersion, by: String, chosen| match newest {
            Some(newest) if !known.contains(&value) => {
                Err(Stopped::UnknownRelease { asked: value, by, newest, variable: rule.variable.clone() })
            }
            _ => Ok(Some(DetectedLevel { value, by, chosen })),
        };
        if let Some(text) = self.env.var(&rule.variable) {
            let Some(value) = text.parse().ok().map(CudaVersion::from_int) else { return Ok(None) };
            return bindings(value, format!("{}={text}", rule.variable), Chosen::Fixed);
        }
        // If several features are enabled, the build script uses the newest.
        let named = of.features.iter().filter_map(|feature| Some((rule.level_of(feature)?, feature))).max();
        if let Some((value, feature)) = named {
            return Ok(Some(DetectedLevel { value, by: format!("feature {feature}"), chosen: Chosen::Fixed }));
        }
        if !of.features.contains(&rule.nvcc) {
            return Ok(None);
        }
        let nvcc = Toolchain::in_path(self.env, "nvcc");
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
    fn detect_header_level(&self, rule: &HeaderLevelRule) -> Result<Level, Stopped> {
        let tree = self.env.var(&rule.target).filter(|tree| !tree.trim().is_empty());
        let trees: &[&str] = if self.toolchain.target.starts_with("aarch64") {
            &["sbsa-linux", "aarch64-linux"]
        } else {
            &["x86_64-linux"]
        };
        let folders: Vec<String> = if let Some(tree) = tree {
            vec![format!("targets/{tree}/include")]
        } else {
            let below = trees.iter().map(|tree| format!("targets/{tree}/include"));
            std::iter::once("include".to_owned()).chain(below).collect()
        };
        let mut too_old = None;
        for root in &rule.roots {
            let Some(path) = self.expand_place(root) else { continue };
            let file = folders.iter().map(|folder| path.join(folder).join("cuda.h")).find(|file| file.is_file());
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
        let folders: Vec<PathBuf> = places.iter().filter_map(|place| self.expand_place(place)).collect();
        let header = CUDNN
            .names
            .headers
            .iter()
            .find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|file| file.exists()));
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
        let value = PathBuf::from(self.env.var_os(variable)?);
        Some(if below.is_empty() { value } else { value.join(below) })
    }

    fn detect_compiler(&self, places: &[String]) -> Option<CrateCompiler> {
        places.iter().find_map(|place| {
            let path = match place.as_str() {
                "PATH" => Toolchain::in_path(self.env, "nvcc"),
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
            if Toolchain::in_path(self.env, "nvidia-smi").is_none() {
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
        let mut folders: Vec<PathBuf> = Vec::new();
        for place in places {
            if let Some(variable) = place.strip_prefix('$') {
                folders.extend(self.env.path_list(variable));
            } else if let Some(prefix) = place.strip_suffix('*') {
                let prefix = self.root.join(prefix.trim_start_matches('/'));
                let name = prefix.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let entries = prefix.parent().and_then(|folder| std::fs::read_dir(folder).ok());
                folders.extend(
                    entries
                        .into_iter()
                        .flatten()
                        .flatten()
                        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&name))
                        .map(|entry| entry.path()),
                );
            } else {
                folders.extend(self.expand_place(place));
            }
        }
        folders
            .iter()
            .any(|folder| folder.join("lib64").is_dir() || folder.join("targets/x86_64-linux/include/cuda.h").is_file())
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::OsString;

    use super::*;

    /// A temporary directory that is deleted on drop.
    struct CrateDir(tempfile::TempDir);

    impl CrateDir {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn file(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        }

        fn nvcc(&self, name: &str, release: &str) {
            use std::os::unix::fs::PermissionsExt as _;
            let text = format!(
                "#!/bin/sh\necho 'nvcc: NVIDIA (R) Cuda compiler driver'\necho x\necho x\n\
                 echo 'Cuda compilation tools, release {release}, V{release}.88'\n"
            );
            let path = self.file(name, &text);
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn one(name: &str, version: &str, features: &[&str]) -> Crate {
        let text = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect();
        Crate {
            name: name.to_owned(),
            version: version.to_owned(),
            features: text(features),
            known: text(&[
                "cuda-12080",
                "cuda-12090",
                "cuda-13000",
                "cuda-13040",
                "cudnn-08009",
                "cudnn-09010",
                "cudnn-09021",
            ]),
            path: vec!["app".to_owned(), format!("{name} {version}")],
            ..Crate::default()
        }
    }

    fn at(of: Crate, root: &Path, variables: &[(&str, &str)]) -> CrateUse {
        let variables: BTreeMap<String, OsString> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
        detect_crates(&Env::from_variables(variables, "/"), &[of], &Toolchain::default(), root, false).remove(0)
    }

    #[test]
    fn level_comes_from_variable_feature_nvcc() {
        let folder = CrateDir::new();
        folder.nvcc("bin/nvcc", "12.9");
        let path = format!("{}/bin:/usr/bin:/bin", folder.0.path().display());
        let by_nvcc = || one("cudarc", "0.19.10", &["cuda-version-from-build-system", "driver"]);
        let level = |of, variables: &[(&str, &str)]| at(of, folder.0.path(), variables).level.unwrap();
        let found = level(by_nvcc(), &[("PATH", &path)]);
        assert_eq!((found.value, found.chosen), (CudaVersion::new(12, 9), Chosen::Found));
        let found = level(by_nvcc(), &[("PATH", &path), ("CUDARC_CUDA_VERSION", "13000")]);
        assert_eq!((found.value, found.by.as_str()), (CudaVersion::new(13, 0), "CUDARC_CUDA_VERSION=13000"));
        let found = level(one("cudarc", "0.17.8", &["cuda-12080", "cuda-12090"]), &[("PATH", &path)]);
        assert_eq!((found.value, found.by.as_str()), (CudaVersion::new(12, 9), "feature cuda-12090"));
        let nowhere = [("PATH", "/nowhere")];
        let found = level(one("cudarc", "0.17.8", &["cuda-version-from-build-system", "fallback-latest"]), &nowhere);
        assert_eq!((found.value, found.chosen), (CudaVersion::new(13, 4), Chosen::Assumed));
        assert_eq!(at(by_nvcc(), folder.0.path(), &nowhere).stopped, Some(Stopped::NoCompiler));
    }

    #[test]
    fn unbound_release_stops_the_script() {
        let folder = CrateDir::new();
        folder.nvcc("bin/nvcc", "13.5");
        let path = format!("{}/bin:/usr/bin:/bin", folder.0.path().display());
        let found =
            at(one("cudarc", "0.19.10", &["cuda-version-from-build-system"]), folder.0.path(), &[("PATH", &path)]);
        let Some(Stopped::UnknownRelease { asked, newest, .. }) = found.stopped else { panic!("{found:?}") };
        assert_eq!((asked, newest), (CudaVersion::new(13, 5), CudaVersion::new(13, 4)));
        let header = folder.file(
            "cudnn/include/cudnn_version.h",
            "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 1\n#define CUDNN_PATCHLEVEL 0\n",
        );
        let library = folder.0.path().join("cudnn");
        let variables = [("CUDNN_PATH", library.to_str().unwrap())];
        let features = ["cuda-13000", "cudnn-version-from-build-system"];
        let found = at(one("cudarc", "0.19.10", &features), folder.0.path(), &variables);
        let known = vec![(8, 9), (9, 10), (9, 21)];
        assert_eq!(found.stopped, Some(Stopped::UnknownLibrary { asked: Version::new(9, 1, 0), header, known }));
        let features = ["cuda-13000", "cudnn-version-from-build-system", "fallback-latest"];
        let found = at(one("cudarc", "0.19.10", &features), folder.0.path(), &variables);
        assert_eq!(found.library.unwrap().value, (9, Some(21)));
    }

    #[test]
    fn header_level_follows_crate_order() {
        let folder = CrateDir::new();
        for (place, number) in
            [("a/include", "13020"), ("b/include", "12080"), ("c/targets/x86_64-linux/include", "13050")]
        {
            folder.file(&format!("{place}/cuda.h"), &format!("#define CUDA_VERSION {number}\n"));
        }
        folder.file("usr/local/cuda/include/cuda.h", "#define CUDA_VERSION 12040\n");
        folder.file("opt/cuda/include/cuda.h", "#define CUDA_VERSION 13000\n");
        let [a, b, c] = ["a", "b", "c"].map(|name| folder.0.path().join(name).display().to_string());
        let found = |variables: &[(&str, &str)]| at(one("cuda-bindings", "0.5.0", &[]), folder.0.path(), variables);
        let level = |variables: &[(&str, &str)]| found(variables).level.map(|level| level.value.to_string());
        assert_eq!(level(&[("CUDA_TOOLKIT_PATH", &a), ("CUDA_HOME", &c)]).as_deref(), Some("13.2"));
        assert_eq!(level(&[("CUDA_HOME", &c)]).as_deref(), Some("13.5"));
        let tree = ("CUDA_TOOLKIT_TARGET_DIR", "x86_64-linux");
        assert_eq!(level(&[("CUDA_HOME", &c), tree]).as_deref(), Some("13.5"));
        // The directory below targets/ is the only candidate then, and a variable ends the search.
        assert_eq!(level(&[("CUDA_HOME", &a), tree]), None);
        // A usual directory with an older toolkit is skipped.
        assert_eq!(level(&[]).as_deref(), Some("13.0"));
        let Some(Stopped::NoHeaders { found, .. }) = found(&[("CUDA_TOOLKIT_PATH", &b)]).stopped else { panic!() };
        assert_eq!(found.map(|(release, _)| release), Some(CudaVersion::new(12, 8)));
    }

    #[test]
    fn compiler_and_headers_follow_crate_order() {
        let folder = CrateDir::new();
        for (place, release, number) in
            [("a", "13.0", "13000"), ("b", "11.8", "11080"), ("usr/local/cuda", "12.4", "12040")]
        {
            folder.nvcc(&format!("{place}/bin/nvcc"), release);
            folder.file(&format!("{place}/include/cuda.h"), &format!("#define CUDA_VERSION {number}\n"));
        }
        let [a, b] = ["a", "b"].map(|name| folder.0.path().join(name).display().to_string());
        let path = format!("{a}/bin:/usr/bin:/bin");
        let nvcc = format!("{b}/bin/nvcc");
        let release =
            |found: &CrateUse| found.compiler.as_ref().and_then(|compiler| compiler.release).map(CudaVersion::from);
        // bindgen_cuda uses PATH whatever NVCC contains, and the first headers of another search order.
        let found = at(one("bindgen_cuda", "0.1.6", &[]), folder.0.path(), &[("PATH", &path), ("NVCC", &nvcc)]);
        assert_eq!(release(&found), Some(CudaVersion::new(13, 0)));
        let headers = found.headers.unwrap();
        assert_eq!((headers.release, headers.by.as_str()), (Some(CudaVersion::new(12, 4)), "/usr/local/cuda/include"));
        let found = at(one("bindgen_cuda", "0.1.6", &[]), folder.0.path(), &[("PATH", &path), ("CUDA_PATH", &b)]);
        let headers = found.headers.unwrap();
        assert_eq!((headers.release, headers.by.as_str()), (Some(CudaVersion::new(11, 8)), "CUDA_PATH"));
        let found = at(one("cudaforge", "0.1.6", &[]), folder.0.path(), &[("PATH", &path), ("NVCC", &nvcc)]);
        assert_eq!((release(&found), found.headers), (Some(CudaVersion::new(11, 8)), None));
        let found = at(one("cudaforge", "0.1.6", &[]), folder.0.path(), &[("PATH", "/usr/bin:/bin")]);
        assert_eq!(found.compiler.unwrap().by, "/usr/local/cuda/bin/nvcc");
    }

    #[test]
    fn cust_searches_its_directories() {
        let folder = CrateDir::new();
        let stopped = |variables: &[(&str, &str)]| {
            at(one("find_cuda_helper", "0.2.0", &[]), folder.0.path(), variables).stopped.is_some()
        };
        let root = folder.0.path().join("somewhere").display().to_string();
        folder.file("somewhere/lib64/libcudart.so", "");
        assert!(stopped(&[("CUDA_HOME", &root), ("CUDA_PATH", &root), ("CUDA_ROOT", &root)]));
        assert!(!stopped(&[("CUDA_LIBRARY_PATH", &root)]));
        folder.file("usr/local/cuda-12.4/lib64/libcudart.so", "");
        assert!(!stopped(&[]));
    }

    #[test]
    fn single_arch_keeps_its_suffix() {
        let arch = |name: &str, text: &str| {
            let found = at(
                one(name, if name == "cudaforge" { "0.1.6" } else { "0.1.5" }, &[]),
                Path::new("/nowhere"),
                &[("CUDA_COMPUTE_CAP", text)],
            );
            found.arch.map(|arch| arch.compiled_targets()[0].to_string())
        };
        for (text, by_cudaforge, by_bindgen) in [
            ("80", Some("sm_80"), Some("sm_80")),
            ("90", Some("sm_90a"), Some("sm_90")),
            ("90a", Some("sm_90a"), None),
            ("sm_100f", Some("sm_100f"), None),
            ("121", Some("sm_121f"), Some("sm_121")),
            ("9", Some("sm_90a"), Some("sm_9")),
            ("x", None, None),
        ] {
            assert_eq!(arch("cudaforge", text).as_deref(), by_cudaforge, "{text}");
            assert_eq!(arch("bindgen_cuda", text).as_deref(), by_bindgen, "{text}");
        }
        assert_eq!(with_suffix("é"), None);
    }

    #[test]
    fn builder_without_gpu_stops_the_script() {
        let folder = CrateDir::new();
        let stopped = |name: &str, version: &str, variables: &[(&str, &str)]| {
            at(one(name, version, &[]), folder.0.path(), variables).stopped
        };
        let nowhere = ("PATH", "/nowhere");
        for (name, version) in [("cudaforge", "0.1.6"), ("bindgen_cuda", "0.1.6")] {
            let Some(Stopped::NoGpu { variable, .. }) = stopped(name, version, &[nowhere]) else { panic!("{name}") };
            assert_eq!(variable, "CUDA_COMPUTE_CAP");
            assert_eq!(stopped(name, version, &[nowhere, ("CUDA_COMPUTE_CAP", "90")]), None);
        }
        folder.nvcc("bin/nvidia-smi", "none");
        let path = folder.0.path().join("bin").display().to_string();
        assert_eq!(stopped("cudaforge", "0.1.6", &[("PATH", &path)]), None);
    }

    #[test]
    fn unknown_crate_is_ignored() {
        let found = at(one("cudarc", "0.99.0", &["cuda-13000"]), Path::new("/nowhere"), &[]);
        assert!(found.level.is_none() && found.stopped.is_none());
    }
}
