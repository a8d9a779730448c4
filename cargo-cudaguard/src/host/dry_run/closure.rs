//! The files that run together: a program or library, and the libraries that the dynamic linker loads for it.

use crate::binary::loader::{Object, SearchSource};
use crate::verdict::is_reported_by_loader;
use cudaguard::internal::finding::{Code, Effect, Finding, Severity};
use cudaguard::internal::manifest::Manifest;
use cudaguard::internal::vendor;

/// Marks the errors and warnings that neither the guard of a program nor the dynamic linker reports when it starts. Does
/// nothing if no file has a guard.
pub(crate) fn mark_unchecked(findings: &mut [Finding], manifests: &[Manifest]) {
    if manifests.iter().all(|manifest| manifest.component.is_unrecorded()) {
        return;
    }
    for finding in findings {
        let is_checked = is_reported_at_start(finding, manifests);
        if finding.severity > Severity::Info && finding.code.effect() == Effect::Refuses && !is_checked {
            finding.mark_unchecked_at_start();
        }
    }
}

/// Returns true if the dynamic linker, or the guard of one of these components, reports an error when a program starts.
pub(crate) fn is_reported_at_start(finding: &Finding, manifests: &[Manifest]) -> bool {
    if finding.code == Code::LibraryLacksSymbol && finding.fact("later").is_some() {
        return false;
    }
    let mut guarded = manifests.iter().filter(|manifest| !manifest.component.is_unrecorded());
    is_reported_by_loader(finding.code)
        || finding.code.is_judged_at_start()
            && guarded.any(|manifest| manifest.component.to_string() == finding.component)
}

/// Returns true for a search path of a file that is relative to the file.
pub(crate) fn is_in_own_search_path(place: &SearchSource) -> bool {
    matches!(place, SearchSource::Rpath(_, entry) | SearchSource::Runpath(_, entry) if entry.contains("ORIGIN"))
}

/// Returns true for a library of the driver, which every machine has in the release of its kernel module.
pub(crate) fn is_part_of_driver(object: &Object) -> bool {
    vendor::is_of_driver(object.soname.as_deref().unwrap_or(&object.name))
}
