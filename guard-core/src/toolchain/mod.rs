//! Facts of the build side: what is really being built with, each with its source.

use std::path::PathBuf;

use crate::arch::Target;
use crate::version::Version;

/// Everything found.
#[derive(Clone, Debug, Default)]
pub struct Toolchain {
    /// The target triple.
    pub target: String,
    /// Whether this is a release build.
    pub release: bool,
}

impl Toolchain {
    /// The release of the toolkit in use: by nvcc, else by `cuda.h`.
    pub fn toolkit_version(&self) -> Option<Version> {
        None
    }

    /// The version of the cuDNN headers in use.
    pub fn cudnn_version(&self) -> Option<Version> {
        None
    }

    /// The declared archs in force.
    pub fn declared(&self) -> Vec<Target> {
        Vec::new()
    }

    /// `gcc 12.2.0`.
    pub fn host_compiler(&self) -> Option<String> {
        None
    }

    /// Files that were read: when one changes, look again.
    pub fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}
