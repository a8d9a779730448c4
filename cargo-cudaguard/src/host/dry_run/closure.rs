//! The files that run together: a program or library, and the libraries that the dynamic linker loads for it.

use super::components::{Scope, components_together, is_brought, is_of_vendor};
use super::python;
use crate::binary::examined::{self, NotExamined};
use crate::binary::file::Binary;
use crate::binary::loader::{LoadGraph, LoadOutcome, Object, SearchSource};
use crate::family::misnamed;
use crate::host::machine::Components;
use crate::verdict::is_reported_by_loader;
use cudaguard::internal::finding::{Code, Effect, Finding, Severity};
use cudaguard::internal::manifest::Manifest;
use cudaguard::internal::vendor::{self};

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

/// Returns true for a search path of a file that is relative to the file.
pub(crate) fn is_in_own_search_path(place: &SearchSource) -> bool {
    matches!(place, SearchSource::Rpath(_, entry) | SearchSource::Runpath(_, entry) if entry.contains("ORIGIN"))
}

/// Returns true for a library of the driver, which every machine has in the release of its kernel module.
pub(crate) fn is_part_of_driver(object: &Object) -> bool {
    const PARTS: [&str; 3] = ["libcuda.so", "libcudadebugger.so", "libnvidia-"];
    let name = object.soname.as_deref().unwrap_or(&object.name);
    PARTS.iter().any(|part| name.starts_with(part))
}
