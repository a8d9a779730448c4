//! Findings about libraries that the loader does not find.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::binary::loader::{Inspection, LibraryCandidate, LibraryRequest, LoadGraph, LoadOutcome, SearchSource};
use crate::host::library_version::file_version;
use crate::host::machine::install_hint;
use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::cudnn;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{Finding, MessageFragment, MessageTemplate, Values};

pub(super) fn missing_library_finding(env: &Env, graph: &LoadGraph, request: &LibraryRequest) -> Finding {
    let name = &request.name;
    let values = Values::default().with("library", name).with("needed_by", graph.objects[request.by].path.display());
    match &request.answer {
        LoadOutcome::Broken(candidate) => {
            let values = values.with("path", candidate.path.display()).with("why", candidate.problem());
            MessageTemplate::LibraryDamaged.to_finding(&values.with("picked_by", &candidate.place))
        }
        LoadOutcome::Absent(candidates) => {
            let values = values.with("looked_in", searched_directories(candidates));
            let values = values.with("cure", missing_library_hint(env, name));
            let major = CUDNN.major(name);
            if let Some((other, candidate)) = major.and_then(|major| other_cudnn(graph, request.by, major)) {
                let version = file_version(graph.files(), &candidate.path);
                let found = version.map_or_else(|| other.to_string(), |version| version.to_string());
                let values = values.with("found", found).with("major", other).with("path", candidate.path.display());
                return MessageTemplate::CudnnOtherMajorLinked.to_finding(&values);
            }
            let beside = if major.is_none() { other_major(env, candidates, name) } else { None };
            let values = values.with_known("beside", beside.map(|file| file.display().to_string()));
            match (wrong_architecture(candidates), major) {
                (Some(foreign), _) => {
                    let values = values.with("path", foreign.path.display()).with("why", foreign.problem());
                    MessageTemplate::WrongMachineElsewhere.to_finding(&values)
                }
                (None, Some(_)) => MessageTemplate::CudnnAbsentLinked.to_finding(&values),
                (None, None) => MessageTemplate::LibraryAbsent.to_finding(&values),
            }
        }
        // Callers pass unresolved requests only.
        LoadOutcome::Object(..) => {
            MessageTemplate::LibraryAbsent.to_finding(&values.with("cure", missing_library_hint(env, name)))
        }
    }
}

fn wrong_architecture(candidates: &[LibraryCandidate]) -> Option<&LibraryCandidate> {
    candidates.iter().find(|candidate| matches!(candidate.inspection, Inspection::WrongArchitecture(_)))
}

/// Returns the hint for a missing library. If the file is on this machine outside of the search paths, the hint names
/// its directory.
fn missing_library_hint(env: &Env, name: &str) -> String {
    if let Some(dir) = find_outside_search_paths(env, name) {
        return MessageFragment::FoundElsewhere.render(&Values::default().with("folder", dir.display()));
    }
    install_hint(name)
}

/// Returns the finding for a library that comes with a program for another processor only. `describe` names a file.
pub(crate) fn foreign_library(
    name: &str,
    by: &str,
    candidates: &[LibraryCandidate],
    describe: impl Fn(&Path) -> String,
) -> Option<Finding> {
    let candidate = wrong_architecture(candidates)?;
    let values = Values::default().with("library", name).with("needed_by", by).with("cure", install_hint(name));
    let values = values.with("looked_in", searched_directories(candidates));
    let values = values.with("path", describe(&candidate.path)).with("why", candidate.problem());
    Some(MessageTemplate::WrongMachineElsewhere.to_finding(&values))
}

/// Returns a library with another major version in the directories that were searched, or in common directories of NVIDIA's
/// libraries.
fn other_major(env: &Env, looked: &[LibraryCandidate], name: &str) -> Option<PathBuf> {
    let (stem, wanted) = name.split_once(".so.")?;
    let start = format!("{stem}.so.");
    let searched = looked.iter().filter_map(|candidate| candidate.path.parent().map(Path::to_owned));
    let usual = in_usual_dirs(env, &format!("{stem}.so")).filter_map(|file| file.parent().map(Path::to_owned));
    searched.chain(usual).find_map(|dir| {
        let entries = std::fs::read_dir(dir).ok()?;
        let others = entries.flatten().filter(|entry| {
            let name = entry.file_name();
            let version = name.to_str().and_then(|name| name.strip_prefix(&start));
            version.is_some_and(|version| version != wanted && version.bytes().all(|byte| byte.is_ascii_digit()))
        });
        others.map(|entry| entry.path()).max()
    })
}

/// Returns a common directory of NVIDIA's libraries that contains a file of this name.
fn find_outside_search_paths(env: &Env, name: &str) -> Option<PathBuf> {
    in_usual_dirs(env, name).next().and_then(|file| file.parent().map(Path::to_owned))
}

