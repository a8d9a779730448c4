//! Checks one artifact on machines.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{self, Finding};
use cudaguard::internal::manifest::Manifest;
use cudaguard::internal::version::CudaVersion;

use super::machines::HERE;
use crate::artifact::{self, Opened};
use crate::binary::examined::{NotExamined, mark_only_code};
use crate::binary::file::{Binary, BinaryKind, TargetOs};
use crate::binary::mapped_file::{Contents, OpenFiles};
use crate::cli::report::CliError;
use crate::commands::artifact_report::{self, ArtifactReport, PackageId, has_dlls};
use crate::commands::inspect::built_with;
use crate::commands::release::{Gate, GateReport};
use crate::commands::start;
use crate::family::is_of_nvidia;
use crate::host::dry_run::Loaded;
use crate::host::judge::gpu_answer::{GpuAnswer, Service, answers};
use crate::host::machine::oldest_driver::add_driver_needs;
use crate::host::machine::{self, Components, DriverProbe, Machine, answers_together, extend_new};
use crate::verdict::mark_unchecked;

/// Reads each of these files with [`read_components`].
pub(crate) fn components_of_all(env: &Env, files: &[PathBuf]) -> Result<Vec<Components>, CliError> {
    files.iter().map(|file| read_components(env, file, &[])).collect()
}

/// Reads the components of a file and of the cuDNN libraries that it contains; returns an error if it contains nothing
/// to check. `packages` limits the question to these packages; empty for all.
pub(crate) fn read_components(env: &Env, file: &Path, packages: &[String]) -> Result<Components, CliError> {
    match OpenArtifact::open(file)? {
        OpenArtifact::Whole(mut report) => report.checkable_components(packages),
        OpenArtifact::File(path, _) if !packages.is_empty() => Err(no_packages(path)),
        OpenArtifact::File(path, contents) => {
            let binary = Binary::from_contents(path, contents)?;
            checkable(&binary, components_of(&binary, env))
        }
    }
}

/// A file, an archive or a directory that is opened once, although several checks need its contents.
pub(crate) enum OpenArtifact<'a> {
    /// A single program, library or object.
    File(&'a Path, Arc<Contents>),
    /// An archive or a directory, with all its members.
    Whole(Box<ArtifactReport>),
}

impl<'a> OpenArtifact<'a> {
    pub(crate) fn open(path: &'a Path) -> Result<Self, CliError> {
        Ok(match artifact::open(path)? {
            Opened::File(contents) => Self::File(path, contents),
            Opened::Archive(archive) => Self::Whole(Box::new(ArtifactReport::read(path, archive, false)?)),
        })
    }

    /// Checks it on this machine. For a program that the dynamic linker of this machine loads, the start is simulated. `packages`
    /// limits the question to these packages; empty for all.
    pub(crate) fn check_here(&mut self, env: &Env, packages: &[String]) -> Result<MachineAnswer, CliError> {
        let probe = DriverProbe::with_current_exe();
        let here = || [machine::detect_machine(env, Some(&probe))];
        match self {
            Self::Whole(report) => {
                report.join_libraries_of_machine(env);
                check_archive(report, packages, &here(), HERE)
            }
            Self::File(path, _) if !packages.is_empty() => Err(no_packages(path)),
            Self::File(path, contents) => {
                let binary = Binary::from_contents(path, contents.clone())?;
                if is_loaded_here(&binary) {
                    simulate_start(env, &binary, &probe)
                } else {
                    check_binary(&binary, components_here(&binary, env), &here(), HERE)
                }
            }
        }
    }

    /// Returns true for a single file that no dynamic linker loads, or that of another operating system.
    pub(crate) fn is_never_loaded_here(&self) -> bool {
        let Self::File(path, contents) = self else { return false };
        Binary::from_contents(path, contents.clone()).is_ok_and(|binary| is_foreign(&binary) || is_unlinked(&binary))
    }

    /// Checks it on each of these machines; it must run on all of them. Findings name `place` as their origin.
    pub(super) fn check_on(
        &mut self,
        env: &Env,
        packages: &[String],
        machines: &[Machine],
        place: &str,
    ) -> Result<MachineAnswer, CliError> {
        match self {
            Self::Whole(report) => check_archive(report, packages, machines, place),
            Self::File(path, _) if !packages.is_empty() => Err(no_packages(path)),
            Self::File(path, contents) => {
                let binary = Binary::from_contents(path, contents.clone())?;
                check_binary(&binary, components_of(&binary, env), machines, place)
            }
        }
    }

