//! What the project's `cudaguard.toml` demands.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::arch::Target;
use crate::finding::Code;

/// A policy: each key has a sensible default, so `Policy::default()` is what holds without a file.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The file it was read from; `None` where there is none.
    pub path: Option<PathBuf>,
    /// `[toolkit] require`.
    pub toolkit: Option<Requirement>,
    /// `[cudnn] require`.
    pub cudnn: Option<Requirement>,
    /// `[cudnn] linkage`: what the project's cuDNN linkage must be.
    pub cudnn_linkage: Option<crate::manifest::Linkage>,
    /// `[cudnn] patch = "refuse"`: older patches of the built minor are refused as well.
    pub cudnn_patch_refuse: bool,
    /// `[cudnn] required`: an absent cuDNN that is loaded at run time refuses.
    pub cudnn_required: bool,
    /// `[cudnn] fleet`: the oldest cuDNN it must run on.
    pub cudnn_fleet: Option<String>,
    /// `[gpu] archs`: what the package's own kernels must be.
    pub archs: Vec<Target>,
    /// `[gpu] fleet`: product names, chips or cc's that the whole binary must run on.
    pub fleet: Vec<String>,
    /// `[gpu] partial = "refuse"`.
    pub partial_refuse: bool,
    /// `[driver] fleet`: the oldest driver branch it must run on.
    pub driver_fleet: Option<String>,
    /// `[build] release`: what a mismatch does to a release build. `None`: deny.
    pub release: Option<BuildAction>,
    /// `[build] dev`: the same for dev builds. `None`: warn.
    pub dev: Option<BuildAction>,
    /// `[runtime]`.
    pub runtime: Runtime,
    /// `[allow]`: code → the reason.
    pub allow: BTreeMap<Code, String>,
}

/// A version requirement, with its own words.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// As written.
    pub text: String,
    /// As read.
    pub parsed: semver::VersionReq,
}

/// What a finding of weight does to a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildAction {
    /// Fail it.
    Deny,
    /// Say it and go on.
    Warn,
}

/// `[runtime]`: what the shim does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runtime {
    /// `mismatch = "warn"`: say it and go on. Default: refuse.
    pub mismatch_warns: bool,
    /// `gpu`.
    pub gpu: GpuNeed,
    /// `library = "enforce"`: a guarded library ends the process too.
    pub library_enforces: bool,
}

/// `[runtime] gpu`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GpuNeed {
    /// Nothing to see: silent and on.
    #[default]
    Auto,
    /// Nothing to see: refuse.
    Required,
    /// Never exit for GPU or driver reasons.
    Optional,
}

/// The policy cannot be read: file, line, key, what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError(pub String);

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PolicyError {}

impl Policy {
    /// The policy of the package in `dir`: `cudaguard.toml` there, else in the folders above up to and with `top` (the
    /// workspace's root); `[package.NAME]` of `package` laid over it. No file: the default.
    pub fn of_package(_dir: &Path, _top: &Path, _package: &str) -> Result<Self, PolicyError> {
        Ok(Self::default())
    }

    /// What a finding of weight does to a build of this kind.
    pub fn action(&self, release: bool) -> BuildAction {
        if release { self.release.unwrap_or(BuildAction::Deny) } else { self.dev.unwrap_or(BuildAction::Warn) }
    }
}
