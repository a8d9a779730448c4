//! Predicts, without running a program, what the loader and then the shim report when the program starts.
//!
//! This covers programs that fail before the shim can report anything: a missing library, a library of another major, a
//! file for another machine. If something cannot be determined, there is no finding, because a false alarm costs more
//! than a failure that the loader explains.

mod absent;
mod closure;
mod components;
mod dlls;
mod family;
mod missing;
mod opened;
mod python;
mod symbols;

use std::path::{Path, PathBuf};

use crate::binary::examined::{NotExamined, mark_only_code};
use crate::binary::file::{self, Binary, TargetOs};
use crate::binary::loader::{self, Inspection, LibraryCandidate, LoadGraph, LoadOutcome, Object};
use crate::binary::mapped_file::OpenFiles;
use crate::host::facts::{CudartState, CudnnState, Host, Inner, LoaderVersion};
use crate::host::judge;
use crate::host::libcuda_fix;
use crate::host::library_version::{
    self, exported_version, file_version, in_name, inner_file, made_with, part_version,
};
use crate::host::machine::{Alternatives, Components, DriverProbe, Machine, detect_for_graph};
use crate::verdict::{Verdict, is_about_driver_or_gpu};
pub(crate) use absent::{is_dll_name, is_of_program, is_searched_inside, reaches_cuda};
use closure::Closure;
pub(crate) use closure::{is_in_own_search_path, is_part_of_driver, mark_unchecked};
use components::Scope;
pub(crate) use components::is_brought;
use cudaguard::internal::elf::machine;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{self, Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::json::{Value, object};
use cudaguard::internal::manifest::{Linkage, Manifest, Requirement};
use cudaguard::internal::policy::{GpuNeed, Runtime};
use cudaguard::internal::vendor::{self, CUDART, CUDNN};
use cudaguard::internal::version::Version;
pub(crate) use dlls::{components_of_dlls, finding_of_processor, has_dlls};
pub(crate) use family::builtins_beside;
use missing::missing_library_finding;
pub(crate) use missing::{brought_cudnn_of_other_major, foreign_library, in_usual_dirs};
pub(crate) use opened::{FileOpens, OpeningFiles, load_opened_here, load_opened_inside};
pub(crate) use python::{is_searched_inside as is_searched_in_environment, place_in_environment};
pub(crate) use symbols::{SymbolFile, findings_of_missing, symbol_findings_among};

/// Prediction for the start of a program.
#[derive(Debug)]
pub struct DryRun {
    /// All objects that the loader loads.
    pub graph: LoadGraph,
    /// Errors with which the loader ends the program.
    pub by_loader: Vec<Finding>,
    /// Findings of the shim if the loader succeeds, each with the effect of an error on the start.
    pub by_shim: Vec<(AtStart, Finding)>,
    /// Driver and GPUs of this machine; `None` if nothing needs them.
    pub machine: Option<Machine>,
    /// The manifests that were checked, those of the program first.
    pub manifests: Vec<Manifest>,
    /// Groups of manifests of which one is sufficient.
    pub alternatives: Alternatives,
    /// Parts of the program and its libraries that were not examined.
    pub not_examined: Vec<NotExamined>,
    /// The program and its libraries, except those of NVIDIA's and of the system.
    pub files: Vec<PathBuf>,
}

/// Effect of an error on the start of a program, from `[runtime]` in its manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtStart {
    /// The error ends the program.
    Ends,
    /// The error ends the program only if `CUDAGUARD=enforce` is set, because of `mismatch = "warn"`.
    Warns,
    /// The error never ends the program: it is about the GPU or driver, and `gpu = "optional"` defers such errors to
    /// `check()`.
    LeftToCheck,
}

impl AtStart {
    fn from_finding(manifest: &Manifest, finding: &Finding) -> Self {
        match manifest.runtime {
            Runtime { gpu: GpuNeed::Optional, .. } if is_about_driver_or_gpu(finding.code) => Self::LeftToCheck,
            Runtime { mismatch_warns: true, .. } => Self::Warns,
            Runtime { .. } => Self::Ends,
        }
    }
}

impl DryRun {
    /// Returns the NVIDIA libraries that the loader loads.
    pub fn loaded_libraries(&self) -> Vec<Loaded> {
        let loaded = |object: &Object| {
            let name = object.path.file_name()?.to_str()?;
            let known = |library: &&vendor::Library| {
                library.is_named(name) || object.soname.as_deref().is_some_and(|soname| library.is_named(soname))
            };
            let library = vendor::ALL.into_iter().find(known)?;
            Some(Loaded {
                library,
                version: file_version(self.graph.files(), library, &object.path),
                path: object.path.clone(),
            })
        };
        // The first object is the examined file, which may itself be a library.
        self.graph.objects.iter().skip(1).filter_map(loaded).collect()
    }

