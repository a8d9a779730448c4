use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::binary::kernels::tests::writer::{self, fatbin};
use crate::binary::kernels::tests::{compute, plain, sm};
use cudaguard::internal::manifest::{BuiltWith, Component as Package};
use cudaguard::internal::policy::Policy;
use cudaguard::internal::tables;
use cudaguard::internal::toolchain::{Selection, SelectionReason, Toolchain, Toolkit, ToolkitHeaders};
use cudaguard::internal::version::Version;

fn policy(text: &str) -> Policy {
    Policy::parse(Path::new("cudaguard.toml"), text.as_bytes(), "demo").unwrap()
}

fn manifest() -> Manifest {
    let component = Package { name: "demo".to_owned(), version: "0.1.0".to_owned() };
    let made = Manifest::from_build(
        component,
        "x86_64-unknown-linux-gnu",
        "release",
        &Policy::default(),
        &Toolchain::default(),
    );
    Manifest { toolkit: Some(Version::new(13, 0, 88)), ..made }
}

fn linked<'a>(kernels: &'a Kernels, own: &'a [bool]) -> Linked<'a> {
    Linked {
        name: "demo",
        release: true,
        kernels,
        declared_by: None,
        own,
        seen: &NOTHING,
        in_use: &[],
        by: BuildSystem::Cargo,
        needed: &[],
        cudart: Linkage::Static,
        library: Linkage::None,
        rpath: None,
        runpath: None,
        dirs: &[],
    }
}

static NOTHING: LinkEvidence = LinkEvidence {
    kernels: Vec::new(),
    cudart: Vec::new(),
    cudart_named: None,
    cudart_taken: None,
    library_taken: None,
    torch_cuda: None,
    host: None,
};

fn expected_findings(findings: &[Finding]) -> Vec<String> {
    let line = |finding: &Finding| finding.render().lines().next().unwrap_or_default().to_owned();
    findings.iter().map(line).collect()
}

#[test]
fn package_kernels_are_checked_against_archs() {
    let archs = policy("[gpu]\narchs = [\"sm_80\", \"sm_90\", \"compute_90\"]\n");
    let right = [fatbin(&[sm(80), sm(90), compute(90, (9, 0))])];
    assert_eq!(check_linked(&archs, &manifest(), &linked(&plain(&right), &[true])), []);
    let kernels = plain(&[right[0].clone(), fatbin(&[sm(75), sm(80), compute(90, (9, 0))])]);
    assert_eq!(
        expected_findings(&check_linked(&archs, &manifest(), &linked(&kernels, &[true, true]))),
        [
            "error[CG128]: kernels of this build in demo are not built for sm_90, which the policy requires.",
            "warning[CG129]: kernels of this build in demo are built for sm_75, which the policy does not list.",
        ]
    );
    // Containers of other packages, or ownership that was not determined.
    for own in [&[true, false][..], &[true], &[]] {
        let found = check_linked(&archs, &manifest(), &linked(&kernels, own));
        assert_eq!(found, [], "{own:?}");
    }
    assert_eq!(
        expected_findings(&check_linked(&Policy::default(), &manifest(), &linked(&kernels, &[true, true]))),
        ["info[CG131]: demo runs only in part on GPUs of 7.5."]
    );
}

