//! Builds by cargo.

use std::path::Path;

use cudaguard_tests::{Call, Project, e2e, parts, tools};
use serde_json::json;

use super::fixture::{
    build, call, call_of, codes, cudart, made_elsewhere, manifest, nvcc, package, refused, shared_cudart, with_toolkit,
};

#[e2e]
fn toolkit_from_path_is_recorded() {
    let fixture = package("alone", "");
    fixture.write("tools", nvcc("13.0") + &cudart("13.0"));
    let built = build(&fixture, &["--release"], Some("13.0")).success();
    assert_eq!(codes(&built), [""; 0], "{built}");
    let manifest = manifest(&fixture.built("release/app"));
    assert_eq!(manifest["toolkit"], json!({"version": "13.0.88", "known": "observed"}));
    assert_eq!(manifest["cudart"], json!({"linkage": "static", "version": "13.0"}));
}

#[e2e(slow)]
fn other_major_than_path_is_recorded() {
    let (used, in_path, floor) = ("11.8", "13.0", "11.0");
    let fixture = package("other", "");
    fixture.write("tools", nvcc(used) + &cudart(used));
    let outcome = refused(&fixture, Some(in_path));
    assert_eq!(codes(&outcome), ["error[CG144]"], "{outcome}");
    let printed = outcome.clean_stderr();
    for words in [
        format!("app contains code from CUDA {used}, but the toolkit in use is CUDA {in_path}."),
        format!("cuda-{in_path}/bin/nvcc --version"),
        format!("{used} inside"),
    ] {
        assert!(printed.contains(&words), "{words}: {outcome}");
    }
    let warned = build(&fixture, &[], Some(in_path)).success();
    assert_eq!(codes(&warned), ["warning[CG144]"], "{warned}");
    let manifest = manifest(&fixture.built("debug/app"));
    assert_eq!(manifest["toolkit"], json!({"version": format!("{used}.0"), "known": "observed"}), "{manifest:#}");
    assert_eq!(manifest["cudart"]["version"], used);
    let drivers = manifest["requires"].as_array().expect("rows").iter().filter(|row| row["kind"] == "driver");
    let drivers: Vec<_> = drivers.map(|row| row["cuda"].as_str().expect("a floor").to_owned()).collect();
    assert_eq!(drivers, [floor], "{manifest:#}");
}

#[e2e(slow)]
fn missing_path_toolkit_is_recorded() {
    let fixture = package("nowhere", "");
    fixture.write("tools", nvcc("13.0") + &cudart("13.0"));
    let built = build(&fixture, &["--release"], None).success();
    assert_eq!(codes(&built), [""; 0], "{built}");
    assert!(built.stderr.contains("1 of 1 target guarded (CUDA 13.0)"), "{built}");
    let manifest = manifest(&fixture.built("release/app"));
    fixture.remove("target/release/app");
    assert_eq!(manifest["toolkit"], json!({"version": "13.0.0", "known": "observed"}));
    fixture.change("cudaguard.toml", "[driver]\nfleet = \"535\"\n");
    let outcome = refused(&fixture, None);
    assert_eq!(codes(&outcome), ["error[CG133]"], "{outcome}");
}

#[e2e(slow)]
fn prebuilt_library_is_not_blamed() {
    // Mixed majors are not supported. An older release of the same major works.
    for (other, in_path, fine, printed) in
        [("11.8", "13.0", false, "error[CG145]"), ("13.0", "13.2", true, "warning[CG145]")]
    {
        let fixture = package("elsewhere", "");
        fixture.write("tools", nvcc(in_path) + &made_elsewhere(&fixture, other) + &cudart(in_path));
        let built = build(&fixture, &["--release"], Some(in_path));
        assert_eq!(built.status() == Some(0), fine, "{built}");
        assert_eq!(codes(&built), [printed], "{built}");
        let _ = build(&fixture, &[], Some(in_path)).success();
        let manifest = manifest(&fixture.built("debug/app"));
        assert_eq!(manifest["toolkit"]["besides"], json!([other]), "{manifest:#}");
        assert!(manifest["toolkit"]["version"].as_str().expect("one").starts_with(in_path), "{manifest:#}");
    }
}

