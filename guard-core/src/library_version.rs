//! Which version a library is, told by its file: nothing is loaded.

use std::path::{Path, PathBuf};

use crate::binary;
use crate::contents::Contents;
use crate::elf::Elf;
use crate::loader::{Graph, Look};
use crate::vendor::Library;
use crate::version::Version;

/// The version of the library whose file this is: by its real name, else by a part beside it, else by its own text.
pub(crate) fn of_file(library: &Library, file: &Path) -> Option<Version> {
    let major = || library.major(file.file_name()?.to_str()?);
    let by_part = || {
        let mut parts = library.needed_parts(major()?);
        parts.find_map(|part| word(&file.with_file_name(part.file), part.symbol))
    };
    in_name(library, file)
        .or_else(by_part)
        .or_else(|| library.own_text.then(|| binary::version_inside(library, file))?)
}

/// The version in the name of the file behind every link.
pub(crate) fn in_name(library: &Library, file: &Path) -> Option<Version> {
    numbers_in_name(file, &format!("{}.so.", library.stem))
}

/// The version behind this stem in the name of the file behind every link; three numbers, or it is none.
pub(crate) fn numbers_in_name(file: &Path, stem: &str) -> Option<Version> {
    let real = std::fs::canonicalize(file).ok()?;
    let numbers = real.file_name()?.to_str()?.strip_prefix(stem)?;
    (numbers.split('.').count() >= 3).then(|| numbers.parse().ok()).flatten()
}

/// The packed version that an inner library exports. A word without a plausible major is none.
pub(crate) fn word(file: &Path, symbol: &str) -> Option<Version> {
    if symbol.is_empty() {
        return None;
    }
    let data = Contents::open(file).ok()?;
    let version = Version::from_packed(Elf::parse(&data).ok()?.exported_u32(symbol)?);
    (1..100).contains(&version.major).then_some(version)
}

/// The part of this name that a library, the object `index`, would open: it asks for its own full version
/// first, then for shorter ones.
pub(crate) fn inner_file(graph: &Graph, index: usize, file: &str, version: Option<Version>) -> Option<PathBuf> {
    let (stem, _) = file.split_once(".so")?;
    let names = version
        .iter()
        .flat_map(|version| [format!("{stem}.so.{version}"), format!("{stem}.so.{}.{}", version.major, version.minor)]);
    names
        .chain([file.to_owned()])
        .find_map(|name| graph.file(index, &name).filter(|candidate| candidate.look == Look::Usable))
        .map(|candidate| candidate.path)
}
