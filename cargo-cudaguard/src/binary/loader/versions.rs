//! Compares the symbol versions that an object requires (`.gnu.version_r`) with those that the library defines
//! (`.gnu.version_d`). Rule: glibc, `elf/dl-version.c`: a library that defines no versions at all is accepted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::graph::LoadGraph;
use cudaguard::internal::elf::Elf;

/// A version that a library lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingVersion {
    /// `GLIBC_2.38`.
    pub version: String,
    /// The library without that version.
    pub library: PathBuf,
    /// The object that requires it.
    pub by: PathBuf,
}

impl LoadGraph {
    /// Returns the symbol versions that an object requires from a library and that the library does not define. The
    /// loader also ends the program because of these.
    pub fn missing_versions(&self) -> Vec<MissingVersion> {
        let mut defined: BTreeMap<PathBuf, Option<BTreeSet<String>>> = BTreeMap::new();
        let mut missing = Vec::new();
        for object in self.objects.iter().filter(|_| !self.is_of_musl()) {
            let Ok(elf) = Elf::parse(object.data()) else { continue };
            for (file, version) in elf.needed_versions() {
                let Some(library) = self.object_index(file.as_bytes()) else { continue };
                let (library, data) = (&self.objects[library].path, self.objects[library].data());
                let known = defined.entry(library.clone()).or_insert_with(|| defined_versions(data));
                if known.as_ref().is_some_and(|known| !known.contains(version)) {
                    let version = version.to_owned();
                    missing.push(MissingVersion { version, library: library.clone(), by: object.path.clone() });
                }
            }
        }
        missing
    }
}

/// Returns the versions that a file defines. `None` if there are none, or if the file cannot be parsed.
fn defined_versions(data: &[u8]) -> Option<BTreeSet<String>> {
    let elf = Elf::parse(data).ok()?;
    let names: BTreeSet<_> = elf.defined_versions().map(str::to_owned).collect();
    (!names.is_empty()).then_some(names)
}
