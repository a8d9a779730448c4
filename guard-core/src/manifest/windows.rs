//! Requirements of programs for Windows, whose drivers have other release numbers.

use std::borrow::Cow;

use crate::knowledge::tables;
use crate::manifest::model::{Manifest, Requirement};

/// Replaces the driver releases of a row, which are those of Linux, by those of Windows for the same CUDA version. Those of Windows
/// remain as they are.
pub fn use_windows_releases(row: &mut Requirement) {
    match row {
        Requirement::Driver { cuda, release, .. } => *release = tables::windows_release(*cuda, *release),
        Requirement::Gpu { cuda, release, guaranteed_from, .. } => {
            *release = cuda.zip(*release).map(|(cuda, release)| tables::windows_release(cuda, release));
            *guaranteed_from = guaranteed_from.map(|(cuda, release)| (cuda, tables::windows_release(cuda, release)));
        }
        Requirement::Library { .. } | Requirement::Part { .. } => {}
    }
}

/// Returns the manifest with the driver releases of its target.
pub(super) fn with_releases_of_target(manifest: &Manifest) -> Cow<'_, Manifest> {
    if !manifest.target.split('-').any(|part| part == "windows") {
        return Cow::Borrowed(manifest);
    }
    let mut manifest = manifest.clone();
    manifest.requires.iter_mut().for_each(use_windows_releases);
    Cow::Owned(manifest)
}
