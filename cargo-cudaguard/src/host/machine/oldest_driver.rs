//! Computes the oldest driver that files need. Every output that names a driver calls [`driver_needs`].
//!
//! Adds no rules. It runs the checks of a start with every CUDA version that a driver may support.

use std::collections::BTreeSet;

pub use super::judge::gpu_answer::OldestDriver;
use super::{Components, Driver, Gpu, Machine};
use crate::binary::file::TargetOs;
use crate::host::machine::judge::gpu_answer::{GpuAnswer, Service};
use crate::verdict::Verdict;
use cudaguard::internal::finding::Code;
use cudaguard::internal::manifest::Requirement;
use cudaguard::internal::tables;
use cudaguard::internal::version::{CudaVersion, DriverRelease};

/// The driver requirement of files on a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverNeeds {
    /// Older drivers are refused. `None`: every known driver is sufficient.
    pub driver: Option<OldestDriver>,
    /// The oldest driver that is certainly sufficient, if it is newer than `driver`
    /// (docs/internals/decisions, decision 24).
    pub guaranteed_from: Option<OldestDriver>,
}

impl DriverNeeds {
    /// Returns the oldest driver that is certainly sufficient. `None`: every known driver is.
    pub fn certain(self) -> Option<OldestDriver> {
        self.guaranteed_from.or(self.driver)
    }
}

/// Returns a machine with one GPU of this compute capability, or of an unknown one.
pub fn machine_with_gpu(cc: Option<(u8, u8)>) -> Machine {
    Machine { gpus: Some(vec![Gpu { cc, visible: Some(true), ..Gpu::default() }]), ..Machine::default() }
}

/// Returns the driver that these files need on a machine, whatever driver the machine has, and that supports the GPUs of the machine.
pub fn driver_needs(files: &[Components], machine: &Machine) -> DriverNeeds {
    let os = files.first().and_then(|file| file.os);
    let DriverNeeds { driver, guaranteed_from } = needs_of_files(files, machine);
    let driver = driver.max(first_driver(machine, os));
    let guaranteed_from = guaranteed_from.filter(|sure| driver.is_none_or(|driver| driver.cuda < sure.cuda));
    DriverNeeds { driver, guaranteed_from }
}

/// Does the same for a machine whose driver is known to support its GPUs.
pub(super) fn needs_of_files(files: &[Components], machine: &Machine) -> DriverNeeds {
    let cudas = cuda_versions(files);
    // A newer driver never has a worse result.
    let [refused, unknown] = [Verdict::Refused, Verdict::Unknown]
        .map(|worst| cudas.partition_point(|cuda| verdict_with_driver(files, machine, *cuda) >= worst));
    let [driver, guaranteed_from] = [refused, unknown].map(|at| {
        let cuda = *cudas.get(at).filter(|_| at > 0)?;
        // The release that the rows name for the CUDA version: the checks compare CUDA versions if they are known.
        let rows = files.iter().flat_map(|file| &file.manifests).flat_map(|manifest| &manifest.requires);
        let release =
            rows.flat_map(named_drivers).filter(|(of, _)| *of == cuda).filter_map(|(_, release)| release).max();
        Some(OldestDriver { cuda, release })
    });
    DriverNeeds { driver, guaranteed_from: guaranteed_from.filter(|_| unknown > refused) }
}

/// Returns the verdict of these files about a driver that supports a CUDA version.
fn verdict_with_driver(files: &[Components], machine: &Machine, cuda: CudaVersion) -> Verdict {
    let driver = Driver { cuda: Some(cuda), init: Some(0), ..Driver::default() };
    let machine = Machine { driver: Some(driver), ..machine.clone() };
    let findings = files.iter().flat_map(|file| file.check_on(&machine, "that machine"));
    let verdicts = findings.map(|finding| driver_verdict(finding.code, Verdict::from_findings([&finding])));
    verdicts.max().unwrap_or(Verdict::Runs)
}