#[test]
fn missing_declared_arch_is_reported() {
    let kernels = plain(&[fatbin(&[sm(80), compute(90, (9, 0))]), fatbin(&[sm(75)])]);
    let on = |archs: &[&str], by: Option<&'static str>, own: &[bool]| {
        let declared = archs.iter().map(|arch| arch.parse().unwrap()).collect();
        let file = Linked { declared_by: by, ..linked(&kernels, own) };
        let found = check_linked(&Policy::default(), &Manifest { declared, ..manifest() }, &file);
        expected_findings(&found.into_iter().filter(|one| one.code == Code::ArchMissing).collect::<Vec<_>>())
    };
    let variable = Some("CUDAARCHS");
    assert_eq!(
        on(&["sm_80", "sm_86"], variable, &[true, false]),
        ["warning[CG128]: kernels of this build in demo are not built for sm_86, which CUDAARCHS names."]
    );
    assert_eq!(on(&["sm_80", "sm_90"], variable, &[true, false]), [""; 0], "PTX of it is there");
    assert_eq!(on(&["sm_80", "compute_80"], variable, &[true, false]), [""; 0]);
    assert_eq!(on(&["sm_80"], variable, &[true, true]).len(), 1, "each is compared with it");
    let own_features = writer::Image {
        kind: 2,
        arch: 90,
        version: (1, 7),
        flags: writer::SPECIFIC,
        payload: vec![2; 4096],
        unpacked: None,
        options: Vec::new(),
        name: String::new(),
    };
    let accelerated = plain(&[fatbin(&[writer::entry(&own_features)])]);
    let of_it = |declared: &str| {
        let file = Linked { declared_by: variable, ..linked(&accelerated, &[true]) };
        let found = check_linked(
            &Policy::default(),
            &Manifest { declared: vec![declared.parse().unwrap()], ..manifest() },
            &file,
        );
        found.iter().filter(|one| one.code == Code::ArchMissing).count()
    };
    assert_eq!(of_it("sm_90"), 0, "what serves the GPUs that are named");
    assert_eq!(of_it("sm_100a"), 1);
    assert_eq!(on(&["sm_86"], variable, &[false, false]), [""; 0], "their owner is unknown");
    assert_eq!(on(&["sm_86"], None, &[true, true]), [""; 0], "a list that is there for everybody");
    assert_eq!(on(&[], variable, &[true, true]), [""; 0]);
}

/// The owner of the kernels is unknown: a build script deletes its objects, or the package has no own kernels.
#[test]
fn unknown_kernel_owner_is_not_blamed() {
    let archs = policy("[gpu]\narchs = [\"sm_80\", \"compute_90\"]\n");
    let right = fatbin(&[sm(80), compute(90, (9, 0))]);
    let codes = |kernels: &Kernels, own: &[bool]| -> Vec<(Code, Severity)> {
        let found = check_linked(&archs, &manifest(), &linked(kernels, own));
        found.iter().map(|finding| (finding.code, finding.severity)).collect()
    };
    assert_eq!(
        codes(&plain(&[right.clone(), right.clone()]), &[false, false]),
        [],
        "whosever they are, they are right"
    );
    let other = plain(&[right, fatbin(&[sm(75), compute(75, (9, 0))])]);
    assert_eq!(codes(&other, &[false, false]), [(Code::OwnKernelsUnknown, Severity::Info)]);
    assert_eq!(codes(&other, &[true, false]), []);
    let found = check_linked(&Policy::default(), &manifest(), &linked(&other, &[false, false]));
    assert!(found.iter().all(|finding| finding.code != Code::OwnKernelsUnknown), "there is no requirement");
}

/// Hints of a CMake build name CMake's list of architectures.
#[test]
fn cmake_hints_name_its_property() {
    let kernels = plain(&[fatbin(&[sm(80)]), fatbin(&[sm(75)])]);
    let archs = policy("[gpu]\narchs = [\"sm_80\"]\n");
    for (by, listed) in [(BuildSystem::CMake, true), (BuildSystem::Cargo, false)] {
        let list = Some("CUDA_ARCHITECTURES of demo");
        let file = Linked { by, declared_by: list, ..linked(&kernels, &[true, true]) };
        let found = check_linked(&archs, &manifest(), &file);
        let finding = found.iter().find(|one| one.code == Code::ArchSurplus).unwrap_or_else(|| panic!("{found:?}"));
        assert_eq!(finding.render().contains("CUDA_ARCHITECTURES"), listed, "{}", finding.render());
    }
}

#[test]
fn implied_ptx_is_not_surplus() {
    let archs = policy("[gpu]\narchs = [\"sm_80\"]\n");
    let kernels = plain(&[fatbin(&[sm(80), compute(80, (9, 0))])]);
    assert_eq!(check_linked(&archs, &manifest(), &linked(&kernels, &[true])), []);
    let kernels = plain(&[fatbin(&[sm(80), compute(75, (9, 0))])]);
    assert_eq!(check_linked(&archs, &manifest(), &linked(&kernels, &[true]))[0].code, Code::ArchSurplus);
}

