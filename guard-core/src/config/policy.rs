//! The project's policy, `cudaguard.toml`.
//!
//! The parser walks the file itself, so that each mistake has its line, full key, expected value and a suggestion. It
//! reports all mistakes at once.

mod parser;
mod release;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use crate::config::{ConfigError, check_regular_file};
use crate::finding::{Code, Finding, Severity};
use crate::knowledge::tables::{self, Cc};
use crate::model::arch::{ArchRequest, Target};
use crate::model::linkage::Linkage;
use crate::model::version::{DriverRelease, Version};
use crate::sys::file_error::FileError;
use crate::text::toml_error::{count_newlines, not_toml};
pub use release::{LossKind, PYPROJECT, ReleaseRequirements, parse_archs, parse_driver_floor};

use parser::PolicyReader;

/// The name of the file.
pub const FILE: &str = "cudaguard.toml";

/// Size limit of a policy or lock; a larger file is something else.
pub(crate) const LARGEST: u64 = 1 << 20;

/// A policy. Every key has a default, so `Policy::default()` applies if there is no file.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The file that it was read from, if any.
    pub path: Option<PathBuf>,
    /// `[toolkit] require`.
    pub toolkit: Option<VersionRequirement>,
    /// `[cudnn] require`.
    pub library: Option<VersionRequirement>,
    /// `[cudnn] built`: the release of its headers, if the search does not find them.
    pub library_built: Option<Version>,
    /// `[cudnn] linkage`.
    pub library_linkage: Option<Linkage>,
    /// `[cudnn] patch = "refuse"`: older patches of the built minor are refused too.
    pub library_patch_refuse: bool,
    /// `[cudnn] required`: refuse if it is missing and opened at run time.
    pub library_required: bool,
    /// `[cudnn] fleet`: the oldest release that the program must run with.
    pub library_fleet: Option<String>,
    /// `[gpu] archs`: the architectures of the package's own kernels.
    pub archs: Vec<Target>,
    /// Entries of `[gpu] archs` that need a toolkit to have a meaning: `all`, `all-major`. See [`Policy::archs_by`].
    pub arch_words: Vec<ArchRequest>,
    /// `[gpu] fleet`: products, chips or compute capabilities that the entire binary must run on.
    pub fleet: Vec<String>,
    /// True for `[gpu] partial = "refuse"`.
    pub partial_refuse: bool,
    /// `[driver] fleet`: the oldest driver branch that it must run on.
    pub driver_fleet: Option<String>,
    /// `[build] release`: the action for a mismatch in a release build. `None`: deny.
    pub release: Option<BuildAction>,
    /// `[build] dev`: the action in dev builds. `None`: warn.
    pub dev: Option<BuildAction>,
    /// `[build] unguarded`: the action for a target that cannot be guarded. `None`: warn.
    pub unguarded: Option<BuildAction>,
    /// `[runtime]`.
    pub runtime: Runtime,
    /// `[release]`, if there is one.
    pub release_gate: Option<ReleaseRequirements>,
    /// `[allow]`: code → reason.
    pub allow: BTreeMap<Code, String>,
    /// The `[package.NAME]` that overrides the other keys, if any.
    pub over: Option<String>,
    /// Every `NAME` of `[package.NAME]`, with its line. The parser does not know the packages of the workspace.
    pub packages: BTreeMap<String, usize>,
}

/// A version requirement and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRequirement {
    /// The text of the file.
    pub text: String,
    /// The parsed requirement.
    pub parsed: semver::VersionReq,
}

impl fmt::Display for VersionRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The action for a mismatch in a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildAction {
    /// Fail the build.
    Deny,
    /// Report it and continue.
    Warn,
}

/// `[runtime]`: the actions of the shim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runtime {
    /// `mismatch = "warn"`: report and continue. Default: refuse.
    pub mismatch_warns: bool,
    /// `gpu`.
    pub gpu: GpuNeed,
    /// `library = "enforce"`: a library with the guard ends the process too.
    pub library_enforces: bool,
}

/// `[runtime] gpu`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GpuNeed {
    /// If there is no GPU, continue without a message.
    #[default]
    Auto,
    /// If there is no GPU, refuse.
    Required,
    /// Never refuse because of a GPU or driver.
    Optional,
}

impl GpuNeed {
    /// Returns the spelling in the policy.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Required => "required",
            Self::Optional => "optional",
        }
    }
}

/// The findings of a build after the policy was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyResult {
    /// The findings, with the severity that they have in this build. An allowed one is an info.
    pub findings: Vec<Finding>,
    /// The used entries of `[allow]`, with their reasons, for the manifest.
    pub allowed: Vec<(Code, String)>,
    /// Entries of `[allow]` for build findings (`CG1xx`) that did not occur. Their reason may be obsolete.
    pub stale_allows: Vec<Code>,
}

/// Returns the last line of a failed build: what else the user can do.
pub fn not_built(component: impl fmt::Display, release: bool) -> String {
    let kind = if release { "release" } else { "dev" };
    format!(
        "{component} was not built; to build it anyway, set [build] {kind} = \"warn\" in cudaguard.toml, or add the code and a reason \
         to [allow]"
    )
}

impl Policy {
    /// Returns true if the policy constrains the toolkit, a library, kernels or drivers, which means that the package
    /// uses CUDA.
    pub fn constrains_cuda(&self) -> bool {
        self.toolkit.is_some()
            || self.library.is_some()
            || self.library_built.is_some()
            || !matches!(self.library_linkage, None | Some(Linkage::None))
            || self.library_fleet.is_some()
            || !(self.archs.is_empty() && self.arch_words.is_empty() && self.fleet.is_empty())
            || self.driver_fleet.is_some()
    }

