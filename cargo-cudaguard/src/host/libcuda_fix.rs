//! Fixes for a libcuda that must not be loaded, by the search path that picks it.

use std::fs;
use std::path::Path;

use crate::binary::loader::{Inspection, LoadGraph, SearchSource};
use crate::host::machine::Driver;
use crate::host::machine::detect::{in_compat_dir, release_in_name};
use crate::host::machine::redact::redact_home;
use crate::knowledge::vendor::{CUDART, LIBCUDA};
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{Code, Finding, MessageTemplate, Values};
use cudaguard::internal::manifest::{Manifest, Requirement};
use cudaguard::internal::tables;
use cudaguard::internal::version::CudaVersion;

/// Replaces the hints of findings about the picked libcuda with the change to the search path that avoids it. Keeps the
/// hint of the table if no change to the search path helps. `needs`: the CUDA version that the program needs; a libcuda that does not
/// support it is no fix.
pub(crate) fn adapt_hints<'a>(
    findings: impl IntoIterator<Item = &'a mut Finding>,
    env: &Env,
    graph: &LoadGraph,
    driver: &Driver,
    needs: Option<CudaVersion>,
) {
    let mut found: Vec<&mut Finding> =
        findings.into_iter().filter(|finding| template(finding.code, false).is_some()).collect();
    if found.is_empty() {
        return;
    }
    let by = graph.requests.iter().find(|request| request.name == LIBCUDA).map_or(0, |request| request.by);
    // A crate may open it by another name than its soname.
    let name = driver.library.as_deref().and_then(|path| Path::new(path).file_name()?.to_str()).unwrap_or(LIBCUDA);
    let candidates = graph.candidates(by, name);
    let mut usable = candidates.iter().filter(|candidate| candidate.inspection == Inspection::Usable);
    let Some(picked) = usable.next() else { return };
    // The loader always searches this directory, so that only the file can go.
    let is_default = candidates
        .iter()
        .any(|other| matches!(other.place, SearchSource::System) && is_same_file(&other.path, &picked.path));
    let by_place = fix_of_place(env, &picked.path, &picked.place).filter(|_| !is_default);
    let is_stub = found.iter().any(|finding| finding.code == Code::StubDriver);
    let by_deletion = is_stub.then(|| format!("delete {}", redact_home(env, &picked.path.display())));
    let Some(fix) = by_place.or(by_deletion) else { return };
    // Only the libcuda of the kernel module's own release certainly works.
    let cuda = driver.kernel.and_then(|kernel| tables::driver_supports(kernel).least);
    let is_enough = needs.is_none_or(|needs| cuda.is_none_or(|cuda| needs <= cuda));
    let mut others = usable.map(|candidate| candidate.path.as_path()).filter(|path| !is_same_file(path, &picked.path));
    let next = others.find(|path| driver.kernel.is_some() && release_in_name(path) == driver.kernel);
    let next = next.filter(|_| is_enough);
    let values = Values::default().with("fix", fix).with_known("kernel", driver.kernel);
    let values = values.with_known("next", next.map(|path| redact_home(env, &path.display())));
    let values = values.with_known("cuda", cuda).with_known("needs_cuda", needs.filter(|_| !is_enough));
    for finding in &mut found {
        // An ordinary libcuda of another release is picked after an incomplete update, too. A reboot repairs that.
        let may_be_update = finding.code == Code::DriverMismatch && next.is_none() && !in_compat_dir(&picked.path);
        if let Some(template) = template(finding.code, next.is_some()).filter(|_| !may_be_update) {
            finding.hint = template.to_finding(&values).hint;
        }
    }
}

/// Returns the newest CUDA version that the program needs from the driver, as far as its manifests and the cudarts that it needs show.
pub(crate) fn needed_cuda(manifests: &[Manifest], graph: &LoadGraph) -> Option<CudaVersion> {
    let rows = manifests.iter().flat_map(|manifest| &manifest.requires).filter_map(|row| match row {
        Requirement::Driver { cuda, .. } => Some(*cuda),
        _ => None,
    });
    let cudarts = graph.requests.iter().filter_map(|request| CUDART.major(&request.name));
    rows.chain(cudarts.map(|major| CudaVersion::new(major, 0))).max()
}

/// Returns the text of the fix. `is_next`: the loader then finds a libcuda that works.
fn template(code: Code, is_next: bool) -> Option<MessageTemplate> {
    Some(match code {
        Code::DriverMismatch => MessageTemplate::DriverMismatchPicked,
        Code::ForwardCompatUnsupported if is_next => MessageTemplate::ForwardCompatUnsupportedBehind,
        Code::ForwardCompatUnsupported => MessageTemplate::ForwardCompatUnsupportedPicked,
        Code::StubDriver => MessageTemplate::StubDriverPicked,
        Code::CompatOutdated => MessageTemplate::CompatOutdated,
        _ => return None,
    })
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one).is_ok_and(|one| fs::canonicalize(other).is_ok_and(|other| one == other))
}

/// Returns the change that removes this file from the loader's search. `None` for directories that are always searched.
fn fix_of_place(env: &Env, path: &Path, place: &SearchSource) -> Option<String> {
    let dir = redact_home(env, &path.parent().unwrap_or(path).display());
    Some(match place {
        SearchSource::LibraryPath(entry) => format!("remove {entry} from LD_LIBRARY_PATH"),
        SearchSource::Cache(_) => format!("remove {dir} from /etc/ld.so.conf.d and run ldconfig"),
        SearchSource::PathFile(file) => format!("remove {dir} from {}", file.display()),
        SearchSource::Rpath(object, entry) => {
            format!("remove {entry} from the RPATH of {}", redact_home(env, &object.display()))
        }
        SearchSource::Runpath(object, entry) => {
            format!("remove {entry} from the RUNPATH of {}", redact_home(env, &object.display()))
        }
        SearchSource::Program
        | SearchSource::Loader
        | SearchSource::Loaded
        | SearchSource::Path
        | SearchSource::Package
        | SearchSource::System => return None,
    })
}
