//! A single program or library for Windows, with the DLLs that it loads, as far as their directories are known.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::machine::MachineLibrary;
use super::{ArtifactReport, mark_fallback_code};
use crate::binary::examined::NotExamined;
use crate::binary::file::{Binary, BinaryKind, TargetOs};
use crate::binary::loader::{DllClosure, DllRequest, DllSearch, DllSource, FoundDll, SearchedDirs};
use crate::binary::mapped_file::Contents;
use crate::binary::pe::Pe;
use crate::family::{Member, is_installed};
use crate::host::dry_run::is_of_program;
use crate::host::machine::cudnn_soname;
use crate::knowledge::vendor::{CUDNN, is_libcuda, is_of_driver, plain_name};
use cudaguard::internal::env::Env;
use cudaguard::internal::file_error::{FileError, FileProblem};
use cudaguard::internal::finding::{MessageFragment, MessageTemplate, Values};

/// Returns true for a program or library for Windows.
pub(crate) fn has_dlls(file: &Binary) -> bool {
    file.os == Some(TargetOs::Windows) && matches!(file.kind, BinaryKind::Executable | BinaryKind::SharedLibrary)
}

/// Returns the file of a library in the first directory outside of Windows that contains it.
fn find_own<'a>(dirs: &'a SearchedDirs, name: &str) -> Option<&'a PathBuf> {
    let wanted = plain_name(name);
    let own = dirs.iter().filter(|(by, _)| *by != DllSource::System);
    let mut files = own.flat_map(|(_, files)| files);
    let found = files.find(|(file, _)| file.ends_with(".dll") && plain_name(file) == wanted);
    found.map(|(_, path)| path)
}

/// A DLL that Windows picks and fails to load.
struct BrokenDll {
    request: DllRequest,
    path: PathBuf,
    why: String,
}

impl ArtifactReport {
    /// Reads a program or library for Windows and the DLLs that it loads, or that it may load at the first call. `here`: the
    /// environment of this Windows machine, on which a DLL that does not exist is a finding. Without it, the DLLs are those that
    /// come with the file.
    pub(crate) fn with_dlls(path: &Path, contents: Arc<Contents>, here: Option<&Env>) -> Result<Self, FileError> {
        let mut report = Self::alone(path, contents)?;
        report.is_joined = here.is_some();
        let search = DllSearch::for_file(path, report.loaders[0].is_program(), here);
        let dirs = search.dirs_for(path);
        let (mut requests, mut broken) = (DllClosure::new(), Vec::new());
        let (mut open, mut asked) = (vec![path.to_owned()], 0);
        while let Some(file) = open.pop() {
            for request in search.resolve(&file, &dirs) {
                if !requests.iter().any(|known| known.is_named(&request.name)) {
                    broken.extend(report.join_dll(&request));
                    requests.push(request);
                }
            }
            for name in report.opened_dlls(asked) {
                let Some(path) = find_own(&dirs, &name) else { continue };
                if report.loader_of(&path.to_string_lossy()).is_none()
                    && !broken.iter().any(|dll: &BrokenDll| dll.path == *path)
                {
                    let found = FoundDll { path: Some(path.clone()), by: DllSource::LoadDirectory };
                    let request = DllRequest { name, needed_by: file.clone(), is_delayed: true, found: Some(found) };
                    broken.extend(report.join_dll(&request));
                    open.push(path.clone());
                }
            }
            asked = report.loaders.len();
        }
        report.use_runtime_of_root();
        mark_fallback_code(&mut report.parts);
        let mut closure = report.load_dlls(0, &report.named_dlls());
        for BrokenDll { request, path, why } in broken {
            closure.push_broken_dll(&report.loaders, &request, &path, why);
        }
        report.closures = vec![closure];
        if here.is_some() {
            report.report_missing_dlls(&requests);
        }
        Ok(report)
    }

    /// Returns the names of the libraries that files open without importing them. `first`: the first file.
    fn opened_dlls(&self, first: usize) -> Vec<String> {
        let mut names: Vec<String> =
            self.loaders[first..].iter().flat_map(|loader| loader.opens.groups()).flatten().cloned().collect();
        for part in self.parts.iter().filter(|part| self.loaders[first..].iter().any(|one| one.name == part.name)) {
            // NVRTC opens its builtins when it compiles.
            names.extend(part.family.as_ref().and_then(Member::builtins_name));
            names.extend(part.components.manifests.iter().filter_map(cudnn_soname).map(str::to_owned));
        }
        names
    }

    /// Adds the file of a request, unless it is a part of Windows or of the driver. Returns it if Windows fails to load it.
    fn join_dll(&mut self, request: &DllRequest) -> Option<BrokenDll> {
        let path = request.own_file().filter(|_| !is_of_driver(&request.name))?;
        let why = match Contents::open(path) {
            Ok(data) => match Pe::parse(&data) {
                Ok(_) => {
                    let (path, name) = (path.to_owned(), request.name.clone());
                    let picked_by = String::new();
                    self.files.insert(path.display().to_string());
                    let _ = self.join_library(&MachineLibrary { path, name, picked_by, data: Arc::new(data) });
                    return None;
                }
                Err(why) => format!("it {why}"),
            },
            Err(FileError { problem: FileProblem::Empty, .. }) => "it is empty".to_owned(),
            Err(why) => {
                self.not_examined.push(NotExamined::new(request.name.as_str(), why.to_string()));
                return None;
            }
        };
        if request.is_delayed {
            self.not_examined.push(NotExamined::new(request.name.as_str(), format!("{}: {why}", path.display())));
            return None;
        }
        Some(BrokenDll { request: request.clone(), path: path.to_owned(), why })
    }

    /// Reports DLLs of the system and of other packages that this machine lacks. The driver and NVIDIA's libraries are checked as
    /// requirements, and the libraries of the program with those of other systems.
    fn report_missing_dlls(&mut self, requests: &DllClosure) {
        for request in requests.iter().filter(|request| request.found.is_none() && !request.is_delayed) {
            let name = &request.name;
            let is_checked = is_libcuda(name) || CUDNN.is_named(name) || is_installed(name) || is_of_program(name);
            if is_checked || is_side_by_side(&name.to_ascii_lowercase()) {
                continue;
            }
            let by = request.needed_by.display();
            if let Some(root) = self.parts.first_mut().filter(|_| self.loaders[0].is_program()) {
                // Windows ends a program.
                let values = Values::default().with("library", name).with("needed_by", by);
                let cure = MessageFragment::InstallPackage.render(&Values::default());
                root.components.findings.push(MessageTemplate::LibraryAbsent.to_finding(&values.with("cure", cure)));
            } else {
                // The program that loads a library may have them in its directory.
                let why = format!("{by} needs it, and only the directory of the program may contain it");
                self.not_examined.push(NotExamined::new(name.as_str(), why));
            }
        }
    }
}

/// Returns true for a C runtime that Windows loads from a side-by-side assembly: Visual C++ 2005 and 2008.
fn is_side_by_side(dll: &str) -> bool {
    const STEMS: [&str; 6] = ["msvcr", "msvcp", "msvcm", "mfc", "atl", "vcomp"];
    let stem = dll.strip_suffix("80.dll").or_else(|| dll.strip_suffix("90.dll"));
    stem.is_some_and(|stem| STEMS.contains(&stem))
}
