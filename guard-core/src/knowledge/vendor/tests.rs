use super::*;

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
        (CUDNN, "9.15.1", "libcudnn.so.9"),
        (CUDNN, "7.6.5", "libcudnn.so.7"),
        (&CUDART, "13.0", "libcudart.so.13"),
        (&CUDART, "11.8", "libcudart.so.11.0"),
        (&CUDART, "10.2", "libcudart.so.10.2"),
        (&CUDART, "7.5", "libcudart.so.7.5"),
        (library_for_key("nccl").unwrap(), "2.21.5", "libnccl.so.2"),
    ] {
        assert_eq!(library.soname(version.parse().unwrap()), soname);
        assert!(library.is_named(soname), "{soname}");
    }
    assert!(!CUDNN.is_named("libcudnn_graph.so.9") && !CUDNN.is_named("libcudnn.a"));
    for library in ALL {
        let sonames: Vec<String> = library.sonames().collect();
        assert!(sonames.iter().all(|soname| library.major(soname).is_some()), "{sonames:?}");
        let majors: Vec<_> = sonames.iter().map(|soname| library.major(soname)).collect();
        assert!(majors.windows(2).all(|pair| pair[0] >= pair[1]), "{sonames:?}");
    }
}

#[test]
fn version_encodings_are_decoded() {
    for (library, answer, version) in [
        (CUDNN, 7605, Version::new(7, 6, 5)),
        (CUDNN, 8500, Version::new(8, 5, 0)),
        (CUDNN, 8907, Version::new(8, 9, 7)),
        (CUDNN, 90_000, Version::new(9, 0, 0)),
        (CUDNN, 91_002, Version::new(9, 10, 2)),
        (CUDNN, 92_800, Version::new(9, 28, 0)),
        (library_for_key("nccl").unwrap(), 2708, Version::new(2, 7, 8)),
        (library_for_key("nccl").unwrap(), 21_605, Version::new(2, 16, 5)),
        (library_for_key("nccl").unwrap(), 23_203, Version::new(2, 32, 3)),
    ] {
        assert_eq!(library.asked.as_ref().unwrap().version_of_answer(answer), Some(version));
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
fn library_parts_match_their_major() {
    for library in ALL {
        for part in library.parts {
            // The shim relies on the separator (detection.c).
            assert!(part.file.starts_with(&format!("{}_", library.stem)), "{part:?}");
            let tells = part.symbol.is_empty() || part.symbol.ends_with("_version");
            assert!(part.file.ends_with(&format!(".so.{}", part.major)) && tells, "{part:?}");
            assert!(!part.needed || !part.symbol.is_empty(), "{part:?}");
        }
    }
}

#[test]
fn keys_and_stems_are_unique() {
    for (index, library) in ALL.iter().enumerate() {
        for other in &ALL[index + 1..] {
            assert!(library.key != other.key && library.stem != other.stem && library.name != other.name);
        }
        assert_eq!(library_for_key(library.key).map(|found| found.name), Some(library.name));
    }
}

#[test]
fn release_gpu_support_is_listed() {
    let version = |text: &str| text.parse::<Version>().unwrap();
    for (release, major, oldest, newest) in [
        ("9.15.1", 13, Some((7, 5)), Some((12, 1))),
        ("9.10.2", 12, Some((5, 0)), Some((12, 0))),
        ("9.11.0", 12, Some((7, 5)), Some((12, 0))),
        ("8.5.0", 11, Some((3, 5)), Some((8, 6))),
        ("8.2.2", 11, Some((3, 5)), None),
        ("7.6.5", 10, Some((3, 0)), Some((7, 5))),
        ("9.99.0", 13, Some((7, 5)), Some((12, 1))),
        ("9.15.1", 14, None, None),
        ("8.5.0", 12, None, None),
    ] {
        let table = CUDNN.release_table();
        let release = version(release);
        assert_eq!(
            (table.min_cc(release, major), table.newest_cc(release, major)),
            (oldest, newest),
            "{release} {major}"
        );
    }
    assert!(CUDNN.release_table().releases_for(13).contains(&version("9.15.1")));
    assert!(!CUDNN.release_table().releases_for(11).contains(&version("9.15.1")));
    assert!(CUDNN.release_table().releases_for(14).is_empty());
    for (release, floor) in [
        ("7.6.5", None),
        ("8.8.1", None),
        ("8.9.0", Some(("8.9", (5, 0)))),
        ("9.0.0", Some(("9.0", (5, 0)))),
        ("9.10.2", Some(("9.0", (5, 0)))),
        ("9.11.0", Some(("9.11", (7, 5)))),
        ("9.99.0", Some(("9.11", (7, 5)))),
        ("10.0.0", None),
    ] {
        let floor = floor.map(|(from, cc)| (version(from), cc));
        assert_eq!(CUDNN.release_table().gpu_floor(version(release)), floor, "{release}");
    }
    let newest =
        |major, release: &str, cuda| CUDNN.release_table().newest_gpus(major)?.newest_for(version(release), cuda);
    assert_eq!(["8.5", "8.6", "8.9"].map(|release| newest(8, release, None)), [Some(8), Some(9), Some(9)]);
    assert_eq!([None, Some(11), Some(12), Some(13)].map(|cuda| newest(9, "9.5", cuda)), [None, Some(9), None, None]);
    assert_eq!(newest(10, "10.1", Some(13)), None);
    assert_eq!(CUDART.release_table().min_cc(version("13.0"), 13), None);
}

#[test]
fn release_cuda_versions_are_listed() {
    for (version, cuda, made) in [
        ("7.6.5", 10, true),
        ("7.6.5", 11, false),
        ("8.5.0", 11, true),
        ("8.5.0", 12, false),
        ("8.9.7", 12, true),
        ("8.9.7", 13, false),
        ("9.1.0", 11, true),
        ("9.1.0", 13, false),
        ("9.10.2", 11, true),
        ("9.11.0", 11, false),
        ("9.12.0", 13, true),
        ("9.28.0", 12, true),
        ("10.0.0", 14, true),
    ] {
        let majors = CUDNN.release_table().cuda_majors(version.parse().unwrap()).unwrap();
        assert_eq!(majors.contains(&cuda), made, "{version} for CUDA {cuda}");
    }
    assert_eq!(CUDART.release_table().cuda_majors(Version::new(13, 0, 0)), None);
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
