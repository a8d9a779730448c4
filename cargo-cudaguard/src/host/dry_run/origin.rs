//! Where a library of a program comes from: with the program, with the driver, or from the machine.

use crate::binary::file;
use crate::binary::loader::{LoadGraph, Object, SearchSource};
use crate::knowledge::vendor;

/// The libraries of a load graph that are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All that the dynamic linker of this machine loads.
    Loaded,
    /// Those that come with the program. Another machine has its own copies of NVIDIA's other libraries.
    Brought,
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
fn is_of_vendor(object: &Object) -> bool {
    let own = object.path.file_name().and_then(|name| name.to_str());
    [object.soname.as_deref(), own].into_iter().flatten().any(vendor::is_beside_driver)
}

/// Returns true for a search path of a file that is relative to the file.
pub(crate) fn is_in_own_search_path(place: &SearchSource) -> bool {
    matches!(place, SearchSource::Rpath(_, entry) | SearchSource::Runpath(_, entry) if entry.contains("ORIGIN"))
}

/// Returns true for a library of the driver, which every machine has in the release of its kernel module.
pub(crate) fn is_part_of_driver(object: &Object) -> bool {
    vendor::is_of_driver(object.soname.as_deref().unwrap_or(&object.name))
}
