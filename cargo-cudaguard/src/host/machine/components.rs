//! The components of a file as the runtime checks use them: read once, checked against many machines.
//!
//! A note that was never sealed does not contain the requirements of its file for driver and GPU. They are derived from
//! the file here, as sealing would do, and added to the manifest in memory.

mod file_facts;
mod libraries;

pub use libraries::{BroughtCudnn, LinkedCudnn, LoadedModule, Needed, OpenedByName};

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::oldest_driver::{OldestDriver, driver_needs, machine_with_gpu};
use super::{DriverSupport, HostGpu, HostLibrary, LibraryState, Machine};
use crate::binary::elf::machine_name;
use crate::binary::examined::NotExamined;
use crate::binary::file::TargetOs;
use crate::binary::file::{Binary, BinaryKind};
use crate::binary::kernels::Kernels;
use crate::binary::symbols::Bound;
use crate::family::{self, DriverFunctions, LookedUp, RuntimeCompiler, oldest_driver_of};
use crate::host::machine::judge;
use crate::knowledge::vendor::use_names_of_windows;
use crate::knowledge::vendor::{CUDART, NCCL};
use crate::linked::evidence::{Evidence, LinkEvidence};
use crate::linked::seal::drop_certain;
use crate::linked::seal::{self, LinkObservation};
use crate::verdict::Verdict;
use cudaguard::internal::finding::{self, Code, Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::manifest::{Component, Linkage, Manifest, Requirement};
use cudaguard::internal::tables;
use cudaguard::internal::use_windows_releases;
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};
use object::elf::{EM_CUDA, EM_NONE};

use file_facts::{
    cuda_of_row, linked_cudnn, manifest_without_note, needed_libraries, newer_note_finding, opened_cudart, uses_cuda,
};
pub(crate) use file_facts::{cudnn_soname, is_cudnn_row, opened_cudnn};

/// The place of findings about this machine.
pub(crate) const HERE: &str = "this machine";

/// The requirements of a file.
#[derive(Clone, Debug, Default)]
pub struct Components {
    /// A manifest for each component. A file without notes has one that is derived from its code, if it uses CUDA.
    pub manifests: Vec<Manifest>,
    /// Findings about facts of the file that are unknown on every machine.
    pub findings: Vec<Finding>,
    /// The newest function of each NVIDIA library that the file binds.
    pub bound: Vec<Bound>,
    /// The libraries of NVIDIA that the file needs by soname, except cuDNN.
    pub needed: Vec<Needed>,
    /// The cuDNN that comes with the file.
    pub brought: Vec<BroughtCudnn>,
    /// The copy of libcuda that comes with the file: its name, and its release if the name contains it.
    pub own_libcuda: Option<(String, Option<DriverRelease>)>,
    /// The libraries of NVIDIA that the file opens by name, except cuDNN and the driver's.
    pub opened: Vec<OpenedByName>,
    /// The modules of a package, of which one that can be loaded suffices.
    pub modules: Vec<LoadedModule>,
    /// Name of the file.
    pub file: String,
    /// The processor that the file is for, by name; empty if it is not known.
    pub processor: String,
    /// The operating system that loads the file; `None` if several do, or it is not known.
    pub os: Option<TargetOs>,
    /// True for a container image. It contains everything that its programs load, except the driver's libraries.
    pub is_image: bool,
    /// The GPU code of a single file.
    pub kernels: Option<Kernels>,
    /// True for a bare cubin, which the driver loads even if `CUDA_FORCE_PTX_JIT` is set (decision 48).
    pub is_bare_cubin: bool,
    /// Groups of files of which one is sufficient.
    pub alternatives: Alternatives,
    /// The run-time compilers that come with the file.
    pub compilers: Vec<RuntimeCompiler>,
    /// True if the file or its own libraries load NVRTC.
    pub loads_nvrtc: bool,
    /// The functions that crates in the file look up in the driver.
    pub driver_functions: Vec<DriverFunctions>,
    /// The functions that crates in the file look up in NVIDIA's libraries.
    pub lookups: Vec<LookedUp>,
    /// A file that was compiled with NCCL's headers, and their release, if NCCL does not come with the file.
    pub wanted_nccl: Option<(String, Version)>,
    /// The parts of the file that were not examined.
    pub not_examined: Vec<NotExamined>,
    /// The file and the libraries that come with it, except those of NVIDIA's and of the system.
    pub files: Vec<PathBuf>,
    /// The packages of an environment, each with the libraries of the others. The environment runs if each of them does.
    pub packages: Vec<Self>,
}

