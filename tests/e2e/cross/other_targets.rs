//! Targets without a guard: the build continues and prints the reason once.

use std::fs;

use cudaguard_tests::{e2e, tools};

use super::fixture::{MUSL, WASM, built, embedding, guard, nothing_to_do, plain, printed, with_linkers};
use super::static_programs::{is_static_and_guarded, release, with_cudnn};

/// Target, program and C library file names, and the magic bytes of these files.
const WITHOUT_ELF: [(&str, &str, &str, &[u8]); 1] = [(WASM, "app.wasm", "examples/plugin.wasm", b"\0asm")];

fn why(target: &str) -> String {
    format!("the guard needs ELF files that start through a Linux C library; {target} has none")
}

/// Skips the test if a linker for the targets without ELF is missing.
fn need_linkers() {
    tools::need("wasm-ld");
}

#[e2e(slow)]
fn wasm_is_not_guarded() {
    need_linkers();
    let project = plain("no-elf");
    for (target, program, library, magic) in WITHOUT_ELF {
        let words = ["build", "--bins", "--examples", "--target", target];
        let first = guard(&project, words).run().success();
        for file in [program, library] {
            let bytes = fs::read(built(&project, target, file)).expect("it was built");
            assert!(bytes.starts_with(magic), "{file} of {target}");
        }
        let again = guard(&project, words).run().success();
        nothing_to_do(&again);
        for outcome in [first, again] {
            assert_eq!(printed(&outcome, "cudaguard: 0 of 2 targets guarded"), 1, "{outcome}");
            let reason = format!("not guarded: app, plugin: {}", why(target));
            assert_eq!(printed(&outcome, &reason), 1, "{outcome}");
            assert_eq!(printed(&outcome, "guard"), 2, "two lines, and no third: {outcome}");
        }
        assert!(!project.built(&format!("cudaguard/guards/{target}/dev/app-0.1.0/cudaguard-shim.o")).exists());
    }
}

/// A single build script serves all targets. It has a guard for musl, and none for targets without ELF.
#[e2e(slow)]
fn embed_works_on_other_targets() {
    need_linkers();
    tools::need("musl-gcc");
    let project = with_cudnn(embedding("embeds-for-all"));
    let outcome = guard(&project, ["build", "--target", MUSL]).env("CUDNN_PATH", release(&project, 15)).run().success();
    assert_eq!(printed(&outcome, "cudaguard: 1 of 1 target guarded (cuDNN 9.15.0)"), 1, "{outcome}");
    is_static_and_guarded(&project, &built(&project, MUSL, "app"), MUSL);
    for (target, program, _, magic) in WITHOUT_ELF {
        let words = ["build", "--target", target];
        let outcome = with_linkers(project.cargo(words)).run().success();
        assert_eq!(printed(&outcome, "CG140"), 1, "{outcome}");
        let warning = format!("warning[CG140]: app 0.1.0 is built without the guard: {}", why(target));
        assert_eq!(printed(&outcome, &warning), 1, "{outcome}");
        let outcome = guard(&project, words).run().success();
        assert_eq!(printed(&outcome, "cudaguard: 0 of 1 target guarded"), 1, "{outcome}");
        let bytes = fs::read(built(&project, target, program)).expect("it was built");
        assert!(bytes.starts_with(magic), "{program}");
    }
}
