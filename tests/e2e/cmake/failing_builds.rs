//! Components that do not fit together fail a release build. Make and Ninja print the message unchanged.

use cudaguard_tests::{Test, e2e, parts, rows, snapshot};

use super::fixture::{Cmake, MULTI, NINJA, Tree, include, manifest, printed, words};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let generators = [("ninja_newest", (NINJA, Cmake::Newest)), ("ninja_multi_oldest", (MULTI, Cmake::Oldest))];
    let name = "failing_builds::mismatch_fails_in_all_generators";
    rows(name, generators, mismatch_fails_in_all_generators).map(Test::slow).collect()
}

/// Builds C++ with the toolkit's headers under a policy that rejects this toolkit.
fn mismatch_fails_in_all_generators((generator, cmake): (&'static str, Cmake)) {
    let text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(strict VERSION 1.0 LANGUAGES CXX)\n\
         find_package(CUDAToolkit REQUIRED)\n{}add_executable(app main.cpp)\n\
         target_link_libraries(app PRIVATE CUDA::cudart)\ncudaguard_embed(app)\n",
        include()
    );
    let main = "#include <cuda_runtime.h>\nint main() { int v; return cudaRuntimeGetVersion(&v); }\n";
    let toolkit = format!("-DCUDAToolkit_ROOT={}", parts::cuda("13.0").display());
    let tree = Tree::new(
        "strict project",
        cmake,
        generator,
        &[("CMakeLists.txt", &text), ("main.cpp", main), ("cudaguard.toml", "[toolkit]\nrequire = \"<13\"\n")],
    );
    let configuration =
        |name: &str| if generator == MULTI { vec!["--config".to_owned(), name.to_owned()] } else { vec![] };
    let configure = |name: &str| {
        let build_type = format!("-DCMAKE_BUILD_TYPE={name}");
        let _ = tree.configure(&[&toolkit, &build_type]).run().success();
    };
    configure("Release");
    let built = tree.build(&words(&configuration("Release"))).run();
    assert_ne!(built.status(), Some(0), "{built}");
    snapshot::check("cmake/strict-release", &tree.plain(&printed(&built)));
    if generator != MULTI {
        configure("Debug");
    }
    let built = tree.build(&words(&configuration("Debug"))).run().success();
    snapshot::check("cmake/strict-debug", &tree.plain(&printed(&built)));
    let app = tree.built(if generator == MULTI { "Debug/app" } else { "app" });
    assert_eq!(manifest(&app, "app")["toolkit"]["version"], "13.0.88");
    if generator != MULTI {
        // A refused build deletes the outputs of an earlier build.
        configure("Release");
        let refused = tree.build(&[]).run();
        assert!(refused.status() != Some(0) && !app.exists(), "{refused}");
    }
}

/// A linker script discards the note.
#[e2e]
fn removed_guard_is_reported() {
    let text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(bare LANGUAGES C)\n{}add_executable(app main.c)\n\
         target_link_options(app PRIVATE \"LINKER:-T,${{CMAKE_SOURCE_DIR}}/discards.ld\")\ncudaguard_embed(app)\n",
        include()
    );
    let tree = Tree::new(
        "taken out",
        Cmake::Newest,
        MULTI,
        &[
            ("CMakeLists.txt", &text),
            ("main.c", "int main(void) { return 0; }\n"),
            ("discards.ld", "SECTIONS { /DISCARD/ : { *(.note.cudaguard) } } INSERT AFTER .text;\n"),
        ],
    );
    let _ = tree.configure(&[]).run().success();
    let built = tree.build(&["--config", "Release"]).run();
    assert_ne!(built.status(), Some(0), "{built}");
    snapshot::check("cmake/taken-out", &tree.plain(&printed(&built)));
    assert!(!tree.built("Release/app").exists(), "{built}");
    let again = tree.build(&["--config", "Release"]).run();
    assert_ne!(again.status(), Some(0), "it does not count as built: {again}");
    // A dev build prints a warning and keeps the unguarded program.
    let built = tree.build(&["--config", "Debug"]).run().success();
    assert!(printed(&built).starts_with("warning[CG170]"), "{built}");
    assert!(tree.built("Debug/app").exists(), "{built}");
}
