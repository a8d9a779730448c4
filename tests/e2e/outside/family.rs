//! NVIDIA's libraries that are released together: versions of real files, and findings about directories.

use std::fs;
use std::os::unix::fs::symlink;

use cudaguard_tests::{Call, Scratch, command, e2e, parts, tools};
use serde_json::Value;

#[e2e]
fn inspect_reads_released_versions() {
    for (file, name, version, from) in [
        (parts::part("nccl-2.19.3").join("lib/libnccl.so.2"), "nccl", Some("2.19.3"), Some("ncclGetVersion")),
        (parts::part("ptxas-12.4").join("bin/ptxas"), "ptxas", Some("12.4.131"), Some("text")),
        // cuBLAS returns the version of the cuBLASLt that is loaded, so its own file has none.
        (parts::part("cublas-13.0").join("lib/libcublas.so.13"), "cublas", None, None),
    ] {
        let library = &command::inspect(&file)["library"];
        let found = (library["name"].as_str(), library["version"].as_str(), library["read_from"].as_str());
        assert_eq!(found, (Some(name), version, from), "{}", file.display());
    }
    let text = command::call(["inspect"]).arg(parts::part("ptxas-12.4").join("bin/ptxas")).run().success();
    assert!(text.stdout.contains("12.4.131 (from: text)"), "{text}");
}

/// Creates an NVRTC of 12.6 with builtins of the given release.
fn nvrtc(name: &str, builtins: &str) -> Scratch {
    tools::need("cc");
    let scratch = Scratch::without_blanks(name);
    let version = "Cuda compilation tools, release 12.6, V12.6.77";
    let source =
        format!("const char *nvrtcName(int a) {{ return a ? \"{version}\" : \"libnvrtc-builtins.so.12.6\"; }}\n");
    scratch.file("nvrtc.c", source);
    scratch.file(
        "builtins.c",
        format!("void __nvrtc_builtins__{}_getBuiltinHeader(void) {{}}\n", builtins.replace('.', "_")),
    );
    fs::create_dir(scratch.join("lib")).expect("a folder");
    for (source, soname) in
        [("nvrtc.c", "libnvrtc.so.12".to_owned()), ("builtins.c", format!("libnvrtc-builtins.so.{builtins}"))]
    {
        let _ = Call::new("cc")
            .args([
                "-shared",
                "-fPIC",
                "-Wl,-rpath,$ORIGIN",
                source,
                &format!("-Wl,-soname,{soname}"),
                "-o",
                &format!("lib/{soname}"),
            ])
            .dir(scratch.path())
            .run()
            .success();
    }
    scratch
}

fn codes(report: &Value) -> Vec<&str> {
    report["findings"].as_array().into_iter().flatten().filter_map(|finding| finding["code"].as_str()).collect()
}

#[e2e]
fn mixed_nvrtc_is_reported() {
    let fits = nvrtc("family-fits", "12.6");
    assert_eq!(codes(&command::inspect(&fits.join("lib"))), [""; 0]);
    let mixed = nvrtc("family-mixed", "12.4");
    let report = command::inspect(&mixed.join("lib"));
    assert_eq!(codes(&report), ["CG231"], "{report}");
    let finding = &report["findings"][0];
    assert_eq!((finding["found"].as_str(), finding["part"].as_str()), (Some("12.6.77"), Some("12.4")), "{finding}");
}

