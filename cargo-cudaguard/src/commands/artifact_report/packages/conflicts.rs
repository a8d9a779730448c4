//! Conflicts between the packages of one environment: files that two packages install, and requirements that an installed
//! package does not fulfil.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::requirement::{name_of, normalize_name};
use super::{ArtifactPackage, PackageKind};
use crate::artifact::is_library;
use crate::binary::examined::NotExamined;
use crate::cli::counts::join_some;
use cudaguard::internal::finding::{Finding, MessageTemplate, Values};
use serde_json::Value;

/// Returns the libraries in a RECORD, each with its SHA-256 in hexadecimal.
pub(super) fn digests_of_record(record: &str) -> impl Iterator<Item = (&str, String)> {
    record.lines().filter_map(|line| {
        let mut fields = line.rsplitn(3, ',').skip(1);
        let digest = fields.next()?.strip_prefix("sha256=")?;
        let file = fields.next()?.trim_matches('"');
        Some((file, hex_of_base64(digest)?)).filter(|_| is_library(file))
    })
}

/// Returns the libraries in the metadata of a conda package, each with its SHA-256 in hexadecimal.
pub(super) fn digests_of_conda(index: &Value) -> impl Iterator<Item = (&str, String)> {
    index["paths_data"]["paths"].as_array().into_iter().flatten().filter_map(|path| {
        let digest = path["sha256_in_prefix"].as_str().or_else(|| path["sha256"].as_str())?;
        Some((path["_path"].as_str().filter(|file| is_library(file))?, digest.to_ascii_lowercase()))
    })
}

/// Decodes base64 in the alphabet of URLs, without padding.
fn hex_of_base64(text: &str) -> Option<String> {
    let (mut bits, mut count, mut hex) = (0_u32, 0, String::new());
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        (bits, count) = (bits << 6 | u32::from(value), count + 6);
        if count >= 8 {
            count -= 8;
            let _ = write!(hex, "{:02x}", bits >> count & 0xff);
        }
    }
    Some(hex)
}

/// A path, and a description of the file that is in its place.
type OverwrittenFile<'a> = (&'a str, Option<String>);

/// Reports libraries that two packages install with different contents, if one of the packages uses CUDA. `uses_cuda`
/// returns true for a package with such a member, and `digest` the SHA-256 of a member if it can be read.
pub(in crate::commands::artifact_report) fn overwritten_files(
    packages: &[ArtifactPackage],
    uses_cuda: impl Fn(&ArtifactPackage) -> bool,
    digest: impl Fn(&str) -> Option<String>,
) -> Vec<Finding> {
    let mut owners: BTreeMap<&str, Vec<(usize, &str, &str)>> = BTreeMap::new();
    for (at, package) in packages.iter().enumerate() {
        for (file, digest) in &package.digests {
            // Wheels in one directory are installed together.
            let path = if package.top.ends_with(".whl!") { &file[package.top.len()..] } else { file };
            owners.entry(path).or_default().push((at, file, digest));
        }
    }
    let mut pairs: BTreeMap<(usize, usize), Vec<OverwrittenFile<'_>>> = BTreeMap::new();
    for (path, owners) in owners.iter().filter(|(_, owners)| owners.len() > 1) {
        let (first, file, first_digest) = owners[0];
        for (other, _, other_digest) in owners[1..].iter().filter(|(.., digest)| *digest != first_digest) {
            let in_place = digest(file).map(|found| match (found == first_digest, found == *other_digest) {
                (true, _) => format!("the file of {}", packages[first].name_and_version()),
                (_, true) => format!("the file of {}", packages[*other].name_and_version()),
                _ => "a file of neither".to_owned(),
            });
            pairs.entry((first, *other)).or_default().push((path, in_place));
        }
    }
    pairs.retain(|(first, other), _| uses_cuda(&packages[*first]) || uses_cuda(&packages[*other]));
    let finding = |((first, other), files): (&(usize, usize), &Vec<OverwrittenFile<'_>>)| {
        let paths: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
        let in_place: BTreeSet<&str> = files.iter().filter_map(|(_, in_place)| in_place.as_deref()).collect();
        let values = Values::default().with("component", packages[*first].name_and_version());
        let values = values.with("other", packages[*other].name_and_version()).with("path", join_some(&paths));
        let in_place = in_place.into_iter().collect::<Vec<_>>().join(", ");
        MessageTemplate::PackageUnfitOverwritten.to_finding(&values.with("value", in_place))
    };
    pairs.iter().map(finding).collect()
}

/// A requirement for a package of NVIDIA that the installed one does not fulfil.
pub(crate) struct Unfulfilled {
    pub(crate) finding: Finding,
    /// PyTorch, JAX and TensorFlow compare the loaded cuDNN with that of their build, and stop at their first use of an older minor.
    pub(crate) unknown: Option<NotExamined>,
}

/// Returns the requirements of these packages for packages of NVIDIA that the installed ones do not fulfil.
pub(in crate::commands::artifact_report) fn unfulfilled_requirements<'a>(
    packages: &[ArtifactPackage],
    judged: impl Iterator<Item = &'a ArtifactPackage>,
) -> Vec<Unfulfilled> {
    let mut findings = Vec::new();
    let mut by_name: BTreeMap<String, Vec<&ArtifactPackage>> = BTreeMap::new();
    for package in packages {
        by_name.entry(normalize_name(&package.name)).or_default().push(package);
    }
    for package in judged.filter(|package| package.kind != PackageKind::Image) {
        let promises: Vec<_> = package.promises().collect();
        for one in promises.iter().filter(|one| one.applies_on(package.platform) == Some(true)) {
            let name = normalize_name(name_of(one.text));
            // Requirements of the same package may be for other platforms.
            let allowed = |installed: &&ArtifactPackage| {
                let same = promises.iter().filter(|other| other.is_of_extra() == one.is_of_extra());
                let same = same.filter(|other| normalize_name(name_of(other.text)) == name);
                same.into_iter().any(|other| other.allows(installed))
            };
            let same_name = by_name.get(&name).into_iter().flatten();
            let mut installed = same_name.filter(|other| other.kind == package.kind).peekable();
            let Some(first) = installed.peek().copied().copied() else { continue };
            if installed.any(allowed) {
                continue;
            }
            // The name of the extra is a part of the requirement.
            let text = if one.is_of_extra() { one.text } else { one.text.split(';').next().unwrap_or_default() };
            let values = Values::default().with("component", package.name_and_version()).with("value", text.trim_end());
            let found = format!("{} {}", first.name, first.version_in_place());
            let finding = MessageTemplate::PackageUnfitRequirement.to_finding(&values.with("other", &found));
            if findings.iter().any(|known: &Unfulfilled| known.finding == finding) {
                continue;
            }
            let unknown = one.requires_newer_cudnn(&first.version_in_place()).then(|| {
                let why = format!("whether it works with an older cuDNN ({found}) is unknown");
                NotExamined::new(package.name_and_version(), why)
            });
            findings.push(Unfulfilled { finding, unknown });
        }
    }
    findings
}
