use std::path::Path;

use super::*;
use crate::finding::{Code, Severity};
use crate::sys::env::Env;
use crate::toolchain::{
    DetectOptions, Install, LibraryFile, LibraryHeaders, Selection, SelectionReason, Sourced, Toolkit, ToolkitHeaders,
};

fn policy(text: &str) -> Policy {
    Policy::parse(Path::new("cudaguard.toml"), text.as_bytes(), "demo").unwrap()
}

/// Builds a toolchain from a toolkit's release, the value of `CUDAARCHS`, and cuDNN's version and CUDA major. Empty:
/// none.
fn toolchain(policy: &Policy, toolkit: &str, archs: &str, library: &str) -> Toolchain {
    let request = DetectOptions {
        system_root: "/nowhere".into(),
        policy_archs: policy.arch_requests(),
        ..DetectOptions::new(
            &Env::from_variables([("CUDAARCHS".to_owned(), archs.into())], "/"),
            "x86_64-unknown-linux-gnu",
        )
    };
    let mut toolchain = Toolchain::detect(&request);
    if let Ok(version) = toolkit.parse() {
        let headers = ToolkitHeaders { path: "/cuda/include/cuda.h".into(), version: Some(version) };
        toolchain.toolkits.push(Toolkit { headers: Some(headers), ..Toolkit::default() });
        toolchain.headers =
            Some(Selection { index: toolchain.toolkits.len() - 1, reason: SelectionReason::Named("CUDA_HOME".into()) });
    }
    if let Some((version, cuda)) = library.split_once(" for ") {
        let version = version.parse::<Version>().unwrap();
        toolchain.installs.push(Install {
            found: Vec::new(),
            headers: Some(LibraryHeaders { path: "/cudnn/include/cudnn_version.h".into(), version: Some(version) }),
            library: Some(LibraryFile {
                path: "/cudnn/lib/libcudnn.so".into(),
                major: version.major,
                version: Some(Sourced::new(version, "its name")),
                cuda_major: Some(Sourced::new(cuda.parse().unwrap(), "its name")),
                parts: Vec::new(),
                missing: Vec::new(),
            }),
        });
        let choice =
            Selection { index: toolchain.installs.len() - 1, reason: SelectionReason::Named("CUDNN_PATH".into()) };
        toolchain.library_headers = Some(choice.clone());
        toolchain.library_file = Some(choice);
    }
    toolchain
}

/// Some crates keep PTX next to the machine code that this variable requests, so newer GPUs may be served.
#[test]
fn crate_arch_expansion_is_checked() {
    let policy = policy("[gpu]\nfleet = [\"T4\", \"H100\"]\n");
    for (cap, code) in [("75", Code::FleetCannotTell), ("90", Code::FleetUndeclared)] {
        let env = Env::from_variables([("CUDA_COMPUTE_CAP".to_owned(), cap.into())], "/");
        let request =
            DetectOptions { system_root: "/nowhere".into(), ..DetectOptions::new(&env, "x86_64-unknown-linux-gnu") };
        let toolchain = Toolchain::detect(&request);
        let codes: Vec<Code> = check_declared_fleet(&policy, &toolchain).iter().map(|finding| finding.code).collect();
        assert_eq!(codes, [code], "{cap}");
    }
}

/// Returns code, severity and first sentence of each finding.
fn expected_codes(policy_text: &str, toolkit: &str, archs: &str, library: &str) -> Vec<String> {
    let policy = policy(policy_text);
    let toolchain = toolchain(&policy, toolkit, archs, library);
    let findings = check_declared_fleet(&policy, &toolchain).into_iter().chain(super::check_cudnn(&policy, &toolchain));
    findings
        .map(|finding| {
            assert!(!finding.hint.is_empty(), "{finding:?}");
            finding.render().lines().next().unwrap_or_default().to_owned()
        })
        .collect()
}

