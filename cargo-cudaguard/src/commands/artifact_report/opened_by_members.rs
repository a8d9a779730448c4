//! Libraries that members open by name.

use std::collections::BTreeMap;
use std::path::Path;

use super::member::{MemberLoader, file_name};
use super::{ArtifactReport, ExternalLibrary};
use crate::binary::examined::NotExamined;
use crate::family::OpenedLibrary;
use crate::host::machine::OpenedByName;
use crate::knowledge::vendor::{is_libcuda, stem_of};

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
                let brought = self.requirement_for_opened(loader, opened);
                let wanted = all.entry(name).or_default();
                wanted.is_opened |= wanted.by.is_empty();
                wanted.brought = wanted.brought.or(brought);
                wanted.by.push(&loader.name);
            }
        }
    }

    /// Returns the requirement of the package of a member that provides a library which it opens by name.
    fn requirement_for_opened(&self, loader: &MemberLoader, opened: &OpenedLibrary) -> Option<&str> {
        let mut packages = self.packages.iter().filter(|package| package.owns_member(&loader.name));
        packages.find_map(|package| package.any_requirement_for(&format!("{}.so", opened.stem)))
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

    /// Returns the libraries that members open by name, or may open, and that a machine may have. [`Self::report_opened`] reports the
    /// others.
    pub(super) fn opened_on_machine(&self) -> Vec<OpenedByName> {
        let mut absent: Vec<(&MemberLoader, OpenedLibrary)> = Vec::new();
        // Of a file on this machine, the search reports them.
        if !self.is_joined || self.disk.is_none() {
            for (loader, libraries) in self.opened_elsewhere() {
                absent.extend(libraries.into_iter().map(|opened| (loader, opened.clone())));
            }
        }
        for (loader, names) in self.unexplained_names() {
            absent.extend(self.possibly_absent(loader, &names).into_iter().map(|opened| (loader, opened)));
        }
        absent.retain(|(loader, opened)| {
            !opened.names.is_empty() && !self.is_provided(loader, opened) && !self.should_contain(loader, opened)
        });
        let by_name = absent.into_iter().map(|(loader, opened)| OpenedByName {
            by: if self.is_file() { file_name(&loader.name) } else { &loader.name }.to_owned(),
            names: opened.names,
            is_by_crate: false,
        });
        by_name.collect()
    }

    /// Returns true if a requirement of the package of a member provides a library that it opens by name. In an environment, the
    /// required package would be installed.
    fn is_provided(&self, loader: &MemberLoader, opened: &OpenedLibrary) -> bool {
        !self.is_complete() && self.requirement_for_opened(loader, opened).is_some()
    }

    /// Returns true if no machine can have a library that a member opens by name: an image contains everything but the driver, and the
    /// search path may lead to a package, which is installed with that of the member.
    fn should_contain(&self, loader: &MemberLoader, opened: &OpenedLibrary) -> bool {
        self.is_image() || opened.comes_with_program() && !self.is_provided(loader, opened)
    }

    /// Returns the libraries with these names that are not in the artifact and that the dynamic linker does not find. Other rules
    /// report those of the driver, and those that the member cannot work without.
    fn possibly_absent(&self, loader: &MemberLoader, names: &[String]) -> Vec<OpenedLibrary> {
        let mut absent: Vec<OpenedLibrary> = Vec::new();
        // Of this machine, only the dynamic linker shows it.
        if self.is_joined && self.disk.is_none() {
            return absent;
        }
        // A name that is no text of the file may be incomplete.
        for name in names.iter().filter(|name| !is_libcuda(name) && loader.opens.includes(name)) {
            let stem = stem_of(name).to_owned();
            match absent.iter_mut().find(|known| known.stem == stem) {
                Some(known) => known.names.push(name.clone()),
                None => absent.push(OpenedLibrary { stem, names: vec![name.clone()], dirs: Vec::new() }),
            }
        }
        absent.retain(|library| !loader.opens.libraries.iter().any(|known| known.stem == library.stem));
        let graph = self.disk.as_ref().filter(|_| self.is_joined);
        let at =
            self.disk.iter().flat_map(|graph| &graph.objects).position(|object| object.path == Path::new(&loader.name));
        absent.retain(|library| {
            !library.names.iter().any(|name| {
                // The root may be named by a relative path.
                let found = graph.and_then(|graph| graph.resolve_file(at.unwrap_or(0), name));
                found.is_some() || self.has_file_named(name)
            })
        });
        absent
    }

    /// Reports libraries that members open by name, and that the artifact should contain.
    pub(super) fn report_opened(&mut self) {
        let mut missing = Vec::new();
        for (loader, mut absent) in self.opened_elsewhere() {
            absent.retain(|opened| self.should_contain(loader, opened));
            let names = absent.into_iter().map(OpenedLibrary::describe).collect::<Vec<_>>().join(", ");
            if !names.is_empty() {
                let why = format!("opens libraries by name that are not in it: {names}");
                missing.push(NotExamined::new(&*loader.name, why));
            }
        }
        self.not_examined.extend(missing);
        self.not_examined.sort();
    }
}
