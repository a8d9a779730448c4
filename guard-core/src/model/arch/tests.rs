use super::*;
use proptest::prelude::*;

fn read(text: &str, dialect: Dialect) -> String {
    match parse_list(text, dialect) {
        Ok(requests) => join_requests(&requests),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn spellings_parse_in_all_syntaxes() {
    use Dialect::{Cmake, ComputeCap, Policy, Torch};
    for (dialect, text, wanted) in [
        (Cmake, "75;86-real;90a-virtual", "sm_75,compute_75,sm_86,compute_90a"),
        (Cmake, "90", "sm_90,compute_90"),
        (Cmake, "90a", "sm_90a,compute_90a"),
        (Cmake, "100f-real", "sm_100f"),
        (Cmake, "all", "all"),
        (Cmake, "all-major", "all-major"),
        (Cmake, "native", "native"),
        (Cmake, "OFF", "OFF"),
        (Cmake, "off", "OFF"),
        (Cmake, "0", "OFF"),
        (Cmake, "FALSE", "OFF"),
        (Cmake, "", ""),
        (Cmake, ";;80;;", "sm_80,compute_80"),
        (Cmake, "80;80", "sm_80,compute_80"),
        (Torch, "8.0 8.6+PTX 9.0a", "sm_80,sm_86,compute_86,sm_90a"),
        (Torch, "8.0;8.6+PTX", "sm_80,sm_86,compute_86"),
        (Torch, "10.0 12.0a", "sm_100,sm_120a"),
        (Torch, "Ampere", "sm_80,sm_86,compute_86"),
        (Torch, "All", "all"),
        (Torch, "Common", ""),
        (Torch, "Common 9.0a", "sm_90a"),
        (Torch, "Volta+Tegra;Hopper", "sm_72,sm_90,compute_90"),
        (Torch, "Blackwell", "sm_100,sm_120,compute_120"),
        (Torch, "90", "sm_90"),
        (ComputeCap, "86", "sm_86"),
        (ComputeCap, "8.6", "sm_86"),
        (ComputeCap, "90a", "sm_90a"),
        (Policy, "sm_80, sm_90a, compute_90", "sm_80,sm_90a,compute_90"),
        (Policy, "90 9.0a\t9.0+PTX\n100-virtual", "sm_90,compute_90,sm_90a,compute_100"),
        (Policy, "all-major", "all-major"),
        // An arch that no table contains is still an arch.
        (Policy, "sm_150a", "sm_150a"),
        (Torch, "15.3+PTX", "sm_153,compute_153"),
    ] {
        assert_eq!(read(text, dialect), wanted, "{text} as {dialect:?}");
    }
}

#[test]
fn invalid_archs_are_rejected() {
    let expected = "is not an architecture; expected a spelling such as sm_90, compute_90, 90, 90a, 90-real, \
                        90-virtual, 9.0 or 9.0+PTX";
    for word in [
        "9",
        "sm90",
        "sm_9",
        "sm_",
        "sm_90b",
        "SM_90",
        "compute90",
        "90-REAL",
        "9.00",
        "9.",
        ".0",
        "100.0",
        "90-",
        "+PTX",
        "9.0+ptx",
        "sm_9.0",
        "0900",
        "09",
        "ninety",
        "1234",
        "sm_90_",
        "lto_",
        "-1",
        "٩٠",
        "9.0a-real-real",
    ] {
        assert_eq!(read(word, Dialect::Policy), format!("error: `{word}` {expected}"));
    }
    for (dialect, text, message) in [
        (Dialect::Policy, "sm_80 lto_90", "`lto_90` is LTO-IR"),
        (
            Dialect::Policy,
            "Ampere",
            "`Ampere` is the name of a GPU generation, which only TORCH_CUDA_ARCH_LIST accepts",
        ),
        (Dialect::Cmake, "80;OFF", "`OFF` cannot be combined"),
        (Dialect::Policy, "0", "`0` is not an architecture"),
    ] {
        let found = read(text, dialect);
        assert!(found.starts_with(&format!("error: {message}")), "{text}: {found}");
    }
}

fn flags(text: &str) -> String {
    match nvcc_flags(text) {
        Ok(found) => {
            let lto = found.lto.iter().map(|arch| format!(" lto_{arch}")).collect::<Vec<_>>().concat();
            join_requests(&found.requests) + &lto
        }
        Err(error) => format!("error: {error}"),
    }
}

/// Each result is that of `nvcc --dryrun` with these flags on its command line.
#[test]
fn nvcc_flags_are_parsed() {
    for (text, wanted) in [
        ("", ""),
        ("-O3 --expt-relaxed-constexpr -lineinfo", ""),
        ("-arch=sm_90", "sm_90,compute_90"),
        ("-arch sm_90a", "sm_90a,compute_90a"),
        ("--gpu-architecture=sm_90", "sm_90,compute_90"),
        ("--gpu-architecture compute_80", "compute_80"),
        ("-arch=compute_80 -code=sm_86,compute_80", "sm_86,compute_80"),
        ("-arch=compute_80 -code=sm_80 -code=sm_86", "sm_80,sm_86"),
        ("--gpu-code=sm_90 --gpu-architecture=compute_90", "sm_90"),
        ("-arch=compute_80 -code=compute_80", "compute_80"),
        ("-code=sm_86,sm_90", "sm_86,sm_90"),
        ("-arch=all", "all"),
        ("-arch all-major", "all-major"),
        ("-arch=native", "native"),
        ("-gencode arch=compute_90,code=sm_90", "sm_90"),
        ("-gencode=arch=compute_90,code=[sm_90,compute_90]", "sm_90,compute_90"),
        ("-gencode 'arch=compute_90,code=\"sm_90,compute_90\"'", "sm_90,compute_90"),
        ("-gencode=arch=compute_90,code=\"sm_90,compute_90\"", "sm_90,compute_90"),
        ("\"-gencode=arch=compute_90,code=sm_90\"", "sm_90"),
        ("--generate-code=arch=compute_100f,code=sm_100f", "sm_100f"),
        ("--generate-code code=sm_90,arch=compute_90", "sm_90"),
        ("-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a", "sm_80,sm_90a"),
        // Both kinds add up.
        ("-arch=sm_80 -gencode arch=compute_90,code=sm_90", "sm_90,sm_80,compute_80"),
        ("-arch=compute_90 -code=sm_90,compute_90 -gencode arch=compute_80,code=sm_80", "sm_80,sm_90,compute_90"),
        // The last -arch counts.
        ("-arch=sm_90 -arch=sm_80", "sm_80,compute_80"),
        ("-arch=lto_90 -rdc=true", " lto_90"),
        ("-gencode=arch=compute_90,code=[sm_90,lto_90] -dc", "sm_90 lto_90"),
        // Options of other tools.
        ("-Xcompiler -arch=foo -O2", ""),
        ("-Xcompiler -march=native,-Wall -arch=sm_80", "sm_80,compute_80"),
        ("--compiler-options -arch=foo -I -arch=bar", ""),
    ] {
        assert_eq!(flags(text), wanted, "{text}");
    }
}

#[test]
fn suffixed_arch_depends_on_release() {
    for (text, requests, from_13) in [
        ("-arch=sm_90a", "sm_90a,compute_90a", Some("compute_90")),
        ("-arch=compute_100f", "compute_100f", Some("compute_100")),
        ("-arch=compute_90a -code=sm_90a", "sm_90a", None),
        ("-arch=sm_90", "sm_90,compute_90", None),
    ] {
        let flags = nvcc_flags(text).unwrap();
        assert_eq!(join_requests(&flags.requests), requests);
        assert_eq!(flags.besides_from_13.map(|target| target.to_string()).as_deref(), from_13);
    }
}

#[test]
fn flags_that_nvcc_rejects_are_rejected() {
    for (text, message) in [
        ("-arch", "`-arch` has no value"),
        ("-arch=90", "`90` is not an architecture"),
        ("-arch=SM_90", "`SM_90` is not an architecture"),
        ("-arch=sm_90 -code=sm_90", "`-arch=sm_90` is combined with -code"),
        ("-gencode arch=compute_90", "`-gencode arch=compute_90` has no code"),
        ("-gencode code=sm_90", "`-gencode code=sm_90` has no arch"),
        ("-gencode arch=sm_90,code=sm_90", "`-gencode arch=sm_90,code=sm_90` has no virtual architecture"),
        (
            "-gencode arch=compute_80,code=sm_80,arch=compute_90",
            "`-gencode arch=compute_80,code=sm_80,arch=compute_90` is not",
        ),
        ("-gencode arch=compute_90,code=", "`` is not an architecture"),
        ("-gencode", "`-gencode` has no value"),
    ] {
        let found = flags(text);
        assert!(found.starts_with(&format!("error: {message}")), "{text}: {found}");
    }
    let found = nvcc_flags("--options-file a.txt,b.txt -optf=c.txt -ccbin=g++-11").unwrap();
    assert_eq!((found.options_files.join(" "), found.ccbin.as_deref()), ("a.txt b.txt c.txt".into(), Some("g++-11")));
}

#[test]
fn compute_capabilities_are_parsed() {
    assert_eq!(Arch::from_cc((12, 1)), Some(Arch::without_suffix(121)));
    assert_eq!(Arch::from_cc((9, 10)), None);
    assert_eq!(Arch::from_cc((0, 5)), None);
    assert_eq!(Arch::without_suffix(103).cc(), (10, 3));
}

fn any_arch() -> impl Strategy<Value = Arch> {
    let suffix = prop_oneof![Just(Suffix::None), Just(Suffix::Family), Just(Suffix::Specific)];
    (10u16..1000, suffix).prop_map(|(number, suffix)| Arch { number, suffix })
}

fn any_request() -> impl Strategy<Value = ArchRequest> {
    prop_oneof![
        any_arch().prop_map(|arch| Target::Cubin(arch).into()),
        any_arch().prop_map(|arch| Target::Ptx(arch).into()),
        Just(ArchRequest::All),
        Just(ArchRequest::AllMajor),
        Just(ArchRequest::Native),
    ]
}

const DIALECTS: [Dialect; 4] = [Dialect::Cmake, Dialect::Torch, Dialect::ComputeCap, Dialect::Policy];

/// Strings that are similar enough to valid ones to reach every branch.
const NEAR: &str =
    "((sm_|compute_|lto_)?[0-9]{0,4}(\\.[0-9]{0,2})?[afb]?(-real|-virtual|\\+PTX)?|all|all-major|native|OFF|Ampere)";
const NEAR_FLAGS: &str = "(-gencode|--generate-code|-arch|-code|--gpu-code|-Xcompiler|-optf)?[= ]?(arch=|code=)?[\\[\"',= ]{0,2}(sm_90|compute_90|lto_90|all)[\\]\"', ]{0,2}(arch=|code=)?(sm_80|compute_8)?";

proptest! {
    #[test]
    fn arch_lists_roundtrip(requests in prop::collection::vec(any_request(), 0..8)) {
        let mut unique = Vec::new();
        for &request in &requests {
            push_unique(&mut unique, request);
        }
        for dialect in DIALECTS {
            prop_assert_eq!(parse_list(&join_requests(&requests), dialect).unwrap(), unique.clone());
        }
    }

    #[test]
    fn parsed_arch_roundtrips(text in prop::collection::vec(NEAR, 0..4)) {
        for dialect in DIALECTS {
            if let Ok(requests) = parse_list(&text.join(";"), dialect) {
                prop_assert_eq!(parse_list(&join_requests(&requests), dialect), Ok(requests));
            }
        }
    }

    #[test]
    fn parsing_text_never_panics(text in "\\PC*") {
        for dialect in DIALECTS {
            if let Err(error) = parse_list(&text, dialect) {
                prop_assert!(text.contains(&error.word), "{error}");
            }
        }
        let _ = nvcc_flags(&text);
    }

    #[test]
    fn parsing_flags_never_panics(words in prop::collection::vec(NEAR_FLAGS, 0..5)) {
        if let Err(error) = nvcc_flags(&words.join(" ")) {
            prop_assert!(!error.reason.is_empty());
        }
    }

    #[test]
    fn flags_roundtrip(arch in any_arch()) {
        let text = format!("-gencode arch=compute_{arch},code=[sm_{arch},compute_{arch}]");
        prop_assert_eq!(flags(&text), format!("sm_{arch},compute_{arch}"));
    }
}
