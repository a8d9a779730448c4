//! `cudaguard.lock` as CMake's target writes it: it records the linked components if they are known, and is compared with
//! them.

use std::fs;

use cudaguard_tests::{Call, Outcome, Test, tests, tools};

use super::{KERNEL, MAIN, build, codes, cudart, object, tree};
use crate::cmake::fixture::{Cmake, NINJA, Tree, include, toolkit, words};
use crate::record::fixture::manifest;

pub(super) fn tests() -> Vec<Test> {
    tests![
        #[slow]
        lock_records_used_compiler,
        #[slow]
        lock_records_linked_toolkit
    ]
}

fn lock(tree: &Tree) -> Outcome {
    tree.build(&["--target", "cudaguard-lock"]).run()
}

fn text(tree: &Tree) -> String {
    fs::read_to_string(tree.source().join("cudaguard.lock")).expect("it was written")
}

/// CMake knows one host compiler, and an option selects another for nvcc: in the program itself, or in a linked library.
fn lock_records_used_compiler() {
    let [clang, gcc] = ["clang++", "g++-11"].map(|name| tools::need(name).display().to_string());
    let release = Call::new(&gcc).arg("-dumpfullversion").run().success().stdout;
    let by_gcc = format!("host-compiler = \"gcc {}\"", release.trim());
    for (of, lists) in [
        ("app", "add_executable(app main.cpp kernel.cu)\n"),
        (
            "kernels",
            "add_library(kernels STATIC kernel.cu)\nadd_executable(app main.cpp)\ntarget_link_libraries(app PRIVATE kernels)\n",
        ),
    ] {
        let second = lists.replace("app", "second").replace("add_library", "# add_library");
        let lists = format!(
            "cmake_minimum_required(VERSION 3.24)\nproject(app VERSION 0.1.0 LANGUAGES CXX CUDA)\n{}\
             add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:-ccbin=${{USED}}>)\n{lists}{second}cudaguard_embed(app)\n\
             cudaguard_embed(second)\n",
            include(),
        );
        let files = [("CMakeLists.txt", &*lists), ("main.cpp", MAIN), ("kernel.cu", KERNEL)];
        let tree = Tree::new("locked", Cmake::Oldest, NINJA, &files);
        let mut known = toolkit("13.0");
        known.extend([format!("-DCMAKE_CUDA_HOST_COMPILER={clang}"), "-DCMAKE_CUDA_ARCHITECTURES=80".to_owned()]);
        let build = |configuration: &str, used: &str| {
            let chosen = [format!("-DCMAKE_BUILD_TYPE={configuration}"), format!("-DUSED={used}")];
            let _ = tree.configure(&words(&[&known[..], &chosen[..]].concat())).run().success();
            tree.build(&[]).run()
        };
        let silent = |used: &str| {
            let built = build("Release", used).success();
            assert_eq!(codes(&built), [""; 0], "{of}: {built}");
        };
        silent(&gcc);
        assert_eq!(manifest(&tree.built("app"))["host_compiler"], format!("gcc {}", release.trim()), "{of}");
        let written = lock(&tree).success();
        // An option of a target with kernels is evaluated first.
        assert_eq!(written.stdout.contains("(from the linked files)"), of == "kernels", "{of}: {written}");
        assert!(text(&tree).contains(&by_gcc), "{of}: {written}");
        assert!(
            text(&tree).contains("toolkit = \"13.0.88\""),
            "CMake's nvcc gives more facts than its code: {}",
            text(&tree)
        );
        silent(&gcc);
        if of == "kernels" {
            continue;
        }

        let refused = build("Release", &clang);
        assert!(refused.status() != Some(0) && !tree.built("app").exists(), "{of}: {refused}");
        assert_eq!(codes(&refused), ["error[CG107]"], "{of}: {refused}");
        assert!(refused.stdout.contains("the host compiler differs from the lock: gcc "), "{of}: {refused}");
        let warned = build("Debug", &clang).success();
        assert_eq!(codes(&warned), ["warning[CG107]"], "once for both targets, {of}: {warned}");
        // The lock accepts what the build refused, as the hint states.
        let _ = build("Release", &clang);
        let accepted = lock(&tree).success();
        assert!(
            accepted.stdout.contains("host-compiler: gcc ") && text(&tree).contains("\"clang "),
            "{of}: {accepted}"
        );
        silent(&clang);
    }
}

/// CMake knows no toolkit.
fn lock_records_linked_toolkit() {
    let tree = tree("linked", "", "");
    let of = |version: &str| [object(&tree, version), cudart(version)];
    let build = |configuration: &str, version: &str| {
        let link = of(version);
        build(&tree, configuration, None, &[&link[0], &link[1]])
    };
    let silent = |version: &str| {
        let built = build("Release", version).success();
        assert_eq!(codes(&built), [""; 0], "{built}");
    };
    silent("13.0");
    fs::remove_file(tree.built("app")).expect("it was built");
    let nothing = lock(&tree);
    assert!(nothing.status() != Some(0) && nothing.stdout.contains("nothing to lock"), "{nothing}");
    silent("13.0");
    let written = lock(&tree).success();
    assert!(written.stdout.contains("  toolkit: 13.0 (from the linked files)\n"), "{written}");
    silent("13.0");
    let refused = build("Release", "13.2");
    assert!(refused.status() != Some(0) && !tree.built("app").exists(), "{refused}");
    assert_eq!(codes(&refused), ["error[CG107]"], "{refused}");
    assert!(refused.stdout.contains("the toolkit differs from the lock: 13.0 → 13.2."), "{refused}");
    let warned = build("Debug", "13.2").success();
    assert_eq!(codes(&warned), ["warning[CG107]"], "{warned}");
    let accepted = lock(&tree).success();
    assert!(accepted.stdout.contains("toolkit: 13.0 → 13.2 (from the linked files)"), "{accepted}");
    silent("13.2");
}
