//! The project's policy, `cudaguard.toml`.
//!
//! The parser walks the file itself, so that each mistake has its line, full key, expected value and a suggestion. It
//! reports all mistakes at once.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::finding::{Code, Finding, Severity};
use crate::knowledge::tables::{self, Cc};
use crate::knowledge::vendor::CUDNN;
use crate::model::arch::{self, ArchRequest, Dialect, Target};
use crate::model::linkage::Linkage;
use crate::model::version::{DriverRelease, Version};
use crate::text::sanitize;
use crate::text::suggest::{closest_match, edit_distance};

/// The name of the file.
pub const FILE: &str = "cudaguard.toml";

/// Size limit of a policy or lock; a larger file is something else.
pub(crate) const LARGEST: u64 = 1 << 20;

/// Limit of reported mistakes; a file with more is not a policy.
const MOST: usize = 40;

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

impl VersionRequirement {
    /// Returns true if a version satisfies the requirement. The third number of a toolkit is nvcc's build, so a
    /// requirement should have two: `=12.4` includes every update of 12.4.
    pub fn allows(&self, version: Version) -> bool {
        self.parsed.matches(&semver::Version::new(version.major.into(), version.minor.into(), version.patch.into()))
    }
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
    /// `library = "enforce"`: a guarded library ends the process too.
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

/// The policy cannot be read. One line for each mistake: file, line, key and expected value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError(pub String);

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PolicyError {}

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
        "{component} is not built; where this is on purpose, cudaguard.toml can say so: [build] {kind} = \"warn\", or [allow] \
         with the code and a reason"
    )
}

impl PolicyResult {
    /// Returns true if the build fails.
    pub fn fails_build(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }
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
    pub fn for_package(dir: &Path, top: &Path, package: &str) -> Result<Self, PolicyError> {
        for path in Self::candidate_paths(dir, top) {
            match fs::metadata(&path) {
                Err(error) if is_absent(&path, &error) => {}
                Err(error) => return Err(unreadable_error(&path, &error)),
                Ok(_) => return Self::from_file(&path, package),
            }
        }
        Ok(Self::default())
    }

    /// Reads the policy in this file, for a package.
    pub fn from_file(path: &Path, package: &str) -> Result<Self, PolicyError> {
        let metadata = fs::metadata(path).map_err(|error| unreadable_error(path, &error))?;
        if let Some(why) = check_regular_file(&metadata, "policy", LARGEST) {
            return Err(PolicyError(format!("{}: {why}", path.display())));
        }
        let bytes = fs::read(path).map_err(|error| unreadable_error(path, &error))?;
        Self::parse(path, &bytes, package)
    }

    /// Returns the files that [`Policy::for_package`] tries, in this order.
    pub fn candidate_paths(dir: &Path, top: &Path) -> Vec<PathBuf> {
        let mut places: Vec<PathBuf> = Vec::new();
        if dir.starts_with(top) {
            places.extend(dir.ancestors().take_while(|folder| folder.starts_with(top)).map(|folder| folder.join(FILE)));
        } else {
            // A member outside the workspace's directory has no path to its root.
            places.extend([dir.join(FILE), top.join(FILE)]);
        }
        places
    }

