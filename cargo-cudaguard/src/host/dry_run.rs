//! A program on this machine: the files that the dynamic linker loads for it, and what it reports about them.

mod absent_libraries;
mod missing;
mod opened_by_name;
mod origin;
mod python;
mod symbol_findings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::binary::elf::machine_name;
use crate::binary::examined::NotExamined;
use crate::binary::loader::{self, Inspection, LoadGraph};
use crate::host::library_version::{file_version, in_name};
use crate::host::machine::{Components, HostLibrary, Machine, OTHER_LIBRARIES, opened_cudnn};
use crate::knowledge::vendor::{self, CUDNN};
pub(crate) use absent_libraries::{is_dll_name, is_of_program, is_searched_inside, reaches_cuda};
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{Finding, MessageTemplate, Values};
use cudaguard::internal::manifest::Manifest;
use cudaguard::internal::version::Version;
use missing::missing_library_finding;
pub(crate) use missing::{brought_cudnn_of_other_major, foreign_library, in_usual_dirs};
use object::elf::{EM_386, EM_AARCH64, EM_ARM, EM_X86_64};
pub(crate) use opened_by_name::{
    FileOpens, OpeningFiles, absent_names, builtins_beside, load_opened_here, load_opened_inside,
};
pub(crate) use origin::{Scope, is_brought, is_in_own_search_path, is_part_of_driver};
pub(crate) use python::{is_searched_inside as is_searched_in_environment, place_in_environment};
use serde::{Serialize, Serializer};
pub(crate) use symbol_findings::{SymbolFile, findings_of_missing, symbol_findings, symbol_findings_among};

/// Prediction for the start of a program.
#[derive(Debug)]
pub struct DryRun {
    /// All objects that the loader loads.
    pub graph: LoadGraph,
    /// The findings in report order. The verdict depends on their severities, not on `[runtime]`.
    pub findings: Vec<Finding>,
    /// False if the dynamic linker ends the program because of its files.
    pub is_loaded: bool,
    /// Driver and GPUs of this machine; `None` if nothing needs them.
    pub machine: Option<Machine>,
    /// The requirements that were checked, those of the program first.
    pub components: Components,
}

/// Returns the NVIDIA libraries that the loader loads.
pub(crate) fn loaded_libraries(graph: &LoadGraph) -> Vec<Loaded> {
    // The first object is the examined file, which may itself be a library.
    let loaded = graph.objects.iter().skip(1).filter_map(|object| {
        let name = object.path.file_name()?.to_str()?;
        let library = vendor::DESCRIBED.into_iter().find(|library| {
            library.is_named(name) || object.soname.as_deref().is_some_and(|soname| library.is_named(soname))
        })?;
        let version = file_version(graph.files(), &object.path);
        Some(Loaded { library, version, path: object.path.clone() })
    });
    loaded.collect()
}

/// An NVIDIA library that a program gets.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The library.
    pub library: &'static vendor::Library,
    /// Version in its files; `None` if they do not contain it.
    pub version: Option<Version>,
    /// Path of the file.
    pub path: PathBuf,
}

impl Loaded {
    /// `NCCL 2.21.5 (/opt/nccl/lib/libnccl.so.2)`.
    pub fn describe(&self) -> String {
        let version = self.version.map(|version| format!(" {version}")).unwrap_or_default();
        format!("{}{version} ({})", self.library.name, self.path.display())
    }
}

impl Serialize for Loaded {
    fn serialize<S: Serializer>(&self, json: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct LoadedView {
            library: &'static str,
            version: Option<String>,
            path: String,
        }

        let version = self.version.map(|version| version.to_string());
        LoadedView { library: self.library.key, version, path: self.path.display().to_string() }.serialize(json)
    }
}

/// Loads the libraries that Python loads for a file, and those that its files open, and returns those that are not found.
pub(crate) fn load_further(graph: &mut LoadGraph, scope: Scope) -> Vec<NotExamined> {
    python::load_from_packages(graph);
    opened_by_name::load_opened(graph, scope)
}

