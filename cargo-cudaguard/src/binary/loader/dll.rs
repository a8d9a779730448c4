//! The DLLs that Windows loads for a program or for a Python extension module, by the rules of its loader, without executing
//! anything.
//!
//! Sources: Microsoft, "Dynamic-link library search order" and `LoadLibraryEx`; Python 3.8, "What's new": `os.add_dll_directory`.
//! Wine's loader agrees (`tests/e2e/windows`). Not followed: manifests for side-by-side assemblies, `.local` redirection, packaged
//! applications.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::binary::mapped_file::Contents;
use crate::binary::pe::Pe;

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

/// A DLL of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundDll {
    /// The file; `None` if Windows provides it and its directory is not known.
    pub path: Option<PathBuf>,
    /// The rule.
    pub by: DllSource,
}

/// The DLLs that loading a file needs, by lower-case name; `None` for one that no directory contains.
pub type DllClosure = BTreeMap<String, Option<FoundDll>>;

/// A crafted directory must not keep the search busy.
const MOST_MODULES: usize = 4096;

impl DllSearch {
    /// Returns the DLLs of a program as it starts, or of a plain `LoadLibrary`.
    pub fn resolve_program(&self, program: &Path) -> DllClosure {
        let directories =
            [(DllSource::Application, std::slice::from_ref(&self.application)), (DllSource::System, &self.system)];
        let later = [(DllSource::Current, self.current.as_slice()), (DllSource::Path, &self.path)];
        self.resolve(program, &directories.into_iter().chain(later).collect::<Vec<_>>())
    }

    /// Returns the DLLs of an extension module of Python 3.8 or newer, which searches neither `PATH` nor the current directory.
    pub fn resolve_extension(&self, module: &Path) -> DllClosure {
        let own = module.parent().map(Path::to_path_buf);
        let directories = [
            (DllSource::LoadDirectory, own.as_slice()),
            (DllSource::Application, std::slice::from_ref(&self.application)),
            (DllSource::Added, &self.added),
            (DllSource::System, &self.system),
        ];
        self.resolve(module, &directories)
    }

    /// Resolves the DLLs of a file and of the DLLs that it needs. All of them use the same directories, so the order of loading
    /// does not matter.
    fn resolve(&self, file: &Path, directories: &[(DllSource, &[PathBuf])]) -> DllClosure {
        let listed: Vec<(DllSource, BTreeMap<String, PathBuf>)> =
            directories.iter().flat_map(|(by, all)| all.iter().map(|one| (*by, list_files(one)))).collect();
        let mut closure = DllClosure::new();
        let mut waiting = imported_names(file);
        while let Some(name) = waiting.pop() {
            if closure.contains_key(&name) || closure.len() == MOST_MODULES {
                continue;
            }
            let find = || listed.iter().find_map(|(by, files)| Some((*by, files.get(&name)?.clone())));
            let found = if self.is_of_windows(&name) {
                let mut files = listed.iter().filter(|(by, _)| *by == DllSource::System);
                let path = files.find_map(|(_, files)| files.get(&name)).cloned();
                Some(FoundDll { path, by: DllSource::Windows })
            } else {
                find().map(|(by, path)| FoundDll { path: Some(path), by })
            };
            let not_of_windows = |found: &&FoundDll| found.by != DllSource::Windows;
            let next = found.as_ref().filter(not_of_windows).and_then(|found| found.path.as_deref());
            waiting.extend(next.map(imported_names).unwrap_or_default());
            closure.insert(name, found);
        }
        closure
    }

    fn is_of_windows(&self, name: &str) -> bool {
        name.starts_with("api-ms-") || name.starts_with("ext-ms-") || self.known.contains(name)
    }
}

/// Returns the files of a directory by lower-case name, because Windows ignores case.
fn list_files(directory: &Path) -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| (entry.file_name().to_string_lossy().to_ascii_lowercase(), entry.path())).collect()
}

/// Returns the DLLs that a file loads when it is loaded itself; delay-loaded ones come later.
fn imported_names(file: &Path) -> Vec<String> {
    let Ok(contents) = Contents::open(file) else { return Vec::new() };
    let imports = Pe::parse(&contents).map(|image| image.imports()).unwrap_or_default();
    imports.iter().filter(|dll| !dll.is_delayed).map(|dll| dll.name.to_ascii_lowercase()).collect()
}
