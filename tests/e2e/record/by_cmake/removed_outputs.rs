//! A refused target leaves no outputs that look built, neither of this build nor of an earlier one.

use std::path::PathBuf;

use cudaguard_tests::{Test, e2e, parts, rows};

use super::codes;
use crate::cmake::fixture::{Cmake, MAKE, MULTI, NINJA, Tree, include};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let generators = [("make", MAKE), ("ninja_multi", MULTI)];
    let mut tests: Vec<Test> =
        rows("by_cmake::removed_outputs::refused_library_is_removed", generators, refused_library_is_removed).collect();
    tests.extend(rows(
        "by_cmake::removed_outputs::refusal_removes_earlier_copies",
        [("ninja", NINJA)],
        refusal_removes_earlier_copies,
    ));
    let others = [
        ("program", (MAKE, "tool", &["tools/tool", "copy"][..])),
        ("library", (MULTI, "middle", &["tools/tool", "copy", "libmiddle.a"])),
    ];
    tests.extend(rows(
        "by_cmake::removed_outputs::refusal_removes_copies_elsewhere",
        others,
        refusal_removes_copies_elsewhere,
    ));
    tests.into_iter().map(Test::slow).collect()
}

const KERNELS: &str =
    "#include <cuda_runtime.h>\nextern \"C\" int kernels() { int v; return cudaRuntimeGetVersion(&v); }\n";

/// Returns a project. `in_tools` contains additional lines for the directory `tools`.
fn project(generator: &'static str, lists: &str, in_tools: &str) -> Tree {
    let text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(left VERSION 0.1.0 LANGUAGES CXX)\n\
         find_package(CUDAToolkit REQUIRED)\n{}{lists}",
        include()
    );
    let main = "extern \"C\" int kernels();\nint main() { return kernels(); }\n";
    let tools = "add_executable(tool ../main.cpp)\ntarget_link_libraries(tool PRIVATE middle)\n".to_owned() + in_tools;
    let files = [
        ("CMakeLists.txt", &*text),
        ("kernels.cpp", KERNELS),
        ("main.cpp", main),
        ("plain.cpp", "int main() { return 0; }\n"),
        ("part.cpp", "extern \"C\" int kernels();\nextern \"C\" int part() { return kernels(); }\n"),
        ("tools/CMakeLists.txt", &tools),
        ("cudaguard.toml", ""),
    ];
    Tree::new("left behind", Cmake::Oldest, generator, &files)
}

/// Builds, refuses under another policy, and builds again. Checks which outputs exist after each step.
fn refused_later(generator: &'static str, lists: &str, gone: &[&str], stays: &[&str]) {
    refused_by(BEFORE, 2, "", generator, lists, gone, stays);
}

/// Policy that refuses before linking, and its code.
const BEFORE: (&str, &str) = ("[toolkit]\nrequire = \"<13\"\n", "CG103");

/// Runs the same steps with another policy.
fn refused_by(
    (policy, code): (&str, &str),
    rounds: u32,
    in_tools: &str,
    generator: &'static str,
    lists: &str,
    gone: &[&str],
    stays: &[&str],
) {
    let tree = project(generator, lists, in_tools);
    let root = format!("-DCUDAToolkit_ROOT={}", parts::cuda("13.0").display());
    let _ = tree.configure(&[&root, "-DCMAKE_BUILD_TYPE=Release"]).run().success();
    let build = || tree.build(&["--config", "Release"]).run();
    let place = |name: &&str| -> PathBuf {
        let (dir, file) = name.rsplit_once('/').map_or(("", *name), |(dir, file)| (dir, file));
        let of_configuration = generator == MULTI && !file.starts_with("copy");
        tree.built(dir).join(if of_configuration { "Release" } else { "" }).join(file)
    };
    let there = |names: &[&str]| names.iter().filter(|name| place(name).exists()).count();
    for round in 0..rounds {
        let built = build().success();
        assert_eq!((there(gone), there(stays)), (gone.len(), stays.len()), "{generator}, {round}: {built}");
        tree.write("cudaguard.toml", policy);
        let refused = build();
        let printed = [format!("error[{code}]")];
        assert!(refused.status() != Some(0) && codes(&refused) == printed, "{generator}: {refused}");
        let left: Vec<PathBuf> = gone.iter().map(place).filter(|file| file.exists()).collect();
        assert_eq!(left, [] as [PathBuf; 0], "{generator}, {round}: {refused}");
        assert_eq!(there(stays), stays.len(), "{generator}: {refused}");
        tree.write("cudaguard.toml", "");
    }
    let built = build().success();
    assert_eq!(there(gone), gone.len(), "it comes back: {built}");
}

