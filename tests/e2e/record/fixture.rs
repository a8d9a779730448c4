//! A package whose build script calls the nvcc that a file names, and links the cudart that it names.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cudaguard_tests::compiled_once::nvcc_once;
use cudaguard_tests::{Call, Outcome, Scratch, command, parts, tools};
use serde_json::Value;

use super::external_tools;
use crate::wrapper::fixture::Fixture;

/// Build script that reads `tools`: the root of a toolkit for each kernel, also for those of `made elsewhere`, and the
/// linked files. It reruns only if that file changes.
const BUILD_RS: &str = r#"use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=tools");
    let out = env::var("OUT_DIR").unwrap();
    let mut ccbin: Option<String> = None;
    for (number, line) in fs::read_to_string("tools").unwrap().lines().enumerate() {
        let (word, value) = line.split_once(' ').unwrap();
        match word {
            "nvcc" => {
                let object = format!("{out}/kernel{number}.o");
                let mut nvcc = Command::new(format!("{value}/bin/nvcc"));
                nvcc.args(["-arch=sm_80", "-c"]);
                if let Some(ccbin) = &ccbin {
                    nvcc.args(["-ccbin", ccbin]);
                } else if value.ends_with("11.8") {
                    nvcc.args(["-ccbin", "g++-11"]);
                }
                nvcc_once(nvcc, "kernel.cu".as_ref(), object.as_ref());
                println!("cargo:rustc-link-arg={object}");
            }
            "ccbin" => ccbin = Some(value.to_owned()),
            "search" => println!("cargo:rustc-link-search=native={value}"),
            "link" => println!("cargo:rustc-link-arg={value}"),
            _ => panic!("{line}"),
        }
    }
    for library in ["-lstdc++", "-ldl", "-lrt", "-lpthread"] {
        println!("cargo:rustc-link-arg={library}");
    }
}
"#;

const KERNEL: &str = "static __global__ void fill(int *p) { *p = 1; }\n\
                      extern \"C\" __attribute__((weak)) int launch() { fill<<<1, 1>>>(nullptr); return 0; }\n";

/// Kernel of a third-party library.
pub(crate) const OTHER: &str = "static __global__ void other(int *p) { *p = 2; }\n\
                     extern \"C\" int other_launch() { other<<<1, 1>>>(nullptr); return 0; }\n";

const MAIN: &str =
    "unsafe extern \"C\" { fn launch() -> i32; }\nfn main() { std::process::exit(unsafe { launch() }) }\n";

/// Returns a line of `tools` that links a toolkit's static cudart.
pub(crate) fn cudart(version: &str) -> String {
    format!("link {}\n", parts::cuda(version).join("lib64/libcudart_static.a").display())
}

/// Returns lines of `tools` that link a toolkit's shared cudart.
pub(crate) fn shared_cudart(version: &str) -> String {
    format!("search {}\nlink -lcudart\n", parts::cuda(version).join("lib64").display())
}

/// Returns a line of `tools` that compiles a kernel with this toolkit.
pub(crate) fn nvcc(version: &str) -> String {
    if version == "11.8" {
        let _ = tools::need("g++-11");
    }
    format!("nvcc {}\n", parts::cuda(version).display())
}

/// Builds a library with a kernel of this toolkit, outside the package. Returns the lines of `tools` that link it.
pub(crate) fn made_elsewhere(fixture: &Fixture, version: &str) -> String {
    let (source, object) = (fixture.sibling("elsewhere/other.cu"), fixture.sibling("elsewhere/other.o"));
    cudaguard_tests::scratch::write(&source, OTHER);
    let mut call = Call::new(parts::cuda(version).join("bin/nvcc"));
    if version == "11.8" {
        call = call.arg("-ccbin").arg(tools::need("g++-11"));
    }
    let _ = call.args(["-arch=sm_80", "-c"]).arg(source).arg("-o").arg(&object).run().success();
    format!("link {}\n", object.display())
}

/// Creates the package with this policy.
pub(crate) fn package(name: &str, policy: &str) -> Fixture {
    Fixture::new(
        name,
        &[
            ("Cargo.toml", &(crate::wrapper::fixture::package("app", "") + "\n[workspace]\n")),
            ("build.rs", &(BUILD_RS.to_owned() + &nvcc_once())),
            ("kernel.cu", KERNEL),
            ("src/main.rs", MAIN),
            ("cudaguard.toml", policy),
        ],
    )
}

/// Returns a `PATH` whose only toolkit has this root, or none if it is `None`.
pub(crate) fn path(toolkit: Option<&Path>) -> OsString {
    let mut dirs: Vec<_> = toolkit.map(|root| root.join("bin")).into_iter().collect();
    let all = std::env::var_os("PATH").expect("a PATH");
    dirs.extend(std::env::split_paths(&all).filter(|dir| !dir.join("nvcc").exists()));
    std::env::join_paths(dirs).expect("no colons")
}