/// NVRTC 12.4.127 compiles, or fails, in each of these arrangements: it searches the name in its file, and `$ORIGIN` in its RUNPATH is
/// the directory of the link through which it is loaded.
#[e2e(slow)]
fn builtins_are_found_like_nvrtc_does() {
    const BUILTINS: &str = "libnvrtc-builtins.so.12.6";
    for (builtins, link, is_found) in [
        ("app/lib/libnvrtc-builtins.so.12.6", false, true),
        ("app/other/libnvrtc-builtins.so.12.6", false, false),
        ("app/lib/libnvrtc-builtins-ef567890.so.12.6.77", false, false),
        ("app/store/libnvrtc-builtins.so.12.6", true, false),
        ("app/lib/libnvrtc-builtins.so.12.6", true, true),
    ] {
        let fixture = nvrtc("family-builtins", "12.6");
        for dir in ["app/lib", "app/other", "app/store"] {
            fs::create_dir_all(fixture.join(dir)).expect("a directory");
        }
        let copy = |from: &str, to: &str| fs::copy(fixture.join("lib").join(from), fixture.join(to)).expect("a copy");
        copy(BUILTINS, builtins);
        let main = "const char *nvrtcName(int); int main(int n, char **a) { (void)a; return n > 9 && nvrtcName(n); }\n";
        fixture.file("main.c", main);
        let call = Call::new("cc").args(["main.c", "lib/libnvrtc.so.12", "-Wl,-rpath,$ORIGIN/lib", "-o", "app/prog"]);
        let _ = call.dir(fixture.path()).run().success();
        if link {
            copy("libnvrtc.so.12", "app/store/libnvrtc.so.12");
            symlink("../store/libnvrtc.so.12", fixture.join("app/lib/libnvrtc.so.12")).expect("a link");
        } else {
            copy("libnvrtc.so.12", "app/lib/libnvrtc.so.12");
        }
        let dir = builtins.rsplit_once('/').map(|(dir, _)| fixture.join(dir)).unwrap_or_default();
        let is_in_path = is_found || builtins.ends_with(BUILTINS);
        for file in ["app", "app/prog"] {
            let described = ["verify", "--driver", "580.65.06", "--gpu", "A100"];
            for (words, library_path, is_found) in [
                (&described[..], None, is_found),
                (&described[..1], None, is_found),
                (&described[..1], Some(&dir), is_in_path),
                (&["doctor"], Some(&dir), is_in_path),
            ] {
                if file == "app" && words == ["doctor"] {
                    continue;
                }
                let call = command::call(words).arg(fixture.join(file));
                let outcome = match library_path {
                    Some(dir) => call.env("LD_LIBRARY_PATH", dir).run(),
                    None => call.run(),
                };
                let text = format!("{}{}", outcome.stdout, outcome.stderr);
                let is_reported = text.contains("NVRTC 12.6.77 comes without libnvrtc-builtins.so.12.6");
                assert_eq!(is_reported, !is_found, "{builtins} {link} {library_path:?}: {outcome}");
            }
        }
    }
}

/// The GPU code of a program that has none is what NVRTC compiles.
#[e2e]
fn compiled_code_decides_for_program_without_code() {
    let fixture = nvrtc("family-only-compiled", "12.6");
    let main = "const char *nvrtcName(int); int main(int n, char **a) { (void)a; return n > 9 && nvrtcName(n); }\n";
    fixture.file("main.c", main);
    let call = Call::new("cc").args(["main.c", "lib/libnvrtc.so.12", "-Wl,-rpath,$ORIGIN/lib", "-o", "prog"]);
    let _ = call.dir(fixture.path()).run().success();
    fs::remove_file(fixture.join("main.c")).expect("a file");
    for (driver, gpu, verdict, expected) in [
        ("560.35.03", "9.0", "runs", &[][..]),
        ("550.54.14", "9.0", "unknown", &["CG235", "CG521"]),
        ("580.65.06", "12.0", "unknown", &["CG236", "CG520"]),
    ] {
        for file in [fixture.join("prog"), fixture.path().to_owned()] {
            let outcome = command::call(["verify", "--json", "--driver", driver, "--gpu", gpu]).arg(&file).run();
            let report = outcome.json();
            let found: Vec<&str> = codes(&report).into_iter().filter(|code| *code != "CG513").collect();
            assert_eq!((report["verdict"].as_str(), &found[..]), (Some(verdict), expected), "{outcome}");
        }
    }
}
