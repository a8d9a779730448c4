//! The files that run together: a program or library, and the libraries that the dynamic linker loads for it.

use super::absent::is_of_program;
use super::components::{Scope, components_together, is_brought, is_of_vendor};
use super::missing::{foreign_library, missing_library_finding};
use super::{absent, dlls, family, opened, python, resolve_cudnn, symbols};
use crate::binary::examined::{self, NotExamined};
use crate::binary::file::{Binary, BinaryKind, TargetOs};
use crate::binary::loader::{self, LibraryCandidate, LibraryRequest, LoadGraph, LoadOutcome, Object, SearchSource};
use crate::binary::mapped_file::OpenFiles;
use crate::family::misnamed;
use crate::host::facts::CudnnState;
use crate::host::machine::{Components, HostLibrary, HostLibraryPart, cudnn_soname, is_cudnn_row};
use crate::verdict::is_reported_by_loader;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{Code, Effect, Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::manifest::{Manifest, Requirement};
use cudaguard::internal::vendor::{self, CUDNN};

/// The files of a closure that use CUDA, each with its requirements. The examined file is the first.
pub(super) struct Closure<'a> {
    graph: &'a LoadGraph,
    program: &'a Binary,
    /// The libraries, each with its index in [`LoadGraph::objects`].
    libraries: Vec<(usize, Binary)>,
}

impl<'a> Closure<'a> {
    pub(super) fn new(graph: &'a LoadGraph, program: &'a Binary, scope: Scope) -> Self {
        let judged = |(index, object): &(usize, &Object)| {
            !is_part_of_driver(object)
                && object.place != SearchSource::Loader
                && (scope == Scope::Loaded || !is_of_vendor(object) || is_brought(graph, *index))
                && examined::has_trace_of_cuda(object.data())
        };
        // A file that cannot be parsed as a program or library cannot be loaded; the loader's rules report it.
        let read = |(index, object): (usize, &Object)| {
            Some((index, Binary::from_contents(&object.path, object.data().clone()).ok()?))
        };
        let libraries = graph.objects.iter().enumerate().skip(1).filter(judged).filter_map(read).collect();
        Self { graph, program, libraries }
    }

    /// Returns all files, each with its index in [`LoadGraph::objects`].
    pub(super) fn files(&self) -> impl Iterator<Item = (usize, &Binary)> {
        std::iter::once((0, self.program)).chain(self.libraries.iter().map(|(index, binary)| (*index, binary)))
    }

    /// Returns the requirements of all files, and for each manifest the index of its file in [`LoadGraph::objects`].
    /// Needed libraries that are files of the closure are not required of a machine.
    pub(super) fn components(&self) -> (Vec<usize>, Components) {
        let is_of_vendor = |index: usize| is_of_vendor(&self.graph.objects[index]);
        let (objects, mut all) =
            components_together(self.program, &self.libraries, &is_of_vendor, &|by, soname| self.is_inside(by, soname));
        all.files =
            self.files().filter(|(at, _)| *at == 0 || !is_of_vendor(*at)).map(|(_, file)| file.path.clone()).collect();
        let objects_of_files = self.files().map(|(at, _)| &self.graph.objects[at]);
        all.not_examined.extend(objects_of_files.flat_map(|object| {
            let path = object.path.to_string_lossy();
            let names = object.requested_names();
            names.filter_map(|name| misnamed(&path, name, object.soname.as_deref())).collect::<Vec<_>>()
        }));
        let loader = self.files().find(|(at, file)| !is_of_vendor(*at) && file.loads_other_code());
        if let Some((_, file)) = loader.filter(|_| !all.has_gpu_code()) {
            all.not_examined.push(NotExamined::loader_of_code(file.path.display().to_string()));
        }
        // A search path inside of an environment contains the same files on each machine.
        for needed in all.needed.iter_mut().filter(|needed| needed.has_search_path) {
            let mut by = self.files().filter(|(_, file)| file.needed.contains(&needed.soname));
            needed.has_search_path = !by.all(|(_, file)| python::is_searched_inside(file));
        }
        (objects, all)
    }

    /// Returns true if the loader satisfies this object's request for a library with a file of the closure.
    fn is_inside(&self, object: usize, soname: &str) -> bool {
        let plain = vendor::plain_name(soname);
        let mut requests = self.graph.requests.iter().filter(|request| request.by == object);
        requests.any(|request| match request.answer {
            LoadOutcome::Object(found, _) => {
                // A small library, such as NVTX, has no trace of CUDA.
                let is_judged = self.libraries.iter().any(|(index, _)| *index == found);
                vendor::plain_name(&request.name) == plain && (is_judged || is_brought(self.graph, found))
            }
            LoadOutcome::Absent(_) | LoadOutcome::Broken(_) => false,
        })
    }
}

