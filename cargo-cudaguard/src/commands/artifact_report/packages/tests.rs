use super::*;

fn package(version: &str, requires: &str) -> ArtifactPackage {
    let metadata = format!(
        "Metadata-Version: 2.1\nName: torch\nVersion: {version}\n{requires}\n\nRequires-Dist: nvidia-none==1\n"
    );
    let record = "torch/lib/a.so,sha256=1,2\n\"torch/lib/b.so\",,\n".to_owned();
    let text = |name: &str, text: String| (format!("site/torch-1.dist-info/{name}"), text);
    let mut all = all_of(&[text("RECORD", record), text("METADATA", metadata)]);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn conda(build: &str, depends: &[&str], exports: &str) -> ArtifactPackage {
    let list = depends.iter().map(|one| format!("\"{one}\"")).collect::<Vec<_>>().join(",");
    let index = format!(r#"{{"name": "faiss", "version": "1.9.0", "build": "{build}", "depends": [{list}]}}"#);
    let texts = [("info/index.json".to_owned(), index), ("info/run_exports.json".to_owned(), exports.to_owned())];
    all_of(&texts).remove(0)
}

fn range_of(one: &Promise<'_>) -> String {
    let side = |version: Option<Version>| version.map_or("-".to_owned(), |version| version.to_string());
    format!("{} {}", side(one.least), side(one.below))
}

#[test]
fn promised_requirements_are_parsed() {
    for (line, expected) in [
        ("nvidia-cudnn-cu12==9.1.0.70; platform_system == \"Linux\"", "9.1.0 9.1.1"),
        ("nvidia-cudnn-cu12 (==8.9.2.26)", "8.9.2 8.9.3"),
        ("nvidia-nccl-cu12==2.27.5", "2.27.5 2.27.6"),
        ("nvidia-cuda-runtime-cu12==12.8.90", "12.8.90 12.8.91"),
        ("nvidia-cudnn==9.15.1.9", "9.15.1 9.15.2"),
        ("nvidia_cudnn_cu12 == 9.1.0.70", "9.1.0 9.1.1"),
        ("nvidia-cuda-nvrtc[all]==13.0.48", "13.0.48 13.0.49"),
        ("nvidia-cudnn-cu12==9.1.*", "9.1.0 9.2.0"),
        ("nvidia-cudnn-cu12~=9.1", "9.1.0 10.0.0"),
        ("nvidia-cudnn-cu12<10.0,>=9.1", "9.1.0 10.0.0"),
        ("nvidia-cudnn-cu12>=9", "9.0.0 -"),
        ("nvidia-cudnn-cu12!=9.2", "- -"),
        ("nvidia-cudnn-cu12", "- -"),
        ("nvidia-ml-py==12.0", ""),
        ("nvidia-cudnn-cu12==", "- -"),
        ("nvidia-cudnn-cu12==4294967295.*", "4294967295.0.0 4294967295.0.0"),
    ] {
        let package = package("2.9.1", &format!("Requires-Dist: {line}"));
        let found = package.promises().map(|one| range_of(&one)).next().unwrap_or_default();
        assert_eq!(found, expected, "{line}");
        assert_eq!(package.requires.len(), 1);
    }
    for (spec, expected) in [
        ("cudnn >=9.1.0.70,<10.0a0", "9.1.0 10.0.0"),
        ("cudnn 8.9.*", "8.9.0 8.10.0"),
        ("cuda-version 12.4", "12.4.0 12.5.0"),
        ("cuda-version >=12,<13", "12.0.0 13.0.0"),
        ("cudatoolkit 11.8.* *_0", "11.8.0 11.9.0"),
        ("libcublas >=12.4.5.8,<13.0a0", "12.4.5 13.0.0"),
        ("nccl >=2.21.5.1,<3.0a0", "2.21.5 3.0.0"),
        ("cuda-cudart", "- -"),
        ("cudnn 8.9.*|9.1.*", "8.9.0 9.2.0"),
        ("cudatoolkit 11.0|11.0.*", "11.0.0 11.1.0"),
        ("cudnn >=8.9,<9|9.1.*|>=9.5", "8.9.0 -"),
        ("cuda-cudart_linux-64 12.6.77 h3f2d84a_0", "12.6.77 12.6.78"),
        ("pytorch-cuda 12.1.*", "12.1.0 12.2.0"),
        ("libcufile >=1.11.1.6,<2.0a0", "- -"),
        ("libcufft >=10.9.0.58,<11.0.0.21", "10.9.0 11.0.1"),
        ("cuda-nvtx >=12.1,<12.2", "- -"),
        ("libgcc >=13", ""),
    ] {
        let package = conda("h1_0", &[spec], "{}");
        let found = package.promises().map(|one| range_of(&one)).next().unwrap_or_default();
        assert_eq!(found, expected, "{spec}");
    }
}

#[test]
fn toolkit_extras_are_parsed() {
    let line = "cuda-toolkit[cublas,cudart,cufft,cufile, nvtx,nvcc]==13.2.2; platform_system == \"Linux\"";
    let package = package("2.15.0", &format!("Requires-Dist: {line}"));
    assert_eq!(package.requires, [line]);
    let relevant: Vec<(&str, String)> = package.promises().map(|one| (one.stems[0], range_of(&one))).collect();
    let open = || "- -".to_owned();
    let cudart = ("cudart", "13.2.2 13.2.3".to_owned());
    assert_eq!(relevant, [("cublas", open()), cudart, ("cufft", open()), ("cufile", open()), ("nvToolsExt", open())]);
    for (soname, brought) in
        [("libcudart.so.13", true), ("libcudart.so.12", false), ("libcufft.so.12", true), ("libcusparse.so.12", false)]
    {
        assert_eq!(package.requirement_for(soname, None).is_some(), brought, "{soname}");
    }
    let members = [("a.so", wants(&[("libcudart.so.12", ""), ("libcufft.so.11", "")]))];
    let found: Vec<_> = package.check_wants(&members).into_iter().map(|one| one.message).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("==13.2.2") && found[0].contains("libcudart.so.12"), "{found:?}");
    assert!(!is_nvidia_package("cuda-bindings<14,>=13.0.3") && is_nvidia_package("CUDA_Toolkit[nvrtc]==12.*"));
}

#[test]
fn package_ownership_is_detected() {
    let package = package("1.0", "");
    assert!(package.owns_member("site/torch/lib/a.so") && package.owns_member("site/torch/lib/b.so"));
    assert!(!package.owns_member("site/other/a.so"), "a file of another package in the parent directory");
    assert!(conda("h1_0", &[], "{}").owns_member("lib/libfaiss.so"), "one that lists nothing is all there is");
}

fn wants(wants: &[(&str, &str)]) -> NeededVersions {
    let want = |(soname, oldest): &(&str, &str)| {
        let oldest = (!oldest.is_empty()).then(|| (oldest.parse().expect("a version"), "f".to_owned()));
        ((*soname).to_owned(), oldest)
    };
    wants.iter().map(want).collect()
}

#[test]
fn member_needs_match_promised_requirements() {
    let nine = "nvidia-cudnn-cu12==9.1.0.70";
    for (version, requires, members, expected) in [
        ("1.0", &[nine][..], &[&[("libcudnn.so.9", "9.1.0")][..]][..], 0),
        ("1.0", &[nine], &[&[("libcudnn.so.9", "9.2.0")]], 1),
        ("1.0", &[nine], &[&[("libcudnn.so.9", "")]], 0),
        ("1.0", &[nine], &[&[("libcudnn.so.8", "")]], 1),
        ("1.0", &["nvidia-cudnn-cu12>=8.9,<10"], &[&[("libcudnn.so.9", "")]], 1),
        ("1.0", &["nvidia-cudnn-cu12>=9.1,<10"], &[&[("libcudnn.so.9", "")]], 0),
        ("1.0", &["nvidia-cudnn-cu12>=9.1,<10"], &[&[("libcudnn.so.9", "9.3.0")]], 1),
        ("1.0", &["nvidia-cudnn-cu12"], &[&[("libcudnn.so.9", "9.3.0")]], 0),
        ("1.0", &["nvidia-cublas-cu12>=11"], &[&[("libcublas.so.11", "")], &[("libcublas.so.12", "")]], 0),
        // Each requirement belongs to a different extra.
        ("1.0", &["nvidia-cudnn-cu11==8.9.6.50; extra == \"old\"", nine], &[&[("libcudnn.so.9", "9.0.0")]], 0),
        // The package has one file for each of two major versions, one of which is pinned.
        ("1.0", &["nvidia-cublas-cu12==12.4.5.8"], &[&[("libcublas.so.11", "")], &[("libcublas.so.12", "")]], 0),
        ("1.0+cu128", &[], &[&[("libcudart.so.11.0", "")], &[("libcudart.so.12", "")]], 0),
        ("1.0+cu128", &[], &[&[("libcudart.so.13", "")], &[("libcudart.so.13", "")]], 1),
        ("1.0+cu128", &[], &[&[("libcudnn.so.9", "")]], 0),
        ("1.0", &["nvidia-nccl-cu12==2.27.5"], &[&[("libcudnn.so.8", "")]], 0),
    ] {
        let requires = requires.iter().fold(String::new(), |lines, one| lines + "Requires-Dist: " + one + "\n");
        let package = package(version, requires.trim_end());
        let members: Vec<(&str, NeededVersions)> = members.iter().map(|member| ("a.so", wants(member))).collect();
        let found = package.check_wants(&members);
        assert_eq!(found.len(), expected, "{version} {requires} {members:?}: {found:?}");
    }
}

#[test]
fn conda_requirements_are_parsed() {
    let twelve = wants(&[("libcudart.so.12", ""), ("libcudnn.so.9", "9.2.0")]);
    for (build, depends, expected) in [
        ("h1_0", &["cuda-version >=12,<13", "cudnn >=9.2.1.18,<10.0a0"][..], 0),
        ("h1_0", &["cuda-version >=12.0,<13", "cuda-cudart >=12.4.99,<13.0a0"], 0),
        ("h1_0", &["cuda-version >=11.8,<12"], 1),
        ("h1_0", &["cudnn >=9.1,<10"], 1),
        ("h1_0", &["cudnn >=8.9.7.29,<9.0a0"], 1),
        ("cuda124py312h1_0", &[], 0),
        ("py3.11_cuda11.8_cudnn9.1.0_0", &[], 1),
        ("cuda118py312h1_0", &[], 1),
        ("cuda12_py312h1_0", &[], 0),
    ] {
        let found = conda(build, depends, "{}").check_wants(&[("lib/a.so", twelve.clone())]);
        assert_eq!(found.len(), expected, "{build} {depends:?}: {found:?}");
    }
    let brings =
        |exports: &str| conda("h1_0", &[], exports).check_exports([("lib/libcudnn.so.9", "libcudnn.so.9")].into_iter());
    assert_eq!(brings(r#"{"weak": ["cudnn >=9.1,<10.0a0"]}"#).len(), 0);
    assert_eq!(brings(r#"{"weak": ["cudnn >=8.9,<9.0a0"]}"#).len(), 1);
    assert_eq!(brings(r#"["cudnn >=8.9,<9.0a0"]"#).len(), 1);
    assert_eq!(brings("no JSON").len(), 0);
}

#[test]
fn image_requirements_are_parsed() {
    let image = |variables: &[&str]| {
        let list = variables.iter().map(|one| format!("\"{one}\"")).collect::<Vec<_>>().join(",");
        ArtifactPackage::from_image(&format!(r#"{{"config": {{"Env": ["PATH=/bin",{list}]}}}}"#))
    };
    assert!(ArtifactPackage::from_image(r#"{"config": {}}"#).is_none());
    let member = [("usr/lib/a.so", wants(&[("libcudart.so.12", ""), ("libcudnn.so.9", "9.2.0")]))];
    for (variables, unfit, started) in [
        (&["CUDA_VERSION=12.4.1", "NV_CUDNN_VERSION=9.2.0.82-1"][..], 0, 0),
        (&["CUDA_VERSION=11.8.0"], 1, 0),
        (&["NV_CUDNN_VERSION=9.1.0.70-1"], 1, 0),
        (&["NVIDIA_REQUIRE_CUDA=cuda>=12.4 brand=tesla,driver>=470,driver<471"], 0, 0),
        (&["NVIDIA_REQUIRE_CUDA=cuda>=11.8 brand=tesla,driver>=450,driver<451"], 0, 1),
        (&["NVIDIA_REQUIRE_CUDA=brand=tesla"], 0, 0),
    ] {
        let package = image(variables).expect("says something");
        assert_eq!(package.check_wants(&member).len(), unfit, "{variables:?}");
        let needs = [("usr/lib/a.so", CudaVersion::new(12, 0))].into_iter();
        assert_eq!(package.check_driver_promise(needs).into_iter().count(), started, "{variables:?}");
    }
}

#[test]
fn version_names_are_parsed() {
    for (version, expected) in [
        ("2.9.1+cu128", Some(("cu128", (12, 8)))),
        ("1.7+cu92", Some(("cu92", (9, 2)))),
        ("1.0+cu118.abi1", Some(("cu118", (11, 8)))),
        ("1.0+abi1.cu130", Some(("cu130", (13, 0)))),
        ("2.9.1", None),
        ("2.9.1+cpu", None),
        ("2.9.1+cu", None),
        ("2.9.1+cu1", None),
        ("2.9.1+custom", None),
    ] {
        let expected = expected
            .map(|(tag, (major, minor))| (format!("the version contains {tag}"), CudaVersion::new(major, minor)));
        assert_eq!(package(version, "").tag, expected, "{version}");
    }
}

/// Returns a wheel's METADATA and RECORD in a directory. The RECORD contains a library with this hash.
fn installed(name: &str, version: &str, requires: &str, hash: &str) -> [(String, String); 2] {
    let text = |file: &str, text: String| (format!("site/{name}-{version}.dist-info/{file}"), text);
    let requires = if requires.is_empty() { String::new() } else { format!("Requires-Dist: {requires}\n") };
    let record =
        format!("ort/capi/state.so,sha256={hash},10\n\"ort/a,b.so\",sha256={hash},10\nort/x.py,sha256={hash},1\n");
    [text("METADATA", format!("Name: {name}\nVersion: {version}\n{requires}\n")), text("RECORD", record)]
}

#[test]
fn overwritten_files_are_reported() {
    // The SHA-256 of "a" and of "b".
    let (a, b) = ("ypeBEsobvcr6wjGzmiPcTaeG7_gUfE5yuYB3ha_uSLs", "PiPoFgA5WUoziU9lZOGxNIu9egCI1CxKy3PurtWcAJ0");
    let hex = "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d";
    let find = |second: &str, uses_cuda: bool, found: Option<&str>| {
        let texts = [installed("ort", "1.17.0", "", a), installed("ort-gpu", "1.18.0", "", second)].concat();
        let digest = |name: &str| Some(found.filter(|_| name.starts_with("site/ort/"))?.to_owned());
        overwritten_files(&all_of(&texts), |package| uses_cuda && package.name == "ort-gpu", digest)
    };
    assert_eq!(find(a, true, Some(hex)), [], "both packages contain the same file");
    assert_eq!(find(b, false, Some(hex)), [], "no package uses CUDA");
    for (found, expected) in [(Some(hex), "the file of ort-gpu 1.18.0"), (Some("00"), "a file of neither"), (None, "")]
    {
        let findings = find(b, true, found);
        assert_eq!(findings.len(), 1, "{findings:?}");
        let text = findings[0].render();
        for part in ["ort 1.17.0 and ort-gpu 1.18.0 both contain", "ort/a,b.so", "ort/capi/state.so", expected] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        assert_eq!(text.contains("in place"), found.is_some(), "{text}");
    }
}

/// PyTorch and JAX stop at their first use of a cuDNN with an older minor.
#[test]
fn older_cudnn_than_required_is_unknown() {
    for (requires, version, is_reported, is_unknown) in [
        ("nvidia-cudnn-cu12==9.1.0.70", "9.1.0.70", false, false),
        ("nvidia-cudnn-cu12==9.1.0.70", "9.0.0.312", true, true),
        ("nvidia-cudnn-cu12<10.0,>=9.1; extra == \"with-cuda\"", "9.0.0.312", true, true),
        ("nvidia-cudnn-cu12<10.0,>=9.1; extra == \"with-cuda\"", "9.28.0.1", false, false),
        ("nvidia-cudnn-cu12==9.1.1.17", "9.1.0.70", true, false),
        ("nvidia-cudnn-cu12==9.1.0.70", "9.5.0.50", true, false),
        ("nvidia-cublas-cu12>=12.4.5.8", "12.1.3.1", true, false),
    ] {
        let library = installed(&name_of(requires).replace('-', "_"), version, "", "");
        let packages = all_of(&[installed("app", "1.0", requires, ""), library].concat());
        let all = unfulfilled_requirements(&packages, packages.iter());
        let reported = all.iter().map(|one| (true, one.unknown.is_some())).next().unwrap_or_default();
        assert_eq!(reported, (is_reported, is_unknown), "{requires} with {version}");
    }
}

/// Returns the findings about packages that are installed on Linux with Python 3.12.
fn unfulfilled_on_linux(texts: &[(String, String)]) -> Vec<Finding> {
    let mut packages = all_of(texts);
    let dir = Path::new("lib/python3.12/site-packages");
    for package in &mut packages {
        package.set_platform(Some(TargetOs::Linux), "x86_64", dir);
    }
    unfulfilled_requirements(&packages, packages.iter()).into_iter().map(|one| one.finding).collect()
}

#[test]
fn unfulfilled_requirements_are_reported() {
    for (requires, version, expected) in [
        ("nvidia-nvjitlink-cu12==12.4.127", "12.4.127", false),
        ("nvidia-nvjitlink-cu12==12.4.127; platform_system == \"Linux\"", "12.1.105", true),
        ("nvidia-nvjitlink-cu12>=12.1", "12.4.127", false),
        ("nvidia-nvjitlink-cu12", "12.1.105", false),
        ("nvidia-nvjitlink-cu12==12.4.127; extra == \"all\"", "12.4.127", false),
        ("nvidia-nvjitlink-cu12==12.4.127; extra == \"all\"", "12.1.105", true),
        ("nvidia-nvjitlink-cu12==12.4.127; extra == \"all\"", "12.9.86", false),
        ("nvidia-nvjitlink-cu12==12.4.127;extra=='all'", "12.9.86", false),
        ("nvidia-cublas-cu12==12.4.5", "12.1.105", false),
    ] {
        let texts =
            [installed("torch", "2.5.0", requires, ""), installed("nvidia_nvjitlink_cu12", version, "", "")].concat();
        let findings = unfulfilled_on_linux(&texts);
        assert_eq!(!findings.is_empty(), expected, "{requires}: {findings:?}");
        let named = |text: &str| findings.iter().all(|finding| finding.message.contains(text));
        assert!(named("torch 2.5.0 requires nvidia-nvjitlink-cu12==12.4.127") && named(version), "{findings:?}");
    }
}

#[test]
fn requirements_of_other_platforms_do_not_count() {
    for (requires, expected) in [
        ("nvidia-cublas-cu12==12.9.1.4; sys_platform == \"win32\"", false),
        ("nvidia-cublas-cu12==12.9.1.4; python_version < \"3.0\"", false),
        ("nvidia-cublas-cu12==12.9.1.4; python_version >= \"3.9\"", true),
        ("nvidia-cublas-cu12==12.9.1.4; platform_machine == \"x86_64\"", true),
        ("nvidia-cublas-cu12==12.9.1.4; platform_release == \"6\"", false),
        ("nvidia-cublas-cu12==12.9.1.4", true),
        ("nvidia-cublas-cu12!=12.1.3.1", true),
        ("nvidia-cublas-cu12>12.1.3.1", true),
        ("nvidia-cublas-cu12<12.1.3.1", true),
        ("nvidia-cublas-cu12<=12.1.3.1", false),
        ("Nvidia.Cublas-cu12==12.9.1.4", true),
        ("nvidia-cublas-cu12==12.1.3.1\nRequires-Dist: nvidia-cublas-cu12==12.9.1.4; sys_platform == \"win32\"", false),
        ("nvidia-cublas-cu12==12.9.1.4\nRequires-Dist: nvidia-cublas-cu12==12.1.3.1; sys_platform == \"win32\"", true),
    ] {
        let library = installed("nvidia_cublas_cu12", "12.1.3.1", "", "");
        let findings = unfulfilled_on_linux(&[installed("app", "1.0", requires, ""), library].concat());
        assert_eq!(!findings.is_empty(), expected, "{requires}: {findings:?}");
    }
}

#[test]
fn conda_driver_requirements_are_checked() {
    for (depends, is_reported) in [
        (&["__cuda >=12.0"][..], true),
        (&["__cuda >=13.0"], false),
        (&["__cuda"], false),
        (&["__cuda >=12.0", "cuda-version >=13,<14"], false),
        (&["cuda-version >=12.0,<14"], false),
        (&["python >=3.12"], false),
    ] {
        let needs = [("lib/a.so", CudaVersion::new(13, 0))].into_iter();
        let found = conda("h1_0", depends, "{}").check_driver_promise(needs);
        assert_eq!(found.is_some(), is_reported, "{depends:?}: {found:?}");
    }
}
