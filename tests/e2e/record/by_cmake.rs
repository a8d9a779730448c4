//! Builds by CMake.

mod toolkits;

use std::path::{Path, PathBuf};

use cudaguard_tests::{Call, Outcome, e2e, once, parts, tools};
use serde_json::{Value, json};

use super::fixture::manifest;
use crate::cmake::fixture::{Cmake, NINJA, Tree, include, printed};

const KERNEL: &str = "__global__ void fill(int *p) { *p = 1; }\n\
                      extern \"C\" int launch() { fill<<<1, 1>>>(nullptr); return 0; }\n";
const MAIN: &str = "extern \"C\" int launch();\nint main() { return launch(); }\n";

/// Returns a program that links an object with a kernel. CMake does not know how the object was built.
fn tree(name: &str, before: &str, policy: &str) -> Tree {
    let text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(app VERSION 0.1.0 LANGUAGES CXX)\n{before}\n{}\
         add_executable(app main.cpp)\ntarget_link_libraries(app PRIVATE ${{LINK}} dl rt pthread)\ncudaguard_embed(app)\n",
        include(),
    );
    Tree::new(name, Cmake::Oldest, NINJA, &[("CMakeLists.txt", &text), ("main.cpp", MAIN), ("cudaguard.toml", policy)])
}

fn object(tree: &Tree, toolkit: &str) -> PathBuf {
    object_of(tree, toolkit, KERNEL)
}

fn object_of(tree: &Tree, toolkit: &str, text: &str) -> PathBuf {
    let (source, object) = (tree.sibling().join("elsewhere/kernel.cu"), tree.sibling().join("elsewhere/kernel.o"));
    cudaguard_tests::scratch::write(&source, text);
    let made = once(&format!("kernel {toolkit} {text}"), || {
        let mut call = Call::new(parts::cuda(toolkit).join("bin/nvcc"));
        if toolkit == "11.8" {
            call = call.arg("-ccbin").arg(tools::need("g++-11"));
        }
        let _ = call.args(["-arch=sm_80", "-c"]).arg(source).arg("-o").arg(&object).run().success();
        std::fs::read(&object).expect("nvcc made it")
    });
    cudaguard_tests::scratch::write(&object, made);
    object
}

fn cudart(toolkit: &str) -> PathBuf {
    parts::cuda(toolkit).join("lib64/libcudart_static.a")
}

/// Configures and builds. `known` is the toolkit that CMake receives.
fn build(tree: &Tree, configuration: &str, known: Option<&str>, link: &[&Path]) -> Outcome {
    let root = known.map(|version| format!("-DCUDAToolkit_ROOT={}", parts::cuda(version).display()));
    let _ = configure(tree, configuration, link).args(root).run().success();
    tree.build(&[]).run()
}

fn configure(tree: &Tree, configuration: &str, link: &[&Path]) -> Call {
    let link: Vec<_> = link.iter().map(|file| file.display().to_string()).collect();
    tree.configure(&[&format!("-DCMAKE_BUILD_TYPE={configuration}"), &format!("-DLINK={}", link.join(";"))])
}

fn codes(outcome: &Outcome) -> Vec<String> {
    let head = |line: &str| Some(format!("{}]", line.split_once("]: ")?.0));
    printed(outcome).lines().filter(|line| !line.starts_with(' ')).filter_map(head).collect()
}

/// Checks that Release is refused without outputs, and that Debug warns. Returns the manifest of the Debug build.
fn judged(tree: &Tree, known: Option<&str>, link: &[&Path], code: &str) -> Value {
    judged_as(tree, code, |configuration| build(tree, configuration, known, link));
    manifest(&tree.built("app"))
}

/// Checks the same for any build function, and keeps the Debug build.
#[track_caller]
fn judged_as(tree: &Tree, code: &str, build: impl Fn(&str) -> Outcome) {
    let refused = build("Release");
    assert!(refused.status() != Some(0) && !tree.built("app").exists(), "{refused}");
    assert_eq!(codes(&refused), [format!("error[{code}]")], "{refused}");
    let warned = build("Debug").success();
    assert_eq!(codes(&warned), [format!("warning[{code}]")], "{warned}");
}

const FIND: &str = "find_package(CUDAToolkit REQUIRED)";

#[e2e(slow)]
fn other_toolkit_objects_are_reported() {
    let tree = tree("another", FIND, "");
    let right = object(&tree, "13.0");
    let built = build(&tree, "Release", Some("13.0"), &[&right, &cudart("13.0")]).success();
    assert_eq!(codes(&built), [""; 0], "{built}");
    let manifest = manifest(&tree.built("app"));
    assert_eq!(manifest["toolkit"]["known"], "observed", "{manifest:#}");
    assert_eq!(manifest["cudart"], json!({"linkage": "static", "version": "13.0"}));
    let old = object(&tree, "11.8");
    let manifest = judged(&tree, Some("13.0"), &[&old, &cudart("11.8")], "CG144");
    assert_eq!(manifest["toolkit"], json!({"version": "11.8.0", "known": "observed"}));
    assert_eq!(manifest["cudart"]["version"], "11.8");
}

#[e2e(slow)]
fn toolkit_unknown_to_cmake_is_recorded() {
    let tree = tree("none", "", "");
    let link = [object(&tree, "13.0"), cudart("13.0")];
    let link: Vec<&Path> = link.iter().map(PathBuf::as_path).collect();
    let built = build(&tree, "Release", None, &link).success();
    assert_eq!(codes(&built), [""; 0], "{built}");
    assert_eq!(manifest(&tree.built("app"))["toolkit"], json!({"version": "13.0.0", "known": "observed"}));
    tree.write("cudaguard.toml", "[driver]\nfleet = \"535\"\n");
    let manifest = judged(&tree, None, &link, "CG133");
    assert_eq!(manifest["toolkit"]["known"], "observed");
}
