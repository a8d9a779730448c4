//! What a package says of itself, beside what is in it.

use std::collections::{BTreeMap, BTreeSet};

use cudaguard::binary::Binary;
use cudaguard::finding::{Finding, Severity, Values, Words};
use cudaguard::machine::Components;
use cudaguard::manifest::Requirement;
use cudaguard::vendor::{CUDART, GUARDED, Library, major_of, plain_name};
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
            let (name, rest) = text.split_once("==")?;
            // PEP 503: `nvidia_cublas_cu12` is the same name. Behind `[` stand extras.
            let name = name.split(['[', '(']).next()?.trim().to_lowercase().replace(['_', '.'], "-");
            let name = name.strip_prefix("nvidia-")?;
            let name = name.rsplit_once("-cu").map_or(name, |(name, _)| name);
            let (_, stems) = BRING.iter().find(|(known, _)| *known == name)?;
            let rest = rest.trim_start();
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

    /// What members need from elsewhere that the package promises in another release. Each is for what one of several pins brings:
    /// they may stand under different markers.
    pub(super) fn against(&self, members: &[(&str, Wants)]) -> Vec<Finding> {
        let pins: Vec<Pin<'_>> = self.pins().collect();
        let wanted = || members.iter().flat_map(|(_, wants)| wants.keys());
        let mut findings = Vec::new();
        for (name, wants) in members {
            let values = Values::default().with("path", *name);
            for (soname, oldest) in wants {
                let mine: Vec<&Pin<'_>> = pins.iter().filter(|pin| pin.brings(soname)).collect();
                let of_major = mine.iter().filter(|pin| pin.is_of(soname)).max_by_key(|pin| pin.version);
                match (of_major, oldest) {
                    (Some(pin), Some((oldest, symbol))) if pin.version < *oldest => {
                        let values = values.clone().with("value", pin.text).with("library", soname.as_str());
                        let values = values.with("min", *oldest).with("symbol", symbol.as_str());
                        findings.push(Words::PackageUnfitPromise.finding(&values));
                    }
                    (Some(_), _) => {}
                    // A file for each of several majors: what is pinned is for another one.
                    (None, _) if wanted().any(|other| mine.iter().any(|pin| pin.brings(other) && pin.is_of(other))) => {
                    }
                    (None, _) => findings.extend(mine.first().map(|pin| {
                        let values = values.clone().with("value", pin.text).with("library", soname.as_str());
                        Words::PackageUnfitPromiseMajor.finding(&values)
                    })),
                }
            }
        }
        if let Some((tag, cuda)) = self.tag() {
            let of_cudart = |(name, wants): &(&str, Wants)| {
                let majors = wants.keys().filter_map(|soname| CUDART.major(soname));
                majors.map(|major| (name.to_string(), major)).collect::<Vec<_>>()
            };
            let all: Vec<(String, u32)> = members.iter().flat_map(of_cudart).collect();
            if let Some((name, major)) = all.first().filter(|_| all.iter().all(|(_, major)| *major != cuda.major)) {
                let values = Values::default().with("path", name.as_str()).with("value", tag);
                findings.push(Words::PackageUnfitTag.finding(&values.with("found_cuda", CudaVersion::new(*major, 0))));
            }
        }
        findings
    }
}

/// The libraries that a member needs from elsewhere, by soname, with the oldest release that will do and the function that tells so,
/// where one does.
pub(super) type Wants = BTreeMap<String, Option<(Version, String)>>;

/// What a member wants: what it needs and does not find within the package.
pub(super) fn wants(own: &Components, needed: &[String], is_inside: impl Fn(&str) -> bool) -> Wants {
    let elsewhere = |soname: &&String| !is_inside(soname);
    let mut wants: Wants =
        needed.iter().filter(elsewhere).map(|soname| (plain_name(soname).into_owned(), None)).collect();
    let mut oldest = |soname: &str, version: Version, symbol: &str| {
        if let Some(known) = wants.get_mut(soname) {
            *known = known.take().max(Some((version, symbol.to_owned())));
        }
    };
    for bound in &own.bound {
        oldest(&bound.soname, bound.first, &bound.name);
    }
    for row in own.manifests.iter().flat_map(|manifest| &manifest.requires) {
        if let Requirement::Library { min, soname, .. } = row {
            oldest(soname, *min, "");
        }
    }
    wants
}

impl Pin<'_> {
    fn brings(&self, soname: &str) -> bool {
        let stem = soname.strip_prefix("lib").and_then(|rest| rest.split_once(".so"));
        stem.is_some_and(|(stem, _)| self.stems.contains(&stem))
    }

    fn is_of(&self, soname: &str) -> bool {
        major_of(soname).is_none_or(|major| major == self.version.major)
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
            ("nvidia_cudnn_cu12 == 9.1.0.70", Some("9.1.0")),
            ("nvidia-cuda-nvrtc[all]==13.0.48", Some("13.0.48")),
            ("nvidia-cudnn-cu12==9.1.*", None),
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
    fn what_members_want_and_what_is_promised() {
        let member = |wants: &[(&str, &str)]| -> Wants {
            let want = |(soname, oldest): &(&str, &str)| {
                let oldest = (!oldest.is_empty()).then(|| (oldest.parse().expect("a version"), "f".to_owned()));
                ((*soname).to_owned(), oldest)
            };
            wants.iter().map(want).collect()
        };
        let nine = "nvidia-cudnn-cu12==9.1.0.70";
        for (version, requires, members, expected) in [
            ("1.0", &[nine][..], &[&[("libcudnn.so.9", "9.1.0")][..]][..], 0),
            ("1.0", &[nine], &[&[("libcudnn.so.9", "9.2.0")]], 1),
            ("1.0", &[nine], &[&[("libcudnn.so.9", "")]], 0),
            ("1.0", &[nine], &[&[("libcudnn.so.8", "")]], 1),
            // For either of two extras.
            ("1.0", &["nvidia-cudnn-cu11==8.9.6.50; extra == \"old\"", nine], &[&[("libcudnn.so.9", "9.0.0")]], 0),
            // One file for each of two majors, one of which is pinned.
            ("1.0", &["nvidia-cublas-cu12==12.4.5.8"], &[&[("libcublas.so.11", "")], &[("libcublas.so.12", "")]], 0),
            ("1.0+cu128", &[], &[&[("libcudart.so.11.0", "")], &[("libcudart.so.12", "")]], 0),
            ("1.0+cu128", &[], &[&[("libcudart.so.13", "")], &[("libcudart.so.13", "")]], 1),
            ("1.0+cu128", &[], &[&[("libcudnn.so.9", "")]], 0),
            ("1.0", &["nvidia-nccl-cu12==2.27.5"], &[&[("libcudnn.so.8", "")]], 0),
        ] {
            let requires = requires.iter().fold(String::new(), |lines, one| lines + "Requires-Dist: " + one + "\n");
            let package = package(version, requires.trim_end());
            let members: Vec<(&str, Wants)> = members.iter().map(|wants| ("a.so", member(wants))).collect();
            let found = package.against(&members);
            assert_eq!(found.len(), expected, "{version} {requires} {members:?}: {found:?}");
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