/// Groups of components of which one member is sufficient.
#[derive(Clone, Debug, Default)]
pub struct Alternatives {
    /// Files of which a program uses the one that fits.
    pub one_of: Vec<Choice>,
    /// Manifests that may lack code for a GPU that one of [`Self::serving`] supports: the GPU is then partially
    /// supported.
    pub in_part: Vec<usize>,
    /// Manifests of the package's main code.
    pub serving: Vec<usize>,
    /// Libraries of NVIDIA's that no file loads and that need a newer driver than the others: a program may open them.
    pub idle: Vec<usize>,
}

/// Files of which one suffices: builds of one library, or kernel files for several GPUs.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    pub(crate) variants: Vec<Variant>,
}

/// One of several files.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The name of the file.
    pub(crate) name: String,
    /// Files with different stems contain different kernels.
    pub(crate) stem: String,
    /// Indices in [`Components::manifests`].
    pub(crate) manifests: Vec<usize>,
}

impl Machine {
    /// Returns the findings about compilers that run on this machine.
    pub(crate) fn compiler_findings(&self, compilers: &[RuntimeCompiler]) -> Vec<Finding> {
        if compilers.is_empty() {
            return Vec::new();
        }
        family::compiler_findings(compilers, self.cuda_of_driver(), self.visible_ccs())
    }

    /// Returns the findings about functions that crates look up and that the driver of this machine lacks.
    pub(crate) fn driver_function_findings(&self, all: &[DriverFunctions]) -> Vec<Finding> {
        let Some(cuda) = self.cuda_of_driver().filter(|_| !all.is_empty()) else { return Vec::new() };
        family::driver_function_findings(all, cuda, |cuda| {
            // The driver of a Jetson is a part of JetPack, and that of WSL has the releases of Windows.
            let release = tables::first_release(cuda).filter(|_| self.kind.is_none())?;
            Some(if self.is_windows() { tables::windows_release(cuda, release) } else { release })
        })
    }

    /// Returns the CUDA version that the driver supports.
    fn cuda_of_driver(&self) -> Option<CudaVersion> {
        self.tabled_driver().filter(|driver| !driver.absent)?.cuda_version(self.kind)
    }
}

