//! Kernels that CMake compiles, and the libraries that they are linked with.

use std::path::Path;

use cudaguard_tests::{Call, Outcome, e2e, parts, tools};
use serde_json::json;

use super::{KERNEL, MAIN, codes, cudart, judged_as};
use crate::cmake::fixture::{Cmake, NINJA, Tree, include, toolkit, words};
use crate::record::external_tools;
use crate::record::fixture::manifest;

/// Returns a project with a kernel that CMake compiles, which links the files in `LINK`.
fn project(name: &str) -> Tree {
    let text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(app VERSION 0.1.0 LANGUAGES CXX CUDA)\n{}\
         add_executable(app main.cpp kernel.cu)\n\
         target_link_libraries(app PRIVATE ${{LINK}} dl rt pthread)\ncudaguard_embed(app)\n",
        include(),
    );
    Tree::new(name, Cmake::Oldest, NINJA, &[("CMakeLists.txt", &text), ("main.cpp", MAIN), ("kernel.cu", KERNEL)])
}

/// Returns CMake's options for the CUDA compiler. CMake adds no libraries.
fn compiler(words: &[String]) -> Vec<String> {
    let also = ["-DCMAKE_CUDA_ARCHITECTURES=80", "-DCMAKE_CUDA_RUNTIME_LIBRARY=None"].map(str::to_owned);
    [words, &also].concat()
}

fn build(tree: &Tree, known: &[String], configuration: &str, link: &[&Path]) -> Outcome {
    let link: Vec<_> = link.iter().map(|file| file.display().to_string()).collect();
    let chosen = [format!("-DCMAKE_BUILD_TYPE={configuration}"), format!("-DLINK={}", link.join(";"))];
    let _ = tree.configure(&words(&[known, &chosen].concat())).run().success();
    tree.build(&[]).run()
}

#[e2e(slow)]
fn nvcc_and_cudart_mismatch_is_reported() {
    let (tree, known) = (project("cudarts"), compiler(&toolkit("11.8")));
    judged_as(&tree, "CG145", |configuration| build(&tree, &known, configuration, &[&cudart("13.0")]));
    let file = tree.built("app");
    let manifest = manifest(&file);
    assert_eq!(manifest["cudart"], json!({"linkage": "static", "version": "13.0"}), "{manifest:#}");
    assert_eq!(manifest["toolkit"]["known"], "observed");
    assert!(manifest["toolkit"]["version"].as_str().is_some_and(|version| version.starts_with("11.8")));
    assert_eq!(external_tools::makers(&file), ["11.8".to_owned()].into());
    assert!(external_tools::has_cudart(&file, "13.0"));
}

/// `PATH` and variables do not affect CMake after it has selected its compiler, even if `PATH` has no nvcc.
#[e2e(slow)]
fn path_and_variables_are_ignored() {
    let (tree, known) = (project("named"), compiler(&toolkit("13.0")));
    let chosen = [format!("-DLINK={}", cudart("13.0").display()), "-DCMAKE_BUILD_TYPE=Release".to_owned()];
    for other in [Some("11.8"), Some("13.2"), None] {
        let around = |call: Call| {
            let Some(other) = other.map(parts::cuda) else { return call };
            let path = parts::path(&["make", "ninja"]);
            let mut dirs = vec![other.join("bin")];
            dirs.extend(std::env::split_paths(&path));
            let call = call.env("PATH", std::env::join_paths(dirs).expect("no colons"));
            ["CUDA_HOME", "CUDA_PATH", "CUDAToolkit_ROOT"].into_iter().fold(call, |call, name| call.env(name, &other))
        };
        let _ = around(tree.configure(&words(&[&known[..], &chosen[..]].concat()))).run().success();
        touch(&tree);
        let built = around(tree.build(&[])).run().success();
        assert_eq!(codes(&built), [""; 0], "{other:?}: {built}");
        let manifest = manifest(&tree.built("app"));
        assert_eq!(manifest["toolkit"], json!({"version": "13.0.88", "known": "observed"}), "{other:?}");
        assert_eq!(external_tools::makers(&tree.built("app")), ["13.0".to_owned()].into());
    }
}

fn touch(tree: &Tree) {
    tree.write("kernel.cu", KERNEL);
    tree.write("main.cpp", MAIN);
}

/// clang compiles the kernels: the archs come from its options, and the toolkit is the one whose tools it used.
#[e2e(slow)]
fn clang_kernels_are_recorded() {
    let clang = tools::need("clang++").display().to_string();
    let tree = project("clang");
    let known = [
        format!("-DCMAKE_CUDA_COMPILER={clang}"),
        format!("-DCUDAToolkit_ROOT={}", parts::cuda("11.8").display()),
        "-DCMAKE_CUDA_ARCHITECTURES=75;80-real".to_owned(),
        "-DCMAKE_CUDA_RUNTIME_LIBRARY=None".to_owned(),
    ];
    let built = build(&tree, &known, "Release", &[&cudart("11.8")]).success();
    assert_eq!(codes(&built), [""; 0], "{built}");
    let file = tree.built("app");
    let right = manifest(&file);
    assert_eq!(right["archs"]["observed"], json!(["sm_75", "sm_80", "compute_75"]), "{right:#}");
    assert_eq!(right["toolkit"], json!({"version": "11.8.0", "known": "observed"}));
    assert_eq!(right["cudart"], json!({"linkage": "static", "version": "11.8"}));
    assert!(right["host_compiler"].as_str().is_some_and(|name| name.starts_with("clang ")), "{right:#}");
    assert_eq!(external_tools::makers(&file), ["11.8".to_owned()].into());
    judged_as(&tree, "CG145", |configuration| build(&tree, &known, configuration, &[&cudart("13.0")]));
    // The policy's archs are compared with clang's output.
    tree.write("cudaguard.toml", "[gpu]\narchs = [\"sm_75\", \"sm_80\", \"compute_75\"]\n");
    let built = build(&tree, &known, "Release", &[&cudart("11.8")]).success();
    assert_eq!(codes(&built), [""; 0], "{built}");
    tree.write("cudaguard.toml", "[gpu]\narchs = [\"sm_75\", \"sm_86\"]\n");
    let refused = build(&tree, &known, "Release", &[&cudart("11.8")]);
    assert!(refused.status() != Some(0) && !tree.built("app").exists(), "{refused}");
}
