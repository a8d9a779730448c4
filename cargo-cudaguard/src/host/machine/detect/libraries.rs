//! Detects NVIDIA's libraries that have no key of their own in a host file.

use super::described_file;
use crate::binary::elf::Elf;
use crate::binary::loader::{Inspection, LoadGraph};
use crate::binary::symbols;
use crate::family::is_installed;
use crate::host::library_version::file_version;
use crate::host::machine::HostLibrary;
use crate::knowledge::vendor;
use cudaguard::internal::env::Env;

/// Returns the libraries that the program of this graph finds: by their sonames, and by the names that crates open, which end with
/// `.so`.
pub(super) fn detect_others(env: &Env, graph: &LoadGraph) -> Vec<HostLibrary> {
    let names = graph.names_in_search_path(|name| {
        is_installed(name) && !vendor::DESCRIBED.into_iter().any(|library| library.soname_version(name).is_some())
    });
    names.into_iter().filter_map(|name| read_library(env, graph, name)).collect()
}

/// Reads the file that the loader picks for a name. `None` for other names of the file, such as `libcublas.so.13.0.2`.
fn read_library(env: &Env, graph: &LoadGraph, name: String) -> Option<HostLibrary> {
    let Some(found) = graph.resolve_file(0, &name).filter(|found| found.inspection == Inspection::Usable) else {
        let unusable = graph.candidates(0, &name).into_iter().next()?;
        return Some(described_file(env, name, None, &unusable));
    };
    let data = graph.files().open(&found.path).ok()?;
    let elf = Elf::parse(&data).ok()?;
    if elf.soname() != Some(name.as_str()) && !name.ends_with(".so") {
        return None;
    }
    let needs = elf.needed().into_iter().filter(|name| is_installed(name)).map(str::to_owned).collect();
    let version = file_version(graph.files(), &found.path);
    Some(HostLibrary { needs, binds: symbols::newest_bound(&elf), ..described_file(env, name, version, &found) })
}