    /// Checks it, or these packages of it, against the requirements of a release.
    pub(super) fn check_release(&mut self, gate: &Gate, packages: &[String]) -> Result<GateReport, CliError> {
        match self {
            Self::Whole(report) => gate.check_artifact(report, packages),
            Self::File(path, _) if !packages.is_empty() => Err(no_packages(path)),
            Self::File(path, contents) => {
                gate.check_artifact(&mut ArtifactReport::from_contents(path, contents.clone())?, &[])
            }
        }
    }
}

/// Returns the requirements of a file and of the libraries that come with it, for any machine.
fn components_of(binary: &Binary, env: &Env) -> Components {
    ArtifactReport::with_libraries(binary, env)
        .map_or_else(|| Components::from_binary(&binary.path, binary), |report| report.components())
}

/// Returns the requirements of a file and of the libraries that Windows loads for it on this machine. On another system, does the
/// same as [`components_of`].
fn components_here(binary: &Binary, env: &Env) -> Components {
    let is_here = cfg!(windows) && has_dlls(binary);
    let here = is_here.then(|| ArtifactReport::with_dlls(&binary.path, binary.data().clone(), Some(env))).flatten();
    here.map_or_else(|| components_of(binary, env), |report| report.components())
}

fn is_foreign(binary: &Binary) -> bool {
    let here = if cfg!(windows) { TargetOs::Windows } else { TargetOs::Linux };
    binary.os.is_some_and(|os| os != here)
}

/// Returns true for programs and libraries that the dynamic linker of this machine may load.
fn is_loaded_here(binary: &Binary) -> bool {
    !cfg!(windows) && !is_foreign(binary) && !is_unlinked(binary)
}

const fn is_unlinked(binary: &Binary) -> bool {
    matches!(binary.kind, BinaryKind::Object | BinaryKind::Archive | BinaryKind::GpuCode)
}

/// Adds the requirements of the packages that installed the files, as far as the other installed packages do not fulfil them.
fn add_packages(files: &[PathBuf], findings: &mut Vec<Finding>, not_examined: &mut Vec<NotExamined>) {
    let (of_packages, unknown) = artifact_report::check_packages(files);
    findings.extend(of_packages);
    not_examined.extend(unknown);
}

/// Returns the components, or an error if there is nothing to check.
fn checkable(binary: &Binary, mut components: Components) -> Result<Components, CliError> {
    if components.manifests.is_empty() && components.findings.is_empty() && components.not_examined.is_empty() {
        return Err(nothing_to_judge(binary));
    }
    add_packages(&components.files, &mut components.findings, &mut components.not_examined);
    if components.manifests.is_empty() {
        mark_only_code(&mut components.not_examined);
    }
    Ok(components)
}

fn nothing_to_judge(binary: &Binary) -> CliError {
    let file = &binary.path;
    if binary.kernels().is_ok_and(|kernels| !kernels.entries().is_empty()) {
        let why = "its GPU code contains no kernels, only input for the device linker";
        return CliError::operational(format_args!("{}: nothing to check: {why}", file.display()));
    }
    let needed: Vec<&str> = binary.imported().map(String::as_str).filter(|name| is_of_nvidia(name)).collect();
    let rest = if needed.is_empty() {
        "contains no GPU code and needs no CUDA library".to_owned()
    } else {
        format!("contains no GPU code, and its requirements on {} are unknown", needed.join(", "))
    };
    CliError::operational(format_args!("{}: nothing to check: it has no manifest, {rest}", file.display()))
}

/// The answer for one artifact on the machines.
pub(crate) struct MachineAnswer {
    pub(crate) findings: Vec<Finding>,
    /// Descriptions of the components.
    pub(crate) components: Vec<String>,
    /// Descriptions of the parts that no rule has checked, and of the parts that were not examined.
    pub(crate) open: Vec<String>,
    /// The newest toolkit that built one of the components, or the oldest that its cudart may be from.
    pub(crate) cuda: Option<CudaVersion>,
    pub(crate) not_examined: Vec<NotExamined>,
    /// The result for each GPU.
    pub(crate) gpus: Vec<GpuAnswer>,
    /// GPUs that no CUDA program can use here, with the reason.
    pub(crate) unusable: Vec<String>,
    /// The NVIDIA libraries that the dynamic linker would load; `None` if the dynamic linker of that machine cannot be
    /// simulated.
    pub(crate) libraries: Option<Vec<Loaded>>,
    /// The answer for each package of an environment, of which this is the sum. Empty for other artifacts.
    pub(crate) packages: Vec<PackageAnswer>,
}

