//! Diagnosis of this machine, for CUDA programs in general or for one program, with every candidate file for a library and the
//! reason why the loader picks it or not.

mod symptoms;
mod windows;

use crate::knowledge::vendor::use_names_of_windows;
use crate::knowledge::vendor::{self, CUDART, LIBCUDA};
use symptoms::{HostSymptoms, diagnose_host};

use std::fs;
use std::path::{Path, PathBuf};

use crate::binary::file::Binary;
use crate::binary::loader::{Inspection, LoadGraph};
use crate::binary::mapped_file::OpenFiles;
use crate::family::opened_names;
use crate::host::dry_run::{self, DryRun};
use crate::host::libcuda_fix;
use crate::host::library_version::file_version;
use crate::host::machine::judge;
use crate::host::machine::{Components, DriverProbe, Machine, detect, redact};
use crate::verdict::Verdict;
use cudaguard::Status;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{self, Code, Effect, Finding, Severity};
use cudaguard::internal::manifest::{Component, Manifest, Requirement};
use cudaguard::internal::policy::GpuNeed;
use serde::Serialize;

/// Result of the diagnosis: the machine and its problems.
#[derive(Debug)]
pub struct Checkup {
    /// The machine to check for.
    pub machine: Machine,
    /// The verdict on the program; `None` if no program is named.
    pub verdict: Option<Verdict>,
    /// Status of the program, or of CUDA programs in general, on this machine.
    pub status: Status,
    /// Descriptions of what could not be examined, with the reason. Not empty if `status` is unknown.
    pub not_judged: Vec<String>,
    /// The findings, errors first.
    pub findings: Vec<Finding>,
    /// Every candidate file for a library, grouped by library, in the loader's search order.
    pub choices: Vec<DriverCandidate>,
}

/// A candidate file for a library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DriverCandidate {
    /// Name of the library: its soname.
    pub name: String,
    /// Path of the file.
    pub path: String,
    /// Version of the file, if its name or the files next to it contain one.
    pub version: Option<String>,
    /// The loader's decision on the file.
    pub fate: CandidateState,
    /// Reason: the search path that finds the file, the problem of the file, or the setting that makes the loader
    /// search there.
    pub why: String,
}

/// The loader's decision on a candidate file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub enum CandidateState {
    /// The loader picks it.
    Picked,
    /// It is usable, but the loader finds another file first.
    Behind,
    /// The loader skips it.
    Skipped,
    /// The loader picks it, and the program then fails to start.
    Fatal,
    /// It is in a common directory that the loader does not search.
    NotSearched,
}

impl CandidateState {
    /// Returns the name in reports and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Picked => "picked",
            Self::Behind => "behind",
            Self::Skipped => "passed over",
            Self::Fatal => "fatal",
            Self::NotSearched => "not searched",
        }
    }
}

impl From<CandidateState> for &'static str {
    fn from(state: CandidateState) -> Self {
        state.name()
    }
}

