//! `cudaguard.lock`: the toolchain that the workspace agreed on.
//!
//! The file is at the root of the workspace. It has one table for each target triple and one entry per line, sorted,
//! without paths, so that branches with different changes merge. Parsing is strict, because an entry that is ignored
//! is not enforced. [`check_lock`] is a pure comparison.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::policy::{LARGEST, Policy};
use crate::config::{ConfigError, check_regular_file};
use crate::finding::{Code, Finding, MessageTemplate, Severity, Values};
use crate::knowledge::cudnn;
use crate::model::arch::Target;
use crate::model::linkage::Linkage;
use crate::model::version::Version;
use crate::sys::env::Env;
use crate::sys::file_error::FileError;
use crate::text::json::quote;
use crate::text::lists::IteratorExt as _;
use crate::text::toml_error::{count_newlines, kind_of, not_toml};
use crate::toolchain::{HostCompiler, Toolchain};

/// The key of cuDNN.
const LIBRARY: &str = cudnn::KEY;

/// The name of the file.
pub const FILE: &str = "cudaguard.lock";

/// `cargo cudaguard` sets it if cargo gets `--locked` or `--frozen`: any drift is an error, in dev builds too. Build
/// scripts of plain cargo cannot see that option, so users may set it too.
pub const LOCKED: &str = "CUDAGUARD_LOCKED";

/// The format that this version writes.
const FORMAT: i64 = 1;
const NONE: &str = "none";
const NOT_KNOWN: &str = "not known";

/// The target for which the command needs no `--target`; most builders for CUDA have it.
pub const HOST: &str = "x86_64-unknown-linux-gnu";

/// Header comment of the file.
const HEAD: &str = "# The toolchain of this project. `cargo cudaguard lock`, or CMake's target cudaguard-lock, writes this file; commit it.\n";

/// The contents of a lock file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// By target triple.
    pub targets: BTreeMap<String, Pins>,
}

/// The locked facts of one target. A fact is absent if it was unknown when the lock was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    /// The toolkit: `13.0.88`, or `13.0` if only headers show it.
    pub toolkit: Option<String>,
    /// The linked cuDNN, otherwise its headers: `9.15.1`.
    pub library: Option<String>,
    /// Returns the host compiler: `gcc 12.2.0`.
    pub host_compiler: Option<String>,
    /// The declared architectures of every package without an entry in `packages`.
    pub archs: Vec<String>,
    /// Packages with other architectures.
    pub packages: BTreeMap<String, Vec<String>>,
}

impl Pins {
    /// Returns the entry for this toolchain and policy, limited to what they concern.
    pub fn from_toolchain(policy: &Policy, toolchain: &Toolchain, scope: LockScope) -> Self {
        let library = toolchain.library_version().filter(|_| means_library(policy, toolchain));
        Self {
            toolkit: toolchain.sourced_toolkit_version().map(|fact| short_version(fact.value)),
            library: library.map(|version| version.to_string()),
            // nvcc calls a host compiler only if there is a toolkit.
            host_compiler: toolchain
                .sourced_toolkit_version()
                .and(toolchain.host_compiler())
                .filter(|_| scope.host_compiler),
            archs: if scope.archs { target_names(&declared_targets(toolchain)) } else { Vec::new() },
            packages: BTreeMap::default(),
        }
    }

    /// The architectures that are locked for a package.
    pub fn archs_of(&self, package: &str) -> &[String] {
        self.packages.get(package).unwrap_or(&self.archs)
    }
}

/// The declared architectures without PyTorch's list, which containers set for every project.
fn declared_targets(toolchain: &Toolchain) -> Vec<Target> {
    let all = &toolchain.archs.declared;
    match all.iter().find(|one| !one.adds) {
        Some(strongest) if strongest.is_of_torch() => {
            let mut targets = Vec::new();
            for adding in all.iter().filter(|one| one.adds) {
                targets.extend(&adding.targets);
            }
            targets
        }
        _ => toolchain.declared_targets(),
    }
}

