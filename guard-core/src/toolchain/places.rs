//! The locations of toolkits and their parts: variables, default directories, layouts of packages. The search orders
//! follow build scripts (`cudaforge`, `cudarc`, `bindgen_cuda`, `PyTorch`, CMake's `FindCUDAToolkit`).

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::knowledge::tables;
use crate::sys::env::Env;
use crate::sys::files;

/// `e_machine` of the targets that CUDA supports.
const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;
const EM_PPC64: u16 = 21;

/// Directory names that depend on the target.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Directories below a toolkit's `targets/`.
    pub(super) targets: &'static [&'static str],
    /// Debian's multiarch names.
    pub(super) triplets: &'static [&'static str],
    /// True if the target differs from the build machine: then only the target's own tree counts.
    pub(super) cross: bool,
    /// The ELF machine number of the target, if CUDA supports it.
    machine: Option<u16>,
    /// Cached listings of library directories: listing `/usr/lib/x86_64-linux-gnu` takes longer than all other lookups.
    listed: RefCell<Vec<(PathBuf, Vec<OsString>)>>,
}

impl Layout {
    /// Returns the layout for a target triple on a build machine of this architecture (`std::env::consts::ARCH`).
    pub(super) fn for_target(target: &str, built_on: &str) -> Self {
        let arch = target.split('-').next().unwrap_or_default();
        let (targets, triplets): (&[&str], &[&str]) = match arch {
            "x86_64" => (&["x86_64-linux"], &["x86_64-linux-gnu"]),
            // Servers and Jetson have separate trees.
            "aarch64" => (&["sbsa-linux", "aarch64-linux"], &["aarch64-linux-gnu"]),
            "powerpc64le" => (&["ppc64le-linux"], &["powerpc64le-linux-gnu"]),
            "armv7" | "arm" => (&["armv7-linux-gnueabihf"], &["arm-linux-gnueabihf"]),
            _ => (&[], &[]),
        };
        let number = match arch {
            "x86_64" => Some(EM_X86_64),
            "aarch64" => Some(EM_AARCH64),
            "powerpc64le" => Some(EM_PPC64),
            _ => None,
        };
        Self {
            targets,
            triplets,
            cross: !arch.is_empty() && arch != built_on,
            machine: number,
            listed: RefCell::default(),
        }
    }

    /// Returns the files of a library directory with this prefix, sorted. Each directory is listed once.
    pub(super) fn libraries_in(&self, dir: &Path, prefix: &str) -> Vec<PathBuf> {
        let mut listed = self.listed.borrow_mut();
        if let Some((_, names)) = listed.iter().find(|(known, _)| known == dir) {
            return names_with_prefix(names, dir, prefix);
        }
        let names = entry_names(dir);
        let found = names_with_prefix(&names, dir, prefix);
        listed.push((dir.to_owned(), names));
        found
    }

    /// Returns true if the linker of a build for this target would use this library. It skips libraries of another
    /// architecture. A file that is not ELF (a linker script) is accepted.
    pub(super) fn is_linkable(&self, library: &Path) -> bool {
        let mut head = [0; 20];
        let read = files::open_regular(library).and_then(|mut file| file.read_exact(&mut head));
        let elf = self.cross && read.is_ok() && head.starts_with(b"\x7fELF");
        !elf || self.machine.is_none_or(|machine| u16::from_le_bytes([head[18], head[19]]) == machine)
    }

    /// Returns the header directories in a toolkit's root, or in `/usr`, best first.
    pub(super) fn include_dirs(&self, root: &Path) -> Vec<PathBuf> {
        self.dirs_in(root, "include", &["include"])
    }

    /// Returns the library directories in a toolkit's root, or in `/usr`, best first.
    pub(super) fn library_dirs(&self, root: &Path) -> Vec<PathBuf> {
        self.dirs_in(root, "lib", &["lib64", "lib"])
    }

    /// `plain` are the directories of the machine itself.
    fn dirs_in(&self, root: &Path, name: &str, plain: &[&str]) -> Vec<PathBuf> {
        let mut dirs = Vec::new();
        for target in self.targets {
            dirs.push(root.join("targets").join(target).join(name));
        }
        for triplet in self.triplets {
            dirs.push(root.join(name).join(triplet));
        }
        for plain in plain.iter().filter(|_| !self.cross) {
            dirs.push(root.join(plain));
        }
        dirs
    }
}

/// The likelihood that a build uses a location without an explicit path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    /// A variable names it.
    Named,
    /// A default location that build scripts try.
    Usual,
    /// A location that no build script of the cargo ecosystem searches: listed, and in use only if another fact refers
    /// to it.
    Listed,
}