#[test]
fn gpus_are_checked_against_archs() {
    let t4 = "[gpu]\nfleet = [\"T4\", \"A100\"]\n";
    let unserved = |gpus: &str| {
        vec![format!("warning[CG132]: this build will not run on {gpus}: no declared architecture supports it.")]
    };
    for (policy, archs, expected) in [
        (t4, "75;80", vec![]),
        (t4, "75", vec![]),
        (t4, "80", unserved("T4 (7.5)")),
        (t4, "80-real;90-real", unserved("T4 (7.5)")),
        (t4, "90", unserved("T4 (7.5), A100 (8.0)")),
        (t4, "60-virtual", vec![]),
        ("[gpu]\nfleet = [\"8.6\"]\n", "80", vec![]),
        ("[gpu]\nfleet = [\"H100\"]\n", "80-real", unserved("H100 (9.0)")),
        ("[gpu]\nfleet = [\"9.0\"]\n", "90a", vec![]),
        ("[gpu]\nfleet = [\"10.0\"]\n", "90a", unserved("10.0")),
        ("[gpu]\nfleet = [\"8.7\"]\n", "80", vec![]),
        ("[gpu]\nfleet = [\"8.7\"]\n", "80-real", unserved("8.7")),
        // An unreadable arch, and one that means another GPU on each machine: other findings report these.
        (t4, "hopper", vec![]),
        (t4, "native", vec![]),
        // No archs are declared.
        (t4, "", vec!["warning[CG139]: it is unknown whether this build supports the whole fleet.".to_owned()]),
        ("[gpu]\nfleet = []\n", "80", vec![]),
        ("", "80", vec![]),
    ] {
        assert_eq!(expected_codes(policy, "12.4", archs, ""), expected, "{policy} {archs}");
    }
    // The policy's archs contradict its own fleet.
    let both = "[gpu]\narchs = [\"sm_80\"]\nfleet = [\"T4\"]\n";
    assert_eq!(expected_codes(both, "12.4", "75", "")[0], unserved("T4 (7.5)")[0].replace("warning", "error"));
}

#[test]
fn fix_names_arch_and_file() {
    let hint = |policy_text: &str, toolkit: &str, archs: &str| {
        let policy = policy(policy_text);
        let findings = check_declared_fleet(&policy, &toolchain(&policy, toolkit, archs, ""));
        findings.first().map(|finding| finding.hint.clone()).unwrap_or_default()
    };
    let t4 = "[gpu]\nfleet = [\"T4\"]\n";
    assert_eq!(hint(t4, "13.0", "80"), "add 75 to CUDAARCHS, or remove T4 (7.5) from [gpu] fleet");
    let both = "[gpu]\narchs = [\"sm_80\"]\nfleet = [\"T4\", \"8.0\", \"7.0\"]\n";
    assert_eq!(hint(both, "12.4", ""), "add sm_70, sm_75 to [gpu] archs, or remove T4 (7.5), 7.0 from [gpu] fleet");
    assert_eq!(
        hint("[gpu]\nfleet = [\"P100\"]\n", "13.0", "80"),
        "the toolkit in use no longer supports sm_60: build with CUDA 12.9 or older, or remove P100 (6.0) from [gpu] fleet"
    );
}

/// CMake knows the archs of a target before nvcc runs. The hint uses its terms.
#[test]
fn cmake_target_archs_are_compared() {
    let policy = policy("[gpu]\nfleet = [\"T4\"]\n");
    let env = Env::from_variables([("PATH".to_owned(), "".into())], "/");
    let check = |archs: &str, source: &str| {
        let request = DetectOptions {
            system_root: "/nowhere".into(),
            archs: Some(archs.to_owned()),
            ..DetectOptions::new(&env, "x86_64-unknown-linux-gnu")
        };
        let mut toolchain = Toolchain::detect(&request);
        source.clone_into(&mut toolchain.archs.declared[0].source);
        super::check_target_archs(&policy, &toolchain)
    };
    let finding = check("80", "CUDA_ARCHITECTURES of my-model").expect("a T4 has no code");
    assert_eq!((finding.code, finding.severity), (Code::FleetUndeclared, Severity::Warning));
    assert!(finding.hint.contains("add 75 to CUDA_ARCHITECTURES of my-model"), "{finding:?}");
    assert_eq!(check("75", "CUDA_ARCHITECTURES of my-model"), None);
    assert_eq!(check("80", "the option --arch"), None);
}

