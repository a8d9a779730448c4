use std::path::Path;

use super::*;
use crate::knowledge::crates::crate_use::{CrateCompiler, CrateHeaders};
use cudaguard::internal::arch::Arch;
use cudaguard::internal::finding::Code;
use cudaguard::internal::toolchain::{Nvcc, Selection, SelectionReason, Toolkit};
use cudaguard::internal::version::Version;

/// A toolchain whose nvcc is of this release, with a cuDNN.
fn toolchain(release: &str, library: Option<Version>) -> Toolchain {
    let root = PathBuf::from("/cuda");
    let nvcc = Nvcc { path: root.join("bin/nvcc"), version: Some(release.parse().unwrap()), ..Nvcc::default() };
    let toolkit = Toolkit { root, nvcc: Some(nvcc), ..Toolkit::default() };
    let headers = library.map(|version| cudaguard::internal::toolchain::LibraryHeaders {
        path: "/cudnn/include/cudnn_version.h".into(),
        version: Some(version),
    });
    let mut toolchain = Toolchain::default();
    toolchain.toolkits = vec![toolkit];
    toolchain.compiler = Some(Selection { index: 0, reason: SelectionReason::Other("first nvcc in PATH".to_owned()) });
    toolchain.installs =
        vec![cudaguard::internal::toolchain::Install { headers, ..cudaguard::internal::toolchain::Install::default() }];
    toolchain.library_headers =
        library.map(|_| Selection { index: 0, reason: SelectionReason::Named("CUDNN_PATH".to_owned()) });
    toolchain
}

fn policy(text: &str) -> Policy {
    Policy::parse(Path::new("cudaguard.toml"), text.as_bytes(), "app").unwrap()
}

fn cudarc(version: &str, features: &[&str], level: Option<(&str, &str, Chosen)>) -> CrateUse {
    let of = Crate {
        name: "cudarc".to_owned(),
        version: version.to_owned(),
        features: features.iter().map(|one| (*one).to_owned()).collect(),
        known: ["cuda-12020", "cuda-12080", "cuda-13000", "cuda-13040"].map(str::to_owned).into(),
        path: vec!["app".to_owned(), format!("cudarc {version}")],
        named_in: vec!["Cargo.toml:9".to_owned()],
        ..Crate::default()
    };
    let level =
        level.map(|(value, by, chosen)| DetectedLevel { value: value.parse().unwrap(), by: by.to_owned(), chosen });
    CrateUse { of, level, library: None, compiler: None, headers: None, arch: None, downloaded: None, stopped: None }
}

fn fixed(level: &'static str) -> Option<(&'static str, &'static str, Chosen)> {
    (!level.is_empty()).then_some((level, "feature cuda-…", Chosen::Fixed))
}

/// Returns code and severity of each finding.
fn codes(policy: &Policy, toolchain: &Toolchain, uses: &[CrateUse]) -> Vec<String> {
    let found = check_crates(policy, toolchain, uses);
    for finding in &found {
        assert!(finding.message.contains("\ncrate: "), "the message contains the path to the crate: {finding:?}");
        assert!(!finding.hint.is_empty(), "{finding:?}");
    }
    found.iter().map(|finding| format!("{} {}", finding.code, finding.severity)).collect()
}

const LINKED: &[&str] = &["driver", "cublas", "dynamic-linking"];
const LOADED: &[&str] = &["driver", "cublas", "runtime", "dynamic-loading"];
const DRIVER: &[&str] = &["driver", "nvrtc", "dynamic-loading"];

