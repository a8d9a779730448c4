//! Checks one artifact on machines.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{self, Finding};
use cudaguard::internal::manifest::Manifest;
use cudaguard::internal::version::CudaVersion;

use super::machines::HERE;
use crate::artifact::{self, Opened};
use crate::binary::examined::NotExamined;
use crate::binary::file::{Binary, BinaryKind, TargetOs};
use crate::binary::mapped_file::{Contents, OpenFiles};
use crate::cli::report::CliError;
use crate::commands::artifact_report::{self, ArtifactReport, PackageId};
use crate::commands::inspect::built_with;
use crate::commands::release::{Gate, GateReport};
use crate::commands::start;
use crate::host::dry_run::{DryRun, Loaded, loaded_libraries};
use crate::host::machine::judge::gpu_answer::{GpuAnswer, Service, answers};
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
    OpenArtifact::open(file)?.ask(env, packages, false, |report| report.checkable_components(packages))
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

    /// Asks its report. That of a file includes the libraries that come with it, or those that this machine loads (`is_here`).
    fn ask<T>(
        &mut self,
        env: &Env,
        packages: &[String],
        is_here: bool,
        question: impl FnOnce(&mut ArtifactReport) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        match self {
            Self::Whole(report) => question(report),
            Self::File(path, _) if !packages.is_empty() => Err(no_packages(path)),
            Self::File(path, contents) => {
                let binary = Binary::from_contents(path, contents.clone())?;
                question(&mut ArtifactReport::with_libraries(&binary, env, is_here)?)
            }
        }
    }

    /// Checks it on this machine. For a program that the dynamic linker of this machine loads, the start is simulated. `packages`
    /// limits the question to these packages; empty for all.
    pub(crate) fn check_here(&mut self, env: &Env, packages: &[String]) -> Result<MachineAnswer, CliError> {
        let probe = DriverProbe::with_current_exe();
        if let Self::File(path, contents) = self
            && packages.is_empty()
        {
            let binary = Binary::from_contents(path, contents.clone())?;
            if !cfg!(windows) && !is_never_loaded_here(&binary) {
                return simulate_start(env, &binary, &probe);
            }
        }
        self.ask(env, packages, true, |report| {
            report.join_libraries_of_machine(env);
            check_artifact(report, packages, &[machine::detect_machine(env, Some(&probe))], HERE)
        })
    }

    /// Returns true for a single file that no dynamic linker loads, or that of another operating system.
    pub(crate) fn is_never_loaded_here(&self) -> bool {
        let Self::File(path, contents) = self else { return false };
        Binary::from_contents(path, contents.clone()).is_ok_and(|binary| is_never_loaded_here(&binary))
    }

    /// Checks it on each of these machines; it must run on all of them. Findings name `place` as their origin.
    pub(super) fn check_on(
        &mut self,
        env: &Env,
        packages: &[String],
        machines: &[Machine],
        place: &str,
    ) -> Result<MachineAnswer, CliError> {
        self.ask(env, packages, false, |report| check_artifact(report, packages, machines, place))
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

/// Returns true for a file that no dynamic linker loads, or that of another operating system.
fn is_never_loaded_here(binary: &Binary) -> bool {
    let here = if cfg!(windows) { TargetOs::Windows } else { TargetOs::Linux };
    matches!(binary.kind, BinaryKind::Object | BinaryKind::Archive | BinaryKind::GpuCode)
        || binary.os.is_some_and(|os| os != here)
}

/// The answer for one artifact on the machines.
#[derive(Default)]
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
    fn new(findings: Vec<Finding>, components: &Components, gpus: Vec<GpuAnswer>) -> Self {
        let Components { manifests, not_examined, .. } = components;
        Self {
            findings,
            components: describe_manifests(manifests),
            open: not_judged(manifests, not_examined),
            cuda: manifests.iter().filter_map(Manifest::cuda_version).max(),
            not_examined: not_examined.clone(),
            gpus,
            ..Self::default()
        }
    }

    /// Adds up the answers for the packages of an environment.
    pub(super) fn from_packages(packages: Vec<PackageAnswer>) -> Self {
        let mut all = Self::default();
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

/// Returns the results of the components for each GPU of the machine. For a single file, they have the number of containers if only
/// some of them have code for the GPU.
fn gpu_answers(components: &Components, machine: &Machine) -> Vec<GpuAnswer> {
    let Components { manifests, alternatives, kernels, .. } = components;
    let (gpus, forced) = (machine.known_gpus(), machine.passes_over_machine_code());
    let of_each: Vec<_> = manifests.iter().map(|manifest| answers(manifest, &gpus, forced)).collect();
    let mut all: Vec<GpuAnswer> = if kernels.is_some() && alternatives.in_part.is_empty() {
        of_each.into_iter().flatten().collect()
    } else {
        answers_together(&of_each, alternatives)
    };
    // The code of a library next to the program is not in this file.
    if let Some(kernels) = kernels.as_ref().filter(|_| manifests.len() == 1) {
        let count = kernels.container_count();
        for answer in all.iter_mut().filter(|answer| answer.service == Service::Partial) {
            answer.containers = Some((count - kernels.containers_without(answer.cc).count().min(count), count));
        }
    }
    add_driver_needs(&mut all, std::slice::from_ref(components), machine);
    all
}

fn simulate_start(env: &Env, binary: &Binary, probe: &DriverProbe) -> Result<MachineAnswer, CliError> {
    let mut predicted = start::simulate_and_check(binary, env, &OpenFiles::default(), Some(probe))?;
    if predicted.components.is_empty() && predicted.findings.is_empty() {
        return Err(artifact_report::nothing_to_check(binary));
    }
    start::add_packages(&mut predicted);
    let DryRun { graph, components, mut findings, machine, .. } = predicted;
    finding::sort_findings(&mut findings);
    let gpus = gpu_answers(&components, &machine.unwrap_or_default());
    let answer = MachineAnswer::new(findings, &components, gpus);
    Ok(MachineAnswer { libraries: Some(loaded_libraries(&graph)), ..answer })
}

/// Checks each package of an environment with the libraries of the environment, or a package or a file as a whole.
fn check_artifact(
    report: &mut ArtifactReport,
    packages: &[String],
    machines: &[Machine],
    place: &str,
) -> Result<MachineAnswer, CliError> {
    let each = report.components_of_packages(packages)?;
    if each.is_empty() {
        return Ok(check_components(&report.checkable_components(&[])?, machines, place));
    }
    let answers = each.into_iter().map(|(package, components)| {
        let answer = check_components(&components, machines, place);
        PackageAnswer { package, answer }
    });
    Ok(MachineAnswer::from_packages(answers.collect()))
}

fn no_packages(file: &Path) -> CliError {
    CliError::operational(format_args!("{}: a single file has no packages: omit --package", file.display()))
}

/// Checks the components of an artifact, or of a program that no file contains, on these machines.
pub(crate) fn check_components(components: &Components, machines: &[Machine], place: &str) -> MachineAnswer {
    let (mut findings, mut gpus, mut unusable) = (Vec::new(), Vec::new(), Vec::new());
    for machine in machines {
        let machine = &*components.machine_for_file(machine);
        gpus.extend(gpu_answers(components, machine));
        extend_new(&mut findings, &components.check_on(machine, place));
        extend_new(&mut findings, machine.unknowns_finding().as_slice());
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
    let answer = MachineAnswer::new(findings, components, gpus);
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