    /// Parses the bytes of a policy file for a package.
    pub fn parse(path: &Path, bytes: &[u8], package: &str) -> Result<Self, PolicyError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = 1 + count_lines(&bytes[..error.valid_up_to()]);
            PolicyError(format!("{}:{line}: is not UTF-8 text", path.display()))
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
        let mut reader = PolicyReader { path, ends, errors: Vec::new() };
        let mut policy = Self { path: Some(path.to_owned()), ..Self::default() };
        match DeTable::parse(text) {
            Ok(table) => reader.read_file(table.get_ref(), &mut policy, package),
            Err(error) => reader.errors.push(tables::not_toml(text, &error)),
        }
        reader.into_result().map(|()| policy)
    }

    /// Returns the action for a mismatch in this kind of build.
    pub fn build_action(&self, release: bool) -> BuildAction {
        if release { self.release.unwrap_or(BuildAction::Deny) } else { self.dev.unwrap_or(BuildAction::Warn) }
    }

    /// Returns `[gpu] archs` as arch requests.
    pub fn arch_requests(&self) -> Vec<ArchRequest> {
        self.archs.iter().copied().map(ArchRequest::Target).chain(self.arch_words.iter().copied()).collect()
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
        self.fleet.iter().filter_map(|name| Some((name.as_str(), tables::gpu_cc(name)?))).collect()
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
    pub fn apply_to(&self, findings: Vec<Finding>, release: bool) -> PolicyResult {
        let action = self.build_action(release);
        let allowed: Vec<(Code, String)> = self
            .allow
            .iter()
            .filter(|(code, _)| findings.iter().any(|finding| finding.code == **code))
            .map(|(code, reason)| (*code, reason.clone()))
            .collect();
        let findings = findings
            .into_iter()
            .map(|mut finding| {
                if let Some(reason) = self.allow.get(&finding.code) {
                    finding.severity = Severity::Info;
                    finding.message.push_str("\nallowed: ");
                    finding.message.push_str(reason);
                    return finding;
                }
                if finding.code == Code::Unguarded && self.unguarded == Some(BuildAction::Deny) {
                    finding.severity = Severity::Error;
                }
                if finding.severity == Severity::Error && action == BuildAction::Warn {
                    finding.severity = Severity::Warning;
                }
                finding
            })
            .collect();
        let stale_allows = self
            .allow
            .keys()
            .copied()
            .filter(|code| code.is_of_the_toolchain() && allowed.iter().all(|(applied, _)| applied != code))
            .collect();
        PolicyResult { findings, allowed, stale_allows }
    }
}

/// Returns true if the path has no entry. A dangling link is an entry.
fn is_absent(path: &Path, error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        && fs::symlink_metadata(path).is_err()
}

fn unreadable_error(path: &Path, error: &io::Error) -> PolicyError {
    let path_text = path.display();
    PolicyError(match fs::read_link(path) {
        Ok(to) if error.kind() == io::ErrorKind::NotFound => {
            format!("{path_text}: is a link to {}, which is not there", to.display())
        }
        _ => format!("{path_text}: cannot be read: {error}"),
    })
}

/// Returns why this cannot be a text file of at most this size: a policy, a lock, a host file. A file that could
/// block or never end is not opened.
pub fn check_regular_file(metadata: &fs::Metadata, what: &str, largest: u64) -> Option<String> {
    let size = metadata.len();
    if metadata.is_dir() {
        Some(format!("is a folder; expected a {what} file"))
    } else if !metadata.is_file() {
        Some(format!("is not a regular file; expected a {what} file"))
    } else if size > largest {
        Some(format!("has {size} bytes; a {what} file has at most {largest}, so this is some other file"))
    } else {
        None
    }
}

fn count_lines(bytes: &[u8]) -> usize {
    bytes.split(|&b| b == b'\n').count() - 1
}

/// The section of cuDNN.
const LIBRARY: &str = CUDNN.key;

/// Every section and its keys. `allow` and `package` have free keys.
const SECTIONS: &[(&str, &[&str])] = &[
    ("toolkit", &["require"]),
    (LIBRARY, &["require", "built", "linkage", "patch", "required", "fleet"]),
    ("gpu", &["archs", "fleet", "partial"]),
    ("driver", &["fleet"]),
    ("build", &["release", "dev", "unguarded"]),
    ("runtime", &["mismatch", "gpu", "library"]),
    ("allow", &[]),
];

/// A value and its full key.
#[derive(Clone, Copy)]
struct PolicyEntry<'a> {
    key: &'a str,
    value: &'a Spanned<DeValue<'a>>,
}

