//! Detects whether a guard must be rebuilt, by contents instead of times.
//!
//! cargo compares the times of files and the values of variables. A toolkit that was replaced by an older package has
//! older times, so cargo does not rebuild. Therefore `cargo cudaguard` computes a digest of the dependencies of a guard
//! before each build and rewrites a stamp file if the digest differs; `embed!()` makes cargo watch that file.

use std::path::{Path, PathBuf};

use crate::manifest::model::Component;

/// Returns the path of the stamp of a component in the directory that [`STAMP_DIR_VAR`](crate::sys::env::STAMP_DIR_VAR) names.
pub fn digest_file(dir: &Path, component: &Component) -> PathBuf {
    dir.join(format!("{}.stamp", crate::guard::note_group(component)))
}

/// Returns the path of the findings file that `embed!()` writes next to the stamp.
pub fn findings_path(dir: &Path, component: &Component) -> PathBuf {
    digest_file(dir, component).with_extension("said")
}

/// Returns true if cargo itself sets this variable for build scripts. cargo rebuilds if one of these changes, and
/// outside of a build script they have no meaning.
pub fn given_by_cargo(name: &str) -> bool {
    const OTHERS: [&str; 11] = [
        "CARGO",
        "DEBUG",
        "HOST",
        "NUM_JOBS",
        "OPT_LEVEL",
        "OUT_DIR",
        "PROFILE",
        "RUSTC",
        "RUSTDOC",
        "TARGET",
        crate::sys::env::STAMP_DIR_VAR,
    ];
    OTHERS.contains(&name)
        || ["CARGO_PKG_", "CARGO_CFG_", "CARGO_FEATURE_", "CARGO_MANIFEST_", "CARGO_ENCODED_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}
