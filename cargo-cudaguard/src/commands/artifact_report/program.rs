//! A single program or library, with the libraries that come with it: an artifact with one root.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::machine::MachineLibrary;
use super::{ArtifactMember, ArtifactReport, served_by_others};
use crate::binary::loader;
use crate::binary::loader::{LibraryCandidate, SearchSource};
use crate::binary::mapped_file::{Contents, OpenFiles};
use crate::host::dry_run::{
    is_brought, is_in_own_search_path, is_part_of_driver, is_searched_in_environment, load_brought,
};
use crate::host::machine::Components;
use cudaguard::internal::env::Env;

impl ArtifactReport {
    /// Reads a file and the libraries that come with it, for any machine. `None` if it cannot be parsed.
    pub(crate) fn with_libraries(path: &Path, contents: Arc<Contents>, env: &Env) -> Option<Self> {
        let name = path.to_string_lossy();
        let files = OpenFiles::default();
        files.insert(path, &contents);
        let (part, loader, _) = ArtifactMember::from_contents(&name, contents, true).ok()?;
        let mut report = Self::with_file(path, part, loader, Vec::new());
        // A file that no dynamic linker loads, such as an archive, is checked alone.
        let Ok(mut graph) = loader::resolve_with(path, env, &files) else { return Some(report) };
        report.not_examined.extend(load_brought(&mut graph));
        for (index, object) in graph.objects.iter().enumerate().skip(1) {
            if object.place == SearchSource::Loader || is_part_of_driver(object) || !is_brought(&graph, index) {
                continue;
            }
            let _ = report.join_library(&MachineLibrary {
                path: object.path.clone(),
                name: object.name.clone(),
                picked_by: object.place.to_string(),
                data: Arc::clone(object.data()),
            });
        }
        report.use_runtime_of_root();
        served_by_others(&mut report.parts);
        report.disk = Some(graph);
        report.closures = vec![report.load_members(0)];
        Some(report)
    }

    /// Applies `[runtime]` of the program to its libraries without a guard.
    fn use_runtime_of_root(&mut self) {
        let Some((root, libraries)) = self.parts.split_first_mut() else { return };
        let guarded = root.components.manifests.iter().find(|manifest| !manifest.component.is_unrecorded());
        let Some(runtime) = guarded.map(|manifest| manifest.runtime) else { return };
        let manifests = libraries.iter_mut().flat_map(|library| &mut library.components.manifests);
        for manifest in manifests.filter(|manifest| manifest.component.is_unrecorded()) {
            manifest.runtime = runtime;
        }
    }

    /// Returns true for a single file.
    pub(super) fn is_file(&self) -> bool {
        self.walked.kind == "file"
    }

    /// Returns the index of the loader of a single file, or of a library that comes with it.
    pub(super) fn loader_on_disk(&self, path: &Path) -> Option<usize> {
        let is_root = self.disk.as_ref().is_some_and(|graph| graph.objects[0].path == path);
        if is_root { Some(0) } else { self.loader_of(&path.to_string_lossy()) }
    }

    /// Returns the file that was given, if it is a single one.
    pub(super) fn root(&self) -> Option<&ArtifactMember> {
        self.parts.first().filter(|_| self.is_file())
    }

    /// Describes a single file in its requirements.
    pub(super) fn describe_root(&self, root: &ArtifactMember, all: &mut Components) {
        let own = &root.components;
        (all.file, all.processor, all.os) = (own.file.clone(), own.processor.clone(), own.os);
        all.is_bare_cubin = own.is_bare_cubin;
        all.not_examined.extend(own.not_examined.iter().cloned());
        let files = self.loaders.iter().filter(|loader| loader.name == root.name || !loader.is_of_nvidia());
        all.files = files.map(|loader| PathBuf::from(&loader.name)).collect();
    }

    /// Returns true if the search path of a file contains only directories of its Python environment, which contain the same
    /// files on each machine.
    pub(super) fn is_searched_in_environment(&self, part: &ArtifactMember) -> bool {
        self.is_file() && is_searched_in_environment(&part.binary)
    }

    /// Returns true if a file that the dynamic linker considers is a part of the artifact.
    pub(super) fn is_in_artifact(&self, candidate: &LibraryCandidate) -> bool {
        !self.is_file() || is_in_own_search_path(&candidate.place)
    }
}