    /// Returns the findings of loader and shim in report order. The verdict depends on their severities, not on
    /// `[runtime]`.
    pub fn all_findings(&self) -> Vec<Finding> {
        let mut findings = self.by_loader.clone();
        findings.extend(self.by_shim.iter().map(|(_, finding)| finding.clone()));
        findings.extend(family::findings_of_graph(&self.graph, self.machine.as_ref()));
        findings.extend(opened::absent_names(&self.graph));
        mark_unchecked(&mut findings, &self.manifests);
        finding::sort_findings(&mut findings);
        findings
    }
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

    /// Returns the library as a JSON object.
    pub fn to_json(&self) -> Value {
        let mut value = object([("library", self.library.key.into())]);
        value.insert_some("version", self.version.map(|version| version.to_string()));
        value.insert_some("path", Some(self.path.display().to_string()));
        value
    }
}

/// Returns the findings that end this program in this environment before its own code runs, by the loader or by the
/// shim. Returns nothing if the file is not a readable program (a script, a missing file): starting it gives a better
/// message. Warnings of the shim are omitted.
pub fn predict_start(program: &Path, env: &Env) -> Vec<Finding> {
    simulate(program, env).map(|seen| fatal_findings(env, seen)).unwrap_or_default()
}

/// Returns the findings that end the start.
fn fatal_findings(env: &Env, predicted: DryRun) -> Vec<Finding> {
    let enforced = env.var("CUDAGUARD").as_deref() == Some("enforce");
    let ends = |at_start: AtStart| at_start == AtStart::Ends || (enforced && at_start == AtStart::Warns);
    let by_shim = predicted.by_shim.into_iter().filter(|(at_start, _)| ends(*at_start)).map(|(_, finding)| finding);
    let mut findings: Vec<Finding> = predicted.by_loader.into_iter().chain(by_shim).collect();
    findings.retain(|finding| Verdict::from_findings([finding]) == Verdict::Refused);
    finding::sort_findings(&mut findings);
    findings
}

/// Returns the findings that refuse this program on this machine: those with which [`simulate_and_check`] refuses it, except
/// those that `[runtime]` defers. The driver is queried only if its files alone cause an error, and only its own answer can
/// then refuse the program. Returns nothing if the file is not a readable program.
pub fn start_here(program: &Path, env: &Env, probe: &DriverProbe) -> Vec<Finding> {
    let files = OpenFiles::default();
    let read = || Binary::from_contents(program, files.open(program)?);
    if cfg!(windows) {
        return read().map(|binary| dlls::start_here(&binary, env, probe)).unwrap_or_default();
    }
    let Some(binary) = read().ok().filter(|binary| binary.os == Some(TargetOs::Linux)) else { return Vec::new() };
    let Ok(mut predicted) = simulate_closure(&binary, env, &files, None) else { return Vec::new() };
    let refuses = |finding: &Finding| {
        Verdict::from_findings([finding]) == Verdict::Refused && is_about_driver_or_gpu(finding.code)
    };
    // The driver is not queried if no error depends on it.
    let asks = |(at_start, finding): &(AtStart, Finding)| *at_start != AtStart::LeftToCheck && refuses(finding);
    if predicted.by_shim.iter().any(asks) {
        let Ok(asked) = simulate_closure(&binary, env, &files, Some(probe)) else { return Vec::new() };
        predicted = asked;
        if predicted.machine.as_ref().is_none_or(Machine::is_silent) {
            // The shim checks this itself; it runs inside the process and has more information.
            predicted.by_shim.retain(|(_, finding)| !is_about_driver_or_gpu(finding.code));
        }
    }
    fatal_findings(env, predicted)
}

/// Loads the libraries that come with a program, as far as Python loads them or files open them, and returns those that are not found.
pub(crate) fn load_brought(graph: &mut LoadGraph) -> Vec<NotExamined> {
    python::load_from_packages(graph);
    opened::load_opened(graph, Scope::Brought)
}

/// Predicts the start of this program, with all findings. The error is the reason why the file cannot be read.
pub fn simulate(program: &Path, env: &Env) -> Result<DryRun, String> {
    simulate_loading(program, env, &OpenFiles::default(), None, |_| None)
}