#[test]
fn complete_file_is_checked_against_fleet() {
    let kernels = plain(&[fatbin(&[sm(80), compute(90, (9, 0))]), fatbin(&[sm(80)])]);
    let judged = |text: &str| check_linked(&policy(text), &manifest(), &linked(&kernels, &[]));
    assert_eq!(judged("[gpu]\nfleet = [\"A100\", \"8.6\"]\n"), []);
    assert_eq!(
        expected_findings(&judged("[gpu]\nfleet = [\"T4\", \"A100\", \"H100\"]\n")),
        [
            "error[CG130]: demo has no code for T4 (7.5), which the fleet contains.",
            "warning[CG131]: demo runs on H100 (9.0) only in part: some of its fatbins have no code for it (1).",
        ]
    );
    assert_eq!(judged("[gpu]\nfleet = [\"H100\"]\npartial = \"refuse\"\n")[0].severity, Severity::Error);
    // A file without kernels gives no finding about GPUs.
    let none = plain(&[]);
    assert_eq!(
        check_linked(&policy("[gpu]\nfleet = [\"T4\"]\narchs = [\"sm_80\"]\n"), &manifest(), &linked(&none, &[])),
        []
    );
}

#[test]
fn oldest_driver_is_checked() {
    let kernels = plain(&[fatbin(&[sm(80), compute(80, (8, 4))])]);
    let on = |toolkit: Version, cudart: Linkage, text: &str| {
        let file = Linked { cudart, ..linked(&kernels, &[]) };
        expected_findings(&check_linked(&policy(text), &Manifest { toolkit: Some(toolkit), ..manifest() }, &file))
    };
    let (old, new) = (Version::new(12, 4, 131), Version::new(13, 0, 88));
    let oldest = "[driver]\nfleet = \"535\"\n";
    let cudart = ["error[CG133]: demo will not run on driver 535, the oldest of the fleet: CUDA 13 needs a newer one."];
    assert_eq!(on(new, Linkage::Static, oldest), cudart);
    assert_eq!(on(old, Linkage::Static, oldest), [""; 0]);
    // The driver API alone has no requirement, whatever the toolkit.
    assert_eq!(on(new, Linkage::None, oldest), [""; 0]);
    let fleet = |gpus: &str| format!("[gpu]\nfleet = [{gpus}]\n{oldest}");
    assert_eq!(
        on(old, Linkage::None, &fleet("\"A100\", \"H100\", \"10.0\"")),
        // A machine with a GPU of 10.0 cannot have driver 535, which does not support it.
        ["error[CG135]: driver 535, the oldest of the fleet, cannot compile the PTX that demo has for H100 (9.0)."]
    );
    // Without machine code, no GPU of such a machine can run it.
    let text_only = plain(&[fatbin(&[compute(80, (9, 0))])]);
    assert_eq!(
        expected_findings(&check_linked(
            &policy(oldest),
            &Manifest { toolkit: Some(new), ..manifest() },
            &Linked { cudart: Linkage::None, ..linked(&text_only, &[]) }
        )),
        ["error[CG135]: driver 535, the oldest of the fleet, cannot compile the PTX that demo has for any GPU."]
    );
    let newer = plain(&[fatbin(&[sm(80), compute(80, (8, 8))])]);
    assert_eq!(
        expected_findings(&check_linked(
            &policy(&fleet("\"10.0\"")),
            &Manifest { toolkit: Some(old), ..manifest() },
            &Linked { cudart: Linkage::None, ..linked(&newer, &[]) }
        )),
        ["error[CG135]: driver 535, the oldest of the fleet, cannot compile the PTX that demo has for 10.0."]
    );
    assert_eq!(on(old, Linkage::None, &fleet("\"A100\"")), [""; 0], "machine code needs no compiler");
    assert_eq!(on(old, Linkage::None, &fleet("\"H100\"").replace("535", "550")), [""; 0]);
}