#[test]
fn level_is_checked_against_toolkit() {
    for (features, level, toolkit, expected) in [
        // Matching versions.
        (LINKED, "13.0", "13.0.88", None),
        (LINKED, "13.0", "13.4.1", None),
        (LINKED, "12.2", "12.9.1", None),
        (LOADED, "13.4", "13.0.88", None),
        (LOADED, "12.2", "12.9.1", None),
        // Driver functions do not depend on a toolkit's major.
        (DRIVER, "12.8", "13.0.88", None),
        (DRIVER, "13.0", "11.8.0", None),
        // Mismatches.
        (LINKED, "12.8", "13.0.88", Some("CG150 error")),
        (LINKED, "13.0", "11.8.0", Some("CG150 error")),
        (LINKED, "13.4", "13.0.88", Some("CG150 warning")),
        (LOADED, "12.8", "13.0.88", Some("CG150 warning")),
        (&["runtime", "static-linking"], "12.8", "13.0.88", Some("CG150 error")),
    ] {
        let found = codes(&Policy::default(), &toolchain(toolkit, None), &[cudarc("0.19.10", features, fixed(level))]);
        let expected: Vec<&str> = expected.into_iter().collect();
        assert_eq!(found, expected, "{features:?} {level} {toolkit}");
    }
    // No finding without a toolkit, without a level, or for a crate version that is not in the table.
    assert!(codes(&Policy::default(), &Toolchain::default(), &[cudarc("0.19.10", LINKED, fixed("12.8"))]).is_empty());
    assert!(codes(&Policy::default(), &toolchain("13.0.88", None), &[cudarc("0.19.10", LINKED, None)]).is_empty());
    assert!(
        codes(&Policy::default(), &toolchain("13.0.88", None), &[cudarc("0.77.0", LINKED, fixed("12.8"))]).is_empty()
    );
    // CUDA 13 removed functions of NVRTC. Only versions that look up all functions need them.
    let with_nvrtc =
        |version| codes(&Policy::default(), &toolchain("13.0.88", None), &[cudarc(version, DRIVER, fixed("12.8"))]);
    assert_eq!(with_nvrtc("0.17.8"), ["CG150 warning"]);
    assert!(with_nvrtc("0.19.10").is_empty());
}

#[test]
fn level_fix_names_the_setting() {
    let hint = |one: CrateUse| check_crates(&Policy::default(), &toolchain("13.0.88", None), &[one])[0].hint.clone();
    assert_eq!(
        hint(cudarc("0.19.10", LINKED, Some(("12.8", "feature cuda-12080", Chosen::Fixed)))),
        "Cargo.toml:9: use the feature cuda-13000 instead of cuda-12080"
    );
    assert_eq!(
        hint(cudarc("0.19.10", LINKED, Some(("12.8", "CUDARC_CUDA_VERSION=12080", Chosen::Fixed)))),
        "unset CUDARC_CUDA_VERSION, or set it to 13000"
    );
    assert_eq!(
        hint(cudarc("0.19.10", LINKED, Some(("12.8", "/b/nvcc, the first in PATH", Chosen::Found)))),
        "put the bin directory of the toolkit in use first in PATH"
    );
    let mut below = cudarc("0.19.10", LINKED, Some(("12.8", "feature cuda-12080", Chosen::Fixed)));
    below.of.path = ["app", "engine 1.0.0", "cudarc 0.19.10"].map(str::to_owned).to_vec();
    below.of.named_in.clear();
    assert_eq!(
        hint(below.clone()),
        "the manifest of engine 1.0.0: use the feature cuda-13000 instead of cuda-12080, or use another release of it; CUDARC_CUDA_VERSION \
         cannot override a feature"
    );
    below.of.known.clear();
    assert_eq!(hint(below), "update cudarc 0.19.10 (the manifest of engine 1.0.0): it has no bindings for CUDA 13.0");
}

#[test]
fn cudnn_level_is_checked_against_cudnn() {
    let bindings = |version: &str, how: &str, value| {
        let mut one = cudarc(version, &["driver", "cudnn", how], fixed("13.0"));
        one.library = Some(DetectedLevel { value, by: "feature cudnn".to_owned(), chosen: Chosen::Fixed });
        one
    };
    for (version, how, value, library, expected) in [
        // Bindings of 9.21 run on 9.15: each function is looked up when it is called.
        ("0.19.10", "dynamic-linking", (9, Some(21)), (9, 15, 1), None),
        ("0.19.10", "dynamic-loading", (9, Some(21)), (9, 1, 0), None),
        ("0.19.10", "dynamic-loading", (8, Some(9)), (9, 15, 1), Some("CG151 error")),
        ("0.19.10", "dynamic-linking", (9, Some(21)), (8, 9, 7), Some("CG151 error")),
        // All functions are resolved when the library opens: 9.1 lacks one, 9.15 has all, releases between them are
        // unknown.
        ("0.17.8", "dynamic-loading", (9, None), (9, 1, 0), Some("CG151 error")),
        ("0.17.8", "dynamic-loading", (9, None), (9, 10, 2), None),
        ("0.17.8", "dynamic-loading", (9, None), (9, 15, 1), None),
        ("0.17.8", "dynamic-linking", (9, None), (9, 1, 0), None),
        ("0.17.8", "dynamic-linking", (9, None), (8, 9, 7), Some("CG151 error")),
    ] {
        let (major, minor, patch) = library;
        let toolchain = toolchain("13.0.88", Some(Version::new(major, minor, patch)));
        let found = codes(&Policy::default(), &toolchain, &[bindings(version, how, value)]);
        let expected: Vec<&str> = expected.into_iter().collect();
        assert_eq!(found, expected, "{version} {how} {value:?} {library:?}");
    }
    let none = toolchain("13.0.88", None);
    assert!(codes(&Policy::default(), &none, &[bindings("0.17.8", "dynamic-loading", (9, None))]).is_empty());
}

