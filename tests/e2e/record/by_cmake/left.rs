//! A refused target leaves nothing that looks built, neither of this build nor of an earlier one.

use std::path::PathBuf;

use cudaguard_tests::{Trial, parts, trials};

use super::codes;
use crate::cmake::fixture::{Cmake, MAKE, MULTI, NINJA, Tree, include};

pub(super) fn trials() -> Vec<Trial> {
    trials![what_a_refused_library_became, copies_of_an_earlier_build]
}

const KERNELS: &str =
    "#include <cuda_runtime.h>\nextern \"C\" int kernels() { int v; return cudaRuntimeGetVersion(&v); }\n";

fn project(generator: &'static str, lists: &str) -> Tree {
    let text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(left VERSION 0.1.0 LANGUAGES CXX)\n\
         find_package(CUDAToolkit REQUIRED)\n{}{lists}",
        include()
    );
    let main = "extern \"C\" int kernels();\nint main() { return kernels(); }\n";
    let files = [
        ("CMakeLists.txt", &*text),
        ("kernels.cpp", KERNELS),
        ("main.cpp", main),
        ("plain.cpp", "int main() { return 0; }\n"),
        ("part.cpp", "extern \"C\" int kernels();\nextern \"C\" int part() { return kernels(); }\n"),
        ("tools/CMakeLists.txt", "add_executable(tool ../main.cpp)\ntarget_link_libraries(tool PRIVATE middle)\n"),
        ("cudaguard.toml", ""),
    ];
    Tree::new("left behind", Cmake::Oldest, generator, &files)
}

/// Built, refused under another policy, and built again; what of these is there.
fn refused_later(generator: &'static str, lists: &str, gone: &[&str], stays: &[&str]) {
    let tree = project(generator, lists);
    let root = format!("-DCUDAToolkit_ROOT={}", parts::cuda("13.0").display());
    let _ = tree.configure(&[&root, "-DCMAKE_BUILD_TYPE=Release"]).run().success();
    let build = || tree.build(&["--config", "Release"]).run();
    let place = |name: &&str| -> PathBuf {
        let (folder, file) = name.rsplit_once('/').map_or(("", *name), |(folder, file)| (folder, file));
        let of_configuration = generator == MULTI && !file.starts_with("copy");
        tree.built(folder).join(if of_configuration { "Release" } else { "" }).join(file)
    };
    let there = |names: &[&str]| names.iter().filter(|name| place(name).exists()).count();
    for round in 0..2 {
        let built = build().success();
        assert_eq!((there(gone), there(stays)), (gone.len(), stays.len()), "{generator}, {round}: {built}");
        tree.write("cudaguard.toml", "[toolkit]\nrequire = \"<13\"\n");
        let refused = build();
        assert!(refused.status() != Some(0) && codes(&refused) == ["error[CG103]"], "{generator}: {refused}");
        let left: Vec<PathBuf> = gone.iter().map(place).filter(|file| file.exists()).collect();
        assert_eq!(left, [] as [PathBuf; 0], "{generator}, {round}: {refused}");
        assert_eq!(there(stays), stays.len(), "{generator}: {refused}");
        tree.write("cudaguard.toml", "");
    }
    let built = build().success();
    assert_eq!(there(gone), gone.len(), "it comes back: {built}");
}

/// The guard of a static library goes into whatever is linked to it, here and in other folders.
fn what_a_refused_library_became() {
    for generator in [MAKE, NINJA, MULTI] {
        let lists = "add_library(kernels STATIC kernels.cpp)\ntarget_link_libraries(kernels PUBLIC CUDA::cudart)\n\
                     cudaguard_embed(kernels)\nadd_library(middle INTERFACE)\n\
                     target_link_libraries(middle INTERFACE kernels)\nadd_executable(app main.cpp)\n\
                     target_link_libraries(app PRIVATE kernels)\nadd_library(part SHARED part.cpp)\n\
                     target_link_libraries(part PRIVATE middle)\nadd_executable(plain plain.cpp)\n\
                     add_subdirectory(tools)\n";
        refused_later(generator, lists, &["libkernels.a", "app", "libpart.so", "tools/tool"], &["plain"]);
    }
    let lists = "add_library(kernels OBJECT kernels.cpp)\ntarget_link_libraries(kernels PUBLIC CUDA::cudart)\n\
                 cudaguard_embed(kernels)\nadd_executable(app main.cpp)\ntarget_link_libraries(app PRIVATE kernels)\n";
    refused_later(NINJA, lists, &["app"], &[]);
}

/// What a step behind the linker has copied is as runnable as the file itself.
fn copies_of_an_earlier_build() {
    for generator in [MAKE, NINJA, MULTI] {
        let lists = "add_executable(app main.cpp kernels.cpp)\ntarget_link_libraries(app PRIVATE CUDA::cudart)\n\
                     add_custom_command(TARGET app POST_BUILD COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:app> \
                     \"${CMAKE_BINARY_DIR}/copy\" VERBATIM)\ncudaguard_embed(app)\n";
        refused_later(generator, lists, &["app", "copy"], &[]);
    }
}
