//! Libraries that members open by name.

use std::collections::BTreeMap;

use super::member::{MemberLoader, file_name};
use super::{ArtifactReport, ExternalLibrary};
use crate::binary::examined::NotExamined;
use crate::family::OpenedLibrary;
use crate::host::machine::OpenedByName;

impl ArtifactReport {
    /// Returns each member that opens libraries by name which are not in the artifact, with these libraries.
    fn opened_elsewhere(&self) -> impl Iterator<Item = (&MemberLoader, Vec<&OpenedLibrary>)> {
        self.judged_loaders().filter_map(|loader| {
            let absent: Vec<&OpenedLibrary> =
                loader.opens.libraries.iter().filter(|opened| !self.is_opened_inside(&loader.name, opened)).collect();
            (!absent.is_empty()).then_some((loader, absent))
        })
    }

    /// Adds the libraries that members open by name to those that must come from elsewhere.
    pub(super) fn add_opened<'a>(&'a self, all: &mut BTreeMap<String, ExternalLibrary<'a>>) {
        for (loader, absent) in self.opened_elsewhere() {
            for opened in absent {
                let name = opened.describe();
                let mut packages = self.packages.iter().filter(|package| package.owns_member(&loader.name));
                let brought = packages.find_map(|package| package.any_requirement_for(&format!("{}.so", opened.stem)));
                let wanted = all.entry(name).or_default();
                wanted.is_opened |= wanted.by.is_empty();
                wanted.brought = wanted.brought.or(brought);
                wanted.by.push(&loader.name);
            }
        }
    }

    /// Returns true if a member or a link has this file name.
    pub(super) fn has_file_named(&self, name: &str) -> bool {
        let (_, of_machine) = self.loaders.split_at(self.loaders.len() - self.of_machine.len());
        self.files.iter().chain(self.links.keys()).any(|file| file_name(file) == name)
            || of_machine.iter().any(|one| one.is_named(name))
    }

    /// Returns true if everything that runs with the members should be in the artifact: an environment or an image, in contrast to
    /// a package.
    pub(super) fn is_complete(&self) -> bool {
        let is_environment = self.is_image() || self.walked.kind == "directory" || self.packages.len() != 1;
        self.wheels.is_empty() && is_environment && !self.is_file()
    }

    /// Returns the libraries that members of a package open by name and that no requirement of the package provides.
    pub(super) fn opened_on_machine(&self) -> impl Iterator<Item = OpenedByName> {
        self.opened_elsewhere().filter(|_| !self.is_complete()).flat_map(|(loader, absent)| {
            let is_provided = |opened: &OpenedLibrary| {
                let mut packages = self.packages.iter().filter(|package| package.owns_member(&loader.name));
                packages.any(|package| package.any_requirement_for(&format!("{}.so", opened.stem)).is_some())
            };
            let named = absent.into_iter().filter(move |opened| !opened.names.is_empty() && !is_provided(opened));
            named.map(|opened| OpenedByName {
                by: if self.is_file() { file_name(&loader.name) } else { &loader.name }.to_owned(),
                names: opened.names.clone(),
                is_by_crate: false,
            })
        })
    }

    /// Reports libraries that members open by name, if everything that runs with them should be in the artifact.
    pub(super) fn report_opened(&mut self) {
        let is_complete = self.is_complete();
        let part = |(loader, absent): (&MemberLoader, Vec<&OpenedLibrary>)| {
            let names: Vec<String> = absent.into_iter().map(OpenedLibrary::describe).collect();
            NotExamined::new(&*loader.name, format!("opens libraries by name that are not in it: {}", names.join(", ")))
        };
        let missing: Vec<NotExamined> = self.opened_elsewhere().filter(|_| is_complete).map(part).collect();
        self.not_examined.extend(missing);
        self.not_examined.sort();
    }
}