/// Returns the first driver that supports all GPUs of a machine. `None`: every driver in use does.
fn first_driver(machine: &Machine, os: Option<TargetOs>) -> Option<OldestDriver> {
    let first =
        machine.gpus.iter().flatten().filter_map(|gpu| tables::first_driver(gpu.cc?)).max_by_key(|first| first.cuda)?;
    let release = first.release.map(|linux| match os {
        Some(TargetOs::Windows) => tables::windows_release(first.cuda, linux),
        _ => linux,
    });
    Some(OldestDriver { cuda: first.cuda, release })
}

/// Fills in the driver that a process with these files needs on each GPU that has code.
pub fn add_driver_needs(answers: &mut [GpuAnswer], files: &[Components], machine: &Machine) {
    for answer in answers.iter_mut().filter(|answer| answer.service != Service::None) {
        // Files for another processor have requirements too.
        let (libraries, variables) = (machine.libraries.clone(), machine.variables.clone());
        let on_gpu = Machine { libraries, variables, ..machine_with_gpu(Some(answer.cc)) };
        let needs = driver_needs(files, &on_gpu);
        answer.cuda = needs.driver.map(|driver| driver.cuda);
        answer.release = needs.driver.and_then(|driver| driver.release);
        answer.guaranteed_from = needs.guaranteed_from.and_then(|driver| Some((driver.cuda, driver.release?)));
    }
}

/// The part of a finding's verdict that depends on the release of the driver.
fn driver_verdict(code: Code, verdict: Verdict) -> Verdict {
    match code {
        Code::DriverTooOld
        | Code::DriverTooOldForCode
        | Code::CudnnNeedsNewerDriver
        | Code::DriverCannotTell
        | Code::OnlyCompiledPtx => verdict,
        _ => Verdict::Runs,
    }
}

/// Returns every CUDA version that a driver may support and that these files may require, and one that is older than all of them.
fn cuda_versions(files: &[Components]) -> Vec<CudaVersion> {
    let rows = files.iter().flat_map(|file| &file.manifests).flat_map(|manifest| &manifest.requires);
    let own = rows.flat_map(named_drivers).map(|(cuda, _)| cuda).filter(|cuda| *cuda < tables::NO_DRIVER_KNOWN.0);
    let all: BTreeSet<CudaVersion> = own.chain(known_cuda_versions()).collect();
    all.into_iter().collect()
}

/// Returns every CUDA version that a driver may support, and one that is older than all of them.
pub(super) fn known_cuda_versions() -> Vec<CudaVersion> {
    let of_branches = tables::branch_rows().iter().flat_map(|row| [Some(row.least), row.most]).flatten();
    let of_toolkits = tables::toolkit_rows().iter().map(|row| row.version);
    let all: BTreeSet<CudaVersion> = of_branches.chain(of_toolkits).chain([CudaVersion::new(1, 0)]).collect();
    all.into_iter().collect()
}

