//! Builds for ARM servers and Jetson, with gcc's cross compiler and qemu.

use std::path::Path;

use cudaguard::internal::manifest::Linkage;
use cudaguard_tests::{Project, e2e, fake_library, parts, tools};
use object::elf::EM_AARCH64;

use super::fixture::{
    AARCH64, ASKS, built, embedding, guard, nothing_to_do, objects_are_of, plain, printed, sealed, start,
};

const CC: &str = "aarch64-linux-gnu-gcc";

/// Skips the test if the cross compiler or the emulator is missing.
fn need() {
    tools::need_all(&[CC, "qemu-aarch64"]);
}

#[e2e(slow)]
fn unchanged_package_is_guarded() {
    need();
    let project = plain("arm-plain");
    let words = ["build", "--bins", "--examples", "--target", AARCH64];
    let outcome = guard(&project, words).run().success();
    assert_eq!(printed(&outcome, "cudaguard: 2 of 2 targets guarded (no CUDA toolkit)"), 1, "{outcome}");
    objects_are_of(&project, AARCH64, EM_AARCH64);
    for file in ["app", "examples/libplugin.so"] {
        let _ = sealed(&built(&project, AARCH64, file), EM_AARCH64, AARCH64);
    }
    let outcome = start(&built(&project, AARCH64, "app"), Path::new("/nowhere")).success();
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("ran\n", ""));
    nothing_to_do(&guard(&project, words).run().success());
}

#[e2e(slow)]
fn package_with_embed_is_guarded() {
    need();
    let project = embedding("arm-embeds");
    let outcome = guard(&project, ["build", "--bins", "--examples", "--target", AARCH64]).run().success();
    assert_eq!(printed(&outcome, "cudaguard: 2 of 2 targets guarded (no CUDA toolkit)"), 1, "{outcome}");
    assert_eq!(printed(&outcome, "Compiling cudaguard v"), 0, "the tests share the compiled library: {outcome}");
    for file in ["app", "examples/libplugin.so"] {
        let _ = sealed(&built(&project, AARCH64, file), EM_AARCH64, AARCH64);
    }
    let outcome = start(&built(&project, AARCH64, "app"), Path::new("/nowhere")).success();
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("ran\n", ""));
}

#[e2e(slow)]
fn all_linkers_keep_the_guard() {
    need();
    let project = plain("arm-linkers");
    let mut missing = Vec::new();
    // gcc's cross compiler finds lld and mold only under special names. clang knows gcc's directories.
    for (driver, linker) in [(CC, "bfd"), (CC, "gold"), ("clang", "lld"), ("clang", "mold")] {
        let lacking = if driver == "clang" { vec!["clang".to_owned(), format!("ld.{linker}")] } else { Vec::new() };
        let lacking: Vec<_> = lacking.into_iter().filter(|program| tools::find(program).is_none()).collect();
        if !lacking.is_empty() {
            missing.extend(lacking);
            continue;
        }
        let kind = if driver == "clang" { "-Clink-arg=--target=aarch64-linux-gnu" } else { "" };
        let _ = guard(&project, ["build", "--target", AARCH64])
            .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", driver)
            .env("RUSTFLAGS", format!("{kind} -Clink-arg=-fuse-ld={linker}"))
            .run()
            .success();
        let program = built(&project, AARCH64, "app");
        let _ = sealed(&program, EM_AARCH64, AARCH64);
        assert_eq!(start(&program, Path::new("/nowhere")).success().stdout, "ran\n", "{linker}");
    }
    tools::done_without(&missing);
}

/// Creates a fake cuDNN release for ARM servers with the layout of NVIDIA's archive.
fn release(project: &Project, version: (u32, u32, u32)) -> std::path::PathBuf {
    let dir = project.sibling().join(format!("cudnn-{}.{}.{}", version.0, version.1, version.2));
    fake_library::cudnn_by(CC, &dir, version);
    dir
}

