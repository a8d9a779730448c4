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
use crate::host::dry_run::{is_of_program, reaches_cuda};
use crate::host::machine::install_hint;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{Finding, MessageTemplate, Values};

/// The members that the dynamic linker may load for a library, by file name, name of a link, and soname.
pub(super) type NamedLibraries = BTreeMap<String, BTreeSet<String>>;

/// A library that members need and that is not found.
#[derive(Default)]
pub(super) struct AbsentLibrary<'a> {
    pub(super) soname: String,
    pub(super) needed_by: BTreeSet<&'a str>,
    /// Set if everything was searched in which a program that uses CUDA may find it.
    pub(super) ends_start: bool,
}

impl AbsentLibrary<'_> {
    /// Returns the error with which the dynamic linker ends a program.
    pub(super) fn to_finding(&self) -> Finding {
        let by: Vec<&str> = self.needed_by.iter().copied().collect();
        let values = Values::default().with("library", &self.soname).with("needed_by", join_some(&by));
        MessageTemplate::LibraryAbsent.to_finding(&values.with("cure", install_hint(&self.soname)))
    }
}

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
    pub(super) fn absent_libraries(&self) -> Vec<AbsentLibrary<'_>> {
        let closures: Vec<&MemberClosure> = self.judged_closures().collect();
        let wanted: Vec<Vec<(usize, &str)>> = closures.iter().map(|closure| self.wanted(closure.members())).collect();
        let parts: BTreeSet<&str> = self.parts.iter().map(|part| part.name.as_str()).collect();
        let uses_cuda = |loader: &MemberLoader| loader.reaches_cuda || parts.contains(loader.name.as_str());
        let closure = |at: usize| closures[at].members().map(|member| &self.loaders[member]);
        let is_program = |at: usize| closure(at).next().is_some_and(MemberLoader::is_program);
        let counts = |at: usize| is_program(at) || closure(at).any(uses_cuda);
        let any_counts = (0..closures.len()).any(counts);
        // If no file of the artifact is known to use CUDA, the libraries that are absent may.
        let is_of_others = |at: usize| closure(at).next().is_some_and(|root| !root.is_of_nvidia());
        let is_for_cuda = (0..closures.len()).any(|at| is_of_others(at) && closure(at).any(uses_cuda));
        // A library that uses CUDA, and that the program does not find.
        let of_cuda: BTreeSet<&str> =
            self.loaders.iter().filter(|one| uses_cuda(one)).map(|one| one.name.as_str()).collect();
        let is_of_cuda = |soname: &str| {
            let named = self.libraries.get(&*library_name(soname));
            named.is_some_and(|all| all.iter().any(|name| of_cuda.contains(name.as_str())))
        };
        let is_image = self.is_image();
        let (env, files) = (Env::from_process(), OpenFiles::default());
        let mut absent: BTreeMap<String, AbsentLibrary<'_>> = BTreeMap::new();
        for (at, wanted) in wanted.iter().enumerate().filter(|(at, _)| !any_counts || counts(*at)) {
            let Some(root) = closure(at).next() else { continue };
            // The dynamic linker does not start a program without each of its libraries.
            let is_with_cuda = closure(at).any(uses_cuda) || wanted.iter().any(|(_, soname)| is_of_cuda(soname));
            let is_started = is_program(at) && (!is_for_cuda || is_with_cuda);
            // Python loads libraries of other packages before the modules that need them. Nothing does so for a program.
            let must_be_found = self.is_file() || is_program(at) && (!is_image || is_started);
            let is_absent = |by: &str, name: &str| {
                // The error about a library that is damaged or for another processor names it.
                let is_present = if must_be_found {
                    closures[at].has_library(&self.loaders, name)
                } else {
                    self.is_installed_with(by, name)
                };
                !is_present && !closures[at].is_reported(name)
            };
            let wanted: Vec<_> =
                wanted.iter().filter(|(by, soname)| is_absent(&self.loaders[*by].name, soname)).collect();
            let needs_all = self.is_joined && is_started;
            let mut add = |soname: &str, by| {
                let library = absent.entry(soname.to_owned()).or_default();
                library.needed_by.insert(by);
                // Another finding reports that a library of NVIDIA's is absent.
                // A script that starts the program may set LD_LIBRARY_PATH.
                let is_elsewhere = self.is_installed_with(&root.name, soname);
                library.ends_start |= (needs_all || is_image && is_started && !is_elsewhere) && is_of_program(soname);
            };
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
                    add(soname, self.loaders[*by].name.as_str());
                }
            }
            let unresolved = graph.iter().filter(|_| needs_all).flat_map(LoadGraph::unresolved_requests);
            for request in unresolved.filter(|request| is_absent(&root.name, &request.name)) {
                add(&request.name, root.name.as_str());
            }
        }
        absent.into_iter().map(|(soname, library)| AbsentLibrary { soname, ..library }).collect()
    }

    /// Describes an absent library, without which a program may start elsewhere.
    pub(super) fn describe_absent(&self, library: &AbsentLibrary<'_>) -> NotExamined {
        let place = if self.is_joined { "on this machine" } else { "among the given files" };
        let by: Vec<&str> = library.needed_by.iter().copied().collect();
        let supplier = self.supplier(&by, &library.soname).map(|name| format!("; the package requires {name}"));
        let by = join_some(&by);
        let why = match self.libraries.get(&*library_name(&library.soname)).and_then(BTreeSet::first) {
            Some(other) => format!("needed by {by}, and the dynamic linker does not find {other}"),
            None => format!("needed by {by}, and not {place}{}", supplier.unwrap_or_default()),
        };
        NotExamined::new(library.soname.as_str(), why)
    }

    /// Returns the libraries that these members need of the program, each with the index of the member.
    fn wanted(&self, members: impl Iterator<Item = usize>) -> Vec<(usize, &str)> {
        members.flat_map(|at| self.loaders[at].wants.iter().map(move |name| (at, name.as_str()))).collect()
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
