use super::*;
use cudaguard::internal::cudnn;

#[test]
fn repaired_wheel_names_are_parsed() {
    for (name, plain) in [
        ("libcudart-e409450e.so.11.0", "libcudart.so.11.0"),
        ("libcudnn-1A2b3c4d.so.9", "libcudnn.so.9"),
        ("libcudart-d0da41ae.so", "libcudart.so"),
        ("libcudart-41118559.so.12.3.101", "libcudart.so.12.3.101"),
        ("libcudart.41118559.so.12", "libcudart.so.12"),
        ("libnvrtc-builtins-2cf79d1a.so.11.2", "libnvrtc-builtins.so.11.2"),
        ("libcudart-e409450.so.11.0", "libcudart-e409450.so.11.0"),
        ("libcudart-e409450x.so.11.0", "libcudart-e409450x.so.11.0"),
        ("libx-1.2.so-e409450e.so.3", "libx-1.2.so-e409450e.so.3"),
        ("libcuda-1a2b3c4d.so.535.261.03", "libcuda.so.1"),
        ("libcuda.so.535.261.03", "libcuda.so.535.261.03"),
        ("libgomp-a34b3233.a", "libgomp-a34b3233.a"),
        ("libcudart.so.12", "libcudart.so.12"),
        ("-", "-"),
        ("", ""),
    ] {
        assert_eq!(plain_name(name), plain, "{name}");
    }
    for name in ["libcudart-e409450e.so.11.0", "libcudart-41118559.so.12", "libcudart.41118559.so.12"] {
        assert!(CUDART.is_named(name), "{name}");
    }
    assert!(!CUDART.is_named("libcudart-static.so"));
    assert_eq!(
        (CUDART.soname_version("libcudart-e409450e.so.11.0").as_deref(), CUDNN.major("libcudnn-1a2b3c4d.so.9")),
        (Some("11.0"), Some(9))
    );
}

#[test]
fn nvidia_libraries_are_recognized() {
    for soname in [
        "libcublasLt.so.12",
        "libcublasLt-e409450e.so.12",
        "libcusparse.so.11",
        "libcusparseLt.so.0",
        "libnppial.so.12",
        "libnpps.so.11",
        "libnppitc.so.13",
        "libcudnn.so.9",
        "libcudnn_engines_precompiled.so.9",
        "libcudnn_ops_infer-1a2b3c4d.so.8",
        "libcudnn_engines_tensor_ir.so.9",
        "libcudnn_graph.so",
        "libnvrtc-builtins.alt.so.12.8",
        "cupti64_2025.1.0.dll",
        "libnccl.so.2",
        "libnvJitLink.so.12",
        "libcupti.so.12",
        "libnvinfer_plugin.so.10",
    ] {
        assert!(is_beside_driver(soname), "{soname}");
    }
    for soname in [
        "libcublas_of_mine.so",
        "libcudnn_wrapper.so",
        "libcudnn_wrapper.so.1",
        "libcublas12.so",
        "libcurl.so.4",
        "libnccl-net.so",
        "libnvcompress.so",
        "libnppextra.so",
        "libtorch_cuda.so",
        "libnpp.so",
        "",
    ] {
        assert!(!is_beside_driver(soname), "{soname}");
    }
}

#[test]
fn sonames_are_parsed() {
    for (library, version, soname) in [
        (&CUDNN, "9.15.1", "libcudnn.so.9"),
        (&CUDNN, "7.6.5", "libcudnn.so.7"),
        (&CUDART, "13.0", "libcudart.so.13"),
        (&CUDART, "11.8", "libcudart.so.11.0"),
        (&CUDART, "10.2", "libcudart.so.10.2"),
        (&CUDART, "7.5", "libcudart.so.7.5"),
        (&NCCL, "2.21.5", "libnccl.so.2"),
    ] {
        assert_eq!(library.soname(version.parse().unwrap()), soname);
        assert!(library.is_named(soname), "{soname}");
    }
    assert!(!CUDNN.is_named("libcudnn_graph.so.9") && !CUDNN.is_named("libcudnn.a"));
    for library in DESCRIBED {
        let sonames: Vec<String> = library.sonames().collect();
        assert!(sonames.iter().all(|soname| library.major(soname).is_some()), "{sonames:?}");
        let majors: Vec<_> = sonames.iter().map(|soname| library.major(soname)).collect();
        assert!(majors.windows(2).all(|pair| pair[0] >= pair[1]), "{sonames:?}");
    }
}

