//! `[release]`: what a release must contain, and the newest components that it may require.
//!
//! `cargo cudaguard verify` checks files against it. No build reads it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use toml::de::DeTable;

use super::parser::{PolicyEntry, PolicyReader, RELEASE_KEYS};
use super::{LARGEST, Policy};
use crate::config::{ConfigError, check_regular_file};
use crate::model::arch::{self, ArchError, ArchRequest, Dialect, Target};
use crate::model::version::{DriverRelease, Version};
use crate::sys::file_error::FileError;
use crate::text::toml_error::not_toml;

/// The name of the file of a Python project that may contain the same keys in `[tool.cudaguard]`.
pub const PYPROJECT: &str = "pyproject.toml";

/// Requirements for every released file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReleaseRequirements {
    /// Code that each file with kernels must contain.
    pub archs: Vec<Target>,
    /// The oldest driver that must be sufficient: a branch or a release.
    pub driver_floor: Option<DriverRelease>,
    /// The oldest cuDNN that must be sufficient.
    pub cudnn_floor: Option<Version>,
    /// Each file that uses CUDA must contain the guard.
    pub guarded: bool,
    /// Partial coverage, unknown facts and parts that were not examined are errors.
    pub strict: bool,
    /// Globs of files that need neither `archs` nor the guard.
    pub except: Vec<String>,
    /// Support that a new release may lack, compared with the old one.
    pub allow_loss: Vec<LossKind>,
}

/// Support that a release may lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// A GPU that ran it.
    Gpu,
    /// Drivers that were sufficient.
    Driver,
    /// Releases of cuDNN that were sufficient.
    Cudnn,
    /// The guard of a file.
    Guard,
}

impl LossKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Gpu, Self::Driver, Self::Cudnn, Self::Guard];

    /// `gpu`, `driver`, `cudnn`, `guard`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::Driver => "driver",
            Self::Cudnn => "cudnn",
            Self::Guard => "guard",
        }
    }
}

impl std::str::FromStr for LossKind {
    type Err = UnknownLossKind;

    fn from_str(text: &str) -> Result<Self, UnknownLossKind> {
        Self::ALL.iter().copied().find(|kind| kind.name() == text).ok_or(UnknownLossKind)
    }
}

/// The error of a text that names no [`LossKind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownLossKind;

impl fmt::Display for UnknownLossKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected gpu, driver, cudnn or guard")
    }
}

impl std::error::Error for UnknownLossKind {}

/// Parses required archs: a plain number or `9.0` is machine code, `+PTX` in any case adds PTX.
pub fn parse_archs(text: &str) -> Result<Vec<Target>, ArchError> {
    let requests = arch::parse_list(&text.to_ascii_lowercase().replace("+ptx", "+PTX"), Dialect::Torch)?;
    let mut targets = Vec::new();
    for request in requests {
        let ArchRequest::Target(target) = request else {
            let reason = "names no architecture; expected spellings such as 80, sm_90a, compute_90 or 120+ptx";
            return Err(ArchError { word: request.to_string(), reason: reason.to_owned() });
        };
        targets.push(target);
    }
    Ok(targets)
}

/// Parses a driver floor: `525`, `525.60.13`.
pub fn parse_driver_floor(text: &str) -> Option<DriverRelease> {
    let release = match text.parse::<u32>() {
        Ok(branch) => DriverRelease::new(branch, 0, 0),
        Err(_) => DriverRelease::from_str(text).ok()?,
    };
    Some(release).filter(|release| release.is_one())
}

impl ReleaseRequirements {
    /// Reads the requirements of a project: the first cudaguard.toml or pyproject.toml with some, in `dir` and its parents.
    /// Stops at the root of the repository. Returns the file, too.
    ///
    /// # Errors
    /// If the file contains a mistake.
    pub fn for_project(dir: &Path) -> Result<Option<(PathBuf, Self)>, ConfigError> {
        for directory in dir.ancestors() {
            for name in &[super::FILE, PYPROJECT] {
                let path = directory.join(name);
                if path.exists() {
                    if let Some(found) = Self::from_file(&path)? {
                        return Ok(Some((path, found)));
                    }
                }
            }
            if directory.join(".git").exists() {
                break;
            }
        }
        Ok(None)
    }

