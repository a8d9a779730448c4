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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Policy, String> {
        Policy::parse(Path::new("cudaguard.toml"), text.as_bytes(), "demo").map_err(|error| error.to_string())
    }

    const WHOLE: &str = r#"
[toolkit]
require = ">=12.4, <14"
[cudnn]
require = "^9.1"
linkage = "dlopened"
patch = "refuse"
required = true
fleet = "9.1"
[gpu]
archs = ["sm_80", "sm_90a", "compute_90", "8.6+PTX"]
fleet = ["T4", "A100", "8.6"]
partial = "refuse"
[driver]
fleet = "535"
[build]
release = "warn"
dev = "deny"
[runtime]
mismatch = "warn"
gpu = "required"
library = "enforce"
[allow]
CG122 = "Hopper only, no PTX on purpose"
"#;

    #[test]
    fn all_keys_are_parsed() {
        let policy = read(WHOLE).unwrap();
        assert_eq!(policy.path.as_deref(), Some(Path::new("cudaguard.toml")));
        assert_eq!(policy.toolkit.as_ref().unwrap().to_string(), ">=12.4, <14");
        assert!(policy.library.as_ref().unwrap().allows(Version::new(9, 15, 1)));
        assert!(!policy.library.as_ref().unwrap().allows(Version::new(9, 0, 0)));
        assert_eq!(policy.library_linkage, Some(Linkage::Dlopened));
        assert!(policy.library_patch_refuse && policy.library_required && policy.partial_refuse);
        assert_eq!(policy.library_fleet_version(), Some(Version::new(9, 1, 0)));
        let archs: Vec<String> = policy.archs.iter().map(ToString::to_string).collect();
        assert_eq!(archs, ["sm_80", "sm_90a", "compute_90", "sm_86", "compute_86"]);
        assert_eq!(policy.fleet_ccs(), [("T4", (7, 5)), ("A100", (8, 0)), ("8.6", (8, 6))]);
        assert_eq!(policy.driver_fleet_release(), Some(DriverRelease::new(535, 0, 0)));
        assert_eq!((policy.build_action(true), policy.build_action(false)), (BuildAction::Warn, BuildAction::Deny));
        assert_eq!(policy.runtime, Runtime { mismatch_warns: true, gpu: GpuNeed::Required, library_enforces: true });
        assert_eq!(policy.allow.get(&Code::NoPtx).map(String::as_str), Some("Hopper only, no PTX on purpose"));
    }

    #[test]
    fn empty_policy_is_the_default() {
        for text in ["", "# only a comment\n", "[gpu]\n", "[package.demo]\n"] {
            let policy = read(text).unwrap();
            let Policy { path, over, packages, .. } = policy.clone();
            let default = Policy { path, over, packages, ..Policy::default() };
            assert_eq!(format!("{policy:?}"), format!("{default:?}"), "{text}");
            assert_eq!((policy.build_action(true), policy.build_action(false)), (BuildAction::Deny, BuildAction::Warn));
        }
    }

    #[test]
    fn editor_formatting_is_accepted() {
        let windows = format!("\u{feff}{}", WHOLE.replace('\n', "\r\n"));
        assert_eq!(format!("{:?}", read(&windows).unwrap()), format!("{:?}", read(WHOLE).unwrap()));
        assert_eq!(
            read("\u{feff}[gpu]\r\n\r\narchs = 90\r\n").unwrap_err(),
            "cudaguard.toml:3: `gpu.archs`: expected an array of strings such as \"sm_90a\" or \"compute_90\", found an integer"
        );
    }

    #[test]
    fn package_policy_overrides_workspace() {
        let text = "[cudnn]\nrequire = \"^9.1\"\n[gpu]\narchs = [\"sm_80\"]\nfleet = [\"A100\"]\n[allow]\nCG123 = \"two lists\"\n\
                    [package.demo.gpu]\narchs = [\"sm_90\"]\n[package.demo.cudnn]\nlinkage = \"none\"\n\
                    [package.demo.allow]\nCG122 = \"on purpose\"\n[package.other.runtime]\ngpu = \"required\"\n";
        let policy = read(text).unwrap();
        assert_eq!(policy.archs, ["sm_90".parse().unwrap()]);
        assert_eq!(policy.fleet, ["A100"]);
        assert_eq!((policy.library.clone(), policy.library_linkage), (None, Some(Linkage::None)));
        assert_eq!(policy.allow.len(), 2);
        assert_eq!(policy.runtime.gpu, GpuNeed::Auto);
        let other = Policy::parse(Path::new("p"), text.as_bytes(), "other").unwrap();
        assert_eq!((other.runtime.gpu, other.archs.len(), other.library.is_some()), (GpuNeed::Required, 1, true));
        // The opposite order.
        let text = "[cudnn]\nlinkage = \"none\"\n[package.demo.cudnn]\nrequire = \"^9\"\n";
        let policy = read(text).unwrap();
        assert_eq!((policy.library.is_some(), policy.library_linkage), (true, None));
    }

    #[test]
    fn symbolic_archs_need_a_toolkit() {
        let policy = read("[gpu]\narchs = [\"sm_90a\", \"all-major\"]\n").unwrap();
        let by =
            |release: Version| policy.archs_by(release).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(by(Version::new(13, 0, 88)), "sm_90a sm_75 sm_80 sm_90 sm_100 sm_110 sm_120 compute_120");
        assert_eq!(by(Version::new(11, 8, 0)), "sm_90a sm_35 sm_50 sm_60 sm_70 sm_80 sm_90 compute_90");
    }

    #[test]
    fn errors_name_line_key_and_expectation() {
        for (text, message) in [
            ("[toolkits]\n", ":1: `toolkits`: no such key; did you mean `toolkit`?"),
            ("[gpu]\narch = []\n", ":2: `gpu.arch`: no such key; did you mean `archs`?"),
            ("[toolkit]\narchs = []\n", ":2: `toolkit.archs`: no such key; it belongs to [gpu]"),
            ("fleet = [\"T4\"]\n", ":1: `fleet`: no such key; it belongs to [cudnn] or [gpu] or [driver]"),
            (
                "[build]\ndebug_assertions = 1\n",
                ":2: `build.debug_assertions`: no such key; expected one of release, dev, unguarded",
            ),
            (
                "speed = 1\n",
                ":1: `speed`: no such key; expected one of toolkit, cudnn, gpu, driver, build, runtime, allow, package",
            ),
            ("toolkit = \">=12\"\n", ":1: `toolkit`: expected a table: [toolkit], found \">=12\""),
            (
                "[toolkit]\nrequire = 12.4\n",
                ":2: `toolkit.require`: expected a version requirement as cargo writes them, such as \">=12.4, <14\", found a \
                 float",
            ),
            (
                "[toolkit]\nrequire = \">=twelve\"\n",
                ":2: `toolkit.require`: expected a version requirement as cargo writes them, such as \">=12.4, <14\", found \
                 \">=twelve\": unexpected character 't' while parsing major version number",
            ),
            (
                "[cudnn]\nrequire = \"\"\n",
                ":2: `cudnn.require`: expected a version requirement as cargo writes them, such as \"^9.1\", found \"\": \
                 unexpected end of input while parsing major version number",
            ),
            (
                "[cudnn]\nlinkage = \"dynamic\"\n",
                ":2: `cudnn.linkage`: expected one of \"linked\", \"static\", \"dlopened\", \"none\", found \"dynamic\"",
            ),
            ("[cudnn]\npatch = true\n", ":2: `cudnn.patch`: expected \"accept\" or \"refuse\", found a boolean"),
            ("[cudnn]\nrequired = \"yes\"\n", ":2: `cudnn.required`: expected true or false, found \"yes\""),
            (
                "[cudnn]\nfleet = 9.1\n",
                ":2: `cudnn.fleet`: expected the oldest cuDNN as a string such as \"9.1\", found a float",
            ),
            (
                "[cudnn]\nlinkage = \"none\"\nrequire = \"^9\"\n",
                ":3: `cudnn.require`: contradicts linkage = \"none\" beside it; keep one of them",
            ),
            (
                "[gpu]\narchs = [\"sm_80\",\n  90]\n",
                ":3: `gpu.archs[1]`: expected one of strings such as \"sm_90a\" or \"compute_90\", found an integer",
            ),
            (
                "[gpu]\narchs = [\"sm90\"]\n",
                ":2: `gpu.archs[0]`: `sm90` is not an architecture; expected a spelling such as sm_90, compute_90, 90, 90a, \
                 90-real, 90-virtual, 9.0 or 9.0+PTX",
            ),
            ("[gpu]\narchs = [\"\"]\n", ":2: `gpu.archs[0]`: expected an architecture such as \"sm_90a\", found \"\""),
            (
                "[gpu]\narchs = [\"native\"]\n",
                ":2: `gpu.archs[0]`: `native` means something else on every machine; expected architectures such as \"sm_90a\"",
            ),
            (
                "[gpu]\narchs = [\"lto_90\"]\n",
                ":2: `gpu.archs[0]`: `lto_90` is LTO-IR, which serves no GPU until it is linked; name the machine code (sm_…) \
                 or PTX (compute_…) that it becomes",
            ),
            (
                "[gpu]\nfleet = [\"A100\", \"L41\"]\n",
                ":2: `gpu.fleet[1]`: \"L41\" is no GPU that cudaguard knows; expected its compute capability, such as \"8.6\", \
                 or did you mean \"L4\"?",
            ),
            (
                "[gpu]\nfleet = [\"Voodoo2 of 1998\"]\n",
                ":2: `gpu.fleet[0]`: \"Voodoo2 of 1998\" is no GPU that cudaguard knows; expected its compute capability, such \
                 as \"8.6\"",
            ),
            (
                "[driver]\nfleet = \"12.2\"\n",
                ":2: `driver.fleet`: expected the oldest driver as a string such as \"535\" or \"535.261.03\", found \"12.2\"",
            ),
            (
                "[driver]\nfleet = 535\n",
                ":2: `driver.fleet`: expected the oldest driver as a string such as \"535\" or \"535.261.03\", found an integer",
            ),
            ("[build]\nrelease = \"allow\"\n", ":2: `build.release`: expected \"deny\" or \"warn\", found \"allow\""),
            (
                "[runtime]\ngpu = \"always\"\n",
                ":2: `runtime.gpu`: expected one of \"auto\", \"required\", \"optional\", found \"always\"",
            ),
            ("[runtime]\nmismatches = 1\n", ":2: `runtime.mismatches`: no such key; did you mean `mismatch`?"),
            (
                "[allow]\nCG122 = \" \"\n",
                ":2: `allow.CG122`: expected the reason, a string that is not empty, found \" \"",
            ),
            (
                "[allow]\nCG122 = true\n",
                ":2: `allow.CG122`: expected the reason, a string that is not empty, found a boolean",
            ),
            ("[allow]\nCG98765 = \"because\"\n", ":2: `allow.CG98765`: no such finding; expected a code such as CG122"),
            (
                "[allow]\nCG1O1 = \"because\"\n",
                ":2: `allow.CG1O1`: no such finding; expected a code such as CG122, did you mean `CG101`?",
            ),
            ("[allow]\nCG999 = \"because\"\n", ":2: `allow.CG999`: no such finding; expected a code such as CG122"),
            (
                "[allow]\ncg101 = \"one\"\n\nCG101 = \"other\"\n",
                ":4: `allow.CG101`: line 2 has `allow.cg101`, the same code; keep one of them",
            ),
            ("[allow]\nptx = \"because\"\n", ":2: `allow.ptx`: no such finding; expected a code such as CG122"),
            ("[package]\ndemo = 1\n", ":2: `package.demo`: expected a table: [package.demo], found an integer"),
            ("[package.demo.gpus]\n", ":1: `package.demo.gpus`: no such key; did you mean `gpu`?"),
            (
                "[package.other.gpu]\nfleets = []\n",
                ":2: `package.other.gpu.fleets`: no such key; did you mean `fleet`?",
            ),
            (
                "[package.demo.package.x]\n",
                ":1: `package.demo.package`: no such key; expected one of toolkit, cudnn, gpu, driver, build, runtime, allow",
            ),
        ] {
            assert_eq!(read(text).map(|_| ()), Err(format!("cudaguard.toml{message}")), "{text}");
        }
    }

    #[test]
    fn all_errors_appear_in_file_order() {
        let error = read("[runtime]\ngpu = 1\n[build]\ndev = 2\n[allow]\nX = 3\n").unwrap_err();
        let lines: Vec<&str> = error.lines().map(|line| line.split('`').next().unwrap()).collect();
        assert_eq!(lines, ["cudaguard.toml:2: ", "cudaguard.toml:4: ", "cudaguard.toml:6: "]);
    }

    #[test]
    fn invalid_toml_is_rejected() {
        for (text, start) in [
            ("[gpu\n", "cudaguard.toml:1: is not TOML: "),
            ("[gpu]\n\narchs = [\"sm_80\"", "cudaguard.toml:3: is not TOML: "),
            ("[gpu]\n[gpu]\n", "cudaguard.toml:2: is not TOML: duplicate key `gpu`"),
            ("[build]\ndev = \"warn\"\ndev = \"deny\"\n", "cudaguard.toml:3: is not TOML: duplicate key `dev`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(start) && error.lines().count() == 1, "{text}: {error}");
        }
        let error = Policy::parse(Path::new("p"), b"[gpu]\n# \xff\n", "").unwrap_err();
        assert_eq!(error.to_string(), "p:2: is not UTF-8 text");
    }

    #[test]
    fn deep_nesting_is_rejected() {
        let depth = 200_000;
        for text in [
            format!("x = {}", "[".repeat(depth)),
            format!("x = {}", "{a=".repeat(depth)),
            format!("{} = 1", vec!["a"; depth].join(".")),
            format!("[{}]", vec!["a"; depth].join(".")),
            format!("[package.demo]\n{} = 1", vec!["a"; depth].join(".")),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.len() < 1000, "{}", &error[..1000]);
        }
    }

    #[test]
    fn policy_is_searched_upwards() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("workspace");
        let member = top.join("crates/member");
        fs::create_dir_all(&member).unwrap();
        let found = || Policy::for_package(&member, &top, "member").unwrap().path;
        fs::write(folder.path().join(FILE), "nonsense above the workspace").unwrap();
        assert_eq!(found(), None);
        fs::write(top.join(FILE), "[driver]\nfleet = \"535\"\n").unwrap();
        assert_eq!(found(), Some(top.join(FILE)));
        fs::write(member.join(FILE), "").unwrap();
        assert_eq!(found(), Some(member.join(FILE)));
        assert_eq!(
            Policy::candidate_paths(&member, &top),
            [member.join(FILE), top.join("crates").join(FILE), top.join(FILE)]
        );
        assert_eq!(Policy::candidate_paths(&top, &top), [top.join(FILE)]);
        // A member outside of the directory.
        let other = folder.path().join("elsewhere");
        assert_eq!(Policy::candidate_paths(&other, &top), [other.join(FILE), top.join(FILE)]);
        assert_eq!(Policy::for_package(&other, &top, "other").unwrap().path, Some(top.join(FILE)));
    }

    #[test]
    fn other_files_are_not_policies() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let error = || Policy::for_package(folder.path(), folder.path(), "demo").unwrap_err().to_string();
        fs::create_dir(&path).unwrap();
        assert_eq!(error(), format!("{}: is a folder; expected a policy file", path.display()));
        fs::remove_dir(&path).unwrap();
        let file = fs::File::create(&path).unwrap();
        file.set_len(LARGEST + 1).unwrap();
        assert!(error().contains("has 1048577 bytes; a policy file has at most 1048576"), "{}", error());
        fs::remove_file(&path).unwrap();
        #[cfg(unix)]
        {
            let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
            assert_eq!(error(), format!("{}: is not a regular file; expected a policy file", path.display()));
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink(folder.path().join("gone"), &path).unwrap();
            let gone = folder.path().join("gone");
            assert_eq!(error(), format!("{}: is a link to {}, which is not there", path.display(), gone.display()));
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink(&path, &path).unwrap();
            assert!(
                error().starts_with(&format!("{}: cannot be read: Too many levels", path.display())),
                "{}",
                error()
            );
        }
    }

    fn finding(code: Code) -> Finding {
        Finding::from_record(code, code.severity(), ["", "subject", "message", "hint"].map(str::to_owned))
    }

    #[test]
    fn severities_are_applied() {
        let weights = |policy: &Policy, release| {
            let codes = [Code::ToolkitMixed, Code::ToolkitUnreadable, Code::NoPtx];
            let judged = policy.apply_to(codes.map(finding).to_vec(), release);
            (
                judged.findings.iter().map(|finding| finding.severity.name()).collect::<Vec<_>>().join(" "),
                judged.fails_build(),
            )
        };
        let default = Policy::default();
        assert_eq!(weights(&default, true), ("error warning info".into(), true));
        assert_eq!(weights(&default, false), ("warning warning info".into(), false));
        let turned = read("[build]\nrelease = \"warn\"\ndev = \"deny\"\n").unwrap();
        assert_eq!(weights(&turned, true), ("warning warning info".into(), false));
        assert_eq!(weights(&turned, false), ("error warning info".into(), true));
    }

    #[test]
    fn allowed_findings_are_retained() {
        let policy =
            read("[allow]\nCG101 = \"headers are patched\"\nCG105 = \"gcc 13\"\nCG122 = \"Hopper only\"\nCG202 = \"at run time\"\n")
                .unwrap();
        let judged = policy.apply_to(vec![finding(Code::ToolkitMixed), finding(Code::ToolkitMissing)], true);
        assert_eq!(judged.findings[0].severity, Severity::Info);
        assert_eq!(judged.findings[0].message, "message\nallowed: headers are patched");
        assert_eq!(judged.findings[1].severity, Severity::Error);
        assert_eq!(judged.allowed, [(Code::ToolkitMixed, "headers are patched".to_owned())]);
        assert_eq!(judged.stale_allows, [Code::HostCompilerRejected]);
        assert_eq!(policy.apply_to(Vec::new(), true).findings, []);
    }

    #[test]
    fn error_count_is_limited() {
        let words = |word: &dyn Fn(usize) -> String| (0..20_000).map(word).collect::<Vec<_>>().concat();
        for text in [
            format!("[gpu]\nfleet = [{}]\n", words(&|number| format!("\"T{number}\","))),
            format!("[gpu]\narchs = [{}]\n", words(&|number| format!("{number},"))),
            format!("[gpu]\n{}", words(&|number| format!("flet{number} = 1\n"))),
            format!("[allow]\n{}", words(&|number| format!("CGX{number} = 1\n"))),
            words(&|number| format!("[section{number}]\n")),
        ] {
            let error = read(&text).unwrap_err();
            assert_eq!(error.lines().count(), MOST + 1, "{}", &error[..200]);
            assert!(error.ends_with("cudaguard.toml: and more mistakes, which are not listed"));
        }
    }

    #[test]
    fn named_packages_are_listed() {
        let policy = read("[package.b.gpu]\narchs = [\"sm_80\"]\n[package.a]\n[package.b.build]\n").unwrap();
        assert_eq!(policy.packages, [("a".to_owned(), 3), ("b".to_owned(), 1)].into());
        assert_eq!(policy.over, None, "none of them is the one that is built");
        assert_eq!(read("[package.demo.gpu]\n[package.a]\n").unwrap().over.as_deref(), Some("demo"));
    }

    proptest! {
        /// A typing mistake in any key is reported with its line, its full key and a suggestion.
        #[test]
        fn mistyped_key_gets_a_suggestion(
            section in prop::sample::select(SECTIONS.iter().filter(|(_, keys)| !keys.is_empty()).collect::<Vec<_>>()),
            key in any::<prop::sample::Index>(),
            at in any::<prop::sample::Index>(),
            letter in "[a-z]",
            lines in 0..5_usize,
            in_package in any::<bool>(),
        ) {
            let (section, keys) = section;
            let key = keys[key.index(keys.len())];
            let at = at.index(key.len());
            let mut typed = key.to_owned();
            typed.replace_range(at..=at, &letter);
            prop_assume!(!keys.contains(&typed.as_str()));
            let section = if in_package { format!("package.demo.{section}") } else { (*section).to_owned() };
            let error = read(&format!("{}[{section}]\n{typed} = \"x\"\n", "\n".repeat(lines))).unwrap_err();
            let error_line = format!("cudaguard.toml:{}: `{section}.{typed}`: no such key", lines + 2);
            prop_assert!(error.starts_with(&error_line), "{error}");
            // If two keys are equally similar, either may be suggested.
            let suggestion = keys.iter().any(|key| error.ends_with(&format!("; did you mean `{key}`?")));
            prop_assert!(suggestion || key.len() < 3, "{error}");
        }

        #[test]
        fn parsing_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Err(error) = Policy::parse(Path::new("p"), &bytes, "demo") {
                prop_assert!(error.0.lines().all(|line| line.starts_with("p:")), "{error}");
            }
        }

        #[test]
        fn parsing_keys_never_panics(
            section in "(toolkit|cudnn|gpu|driver|build|runtime|allow|package\\.demo\\.gpu|package|[a-z]{1,6})",
            key in "(require|linkage|patch|required|fleet|archs|partial|release|dev|mismatch|gpu|library|CG[0-9]{3}|[a-z]{1,6})",
            value in "(\"\\PC{0,8}\"|[0-9]{1,5}|\\[\\]|\\[\"\\PC{0,6}\", 3\\]|true|\\{\\}|1979-05-27|\"9\\.[0-9]\"|\"warn\")",
        ) {
            if let Err(error) = read(&format!("[{section}]\n{key} = {value}\n")) {
                prop_assert!(error.lines().all(|line| line.starts_with("cudaguard.toml:")), "{error}");
            }
        }
    }
}
