//! Facts about crates that reach CUDA: `data/crates.toml`, from the crates' own sources.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use semver::VersionReq;
use serde::Deserialize;

use crate::knowledge::from_text;
use cudaguard::internal::version::{CudaVersion, Version};

/// A range of versions of a crate with the same behaviour.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrateRow {
    /// The name of the crate.
    pub name: String,
    /// The range.
    #[serde(deserialize_with = "from_text")]
    pub versions: VersionReq,
    /// The version whose source was read.
    pub read: String,
    /// The date of that.
    pub date: String,
    /// A description in one line.
    pub about: String,
    /// How it selects the CUDA release of its bindings.
    pub level: Option<LevelRule>,
    /// The place from which it reads the CUDA release of its bindings, if it generates them.
    pub header_level: Option<HeaderLevelRule>,
    /// How it selects the cuDNN release of its bindings.
    #[serde(rename = "cudnn")]
    pub library: Option<LibraryRule>,
    /// How it reaches libraries, by feature (empty: without any). The first enabled feature decides.
    #[serde(default)]
    pub modes: Vec<(String, Mode)>,
    /// The stems of its libraries, by feature (empty: always).
    #[serde(default)]
    pub libraries: Vec<(String, String)>,
    /// The file names that it tries for a stem, in order: patterns with `{lib}`, `{major}` and `{minor}`.
    #[serde(default)]
    pub names: Vec<String>,
    /// When it resolves the functions of a library.
    #[serde(default)]
    pub symbols: Symbols,
    /// Functions that it calls only if the driver reports the feature to which they belong.
    #[serde(default)]
    pub guarded: Vec<String>,
    /// The search order for the compiler.
    #[serde(default)]
    pub nvcc: Vec<String>,
    /// The search order for `cuda.h`.
    #[serde(default)]
    pub headers: Vec<String>,
    /// The crates that pass these headers to the compiler through it.
    #[serde(default)]
    pub headers_for: Vec<String>,
    /// The search order for libraries.
    #[serde(default)]
    pub link: Vec<String>,
    /// The crates that call it in their build scripts to stop if none of `link` has any. Others only query it.
    #[serde(default)]
    pub stops_without_link: Vec<String>,
    /// Set if the linker searches the libraries only in `link`, in `LIBRARY_PATH` and in the directories of the system.
    #[serde(default)]
    pub linker_searches: bool,
    /// The library with CUDA that it downloads.
    pub download: Option<DownloadRule>,
    /// How it converts `CUDA_COMPUTE_CAP`.
    pub arch: Option<ArchRule>,
    /// The variables that trigger its build script.
    #[serde(default)]
    pub reruns: Vec<String>,
    /// The variables in which its build script reports its choice.
    #[serde(default)]
    pub tells: Vec<String>,
    /// The sources: (fact, file and lines).
    pub source: Vec<(String, String)>,
}

/// How a crate selects its CUDA level, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelRule {
    /// A variable, `12080` for 12.8.
    pub variable: String,
    /// The prefix of its features, in front of the same number.
    pub features: String,
    /// The feature that uses the first nvcc in `PATH`.
    pub nvcc: String,
    /// The feature that selects the newest known release if there is no nvcc.
    pub newest: Option<String>,
}

/// How a crate selects the `cuda.h` from which it generates its bindings.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderLevelRule {
    /// The roots of toolkits, in order. A variable that is set ends the search.
    pub roots: Vec<String>,
    /// The variable that names the only directory below `targets/` with headers.
    pub target: String,
    /// The oldest release that it accepts.
    #[serde(deserialize_with = "from_text")]
    pub oldest: CudaVersion,
}

/// How a crate selects its cuDNN level.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum LibraryRule {
    /// A feature selects the bindings of one major.
    Fixed {
        /// The feature.
        #[serde(rename = "fixed")]
        feature: String,
        /// The major.
        major: u32,
        /// The oldest release that has every function.
        #[serde(deserialize_with = "from_text")]
        has: Version,
        /// The newest release that lacks one.
        #[serde(deserialize_with = "from_text")]
        lacks: Version,
        /// A function that it lacks.
        symbol: String,
    },
    /// Features name a release, or one reads the headers.
    Named {
        /// Their prefix, in front of `09021` for 9.21.
        features: String,
        /// The feature that reads the headers.
        headers: String,
        /// The search order for them.
        places: Vec<String>,
        /// The feature that selects the newest known release if the headers are missing or unknown.
        newest: String,
    },
}

/// How a crate selects the library that it downloads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DownloadRule {
    /// The feature that downloads.
    pub feature: String,
    /// The features that select a library with CUDA.
    pub cuda: Vec<String>,
    /// The features that prevent the download.
    pub unless: Vec<String>,
    /// The variables that name another library.
    pub instead: Vec<String>,
    /// The variable that selects the major.
    pub variable: Option<String>,
    /// The CUDA majors of the libraries. Without the variable, the major of the toolkit, otherwise the first one.
    pub majors: Vec<u32>,
}