/// Returns the files of this name in common directories of NVIDIA's libraries, whether the loader searches there or
/// not.
pub(crate) fn in_usual_dirs(env: &Env, name: &str) -> impl Iterator<Item = PathBuf> + use<> {
    let mut roots: Vec<PathBuf> = cudnn::ROOT_VARIABLES
        .iter()
        .chain(&["CUDA_TOOLKIT_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR", "CONDA_PREFIX"])
        .filter_map(|variable| env.var_os(variable))
        .map(PathBuf::from)
        .collect();
    roots.extend(["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda", "/usr/lib/wsl"].map(PathBuf::from));
    // `stubs` is excluded: its files are for the linker only.
    let below = ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"];
    let name = name.to_owned();
    roots
        .into_iter()
        .flat_map(move |root| below.map(|below| root.join(below)))
        .filter(|dir| dir.is_absolute())
        .map(move |dir| dir.join(&name))
        .filter(|file| file.is_file())
}

/// Maximum number of directories that are listed for each place.
const SHOWN: usize = 3;

/// Returns the places where the loader searched, each once, in search order.
fn searched_directories(candidates: &[LibraryCandidate]) -> String {
    let mut places: Vec<(&'static str, Vec<String>)> = Vec::new();
    for candidate in candidates {
        let (place, entry) = match &candidate.place {
            SearchSource::LibraryPath(entry) => ("LD_LIBRARY_PATH", entry.clone()),
            SearchSource::Rpath(_, entry) => ("DT_RPATH", entry.clone()),
            SearchSource::Runpath(_, entry) => ("DT_RUNPATH", entry.clone()),
            SearchSource::Cache(file) | SearchSource::PathFile(file) => ("", file.display().to_string()),
            SearchSource::Path => ("", candidate.path.display().to_string()),
            SearchSource::System
            | SearchSource::Program
            | SearchSource::Loader
            | SearchSource::Loaded
            | SearchSource::Package => ("the loader's cache and the system directories", String::new()),
        };
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, entries)) if !entries.contains(&entry) => entries.push(entry),
            Some(_) => {}
            None => places.push((place, vec![entry])),
        }
    }
    let mut text = String::new();
    for (index, (place, entries)) in places.iter().enumerate() {
        let mut entries: Vec<_> = entries.iter().filter(|entry| !entry.is_empty()).map(String::as_str).collect();
        // cargo puts its own directories first, so the last entries are those that the user set.
        let more = entries.len().saturating_sub(SHOWN);
        let left_out = format!("{more} more before:");
        if more > 0 {
            entries.splice(..more, [left_out.as_str()]);
        }
        let entries = entries.join(", ").replacen(":, ", ": ", usize::from(more > 0));
        let separator = if index == 0 { "" } else { "; " };
        let _ = match (place.is_empty(), entries.is_empty()) {
            (true, _) => write!(text, "{separator}{entries}"),
            (false, true) => write!(text, "{separator}{place}"),
            (false, false) => write!(text, "{separator}{place} ({entries})"),
        };
    }
    text
}

/// Returns the cuDNN of another major that an object would find.
fn other_cudnn(graph: &LoadGraph, by: usize, major: u32) -> Option<(u32, LibraryCandidate)> {
    for other in CUDNN.majors.clone().rev().filter(|other| *other != major) {
        let found = graph.resolve_file(by, &format!("{}.{other}", cudnn::LINK_NAME));
        if let Some(candidate) = found.filter(|candidate| candidate.inspection == Inspection::Usable) {
            return Some((other, candidate));
        }
    }
    None
}

/// Returns the finding for a cuDNN that an object needs, if only one of another major comes with the program, which `is_inside`
/// selects. `describe` names a file.
pub(crate) fn brought_cudnn_of_other_major(
    graph: &LoadGraph,
    request: &LibraryRequest,
    is_inside: impl Fn(&LibraryCandidate) -> bool,
    describe: impl Fn(&Path) -> String,
) -> Option<Finding> {
    let LoadOutcome::Absent(candidates) = &request.answer else { return None };
    let (other, candidate) = other_cudnn(graph, request.by, CUDNN.major(&request.name)?)?;
    if !is_inside(&candidate) {
        return None;
    }
    let values = Values::default().with("library", &request.name).with("cure", install_hint(&request.name));
    let values = values.with("needed_by", describe(&graph.objects[request.by].path));
    let values = values.with("looked_in", searched_directories(candidates));
    let values = values.with("found", other).with("major", other).with("path", describe(&candidate.path));
    Some(MessageTemplate::CudnnOtherMajorLinked.to_finding(&values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_major_is_named() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path();
        let looked = LibraryCandidate {
            path: dir.join("libcublas.so.11"),
            place: SearchSource::LibraryPath(dir.display().to_string()),
            inspection: Inspection::Missing,
        };
        let found = |files: &[&str]| {
            for file in files {
                std::fs::write(dir.join(file), "").expect("a file can be written");
            }
            other_major(&Env::without_variables(), std::slice::from_ref(&looked), "libcublas.so.11")
        };
        assert_eq!(found(&["libcublasLt.so.12", "libcublas.so.12.8.4", "libcublas.so"]), None);
        assert_eq!(found(&["libcublas.so.12"]), Some(dir.join("libcublas.so.12")));
    }
}
