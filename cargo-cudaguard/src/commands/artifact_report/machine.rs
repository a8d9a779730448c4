//! Libraries of this machine that members of a directory load.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::closure::{LoadedMember, without_links};
use super::member::file_name;
use super::not_inside::NamedLibraries;
use super::{ArtifactMember, ArtifactReport, mark_fallback_code};
use crate::binary::examined::{NotExamined, has_trace_of_cuda};
use crate::binary::loader::{self, LibraryCandidate, LoadGraph, LoadOutcome, SearchSource};
use crate::binary::mapped_file::{Contents, OpenFiles};
use crate::family::{NVRTC, is_of_nvidia};
use crate::host::dry_run::{builtins_beside, is_of_program, is_part_of_driver, load_opened_here};
use cudaguard::internal::env::Env;

/// A library that the dynamic linker of this machine loads for a member.
#[derive(Clone)]
pub(super) struct MachineLibrary {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) picked_by: String,
    pub(super) data: Arc<Contents>,
}

impl ArtifactReport {
    /// Adds the libraries that the dynamic linker of this machine loads for the members and that are not in the directory: they
    /// run together with the members.
    pub(crate) fn join_libraries_of_machine(&mut self, env: &Env) {
        let Ok(top) = fs::canonicalize(&self.archive) else { return };
        if self.walked.kind != "directory" || cfg!(windows) || self.is_image() {
            return;
        }
        let (files, mut known) = (OpenFiles::default(), BTreeMap::new());
        for at in 0..self.closures.len() {
            for library in self.libraries_of_machine(at, &top, env, &files) {
                let joined = *known.entry(library.path.clone()).or_insert_with(|| self.join_library(&library));
                let loaded = joined.map(|joined| LoadedMember::joined(joined, library.name, library.picked_by));
                self.closures[at].push(loaded);
            }
        }
        self.join_builtins(|whole, nvrtc, name| whole.builtins_here(nvrtc, name, env, &files));
        self.is_joined = true;
        mark_fallback_code(&mut self.parts);
    }

    /// Returns the builtins that an NVRTC finds on this machine, and not in the directory.
    fn builtins_here(
        &self,
        nvrtc: &ArtifactMember,
        name: &str,
        env: &Env,
        files: &OpenFiles,
    ) -> Option<LibraryCandidate> {
        if self.find_builtins(nvrtc, name).is_some() {
            return None;
        }
        let found = self.load_here(&nvrtc.name, env, files)?.resolve_file(0, name)?;
        // `$ORIGIN` may be that of a link, for which the members were searched.
        Some(found).filter(|found| !matches!(found.place, SearchSource::Rpath(..) | SearchSource::Runpath(..)))
    }

    /// Adds the builtins that each NVRTC opens when it compiles. `find` returns the file with a name.
    pub(super) fn join_builtins(&mut self, find: impl Fn(&Self, &ArtifactMember, &str) -> Option<LibraryCandidate>) {
        let library = |part: &ArtifactMember| {
            let name = part.family.as_ref()?.builtins_name()?;
            let LibraryCandidate { path, place, .. } = find(self, part, &name)?;
            let data = Arc::new(Contents::open(&path).ok()?);
            Some(MachineLibrary { path, name, picked_by: place.to_string(), data })
        };
        let found: Vec<MachineLibrary> = self.parts.iter().filter_map(library).collect();
        for builtins in found {
            if !self.of_machine.iter().any(|known| Path::new(known) == builtins.path) {
                let _ = self.join_library(&builtins);
            }
        }
    }

    /// Adds a library, and returns its index in [`Self::loaders`]. `None` if it cannot be read.
    pub(super) fn join_library(&mut self, library: &MachineLibrary) -> Option<usize> {
        let name = library.path.display().to_string();
        match ArtifactMember::from_contents(&name, Arc::clone(&library.data), false) {
            Ok((part, loader, reasons)) => {
                let is_nvrtc =
                    part.as_ref().and_then(ArtifactMember::release).is_some_and(|release| release.of.is(&NVRTC));
                for path in is_nvrtc.then(|| builtins_beside(&library.path)).into_iter().flatten() {
                    let builtins = Contents::open(&path).map(|data| MachineLibrary {
                        path,
                        data: Arc::new(data),
                        ..library.clone()
                    });
                    let _ = builtins.ok().and_then(|builtins| self.join_library(&builtins));
                }
                let part = if self.is_file() {
                    part.map(ArtifactMember::into_library)
                } else {
                    part.map(ArtifactMember::into_member)
                };
                self.parts.extend(part);
                self.loaders.push(loader);
                self.not_examined.extend(reasons.into_iter().map(|reason| NotExamined::new(name.as_str(), reason)));
                self.of_machine.push(name);
                Some(self.loaders.len() - 1)
            }
            Err(why) => {
                self.not_examined.push(NotExamined::new(name, why.to_string()));
                None
            }
        }
    }

