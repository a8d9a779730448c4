//! The crates of a build that reach CUDA: what each expects, what it would find, and whether they agree with each other
//! and with the toolchain.
//!
//! - [`table`]: what is known of crates, from their own sources (`data/crates.toml`);
//! - [`Crate`]: one crate of a graph, as who asked cargo hands it over;
//! - [`look()`]: what each of them would do in this environment: reads variables and files;
//! - [`judge()`]: pure: (policy, toolchain, what they would do) → findings;
//! - [`dlopen`]: the libraries that they open by name, as a note that other tools read too.

use std::collections::BTreeSet;

pub mod dlopen;
mod judge;
mod look;
pub mod table;

pub use judge::{Ran, floors, judge, stale};
pub use look::{ArchUse, Chosen, Compiler, Headers, Level, LibraryLevel, Stopped, Told, Use, look};

use crate::vendor::{CUDNN, NVML, is_nvidias};
use table::{Mode, Row};

/// A crate of a graph that is linked into what is built, or runs in the build script of one that is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crate {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The features that are on in this build.
    pub features: BTreeSet<String>,
    /// The features that it declares: what it knows.
    pub known: BTreeSet<String>,
    /// `links` of its manifest.
    pub links: Option<String>,
    /// The shortest way to it from the package that is built, that package first: `app`, `candle-core 0.11.1`,
    /// `cudarc 0.19.10`.
    pub path: Vec<String>,
    /// It runs in the build script of the crate before it in `path`; otherwise it is linked.
    pub tool: bool,
    /// Where the workspace's own manifests name it, `app/Cargo.toml:12`, from the workspace's root.
    pub named_in: Vec<String>,
}

impl Crate {
    /// `cudarc 0.19.10`.
    pub fn describe(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// `app -> candle-core 0.11.1 -> cudarc 0.19.10`.
    pub fn way(&self) -> String {
        self.path.join(" -> ")
    }

    /// The crate in whose build script it runs, or that depends on it.
    pub fn caller(&self) -> &str {
        let above = self.path.len().checked_sub(2).and_then(|at| self.path.get(at));
        above.and_then(|step| step.split(' ').next()).unwrap_or_default()
    }

    /// What the table knows of it.
    pub fn row(&self) -> Option<&'static Row> {
        table::of(&self.name, &self.version)
    }

    /// Whether it is worth handing over: the table knows its name, or it says itself that it links a library of NVIDIA's.
    pub fn concerns(name: &str, links: Option<&str>) -> bool {
        table::knows(name) || links.is_some_and(is_nvidias)
    }

    /// Whether it reaches CUDA by itself, with these features: a crate that many programs use without a GPU reaches it by
    /// others, which are in the graph then. NVML comes with the driver and asks for no toolkit.
    pub fn reaches(&self) -> bool {
        let Some(row) = self.row() else { return true };
        let linked =
            self.mode() != Mode::None && self.libraries().into_iter().any(|stem| stem != NVML && is_nvidias(stem));
        linked || !row.nvcc.is_empty() || self.features.iter().any(|feature| feature.starts_with("cuda"))
    }

    /// How it reaches its libraries.
    pub fn mode(&self) -> Mode {
        self.row().map_or(Mode::Unknown, |row| row.mode(&self.features))
    }

    /// The stems of the libraries that it links or loads: without `lib`.
    pub fn libraries(&self) -> Vec<&'static str> {
        self.row().map(|row| row.libraries(&self.features)).unwrap_or_default()
    }

    /// `Cargo.toml:12`, or where else the feature may stand.
    fn line(&self) -> String {
        match self.named_in.first() {
            Some(line) => line.clone(),
            None if self.path.len() > 2 => {
                format!("the manifest of {}", self.path[self.path.len() - 2])
            }
            None => "Cargo.toml".to_owned(),
        }
    }
}

/// Whether a library is another one in each major of the toolkit. The driver, NVRTC and NVML are not; the guarded library, cuRAND,
/// cuFile, cuTENSOR and NCCL count by themselves, and no toolkit's major changes what they offer.
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
    fn what_is_worth_handing_over() {
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
            assert_eq!(Crate::concerns(name, links), truth, "{name} {links:?}");
        }
    }
}
