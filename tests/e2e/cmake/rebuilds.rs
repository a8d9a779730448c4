//! A changed input triggers a new check; an unchanged input does not.

use std::fs;

use cudaguard_tests::{Test, e2e, rows, scratch};

use super::fixture::{Cmake, MAKE, NINJA, TAKES_HEADERS, Tree, include, manifest, printed};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    tests.extend(
        rows(
            "rebuilds::only_touched_inputs_rebuild",
            [("ninja_oldest", (NINJA, Cmake::Oldest)), ("make_newest", (MAKE, Cmake::Newest))],
            only_touched_inputs_rebuild,
        )
        .map(Test::slow),
    );
    tests
}

fn only_touched_inputs_rebuild((generator, cmake): (&'static str, Cmake)) {
    let text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(app VERSION 1.0 LANGUAGES C)\n{}add_executable(app main.c)\n\
         target_include_directories(app PRIVATE \"${{CMAKE_SOURCE_DIR}}/../toolkit/include\" ../cudnn/include)\n\
         cudaguard_embed(app)\n",
        include()
    );
    let tree = Tree::new(
        "touched",
        cmake,
        generator,
        &[
            ("CMakeLists.txt", &text),
            ("main.c", TAKES_HEADERS),
            ("cudaguard.toml", "[cudnn]\nlinkage = \"dlopened\"\n"),
        ],
    );
    // Fake headers contain only the parsed lines.
    let sibling = |file: &str, text: &str| scratch::write(&tree.sibling().join(file), text);
    let cudnn = |minor: u32| {
        let text = format!("#define CUDNN_MAJOR 9\n#define CUDNN_MINOR {minor}\n#define CUDNN_PATCHLEVEL 1\n");
        sibling("cudnn/include/cudnn_version.h", &text);
    };
    sibling("toolkit/include/cuda.h", "#define CUDA_VERSION 12040\n");
    cudnn(8);
    let _ = tree.configure(&["-DCMAKE_BUILD_TYPE=Release"]).run().success();
    let built = || {
        let outcome = tree.build(&[]).run();
        let linked = outcome.stdout.contains("Linking");
        (outcome, linked)
    };
    let quiet = |after: &str| {
        let (outcome, again) = built();
        let outcome = outcome.success();
        assert!(!again, "nothing is touched after {after}, in {generator}: {outcome}");
    };
    let busy = |after: &str| {
        let (outcome, again) = built();
        assert!(again, "{after} was touched, in {generator}: {outcome}");
        manifest(&tree.built("app"), "app")
    };
    let first = busy("everything");
    assert_eq!(first["toolkit"]["version"], "12.4.0", "{first:#}");
    assert_eq!(first["cudnn"]["version"], "9.8.1");
    quiet("the first build");

    cudnn(9);
    assert_eq!(busy("a header of cuDNN's")["cudnn"]["version"], "9.9.1");
    quiet("cuDNN");
    sibling("toolkit/include/cuda.h", "#define CUDA_VERSION 12060\n");
    assert_eq!(busy("the toolkit")["toolkit"]["version"], "12.6.0");
    quiet("the toolkit");
    tree.write("cudaguard.toml", "[cudnn]\nlinkage = \"dlopened\"\nrequired = true\n");
    let changed = busy("the policy");
    assert_eq!(changed["requires"][0]["required"], true, "{changed:#}");
    quiet("the policy");

    // An error is repeated in each build until it is fixed.
    tree.write("cudaguard.toml", "[cudnn]\nrequire = \"<9\"\n");
    for _ in 0..2 {
        let (outcome, again) = built();
        assert!(again && outcome.status() != Some(0) && printed(&outcome).contains("error[CG113]"), "{outcome}");
    }
    tree.write("cudaguard.toml", "");
    assert_eq!(busy("the policy, put right")["cudnn"]["linkage"], "none");
    quiet("the policy, put right");

    // A deleted file counts as a change.
    fs::remove_file(tree.source().join("cudaguard.toml")).expect("it is there");
    let _ = busy("the policy, removed");
    quiet("the policy, removed");
    // Different CMake facts produce different fact files.
    tree.write("CMakeLists.txt", &text.replace("cudaguard_embed(app)", "cudaguard_embed(app COMPONENT other)"));
    let (outcome, again) = built();
    assert!(again, "{}", outcome.success());
    let _ = manifest(&tree.built("app"), "other");
    quiet("the project");
}
