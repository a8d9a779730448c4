//! The DLLs that Windows loads for a program or for a Python extension module, by the rules of its loader, without executing
//! anything.
//!
//! Sources: Microsoft, "Dynamic-link library search order" and `LoadLibraryEx`; Python 3.8, "What's new": `os.add_dll_directory`.
//! Wine's loader agrees (`tests/e2e/windows`). Not followed: manifests for side-by-side assemblies, `.local` redirection, packaged
//! applications.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use crate::binary::mapped_file::Contents;
use crate::binary::pe::Pe;
use cudaguard::internal::env::Env;

/// The directories in which a process searches for DLLs.
#[derive(Clone, Debug, Default)]
pub struct DllSearch {
    /// The directory of the program: `python.exe` for an extension module.
    pub application: PathBuf,
    /// `System32`, then the Windows directory; empty if they are not known.
    pub system: Vec<PathBuf>,
    /// The current directory.
    pub current: Option<PathBuf>,
    /// `PATH`.
    pub path: Vec<PathBuf>,
    /// The directories of `AddDllDirectory`, which Python calls `os.add_dll_directory`.
    pub added: Vec<PathBuf>,
    /// Names that always come from `System32`, in lower case: the registry key `KnownDLLs`.
    pub known: BTreeSet<String>,
}

/// The rule by which a DLL was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DllSource {
    /// It is a part of Windows whatever the directories contain: a known DLL or an API set (`api-ms-win-…`).
    Windows,
    /// The directory of the module that is loaded.
    LoadDirectory,
    /// The directory of the program.
    Application,
    /// A directory that the process added.
    Added,
    /// `System32` or the Windows directory.
    System,
    /// The current directory.
    Current,
    /// `PATH`.
    Path,
}

/// A DLL that a process requests by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DllRequest {
    /// The name as written in the first file that needs it.
    pub name: String,
    /// The first file that needs it.
    pub needed_by: PathBuf,
    /// True if the DLL is loaded at the first call of one of its functions, not when the process starts.
    pub is_delayed: bool,
    /// The file that Windows loads; `None` if no directory contains it.
    pub found: Option<FoundDll>,
}

/// The file of a DLL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundDll {
    /// The file; `None` if Windows provides it and its directory is not known.
    pub path: Option<PathBuf>,
    /// The rule.
    pub by: DllSource,
}

/// The DLLs that loading a file needs, each once, in the order in which they are requested.
pub type DllClosure = Vec<DllRequest>;

impl DllRequest {
    /// Returns true if the request is for a DLL of this name, in any case.
    pub fn is_named(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Returns the file that comes with the program: one that is no part of Windows.
    pub fn own_file(&self) -> Option<&Path> {
        let found = self.found.as_ref().filter(|found| !matches!(found.by, DllSource::Windows | DllSource::System))?;
        found.path.as_deref()
    }
}

/// The directories of a load, in search order, with their files by lower-case name.
pub(crate) type SearchedDirs = Vec<(DllSource, BTreeMap<String, PathBuf>)>;

/// A crafted directory must not keep the search busy.
const MOST_MODULES: usize = 4096;

impl DllSearch {
    /// Returns the search for this file, on this machine or in the directories that come with the file.
    /// A library below `site-packages` is loaded by Python.
    pub fn for_file(file: &Path, is_program: bool, here: Option<&Env>) -> Self {
        let packages = file.ancestors().skip(1).find(|at| at.file_name().is_some_and(|name| name == "site-packages"));
        let application = file.parent().map(Path::to_path_buf).unwrap_or_default();
        let mut search = Self { application, ..Self::default() };
        if let Some(packages) = packages.filter(|_| !is_program) {
            // `python.exe` is two directories above: `Lib\site-packages`.
            search.application = packages.ancestors().nth(2).map(Path::to_path_buf).unwrap_or_default();
            search.added = dirs_of_packages(packages);
            search.added.push(search.application.join("Library").join("bin"));
        }
        if let Some(env) = here {
            let windows = env.var_os("SystemRoot").map(PathBuf::from);
            search.system = windows.into_iter().flat_map(|windows| [windows.join("System32"), windows]).collect();
            search.current = Some(env.current_dir().to_owned());
            search.path = env.path_list("PATH");
        }
        search
    }

