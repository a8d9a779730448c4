//! Judges a program on a machine: (manifest, machine) → findings.
//!
//! The rules are in C (`templates/shim/judge.c`), for started programs and for the command. This module encodes the facts, and
//! writes the findings.

mod encoding;
pub mod gpu_answer;
mod judge_ffi;
#[cfg(test)]
mod tests;

use std::path::Path;

use cudaguard::internal::finding::{self, Code, Effect, Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::manifest::{BuiltWith, Component, GpuCoverage, Linkage, Manifest, Requirement};
use cudaguard::internal::note::layout::{GPU_AUTO, GPU_OPTIONAL, GPU_REQUIRED, PARTIAL_REFUSES, PARTIAL_SILENT};
use cudaguard::internal::policy::{GpuNeed, Policy};
use cudaguard::internal::tables;
use cudaguard::internal::toolchain::Toolchain;
use cudaguard::internal::version::{CudaVersion, Version};

use crate::host::machine::{Driver, HERE, Host, HostLibrary, LibraryState, LoaderVersion, Machine};
use crate::knowledge::jetpack::jetpack_for;
use encoding::{cudnn_facts, driver_facts, gpu_facts, known, narrow, pack_cc, to_row};
use judge_ffi::{CudartFacts, GpuFacts, Judged, JudgedFinding, NoteRow, Requirements, judge_start};

/// Numbers of `judge.h`.
mod code {
    pub(super) const DETECTED: u32 = 2;
    pub(super) const ABSENT: u32 = 1;
    pub(super) const FOUND: u32 = 2;
    pub(super) const NO_ROW: u32 = u32::MAX;
    pub(super) const MIXED_ISA: u32 = 1;

    pub(super) const MAY_BE_DRIVEN: u32 = 1;
    pub(super) const NOT_YET_DRIVEN: u32 = 2;
    pub(super) const NO_LONGER_DRIVEN: u32 = 3;

    pub(super) const PRODUCT_OF_DATA_CENTERS: u32 = 1;
    pub(super) const PRODUCT_OF_CONSUMERS: u32 = 2;

    pub(super) const COMPAT_NONE: u32 = 1;
    pub(super) const COMPAT_LISTED: u32 = 2;
    pub(super) const COMPAT_UNLISTED: u32 = 3;
    pub(super) const COMPAT_ANY: u32 = 4;

    pub(super) const WARNING: u32 = 1;
    pub(super) const ERROR: u32 = 2;
}

/// The messages of the judge's codes, in the order of `judge.h`.
const MESSAGES: &[MessageTemplate] = &[
    MessageTemplate::CudnnOtherMajor,
    MessageTemplate::CudnnOlder,
    MessageTemplate::CudnnOlderPatch,
    MessageTemplate::CudnnInnerMissing,
    MessageTemplate::CudnnInnerMissingNeeded,
    MessageTemplate::CudnnAbsent,
    MessageTemplate::CudnnInnerMixed,
    MessageTemplate::CudnnOtherCuda,
    MessageTemplate::CudnnCannotTell,
    MessageTemplate::CudnnCannotTellNotLoaded,
    MessageTemplate::CudartOlder,
    MessageTemplate::CudartUnknown,
    MessageTemplate::DriverTooOld,
    MessageTemplate::DriverTooOldNoneKnown,
    MessageTemplate::DriverTooOldForCode,
    MessageTemplate::DriverTooOldForCodeNoneKnown,
    MessageTemplate::DriverTooOldForCodeCompressed,
    MessageTemplate::DriverTooOldForCodeForced,
    MessageTemplate::NoCodeForGpu,
    MessageTemplate::DriverMismatch,
    MessageTemplate::ForwardCompatUnsupported,
    MessageTemplate::StubDriver,
    MessageTemplate::DriverMissing,
    MessageTemplate::JitDisabled,
    MessageTemplate::JitMissing,
    MessageTemplate::GpuMissing,
    MessageTemplate::PartialCode,
    MessageTemplate::CudnnTooNewForGpu,
    MessageTemplate::JitForced,
    MessageTemplate::CudnnNeedsNewerDriver,
    MessageTemplate::NothingToSee,
    MessageTemplate::DriverCannotTell,
    MessageTemplate::DriverCannotTellAnswer,
    MessageTemplate::DriverCannotTellNotLoaded,
    MessageTemplate::DriverCannotTellUnsure,
    MessageTemplate::DriverCannotTellNewerPtx,
    MessageTemplate::DriverCannotTellForced,
    MessageTemplate::CudnnBeforeThisGpu,
    MessageTemplate::GpuNotForDriver,
    MessageTemplate::CudnnInnerMixedLoader,
    MessageTemplate::DriverCannotTellBranch,
    MessageTemplate::DriverCannotTellDrives,
    MessageTemplate::GpuNotForDriverYet,
    MessageTemplate::KernelModuleUnknown,
];

/// Facts because of which the verdict about the driver is unknown, by the bits of `enum judge_unknown`.
const UNKNOWN_FACTS: [&str; 6] = [
    "the driver",
    "the release of libcuda",
    "the GPUs that a program sees",
    "the compute capability of a GPU",
    "the product name of a GPU, because cuda-compat does not support all",
    "whether this libcuda works on that kernel module",
];

/// Returns the findings about a program with this manifest and the cuDNN that it gets, sorted. Severities are the rules' own:
/// `[runtime]` and `CUDAGUARD` change what a program does at its start, never the verdict.
pub fn judge(manifest: &Manifest, host: &Host<'_>, cudnn: LibraryState<'_>) -> Vec<Finding> {
    let call = JudgeCall::new(manifest, host, cudnn);
    let judged = call.run();
    let mut findings: Vec<Finding> = judged.findings.iter().map(|found| call.write(found, judged.unknown)).collect();
    finding::sort_findings(&mut findings);
    findings
}

/// Returns the error because of which this machine refuses every program that requires a GPU, named as this component.
pub fn refusal_of_every_gpu_program(component: Component, machine: &Machine) -> Option<Finding> {
    let mut manifest = Manifest::from_build(component, "", "", &Policy::default(), &Toolchain::default());
    manifest.runtime.gpu = GpuNeed::Required;
    let findings = judge(&manifest, &machine.host(HERE), LibraryState::Unknown);
    findings.into_iter().find(|finding| finding.code.effect() == Effect::Refuses)
}

/// Returns what every program that is linked to this cuDNN would find: missing and mixed parts, and a driver or GPUs that it does not
/// support.
pub fn findings_of_cudnn(library: &HostLibrary, machine: &Machine) -> Vec<Finding> {
    let Some(major) = library.major() else { return Vec::new() };
    let mut manifest =
        Manifest::from_build(Component::unrecorded(""), "", "", &Policy::default(), &Toolchain::default());
    let built = BuiltWith { version: Version::new(major, 0, 0), linkage: Linkage::Linked };
    manifest.requires = built.requirement_rows(&Policy::default());
    let mut findings = judge(&manifest, &machine.host(HERE), LibraryState::Found(library));
    findings.retain(|finding| match finding.code {
        Code::CudnnInnerMissing | Code::CudnnInnerMixed | Code::CudnnBeforeThisGpu => true,
        Code::CudnnTooNewForGpu | Code::CudnnNeedsNewerDriver => finding.severity == Severity::Error,
        _ => false,
    });
    findings
}

/// Returns the warning about two components that no GPU can run both. The first of them is its owner.
pub fn together<'a>(
    manifests: impl IntoIterator<Item = &'a Manifest>,
    host: &Host<'_>,
    cudnn: LibraryState<'_>,
) -> Option<Finding> {
    let usable = |manifest| (manifest, JudgeCall::new(manifest, host, cudnn).run().usable_gpus);
    let usable = manifests.into_iter().map(usable);
    let all: Vec<(&Manifest, u64)> = usable.filter(|(_, gpus)| *gpus != 0).collect();
    let mut pairs = all.iter().enumerate().flat_map(|(at, one)| all[at + 1..].iter().map(move |other| (one, other)));
    let ((one, _), (other, _)) = pairs.find(|((_, one), (_, other))| one & other == 0)?;
    let values = JudgeCall::new(one, host, cudnn).driver_values(None).with("other", &other.component);
    Some(MessageTemplate::NoGpuForAll.to_finding(&values))
}