/// A directory that may be a toolkit's root.
#[derive(Clone, Debug)]
pub(super) struct ToolkitPlace {
    /// The directory.
    pub(super) root: PathBuf,
    /// The origin of the path.
    pub(super) source: String,
    /// The likelihood that a build uses it.
    pub(super) reach: Precedence,
}

impl ToolkitPlace {
    fn new(root: PathBuf, source: impl Into<String>, reach: Precedence) -> Self {
        Self { root, source: source.into(), reach }
    }
}

/// Variables that name a toolkit's root, in the order of most build scripts. The first one is read only by NVIDIA's own
/// Rust crates (cuda-bindings, cutile).
pub(super) const ROOTS: &[&str] =
    &["CUDA_TOOLKIT_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR", "CUDAToolkit_ROOT"];

/// Returns a path below the system root: `/usr/local/cuda` → `<system_root>/usr/local/cuda`.
pub(super) fn path_below(system_root: &Path, path: &str) -> PathBuf {
    system_root.join(path.trim_start_matches('/'))
}

/// Returns the entries of a directory with this prefix, sorted by name; empty if the directory cannot be read.
pub(super) fn entries_with_prefix(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    names_with_prefix(&entry_names(dir), dir, prefix)
}

fn entry_names(dir: &Path) -> Vec<OsString> {
    std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect::<Vec<_>>()
}

/// Returns the names with this prefix as paths, sorted.
fn names_with_prefix(names: &[OsString], dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let names = names.iter().filter(|name| name.as_encoded_bytes().starts_with(prefix.as_bytes()));
    let mut found = names.map(|name| dir.join(name)).collect::<Vec<_>>();
    found.sort();
    found
}

/// Parses the version at the end of a directory name: `cuda-12.9` → [12, 9].
pub(super) fn version_in_name(dir: &Path) -> Vec<u32> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.split('.').map_while(|part| part.parse().ok()).collect::<Vec<_>>()
}

/// Sorts directories by the versions in their names, newest first.
pub(super) fn newest_first(mut dirs: Vec<PathBuf>) -> Vec<PathBuf> {
    dirs.sort_by_key(|dir| std::cmp::Reverse(version_in_name(dir)));
    dirs
}

/// Returns the directories `v13.0` that NVIDIA's installer for Windows creates below these names, newest first.
pub(super) fn releases_of_installer(env: &Env, below: [&str; 2]) -> Vec<PathBuf> {
    let programs = env.var_os("ProgramFiles").filter(|_| cfg!(windows)).map(PathBuf::from);
    let below = programs.map(|programs| below.iter().fold(programs, |dir, name| dir.join(name)));
    below.map(|below| newest_first(entries_with_prefix(&below, "v"))).unwrap_or_default()
}

/// Returns the root of a conda environment's libraries.
pub(super) fn conda_root(env: &Env) -> Option<PathBuf> {
    let root = env.path("CONDA_PREFIX")?;
    Some(if cfg!(windows) { root.join("Library") } else { root })
}

/// Returns the `site-packages` directories of the active virtual environment and of conda's Python, which may contain
/// NVIDIA wheels, each with the variable that names it.
pub(super) fn site_packages(env: &Env) -> Vec<(&'static str, PathBuf)> {
    let mut found: Vec<(&str, PathBuf)> = Vec::new();
    for name in &["VIRTUAL_ENV", "CONDA_PREFIX"] {
        let Some(environment) = env.path(name) else { continue };
        let mut pythons = entries_with_prefix(&environment.join("lib"), "python");
        pythons.extend(entries_with_prefix(&environment.join("lib64"), "python"));
        // Windows has no directory for the release of Python.
        if cfg!(windows) {
            pythons.push(environment.join("Lib"));
        }
        for python in &pythons {
            let site = python.join("site-packages");
            if site.join("nvidia").is_dir() && found.iter().all(|(_, known)| *known != site) {
                found.push((name, site));
            }
        }
    }
    found
}

/// Returns every directory that may be a toolkit's root, the most certain first, except those from pkg-config. The path
/// in a variable may be missing; all other locations exist.
pub(super) fn toolkit_places(env: &Env, system_root: &Path) -> Vec<ToolkitPlace> {
    let mut places = possible_places(env, system_root);
    places.retain(|place| place.reach == Precedence::Named || place.root.is_dir());
    places
}