/// Checks this program or library on this machine: the loader, the driver, the GPUs and every component, including
/// components that only report their result. Facts that no note contains are read from the files.
pub fn simulate_and_check(
    program: &Binary,
    env: &Env,
    files: &OpenFiles,
    probe: Option<&DriverProbe>,
) -> Result<DryRun, String> {
    if program.os == Some(TargetOs::Windows) {
        return Err(format!("{}: is for Windows, and this machine does not run it", program.path.display()));
    }
    files.insert(&program.path, program.data());
    let mut predicted = simulate_closure(program, env, files, probe)?;
    if predicted.machine.as_ref().is_some_and(Machine::is_silent) {
        // Such an error needs the driver's own answer, which is missing here.
        let mine = predicted.by_shim.iter_mut().map(|(_, finding)| finding);
        for finding in mine.filter(|finding| is_about_driver_or_gpu(finding.code)) {
            finding.severity = finding.severity.min(Severity::Warning);
        }
    }
    Ok(predicted)
}

/// Simulates the loader, and checks all files of the closure on this machine.
fn simulate_closure(
    program: &Binary,
    env: &Env,
    files: &OpenFiles,
    probe: Option<&DriverProbe>,
) -> Result<DryRun, String> {
    let mut manifests = program.manifests().filter_map(|note| Some(note.ok()?.manifest));
    let names = manifests.find_map(|manifest| manifest.libcuda_names()).unwrap_or_default();
    simulate_loading(&program.path, env, files, Some(program), |graph| {
        Some(detect_for_graph(env, graph, &names, probe))
    })
}

/// Simulates the loader, then checks the manifests. `examined`: the program, if all manifests are to be checked, each
/// completed from its file. `None` checks only the manifests that a guard checks at start-up, unchanged.
fn simulate_loading(
    program: &Path,
    env: &Env,
    files: &OpenFiles,
    examined: Option<&Binary>,
    machine: impl FnOnce(&mut LoadGraph) -> Option<Machine>,
) -> Result<DryRun, String> {
    let mut graph = loader::resolve_with(program, env, files)?;
    if examined.is_some() {
        python::load_from_packages(&mut graph);
    }
    let (objects, components) = match examined {
        None => guarded_manifests(&graph),
        Some(program) => {
            let missing = opened::load_opened(&mut graph, Scope::Loaded);
            let (objects, mut components) = Closure::new(&graph, program, Scope::Loaded).components();
            components.not_examined.extend(missing);
            if components.manifests.is_empty() {
                mark_only_code(&mut components.not_examined);
            }
            (objects, components)
        }
    };
    let Components { manifests, alternatives, findings: mut of_files, not_examined, opened, files, .. } = components;
    of_files.extend(opened::absent_of_crates(&opened, &graph));
    let notes: Vec<(usize, Manifest)> = objects.into_iter().zip(manifests).collect();
    let completed = examined.is_some();
    let component = notes.iter().find(|(object, _)| *object == 0).map(|(_, manifest)| manifest.component.to_string());
    let of_component = |finding: Finding| match &component {
        Some(component) => finding.with_component(component.clone()),
        None => finding,
    };
    let mut findings = Vec::new();
    if let Some(finding) = other_machine(&graph).or_else(|| no_interpreter(&graph)) {
        findings.push(finding);
    } else {
        let mut seen = Vec::new();
        for request in graph.unresolved_requests() {
            if !seen.contains(&request.name) {
                seen.push(request.name.clone());
                findings.push(missing_library_finding(env, &graph, request));
            }
        }
        if findings.is_empty() {
            findings.extend(graph.missing_versions().iter().map(|missing| {
                let values = Values::default().with("path", missing.library.display()).with("value", &missing.version);
                MessageTemplate::LibraryTooOld.to_finding(&values.with("needed_by", missing.by.display()))
            }));
        }
    }
    let by_loader = findings.into_iter().map(of_component).collect();
    let (by_shim, manifests) = (Vec::new(), Vec::new());
    let mut predicted =
        DryRun { graph, by_loader, by_shim, machine: None, manifests, alternatives, not_examined, files };
    if !predicted.by_loader.is_empty() {
        predicted.manifests = notes.into_iter().map(|(_, manifest)| manifest).collect();
        return Ok(predicted);
    }
    let graph = &mut predicted.graph;
    // A library that is too old often lacks a function too; the finding about its version explains this.
    let mut lacking = symbols::symbol_findings(graph, completed);
    if completed && notes.iter().any(|(_, manifest)| !manifest.opens.is_empty()) {
        lacking.extend(family::lookup_findings(graph, |_| true));
    }
    predicted.by_loader = lacking.into_iter().map(of_component).collect();
    // Each component has its own host, because each file has its own search paths.
    let own = |(object, manifest): &(usize, Manifest)| {
        (resolve_cudnn(graph, *object, manifest), resolve_cudart(graph, manifest))
    };
    let libraries: Vec<(CudnnState, CudartState)> = notes.iter().map(own).collect();
    if !notes.is_empty() {
        predicted.machine = machine(&mut predicted.graph);
    }
    let unseen = Machine::default();
    let seen = predicted.machine.as_ref().unwrap_or(&unseen);
    let (mut hosts, mut of_each) = (Vec::new(), Vec::new());
    for ((_, manifest), (guarded, cudart)) in notes.iter().zip(libraries) {
        let host = Host { cudart, ..seen.host_with(guarded) };
        of_each.push(judge::judge(manifest, &host));
        hosts.push(host);
    }
    predicted.manifests = notes.into_iter().map(|(_, manifest)| manifest).collect();
    predicted.alternatives.downgrade_optional(&mut of_each, &predicted.manifests);
    for (manifest, found) in predicted.manifests.iter().zip(of_each) {
        predicted.by_shim.extend(found.into_iter().map(|finding| (AtStart::from_finding(manifest, &finding), finding)));
    }
    if let Some(host) = hosts.first().filter(|_| completed) {
        let together = judge::together(&predicted.manifests, host);
        predicted.by_shim.extend(together.map(|finding| (AtStart::Ends, finding)));
    }
    if let Some(driver) = predicted.machine.as_ref().and_then(|machine| machine.driver.as_ref()) {
        let needs = libcuda_fix::needed_cuda(&predicted.manifests, &predicted.graph);
        let findings = predicted.by_shim.iter_mut().map(|(_, finding)| finding);
        libcuda_fix::adapt_hints(findings, env, &predicted.graph, driver, needs);
    }
    let warning = predicted.machine.as_ref().filter(|_| completed).and_then(Machine::unknowns_finding);
    predicted.by_shim.extend(of_files.into_iter().chain(warning).map(|finding| (AtStart::Ends, finding)));
    Ok(predicted)
}