#[e2e(slow)]
fn policy_checks_used_toolkit() {
    let fixture = package("policy", "[toolkit]\nrequire = \">=13\"\n");
    fixture.write("tools", nvcc("11.8") + &cudart("11.8"));
    let outcome = refused(&fixture, Some("13.0"));
    assert_eq!(codes(&outcome), ["error[CG103]", "error[CG144]"], "{outcome}");
    assert!(
        outcome.stderr.contains("the policy requires CUDA >=13, but app contains code from CUDA 11.8."),
        "{outcome}"
    );
}

#[e2e(slow)]
fn shared_cudart_is_recorded() {
    for (used, linked, printed) in [("13.0", "13.0", &[][..]), ("13.0", "13.2", &["error[CG145]"])] {
        let fixture = package("shared", "");
        fixture.write("tools", nvcc(used) + &shared_cudart(linked));
        if printed.is_empty() {
            let built = build(&fixture, &["--release"], Some(used)).success();
            assert_eq!(codes(&built), [""; 0], "{built}");
        } else {
            let outcome = refused(&fixture, Some(used));
            assert_eq!(codes(&outcome), printed, "{outcome}");
        }
        let _ = build(&fixture, &[], Some(used)).success();
        let manifest = manifest(&fixture.built("debug/app"));
        assert_eq!(manifest["cudart"], json!({"linkage": "linked", "version": linked}), "{manifest:#}");
        assert_eq!(manifest["toolkit"]["known"], "observed");
    }
}

/// `PATH` and `CUDA_HOME` select different toolkits. If one of them built the complete file, the other does not refuse it.
#[e2e(slow)]
fn unused_toolkit_is_ignored() {
    let policy = "[toolkit]\nrequire = \">=13\"\n";
    for (used, also) in [("13.2", "13.0"), ("13.0", "11.8")] {
        let home = parts::cuda(if used == "13.0" { also } else { used });
        let fixture = package("two", policy);
        fixture.write("tools", nvcc(used) + &cudart(used));
        let path = if used == "13.0" { used } else { also };
        let built = call(&fixture, &["--release"], Some(path)).env("CUDA_HOME", &home).run().success();
        assert_eq!(codes(&built), [""; 0], "{used} of {path} and {}: {built}", home.display());
        let toolkit = manifest(&fixture.built("release/app"))["toolkit"].clone();
        assert!(toolkit["version"].as_str().is_some_and(|version| version.starts_with(used)), "{toolkit}");
    }
    // Either both were used, or nothing shows which was.
    for tools in [nvcc("13.0") + &cudart("13.2"), nvcc("13.0")] {
        let fixture = package("both", "");
        fixture.write("tools", tools + "link -lcudart\n");
        let home = parts::cuda("13.2");
        let outcome = call(&fixture, &["--release"], Some("13.0"))
            .env("CUDA_HOME", &home)
            .env("LIBRARY_PATH", home.join("lib64/stubs/../../lib64"))
            .run();
        assert!(outcome.status() != Some(0), "{outcome}");
        assert!(codes(&outcome).contains(&"error[CG101]".to_owned()), "{outcome}");
        assert!(outcome.stderr.contains("nvcc is from CUDA 13.0, but CUDA_HOME names CUDA 13.2."), "{outcome}");
    }
}

/// `embed!()` without the command: before linking, nothing shows which of the two is used.
#[e2e(slow)]
fn plain_cargo_ignores_unused_toolkit() {
    let project = Project::guarded("app").file("src/main.rs", "fn main() {}\n");
    let [in_path, at_home] = ["13.0", "11.8"].map(parts::cuda);
    let build =
        |words: &[&str], home: &Path| with_toolkit(project.cargo(words), Some(&in_path)).env("CUDA_HOME", home).run();
    let refused = build(&["build", "--release"], &at_home).expect(101);
    let words = "error[CG101]: nvcc is from CUDA 13.0, but CUDA_HOME names CUDA 11.8.".to_owned();
    for words in [
        words,
        in_path.join("bin/nvcc").display().to_string(),
        at_home.display().to_string(),
        "app 0.1.0 was not built".to_owned(),
    ] {
        assert!(refused.stderr.contains(&words), "{words}: {refused}");
    }
    assert!(!project.built("release/app").exists(), "nothing is linked: {refused}");
    let warned = build(&["build"], &at_home).success();
    assert!(warned.stderr.contains("warning[CG101]: "), "{warned}");
    for version in ["13.0", "11.8"] {
        let root = parts::cuda(version);
        let right = with_toolkit(project.cargo(["build", "--release"]), Some(&root)).env("CUDA_HOME", &root);
        let right = right.run().success();
        assert!(!right.stderr.contains("[CG"), "{right}");
        let toolkit = manifest(&project.built("release/app"))["toolkit"].clone();
        assert!(toolkit["version"].as_str().is_some_and(|printed| printed.starts_with(version)), "{toolkit}");
        std::fs::remove_file(project.built("release/app")).expect("it was built");
    }
}

