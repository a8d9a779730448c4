use super::*;
use crate::host::machine::is_cudnn_row;
use cudaguard::internal::arch::{Arch, Suffix};
use cudaguard::internal::manifest::{BuiltWith, Component};
use cudaguard::internal::policy::Runtime;
use cudaguard::internal::version::Version;

fn manifest(linkage: Linkage) -> Manifest {
    let version = Version::new(9, 15, 1);
    Manifest {
        component: Component { name: "demo".to_owned(), version: "0.1.0".to_owned() },
        cudaguard: "0.1.0".to_owned(),
        target: "x86_64-unknown-linux-gnu".to_owned(),
        profile: "release".to_owned(),
        toolkit: None,
        toolkit_known: None,
        other_toolkits: Vec::new(),
        library: Some(BuiltWith { version, linkage }),
        library_known: None,
        library_linked: None,
        cudart: None,
        declared: Vec::new(),
        observed: None,
        host_compiler: None,
        runtime: Runtime::default(),
        partial_refuse: false,
        allow: Vec::new(),
        opens: Vec::new(),
        sealed: false,
        requires: vec![
            Requirement::Library {
                min: Version::new(9, 15, 0),
                below: Version::new(10, 0, 0),
                built: version,
                soname: "libcudnn.so.9".to_owned(),
                linkage,
                patch_refuse: false,
                required: false,
            },
            Requirement::Part { file: "libcudnn_graph.so.9".to_owned(), symbol: String::new(), needed: true },
        ],
    }
}

#[test]
fn evidence_precedes_declarations() {
    use Linkage::{Dlopened, Linked, None, Static, Unknown};
    for (declared, seen, sealed) in [
        (Unknown, Linked, Linked),
        (Unknown, Unknown, Unknown),
        (Unknown, Static, Static),
        (Unknown, None, None),
        (Dlopened, None, Dlopened),
        (Dlopened, Unknown, Dlopened),
        (Dlopened, Linked, Linked),
        (Linked, Static, Static),
        (Linked, None, None),
    ] {
        let observed = LinkObservation { library: seen, ..LinkObservation::default() };
        let truth = observed_manifest(manifest(declared), &observed);
        assert!(truth.sealed);
        assert_eq!(truth.library.as_ref().unwrap().linkage, sealed, "{declared:?} {seen:?}");
        let rows: Vec<_> = truth
            .requires
            .iter()
            .filter_map(|row| match row {
                Requirement::Library { linkage, .. } => Some(*linkage),
                _ => Option::None,
            })
            .collect();
        assert_eq!(rows, if sealed == None { vec![] } else { vec![sealed] }, "{declared:?} {seen:?}");
        assert_eq!(super::observed_manifest(truth.clone(), &observed), truth, "twice is once");
    }
}

#[test]
fn linked_cudnn_major_overrides_headers() {
    let seen = |major: u32| LinkObservation {
        library: Linkage::Linked,
        library_named: Some(major),
        ..LinkObservation::default()
    };
    assert_eq!(observed_manifest(manifest(Linkage::Unknown), &seen(9)).requires.len(), 2);
    assert_eq!(observed_manifest(manifest(Linkage::Unknown), &seen(8)).requires, []);
}

#[test]
fn host_compiler_comes_from_objects() {
    use crate::linked::evidence::HostCode;

    let sealed_with = |compilers: Option<&[&str]>| {
        let named = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
        let host = compilers.map(|all| HostCode { compilers: named(all), compiles_kernels: true });
        let observed =
            LinkObservation { seen: LinkEvidence { host, ..LinkEvidence::default() }, ..LinkObservation::default() };
        let looked_up = Manifest { host_compiler: Some("gcc 12.2.0".to_owned()), ..manifest(Linkage::Unknown) };
        observed_manifest(looked_up, &observed).host_compiler
    };
    assert_eq!(sealed_with(None).as_deref(), Some("gcc 12.2.0"), "no file was examined");
    assert_eq!(sealed_with(Some(&["clang 14.0.6"])).as_deref(), Some("clang 14.0.6"));
    assert_eq!(sealed_with(Some(&[])), None, "what PATH suggests is no fact");
    assert_eq!(sealed_with(Some(&["clang 14.0.6", "gcc 12.2.0"])), None);
}

