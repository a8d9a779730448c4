//! Detects the version of a library from its file, without loading it.

use std::path::{Path, PathBuf};

use crate::binary::elf::Elf;
use crate::binary::file;
use crate::binary::loader::{Inspection, LoadGraph};
use crate::binary::mapped_file::OpenFiles;
use crate::binary::pe::Pe;
use crate::family::version_in_file;
use crate::knowledge::vendor::{self, BUILTINS, Library, plain_name, version_in_name};
use cudaguard::internal::version::Version;

/// Returns the exact version of this file of NVIDIA's: from the file, otherwise from a part of the library in the same directory.
pub(crate) fn file_version(files: &OpenFiles, path: &Path) -> Option<Version> {
    let (data, real) = (files.open(path).ok(), std::fs::canonicalize(path).ok()?);
    let data = data.as_deref().map(|data| &**data).unwrap_or_default();
    let soname = soname_in(data).filter(|soname| vendor::is_of_nvidia(soname)).or(path.file_name()?.to_str())?;
    let found = version_in_file(real.file_name()?.to_str()?, soname, data);
    // The functions of a library need its exact release.
    let is_builtins = || vendor::nvidia_library(soname).is_some_and(|library| library.is(&BUILTINS));
    found
        .filter(|found| found.is_exact || is_builtins())
        .map(|found| found.version)
        .or_else(|| version_of_parts(files, soname, &real))
}

fn soname_in(data: &[u8]) -> Option<&str> {
    if Pe::is_pe(data) { Pe::parse(data).ok()?.dll_name() } else { Elf::parse(data).ok()?.soname() }
}

/// Returns the version of a required part of this library in the same directory.
fn version_of_parts(files: &OpenFiles, soname: &str, library: &Path) -> Option<Version> {
    let described = vendor::described_library(soname)?;
    let parts: Vec<_> = described.parts_of_major(described.major(soname)?).filter(|part| part.needed).collect();
    let mut entries = library.parent().filter(|_| !parts.is_empty())?.read_dir().ok()?.flatten();
    entries.find_map(|entry| {
        let part = parts.iter().find(|part| part.file == plain_name(&entry.file_name().to_string_lossy()))?;
        exported_version(files, &entry.path(), part.symbol)
    })
}

/// Returns the version in the name of the file, after all links are resolved.
pub(crate) fn in_name(library: &Library, file: &Path) -> Option<Version> {
    let real = std::fs::canonicalize(file).ok()?;
    real.file_name()?.to_str().filter(|name| library.is_named(name)).and_then(version_in_name)
}

/// Returns the packed version that an inner library exports.
pub(crate) fn exported_version(files: &OpenFiles, file: &Path, symbol: &str) -> Option<Version> {
    if symbol.is_empty() {
        return None;
    }
    file::exported_version(&files.open(file).ok()?, symbol)
}

/// Returns the file of this name that a library, the object `index`, would open. The library tries its own full version
/// first, then shorter ones.
pub(crate) fn inner_file(graph: &LoadGraph, index: usize, file: &str, version: Option<Version>) -> Option<PathBuf> {
    let (stem, _) = file.split_once(".so")?;
    let names = version
        .iter()
        .flat_map(|version| [format!("{stem}.so.{version}"), format!("{stem}.so.{}.{}", version.major, version.minor)]);
    names
        .chain([file.to_owned()])
        .find_map(|name| {
            graph.resolve_file(index, &name).filter(|candidate| candidate.inspection == Inspection::Usable)
        })
        .map(|candidate| candidate.path)
}