#[test]
fn future_gpus_need_ptx() {
    let kernels = plain(&[fatbin(&[sm(80), sm(90)])]);
    let found =
        check_linked(&policy("[gpu]\narchs = [\"sm_80\", \"sm_90\"]\n"), &manifest(), &linked(&kernels, &[true]));
    assert_eq!(expected_findings(&found), ["info[CG122]: demo has no PTX for GPUs newer than those it is built for."]);
    assert!(found[0].hint.contains("compute_90"), "{}", found[0].hint);
    assert_eq!(
        check_linked(&Policy::default(), &manifest(), &linked(&kernels, &[true])),
        [],
        "nobody declared anything"
    );
}

#[test]
fn build_machine_directories_are_reported() {
    let kernels = Kernels::default();
    let dirs = [(PathBuf::from("/srv/ci/target"), "cargo's target directory")];
    let codes = |path: &str, release: bool| {
        let file = Linked { runpath: Some(path), release, dirs: &dirs, ..linked(&kernels, &[]) };
        check_linked(&Policy::default(), &manifest(), &file).iter().map(|finding| finding.code).collect::<Vec<_>>()
    };
    for fine in [
        "",
        "$ORIGIN",
        "$ORIGIN/../lib:/usr/local/cuda-13.0/lib64",
        "/usr/lib/x86_64-linux-gnu",
        "/opt/nvidia/lib",
        "/srv/ci/targets",
        "/homes/lib",
        "${ORIGIN}/stubs",
        "/usr/lib/stubsfolder",
    ] {
        assert_eq!(codes(fine, true), [], "{fine}");
    }
    for path in ["/home/ada/lib", "/tmp/x", "/root", "$ORIGIN:/srv/ci/target/release/build/x/out"] {
        assert_eq!(codes(path, true), [Code::BuildMachinePath], "{path}");
        assert_eq!(codes(path, false), [], "{path}");
    }
    for release in [true, false] {
        assert_eq!(codes("/usr/local/cuda/lib64/stubs", release), [Code::StubInRuntimePath]);
    }
}

#[test]
fn library_release_mismatch_is_reported() {
    let (none, kernels) = (Kernels::default(), plain(&[fatbin(&[sm(90)])]));
    let needed = ["libcudart.so.12".to_owned(), "libcudnn.so.8".to_owned()];
    let file = Linked { needed: &needed, cudart: Linkage::Linked, library: Linkage::Linked, ..linked(&kernels, &[]) };
    let mut recorded = manifest();
    recorded.library = Some(BuiltWith { version: Version::new(9, 15, 1), linkage: Linkage::Unknown });
    assert_eq!(
        expected_findings(&check_linked(&Policy::default(), &recorded, &file)),
        [
            "error[CG142]: demo is built with CUDA 13.0, but linked to libcudart.so.12.",
            "error[CG142]: the headers found are from cuDNN 9.15.1, but demo is linked to libcudnn.so.8.",
        ]
    );
    let without = check_linked(&Policy::default(), &recorded, &Linked { kernels: &none, ..file });
    assert_eq!(without[0].severity, Severity::Warning);
    let same = ["libcudart.so.13".to_owned(), "libcudnn.so.9".to_owned()];
    assert_eq!(check_linked(&Policy::default(), &recorded, &Linked { needed: &same, ..file }), []);
}

#[test]
fn declared_linkage_is_checked() {
    use Linkage::{Dlopened, Linked as Needed, None, Static, Unknown};

    let kernels = Kernels::default();
    let severity = |declared: &str, library: Linkage| {
        let policy = policy(&format!("[cudnn]\nlinkage = \"{declared}\"\n"));
        let found = check_linked(&policy, &manifest(), &Linked { library, ..linked(&kernels, &[]) });
        found.first().map(|finding| finding.severity.name()).unwrap_or_default()
    };
    for (declared, seen, expected) in [
        ("linked", Needed, ""),
        ("linked", Unknown, ""),
        ("linked", None, "warning"),
        ("linked", Static, "error"),
        ("static", Static, ""),
        ("static", Needed, "error"),
        ("dlopened", None, ""),
        ("dlopened", Needed, "error"),
        ("none", None, ""),
        ("none", Dlopened, ""),
        ("none", Needed, "error"),
    ] {
        assert_eq!(severity(declared, seen), expected, "{declared} {seen:?}");
    }
}

