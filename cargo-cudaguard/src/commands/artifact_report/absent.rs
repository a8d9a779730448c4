//! Libraries that members need and that are not in the artifact. They may contain GPU code.

use std::collections::{BTreeMap, BTreeSet};

use super::member::{MemberLoader, file_name};
use super::{ArtifactPackage, ArtifactReport};
use crate::binary::examined::{NotExamined, has_trace_of_cuda};
use crate::binary::loader::{self, LoadGraph};
use crate::binary::mapped_file::OpenFiles;
use crate::cli::counts::join_some;
use cudaguard::internal::env::Env;

impl ArtifactReport {
    /// Returns the libraries that programs, and libraries with a trace of CUDA, need and that are not in the artifact. If there is
    /// no such file, those of all members.
    pub(super) fn absent_libraries(&self) -> Vec<NotExamined> {
        let wanted: Vec<Vec<(usize, &str)>> =
            self.closures.iter().map(|closure| self.wanted(closure.members())).collect();
        if wanted.iter().all(Vec::is_empty) {
            return Vec::new();
        }
        let mut present: BTreeSet<&str> =
            self.files.iter().chain(self.links.keys()).map(|name| file_name(name)).collect();
        present.extend(self.loaders.iter().filter_map(|loader| loader.soname.as_deref()));
        let parts: BTreeSet<&str> = self.parts.iter().map(|part| part.name.as_str()).collect();
        let uses_cuda = |loader: &MemberLoader| loader.has_trace || parts.contains(loader.name.as_str());
        let counts = |at: usize| {
            let mut members = self.closures[at].members().map(|member| &self.loaders[member]).peekable();
            members.peek().is_some_and(|root| root.is_program) || members.any(uses_cuda)
        };
        let any_counts = (0..self.closures.len()).any(counts);
        let mut absent: BTreeMap<&str, (BTreeSet<&str>, String)> = BTreeMap::new();
        for (at, wanted) in wanted.iter().enumerate().filter(|(at, _)| !any_counts || counts(*at)) {
            let mut here = None;
            for (by, soname) in wanted.iter().filter(|(_, soname)| !present.contains(file_name(soname))) {
                let root = self.closures[at].members().next();
                let here = here.get_or_insert_with(|| root.and_then(|root| self.load_here(&self.loaders[root].name)));
                let Some(place) = place_here(here.as_ref(), soname) else { continue };
                let known = absent.entry(soname).or_insert_with(|| (BTreeSet::new(), place));
                let _ = known.0.insert(&self.loaders[*by].name);
            }
        }
        let describe = |(soname, (by, place)): (&str, (BTreeSet<&str>, String))| {
            let by: Vec<&str> = by.into_iter().collect();
            let supplier = self.supplier(&by, soname).map(|name| format!("; the package requires {name}"));
            let why = format!("needed by {}, and {place}{}", join_some(&by), supplier.unwrap_or_default());
            NotExamined::new(soname, why)
        };
        absent.into_iter().map(describe).collect()
    }

    /// Returns the libraries that these members need of the program, each with the index of the member.
    fn wanted(&self, members: impl Iterator<Item = usize>) -> Vec<(usize, &str)> {
        let of_member = |at: usize| self.loaders[at].wants.iter().map(move |name| (at, name.as_str()));
        members.flat_map(of_member).collect()
    }

    /// Loads a member of a directory as the dynamic linker of this machine does.
    fn load_here(&self, name: &str) -> Option<LoadGraph> {
        let path = (self.walked.kind == "directory" && !name.contains('!')).then(|| self.archive.join(name))?;
        loader::resolve_with(&path, &Env::from_process(), &OpenFiles::default()).ok()
    }

    /// Returns the requirement of a package with one of these members whose name is that of a library.
    fn supplier(&self, members: &[&str], soname: &str) -> Option<&str> {
        let owns = |package: &&ArtifactPackage| members.iter().any(|member| package.owns_member(member));
        self.packages.iter().filter(owns).find_map(|package| package.other_supplier(soname))
    }
}

/// Returns the place of a library that is not in a directory, unless this machine has it and it does not use CUDA.
fn place_here(here: Option<&LoadGraph>, soname: &str) -> Option<String> {
    let found = here.and_then(|graph| graph.objects.iter().find(|object| object.is_named(soname)));
    match found {
        None => Some("not among the given files".to_owned()),
        Some(found) if has_trace_of_cuda(found.data()) => {
            Some(format!("not among the given files: it is {}", found.path.display()))
        }
        Some(_) => None,
    }
}