/// Returns the requirements of this file and of the libraries that Windows loads for it on this machine. On another system,
/// does the same as [`components_of`].
pub fn components_here(file: &Binary, env: &Env) -> Components {
    if cfg!(windows) && has_dlls(file) {
        dlls::components_of_dlls(file, Some(env), &OpenFiles::default())
    } else {
        components_of(file, env)
    }
}

/// Returns true for a program or library for Windows.
fn has_dlls(file: &Binary) -> bool {
    file.os == Some(TargetOs::Windows) && matches!(file.kind, BinaryKind::Executable | BinaryKind::SharedLibrary)
}

/// Returns the requirements of this file and of the libraries that come with it, for any machine.
pub fn components_of(file: &Binary, env: &Env) -> Components {
    let files = OpenFiles::default();
    files.insert(&file.path, file.data());
    if has_dlls(file) {
        return dlls::components_of_dlls(file, None, &files);
    }
    // A file that no loader loads, such as an archive, is checked alone.
    let Ok(mut graph) = loader::resolve_with(&file.path, env, &files) else {
        return Components::from_binary(&file.path, file);
    };
    python::load_from_packages(&mut graph);
    let missing = opened::load_opened(&mut graph, Scope::Brought);
    let closure = Closure::new(&graph, file, Scope::Brought);
    let (objects, mut all) = closure.components();
    all.not_examined.extend(missing);
    all.not_examined.extend(absent::absent_libraries(&graph));
    all.findings.extend(broken_requests(&graph).map(|request| missing_library_finding(env, &graph, request)));
    let sonames: Vec<Option<String>> = closure.files().map(|(_, file)| cudnn_name(file)).collect();
    let indices: Vec<usize> = closure.files().map(|(index, _)| index).collect();
    for (request, finding) in foreign_requests(&graph) {
        if is_of_program(&request.name) {
            all.findings.push(finding);
        } else if let Some(needed) = all.needed.iter_mut().find(|needed| needed.soname == request.name) {
            needed.foreign = Some(Box::new(finding));
        }
    }
    for (object, soname) in indices.into_iter().zip(sonames) {
        let Some(soname) = soname else { continue };
        let places: Vec<usize> = (0..objects.len()).filter(|at| objects[*at] == object).collect();
        let foreign = foreign_requests(&graph).find(|(request, _)| request.by == object && request.name == soname);
        if let Some((_, finding)) = foreign {
            for at in places {
                all.bring_cudnn(at, Err(finding.clone()), "the program");
            }
            continue;
        }
        if broken_requests(&graph).any(|request| request.by == object && request.name == soname) {
            for at in places {
                all.manifests[at].requires.retain(|row| !is_cudnn_row(row));
            }
            continue;
        }
        let Some(manifest) = places.first().map(|at| &all.manifests[*at]) else { continue };
        let state = resolve_cudnn(&mut graph, object, manifest);
        let library = brought_cudnn(&graph, manifest, &state, &soname);
        all.not_examined.extend(broken_cudnn(&graph, &state));
        for (at, library) in places.iter().filter_map(|at| Some((*at, library.clone()?))) {
            all.bring_cudnn(at, Ok(library), "the program");
        }
    }
    let inside = |index: usize| index == 0 || is_brought(&graph, index);
    opened::keep_of_machine(&mut all, &graph, inside);
    family::add_family(&mut all, &graph, inside);
    all.findings.extend(symbols::symbol_findings_among(&graph, inside));
    let paths: Vec<_> =
        graph.objects.iter().enumerate().filter(|(at, _)| inside(*at)).map(|(_, object)| &object.path).collect();
    all.findings.extend(graph.missing_versions().iter().filter_map(|missing| {
        let both = paths.contains(&&missing.by) && paths.contains(&&missing.library);
        let values = Values::default().with("path", missing.library.display()).with("value", &missing.version);
        both.then(|| MessageTemplate::LibraryTooOld.to_finding(&values.with("needed_by", missing.by.display())))
    }));
    all
}