/// A call of the judge.
struct JudgeCall<'a> {
    manifest: &'a Manifest,
    host: &'a Host<'a>,
    driver: Option<&'a Driver>,
    cudnn: LibraryState<'a>,
    cudart: Option<&'a HostLibrary>,
    /// The GPUs that the process sees, of equal ones the first: the judge numbers them.
    gpus: Option<Vec<GpuFacts>>,
}

impl<'a> JudgeCall<'a> {
    fn new(manifest: &'a Manifest, host: &'a Host<'_>, cudnn: LibraryState<'a>) -> Self {
        let gpus = host.gpus.as_ref().map(|gpus| {
            let mut known: Vec<GpuFacts> = Vec::new();
            for gpu in gpus.iter().filter(|gpu| gpu.visible).map(gpu_facts) {
                if !known.contains(&gpu) {
                    known.push(gpu);
                }
            }
            known
        });
        let driver = host.driver.as_ref().filter(|driver| !driver.absent);
        Self { manifest, host, driver, cudnn, cudart: host.machine.cudart_of(manifest), gpus }
    }

    fn run(&self) -> Judged {
        let manifest = self.manifest;
        let rows: Vec<NoteRow> = manifest.requires.iter().map(to_row).collect();
        let requirements = Requirements {
            gpu: u32::from(match manifest.runtime.gpu {
                GpuNeed::Auto => GPU_AUTO,
                GpuNeed::Required => GPU_REQUIRED,
                GpuNeed::Optional => GPU_OPTIONAL,
            }),
            partial: u32::from(if manifest.partial_refuse { PARTIAL_REFUSES } else { PARTIAL_SILENT }),
            built_cuda: manifest.cuda_version().map_or(0, CudaVersion::to_int),
            cudart_built: manifest
                .shared_cudart()
                .map_or(0, |(_, built)| Version::new(built.major, built.minor, 0).packed_saturating()),
        };
        let version = self.cudart.and_then(|cudart| cudart.version);
        let cudart = CudartFacts {
            source: code::DETECTED,
            state: self.cudart.map_or(0, |_| code::FOUND),
            version: version.map_or(0, Version::packed_saturating),
        };
        let (cudnn, parts) = cudnn_facts(manifest, self.cudnn);
        let driver = (driver_facts(self.host), self.gpus.as_deref());
        judge_start(&rows, requirements, (cudnn, &parts), cudart, driver)
    }

