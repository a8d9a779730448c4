//! A single program or library, with the libraries that come with it: an artifact with one root.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::machine::MachineLibrary;
use super::{ArtifactMember, ArtifactReport, has_dlls, mark_fallback_code};
use crate::binary::examined::has_trace_of_cuda;
use crate::binary::file::Binary;
use crate::binary::loader;
use crate::binary::loader::{LibraryCandidate, LoadGraph, SearchSource};
use crate::binary::mapped_file::{Contents, OpenFiles};
use crate::cli::report::CliError;
use crate::family::is_of_nvidia;
use crate::host::dry_run::{
    Scope, is_brought, is_in_own_search_path, is_part_of_driver, is_searched_in_environment, load_further,
};
use crate::host::machine::Components;
use cudaguard::internal::env::Env;
use cudaguard::internal::file_error::FileError;

/// Why there is nothing to check in GPU code.
pub(super) const ONLY_LINKER_INPUT: &str = "its GPU code contains no kernels, only input for the device linker";

/// Returns the error that there is nothing to check in a file.
pub(crate) fn nothing_to_check(binary: &Binary) -> CliError {
    let needed: Vec<&str> = binary.imported().map(String::as_str).filter(|name| is_of_nvidia(name)).collect();
    let why = if binary.kernels().is_ok_and(|kernels| !kernels.entries().is_empty()) {
        ONLY_LINKER_INPUT.to_owned()
    } else if needed.is_empty() {
        "it has no manifest, contains no GPU code and needs no CUDA library".to_owned()
    } else {
        let needed = needed.join(", ");
        format!("it has no manifest, contains no GPU code, and its requirements on {needed} are unknown")
    };
    CliError::operational(format_args!("{}: nothing to check: {why}", binary.path.display()))
}

impl ArtifactReport {
    /// Reads a file and the libraries that come with it. On Windows, those that this machine loads (`is_here`).
    pub(crate) fn with_libraries(binary: &Binary, env: &Env, is_here: bool) -> Result<Self, FileError> {
        let (path, contents) = (&*binary.path, binary.data().clone());
        if has_dlls(binary) {
            return Self::with_dlls(path, contents, (is_here && cfg!(windows)).then_some(env));
        }
        let files = OpenFiles::default();
        files.insert(path, &contents);
        match loader::resolve_with(path, env, &files) {
            Ok(graph) => Self::with_graph(path, contents, graph, Scope::Brought),
            // A file that no dynamic linker loads, such as an archive, is checked alone.
            Err(_) => Self::alone(path, contents),
        }
    }

    pub(super) fn alone(path: &Path, contents: Arc<Contents>) -> Result<Self, FileError> {
        let read = ArtifactMember::from_contents(&path.to_string_lossy(), contents, true);
        let (part, loader, _) = read.map_err(|problem| FileError::read(path, problem))?;
        Ok(Self::with_file(path, part, loader, Vec::new()))
    }

    /// Reads a file and the libraries of its graph that are judged with it.
    pub(crate) fn with_graph(
        path: &Path,
        contents: Arc<Contents>,
        mut graph: LoadGraph,
        scope: Scope,
    ) -> Result<Self, FileError> {
        let mut report = Self::alone(path, contents)?;
        report.is_joined = scope == Scope::Loaded;
        report.not_examined.extend(load_further(&mut graph, scope));
        for (index, object) in graph.objects.iter().enumerate().skip(1) {
            if object.place == SearchSource::Loader {
                continue;
            }
            let uses_cuda = || is_of_nvidia(&object.name) || has_trace_of_cuda(object.data());
            let is_judged = scope == Scope::Loaded && !is_part_of_driver(object) && uses_cuda();
            if !is_judged && !is_brought(&graph, index) {
                continue;
            }
            let _ = report.join_library(&MachineLibrary {
                path: object.path.clone(),
                name: object.name.clone(),
                picked_by: object.place.to_string(),
                data: Arc::clone(object.data()),
            });
        }
        if scope == Scope::Loaded {
            report.join_builtins(|_, part, name| {
                let object = graph.objects.iter().position(|object| object.path == Path::new(&part.name))?;
                graph.resolve_file(object, name)
            });
        }
        report.use_runtime_of_root();
        mark_fallback_code(&mut report.parts);
        report.disk = Some(graph);
        report.closures = vec![report.load_members(0)];
        Ok(report)
    }

    /// Returns the files that the dynamic linker loads for a single file.
    pub(crate) fn take_graph(&mut self) -> Option<LoadGraph> {
        self.disk.take()
    }

    /// Applies `[runtime]` of the program to its libraries without a guard.
    pub(super) fn use_runtime_of_root(&mut self) {
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

    /// Returns true for a container image, or the root of one as a directory or a tar. It contains everything that its programs load
    /// except the driver's libraries.
    pub(super) fn is_image(&self) -> bool {
        let mut programs = self.loaders.iter().filter(|loader| loader.is_program() && !loader.name.contains('!'));
        self.walked.kind == "container image"
            || self.trees.has_settings_of_loader()
            || programs.any(|program| self.trees.has_own_loader(&program.name))
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
        all.kernels = Some(root.binary.kernels().cloned().unwrap_or_default());
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