/// Builds with this toolkit in `PATH`.
pub(crate) fn build(fixture: &Fixture, words: &[&str], toolkit: Option<&str>) -> Outcome {
    call(fixture, words, toolkit).run()
}

/// Returns a build call to which variables may be added.
pub(crate) fn call(fixture: &Fixture, words: &[&str], toolkit: Option<&str>) -> Call {
    call_of(fixture, &[&["build"], words].concat(), toolkit)
}

/// Returns a call of any subcommand.
pub(crate) fn call_of(fixture: &Fixture, words: &[&str], toolkit: Option<&str>) -> Call {
    with_toolkit(fixture.guard(words), toolkit.map(parts::cuda).as_deref())
}

/// Adds the toolkit with this root to `PATH`, removes others, and selects a host compiler that all toolkits here accept.
pub(crate) fn with_toolkit(call: Call, root: Option<&Path>) -> Call {
    let _ = tools::need("g++-11");
    let call = call.env("PATH", path(root)).env("NVCC_CCBIN", "g++-11").env("CXX", "g++-11");
    ["CUDA_HOME", "CUDA_PATH", "CUDACXX", "NVCC"].into_iter().fold(call, Call::env_remove)
}

/// Runs a release build and checks that it is refused.
#[track_caller]
pub(crate) fn refused(fixture: &Fixture, toolkit: Option<&str>) -> Outcome {
    let outcome = build(fixture, &["--release"], toolkit);
    assert!(outcome.status() != Some(0) && outcome.stderr.contains("app 0.1.0 was not built"), "{outcome}");
    assert!(!fixture.built("release/app").exists(), "nothing is left: {outcome}");
    outcome
}

/// Returns the toolkit releases that compiled the GPU code in a file, as cuobjdump and binutils show them.
pub(crate) fn independently(file: &Path) -> BTreeSet<String> {
    let scratch = Scratch::new("listed");
    let lister = parts::cuda("13.2").join("bin/cuobjdump");
    let _ = Call::new(lister).args(["-xelf", "all"]).arg(file).dir(scratch.path()).run();
    let mut images: Vec<PathBuf> =
        std::fs::read_dir(scratch.path()).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    if images.is_empty() {
        // PTX is stored as text.
        images.push(file.to_owned());
    }
    let mut releases = BTreeSet::new();
    for image in images {
        let reported = Call::new(tools::need("strings")).arg("-a").arg(&image).run().success().stdout;
        let release = |line: &str| Some(line.split_once("tools, release ")?.1.split(',').next()?.to_owned());
        let mut noted: BTreeSet<String> = reported.lines().filter_map(release).collect();
        if noted.is_empty() {
            // Up to ELF ABI 7, the version in the header is the release times ten.
            let header = Call::new(tools::need("readelf")).arg("-h").arg(&image).run().success().stdout;
            let version = header.lines().filter_map(|line| line.trim().strip_prefix("Version:")).next_back();
            let version = version.and_then(|text| u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok());
            noted.extend(version.map(|number| format!("{}.{}", number / 10, number % 10)));
        }
        releases.extend(noted);
    }
    releases
}

/// Returns the codes of the printed findings with their severity, such as `error[CG144]`.
pub(crate) fn codes(outcome: &Outcome) -> Vec<String> {
    let head = |line: &str| {
        let (head, _) = line.split_once("]: ")?;
        let known = ["error[CG", "warning[CG", "info[CG"].iter().any(|start| head.starts_with(start));
        known.then(|| format!("{head}]"))
    };
    outcome.stderr.lines().filter_map(head).collect()
}

/// Returns the manifest of the package in a file. Checks that it matches what other tools see.
pub(crate) fn manifest(file: &Path) -> Value {
    let manifest = command::inspect(file)["components"][0].clone();
    let release = |version: &Value| {
        let version = version.as_str().unwrap_or_default();
        version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
    };
    let makers = external_tools::makers(file);
    if !makers.is_empty() {
        let other_versions = manifest["toolkit"]["besides"].as_array().into_iter().flatten().map(release);
        let recorded: BTreeSet<String> = other_versions.chain([release(&manifest["toolkit"]["version"])]).collect();
        assert!(makers.is_subset(&recorded), "made by {makers:?}: {manifest:#}");
    }
    if let (Some("static"), Some(version)) =
        (manifest["cudart"]["linkage"].as_str(), manifest["cudart"]["version"].as_str())
    {
        assert!(external_tools::has_cudart(file, version), "{version}: {manifest:#}");
    }
    manifest
}
