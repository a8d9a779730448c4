//! Cases of driver and GPU.

use cudaguard::internal::finding::Severity;
use cudaguard::internal::manifest::{GpuCoverage, Manifest, PtxFallback, Requirement};
use cudaguard::internal::policy::GpuNeed;
use cudaguard::internal::version::{CudaVersion, DriverRelease};

use crate::host::facts::Jit;
use crate::host::facts::{CompatState, DriverState, Host, HostDriver, HostGpu};
use cudaguard::internal::finding::Code;
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

fn gpus(ccs: &[(u8, u8)]) -> Vec<HostGpu> {
    ccs.iter().map(|cc| HostGpu { cc: Some(*cc), visible: true, ..HostGpu::default() }).collect()
}

fn codes(manifest: &Manifest, driver: DriverState, gpus: Option<Vec<HostGpu>>) -> Vec<String> {
    let host = Host { driver, gpus, jit: Jit::default(), ..Host::default() };
    let findings = crate::host::judge::judge(manifest, &host);
    findings.iter().map(|finding| format!("{} {}", finding.code, finding.severity)).collect()
}

fn releases(user: Option<u32>, kernel: Option<u32>) -> DriverState {
    let release = |branch| DriverRelease::new(branch, 95, 5);
    DriverState::Found(HostDriver { user: user.map(release), kernel: kernel.map(release), ..HostDriver::default() })
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
    assert_eq!(codes(&self::manifest(vec![nobody_knows]), releases(Some(590), Some(590)), one()), ["CG505 info"]);
}

#[test]
fn unknown_branch_support_is_named() {
    let jetson = DriverRelease::new(540, 4, 0);
    let driver = DriverState::Found(HostDriver { user: Some(jetson), kernel: Some(jetson), ..HostDriver::default() });
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
        let host = Host { driver: driver.clone(), gpus: Some(gpus(&[(8, 7)])), ..Host::default() };
        let findings = crate::host::judge::judge(manifest, &host);
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
    let described_rows = |driver: DriverState, ccs: &[(u8, u8)], jit: Jit| {
        let host = Host { driver, gpus: Some(gpus(ccs)), jit, ..Host::default() };
        let findings = crate::host::judge::judge(&manifest, &host);
        findings.iter().map(|finding| format!("{} {}", finding.code, finding.message)).collect::<Vec<_>>().join("\n")
    };
    let driver = |branch| releases(Some(branch), Some(branch));
    let named = "CG505 it is unknown whether sm_80 of nvcc 13 loads on this driver: NVIDIA guarantees it from driver \
                 580.65.06 on\n";
    assert!(described_rows(driver(535), &[(8, 0)], Jit::default()).starts_with(named));
    assert_eq!(described_rows(driver(590), &[(8, 0)], Jit::default()), "");
    // If more than that is unknown, this is not the reason.
    let forced = Jit { forced: true, ..Jit::default() };
    assert!(described_rows(driver(535), &[(8, 0)], forced).contains("CUDA_FORCE_PTX_JIT=1 leaves code"));
    assert!(described_rows(releases(None, None), &[(8, 0)], Jit::default()).contains("facts are missing"));
}

#[test]
fn supported_cuda_precedes_driver_release() {
    let driver = HostDriver {
        user: Some(DriverRelease::new(535, 0, 0)),
        cuda: Some(CudaVersion::new(13, 0)),
        init: Some(0),
        ..HostDriver::default()
    };
    assert_eq!(codes(&manifest(vec![cudart_13()]), DriverState::Found(driver), Some(gpus(&[(9, 0)]))), [""; 0]);
}

#[test]
fn unknown_facts_do_not_refuse() {
    let mut manifest = manifest(vec![cudart_13()]);
    manifest.requires.extend(sm_80());
    for need in [GpuNeed::Auto, GpuNeed::Required, GpuNeed::Optional] {
        manifest.runtime.gpu = need;
        assert_eq!(codes(&manifest, DriverState::Unknown, None), ["CG505 info"]);
    }
    // A GPU with an unknown compute capability next to an unsuitable one.
    let two = Some(vec![HostGpu { visible: true, ..HostGpu::default() }, gpus(&[(7, 5)]).remove(0)]);
    assert_eq!(codes(&manifest, releases(Some(590), Some(590)), two), ["CG303 info", "CG505 info"]);
}

#[test]
fn invisible_gpus_are_not_checked() {
    let manifest = manifest(sm_80());
    let mut two = gpus(&[(8, 6), (7, 5)]);
    assert_eq!(codes(&manifest, releases(Some(590), Some(590)), Some(two.clone())), ["CG303 info"]);
    two[0].visible = false;
    assert_eq!(codes(&manifest, releases(Some(590), Some(590)), Some(two.clone())), ["CG303 error"]);
    two[1].visible = false;
    assert_eq!(codes(&manifest, releases(Some(590), Some(590)), Some(two)), ["CG504 info"]);
}

#[test]
fn mixed_driver_releases_are_refused() {
    let manifest = manifest(sm_80());
    let named = |name: &str| Some(vec![HostGpu { name: Some(name.to_owned()), ..gpus(&[(8, 6)]).remove(0) }]);
    let driver = |user, kernel, compat| {
        let DriverState::Found(driver) = releases(Some(user), Some(kernel)) else { unreachable!() };
        DriverState::Found(HostDriver { compat, ..driver })
    };
    let listed = || CompatState::Branches(vec![535, 550, 570]);
    for (user, kernel, compat, gpus, expected) in [
        (580, 580, CompatState::Unknown, named("NVIDIA GeForce RTX 3090"), &[][..]),
        (580, 580, CompatState::Branches(vec![535]), named("NVIDIA GeForce RTX 3090"), &[]),
        (580, 535, CompatState::Ordinary, named("NVIDIA A10"), &["CG304 error"]),
        (535, 580, CompatState::Ordinary, named("NVIDIA A10"), &["CG304 error"]),
        (580, 545, listed(), named("NVIDIA A10"), &["CG304 error"]),
        (580, 535, listed(), named("NVIDIA A10"), &[]),
        (580, 535, listed(), named("NVIDIA GeForce RTX 3090"), &["CG305 error"]),
        (580, 535, listed(), named("NVIDIA TITAN RTX"), &["CG305 error"]),
        (580, 535, listed(), Some(gpus(&[(8, 6)])), &["CG505 info"]),
        (580, 535, CompatState::Branches(Vec::new()), named("Orin"), &["CG505 info"]),
        (580, 535, CompatState::Unknown, named("NVIDIA A10"), &["CG505 info"]),
    ] {
        let name = format!("{user} on {kernel}, {compat:?}, {gpus:?}");
        assert_eq!(codes(&manifest, driver(user, kernel, compat), gpus), expected, "{name}");
    }
    // A consumer GPU next to a supported one fails the process.
    let two = [named("NVIDIA A10"), named("NVIDIA GeForce RTX 3090")].into_iter().flatten().flatten().collect();
    assert_eq!(codes(&manifest, driver(580, 535, listed()), Some(two)), ["CG305 error"]);
    // The driver's own answer comes before all of that.
    let DriverState::Found(found) = driver(580, 535, CompatState::Ordinary) else { unreachable!() };
    let found = DriverState::Found(HostDriver { init: Some(0), ..found });
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
    let host = Host { driver: releases(Some(590), Some(590)), gpus: Some(gpus(&[(7, 5), (9, 0)])), ..Host::default() };
    let described_rows = |manifests: &[&Manifest]| crate::host::judge::together(manifests.iter().copied(), &host);
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
