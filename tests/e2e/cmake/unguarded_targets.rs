//! Targets that cannot have a guard.

use std::fs;

use cudaguard_tests::{e2e, scratch, tools};

use super::fixture::{Cmake, MULTI, NINJA, Tree, include, printed, program};

const MAIN: &str = "#include <cudaguard.h>\n#include <stdio.h>\n\
                    int main(void) { printf(\"main: %d\\n\", cudaguard_check()); return 0; }\n";

/// `[build] unguarded` works in CMake as in cargo: for a system without a guard, and for a machine that the shim does not
/// support. A refused build deletes the outputs of an earlier build.
#[e2e(slow)]
fn require_guard_refuses_unguarded_targets() {
    tools::need_all(&["gcc"]);
    let text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(denied VERSION 2.0 LANGUAGES C)\n{}add_subdirectory(below)\n\
         add_executable(app main.c)\nadd_library(shared SHARED main.c)\nadd_library(object OBJECT main.c)\n\
         foreach(name IN ITEMS app shared object)\n  cudaguard_embed(${{name}})\nendforeach()\n\
         cudaguard_embed(far)\n",
        include()
    );
    let big_endian = "#!/bin/sh\nif [ \"$1\" = -dumpmachine ]; then echo sparc64-linux-gnu; else exec gcc \"$@\"; fi\n";
    for (name, compiler, system) in
        [("freebsd", "", "-DCMAKE_SYSTEM_NAME=FreeBSD"), ("big-endian", big_endian, "-DCMAKE_C_COMPILER_WORKS=ON")]
    {
        let tree = Tree::new(
            &format!("denied {name}"),
            Cmake::Oldest,
            MULTI,
            &[("CMakeLists.txt", &text), ("main.c", MAIN), ("below/CMakeLists.txt", "add_executable(far ../main.c)\n")],
        );
        let cc = if compiler.is_empty() {
            program("gcc")
        } else {
            let cc = tree.source().join("cc");
            scratch::program(&cc, compiler);
            cc
        };
        let configure = || tree.configure(&[system, &format!("-DCMAKE_C_COMPILER={}", cc.display())]).run().success();
        let build = |configuration: &str| tree.build(&["--config", configuration]).run();
        let (app, far) = (tree.built("Release/app"), tree.built("below/Release/far"));
        let _ = configure();
        let fine = build("Release").success();
        assert!(app.exists() && far.exists(), "{fine}");
        assert!(build("Release").success().stdout.contains("no work to do"));
        tree.write("cudaguard.toml", "build.unguarded = \"deny\"\n");
        let _ = configure();
        let refused = tree.build(&["--config", "Release", "--", "-k", "0"]).run();
        assert_ne!(refused.status(), Some(0), "{name}: {refused}");
        for target in ["app", "shared", "object", "far"] {
            let text = format!("error[CG140]: {target} 2.0 is built without the guard");
            assert!(printed(&refused).contains(&text), "{name}, {target}: {refused}");
        }
        assert!(!app.exists() && !far.exists(), "{refused}");
        let _ = build("Debug").success();
        tree.write("cudaguard.toml", "build.unguarded = \"deny\"\nallow.CG140 = \"this one is\"\n");
        let _ = configure();
        let _ = build("Release").success();
        assert!(app.exists() && far.exists());
    }
}

/// Kokkos and Trilinos set their `nvcc_wrapper` as the C++ compiler. It does not name its target, and another compiler compiles
/// the guard. A policy that appears after that is used by the next build.
#[e2e]
fn nvcc_wrapper_gets_another_guard_compiler() {
    tools::need_all(&["g++"]);
    let text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(kokkos VERSION 2.0 LANGUAGES CXX)\n{}add_executable(app main.cpp)\n\
         cudaguard_embed(app)\n",
        include()
    );
    let main = "int main() { return 0; }\n";
    let tree = Tree::new("nvcc wrapper", Cmake::Oldest, NINJA, &[("CMakeLists.txt", &text), ("main.cpp", main)]);
    let wrapper = tree.source().join("nvcc_wrapper");
    scratch::program(
        &wrapper,
        "#!/bin/sh\ncase \"$*\" in *-dumpmachine*) echo \"nvcc fatal   : Unknown option '-dumpmachine'\" >&2; exit 1;; esac\n\
         exec g++ \"$@\"\n",
    );
    let configured = tree.configure(&[&format!("-DCMAKE_CXX_COMPILER={}", wrapper.display())]).run().success();
    assert!(configured.stdout.contains("compiles the guard, because"), "{configured}");
    let built = tree.build(&[]).run().success();
    assert!(
        fs::read(tree.built("app")).is_ok_and(|file| file.windows(10).any(|bytes| bytes == b"kokkos 2.0")
            || file.windows(14).any(|bytes| bytes == b".note.cudaguar")),
        "{built}"
    );
    tree.write("cudaguard.toml", "bogus = 1\n");
    let refused = tree.build(&[]).run();
    assert!(refused.status() != Some(0) && printed(&refused).contains("bogus"), "{refused}");
}