struct PolicyReader<'a> {
    path: &'a Path,
    /// Offsets of line ends.
    ends: Vec<usize>,
    /// (offset in the text, message without position).
    errors: Vec<(usize, String)>,
}

impl PolicyReader<'_> {
    fn line_at(&self, offset: usize) -> usize {
        1 + self.ends.partition_point(|end| *end < offset)
    }

    fn into_result(mut self) -> Result<(), PolicyError> {
        if self.errors.is_empty() {
            return Ok(());
        }
        self.errors.sort();
        let mut lines: Vec<String> = self
            .errors
            .iter()
            .take(MOST)
            .map(|(offset, message)| {
                format!("{}:{}: {}", self.path.display(), self.line_at(*offset), sanitize::sanitize_line(message))
            })
            .collect();
        if self.errors.len() > MOST {
            lines.push(format!("{}: and more mistakes, which are not listed", self.path.display()));
        }
        Err(PolicyError(lines.join("\n")))
    }

    fn push_error(&mut self, entry: PolicyEntry<'_>, expected: &str) {
        let found = match entry.value.get_ref() {
            DeValue::String(text) => format!("{text:?}"),
            other => tables::kind_of(other),
        };
        self.errors.push((entry.value.span().start, format!("`{}`: expected {expected}, found {found}", entry.key)));
    }

    /// Reports a key that is not one of `valid`.
    fn unknown_key<'v>(&mut self, full: &str, at: usize, valid: impl Iterator<Item = &'v str> + Clone) {
        if self.errors.len() > MOST {
            return;
        }
        let last = full.rsplit('.').next().unwrap_or(full);
        let mut message = format!("`{full}`: no such key");
        if let Some(suggestion) = closest_match(last, valid.clone()) {
            let _ = write!(message, "; did you mean `{suggestion}`?");
        } else if SECTIONS.iter().any(|(_, keys)| keys.contains(&last)) {
            let homes =
                SECTIONS.iter().filter(|(_, keys)| keys.contains(&last)).map(|(section, _)| format!("[{section}]"));
            let _ = write!(message, "; it belongs to {}", homes.collect::<Vec<_>>().join(" or "));
        } else {
            let valid: Vec<&str> = valid.collect();
            let _ = write!(message, "; expected one of {}", valid.join(", "));
        }
        self.errors.push((at, message));
    }

    fn read_table<'v>(&mut self, entry: PolicyEntry<'v>) -> Option<&'v DeTable<'v>> {
        let table = entry.value.get_ref().as_table();
        if table.is_none() {
            self.push_error(entry, &format!("a table: [{}]", entry.key));
        }
        table
    }

    fn read_file(&mut self, table: &DeTable<'_>, policy: &mut Policy, package: &str) {
        self.read_sections("", table, policy);
        let Some(packages) = table.get("package") else { return };
        let Some(packages) = self.read_table(PolicyEntry { key: "package", value: packages }) else { return };
        policy.packages =
            packages.keys().map(|name| (name.get_ref().to_string(), self.line_at(name.span().start))).collect();
        for (name, value) in packages {
            let key = format!("package.{}", name.get_ref());
            let Some(table) = self.read_table(PolicyEntry { key: &key, value }) else { continue };
            // Overrides of another package are parsed for their mistakes.
            let mut other = Policy::default();
            let over = if name.get_ref() == package { &mut *policy } else { &mut other };
            over.over = Some(name.get_ref().to_string());
            self.read_sections(&format!("{key}."), table, over);
        }
    }

    fn read_sections(&mut self, prefix: &str, table: &DeTable<'_>, policy: &mut Policy) {
        for (name, value) in table {
            let (section, at): (&str, usize) = (name.get_ref(), name.span().start);
            let key = format!("{prefix}{section}");
            let Some((_, keys)) = SECTIONS.iter().find(|(known, _)| *known == section) else {
                if section != "package" || !prefix.is_empty() {
                    let names = SECTIONS.iter().map(|(name, _)| *name);
                    self.unknown_key(&key, at, names.chain(prefix.is_empty().then_some("package")));
                }
                continue;
            };
            let Some(table) = self.read_table(PolicyEntry { key: &key, value }) else { continue };
            if section == "allow" {
                self.read_allow(&key, table, policy);
                continue;
            }
            for (name, value) in table {
                let full = format!("{key}.{}", name.get_ref());
                if keys.contains(&&**name.get_ref()) {
                    self.read_key(section, name.get_ref(), PolicyEntry { key: &full, value }, policy);
                } else {
                    self.unknown_key(&full, name.span().start, keys.iter().copied());
                }
            }
            if section == LIBRARY {
                self.read_library(&key, table, policy);
            }
        }
    }

    fn read_key(&mut self, section: &str, key: &str, entry: PolicyEntry<'_>, policy: &mut Policy) {
        match (section, key) {
            ("toolkit", "require") => set_if_some(&mut policy.toolkit, self.read_requirement(entry, ">=12.4, <14")),
            (LIBRARY, "require") => set_if_some(&mut policy.library, self.read_requirement(entry, "^9.1")),
            (LIBRARY, "built") => {
                let expected = format!("the {} of the headers as a string such as \"9.1\"", CUDNN.name);
                let text: Option<String> = self.read_parsed(entry, &expected, |_: &Version| true);
                set_if_some(&mut policy.library_built, text.and_then(|text| text.parse().ok()));
            }
            (LIBRARY, "linkage") => {
                let linkages = [
                    ("linked", Linkage::Linked),
                    ("static", Linkage::Static),
                    ("dlopened", Linkage::Dlopened),
                    ("none", Linkage::None),
                ];
                set_if_some(&mut policy.library_linkage, self.read_choice(entry, &linkages));
            }
            (LIBRARY, "patch") => {
                policy.library_patch_refuse =
                    self.read_choice(entry, &[("accept", false), ("refuse", true)]).unwrap_or_default();
            }
            (LIBRARY, "required") => match entry.value.get_ref().as_bool() {
                Some(required) => policy.library_required = required,
                None => self.push_error(entry, "true or false"),
            },
            (LIBRARY, "fleet") => {
                set_if_some(
                    &mut policy.library_fleet,
                    self.read_parsed(
                        entry,
                        &format!("the oldest {} as a string such as \"9.1\"", CUDNN.name),
                        |_: &Version| true,
                    ),
                );
            }
            ("gpu", "archs") => self.read_archs(entry, policy),
            ("gpu", "fleet") => self.read_fleet(entry, policy),
            ("gpu", "partial") => {
                policy.partial_refuse =
                    self.read_choice(entry, &[("accept", false), ("refuse", true)]).unwrap_or_default();
            }
            ("driver", "fleet") => {
                let expected = "the oldest driver as a string such as \"535\" or \"535.261.03\"";
                let is_one = |release: &DriverRelease| release.is_one();
                set_if_some(&mut policy.driver_fleet, self.read_parsed(entry, expected, is_one));
            }
            ("build", "release") => set_if_some(&mut policy.release, self.build_action(entry)),
            ("build", "dev") => set_if_some(&mut policy.dev, self.build_action(entry)),
            ("build", "unguarded") => set_if_some(&mut policy.unguarded, self.build_action(entry)),
            ("runtime", "mismatch") => {
                policy.runtime.mismatch_warns =
                    self.read_choice(entry, &[("refuse", false), ("warn", true)]).unwrap_or_default();
            }
            ("runtime", "gpu") => {
                let needs = [("auto", GpuNeed::Auto), ("required", GpuNeed::Required), ("optional", GpuNeed::Optional)];
                policy.runtime.gpu = self.read_choice(entry, &needs).unwrap_or_default();
            }
            ("runtime", "library") => {
                policy.runtime.library_enforces =
                    self.read_choice(entry, &[("check", false), ("enforce", true)]).unwrap_or_default();
            }
            _ => unreachable!("a key of SECTIONS that nothing reads: {section}.{key}"),
        }
    }

    /// Checks `require` and `linkage` of one table together. The later layer overrides the earlier one.
    fn read_library(&mut self, key: &str, table: &DeTable<'_>, policy: &mut Policy) {
        let none = policy.library_linkage == Some(Linkage::None);
        match (table.get("require"), table.get("linkage")) {
            (Some(require), Some(_)) if none => self.errors.push((
                require.span().start,
                format!("`{key}.require`: contradicts linkage = \"none\" beside it; keep one of them"),
            )),
            (None, Some(_)) if none => policy.library = None,
            (Some(_), None) if none => policy.library_linkage = None,
            _ => {}
        }
    }

    fn read_string<'v>(&mut self, entry: PolicyEntry<'v>, expected: &str) -> Option<&'v str> {
        let text = entry.value.get_ref().as_str();
        if text.is_none() {
            self.push_error(entry, expected);
        }
        text
    }

    fn read_requirement(&mut self, entry: PolicyEntry<'_>, example: &str) -> Option<VersionRequirement> {
        let expected = format!("a version requirement as cargo writes them, such as {example:?}");
        let text = self.read_string(entry, &expected)?;
        match semver::VersionReq::parse(text) {
            Ok(parsed) => Some(VersionRequirement { text: text.to_owned(), parsed }),
            Err(error) => {
                let place = entry.value.span().start;
                self.errors.push((place, format!("`{}`: expected {expected}, found {text:?}: {error}", entry.key)));
                None
            }
        }
    }

    /// Parses a string as `T` and keeps its text.
    fn read_parsed<T: FromStr>(
        &mut self,
        entry: PolicyEntry<'_>,
        expected: &str,
        such: fn(&T) -> bool,
    ) -> Option<String> {
        let text = self.read_string(entry, expected)?;
        if !text.parse().is_ok_and(|value| such(&value)) {
            self.push_error(entry, expected);
            return None;
        }
        Some(text.to_owned())
    }

    fn read_choice<T: Copy>(&mut self, entry: PolicyEntry<'_>, choices: &[(&str, T)]) -> Option<T> {
        let names: Vec<String> = choices.iter().map(|(name, _)| format!("{name:?}")).collect();
        let expected = match &names[..] {
            [one, other] => format!("{one} or {other}"),
            several => format!("one of {}", several.join(", ")),
        };
        let text = self.read_string(entry, &expected)?;
        let chosen = choices.iter().find(|(name, _)| *name == text).map(|&(_, value)| value);
        if chosen.is_none() {
            self.push_error(entry, &expected);
        }
        chosen
    }

    fn build_action(&mut self, entry: PolicyEntry<'_>) -> Option<BuildAction> {
        self.read_choice(entry, &[("deny", BuildAction::Deny), ("warn", BuildAction::Warn)])
    }

    /// Reads each string of an array, with its own key.
    fn read_strings(
        &mut self,
        entry: PolicyEntry<'_>,
        expected: &str,
        mut each: impl FnMut(&mut Self, PolicyEntry<'_>, &str),
    ) {
        let Some(array) = entry.value.get_ref().as_array() else {
            self.push_error(entry, &format!("an array of {expected}"));
            return;
        };
        for (index, value) in array.iter().enumerate() {
            if self.errors.len() > MOST {
                return;
            }
            let key = format!("{}[{index}]", entry.key);
            let entry = PolicyEntry { key: &key, value };
            if let Some(text) = self.read_string(entry, &format!("one of {expected}")) {
                each(self, entry, text);
            }
        }
    }

    fn read_archs(&mut self, entry: PolicyEntry<'_>, policy: &mut Policy) {
        policy.archs.clear();
        policy.arch_words.clear();
        self.read_strings(entry, "strings such as \"sm_90a\" or \"compute_90\"", |reader, entry, text| {
            let place = entry.value.span().start;
            let requests = match arch::parse_list(text, Dialect::Policy) {
                Ok(requests) if requests.is_empty() => {
                    return reader.push_error(entry, "an architecture such as \"sm_90a\"");
                }
                Ok(requests) => requests,
                Err(error) => return reader.errors.push((place, format!("`{}`: {error}", entry.key))),
            };
            for request in requests {
                match request {
                    ArchRequest::Target(target) if policy.archs.contains(&target) => {}
                    ArchRequest::Target(target) => policy.archs.push(target),
                    ArchRequest::All | ArchRequest::AllMajor => policy.arch_words.push(request),
                    ArchRequest::Native | ArchRequest::Off => reader.errors.push((
                        place,
                        format!(
                            "`{}`: `{request}` means something else on every machine; expected architectures such as \
                             \"sm_90a\"",
                            entry.key
                        ),
                    )),
                }
            }
        });
    }

    fn read_fleet(&mut self, entry: PolicyEntry<'_>, policy: &mut Policy) {
        policy.fleet.clear();
        self.read_strings(entry, "strings such as \"T4\", \"A100\" or \"8.6\"", |reader, entry, text| {
            if tables::gpu_cc(text).is_none() {
                let mut message = format!(
                    "`{}`: {text:?} is no GPU that cudaguard knows; expected its compute capability, such as \"8.6\"",
                    entry.key
                );
                if let Some(suggestion) = tables::gpu_meant(text) {
                    let _ = write!(message, ", or did you mean {suggestion:?}?");
                }
                reader.errors.push((entry.value.span().start, message));
            } else if !policy.fleet.iter().any(|known| known == text) {
                policy.fleet.push(text.to_owned());
            }
        });
    }

    fn read_allow(&mut self, key: &str, table: &DeTable<'_>, policy: &mut Policy) {
        let mut names: Vec<_> = table.iter().collect();
        names.sort_by_key(|(name, _)| name.span().start);
        let mut lines_of: BTreeMap<Code, (&str, usize)> = BTreeMap::new();
        for (name, value) in names {
            let full = format!("{key}.{}", name.get_ref());
            let entry = PolicyEntry { key: &full, value };
            if self.errors.len() > MOST {
                return;
            }
            let Ok(code) = name.get_ref().parse::<Code>() else {
                // Codes are so similar that with two wrong characters a dozen could be meant.
                let typed = name.get_ref().to_ascii_uppercase();
                let near = |code: &String| typed.len() <= code.len() + 1 && edit_distance(&typed, code) == 1;
                let suggestion = Code::ALL.iter().map(ToString::to_string).find(near);
                let mut message = format!("`{full}`: no such finding; expected a code such as CG122");
                if let Some(suggestion) = suggestion {
                    let _ = write!(message, ", did you mean `{suggestion}`?");
                }
                self.errors.push((name.span().start, message));
                continue;
            };
            let at = name.span().start;
            if let Some((first, before)) = lines_of.insert(code, (name.get_ref(), at)) {
                let line = self.line_at(before);
                self.errors
                    .push((at, format!("`{full}`: line {line} has `{key}.{first}`, the same code; keep one of them")));
            }
            match value.get_ref().as_str() {
                Some(reason) if !reason.trim().is_empty() => {
                    policy.allow.insert(code, reason.trim().to_owned());
                }
                _ => self.push_error(entry, "the reason, a string that is not empty"),
            }
        }
    }
}

/// Keeps the value of the earlier layer if this layer has a mistake.
fn set_if_some<T>(place: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *place = value;
    }
}

#[cfg(test)]
mod schema_tests;

#[cfg(test)]
mod tests;