/// How a crate reaches its libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The library is in `DT_NEEDED`.
    Linked,
    /// Linked statically.
    Static,
    /// Opened by name at run time.
    Loaded,
    /// Through other crates only.
    None,
    /// Unknown: its source was not read.
    #[serde(skip)]
    Unknown,
}

/// When the functions of a library that is opened by name are resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Symbols {
    /// All when it is opened; the program panics if one is missing.
    Opened,
    /// Each at its first call; a missing one panics then.
    #[default]
    #[serde(rename = "called")]
    ResolvedAtFirstCall,
    /// Each at its first call; a missing one is an error of that call.
    Checked,
}

/// How a build script converts `CUDA_COMPUTE_CAP`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchRule {
    /// The variable.
    pub variable: String,
    /// True if it adds the suffix: 90 becomes `sm_90a`.
    pub suffix: bool,
}

/// The CUDA version that a driver must support to have all driver functions of a level.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverLevel {
    /// The level of the bindings.
    #[serde(deserialize_with = "from_text")]
    pub level: CudaVersion,
    /// The newest release that introduced one of them.
    #[serde(deserialize_with = "from_text")]
    pub needs: CudaVersion,
    /// A function that it introduced.
    pub symbol: String,
}

/// The whole table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrateTable {
    /// The crates, one row for each range of versions.
    #[serde(rename = "crate")]
    pub crates: Vec<CrateRow>,
    /// Driver functions by level.
    pub driver: DriverTable,
}

/// Driver functions by level.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverTable {
    /// The source.
    pub source: String,
    /// The date on which it was read.
    pub date: String,
    /// The levels, oldest first.
    pub levels: Vec<DriverLevel>,
}

const TEXT: &str = include_str!("../../../data/crates.toml");

/// Returns the compiled-in table.
pub fn table() -> &'static CrateTable {
    static TABLE: OnceLock<CrateTable> = OnceLock::new();
    TABLE.get_or_init(|| toml::from_str(TEXT).unwrap_or_else(|error| unreachable!("built-in table: {error}")))
}

/// Returns the row for this version of a crate.
pub fn find_row(name: &str, version: &str) -> Option<&'static CrateRow> {
    let version: semver::Version = version.parse().ok()?;
    table().crates.iter().find(|row| row.name == name && row.versions.matches(&version))
}

/// Returns true if the table has any version of this crate.
pub fn is_known(name: &str) -> bool {
    table().crates.iter().any(|row| row.name == name)
}

/// Returns the CUDA version that a driver must support to have every function of this level. `None` if the table has no
/// row for the level.
pub fn driver_level(level: CudaVersion) -> Option<&'static DriverLevel> {
    table().driver.levels.iter().find(|row| row.level == level)
}

impl CrateRow {
    /// How it reaches libraries with these features.
    pub fn link_mode(&self, features: &BTreeSet<String>) -> Mode {
        let on = |(feature, _): &&(String, Mode)| feature.is_empty() || features.contains(feature);
        self.modes.iter().find(on).map_or(Mode::None, |(_, mode)| *mode)
    }

    /// The stems of its libraries with these features, each once.
    pub fn library_stems(&self, features: &BTreeSet<String>) -> Vec<&str> {
        let mut stems = Vec::new();
        for (feature, stem) in &self.libraries {
            if (feature.is_empty() || features.contains(feature)) && !stems.contains(&stem.as_str()) {
                stems.push(stem.as_str());
            }
        }
        stems
    }

    /// Returns true if the table describes its part in the build script of this crate: it compiles, or stops.
    pub fn works_for(&self, caller: &str) -> bool {
        !self.nvcc.is_empty() || self.stops_without_link.iter().any(|one| one == caller)
    }