/// Diagnoses this machine, for one program with its predicted start if one is named.
pub fn examine_host(program: Option<(Binary, DryRun)>, env: &Env, probe: &DriverProbe) -> Checkup {
    let (machine, own) = detect::with_graph(env, Some(probe));
    let (mut not_judged, mut not_covered) = (Vec::new(), Vec::new());
    let (mut needs_gpu, mut needs_cuda) = (None, None);
    let is_program = program.is_some();
    let (mut findings, graph, mut names) = match program {
        None => (Vec::new(), own, Vec::new()),
        Some((program, predicted)) => {
            let DryRun { graph, findings, is_loaded, components, .. } = predicted;
            let Components { manifests, not_examined, .. } = &components;
            let names = asked_for(&graph, manifests);
            let names = if names.is_empty() { opened_names(&program) } else { names };
            if manifests.is_empty() && is_loaded {
                not_judged.push(describe_unguarded(&names));
            }
            not_judged.extend(manifests.iter().filter_map(Manifest::not_judged).map(str::to_owned));
            let mut names_of_requests = graph.requests.iter().map(|request| &request.name);
            let links = names_of_requests.any(|name| vendor::is_libcuda(name) || CUDART.is_named(name));
            needs_gpu = component_that_needs_cuda(&program.path, manifests, links);
            needs_cuda = libcuda_fix::needed_cuda(manifests, &graph);
            for part in not_examined {
                let parts = if part.may_contradict { &mut not_judged } else { &mut not_covered };
                parts.push(part.to_string());
            }
            (findings, Some(graph), names)
        }
    };
    let verdict = is_program.then(|| Verdict::from_findings(&findings));
    if !is_program {
        let found = vendor::DESCRIBED.into_iter().filter_map(|library| machine.library_files(library)).flatten();
        names.extend(found.filter_map(|file| file.soname.clone()));
    }
    names.insert(0, LIBCUDA.to_owned());
    let mut seen = Vec::new();
    names.retain(|name| !seen.contains(name) && (seen.push(name.clone()), true).1);
    let choices: Vec<DriverCandidate> = if machine.is_windows() {
        windows::candidates(&machine)
    } else {
        graph.iter().flat_map(|graph| names.iter().flat_map(move |name| driver_candidates(env, graph, name))).collect()
    };
    let signs = HostSymptoms::from_candidates(env, &choices);
    let absent = needs_gpu.and_then(|component| without_gpu(&machine, component));
    let mut of_host = diagnose_host(&machine, &signs);
    if let (Some(graph), Some(driver)) = (&graph, &machine.driver) {
        libcuda_fix::adapt_hints(&mut of_host, env, graph, driver, needs_cuda);
    }
    // The cause replaces its consequence, because the cause has the fix.
    let cause = of_host
        .iter_mut()
        .find(|finding| matches!(finding.code, Code::DeviceDenied | Code::DriverNotWorking | Code::GpusHidden));
    let absent = match (absent, cause) {
        (Some(finding), Some(cause)) if finding.code == Code::GpuMissing => {
            cause.severity = cause.severity.max(Severity::Warning);
            None
        }
        (absent, _) => absent,
    };
    if verdict == Some(Verdict::Runs) {
        warn_of_errors(&mut of_host);
    }
    for finding in absent.into_iter().chain(of_host) {
        // The verdict of the program may contain it already.
        if !findings.iter().any(|known| known.code == finding.code) {
            findings.push(finding);
        }
    }
    if !findings.iter().any(|finding| finding.code == Code::MachineUnreadable) {
        findings.extend(machine.unknowns_finding());
    }
    if !is_program && !machine.known_gpus().iter().any(|gpu| gpu.visible) {
        not_judged.push("GPUs: this machine has none, so no CUDA program works here".to_owned());
    }
    if machine.is_windows() {
        findings.iter_mut().for_each(use_names_of_windows);
    }
    let open = findings.iter().filter(|finding| finding.code.effect() == Effect::Open);
    for reason in open.map(|finding| finding.message.replace('\n', "; ")) {
        if !not_judged.contains(&reason) {
            not_judged.push(reason);
        }
    }
    finding::sort_findings(&mut findings);
    let verdict = verdict.map(|verdict| if not_judged.is_empty() { verdict } else { verdict.max(Verdict::Unknown) });
    let has_errors = findings.iter().any(|finding| finding.severity == Severity::Error);
    // For a program, the verdict is that of `verify`, and so is the status.
    let status = match verdict {
        Some(Verdict::Refused) => Status::Incompatible,
        None if has_errors => Status::Incompatible,
        Some(Verdict::Runs) | None if not_judged.is_empty() && !has_errors => Status::Compatible,
        _ => Status::Unknown,
    };
    not_judged.extend(not_covered);
    Checkup { machine, verdict, status, not_judged, findings, choices }
}

impl Checkup {
    /// Adds the answer for an archive or a directory.
    pub fn add_artifact(&mut self, verdict: Verdict, findings: Vec<Finding>, not_judged: Vec<String>) {
        self.not_judged = not_judged;
        self.verdict = Some(verdict);
        self.status = match verdict {
            Verdict::Refused => Status::Incompatible,
            Verdict::Runs => Status::Compatible,
            Verdict::Unknown => Status::Unknown,
        };
        if verdict == Verdict::Runs {
            warn_of_errors(&mut self.findings);
        }
        let known: Vec<Code> = findings.iter().map(|finding| finding.code).collect();
        self.findings.retain(|finding| !known.contains(&finding.code));
        self.findings.extend(findings);
        finding::sort_findings(&mut self.findings);
    }
}

/// Turns the errors of a machine into warnings: the program that the question is about runs in spite of them.
fn warn_of_errors(of_machine: &mut [Finding]) {
    for finding in of_machine.iter_mut().filter(|finding| finding.severity == Severity::Error) {
        finding.severity = Severity::Warning;
    }
}

/// Describes what is not examined of a program without components.
fn describe_unguarded(names: &[String]) -> String {
    if names.is_empty() {
        "the program: it has no manifest, no GPU code and needs no CUDA library".to_owned()
    } else {
        format!("the requirements of the program on {}: it has no manifest", names.join(", "))
    }
}