/// Returns the errors with which the dynamic linker of this machine ends a program because of its files.
pub(crate) fn loader_findings(env: &Env, graph: &LoadGraph) -> Vec<Finding> {
    if let Some(finding) = other_machine(graph).or_else(|| no_interpreter(graph)) {
        return vec![finding];
    }
    let (mut findings, mut seen) = (Vec::new(), Vec::new());
    for request in graph.unresolved_requests() {
        if !seen.contains(&request.name) {
            seen.push(request.name.clone());
            findings.push(missing_library_finding(env, graph, request));
        }
    }
    if findings.is_empty() {
        for missing in graph.missing_versions() {
            let values = Values::default().with("path", missing.library.display()).with("value", &missing.version);
            let values = values.with("needed_by", missing.by.display());
            findings.push(MessageTemplate::LibraryTooOld.to_finding(&values));
        }
    }
    findings
}

/// Returns NVIDIA's libraries of this machine as far as they matter for the program of a graph: those that are loaded, and files
/// that crates would pick and fail to load. The list of a library is absent if not all directories could be searched.
pub(crate) fn libraries_of(graph: &LoadGraph, manifests: &[Manifest]) -> BTreeMap<&'static str, Vec<HostLibrary>> {
    let mut all = BTreeMap::from([(OTHER_LIBRARIES, Vec::new())]);
    for library in vendor::DESCRIBED {
        let loaded =
            graph.objects.iter().skip(1).filter(|object| graph.is_opened_by_name(object)).filter_map(|object| {
                let names = [object.soname.as_deref(), Some(object.name.as_str())];
                let soname = names.into_iter().flatten().find(|name| library.is_named(name))?;
                Some(HostLibrary {
                    soname: Some(vendor::plain_name(soname).into_owned()),
                    version: in_name(library, &object.path),
                    path: Some(object.path.display().to_string()),
                    by: Some(object.place.in_short()),
                    taken: true,
                    ..HostLibrary::default()
                })
            });
        let _ = all.insert(library.key, loaded.collect());
    }
    for name in manifests.iter().filter_map(opened_cudnn).flatten() {
        let mut candidates = graph.candidates(0, &name).into_iter();
        if let Some(broken) = candidates.find(|candidate| matches!(candidate.inspection, Inspection::Broken(_))) {
            let problem = Some(broken.problem());
            let library = HostLibrary { soname: Some(name), problem, taken: true, ..HostLibrary::default() };
            all.entry(CUDNN.key).or_default().push(library);
        } else if graph.is_shut(0, &name) {
            let _ = all.remove(CUDNN.key);
        }
    }
    all
}

/// Returns an error for a program of another processor, unless an emulator is registered for it.
fn other_machine(graph: &LoadGraph) -> Option<Finding> {
    let program = graph.machine();
    let native = loader::native_machine()?;
    let name = machine_name(program);
    // 64-bit x86 runs 32-bit x86. Only the kernel knows whether this aarch64 runs 32-bit arm.
    let same = matches!((native, program), (EM_X86_64, EM_386) | (EM_AARCH64, EM_ARM));
    if program == native || same {
        return None;
    }
    let emulators = Path::new("/proc/sys/fs/binfmt_misc");
    if emulators.join(format!("qemu-{name}")).exists() || emulators.join(&*name).exists() {
        return None;
    }
    let values = Values::default().with("file", graph.objects[0].path.display()).with("place", "this machine");
    let values = values.with("processor", name).with("machine", machine_name(native));
    Some(MessageTemplate::WrongMachine.to_finding(&values))
}

fn no_interpreter(graph: &LoadGraph) -> Option<Finding> {
    let (why, interpreter) = (graph.interpreter_problem.as_ref()?, graph.interpreter.as_ref()?);
    let values = Values::default().with("library", interpreter.display()).with("why", why);
    let values = values.with("file", graph.objects[0].path.display());
    Some(MessageTemplate::LibraryAbsentInterpreter.to_finding(&values))
}
