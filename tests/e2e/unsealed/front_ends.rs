//! A program with kernels for `sm_80` only, built by each front end: on each machine it has the same result and output.

use cudaguard_tests::project::check_dependency;
use cudaguard_tests::world::{self, A100, MakeMachine as _, World};
use cudaguard_tests::{Call, Project, Scratch, command, e2e, parts, scratch, tools};

/// If a variable sets archs for all builds, a program without visible kernels may have hidden ones. `TORCH_CUDA_ARCH_LIST`
/// does not count, because containers set it globally.
#[e2e(slow)]
fn unintended_archs_are_reported() {
    world::need();
    tools::need("gcc");
    let scratch = Scratch::new("meant-world");
    let machine = World::new("580.95.05", 13000, &[A100]).make(&scratch.join("world"));
    let cuda = parts::cuda("13.0");
    for (variable, named) in [("TORCH_CUDA_ARCH_LIST", false), ("CUDA_COMPUTE_CAP", true)] {
        let value = if named { "80" } else { "8.0" };
        let project = Project::guarded("tool").append("Cargo.toml", &check_dependency());
        let project = project.file("src/main.rs", "fn main() {\n    println!(\"{}\", cudaguard::check());\n}\n");
        let _ = project.cudaguard(["build"]).env("CUDA_HOME", &cuda).env(variable, value).run().success();
        let outcome = machine.call(project.built("debug/tool"), &[]).dir(scratch.path()).run().success();
        let left = if named { "; not checked: declared GPU code that was not found" } else { "" };
        assert_eq!(outcome.stdout, format!("compatible{left}\n"), "{variable}");
    }
}

/// The output describes what the static library contains, and the linker options that include the guard.
#[e2e(slow)]
fn static_library_linkage_is_recorded() {
    let static_only = Project::guarded("carries")
        .append("Cargo.toml", "\n[lib]\ncrate-type = [\"staticlib\"]\n")
        .file("src/lib.rs", "#[no_mangle]\npub extern \"C\" fn seven() -> i32 {\n    7\n}\n");
    let built = static_only.cargo(["build"]).run().success();
    assert!(
        built.stderr.contains("libcarries.a contains the guard") && built.stderr.contains("--whole-archive"),
        "{built}"
    );
    let with_program = Project::guarded("carries")
        .append("Cargo.toml", "\n[lib]\ncrate-type = [\"staticlib\", \"cdylib\"]\n")
        .file("src/lib.rs", "#[no_mangle]\npub extern \"C\" fn seven() -> i32 {\n    7\n}\n");
    let built = with_program.cargo(["build"]).run().success();
    assert!(!built.stderr.contains("carries the guard"), "{built}");
    // Uses the printed linker options, and the program has a guard.
    let dir = Scratch::new("carries");
    scratch::write(&dir.join("main.c"), "int seven(void);\nint main(void) { return seven() != 7; }\n");
    let archive = static_only.built("debug/libcarries.a");
    let link = |before: &[&str], name: &str| {
        let file = dir.join(name);
        let call = Call::new("gcc").arg("-o").arg(&file).arg(dir.join("main.c")).args(before).arg(&archive);
        let _ = call.args(["-Wl,--no-whole-archive", "-lpthread", "-ldl", "-lm"]).run().success();
        let _ = Call::new(&file).run().success();
        command::components(&file).len()
    };
    assert_eq!(link(&["-Wl,--whole-archive"], "whole"), 1);
}
