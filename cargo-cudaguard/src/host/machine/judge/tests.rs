//! Cases of driver and GPU.

use cudaguard::internal::finding::Severity;
use cudaguard::internal::manifest::{GpuCoverage, Manifest, PtxFallback, Requirement};
use cudaguard::internal::policy::GpuNeed;
use cudaguard::internal::version::{CudaVersion, DriverRelease};

use super::{judge, together};
use crate::host::machine::{CompatPackage, Driver, Gpu, LibraryState, Machine};
use cudaguard::internal::finding::Code;
use cudaguard::internal::finding::Finding;
use cudaguard::internal::manifest::Component;
use cudaguard::internal::policy::Policy;
use cudaguard::internal::toolchain::Toolchain;

fn manifest(requires: Vec<Requirement>) -> Manifest {
    let component = Component { name: "demo".to_owned(), version: "0.1.0".to_owned() };
    let mut manifest = Manifest::from_build(component, "t", "release", &Policy::default(), &Toolchain::default());
    manifest.requires = requires;
    manifest
}

fn cudart_13() -> Requirement {
    Requirement::Driver {
        cuda: CudaVersion::new(13, 0),
        release: DriverRelease::new(580, 65, 6),
        because: "libcudart 13.0".to_owned(),
    }
}

fn sm_80() -> Vec<Requirement> {
    [
        ((0, 0), Some((7, 255)), GpuCoverage::Nothing),
        ((8, 0), Some((8, 255)), GpuCoverage::Cubin),
        ((9, 0), None, GpuCoverage::Nothing),
    ]
    .into_iter()
    .map(|(from, to, by)| Requirement::Gpu {
        from,
        to,
        by,
        code: "sm_80".to_owned(),
        cuda: None,
        release: None,
        guaranteed_from: None,
        ptx_fallback: PtxFallback::Undetermined,
    })
    .collect()
}

fn gpus(ccs: &[(u8, u8)]) -> Vec<Gpu> {
    ccs.iter().map(|cc| Gpu { cc: Some(*cc), visible: Some(true), listed: true, ..Gpu::default() }).collect()
}

fn judged(manifest: &Manifest, machine: &Machine) -> Vec<Finding> {
    judge(manifest, &machine.host("this machine"), LibraryState::Unknown)
}

fn codes(manifest: &Manifest, driver: impl Into<Option<Driver>>, gpus: Option<Vec<Gpu>>) -> Vec<String> {
    let findings = judged(manifest, &Machine { driver: driver.into(), gpus, ..Machine::default() });
    findings.iter().map(|finding| format!("{} {}", finding.code, finding.severity)).collect()
}

fn releases(user: Option<u32>, kernel: Option<u32>) -> Driver {
    let release = |branch| DriverRelease::new(branch, 95, 5);
    Driver { user: user.map(release), kernel: kernel.map(release), ..Driver::default() }
}

#[test]
fn release_alone_identifies_driver() {
    let manifest = manifest(vec![cudart_13()]);
    let one = || Some(gpus(&[(9, 0)]));
    for (user, kernel, expected) in [
        (Some(535), None, &["CG301 error", "CG506 info"][..]),
        (Some(580), None, &["CG506 info"]),
        (Some(590), Some(590), &[]),
        // cuda-compat may be newer than the kernel module, but never older than a release that works with it.
        (None, Some(535), &["CG505 info"]),
        (None, Some(590), &[]),
        (Some(590), Some(535), &["CG505 info"]),
        (Some(535), Some(590), &["CG304 error"]),
        (None, None, &["CG505 info"]),
    ] {
        assert_eq!(codes(&manifest, releases(user, kernel), one()), expected, "{user:?} on {kernel:?}");
    }
    let nobody_knows = Requirement::Driver {
        cuda: CudaVersion::new(99, 0),
        release: DriverRelease::new(0, 0, 0),
        because: String::new(),
    };
    assert_eq!(codes(&self::manifest(vec![nobody_knows]), releases(Some(700), Some(700)), one()), ["CG505 info"]);
}

#[test]
fn unknown_branch_support_is_named() {
    let jetson = DriverRelease::new(540, 4, 0);
    let driver = Driver { user: Some(jetson), kernel: Some(jetson), ..Driver::default() };
    let mut ptx = manifest(sm_80());
    for row in &mut ptx.requires {
        if let Requirement::Gpu { by, cuda, release, .. } = row {
            (*by, *cuda) = (GpuCoverage::Ptx, Some(CudaVersion::new(12, 4)));
            *release = Some(DriverRelease::new(550, 54, 14));
        }
    }
    let mut code = manifest(sm_80());
    for row in &mut code.requires {
        if let Requirement::Gpu { by: GpuCoverage::Cubin, guaranteed_from, .. } = row {
            *guaranteed_from = Some((CudaVersion::new(13, 0), DriverRelease::new(580, 65, 6)));
        }
    }
    let mut both = manifest(vec![cudart_13()]);
    both.requires.extend(ptx.requires.clone());
    for (manifest, expected) in [
        (&manifest(vec![cudart_13()]), "driver 540.4.0 supports libcudart 13.0: that needs CUDA 13.0, and no table"),
        (&both, "driver 540.4.0 supports libcudart 13.0: that needs CUDA 13.0, and no table"),
        (&ptx, "driver 540.4.0 supports sm_80: that needs CUDA 12.4, and no table"),
        (&code, "sm_80 of nvcc 13 loads on this driver"),
    ] {
        let machine = Machine { driver: Some(driver.clone()), gpus: Some(gpus(&[(8, 7)])), ..Machine::default() };
        let findings = judged(manifest, &machine);
        let [finding] = findings.as_slice() else { panic!("{findings:?}") };
        assert!(finding.code == Code::DriverCannotTell && finding.message.contains(expected), "{finding:?}");
        assert_eq!(finding.message.contains("but at least 12.2"), expected.contains("no table"), "{finding:?}");
    }
}