/// Returns the manifests that a guard would check, each with the index of the object that contains it. The guard of the
/// program also checks the libraries. In a program without a guard, only libraries with `library_enforces` are checked.
fn guarded_manifests(graph: &LoadGraph) -> (Vec<usize>, Components) {
    let mut found = Vec::new();
    for (index, object) in graph.objects.iter().enumerate() {
        let Ok(notes) = file::notes_in(object.data()) else { continue };
        found.extend(notes.iter().filter_map(|note| Some((index, note.decode().ok()?.manifest))));
    }
    let guarded = found.iter().any(|(index, _)| *index == 0);
    found.retain(|(_, manifest)| guarded || manifest.runtime.library_enforces);
    let (objects, manifests) = found.into_iter().unzip();
    (objects, Components { manifests, ..Components::default() })
}

/// Returns an error for a program of another processor, unless an emulator is registered for it.
fn other_machine(graph: &LoadGraph) -> Option<Finding> {
    let program = graph.machine();
    let native = loader::native_machine()?;
    let emulated = || {
        let name = machine::machine_name(program);
        [format!("/proc/sys/fs/binfmt_misc/qemu-{name}"), format!("/proc/sys/fs/binfmt_misc/{name}")]
            .iter()
            .any(|path| Path::new(path).exists())
    };
    // 64-bit x86 runs 32-bit x86. Only the kernel knows whether this aarch64 runs 32-bit arm.
    let same = matches!((native, program), (machine::X86_64, machine::X86) | (machine::AARCH64, machine::ARM));
    if program == native || same || emulated() {
        return None;
    }
    let values = Values::default().with("file", graph.objects[0].path.display()).with("place", "this machine");
    let values =
        values.with("processor", machine::machine_name(program)).with("machine", machine::machine_name(native));
    Some(MessageTemplate::WrongMachine.to_finding(&values))
}

fn no_interpreter(graph: &LoadGraph) -> Option<Finding> {
    let (why, interpreter) = (graph.interpreter_problem.as_ref()?, graph.interpreter.as_ref()?);
    let values = Values::default().with("library", interpreter.display()).with("why", why);
    let values = values.with("file", graph.objects[0].path.display());
    Some(MessageTemplate::LibraryAbsentInterpreter.to_finding(&values))
}

/// Returns the shared libcudart that this component gets. The file contains its release (13.0 to 13.5) in no text or
/// note, only in the code of `cudaRuntimeGetVersion`.
fn resolve_cudart(graph: &LoadGraph, manifest: &Manifest) -> CudartState {
    let Some((soname, _)) = manifest.shared_cudart() else { return CudartState::Unknown };
    let is_it = |object: &&Object| {
        object.is_named(&soname) || object.soname.as_deref().is_some_and(|own| vendor::plain_name(own) == soname)
    };
    let loaded = graph.objects.iter().find(is_it);
    loaded.map_or(CudartState::Unknown, |loaded| CudartState::Found {
        path: loaded.path.clone(),
        version: in_name(&CUDART, &loaded.path),
    })
}