#[test]
fn two_crate_versions_are_compared() {
    let toolkit = Toolchain::default();
    let both = |one: CrateUse, other: CrateUse| codes(&Policy::default(), &toolkit, &[one, other]);
    assert_eq!(
        both(cudarc("0.17.8", LOADED, fixed("12.8")), cudarc("0.19.10", LOADED, fixed("13.0"))),
        ["CG152 error"]
    );
    // Minors of one major are compatible, and driver functions do not depend on a major.
    assert!(both(cudarc("0.17.8", LOADED, fixed("12.2")), cudarc("0.19.10", LINKED, fixed("12.8"))).is_empty());
    assert!(both(cudarc("0.17.8", DRIVER, fixed("12.8")), cudarc("0.19.10", LOADED, fixed("13.0"))).is_empty());
    let library = |version: &str, major| {
        let mut one = cudarc(version, &["driver", "cudnn", "dynamic-linking"], None);
        one.library = Some(DetectedLevel { value: (major, None), by: "feature".to_owned(), chosen: Chosen::Fixed });
        one
    };
    assert_eq!(both(library("0.19.10", 8), library("0.17.8", 9)), ["CG152 error"]);
    assert!(both(library("0.19.10", 9), library("0.17.8", 9)).is_empty());
}

#[test]
fn level_is_checked_against_driver() {
    let needs = |version: &str, features: &[&str], level, fleet: &str| {
        let policy = policy(&format!("[driver]\nfleet = \"{fleet}\"\n"));
        codes(&policy, &Toolchain::default(), &[cudarc(version, features, fixed(level))])
    };
    // Driver 535 supports 12.2, 550 supports 12.4, 560 supports 12.6.
    for (level, fleet, refused) in [
        ("12.2", "535", false),
        ("12.3", "535", true),
        ("12.4", "535", true),
        ("12.4", "550", false),
        // CUDA 12.6 added no function.
        ("12.6", "555", false),
        ("13.0", "550", true),
        ("13.0", "580", false),
        // The tables do not contain this branch or level.
        ("13.4", "535", false),
        ("13.0", "999", false),
    ] {
        let expected: &[&str] = if refused { &["CG153 error"] } else { &[] };
        assert_eq!(needs("0.17.8", DRIVER, level, fleet), expected, "{level} on {fleet}");
    }
    // From 0.19.5 on, or if linked, a function is resolved when it is called.
    assert!(needs("0.19.10", DRIVER, "13.0", "535").is_empty());
    assert!(needs("0.17.8", LINKED, "13.0", "535").is_empty());
    assert_eq!(needs("0.19.4", DRIVER, "13.0", "535"), ["CG153 error"]);
    let found = check_crates(
        &policy("[driver]\nfleet = \"535\"\n"),
        &Toolchain::default(),
        &[cudarc("0.17.8", DRIVER, Some(("13.0", "no nvcc in PATH: the newest known", Chosen::Assumed)))],
    );
    assert!(found[0].message.contains("cuCtxGetDevice_v2"), "{found:?}");
    assert!(found[0].hint.starts_with("set CUDARC_CUDA_VERSION=12020 (Cargo.toml:9: or"), "{found:?}");
    let fixed_by_feature = Some(("13.0", "feature cuda-13000", Chosen::Fixed));
    let found = check_crates(
        &policy("[driver]\nfleet = \"535\"\n"),
        &Toolchain::default(),
        &[cudarc("0.17.8", DRIVER, fixed_by_feature)],
    );
    assert!(found[0].hint.starts_with("Cargo.toml:9: use the feature cuda-12020;"), "{found:?}");
}