#[test]
fn only_project_settings_are_errors() {
    let by = |variable: (&str, &str), builder: Option<&str>, archs: &str| {
        let policy = policy(&format!("[gpu]\nfleet = [\"T4\"]\n{archs}"));
        let request = DetectOptions {
            system_root: "/nowhere".into(),
            policy_archs: policy.arch_requests(),
            archs: builder.map(str::to_owned),
            ..DetectOptions::new(
                &Env::from_variables([(variable.0.to_owned(), variable.1.into())], "/"),
                "x86_64-unknown-linux-gnu",
            )
        };
        let toolchain = Toolchain::detect(&request);
        let finding = check_declared_fleet(&policy, &toolchain).remove(0);
        assert_eq!(finding.code, Code::FleetUndeclared);
        (finding.severity, finding.hint)
    };
    assert_eq!(by(("PATH", ""), None, "archs = [\"sm_80\"]\n").0, Severity::Error);
    assert_eq!(by(("PATH", ""), Some("80"), "").0, Severity::Error);
    assert_eq!(by(("CUDAARCHS", "80"), None, "").0, Severity::Warning);
    assert_eq!(by(("CUDA_COMPUTE_CAP", "80"), None, "").0, Severity::Warning);
    let (severity, hint) = by(("TORCH_CUDA_ARCH_LIST", "8.0;9.0"), None, "");
    assert_eq!((severity, &*hint), (Severity::Info, "compile for sm_75, or remove T4 (7.5) from [gpu] fleet"));
}

#[test]
fn drivers_are_checked_against_toolkit() {
    let older = |branch: &str, cuda: u32| {
        vec![format!(
            "warning[CG133]: if this build contains cudart, it will not run on driver {branch}, the oldest of the fleet: CUDA \
             {cuda} needs a newer one."
        )]
    };
    let open = vec!["warning[CG139]: it is unknown whether this build supports the whole fleet.".to_owned()];
    for (fleet, toolkit, expected) in [
        ("535", "13.0", older("535", 13)),
        ("535.261.03", "13.5", older("535.261.03", 13)),
        ("575", "13.0", older("575", 13)),
        ("580", "13.0", vec![]),
        // Minor version compatibility: an older driver of the same major suffices.
        ("580", "13.5", vec![]),
        ("525", "12.9", vec![]),
        ("520", "12.0", older("520", 12)),
        ("450", "11.8", vec![]),
        ("440", "11.0", older("440", 11)),
        // Future drivers are always new enough.
        ("700", "13.0", vec![]),
        // The rule for all majors applies.
        ("580", "14.1", older("580", 14)),
        ("535", "14.1", older("535", 14)),
        // No document contains the CUDA version of these branches; it is between those of their neighbours.
        ("577", "13.0", open.clone()),
        ("577", "12.9", vec![]),
        ("300", "13.0", older("300", 13)),
        ("535", "", open),
    ] {
        assert_eq!(
            expected_codes(&format!("[driver]\nfleet = \"{fleet}\"\n"), toolkit, "", ""),
            expected,
            "{fleet} {toolkit}"
        );
    }
}

#[test]
fn drivers_are_checked_against_ptx() {
    let text = |gpus: &str, driver: &str| format!("[gpu]\nfleet = [{gpus}]\n[driver]\nfleet = \"{driver}\"\n");
    let cannot = |driver: &str, cuda: &str, gpus: &str| {
        vec![format!(
            "warning[CG135]: driver {driver}, the oldest of the fleet, cannot compile the PTX of CUDA {cuda} that this build has for \
             {gpus}."
        )]
    };
    for (gpus, driver, toolkit, archs, expected) in [
        ("\"H100\"", "535", "12.4", "80", cannot("535", "12.4", "H100 (9.0)")),
        ("\"H100\", \"L4\"", "535", "12.9", "80-virtual", cannot("535", "12.9", "H100 (9.0), L4 (8.9)")),
        ("\"H100\"", "535", "12.2", "80", vec![]),
        ("\"H100\"", "550", "12.4", "80", vec![]),
        // 12.6 writes the same PTX version as 12.5.
        ("\"H100\"", "555", "12.6", "80", vec![]),
        ("\"H100\"", "550", "12.6", "80", cannot("550", "12.6", "H100 (9.0)")),
        // Machine code needs no compiler.
        ("\"H100\"", "535", "12.4", "80;90", vec![]),
        // A machine with this GPU cannot have driver 535, which does not support it.
        ("\"B200\"", "535", "12.8", "80", vec![]),
        ("\"B200\"", "535", "12.9", "80", cannot("535", "12.9", "B200 (10.0)")),
        ("\"B200\", \"H100\"", "535", "12.4", "80", cannot("535", "12.4", "H100 (9.0)")),
        ("\"A100\", \"8.6\"", "535", "12.4", "80", vec![]),
    ] {
        assert_eq!(
            expected_codes(&text(gpus, driver), toolkit, archs, ""),
            expected,
            "{gpus} {driver} {toolkit} {archs}"
        );
    }
    // CUDA 13 gives both findings, because machine code helps a program without cudart.
    assert_eq!(expected_codes(&text("\"H100\"", "535"), "13.0", "80", "").len(), 2);
}

