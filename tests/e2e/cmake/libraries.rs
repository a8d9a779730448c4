//! Guards on static, object and interface libraries: the policy has the same effect as on a program.

use std::fs;

use cudaguard_tests::e2e;

use super::fixture::{Cmake, MULTI, Tree, include, manifest, printed, texts, toolkit, words};

const KERNEL: &str = "__global__ void k(int *p) { *p = 1; }\nextern \"C\" int run() { k<<<1, 1>>>(0); return 0; }\n";
const MAIN: &str = "extern \"C\" int run();\nint main() { return run(); }\n";

/// The guard is on `whole`, or on a library in the program of its name. `by_genex` shows its library only when CMake generates.
const KINDS: &str = r"
add_executable(whole main.cpp k.cu)
cudaguard_embed(whole)
add_library(st STATIC k.cu)
cudaguard_embed(st)
add_executable(static main.cpp)
target_link_libraries(static PRIVATE st)
add_executable(by_genex main.cpp)
target_link_libraries(by_genex PRIVATE $<$<BOOL:TRUE>:st>)
add_library(ob OBJECT k.cu)
cudaguard_embed(ob)
add_executable(object main.cpp)
target_link_libraries(object PRIVATE ob)
add_library(plain STATIC k.cu)
add_library(in INTERFACE)
target_link_libraries(in INTERFACE plain)
cudaguard_embed(in ARCHITECTURES 80)
add_subdirectory(sub)
";
const BELOW: &str = "add_executable(interface ../main.cpp)\ntarget_link_libraries(interface PRIVATE in)\n";
const PROGRAMS: [(&str, &str); 5] =
    [("whole", "whole"), ("static", "st"), ("by_genex", "st"), ("object", "ob"), ("sub/interface", "in")];

fn tree(name: &str, generator: &'static str, lists: &str) -> Tree {
    let head = format!("cmake_minimum_required(VERSION 3.24)\nproject(kinds LANGUAGES CXX CUDA)\n{}", include());
    let files =
        [("CMakeLists.txt", &*(head + lists)), ("sub/CMakeLists.txt", BELOW), ("main.cpp", MAIN), ("k.cu", KERNEL)];
    let tree = Tree::new(name, Cmake::Newest, generator, &files);
    let mut options = toolkit("13.0");
    options.extend(["-DCMAKE_CUDA_ARCHITECTURES=80".to_owned(), "-DCMAKE_BUILD_TYPE=Release".to_owned()]);
    let _ = tree.configure(&words(&options)).run().success();
    tree
}

#[e2e(slow)]
fn policy_applies_to_linked_program() {
    let tree = tree("library kinds", MULTI, KINDS);
    let built = |program: &str| match program.rsplit_once('/') {
        Some((dir, name)) => tree.built(&format!("{dir}/Release/{name}")),
        None => tree.built(&format!("Release/{program}")),
    };
    for (policy, code) in [("gpu.fleet = [\"T4\"]", "CG130"), ("driver.fleet = \"535\"", "CG133")] {
        tree.write("cudaguard.toml", policy);
        for (program, _) in PROGRAMS {
            let name = program.rsplit('/').next().expect("a name");
            let refused = tree.build(&["--config", "Release", "--target", name]).run();
            assert_ne!(refused.status(), Some(0), "{program}, {policy}: {refused}");
            let text = printed(&refused);
            assert!(text.contains(&format!("error[{code}]: {name} ")), "{program}, {policy}: {refused}");
            assert!(!built(program).exists(), "{program}, {policy}: nothing is left to be run");
        }
    }
    tree.write("cudaguard.toml", "gpu.fleet = [\"A100\"]\ndriver.fleet = \"580\"\n");
    let accepted = tree.build(&["--config", "Release"]).run().success();
    assert_eq!(printed(&accepted), "");
    for (program, component) in PROGRAMS {
        let found = manifest(&built(program), component);
        assert_eq!(found["archs"]["known"], "observed", "{program}: {found:#}");
        assert!(texts(&found["archs"]["observed"]).contains(&"sm_80"), "{program}: {found:#}");
    }
    let again = tree.build(&["--config", "Release"]).run().success();
    assert!(!again.stdout.contains("Linking"), "{again}");
    fs::remove_file(tree.source().join("cudaguard.toml")).expect("the policy");
    let relinked = tree.build(&["--config", "Release"]).run().success();
    assert!(relinked.stdout.contains("Linking CXX executable"), "{relinked}");
}
