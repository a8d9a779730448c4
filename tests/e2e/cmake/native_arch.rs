//! `native` selects the GPU of the build machine. CMake passes the word to nvcc, whose helper program queries the driver.
//! The driver is a fake; nvcc and the helper are real.

use cudaguard_tests::world::{self, H100, World};
use cudaguard_tests::{e2e, snapshot};

use super::fixture::{Cmake, MAKE, NINJA, Tree, include, manifest, printed, texts, toolkit, words};

const MAIN: &str = "__global__ void fill(int *p) { *p = 1; }\nint main() { fill<<<1, 1>>>(nullptr); return 0; }\n";

fn tree(cmake: Cmake, generator: &'static str, property: &str) -> Tree {
    let text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(native VERSION 1.0 LANGUAGES CUDA)\n{}\
         add_executable(app app.cu)\n{property}cudaguard_embed(app)\n",
        include()
    );
    Tree::new("native", cmake, generator, &[("CMakeLists.txt", &text), ("app.cu", MAIN)])
}

fn native(tree: &Tree, more: &[&str]) -> cudaguard_tests::Call {
    tree.configure(&words(&toolkit("13.0"))).arg("-DCMAKE_CUDA_ARCHITECTURES=native").args(more)
}

fn observed(tree: &Tree) -> (Vec<String>, Vec<String>) {
    let app = manifest(&tree.built("app"), "app");
    let list = |key: &str| texts(&app["archs"][key]).iter().map(ToString::to_string).collect();
    (list("declared"), list("observed"))
}

/// nvcc prints only a warning and compiles for its default architecture, which the project did not request.
#[e2e(slow)]
fn native_arch_fails_without_gpu() {
    world::need();
    let tree = tree(Cmake::Newest, NINJA, "").on(&World::bare());
    let _ = native(&tree, &["-DCMAKE_BUILD_TYPE=Release"]).run().success();
    let refused = tree.build(&[]).run();
    assert_ne!(refused.status(), Some(0), "{refused}");
    snapshot::check("cmake/native-unknown", &tree.plain(&printed(&refused)));
    let _ = native(&tree, &["-DCMAKE_BUILD_TYPE=Debug"]).run().success();
    let warned = tree.build(&[]).run().success();
    assert!(
        printed(&warned).starts_with("warning[CG124]") && warned.stdout.contains("default arch is used"),
        "{warned}"
    );
    let (declared, observed) = observed(&tree);
    assert!(declared.is_empty(), "{declared:?}");
    assert_eq!(observed, ["sm_75", "compute_75"], "the note lists the code that nvcc compiled");
}

#[e2e(slow)]
fn native_arch_uses_local_gpu() {
    world::need();
    // nvidia-smi is missing, as in containers that receive only the driver libraries.
    let world = World::new("580.65.06", 13000, &[H100]);
    let tree = tree(Cmake::Newest, NINJA, "").on(&world);
    let release = "-DCMAKE_BUILD_TYPE=Release";
    let _ = native(&tree, &[release]).run().success();
    let built = tree.build(&[]).run().success();
    assert_eq!(printed(&built), "", "{built}");
    let sm_90 = vec!["sm_90".to_owned()];
    assert_eq!(observed(&tree), (sm_90.clone(), sm_90.clone()));

    tree.write("cudaguard.toml", "[gpu]\nfleet = [\"A100\", \"H100\"]\n");
    let _ = native(&tree, &[]).run().success();
    let refused = tree.build(&[]).run();
    assert_ne!(refused.status(), Some(0), "{refused}");
    snapshot::check("cmake/native-fleet", &tree.plain(&printed(&refused)));
    tree.write("cudaguard.toml", "[gpu]\nfleet = [\"H100\"]\n");
    let built = tree.build(&[]).run().success();
    assert_eq!(printed(&built), "", "{built}");

    // Sets `native` as a target property. CMake 3.25 detects the GPU with a cudart program, which needs more than the fake
    // driver provides, so the test sets the result.
    let property = "set_property(TARGET app PROPERTY CUDA_ARCHITECTURES native)\n";
    let older = self::tree(Cmake::Oldest, MAKE, property).on(&world);
    let reported = ["-DCMAKE_CUDA_ARCHITECTURES=80", "-DCMAKE_CUDA_ARCHITECTURES_NATIVE=90-real", release];
    let _ = older.configure(&words(&toolkit("13.0"))).args(reported).run().success();
    let built = older.build(&[]).run().success();
    assert_eq!(printed(&built), "", "{built}");
    assert_eq!(observed(&older), (sm_90.clone(), sm_90));
}
