use std::collections::BTreeMap;
use std::ffi::OsString;

use super::*;

/// A temporary directory that is deleted on drop.
struct CrateDir(tempfile::TempDir);

impl CrateDir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn nvcc(&self, name: &str, release: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let text = format!(
            "#!/bin/sh\necho 'nvcc: NVIDIA (R) Cuda compiler driver'\necho x\necho x\n\
                 echo 'Cuda compilation tools, release {release}, V{release}.88'\n"
        );
        let path = self.file(name, &text);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn one(name: &str, version: &str, features: &[&str]) -> Crate {
    let text = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect();
    Crate {
        name: name.to_owned(),
        version: version.to_owned(),
        features: text(features),
        known: text(&[
            "cuda-12080",
            "cuda-12090",
            "cuda-13000",
            "cuda-13040",
            "cudnn-08009",
            "cudnn-09010",
            "cudnn-09021",
        ]),
        path: vec!["app".to_owned(), format!("{name} {version}")],
        ..Crate::default()
    }
}

fn at(of: Crate, root: &Path, variables: &[(&str, &str)]) -> CrateUse {
    let variables: BTreeMap<String, OsString> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
    detect_crates(&Env::from_variables(variables, "/"), &[of], &Toolchain::default(), root, false).remove(0)
}

#[test]
fn level_comes_from_variable_feature_nvcc() {
    let dir = CrateDir::new();
    dir.nvcc("bin/nvcc", "12.9");
    let path = format!("{}/bin:/usr/bin:/bin", dir.0.path().display());
    let by_nvcc = || one("cudarc", "0.19.10", &["cuda-version-from-build-system", "driver"]);
    let level = |of, variables: &[(&str, &str)]| at(of, dir.0.path(), variables).level.unwrap();
    let found = level(by_nvcc(), &[("PATH", &path)]);
    assert_eq!((found.value, found.chosen), (CudaVersion::new(12, 9), Chosen::Found));
    let found = level(by_nvcc(), &[("PATH", &path), ("CUDARC_CUDA_VERSION", "13000")]);
    assert_eq!((found.value, found.by.as_str()), (CudaVersion::new(13, 0), "CUDARC_CUDA_VERSION=13000"));
    let found = level(one("cudarc", "0.17.8", &["cuda-12080", "cuda-12090"]), &[("PATH", &path)]);
    assert_eq!((found.value, found.by.as_str()), (CudaVersion::new(12, 9), "feature cuda-12090"));
    let nowhere = [("PATH", "/nowhere")];
    let found = level(one("cudarc", "0.17.8", &["cuda-version-from-build-system", "fallback-latest"]), &nowhere);
    assert_eq!((found.value, found.chosen), (CudaVersion::new(13, 4), Chosen::Assumed));
    assert_eq!(at(by_nvcc(), dir.0.path(), &nowhere).stopped, Some(Stopped::NoCompiler));
}

/// cudarc 0.17.8 and 0.19.10 do not compile with bindings of two releases.
#[test]
fn variable_beside_feature_stops_the_build() {
    let dir = CrateDir::new();
    let with =
        |value: &str| at(one("cudarc", "0.19.10", &["cuda-13000"]), dir.0.path(), &[("CUDARC_CUDA_VERSION", value)]);
    assert!(with("13000").stopped.is_none() && with("13000").level.is_some());
    assert!(matches!(with("12080").stopped, Some(Stopped::TwoReleases { .. })));
}

#[test]
fn downloads_follow_variable_and_toolkit() {
    let dir = CrateDir::new();
    let cuda = ["download-binaries", "cuda"];
    for (version, features, variables, major) in [
        ("2.0.0-rc.15", &cuda[..], &[][..], Some(13)),
        ("2.0.0-rc.15", &cuda, &[("ORT_CUDA_VERSION", "13")], Some(13)),
        ("2.0.0-rc.15", &cuda, &[("ORT_LIB_PATH", "/ort")], None),
        ("2.0.0-rc.15", &cuda[..1], &[], None),
        ("2.0.0-rc.15", &["download-binaries", "cuda", "disable-linking"], &[], None),
        ("2.0.0-rc.12", &cuda, &[], Some(12)),
        ("2.0.0-rc.12", &cuda, &[("ORT_CUDA_VERSION", "13")], Some(13)),
        ("2.0.0-rc.10", &cuda, &[("ORT_CUDA_VERSION", "13")], Some(12)),
    ] {
        let found = at(one("ort-sys", version, features), dir.0.path(), variables);
        assert_eq!((found.downloaded, found.stopped), (major, None), "{version} {features:?} {variables:?}");
    }
    let none = at(one("ort-sys", "2.0.0-rc.15", &cuda), dir.0.path(), &[("ORT_CUDA_VERSION", "12")]);
    assert!(matches!(none.stopped, Some(Stopped::NoDownload { .. })), "{none:?}");
}

#[test]
fn library_outside_of_link_directories_is_reported() {
    let dir = CrateDir::new();
    let whisper = |variables: &[(&str, &str)]| {
        let found = at(one("whisper-rs-sys", "0.15.0", &["cuda"]), dir.0.path(), variables).stopped;
        found.map(|stopped| matches!(stopped, Stopped::NotLinked { library, .. } if library == "libcublas"))
    };
    assert_eq!(whisper(&[]), Some(true));
    assert_eq!(whisper(&[("RUSTFLAGS", "-L /cuda/lib64")]), None);
    for name in ["cublas", "cudart", "cublasLt", "cuda"] {
        dir.file(&format!("elsewhere/lib{name}.so"), "");
        dir.file(&format!("usr/local/cuda/lib64/lib{name}.so"), "");
    }
    let elsewhere = dir.0.path().join("elsewhere");
    assert_eq!(whisper(&[("LIBRARY_PATH", elsewhere.to_str().unwrap())]), None);
    assert_eq!(whisper(&[]), None);
}

#[test]
fn unbound_release_stops_the_script() {
    let dir = CrateDir::new();
    dir.nvcc("bin/nvcc", "13.5");
    let path = format!("{}/bin:/usr/bin:/bin", dir.0.path().display());
    let found = at(one("cudarc", "0.19.10", &["cuda-version-from-build-system"]), dir.0.path(), &[("PATH", &path)]);
    let Some(Stopped::UnknownRelease { asked, newest, .. }) = found.stopped else { panic!("{found:?}") };
    assert_eq!((asked, newest), (CudaVersion::new(13, 5), CudaVersion::new(13, 4)));
    let header = dir.file(
        "cudnn/include/cudnn_version.h",
        "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 1\n#define CUDNN_PATCHLEVEL 0\n",
    );
    let library = dir.0.path().join("cudnn");
    let variables = [("CUDNN_PATH", library.to_str().unwrap())];
    let features = ["cuda-13000", "cudnn-version-from-build-system"];
    let found = at(one("cudarc", "0.19.10", &features), dir.0.path(), &variables);
    let known = vec![(8, 9), (9, 10), (9, 21)];
    assert_eq!(found.stopped, Some(Stopped::UnknownLibrary { asked: Version::new(9, 1, 0), header, known }));
    let features = ["cuda-13000", "cudnn-version-from-build-system", "fallback-latest"];
    let found = at(one("cudarc", "0.19.10", &features), dir.0.path(), &variables);
    assert_eq!(found.library.unwrap().value, (9, Some(21)));
}

#[test]
fn header_level_follows_crate_order() {
    let dir = CrateDir::new();
    for (place, number) in [("a/include", "13020"), ("b/include", "12080"), ("c/targets/x86_64-linux/include", "13050")]
    {
        dir.file(&format!("{place}/cuda.h"), &format!("#define CUDA_VERSION {number}\n"));
    }
    dir.file("usr/local/cuda/include/cuda.h", "#define CUDA_VERSION 12040\n");
    dir.file("opt/cuda/include/cuda.h", "#define CUDA_VERSION 13000\n");
    let [a, b, c] = ["a", "b", "c"].map(|name| dir.0.path().join(name).display().to_string());
    let found = |variables: &[(&str, &str)]| at(one("cuda-bindings", "0.5.0", &[]), dir.0.path(), variables);
    let level = |variables: &[(&str, &str)]| found(variables).level.map(|level| level.value.to_string());
    assert_eq!(level(&[("CUDA_TOOLKIT_PATH", &a), ("CUDA_HOME", &c)]).as_deref(), Some("13.2"));
    assert_eq!(level(&[("CUDA_HOME", &c)]).as_deref(), Some("13.5"));
    let tree = ("CUDA_TOOLKIT_TARGET_DIR", "x86_64-linux");
    assert_eq!(level(&[("CUDA_HOME", &c), tree]).as_deref(), Some("13.5"));
    // The directory below targets/ is the only candidate then, and a variable ends the search.
    assert_eq!(level(&[("CUDA_HOME", &a), tree]), None);
    // A usual directory with an older toolkit is skipped.
    assert_eq!(level(&[]).as_deref(), Some("13.0"));
    let Some(Stopped::NoHeaders { found, .. }) = found(&[("CUDA_TOOLKIT_PATH", &b)]).stopped else { panic!() };
    assert_eq!(found.map(|(release, _)| release), Some(CudaVersion::new(12, 8)));
}

#[test]
fn compiler_and_headers_follow_crate_order() {
    let dir = CrateDir::new();
    for (place, release, number) in
        [("a", "13.0", "13000"), ("b", "11.8", "11080"), ("usr/local/cuda", "12.4", "12040")]
    {
        dir.nvcc(&format!("{place}/bin/nvcc"), release);
        dir.file(&format!("{place}/include/cuda.h"), &format!("#define CUDA_VERSION {number}\n"));
    }
    let [a, b] = ["a", "b"].map(|name| dir.0.path().join(name).display().to_string());
    let path = format!("{a}/bin:/usr/bin:/bin");
    let nvcc = format!("{b}/bin/nvcc");
    let release =
        |found: &CrateUse| found.compiler.as_ref().and_then(|compiler| compiler.release).map(CudaVersion::from);
    // bindgen_cuda uses PATH whatever NVCC contains, and the first headers of another search order.
    let found = at(one("bindgen_cuda", "0.1.6", &[]), dir.0.path(), &[("PATH", &path), ("NVCC", &nvcc)]);
    assert_eq!(release(&found), Some(CudaVersion::new(13, 0)));
    let headers = found.headers.unwrap();
    assert_eq!((headers.release, headers.by.as_str()), (Some(CudaVersion::new(12, 4)), "/usr/local/cuda/include"));
    let found = at(one("bindgen_cuda", "0.1.6", &[]), dir.0.path(), &[("PATH", &path), ("CUDA_PATH", &b)]);
    let headers = found.headers.unwrap();
    assert_eq!((headers.release, headers.by.as_str()), (Some(CudaVersion::new(11, 8)), "CUDA_PATH"));
    let found = at(one("cudaforge", "0.1.6", &[]), dir.0.path(), &[("PATH", &path), ("NVCC", &nvcc)]);
    assert_eq!((release(&found), found.headers), (Some(CudaVersion::new(11, 8)), None));
    let found = at(one("cudaforge", "0.1.6", &[]), dir.0.path(), &[("PATH", "/usr/bin:/bin")]);
    assert_eq!(found.compiler.unwrap().by, "/usr/local/cuda/bin/nvcc");
}

#[test]
fn cust_searches_its_directories() {
    let dir = CrateDir::new();
    let stopped = |variables: &[(&str, &str)]| {
        at(one("find_cuda_helper", "0.2.0", &[]), dir.0.path(), variables).stopped.is_some()
    };
    let root = dir.0.path().join("somewhere").display().to_string();
    dir.file("somewhere/lib64/libcudart.so", "");
    assert!(stopped(&[("CUDA_HOME", &root), ("CUDA_PATH", &root), ("CUDA_ROOT", &root)]));
    assert!(!stopped(&[("CUDA_LIBRARY_PATH", &root)]));
    dir.file("usr/local/cuda-12.4/lib64/libcudart.so", "");
    assert!(!stopped(&[]));
}

#[test]
fn single_arch_keeps_its_suffix() {
    let arch = |name: &str, text: &str| {
        let found = at(
            one(name, if name == "cudaforge" { "0.1.6" } else { "0.1.5" }, &[]),
            Path::new("/nowhere"),
            &[("CUDA_COMPUTE_CAP", text)],
        );
        found.arch.map(|arch| arch.compiled_targets()[0].to_string())
    };
    for (text, by_cudaforge, by_bindgen) in [
        ("80", Some("sm_80"), Some("sm_80")),
        ("90", Some("sm_90a"), Some("sm_90")),
        ("90a", Some("sm_90a"), None),
        ("sm_100f", Some("sm_100f"), None),
        ("121", Some("sm_121f"), Some("sm_121")),
        ("9", Some("sm_90a"), Some("sm_9")),
        ("x", None, None),
    ] {
        assert_eq!(arch("cudaforge", text).as_deref(), by_cudaforge, "{text}");
        assert_eq!(arch("bindgen_cuda", text).as_deref(), by_bindgen, "{text}");
    }
    assert_eq!(with_suffix("é"), None);
}

#[test]
fn builder_without_gpu_stops_the_script() {
    let dir = CrateDir::new();
    let stopped = |name: &str, version: &str, variables: &[(&str, &str)]| {
        at(one(name, version, &[]), dir.0.path(), variables).stopped
    };
    let nowhere = ("PATH", "/nowhere");
    for (name, version) in [("cudaforge", "0.1.6"), ("bindgen_cuda", "0.1.6")] {
        let Some(Stopped::NoGpu { variable, .. }) = stopped(name, version, &[nowhere]) else { panic!("{name}") };
        assert_eq!(variable, "CUDA_COMPUTE_CAP");
        assert_eq!(stopped(name, version, &[nowhere, ("CUDA_COMPUTE_CAP", "90")]), None);
    }
    dir.nvcc("bin/nvidia-smi", "none");
    let path = dir.0.path().join("bin").display().to_string();
    assert_eq!(stopped("cudaforge", "0.1.6", &[("PATH", &path)]), None);
}

#[test]
fn unknown_crate_is_ignored() {
    let found = at(one("cudarc", "0.99.0", &["cuda-13000"]), Path::new("/nowhere"), &[]);
    assert!(found.level.is_none() && found.stopped.is_none());
}