#[test]
fn version_encodings_are_decoded() {
    for (getter, answer, version) in [
        (cudnn::GETTER, 7605, Version::new(7, 6, 5)),
        (cudnn::GETTER, 8500, Version::new(8, 5, 0)),
        (cudnn::GETTER, 8907, Version::new(8, 9, 7)),
        (cudnn::GETTER, 90_000, Version::new(9, 0, 0)),
        (cudnn::GETTER, 91_002, Version::new(9, 10, 2)),
        (cudnn::GETTER, 92_800, Version::new(9, 28, 0)),
        (NCCL_GETTER, 2708, Version::new(2, 7, 8)),
        (NCCL_GETTER, 21_605, Version::new(2, 16, 5)),
        (NCCL_GETTER, 23_203, Version::new(2, 32, 3)),
    ] {
        assert_eq!(version_of_answer(&getter, answer), Some(version));
    }
}

#[test]
fn version_texts_are_parsed() {
    let version_of = |key: &str, behind: &[u8]| library_for_key(key).unwrap().traces.inside[0].version_after(behind);
    assert_eq!(version_of("nccl", b"2.21.5+cuda12.4\0"), Some(Version::new(2, 21, 5)));
    assert_eq!(version_of("nccl", b"2.32.3\0"), Some(Version::new(2, 32, 3)));
    assert_eq!(version_of("cudnn", b"9_15_1_9_\0"), Some(Version::new(9, 15, 1)));
    for none in [&b"%d.%d.%d"[..], b"2.21", b"2.21.", b"", b"99999999999.1.1"] {
        assert_eq!(version_of("nccl", none), None, "{none:?}");
    }
    assert_eq!(version_of("cudart", b"1.2.3"), None);
}

#[test]
fn keys_and_stems_are_unique() {
    for (index, library) in DESCRIBED.iter().enumerate() {
        for other in &DESCRIBED[index + 1..] {
            assert!(library.key != other.key && library.stem() != other.stem() && library.name != other.name);
        }
        assert_eq!(library_for_key(library.key).map(|found| found.name), Some(library.name));
    }
}

#[test]
fn soname_numbers_are_parsed() {
    assert_eq!(numbers_of("libcudart.so.13.0.96"), [13, 0, 96]);
    assert_eq!(numbers_of("libcudnn.so"), Vec::<u32>::new());
    assert_eq!(numbers_of("libx.so.1.x"), [1]);
}

#[test]
fn sonames_show_the_oldest_cuda() {
    for (soname, expected) in [
        ("libcublas.so.12", Some(12)),
        ("libnppial.so.13", Some(13)),
        ("libcufft.so.10", Some(10)),
        ("libcufft.so.11", Some(12)),
        ("libcusolver.so.11", Some(11)),
        ("libcusolver.so.12", Some(13)),
        ("libcusparse.so.12", Some(12)),
        ("libcufft.so.13", None),
        ("libcurand.so.10", None),
        ("libcudart.so.12", None),
        ("libnvrtc.so.12", None),
        ("libnccl.so.2", None),
        ("cufft64_11.dll", Some(12)),
    ] {
        assert_eq!(cuda_major_of(soname), expected, "{soname}");
    }
    for (soname, expected) in [
        ("libnvrtc.so.11.2", Some(11..=11)),
        ("libcusolver.so.11", Some(11..=12)),
        ("libcusparse.so.12", Some(12..=13)),
        ("libcurand.so.10", Some(10..=13)),
        ("libnccl.so.2", None),
    ] {
        assert_eq!(cuda_majors_with(soname), expected, "{soname}");
    }
}

#[test]
fn oldest_drivers_of_libraries() {
    for (soname, expected) in [
        ("libcublas.so.12", Some(12)),
        ("libcudnn.so.9", Some(11)),
        ("libcudnn_ops_infer.so.8", Some(10)),
        ("libcurand.so.10", Some(10)),
        ("libnccl.so.2", Some(1)),
        ("libcudart.so.12", None),
        ("libnvrtc.so.12", None),
        ("libnvToolsExt.so.1", None),
        ("libmine.so", None),
    ] {
        assert_eq!(oldest_driver_of(soname), expected, "{soname}");
    }
}

#[test]
fn installed_libraries_are_distinguished() {
    for installed in [
        "libcudart.so.13",
        "libcublas.so.12",
        "libnvrtc.so",
        "libnvrtc-builtins.so.13.0",
        "libnppial.so.12",
        "libnccl.so.2",
        "libnvinfer.so.10",
        "libnvToolsExt.so.1",
        "cublas64_13.dll",
        "nvrtc64_130_0.dll",
    ] {
        assert!(is_installed(installed), "{installed}");
    }
    for other in [
        "libcuda.so.1",
        "nvcuda.dll",
        "libcudadebugger.so.1",
        "libnvidia-ml.so.1",
        "libnvcuvid.so.1",
        "libcudnn.so.9",
        "libcudnn_graph.so.9",
        "libcuda_kernels.so",
        "libc.so.6",
        "libtorch_cuda.so",
        "libcufftplus.so",
        "libnvrtcache.so.1",
        "libnvinfermine.so",
        "KERNEL32.dll",
    ] {
        assert!(!is_installed(other), "{other}");
    }
}
