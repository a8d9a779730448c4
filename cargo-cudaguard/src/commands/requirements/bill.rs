//! The files in a bill of materials: their SHA-256, their package, and NVIDIA's libraries in them.

use std::fs::File;
use std::path::Path;

use cudaguard::internal::vendor::plain_name;

use crate::cli::report::CliError;
use crate::commands::artifact_report::{ArtifactReport, BilledRequirement, sha256_of};

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

/// A library of NVIDIA in a package, an image or a directory.
pub(super) struct BundledLibrary {
    /// Its path in the package.
    pub(super) path: String,
    /// `libnvjpeg.so.12`, without what packers add to the name.
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) sha256: Option<String>,
    pub(super) purl: String,
}

impl BilledFile {
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let fail = |error: &dyn std::fmt::Display| CliError::operational(format_args!("{}: {error}", path.display()));
        let artifact = ArtifactReport::with_digests(path)?;
        let sha256 = if path.is_file() {
            let mut file = File::open(path).map_err(|error| fail(&error))?;
            Some(sha256_of(&mut file).map_err(|error| fail(&error))?)
        } else {
            None
        };
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        // A file that NVIDIA publishes is not a part of itself.
        let is_whole = |member: &str| member == name;
        let bundled =
            artifact.parts.iter().filter(|part| part.is_listed_under_cuda() && !is_whole(&part.name)).map(|part| {
                let own = part.name.rsplit(['/', '!']).next().unwrap_or_default();
                let library = plain_name(own);
                let named = |(library, _): &&(&cudaguard::internal::vendor::Library, Option<String>)| {
                    own.starts_with(library.stem)
                };
                let version = part.holds.iter().find(named).and_then(|(_, version)| version.clone());
                let generic = || {
                    let version = version.as_ref().map(|version| format!("@{version}")).unwrap_or_default();
                    generic_purl(&library) + &version
                };
                BundledLibrary {
                    path: part.name.clone(),
                    purl: artifact.owner_purl(part).filter(|purl| purl.contains("nvidia")).unwrap_or_else(generic),
                    // A DLL keeps its name; the tables have that on Linux.
                    name: if own.to_ascii_lowercase().ends_with(".dll") {
                        own.to_owned()
                    } else {
                        library.into_owned()
                    },
                    version,
                    sha256: part.sha256.clone(),
                }
            });
        let bundled = bundled.collect();
        let mut packages = artifact.packages_in_bill();
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
    let stem = plain.split(".so").next().unwrap_or(&plain);
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
}
