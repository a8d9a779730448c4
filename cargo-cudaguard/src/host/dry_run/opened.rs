//! Libraries that the files of a load graph open by name.

use std::path::{Path, PathBuf};

use super::components::{Scope, is_brought};
use crate::binary::examined::NotExamined;
use crate::binary::file::{self, texts_starting_with};
use crate::binary::loader::{LoadGraph, Object};
use crate::family::{OpenedLibrary, cuda_major_of, is_installed, is_of_nvidia, opened_libraries};
use crate::host::machine::{Components, OpenedByName};
use cudaguard::internal::elf::Elf;
use cudaguard::internal::finding::Finding;
use cudaguard::internal::manifest::Opens;
use cudaguard::internal::vendor::{CUDNN, NVML};

/// Loads the libraries that the files of the graph open by name, and returns those that are not found. Of a described machine
/// ([`Scope::Brought`]) only libraries that should come with the program are reported.
pub(super) fn load_opened(graph: &mut LoadGraph, scope: Scope) -> Vec<NotExamined> {
    let (mut missing, mut at) = (Vec::new(), 0);
    while at < graph.objects.len() {
        let mut absent = Vec::new();
        for library in opened_libraries(graph.objects[at].data()) {
            let is_it = |object: &Object| {
                let file = object.path.file_name().and_then(|name| name.to_str());
                let names = [Some(object.name.as_str()), object.soname.as_deref(), file];
                names.into_iter().flatten().any(|name| library.is_named(name))
            };
            if graph.objects.iter().any(is_it) {
                continue;
            }
            let names = names_of(&library, graph.objects[at].path.parent());
            // A described machine may have the libraries of NVIDIA's that a library needs.
            let may_be_absent = |name: &str| scope == Scope::Brought && is_installed(name);
            if names.iter().any(|name| graph.open_library_without(at, name, may_be_absent).is_some()) {
                continue;
            }
            if scope == Scope::Loaded || library.dirs.iter().any(|dir| dir.contains("ORIGIN")) {
                absent.push(library.describe());
            }
        }
        // Their absence is reported by other rules, or only matters for some functions.
        let of_texts = if is_brought(graph, at) { names_in_texts(graph, &graph.objects[at]) } else { Vec::new() };
        for names in names_of_others(&graph.objects[at]).into_iter().chain(of_texts) {
            if !names.iter().any(|name| graph.objects.iter().any(|object| object.is_named(name))) {
                let _ = names.iter().any(|name| graph.open_library(at, name).is_some());
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

/// Returns the findings about libraries that crates open and that the loader of this machine does not find.
pub(super) fn absent_of_crates(opened: &[OpenedByName], graph: &LoadGraph) -> Vec<Finding> {
    let is_loaded = |opened: &&OpenedByName| {
        opened.names.iter().any(|name| graph.objects.iter().any(|object| object.is_named(name)))
    };
    opened.iter().filter(|opened| !is_loaded(opened)).map(OpenedByName::absent_finding).collect()
}

/// Keeps the libraries that a machine must provide of those that are opened by name, and adds those whose names are texts in files
/// of the program. `is_inside` returns true for objects that come with the program.
pub(super) fn keep_of_machine(components: &mut Components, graph: &LoadGraph, is_inside: impl Fn(usize) -> bool) {
    let own: Vec<&Object> =
        graph.objects.iter().enumerate().filter(|(at, _)| is_inside(*at)).map(|(_, object)| object).collect();
    for object in &own {
        let by_text = opened_libraries(object.data()).into_iter().filter(|library| !library.names.is_empty());
        let by = object.path.file_name().unwrap_or_default().to_string_lossy();
        components.opened.extend(by_text.map(|library| OpenedByName {
            by: by.clone().into_owned(),
            names: library.names,
            is_by_crate: false,
        }));
    }
    components.opened.retain(|opened| !opened.names.iter().any(|name| own.iter().any(|object| object.is_named(name))));
}

/// Returns the names of each part of cuDNN that this cuDNN may open, and of each library that a crate in this file may open.
fn names_of_others(object: &Object) -> Vec<Vec<String>> {
    let own = object.soname.as_deref().unwrap_or(&object.name);
    if CUDNN.is_named(own) {
        let parts = CUDNN.major(own).into_iter().flat_map(|major| CUDNN.parts_of_major(major));
        return parts.map(|part| vec![part.file.to_owned()]).collect();
    }
    let notes = file::notes_in(object.data()).unwrap_or_default();
    let manifests = notes.iter().filter_map(|note| Some(note.decode().ok()?.manifest));
    let opens = manifests.flat_map(|manifest| manifest.opens);
    let of_crate = |opens: Opens| {
        let libraries = opens.libraries.iter().filter(|stem| !matches!(stem.as_str(), "cuda" | NVML));
        libraries.map(|stem| opens.candidate_names(stem)).collect::<Vec<_>>()
    };
    opens.flat_map(of_crate).collect()
}

/// Returns the names of libraries that are texts in a file: of those in its directory and in its search path, such as
/// `libtorch_cuda_linalg.so`, and of run-time compilers, which PyTorch names without their major (`libnvrtc.so.`).
fn names_in_texts(graph: &LoadGraph, object: &Object) -> Vec<Vec<String>> {
    let own = object.soname.as_deref().unwrap_or(&object.name);
    let Some(dir) = object.path.parent().filter(|_| !is_of_nvidia(own)) else { return Vec::new() };
    let path = Elf::parse(object.data()).ok().and_then(|elf| elf.runpath().or_else(|| elf.rpath())).unwrap_or_default();
    let own =
        path.split(':').filter(|entry| entry.contains("ORIGIN")).map(|entry| PathBuf::from(at_origin(entry, dir)));
    let dirs: Vec<PathBuf> = std::iter::once(dir.to_owned()).chain(own).collect();
    let is_near = |name: &str| dirs.iter().any(|dir| dir.join(name).is_file());
    let majors = || graph.objects.iter().filter_map(|object| cuda_major_of(object.soname.as_deref()?));
    let names = |name: String| {
        if ["libnvrtc.so.", "libnvJitLink.so."].contains(&name.as_str()) {
            return Some(majors().max().map(|major| format!("{name}{major}")).into_iter().collect());
        }
        let is_compiler = name.starts_with("libnvrtc.so.") || name.starts_with("libnvJitLink.so.");
        let is_of_driver = name.starts_with("libcuda.so") || name.starts_with("libnvidia-");
        let is_library = name.contains(".so") && !name.contains('/') && !is_of_driver;
        (is_compiler || is_library && is_near(&name)).then(|| vec![name])
    };
    texts_starting_with(object.data(), "lib").into_iter().filter_map(names).collect()
}

fn at_origin(entry: &str, origin: &Path) -> String {
    let origin = origin.display().to_string();
    entry.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin)
}

/// Returns the names that the file may try: those in its texts, or the files of the directories in its search path.
fn names_of(library: &OpenedLibrary, origin: Option<&Path>) -> Vec<String> {
    if !library.names.is_empty() {
        return library.names.clone();
    }
    let dirs = library.dirs.iter().map(|dir| at_origin(dir, origin.unwrap_or(Path::new(""))));
    let entries = dirs.filter_map(|dir| std::fs::read_dir(dir).ok()).flat_map(Iterator::flatten);
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| library.is_named(name));
    names.sort_by_key(|name| (name.len(), name.clone()));
    names
}
