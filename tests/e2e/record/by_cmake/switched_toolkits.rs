//! The toolkit changes under an existing build directory, and the build tool keeps objects, correctly or not. The manifest
//! never records the new toolkit for old code.

use std::fs;
use std::path::PathBuf;

use cudaguard_tests::{Call, Outcome, Scratch, Test, layout, parts, rows, tools};
use serde_json::Value;

use super::{KERNEL, MAIN, codes};
use crate::cmake::fixture::{Cmake, MAKE, MULTI, NINJA, Tree, include};
use crate::record::external_tools;
use crate::record::fixture::manifest;

pub(super) fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    tests.extend(
        rows(
            "by_cmake::switched_toolkits::toolkit_replaced_in_place_rebuilds",
            [("make", (MAKE, "13.2", "13.0", true)), ("ninja_multi", (MULTI, "11.8", "13.0", false))],
            toolkit_replaced_in_place_rebuilds,
        )
        .map(Test::slow),
    );
    tests.extend(
        rows(
            "by_cmake::switched_toolkits::other_nvcc_in_path_rebuilds",
            [("ninja", NINJA)],
            other_nvcc_in_path_rebuilds,
        )
        .map(Test::slow),
    );
    tests
}

fn project(generator: &'static str) -> Tree {
    let text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(app VERSION 0.1.0 LANGUAGES CXX CUDA)\n{}\
         add_executable(app main.cpp kernel.cu)\ncudaguard_embed(app)\n",
        include(),
    );
    let files = [("CMakeLists.txt", &*text), ("main.cpp", MAIN), ("kernel.cu", KERNEL), ("cudaguard.toml", "")];
    Tree::new("switched", Cmake::Oldest, generator, &files)
}

fn file(tree: &Tree, generator: &str, configuration: &str) -> PathBuf {
    tree.built(&if generator == MULTI { format!("{configuration}/app") } else { "app".to_owned() })
}

/// Returns a directory without blanks: CMake parses directories from nvcc's output, and cannot link if the toolkit's path
/// has a blank.
fn place_of_toolkits() -> Scratch {
    Scratch::without_blanks("switched-toolkits")
}

/// Selects a host compiler that all toolkits here accept.
fn host() -> String {
    format!("-DCMAKE_CUDA_HOST_COMPILER={}", tools::need("g++-11").display())
}

fn configure(tree: &Tree, words: &[&str], around: impl Fn(Call) -> Call) {
    let usual = [host(), "-DCMAKE_CUDA_ARCHITECTURES=80".to_owned(), "-DCMAKE_BUILD_TYPE=Release".to_owned()];
    let _ = around(tree.configure(words).args(usual)).run().success();
}

fn build(tree: &Tree, configuration: &str) -> Outcome {
    tree.build(&["--config", configuration]).run()
}

/// Checks that the manifest matches the contents of the file, as other tools read them.
#[track_caller]
fn is_honest(tree: &Tree, generator: &str, configuration: &str) -> (String, Value) {
    let file = file(tree, generator, configuration);
    let (makers, manifest) = (external_tools::makers(&file), manifest(&file));
    let toolkit = manifest["toolkit"]["version"].as_str().expect("a toolkit");
    let [maker] = makers.iter().collect::<Vec<_>>()[..] else { panic!("one kernel, made once: {makers:?}") };
    assert!(toolkit.starts_with(maker), "{generator}: {maker} made it, and on record is {manifest:#}");
    let cudart = manifest["cudart"]["version"].as_str().expect("a cudart");
    assert!(external_tools::has_cudart(&file, cudart), "{generator}: {cudart}");
    assert_eq!(manifest["toolkit"]["besides"].as_array().map_or(0, Vec::len), 0, "{manifest:#}");
    (maker.clone(), manifest)
}

/// Builds after a change from `old` to `new`, and touches one source after the other. `kept` is true if the build tool
/// keeps the old toolkit's kernel until its source is touched.
fn after_the_switch(tree: &Tree, generator: &'static str, old: &str, new: &str, kept: bool) {
    let at = |what: &str| format!("{old} to {new} by {generator}, {what}");
    let silent = |what: &str, maker: &str| {
        let built = build(tree, "Release").success();
        assert_eq!(codes(&built), [""; 0], "{}: {built}", at(what));
        let (found, _) = is_honest(tree, generator, "Release");
        assert_eq!(found, maker, "{}: {built}", at(what));
    };
    silent("nothing touched", if kept { old } else { new });
    tree.write("main.cpp", MAIN);
    if kept {
        let refused = build(tree, "Release");
        assert!(refused.status() != Some(0) && !file(tree, generator, "Release").exists(), "{refused}");
        assert_eq!(codes(&refused), ["error[CG144]", "error[CG145]"], "{}: {refused}", at("kept"));
        tree.write("cudaguard.toml", "[build]\nrelease = \"warn\"\n");
        let warned = build(tree, "Release").success();
        assert_eq!(codes(&warned), ["warning[CG144]", "warning[CG145]"], "{}: {warned}", at("kept"));
        let (found, manifest) = is_honest(tree, generator, "Release");
        assert_eq!((&*found, &manifest["cudart"]["version"]), (old, &new.into()), "{}: {manifest:#}", at("kept"));
        tree.write("cudaguard.toml", "");
    } else {
        silent("the program's own source touched", new);
    }
    tree.write("kernel.cu", KERNEL);
    silent("the kernel's source touched", new);
}

/// The files of another toolkit replace the first one in place. They are older than all outputs that the first one built.
fn toolkit_replaced_in_place_rebuilds((generator, old, new, kept): (&'static str, &'static str, &'static str, bool)) {
    // Another major has other headers, and those of the old one are gone.
    let tree = project(generator);
    let outside = place_of_toolkits();
    let place = outside.join("cuda");
    layout::farm(&parts::cuda(old), &place);
    configure(&tree, &[&format!("-DCMAKE_CUDA_COMPILER={}", place.join("bin/nvcc").display())], |call| call);
    let _ = build(&tree, "Release").success();
    assert_eq!(is_honest(&tree, generator, "Release").0, old);
    fs::remove_dir_all(&place).expect("it was laid out");
    layout::farm(&parts::cuda(new), &place);
    after_the_switch(&tree, generator, old, new, kept);
}

/// CMake caches the detected compiler. Without its cache it detects the new one and recompiles.
fn other_nvcc_in_path_rebuilds(generator: &'static str) {
    let tree = project(generator);
    let with = |version: &str| {
        let bin = parts::cuda(version).join("bin");
        move |call: Call| {
            let path = parts::path(&["make", "ninja"]);
            let dirs = std::iter::once(bin.clone()).chain(std::env::split_paths(&path));
            call.env("PATH", std::env::join_paths(dirs).expect("no colons")).env("CUDACXX", bin.join("nvcc"))
        }
    };
    configure(&tree, &[], with("13.0"));
    let _ = build(&tree, "Release").success();
    configure(&tree, &[], with("13.2"));
    tree.write("kernel.cu", KERNEL);
    let built = with("13.2")(tree.build(&["--config", "Release"])).run().success();
    assert_eq!(codes(&built), [""; 0], "{built}");
    assert_eq!(is_honest(&tree, generator, "Release").0, "13.0", "{generator}: CMake's cache names it");
    fs::remove_file(tree.built("CMakeCache.txt")).expect("it was configured");
    configure(&tree, &[], with("13.2"));
    let built = build(&tree, "Release").success();
    assert_eq!(codes(&built), [""; 0], "{built}");
    assert_eq!(is_honest(&tree, generator, "Release").0, "13.2", "{built}");
}
