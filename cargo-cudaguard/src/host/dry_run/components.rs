//! Files that run together, and their common requirements.

use crate::binary::file::{self, Binary};
use crate::binary::loader::{LoadGraph, Object, SearchSource};
use crate::host::machine::Components;
use cudaguard::internal::finding::Code;
use cudaguard::internal::vendor;

/// The libraries of a load graph that are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All that the dynamic linker of this machine loads.
    Loaded,
    /// Those that come with the program. Another machine has its own copies of NVIDIA's other libraries.
    Brought,
}

/// Returns the requirements of a program and its libraries, and for each manifest the index of its file: 0 for the program.
/// `is_inside` returns true if a file gets a library of this name from the closure.
pub(super) fn components_together(
    program: &Binary,
    libraries: &[(usize, Binary)],
    is_of_vendor: &dyn Fn(usize) -> bool,
    is_inside: &dyn Fn(usize, &str) -> bool,
) -> (Vec<usize>, Components) {
    let mut all = Components::from_binary(&program.path, program);
    let mut objects = vec![0; all.manifests.len()];
    let runtime =
        all.manifests.iter().find(|manifest| !manifest.component.is_unrecorded()).map(|manifest| manifest.runtime);
    all.needed.retain(|needed| !is_inside(0, &needed.soname));
    all.bound.retain(|bound| !is_inside(0, &bound.soname));
    let mut of_others: Vec<usize> = (0..objects.len()).collect();
    let mut of_vendor: Vec<usize> = Vec::new();
    for (index, binary) in libraries {
        let mut own = Components::from_binary(&binary.path, binary);
        own.findings.retain(|finding| finding.code != Code::NoManifest);
        // `[runtime]` of the program also applies to its libraries without a guard.
        for manifest in own.manifests.iter_mut().filter(|manifest| manifest.component.is_unrecorded()) {
            manifest.runtime = runtime.unwrap_or(manifest.runtime);
        }
        let places = objects.len()..objects.len() + own.manifests.len();
        if is_of_vendor(*index) {
            if let Ok(kernels) = binary.kernels() {
                own.mark_fallback(&mut kernels.clone(), |cc| {
                    let mut files = std::iter::once(program).chain(libraries.iter().map(|(_, binary)| binary));
                    files.any(|file| file.kernels().is_ok_and(|kernels| kernels.has_machine_code(cc)))
                });
            }
            of_vendor.extend(places);
        } else {
            of_others.extend(places);
        }
        objects.extend(own.manifests.iter().map(|_| *index));
        all.manifests.extend(own.manifests);
        all.findings.extend(own.findings);
        all.not_examined.extend(own.not_examined);
        for needed in own.needed.into_iter().filter(|needed| !is_inside(*index, &needed.soname)) {
            if !all.needed.iter().any(|known| known.soname == needed.soname) {
                all.needed.push(needed);
            }
        }
        all.bound.extend(own.bound.into_iter().filter(|bound| !is_inside(*index, &bound.soname)));
        let opened: Vec<_> = own.opened.into_iter().filter(|opened| !all.opened.contains(opened)).collect();
        all.opened.extend(opened);
    }
    all.drop_implied_rows(&of_vendor);
    // The functions of NVIDIA's libraries need a GPU only when they are called.
    if !of_vendor.is_empty() {
        (all.alternatives.in_part, all.alternatives.serving) = (of_vendor, of_others);
    }
    (objects, all)
}

/// Returns true if a library comes with the program: it is below the directory of the program, or the program or a
/// library that comes with it finds it on its own search path. NVIDIA's libraries outside of that directory are part of
/// a machine. A library with a guard always counts.
pub(crate) fn is_brought(graph: &LoadGraph, index: usize) -> bool {
    let mut next = index;
    while next != 0 {
        let object = &graph.objects[next];
        if is_guarded(object) || graph.is_below_program(&object.path) || object.place == SearchSource::Package {
            return true;
        }
        let (SearchSource::Rpath(_, entry) | SearchSource::Runpath(_, entry)) = &object.place else { return false };
        let Some(by) = object.wanted_by.filter(|_| entry.contains("ORIGIN") || !is_of_vendor(object)) else {
            return false;
        };
        next = by;
    }
    true
}

fn is_guarded(object: &Object) -> bool {
    file::notes_in(object.data()).is_ok_and(|notes| !notes.is_empty())
}

/// Returns true for a library that NVIDIA publishes.
pub(super) fn is_of_vendor(object: &Object) -> bool {
    let own = object.path.file_name().and_then(|name| name.to_str());
    [object.soname.as_deref(), own].into_iter().flatten().any(vendor::is_beside_driver)
}
