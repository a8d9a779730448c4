//! Libraries that members need and that are not in the artifact. They may contain GPU code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::member::{MemberLoader, library_name};
use super::{ArtifactPackage, ArtifactReport, MemberClosure};
use crate::binary::examined::{NotExamined, has_trace_of_cuda};
use crate::binary::file::Binary;
use crate::binary::loader::{LoadGraph, Object};
use crate::binary::mapped_file::OpenFiles;
use crate::cli::counts::join_some;
use crate::host::dry_run::reaches_cuda;
use cudaguard::internal::env::Env;

/// The members that the dynamic linker may load for a library, by file name, name of a link, and soname.
pub(super) type NamedLibraries = BTreeMap<String, BTreeSet<String>>;

impl ArtifactReport {
    pub(super) fn named_libraries(&self) -> NamedLibraries {
        let mut named = NamedLibraries::new();
        let loadable: BTreeMap<&str, &MemberLoader> =
            self.loaders.iter().filter(|one| one.is_loadable()).map(|one| (one.name.as_str(), one)).collect();
        for name in self.files.iter().chain(self.links.keys()) {
            if let Some(library) = self.resolve_links(name).and_then(|file| loadable.get(file)) {
                for known in [Some(name.as_str()), library.soname.as_deref()].into_iter().flatten() {
                    let _ = named.entry(library_name(known).into_owned()).or_default().insert(name.clone());
                }
            }
        }
        named
    }

    /// Returns true if this file of the machine is in the directory.
    fn contains_file(&self, path: &Path) -> bool {
        let real = |path: &Path| fs::canonicalize(path).ok();
        real(&self.archive).zip(real(path)).is_some_and(|(top, path)| path.starts_with(top))
    }

    /// Returns true if a library with this name is installed together with a member.
    fn is_installed_with(&self, member: &str, name: &str) -> bool {
        let package = |member: &str| member.rfind('!').unwrap_or_default();
        let is_it = |library: &String| {
            let (own, other) = (package(member), package(library));
            own > 0 && other > 0 || member[..own] == library[..other]
        };
        self.libraries.get(&*library_name(name)).is_some_and(|all| all.iter().any(is_it))
    }

    /// Returns the libraries that programs, and members which run together with CUDA, need and that are not in the artifact. If
    /// there is no such member, those of all members.
    pub(super) fn absent_libraries(&self) -> Vec<NotExamined> {
        let closures: Vec<&MemberClosure> = self.judged_closures().collect();
        let wanted: Vec<Vec<(usize, &str)>> = closures.iter().map(|closure| self.wanted(closure.members())).collect();
        let parts: BTreeSet<&str> = self.parts.iter().map(|part| part.name.as_str()).collect();
        let uses_cuda = |loader: &MemberLoader| loader.reaches_cuda || parts.contains(loader.name.as_str());
        let closure = |at: usize| closures[at].members().map(|member| &self.loaders[member]);
        let is_program = |at: usize| closure(at).next().is_some_and(MemberLoader::is_program);
        let counts = |at: usize| is_program(at) || closure(at).any(uses_cuda);
        let any_counts = (0..closures.len()).any(counts);
        let is_image = self.walked.kind == "container image";
        let place = if self.is_joined { "on this machine" } else { "among the given files" };
        let (env, files) = (Env::from_process(), OpenFiles::default());
        let mut absent: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for (at, wanted) in wanted.iter().enumerate().filter(|(at, _)| !any_counts || counts(*at)) {
            let Some(root) = closure(at).next() else { continue };
            // Python loads libraries of other packages before the modules that need them. Nothing does so for a program.
            let must_be_found = self.is_file() || is_program(at) && !is_image;
            let is_absent = |by: &str, name: &str| {
                let is_present = if must_be_found {
                    closures[at].has_library(&self.loaders, name) || closures[at].is_broken(name)
                } else {
                    self.is_installed_with(by, name)
                };
                !is_present
            };
            let wanted: Vec<_> =
                wanted.iter().filter(|(by, soname)| is_absent(&self.loaders[*by].name, soname)).collect();
            // The dynamic linker does not start a program without each of its libraries.
            let needs_all = self.is_joined && is_program(at) && closure(at).any(uses_cuda);
            if wanted.is_empty() && !needs_all {
                continue;
            }
            let graph = self.load_here(&root.name, &env, &files);
            for (by, soname) in wanted {
                let found =
                    graph.as_ref().and_then(|graph| graph.objects.iter().find(|object| object.is_named(soname)));
                // If the library of this machine does not use CUDA, that of another machine does not either.
                if found
                    .is_none_or(|found| !self.is_joined && !self.contains_file(&found.path) && uses_cuda_here(found))
                {
                    let _ = absent.entry((*soname).to_owned()).or_default().insert(&self.loaders[*by].name);
                }
            }
            let unresolved = graph.iter().filter(|_| needs_all).flat_map(LoadGraph::unresolved_requests);
            for request in unresolved.filter(|request| is_absent(&root.name, &request.name)) {
                let _ = absent.entry(request.name.clone()).or_default().insert(&root.name);
            }
        }
        let describe = |(soname, by): (String, BTreeSet<&str>)| {
            let by: Vec<&str> = by.into_iter().collect();
            let supplier = self.supplier(&by, &soname).map(|name| format!("; the package requires {name}"));
            let by = join_some(&by);
            let why = match self.libraries.get(&*library_name(&soname)).and_then(BTreeSet::first) {
                Some(other) => format!("needed by {by}, and the dynamic linker does not find {other}"),
                None => format!("needed by {by}, and not {place}{}", supplier.unwrap_or_default()),
            };
            NotExamined::new(soname, why)
        };
        absent.into_iter().map(describe).collect()
    }

    /// Returns the libraries that these members need of the program, each with the index of the member.
    fn wanted(&self, members: impl Iterator<Item = usize>) -> Vec<(usize, &str)> {
        let of_member = |at: usize| self.loaders[at].wants.iter().map(move |name| (at, name.as_str()));
        members.flat_map(of_member).collect()
    }

    /// Returns the requirement of a package with one of these members whose name is that of a library.
    fn supplier(&self, members: &[&str], soname: &str) -> Option<String> {
        let owns = |package: &&ArtifactPackage| members.iter().any(|member| package.owns_member(member));
        self.packages.iter().filter(owns).find_map(|package| package.other_supplier(soname))
    }
}

fn uses_cuda_here(library: &Object) -> bool {
    let read = || Binary::from_contents(&library.path, Arc::clone(library.data()));
    has_trace_of_cuda(library.data()) && read().map_or(true, |library| reaches_cuda(&library))
}
