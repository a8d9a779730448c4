//! Requirements of NVIDIA packages, as a package or an image writes them: the libraries and the range of releases.

use super::marker::MarkerPlatform;
use super::package_version::{Clause, clauses_allow};
use super::{ArtifactPackage, PackageKind};
use crate::knowledge::vendor::{CUDNN, libraries_of_package, major_of};
use cudaguard::internal::version::{CudaVersion, Version};

/// A requirement: a range of releases of an NVIDIA package.
pub(super) struct Promise<'a> {
    pub(super) text: &'a str,
    /// The libraries of the package, without `lib` and without the part from `.so` on.
    pub(super) stems: Vec<&'static str>,
    /// The oldest allowed release.
    pub(super) least: Option<Version>,
    /// The first release above the allowed range.
    pub(super) below: Option<Version>,
}

/// Packages whose release is unrelated to the sonames of their libraries: cuFile 1.13 is `libcufile.so.0`, NVTX 12.8
/// `libnvToolsExt.so.1`.
const NUMBERED_OTHERWISE: [&str; 2] = ["cufile", "nvtx"];
/// The pip package of an entire toolkit, whose extras select its parts: `cuda-toolkit[cublas,cudart]==13.2.2`.
const TOOLKIT: &str = "cuda-toolkit";

/// Returns the variable of an image with the version of its cuDNN.
pub(super) fn guarded_version() -> String {
    format!("NV_{}_VERSION=", CUDNN.key.to_uppercase())
}

/// Returns the name at the beginning of a requirement.
pub(super) fn name_of(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c)).unwrap_or(text.len());
    &text[..end]
}

/// Returns true if a pip requirement is for an NVIDIA package.
pub(super) fn is_nvidia_package(text: &str) -> bool {
    let name = normalize_name(name_of(text));
    name.starts_with("nvidia") || name == TOOLKIT
}