#[test]
fn archs_are_recorded_after_inspection() {
    let arch = Target::Cubin(Arch { number: 90, suffix: Suffix::Specific });
    let observed = LinkObservation { archs: Some(vec![arch]), ..LinkObservation::default() };
    assert_eq!(observed_manifest(manifest(Linkage::Unknown), &observed).observed, Some(vec![arch]));
    assert_eq!(observed_manifest(manifest(Linkage::Unknown), &LinkObservation::default()).observed, None);
    let mut plain = manifest(Linkage::Unknown);
    (plain.library, plain.requires) = (None, Vec::new());
    assert_eq!(observed_manifest(plain.clone(), &LinkObservation::default()), Manifest { sealed: true, ..plain });
}

#[test]
fn cudart_requires_a_driver() {
    let plain = Manifest {
        library: None,
        requires: Vec::new(),
        toolkit: Some(Version::new(13, 0, 88)),
        ..manifest(Linkage::Unknown)
    };
    let rows = |manifest: &Manifest| {
        manifest.requires.iter().map(|row| row.to_json().to_string()).collect::<Vec<_>>().join("\n")
    };
    let sealed = |cudart: Linkage, soname: &str, toolkit: Option<Version>| {
        let seen = LinkObservation { cudart, cudart_named: cudart_named(soname), ..LinkObservation::default() };
        let truth = observed_manifest(Manifest { toolkit, ..plain.clone() }, &seen);
        assert_eq!(super::observed_manifest(truth.clone(), &seen), truth, "twice is once");
        let fact = truth.to_json().to_string();
        let fact =
            fact.split("\"cudart\":").nth(1).and_then(|rest| rest.split(",\"archs\"").next()).unwrap_or_default();
        (fact.to_owned(), rows(&truth))
    };
    let thirteen = Some(Version::new(13, 0, 88));
    let row = |cuda: &str, release: &str, because: &str| {
        format!(r#"{{"kind":"driver","cuda":"{cuda}","release":"{release}","because":"{because}"}}"#)
    };
    assert_eq!(
        sealed(Linkage::Static, "", thirteen),
        (r#"{"linkage":"static","version":"13.0"}"#.into(), row("13.0", "580.65.06", "libcudart 13.0"))
    );
    assert_eq!(
        sealed(Linkage::Linked, "libcudart.so.12", thirteen),
        (r#"{"linkage":"linked"}"#.into(), row("12.0", "525.60.13", "libcudart 12"))
    );
    assert_eq!(sealed(Linkage::Linked, "libcudart.so.10.2", None).1, row("10.2", "440.33", "libcudart 10.2"));
    // The requirements of such a cudart are unknown, so no more than its major is recorded.
    assert_eq!(
        sealed(Linkage::Linked, "libcudart.so.17", None).1,
        r#"{"kind":"driver","cuda":"17.0","because":"libcudart 17"}"#
    );
    assert_eq!(sealed(Linkage::Static, "", None), (r#"{"linkage":"static"}"#.into(), String::new()));
    for linkage in [Linkage::None, Linkage::Dlopened] {
        let (fact, rows) = sealed(linkage, "", thirteen);
        assert_eq!((fact, rows.as_str()), (format!(r#"{{"linkage":"{}"}}"#, linkage.name().unwrap()), ""));
    }
}

/// The release in the file's code has precedence over the detected one, and requires its own driver.
#[test]
fn toolkit_comes_from_linked_file() {
    use crate::linked::evidence::Kernel;

    let kernel = |release: (u32, u32), own: bool, bare: bool| Kernel {
        container: 0,
        release: CudaVersion::new(release.0, release.1),
        known: crate::binary::kernels::Known::Header,
        own,
        bare,
    };
    let (old, new, newer) = ((11, 8), (13, 0), (13, 2));
    let foreign = |release| kernel(release, false, false);
    let own = |release| kernel(release, true, false);
    let recorded = Version::new(13, 0, 88);
    // The kernels, the cudart that is linked in, and the recorded toolkit.
    for (kernels, inside, toolkit, other_versions) in [
        (vec![], vec![], "13.0.88 declared", vec![]),
        (vec![foreign(new)], vec![new], "13.0.88 observed", vec![]),
        (vec![foreign(old)], vec![old], "11.8.0 observed", vec![]),
        (vec![], vec![old], "11.8.0 observed", vec![]),
        // Kernels of other packages, and the cudart of the detected toolkit.
        (vec![foreign(old)], vec![new], "13.0.88 observed", vec!["11.8"]),
        (vec![own(old)], vec![new], "11.8.0 observed", vec![]),
        (vec![own(new), foreign(old), foreign(newer)], vec![], "13.0.88 observed", vec!["11.8", "13.2"]),
        (vec![foreign(old), foreign(newer)], vec![], "13.2.0 observed", vec!["11.8"]),
        (vec![kernel(old, false, true)], vec![], "11.8.0 observed", vec![]),
        (vec![kernel(old, false, true), foreign(new)], vec![], "13.0.88 observed", vec!["11.8"]),
    ] {
        let cudart: Vec<_> = inside.iter().map(|(major, minor)| CudaVersion::new(*major, *minor)).collect();
        let linkage = if cudart.is_empty() { Linkage::None } else { Linkage::Static };
        let shown = format!("{kernels:?} {inside:?}");
        let seen = LinkObservation {
            cudart: linkage,
            seen: LinkEvidence { kernels, cudart: cudart.clone(), ..LinkEvidence::default() },
            ..LinkObservation::default()
        };
        let before = Manifest {
            toolkit: Some(recorded),
            toolkit_known: Some(FactSource::Declared),
            ..manifest(Linkage::Unknown)
        };
        let truth = observed_manifest(before, &seen);
        assert_eq!(super::observed_manifest(truth.clone(), &seen), truth, "twice is once: {shown}");
        let known = truth.toolkit_known.map(FactSource::name).unwrap_or_default();
        assert_eq!(format!("{} {known}", truth.toolkit.unwrap()), toolkit, "{shown}");
        let others: Vec<_> = truth.other_toolkits.iter().map(ToString::to_string).collect();
        assert_eq!(others, other_versions, "{shown}");
        assert_eq!(truth.cudart.and_then(|cudart| cudart.version), cudart.first().copied(), "{shown}");
    }
    // No toolkit is detected, and there is a shared cudart whose soname shows only the major.
    let seen = |kernels: Vec<Kernel>, named: u32| LinkObservation {
        cudart: Linkage::Linked,
        cudart_named: Some(CudaVersion::new(named, 0)),
        seen: LinkEvidence { kernels, cudart_named: Some(CudaVersion::new(named, 0)), ..LinkEvidence::default() },
        ..LinkObservation::default()
    };
    let recorded = |toolkit: Option<Version>, seen: &LinkObservation| {
        observed_manifest(Manifest { toolkit, ..manifest(Linkage::Unknown) }, seen).toolkit.map(CudaVersion::from)
    };
    assert_eq!(recorded(None, &seen(vec![foreign(new)], 13)), Some(CudaVersion::new(13, 0)));
    assert_eq!(recorded(None, &seen(vec![], 13)), None, "the release of 13 is unknown");
    let other = seen(vec![foreign(old)], 13);
    assert_eq!(recorded(Some(Version::new(13, 0, 88)), &other), Some(CudaVersion::new(13, 0)));
}

#[test]
fn older_seal_rows_are_replaced() {
    let kernels = |archs: &[u32]| {
        let entries: Vec<_> = archs.iter().map(|arch| crate::binary::kernels::tests::sm(*arch)).collect();
        crate::binary::kernels::tests::plain(&[crate::binary::kernels::tests::writer::fatbin(&entries)])
    };
    let seen = |archs: &[u32]| LinkObservation {
        cudart: Linkage::Static,
        gpus: Some(kernels(archs).requirement_rows()),
        ..LinkObservation::default()
    };
    let unsealed = Manifest { toolkit: Some(Version::new(13, 0, 88)), ..manifest(Linkage::Linked) };
    let first = observed_manifest(unsealed.clone(), &seen(&[80, 90, 100]));
    assert_eq!(observed_manifest(first, &seen(&[90])), observed_manifest(unsealed.clone(), &seen(&[90])));
    let last = observed_manifest(unsealed, &seen(&[]));
    assert!(!last.requires.iter().any(|row| matches!(row, Requirement::Gpu { .. })));
}

/// The note has enough space for every arch of a toolkit, in every kind.
#[test]
fn rows_for_all_archs_fit() {
    let toolkit = Version::new(13, 5, 0);
    let entries: Vec<_> = cudaguard::internal::tables::expand_all(toolkit)
        .into_iter()
        .map(|target| match target {
            Target::Cubin(arch) => crate::binary::kernels::tests::sm(arch.number.into()),
            Target::Ptx(arch) => crate::binary::kernels::tests::compute(arch.number.into(), (9, 5)),
        })
        .collect();
    let kernels = crate::binary::kernels::tests::plain(&[crate::binary::kernels::tests::writer::fatbin(&entries)]);
    let seen = LinkObservation {
        cudart: Linkage::Static,
        library: Linkage::Linked,
        archs: Some(kernels.built_targets()),
        gpus: Some(kernels.requirement_rows()),
        ..LinkObservation::default()
    };
    let sealed = observed_manifest(Manifest { toolkit: Some(toolkit), ..manifest(Linkage::Unknown) }, &seen);
    assert!(sealed.requires.iter().filter(|row| matches!(row, Requirement::Gpu { .. })).count() > 10);
    let note = note::encode(&sealed).unwrap();
    assert_eq!(crate::binary::manifest_decoder::decode(&note[..]).unwrap().manifest, sealed);
}

#[test]
fn eager_imports_require_a_driver() {
    let seen = LinkObservation {
        cudart: Linkage::Static,
        looked_up: vec![(CudaVersion::new(12, 4), "cudarc 0.17.8 (cuCtxFromGreenCtx)".to_owned())],
        ..LinkObservation::default()
    };
    let drivers = |manifest: &Manifest| -> Vec<String> {
        let rows = manifest.requires.iter().filter_map(|row| match row {
            Requirement::Driver { cuda, release, because } => Some(format!("{cuda} {release} {because}")),
            _ => None,
        });
        rows.collect()
    };
    let sealed =
        observed_manifest(Manifest { toolkit: Some(Version::new(12, 9, 1)), ..manifest(Linkage::Unknown) }, &seen);
    let expected = ["12.0 525.60.13 libcudart 12.9", "12.4 550.54.14 cudarc 0.17.8 (cuCtxFromGreenCtx)"];
    assert_eq!(drivers(&sealed), expected);
    // Sealing is idempotent; if the crate no longer looks up the functions, the row is removed.
    assert_eq!(drivers(&observed_manifest(sealed.clone(), &seen)), expected);
    let gone = LinkObservation { looked_up: Vec::new(), ..seen };
    assert_eq!(drivers(&observed_manifest(sealed, &gone)), expected[..1]);
}

mod hosts {
    //! Tests the verdict of the runtime checks on sealed notes.

    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    use super::super::*;
    use super::manifest;
    use crate::binary::kernels::tests::{plain, writer};
    use crate::binary::kernels::{Coverage, Kernels};
    use crate::host::machine::{Driver, Gpu, HostLibrary, HostLibraryPart, LibraryState, Machine};
    use cudaguard::internal::arch::{Arch, Suffix};
    use cudaguard::internal::cudnn;
    use cudaguard::internal::finding::Severity;
    use cudaguard::internal::tables::{
        CcSupport, branch_rows, can_make, driver_supports, ptx_isa, toolkit_floor, toolkit_rows,
    };
    use cudaguard::internal::version::{CudaVersion, Version};

    /// The number and suffix of an arch, PTX or not, and whether it is compressed with Zstandard.
    type Code = (u32, u64, bool, bool);

    fn any_toolkit() -> impl Strategy<Value = Version> {
        let known = toolkit_rows().iter().filter(|row| !row.unreleased && row.version.major >= 11);
        select(known.map(|row| Version::new(row.version.major, row.version.minor, 0)).collect::<Vec<_>>())
    }

    fn any_file() -> impl Strategy<Value = Vec<Vec<Code>>> {
        let number = select(vec![50u32, 60, 70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121]);
        let letter = select(vec![0, 0, 0, writer::SPECIFIC, writer::FAMILY]);
        let code = (number, letter, any::<bool>(), any::<bool>());
        prop::collection::vec(prop::collection::vec(code, 1..5), 1..4)
    }

    /// Returns the code as this toolkit would compile it: the archs that it supports, in its PTX ISA, ELF ABI and
    /// compression.
    fn compiled(file: &[Vec<Code>], toolkit: Version) -> Kernels {
        // Source: libraries of 12.8 and later have it, those of 12.6 do not.
        let has_zstd = (toolkit.major, toolkit.minor) >= (12, 8);
        let entry = |&(arch, letter, ptx, zstd): &Code| {
            let suffix = match letter {
                writer::SPECIFIC => Suffix::Specific,
                writer::FAMILY => Suffix::Family,
                _ => Suffix::None,
            };
            let made = Arch { number: u16::try_from(arch).unwrap(), suffix };
            let target = if ptx { Target::Ptx(made) } else { Target::Cubin(made) };
            if can_make(toolkit, target) != CcSupport::Made {
                return None;
            }
            let (major, minor) = ptx_isa(toolkit)?;
            let version = if ptx {
                (u16::try_from(major).unwrap(), u16::try_from(minor).unwrap())
            } else {
                (1, if toolkit.major >= 13 { 8 } else { 7 })
            };
            let zstd = zstd && has_zstd;
            let payload = if ptx { b".entry k".to_vec() } else { writer::cubin(arch, 7, &["k"]) };
            Some(writer::entry(&writer::Image {
                kind: if ptx { 1 } else { 2 },
                arch,
                version,
                flags: letter | if zstd { 0x8000 } else { 0 },
                payload,
                // Too large for the reader to unpack.
                unpacked: zstd.then_some(1 << 20),
                options: Vec::new(),
                name: String::new(),
            }))
        };
        let containers = file.iter().map(|codes| codes.iter().filter_map(entry).collect::<Vec<_>>());
        plain(
            &containers
                .filter(|entries| !entries.is_empty())
                .map(|entries| writer::fatbin(&entries))
                .collect::<Vec<_>>(),
        )
    }

    fn sealed(kernels: &Kernels, toolkit: Version, cudart: Linkage, library: Linkage) -> Manifest {
        let observed = LinkObservation {
            library,
            cudart,
            cudart_named: (cudart == Linkage::Linked).then(|| CudaVersion::new(toolkit.major, 0)),
            archs: Some(kernels.built_targets()),
            gpus: Some(kernels.requirement_rows()),
            ..LinkObservation::default()
        };
        observed_manifest(Manifest { toolkit: Some(toolkit), ..manifest(library) }, &observed)
    }

    fn refused(manifest: &Manifest, machine: &Machine, cudnn: LibraryState<'_>) -> Vec<String> {
        let found = crate::host::machine::judge::judge(manifest, &machine.host("this machine"), cudnn);
        let errors = found.iter().filter(|finding| finding.severity == Severity::Error);
        errors.map(|finding| format!("{} {}", finding.code, finding.message)).collect()
    }

    /// A GPU that the driver lists.
    fn gpu(cc: (u8, u8)) -> Gpu {
        Gpu { cc: Some(cc), visible: Some(true), listed: true, ..Gpu::default() }
    }

    /// Returns the cuDNN that the program was built with.
    fn built_with() -> HostLibrary {
        let version = Version::new(9, 15, 1);
        let file = "libcudnn_graph.so.9".to_owned();
        let parts = Some(vec![HostLibraryPart { file, version: Some(version), path: None }]);
        HostLibrary { version: Some(version), parts, taken: true, ..HostLibrary::default() }
    }

    fn any_linkage() -> impl Strategy<Value = Linkage> {
        select(vec![Linkage::Linked, Linkage::Static, Linkage::Dlopened, Linkage::None, Linkage::Unknown])
    }

    proptest! {
        /// The machine that a program is built on, with a GPU that all of its code supports: the driver that came with
        /// the toolkit, by its CUDA version or only by its release.
        #[test]
        fn host_with_build_facts_passes(
            file in any_file(), toolkit in any_toolkit(), cudart in any_linkage(), library in any_linkage(),
        ) {
            let kernels = compiled(&file, toolkit);
            let served = kernels.coverage_by_cc().into_iter().filter(|cover| matches!(cover.service.by, Coverage::Cubin | Coverage::Ptx));
            // There is no cuDNN 9.15 for CUDA 11, and releases for newer CUDA versions do not support old GPUs.
            let library = if toolkit.major < 12 { Linkage::None } else { library };
            let manifest = sealed(&kernels, toolkit, cudart, library);
            let oldest = cudnn::RELEASES.min_cc(Version::new(9, 15, 1), toolkit.major).filter(|_| library != Linkage::None);
            let served = served.filter(|cover| oldest.is_none_or(|oldest| cover.cc >= oldest));
            let mut gpus: Vec<Vec<Gpu>> = served.map(|cover| vec![gpu(cover.cc)]).collect();
            if !kernels.has_kernels() {
                gpus.push(vec![gpu((9, 0))]);
            }
            let release = toolkit_floor(toolkit).release;
            let drivers = [
                Driver { cuda: Some(toolkit.into()), init: Some(0), ..Driver::default() },
                Driver { user: release, kernel: release, ..Driver::default() },
                Driver { kernel: release, ..Driver::default() },
            ];
            for gpus in gpus {
                for driver in &drivers {
                    let machine = Machine { driver: Some(driver.clone()), gpus: Some(gpus.clone()), ..Machine::default() };
                    let found = refused(&manifest, &machine, LibraryState::Found(&built_with()));
                    prop_assert_eq!(found, Vec::<String>::new(), "{:?} {:?}", gpus, driver);
                }
            }
        }

        /// For all known facts about the driver, and all files.
        #[test]
        fn newer_driver_never_refuses(
            file in any_file(), toolkit in any_toolkit(), cudart in any_linkage(),
            drivers in (any::<Index>(), any::<Index>()), known in 0usize..4, init in any::<bool>(),
            ccs in prop::collection::vec(select(vec![(7u8, 5u8), (8, 0), (8, 6), (8, 7), (9, 0), (10, 0), (12, 0), (13, 0)]), 1..4),
        ) {
            let manifest = sealed(&compiled(&file, toolkit), toolkit, cudart, Linkage::None);
            // The releases of Tegra drivers are not ordered like the others.
            let branches: Vec<_> = branch_rows().iter().filter(|row| row.exact || row.most.is_some()).collect();
            let (one, other) = (drivers.0.index(branches.len()), drivers.1.index(branches.len()));
            let host = |branch: usize| {
                let release = DriverRelease::new(branches[branch].branch, 0, 0);
                let cuda = driver_supports(release).least;
                let (release, cuda) = (Some(release), cuda);
                let none = Driver { init: init.then_some(0), ..Driver::default() };
                let driver = match known {
                    0 => Driver { cuda, ..none },
                    1 => Driver { user: release, ..none },
                    2 => Driver { kernel: release, ..none },
                    _ => Driver { cuda, user: release, kernel: release, ..none },
                };
                let gpus = Some(ccs.iter().copied().map(gpu).collect());
                Machine { driver: Some(driver), gpus, ..Machine::default() }
            };
            let (older, newer) = (host(one.min(other)), host(one.max(other)));
            if refused(&manifest, &older, LibraryState::Unknown).is_empty() {
                prop_assert_eq!(refused(&manifest, &newer, LibraryState::Unknown), Vec::<String>::new(), "{:?} {:?}", older, newer);
            }
        }
    }
}

#[test]
fn unused_cudnn_of_other_component_is_dropped() {
    for (own, linkage, seen, expected) in [
        ("demo", Linkage::Unknown, Linkage::None, Some(0)),
        ("other", Linkage::Unknown, Linkage::None, Some(0)),
        ("other", Linkage::Unknown, Linkage::Linked, None),
        ("other", Linkage::Dlopened, Linkage::None, None),
        ("other", Linkage::Linked, Linkage::None, None),
    ] {
        let component = Some(own.to_owned());
        let observed = LinkObservation { component, library: seen, ..LinkObservation::default() };
        let linked = linked_manifest(&manifest(linkage), &observed);
        let rows = linked.map(|linked| linked.requires.iter().filter(|row| is_cudnn_row(row)).count());
        assert_eq!(rows, expected, "{own} {linkage:?} {seen:?}");
    }
}
