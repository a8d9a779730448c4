//! What a package says of itself, beside what is in it.

use std::collections::{BTreeMap, BTreeSet};

use cudaguard::binary::Binary;
use cudaguard::finding::{Finding, Severity, Values, Words};
use cudaguard::machine::Components;
use cudaguard::manifest::Requirement;
use cudaguard::vendor::{CUDART, GUARDED, Library, plain_name};
use cudaguard::version::{CudaVersion, Version};

use super::some;

/// What a wheel's METADATA says.
pub(super) struct Package {
    /// Its name.
    pub(super) name: String,
    /// Its version, with what stands behind a `+`.
    pub(super) version: String,
    /// What it requires of NVIDIA's packages.
    pub(super) requires: Vec<String>,
}

/// A release of one of NVIDIA's packages that another one asks for, and no other.
struct Pin<'a> {
    text: &'a str,
    /// Its libraries, without `lib` and what follows `.so`.
    stems: &'static [&'static str],
    version: Version,
}

/// NVIDIA's packages that bring libraries, without `nvidia-` and the CUDA major, and the libraries.
const BRING: &[(&str, &[&str])] = &[
    ("cublas", &["cublas", "cublasLt"]),
    ("cuda-nvrtc", &["nvrtc"]),
    ("cuda-runtime", &["cudart"]),
    (GUARDED.key, &[GUARDED.key]),
    ("cufft", &["cufft"]),
    ("curand", &["curand"]),
    ("cusolver", &["cusolver"]),
    ("cusparse", &["cusparse"]),
    ("nccl", &["nccl"]),
    ("nvjitlink", &["nvJitLink"]),
];

impl Package {
    pub(super) fn of(metadata: &str) -> Self {
        // Behind the first empty line stands a description in free words.
        let lines = || metadata.lines().take_while(|line| !line.is_empty());
        let all = |key: &'static str| lines().filter_map(move |line| Some(line.strip_prefix(key)?.trim().to_owned()));
        let first = |key| all(key).next().unwrap_or_default();
        let requires = all("Requires-Dist:").filter(|text| text.starts_with("nvidia")).collect();
        Self { name: first("Name:"), version: first("Version:"), requires }
    }

    /// `torch 2.9.1+cu128`
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    fn pins(&self) -> impl Iterator<Item = Pin<'_>> {
        self.requires.iter().filter_map(|text| {
            let (name, rest) = text.split_once("==").map(|(name, rest)| (name.trim_end_matches([' ', '(']), rest))?;
            let name = name.strip_prefix("nvidia-")?;
            let name = name.rsplit_once("-cu").map_or(name, |(name, _)| name);
            let (_, stems) = BRING.iter().find(|(known, _)| *known == name)?;
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let numbers: Vec<&str> = rest[..end].split('.').take(3).collect();
            Some(Pin { text, stems, version: numbers.join(".").parse().ok()? })
        })
    }

    /// `+cu128` is CUDA 12.8.
    fn tag(&self) -> Option<(&str, CudaVersion)> {
        let (_, local) = self.version.split_once('+')?;
        let tag = local.split('.').find(|part| part.starts_with("cu"))?;
        let (major, minor) = tag.strip_prefix("cu")?.split_at_checked(tag.len().checked_sub(3)?)?;
        Some((tag, CudaVersion::new(major.parse().ok()?, minor.parse().ok()?)))
    }

    /// What a member needs that the package does not promise.
    pub(super) fn against(&self, name: &str, own: &Components, needed: &[String]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let values = Values::default().with("path", name);
        for pin in self.pins() {
            let values = values.clone().with("value", pin.text);
            let mine = |soname: &str| {
                let stem = soname.strip_prefix("lib").and_then(|rest| rest.split_once(".so"));
                stem.is_some_and(|(stem, _)| pin.stems.contains(&stem))
            };
            let major = |soname: &str| soname.split_once(".so.")?.1.split('.').next()?.parse::<u32>().ok();
            for soname in needed.iter().filter(|soname| mine(soname)) {
                if major(soname).is_some_and(|major| major != pin.version.major) {
                    findings.push(
                        Words::PackageUnfitPromiseMajor.finding(&values.clone().with("library", soname.as_str())),
                    );
                }
            }
            let same = |soname: &str| major(soname).is_none_or(|major| major == pin.version.major);
            for bound in own.bound.iter().filter(|bound| mine(&bound.soname) && same(&bound.soname)) {
                if bound.first > pin.version {
                    let values = values.clone().with("library", bound.soname.as_str()).with("min", bound.first);
                    findings.push(Words::PackageUnfitPromise.finding(&values.with("symbol", bound.name.as_str())));
                }
            }
            let rows = own.manifests.iter().flat_map(|manifest| &manifest.requires);
            for row in rows.filter(|_| pin.stems.contains(&GUARDED.key)) {
                let Requirement::Library { min, .. } = row else { continue };
                if *min > pin.version && findings.is_empty() {
                    let values = values.clone().with("library", GUARDED.name).with("min", *min);
                    findings.push(Words::PackageUnfitPromise.finding(&values));
                }
            }
        }
        if let Some((tag, cuda)) = self.tag() {
            let cudart = needed.iter().find_map(|soname| CUDART.major(soname));
            if let Some(major) = cudart.filter(|major| *major != cuda.major) {
                let values = values.with("value", tag).with("found_cuda", CudaVersion::new(major, 0));
                findings.push(Words::PackageUnfitTag.finding(&values));
            }
        }
        findings
    }
}