impl Components {
    /// Derives the components of a parsed file and the evidence in it. If the file has no note and does not use CUDA, there are no
    /// components and no findings.
    pub fn from_binary(path: &Path, binary: &Binary, evidence: &Evidence) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        // GPU code and an archive without objects work on every processor.
        let processor = match binary.machine {
            EM_NONE | EM_CUDA => String::new(),
            other => machine_name(other).into_owned(),
        };
        let (needed, bound) = (needed_libraries(binary), binary.bound.clone());
        let not_examined = binary.not_examined().into_iter().map(|reason| NotExamined::new(&name, reason)).collect();
        let (file, os, files) = (name.clone(), binary.os, vec![path.to_owned()]);
        let mut components = Self { bound, needed, file, processor, os, not_examined, files, ..Self::default() };
        for note in binary.manifests() {
            match note {
                Ok(note) => {
                    components.findings.extend(newer_note_finding(&note));
                    components.manifests.push(note.manifest);
                }
                Err(why) => {
                    let values = Values::default().with("file", &name).with("why", why);
                    components.findings.push(MessageTemplate::NoteDamaged.to_finding(&values));
                }
            }
        }
        // The note of a sealed file contains the requirements of its kernels; other kernels are from libraries that
        // were linked in.
        if !components.manifests.iter().any(|manifest| manifest.sealed) {
            components.add_file(&name, binary, evidence);
        }
        let itself = binary.soname.as_deref().is_some_and(|soname| CUDART.is_named(soname));
        if !itself && components.manifests.iter().any(Manifest::has_unknown_cudart) {
            components
                .findings
                .push(MessageTemplate::CudartInsideUnknown.to_finding(&Values::default().with("file", &name)));
        }
        let with_driver = binary.needed.iter().filter_map(|soname| Some((soname, oldest_driver_of(soname)?)));
        if let Some((soname, major)) = with_driver.max_by_key(|(_, major)| *major) {
            for manifest in components.manifests.iter_mut().filter(|manifest| manifest.component.is_unrecorded()) {
                seal::require_driver_of_library(manifest, soname, major);
            }
        }
        // The recorded names are those of Linux.
        if components.os != Some(TargetOs::Windows) {
            components.opened = components.manifests.iter().flat_map(OpenedByName::from_manifest).collect();
        }
        components.use_releases_of_os();
        components
    }

    /// Adds up the requirements of the packages of an environment.
    pub(crate) fn from_packages(file: String, packages: Vec<Self>) -> Self {
        let mut all = Self { file, ..Self::default() };
        for package in &packages {
            extend_new(&mut all.manifests, &package.manifests);
            extend_new(&mut all.findings, &package.findings);
            extend_new(&mut all.not_examined, &package.not_examined);
        }
        Self { packages, ..all }
    }

    /// Returns the packages of an environment, or the file: what is checked on its own.
    pub(crate) fn units(&self) -> &[Self] {
        if self.packages.is_empty() { std::slice::from_ref(self) } else { &self.packages }
    }

    /// Returns true if there is nothing to check.
    pub(crate) fn is_empty(&self) -> bool {
        self.manifests.is_empty() && self.findings.is_empty() && self.not_examined.is_empty()
    }

    /// Returns true if GPU code of a file shows which GPUs are supported.
    pub(crate) fn has_gpu_code(&self) -> bool {
        self.manifests.iter().any(|manifest| manifest.requires.iter().any(|row| matches!(row, Requirement::Gpu { .. })))
    }

    /// Replaces the driver releases, which are those of Linux, if the file is for Windows.
    fn use_releases_of_os(&mut self) {
        if self.os == Some(TargetOs::Windows) {
            self.manifests.iter_mut().flat_map(|manifest| &mut manifest.requires).for_each(use_windows_releases);
        }
    }

    /// Marks the GPUs that other files of the closure support with machine code, and derives the requirements of one of NVIDIA's
    /// libraries again. Has no effect on other code.
    pub(crate) fn mark_fallback(&mut self, kernels: &mut Kernels, others: impl Fn((u8, u8)) -> bool) {
        kernels.mark_fallback(others);
        for manifest in self.manifests.iter_mut().filter(|manifest| manifest.target.is_empty()) {
            if let Some(first) = manifest.requires.iter().position(|row| matches!(row, Requirement::Gpu { .. })) {
                manifest.requires.retain(|row| !matches!(row, Requirement::Gpu { .. }));
                manifest.requires.splice(first..first, kernels.requirement_rows());
                drop_certain(manifest);
            }
        }
        self.use_releases_of_os();
    }

    /// Adds the driver requirement of the cudart that the package of the file installs.
    pub(crate) fn require_cudart_of_package(&mut self, cudart: CudaVersion) {
        self.manifests.iter_mut().for_each(|manifest| seal::require_cudart_of_package(manifest, cudart));
        self.use_releases_of_os();
    }

    /// Drops driver requirements of NVIDIA's libraries (`of_vendor`: the places of their manifests) that another file of
    /// the same closure has, so that one cause gives one finding.
    pub(crate) fn drop_implied_rows(&mut self, of_vendor: &[usize]) {
        let implied = self.newest_driver_without(of_vendor);
        for at in of_vendor {
            self.manifests[*at].requires.retain(|row| cuda_of_row(row).is_none_or(|cuda| implied < Some(cuda)));
        }
    }

    /// Marks the libraries of NVIDIA's that no file loads (`idle`: the places of their manifests), if other files show which driver
    /// a program needs.
    pub(crate) fn mark_idle(&mut self, idle: Vec<usize>) {
        if self.newest_driver_without(&idle).is_some() {
            self.alternatives.idle = idle;
        }
    }

    /// Returns the newest CUDA version that files other than these need the driver to support.
    fn newest_driver_without(&self, left_out: &[usize]) -> Option<CudaVersion> {
        let others = self.manifests.iter().enumerate().filter(|(at, _)| !left_out.contains(at));
        others.flat_map(|(_, manifest)| manifest.requires.iter().filter_map(cuda_of_row)).max()
    }

    /// Checks what the manifests require of cuDNN with a library that comes with the file, instead of that of a machine.
    pub(crate) fn bring_cudnn(&mut self, library: &Result<HostLibrary, Finding>) {
        for manifest in 0..self.manifests.len() {
            let known = self.brought.iter().find(|brought| brought.manifest == manifest);
            let rows = match known {
                Some(known) => known.rows.clone(),
                None => self.manifests[manifest].requires.extract_if(.., |row| is_cudnn_row(row)).collect(),
            };
            self.brought.push(BroughtCudnn { manifest, rows, library: library.clone() });
        }
    }

    /// Returns a copy without manifests whose requirements equal those of another one, whatever the names of their
    /// components. A map or a placement checks each manifest hundreds of times.
    pub(crate) fn without_repeats(&self) -> Self {
        let mut kept: Vec<Manifest> = Vec::new();
        let mut places: HashMap<(String, Vec<bool>), usize> = HashMap::new();
        let mut moved = Vec::with_capacity(self.manifests.len());
        for (at, manifest) in self.manifests.iter().enumerate() {
            let variants = self.alternatives.one_of.iter().flat_map(|choice| &choice.variants);
            let groups = variants.map(|variant| &variant.manifests).chain([
                &self.alternatives.in_part,
                &self.alternatives.serving,
                &self.alternatives.idle,
            ]);
            let groups = groups.map(|group| group.binary_search(&at).is_ok()).collect();
            let nameless = Manifest { component: Component::unrecorded(""), ..manifest.clone() };
            let brought: Vec<_> = self.brought.iter().filter(|brought| brought.manifest == at).collect();
            let brought: Vec<_> = brought.iter().map(|one| (&one.rows, &one.library)).collect();
            moved.push(*places.entry((format!("{nameless:?} {brought:?}"), groups)).or_insert_with(|| {
                kept.push(manifest.clone());
                kept.len() - 1
            }));
        }
        let mut alternatives = self.alternatives.clone();
        let Alternatives { one_of, in_part, serving, idle } = &mut alternatives;
        let variants = one_of.iter_mut().flat_map(|choice| &mut choice.variants);
        for group in variants.map(|variant| &mut variant.manifests).chain([in_part, serving, idle]) {
            *group = group.iter().map(|at| moved[*at]).collect::<BTreeSet<_>>().into_iter().collect();
        }
        let mut brought = self.brought.clone();
        for one in &mut brought {
            one.manifest = moved[one.manifest];
        }
        let mut of_kept = BTreeSet::new();
        brought.retain(|brought| of_kept.insert(format!("{brought:?}")));
        let packages = self.packages.iter().map(Self::without_repeats).collect();
        Self { manifests: kept, brought, alternatives, packages, ..self.clone() }
    }

    /// Returns the machine with the operating system of the file, if the description names none, without variables that do not
    /// affect the file, and with the libraries that the file brings.
    pub(crate) fn machine_for_file<'a>(&self, machine: &'a Machine) -> Cow<'a, Machine> {
        let mut machine = machine.with_default_os(self.os);
        if self.is_bare_cubin && machine.passes_over_machine_code() {
            machine.to_mut().variables.retain(|(name, _)| name != "CUDA_FORCE_PTX_JIT");
        }
        if let Some((name, release)) = &self.own_libcuda {
            machine.to_mut().use_libcuda(name, *release);
        }
        if self.is_image {
            machine.to_mut().use_no_other_libraries();
        }
        machine
    }

    /// Checks the file on this machine, whose loader is not available. `place` names the machine for libraries without
    /// a path.
    pub fn check_on(&self, machine: &Machine, place: &str) -> Vec<Finding> {
        if !self.packages.is_empty() {
            let mut findings: Vec<Finding> = Vec::new();
            for package in &self.packages {
                extend_new(&mut findings, &package.check_on(machine, place));
            }
            finding::sort_findings(&mut findings);
            return findings;
        }
        let machine = &*self.machine_for_file(machine);
        // It is unknown which GPUs a variable selects. That does not matter if all of them have the same result.
        let mut alone = machine.each_alone().into_iter().map(|machine| self.check_on(&machine, place));
        if let Some(first) = alone.next() {
            let verdict = Verdict::from_findings(&first);
            if verdict != Verdict::Unknown && alone.all(|other| Verdict::from_findings(&other) == verdict) {
                return first;
            }
        }
        if let Some(other) =
            machine.processor_name().filter(|other| *other != self.processor && !self.processor.is_empty())
        {
            return vec![self.wrong_machine(&self.processor, other)];
        }
        let os = self.os.filter(|_| !self.processor.is_empty());
        if let Some((os, other)) = os.and_then(|os| Some((os, machine.platform_without(os)?))) {
            return vec![self.wrong_machine(&format!("{}-{}", self.processor, os.name()), other)];
        }
        let mut findings = Vec::new();
        let mut first = None;
        let mut of_each = Vec::new();
        let mut host = machine.host(place);
        let drivers = self.drivers_for_unsupported_gpus(host.gpus.as_deref().unwrap_or_default());
        for gpu in host.gpus.iter_mut().flatten() {
            let needs = drivers.iter().find(|(cc, _)| gpu.cc == Some(*cc));
            if let (DriverSupport::NotYet(first), Some((_, needs))) = (&mut gpu.support, needs) {
                (first.cuda, first.release) = (needs.cuda, needs.release);
            }
        }
        for manifest in &self.manifests {
            let mut cudnn = machine.cudnn_of(manifest);
            let at = of_each.len();
            let mut findings = Vec::new();
            for brought in self.brought.iter().filter(|brought| brought.manifest == at) {
                extend_new(&mut findings, &brought.judge(manifest, &host));
            }
            if !self.brought.iter().any(|brought| brought.manifest == at) {
                let unusable = linked_cudnn(manifest).and_then(|soname| machine.unusable_library(&soname, &self.file));
                if unusable.is_some() {
                    cudnn = LibraryState::Unknown;
                }
                findings = judge::judge(manifest, &host, cudnn);
                findings.extend(unusable);
            }
            of_each.push(findings);
            first.get_or_insert(cudnn);
        }
        self.alternatives.downgrade_optional(&mut of_each, &self.manifests);
        let libraries = self.libraries_of(machine, &mut of_each);
        findings.extend(of_each.into_iter().flatten());
        findings.extend(first.and_then(|cudnn| judge::together(&self.manifests, &host, cudnn)));
        let compilers = self.compilers_with(libraries.compilers(machine));
        let of_compilers = machine.compiler_findings(&compilers);
        if self.loads_nvrtc && !self.has_gpu_code() {
            let values = Values::default().with("file", &self.file);
            for (cause, message) in [
                (Code::CompilerUnknownGpu, MessageTemplate::OnlyCompiledCode),
                (Code::CompilerNewerThanDriver, MessageTemplate::OnlyCompiledPtx),
            ] {
                if of_compilers.iter().any(|finding| finding.code == cause) {
                    findings.push(message.to_finding(&values));
                }
            }
        }
        findings.extend(of_compilers);
        findings.extend(libraries.findings);
        findings.extend(machine.driver_function_findings(&self.driver_functions));
        findings.extend(self.older_nccl(machine));
        findings.extend(self.findings_of_every_cudnn(machine, place));
        findings.extend(self.findings.iter().cloned());
        if self.own_libcuda.is_some() {
            let of_copy = MessageTemplate::DriverMismatchOwn.to_finding(&Values::default());
            for finding in findings.iter_mut().filter(|finding| finding.code == Code::DriverMismatch) {
                finding.hint.clone_from(&of_copy.hint);
            }
        }
        if self.os == Some(TargetOs::Windows) {
            findings.iter_mut().for_each(use_names_of_windows);
        }
        finding::sort_findings(&mut findings);
        findings
    }

    /// Returns the compilers that come with the file and those of the machine. Of one that neither has, the soname is known.
    fn compilers_with(&self, of_machine: Vec<RuntimeCompiler>) -> Vec<RuntimeCompiler> {
        let mut all = [self.compilers.clone(), of_machine].concat();
        if all.is_empty() {
            all.extend(self.needed.iter().filter_map(|needed| family::compiler_of_soname(&needed.soname)));
        }
        all
    }

    /// Returns the driver that the file needs on each GPU that the driver of the machine does not support yet.
    fn drivers_for_unsupported_gpus(&self, gpus: &[HostGpu<'_>]) -> Vec<((u8, u8), OldestDriver)> {
        let unsupported = gpus.iter().filter(|gpu| matches!(gpu.support, DriverSupport::NotYet(_)));
        let ccs: BTreeSet<(u8, u8)> = unsupported.filter_map(|gpu| gpu.cc).collect();
        let needs = ccs
            .into_iter()
            .filter_map(|cc| Some((cc, driver_needs(std::slice::from_ref(self), &machine_with_gpu(Some(cc))).driver?)));
        needs.collect()
    }

    /// Returns the finding for another processor or platform. `built_for` and `machine` name processors or platforms.
    fn wrong_machine(&self, built_for: &str, machine: &str) -> Finding {
        let component = self.manifests.first().map(|manifest| manifest.component.to_string());
        let values = Values::default().with_known("component", component).with("file", &self.file);
        let values = values.with("processor", built_for).with("place", "that machine").with("machine", machine);
        MessageTemplate::WrongMachine.to_finding(&values)
    }

    /// Compares the NCCL of the machine with the headers that the file was compiled with.
    fn older_nccl(&self, machine: &Machine) -> Option<Finding> {
        let (file, built) = self.wanted_nccl.as_ref()?;
        let found = machine.library_files(&NCCL)?.iter().find(|found| found.is_loaded())?;
        family::older_nccl_finding(file, *built, found.version?, found.path.as_deref())
    }

    fn add_file(&mut self, name: &str, binary: &Binary, evidence: &Evidence) {
        let file = Values::default().with("file", name);
        let guarded = !self.manifests.is_empty();
        if guarded && matches!(binary.kind, BinaryKind::Object | BinaryKind::Archive) {
            self.findings.push(MessageTemplate::KernelsCannotTellUnlinked.to_finding(&file));
            return;
        }
        let kernels = match binary.kernels() {
            Ok(kernels) => Some(kernels),
            Err(why) => {
                self.findings
                    .push(MessageTemplate::KernelsCannotTell.to_finding(&file.clone().with("why", &why.problem)));
                None
            }
        };
        self.is_bare_cubin = binary.kind == BinaryKind::GpuCode && kernels.is_some_and(Kernels::is_one_cubin);
        if !guarded {
            if !uses_cuda(binary, kernels) {
                return;
            }
            self.manifests.push(manifest_without_note(name, binary));
            let bare_code = binary.kind == BinaryKind::GpuCode;
            let words = if bare_code { MessageTemplate::NoManifestGpuCode } else { MessageTemplate::NoManifest };
            self.findings.push(words.to_finding(&file));
        }
        // The code of a static cudart contains its release, even if no note records it.
        let inside = kernels.filter(|_| binary.linkage(&CUDART) == Linkage::Static);
        let reported = inside.map(|_| evidence.cudart.clone());
        let unread = self.not_examined.iter().any(|part| part.may_contradict);
        let is_partial = binary.kind == BinaryKind::Archive && unread;
        let observed = LinkObservation {
            seen: LinkEvidence { cudart: reported.unwrap_or_default(), ..LinkEvidence::default() },
            archs: kernels.map(Kernels::built_targets),
            // If no kernels are detected but the project declares some, the declaration counts.
            // The members of an archive that were not read may have code for other GPUs.
            gpus: kernels.filter(|kernels| kernels.has_kernels() && !is_partial).map(Kernels::requirement_rows),
            cudart_opened: kernels.and_then(|kernels| opened_cudart(binary, kernels)),
            ..LinkObservation::from_binary(binary)
        };
        self.manifests = std::mem::take(&mut self.manifests)
            .into_iter()
            .map(|manifest| Manifest { sealed: false, ..seal::observed_manifest(manifest, &observed) })
            .collect();
        if binary.kind == BinaryKind::Archive && kernels.is_some_and(Kernels::has_linker_input) {
            let why = "a part of its GPU code is input for the device linker: what it requires is unknown";
            self.not_examined.push(NotExamined::new(name, why));
        }
    }
}

