//! Paths of the repository and its build outputs.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Returns the root of this repository.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in the workspace")
}

/// Returns the target directory of cargo that contains this program.
pub fn target() -> &'static Path {
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    TARGET.get_or_init(|| {
        let here = std::env::current_exe().unwrap_or_default();
        let above = here.ancestors().find(|dir| dir.join("CACHEDIR.TAG").is_file());
        above.map_or_else(|| workspace().join("target"), Path::to_path_buf)
    })
}

/// Returns the directory of the shim. `cargo mutate` sets another one.
pub fn templates() -> PathBuf {
    std::env::var_os("CUDAGUARD_TEMPLATES").map_or_else(|| workspace().join("templates"), PathBuf::from)
}