/// Returns the cuDNN that this object gets or would get, found as the shim finds it, but from files alone.
fn resolve_cudnn(graph: &mut LoadGraph, object: usize, manifest: &Manifest) -> CudnnState {
    let row = manifest.requires.iter().find_map(|requirement| match requirement {
        Requirement::Library { soname, linkage, .. } => Some((soname.clone(), *linkage)),
        _ => None,
    });
    let Some((soname, linkage)) = row else { return CudnnState::Unknown };
    let linked = graph.requests.iter().find_map(|request| match &request.answer {
        LoadOutcome::Object(index, _) if request.by == object && CUDNN.is_named(&request.name) => {
            Some((*index, request.name.clone()))
        }
        _ => None,
    });
    // A crate that opens cuDNN tries names in its own order and uses the first that opens, because it is already loaded
    // or because the loader finds it.
    let names = manifest.library_names().unwrap_or_else(|| vec![soname.clone()]);
    let loaded = |graph: &LoadGraph, name: &str| graph.objects.iter().position(|object| object.is_named(name));
    let found = match linked {
        Some(found) => Some(found),
        None if linkage == Linkage::Dlopened => {
            names.iter().find_map(|name| Some((graph.dlopen_library(object, name)?, name.clone())))
        }
        None => names.iter().find_map(|name| Some((loaded(graph, name)?, name.clone()))),
    };
    let Some((index, name)) = found else {
        if linkage != Linkage::Dlopened {
            return CudnnState::Unknown;
        }
        // A file that exists but cannot be loaded is neither a working cuDNN nor an absent one.
        let broken = |name: &String| {
            let mut all = graph.candidates(object, name).into_iter();
            Some((all.find(|candidate| matches!(candidate.inspection, Inspection::Broken(_)))?, name.clone()))
        };
        if let Some((LibraryCandidate { path, place, .. }, name)) = names.iter().find_map(broken) {
            return CudnnState::Found {
                path,
                picked_by: Some(place.in_short()),
                major: CUDNN.major(&name).unwrap_or_default(),
                version: None,
                loader: LoaderVersion::default(),
                made_with: None,
                inner: Vec::new(),
            };
        }
        let known = !names.iter().any(|name| graph.is_shut(object, name));
        return if known { CudnnState::Absent } else { CudnnState::Unknown };
    };
    let path = graph.objects[index].path.clone();
    let by_name = in_name(CUDNN, &path);
    // If the name has no major, or is a link named after another major, the soname of the file decides.
    let own = graph.objects[index].soname.clone().filter(|own| CUDNN.major(own).is_some());
    let name = vendor::plain_name(&own.unwrap_or(name)).into_owned();
    let suffix = name.strip_prefix(CUDNN.stem).unwrap_or_default();
    let mut inner = Vec::new();
    for requirement in &manifest.requires {
        let Requirement::Part { file, symbol, .. } = requirement else { continue };
        // Parts of another major do not belong to this cuDNN.
        if suffix.is_empty() || !file.ends_with(suffix) {
            continue;
        }
        let path = inner_file(graph, index, file, by_name);
        let version = path.as_deref().and_then(|path| match CUDNN.parts.iter().find(|part| part.file == *file) {
            Some(part) => part_version(graph.files(), CUDNN, path, part),
            None => exported_version(graph.files(), path, symbol),
        });
        if path.is_some() || !graph.is_shut(index, file) {
            inner.push(Inner { file: file.clone(), present: path.is_some(), version, path });
        }
    }
    let major = CUDNN.major(&name).unwrap_or_default();
    // A cuDNN of another major than the manifest's has parts without a row, and these contain its version.
    let own_word = |part: &vendor::Part| {
        let path = inner_file(graph, index, part.file, by_name)?;
        exported_version(graph.files(), &path, part.symbol)
    };
    let version = inner.iter().find_map(|inner| inner.version);
    let version = version.or_else(|| CUDNN.parts_of_major(major).find_map(own_word)).or(by_name);
    let picked_by = Some(graph.objects[index].place.in_short());
    CudnnState::Found {
        picked_by,
        major,
        version,
        loader: library_version::loader_version(CUDNN, &path),
        made_with: inner.iter().find_map(|inner| made_with(graph.files(), CUDNN, inner.path.as_deref()?)),
        inner,
        path,
    }
}