    /// Values about the component; none if it has no name.
    fn component(&self) -> Values {
        let component = &self.manifest.component;
        Values::default().with_known("component", Some(component).filter(|component| !component.name.is_empty()))
    }

    /// The compute capabilities of these GPUs, each once; of all that the driver drives.
    fn capabilities(&self, which: Option<u64>) -> Vec<(u8, u8)> {
        let mut found = Vec::new();
        for (at, gpu) in self.gpus.iter().flatten().enumerate() {
            let chosen = which.map_or(gpu.driven < code::NOT_YET_DRIVEN, |which| at < 64 && which >> at & 1 == 1);
            let cc = (u8::try_from(gpu.cc >> 8).unwrap_or(u8::MAX), gpu.cc.to_le_bytes()[0]);
            if chosen && gpu.cc != 0 && !found.contains(&cc) {
                found.push(cc);
            }
        }
        found
    }

    /// Values about component, driver, and these GPUs, or all that the driver drives.
    fn driver_values(&self, which: Option<u64>) -> Values {
        let ccs = self.capabilities(which);
        let gpus: Vec<String> = ccs.iter().map(|cc| tables::dotted_cc(*cc)).collect();
        let mut archs: Vec<String> = ccs.iter().map(|cc| tables::code_to_add(*cc)).collect();
        archs.dedup();
        let (user, kernel) = self.driver.map_or((None, None), |driver| (driver.user, driver.kernel));
        self.component()
            .with_known("driver", user)
            .with_known("cuda", self.cuda())
            .with_known("kernel", kernel.filter(|_| kernel != user))
            .with_known("libcuda", self.driver.and_then(|driver| driver.library.as_deref()))
            .with("gpus", gpus.join(", "))
            .with("archs", archs.join(", "))
    }

    /// The CUDA version that the driver supports.
    fn cuda(&self) -> Option<CudaVersion> {
        self.driver.and_then(|driver| driver.cuda)
    }

