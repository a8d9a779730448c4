//! Predicts, without running a program, what the dynamic linker and then the guard report when it starts on this machine.
//!
//! This covers programs that fail before the guard can report anything: a missing library, a library of another major, a
//! file for another machine. If something cannot be determined, there is no finding, because a false alarm costs more
//! than a failure that the dynamic linker explains.

use std::path::Path;

use super::artifact_report::{ArtifactReport, check_packages, has_dlls};
use crate::binary::examined::mark_only_code;
use crate::binary::file::{Binary, TargetOs};
use crate::binary::loader::{self, LoadGraph};
use crate::binary::mapped_file::OpenFiles;
use crate::host::dry_run::{self, DryRun, Scope};
use crate::host::libcuda_fix;
use crate::host::machine::{Components, DriverProbe, HERE, Machine, detect_for_graph, detect_machine};
use crate::verdict::{Verdict, is_about_driver_or_gpu, is_reported_by_loader, mark_unchecked};
use cudaguard::internal::env::Env;
use cudaguard::internal::file_error::{FileError, FileProblem};
use cudaguard::internal::finding::{self, Finding, Severity};
use cudaguard::internal::manifest::Manifest;
use cudaguard::internal::policy::{GpuNeed, Runtime};

/// Checks this program or library on this machine: the loader, the driver, the GPUs and every component, including
/// components that only report their result. Facts that no note contains are read from the files.
///
/// # Errors
/// Returns the reason why the dynamic linker of this machine does not load the file.
pub fn simulate_and_check(
    program: &Binary,
    env: &Env,
    files: &OpenFiles,
    probe: Option<&DriverProbe>,
) -> Result<DryRun, FileError> {
    if program.os == Some(TargetOs::Windows) {
        let problem = FileProblem::unsupported("is for Windows, and this machine does not run it");
        return Err(FileError::read(&program.path, problem));
    }
    files.insert(&program.path, program.data());
    let mut predicted = simulate_closure(program, env, files, probe)?;
    if predicted.machine.as_ref().is_some_and(Machine::is_silent) {
        // Such an error needs the driver's own answer, which is missing here.
        for finding in predicted.findings.iter_mut().filter(|finding| is_about_driver_or_gpu(finding.code)) {
            finding.severity = finding.severity.min(Severity::Warning);
        }
    }
    Ok(predicted)
}

/// Adds the requirements of the packages that installed the files of a program, as far as the other installed packages do not fulfil
/// them.
pub(crate) fn add_packages(predicted: &mut DryRun) {
    let (findings, unknown) = check_packages(&predicted.components.files);
    predicted.findings.extend(findings);
    predicted.components.not_examined.extend(unknown);
}

/// Returns the findings that refuse a program with its DLLs on this Windows machine. The guard of a program reports the rest itself.
fn start_on_windows(file: &Binary, env: &Env, probe: &DriverProbe) -> Vec<Finding> {
    if !has_dlls(file) {
        return Vec::new();
    }
    let Ok(report) = ArtifactReport::with_libraries(file, env, true) else { return Vec::new() };
    let components = report.components();
    let is_guarded = components.manifests.iter().any(|manifest| !manifest.component.is_unrecorded());
    let mut findings = components.check_on(&detect_machine(env, Some(probe)), HERE);
    findings.retain(|finding| {
        Verdict::from_findings([finding]) == Verdict::Refused && (!is_guarded || is_reported_by_loader(finding.code))
    });
    findings
}

/// Returns the findings that refuse this program on this machine: those with which [`simulate_and_check`] refuses it, except
/// those that `[runtime]` defers. The driver is queried only if its files alone cause an error, and only its own answer can
/// then refuse the program. Returns nothing if the file is not a readable program.
pub fn start_here(program: &Path, env: &Env, probe: &DriverProbe) -> Vec<Finding> {
    let files = OpenFiles::default();
    let Some(binary) = read_program(program, &files) else { return Vec::new() };
    if cfg!(windows) {
        return start_on_windows(&binary, env, probe);
    }
    let Ok(predicted) = simulate_closure(&binary, env, &files, None) else { return Vec::new() };
    let fatal = fatal_findings(env, &predicted);
    // The driver is not queried if no error depends on it.
    if !fatal.iter().any(|finding| is_about_driver_or_gpu(finding.code)) {
        return fatal;
    }
    // If the driver does not answer, the shim checks this itself; it runs inside the process and has more information.
    let asked = simulate_and_check(&binary, env, &files, Some(probe));
    asked.map_or_else(|_| Vec::new(), |asked| fatal_findings(env, &asked))
}

fn read_program(program: &Path, files: &OpenFiles) -> Option<Binary> {
    let binary = Binary::from_contents(program, files.open(program).ok()?).ok()?;
    (cfg!(windows) || binary.os == Some(TargetOs::Linux)).then_some(binary)
}

