//! Diagnosis of this machine, for CUDA programs in general or for one program, with every candidate file for a library and the
//! reason why the loader picks it or not.

mod windows;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::binary::examined::NotExamined;
use crate::binary::file::Binary;
use crate::binary::loader::{Inspection, LoadGraph, sorted_entries};
use crate::binary::mapped_file::{Contents, OpenFiles};
use crate::family::opened_names;
use crate::host::dry_run::{self, DryRun};
use crate::host::facts::{CudnnState, LoaderVersion};
use crate::host::judge::{self, missing_parts};
use crate::host::libcuda_fix;
use crate::host::library_version::file_version;
use crate::host::machine::{DriverProbe, Gpu, HostLibrary, HostLibraryPart, Machine, MachineKind, detect, redact};
use crate::knowledge::symptoms::{MachineFact, likeliest_cause};
use crate::verdict::Verdict;
use cudaguard::Status;
use cudaguard::internal::env::Env;
use cudaguard::internal::file_error::FileError;
use cudaguard::internal::finding::{self, Code, Effect, Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::manifest::{Manifest, Requirement};
use cudaguard::internal::policy::GpuNeed;
use cudaguard::internal::tables;
use cudaguard::internal::vendor::{self, CUDART, CUDNN, LIBCUDA};
use cudaguard::internal::version::{CudaVersion, Version};
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

/// Diagnoses this machine, for one program if one is named. `simulate` predicts its start. `check_packages` checks the packages that
/// installed the program and its libraries. The error is the reason why the program cannot be read.
pub fn examine_host(
    program: Option<(&Path, Arc<Contents>)>,
    env: &Env,
    probe: &DriverProbe,
    simulate: impl FnOnce(&Binary, &Env, &OpenFiles, Option<&DriverProbe>) -> Result<DryRun, FileError>,
    check_packages: impl FnOnce(&[PathBuf]) -> (Vec<Finding>, Vec<NotExamined>),
) -> Result<Checkup, FileError> {
    let (machine, own) = detect::with_graph(env, Some(probe));
    let (mut not_judged, mut not_covered) = (Vec::new(), Vec::new());
    let (mut needs_gpu, mut files_of_program, mut needs_cuda) = (None, Vec::new(), None);
    let is_program = program.is_some();
    let (mut findings, graph, mut names) = match program {
        None => (Vec::new(), own, Vec::new()),
        Some((program, _)) if cfg!(windows) => {
            let start = windows::check_program(program, env, &machine)?;
            not_judged.extend(start.not_judged);
            not_covered.extend(start.not_covered);
            needs_gpu = start.needs_gpu;
            files_of_program.push(program.to_owned());
            (start.findings, None, Vec::new())
        }
        Some((program, contents)) => {
            let files = own.map(|graph| graph.files().clone()).unwrap_or_default();
            files.insert(program, &contents);
            let program = Binary::from_contents(program, contents)?;
            let predicted = simulate(&program, env, &files, Some(probe))?;
            let names = asked_for(&predicted.graph, &predicted.manifests);
            let names = if names.is_empty() { opened_names(&program) } else { names };
            if predicted.manifests.is_empty() && predicted.is_loaded {
                not_judged.extend(describe_unguarded(&predicted.manifests, &names));
            }
            not_judged.extend(predicted.manifests.iter().filter_map(Manifest::not_judged).map(str::to_owned));
            let mut names_of_requests = predicted.graph.requests.iter().map(|request| &request.name);
            let links = names_of_requests.any(|name| vendor::is_libcuda(name) || CUDART.is_named(name));
            needs_gpu = component_that_needs_cuda(&program.path, &predicted.manifests, links);
            needs_cuda = libcuda_fix::needed_cuda(&predicted.manifests, &predicted.graph);
            let (open, others): (Vec<_>, Vec<_>) = predicted.not_examined.iter().partition(|part| part.may_contradict);
            not_judged.extend(open.into_iter().map(ToString::to_string));
            not_covered.extend(others.into_iter().map(ToString::to_string));
            files_of_program.clone_from(&predicted.files);
            (predicted.findings, Some(predicted.graph), names)
        }
    };
    let (of_packages, unknown) = check_packages(&files_of_program);
    findings.extend(of_packages);
    not_judged.extend(unknown.iter().map(ToString::to_string));
    let verdict = is_program.then(|| Verdict::from_findings(&findings));
    if !is_program {
        let found = vendor::ALL.into_iter().filter_map(|library| machine.library_files(library)).flatten();
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
    let absent = needs_gpu.and_then(|component| without_gpu(&machine, &component));
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
        findings.iter_mut().for_each(Finding::use_names_of_windows);
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
    Ok(Checkup { machine, verdict, status, not_judged, findings, choices })
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
fn describe_unguarded(manifests: &[Manifest], names: &[String]) -> Option<String> {
    if !manifests.is_empty() {
        return None;
    }
    Some(if names.is_empty() {
        "the program: it has no manifest, no GPU code and needs no CUDA library".to_owned()
    } else {
        format!("the requirements of the program on {}: it has no manifest", names.join(", "))
    })
}

/// Returns the component that cannot work without a driver and a GPU. `None` if there is none, or if `[runtime] gpu` is optional.
/// `links`: the program is linked to the driver or to cudart.
fn component_that_needs_cuda(program: &Path, manifests: &[Manifest], links: bool) -> Option<String> {
    if let Some(manifest) = manifests.iter().find(|manifest| {
        manifest.requires.iter().any(|row| matches!(row, Requirement::Driver { .. } | Requirement::Gpu { .. }))
    }) {
        return (manifest.runtime.gpu != GpuNeed::Optional).then(|| manifest.component.to_string());
    }
    let optional = manifests.iter().any(|manifest| manifest.runtime.gpu == GpuNeed::Optional);
    (links && !optional).then(|| program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned())
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
fn without_gpu(machine: &Machine, component: &str) -> Option<Finding> {
    let driver = machine.driver.as_ref()?;
    let values = Values::default().with("component", component).with_known("driver", driver.user);
    let are_hidden = machine.gpus.as_ref().is_some_and(|gpus| gpus.iter().all(|gpu| gpu.visible == Some(false)));
    let message = match driver.init {
        _ if driver.absent => MessageTemplate::DriverMissing,
        Some(100) => MessageTemplate::GpuMissing,
        Some(0) if are_hidden => MessageTemplate::GpuMissing,
        _ => return None,
    };
    Some(message.to_finding(&values).with_component(component).with_severity(Severity::Warning))
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
            let why = format!("the loader does not search it; set LD_LIBRARY_PATH={dir}");
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

/// Facts about this machine's files that [`Machine`] does not contain.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools)]
struct HostSymptoms {
    /// PCI addresses of NVIDIA's GPUs.
    on_bus: Vec<String>,
    /// Device files of GPUs that this process may not open.
    denied: Vec<String>,
    /// Devices of all GPUs that are missing, or that this process may not open.
    lacking: Vec<String>,
    /// The libcuda that the loader picks.
    libcuda: Option<String>,
    /// True if this process may open the device file of a GPU.
    usable: bool,
    /// True if the kernel module is the proprietary one.
    closed_module: bool,
    /// True if the kernel module is the open one.
    open_module: bool,
    /// Compute capabilities of the GPUs on the bus, if each is known.
    capabilities: Vec<(u8, u8)>,
    /// True if the process runs in a container.
    container: bool,
    /// The value of `CUDA_MPS_PIPE_DIRECTORY`.
    mps: Option<String>,
}

impl HostSymptoms {
    fn from_candidates(env: &Env, choices: &[DriverCandidate]) -> Self {
        let picked = choices.iter().find(|choice| choice.name == LIBCUDA && choice.fate == CandidateState::Picked);
        let version = fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
        let mut gpus = sorted_entries(Path::new("/sys/bus/pci/devices"));
        gpus.retain(|path| is_nvidia_gpu(path));
        let mut devices = sorted_entries(Path::new("/dev"));
        devices.retain(|path| is_gpu_device(path));
        let (usable, denied): (Vec<PathBuf>, Vec<PathBuf>) =
            devices.into_iter().partition(|path| detect::may_open(path));
        let shared = ["/dev/nvidiactl", "/dev/nvidia-uvm"].iter().filter(|path| !detect::may_open(Path::new(path)));
        Self {
            lacking: shared.map(|path| (*path).to_owned()).collect(),
            usable: !usable.is_empty(),
            closed_module: version.contains("NVRM version") && !version.contains("Open Kernel Module"),
            open_module: version.contains("Open Kernel Module"),
            capabilities: gpus.iter().map(|path| capability_on_bus(path)).collect::<Option<_>>().unwrap_or_default(),
            container: ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists()),
            mps: env.var("CUDA_MPS_PIPE_DIRECTORY"),
            on_bus: gpus.iter().map(|path| name_of(path)).collect(),
            denied: denied.iter().map(|path| path.display().to_string()).collect(),
            libcuda: picked.map(|choice| choice.path.clone()),
        }
    }
}

/// Returns the compute capability of a GPU in `/sys/bus/pci/devices`, by its device id.
fn capability_on_bus(path: &Path) -> Option<(u8, u8)> {
    let id = fs::read_to_string(path.join("device")).ok()?;
    tables::pci::compute_capability(u16::from_str_radix(id.trim().strip_prefix("0x")?, 16).ok()?)
}

/// Returns the problems of a machine that do not depend on the program.
fn diagnose_host(machine: &Machine, signs: &HostSymptoms) -> Vec<Finding> {
    let mut found = Vec::new();
    let driver = machine.driver.clone().unwrap_or_default();
    let libcuda = signs.libcuda.as_deref().unwrap_or("libcuda.so.1");
    let module = driver.kernel.is_some() || machine.kind.is_some();
    let kernel = driver.kernel.filter(|kernel| Some(*kernel) != driver.user);
    let values = Values::default()
        .with_known("driver", driver.user)
        .with_known("cuda", driver.cuda)
        .with_known("kernel", kernel);
    let values = values.with("libcuda", libcuda);
    if !signs.on_bus.is_empty() && (driver.absent || !module) {
        let words = match (driver.absent, module) {
            (true, true) => MessageTemplate::GpuUndrivenNoLibrary,
            (true, false) => MessageTemplate::GpuUndriven,
            _ => MessageTemplate::GpuUndrivenNoModule,
        };
        found.push(words.to_finding(&values.clone().with("devices", signs.on_bus.join(", "))));
    }
    // For 100, no device, the GPUs and device files of the machine decide, below.
    if let Some(answer) = driver.init.filter(|answer| *answer != 100) {
        let refusal = judge::refusal_of_every_gpu_program(&machine.host_with(CudnnState::Unknown));
        let refusal = refusal.filter(|finding| answer != 0 || finding.code == Code::GpuNotForDriver);
        found.extend(refusal.or_else(|| (answer != 0).then(|| init_failure(answer, machine, signs, &values))));
    }
    if machine.kind == Some(MachineKind::Wsl2) && signs.libcuda.as_deref().is_some_and(|path| !path.contains("/wsl/")) {
        found.push(MessageTemplate::WslShadowed.to_finding(&values));
    }
    let compat = !driver.ordinary && driver.library.is_some() && machine.kind.is_none();
    if let (true, Some(user), Some(kernel)) = (compat, driver.user, driver.kernel)
        && user.branch <= kernel.branch
        && user != kernel
    {
        let values = values.clone().with("fix", format_args!("remove {libcuda} from the loader's path"));
        found.push(MessageTemplate::CompatOutdated.to_finding(&values));
    }
    // If cuInit succeeds, the driver has created the devices that were missing.
    let lacking = if signs.usable && module && driver.init != Some(0) { &*signs.lacking } else { &[] };
    let shadowed = found.iter().any(|finding| finding.code == Code::WslShadowed);
    let denied = [&*signs.denied, lacking].concat();
    let hidden = machine.variables.iter().find(|(name, _)| name == "CUDA_VISIBLE_DEVICES");
    let all_hidden =
        machine.gpus.as_ref().is_some_and(|gpus| !gpus.is_empty() && gpus.iter().all(|gpu| gpu.visible == Some(false)));
    match hidden {
        Some((_, value)) if driver.init == Some(100) || all_hidden => {
            found.push(MessageTemplate::GpusHidden.to_finding(&Values::default().with("value", value)));
        }
        _ if !denied.is_empty() => {
            found.push(MessageTemplate::DeviceDenied.to_finding(&Values::default().with("devices", denied.join(" "))));
        }
        _ if driver.init == Some(100) && machine.kind == Some(MachineKind::Wsl2) && !shadowed => {
            found.push(init_failure(100, machine, signs, &values));
        }
        _ if driver.init == Some(100) && !signs.on_bus.is_empty() && module && machine.kind.is_none() => {
            let values = values.clone().with("devices", signs.on_bus.join(", "));
            let finding = undriven_finding(machine, signs, &values)
                .unwrap_or_else(|| MessageTemplate::DriverNotWorkingNoGpu.to_finding(&values));
            // If there are no device files, this is a container that was started without GPUs, or a host that gives its GPUs
            let is_certain = signs.usable || finding.code == Code::GpuNotForDriver;
            found.push(finding.with_severity(if is_certain { Severity::Error } else { Severity::Warning }));
        }
        _ => {}
    }
    if driver.ptx_compiler == Some(false) && driver.init == Some(0) && machine.kind.is_none() {
        found.push(MessageTemplate::JitMissingAnybody.to_finding(&values).with_severity(Severity::Warning));
    }
    let gpus: Vec<(u8, u8)> = machine.known_gpus().iter().filter(|gpu| gpu.visible).filter_map(|gpu| gpu.cc).collect();
    for library in machine.library_files(CUDNN).into_iter().flatten().filter(|library| library.is_loaded()) {
        found.extend(incomplete_cudnn_finding(library));
        found.extend(library.version.and_then(|version| older_than(version, library.cuda, &gpus, values.clone())));
        found.extend(library.version.and_then(|version| too_new_for(version, &gpus, &values)));
        let (Some(made), Some(cuda)) =
            (library.cuda, machine.driver.as_ref().and_then(|own| own.cuda_version(machine.kind)))
        else {
            continue;
        };
        if made.major > cuda.major && !driver.absent {
            let values =
                values.clone().with_known("found", library.version).with("found_cuda", made).with("cuda", cuda);
            let finding = MessageTemplate::CudnnNeedsNewerDriver
                .to_finding(&values.with("needs_cuda", CudaVersion::new(made.major, 0)).with("cuda_major", cuda.major));
            found.push(finding.with_severity(Severity::Warning));
        }
    }
    found
}

/// Returns the finding for a `cuInit` that fails: the cause that the facts of this machine select in the table of statuses.
fn init_failure(answer: u32, machine: &Machine, signs: &HostSymptoms, values: &Values) -> Finding {
    let values = values.clone().with("answer", answer);
    let mut facts = vec![MachineFact::Init];
    if machine.gpus.as_ref().is_some_and(|gpus| !gpus.is_empty() && gpus.iter().all(is_virtual)) {
        facts.push(MachineFact::Vgpu);
    }
    if signs.container {
        facts.push(MachineFact::Container);
    }
    if machine.kind == Some(MachineKind::Wsl2) {
        facts.push(MachineFact::Wsl);
    } else if !signs.lacking.is_empty() {
        facts.push(MachineFact::NoUvm);
    }
    if signs.mps.is_some() {
        facts.push(MachineFact::MpsVariable);
    }
    let Some((symptom, cause)) = likeliest_cause(answer, &facts) else {
        return MessageTemplate::DriverNotWorking.to_finding(&values);
    };
    let is_open = cause.when.is_none() && symptom.causes.len() > 1;
    let values = values.with("problem", &symptom.title).with("why", cause.why.trim_end_matches('.'));
    let values = values.with("action", cause.fix.trim_end_matches('.')).with_known("status", is_open.then_some(answer));
    let is_of_mps = (805..=810).contains(&answer);
    let values = values.with_known("value", signs.mps.as_ref().filter(|_| is_of_mps));
    MessageTemplate::DriverNotWorkingCaused.to_finding(&values)
}

/// Returns true for a virtual GPU of a guest: `GRID T4-8Q`, `NVIDIA A10-24C`.
fn is_virtual(gpu: &Gpu) -> bool {
    let name = gpu.name.as_deref().unwrap_or_default();
    let size = name.rsplit('-').next().unwrap_or_default().strip_suffix(['A', 'B', 'C', 'Q']).unwrap_or_default();
    name.contains("GRID") || (!size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the machine without the answer of its driver, so that the release decides which GPUs it supports. `on_bus`: the compute
/// capabilities of the GPUs on the bus, which count if the driver names none.
fn without_answer(machine: &Machine, on_bus: &[(u8, u8)]) -> Machine {
    let mut described = machine.clone();
    if let Some(driver) = &mut described.driver {
        driver.init = None;
    }
    if described.known_gpus().iter().all(|gpu| gpu.cc.is_none()) {
        described.gpus = Some(on_bus.iter().map(|cc| Gpu { cc: Some(*cc), ..Gpu::default() }).collect());
    }
    for gpu in described.gpus.iter_mut().flatten() {
        (gpu.listed, gpu.visible) = (false, None);
    }
    described
}

/// Returns why this driver can never use the GPUs on the bus: its branch dropped them, or its kernel module is not for them.
fn undriven_finding(machine: &Machine, signs: &HostSymptoms, values: &Values) -> Option<Finding> {
    let described = without_answer(machine, &signs.capabilities);
    let newest = described.known_gpus().iter().filter_map(|gpu| gpu.cc).max()?;
    let refusal = judge::refusal_of_every_gpu_program(&described.host_with(CudnnState::Unknown));
    if let Some(finding) = refusal.filter(|finding| finding.code == Code::GpuNotForDriver) {
        return Some(finding);
    }
    // Blackwell and later GPUs work with the open kernel modules only, and GPUs before Turing with the other ones only.
    if signs.closed_module && newest >= (10, 0) {
        return Some(MessageTemplate::DriverNotWorkingClosedModule.to_finding(values));
    }
    let is_too_old = signs.open_module && newest < (7, 5) && !tables::is_tegra(newest);
    is_too_old.then(|| MessageTemplate::DriverNotWorkingOpenModule.to_finding(values))
}

/// Returns true if a cuDNN release is older than each of these GPUs. The finding reports it for every user of cuDNN.
fn older_than(version: Version, made_with: Option<CudaVersion>, gpus: &[(u8, u8)], values: Values) -> Option<Finding> {
    let newest =
        CUDNN.release_table().newest_gpus(version.major)?.newest_for(version, made_with.map(|made| made.major))?;
    if gpus.is_empty() || !gpus.iter().all(|cc| cc.0 > newest && !tables::is_tegra(*cc)) {
        return None;
    }
    let mut names: Vec<String> = Vec::new();
    for (major, minor) in gpus {
        let name = format!("{major}.{minor}");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let values = values.with("found", version).with("newest_major", newest).with("gpus", names.join(", "));
    Some(MessageTemplate::CudnnBeforeThisGpu.to_finding(&values))
}

/// Returns a finding if this cuDNN no longer supports any of the GPUs.
fn too_new_for(version: Version, gpus: &[(u8, u8)], values: &Values) -> Option<Finding> {
    let (dropped_in, oldest) = CUDNN.release_table().gpu_floor(version)?;
    if gpus.is_empty() || gpus.iter().any(|cc| *cc >= oldest) {
        return None;
    }
    let names: Vec<String> = gpus.iter().copied().map(tables::dotted_cc).collect();
    let values = values.clone().with("found", version).with("gpus", names.join(", "));
    let values = values.with("min", Version::new(version.major, 0, 0)).with("dropped_in", dropped_in);
    Some(MessageTemplate::CudnnTooNewForGpu.to_finding(&values).with_severity(Severity::Warning))
}

/// Returns a finding if the files of this cuDNN are incomplete. It is a warning, because it is unknown whether any
/// program loads this cuDNN.
fn incomplete_cudnn_finding(library: &HostLibrary) -> Option<Finding> {
    let (parts, path) = (library.parts.as_ref()?, library.path.as_deref()?);
    let missing =
        CUDNN.needed_parts(library.major()?).find(|needed| !parts.iter().any(|part| part.file == needed.file));
    let values = Values::default().with("path", path).with_known("found", library.version);
    if let Some(part) = missing {
        let finding = MessageTemplate::CudnnInnerMissingNeeded.to_finding(&values.with("library", part.file));
        return Some(finding.with_severity(Severity::Warning));
    }
    mixed_parts_finding(library, parts, &values).or_else(|| {
        let others = CUDNN.parts_of_major(library.major()?).map(|part| part.file);
        let others: Vec<&str> = others.filter(|file| !parts.iter().any(|part| part.file == *file)).collect();
        (!others.is_empty()).then(|| missing_parts(&values, &others))
    })
}

/// Returns a finding if parts of a library have another release than the library itself.
fn mixed_parts_finding(library: &HostLibrary, parts: &[HostLibraryPart], values: &Values) -> Option<Finding> {
    let whole = library.version?;
    let of_loader = match library.loader {
        LoaderVersion::Unknown => None,
        LoaderVersion::Version(own) => {
            let soname = library.soname.clone().unwrap_or_else(|| CUDNN.soname(whole));
            Some(MessageTemplate::CudnnInnerMixed.to_finding(&values.clone().with("library", soname).with("part", own)))
        }
        LoaderVersion::Minor(major, minor) => {
            let values = values.clone().with("loader", format!("{major}.{minor}"));
            Some(MessageTemplate::CudnnInnerMixedLoader.to_finding(&values))
        }
    };
    if let Some(finding) = of_loader {
        return Some(finding.with_severity(Severity::Warning));
    }
    let other = parts.iter().find(|part| part.version.is_some_and(|version| version != whole))?;
    let values = values.clone().with("library", &other.file).with_known("part", other.version);
    Some(MessageTemplate::CudnnInnerMixed.to_finding(&values).with_severity(Severity::Warning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::machine::{Components, Driver};
    use cudaguard::internal::finding::Effect;
    use cudaguard::internal::manifest::{Component, Manifest, Requirement};
    use cudaguard::internal::policy::Policy;
    use cudaguard::internal::toolchain::Toolchain;
    use cudaguard::internal::version::DriverRelease;

    fn codes(host: &str, signs: &HostSymptoms) -> Vec<String> {
        let (machine, _) = Machine::read(host).unwrap_or_else(|mistake| panic!("{mistake}: {host}"));
        diagnose_host(&machine, signs).iter().map(|finding| format!("{} {}", finding.code, finding.severity)).collect()
    }

    #[test]
    fn healthy_host_has_no_problems() {
        let bus = HostSymptoms { on_bus: vec!["0000:01:00.0".to_owned()], ..HostSymptoms::default() };
        let good = r#"{"driver": {"user": "580.65.06", "kernel": "580.65.06", "init": 0, "library": "/x", "ordinary": true,
            "ptx_compiler": true}, "gpus": [{"cc": "8.0"}]}"#;
        assert_eq!(codes(good, &bus), [""; 0]);
        assert_eq!(
            codes(r#"{"driver": {"present": false}}"#, &HostSymptoms::default()),
            [""; 0],
            "a machine without a GPU"
        );
        assert_eq!(codes("{}", &HostSymptoms::default()), [""; 0]);
        assert!(
            diagnose_host(&Machine { driver: Some(Driver::default()), ..Machine::default() }, &HostSymptoms::default())
                .is_empty()
        );
    }

    #[test]
    fn problems_are_diagnosed() {
        let bus = || HostSymptoms { on_bus: vec!["0000:01:00.0".to_owned()], ..HostSymptoms::default() };
        let libcuda = |path: &str| HostSymptoms { libcuda: Some(path.to_owned()), ..bus() };
        let of = |cc| HostSymptoms { capabilities: vec![cc], ..bus() };
        let denied = HostSymptoms { denied: vec!["/dev/nvidia0".to_owned()], ..bus() };
        let no_uvm = || HostSymptoms { lacking: vec!["/dev/nvidia-uvm".to_owned()], usable: true, ..bus() };
        for (host, signs, expected) in [
            (r#"{"driver": {"present": false}}"#, bus(), &["CG320 warning"][..]),
            (r#"{"driver": {"present": false, "kernel": "580.65.06"}}"#, bus(), &["CG320 warning"]),
            (r#"{"driver": {"user": "580.65.06", "ordinary": true}}"#, bus(), &["CG320 warning"]),
            (
                r#"{"driver": {"user": "580.1", "kernel": "535.1", "init": 803, "ordinary": true}}"#,
                bus(),
                &["CG304 error"],
            ),
            (r#"{"driver": {"kernel": "535.1", "init": 804}}"#, bus(), &["CG305 error"]),
            (r#"{"driver": {"kernel": "535.1", "init": 34}}"#, bus(), &["CG306 error"]),
            (r#"{"driver": {"kernel": "535.1", "init": 802}}"#, bus(), &["CG324 error"]),
            (r#"{"driver": {"kernel": "535.1", "init": 999}}"#, bus(), &["CG324 error"]),
            (
                r#"{"kind": "wsl2", "driver": {"init": 100}}"#,
                libcuda("/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
                &["CG323 warning"],
            ),
            (r#"{"kind": "wsl2", "driver": {"init": 0}}"#, libcuda("/usr/lib/wsl/lib/libcuda.so.1"), &[]),
            (
                r#"{"kind": "wsl2", "driver": {"init": 100}}"#,
                libcuda("/usr/lib/wsl/lib/libcuda.so.1"),
                &["CG324 error"],
            ),
            (
                r#"{"driver": {"user": "535.1.1", "kernel": "580.65.06", "init": 0, "library": "/usr/local/cuda/compat/x"}}"#,
                bus(),
                &["CG322 warning"],
            ),
            (
                r#"{"driver": {"user": "580.65.06", "kernel": "535.1.1", "init": 0, "library": "/usr/local/cuda/compat/x"}}"#,
                bus(),
                &[],
            ),
            (
                r#"{"driver": {"kernel": "535.1", "init": 100}, "variables": {"CUDA_VISIBLE_DEVICES": "7"}}"#,
                bus(),
                &["CG325 info"],
            ),
            (r#"{"driver": {"kernel": "535.1", "init": 100}}"#, denied, &["CG321 warning"]),
            (
                r#"{"driver": {"user": "595.58.03", "kernel": "595.58.03", "init": 0}, "gpus": [{"cc": "7.0"}]}"#,
                bus(),
                &["CG317 error"],
            ),
            (r#"{"driver": {"user": "595.58.03", "kernel": "595.58.03", "init": 100}}"#, of((7, 0)), &["CG317 error"]),
            (r#"{"driver": {"user": "535.1", "kernel": "535.1", "init": 100}}"#, of((12, 0)), &["CG317 error"]),
            (r#"{"driver": {"user": "535.1", "kernel": "535.1", "init": 100}}"#, of((9, 0)), &["CG324 warning"]),
            (r#"{"driver": {"kernel": "535.1", "init": 100}}"#, no_uvm(), &["CG321 warning"]),
            (r#"{"driver": {"kernel": "535.1", "init": 999}}"#, no_uvm(), &["CG324 error", "CG321 warning"]),
            (r#"{"driver": {"kernel": "535.1", "init": 0}}"#, no_uvm(), &[]),
            (r#"{"driver": {"kernel": "535.1", "init": 0, "ptx_compiler": false}}"#, bus(), &["CG309 warning"]),
            (
                r#"{"cudnn": [{"version": "9.1.0", "path": "/x", "parts": []}]}"#,
                HostSymptoms::default(),
                &["CG204 warning"],
            ),
            (
                r#"{"gpus": [{"cc": "6.1", "visible": true}], "cudnn": [{"version": "9.14.0", "path": "/x"}]}"#,
                HostSymptoms::default(),
                &["CG313 warning"],
            ),
            (
                r#"{"gpus": [{"cc": "6.1", "visible": true}], "cudnn": [{"version": "9.10.2", "path": "/x"}]}"#,
                HostSymptoms::default(),
                &[],
            ),
            (
                r#"{"cudnn": [{"version": "9.1.0", "path": "/x", "parts": [{"file": "libcudnn_graph.so.9", "version": "9.2.0"}]}]}"#,
                HostSymptoms::default(),
                &["CG206 warning"],
            ),
            (
                r#"{"cudnn": [{"version": "9.1.0", "path": "/x", "parts": [{"file": "libcudnn_graph.so.9", "version": "9.1.0"}]}]}"#,
                HostSymptoms::default(),
                &["CG204 warning"],
            ),
        ] {
            assert_eq!(codes(host, &signs), expected, "{host}");
        }
    }

    /// The judge of a start refuses with the code of `doctor`, or does not know. Then `doctor` names the cause that other facts select.
    #[test]
    fn start_and_doctor_agree_about_each_status() {
        let component = Component { name: "demo".to_owned(), version: "0.1.0".to_owned() };
        let manifest = Manifest::from_build(component, "t", "release", &Policy::default(), &Toolchain::default());
        let (cuda, release) = (CudaVersion::new(12, 0), DriverRelease::new(525, 60, 13));
        let requires = vec![Requirement::Driver { cuda, release, because: "libcudart 12.4".to_owned() }];
        let manifests = vec![Manifest { requires, ..manifest }];
        let program = Components { manifests, ..Components::default() };
        for status in [3, 34, 46, 101, 205, 300, 304, 801, 802, 803, 804, 805, 806, 809, 999] {
            for (facts, kernel) in [(r#""ordinary": true"#, "535.261.03"), (r#""compat": {}"#, "535.261.03")] {
                let host = format!(
                    r#"{{"driver": {{"user": "580.95.05", "kernel": "{kernel}", "init": {status}, {facts}}},
                    "gpus": [{{"cc": "8.0"}}]}}"#
                );
                let (machine, _) = Machine::read(&host).unwrap();
                let start = program.check_on(&machine, "that machine");
                let start = start.iter().map(|finding| finding.code).find(|code| code.effect() != Effect::Informs);
                let doctor = diagnose_host(&machine, &HostSymptoms::default());
                let [doctor] = doctor.iter().map(|finding| finding.code).collect::<Vec<_>>()[..] else {
                    panic!("{host}: {doctor:?}");
                };
                let agree =
                    start == Some(doctor) || (start, doctor) == (Some(Code::DriverCannotTell), Code::DriverNotWorking);
                assert!(agree, "{host}: {start:?}, {doctor:?}");
            }
        }
    }
}
