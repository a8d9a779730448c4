use proptest::prelude::*;

use super::*;
use cudaguard::internal::arch::{Arch, Suffix, Target};
use cudaguard::internal::finding::Code;
use cudaguard::internal::manifest::{BuiltWith, Component, FactSource, Opens, RecordedCudart};
use cudaguard::internal::note::{SIZE, encode};
use cudaguard::internal::policy::Runtime;
use cudaguard::internal::version::{DriverRelease, Version};

fn rich() -> Manifest {
    let version = Version::new(9, 15, 1);
    Manifest {
        component: Component { name: "resnet".to_owned(), version: "0.3.1".to_owned() },
        cudaguard: "0.1.0".to_owned(),
        target: "x86_64-unknown-linux-gnu".to_owned(),
        profile: "release".to_owned(),
        toolkit: Some(Version::new(13, 0, 48)),
        toolkit_known: Some(FactSource::LinkObservation),
        other_toolkits: vec![CudaVersion::new(11, 8), CudaVersion::new(12, 4)],
        library: Some(BuiltWith { version, linkage: Linkage::Linked }),
        library_known: Some(FactSource::Linked),
        library_linked: Some(Version::new(9, 17, 1)),
        cudart: Some(RecordedCudart { linkage: Linkage::Static, version: Some(CudaVersion::new(13, 0)) }),
        declared: vec![
            Target::Cubin(Arch { number: 90, suffix: Suffix::Specific }),
            Target::Ptx(Arch { number: 100, suffix: Suffix::Family }),
        ],
        observed: Some(vec![Target::Cubin(Arch { number: 80, suffix: Suffix::None })]),
        host_compiler: Some("gcc 12.2.0".to_owned()),
        runtime: Runtime { mismatch_warns: false, gpu: GpuNeed::Optional, library_enforces: true },
        partial_refuse: true,
        allow: vec![(Code::ALL[0], "a reason, \"quoted\"".to_owned())],
        opens: vec![Opens {
            by: "cudarc 0.19.10".to_owned(),
            libraries: vec!["cuda".to_owned(), "cudnn".to_owned()],
            endings: vec![".so".to_owned(), ".so.13".to_owned()],
        }],
        sealed: true,
        requires: vec![
            Requirement::Library {
                min: Version::new(9, 15, 0),
                below: Version::new(10, 0, 0),
                built: version,
                soname: "libcudnn.so.9".to_owned(),
                linkage: Linkage::Linked,
                patch_refuse: true,
                required: false,
            },
            Requirement::Part {
                file: "libcudnn_graph.so.9".to_owned(),
                symbol: "cudnn_graph_version".to_owned(),
                needed: true,
            },
            Requirement::Driver {
                cuda: CudaVersion::new(13, 0),
                release: DriverRelease::new(580, 65, 6),
                because: "libcudart 13.0".to_owned(),
            },
            Requirement::Gpu {
                from: (9, 0),
                to: None,
                by: GpuCoverage::Ptx,
                code: "compute_90".to_owned(),
                cuda: Some(CudaVersion::new(12, 4)),
                release: None,
                guaranteed_from: None,
                ptx_fallback: PtxFallback::Undetermined,
            },
        ],
    }
}

#[test]
fn field_offsets_match_documentation() {
    let manifest = rich();
    let bytes = encode(&manifest).unwrap();
    let u16_at = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let text_at = |at: usize| std::str::from_utf8(&bytes[u16_at(at)..][..u16_at(at + 2)]).unwrap();
    assert_eq!(&bytes[..8], b"cudagrd\0");
    assert_eq!([8, 10, 12, 14].map(u16_at), [1, 4, 44, 40]);
    assert_eq!(bytes[20..28], [1, 2, 1, 2, 1, 1, 0, 0]);
    assert_eq!([28, 32, 36, 40].map(text_at), ["resnet", "0.3.1", "0.1.0", "13.0.48"]);
    assert_eq!(text_at(16), manifest.to_json().to_string());
    assert_eq!([44, 46].map(u16_at), [1, 1 | 8]);
    assert_eq!([48, 52, 56].map(u32_at), [0x09_0f00, 0x0a_0000, 0x09_0f01]);
    assert_eq!([44 + 24, 44 + 28].map(text_at), ["libcudnn.so.9", "cuDNN"]);
    assert_eq!([84, 86].map(u16_at), [2, 1]);
    assert_eq!([84 + 24, 84 + 28].map(text_at), ["libcudnn_graph.so.9", "cudnn_graph_version"]);
    assert_eq!([124, 126].map(u16_at), [3, 0]);
    assert_eq!([124 + 16, 124 + 20].map(u32_at), [13_000, 580 << 16 | 65 << 8 | 6]);
    assert_eq!(text_at(124 + 24), "libcudart 13.0");
    assert_eq!([164, 166].map(u16_at), [4, 2]);
    assert_eq!([168, 172, 176, 180, 184].map(u32_at), [0x900, 0xffff, 90, 12_040, 0]);
    assert_eq!(text_at(164 + 24), "compute_90");
}