/// The guard of a static library is linked into its dependents, in this directory and in others.
fn refused_library_is_removed(generator: &'static str) {
    let lists = "add_library(kernels STATIC kernels.cpp)\ntarget_link_libraries(kernels PUBLIC CUDA::cudart)\n\
                 cudaguard_embed(kernels)\nadd_library(middle INTERFACE)\n\
                 target_link_libraries(middle INTERFACE kernels)\nadd_executable(app main.cpp)\n\
                 target_link_libraries(app PRIVATE kernels)\nadd_library(part SHARED part.cpp)\n\
                 target_link_libraries(part PRIVATE middle)\nadd_executable(plain plain.cpp)\n\
                 add_subdirectory(tools)\n";
    refused_later(generator, lists, &["libkernels.a", "app", "libpart.so", "tools/tool"], &["plain"]);
}

#[e2e(slow)]
fn refused_object_library_is_removed() {
    let lists = "add_library(kernels OBJECT kernels.cpp)\ntarget_link_libraries(kernels PUBLIC CUDA::cudart)\n\
                 cudaguard_embed(kernels)\nadd_executable(app main.cpp)\ntarget_link_libraries(app PRIVATE kernels)\n";
    refused_later(NINJA, lists, &["app"], &[]);
}

fn step(target: &str, what: &str) -> String {
    format!("add_custom_command(TARGET {target} POST_BUILD COMMAND {what} VERBATIM)\n")
}

/// Returns a program, and copies of it that steps and commands create before and after the guard is linked, stripped or
/// not.
fn copied() -> String {
    let copy = |from: &str, to: &str| {
        format!("${{CMAKE_COMMAND}} -E copy $<TARGET_FILE:{from}> \"${{CMAKE_BINARY_DIR}}/{to}\"")
    };
    [
        "add_executable(app main.cpp kernels.cpp)\ntarget_link_libraries(app PRIVATE CUDA::cudart)\n",
        &step("app", &copy("app", "copy")),
        "cudaguard_embed(app)\n",
        &step("app", &copy("app", "copy behind")),
        &step("app", "strip -s -o copy-stripped $<TARGET_FILE:app>"),
        &format!(
            "add_custom_command(OUTPUT copy-packed COMMAND {} DEPENDS app VERBATIM)\n",
            copy("app", "copy-packed")
        ),
        "add_custom_target(pack ALL DEPENDS copy-packed)\n",
    ]
    .concat()
}

const COPIES: [&str; 5] = ["app", "copy", "copy behind", "copy-stripped", "copy-packed"];

fn refusal_removes_earlier_copies(generator: &'static str) {
    refused_later(generator, &copied(), &COPIES, &[]);
}

#[e2e]
fn refusal_after_linking_removes_copies() {
    refused_by(("[driver]\nfleet = \"535\"\n", "CG133"), 1, "", NINJA, &copied(), &COPIES, &[]);
}

/// Copies of a target in another directory, which no step can follow, and of dependents of a guarded library.
fn refusal_removes_copies_elsewhere((generator, guarded, gone): (&'static str, &'static str, &'static [&'static str])) {
    let others = "add_library(middle STATIC kernels.cpp)\ntarget_link_libraries(middle PUBLIC CUDA::cudart)\n\
                  add_subdirectory(tools)\n";
    let copied = step("tool", "${CMAKE_COMMAND} -E copy $<TARGET_FILE:tool> \"${CMAKE_BINARY_DIR}/copy\"");
    refused_by(BEFORE, 1, &copied, generator, &format!("{others}cudaguard_embed({guarded})\n"), gone, &[]);
}