/// Returns the drivers that a row names: the CUDA version, and the first release that supports it if the row has one.
fn named_drivers(row: &Requirement) -> impl Iterator<Item = (CudaVersion, Option<DriverRelease>)> + '_ {
    let pairs = match row {
        Requirement::Driver { cuda, release, .. } => [Some((*cuda, Some(*release))), None],
        Requirement::Gpu { cuda, release, guaranteed_from, .. } => {
            [cuda.map(|cuda| (cuda, *release)), guaranteed_from.map(|(cuda, release)| (cuda, Some(release)))]
        }
        Requirement::Library { .. } | Requirement::Part { .. } => [None, None],
    };
    // 0: no release is known for it.
    pairs.into_iter().flatten().map(|(cuda, release)| (cuda, release.filter(|release| release.branch != 0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::machine::judge::gpu_answer::answers;
    use cudaguard::internal::manifest::{Component, GpuCoverage, Manifest, PtxFallback};
    use cudaguard::internal::policy::Policy;
    use cudaguard::internal::toolchain::Toolchain;

    fn file(rows: &[&[Requirement]]) -> Components {
        let manifest = |rows: &&[Requirement]| {
            let component = Component { name: "demo".to_owned(), version: "0.1.0".to_owned() };
            let manifest = Manifest::from_build(component, "t", "release", &Policy::default(), &Toolchain::default());
            Manifest { requires: rows.to_vec(), ..manifest }
        };
        Components { manifests: rows.iter().map(manifest).collect(), ..Components::default() }
    }

    fn gpus(from: (u8, u8), to: Option<(u8, u8)>, by: GpuCoverage, cuda: Option<CudaVersion>) -> Requirement {
        Requirement::Gpu {
            from,
            to,
            by,
            code: "code".to_owned(),
            cuda,
            release: cuda.map(|_| DriverRelease::new(550, 54, 14)),
            guaranteed_from: None,
            ptx_fallback: PtxFallback::Undetermined,
        }
    }

    fn cudart() -> Requirement {
        let (cuda, release) = (CudaVersion::new(12, 0), DriverRelease::new(525, 60, 13));
        Requirement::Driver { cuda, release, because: "libcudart 12.4".to_owned() }
    }

    /// Whichever member contains the requirement, it is one of the process.
    #[test]
    fn requirements_of_all_members_count() {
        let ptx = Some(CudaVersion::new(12, 4));
        let code = [
            gpus((0, 0), Some((7, 255)), GpuCoverage::Nothing, None),
            gpus((8, 0), Some((8, 255)), GpuCoverage::Cubin, None),
            gpus((9, 0), None, GpuCoverage::Ptx, ptx),
        ];
        let alone = file(&[&code]);
        let together = file(&[&[cudart()], &code]);
        for (components, cc, needs) in [
            (&alone, (8, 0), "CUDA 11.0 (450"),
            (&together, (8, 0), "CUDA 12.0 (525.60.13 or newer)"),
            (&together, (9, 0), "CUDA 12.4 (550.54.14 or newer)"),
            // No driver of CUDA 12.4 drives it.
            (&together, (10, 0), "CUDA 12.8 (570.26 or newer)"),
            (&together, (7, 5), "none: no code for it"),
        ] {
            let machine = machine_with_gpu(Some(cc));
            let mut found = answers(components.manifests.last().unwrap(), &machine.known_gpus(), false);
            add_driver_needs(&mut found, std::slice::from_ref(components), &machine);
            let [answer] = &found[..] else { panic!("{found:?}") };
            assert!(answer.to_string().contains(needs), "{answer}");
        }
    }

    #[test]
    fn uncertain_drivers_are_separate() {
        let mut code = gpus((8, 0), None, GpuCoverage::Cubin, None);
        if let Requirement::Gpu { guaranteed_from, .. } = &mut code {
            *guaranteed_from = Some((CudaVersion::new(13, 0), DriverRelease::new(580, 65, 6)));
        }
        let files = [file(&[&[cudart(), code]])];
        let needs = driver_needs(&files, &machine_with_gpu(Some((8, 0))));
        let driver = |cuda, release| Some(OldestDriver { cuda, release: Some(release) });
        assert_eq!(needs.driver, driver(CudaVersion::new(12, 0), DriverRelease::new(525, 60, 13)));
        assert_eq!(needs.guaranteed_from, driver(CudaVersion::new(13, 0), DriverRelease::new(580, 65, 6)));
        assert_eq!(needs.certain(), needs.guaranteed_from);
        // Without a GPU only the cudart counts.
        let any = driver_needs(&files, &machine_with_gpu(None));
        assert_eq!((any.driver, any.guaranteed_from), (needs.driver, None));
        assert_eq!(driver_needs(&[file(&[&[]])], &machine_with_gpu(None)), DriverNeeds::default());
    }
}