    /// Returns the directories in which a process searches for the DLLs of this file. A program, and a plain `LoadLibrary`, searches
    /// `PATH` and the current directory. An extension module of Python 3.8 or newer searches neither.
    pub fn dirs_for(&self, file: &Path) -> SearchedDirs {
        let own = file.parent().map(Path::to_path_buf);
        let application = (DllSource::Application, std::slice::from_ref(&self.application));
        let system = (DllSource::System, &*self.system);
        let dirs = if self.added.is_empty() {
            vec![application, system, (DllSource::Current, self.current.as_slice()), (DllSource::Path, &self.path)]
        } else {
            vec![(DllSource::LoadDirectory, own.as_slice()), application, (DllSource::Added, &self.added), system]
        };
        list_dirs(&dirs)
    }

    /// Resolves the DLLs of a file and of the DLLs that it needs. All of them use the same directories, so the order of loading
    /// does not matter.
    pub fn resolve(&self, file: &Path, dirs: &SearchedDirs) -> DllClosure {
        let mut closure = DllClosure::new();
        let mut known = BTreeSet::new();
        // The DLLs that are loaded at start-up, and those that are loaded later.
        let mut queues = [VecDeque::new(), VecDeque::new()];
        queue_imports(file, false, &mut queues);
        while let Some((name, needed_by, is_delayed)) = queues.iter_mut().find_map(VecDeque::pop_front) {
            if closure.len() == MOST_MODULES {
                break;
            }
            let key = name.to_ascii_lowercase();
            if !known.insert(key.clone()) {
                continue;
            }
            let found = self.find(&key, dirs);
            let request = DllRequest { name, needed_by, is_delayed, found };
            if let Some(path) = request.found.as_ref().filter(|found| found.by != DllSource::Windows) {
                queue_imports(&path.path.clone().unwrap_or_default(), is_delayed, &mut queues);
            }
            closure.push(request);
        }
        closure
    }

    /// Finds a DLL by its lower-case name.
    fn find(&self, name: &str, dirs: &SearchedDirs) -> Option<FoundDll> {
        if self.is_of_windows(name) {
            let mut system = dirs.iter().filter(|(by, _)| *by == DllSource::System);
            let path = system.find_map(|(_, files)| files.get(name)).cloned();
            return Some(FoundDll { path, by: DllSource::Windows });
        }
        dirs.iter().find_map(|(by, files)| Some(FoundDll { path: Some(files.get(name)?.clone()), by: *by }))
    }

    fn is_of_windows(&self, name: &str) -> bool {
        name.starts_with("api-ms-") || name.starts_with("ext-ms-") || self.known.contains(name)
    }
}

/// Returns the files of a directory by lower-case name, because Windows ignores case.
fn list_files(dir: &Path) -> BTreeMap<String, PathBuf> {
    let listed = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let names = fs::read_dir(listed).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.map(|name| (name.to_string_lossy().to_ascii_lowercase(), dir.join(name))).collect()
}

fn list_dirs(dirs: &[(DllSource, &[PathBuf])]) -> SearchedDirs {
    dirs.iter().flat_map(|(by, all)| all.iter().map(|one| (*by, list_files(one)))).collect()
}

fn queue_imports(by: &Path, after_start: bool, queues: &mut [VecDeque<(String, PathBuf, bool)>; 2]) {
    for (name, is_delayed) in imported_names(by) {
        let is_delayed = is_delayed || after_start;
        queues[usize::from(is_delayed)].push_back((name, by.to_owned(), is_delayed));
    }
}

pub(crate) fn sorted_entries(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Returns the directories that packages of NVIDIA and PyTorch, and packages that `delvewheel` repaired, add when they are
/// imported. `packages`: the directory `site-packages`.
fn dirs_of_packages(packages: &Path) -> Vec<PathBuf> {
    let mut dirs = vec![packages.join("torch").join("lib")];
    for library in sorted_entries(&packages.join("nvidia")) {
        let bin = library.join("bin");
        // Packages of CUDA 13 have a directory for each processor.
        dirs.extend([bin.join("x86_64"), bin]);
    }
    let all = sorted_entries(packages).into_iter();
    dirs.extend(all.filter(|dir| dir.extension().is_some_and(|extension| extension == "libs")));
    dirs.retain(|dir| dir.is_dir());
    dirs
}

/// Returns the DLLs that a file imports; true for those that it loads at the first call of one of their functions.
fn imported_names(file: &Path) -> Vec<(String, bool)> {
    let Ok(contents) = Contents::open(file) else { return Vec::new() };
    let imports = Pe::parse(&contents).map(|image| image.imports()).unwrap_or_default();
    imports.iter().map(|dll| (dll.name.to_owned(), dll.is_delayed)).collect()
}