/// Marks the errors and warnings that neither the guard of a program nor the dynamic linker reports when it starts. Does
/// nothing if no file has a guard.
pub(crate) fn mark_unchecked(findings: &mut [Finding], manifests: &[Manifest]) {
    let guarded = manifests.iter().filter(|manifest| !manifest.component.is_unrecorded());
    let guarded: Vec<String> = guarded.map(|manifest| manifest.component.to_string()).collect();
    let is_checked = |finding: &Finding| {
        let at_first_call = finding.code == Code::LibraryLacksSymbol && finding.fact("later").is_some();
        let by_guard = finding.code.is_judged_at_start() && guarded.contains(&finding.component);
        !at_first_call && (by_guard || is_reported_by_loader(finding.code))
    };
    for finding in findings.iter_mut().filter(|_| !guarded.is_empty()) {
        if finding.severity > Severity::Info && finding.code.effect() == Effect::Refuses && !is_checked(finding) {
            finding.mark_unchecked_at_start();
        }
    }
}

/// Returns the name of the cuDNN that a file is linked to, or that its manifest records.
fn cudnn_name(file: &Binary) -> Option<String> {
    let mut manifests = file.manifests().filter_map(|note| Some(note.ok()?.manifest));
    let recorded = || manifests.find_map(|manifest| cudnn_soname(&manifest).map(str::to_owned));
    file.needed.iter().find(|name| CUDNN.is_named(name)).cloned().or_else(recorded)
}

/// Returns the requests for which the loader picks a library that comes with the program, and that it cannot load.
fn broken_requests(graph: &LoadGraph) -> impl Iterator<Item = &LibraryRequest> {
    graph.unresolved_requests().filter(|request| match &request.answer {
        LoadOutcome::Broken(candidate) => is_own_search_path(&candidate.place),
        LoadOutcome::Object(..) | LoadOutcome::Absent(_) => false,
    })
}

/// Returns the requests for which the loader finds a file that comes with the program, and that is for another processor only.
fn foreign_requests(graph: &LoadGraph) -> impl Iterator<Item = (&LibraryRequest, Finding)> {
    graph.unresolved_requests().filter_map(|request| {
        let LoadOutcome::Absent(candidates) = &request.answer else { return None };
        let mut own: Vec<LibraryCandidate> = candidates.clone();
        own.retain(|candidate| is_own_search_path(&candidate.place));
        let by = graph.objects[request.by].path.display().to_string();
        let finding = foreign_library(&request.name, &by, &own, |path| path.display().to_string())?;
        Some((request, finding))
    })
}

/// Returns true for a search path of a file that is relative to the file.
fn is_own_search_path(place: &SearchSource) -> bool {
    matches!(place, SearchSource::Rpath(_, entry) | SearchSource::Runpath(_, entry) if entry.contains("ORIGIN"))
}

/// Describes the cuDNN that a program opens, if it comes with the program and cannot be loaded.
fn broken_cudnn(graph: &LoadGraph, state: &CudnnState) -> Option<NotExamined> {
    let CudnnState::Found { path, .. } = state else { return None };
    let is_broken = graph.is_below_program(path) && !graph.objects.iter().any(|object| object.path == *path);
    is_broken.then(|| NotExamined::new(path.display().to_string(), "the dynamic linker cannot load this cuDNN"))
}

/// Returns the cuDNN that comes with the program, if an object gets that one.
fn brought_cudnn(graph: &LoadGraph, manifest: &Manifest, state: &CudnnState, soname: &str) -> Option<HostLibrary> {
    let CudnnState::Found { path, version, inner, loader, made_with, .. } = state.clone() else { return None };
    // Parts that cannot be accessed are not listed.
    let is_complete =
        inner.len() == manifest.requires.iter().filter(|row| matches!(row, Requirement::Part { .. })).count();
    let present = inner.into_iter().filter(|inner| inner.present);
    let parts = present.map(|inner| HostLibraryPart { file: inner.file, version: inner.version }).collect();
    let index = graph.objects.iter().position(|object| object.path == path)?;
    let path = is_brought(graph, index).then(|| path.display().to_string())?;
    Some(HostLibrary {
        soname: Some(soname.to_owned()),
        version,
        path: Some(path),
        taken: true,
        parts: is_complete.then_some(parts),
        loader,
        cuda: made_with,
        ..HostLibrary::default()
    })
}

/// Returns true for a library of the driver, which every machine has in the release of its kernel module.
pub(crate) fn is_part_of_driver(object: &Object) -> bool {
    const PARTS: [&str; 3] = ["libcuda.so", "libcudadebugger.so", "libnvidia-"];
    let name = object.soname.as_deref().unwrap_or(&object.name);
    PARTS.iter().any(|part| name.starts_with(part))
}
