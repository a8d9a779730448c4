//! Compares the symbol versions that an object requires (`.gnu.version_r`) with those that the library defines
//! (`.gnu.version_d`). Rule: glibc, `elf/dl-version.c`: a library that defines no versions at all is accepted.

use std::path::PathBuf;

use super::graph::LoadGraph;

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
        let mut missing = Vec::new();
        for object in self.objects.iter().filter(|_| !self.is_of_musl()) {
            for (file, version) in &object.elf().needed_versions {
                let Some(library) = self.object_index(file.as_bytes()) else { continue };
                let library = &self.objects[library];
                let defined = &library.elf().defined_versions;
                if !defined.is_empty() && !defined.contains(version) {
                    missing.push(MissingVersion {
                        version: version.clone(),
                        library: library.path.clone(),
                        by: object.path.clone(),
                    });
                }
            }
        }
        missing
    }
}