    /// Reads the requirements in a cudaguard.toml, or in the `[tool.cudaguard]` of a pyproject.toml. `None` if it has none.
    ///
    /// # Errors
    /// If the file cannot be read or contains a mistake.
    pub fn from_file(path: &Path) -> Result<Option<Self>, ConfigError> {
        if path.file_name().is_none_or(|name| name != PYPROJECT) {
            return Ok(Policy::from_file(path, "")?.release_gate);
        }
        let metadata = fs::metadata(path).map_err(|error| ConfigError::unreadable(path, error))?;
        check_regular_file(&metadata, "project", LARGEST).map_err(|problem| FileError::read(path, problem))?;
        let text = fs::read_to_string(path).map_err(|error| ConfigError::unreadable(path, error))?;
        let mut reader = PolicyReader::new(path, &text);
        let mut policy = Policy { path: Some(path.to_owned()), ..Policy::default() };
        match DeTable::parse(&text) {
            Ok(table) => reader.read_pyproject(table.get_ref(), &mut policy),
            Err(error) => reader.errors.push(not_toml(&text, &error)),
        }
        reader.into_result().map(|()| policy.release_gate)
    }
}

impl PolicyReader<'_> {
    /// Reads `[tool.cudaguard]`: the keys of `[release]`, directly or in a table of that name, and the other tables of a policy.
    fn read_pyproject(&mut self, project: &DeTable<'_>, policy: &mut Policy) {
        let tool = project.get("tool").and_then(|tool| tool.get_ref().as_table());
        let Some(own) = tool.and_then(|tool| tool.get("cudaguard")) else { return };
        let Some(table) = self.read_table(PolicyEntry { key: "tool.cudaguard", value: own }) else { return };
        let mut sections = DeTable::new();
        for (name, value) in table {
            // `strict` is no table, and no table of a policy has the name of one of these keys.
            if RELEASE_KEYS.contains(&&**name.get_ref()) {
                let full = format!("tool.cudaguard.{}", name.get_ref());
                self.read_release_key(name.get_ref(), PolicyEntry { key: &full, value }, policy);
            } else {
                sections.insert(name.clone(), value.clone());
            }
        }
        self.read_sections("", &sections, policy);
    }

    pub(super) fn read_bool(&mut self, entry: PolicyEntry<'_>) -> bool {
        let value = entry.value.get_ref().as_bool();
        if value.is_none() {
            self.push_error(entry, "true or false");
        }
        value.unwrap_or_default()
    }

    pub(super) fn read_release_key(&mut self, key: &str, entry: PolicyEntry<'_>, policy: &mut Policy) {
        let release = policy.release_gate.get_or_insert_default();
        match key {
            "guarded" => release.guarded = self.read_bool(entry),
            "strict" => release.strict = self.read_bool(entry),
            "except" => {
                let mut globs = Vec::new();
                self.read_strings(entry, "strings such as \"lib/*.so\"", &mut |_, _, text| globs.push(text.to_owned()));
                release.except = globs;
            }
            "allow-loss" => {
                let mut kinds = Vec::new();
                let expected = "\"gpu\", \"driver\", \"cudnn\" and \"guard\"";
                self.read_strings(entry, expected, &mut |reader, entry, text| match text.parse() {
                    Ok(kind) => kinds.push(kind),
                    Err(_) => reader.push_error(entry, &format!("one of {expected}")),
                });
                release.allow_loss = kinds;
            }
            "archs" => {
                let mut archs: Vec<Target> = Vec::new();
                self.read_strings(entry, "strings such as \"80\" or \"120+ptx\"", &mut |reader, entry, text| {
                    match parse_archs(text) {
                        Ok(found) if found.is_empty() => reader.push_error(entry, "an architecture such as \"80\""),
                        Ok(found) => archs.extend(found),
                        Err(error) => {
                            reader.errors.push((entry.value.span().start, format!("`{}`: {error}", entry.key)));
                        }
                    }
                });
                archs.sort();
                archs.dedup();
                release.archs = archs;
            }
            "driver-floor" => {
                let expected = "the oldest driver as a string such as \"525\" or \"525.60.13\"";
                if let Some(text) = self.read_string(entry, expected) {
                    release.driver_floor = parse_driver_floor(text);
                    if release.driver_floor.is_none() {
                        self.push_error(entry, expected);
                    }
                }
            }
            "cudnn-floor" => {
                let expected = "the oldest cuDNN as a string such as \"9.1\"";
                if let Some(text) = self.read_string(entry, expected) {
                    release.cudnn_floor = text.parse().ok();
                    if release.cudnn_floor.is_none() {
                        self.push_error(entry, expected);
                    }
                }
            }
            _ => unreachable!("a key of [release] that nothing reads: {key}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<ReleaseRequirements>, String> {
        let policy = Policy::parse(Path::new("cudaguard.toml"), text.as_bytes(), "demo");
        policy.map(|policy| policy.release_gate).map_err(|error| error.to_string())
    }

    #[test]
    fn archs_are_parsed_as_written() {
        let names = |text: &str| {
            parse_archs(text)
                .map(|archs| archs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
                .map_err(|error| error.to_string())
        };
        for (text, expected) in [
            ("80,90,100,120+ptx", "sm_80 sm_90 sm_100 sm_120 compute_120"),
            ("8.0;9.0+PTX", "sm_80 sm_90 compute_90"),
            ("SM_90a compute_90", "sm_90a compute_90"),
            ("75-real 90-virtual", "sm_75 compute_90"),
        ] {
            assert_eq!(names(text).as_deref(), Ok(expected), "{text}");
        }
        for text in ["native", "all", "8", "9.0+sass", "off", "hopper9"] {
            assert!(names(text).is_err(), "{text}: {:?}", names(text));
        }
    }

    #[test]
    fn floors_are_branches_or_releases() {
        assert_eq!(parse_driver_floor("525"), Some(DriverRelease::new(525, 0, 0)));
        assert_eq!(parse_driver_floor("525.60.13"), Some(DriverRelease::new(525, 60, 13)));
        for text in ["12.4", "52", "5350", "", "none", "525.60.13.1.2"] {
            assert_eq!(parse_driver_floor(text), None, "{text}");
        }
    }

    #[test]
    fn release_table_is_read() {
        let whole = "[release]\narchs = [\"80\", \"90+ptx\"]\ndriver-floor = \"525\"\ncudnn-floor = \"9.1\"\nguarded = true\nstrict = true\nexcept = [\"*.a\"]\n";
        let found = read(whole).unwrap().unwrap();
        assert_eq!(found.archs.len(), 3);
        assert_eq!(found.driver_floor, Some(DriverRelease::new(525, 0, 0)));
        assert_eq!(found.cudnn_floor, Some(Version::new(9, 1, 0)));
        assert!(found.guarded && found.strict && found.except == ["*.a"]);
        assert_eq!(read("[gpu]\narchs = [\"80\"]\n"), Ok(None));
        for (text, expected) in [
            (
                "[release]\ndriver_floor = \"525\"\n",
                "cudaguard.toml:2: `release.driver_floor`: no such key; did you mean `driver-floor`?",
            ),
            ("[release]\nstrict = 1\n", "cudaguard.toml:2: `release.strict`: expected true or false"),
            ("[release]\narchs = [\"x\"]\n", "cudaguard.toml:2: `release.archs[0]`: `x` is not an architecture"),
            ("[release]\ndriver-floor = 525\n", "expected the oldest driver as a string"),
            ("[release]\nallow-loss = [\"gpus\"]\n", "`release.allow-loss[0]`: expected one of \"gpu\""),
            ("[package.demo.release]\nstrict = true\n", "`package.demo.release`: no such key"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn pyproject_has_the_same_keys() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join(PYPROJECT);
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            ReleaseRequirements::from_file(&path).map_err(|error| error.to_string())
        };
        let flat = read("[project]\nname = \"demo\"\n[tool.cudaguard]\narchs = [\"80\"]\nstrict = true\n").unwrap();
        let nested = read("[tool.cudaguard.release]\narchs = [\"80\"]\nstrict = true\n").unwrap();
        assert_eq!(flat, nested);
        assert!(flat.is_some_and(|found| found.strict));
        assert_eq!(read("[tool.other]\nstrict = true\n"), Ok(None));
        let error = read("[tool.cudaguard]\nstrikt = true\n").unwrap_err();
        assert!(error.contains(":2: `strikt`: no such key"), "{error}");
        let found = ReleaseRequirements::for_project(&scratch.path().join("below")).unwrap_err();
        assert!(found.to_string().contains("strikt"), "{found}");
    }
}
