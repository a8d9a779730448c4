//! The environment of a build: variables that select headers, and environments in which other tools fail.

use std::fs;
use std::path::Path;

use cudaguard_tests::{Test, parts, tests};
use serde_json::json;

use super::{build_in, codes, judged_as, object, tree};
use crate::cmake::fixture::{Cmake, MAKE, MULTI, NINJA, Tree, include, printed};
use crate::record::fixture::manifest;
use crate::wrapper::cuda_intent::hostile;

pub(super) fn tests() -> Vec<Test> {
    tests![
        #[slow]
        headers_from_variables_are_recorded,
        #[slow]
        libraries_without_runtime_path_resolve,
        #[slow]
        plain_programs_ignore_toolkits,
    ]
}

const CUDNN: &str = "#include <cudnn_version.h>\nextern \"C\" unsigned long cudnnGetVersion();\n\
                     int main() { return cudnnGetVersion() < CUDNN_MAJOR; }\n";

/// The compiler finds cuDNN's headers in different ways that CMake does not know.
fn headers_from_variables_are_recorded() {
    let [cudnn, old] = ["9.15.1", "9.1.0"].map(parts::cudnn);
    let (headers, library) = (cudnn.join("include"), |of: &Path| of.join("lib/libcudnn.so.9"));
    let option = |option: &str| {
        format!(
            "add_executable(app main.cpp)\ntarget_compile_options(app PRIVATE {option})\n",
            option = option.replace("<folder>", &headers.display().to_string())
        )
    };
    // Headers for C, which C++ does not search.
    let of_c = "add_executable(app main.c)\n".to_owned();
    for (name, lists, variable) in [
        ("C_INCLUDE_PATH", of_c, Some("C_INCLUDE_PATH")),
        ("SHELL:", option("\"SHELL:-isystem \\\"<folder>\\\"\""), None),
        ("-isystem", option("-isystem \"<folder>\""), None),
        ("-I", option("\"-I<folder>\""), None),
        ("CPATH", "add_executable(app main.cpp)\n".to_owned(), Some("CPATH")),
        ("CPLUS_INCLUDE_PATH", "add_executable(app main.cpp)\n".to_owned(), Some("CPLUS_INCLUDE_PATH")),
    ] {
        let tree = tree_of(&lists);
        let around: Vec<_> =
            variable.map(|variable| (variable, headers.clone().into_os_string())).into_iter().collect();
        let built = build_in(&tree, "Release", &[&library(&cudnn)], &around).success();
        assert_eq!(codes(&built), [""; 0], "{name}: {built}");
        let recorded = json!({"version": "9.15.1", "linkage": "linked"});
        assert_eq!(manifest(&tree.built("app"))["cudnn"], recorded, "{name}: {built}");
        if name != "-I" {
            continue;
        }
        // The headers belong to one release, and the library to an older one.
        judged_as(&tree, "CG110", |configuration| build_in(&tree, configuration, &[&library(&old)], &around));
    }
}

/// Distributions build without runtime paths, and CMake writes none for a directory in an option. The linked library is
/// known anyway.
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

fn tree_of(lists: &str) -> Tree {
    let text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(app VERSION 0.1.0 LANGUAGES {})\n{}{lists}\
         target_link_libraries(app PRIVATE ${{LINK}})\ncudaguard_embed(app)\n",
        if lists.contains("main.c)") { "C" } else { "CXX" },
        include(),
    );
    let in_c = CUDNN.replace("extern \"C\" unsigned long cudnnGetVersion();", "unsigned long cudnnGetVersion(void);");
    let files = [("CMakeLists.txt", &*text), ("main.cpp", CUDNN), ("main.c", &in_c)];
    Tree::new("named", Cmake::Oldest, NINJA, &files)
}

/// A C++ project without CUDA is checked again in a third of the environments. The builds by cargo cover all.
fn plain_programs_ignore_toolkits() {
    let tree = tree("plain", "", "");
    tree.write("main.cpp", "int main() { return 0; }\n");
    for (name, variables) in hostile(tree.sibling()).into_iter().step_by(3) {
        let _ = fs::remove_dir_all(tree.built("cudaguard"));
        let built = build_in(&tree, "Release", &[], &variables).success();
        assert!(built.stdout.contains("Linking"), "{name}: {built}");
        assert_eq!(printed(&built), "", "{name}: {built}");
        let manifest = manifest(&tree.built("app"));
        let absent = ["toolkit", "cudnn"].iter().all(|fact| manifest[fact].is_null());
        assert!(absent && manifest["requires"].as_array().is_none_or(Vec::is_empty), "{name}: {manifest:#}");
        assert_eq!(manifest["archs"]["declared"].as_array().map_or(0, Vec::len), 0, "{name}: {manifest:#}");
    }
    // The program now links CUDA, and this is reported.
    let stubs = parts::cuda("13.0").join("lib64/stubs");
    tree.write(
        "main.cpp",
        "extern \"C\" int cudaGetDeviceCount(int *);\nint main() { int n; return cudaGetDeviceCount(&n); }\n",
    );
    let variables = [("LD_LIBRARY_PATH", stubs.into_os_string())];
    let built = build_in(&tree, "Release", &[&parts::cuda("13.0").join("lib64/libcudart.so")], &variables).success();
    assert_eq!(codes(&built), ["warning[CG106]"], "{built}");
}
