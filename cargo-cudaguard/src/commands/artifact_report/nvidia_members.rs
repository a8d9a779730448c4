//! The members that are libraries of NVIDIA's and run together.

use std::collections::{BTreeMap, BTreeSet};

use super::closure::MemberClosure;
use super::packages::ArtifactPackage;
use super::{ArtifactMember, ArtifactReport, LibraryPlace, file_name};
use crate::binary::file::TargetOs;
use crate::family::{self, DriverFunctions, FileVersion, LookedUp, Member, MembersOfProcess, RuntimeCompiler};
use cudaguard::internal::finding::Finding;
use cudaguard::internal::version::Version;

/// Uses the version of a package for a library whose file does not contain it.
pub(super) fn use_package_versions(parts: &mut [ArtifactMember], packages: &[ArtifactPackage]) {
    for part in parts {
        let name = part.name.as_str();
        let release = part.family.as_mut().and_then(|member| member.release.as_mut());
        let Some(release) = release.filter(|release| release.version.is_none()) else { continue };
        release.version = packages.iter().filter(|package| package.owns_member(name)).find_map(|package| {
            let (title, version) = package.library_version(release.of.key)?;
            Some(FileVersion { version, is_exact: true, read_from: title })
        });
    }
}

impl ArtifactReport {
    fn family(&self) -> impl Iterator<Item = (&ArtifactMember, &Member)> {
        self.judged_parts().filter_map(|part| Some((part, part.family.as_ref()?)))
    }

    /// Returns the findings about members that run together and do not fit.
    pub(super) fn family_findings(&self, closures: &[&MemberClosure]) -> Vec<Finding> {
        let judged: BTreeSet<&str> = self.family().map(|(part, _)| part.name.as_str()).collect();
        let is_other = |part: &&ArtifactMember| !judged.contains(part.name.as_str());
        let others = self.parts.iter().filter(is_other).filter_map(|part| Some((part, part.family.as_ref()?)));
        let (parts, members): (Vec<_>, Vec<_>) = self.family().chain(others).unzip();
        // Most libraries that members need are not in the set.
        let names: BTreeSet<&str> = parts
            .iter()
            .flat_map(|part| [Some(file_name(&part.name)), part.binary.soname.as_deref()])
            .flatten()
            .chain(self.links.keys().map(|name| file_name(name)))
            .collect();
        let resolve = |at: usize, soname: &str| {
            if members[at].builtins_name().as_deref() == Some(soname) {
                let found = self.find_builtins(parts[at], soname);
                return parts.iter().position(|part| found.as_ref() == Some(&part.name));
            }
            let found = match names.contains(soname).then(|| self.find_library(parts[at], soname))? {
                LibraryPlace::Inside(name) => Some(name),
                _ => self.find_loaded(&parts[at].name, soname),
            };
            parts.iter().position(|part| found.as_ref() == Some(&part.name))
        };
        let absent = |at: usize, name: &str| self.is_not_found(parts[at], name);
        let mut findings =
            family::findings(&members, judged.len(), &self.processes(closures, &parts), &resolve, &absent);
        findings.extend(family::looked_up_findings(&members, judged.len(), &resolve));
        findings
    }

    /// Returns true if no program that loads a member finds a library which the member opens. Only this machine has all files.
    fn is_not_found(&self, member: &ArtifactMember, name: &str) -> bool {
        let Some(at) = self.loader_of(&member.name).filter(|_| self.is_joined) else { return false };
        let mut graphs = self.graphs_with(at).peekable();
        graphs.peek().is_some() && graphs.all(|(graph, by)| graph.graph.resolve_file(by, name).is_none())
    }

    /// Returns the member with the builtins that an NVRTC opens. The dynamic linker of an image also searches directories that no member
    /// names.
    pub(super) fn find_builtins(&self, nvrtc: &ArtifactMember, name: &str) -> Option<String> {
        if nvrtc.binary.os == Some(TargetOs::Windows) {
            return self.find_dll(&nvrtc.name, name);
        }
        let is_image = self.is_image();
        let is_it = |file: &&String| file_name(file) == name;
        let in_image = || self.files.iter().chain(self.links.keys()).filter(|_| is_image).find(is_it);
        let in_image = || in_image().and_then(|name| self.resolve_links(name)).map(str::to_owned);
        self.find_for_all(&nvrtc.name, name).or_else(in_image).or_else(|| self.of_machine.iter().find(is_it).cloned())
    }

    /// Returns the processes of the members; each contains the indices of its members in `parts`.
    fn processes(&self, closures: &[&MemberClosure], parts: &[&ArtifactMember]) -> Vec<MembersOfProcess> {
        let places: BTreeMap<&str, usize> =
            parts.iter().enumerate().map(|(at, part)| (part.name.as_str(), at)).collect();
        let process = |closure: &&MemberClosure| {
            let mut names = closure.members().map(|at| self.loaders[at].name.as_str()).peekable();
            let root = (*names.peek()?).to_owned();
            Some(MembersOfProcess { root, members: names.filter_map(|name| places.get(name).copied()).collect() })
        };
        closures.iter().filter_map(process).collect()
    }

    /// Returns the release of NCCL's headers that a member was compiled with, if the machine provides NCCL.
    pub(super) fn wanted_nccl(&self) -> Option<(String, Version)> {
        family::wanted_nccl(self.family().map(|(_, member)| member))
    }

    /// Returns the compilers that the members may run.
    pub(super) fn compilers(&self) -> Vec<RuntimeCompiler> {
        family::compilers(self.family().map(|(_, member)| member))
    }

    /// Returns true if a member that is not NVIDIA's is linked to NVRTC.
    pub(super) fn links_nvrtc(&self) -> bool {
        let mut own = self.judged_loaders().filter(|loader| !loader.is_of_nvidia());
        own.any(|loader| loader.needed.iter().any(|soname| family::is_nvrtc(soname)))
    }

    /// Returns the functions that crates in the members look up in NVIDIA's libraries.
    pub(super) fn lookups(&self) -> Vec<LookedUp> {
        family::lookups(self.family().map(|(_, member)| member))
    }

    /// Returns the functions that crates in the members look up in the driver.
    pub(super) fn driver_functions(&self) -> Vec<DriverFunctions> {
        family::functions_of_driver(self.family().map(|(_, member)| member))
    }
}
