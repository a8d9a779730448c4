//! NVIDIA's libraries that are released together: versions of real files, and findings about directories.

use std::path::Path;

use cudaguard_tests::{Call, Scratch, Test, command, parts, tests, tools};
use serde_json::Value;

pub(crate) fn tests() -> Vec<Test> {
    tests![inspect_reads_released_versions, mixed_nvrtc_is_reported, compiler_is_checked_against_machine]
}

fn inspect(file: &Path) -> Value {
    let outcome = command::call(["inspect", "--json"]).arg(file).run().success();
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome}"))
}

fn inspect_reads_released_versions() {
    for (file, name, version, from) in [
        (parts::part("nccl-2.19.3").join("lib/libnccl.so.2"), "nccl", Some("2.19.3"), Some("ncclGetVersion")),
        (parts::part("ptxas-12.4").join("bin/ptxas"), "ptxas", Some("12.4.131"), Some("text")),
        // cuBLAS returns the version of the cuBLASLt that is loaded, so its own file has none.
        (parts::part("cublas-13.0").join("lib/libcublas.so.13"), "cublas", None, None),
    ] {
        let library = &inspect(&file)["library"];
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
    scratch.file("nvrtc.c", format!("const char *nvrtcName(void) {{ return \"{version}\"; }}\n"));
    scratch.file(
        "builtins.c",
        format!("void __nvrtc_builtins__{}_getBuiltinHeader(void) {{}}\n", builtins.replace('.', "_")),
    );
    std::fs::create_dir(scratch.join("lib")).expect("a folder");
    for (source, soname) in
        [("nvrtc.c", "libnvrtc.so.12".to_owned()), ("builtins.c", format!("libnvrtc-builtins.so.{builtins}"))]
    {
        let _ = Call::new("cc")
            .args(["-shared", "-fPIC", source, &format!("-Wl,-soname,{soname}"), "-o", &format!("lib/{soname}")])
            .dir(scratch.path())
            .run()
            .success();
    }
    scratch
}

fn codes(report: &Value) -> Vec<&str> {
    report["findings"].as_array().into_iter().flatten().filter_map(|finding| finding["code"].as_str()).collect()
}

fn mixed_nvrtc_is_reported() {
    let fits = nvrtc("family-fits", "12.6");
    assert_eq!(codes(&inspect(&fits.join("lib"))), [""; 0]);
    let mixed = nvrtc("family-mixed", "12.4");
    let report = inspect(&mixed.join("lib"));
    assert_eq!(codes(&report), ["CG231"], "{report}");
    let finding = &report["findings"][0];
    assert_eq!((finding["found"].as_str(), finding["part"].as_str()), (Some("12.6.77"), Some("12.4")), "{finding}");
}

fn compiler_is_checked_against_machine() {
    let mixed = nvrtc("family-machine", "12.4");
    for (driver, gpu, expected) in [
        ("550.54.14", "9.0", &["CG231", "CG235"][..]),
        ("560.35.03", "9.0", &["CG231"]),
        ("580.65.06", "12.0", &["CG231", "CG236"]),
    ] {
        let outcome =
            command::call(["verify", "--json", "--driver", driver, "--gpu", gpu]).arg(mixed.join("lib")).run();
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome}"));
        let mut found = codes(&report);
        found.sort_unstable();
        assert_eq!(found, expected, "{driver} {gpu}: {report}");
    }
}