/// A third number of 0 means unknown.
pub fn short_version(version: Version) -> String {
    match version.patch {
        0 => format!("{}.{}", version.major, version.minor),
        _ => version.to_string(),
    }
}

fn target_names(targets: &[Target]) -> Vec<String> {
    let mut targets = targets.to_vec();
    targets.sort();
    targets.dedup();
    targets.iter().map(ToString::to_string).collect::<Vec<_>>()
}

impl Lock {
    /// Returns the path of the lock of the workspace in `top`. `None` for a package that cargo downloaded: its lock
    /// belongs to its authors, like its Cargo.lock.
    pub fn lock_path(top: &Path) -> Option<PathBuf> {
        (!is_fetched(top)).then(|| top.join(FILE))
    }

    /// Reads the lock file. `None` if there is no file.
    ///
    /// # Errors
    /// One line for each mistake: file, line and expected value.
    pub fn read(path: &Path) -> Result<Option<Self>, ConfigError> {
        let bytes = match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
                return Ok(None);
            }
            Err(error) => Err(error),
            Ok(metadata) => {
                check_regular_file(&metadata, "lock", LARGEST).map_err(|problem| FileError::read(path, problem))?;
                fs::read(path)
            }
        };
        let bytes = bytes.map_err(|error| FileError::read(path, error))?;
        Self::parse(path, &bytes).map(Some)
    }

    /// Parses the bytes of a lock file; `path` is for messages.
    ///
    /// # Errors
    /// As for [`Lock::read`].
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, ConfigError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = 1 + count_newlines(&bytes[..error.valid_up_to()]);
            ConfigError::mistake(path, line, "is not UTF-8 text")
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // The error message of the TOML parser would not help.
        if let Some(line) = text.lines().position(is_conflict_marker) {
            let message = "contains merge conflict markers; keep one side of each, or restore the file of one branch and \
                           run `cargo cudaguard lock`, or build CMake's target cudaguard-lock";
            return Err(ConfigError::mistake(path, line + 1, message));
        }
        let mut reader = LockReader { text, errors: Vec::new() };
        let lock = match DeTable::parse(text) {
            Ok(table) => reader.read_lock(table.get_ref()),
            Err(error) => {
                let (place, message) = not_toml(text, &error);
                reader.push_error(place, message);
                Self::default()
            }
        };
        if reader.errors.is_empty() {
            return Ok(lock);
        }
        reader.errors.sort();
        Err(ConfigError::Mistakes { path: path.to_owned(), mistakes: reader.errors, more: false })
    }

    /// Formats the file: equal locks give equal bytes.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEAD}version = {FORMAT}\n");
        for (target, pins) in &self.targets {
            let target = quote_key(target);
            let _ = writeln!(text, "\n[target.{target}]");
            if !pins.archs.is_empty() {
                let _ = writeln!(text, "archs = {}", quote_list(&pins.archs));
            }
            let facts = [(LIBRARY, &pins.library), ("host-compiler", &pins.host_compiler), ("toolkit", &pins.toolkit)];
            for (name, fact) in facts {
                if let Some(fact) = fact {
                    let _ = writeln!(text, "{name} = {}", quote(fact));
                }
            }
            if !pins.packages.is_empty() {
                let _ = writeln!(text, "\n[target.{target}.packages]");
                for (package, archs) in &pins.packages {
                    let _ = writeln!(text, "{} = {}", quote_key(package), quote_list(archs));
                }
            }
        }
        text
    }
}

/// Returns true if [`LOCKED`] is set to anything but `0` and `false`.
pub fn is_locked(env: &Env) -> bool {
    env.var(LOCKED).is_some_and(|value| !matches!(value.as_str(), "0" | "false"))
}

