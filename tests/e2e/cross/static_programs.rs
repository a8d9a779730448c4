//! Statically linked programs with glibc or musl, position-independent or not.

use std::fs;
use std::path::{Path, PathBuf};

use cargo_cudaguard::binary::file::Binary;
use cudaguard_tests::{Call, Outcome, Project, e2e, fake_library, tools};
use object::elf::EM_X86_64;

use super::fixture::{HOST, MUSL, built, guard, nothing_to_do, objects_are_of, plain, printed, sealed};

const LINKERS: [&str; 4] = ["bfd", "gold", "lld", "mold"];

/// Adds a policy that can refuse a static program, and three fake cuDNN releases.
pub(crate) fn with_cudnn(project: Project) -> Project {
    for minor in [1, 15, 28] {
        fake_library::cudnn(&release(&project, minor), (9, minor, 0));
    }
    project.file("cudaguard.toml", "[cudnn]\nlinkage = \"dlopened\"\n")
}

pub(crate) fn release(project: &Project, minor: u32) -> PathBuf {
    project.sibling().join(format!("cudnn-9.{minor}"))
}

/// Checks that a program has no interpreter and a sealed guard that works.
#[track_caller]
pub(crate) fn is_static_and_guarded(project: &Project, program: &Path, target: &str) {
    let _ = sealed(program, EM_X86_64, target);
    let binary = Binary::read(program).expect("a program");
    assert_eq!((binary.interpreter, binary.needed), (None, Vec::new()), "{}", program.display());
    let start = |minor| Call::new(program).env("LD_LIBRARY_PATH", release(project, minor).join("lib")).run();
    for minor in [15, 28] {
        let outcome = start(minor).success();
        assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("ran\n", ""), "cuDNN 9.{minor}");
    }
    if target == MUSL {
        // musl opens no library in a static program, so the older cuDNN is not loaded.
        let report = project.sibling().join("report.jsonl");
        let _ = Call::new(program).env("CUDAGUARD_REPORT", &report).run().success();
        return assert!(fs::read_to_string(&report).expect("the guard ran").contains("\"app\""));
    }
    let outcome = start(1).expect(78);
    assert!(outcome.stdout.is_empty(), "refused before it begins: {outcome}");
    assert!(outcome.stderr.contains("cuDNN 9.1.0 is older than cuDNN 9.15.0"), "{outcome}");
}

/// Returns the installed linkers, and the program names of the missing ones.
fn linkers() -> (Vec<&'static str>, Vec<String>) {
    let (there, not): (Vec<_>, Vec<_>) =
        LINKERS.into_iter().partition(|linker| tools::find(&format!("ld.{linker}")).is_some());
    (there, not.into_iter().map(|linker| format!("ld.{linker}")).collect())
}

/// Builds for this machine by a call of `build`.
#[track_caller]
fn build_static_pie(project: &Project, build: Call, profile: &str, linker: &str) {
    let outcome = build
        .args(["--target", HOST, "--profile", profile])
        .env("CUDNN_PATH", release(project, 15))
        .env("RUSTFLAGS", format!("-Ctarget-feature=+crt-static -Clink-arg=-fuse-ld={linker}"))
        .run()
        .success();
    assert_eq!(printed(&outcome, "1 of 1 target guarded"), 1, "{linker}: {outcome}");
    let dir = if profile == "dev" { "debug" } else { profile };
    is_static_and_guarded(project, &project.built(&format!("{HOST}/{dir}/app")), HOST);
}

#[e2e(slow)]
fn static_pie_is_guarded() {
    let project = with_cudnn(plain("static-pie"));
    let manifest = fs::read_to_string(project.path().join("Cargo.toml")).expect("it is there");
    project.write("Cargo.toml", manifest + "\n[profile.release]\nlto = true\npanic = \"abort\"\nstrip = true\n");
    let (there, missing) = linkers();
    for linker in there {
        build_static_pie(&project, project.cudaguard(["build"]), "dev", linker);
    }
    // rustc performs LTO, so one linker is enough.
    build_static_pie(&project, project.cudaguard(["build"]), "release", "bfd");
    tools::done_without(&missing);
}

fn build(project: &Project, flags: &str) -> Outcome {
    let call = guard(project, ["build", "--target", MUSL]).env("CUDNN_PATH", release(project, 15));
    call.env("RUSTFLAGS", flags).run().success()
}

/// Links in the target's default way: with `cc` and the files in the compiler's directory. `musl-gcc` compiles the guard.
#[e2e(slow)]
fn musl_program_is_guarded() {
    tools::need("musl-gcc");
    let project = with_cudnn(plain("musl"));
    let (there, missing) = linkers();
    for linker in there {
        let flags = format!("-Clink-arg=-fuse-ld={linker}");
        let outcome = build(&project, &flags);
        assert_eq!(printed(&outcome, "cudaguard: 1 of 1 target guarded (cuDNN 9.15.0)"), 1, "{outcome}");
        is_static_and_guarded(&project, &built(&project, MUSL, "app"), MUSL);
        nothing_to_do(&build(&project, &flags));
    }
    objects_are_of(&project, MUSL, EM_X86_64);
    tools::done_without(&missing);
}

#[e2e(slow)]
fn musl_compiler_builds_the_guard() {
    tools::need("musl-gcc");
    let project = with_cudnn(plain("musl-gcc"));
    // Debian's musl-gcc cannot link static position-independent programs.
    let _ = guard(&project, ["build", "--target", MUSL])
        .env("CUDNN_PATH", release(&project, 15))
        .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_LINKER", "musl-gcc")
        .env("RUSTFLAGS", "-Crelocation-model=static -Clink-self-contained=no")
        .run()
        .success();
    is_static_and_guarded(&project, &built(&project, MUSL, "app"), MUSL);
}

/// rustc needs no C compiler for musl, but the guard does.
#[e2e(slow)]
fn musl_without_compiler_is_unguarded() {
    tools::need("musl-gcc");
    let project = plain("musl-bare");
    let build = |compiler: &str| {
        guard(&project, ["build", "--target", MUSL]).env("CC_x86_64_unknown_linux_musl", compiler).run().success()
    };
    let outcome = build("/nowhere/musl-gcc");
    assert_eq!(printed(&outcome, "cudaguard: 0 of 1 target guarded"), 1, "{outcome}");
    assert_eq!(printed(&outcome, "not guarded: app: no C compiler for x86_64-unknown-linux-musl"), 1, "{outcome}");
    let program = built(&project, MUSL, "app");
    assert_eq!(Binary::read(&program).expect("a program").manifests().count(), 0);
    assert_eq!(Call::new(&program).run().success().stdout, "ran\n");
    let outcome = build("musl-gcc");
    assert_eq!(printed(&outcome, "cudaguard: 1 of 1 target guarded (no CUDA toolkit)"), 1, "{outcome}");
    let _ = sealed(&program, EM_X86_64, MUSL);
}