    /// Returns the libraries with a trace of CUDA that are loaded for a closure from outside of the directory.
    fn libraries_of_machine(&mut self, at: usize, top: &Path, env: &Env, files: &OpenFiles) -> Vec<MachineLibrary> {
        let may_be_outside = |name: &String| {
            !self.libraries.contains_key(file_name(name)) && (is_of_program(name) || is_of_nvidia(file_name(name)))
        };
        let Some(root) = self.closures[at].members().next() else { return Vec::new() };
        let mut needed = self.closures[at].members().flat_map(|member| &self.loaders[member].needed);
        let graph = needed.any(may_be_outside).then(|| self.load_here(&self.loaders[root].name, env, files)).flatten();
        let Some(mut graph) = graph else { return Vec::new() };
        let missing = load_opened_here(&mut graph);
        let joined = joined_objects(&graph, top, self.loaders[root].is_program(), &self.libraries);
        let is_joined = |part: &NotExamined| {
            joined.iter().any(|index| part.name == graph.objects[*index].path.display().to_string())
        };
        let libraries = joined.iter().map(|index| &graph.objects[*index]);
        let libraries = libraries.filter(|object| !is_part_of_driver(object) && has_trace_of_cuda(object.data()));
        let libraries = libraries.map(|object| MachineLibrary {
            path: without_links(&object.path),
            name: object.name.clone(),
            picked_by: object.place.to_string(),
            data: Arc::clone(object.data()),
        });
        let libraries = libraries.collect();
        let missing: Vec<NotExamined> = missing.into_iter().filter(is_joined).collect();
        self.not_examined.extend(missing);
        libraries
    }

    /// Loads a member of a directory as the dynamic linker of this machine does.
    pub(super) fn load_here(&self, name: &str, env: &Env, files: &OpenFiles) -> Option<LoadGraph> {
        if let Some(graph) = self.disk.as_ref().filter(|graph| graph.objects[0].path == Path::new(name)) {
            return Some(graph.clone());
        }
        if self.is_file() {
            return loader::resolve_with(Path::new(name), env, files).ok();
        }
        let is_here = self.walked.kind == "directory" && !name.contains('!') && !self.is_image();
        let path = is_here.then(|| self.archive.join(name))?;
        loader::resolve_with(&path, env, files).ok()
    }

    /// Returns the members without the libraries of this machine.
    pub(super) fn own_parts(&self) -> impl Iterator<Item = &ArtifactMember> {
        self.judged_parts().filter(|part| !self.of_machine.contains(&part.name))
    }
}

/// Returns the objects outside of the directory that are loaded for members, and those that are loaded for these.
///
/// Python loads libraries of NVIDIA before it loads an extension module, so those that the system provides count only for
/// programs, and for libraries of the system.
fn joined_objects(graph: &LoadGraph, top: &Path, is_program: bool, present: &NamedLibraries) -> BTreeSet<usize> {
    let is_outside = |index: usize| {
        let object = &graph.objects[index];
        let real = fs::canonicalize(&object.path);
        index != 0 && object.place != SearchSource::Loader && !real.is_ok_and(|path| path.starts_with(top))
    };
    let outside: Vec<bool> = (0..graph.objects.len()).map(is_outside).collect();
    let requested = graph.requests.iter().filter_map(|request| match &request.answer {
        LoadOutcome::Object(index, place) => Some((request.by, *index, place)),
        LoadOutcome::Absent(_) | LoadOutcome::Broken(_) => None,
    });
    // Those that are opened by name are no requests.
    let objects = graph.objects.iter().enumerate();
    let first = objects.filter_map(|(index, object)| Some((object.wanted_by?, index, &object.place)));
    let edges: Vec<(usize, usize, &SearchSource)> =
        requested.chain(first).filter(|(_, index, _)| outside[*index]).collect();
    let is_taken = |index: usize, place: &SearchSource| {
        let object = &graph.objects[index];
        let names = || [Some(object.name.as_str()), object.soname.as_deref()].into_iter().flatten();
        let in_path = matches!(place, SearchSource::Rpath(..) | SearchSource::Runpath(..));
        !names().any(|name| present.contains_key(file_name(name)))
            && (is_program || in_path || !names().any(is_of_nvidia))
    };
    let mut joined = BTreeSet::new();
    loop {
        let follows = |(by, index, place): &&(usize, usize, &SearchSource)| {
            !joined.contains(index) && (joined.contains(by) || !outside[*by] && is_taken(*index, place))
        };
        let next: Vec<usize> = edges.iter().filter(follows).map(|(_, index, _)| *index).collect();
        if next.is_empty() {
            return joined;
        }
        joined.extend(next);
    }
}