/// Builds containers of these archs: even numbers are machine code, odd ones PTX.
fn containers_of(archs: &[Vec<u8>]) -> Kernels {
    const ARCHS: [u32; 6] = [75, 80, 86, 90, 100, 120];
    let entry = |number: &u8| {
        let arch = ARCHS[usize::from(number / 2) % ARCHS.len()];
        if number.is_multiple_of(2) { sm(arch) } else { compute(arch, (9, 0)) }
    };
    plain(&archs.iter().map(|container| fatbin(&container.iter().map(entry).collect::<Vec<_>>())).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn checks_never_panic(
        archs in prop::collection::vec(prop::collection::vec(0u8..12, 0..5), 0..6),
        own in prop::collection::vec(any::<bool>(), 0..8),
        needed in prop::collection::vec("(libcudart|libcudnn|libx)\\.so(\\.[0-9]{0,11}){0,3}", 0..4),
        path in "[$:/a-zO~ \\PC]{0,24}",
        release in any::<bool>(),
        text in prop::sample::select(vec![
            "", "[gpu]\narchs = [\"sm_80\", \"compute_90\"]\nfleet = [\"T4\", \"9.0\"]\n", "[gpu]\narchs = [\"all\"]\n",
            "[cudnn]\nlinkage = \"linked\"\n", "[gpu]\nfleet = [\"H100\", \"B200\"]\npartial = \"refuse\"\n",
        ]),
        dir in "[/a-z]{0,6}",
    ) {
        let kernels = containers_of(&archs);
        let dirs = [(PathBuf::from(dir), "x")];
        let file = Linked {
            release, needed: &needed, cudart: Linkage::Linked, library: Linkage::Linked, rpath: Some(&path),
            runpath: Some(&path), dirs: &dirs, ..linked(&kernels, &own)
        };
        for finding in check_linked(&policy(text), &manifest(), &file) {
            prop_assert!(!finding.message.is_empty() && !finding.hint.is_empty());
        }
    }

    /// For a file that matches its declarations, the fleet check of plain cargo (declarations) equals that of the
    /// command (file).
    #[test]
    fn declared_and_linked_checks_agree(
        cubins in prop::collection::btree_set(prop::sample::select(vec![70u32, 75, 80, 86, 87, 90, 100]), 0..4),
        ptx in prop::collection::btree_set(prop::sample::select(vec![70u32, 75, 80, 90]), 0..3),
        fleet in prop::collection::btree_set(
            prop::sample::select(vec!["7.0", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "12.0"]),
            1..5,
        ),
        driver in prop::sample::select(vec!["525", "535", "550", "560", "570", "580", "700"]),
        toolkit in prop::sample::select(vec![Version::new(12, 0, 0), Version::new(12, 4, 131), Version::new(12, 9, 86)]),
    ) {
        prop_assume!(!cubins.is_empty() || !ptx.is_empty());
        let isa = tables::ptx_isa(toolkit).expect("a known release");
        let isa = (u16::try_from(isa.0).unwrap(), u16::try_from(isa.1).unwrap());
        let entries: Vec<Vec<u8>> =
            cubins.iter().map(|arch| sm(*arch)).chain(ptx.iter().map(|arch| compute(*arch, isa))).collect();
        let kernels = plain(&[fatbin(&entries)]);
        let quoted: Vec<String> = fleet.iter().map(|cc| format!("\"{cc}\"")).collect();
        let policy = policy(&format!("[gpu]\nfleet = [{}]\n[driver]\nfleet = \"{driver}\"\n", quoted.join(", ")));

        let mut toolchain = Toolchain::default();
        toolchain.archs.in_force = kernels.built_targets();
        let headers = ToolkitHeaders { path: "cuda.h".into(), version: Some(toolkit.into()) };
        toolchain.toolkits.push(Toolkit { headers: Some(headers), ..Toolkit::default() });
        toolchain.headers = Some(Selection { index: 0, reason: SelectionReason::Other(String::new()) });

        let by_file = check_linked(&policy, &Manifest { toolkit: Some(toolkit), ..manifest() }, &linked(&kernels, &[]));
        let by_declaration = fleet::check_declared_fleet(&policy, &toolchain);
        // The first sentence of a finding contains its GPUs; the file check has one finding for each PTX.
        let about = |findings: &[Finding], code: Code| -> BTreeSet<String> {
            let named = |finding: &Finding| {
                let first = finding.message.lines().next().unwrap_or_default().to_owned();
                fleet.iter().filter(|cc| first.split([' ', ',', ':', '.']).collect::<Vec<_>>().windows(2).any(|pair| {
                    Some((pair[0], pair[1])) == cc.split_once('.')
                })).map(|cc| (*cc).to_owned()).collect::<Vec<_>>()
            };
            findings.iter().filter(|finding| finding.code == code).flat_map(named).collect()
        };
        prop_assert_eq!(about(&by_declaration, Code::FleetUndeclared), about(&by_file, Code::FleetUnserved));
        let code = Code::DriverFleetCode;
        prop_assert_eq!(about(&by_declaration, code), about(&by_file, code), "{:?} {:?}", by_declaration, by_file);
        let older = |findings: &[Finding]| findings.iter().any(|finding| finding.code == Code::DriverFleetOlder);
        prop_assert_eq!(older(&by_declaration), older(&by_file));
    }

    /// A policy that requires the archs in the file, and a fleet of GPUs that all containers serve, give no findings.
    #[test]
    fn file_passes_its_own_facts(archs in prop::collection::vec(0u8..12, 1..5), count in 1usize..4) {
        let kernels = containers_of(&vec![archs; count]);
        let targets = kernels.built_targets();
        let served = kernels.coverage_by_cc().into_iter().filter(|cover| matches!(cover.service.by, Coverage::Cubin | Coverage::Ptx));
        let rules = Policy {
            archs: targets.clone(),
            fleet: served.map(|cover| tables::dotted_cc(cover.cc)).collect(),
            ..Policy::default()
        };
        let recorded = Manifest { declared: targets, ..manifest() };
        let own = vec![true; count];
        let needed = ["libcudart.so.13".to_owned()];
        let file = Linked { needed: &needed, cudart: Linkage::Linked, ..linked(&kernels, &own) };
        let found = check_linked(&rules, &recorded, &file);
        prop_assert!(found.iter().all(|finding| finding.code == Code::NoPtx), "{found:?}");
    }
}

/// Compares the detected toolkit, the kernels and the cudart in a file with each other.
#[test]
fn mixed_releases_are_reported() {
    use crate::binary::kernels::Known;
    use crate::linked::evidence::Kernel;

    let kernels = plain(&[fatbin(&[sm(80), compute(80, (8, 0))]), fatbin(&[sm(80), compute(80, (8, 0))])]);
    let release = |text: &str| CudaVersion::from(text.parse::<Version>().unwrap());
    // Kernels: `own 11.8`, `bare 12.4`, `13.0`.
    let judged = |in_use: &str, shown: &[&str], inside: &[&str], require: &str| {
        let kernel = |(at, text): (usize, &&str)| Kernel {
            container: at,
            release: release(text.rsplit(' ').next().unwrap()),
            known: Known::Note,
            own: text.starts_with("own"),
            bare: text.starts_with("bare"),
        };
        let seen = LinkEvidence {
            kernels: shown.iter().enumerate().map(kernel).collect(),
            cudart: inside.iter().map(|text| release(text)).collect(),
            ..LinkEvidence::default()
        };
        let in_use = in_use.split_whitespace().map(|text| Sourced::new(text.parse::<Version>().unwrap(), "PATH"));
        let in_use: Vec<_> = in_use.collect();
        let file = Linked { seen: &seen, in_use: &in_use, ..linked(&kernels, &[]) };
        let text = if require.is_empty() { String::new() } else { format!("[toolkit]\nrequire = \"{require}\"\n") };
        let found = check_linked(&policy(&text), &manifest(), &file);
        let line = |finding: &Finding| format!("{} {}", finding.severity.name(), finding.code);
        found.iter().map(line).collect::<Vec<_>>().join(", ")
    };
    for (in_use, shown, inside, expected_findings) in [
        ("13.0.88", &["own 13.0"][..], &["13.0"][..], ""),
        ("13.0", &["13.0", "13.0"], &["13.0"], ""),
        ("", &["13.0"], &["13.0"], ""),
        ("13.0", &[], &[], ""),
        // A second toolkit that a variable names, and only that one in the file.
        ("13.0 11.8", &["11.8"], &["11.8"], ""),
        ("13.0 11.8", &["own 11.8"], &["13.0"], "error CG144"),
        ("13.0", &["own 11.8"], &["11.8"], "error CG144"),
        ("13.0", &["11.8"], &["11.8"], "error CG144"),
        ("13.0", &["own 13.2"], &["13.2"], "error CG144"),
        ("13.0", &[], &["13.2"], "error CG144"),
        ("13.0", &["own 11.8"], &["13.0"], "error CG144"),
        ("13.0", &["own 11.8", "12.4"], &["13.0"], "error CG144, error CG145"),
        ("13.0", &["11.8"], &["13.0"], "error CG145"),
        ("13.0", &["13.0"], &["13.2"], "error CG145"),
        ("13.0", &["own 13.0"], &["11.8"], "error CG145"),
        ("13.2", &["own 13.2", "13.0"], &["13.2"], "warning CG145"),
        ("13.2", &["13.2", "13.0"], &["13.2"], "warning CG145"),
        ("13.2", &["13.2", "11.8"], &["13.2"], "error CG145"),
        ("13.0", &["13.0", "13.2"], &["13.0"], "error CG145"),
        ("", &["13.0"], &["13.2"], "warning CG145"),
        ("13.0", &["own 13.0", "11.8"], &[], "warning CG144"),
        ("13.0", &["bare 12.4"], &[], "info CG144"),
        ("13.0", &["own 13.0", "bare 12.4"], &["13.0"], "info CG144"),
    ] {
        assert_eq!(judged(in_use, shown, inside, ""), expected_findings, "{in_use}, {shown:?}, {inside:?}");
    }
    assert_eq!(judged("13.0", &["own 11.8"], &["11.8"], ">=13"), "error CG103, error CG144");
    let allowed = "\"\n[allow]\nCG144 = \"why";
    assert_eq!(judged("13.0", &["own 11.8"], &["13.0"], &format!(">=11{allowed}")), "error CG144, error CG145");
    assert_eq!(judged("", &["11.8"], &["11.8"], ">=13"), "error CG103");
    assert_eq!(judged("", &["13.0"], &["13.0"], "=13.0.88"), "", "the build of 13.0 is unknown");
    // The detected toolkit was checked before.
    assert_eq!(judged("13.0", &["13.0"], &["13.0"], "<13"), "");
}

/// The hint does not suggest an arch that is already declared.
#[test]
fn missing_declared_ptx_is_reported() {
    let kernels = plain(&[fatbin(&[sm(80)])]);
    let hint = |archs: &str| {
        let policy = policy(&format!("[gpu]\narchs = [{archs}]\n"));
        let found = check_linked(&policy, &manifest(), &linked(&kernels, &[]));
        found.into_iter().find(|finding| finding.code == Code::NoPtx).expect("there is none")
    };
    assert!(hint("\"sm_80\"").hint.starts_with("add compute_80 to the archs"));
    let finding = hint("\"sm_80\", \"compute_80\"");
    assert!(!finding.hint.contains("add compute_80") && finding.message.contains("although compute_80 is declared"));
    assert!(hint("\"sm_80\", \"compute_75\"").hint.starts_with("add compute_80 to the archs"));
}