    /// Returns true if the policy sets the action of a guard, or the action without one.
    pub fn asks_for_guard(&self) -> bool {
        self.unguarded.is_some() || self.runtime != Runtime::default()
    }

    /// Reads the policy of the package in `dir`: the first `cudaguard.toml` in `dir` and its parents up to `top` (the
    /// workspace's root), with `[package.NAME]` of `package` applied. Without a file, returns the default.
    pub fn for_package(dir: &Path, top: &Path, package: &str) -> Result<Self, ConfigError> {
        for path in Self::candidate_paths(dir, top) {
            match fs::metadata(&path) {
                Err(error) if is_absent(&path, &error) => {}
                Err(error) => return Err(ConfigError::unreadable(&path, error)),
                Ok(_) => return Self::from_file(&path, package),
            }
        }
        Ok(Self::default())
    }

    /// Reads the policy in this file, for a package.
    pub fn from_file(path: &Path, package: &str) -> Result<Self, ConfigError> {
        let metadata = fs::metadata(path).map_err(|error| ConfigError::unreadable(path, error))?;
        check_regular_file(&metadata, "policy", LARGEST).map_err(|problem| FileError::read(path, problem))?;
        let bytes = fs::read(path).map_err(|error| ConfigError::unreadable(path, error))?;
        Self::parse(path, &bytes, package)
    }

    /// Returns the files that [`Policy::for_package`] tries, in this order.
    pub fn candidate_paths(dir: &Path, top: &Path) -> Vec<PathBuf> {
        let mut places: Vec<PathBuf> = Vec::new();
        if dir.starts_with(top) {
            places.extend(
                dir.ancestors()
                    .take_while(|directory| directory.starts_with(top))
                    .map(|directory| directory.join(FILE)),
            );
        } else {
            // A member outside the workspace's directory has no path to its root.
            places.extend([dir.join(FILE), top.join(FILE)]);
        }
        places
    }

    /// Parses the bytes of a policy file for a package.
    pub fn parse(path: &Path, bytes: &[u8], package: &str) -> Result<Self, ConfigError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = 1 + count_newlines(&bytes[..error.valid_up_to()]);
            ConfigError::mistake(path, line, "is not UTF-8 text")
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = PolicyReader::new(path, text);
        let mut policy = Self { path: Some(path.to_owned()), ..Self::default() };
        match DeTable::parse(text) {
            Ok(table) => reader.read_file(table.get_ref(), &mut policy, package),
            Err(error) => reader.errors.push(not_toml(text, &error)),
        }
        reader.into_result().map(|()| policy)
    }

    /// Returns the action for a mismatch in this kind of build.
    pub fn build_action(&self, release: bool) -> BuildAction {
        if release { self.release.unwrap_or(BuildAction::Deny) } else { self.dev.unwrap_or(BuildAction::Warn) }
    }

    /// Returns `[gpu] archs` as arch requests.
    pub fn arch_requests(&self) -> Vec<ArchRequest> {
        self.archs.iter().copied().map(ArchRequest::Target).chain(self.arch_words.iter().copied()).collect::<Vec<_>>()
    }

    /// Returns the architectures of the package's own kernels, as this toolkit compiles them.
    pub fn archs_by(&self, toolkit: Version) -> Vec<Target> {
        let mut archs = self.archs.clone();
        for word in &self.arch_words {
            let more = match word {
                ArchRequest::All => tables::expand_all(toolkit),
                ArchRequest::AllMajor => tables::expand_all_major(toolkit),
                ArchRequest::Target(_) | ArchRequest::Native | ArchRequest::Off => Vec::new(),
            };
            for target in more {
                if !archs.contains(&target) {
                    archs.push(target);
                }
            }
        }
        archs
    }

    /// Returns `[gpu] fleet` as compute capabilities, each with its text.
    pub fn fleet_ccs(&self) -> Vec<(&str, Cc)> {
        self.fleet.iter().filter_map(|name| Some((name.as_str(), tables::gpu_cc(name)?))).collect::<Vec<_>>()
    }

    /// Returns `[driver] fleet` as a release.
    pub fn driver_fleet_release(&self) -> Option<DriverRelease> {
        self.driver_fleet.as_deref()?.parse().ok()
    }

    /// Returns `[cudnn] fleet` as a version.
    pub fn library_fleet_version(&self) -> Option<Version> {
        self.library_fleet.as_deref()?.parse().ok()
    }

    /// Applies `[build]` and `[allow]` to the findings of this kind of build: an allowed finding becomes an info, and
    /// errors become warnings if `[build]` requires it. No other place applies them.
    pub fn apply_to(&self, mut findings: Vec<Finding>, release: bool) -> PolicyResult {
        let action = self.build_action(release);
        let (mut allowed, mut stale_allows) = (Vec::new(), Vec::new());
        for (code, reason) in &self.allow {
            if findings.iter().any(|finding| finding.code == *code) {
                allowed.push((*code, reason.clone()));
            } else if code.is_of_the_toolchain() {
                stale_allows.push(*code);
            }
        }
        for finding in &mut findings {
            if let Some(reason) = self.allow.get(&finding.code) {
                finding.severity = Severity::Info;
                finding.message.push_str("\nallowed: ");
                finding.message.push_str(reason);
                continue;
            }
            if finding.code == Code::Unguarded && self.unguarded == Some(BuildAction::Deny) {
                finding.severity = Severity::Error;
            }
            if finding.severity == Severity::Error && action == BuildAction::Warn {
                finding.severity = Severity::Warning;
            }
        }
        PolicyResult { findings, allowed, stale_allows }
    }
}

/// Returns true if the path has no entry. A dangling link is an entry.
fn is_absent(path: &Path, error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        && fs::symlink_metadata(path).is_err()
}

#[cfg(test)]
mod schema_tests;

#[cfg(test)]
mod tests;