/// Returns true if cargo downloaded the package or repository in this directory from a registry or from git, vendored or not.
pub(crate) fn is_fetched(dir: &Path) -> bool {
    [".cargo-ok", ".cargo-checksum.json"].iter().any(|mark| dir.join(mark).exists())
}
fn is_conflict_marker(line: &str) -> bool {
    ["<<<<<<<", "|||||||", "=======", ">>>>>>>"]
        .iter()
        .any(|mark| line.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\r'])))
}

fn quote_key(name: &str) -> String {
    let is_bare = !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_'));
    if is_bare { name.to_owned() } else { quote(name) }
}

fn quote_list(names: &[String]) -> String {
    format!("[{}]", names.iter().map(|name| quote(name)).join(", "))
}

struct LockReader<'a> {
    text: &'a str,
    /// Line and message.
    errors: Vec<(usize, String)>,
}

type Item<'a> = Spanned<DeValue<'a>>;

impl LockReader<'_> {
    fn push_error(&mut self, offset: usize, message: impl Into<String>) {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        self.errors.push((1 + count_newlines(before), message.into()));
    }

    fn push_type_error(&mut self, key: &str, item: &Item<'_>, expected: &str) {
        let found = match item.get_ref() {
            DeValue::String(text) => format!("{text:?}"),
            other => kind_of(other),
        };
        self.push_error(item.span().start, format!("`{key}`: expected {expected}, found {found}"));
    }

    fn read_lock(&mut self, table: &DeTable<'_>) -> Lock {
        let mut lock = Lock::default();
        let format = table.get("version").map(|item| (item, item.get_ref().as_integer().and_then(whole_number)));
        match format {
            None => {
                self.push_error(0, format!("has no `version`; expected `version = {FORMAT}` in the first line"));
            }
            Some((_, Some(FORMAT))) => {}
            Some((item, Some(newer))) if newer > FORMAT => {
                // The other keys of a newer format are not validated.
                self.push_error(
                    item.span().start,
                    format!(
                        "has format {newer}, but this cudaguard ({}) reads {FORMAT}: update cudaguard",
                        env!("CARGO_PKG_VERSION")
                    ),
                );
                return lock;
            }
            Some((item, Some(older))) => {
                self.push_error(
                    item.span().start,
                    format!(
                        "has format {older}, which cudaguard no longer reads; remove the file and run `cargo cudaguard lock`"
                    ),
                );
                return lock;
            }
            Some((item, None)) => self.push_type_error("version", item, &format!("the number {FORMAT}")),
        }
        for (name, item) in table {
            match &**name.get_ref() {
                "version" => {}
                "target" => {
                    let Some(targets) = self.read_table("target", item) else { continue };
                    for (triple, item) in targets {
                        let key = format!("target.{}", triple.get_ref());
                        let Some(table) = self.read_table(&key, item) else { continue };
                        let pins = self.read_pins(&key, table);
                        lock.targets.insert(triple.get_ref().to_string(), pins);
                    }
                }
                other => {
                    self.push_error(name.span().start, format!("`{other}`: no such key; expected version, target"));
                }
            }
        }
        lock
    }

    fn read_table<'v>(&mut self, key: &str, item: &'v Item<'v>) -> Option<&'v DeTable<'v>> {
        let table = item.get_ref().as_table();
        if table.is_none() {
            self.push_type_error(key, item, "a table");
        }
        table
    }

    fn read_pins(&mut self, prefix: &str, table: &DeTable<'_>) -> Pins {
        let mut pins = Pins::default();
        for (name, item) in table {
            let key = format!("{prefix}.{}", name.get_ref());
            match &**name.get_ref() {
                "toolkit" => pins.toolkit = self.read_version(&key, item),
                LIBRARY => pins.library = self.read_version(&key, item),
                "host-compiler" => match item.get_ref().as_str() {
                    Some(text) if !text.trim().is_empty() => pins.host_compiler = Some(text.to_owned()),
                    _ => self.push_type_error(&key, item, "a compiler and its release such as \"gcc 12.2.0\""),
                },
                "archs" => pins.archs = self.read_archs(&key, item),
                "packages" => {
                    let Some(packages) = self.read_table(&key, item) else { continue };
                    for (name, item) in packages {
                        let key = format!("{key}.{}", name.get_ref());
                        let archs = self.read_archs(&key, item);
                        pins.packages.insert(name.get_ref().to_string(), archs);
                    }
                }
                _ => self.push_error(
                    name.span().start,
                    format!("`{key}`: no such key; expected one of archs, {LIBRARY}, host-compiler, packages, toolkit"),
                ),
            }
        }
        pins
    }

    fn read_version(&mut self, key: &str, item: &Item<'_>) -> Option<String> {
        let text = item.get_ref().as_str().filter(|text| text.parse::<Version>().is_ok());
        if text.is_none() {
            self.push_type_error(key, item, "a version as a string such as \"13.0.88\"");
        }
        text.map(str::to_owned)
    }

    fn read_archs(&mut self, key: &str, item: &Item<'_>) -> Vec<String> {
        let Some(items) = item.get_ref().as_array() else {
            self.push_type_error(key, item, "an array of strings such as \"sm_90a\"");
            return Vec::new();
        };
        let mut targets = Vec::new();
        for item in items {
            match item.get_ref().as_str().and_then(|text| text.parse::<Target>().ok()) {
                Some(target) => targets.push(target),
                None => self.push_type_error(key, item, "architectures such as \"sm_90a\" or \"compute_90\""),
            }
        }
        target_names(&targets)
    }
}

