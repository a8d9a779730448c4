//! Members that the artifact names and does not contain: targets of links, and files of a RECORD. They may contain GPU code.

use std::collections::{BTreeMap, BTreeSet};

use super::member::file_name;
use super::packages::ArtifactPackage;
use crate::artifact::is_library;
use crate::binary::examined::NotExamined;
use crate::family::is_installed;
use crate::host::dry_run::is_of_program;

/// The members of an artifact, by name.
pub(super) struct PresentMembers<'a> {
    /// All programs and libraries, and all members that were not examined.
    pub(super) files: BTreeSet<&'a str>,
    pub(super) links: &'a BTreeMap<String, String>,
}

impl PresentMembers<'_> {
    /// Returns true if a path ends at a member. Links may replace the file and the directories above it.
    fn has(&self, path: &str) -> bool {
        let mut path = path.to_owned();
        // The dynamic linker does not follow more links.
        for _ in 0..40 {
            let mut parts = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
            let found = parts.find_map(|at| {
                let (start, rest) = path.split_at(at);
                // What is in a directory that was not examined is not known.
                if self.files.contains(start) { Some(None) } else { Some(Some(self.links.get(start)?.clone() + rest)) }
            });
            match found {
                Some(None) => return true,
                Some(Some(next)) => path = next,
                None => return false,
            }
        }
        false
    }

    /// Returns the links whose target is a library that is not there, and the libraries of wheels that are not there. Packages of
    /// Debian and conda are parts of a set, whose links may end in another package. `is_debian` is set if the artifact is such a
    /// package.
    pub(super) fn find_missing(&self, packages: &[ArtifactPackage], is_debian: bool) -> Vec<NotExamined> {
        let is_missing = |target: &str| {
            let own = file_name(target);
            // The driver and the libraries of the system are a part of the machine.
            is_library(own) && (is_of_program(own) || is_installed(own)) && !self.has(target)
        };
        let of_conda = |name: &str| packages.iter().any(|package| package.is_conda_file() && package.owns_member(name));
        let is_part_of_set = |name: &str| is_debian || name.contains(".deb!") || of_conda(name);
        let links = self.links.iter().filter(|(name, target)| is_missing(target) && !is_part_of_set(name));
        let links = links.map(|(name, target)| {
            let shown = target.rsplit('!').next().unwrap_or(target);
            NotExamined::new(name.as_str(), format!("a link to {shown}, which does not exist"))
        });
        // conda moves libraries, and keeps the RECORD. The files that need NVIDIA's libraries show which of them matter.
        let has_conda = packages.iter().any(ArtifactPackage::is_of_conda);
        let listed = packages.iter().filter(|_| !has_conda).flat_map(|package| {
            let why = format!("is absent, although the RECORD of {} lists it", package.name_and_version());
            let files = package.files().filter(|file| is_of_program(file_name(file)) && is_missing(file));
            files.map(move |file| NotExamined::new(file, why.as_str()))
        });
        links.chain(listed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_through_directories() {
        let links = [("lib64", "usr/lib"), ("a.so", "b.so"), ("b.so", "a.so"), ("out/x", "y")];
        let links = links.iter().map(|(name, target)| ((*name).to_owned(), (*target).to_owned())).collect();
        let members = PresentMembers { files: BTreeSet::from(["usr/lib/libx.so.1", "outside"]), links: &links };
        for (path, expected) in [
            ("lib64/libx.so.1", true),
            ("lib64/liby.so.1", false),
            ("outside/liby.so", true),
            ("a.so", false),
            ("libx.so.1", false),
        ] {
            assert_eq!(members.has(path), expected, "{path}");
        }
    }
}