fn tool(compiler: &str, headers: Option<(&str, &str, &str)>) -> CrateUse {
    let mut one = cudarc("0.19.10", &[], None);
    one.of = Crate {
        name: "bindgen_cuda".to_owned(),
        version: "0.1.6".to_owned(),
        path: ["app", "candle-kernels 0.9.2", "bindgen_cuda 0.1.6"].map(str::to_owned).to_vec(),
        tool: true,
        ..Crate::default()
    };
    let path = if compiler.starts_with("13.0") { "/cuda/bin/nvcc" } else { "/other/bin/nvcc" };
    one.compiler =
        Some(CrateCompiler { path: path.into(), release: Some(compiler.parse().unwrap()), by: "PATH".to_owned() });
    one.headers = headers.map(|(path, release, by)| CrateHeaders {
        path: path.into(),
        release: Some(release.parse().unwrap()),
        by: by.to_owned(),
        named: true,
    });
    one
}

#[test]
fn crate_toolkit_is_checked() {
    let toolchain = toolchain("13.0.88", None);
    let found = |one: CrateUse| codes(&Policy::default(), &toolchain, &[one]);
    assert!(found(tool("13.0.88", None)).is_empty());
    assert!(found(tool("13.0.88", Some(("/cuda/include/cuda.h", "13.0", "CUDA_PATH")))).is_empty());
    let usual = "/usr/local/cuda/include";
    assert_eq!(found(tool("13.0.88", Some(("/usr/local/cuda/include/cuda.h", "12.4", usual)))), ["CG154 error"]);
    assert_eq!(found(tool("13.0.88", Some(("/cuda-12/include/cuda.h", "12.4", "CUDA_PATH")))), ["CG154 error"]);
    // A build script that is not in the table gets a warning only.
    let mut unread = tool("13.0.88", Some(("/cuda-12/include/cuda.h", "12.4", "CUDA_PATH")));
    if let Some(headers) = &mut unread.headers {
        headers.named = false;
    }
    assert_eq!(found(unread), ["CG154 warning"]);
    // `-I/usr/include` changes nothing.
    for by in ["/usr/include", "CUDA_PATH"] {
        assert!(found(tool("13.0.88", Some(("/usr/include/cuda.h", "12.4", by)))).is_empty());
    }
    assert_eq!(found(tool("11.8.89", None)), ["CG154 error"]);
    // A tool of two crates is reported once.
    let mut farther = tool("11.8.89", None);
    farther.of.path.insert(1, "model 0.1.0".to_owned());
    let found = check_crates(&Policy::default(), &toolchain, &[farther, tool("11.8.89", None)]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].message.contains("app -> candle-kernels 0.9.2 -> bindgen_cuda 0.1.6"), "{found:?}");
}

#[test]
fn toolchain_findings_are_not_repeated() {
    let mut toolchain = toolchain("13.0.88", None);
    let headers = cudaguard::internal::toolchain::ToolkitHeaders {
        path: "/old/include/cuda.h".into(),
        version: Some(CudaVersion::new(11, 8)),
    };
    toolchain.toolkits.push(Toolkit { root: "/old".into(), headers: Some(headers), ..Toolkit::default() });
    toolchain.headers = Some(Selection { index: 1, reason: SelectionReason::Named("CUDA_PATH".to_owned()) });
    let one = tool("13.0.88", Some(("/old/include/cuda.h", "11.8", "CUDA_PATH")));
    assert!(codes(&Policy::default(), &toolchain, &[one]).is_empty());
    let from_build = cudaguard::internal::checks::build::check_build(&Policy::default(), &toolchain);
    assert!(from_build.iter().any(|finding| finding.code == Code::ToolkitMixed), "{from_build:?}");
}

const H100_T4: &str = "[gpu]\nfleet = [\"H100\", \"T4\"]\n";
const H100: &str = "[gpu]\nfleet = [\"H100\"]\n";
const NEWER: &str = "[gpu]\nfleet = [\"9.0\", \"10.0\"]\n";