/// The answer for a package, with the libraries of its environment.
pub(crate) struct PackageAnswer {
    /// `None` for the files that belong to no package.
    pub(crate) package: Option<PackageId>,
    pub(crate) answer: MachineAnswer,
}

impl PackageAnswer {
    /// Returns the name and version of the package, or the name of the file that contains it.
    pub(super) fn name(&self, file: &Path) -> String {
        match &self.package {
            Some(package) => format!("{} {}", package.name, package.version),
            None => file.display().to_string(),
        }
    }
}

impl MachineAnswer {
    fn new(
        findings: Vec<Finding>,
        manifests: &[Manifest],
        not_examined: Vec<NotExamined>,
        gpus: Vec<GpuAnswer>,
    ) -> Self {
        Self {
            findings,
            components: describe_manifests(manifests),
            open: not_judged(manifests, &not_examined),
            cuda: manifests.iter().filter_map(Manifest::cuda_version).max(),
            not_examined,
            gpus,
            unusable: Vec::new(),
            libraries: None,
            packages: Vec::new(),
        }
    }

    /// Adds up the answers for the packages of an environment.
    pub(super) fn from_packages(packages: Vec<PackageAnswer>) -> Self {
        let mut all = Self::new(Vec::new(), &[], Vec::new(), Vec::new());
        for PackageAnswer { answer, .. } in &packages {
            extend_new(&mut all.findings, &answer.findings);
            extend_new(&mut all.components, &answer.components);
            extend_new(&mut all.open, &answer.open);
            extend_new(&mut all.not_examined, &answer.not_examined);
            extend_new(&mut all.gpus, &answer.gpus);
            extend_new(&mut all.unusable, &answer.unusable);
            all.cuda = all.cuda.max(answer.cuda);
        }
        finding::sort_findings(&mut all.findings);
        Self { packages, ..all }
    }
}

/// Returns the result of each component on each GPU of the machine.
fn on_each(manifests: &[Manifest], machine: Option<&Machine>) -> Vec<Vec<GpuAnswer>> {
    let gpus = machine.map(Machine::known_gpus).unwrap_or_default();
    let forced = machine.is_some_and(Machine::passes_over_machine_code);
    manifests.iter().map(|manifest| answers(manifest, &gpus, forced)).collect()
}

/// Returns the results for a single file, with the number of containers if only some of them have code for the GPU.
fn on_each_of(binary: &Binary, components: &Components, machine: Option<&Machine>) -> Vec<GpuAnswer> {
    let of_each = on_each(&components.manifests, machine);
    let mut all: Vec<GpuAnswer> = if components.alternatives.in_part.is_empty() {
        of_each.into_iter().flatten().collect()
    } else {
        answers_together(&of_each, &components.alternatives)
    };
    // The code of a library next to the program is not in this file.
    if all.iter().any(|answer| answer.service == Service::Partial)
        && components.manifests.len() == 1
        && let Ok(kernels) = binary.kernels()
    {
        let count = kernels.container_count();
        for answer in all.iter_mut().filter(|answer| answer.service == Service::Partial) {
            answer.containers = Some((count - kernels.containers_without(answer.cc).count().min(count), count));
        }
    }
    if let Some(machine) = machine {
        add_driver_needs(&mut all, std::slice::from_ref(components), machine);
    }
    all
}

fn simulate_start(env: &Env, binary: &Binary, probe: &DriverProbe) -> Result<MachineAnswer, CliError> {
    let predicted = start::simulate_and_check(binary, env, &OpenFiles::default(), Some(probe))?;
    let mut findings = predicted.findings.clone();
    let mut not_examined = predicted.not_examined.clone();
    if predicted.manifests.is_empty() && findings.is_empty() && not_examined.is_empty() {
        return Err(nothing_to_judge(binary));
    }
    add_packages(&predicted.files, &mut findings, &mut not_examined);
    finding::sort_findings(&mut findings);
    let libraries = Some(predicted.loaded_libraries());
    let (manifests, alternatives) = (predicted.manifests, predicted.alternatives);
    let components = Components { manifests, alternatives, os: binary.os, ..Components::default() };
    let gpus = on_each_of(binary, &components, predicted.machine.as_ref());
    let answer = MachineAnswer::new(findings, &components.manifests, not_examined, gpus);
    Ok(MachineAnswer { libraries, ..answer })
}

