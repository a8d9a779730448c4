//! Builds by cargo.

use cudaguard_tests::{e2e, parts};
use serde_json::json;

use super::fixture::{build, call, codes, cudart, manifest, nvcc, package, refused};

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