/// Adds the items that are not there.
pub(crate) fn extend_new<T: Clone + PartialEq>(all: &mut Vec<T>, more: &[T]) {
    for item in more {
        if !all.contains(item) {
            all.push(item.clone());
        }
    }
}

/// Returns true for the error that a file has no code for a GPU.
fn lacks_code(finding: &Finding) -> bool {
    finding.code == Code::NoCodeForGpu && finding.severity == Severity::Error
}

impl Alternatives {
    /// Downgrades errors of a component if another one of its group is sufficient.
    pub(crate) fn downgrade_optional(&self, findings: &mut [Vec<Finding>], manifests: &[Manifest]) {
        let served = self.serving.iter().any(|at| {
            manifests[*at].requires.iter().any(|row| matches!(row, Requirement::Gpu { .. }))
                && Verdict::from_findings(&findings[*at]) != Verdict::Refused
        });
        for at in self.in_part.iter().filter(|_| served) {
            for finding in findings[*at].iter_mut().filter(|finding| lacks_code(finding)) {
                finding.severity = Severity::Info;
            }
        }
        for at in &self.idle {
            findings[*at].iter_mut().filter(|finding| finding.severity == Severity::Error).for_each(mark_idle);
        }
        for choice in &self.one_of {
            let (out, fit): (Vec<&Variant>, Vec<&Variant>) = choice.variants.iter().partition(|variant| {
                variant.manifests.iter().any(|at| Verdict::from_findings(&findings[*at]) == Verdict::Refused)
            });
            let Some(fit) = fit.first() else { continue };
            for at in out.into_iter().flat_map(|variant| &variant.manifests) {
                for finding in findings[*at].iter_mut().filter(|finding| finding.severity == Severity::Error) {
                    finding.severity = Severity::Info;
                    finding.message.push_str("\ninstead:    ");
                    finding.message.push_str(&fit.name);
                }
            }
        }
    }
}

/// Turns an error about a library that no file loads into a warning.
pub(crate) fn mark_idle(finding: &mut Finding) {
    finding.severity = Severity::Warning;
    finding.message.push_str("\nloaded by:  none of the examined files");
}
