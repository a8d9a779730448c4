//! The crates of a build that reach CUDA: the versions that each expects and would find, and whether they agree.
//!
//! - [`table`]: facts about crates, from their own sources (`data/crates.toml`)
//! - [`Crate`]: one crate of a dependency graph
//! - [`detect_crates()`]: detects what each crate would do in this environment; reads variables and files
//! - [`check_crates()`]: pure: (policy, toolchain, behaviour of the crates) → findings
//! - [`recognition`]: recognises crates that use CUDA and are not in the table
//! - [`dlopen`]: the libraries that they open by name, as a note that other tools read too

use std::collections::BTreeSet;

mod crate_findings;
mod crate_use;
pub mod dlopen;
pub mod recognition;
pub mod table;

pub use crate_findings::{Ran, check_crates, check_stale_builds, driver_floors};
pub use crate_use::{
    ArchUse, Chosen, CrateCompiler, CrateHeaders, CrateUse, CudaLevel, DetectedLevel, LibraryLevel, Stopped,
    detect_crates,
};

use crate::knowledge::vendor::{CUDNN, NVML, is_nvidia_word};
use serde::{Deserialize, Serialize};
use table::{CrateRow, Mode};

/// A crate of a graph that is linked into the built file, or runs in the build script of such a crate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crate {
    /// Requested name.
    pub name: String,
    /// The version.
    pub version: String,
    /// The features that are enabled in this build.
    pub features: BTreeSet<String>,
    /// The features that it declares.
    pub known: BTreeSet<String>,
    /// `links` in its manifest.
    pub links: Option<String>,
    /// The shortest path to it from the package that is built: `app`, `candle-core 0.11.1`, `cudarc 0.19.10`.
    pub path: Vec<String>,
    /// True if it runs in the build script of the crate before it in `path`. Otherwise it is linked.
    pub tool: bool,
    /// Line in a manifest of the workspace that names it: `app/Cargo.toml:12`, relative to the workspace's root.
    pub named_in: Vec<String>,
    /// Why it is assumed to use CUDA, if only its name or its build script suggests it ([`recognition`]). Such a crate is
    /// listed, and changes no check.
    pub assumed: Option<String>,
}

impl Crate {
    /// `cudarc 0.19.10`.
    pub fn describe(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// `app -> candle-core 0.11.1 -> cudarc 0.19.10`.
    pub fn dependency_path(&self) -> String {
        self.path.join(" -> ")
    }

    /// The crate that depends on it, or in whose build script it runs.
    pub fn calling_crate(&self) -> &str {
        let above = self.path.len().checked_sub(2).and_then(|at| self.path.get(at));
        above.and_then(|step| step.split(' ').next()).unwrap_or_default()
    }

    /// The row of the table for this version.
    pub fn table_row(&self) -> Option<&'static CrateRow> {
        table::find_row(&self.name, &self.version)
    }

    /// Returns true if the table has its name, or its `links` key names an NVIDIA library.
    pub fn is_relevant(name: &str, links: Option<&str>) -> bool {
        table::is_known(name) || links.is_some_and(is_nvidia_word)
    }

    /// Returns true if these features make it reach CUDA by itself. A crate that many programs use without a GPU reaches CUDA
    /// through other crates, which are in the graph then. NVML comes with the driver and needs no toolkit.
    pub fn reaches_cuda(&self) -> bool {
        let Some(row) = self.table_row() else { return self.assumed.is_none() };
        let linked = self.link_mode() != Mode::None
            && self.library_stems().into_iter().any(|stem| stem != NVML && is_nvidia_word(stem));
        linked || !row.nvcc.is_empty() || self.features.iter().any(|feature| feature.starts_with("cuda"))
    }

    /// Returns true if its build may use a toolkit: it links, or searches nvcc, headers or libraries. A crate that no table describes
    /// may do all of that.
    pub fn may_use_toolkit(&self) -> bool {
        let Some(row) = self.table_row() else { return true };
        let asks_nvcc = row.level.as_ref().is_some_and(|level| self.features.contains(&level.nvcc));
        let searches = asks_nvcc || !row.nvcc.is_empty() || row.header_level.is_some() || row.download.is_some();
        searches || !matches!(self.link_mode(), Mode::Loaded | Mode::None)
    }

    /// Returns true if a list of the crates that reach CUDA contains it: also if only NVML, a framework with CUDA in it or
    /// a build script does.
    pub fn is_listed(&self) -> bool {
        self.tool || self.reaches_cuda() || self.assumed.is_some() || self.link_mode() != Mode::None
    }

    /// How it reaches its libraries.
    pub fn link_mode(&self) -> Mode {
        self.table_row().map_or(Mode::Unknown, |row| row.link_mode(&self.features))
    }

    /// The stems of the libraries that it links or loads, without `lib`.
    pub fn library_stems(&self) -> Vec<&'static str> {
        self.table_row().map(|row| row.library_stems(&self.features)).unwrap_or_default()
    }

    /// `Cargo.toml:12`, or another place that may set the feature.
    fn declaration_place(&self) -> String {
        match self.named_in.first() {
            Some(line) => line.clone(),
            None if self.path.len() > 2 => {
                format!("the manifest of {}", self.path[self.path.len() - 2])
            }
            None => "Cargo.toml".to_owned(),
        }
    }
}

/// Returns true if the library differs between majors of the toolkit. The driver, NVRTC and NVML do not. cuDNN, cuRAND,
/// cuFile, cuTENSOR and NCCL have their own version numbers.
fn has_majors(stem: &str) -> bool {
    stem != CUDNN.key
        && !matches!(
            stem,
            "cuda"
                | "nvrtc"
                | "nvidia-ml"
                | "nvToolsExt"
                | "curand"
                | "cufile"
                | "cutensor"
                | "nccl"
                | "onnxruntime"
                | "torch_cpu"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relevant_crates_are_recognized() {
        for (name, links, truth) in [
            ("cudarc", None, true),
            ("serde", None, false),
            ("my-gpu", Some("cuda"), true),
            ("my-gpu", Some("libcublasLt"), true),
            ("cutensor-sys", Some("cutensor"), true),
            ("curl-sys", Some("curl"), false),
            ("cups-sys", Some("cups"), false),
            ("zstd-sys", Some("zstd"), false),
        ] {
            assert_eq!(Crate::is_relevant(name, links), truth, "{name} {links:?}");
        }
    }
}