/// Returns the component that cannot work without a driver and a GPU. `None` if there is none, or if `[runtime] gpu` is optional.
/// `links`: the program is linked to the driver or to cudart.
fn component_that_needs_cuda(program: &Path, manifests: &[Manifest], links: bool) -> Option<Component> {
    if let Some(manifest) = manifests.iter().find(|manifest| {
        manifest.requires.iter().any(|row| matches!(row, Requirement::Driver { .. } | Requirement::Gpu { .. }))
    }) {
        return (manifest.runtime.gpu != GpuNeed::Optional).then(|| manifest.component.clone());
    }
    let optional = manifests.iter().any(|manifest| manifest.runtime.gpu == GpuNeed::Optional);
    (links && !optional).then(|| Component::unrecorded(&name_of(program)))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn starts_with(file: &Path, start: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.trim().starts_with(start))
}

/// Returns true for the directory of one of NVIDIA's GPUs on the PCI bus. Class 0x03: display controllers, including 3D
/// controllers. If the bus has no class, the vendor alone decides.
fn is_nvidia_gpu(device: &Path) -> bool {
    let class = device.join("class");
    starts_with(&device.join("vendor"), "0x10de") && (!class.exists() || starts_with(&class, "0x03"))
}

/// Returns true for `/dev/nvidia0`.
fn is_gpu_device(path: &Path) -> bool {
    let name = name_of(path);
    let number = name.strip_prefix("nvidia").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns a warning for a program that needs a GPU if this machine shows it none. It starts nevertheless, unless its policy requires a
/// GPU: then the judge has reported this error.
fn without_gpu(machine: &Machine, component: Component) -> Option<Finding> {
    let refusal = judge::refusal_of_every_gpu_program(component, machine);
    let refusal = refusal.filter(|finding| matches!(finding.code, Code::DriverMissing | Code::GpuMissing))?;
    Some(refusal.with_severity(Severity::Warning))
}

/// Returns the names of the NVIDIA libraries that the program is linked to or will load.
fn asked_for(graph: &LoadGraph, manifests: &[Manifest]) -> Vec<String> {
    let rows = manifests.iter().flat_map(|manifest| &manifest.requires).filter_map(|row| match row {
        Requirement::Library { soname, .. } => Some(soname.clone()),
        _ => None,
    });
    let loaded = graph.objects.iter().map(|object| object.name.clone());
    let requests = graph.requests.iter().map(|request| request.name.clone());
    loaded.chain(requests).filter(|name| vendor::is_of_nvidia(name)).chain(rows).collect()
}

fn driver_candidates(env: &Env, graph: &LoadGraph, name: &str) -> Vec<DriverCandidate> {
    let mut found: Vec<DriverCandidate> = Vec::new();
    let mut taken = false;
    let mut files: Vec<PathBuf> = Vec::new();
    // The object that requests the name decides which search paths apply: DT_RUNPATH counts for that object alone.
    let by = graph.requests.iter().find(|request| request.name == name).map_or(0, |request| request.by);
    for candidate in graph.candidates(by, name) {
        // `/lib` is `/usr/lib` on most systems, so one file may have two paths. It is listed once.
        let real = fs::canonicalize(&candidate.path).unwrap_or_else(|_| candidate.path.clone());
        if files.contains(&real) {
            continue;
        }
        files.push(real);
        let (fate, why) = match &candidate.inspection {
            Inspection::Usable if !taken => (CandidateState::Picked, candidate.place.to_string()),
            Inspection::Usable => (CandidateState::Behind, candidate.place.to_string()),
            Inspection::Broken(why) if !taken => (CandidateState::Fatal, format!("{}; {why}", candidate.place)),
            _ => (CandidateState::Skipped, format!("{}; {}", candidate.place, candidate.problem())),
        };
        taken |= candidate.is_selected();
        found.push(inspect_candidate(env, graph.files(), name, &candidate.path, fate, &why));
    }
    for path in dry_run::in_usual_dirs(env, name) {
        let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        if !files.contains(&real) {
            files.push(real);
            let dir = path.parent().unwrap_or(&path).display().to_string();
            let why = format!("the loader does not search it; add {dir} to LD_LIBRARY_PATH");
            found.push(inspect_candidate(env, graph.files(), name, &path, CandidateState::NotSearched, &why));
        }
    }
    found
}

fn inspect_candidate(
    env: &Env,
    files: &OpenFiles,
    name: &str,
    path: &Path,
    fate: CandidateState,
    why: &str,
) -> DriverCandidate {
    let version = if vendor::is_libcuda(name) {
        detect::release_in_name(path).map(|release| release.to_string())
    } else {
        file_version(files, path).map(|version| version.to_string())
    };
    DriverCandidate {
        name: name.to_owned(),
        path: redact::redact_home(env, &path.display()),
        version,
        fate,
        why: redact::redact_home(env, &why),
    }
}
