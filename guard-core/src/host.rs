//! Facts of the run side, as the run judge wants them: gathered by whoever looks, invented by nobody.

use std::path::PathBuf;

use crate::version::Version;

/// A machine, or a process on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// The cuDNN that the program gets, or would get.
    pub cudnn: CudnnFound,
}

/// What was found of cuDNN.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CudnnFound {
    /// Nobody looked, or looking failed: cannot tell.
    #[default]
    Unknown,
    /// Looked everywhere: not there.
    Absent,
    /// There.
    Found {
        /// The loader library's file.
        path: PathBuf,
        /// Its major, by soname.
        major: u32,
        /// By the inner library's exported word, the file name or a child's answer; `None`: cannot tell.
        version: Option<Version>,
        /// Inner libraries of which the manifest's rows ask: file name → what was found.
        inner: Vec<Inner>,
    },
}

/// One of cuDNN's inner libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inner {
    /// `libcudnn_graph.so.9`.
    pub file: String,
    /// Whether it is there.
    pub present: bool,
    /// Its own version, where it exports one.
    pub version: Option<Version>,
}
