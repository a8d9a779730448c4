//! Whether a build is still true: contents, not times.
//!
//! cargo looks at the times of files and the values of variables. A toolkit that was replaced by an older package has
//! older times, and cargo keeps what it had. So `cargo cudaguard` digests what a guard depends on before each build and
//! rewrites a stamp file where the digest differs; `embed!()` announces that file.

use std::path::{Path, PathBuf};

use crate::manifest::model::Component;

/// Where the stamp of a component stands in the folder that [`STAMP_DIR_VAR`](crate::sys::env::STAMP_DIR_VAR) names.
pub fn digest_file(folder: &Path, component: &Component) -> PathBuf {
    folder.join(format!("{}.stamp", crate::guard::note_group(component)))
}

/// Where `embed!()` leaves its findings for who is to tell them further: beside the stamp.
pub fn findings_path(folder: &Path, component: &Component) -> PathBuf {
    digest_file(folder, component).with_extension("said")
}

/// Whether cargo itself sets this variable for build scripts. cargo rebuilds by itself where these matter, and outside
/// of a build script they say nothing.
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