#[test]
fn single_arch_is_checked_against_fleet() {
    let named = |number, suffix, text: &str| ArchUse::Named {
        arch: Arch { number, suffix },
        variable: "CUDA_COMPUTE_CAP".to_owned(),
        text: text.to_owned(),
    };
    let builder = |gpus: Option<Vec<(u8, u8)>>, suffix| ArchUse::BuildSystem {
        variable: "CUDA_COMPUTE_CAP".to_owned(),
        gpus,
        suffix,
    };
    let found = |arch, fleet: &str| {
        let mut one = tool("13.0.88", None);
        one.arch = Some(arch);
        codes(&policy(fleet), &toolchain("13.0.88", None), &[one])
    };
    assert!(found(named(80, Suffix::None, "80"), "").is_empty(), "without a fleet it is no finding");
    assert_eq!(found(named(80, Suffix::None, "80"), H100_T4), ["CG156 error"]);
    assert!(found(named(80, Suffix::None, "80"), H100).is_empty(), "PTX serves it");
    assert_eq!(found(named(90, Suffix::Specific, "90"), NEWER), ["CG156 error"]);
    assert!(found(named(90, Suffix::None, "90"), NEWER).is_empty());
    assert_eq!(found(named(90, Suffix::Specific, "90"), H100), ["CG157 info"], "silently specific");
    assert!(found(named(90, Suffix::Specific, "90a"), H100).is_empty(), "asked for");
    assert_eq!(found(builder(Some(vec![(8, 9)]), true), H100_T4), ["CG158 error"]);
    assert!(found(builder(Some(vec![(7, 5)]), true), H100_T4).is_empty(), "PTX of 7.5 serves all");
    assert!(
        found(builder(Some(vec![(8, 9), (7, 5)]), true), H100_T4).is_empty(),
        "it is unknown which of them is used"
    );
    assert!(found(builder(None, true), H100_T4).is_empty(), "no GPU to ask: the build stops by itself");
}

#[test]
fn failing_build_script_is_a_warning() {
    let stops = |stopped| {
        let mut one = cudarc("0.19.10", LINKED, None);
        one.stopped = Some(stopped);
        let found = check_crates(&Policy::default(), &toolchain("13.5.0", None), &[one]);
        assert_eq!((found.len(), found[0].code, found[0].severity), (1, Code::CrateStops, Severity::Warning));
        format!("{}\nhint: {}", found[0].message, found[0].hint)
    };
    let text = stops(Stopped::UnknownRelease {
        asked: CudaVersion::new(13, 5),
        by: "/cuda/bin/nvcc, the first in PATH".to_owned(),
        newest: CudaVersion::new(13, 4),
        variable: "CUDARC_CUDA_VERSION".to_owned(),
    });
    assert!(text.contains("no bindings for CUDA 13.5") && text.contains("CUDARC_CUDA_VERSION=13040"), "{text}");
    let text = stops(Stopped::UnknownRelease {
        asked: CudaVersion::new(13, 5),
        by: String::new(),
        newest: CudaVersion::new(12, 9),
        variable: "CUDARC_CUDA_VERSION".to_owned(),
    });
    assert!(text.contains("no bindings for CUDA 13.5") && text.ends_with("or build with CUDA 12.9"), "{text}");
    assert!(stops(Stopped::NoCompiler).contains("into PATH: /cuda/bin, or set"));
    let [variable, text, feature] = ["CUDARC_CUDA_VERSION", "12080", "cuda-13000"].map(str::to_owned);
    let two = Stopped::TwoReleases { variable: variable.clone(), text: text.clone(), feature };
    assert!(
        stops(two)
            .ends_with("hint: unset CUDARC_CUDA_VERSION, or select the version with the feature only (Cargo.toml:9)")
    );
    let unlinked = Stopped::NotLinked { library: "libcublas".to_owned(), places: vec!["/opt/cuda/lib64".to_owned()] };
    assert!(stops(unlinked).ends_with("lib64/stubs of a toolkit: /cuda/lib64:/cuda/lib64/stubs"));
    assert!(
        stops(Stopped::NoDownload { variable, text, majors: vec![13] }).contains("no library for this CUDA version")
    );
    assert!(
        stops(Stopped::NoLibraries { places: vec!["/opt/cuda".to_owned()] })
            .contains("CUDA_LIBRARY_PATH to the root of a toolkit: /cuda")
    );
    let text = stops(Stopped::UnknownLibrary {
        asked: Version::new(9, 1, 0),
        header: "/c/cudnn_version.h".into(),
        known: vec![(8, 9), (9, 21)],
    });
    assert!(text.contains("cuDNN 9.1,") && text.contains("8.9, 9.21"), "{text}");
}