    /// Writes a finding.
    fn write(&self, found: &JudgedFinding, unknown: u32) -> Finding {
        let message = usize::try_from(found.code).ok().and_then(|code| MESSAGES.get(code)).copied();
        let message = message.expect("the judge has no other codes");
        let requirement = usize::try_from(found.row).ok().and_then(|row| self.manifest.requires.get(row));
        let finding = match (message, requirement) {
            (MessageTemplate::CudartOlder | MessageTemplate::CudartUnknown, _) => self.write_cudart(message),
            (
                MessageTemplate::CudnnTooNewForGpu | MessageTemplate::CudnnBeforeThisGpu,
                Some(Requirement::Library { min, .. }),
            ) => self.write_generation(message, found, *min),
            (_, Some(row @ Requirement::Library { .. })) => self.write_cudnn(message, found, row),
            (_, Some(row)) => self.write_row(message, found, row),
            (_, None) => self.write_driver(message, found, unknown),
        };
        let severity = match found.severity {
            code::ERROR => Severity::Error,
            code::WARNING => Severity::Warning,
            _ => Severity::Info,
        };
        finding.with_severity(severity)
    }

    fn write_cudart(&self, message: MessageTemplate) -> Finding {
        let mut values = self.component();
        if let Some((soname, built)) = self.manifest.shared_cudart() {
            values = values.with("library", &soname).with("built_cuda", built);
            if let Some(found) = self.cudart {
                values = values.with("path", found.path.as_deref().unwrap_or(&soname));
                values = values.with_known("found_cuda", found.version.map(CudaVersion::from));
            }
        }
        message.to_finding(&values)
    }

    fn write_cudnn(&self, message: MessageTemplate, found: &JudgedFinding, row: &Requirement) -> Finding {
        let Requirement::Library { min, built, soname, patch_refuse, .. } = row else {
            return message.to_finding(&self.component());
        };
        let min = if *patch_refuse { *min.max(built) } else { *min };
        let or_newer = if self.manifest.component.is_unrecorded() { " or newer" } else { "" };
        // A cuDNN that is judged without a program ([`findings_of_cudnn`]): nothing was built with it.
        let is_named = !self.manifest.component.name.is_empty();
        let values = self.component().with_known("built", is_named.then(|| format!("{built}{or_newer}")));
        let values = values.with("built_major", built.major).with("min", min).with("library", soname);
        let Some(library) = self.cudnn.found() else { return message.to_finding(&values) };
        let path = library.path.as_deref().unwrap_or(self.host.place);
        let values = values.with_known("picked_by", library.by.as_ref());
        let values = values.with_known("found", library.version).with("path", path);
        // The parts have the numbers of their rows among those of parts.
        let required = self.manifest.requires.iter().filter_map(|row| match row {
            Requirement::Part { file, .. } => Some(file.as_str()),
            _ => None,
        });
        let parts = required.clone().take(64).enumerate().filter(|(at, _)| found.parts >> at & 1 == 1);
        let parts: Vec<&str> = parts.map(|(_, file)| file).collect();
        match (message, &parts[..], library.loader) {
            (MessageTemplate::CudnnInnerMissing, ..) => message.to_finding(&values.with("library", parts.join(", "))),
            (MessageTemplate::CudnnInnerMissingNeeded, [file, ..], _) => {
                message.to_finding(&values.with("library", *file))
            }
            (MessageTemplate::CudnnInnerMixed, [file, ..], _) => {
                let part = library.part(file);
                let other_file = part.and_then(|part| part.path.as_deref()).map(Path::display);
                let values = values.with("library", *file).with_known("part", part.and_then(|part| part.version));
                message.to_finding(&values.with_known("beside", other_file))
            }
            (MessageTemplate::CudnnInnerMixed, [], LoaderVersion::Version(own)) => {
                message.to_finding(&values.with("part", own))
            }
            (MessageTemplate::CudnnInnerMixedLoader, _, LoaderVersion::Minor(major, minor)) => {
                message.to_finding(&values.with("loader", format_args!("{major}.{minor}")))
            }
            (MessageTemplate::CudnnOtherCuda, ..) => {
                let values = values.with_known("found_cuda", library.cuda);
                message.to_finding(&values.with_known("built_cuda", self.manifest.cuda_version()))
            }
            _ => {
                // The library that has the version is named if it is in another directory.
                let mut required = required.filter_map(|file| library.part(file));
                let has_version = required.find(|part| part.version.is_some() && part.version == library.version);
                let other_file = has_version.and_then(|part| part.path.as_deref());
                let other_file = other_file.filter(|own| own.parent() != Path::new(path).parent());
                message.to_finding(&values.with_known("beside", other_file.map(Path::display)))
            }
        }
    }