#[test]
fn later_fields_use_reserved_space() {
    let mut manifest = rich();
    manifest.observed = None;
    manifest.opens = vec![Opens {
        by: "cudarc 0.19.10".to_owned(),
        libraries: vec!["cuda".to_owned(), "cudnn".to_owned()],
        endings: [".so", ".so.9"].map(str::to_owned).to_vec(),
    }];
    let row = |from, to, by, code: &str, guaranteed_from| Requirement::Gpu {
        from,
        to,
        by,
        code: code.to_owned(),
        cuda: None,
        release: None,
        guaranteed_from,
        ptx_fallback: if by == GpuCoverage::Cubin { PtxFallback::Nothing } else { PtxFallback::Isa((8, 4)) },
    };
    let sure = Some((CudaVersion::new(13, 0), DriverRelease::new(580, 65, 6)));
    manifest.requires.truncate(1);
    manifest.requires.extend([
        row((0, 0), Some((7, 255)), GpuCoverage::Nothing, "", None),
        row((8, 0), Some((8, 255)), GpuCoverage::Cubin, "sm_80", sure),
        row((9, 0), None, GpuCoverage::Ptx, "compute_90", None),
    ]);
    let bytes = encode(&manifest).unwrap();
    let u16_at = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let text_at = |at: usize| std::str::from_utf8(&bytes[u16_at(at)..][..u16_at(at + 2)]).unwrap();
    assert_eq!([44 + 24, 44 + 32].map(text_at), ["libcudnn.so.9", "libcudnn.so\nlibcudnn.so.9"]);
    assert_eq!(text_at(84 + 28), "sm_80, compute_90");
    assert_eq!([124 + 2, 164 + 2].map(u16_at), [1 | 32, 2 | 0x8400]);
    assert_eq!([124 + 32, 124 + 36, 164 + 32, 164 + 36].map(u32_at), [13_000, 580 << 16 | 65 << 8 | 6, 0, 0]);
}

#[test]
fn oversized_entry_is_named() {
    let mut manifest = rich();
    manifest.allow[0].1 = "because ".repeat(600);
    let error = encode(&manifest).unwrap_err();
    let expected = format!("shorten the reason of [allow] {}, which needs 4800 bytes", manifest.allow[0].0);
    assert!(
        error.to_string().starts_with("the manifest of resnet 0.3.1 needs ") && error.to_string().ends_with(&expected),
        "{error}"
    );

    manifest = rich();
    manifest.component.name = "n".repeat(70_000);
    assert!(encode(&manifest).unwrap_err().to_string().contains("shorten the package's name"));
}

/// Every arch that one toolkit supports: only the rows contain all of them.
#[test]
fn texts_beyond_shim_limit_are_rejected() {
    let longest = "v".repeat(LONGEST_TEXT);
    let mut manifest = rich();
    manifest.component.version.clone_from(&longest);
    assert!(encode(&manifest).is_ok());
    manifest.component.version.push('v');
    let error = encode(&manifest).unwrap_err();
    assert!(error.to_string().ends_with("has 256 bytes: shorten the package's version to 255 bytes"), "{error}");

    manifest = rich();
    let because = format!("{} and more", vec!["crate"; 100].join(" "));
    let driver = manifest.requires.iter_mut().find_map(|row| match row {
        Requirement::Driver { because, .. } => Some(because),
        _ => None,
    });
    *driver.unwrap() = because;
    assert!(encode(&manifest).is_ok(), "a list is cut");
}

#[test]
fn unknown_static_cudart_has_a_row_of_zeros() {
    let mut manifest = rich();
    manifest.requires.retain(|row| !matches!(row, Requirement::Driver { .. }));
    manifest.cudart = None;
    let rows = |manifest: &Manifest| encode(manifest).unwrap()[head::ROWS];
    let before = rows(&manifest);
    manifest.cudart = Some(RecordedCudart { linkage: Linkage::Static, version: None });
    assert_eq!(rows(&manifest), before + 1);
    assert_eq!(decode(&encode(&manifest).unwrap()[..]).unwrap().manifest, manifest);
    // A string that looks like a row is not taken from the rows.
    manifest.component.name = "\0".to_owned();
    assert_eq!(decode(&encode(&manifest).unwrap()[..]).unwrap().manifest, manifest);
}

