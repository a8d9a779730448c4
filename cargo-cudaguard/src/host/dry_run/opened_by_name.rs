//! Libraries that the files of a load graph open by name.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::origin::{Scope, is_brought};
use crate::binary::examined::NotExamined;
use crate::binary::file::{self, texts_starting_with};
use crate::binary::loader::{LoadGraph, Object};
use crate::family::{BUILTINS, OpenedLibrary, cuda_major_of, is_installed, is_of_nvidia, opened_libraries};
use crate::host::machine::opened_cudnn;
use crate::knowledge::vendor::{CUDNN, LIBCUDA, NVJITLINK, NVML, NVRTC, is_of_driver, nvidia_library};
use cudaguard::internal::cudnn;
use cudaguard::internal::finding::{Finding, MessageTemplate, Values};

/// The link to libcuda that comes with the files for development.
const LINK_OF_LIBCUDA: &str = "libcuda.so";

/// The libraries that one file may open by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileOpens {
    /// NVIDIA's libraries that the file needs.
    pub(crate) libraries: Vec<OpenedLibrary>,
    /// The names of each part of cuDNN, and of each library of a crate.
    others: Vec<Vec<String>>,
    /// Texts that are names of libraries.
    texts: Vec<String>,
}

/// The files of a load graph, as far as they open others.
pub(crate) trait OpeningFiles {
    /// Returns the libraries that this object may open.
    fn opens(&self, object: &Object) -> Cow<'_, FileOpens>;

    /// Returns true if this object comes with the program.
    fn is_brought(&self, graph: &LoadGraph, index: usize) -> bool;

    /// Returns true if a library that is not among the files may be a part of the machine.
    fn is_of_machine(&self, name: &str) -> bool;

    /// Returns the place from which a file opens a library that the search does not find.
    fn find_elsewhere(&self, name: &str) -> Option<PathBuf>;
}

/// Files whose contents are at hand.
struct ReadableFiles;

impl OpeningFiles for ReadableFiles {
    fn opens(&self, object: &Object) -> Cow<'_, FileOpens> {
        Cow::Owned(FileOpens::read(object.soname.as_deref().unwrap_or(&object.name), object.data(), true))
    }

    fn is_brought(&self, graph: &LoadGraph, index: usize) -> bool {
        is_brought(graph, index)
    }

    fn is_of_machine(&self, _: &str) -> bool {
        false
    }

    fn find_elsewhere(&self, _: &str) -> Option<PathBuf> {
        None
    }
}

impl FileOpens {
    /// Reads the contents of a file. `own`: its soname. `with_texts`: it uses CUDA.
    pub(crate) fn read(own: &str, data: &[u8], with_texts: bool) -> Self {
        Self {
            libraries: opened_libraries(data),
            others: names_of_others(own, data),
            texts: if with_texts && !is_of_nvidia(own) { library_names_in(data) } else { Vec::new() },
        }
    }

    /// Returns the names of each library, except those that are only texts.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[String]> {
        self.libraries.iter().map(|library| &*library.names).chain(self.others.iter().map(Vec::as_slice))
    }

    /// Returns true if a library of this name is one of them.
    pub(crate) fn includes(&self, name: &str) -> bool {
        let mut names = self.others.iter().flatten().chain(&self.texts);
        names.any(|known| known == name) || self.libraries.iter().any(|library| library.is_named(name))
    }
}

/// Loads the libraries that the files of the graph open by name, and returns those that are not found. Of a described machine
/// ([`Scope::Brought`]) only libraries that should come with the program are reported.
pub(super) fn load_opened(graph: &mut LoadGraph, scope: Scope) -> Vec<NotExamined> {
    load_opened_by(graph, scope, &ReadableFiles)
}

/// Loads what files of an artifact open, and which the artifact contains.
pub(crate) fn load_opened_inside(graph: &mut LoadGraph, files: &dyn OpeningFiles) {
    let _ = load_opened_by(graph, Scope::Brought, files);
}

fn load_opened_by(graph: &mut LoadGraph, scope: Scope, files: &dyn OpeningFiles) -> Vec<NotExamined> {
    let (mut missing, mut at) = (Vec::new(), 0);
    while at < graph.objects.len() {
        let opens = files.opens(&graph.objects[at]);
        let mut absent = Vec::new();
        for library in &opens.libraries {
            if graph.objects.iter().any(|object| {
                let file = object.path.file_name().and_then(|name| name.to_str());
                let names = [Some(object.name.as_str()), object.soname.as_deref(), file];
                names.into_iter().flatten().any(|name| library.is_named(name))
            }) {
                continue;
            }
            let names = names_of(library, graph, at);
            // A described machine may have the libraries of NVIDIA's that a library needs.
            let may_be_absent = |name: &str| scope == Scope::Brought && is_installed(name) || files.is_of_machine(name);
            if names.iter().any(|name| graph.open_library_without(at, name, may_be_absent).is_some()) {
                continue;
            }
            let mut elsewhere = names.iter().filter_map(|name| files.find_elsewhere(name));
            if elsewhere.any(|path| graph.open_library_without(at, &path.to_string_lossy(), may_be_absent).is_some()) {
                continue;
            }
            if scope == Scope::Loaded || library.comes_with_program() {
                absent.push(library.describe());
            }
        }
        // Their absence is reported by other rules, or only matters for some functions.
        let is_brought = !opens.texts.is_empty() && files.is_brought(graph, at);
        let of_texts = if is_brought { names_in_texts(graph, at, &opens.texts) } else { Vec::new() };
        for names in opens.others.iter().chain(&of_texts) {
            if !names.iter().any(|name| graph.loaded_object(name).is_some()) {
                let _ = names
                    .iter()
                    .any(|name| graph.open_library_without(at, name, |name| files.is_of_machine(name)).is_some());
            }
        }
        if !absent.is_empty() {
            let why = format!("opens libraries by name that are not found: {}", absent.join(", "));
            missing.push(NotExamined::new(graph.objects[at].path.display().to_string(), why));
        }
        at += 1;
    }
    missing
}