#[e2e(slow)]
fn target_cudnn_is_checked() {
    need();
    let project = &plain("arm-cudnn");
    project.change("src/main.rs", ASKS);
    let with = release(project, (9, 15, 1));
    let outcome = guard(project, ["build", "--target", AARCH64])
        .env("CUDNN_PATH", &with)
        .env("CARGO_ENCODED_RUSTFLAGS", format!("-Lnative={}", with.join("lib").display()))
        .run()
        .success();
    assert_eq!(printed(&outcome, "cudaguard: 1 of 1 target guarded (cuDNN 9.15.1)"), 1, "{outcome}");
    let program = built(project, AARCH64, "app");
    let note = sealed(&program, EM_AARCH64, AARCH64);
    let cudnn = note.manifest.library.expect("it is built with one");
    assert_eq!((cudnn.version.to_string().as_str(), cudnn.linkage), ("9.15.1", Linkage::Linked));

    for (version, number) in [((9, 15, 1), 91501), ((9, 15, 0), 91500), ((9, 28, 0), 92800)] {
        let outcome = start(&program, &release(project, version).join("lib")).success();
        assert_eq!((outcome.stdout, outcome.stderr.as_str()), (format!("cuDNN {number}\n"), ""), "{version:?}");
    }
    let outcome = start(&program, &release(project, (9, 1, 0)).join("lib")).expect(78);
    assert!(outcome.stdout.is_empty(), "refused before it begins: {outcome}");
    assert!(outcome.stderr.contains("9.15.1") && outcome.stderr.contains("9.1.0"), "{outcome}");
    assert!(outcome.stderr.lines().count() <= 6, "{outcome}");

    let page = guard(project, ["inspect"]).arg(&program).run().success().stdout;
    for line in [
        "app: executable, aarch64",
        "component app 0.1.0",
        "  target     aarch64-unknown-linux-gnu, dev",
        "  cuDNN      9.15.1, linked",
        "  CUDA       libcudnn.so.9",
    ] {
        assert!(page.lines().any(|one| one.ends_with(line)), "{line} is not in\n{page}");
    }
}

/// Links a real cudart for servers. The manifest records the release that the code contains, also in a stripped program.
/// The program itself reports the same release.
#[e2e(slow)]
fn linked_cudart_is_recorded() {
    need();
    let library = parts::part("cudart-13.0-aarch64").join("lib/libcudart_static.a");
    let main = "extern \"C\" {\n    fn cudaRuntimeGetVersion(version: *mut i32) -> i32;\n}\nfn main() {\n    let mut version = 0;\n    \
                unsafe { cudaRuntimeGetVersion(&mut version) };\n    println!(\"{version}\");\n}\n";
    let words = format!(
        "fn main() {{\n    for word in [\"{}\", \"-ldl\", \"-lrt\", \"-lpthread\", \"-lc\"] {{\n        \
         println!(\"cargo:rustc-link-arg-bins={{word}}\");\n    }}\n}}\n",
        library.display()
    );
    let project = plain("arm-cudart").file("build.rs", words).file("src/main.rs", main);
    let project = project.append("Cargo.toml", "\n[profile.dev]\nstrip = true\n");
    let outcome = guard(&project, ["build", "--bins", "--target", AARCH64]).run().success();
    let program = built(&project, AARCH64, "app");
    let note = sealed(&program, EM_AARCH64, AARCH64).manifest;
    let cudart = note.cudart.unwrap_or_else(|| panic!("no cudart: {outcome}"));
    let release = cudart.version.unwrap_or_else(|| panic!("no release: {outcome}"));
    assert_eq!((cudart.linkage, release.to_string().as_str()), (Linkage::Static, "13.0"), "{outcome}");
    let answered = start(&program, Path::new("/nowhere")).success();
    assert_eq!(answered.stdout, "13000\n", "{answered}");
}