/// The driver's library, or its stub, in a member of this name.
pub(super) fn of_driver(name: &str, own: &str) -> Option<Finding> {
    let values = Values::default().with("path", name);
    plain_name(own).starts_with("libcuda.so").then(|| Words::PackageUnfit.finding(&values))
}

/// Folders of the machine that built it, in members' RPATH or RUNPATH: most are where nothing lies elsewhere.
pub(super) fn leading_out<'a>(members: impl Iterator<Item = (&'a str, &'a Binary)>) -> Option<Finding> {
    let (mut names, mut folders) = (Vec::new(), BTreeSet::new());
    for (name, binary) in members {
        let path = binary.runpath.as_deref().or(binary.rpath.as_deref()).unwrap_or_default();
        let outside: Vec<&str> = path.split(':').filter(|folder| folder.starts_with('/')).collect();
        if !outside.is_empty() {
            names.push(name);
        }
        folders.extend(outside);
    }
    let folders: Vec<&str> = folders.into_iter().collect();
    let values = Values::default().with("path", some(&names)).with("folder", some(&folders));
    (!names.is_empty()).then(|| Words::PackageUnfitPath.finding(&values).weighing(Severity::Info))
}

/// A library that stands in the package in several releases; `held`: the library, its release, the member.
pub(super) fn twice<'a>(held: impl Iterator<Item = (&'static Library, &'a str, &'a str)>) -> Vec<Finding> {
    let mut all: BTreeMap<&str, (&'static Library, BTreeMap<&str, &str>)> = BTreeMap::new();
    for (library, version, member) in held {
        let (_, releases) = all.entry(library.key).or_insert_with(|| (library, BTreeMap::new()));
        let _ = releases.entry(version).or_insert(member);
    }
    let several = all.into_values().filter(|(_, releases)| releases.len() > 1);
    several
        .map(|(library, releases)| {
            let told = releases.iter().map(|(version, member)| format!("{version} in {member}"));
            let values = Values::default().with("library", library.name);
            Words::PackageUnfitTwice.finding(&values.with("value", told.collect::<Vec<_>>().join(", ")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(version: &str, requires: &str) -> Package {
        Package::of(&format!(
            "Metadata-Version: 2.1\nName: torch\nVersion: {version}\n{requires}\n\nRequires-Dist: nvidia-none==1\n"
        ))
    }

    #[test]
    fn what_is_pinned() {
        for (line, expected) in [
            ("nvidia-cudnn-cu12==9.1.0.70; platform_system == \"Linux\"", Some("9.1.0")),
            ("nvidia-cudnn-cu12 (==8.9.2.26)", Some("8.9.2")),
            ("nvidia-nccl-cu12==2.27.5", Some("2.27.5")),
            ("nvidia-cuda-runtime-cu12==12.8.90", Some("12.8.90")),
            ("nvidia-cudnn==9.15.1.9", Some("9.15.1")),
            ("nvidia-cudnn-cu12>=9", None),
            ("nvidia-ml-py==12.0", None),
            ("nvidia-cudnn-cu12==", None),
        ] {
            let package = package("2.9.1", &format!("Requires-Dist: {line}"));
            let pins: Vec<String> = package.pins().map(|pin| pin.version.to_string()).collect();
            assert_eq!(pins.first().map(String::as_str), expected, "{line}");
            assert_eq!(package.requires.len(), 1);
        }
    }

    #[test]
    fn what_a_version_names() {
        for (version, expected) in [
            ("2.9.1+cu128", Some(("cu128", (12, 8)))),
            ("1.7+cu92", Some(("cu92", (9, 2)))),
            ("1.0+cu118.abi1", Some(("cu118", (11, 8)))),
            ("1.0+abi1.cu130", Some(("cu130", (13, 0)))),
            ("2.9.1", None),
            ("2.9.1+cpu", None),
            ("2.9.1+cu", None),
            ("2.9.1+cu1", None),
            ("2.9.1+custom", None),
        ] {
            let package = package(version, "");
            let expected = expected.map(|(tag, (major, minor))| (tag, CudaVersion::new(major, minor)));
            assert_eq!(package.tag(), expected, "{version}");
        }
    }
}
