//! The files in a bill of materials: their SHA-256, their package, and the libraries in them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use crate::knowledge::vendor::{numbers_in_name, plain_name, stem_of};

use crate::artifact::file_name;
use crate::cli::report::CliError;
use crate::commands::artifact_report::{ArtifactReport, BilledMember, BilledRequirement, escape_purl, sha256_of};

/// A file that the bill is about.
pub(super) struct BilledFile {
    pub(super) name: String,
    /// Absent for a directory and for stdin.
    pub(super) sha256: Option<String>,
    /// Name, version and package URL, if it is a package.
    pub(super) package: Option<(String, String, String)>,
    pub(super) bundled: Vec<BundledLibrary>,
    pub(super) requires: Vec<BilledRequirement>,
}

/// A library or program in a package, an image or a directory.
pub(super) struct BundledLibrary {
    /// Its path in the package.
    pub(super) path: String,
    /// `libnvjpeg.so.12`: the name of NVIDIA's library, or of the file.
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) sha256: Option<String>,
    pub(super) purl: String,
    pub(super) is_of_nvidia: bool,
    pub(super) is_program: bool,
}

impl BundledLibrary {
    fn from_member(member: &BilledMember<'_>, has_packages: bool) -> Self {
        let own = file_name(member.name);
        let part = member.part.filter(|part| part.is_of_nvidia());
        let (mut name, mut version) = (own.to_owned(), numbers_in_name(own).map(str::to_owned));
        let package_purl = member.package.as_ref().map(|package| package.purl.as_str());
        let purl = if let Some(part) = part {
            let library = plain_name(own);
            let held = part.holds.iter().find(|(held, _)| own.starts_with(held.stem()));
            version = held.and_then(|(_, version)| version.clone()).or_else(|| part.released_version());
            // A DLL keeps its name; the tables have that on Linux.
            if !own.to_ascii_lowercase().ends_with(".dll") {
                name = library.clone().into_owned();
            }
            let suffix = version.as_ref().map(|version| format!("@{version}")).unwrap_or_default();
            let published = package_purl.filter(|purl| has_packages && purl.contains("nvidia"));
            published.map_or_else(|| generic_purl(&library) + &suffix, str::to_owned)
        } else {
            version = version.or_else(|| member.package.as_ref().map(|package| package.version.clone()));
            file_purl(package_purl, member.name, version.as_deref(), member.sha256)
        };
        Self {
            path: member.name.to_owned(),
            name,
            version,
            sha256: member.sha256.map(str::to_owned),
            purl,
            is_of_nvidia: part.is_some(),
            is_program: member.is_program,
        }
    }
}

/// Gives a library of NVIDIA's whose file contains no version that of its part in the same directory: `libcudnn.so.9` and
/// `libcudnn_graph.so.9` are released together.
fn use_versions_of_parts(all: &mut [BundledLibrary]) {
    let mut of_parts = BTreeMap::new();
    for part in all.iter().filter(|part| part.is_of_nvidia) {
        let dir = &part.path[..part.path.len() - file_name(&part.path).len()];
        if let Some(((stem, _), version)) = part.name.split_once('_').zip(part.version.clone()) {
            of_parts.insert(format!("{dir}{stem}"), version);
        }
    }
    for library in all.iter_mut().filter(|library| library.is_of_nvidia && library.version.is_none()) {
        let stem = stem_of(&library.path);
        if let Some(version) = of_parts.get(stem) {
            library.purl = format!("{}@{version}", library.purl);
            library.version = Some(version.clone());
        }
    }
}

/// Returns the package URL of a file: its path in the package that contains it, or its name and digest.
fn file_purl(package: Option<&str>, path: &str, version: Option<&str>, sha256: Option<&str>) -> String {
    if let Some(package) = package {
        let path: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(escape_purl).collect();
        return format!("{package}#{}", path.join("/"));
    }
    let name = escape_purl(file_name(path));
    let version = version.map(|version| format!("@{}", escape_purl(version))).unwrap_or_default();
    let digest = sha256.map(|sha256| format!("?checksum=sha256:{sha256}")).unwrap_or_default();
    format!("pkg:generic/{name}{version}{digest}")
}

impl BilledFile {
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let fail = |error: &dyn std::fmt::Display| CliError::operational(format_args!("{}: {error}", path.display()));
        let artifact = ArtifactReport::open(path, true)?;
        let sha256 = if path.is_file() {
            let mut file = File::open(path).map_err(|error| fail(&error))?;
            Some(sha256_of(&mut file).map_err(|error| fail(&error))?)
        } else {
            None
        };
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        // A file that NVIDIA publishes is not a part of itself.
        let is_whole = |member: &str| member == name;
        let mut packages = artifact.packages_in_bill();
        let members = artifact.members_in_bill();
        let members = members.iter().filter(|member| !is_whole(member.name));
        let mut bundled: Vec<_> =
            members.map(|member| BundledLibrary::from_member(member, packages.len() > 1)).collect();
        use_versions_of_parts(&mut bundled);
        let requires = packages.iter_mut().flat_map(|package| std::mem::take(&mut package.requires)).collect();
        let package = match &packages[..] {
            [package] => Some((package.name.clone(), package.version.clone(), package.purl.clone())),
            _ => debian_package(&name),
        };
        Ok(Self { name, sha256, package, bundled, requires })
    }
}

/// `libfoo_1.2-3_amd64.deb`: the name of a Debian package states name, version and architecture.
fn debian_package(file: &str) -> Option<(String, String, String)> {
    let mut parts = file.strip_suffix(".deb")?.splitn(3, '_');
    let (name, version, arch) = (parts.next()?, parts.next()?, parts.next()?);
    let purl = format!("pkg:deb/debian/{name}@{}?arch={arch}", version.replace('+', "%2B"));
    Some((name.to_owned(), version.replace("%3a", ":"), purl))
}

/// Returns the package URL for a soname without prefix and suffix: `pkg:generic/nvidia/cudart`.
pub(super) fn generic_purl(soname: &str) -> String {
    let plain = plain_name(soname);
    let stem = stem_of(&plain);
    format!("pkg:generic/nvidia/{}", stem.strip_prefix("lib").unwrap_or(stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_packages_are_named() {
        let (name, version, purl) = debian_package("libcuda1_535.261.03-1+deb12u1_amd64.deb").unwrap();
        assert_eq!((name.as_str(), version.as_str()), ("libcuda1", "535.261.03-1+deb12u1"));
        assert_eq!(purl, "pkg:deb/debian/libcuda1@535.261.03-1%2Bdeb12u1?arch=amd64");
        assert!(debian_package("a.deb").is_none() && debian_package("a_1_amd64.whl").is_none());
    }

    #[test]
    fn files_have_package_urls() {
        let names =
            ["libgomp-a34b3233.so.1.0.0", "libssl.so.1.1", "libx.so.1.2.3.4", "libz.so.1", "ext.cpython-311.so"];
        let versions = [Some("1.0.0"), Some("1.1"), Some("1.2.3.4"), None, None];
        assert_eq!(names.map(numbers_in_name), versions);
        let purl = file_purl(Some("pkg:pypi/app@1.0"), "app.libs/libz+1.so", Some("1.0"), Some("00"));
        assert_eq!(purl, "pkg:pypi/app@1.0#app.libs/libz%2B1.so");
        assert_eq!(file_purl(None, "lib/a.so", None, Some("00")), "pkg:generic/a.so?checksum=sha256:00");
    }
}