/// A build script links cuDNN, and its `-I` options are not recorded.
#[e2e(slow)]
fn cudnn_without_headers_is_recorded() {
    let cudnn = parts::cudnn("9.15.1");
    let main = "unsafe extern \"C\" { fn cudnnGetVersion() -> usize; }\nfn main() { println!(\"{}\", unsafe { cudnnGetVersion() }) }\n";
    let old = |fixture: &crate::wrapper::fixture::Fixture| {
        let root = fixture.sibling("root");
        cudaguard_tests::scratch::write(
            &root.join("usr/include/cudnn_version.h"),
            "#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 9\n#define CUDNN_PATCHLEVEL 7\n",
        );
        root
    };
    let include = cudnn.join("include");
    let linked = json!({"version": "9.15.1", "linkage": "linked", "known": "linked"});
    let reported = json!({"version": "9.15.1", "linkage": "linked"});
    // Cases: /usr/include contains old headers, the variable that selects the right ones, the findings, and the recorded
    // cuDNN.
    for (stale, variable, printed, recorded) in [
        (false, "", &["warning[CG146]"][..], &linked),
        (false, "CPATH", &[], &reported),
        (false, "C_INCLUDE_PATH", &[], &reported),
        (true, "CPLUS_INCLUDE_PATH", &[], &reported),
        (true, "", &["warning[CG146]"], &linked),
        (true, "CUDNN_INCLUDE_DIR", &[], &reported),
    ] {
        let fixture = package("headers", "");
        fixture.write("src/main.rs", main);
        fixture.write("tools", format!("search {}\nlink -lcudnn\n", cudnn.join("lib").display()));
        let mut call = call(&fixture, &["--release"], None);
        if stale {
            call = call.env("CUDAGUARD_SYSROOT", old(&fixture));
        }
        if !variable.is_empty() {
            call = call.env(variable, &include);
        }
        let built = call.run().success();
        assert_eq!(codes(&built), printed, "{stale} {variable}: {built}");
        let manifest = manifest(&fixture.built("release/app"));
        assert_eq!(&manifest["cudnn"], recorded, "{stale} {variable}: {manifest:#}");
        let rows = manifest["requires"].as_array().expect("rows");
        assert!(rows.iter().any(|row| row["kind"] == "cudnn" && row["min"] == "9.15.0"), "{manifest:#}");
        if !printed.is_empty() {
            assert!(built.stderr.contains("recorded: cuDNN 9.15.1, from "), "{built}");
        }
    }
    // The configured headers and the linked library do not match.
    let fixture = package("mixed", "");
    fixture.write("src/main.rs", main);
    fixture.write("tools", format!("search {}\nlink -lcudnn\n", cudnn.join("lib").display()));
    let outcome =
        call(&fixture, &["--release"], None).env("CUDNN_INCLUDE_DIR", old(&fixture).join("usr/include")).run();
    assert!(outcome.status() != Some(0) && codes(&outcome).contains(&"error[CG142]".to_owned()), "{outcome}");
}

