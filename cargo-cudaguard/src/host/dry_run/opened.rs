//! Libraries that the files of a load graph open by name.

use std::path::Path;

use super::together::Scope;
use crate::binary::examined::NotExamined;
use crate::binary::loader::{LoadGraph, Object};
use crate::family::{Descriptor, OpenedLibrary, opened_libraries};
use cudaguard::internal::vendor;

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
            if names.iter().any(|name| graph.open_library(at, name).is_some()) {
                continue;
            }
            if scope == Scope::Loaded || library.dirs.iter().any(|dir| dir.contains("ORIGIN")) {
                absent.push(library.describe());
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

/// The start of the names of libraries that a system provides, after `lib`: those of glibc and gcc, and those that PEP 600 lets
/// every wheel need. They contain no GPU code.
const OF_SYSTEM: [&str; 40] = [
    "c.",
    "m.",
    "dl.",
    "rt.",
    "pthread.",
    "util.",
    "resolv.",
    "crypt.",
    "nsl.",
    "anl.",
    "mvec.",
    "atomic.",
    "gcc_s.",
    "stdc++.",
    "gomp.",
    "gfortran.",
    "quadmath.",
    "omp.",
    "numa.",
    "z.",
    "expat.",
    "ffi.",
    "ssl.",
    "crypto.",
    "python",
    "X11",
    "Xext.",
    "Xrender.",
    "ICE.",
    "SM.",
    "xcb",
    "GL.",
    "GLX.",
    "GLES",
    "EGL.",
    "OpenGL.",
    "OpenCL.",
    "vulkan.",
    "glib-",
    "gobject-",
];

/// Returns the libraries that files of the program need and that are not found here. They may contain GPU code. Libraries of
/// NVIDIA and of the system are part of a machine.
pub(super) fn absent_libraries(graph: &LoadGraph) -> Vec<NotExamined> {
    let is_of_machine = |name: &str| {
        let stem = name.strip_prefix("lib").unwrap_or(name);
        vendor::is_nvidias(stem.split(".so").next().unwrap_or_default())
            || vendor::is_nvidia_soname(name)
            || Descriptor::named(name).is_some()
            || name.starts_with("ld-")
            || OF_SYSTEM.iter().any(|start| stem.starts_with(start))
    };
    let mut parts: Vec<NotExamined> = Vec::new();
    for request in graph.unresolved_requests().filter(|request| !is_of_machine(&request.name)) {
        let by = graph.objects[request.by].path.display();
        let part = NotExamined::new(request.name.clone(), format!("needed by {by}, and not found"));
        if !parts.iter().any(|known| known.name == part.name) {
            parts.push(part);
        }
    }
    parts
}

/// Returns the names that the file may try: those in its texts, or the files of the directories in its search path.
fn names_of(library: &OpenedLibrary, origin: Option<&Path>) -> Vec<String> {
    if !library.names.is_empty() {
        return library.names.clone();
    }
    let origin = origin.unwrap_or(Path::new("")).display().to_string();
    let dirs = library.dirs.iter().map(|dir| dir.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin));
    let entries = dirs.filter_map(|dir| std::fs::read_dir(dir).ok()).flat_map(Iterator::flatten);
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| library.is_named(name));
    names.sort_by_key(|name| (name.len(), name.clone()));
    names
}