/// Checks each package of an environment with the libraries of the environment, or a package as a whole.
fn check_archive(
    report: &mut ArtifactReport,
    packages: &[String],
    machines: &[Machine],
    place: &str,
) -> Result<MachineAnswer, CliError> {
    let each = report.components_of_packages(packages)?;
    if each.is_empty() {
        return Ok(check_components(report.checkable_components(&[])?, machines, place));
    }
    let check =
        |(package, components)| PackageAnswer { package, answer: check_components(components, machines, place) };
    Ok(MachineAnswer::from_packages(each.into_iter().map(check).collect()))
}

fn no_packages(file: &Path) -> CliError {
    CliError::operational(format_args!("{}: a single file has no packages: omit --package", file.display()))
}

/// Checks the components of an archive, or of a program that no file contains, on these machines.
pub(crate) fn check_components(components: Components, machines: &[Machine], place: &str) -> MachineAnswer {
    let machines = machines_for(machines, &components);
    let on = |machine| {
        let mut all = answers_together(&on_each(&components.manifests, Some(machine)), &components.alternatives);
        add_driver_needs(&mut all, std::slice::from_ref(&components), machine);
        all
    };
    let gpus = machines.iter().flat_map(on).collect();
    answer_on(components, gpus, &machines, place)
}

fn check_binary(
    binary: &Binary,
    components: Components,
    machines: &[Machine],
    place: &str,
) -> Result<MachineAnswer, CliError> {
    let components = checkable(binary, components)?;
    let machines = machines_for(machines, &components);
    let gpus = machines.iter().flat_map(|machine| on_each_of(binary, &components, Some(machine))).collect();
    Ok(answer_on(components, gpus, &machines, place))
}

/// Returns the machines as they are for these files.
fn machines_for(machines: &[Machine], components: &Components) -> Vec<Machine> {
    machines.iter().map(|machine| components.machine_for_file(machine).into_owned()).collect()
}

fn answer_on(components: Components, gpus: Vec<GpuAnswer>, machines: &[Machine], place: &str) -> MachineAnswer {
    let (mut findings, mut unusable) = (Vec::new(), Vec::new());
    for machine in machines {
        for finding in components.check_on(machine, place).into_iter().chain(machine.unknowns_finding()) {
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
        for gpu in machine.known_gpus() {
            if let (true, true, Some((major, minor))) = (gpu.visible, gpu.support.is_missing(), gpu.cc) {
                let name = gpu.name.unwrap_or("GPU");
                unusable.push(format!("{name} ({major}.{minor}): not supported by the driver"));
            }
        }
        for (gpu, state) in machine.gpus.iter().flatten().filter_map(|gpu| Some((gpu, gpu.state?))) {
            let name = gpu.name.as_deref().unwrap_or("GPU");
            unusable.push(format!("{name}: {}, so no CUDA program can use it", state.describe()));
        }
    }
    mark_unchecked(&mut findings, &components.manifests);
    finding::sort_findings(&mut findings);
    let answer = MachineAnswer::new(findings, &components.manifests, components.not_examined, gpus);
    MachineAnswer { unusable, ..answer }
}

/// Describes the parts of these components that no rule has checked, and those that were not examined.
pub(crate) fn not_judged(manifests: &[Manifest], not_examined: &[NotExamined]) -> Vec<String> {
    let mut names: Vec<_> = manifests.iter().filter_map(Manifest::not_judged).map(str::to_owned).collect();
    names.dedup();
    names.extend(not_examined.iter().map(ToString::to_string));
    names
}

fn describe_manifests(manifests: &[Manifest]) -> Vec<String> {
    // A component that was not built with cudaguard has no target.
    let one = |manifest: &Manifest| {
        let built =
            if manifest.target.is_empty() { String::new() } else { format!(", built with {}", built_with(manifest)) };
        format!("{}{built}", manifest.component)
    };
    manifests.iter().map(one).collect()
}
