//! Builds by CMake.

mod environment;
mod lock;
mod removed_outputs;
mod toolkits;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cudaguard_tests::{Call, Outcome, e2e, once, parts, tools};
use serde_json::{Value, json};

use super::fixture::manifest;
use crate::cmake::fixture::{Cmake, NINJA, Tree, include, printed, toolkit};

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

/// Configures and builds with these variables.
fn build_in(tree: &Tree, configuration: &str, link: &[&Path], variables: &[(&str, OsString)]) -> Outcome {
    let around = |call: Call| variables.iter().fold(call, |call, (name, value)| call.env(name, value));
    let _ = around(configure(tree, configuration, link)).run().success();
    around(tree.build(&[])).run()
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

/// Older projects find the toolkit with `find_package(CUDA)`, whose nvcc shows the whole version.
#[e2e(slow)]
fn findcuda_toolkit_is_recorded() {
    let lists = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(app VERSION 0.1.0 LANGUAGES CXX)\nfind_package(CUDA REQUIRED)\n{}\
         cuda_add_executable(app main.cpp kernel.cu OPTIONS -arch=sm_80)\ncudaguard_embed(app)\n",
        include(),
    );
    let tree = Tree::new(
        "old",
        Cmake::Oldest,
        NINJA,
        &[("CMakeLists.txt", &lists), ("main.cpp", MAIN), ("kernel.cu", KERNEL)],
    );
    // The module does not quote the path of nvcc.
    let root = format!("-DCUDA_TOOLKIT_ROOT_DIR={}", parts::cuda_without_blanks("13.0").display());
    let _ = tree.configure(&[&root, "-DCMAKE_BUILD_TYPE=Release"]).run().success();
    let _ = tree.build(&[]).run().success();
    assert_eq!(manifest(&tree.built("app"))["toolkit"]["version"], "13.0.88");
}

/// Only a compiler flag contains the directory of cuDNN's headers.
#[e2e(slow)]
fn headers_from_flags_are_recorded() {
    let cudnn = parts::cudnn("9.15.1");
    let flag = format!("add_compile_options(\"SHELL:-isystem \\\"{}\\\"\")", cudnn.join("include").display());
    let tree = tree("flag", &flag, "");
    tree.write("main.cpp", "#include <cudnn_version.h>\nextern \"C\" unsigned long cudnnGetVersion();\nint main() { return cudnnGetVersion() == 0; }\n");
    let built = build(&tree, "Release", None, &[&cudnn.join("lib/libcudnn.so")]).success();
    let manifest = manifest(&tree.built("app"));
    assert_eq!(manifest["cudnn"], json!({"version": "9.15.1", "linkage": "linked"}), "{built}");
    assert_eq!(codes(&built), [""; 0], "{built}");
    // A file that includes no headers is linked with the library.
    let tree = self::tree("unknown", "", "");
    tree.write(
        "main.cpp",
        "extern \"C\" unsigned long cudnnGetVersion();\nint main() { return cudnnGetVersion() == 0; }\n",
    );
    let built = build(&tree, "Release", None, &[&cudnn.join("lib/libcudnn.so")]).success();
    assert_eq!(codes(&built), ["warning[CG146]"], "{built}");
    let manifest = super::fixture::manifest(&tree.built("app"));
    assert_eq!(manifest["cudnn"], json!({"version": "9.15.1", "linkage": "linked", "known": "linked"}), "{built}");
}

#[e2e(slow)]
fn missing_declared_arch_is_reported() {
    let text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(app VERSION 0.1.0 LANGUAGES CXX CUDA)\n{}\
         add_executable(app main.cpp kernel.cu)\ncudaguard_embed(app ${{DECLARED}})\n",
        include(),
    );
    let files = [("CMakeLists.txt", &*text), ("main.cpp", MAIN), ("kernel.cu", KERNEL)];
    let tree = Tree::new("declared", Cmake::Oldest, NINJA, &files);
    for (declared, printed) in [("", &[][..]), ("ARCHITECTURES;80", &[]), ("ARCHITECTURES;80;90", &["warning[CG128]"])]
    {
        let mut words = toolkit("13.0");
        words.extend(["-DCMAKE_BUILD_TYPE=Release".to_owned(), "-DCMAKE_CUDA_ARCHITECTURES=80".to_owned()]);
        words.push(format!("-DDECLARED={declared}"));
        let _ = tree.configure(&words.iter().map(String::as_str).collect::<Vec<_>>()).run().success();
        let built = tree.build(&[]).run().success();
        assert_eq!(codes(&built), printed, "{declared}: {built}");
    }
}

const OPS: &str = "#include <cudnn_version.h>\nextern \"C\" unsigned long cudnnGetVersion();\n\
                   unsigned long ops() { return cudnnGetVersion() == CUDNN_MAJOR * 10000 + CUDNN_MINOR * 100 + CUDNN_PATCHLEVEL; }\n";

/// A static library uses cuDNN's headers, and the program that links it does not.
#[e2e(slow)]
fn static_library_headers_are_recorded() {
    let cudnn = parts::cudnn("9.15.1");
    let include = cudnn.join("include");
    for (kind, names_headers) in [
        ("STATIC", format!("target_include_directories(ops PRIVATE \"{}\")", include.display())),
        ("OBJECT", format!("target_compile_options(ops PRIVATE \"SHELL:-isystem \\\"{}\\\"\")", include.display())),
    ] {
        let text = format!(
            "cmake_minimum_required(VERSION 3.24)\nproject(app VERSION 0.1.0 LANGUAGES CXX)\n{}\
             add_library(ops {kind} ops.cpp)\n{names_headers}\nadd_library(middle STATIC middle.cpp)\n\
             target_link_libraries(ops PRIVATE \"{}\")\ntarget_link_libraries(middle PRIVATE ops)\n\
             add_executable(app main.cpp)\ntarget_link_libraries(app PRIVATE middle)\n{}cudaguard_embed(app)\n",
            crate::cmake::fixture::include(),
            cudnn.join("lib/libcudnn.so").display(),
            if kind == "OBJECT" { "target_link_libraries(app PRIVATE ops)\n" } else { "" },
        );
        let tree = Tree::new(
            "inside",
            Cmake::Oldest,
            NINJA,
            &[
                ("CMakeLists.txt", &text),
                ("ops.cpp", OPS),
                ("middle.cpp", "unsigned long ops();\nextern \"C\" int launch() { return ops() ? 0 : 1; }\n"),
                ("main.cpp", MAIN),
            ],
        );
        let built = build(&tree, "Release", None, &[]).success();
        assert_eq!(codes(&built), [""; 0], "{kind}: {built}");
        assert_eq!(manifest(&tree.built("app"))["cudnn"], json!({"version": "9.15.1", "linkage": "linked"}), "{kind}");
    }
}