    /// The file names that it tries for a library, in order.
    pub fn names_of(&self, stem: &str, level: Option<CudaVersion>) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for pattern in &self.names {
            let name = match level {
                Some(CudaVersion { major, minor }) => {
                    pattern.replace("{major}", &major.to_string()).replace("{minor}", &minor.to_string())
                }
                // Names that depend on an unknown level are omitted.
                None if pattern.contains("{m") => continue,
                None => pattern.clone(),
            };
            let name = name.replace("{lib}", stem);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

impl LevelRule {
    /// The level in one of its features, `cuda-12080`.
    pub fn level_of(&self, feature: &str) -> Option<CudaVersion> {
        let number = feature.strip_prefix(&self.features)?;
        (number.len() == 5).then(|| number.parse().ok().map(CudaVersion::from_int))?
    }

    /// The feature, or the variable's value, for a level.
    pub fn number_of(level: CudaVersion) -> String {
        level.to_int().to_string()
    }
}

impl LibraryRule {
    /// The release in one of its features, `cudnn-09021`.
    pub fn level_of(&self, feature: &str) -> Option<(u32, u32)> {
        let Self::Named { features, .. } = self else { return None };
        let number = feature.strip_prefix(features)?;
        let number: u32 = (number.len() == 5).then(|| number.parse().ok())??;
        Some((number / 1000, number % 1000))
    }
}

#[cfg(test)]
mod tests {
    use cudaguard::internal::pipeline::may_use_toolkit;

    use super::*;

    #[test]
    fn table_ranges_are_valid_and_disjoint() {
        for row in &table().crates {
            let read: semver::Version = row.read.parse().unwrap();
            assert!(row.versions.matches(&read), "{} {}", row.name, row.read);
            for other in table().crates.iter().filter(|other| other.name == row.name && other.read != row.read) {
                assert!(!other.versions.matches(&read), "{} {} is in {}", row.name, row.read, other.versions);
            }
            assert_eq!(row.date.len(), 10, "{}", row.name);
            assert!(!row.source.is_empty(), "{}: what was read where", row.name);
            assert!(!row.names.is_empty() || !row.modes.iter().any(|(_, mode)| *mode == Mode::Loaded), "{}", row.name);
        }
        for pair in table().driver.levels.windows(2) {
            assert!(pair[0].level < pair[1].level && pair[0].needs <= pair[1].needs, "{pair:?}");
            assert!(pair[1].needs <= pair[1].level, "{pair:?}");
        }
    }

    /// A build script knows only the names.
    #[test]
    fn names_show_use_of_toolkit() {
        for row in table().crates.iter().filter(|row| row.modes.iter().any(|(_, mode)| *mode != Mode::Loaded)) {
            assert!(may_use_toolkit(&row.name), "{}", row.name);
        }
    }

    #[test]
    fn versions_find_their_row() {
        for (version, read) in [
            ("0.16.0", Some("0.16.6")),
            ("0.17.3", Some("0.17.8")),
            ("0.19.4", Some("0.19.4")),
            ("0.19.5", Some("0.19.10")),
            ("0.20.0", None),
            ("0.9.0", None),
            ("nonsense", None),
        ] {
            assert_eq!(find_row("cudarc", version).map(|row| row.read.as_str()), read, "{version}");
        }
        for (name, version, read) in [
            ("torch-sys", "0.17.0", "0.17.0"),
            ("torch-sys", "0.22.0", "0.26.0"),
            ("ort", "2.0.0-rc.15", "2.0.0-rc.15"),
            ("ort-sys", "2.0.0-rc.12", "2.0.0-rc.12"),
            ("ort-sys", "2.0.0-rc.14", "2.0.0-rc.15"),
            ("whisper-rs-sys", "0.13.1", "0.15.0"),
            ("llama-cpp-sys-2", "0.1.122", "0.1.161"),
            ("cuda-bindings", "0.5.0", "0.5.0"),
            ("cuvs-sys", "26.10.0", "26.10.0"),
            ("arrayfire", "3.8.0", "3.8.0"),
        ] {
            assert_eq!(find_row(name, version).map(|row| row.read.as_str()), Some(read), "{name} {version}");
        }
        assert!(find_row("ort", "2.0.0-rc.10").is_some() && find_row("ort", "2.0.0-rc.9").is_none());
        assert!(find_row("cuda-runtime-sys", "0.3.0-alpha.1").is_some());
    }

    #[test]
    fn names_keep_their_order() {
        let names = find_row("cudarc", "0.19.10").unwrap().names_of("cudnn", Some(CudaVersion::new(13, 0)));
        let plain: Vec<&str> = names.iter().map(String::as_str).filter(|name| !name.contains("64")).collect();
        assert_eq!(
            plain,
            [
                "libcudnn.so",
                "libcudnn.so.13",
                "libcudnn.so.12",
                "libcudnn.so.11",
                "libcudnn.so.10",
                "libcudnn.so.9",
                "libcudnn.so.1"
            ]
        );
        assert_eq!(names[4], "libcudnn64_130_0.so");
        let names = find_row("cudarc", "0.17.8").unwrap().names_of("cuda", None);
        assert!(names.contains(&"libcuda.so.1".to_owned()) && !names.iter().any(|name| name.contains('{')));
    }

    #[test]
    fn invalid_row_is_an_error() {
        for (from, to, error) in [
            ("symbols = \"opened\"", "symbols = \"never\"", "unknown variant `never`"),
            ("date = ", "dated = ", "unknown field `dated`"),
            ("versions = \">=0.16", "versions = \">=a.16", "is not valid here"),
            ("fixed = ", "fixes = ", "LibraryRule"),
        ] {
            let found = toml::from_str::<CrateTable>(&TEXT.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(found.contains(error), "{found}");
        }
    }
}
