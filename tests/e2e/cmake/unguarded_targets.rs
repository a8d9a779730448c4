//! Targets that cannot have a guard.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use cudaguard_tests::{Test, tests, tools};

use super::fixture::{Cmake, MULTI, Tree, include, printed, program};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        #[slow]
        require_guard_refuses_unguarded_targets
    ]
}

const MAIN: &str = "#include <cudaguard.h>\n#include <stdio.h>\n\
                    int main(void) { printf(\"main: %d\\n\", cudaguard_check()); return 0; }\n";

/// `[build] unguarded` works in CMake as in cargo: for a system without ELF, and for a machine that the shim does not
/// support. A refused build deletes the outputs of an earlier build.
fn require_guard_refuses_unguarded_targets() {
    tools::need_all(&["gcc", "x86_64-w64-mingw32-gcc"]);
    let text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(denied VERSION 2.0 LANGUAGES C)\n{}add_subdirectory(below)\n\
         add_executable(app main.c)\nadd_library(shared SHARED main.c)\nadd_library(object OBJECT main.c)\n\
         foreach(name IN ITEMS app shared object)\n  cudaguard_embed(${{name}})\nendforeach()\n\
         cudaguard_embed(far)\n",
        include()
    );
    let big_endian = "#!/bin/sh\nif [ \"$1\" = -dumpmachine ]; then echo sparc64-linux-gnu; else exec gcc \"$@\"; fi\n";
    for (name, compiler, system, ending) in [
        ("windows", "", "-DCMAKE_SYSTEM_NAME=Windows", ".exe"),
        ("big-endian", big_endian, "-DCMAKE_C_COMPILER_WORKS=ON", ""),
    ] {
        let tree = Tree::new(
            &format!("denied {name}"),
            Cmake::Oldest,
            MULTI,
            &[("CMakeLists.txt", &text), ("main.c", MAIN), ("below/CMakeLists.txt", "add_executable(far ../main.c)\n")],
        );
        let cc = if compiler.is_empty() {
            program("x86_64-w64-mingw32-gcc")
        } else {
            tree.write("cc", compiler);
            let cc = tree.source().join("cc");
            fs::set_permissions(&cc, fs::Permissions::from_mode(0o755)).expect("it was just written");
            cc
        };
        let configure = || tree.configure(&[system, &format!("-DCMAKE_C_COMPILER={}", cc.display())]).run().success();
        let build = |configuration: &str| tree.build(&["--config", configuration]).run();
        let (app, far) =
            (tree.built(&format!("Release/app{ending}")), tree.built(&format!("below/Release/far{ending}")));
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