/// Loads what [`load_opened`] loads on this machine.
pub(crate) fn load_opened_here(graph: &mut LoadGraph) -> Vec<NotExamined> {
    load_opened(graph, Scope::Loaded)
}

/// Returns the findings about files that may open libcuda by a name that the loader of this machine does not find, although it finds
/// another one.
pub(crate) fn absent_names(graph: &LoadGraph) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, object) in graph.objects.iter().enumerate() {
        if is_of_nvidia(object.soname.as_deref().unwrap_or(&object.name)) || !is_brought(graph, at) {
            continue;
        }
        let mut names = texts_starting_with(object.data(), "libcuda.so");
        names.retain(|name| name == LINK_OF_LIBCUDA || name.starts_with("libcuda.so."));
        if names.is_empty() || names.iter().any(|name| graph.resolve_file(at, name).is_some()) {
            continue;
        }
        if let Some(other) = graph.resolve_file(at, LIBCUDA) {
            let file = object.path.file_name().unwrap_or_default().to_string_lossy();
            let values = Values::default().with("library", names.join(", ")).with("file", file);
            let values = values.with("path", other.path.display()).with("value", LIBCUDA);
            findings.push(MessageTemplate::OpenedLibraryAbsentOtherName.to_finding(&values));
        }
    }
    findings
}

/// Returns the names of each part of cuDNN that this cuDNN may open, of each library that a crate in
/// this file may open, and of the cuDNN that its component opens.
fn names_of_others(own: &str, data: &[u8]) -> Vec<Vec<String>> {
    if CUDNN.is_named(own) {
        let parts = CUDNN.major(own).into_iter().flat_map(cudnn::parts_of_major);
        return parts.map(|part| vec![part.file.to_owned()]).collect();
    }
    let notes = file::notes_in(data).unwrap_or_default();
    let mut all = Vec::new();
    for manifest in notes.iter().filter_map(|note| Some(note.decode().ok()?.manifest)) {
        for opens in &manifest.opens {
            let libraries = opens.libraries.iter().filter(|stem| !matches!(stem.as_str(), "cuda" | NVML));
            all.extend(libraries.map(|stem| opens.candidate_names(stem)));
        }
        all.extend(opened_cudnn(&manifest));
    }
    all
}

/// Returns the texts in a file that are names of libraries which are no part of the driver.
fn library_names_in(data: &[u8]) -> Vec<String> {
    let mut names = texts_starting_with(data, "lib");
    names.retain(|name| name.contains(".so") && !name.contains('/') && !is_of_driver(name));
    names
}

/// Returns the names of libraries that are texts in a file: of those in its directory and in its search path, such as
/// `libtorch_cuda_linalg.so`, and of run-time compilers, which PyTorch names without their major (`libnvrtc.so.`).
fn names_in_texts(graph: &LoadGraph, at: usize, texts: &[String]) -> Vec<Vec<String>> {
    let object = &graph.objects[at];
    let Some(dir) = object.path.parent() else { return Vec::new() };
    let path = object.search_path().unwrap_or_default();
    let own =
        path.split(':').filter(|entry| entry.contains("ORIGIN")).map(|entry| PathBuf::from(at_origin(entry, dir)));
    let dirs: Vec<PathBuf> = std::iter::once(dir.to_owned()).chain(own).collect();
    let major = graph.objects.iter().filter_map(|object| cuda_major_of(object.soname.as_deref()?)).max();
    let mut names = Vec::new();
    for name in texts {
        let compiler = nvidia_library(name).filter(|library| library.is(&NVRTC) || library.is(&NVJITLINK));
        if compiler.is_some() && name.ends_with(".so.") {
            names.push(major.map(|major| format!("{name}{major}")).into_iter().collect());
            continue;
        }
        if compiler.is_some() && name.contains(".so.") || dirs.iter().any(|dir| graph.has_file(&dir.join(name))) {
            names.push(vec![name.clone()]);
        }
    }
    names
}

fn at_origin(entry: &str, origin: &Path) -> String {
    let origin = origin.display().to_string();
    entry.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin)
}

/// Returns the names that the object may try: those in its texts, or the files of the directories in its search path.
fn names_of(library: &OpenedLibrary, graph: &LoadGraph, at: usize) -> Vec<String> {
    if !library.names.is_empty() {
        return library.names.clone();
    }
    let origin = graph.objects[at].path.parent().unwrap_or(Path::new(""));
    let dirs = library.dirs.iter().map(|dir| PathBuf::from(at_origin(dir, origin)));
    let mut names: Vec<String> = dirs.flat_map(|dir| graph.list_dir(&dir)).collect();
    names.retain(|name| library.is_named(name));
    names.sort_by_key(|name| (name.len(), name.clone()));
    names
}

/// Returns the files with the builtins of an NVRTC, which opens them when it compiles, in its directory.
pub(crate) fn builtins_beside(nvrtc: &Path) -> Vec<PathBuf> {
    let entries = nvrtc.parent().and_then(|dir| dir.read_dir().ok());
    let mut files: Vec<PathBuf> = entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(BUILTINS.stem()))
    });
    files
}