/// The library is linked by its path, which precedes all directories, or from a directory that only the linker receives.
#[e2e(slow)]
fn linker_spellings_of_cudnn_are_recognized() {
    let [cudnn, old] = ["9.15.1", "9.1.0"].map(|version| parts::cudnn(version).join("lib").display().to_string());
    let main = "unsafe extern \"C\" { fn cudnnGetVersion() -> usize; }\nfn main() { println!(\"{}\", unsafe { cudnnGetVersion() }) }\n";
    for tools in [
        format!("link {cudnn}/libcudnn.so.9\n"),
        format!("search {old}\nlink {cudnn}/libcudnn.so.9\n"),
        format!("link -Wl,-L,{cudnn}\nlink -lcudnn\n"),
        format!("link -L\nlink {cudnn}\nlink -l:libcudnn.so.9\n"),
    ] {
        let fixture = package("taken", "");
        fixture.write("src/main.rs", main);
        fixture.write("tools", &tools);
        let built = build(&fixture, &["--release"], None).success();
        assert_eq!(codes(&built), ["warning[CG146]"], "{tools}: {built}");
        let recorded = json!({"version": "9.15.1", "linkage": "linked", "known": "linked"});
        assert_eq!(manifest(&fixture.built("release/app"))["cudnn"], recorded, "{tools}: {built}");
    }
    for (linked, printed) in [("13.0", &[][..]), ("13.2", &["error[CG145]"])] {
        let library = parts::cuda(linked).join("lib64/libcudart.so");
        let fixture = package("taken", "");
        fixture.write("tools", nvcc("13.0") + &format!("link {}\n", library.display()));
        let built = build(&fixture, &["--release"], Some("13.0"));
        assert_eq!(codes(&built), printed, "{linked}: {built}");
        let _ = build(&fixture, &[], Some("13.0")).success();
        let recorded = json!({"linkage": "linked", "version": linked});
        assert_eq!(manifest(&fixture.built("debug/app"))["cudart"], recorded, "{built}");
    }
}

/// `CXX` and `PATH` suggest one compiler, but nvcc calls another.
#[e2e(slow)]
fn used_host_compiler_is_recorded() {
    let [clang, gcc] = ["clang++", "g++-11"].map(|name| tools::need(name).display().to_string());
    let version = |program: &str| Call::new(program).arg("-dumpversion").run().success().stdout.trim().to_owned();
    let full = |program: &str| Call::new(program).arg("-dumpfullversion").run().success().stdout.trim().to_owned();
    let (clang_said, gcc_said) = (format!("clang {}", version(&clang)), format!("gcc {}", full(&gcc)));
    for (used, suggested, printed) in [(&clang, &gcc, &clang_said), (&gcc, &clang, &gcc_said)] {
        let fixture = package("host", "");
        fixture.write("tools", format!("ccbin {used}\n") + &nvcc("13.0") + &cudart("13.0"));
        let built = call(&fixture, &["--release"], Some("13.0")).env("CXX", suggested).env("NVCC_CCBIN", suggested);
        let _ = built.run().success();
        let file = fixture.built("release/app");
        assert_eq!(manifest(&file)["host_compiler"], **printed);
        let comment = Call::new(tools::need("readelf")).args(["-p", ".comment"]).arg(&file).run().success();
        let (_, release) = printed.split_once(' ').expect("a release");
        assert!(comment.stdout.contains(release), "{release}: {comment}");
    }
    // If no file contains compiled code, the compiler from PATH is not recorded, even if CUDA is used.
    let fixture = package("nobody", "");
    fixture.write("tools", shared_cudart("13.0"));
    let main = "unsafe extern \"C\" { fn cudaGetDeviceCount(count: *mut i32) -> i32; }\n\
                fn main() { println!(\"{}\", unsafe { cudaGetDeviceCount(&mut 0) }) }\n";
    fixture.write("src/main.rs", main);
    let _ = build(&fixture, &["--release"], Some("13.0")).success();
    let manifest = manifest(&fixture.built("release/app"));
    assert!(manifest["cudart"]["linkage"] == "linked" && manifest["host_compiler"].is_null(), "{manifest:#}");
}

/// A variable selects archs, but the build script ignores it.
#[e2e(slow)]
fn missing_declared_arch_is_reported() {
    let fixture = package("declared", "");
    fixture.write("tools", nvcc("13.0") + &cudart("13.0"));
    let with = |archs: &str| call(&fixture, &["--release"], Some("13.0")).env("CUDAARCHS", archs).run().success();
    let reported = with("80;90");
    assert_eq!(codes(&reported), ["warning[CG128]"], "{reported}");
    assert!(reported.stderr.contains("are not built for sm_90, compute_90, which CUDAARCHS names."), "{reported}");
    assert_eq!(manifest(&fixture.built("release/app"))["archs"]["observed"], json!(["sm_80", "compute_80"]));
    let right = with("80");
    assert_eq!(codes(&right), [""; 0], "{right}");
}