#[test]
fn many_archs_fit() {
    let mut manifest = rich();
    let all: Vec<_> = (0..24).map(|n| Target::Cubin(Arch { number: 50 + n * 3, suffix: Suffix::None })).collect();
    manifest.requires.extend(all.iter().map(|target| {
        let Target::Cubin(arch) = target else { unreachable!() };
        Requirement::Gpu {
            from: arch.cc(),
            to: Some(arch.cc()),
            by: GpuCoverage::Cubin,
            code: target.to_string(),
            cuda: Some(CudaVersion::new(12, 0)),
            release: Some(DriverRelease::new(525, 60, 13)),
            guaranteed_from: None,
            ptx_fallback: PtxFallback::Undetermined,
        }
    }));
    manifest.declared.clone_from(&all);
    manifest.observed = Some(all);
    let bytes = encode(&manifest).unwrap();
    let note = decode(&bytes[..]).unwrap();
    assert_eq!(note.manifest, manifest);
    assert!(!note.json.contains("requires"), "{}", note.json);
    assert_eq!(u16::from_le_bytes([bytes[10], bytes[11]]), 28);
}

#[test]
fn note_roundtrips() {
    let manifest = rich();
    let note = decode(&encode(&manifest).unwrap()[..]).unwrap();
    assert_eq!(note.manifest, manifest);
    assert_eq!((note.revision, note.json), (1, manifest.to_json().to_string()));
    assert!(note.unknown_rows.is_empty());
}

/// Revision 2 with longer rows, one of a new kind, and other offsets of fixed fields.
#[test]
fn newer_revision_is_partly_read() {
    let manifest = rich();
    let mut bytes = encode(&manifest).unwrap().to_vec();
    bytes[8] = 2;
    bytes[20..44].fill(0xee);
    bytes[44] = 99;
    let note = decode(&bytes).unwrap();
    assert_eq!((note.revision, &note.unknown_rows[..]), (2, &[99][..]));
    assert_eq!(note.manifest.requires, manifest.requires[1..]);
    assert_eq!(Manifest { requires: manifest.requires.clone(), ..note.manifest }, manifest);
}

#[test]
fn damaged_note_is_reported() {
    let good = encode(&rich()).unwrap().to_vec();
    let mut long = good.clone();
    long[head::NAME + 2..head::NAME + 4].copy_from_slice(&256_u16.to_le_bytes());
    let error = decode(&long).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the manifest is damaged: the component's name has 256 bytes, but the maximum is 255"
    );
    let damaged = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        decode(&bytes).unwrap_err().to_string()
    };
    assert!(damaged(0, 0).contains("does not begin"));
    assert!(damaged(8, 0).contains("revision"));
    assert!(damaged(14, 8).contains("rows"));
    assert!(damaged(21, 3).contains("[runtime] gpu"));
    assert!(damaged(29, 0xff).contains("the component's name"));
    assert!(damaged(17, 0).contains("JSON"));
    assert!(damaged(44 + 25, 0xff).contains("the soname of the row at byte 44"));
    for length in 0..good.len().min(400) {
        assert!(decode(&good[..length]).is_err(), "{length} bytes");
    }
}

fn version() -> impl Strategy<Value = Version> {
    (0..=0xffffu32, 0..=0xffu32, 0..=0xffu32).prop_map(|(a, b, c)| Version::new(a, b, c))
}

fn cuda() -> impl Strategy<Value = CudaVersion> {
    (1..=99u32, 0..=99u32).prop_map(|(a, b)| CudaVersion::new(a, b))
}

fn release() -> impl Strategy<Value = DriverRelease> {
    (1..=0xffffu32, 0..=0xffu32, 0..=0xffu32).prop_map(|(a, b, c)| DriverRelease::new(a, b, c))
}

fn linkage() -> impl Strategy<Value = Linkage> {
    prop::sample::select(vec![Linkage::Unknown, Linkage::Linked, Linkage::Static, Linkage::Dlopened])
}

fn target() -> impl Strategy<Value = Target> {
    let suffix = prop::sample::select(vec![Suffix::None, Suffix::Family, Suffix::Specific]);
    (any::<bool>(), 1..=999u16, suffix).prop_map(|(cubin, number, suffix)| {
        let arch = Arch { number, suffix };
        if cubin { Target::Cubin(arch) } else { Target::Ptx(arch) }
    })
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>(), 0..24).prop_map(String::from_iter)
}