fn whole_number(number: &toml::de::DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// The parts of a lock that concern a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)]
pub struct LockScope {
    /// The declared architectures.
    pub archs: bool,
    /// The compiler that nvcc calls.
    pub host_compiler: bool,
    /// The cuDNN headers.
    pub library: bool,
    /// True for one target of many: a locked fact that this target does not have is no drift.
    pub only_what_it_has: bool,
}

impl LockScope {
    /// Everything, for a whole project.
    pub const WHOLE: Self = Self { archs: true, host_compiler: true, library: true, only_what_it_has: false };

    /// Returns true if a locked fact counts for a target that has it or not.
    fn concerns(self, has: bool) -> bool {
        has || !self.only_what_it_has
    }
}

/// Compares the toolchain with the locked one. `path` is the lock's, for messages.
///
/// A difference is an error, or a warning if one side is unknown.
pub fn check_lock(
    lock: &Lock,
    path: &Path,
    package: &str,
    policy: &Policy,
    toolchain: &Toolchain,
    scope: LockScope,
) -> Vec<Finding> {
    let target = &toolchain.target;
    let now = Pins::from_toolchain(policy, toolchain, scope);
    let has_toolkit =
        toolchain.sourced_toolkit_version().is_some() || toolchain.compiler.is_some() || toolchain.headers.is_some();
    if !scope.concerns(has_toolkit || now.library.is_some()) {
        return Vec::new();
    }
    let values = Values::default().with("lock", path.display()).with("target", target).built_by(toolchain.by);
    let values = values.with_known("lock_target", Some(target).filter(|target| *target != HOST));
    let Some(pins) = lock.targets.get(target) else {
        return vec![MessageTemplate::LockLacksTarget.to_finding(&values)];
    };
    let mut drifts = Vec::new();
    if scope.concerns(has_toolkit) && !same_release(pins.toolkit.as_deref(), now.toolkit.as_deref()) {
        let by = toolchain.sourced_toolkit_version().map(|fact| fact.source).unwrap_or_default();
        let is = if toolchain.compiler.is_some() || toolchain.headers.is_some() { NOT_KNOWN } else { NONE };
        let is = now.toolkit.clone().unwrap_or_else(|| is.to_owned());
        drifts.push((TOOLKIT, pins.toolkit.clone(), is, by));
    }
    let has_library = now.library.is_some();
    // A locked cuDNN is compared with the detected one. An unlocked one counts only if the project uses it. If none
    // is found, a build script may pass it to the compiler, and the linked file shows it.
    let open = toolchain.library_version().is_none();
    let is = if pins.library.is_some() {
        toolchain.library_version().map(|version| version.to_string())
    } else {
        now.library
    };
    if pins.library != is
        && !open
        && scope.library
        && scope.concerns(has_library)
        && policy.library_linkage != Some(Linkage::None)
    {
        let headers = toolchain.library_headers_used();
        let by = headers.map(|headers| headers.path.display().to_string()).unwrap_or_default();
        drifts.push((cudnn::NAME, pins.library.clone(), is.unwrap_or_else(|| NONE.to_owned()), by));
    }
    // A missing toolkit is another finding, and a compiler without a release is no difference.
    let concerned = scope.host_compiler && now.toolkit.is_some() && pins.host_compiler.is_some();
    // The cc crate makes nvcc call another one, and it is still unknown which of the two compiles.
    let by_cc = toolchain.host_of_cc.as_ref().and_then(HostCompiler::display_name);
    if concerned && now.host_compiler != pins.host_compiler && (by_cc.is_none() || by_cc != pins.host_compiler) {
        let host = toolchain.host.as_ref();
        let by = host.map(|host| format!("{}: {}", host.path.display(), host.source)).unwrap_or_default();
        let is = now.host_compiler.unwrap_or_else(|| NOT_KNOWN.to_owned());
        drifts.push((HOST_COMPILER, pins.host_compiler.clone(), is, by));
    }
    let locked = pins.archs_of(package);
    if locked != now.archs && scope.archs {
        let ours = toolchain.archs.declared.iter().filter(|one| !one.is_of_torch());
        let by = ours.map(|one| one.source.as_str()).collect::<Vec<_>>();
        let was = (!locked.is_empty()).then(|| locked.join(" "));
        let is = if now.archs.is_empty() { NONE.to_owned() } else { now.archs.join(" ") };
        drifts.push(("the list of declared archs", was, is, by.join(", ")));
    }
    let mut findings = Vec::new();
    for (what, was, is, by) in drifts {
        let severity = if is == NOT_KNOWN { Severity::Warning } else { Severity::Error };
        let was = was.as_deref().unwrap_or(NONE);
        let values = values.clone().with("what", what).with("was", was).with("now", is).with("source", by);
        findings.push(MessageTemplate::LockDrift.to_finding(&values).with_severity(severity));
    }
    findings
}

/// The subject of a drift.
pub const TOOLKIT: &str = "the toolkit";
/// The subject of a drift.
pub const HOST_COMPILER: &str = "the host compiler";

/// Returns true if two releases are equal as far as both are known: `13.0` equals any 13.0.
pub fn same_release(one: Option<&str>, other: Option<&str>) -> bool {
    match (one.map(str::parse::<Version>), other.map(str::parse::<Version>)) {
        (Some(Ok(one)), Some(Ok(other))) => {
            (one.major, one.minor) == (other.major, other.minor)
                && (one.patch == other.patch || one.patch == 0 || other.patch == 0)
        }
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// Returns true if the build uses cuDNN, according to the policy or a variable. A cuDNN that is only installed is not locked,
/// because a machine without it gives the same build.
fn means_library(policy: &Policy, toolchain: &Toolchain) -> bool {
    let by_policy = match policy.library_linkage {
        Some(Linkage::None) => return false,
        Some(Linkage::Unknown) | None => policy.library.is_some(),
        Some(_) => true,
    };
    by_policy || toolchain.names_library()
}

/// Turns warnings about drift into errors if cargo was called with `--locked`, unless they are allowed. Call it after
/// [`Policy::apply_to`].
pub fn enforce_locked(findings: &mut [Finding], policy: &Policy) {
    for finding in findings {
        let ours = matches!(finding.code, Code::LockDrift | Code::LockLacksTarget);
        if ours && finding.severity == Severity::Warning && !policy.allow.contains_key(&finding.code) {
            finding.severity = Severity::Error;
        }
    }
}

#[cfg(test)]
mod tests;