/// Returns the findings that end the start.
fn fatal_findings(env: &Env, predicted: &DryRun) -> Vec<Finding> {
    let is_enforced = env.var("CUDAGUARD").as_deref() == Some("enforce");
    let mut fatal = Vec::new();
    for finding in &predicted.findings {
        let by_loader = !predicted.is_loaded || is_reported_by_loader(finding.code);
        let is_of_finding = |manifest: &&Manifest| manifest.component.to_string() == finding.component;
        let judged = predicted.components.manifests.iter().find(is_of_finding).filter(|_| !by_loader);
        let is_fatal = judged.is_none_or(|manifest| ends_start(manifest, finding, is_enforced));
        if is_fatal && Verdict::from_findings([finding]) == Verdict::Refused {
            fatal.push(finding.clone());
        }
    }
    fatal
}

/// Returns true if an error of this component ends the program: `[runtime]` may defer errors to `check()`, or turn them into
/// warnings.
fn ends_start(manifest: &Manifest, finding: &Finding, is_enforced: bool) -> bool {
    match manifest.runtime {
        Runtime { gpu: GpuNeed::Optional, .. } if is_about_driver_or_gpu(finding.code) => false,
        Runtime { mismatch_warns: true, .. } => is_enforced,
        Runtime { .. } => true,
    }
}

/// Simulates the loader, and checks all files of the closure on this machine.
fn simulate_closure(
    program: &Binary,
    env: &Env,
    files: &OpenFiles,
    probe: Option<&DriverProbe>,
) -> Result<DryRun, FileError> {
    let graph = loader::resolve_with(&program.path, env, files)?;
    let report = ArtifactReport::with_graph(&program.path, program.data().clone(), graph.clone(), Scope::Loaded);
    let mut report = report?;
    let mut components = report.components();
    let mut graph = report.take_graph().unwrap_or(graph);
    if components.manifests.is_empty() {
        mark_only_code(&mut components.not_examined);
    }
    // The machine's loader finds a libcuda that is not renamed, and the driver that is then detected has this libcuda.
    components.own_libcuda.take_if(|(name, _)| name.contains("/libcuda.so."));
    let own = program_component(program, &components);
    let mut findings = dry_run::loader_findings(env, &graph);
    let is_loaded = findings.is_empty();
    let mut machine = None;
    if is_loaded {
        if !components.manifests.is_empty() {
            let names =
                program_manifest(program).and_then(|manifest| manifest.names_of_opened("cuda")).unwrap_or_default();
            machine = Some(detect_for_graph(env, &mut graph, &names, probe));
        }
        findings = findings_on(&components, machine.as_ref(), &graph);
        let driver = machine.as_ref().and_then(|machine| machine.driver.as_ref());
        if let Some(driver) = driver.filter(|_| components.own_libcuda.is_none()) {
            let needs = libcuda_fix::needed_cuda(&components.manifests, &graph);
            libcuda_fix::adapt_hints(&mut findings, env, &graph, driver, needs);
        }
        findings.extend(machine.as_ref().and_then(Machine::unknowns_finding));
    }
    for finding in findings.iter_mut().filter(|finding| finding.component.is_empty()) {
        if !is_loaded || is_reported_by_loader(finding.code) {
            own.clone_into(&mut finding.component);
        }
    }
    // The dynamic linker's error already says that a library is not found.
    components.not_examined.retain(|one| is_loaded || findings.iter().all(|finding| finding.subject != one.name));
    findings.extend(dry_run::absent_names(&graph));
    mark_unchecked(&mut findings, &components.manifests);
    finding::sort_findings(&mut findings);
    Ok(DryRun { graph, findings, is_loaded, machine, components })
}

fn program_manifest(program: &Binary) -> Option<Manifest> {
    program.manifests().find_map(|note| Some(note.ok()?.manifest))
}

/// Returns the component of the program itself, if it has one.
fn program_component(program: &Binary, components: &Components) -> String {
    let recorded = program_manifest(program).map(|manifest| manifest.component.to_string());
    let name = program.path.file_name().unwrap_or_default().to_string_lossy();
    let first = components.manifests.first().filter(|manifest| manifest.component.name == name);
    recorded.or_else(|| Some(first?.component.to_string())).unwrap_or_default()
}

/// Checks the requirements on this machine, whose libraries are the files of the graph.
fn findings_on(components: &Components, machine: Option<&Machine>, graph: &LoadGraph) -> Vec<Finding> {
    let mut machine = machine.cloned().unwrap_or_default();
    machine.libraries = dry_run::libraries_of(graph, &components.manifests);
    machine.warnings.clear();
    components.check_on(&machine, HERE)
}
