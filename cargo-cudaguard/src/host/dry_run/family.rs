//! The builtins of NVRTC, which opens them when it compiles.

use std::path::{Path, PathBuf};

use crate::family::BUILTINS;

/// Returns the files with the builtins of an NVRTC, in its directory.
pub(crate) fn builtins_beside(nvrtc: &Path) -> Vec<PathBuf> {
    let entries = nvrtc.parent().and_then(|dir| dir.read_dir().ok());
    let is_builtins = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(BUILTINS.stems[0]))
    };
    entries.into_iter().flatten().flatten().map(|entry| entry.path()).filter(is_builtins).collect()
}