/// `PATH` contains no nvcc, or suggests another host compiler. The lock records the used toolchain and is compared with it.
#[e2e(slow)]
fn lock_records_used_toolchain() {
    let clang = tools::need("clang++").display().to_string();
    let fixture = package("locked", "");
    let tools_of = |version: &str, ccbin: &str| format!("ccbin {ccbin}\n") + &nvcc(version) + &cudart(version);
    fixture.write("tools", tools_of("13.0", &clang));
    let lock = |toolkit: Option<&str>, words: &[&str]| call_of(&fixture, &[&["lock"], words].concat(), toolkit).run();
    assert_eq!(lock(None, &[]).status(), Some(2), "nothing tells yet");
    let _ = build(&fixture, &["--release"], None).success();
    let written = lock(None, &[]).success();
    assert!(written.stdout.contains("  toolkit: 13.0 (from the linked files)\n"), "{written}");
    let read = || std::fs::read_to_string(fixture.root.join("cudaguard.lock")).expect("it was written");
    let text = read();
    assert!(text.contains("toolkit = \"13.0\"") && text.contains("host-compiler = \"clang "), "{text}");
    let again = lock(None, &["--locked"]).success();
    assert!(again.stdout.contains("is up to date"), "{again}");
    let right = build(&fixture, &["--release", "--locked"], None).success();
    assert_eq!(codes(&right), [""; 0], "{right}");
    // Another compiler or another toolkit is detected from the file, the only evidence.
    for (version, ccbin, printed) in [
        ("13.0", "g++-11", "the host compiler differs from the lock"),
        ("13.2", &*clang, "the toolkit differs from the lock"),
    ] {
        fixture.change("tools", &tools_of(version, ccbin));
        let outcome = refused(&fixture, None);
        assert_eq!(codes(&outcome), ["error[CG107]"], "{outcome}");
        assert!(outcome.stderr.contains(printed), "{outcome}");
        let warned = build(&fixture, &[], None).success();
        assert_eq!(codes(&warned), ["warning[CG107]"], "{warned}");
        let insisted = build(&fixture, &["--locked"], None);
        assert!(insisted.status() != Some(0) && codes(&insisted) == ["error[CG107]"], "{insisted}");
    }
    assert_eq!(read(), text);
    // The lock is updated from the dev build.
    let _ = build(&fixture, &[], None).success();
    let accepted = lock(None, &[]).success();
    assert!(accepted.stdout.contains("toolkit: 13.0 → 13.2 (from the linked files)"), "{accepted}");
    for words in [&[][..], &["--release", "--locked"]] {
        let right = build(&fixture, words, None).success();
        assert_eq!(codes(&right), [""; 0], "{right}");
    }
    // PATH contains another toolkit now. No build used it yet, so the lock records it.
    let _ = lock(Some("13.0"), &[]).success();
    assert!(read().contains("toolkit = \"13.0.88\""), "{}", read());
}

/// The policy applies to the linked library, and may specify the headers.
#[e2e(slow)]
fn policy_checks_cudnn_without_headers() {
    let cudnn = parts::cudnn("9.15.1");
    let main = "unsafe extern \"C\" { fn cudnnGetVersion() -> usize; }\nfn main() { println!(\"{}\", unsafe { cudnnGetVersion() }) }\n";
    let fixture = package("asked", "");
    fixture.write("src/main.rs", main);
    fixture.write("tools", format!("search {}\nlink -lcudnn\n", cudnn.join("lib").display()));
    let linked = json!({"version": "9.15.1", "linkage": "linked", "known": "linked"});
    let declared = json!({"version": "9.14.0", "library": "9.15.1", "linkage": "linked", "known": "declared"});
    for (policy, printed, recorded) in [
        ("require = \"^9.1\"", &["warning[CG146]"][..], Some(&linked)),
        ("require = \"^9.20\"", &["error[CG113]", "warning[CG146]"], None),
        ("fleet = \"9.10\"", &["error[CG136]", "warning[CG146]"], None),
        ("built = \"9.14\"", &[], Some(&declared)),
        ("built = \"9.14\"\nrequire = \"^9.15\"", &["error[CG113]"], None),
    ] {
        fixture.change("cudaguard.toml", &format!("[cudnn]\n{policy}\n"));
        if let Some(recorded) = recorded {
            let built = build(&fixture, &["--release"], None).success();
            assert_eq!(codes(&built), printed, "{policy}: {built}");
            assert_eq!(&manifest(&fixture.built("release/app"))["cudnn"], recorded, "{policy}");
        } else {
            let refused = refused(&fixture, None);
            assert_eq!(codes(&refused), printed, "{policy}: {refused}");
        }
    }
}
