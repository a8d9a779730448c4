//! Which version a library is, told by its file: nothing is loaded.

use std::path::{Path, PathBuf};

use crate::binary::Contents;
use crate::elf::Elf;
use crate::loader::{Graph, Look};
use crate::vendor::GUARDED;
use crate::version::Version;

/// The version of a cuDNN whose loader library is this file: by its real name, else by an inner library beside it.
pub(crate) fn version_beside(file: &Path, major: u32) -> Option<Version> {
    in_name(file)
        .or_else(|| GUARDED.needed_parts(major).find_map(|part| word(&file.with_file_name(part.file), part.symbol)))
}

/// `libcudnn.so.9.10.2` behind every link → its version.
pub(crate) fn in_name(file: &Path) -> Option<Version> {
    numbers_in_name(file, "libcudnn.so.")
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

/// The file of this name that cuDNN's loader library, the object `index`, would load: it asks for its own full version
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