fn requirement() -> impl Strategy<Value = Requirement> {
    let by = prop::sample::select(vec![
        GpuCoverage::Cubin,
        GpuCoverage::Ptx,
        GpuCoverage::Partial,
        GpuCoverage::PartialPtx,
        GpuCoverage::Nothing,
        GpuCoverage::Unknown,
    ]);
    let cc = || (any::<u8>(), any::<u8>());
    prop_oneof![
        (version(), version(), version(), text(), linkage(), any::<bool>(), any::<bool>()).prop_map(
            |(min, below, built, soname, linkage, patch_refuse, required)| Requirement::Library {
                min,
                below,
                built,
                soname,
                linkage,
                patch_refuse,
                required
            }
        ),
        (text(), text(), any::<bool>()).prop_map(|(file, symbol, needed)| Requirement::Part { file, symbol, needed }),
        (cuda(), release(), text()).prop_map(|(cuda, release, because)| Requirement::Driver { cuda, release, because }),
        (
            cc(),
            prop::option::of(cc().prop_filter("255.255 is no end", |cc| *cc != (255, 255))),
            by,
            text(),
            prop::option::of(cuda()),
            prop::option::of(release()),
            prop::option::of((cuda(), release())),
            prop::option::of((0..16u8, 0..16u8))
        )
            .prop_map(|(from, to, by, code, cuda, release, guaranteed_from, isa)| {
                let ptx_fallback = match isa {
                    None => PtxFallback::Undetermined,
                    Some((0, _)) => PtxFallback::Nothing,
                    Some(isa) => PtxFallback::Isa(isa),
                };
                Requirement::Gpu { from, to, by, code, cuda, release, guaranteed_from, ptx_fallback }
            }),
    ]
}

fn manifest() -> impl Strategy<Value = Manifest> {
    let gpu = prop::sample::select(vec![GpuNeed::Auto, GpuNeed::Required, GpuNeed::Optional]);
    let facts = (
        [text(), text(), text(), text(), text()],
        prop::option::of(version()),
        prop::option::of((version(), linkage())),
        prop::option::of((linkage(), prop::option::of(version()))),
        prop::collection::vec(target(), 0..6),
        prop::option::of(prop::collection::vec(target(), 0..6)),
        prop::option::of(text()),
    );
    let rules = (
        [any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()],
        gpu,
        prop::collection::btree_map(prop::sample::select(Code::ALL.to_vec()), text(), 0..3),
        prop::collection::vec(requirement(), 0..6),
    );
    (facts, rules).prop_map(
        |(
            ([name, version, cudaguard, target, profile], toolkit, library, cudart, declared, observed, host_compiler),
            ([mismatch_warns, library_enforces, partial_refuse, sealed], gpu, allow, requires),
        )| Manifest {
            component: Component { name, version },
            cudaguard,
            target,
            profile,
            toolkit,
            toolkit_known: toolkit.filter(|_| sealed).map(|_| FactSource::LinkObservation),
            other_toolkits: toolkit.map(CudaVersion::from).into_iter().collect(),
            library: library.map(|(version, linkage)| BuiltWith { version, linkage }),
            library_known: None,
            library_linked: None,
            cudart: cudart
                .filter(|(linkage, _)| *linkage != Linkage::Unknown)
                .map(|(linkage, version)| RecordedCudart { linkage, version: version.map(CudaVersion::from) }),
            declared,
            observed,
            host_compiler,
            runtime: Runtime { mismatch_warns, gpu, library_enforces },
            partial_refuse,
            allow: allow.into_iter().collect(),
            opens: Vec::new(),
            sealed,
            requires,
        },
    )
}

proptest! {
    #[test]
    fn arbitrary_note_roundtrips(manifest in manifest()) {
        if let Ok(bytes) = encode(&manifest) {
            prop_assert_eq!(decode(&bytes[..]).unwrap().manifest, manifest);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = decode(&bytes);
        let mut marked = b"cudagrd\0\x01\0".to_vec();
        marked.extend(bytes);
        let _ = decode(&marked);
    }

    #[test]
    fn flipped_bytes_never_panic(at in 8..SIZE, value in any::<u8>(), other in 8..SIZE, second in any::<u8>()) {
        let mut bytes = encode(&rich()).unwrap().to_vec();
        bytes[at] = value;
        bytes[other] = second;
        let _ = decode(&bytes);
    }
}