    /// Writes that the cuDNN library is too new or too old for GPUs.
    fn write_generation(&self, message: MessageTemplate, found: &JudgedFinding, min: Version) -> Finding {
        let version = self.cudnn.found().and_then(|library| library.version);
        let values = self.driver_values(Some(found.gpus)).with_known("found", version);
        message.to_finding(&match message {
            MessageTemplate::CudnnTooNewForGpu => {
                let dropped_in = Version::from_packed(found.version);
                // Otherwise no cuDNN is between them.
                values.with_known("min", Some(min).filter(|min| *min < dropped_in)).with("dropped_in", dropped_in)
            }
            _ => values.with("newest_major", found.version),
        })
    }

    /// Writes a finding about a row of the driver or of GPUs.
    fn write_row(&self, message: MessageTemplate, found: &JudgedFinding, row: &Requirement) -> Finding {
        let needs_cuda = known(found.needs_cuda).map(CudaVersion::from_int);
        let needs_release = match row {
            Requirement::Driver { release, .. } => Some(*release).filter(|release| release.branch != 0),
            _ => narrow(found.needs_release),
        };
        let needs_release = needs_release.filter(|_| !self.is_on_jetson(found));
        let values = match message {
            MessageTemplate::DriverCannotTellUnsure => self.driver_values(None),
            _ => self.driver_values(Some(found.gpus)),
        };
        let code = match row {
            Requirement::Driver { because, .. } => because.clone(),
            _ if found.isa == code::MIXED_ISA => String::new(),
            _ if found.isa != 0 => format!("PTX {}.{}", found.isa >> 8, found.isa & 0xff),
            Requirement::Gpu { code, .. } => code.clone(),
            Requirement::Library { .. } | Requirement::Part { .. } => String::new(),
        };
        // Machine code for the GPU does not replace PTX text that the program loads.
        let is_text = matches!(row, Requirement::Gpu { .. }) && code.contains("PTX text");
        let message = match message {
            MessageTemplate::DriverTooOldForCode | MessageTemplate::DriverTooOldForCodeCompressed if is_text => {
                MessageTemplate::DriverTooOldForCodeText
            }
            other => other,
        };
        let values = values.with("code", code);
        let major = self.cuda().map(|cuda| cuda.major);
        match message {
            MessageTemplate::CudnnNeedsNewerDriver => {
                let Some(library) = self.cudnn.found() else { return message.to_finding(&values) };
                let values = values.with_known("found", library.version).with_known("found_cuda", library.cuda);
                message.to_finding(&values.with_known("needs_cuda", needs_cuda).with_known("cuda_major", major))
            }
            MessageTemplate::DriverCannotTellUnsure => {
                let values = values.with_known("nvcc_major", needs_cuda.map(|cuda| cuda.major));
                message.to_finding(&values.with_known("needs_release", needs_release).with_known("cuda_major", major))
            }
            MessageTemplate::DriverCannotTellBranch => {
                let bounds = self.driver.and_then(|driver| driver.user).map(tables::driver_supports);
                let values = values.with_known("needs_cuda", needs_cuda);
                let values = values.with_known("least", bounds.and_then(|bounds| bounds.least));
                message.to_finding(&values.with_known("most", bounds.and_then(|bounds| bounds.most)))
            }
            MessageTemplate::DriverCannotTellNewerPtx => message.to_finding(&values),
            MessageTemplate::NoCodeForGpu => self.write_no_code(found, values),
            _ => {
                let values = match row {
                    Requirement::Gpu { .. } => values.with("built_for", self.manifest.built_for()),
                    _ => values,
                };
                let values = values.with_known("needs_cuda", needs_cuda);
                let finding = message.to_finding(&values.with_known("needs_release", needs_release));
                self.name_jetpack(finding, found, needs_cuda)
            }
        }
    }

    /// Returns true if all GPUs of the finding are those of a Jetson: its driver is a part of JetPack.
    fn is_on_jetson(&self, found: &JudgedFinding) -> bool {
        let ccs = self.capabilities(Some(found.gpus).filter(|gpus| *gpus != 0));
        !ccs.is_empty() && ccs.into_iter().all(tables::is_tegra)
    }