#[test]
fn unsupported_machine_code_is_reported() {
    let text = |toolkit| machine_code(&[("B200", (10, 0))], Some(toolkit));
    assert_eq!(text(Version::new(12, 4, 0)), "add machine code for sm_100, with a toolkit that supports it");
    assert_eq!(text(Version::new(13, 0, 0)), "add machine code for sm_100");
}

#[test]
fn cudnn_is_checked_against_oldest_driver() {
    let refused = |fleet: &str| {
        vec![format!("error[CG136]: this build will not start with cuDNN {fleet}, the oldest of the fleet.")]
    };
    for (fleet, more, built, expected) in [
        ("9.1", "", "9.15.1 for 13", refused("9.1")),
        ("9.15", "", "9.15.1 for 13", vec![]),
        ("9.15.0", "", "9.15.1 for 13", vec![]),
        ("9.15.0", "patch = \"refuse\"\n", "9.15.1 for 13", refused("9.15.0")),
        ("9.15", "patch = \"refuse\"\n", "9.15.1 for 13", vec![]),
        ("9.28", "", "9.15.1 for 13", vec![]),
        ("8.9.7", "", "9.15.1 for 12", refused("8.9.7")),
        ("9.1", "", "8.9.7 for 12", refused("9.1")),
        ("9.1", "linkage = \"static\"\n", "9.15.1 for 13", vec![]),
    ] {
        let text = format!("[cudnn]\nfleet = \"{fleet}\"\n{more}");
        assert_eq!(expected_codes(&text, "", "", built), expected, "{fleet} {built}");
    }
    let open = expected_codes("[cudnn]\nfleet = \"9.1\"\n", "12.4", "", "");
    assert_eq!(open, ["warning[CG139]: it is unknown whether this build supports the whole fleet."]);
    assert_eq!(expected_codes("[cudnn]\nlinkage = \"none\"\nfleet = \"9.1\"\n", "12.4", "", ""), [""; 0]);
}

#[test]
fn cudnn_is_checked_against_gpus() {
    let judged = |gpu: &str, built: &str| {
        let policy = policy(&format!("[gpu]\nfleet = [\"{gpu}\"]\n"));
        super::check_cudnn(&policy, &toolchain(&policy, "", "", built)).into_iter().next()
    };
    let (left, before) = (Some(Code::CudnnLeftGpu), Some(Code::CudnnBeforeGpu));
    for (gpu, built, expected) in [
        ("P100", "9.15.1 for 12", left),
        ("V100", "9.11.0 for 12", left),
        ("P100", "9.10.2 for 12", None),
        ("T4", "9.15.1 for 13", None),
        ("K80", "8.8.0 for 11", left),
        // Newer than the release: served from 9 for CUDA 12 on, and unknown to builds for older ones.
        ("B200", "9.1.0 for 12", None),
        ("B200", "9.1.0 for 11", before),
        ("H100", "8.5.0 for 11", before),
        ("A100", "8.5.0 for 11", None),
        // Its sm_86 serves a later GPU of that major.
        ("L40S", "8.5.0 for 11", None),
        // The tables do not contain Tegra GPUs.
        ("7.2", "9.15.1 for 12", None),
        // The tables do not contain these releases.
        ("P100", "9.40.0 for 12", left),
        ("P100", "10.0.0 for 14", None),
    ] {
        assert_eq!(judged(gpu, built).map(|finding| finding.code), expected, "{gpu} {built}");
    }
    let finding = judged("P100", "9.15.1 for 12").unwrap();
    assert!(finding.message.starts_with("cuDNN 9.15.1 no longer supports P100 (6.0).\n"), "{}", finding.message);
    assert!(
        finding.hint.starts_with("build with cuDNN 9.10.2 or older, the last that supports it"),
        "{}",
        finding.hint
    );
    let finding = judged("P100", "9.15.1 for 13").unwrap();
    assert!(finding.hint.starts_with("build for an older CUDA: no cuDNN for CUDA 13 supports it"), "{}", finding.hint);
}