fn possible_places(env: &Env, system_root: &Path) -> Vec<ToolkitPlace> {
    let mut places = Vec::new();
    for name in ROOTS {
        places.extend(env.path(name).map(|root| ToolkitPlace::new(root, *name, Precedence::Named)));
    }
    for usual in ["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda", "/usr", "/usr/lib/nvidia-cuda-toolkit"] {
        places.push(ToolkitPlace::new(path_below(system_root, usual), usual, Precedence::Usual));
    }
    for dir in newest_first(entries_with_prefix(&path_below(system_root, "/usr/local"), "cuda-")) {
        let source = format!("/usr/local/{}", name_of(&dir));
        places.push(ToolkitPlace::new(dir, source, Precedence::Usual));
    }
    for dir in releases_of_installer(env, ["NVIDIA GPU Computing Toolkit", "CUDA"]) {
        let source = dir.display().to_string();
        places.push(ToolkitPlace::new(dir, source, Precedence::Usual));
    }
    // The installer for Windows sets one for each release, in any directory.
    for row in tables::toolkit_rows().iter().filter(|_| cfg!(windows)) {
        let variable = format!("CUDA_PATH_V{}_{}", row.version.major, row.version.minor);
        places.extend(env.path(&variable).map(|root| ToolkitPlace::new(root, variable, Precedence::Listed)));
    }
    places.extend(conda_root(env).map(|conda| ToolkitPlace::new(conda, "CONDA_PREFIX", Precedence::Listed)));
    for (variable, site) in site_packages(env) {
        // cu13 has one merged root. In older wheels, each package has its own directory, and the compiler's contains no
        // nvcc.
        for merged in
            entries_with_prefix(&site.join("nvidia"), "cu").into_iter().filter(|dir| dir.join("include").is_dir())
        {
            let name = name_of(&merged);
            if matches!(name.as_str(), "cuda_runtime" | "cuda_nvcc")
                || name.trim_start_matches("cu").parse::<u32>().is_ok()
            {
                let source = format!("{variable} (wheel nvidia/{name})");
                places.push(ToolkitPlace::new(merged, source, Precedence::Listed));
            }
        }
    }
    for release in hpc_sdks(env, system_root) {
        for cuda in newest_first(entries_with_prefix(&release.join("cuda"), "")) {
            if !version_in_name(&cuda).is_empty() {
                let source = format!("HPC SDK {}", name_of(&release));
                places.push(ToolkitPlace::new(cuda, source, Precedence::Listed));
            }
        }
    }
    places
}

/// Returns the releases of the HPC SDK: the one whose module is loaded, then those in the default location, newest
/// first.
fn hpc_sdks(env: &Env, system_root: &Path) -> Vec<PathBuf> {
    let mut releases = Vec::new();
    releases.extend(env.path("NVHPC_ROOT"));
    for machine in entries_with_prefix(&path_below(system_root, "/opt/nvidia/hpc_sdk"), "Linux_") {
        releases.extend(newest_first(entries_with_prefix(&machine, "")));
    }
    releases
}

pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cross_builds_search_target_tree_only() {
        let own = Layout::for_target("x86_64-unknown-linux-gnu", "x86_64");
        assert!(!own.cross && own.library_dirs(Path::new("/r")).contains(&PathBuf::from("/r/lib64")));
        let cross = Layout::for_target("aarch64-unknown-linux-gnu", "x86_64");
        assert_eq!(
            cross.include_dirs(Path::new("/r")),
            ["/r/targets/sbsa-linux/include", "/r/targets/aarch64-linux/include", "/r/include/aarch64-linux-gnu"]
                .map(PathBuf::from)
        );
        // An unknown target has no tree and causes no error.
        assert!(Layout::for_target("loongarch64-unknown-linux-gnu", "x86_64").include_dirs(Path::new("/r")).is_empty());
    }

    #[test]
    fn other_machine_libraries_are_skipped() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("library.so");
        let mut head = *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0";
        let links = |target, head: &[u8]| {
            std::fs::write(&file, head).unwrap();
            Layout::for_target(target, "x86_64").is_linkable(&file)
        };
        assert!(links("x86_64-unknown-linux-gnu", &head) && !links("aarch64-unknown-linux-gnu", &head));
        assert!(links("riscv64gc-unknown-linux-gnu", &head), "its machine is not known here");
        head[18] = 183;
        assert!(links("aarch64-unknown-linux-gnu", &head));
        assert!(links("x86_64-unknown-linux-gnu", &head), "a native linker reports it");
        assert!(links("aarch64-unknown-linux-gnu", b"INPUT(libcudnn.so.9)"));
    }

    #[test]
    fn versions_are_read_from_names() {
        assert_eq!(version_in_name(Path::new("/usr/local/cuda-12.10")), [12, 10]);
        assert!(
            version_in_name(Path::new("/usr/local/cuda-12.10")) > version_in_name(Path::new("/usr/local/cuda-12.9"))
        );
        assert_eq!(version_in_name(Path::new("/x/comm_libs")), Vec::<u32>::new());
    }
}