    /// Replaces the update of the driver in the hint by the JetPack that contains a sufficient one.
    fn name_jetpack(&self, mut finding: Finding, found: &JudgedFinding, cuda: Option<CudaVersion>) -> Finding {
        let Some(cuda) = cuda.filter(|_| self.is_on_jetson(found)) else { return finding };
        let ccs = self.capabilities(Some(found.gpus).filter(|gpus| *gpus != 0));
        let jetpack = ccs.first().and_then(|cc| jetpack_for(*cc, cuda));
        let action = match jetpack {
            Some(jetpack) => format!("install {jetpack} or newer"),
            None => "use a newer Jetson, because no JetPack for this one has such a driver".to_owned(),
        };
        finding.hint = finding.hint.replacen("update the driver", &action, 1);
        finding
    }

    /// Writes that GPUs have no code. The hint differs if the toolkit in use cannot compile for them.
    fn write_no_code(&self, found: &JudgedFinding, values: Values) -> Finding {
        let ccs = self.capabilities(Some(found.gpus));
        let (first, last) = tables::compiling_toolkits(ccs.clone());
        let built = self.manifest.toolkit.map(CudaVersion::from);
        let message = match built {
            Some(built) if last.is_some_and(|last| built > last) => MessageTemplate::NoCodeForGpuNoLongerMade,
            Some(built) if first.is_some_and(|first| built < first) => MessageTemplate::NoCodeForGpuNotYetMade,
            // The compute capability looks compatible with code for desktop GPUs of the same major.
            _ if ccs.into_iter().any(tables::is_tegra) => MessageTemplate::NoCodeForGpuJetson,
            _ => MessageTemplate::NoCodeForGpu,
        };
        let values = values.with("built_for", self.manifest.built_for()).with_known("built_cuda", built);
        let values = match message {
            MessageTemplate::NoCodeForGpuJetson => {
                values.with("why", "a Jetson runs machine code for exactly its own compute capability, or PTX")
            }
            _ => values,
        };
        message.to_finding(&values.with_known("made_from", first).with_known("made_to", last))
    }

    /// Returns the GPUs for which only PTX text next to the kernels has code, and the text.
    fn only_text(&self) -> Option<(u64, &str)> {
        self.manifest.requires.iter().find_map(|row| {
            let Requirement::Gpu { from, to, by: GpuCoverage::AtMostPartial, code, .. } = row else { return None };
            let (from, to) = (pack_cc(*from), to.map_or(u32::MAX, pack_cc));
            let mut gpus = 0;
            for (at, gpu) in self.gpus.iter().flatten().take(64).enumerate() {
                if gpu.cc != 0 && gpu.driven < code::NOT_YET_DRIVEN && (from..=to).contains(&gpu.cc) {
                    gpus |= 1 << at;
                }
            }
            (gpus != 0 && !code.is_empty()).then_some((gpus, code.as_str()))
        })
    }

    /// Writes a finding that is not about a row.
    fn write_driver(&self, message: MessageTemplate, found: &JudgedFinding, unknown: u32) -> Finding {
        let values = self.driver_values(None);
        let needs_cuda = known(found.needs_cuda).map(CudaVersion::from_int);
        let needs_release = narrow(found.needs_release);
        match message {
            MessageTemplate::DriverCannotTell => {
                let facts = UNKNOWN_FACTS.iter().enumerate();
                let facts: Vec<&str> =
                    facts.filter(|(bit, _)| unknown >> bit & 1 == 1).map(|(_, fact)| *fact).collect();
                if let Some((gpus, code)) = self.only_text().filter(|_| facts.is_empty()) {
                    let values = self.driver_values(Some(gpus)).with("code", code);
                    let values = values.with("built_for", self.manifest.built_for());
                    return MessageTemplate::DriverCannotTellPtxText.to_finding(&values);
                }
                if !self.host.is_described() || facts.is_empty() {
                    return message.to_finding(&values);
                }
                MessageTemplate::DriverCannotTellNotNamed.to_finding(&values.with("missing", facts.join(", ")))
            }
            MessageTemplate::DriverCannotTellAnswer => {
                message.to_finding(&values.with_known("answer", self.driver.and_then(|driver| driver.init)))
            }
            MessageTemplate::DriverCannotTellDrives | MessageTemplate::GpuNotForDriverYet => {
                let values = self.driver_values(Some(found.gpus)).with_known("needs_cuda", needs_cuda);
                message.to_finding(&values.with_known("needs_release", needs_release))
            }
            MessageTemplate::GpuNotForDriver => {
                message.to_finding(&self.driver_values(Some(found.gpus)).with("branch", found.version))
            }
            _ => message.to_finding(&values),
        }
    }
}