#[test]
fn newer_major_machine_code_is_named() {
    let mut manifest = manifest(sm_80());
    for row in &mut manifest.requires {
        if let Requirement::Gpu { by: GpuCoverage::Cubin, guaranteed_from, .. } = row {
            *guaranteed_from = Some((CudaVersion::new(13, 0), DriverRelease::new(580, 65, 6)));
        }
    }
    let described_rows = |driver: Driver, ccs: &[(u8, u8)], variables: &[&str]| {
        let variables = variables.iter().map(|name| ((*name).to_owned(), "1".to_owned())).collect();
        let machine = Machine { driver: Some(driver), gpus: Some(gpus(ccs)), variables, ..Machine::default() };
        let findings = judged(&manifest, &machine);
        findings.iter().map(|finding| format!("{} {}", finding.code, finding.message)).collect::<Vec<_>>().join("\n")
    };
    let driver = |branch| releases(Some(branch), Some(branch));
    let named = "CG505 it is unknown whether sm_80 of nvcc 13 loads on this driver: NVIDIA guarantees it from driver \
                 580.65.06 on\n";
    assert!(described_rows(driver(535), &[(8, 0)], &[]).starts_with(named));
    assert_eq!(described_rows(driver(590), &[(8, 0)], &[]), "");
    // If more than that is unknown, this is not the reason.
    assert!(
        described_rows(driver(535), &[(8, 0)], &["CUDA_FORCE_PTX_JIT"]).contains("CUDA_FORCE_PTX_JIT=1 leaves code")
    );
    assert!(described_rows(releases(None, None), &[(8, 0)], &[]).contains("facts are missing"));
}

#[test]
fn supported_cuda_precedes_driver_release() {
    let driver = Driver {
        user: Some(DriverRelease::new(535, 0, 0)),
        cuda: Some(CudaVersion::new(13, 0)),
        init: Some(0),
        ..Driver::default()
    };
    assert_eq!(codes(&manifest(vec![cudart_13()]), driver, Some(gpus(&[(9, 0)]))), [""; 0]);
}

#[test]
fn unknown_facts_do_not_refuse() {
    let mut manifest = manifest(vec![cudart_13()]);
    manifest.requires.extend(sm_80());
    for need in [GpuNeed::Auto, GpuNeed::Required, GpuNeed::Optional] {
        manifest.runtime.gpu = need;
        assert_eq!(codes(&manifest, None, None), ["CG505 info"]);
    }
    // A GPU with an unknown compute capability next to an unsuitable one.
    let two = Some(vec![Gpu::default(), gpus(&[(7, 5)]).remove(0)]);
    assert_eq!(codes(&manifest, releases(Some(590), Some(590)), two), ["CG303 info", "CG505 info"]);
}

#[test]
fn invisible_gpus_are_not_checked() {
    let manifest = manifest(sm_80());
    let mut two = gpus(&[(8, 6), (7, 5)]);
    assert_eq!(codes(&manifest, releases(Some(590), Some(590)), Some(two.clone())), ["CG303 info"]);
    two[0].visible = Some(false);
    assert_eq!(codes(&manifest, releases(Some(590), Some(590)), Some(two.clone())), ["CG303 error"]);
    two[1].visible = Some(false);
    assert_eq!(codes(&manifest, releases(Some(590), Some(590)), Some(two)), ["CG504 info"]);
}

/// The branches in the note of a libcuda, or the reason why there are none.
type Note = Result<&'static [u32], &'static str>;
const LISTED: Note = Ok(&[535, 550, 570]);
const ORDINARY: Note = Err("the file has no note");
const UNREAD: Note = Err("the file was not read");

