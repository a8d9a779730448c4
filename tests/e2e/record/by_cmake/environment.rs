//! The environment of a build: variables that select headers, and environments in which other tools fail.

use std::path::Path;

use cudaguard_tests::{e2e, parts};
use serde_json::json;

use super::{build_in, codes, judged_as, object, tree};
use crate::cmake::fixture::{Cmake, MAKE, MULTI, Tree, include};
use crate::record::fixture::manifest;

const CUDNN: &str = "#include <cudnn_version.h>\nextern \"C\" unsigned long cudnnGetVersion();\n\
                     int main() { return cudnnGetVersion() < CUDNN_MAJOR; }\n";

/// Distributions build without runtime paths, and CMake writes none for a directory in an option. The linked library is
/// known anyway.
#[e2e(slow)]
fn libraries_without_runtime_path_resolve() {
    let [cudnn, old] = ["9.15.1", "9.1.0"].map(|version| parts::cudnn(version).join("lib").display().to_string());
    let ways = [
        ("path", format!("target_link_libraries(path PRIVATE \"{cudnn}/libcudnn.so.9\")")),
        (
            "imported",
            format!(
                "add_library(library SHARED IMPORTED)\nset_target_properties(library PROPERTIES IMPORTED_LOCATION \
                 \"{cudnn}/libcudnn.so.9\")\ntarget_link_libraries(imported PRIVATE library)"
            ),
        ),
        (
            "option",
            format!("target_link_options(option PRIVATE \"-L{cudnn}\")\ntarget_link_libraries(option PRIVATE cudnn)"),
        ),
        (
            "folder",
            format!("target_link_directories(folder PRIVATE \"{cudnn}\")\ntarget_link_libraries(folder PRIVATE cudnn)"),
        ),
        (
            "through",
            format!(
                "add_library(inner INTERFACE)\ntarget_link_directories(inner INTERFACE \"{cudnn}\")\n\
                 target_link_libraries(inner INTERFACE cudnn)\ntarget_link_libraries(through PRIVATE inner)"
            ),
        ),
    ];
    let guarded =
        |(name, lists): &(&str, String)| format!("add_executable({name} uses.cpp)\n{lists}\ncudaguard_embed({name})\n");
    let targets = ways.iter().map(guarded).collect::<Vec<_>>().concat();
    let text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(app VERSION 0.1.0 LANGUAGES CXX)\nset(CMAKE_SKIP_RPATH ON)\n{}{targets}",
        include()
    );
    let uses = "extern \"C\" unsigned long cudnnGetVersion();\nint main() { return cudnnGetVersion() == 0; }\n";
    let files = [("CMakeLists.txt", &*text), ("uses.cpp", uses), ("main.cpp", CUDNN)];
    for generator in [MAKE, MULTI] {
        let tree = Tree::new("taken from", Cmake::Oldest, generator, &files);
        let _ = tree.configure(&["-DCMAKE_BUILD_TYPE=Release"]).run().success();
        let built = tree.build(&["--config", "Release"]).run().success();
        for (name, _) in &ways {
            let file = tree.built(&if generator == MULTI { format!("Release/{name}") } else { (*name).to_owned() });
            let recorded = json!({"version": "9.15.1", "linkage": "linked", "known": "linked"});
            assert_eq!(manifest(&file)["cudnn"], recorded, "{name} by {generator}: {built}");
        }
    }
    // Headers of another release and a cudart of another toolkit are reported as with a runtime path.
    let headers = parts::cudnn("9.15.1").join("include");
    let mixed = tree("mixed", &format!("set(CMAKE_SKIP_RPATH ON)\ninclude_directories(\"{}\")", headers.display()), "");
    mixed.write("main.cpp", CUDNN);
    judged_as(&mixed, "CG110", |configuration| {
        build_in(&mixed, configuration, &[&Path::new(&old).join("libcudnn.so.9")], &[])
    });
    let mixed = tree("mixed", "set(CMAKE_SKIP_RPATH ON)", "");
    let kernel = object(&mixed, "13.0");
    let built = build_in(&mixed, "Release", &[&kernel, &parts::cuda("13.2").join("lib64/libcudart.so")], &[]).success();
    assert_eq!(codes(&built), ["warning[CG145]"], "a kernel that was made elsewhere: {built}");
    assert_eq!(manifest(&mixed.built("app"))["cudart"], json!({"linkage": "linked", "version": "13.2"}));
}
