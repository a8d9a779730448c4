//! The environment of a cargo build: other names of the same toolkit produce no finding, and another toolkit is reported
//! for each way to select it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use cudaguard_tests::{Call, Scratch, e2e, layout, parts, scratch};

use super::fixture::{call, call_of, codes, cudart, manifest, nvcc, package};
use crate::wrapper::cache::host;
use crate::wrapper::fixture::{Fixture, package as head};

/// Environment variables of a build.
type Variables = Vec<(&'static str, OsString)>;

/// Returns a `PATH` that begins with this directory and contains no toolkit of the machine.
fn path(dir: &Path) -> OsString {
    let rest = super::fixture::path(None);
    let all: Vec<PathBuf> = std::iter::once(dir.to_owned()).chain(std::env::split_paths(&rest)).collect();
    std::env::join_paths(all).expect("no colons")
}

/// Creates a directory with a script that replaces nvcc, like those of compiler caches and environment modules.
fn wrapped(fixture: &Fixture, version: &str) -> PathBuf {
    let dir = fixture.sibling(&format!("wrapped-{version}"));
    let script = format!("#!/bin/sh\nexec '{}' \"$@\"\n", parts::cuda(version).join("bin/nvcc").display());
    scratch::program(&dir.join("nvcc"), &script);
    dir
}

/// Creates a symbolic link to a toolkit.
fn linked(fixture: &Fixture, version: &str) -> PathBuf {
    let link = fixture.sibling(&format!("cuda-{version}"));
    layout::link(&parts::cuda(version), &link);
    link
}

/// Returns an nvcc command with the prefix `ccache`. Build scripts split the value at blanks.
fn behind_ccache(dir: &Scratch, version: &str) -> OsString {
    let link = dir.join(format!("cuda-{version}"));
    layout::link(&parts::cuda(version), &link);
    format!("ccache {}", link.join("bin/nvcc").display()).into()
}

#[e2e(slow)]
fn toolkit_aliases_are_one_toolkit() {
    let root = parts::cuda("13.0");
    let fixture = package("named", "");
    fixture.write("tools", nvcc("13.0") + &cudart("13.0"));
    let (wrapped, linked) = (wrapped(&fixture, "13.0"), linked(&fixture, "13.0"));
    let plain = Scratch::without_blanks("named");
    let text = |path: &Path, end: &str| -> OsString { format!("{}{end}", path.display()).into() };
    let usual = || path(&root.join("bin"));
    let surroundings: Vec<(&str, Variables)> = vec![
        ("slashes", vec![("PATH", path(&root.join("bin/"))), ("CUDA_PATH", text(&root, "//"))]),
        ("a link", vec![("PATH", usual()), ("CUDA_HOME", text(&linked, ""))]),
        ("links", vec![("PATH", path(&linked.join("bin"))), ("CUDA_HOME", text(&root, "/"))]),
        ("a wrapper", vec![("PATH", path(&wrapped)), ("CUDA_HOME", text(&root, ""))]),
        ("ccache", vec![("NVCC", behind_ccache(&plain, "13.0"))]),
        ("compilers", vec![("PATH", usual()), ("CC", "gcc -m64".into()), ("CXX", "ccache g++ -m64".into())]),
        ("no such host", vec![("PATH", usual()), ("CUDAHOSTCXX", "/nowhere/g++".into())]),
        ("empty", vec![("PATH", usual()), ("CUDA_HOME", "".into()), ("CUDNN_PATH", "".into()), ("CXX", "".into())]),
        ("a target", vec![("PATH", usual()), ("CARGO_BUILD_TARGET", host().into())]),
        ("elsewhere", vec![("PATH", usual()), ("CARGO_TARGET_DIR", text(&fixture.sibling("elsewhere"), ""))]),
    ];
    for (name, variables) in surroundings {
        fixture.change("src/main.rs", &format!("{MAIN}// {name}\n"));
        let built = around(call(&fixture, &["--release"], None), &variables).run().success();
        assert_eq!(codes(&built), [""; 0], "{name}: {built}");
        assert!(built.stderr.contains("1 of 1 target guarded (CUDA 13.0)"), "{name}: {built}");
        let file = match name {
            "a target" => fixture.built(&format!("{}/release/app", host())),
            "elsewhere" => fixture.sibling("elsewhere/release/app"),
            _ => fixture.built("release/app"),
        };
        let toolkit = manifest(&file)["toolkit"].clone();
        assert!(toolkit["version"].as_str().is_some_and(|version| version.starts_with("13.0")), "{name}: {toolkit}");
    }
}

fn around(call: Call, variables: &[(&str, OsString)]) -> Call {
    variables.iter().fold(call, |call, (variable, value)| call.env(variable, value))
}

const MAIN: &str =
    "unsafe extern \"C\" { fn launch() -> i32; }\nfn main() { std::process::exit(unsafe { launch() }) }\n";

/// The build script still compiles with 13.0.
#[e2e(slow)]
fn other_toolkit_is_found_by_aliases() {
    let fixture = package("other", "");
    fixture.write("tools", nvcc("13.0") + &cudart("13.0"));
    let other = parts::cuda("13.2");
    let plain = Scratch::without_blanks("named");
    let configured = format!("[env]\nNVCC = \"{}\"\n", other.join("bin/nvcc").display());
    let in_path = || ("PATH", path(&other.join("bin")));
    let surroundings: Vec<(&str, &str, Variables)> = vec![
        ("a wrapper", "", vec![("PATH", path(&wrapped(&fixture, "13.2")))]),
        ("a link", "", vec![("PATH", path(&linked(&fixture, "13.2").join("bin")))]),
        ("ccache", "", vec![("NVCC", behind_ccache(&plain, "13.2"))]),
        ("cargo's configuration", &configured, vec![]),
        ("a target", "", vec![in_path(), ("CARGO_BUILD_TARGET", host().into())]),
        ("elsewhere", "", vec![in_path(), ("CARGO_TARGET_DIR", fixture.sibling("elsewhere").into())]),
    ];
    for (name, configured, variables) in surroundings {
        fixture.write(".cargo/config.toml", configured);
        fixture.change("src/main.rs", &format!("{MAIN}// {name}\n"));
        let refused = around(call(&fixture, &["--release"], None), &variables).run();
        assert!(refused.status() != Some(0) && codes(&refused) == ["error[CG144]"], "{name}: {refused}");
        let places = [
            fixture.built("release/app"),
            fixture.built(&format!("{}/release/app", host())),
            fixture.sibling("elsewhere/release/app"),
        ];
        assert!(!places.iter().any(|file| file.exists()), "{name}: {refused}");
        // A dev build warns, and the manifest records the components that were compiled and linked.
        let warned = around(call(&fixture, &[], None), &variables).run().success();
        assert_eq!(codes(&warned), ["warning[CG144]"], "{name}: {warned}");
        let places = places.map(|file| PathBuf::from(file.display().to_string().replace("/release/", "/debug/")));
        let built = places.iter().find(|file| file.exists()).unwrap_or_else(|| panic!("{name}: {warned}"));
        let known = serde_json::json!({"version": "13.0.0", "known": "observed"});
        assert_eq!(manifest(built)["toolkit"], known, "{name}");
        for file in places {
            let _ = fs::remove_file(file);
        }
    }
}

/// Each member is checked by its own code. A lock for both is impossible, and the command reports this.
#[e2e(slow)]
fn members_may_use_different_toolkits() {
    let whole = package("whole", "");
    let text = |name: &str| fs::read_to_string(whole.root.join(name)).expect("just written");
    let (script, kernel) = (text("build.rs"), text("kernel.cu"));
    let fixture =
        Fixture::new("members", &[("Cargo.toml", "[workspace]\nmembers = [\"one\", \"two\"]\nresolver = \"2\"\n")]);
    for (member, version) in [("one", "13.0"), ("two", "13.2")] {
        fixture.write(&format!("{member}/Cargo.toml"), head(member, ""));
        fixture.write(&format!("{member}/build.rs"), &script);
        fixture.write(&format!("{member}/kernel.cu"), &kernel);
        fixture.write(&format!("{member}/src/main.rs"), MAIN);
        fixture.write(&format!("{member}/tools"), nvcc(version) + &cudart(version));
    }
    let built = call(&fixture, &["--release"], None).run().success();
    assert_eq!(codes(&built), [""; 0], "{built}");
    assert!(built.stderr.contains("2 of 2 targets guarded (CUDA 13.0; CUDA 13.2)"), "{built}");
    for (member, version) in [("one", "13.0.0"), ("two", "13.2.0")] {
        assert_eq!(manifest(&fixture.built(&format!("release/{member}")))["toolkit"]["version"], version);
    }
    let lock = call_of(&fixture, &["lock"], None).run().expect(2);
    let words = "were last built with different toolkits, but a lock can contain only one: 13.0 (one), 13.2 (two)";
    assert!(lock.stderr.contains(words) && !fixture.root.join("cudaguard.lock").exists(), "{lock}");
    // The toolkit in PATH matches only one member.
    let refused = call(&fixture, &["--release"], Some("13.0")).run();
    assert!(refused.status() != Some(0) && codes(&refused) == ["error[CG144]"], "{refused}");
    assert!(refused.stderr.contains("two contains code from CUDA 13.2"), "{refused}");
    assert!(!fixture.built("release/two").exists(), "{refused}");
}
