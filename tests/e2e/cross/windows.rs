//! Programs for Windows: built by cargo, sealed, and started by Wine.

use cudaguard_tests::{e2e, parts, tools};
use object::elf::EM_X86_64;

use super::fixture::{WINDOWS, built, embedding, guard, plain, printed, sealed};
use crate::windows::guard::{NEEDS_BOTH, missing_libraries_are_refused, starts_only_with_newer_cudnn};
use crate::windows::wine::Wine;

#[e2e(slow)]
fn windows_program_and_dll_are_sealed() {
    tools::need("x86_64-w64-mingw32-gcc");
    for project in [plain("windows-plain"), embedding("windows-embeds")] {
        let words = ["build", "--bins", "--examples", "--target", WINDOWS];
        let outcome = guard(&project, words).run().success();
        assert_eq!(printed(&outcome, "cudaguard: 2 of 2 targets guarded (no CUDA toolkit)"), 1, "{outcome}");
        for file in ["app.exe", "examples/plugin.dll"] {
            let _ = sealed(&built(&project, WINDOWS, file), EM_X86_64, WINDOWS);
        }
    }
}

const MAIN: &str = r#"#[link(name = "cudnn64_9", kind = "raw-dylib")]
extern "C" {
    fn cudnnGetVersion() -> usize;
}
fn main() {
    println!("main starts");
    // A call would need the sublibraries.
    println!("{:p}", cudnnGetVersion as *const ());
}
"#;

#[e2e(slow)]
fn rust_program_is_judged_before_main() {
    tools::need("x86_64-w64-mingw32-gcc");
    let wine = Wine::new("windows-guard-rust");
    wine.add_random_numbers();
    let project = plain("windows-rust")
        .file("cudaguard.toml", "[cudnn]\nlinkage = \"linked\"\n")
        .file(
            "Cargo.toml",
            cudaguard_tests::project::package("app") + "\n[profile.release]\ncodegen-units = 1\nstrip = true\n",
        )
        .file("src/main.rs", MAIN);
    let build = |count: &str| {
        let outcome = guard(&project, ["build", "--release", "--target", WINDOWS])
            .env("CUDNN_INCLUDE_DIR", parts::cudnn("9.15.1-cu12").join("include"))
            .run()
            .success();
        assert_eq!(printed(&outcome, count), 1, "{outcome}");
        let program = project.built(&format!("{WINDOWS}/release/app.exe"));
        let _ = sealed(&program, EM_X86_64, WINDOWS);
        program
    };
    starts_only_with_newer_cudnn(&wine, &build("cudaguard: 1 of 1 target guarded (cuDNN 9.15.1)"));
    // The loader ends a program whose DLL is missing, before the guard runs. This one opens cuDNN.
    project.write("cudaguard.toml", NEEDS_BOTH);
    project.write("src/main.rs", "fn main() {\n    println!(\"main starts\");\n}\n");
    missing_libraries_are_refused(&wine, &build("cudaguard: 1 of 1 target guarded (cuDNN 9.15.1)"));
}