/// Normalizes a name as PEP 503 does: `Nvidia.cublas__cu12` equals `nvidia-cublas-cu12`.
pub(super) fn normalize_name(name: &str) -> String {
    name.to_lowercase().split(['-', '_', '.']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// Returns the libraries that a package contains, and true if its release is related to their sonames.
pub(super) fn bundled_libraries(kind: PackageKind, name: &str) -> Option<(bool, Vec<&'static str>)> {
    let name = normalize_name(name);
    let name = match kind {
        PackageKind::Wheel => name.strip_prefix("nvidia-")?,
        _ => name.strip_prefix("lib").unwrap_or(&name),
    };
    let name = name
        .rsplit_once("-cu")
        .filter(|(_, rest)| rest.bytes().all(|b| b.is_ascii_digit()))
        .map_or(name, |(name, _)| name);
    // The conda package of NVTX is named `cuda-nvtx`.
    let name = name.strip_prefix("cuda-").filter(|name| NUMBERED_OTHERWISE.contains(name)).unwrap_or(name);
    let stems = libraries_of_package(name);
    (!stems.is_empty()).then(|| (!NUMBERED_OTHERWISE.contains(&name), stems))
}

/// Returns true if a requirement of a wheel applies only with an extra: `nvidia-cudnn-cu12>=9.1; extra == "with-cuda"`.
pub(super) fn is_of_extra(text: &str) -> bool {
    text.split_once(';').is_some_and(|(_, marker)| marker.contains("extra"))
}

impl<'a> Promise<'a> {
    /// Parses a requirement. Each extra of an entire toolkit gives a result. Its release is that of the CUDA runtime
    /// and does not determine the releases of the other libraries.
    pub(super) fn all_of(kind: PackageKind, text: &'a str) -> Vec<Self> {
        let name = name_of(text);
        if kind != PackageKind::Wheel || normalize_name(name) != TOOLKIT {
            return Self::parse(kind, text).into_iter().collect();
        }
        let (least, below) = version_range(kind, &text[name.len()..]);
        let extras = text[name.len()..].split(['[', ']']).nth(1).unwrap_or_default();
        let of_extra = |extra: &str| {
            let names = [extra.to_owned(), format!("cuda-{extra}")];
            let stems = names.iter().map(|name| libraries_of_package(name)).find(|stems| !stems.is_empty())?;
            let (least, below) = if stems == ["cudart"] { (least, below) } else { (None, None) };
            Some(Self { text, stems, least, below })
        };
        extras.split(',').filter_map(|extra| of_extra(extra.trim())).collect()
    }

    fn parse(kind: PackageKind, text: &'a str) -> Option<Self> {
        if let Some(version) = text.strip_prefix(&guarded_version()) {
            let version = leading_version(version)?;
            return Some(Self {
                text,
                stems: bundled_libraries(PackageKind::Conda, CUDNN.key)?.1,
                least: Some(version),
                below: None,
            });
        }
        // The other variables of an image concern CUDA as a whole.
        if kind == PackageKind::Image {
            return None;
        }
        let name = name_of(text);
        let (is_numbered, stems) = bundled_libraries(kind, name)?;
        if !is_numbered {
            return Some(Self { text, stems, least: None, below: None });
        }
        let (least, below) = version_range(kind, &text[name.len()..]);
        Some(Self { text, stems, least, below })
    }

    /// Returns true if the requirement allows this installed package. An extra need not be installed, but it shows the releases with
    /// which the package was built: JAX and TensorFlow reject older libraries, and work with newer ones. The version of files that
    /// replaced those of a package has three numbers.
    pub(super) fn allows(&self, installed: &ArtifactPackage) -> bool {
        if self.is_of_extra() || installed.replaced_by.is_some() {
            return leading_version(&installed.version_in_place()).is_none_or(|version| {
                let is_below = self.is_of_extra() || self.below.is_none_or(|below| version < below);
                is_below && self.least.is_none_or(|least| least <= version)
            });
        }
        let clauses = clauses_of(installed.kind, &self.text[name_of(self.text).len()..]);
        clauses.split('|').any(|clauses| clauses_allow(installed.kind, clauses, &installed.version))
    }

    /// Returns true if the requirement applies on this platform. `None` if that is unknown.
    pub(super) fn applies_on(&self, platform: MarkerPlatform) -> Option<bool> {
        self.text.split_once(';').map_or(Some(true), |(_, marker)| platform.matches(marker))
    }

    /// Returns true if it requires cuDNN of a newer minor than this version.
    pub(super) fn requires_newer_cudnn(&self, version: &str) -> bool {
        let minor = |version: Version| (version.major, version.minor);
        let found = leading_version(version);
        self.stems == [CUDNN.key] && found.zip(self.least).is_some_and(|(found, least)| minor(found) < minor(least))
    }

    /// Returns true if only an extra of the package contains the requirement.
    pub(super) fn is_of_extra(&self) -> bool {
        is_of_extra(self.text)
    }

    /// Returns the oldest CUDA major of the cudart that the requirement installs, whatever extras are chosen; `None` if it installs
    /// none.
    pub(super) fn cudart_major(&self) -> Option<u32> {
        /// Packages of conda that only select the releases of others.
        const SELECTORS: [&str; 2] = ["cuda-version", "pytorch-cuda"];
        let name = normalize_name(name_of(self.text));
        if !self.stems.contains(&"cudart") || SELECTORS.contains(&&*name) || self.is_of_extra() {
            return None;
        }
        let suffix = name.rsplit_once("-cu").and_then(|(_, major)| major.parse().ok());
        suffix.or_else(|| self.least.map(|least| least.major))
    }

    pub(super) fn provides(&self, soname: &str) -> bool {
        let stem = soname.strip_prefix("lib").and_then(|rest| rest.split_once(".so"));
        stem.is_some_and(|(stem, _)| self.stems.contains(&stem))
    }

    /// Returns true if the range allows a release whose library has this soname.
    pub(super) fn lets_in(&self, soname: &str) -> bool {
        major_of(soname).is_none_or(|major| {
            self.least.is_none_or(|least| least.major <= major)
                && self.below.is_none_or(|below| Version::new(major, 0, 0) < below)
        })
    }

    /// Returns true if the oldest allowed release has this soname.
    pub(super) fn is_first(&self, soname: &str) -> bool {
        self.provides(soname) && self.least.is_some_and(|least| major_of(soname) == Some(least.major))
    }
}

/// Returns the accepted releases in the text after a name.
fn clauses_of(kind: PackageKind, rest: &str) -> &str {
    // Extras are in brackets, and a marker follows `;`. In conda, the build string follows a second blank.
    let rest = rest.split(';').next().unwrap_or_default();
    let rest = rest.find(']').map_or(rest, |at| &rest[at + 1..]).trim();
    let rest = rest.trim_start_matches('(').trim_end_matches(')').trim();
    if kind == PackageKind::Conda { rest.split(' ').next().unwrap_or_default() } else { rest }
}

/// Parses the text after a name: the oldest allowed release, and the first release above the range.
fn version_range(kind: PackageKind, rest: &str) -> ReleaseInterval {
    // Alternatives, which conda supports, are merged into one range that includes the releases between them.
    let all = clauses_of(kind, rest).split('|').map(|one| range_of_clauses(kind, one));
    all.reduce(|(least, below), (other, other_below)| (least.min(other), below.zip(other_below).map(|(a, b)| a.max(b))))
        .unwrap_or_default()
}

/// The oldest allowed release and the first one above the range; `None` means unbounded.
type ReleaseInterval = (Option<Version>, Option<Version>);

fn range_of_clauses(kind: PackageKind, all: &str) -> ReleaseInterval {
    let (mut least, mut below) = (None, None);
    for Clause { sign, version, is_prefix } in Clause::parse_all(kind, all) {
        let Some(first) = leading_version(version) else { continue };
        let count = version.split(['.', '-', '+']).take_while(|one| one.parse::<u32>().is_ok()).count();
        match sign {
            ">=" => least = least.max(Some(first)),
            "<" => {
                // `<11.0.0.21` still allows releases of 11.0.0.
                let more = version.split('.').nth(3).is_some_and(|fourth| fourth.parse() != Ok(0));
                let end = if more { next_version(first, 3) } else { first };
                below = Some(below.map_or(end, |known: Version| known.min(end)));
            }
            "~=" => (least, below) = (Some(first), Some(next_version(first, count.saturating_sub(1)))),
            "==" => {
                (least, below) = (Some(first), Some(next_version(first, if is_prefix { count } else { count.min(3) })));
            }
            _ => {}
        }
    }
    (least, below)
}

/// Returns the oldest CUDA version of a driver with which a conda package can be installed, and its requirement `__cuda`. The package
/// `cuda-version` requires a driver of its major.
pub(super) fn driver_of_conda(requirements: &[String]) -> Option<(String, CudaVersion)> {
    let least = |wanted: &'static str| {
        let of_package = requirements.iter().filter(move |text| name_of(text) == wanted);
        let oldest = |text: &String| version_range(PackageKind::Conda, &text[wanted.len()..]).0;
        of_package.filter_map(move |text| Some((oldest(text)?, text))).max()
    };
    let (driver, text) = least("__cuda")?;
    let of_major = least("cuda-version").map(|(version, _)| CudaVersion::new(version.major, 0));
    let promised = of_major.max(Some(CudaVersion::new(driver.major, driver.minor)))?;
    Some((format!("the package requires {text}"), promised))
}

/// Parses up to three numbers at the beginning of a version.
pub(super) fn leading_version(text: &str) -> Option<Version> {
    let mut all = text.split(['.', '-', '+']).map_while(|one| one.parse().ok());
    Some(Version::new(all.next()?, all.next().unwrap_or(0), all.next().unwrap_or(0)))
}

/// Returns the first version above all versions that share the first `count` numbers with this one.
fn next_version(version: Version, count: usize) -> Version {
    let Version { major, minor, patch } = version;
    match count {
        0 | 1 => Version::new(major.saturating_add(1), 0, 0),
        2 => Version::new(major, minor.saturating_add(1), 0),
        _ => Version::new(major, minor, patch.saturating_add(1)),
    }
}
