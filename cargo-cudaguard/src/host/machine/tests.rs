mod host_file;

use crate::verdict::Verdict;
use cudaguard::internal::finding::{Code, Severity};
use cudaguard::internal::manifest::{Linkage, Manifest, Requirement};

use super::*;

fn read(text: &str) -> Machine {
    Machine::read(text).unwrap_or_else(|mistake| panic!("{mistake}: {text}")).0
}

#[test]
fn driver_support_follows_release() {
    let cuda = |text: &str| read(text).agreed_driver().expect("a driver").cuda.map(|cuda| cuda.to_string());
    assert_eq!(cuda(r#"{"driver": {"user": "535.261.03"}}"#).as_deref(), Some("12.2"));
    assert_eq!(cuda(r#"{"driver": {"user": "R580"}}"#).as_deref(), Some("13.0"));
    assert_eq!(cuda(r#"{"driver": {"user": "535.261.03", "cuda": "12.9"}}"#).as_deref(), Some("12.9"), "cuda-compat");
    assert_eq!(cuda(r#"{"driver": {"user": "537.1"}}"#), None, "a branch that no table knows");
    assert_eq!(cuda(r#"{"kind": "wsl2", "driver": {"user": "576.80"}}"#), None, "Windows counts in another way");
    assert_eq!(cuda(r#"{"driver": {"kernel": "535.261.03"}}"#), None, "the kernel module supports no CUDA version");
    assert_eq!(read(r#"{"driver": {}}"#).agreed_driver(), None);
    assert_eq!(read("{}").agreed_driver(), None);
    let absent = read(r#"{"driver": {"present": false, "kernel": "535.1"}}"#);
    assert!(absent.agreed_driver().is_some_and(|driver| driver.absent));
}

#[test]
fn visible_gpus_are_selected() {
    let seen = |text: &str| {
        let machine = read(text);
        let gpus = machine.visible_gpu_list()?;
        Some(gpus.iter().map(|gpu| (gpu.cc, gpu.visible)).collect::<Vec<_>>())
    };
    assert_eq!(seen("{}"), None);
    assert_eq!(seen(r#"{"gpus": []}"#), Some(vec![]));
    let (t4, a100) = ((Some((7, 5)), true), (Some((8, 0)), true));
    assert_eq!(seen(r#"{"gpus": [{"name": "Tesla T4"}, {"cc": "8.0"}]}"#), Some(vec![t4, a100]));
    assert_eq!(seen(r#"{"gpus": [{"name": "a card of next year"}]}"#), Some(vec![(None, true)]));
    // A variable selects GPUs, and the visibility of each is unknown.
    let chosen = r#""variables": {"CUDA_VISIBLE_DEVICES": "1"}"#;
    assert_eq!(seen(&format!(r#"{{"gpus": [{{"cc": "7.5"}}, {{"cc": "8.0"}}], {chosen}}}"#)), None);
    assert_eq!(
        seen(&format!(r#"{{"gpus": [{{"cc": "7.5"}}, {{"cc": "7.5"}}], {chosen}}}"#)),
        Some(vec![(t4.0, false), t4])
    );
    let hidden = r#"{"gpus": [{"cc": "7.5", "visible": false}, {"cc": "8.0"}]}"#;
    assert_eq!(seen(hidden), Some(vec![(Some((7, 5)), false), a100]));
}

#[test]
fn component_cudnn_is_resolved() {
    use cudaguard::internal::manifest::{BuiltWith, Component};
    use cudaguard::internal::policy::Policy;
    use cudaguard::internal::toolchain::Toolchain;
    let asking = |linkage| {
        let component = Component { name: "demo".to_owned(), version: "0.1.0".to_owned() };
        let mut manifest = Manifest::from_build(component, "t", "release", &Policy::default(), &Toolchain::default());
        manifest.library = Some(BuiltWith { version: Version::new(9, 15, 1), linkage });
        manifest.requires = vec![
            Requirement::Library {
                min: Version::new(9, 15, 0),
                below: Version::new(10, 0, 0),
                built: Version::new(9, 15, 1),
                soname: "libcudnn.so.9".to_owned(),
                linkage,
                patch_refuse: false,
                required: false,
            },
            Requirement::Part { file: "libcudnn_graph.so.9".to_owned(), symbol: String::new(), needed: true },
        ];
        manifest
    };
    let codes = |linkage, text: &str| {
        let manifest = asking(linkage);
        let findings = findings_on(&manifest, &read(text));
        findings.iter().map(|finding| format!("{} {}", finding.code, finding.severity)).collect::<Vec<_>>()
    };
    for (linkage, text, expected) in [
        (Linkage::Linked, "{}", &["CG501 info"][..]),
        (Linkage::Linked, r#"{"cudnn": []}"#, &["CG205 error"]),
        (Linkage::Dlopened, r#"{"cudnn": []}"#, &["CG205 info"]),
        (Linkage::Linked, r#"{"cudnn": [{"version": "9.28.0"}]}"#, &[]),
        (Linkage::Linked, r#"{"cudnn": [{"version": "9.1.0"}]}"#, &["CG202 error"]),
        (Linkage::Linked, r#"{"cudnn": [{"version": "8.9.7"}]}"#, &["CG201 error"]),
        (Linkage::Dlopened, r#"{"cudnn": [{"version": "8.9.7"}]}"#, &["CG205 info"]),
        // The name has precedence: an additional library of another major is harmless.
        (Linkage::Linked, r#"{"cudnn": [{"version": "8.9.7"}, {"version": "9.28.0"}]}"#, &[]),
        // A library that follows another one is not used.
        (
            Linkage::Linked,
            r#"{"cudnn": [{"version": "9.1.0"}, {"version": "9.28.0", "taken": false}]}"#,
            &["CG202 error"],
        ),
        (Linkage::Linked, r#"{"cudnn": [{"version": "9.28.0", "taken": false}]}"#, &["CG205 error"]),
        (Linkage::Linked, r#"{"cudnn": [{"soname": "libcudnn.so.9"}]}"#, &["CG501 info"]),
        (Linkage::Linked, r#"{"cudnn": [{"version": "9.28.0", "parts": []}]}"#, &["CG204 error"]),
        (Linkage::Linked, r#"{"cudnn": [{"version": "9.28.0", "parts": [{"file": "libcudnn_graph.so.9"}]}]}"#, &[]),
        (Linkage::Unknown, r#"{"cudnn": [{"version": "8.9.7"}]}"#, &["CG501 info"]),
    ] {
        assert_eq!(codes(linkage, text), expected, "{linkage:?}: {text}");
    }
}

#[test]
fn verdicts_are_combined() {
    let finding = |code: Code| Finding::from_record(code, code.severity(), Default::default());
    assert_eq!(Verdict::from_findings(&[]), Verdict::Runs);
    assert_eq!(Verdict::from_findings(&[finding(Code::NoCodeForGpu).with_severity(Severity::Info)]), Verdict::Runs);
    assert_eq!(Verdict::from_findings(&[finding(Code::DriverCannotTell)]), Verdict::Unknown);
    assert_eq!(Verdict::from_findings(&[finding(Code::DriverCannotTell), finding(Code::CudnnOlder)]), Verdict::Refused);
}

#[test]
fn branch_alone_is_not_a_mismatch() {
    let pair = |user: &str, kernel: &str| {
        let machine = read(&format!(r#"{{"driver": {{"user": "{user}", "kernel": "{kernel}"}}}}"#));
        machine.agreed_driver().is_some_and(|driver| driver.user == driver.kernel)
    };
    assert!(pair("580.65.06", "R580") && pair("580", "580.65.06") && pair("R580", "580"));
    assert!(!pair("580.65.06", "580.95.05") && !pair("580.65.06", "535"));
}

fn findings_on(manifest: &Manifest, machine: &Machine) -> Vec<Finding> {
    crate::host::machine::judge::judge(manifest, &machine.host("there"), machine.cudnn_of(manifest))
}

fn judged(manifest: &Manifest, host: &str) -> Vec<String> {
    let findings = findings_on(manifest, &read(host));
    findings.iter().map(|finding| format!("{} {}", finding.code, finding.severity)).collect()
}

fn with_kernels(
    by: cudaguard::internal::manifest::GpuCoverage,
    oldest: (u8, u8),
    cuda: Option<CudaVersion>,
) -> Manifest {
    use cudaguard::internal::manifest::{Component, GpuCoverage, PtxFallback, Requirement};
    let component = Component { name: "demo".to_owned(), version: "0.1.0".to_owned() };
    let mut manifest = Manifest::from_build(
        component,
        "t",
        "release",
        &cudaguard::internal::policy::Policy::default(),
        &cudaguard::internal::toolchain::Toolchain::default(),
    );
    let row = |from, to, by, cuda| Requirement::Gpu {
        from,
        to,
        by,
        code: String::new(),
        cuda,
        release: None,
        guaranteed_from: None,
        ptx_fallback: PtxFallback::Undetermined,
    };
    manifest.requires =
        vec![row((0, 0), Some((oldest.0 - 1, 255)), GpuCoverage::Nothing, None), row(oldest, None, by, cuda)];
    manifest
}

/// docs/internals/decisions, decisions 4 and 40.
#[test]
fn cuda_visible_devices_selects_gpus() {
    use cudaguard::internal::manifest::GpuCoverage;
    let auto = with_kernels(GpuCoverage::Cubin, (8, 0), None);
    let mut required = auto.clone();
    required.runtime.gpu = cudaguard::internal::policy::GpuNeed::Required;
    let alike = r#"{"cc": "9.0", "uuid": "GPU-aa"}, {"cc": "9.0", "uuid": "GPU-ab"}"#;
    let unlike = r#"{"cc": "7.5", "uuid": "GPU-aa"}, {"cc": "9.0", "uuid": "GPU-bb"}"#;
    for (gpus, list, more, of_auto, of_required) in [
        (alike, "", "", &["CG504 info"][..], &["CG310 error"][..]),
        (alike, "-1", "", &["CG504 info"], &["CG310 error"]),
        (alike, "7", "", &["CG504 info"], &["CG310 error"]),
        (alike, "none", "", &["CG504 info"], &["CG310 error"]),
        (alike, "0", "", &[], &[]),
        (alike, "1,7", "", &[], &[]),
        (alike, "0,0", "", &["CG505 info"], &["CG505 info"]),
        (alike, "MIG-1", "", &["CG505 info"], &["CG505 info"]),
        // The order of different GPUs is unknown, unless a variable specifies it.
        (unlike, "0", "", &["CG505 info"], &["CG505 info"]),
        (unlike, "1,0", "", &["CG303 info"], &["CG303 info"]),
        (unlike, "0", r#", "CUDA_DEVICE_ORDER": "PCI_BUS_ID""#, &["CG303 error"], &["CG303 error"]),
        (unlike, "1", r#", "CUDA_DEVICE_ORDER": "PCI_BUS_ID""#, &[], &[]),
        (unlike, "GPU-b", "", &[], &[]),
        (unlike, "GPU-a", "", &["CG303 error"], &["CG303 error"]),
        (alike, "GPU-a", "", &["CG505 info"], &["CG505 info"]),
        (unlike, "GPU-c", "", &["CG504 info"], &["CG310 error"]),
    ] {
        let host = format!(
            r#"{{"driver": {{"user": "580.65.06", "kernel": "580.65.06"}}, "gpus": [{gpus}], "variables": {{"CUDA_VISIBLE_DEVICES": "{list}"{more}}}}}"#
        );
        assert_eq!(
            (judged(&auto, &host), judged(&required, &host)),
            (of_auto.iter().map(ToString::to_string).collect(), of_required.iter().map(ToString::to_string).collect()),
            "{host}"
        );
        // A fleet check reads the same facts.
        let (whole, _) = Machine::read(&host).unwrap();
        let line = Machine::read_for_judging(&host).unwrap().1;
        assert_eq!(line.visible_gpu_list(), whole.visible_gpu_list(), "{host}");
    }
    // If two GPUs have the same result, it does not matter which of them is selected.
    let components = super::Components { manifests: vec![auto], ..super::Components::default() };
    for (gpus, list, expected) in [
        (r#"{"cc": "8.0"}, {"cc": "9.0"}"#, "0", "runs"),
        (r#"{"cc": "8.0"}, {"cc": "9.0"}"#, "1,7", "runs"),
        (r#"{"cc": "7.0"}, {"cc": "7.5"}"#, "1", "refused"),
        (unlike, "0", "unknown"),
        (r#"{"cc": "8.0"}, {"cc": "9.0"}"#, "0,0", "unknown"),
        (r#"{"cc": "8.0"}, {"cc": "9.0"}"#, "0,MIG-1", "unknown"),
    ] {
        let host = format!(
            r#"{{"driver": {{"user": "580.65.06", "kernel": "580.65.06"}}, "gpus": [{gpus}], "variables": {{"CUDA_VISIBLE_DEVICES": "{list}"}}}}"#
        );
        let (machine, _) = Machine::read(&host).unwrap();
        let findings = components.check_on(&machine, "there");
        assert_eq!(crate::verdict::Verdict::from_findings(&findings).name(), expected, "{gpus} {list}: {findings:?}");
    }
    let auto = &components.manifests[0];
    // Error 804 is not predicted for a hidden GPU.
    let compat = |list: &str| {
        format!(
            r#"{{"driver": {{"user": "580.65.06", "kernel": "535.261.03", "compat": {{"branches": [535]}}}}, "variables": {{"CUDA_VISIBLE_DEVICES": "{list}", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}},
                "gpus": [{{"cc": "9.0", "name": "NVIDIA H200"}}, {{"cc": "8.9", "name": "NVIDIA GeForce RTX 4090"}}]}}"#
        )
    };
    assert_eq!(judged(auto, &compat("0")), [""; 0]);
    assert_eq!(judged(auto, &compat("0,1")), ["CG305 error"]);
    let unknown =
        r#"{"driver": {"user": "580.65.06", "kernel": "580.65.06"}, "variables": {"CUDA_VISIBLE_DEVICES": ""}}"#;
    assert_eq!(judged(&required, unknown), ["CG310 error"]);
}

/// First releases of the open kernel modules whose README lists a GPU (515.43.04 to 595.45.04), and for a new
/// generation the last release before: no driver is reported as unsuitable for a GPU that it supports.
#[test]
fn drivers_support_their_listed_gpus() {
    let manifest = with_kernels(cudaguard::internal::manifest::GpuCoverage::Ptx, (3, 0), None);
    let verdict = |release: &str, name: &str| {
        let text =
            format!(r#"{{"driver": {{"user": "{release}", "kernel": "{release}"}}, "gpus": [{{"name": "{name}"}}]}}"#);
        let (machine, _) = Machine::read(&text).expect("a host file");
        assert!(machine.known_gpus()[0].cc.is_some(), "{name}");
        Verdict::from_findings(&findings_on(&manifest, &machine))
    };
    for (name, first, before) in [
        ("A100", "515.48.07", None),
        ("A30", "515.48.07", None),
        ("H100", "520.56.06", Some("515.76")),
        ("RTX 4090", "525.78.01", None),
        ("L40", "525.78.01", None),
        ("H800", "530.41.03", None),
        ("GH200", "545.29.03", None),
        ("B200", "570.86.15", Some("565.77")),
        ("RTX 5090", "570.86.16", Some("565.77")),
        ("GB200", "570.124.04", Some("565.77")),
        ("B300", "580.82.07", Some("565.77")),
        ("GB300", "580.82.07", Some("565.77")),
        ("GB10", "590.48.01", Some("565.77")),
    ] {
        assert_eq!(verdict(first, name), Verdict::Runs, "{name} on {first}");
        if let Some(before) = before {
            assert_eq!(verdict(before, name), Verdict::Refused, "{name} on {before}");
        }
    }
}

/// docs/internals/decisions, decision 39.
#[test]
fn undriven_gpus_are_excluded() {
    let manifest = with_kernels(cudaguard::internal::manifest::GpuCoverage::Cubin, (3, 0), None);
    let host = |driver: &str, gpus: &str| {
        format!(r#"{{"driver": {{"user": "{driver}", "kernel": "{driver}"}}, "gpus": [{gpus}]}}"#)
    };
    for (driver, gpus, expected) in [
        ("590.44.01", r#"{"name": "GTX 1080"}"#, &["CG317 error"][..]),
        ("590.44.01", r#"{"cc": "7.0"}"#, &["CG317 error"]),
        ("580.65.06", r#"{"cc": "7.0"}"#, &[]),
        ("590.44.01", r#"{"cc": "7.5"}"#, &[]),
        ("590.44.01", r#"{"cc": "7.0"}, {"cc": "9.0"}"#, &[]),
        ("535.261.03", r#"{"cc": "3.5"}"#, &["CG317 error"]),
        ("470.256.02", r#"{"cc": "3.5"}"#, &[]),
        ("565.57.01", r#"{"name": "RTX 5090"}"#, &["CG317 error"]),
        ("570.86.15", r#"{"name": "RTX 5090"}"#, &[]),
        // An update of 570 may support it, as an update of 450 supported an A10.
        ("570.124.06", r#"{"cc": "10.3"}"#, &["CG505 info"]),
        ("450.119.03", r#"{"name": "A10"}"#, &["CG505 info"]),
        ("450.119.03", r#"{"name": "A10"}, {"name": "A100"}"#, &[]),
        ("470.256.02", r#"{"name": "RTX 4090"}"#, &["CG505 info"]),
        ("525.60.13", r#"{"name": "RTX 4090"}"#, &[]),
        ("580.65.06", r#"{"cc": "10.7"}"#, &["CG505 info"]),
        // Only a driver that supports the GPU reports its UUID.
        ("450.119.03", r#"{"name": "A10", "uuid": "GPU-5c6e1fb4"}"#, &[]),
        // The drivers of a Tegra are numbered differently.
        ("560.35.03", r#"{"cc": "10.1"}"#, &[]),
        ("418.226.00", r#"{"cc": "8.0"}"#, &["CG317 error"]),
        ("418.226.00", r#"{"cc": "8.0"}, {"cc": "3.5"}"#, &[]),
        ("590.44.01", r#"{"cc": "7.0"}, {"cc": "3.5"}"#, &["CG317 error", "CG317 error"]),
        // The CUDA version of its branch is between 6.5 and 9.1.
        ("361.93.02", r#"{"cc": "6.0"}"#, &[]),
        // The drivers of a Tegra are numbered differently.
        ("590.44.01", r#"{"cc": "7.2"}"#, &[]),
    ] {
        assert_eq!(judged(&manifest, &host(driver, gpus)), expected, "{driver} {gpus}");
    }
    // If only libcuda's CUDA version is known, or if the table has another one for its release.
    for (facts, expected) in [
        (r#""driver": {"cuda": "12.4"}, "gpus": [{"cc": "12.0"}]"#, &["CG317 error"][..]),
        (r#""kind": "wsl2", "driver": {"user": "566.36", "cuda": "12.7"}, "gpus": [{"cc": "12.0"}]"#, &["CG317 error"]),
        (r#""kind": "wsl2", "driver": {"user": "566.36", "cuda": "12.8"}, "gpus": [{"cc": "12.0"}]"#, &[]),
        (r#""kind": "wsl2", "driver": {"user": "566.36"}, "gpus": [{"cc": "12.0"}]"#, &[]),
        (r#""kind": "jetson", "driver": {"user": "540.4.0", "cuda": "12.6"}, "gpus": [{"cc": "11.0"}]"#, &[]),
        (r#""driver": {"user": "565.57.01", "kernel": "565.57.01", "cuda": "12.8"}, "gpus": [{"cc": "12.0"}]"#, &[]),
        // The kernel module supports the GPU, and cuda-compat must support it too.
        (r#""driver": {"kernel": "550.54.14", "cuda": "13.0"}, "gpus": [{"cc": "12.0"}]"#, &["CG317 error"]),
        (r#""driver": {"user": "580.65.06", "cuda": "12.4"}, "gpus": [{"cc": "9.0"}]"#, &[]),
    ] {
        let found: Vec<String> =
            judged(&manifest, &format!("{{{facts}}}")).into_iter().filter(|code| !code.starts_with("CG506")).collect();
        assert_eq!(found, expected, "{facts}");
    }
    // That a driver lists a GPU is no proof that it supports the GPU.
    let host_text = r#"{"driver": {"user": "590.44.01", "kernel": "590.44.01", "init": 0}, "gpus": [{"cc": "7.0", "visible": true}]}"#;
    assert_eq!(judged(&manifest, host_text), ["CG317 error"]);
    // A GPU that the driver does not support predicts no error 804.
    let ptx_fallback = r#"{"driver": {"user": "580.65.06", "kernel": "535.261.03", "compat": {"branches": [535]}},
        "gpus": [{"cc": "9.0", "name": "NVIDIA H200"}, {"cc": "3.5", "name": "NVIDIA GeForce GT 710"}]}"#;
    assert_eq!(judged(&manifest, ptx_fallback), [""; 0]);
}

#[test]
fn libcuda_finds_its_jit_compiler() {
    let manifest = with_kernels(cudaguard::internal::manifest::GpuCoverage::Ptx, (3, 0), Some(CudaVersion::new(12, 0)));
    let host = |kind: &str, user: &str| {
        format!(
            r#"{{{kind}"driver": {{{user}"cuda": "12.4", "init": 0, "ptx_compiler": false}}, "gpus": [{{"cc": "8.0"}}]}}"#
        )
    };
    let release = r#""user": "551.61", "#;
    for kind in [r#""kind": "wsl2", "#, r#""kind": "jetson", "#] {
        assert_eq!(judged(&manifest, &host(kind, "")), [""; 0], "{kind}");
        assert_eq!(judged(&manifest, &host(kind, release)), [""; 0], "{kind}");
    }
    for stated in [r#""user": "550.54.14", "kernel": "550.54.14", "#, ""] {
        assert_eq!(judged(&manifest, &host("", stated)), ["CG309 error"], "{stated}");
    }
}

/// docs/internals/decisions, decision 5: 540.4.0 is a Jetson's.
#[test]
fn unknown_branch_is_estimated() {
    let host = |driver: &str| {
        format!(r#"{{"driver": {{"user": "{driver}", "kernel": "{driver}"}}, "gpus": [{{"cc": "8.7"}}]}}"#)
    };
    for (driver, needs, expected) in [
        ("540.4.0", (12, 2), &[][..]),
        ("540.4.0", (12, 4), &["CG505 info"]),
        ("542.4.0", (12, 2), &[]),
        ("542.4.0", (12, 3), &["CG505 info"]),
        ("542.4.0", (12, 5), &["CG302 error"]),
        ("545.23.06", (12, 4), &["CG302 error"]),
        ("700.10.01", (13, 4), &[]),
        ("700.10.01", (15, 0), &["CG505 info"]),
    ] {
        let manifest = with_kernels(
            cudaguard::internal::manifest::GpuCoverage::Ptx,
            (3, 0),
            Some(CudaVersion::new(needs.0, needs.1)),
        );
        let mut manifest = manifest;
        for row in &mut manifest.requires {
            if let cudaguard::internal::manifest::Requirement::Gpu { release, cuda: Some(cuda), .. } = row {
                *release = tables::toolkit_floor(Version::new(cuda.major, cuda.minor, 0)).release;
            }
        }
        assert_eq!(judged(&manifest, &host(driver)), expected, "{driver} {needs:?}");
    }
    assert_eq!(super::parse_release("540.4.0").unwrap().to_string(), "540.4.0");
    assert_eq!(super::parse_release("418.39").unwrap().to_string(), "418.39");
    assert_eq!(super::parse_release("595.45.04").unwrap().to_string(), "595.45.04");
}

/// docs/internals/decisions, decision 2: packages of cuda-compat up to 2025 had no note; they are identified by their
/// directory.
#[test]
fn compat_without_note_uses_directory() {
    let manifest = with_kernels(cudaguard::internal::manifest::GpuCoverage::Ptx, (3, 0), Some(CudaVersion::new(13, 0)));
    let host = |user: &str, kernel: &str, dir: &str, gpu: &str| {
        format!(
            r#"{{"driver": {{"user": "{user}", "kernel": "{kernel}", "library": "{dir}/libcuda.so.1"}}, "gpus": [{{"cc": "9.0", "name": "{gpu}"}}]}}"#
        )
    };
    let (compat, h100) = ("/usr/local/cuda-13.0/compat", "NVIDIA H100 80GB HBM3");
    for (user, kernel, dir, gpu, expected) in [
        ("580.65.06", "535.261.03", compat, h100, &[][..]),
        ("580.65.06", "570.172.08", compat, h100, &[]),
        ("580.65.06", "535.261.03", compat, "NVIDIA GeForce RTX 4090", &["CG305 error"]),
        // No document lists it, and a note might.
        ("580.65.06", "520.61.05", compat, h100, &["CG505 info"]),
        ("580.65.06", "535.261.03", "/opt/lib", h100, &["CG505 info"]),
        // An older one never works.
        ("580.65.06", "590.44.01", compat, h100, &["CG304 error"]),
    ] {
        assert_eq!(judged(&manifest, &host(user, kernel, dir, gpu)), expected, "{user} on {kernel} in {dir}");
    }
}

/// Windows has other release numbers, and the GPUs that a branch drives are those of Linux.
#[test]
fn windows_driver_is_judged_by_its_branch() {
    let windows = |release: &str, gpu: &str| {
        let text = format!(
            r#"{{"platform": "x86_64-windows", "driver": {{"user": "{release}"}}, "gpus": [{{"name": "{gpu}"}}]}}"#
        );
        Machine::read(&text).unwrap().0
    };
    let cuda = |machine: &Machine| machine.agreed_driver()?.cuda.map(|cuda| cuda.to_string());
    for (release, supports) in
        [("527.41", "12.0"), ("566.36", "12.7"), ("572.83", "12.8"), ("576.02", "12.9"), ("581.57", "13.0")]
    {
        assert_eq!(cuda(&windows(release, "RTX 4090")).as_deref(), Some(supports), "{release}");
    }
    let undriven = |release: &str, gpu: &str| windows(release, gpu).known_gpus()[0].support;
    assert_eq!(undriven("582.28", "GTX 1080"), DriverSupport::Supported);
    assert_eq!(undriven("591.59", "GTX 1080"), DriverSupport::NoLonger(580));
    let DriverSupport::NotYet(floor) = undriven("566.36", "RTX 5090") else { panic!("566 drives no RTX 5090") };
    assert_eq!(floor.release.unwrap().to_string(), "570.65");
}