#[test]
fn stale_build_output_is_reported() {
    let ran = |major: &str, minor: &str, condition: &str| Ran {
        name: "cudarc".to_owned(),
        version: "0.19.10".to_owned(),
        variables: [("CUDA_MAJOR_VERSION", major), ("CUDA_MINOR_VERSION", minor)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        conditions: vec![condition.to_owned()],
        headers: None,
    };
    let mut one = cudarc("0.19.10", LINKED, Some(("11.8", "/b/nvcc, the first in PATH", Chosen::Found)));
    assert_eq!(check_stale_builds(std::slice::from_ref(&one), &[ran("13", "0", "")], true).len(), 1);
    assert!(check_stale_builds(std::slice::from_ref(&one), &[ran("11", "8", "")], true).is_empty());
    assert!(check_stale_builds(std::slice::from_ref(&one), &[], true).is_empty());
    // The script ran for the host and for the target: only facts of both runs are certain.
    assert!(check_stale_builds(std::slice::from_ref(&one), &[ran("13", "0", ""), ran("11", "8", "")], true).is_empty());
    let found = check_stale_builds(std::slice::from_ref(&one), &[ran("13", "0", "")], true);
    assert_eq!(found[0].hint, "run `cargo clean -p cudarc@0.19.10 --release` and build again");
    // A fresh build would stop, because the crate does not know this toolkit.
    one.level = None;
    one.stopped = Some(Stopped::UnknownRelease {
        asked: CudaVersion::new(13, 5),
        by: "x".to_owned(),
        newest: CudaVersion::new(13, 4),
        variable: "V".to_owned(),
    });
    assert_eq!(check_stale_builds(std::slice::from_ref(&one), &[ran("13", "0", "")], false).len(), 1);
    one.stopped = None;
    one.library = Some(DetectedLevel { value: (9, Some(10)), by: "h".to_owned(), chosen: Chosen::Found });
    assert_eq!(
        check_stale_builds(std::slice::from_ref(&one), &[ran("13", "0", "feature=\"cudnn-08009\"")], false).len(),
        1
    );
    assert!(check_stale_builds(&[one], &[ran("13", "0", "feature=\"cudnn-09010\"")], false).is_empty());
}

#[test]
fn stale_kernels_are_reported() {
    let mut kernels = cudarc("0.19.10", &[], None);
    kernels.of = Crate {
        name: "candle-kernels".to_owned(),
        version: "0.11.1".to_owned(),
        path: ["app", "candle-kernels 0.9.2"].map(str::to_owned).to_vec(),
        ..Crate::default()
    };
    let ran = Ran {
        name: "candle-kernels".to_owned(),
        version: "0.11.1".to_owned(),
        headers: Some(("/old/include/cuda.h".into(), CudaVersion::new(11, 8))),
        ..Ran::default()
    };
    let now = tool("13.0.88", None);
    let ran = [ran];
    let found = check_stale_builds(&[kernels.clone(), now], &ran, false);
    assert!(found[0].message.contains("CUDA 11.8 (/old/include/cuda.h)"), "{found:?}");
    assert!(check_stale_builds(&[kernels, tool("11.8.89", None)], &ran, false).is_empty());
}

#[test]
fn downloaded_library_of_another_major_is_a_warning() {
    let mut one = cudarc("0.19.10", LINKED, None);
    one.downloaded = Some(13);
    assert!(check_crates(&Policy::default(), &toolchain("13.5.0", None), &[one.clone()]).is_empty());
    let found = check_crates(&Policy::default(), &toolchain("11.8.0", None), &[one]);
    assert_eq!((found.len(), found[0].code, found[0].severity), (1, Code::CrateForOtherCuda, Severity::Warning));
}