#[test]
fn mixed_driver_releases_are_refused() {
    let manifest = manifest(sm_80());
    let named = |name: &str| Some(vec![Gpu { name: Some(name.to_owned()), ..gpus(&[(8, 6)]).remove(0) }]);
    let driver = |user, kernel, note: Note| {
        let compat = note.map(|branches| CompatPackage { cuda: None, branches: branches.to_vec() });
        Driver { ordinary: note == ORDINARY, compat: compat.ok(), ..releases(Some(user), Some(kernel)) }
    };
    for (user, kernel, note, gpus, expected) in [
        (580, 580, UNREAD, named("NVIDIA GeForce RTX 3090"), &[][..]),
        (580, 580, Ok(&[535]), named("NVIDIA GeForce RTX 3090"), &[]),
        (580, 535, ORDINARY, named("NVIDIA A10"), &["CG304 error"]),
        (535, 580, ORDINARY, named("NVIDIA A10"), &["CG304 error"]),
        (580, 545, LISTED, named("NVIDIA A10"), &["CG304 error"]),
        (580, 535, LISTED, named("NVIDIA A10"), &[]),
        (580, 535, LISTED, named("NVIDIA GeForce RTX 3090"), &["CG305 error"]),
        (580, 535, LISTED, named("NVIDIA TITAN RTX"), &["CG305 error"]),
        (580, 535, LISTED, Some(gpus(&[(8, 6)])), &["CG505 info"]),
        (580, 535, Ok(&[]), named("Orin"), &["CG505 info"]),
        (580, 535, UNREAD, named("NVIDIA A10"), &["CG505 info"]),
    ] {
        let name = format!("{user} on {kernel}, {note:?}, {gpus:?}");
        assert_eq!(codes(&manifest, driver(user, kernel, note), gpus), expected, "{name}");
    }
    // A consumer GPU next to a supported one fails the process.
    let two = [named("NVIDIA A10"), named("NVIDIA GeForce RTX 3090")].into_iter().flatten().flatten().collect();
    assert_eq!(codes(&manifest, driver(580, 535, LISTED), Some(two)), ["CG305 error"]);
    // The driver's own answer comes before all of that.
    let found = Driver { init: Some(0), ..driver(580, 535, ORDINARY) };
    assert_eq!(codes(&manifest, found, named("NVIDIA A10")), [""; 0]);
}

#[test]
fn components_with_different_gpus_conflict() {
    let named = |name: &str, from: (u8, u8), to: (u8, u8)| {
        let mut manifest = manifest(
            [((0, 0), None, GpuCoverage::Nothing), (from, Some(to), GpuCoverage::Cubin)]
                .into_iter()
                .map(|(from, to, by)| Requirement::Gpu {
                    from,
                    to,
                    by,
                    code: String::new(),
                    cuda: None,
                    release: None,
                    guaranteed_from: None,
                    ptx_fallback: PtxFallback::Undetermined,
                })
                .collect(),
        );
        // The overlap is specific to this test, so it is removed here.
        manifest.requires.remove(0);
        for (from, to) in [((0, 0), (from.0 - 1, 255)), ((to.0 + 1, 0), (255, 255))] {
            let (by, code) = (GpuCoverage::Nothing, String::new());
            manifest.requires.push(Requirement::Gpu {
                from,
                to: Some(to),
                by,
                code,
                cuda: None,
                release: None,
                guaranteed_from: None,
                ptx_fallback: PtxFallback::Undetermined,
            });
        }
        name.clone_into(&mut manifest.component.name);
        manifest
    };
    let (old, new, both) =
        (named("old", (7, 0), (7, 255)), named("new", (9, 0), (9, 255)), named("both", (7, 0), (9, 255)));
    let (driver, gpus) = (releases(Some(590), Some(590)), gpus(&[(7, 5), (9, 0)]));
    let machine = Machine { driver: Some(driver), gpus: Some(gpus), ..Machine::default() };
    let host = machine.host("this machine");
    let described_rows = |manifests: &[&Manifest]| together(manifests.iter().copied(), &host, LibraryState::Unknown);
    let finding = described_rows(&[&both, &old, &new]).expect("old and new have no GPU in common");
    assert_eq!((finding.code, finding.severity), (Code::NoGpuForAll, Severity::Warning));
    assert!(finding.message.starts_with("no GPU can run both old 0.1.0 and new 0.1.0"), "{}", finding.message);
    assert_eq!(finding.component, "old 0.1.0");
    assert_eq!(described_rows(&[&both, &old]), None);
    assert_eq!(described_rows(&[&new]), None);
    // A component without any suitable GPU is refused separately.
    assert_eq!(described_rows(&[&old, &named("none", (3, 0), (3, 255))]), None);
}

#[test]
fn unreadable_containers_leave_coverage_partial() {
    for (by, refuse, expected) in [
        (GpuCoverage::AtLeastPartial, false, &[][..]),
        (GpuCoverage::AtLeastPartial, true, &["CG505 info"]),
        (GpuCoverage::AtMostPartial, false, &["CG505 info"]),
        (GpuCoverage::AtMostPartial, true, &["CG311 error"]),
    ] {
        let mut manifest = Manifest { partial_refuse: refuse, ..manifest(sm_80()) };
        for row in &mut manifest.requires {
            if let Requirement::Gpu { by: served, .. } = row {
                *served = by;
            }
        }
        let found = codes(&manifest, releases(Some(590), Some(590)), Some(gpus(&[(8, 6)])));
        assert_eq!(found, expected, "{by:?} {refuse}");
    }
}
