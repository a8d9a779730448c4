//! Files with and without a guard, under different linkers and options.

use std::path::Path;

use cudaguard_tests::{Call, Test, e2e, scratch, test, tools};

use super::cache::{host, long_ago};
use super::fixture::{Fixture, notes, package, sealed, set_time, summary};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let mut all = Vec::new();
    // Other suites link the same objects with each linker.
    for (name, options) in [
        ("fat-lto", &["profile.dev.lto='fat'", "profile.dev.panic='abort'"][..]),
        ("stripped", &["profile.dev.strip=true", "profile.dev.lto='thin'"]),
        ("debug-packed", &["profile.dev.split-debuginfo='packed'"]),
        ("lld", &["build.rustflags=['-Clink-arg=-fuse-ld=lld']"]),
    ] {
        let name_of_test = format!("injection::linked_{}", name.replace('-', "_"));
        all.push(test(name_of_test, move || linked(name, options)).slow());
    }
    all
}

const LIB: &str = "#[no_mangle]\npub extern \"C\" fn seven() -> u32 {\n    7\n}\n";
const MAIN: &str = "fn main() {\n    println!(\"ran {}\", std::env::args().count());\n}\n";

fn everything(name: &str) -> Fixture {
    let more = "[lib]\ncrate-type = [\"lib\", \"cdylib\"]\n\
                [[example]]\nname = \"c-example\"\ncrate-type = [\"cdylib\"]\n[workspace]\n";
    Fixture::new(
        name,
        &[
            ("Cargo.toml", &package("app", more)),
            ("src/lib.rs", LIB),
            ("src/main.rs", MAIN),
            ("examples/shown.rs", MAIN),
            ("examples/c-example.rs", LIB),
        ],
    )
}

#[e2e]
fn programs_examples_and_libraries_are_guarded() {
    let fixture = everything("injection-all");
    let outcome = fixture.guard(["build", "--all-targets"]).run().success();
    for file in ["debug/app", "debug/libapp.so", "debug/examples/shown", "debug/examples/libc_example.so"] {
        let _ = sealed(&fixture.built(file), "app");
    }
    assert_eq!(summary(&outcome), "cudaguard: 4 of 4 targets guarded (no CUDA toolkit)");
    assert_eq!(Call::new(fixture.built("debug/app")).run().success().stdout, "ran 1\n");
    assert_eq!(Call::new(fixture.built("debug/examples/shown")).run().success().stdout, "ran 1\n");
    // Loads the library in another program.
    let script = "import ctypes, sys\nprint(ctypes.CDLL(sys.argv[1]).seven())\n";
    let python = Call::new("python3").args(["-c", script]).arg(fixture.built("debug/libapp.so")).run().success();
    assert_eq!(python.stdout, "7\n");
}

#[e2e(slow)]
fn tests_scripts_and_macros_stay_unguarded() {
    let fixture = library_with_macro("injection-none");
    let outcome = fixture.guard(["test", "--workspace"]).run().success();
    assert!(outcome.stdout.contains("test result: ok. 1 passed"), "{outcome}");
    let mut seen = 0;
    for dir in ["debug/deps", "debug/build"] {
        for file in files(&fixture.built(dir)) {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let harness =
                name.starts_with("plain-") || name.starts_with("owned_main-") || name.starts_with("in_tests-");
            let ours = harness || name.starts_with("build-script-") || name.starts_with("libspell-");
            if ours && cargo_cudaguard::binary::file::Binary::read(&file).is_ok_and(|binary| !binary.needed.is_empty())
            {
                assert!(notes(&file).is_empty(), "{}", file.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 4, "test harnesses, a test with its own main, a build script and a macro: {seen}");
    assert!(!outcome.stderr.contains("cudaguard: "), "there was nothing to guard: {outcome}");
}

/// Returns a library with a build script, a procedural macro in its workspace, unit and integration tests, and a doc test.
pub(crate) fn library_with_macro(name: &str) -> Fixture {
    Fixture::new(
        name,
        &[
            ("Cargo.toml", "[workspace]\nresolver = \"2\"\nmembers = [\"plain\", \"spell\"]\n"),
            (
                "plain/Cargo.toml",
                &package(
                    "plain",
                    "build = \"build.rs\"\n[dependencies]\nspell = { path = \"../spell\" }\n\
                     [[test]]\nname = \"owned_main\"\nharness = false\n",
                ),
            ),
            ("plain/build.rs", "fn main() {\n    println!(\"cargo:rustc-env=FROM_SCRIPT=7\");\n}\n"),
            (
                "plain/src/lib.rs",
                "//! ```\n//! assert_eq!(plain::seven(), 7);\n//! ```\nspell::seven!();\n\n#[test]\nfn inside() {\n    \
                 assert_eq!(env!(\"FROM_SCRIPT\"), seven().to_string());\n}\n",
            ),
            ("plain/tests/in_tests.rs", "#[test]\nfn outside() {\n    assert_eq!(plain::seven(), 7);\n}\n"),
            ("plain/tests/owned_main.rs", "fn main() {\n    assert_eq!(plain::seven(), 7);\n}\n"),
            ("spell/Cargo.toml", &package("spell", "[lib]\nproc-macro = true\n")),
            (
                "spell/src/lib.rs",
                "use proc_macro::TokenStream;\n\n#[proc_macro]\npub fn seven(_: TokenStream) -> TokenStream {\n    \
                 \"pub fn seven() -> u32 { 7 }\".parse().unwrap()\n}\n",
            ),
        ],
    )
}

fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            all.extend(files(&entry.path()));
        } else {
            all.push(entry.path());
        }
    }
    all
}

#[e2e(slow)]
fn embed_is_not_guarded_twice() {
    let project = cudaguard_tests::Project::guarded("injection-embed")
        .file("src/lib.rs", LIB)
        .file("src/main.rs", MAIN)
        .file("src/bin/other.rs", "fn main() {\n    println!(\"{}\", injection_embed::seven());\n}\n");
    let outcome = project.cudaguard(["build"]).run().success();
    for name in ["injection-embed", "other"] {
        let _ = sealed(&project.built(&format!("debug/{name}")), "injection-embed");
    }
    assert_eq!(summary(&outcome), "cudaguard: 2 of 2 targets guarded (no CUDA toolkit)");
    let again = project.cudaguard(["build", "-v"]).run().success();
    assert!(!again.stderr.contains("Running `"), "nothing changed: {again}");
    // A stamp with other contents makes the build script run again.
    let cudnn = project.sibling().join("cudnn");
    cudaguard_tests::fake_library::cudnn(&cudnn, (9, 1, 0));
    let _ = project.cudaguard(["build"]).env("CUDNN_PATH", &cudnn).run().success();
    let header = cudnn.join("include/cudnn_version.h");
    let text = std::fs::read_to_string(&header).expect("just written").replace("MINOR 1", "MINOR 4");
    std::fs::write(&header, text).expect("it can be written");
    set_time(&header, long_ago());
    let outcome = project.cudaguard(["build", "-v"]).env("CUDNN_PATH", &cudnn).run().success();
    assert!(outcome.stderr.contains("build-script-build`"), "older, but other: {outcome}");
}

fn linked(name: &str, options: &[&str]) {
    if name == "lld" {
        tools::need("ld.lld");
    }
    let fixture = everything(&format!("linked-{name}"));
    let mut arguments = vec!["build".to_owned(), "--bins".to_owned(), "--lib".to_owned()];
    arguments.extend(options.iter().flat_map(|option| ["--config".to_owned(), (*option).to_owned()]));
    let _ = fixture.guard(&arguments).run().success();
    for file in ["debug/app", "debug/libapp.so"] {
        let _ = sealed(&fixture.built(file), "app");
    }
    assert_eq!(Call::new(fixture.built("debug/app")).run().success().stdout, "ran 1\n");
}

/// CMake prints the same finding. A file without CUDA and without a requested guard has no finding.
#[e2e(slow)]
fn dropped_guard_is_reported() {
    let project = cudaguard_tests::Project::guarded("injection-dropped").file("src/main.rs", MAIN);
    let linker = project.sibling().join("linker");
    scratch::program(
        &linker,
        "#!/bin/bash\ncc \"$@\" || exit\nwhile [ \"$1\" != -o ]; do shift; done\n\
         case $2 in *build_script*) ;; *) objcopy -R .note.cudaguard \"$2\";; esac\n",
    );
    let message = "[CG170]: injection_dropped is linked without its guard: it is not in the file.";
    // As an option of the program: the variable would recompile all dependencies.
    let option = format!("-Clinker={}", linker.display());
    let built = project.cudaguard(["--", "rustc", "--release", "--", &option]).run();
    assert_eq!(built.status(), Some(101), "{built}");
    assert!(built.stderr.contains(&format!("error{message}")), "{built}");
    assert!(!project.built("release/injection-dropped").exists(), "{built}");
    let built = project.cudaguard(["--", "rustc", "--", &option]).run().success();
    assert!(built.stderr.contains(&format!("warning{message}")), "{built}");
    assert!(built.stderr.contains("  not guarded: injection_dropped: "), "{built}");
    assert!(project.built("debug/injection-dropped").exists(), "{built}");

    let variable = format!("CARGO_TARGET_{}_LINKER", host().to_uppercase().replace('-', "_"));
    let fixture =
        Fixture::new("injection-left", &[("Cargo.toml", &package("app", "[workspace]\n")), ("src/main.rs", MAIN)]);
    let built = fixture.guard(["build", "--release"]).env(&variable, &linker).run().success();
    assert!(!built.stderr.contains("CG170"), "{built}");
    assert!(built.stderr.contains("  not guarded: app: the guard was linked, but it is not in the file"), "{built}");
}

/// If a build only produces a static library, the output states that it has no guard, and how to add one.
#[e2e(slow)]
fn static_library_without_guard_is_reported() {
    let fixture = Fixture::new(
        "injection-archive",
        &[("Cargo.toml", &package("part", "[lib]\ncrate-type = [\"staticlib\"]\n[workspace]\n")), ("src/lib.rs", LIB)],
    );
    let printed = fixture.guard(["build"]).run().success();
    let line = "cudaguard: 0 of 0 targets guarded\n  not guarded: libpart.a: to guard a static library, call cudaguard::embed!()";
    assert!(printed.stderr.contains(line), "{printed}");
    let quiet = fixture.guard(["build", "--quiet"]).run().success();
    assert_eq!(quiet.stderr, "");
    fixture.write("src/main.rs", MAIN);
    let built = fixture.guard(["build"]).run().success();
    assert!(built.stderr.contains("1 of 1 target guarded (no CUDA toolkit)\n  not guarded: libpart.a: "), "{built}");
    for words in [&["run"][..], &["test"], &["build", "--bin", "part"]] {
        let printed = fixture.guard(words).run().success();
        assert!(!printed.stderr.contains("not guarded"), "no program needs the library: {printed}");
    }
}

/// `[build] unguarded`: if a guard is impossible, the policy fails the same builds as for a mismatch, under both front
/// ends.
#[e2e(slow)]
fn require_guard_refuses_unguarded_targets() {
    let fixture =
        Fixture::new("injection-denied", &[("Cargo.toml", &package("app", "[workspace]\n")), ("src/main.rs", MAIN)]);
    let call = |policy: &str, words: &[&str]| {
        fixture.write("cudaguard.toml", policy);
        fixture.guard(words).env("CC", "/nowhere/cc").run()
    };
    let deny = "build.unguarded = \"deny\"\n";
    let refused = call(deny, &["build", "--release"]);
    assert_ne!(refused.status(), Some(0), "{refused}");
    assert!(refused.stderr.contains("error[CG140]: app 0.1.0 is built without the guard"), "{refused}");
    assert!(!fixture.built("release/app").exists(), "{refused}");
    for (policy, words) in [
        (deny, &["build"][..]),
        ("build.unguarded = \"warn\"\n", &["build", "--release"]),
        ("build.unguarded = \"deny\"\nbuild.release = \"warn\"\n", &["build", "--release"]),
        ("build.unguarded = \"deny\"\nallow.CG140 = \"a builder without a compiler\"\n", &["build", "--release"]),
    ] {
        let fine = call(policy, words).success();
        assert_eq!(summary(&fine), "cudaguard: 0 of 1 target guarded", "{policy}: {fine}");
    }
    let _ = call("build.unguarded = \"deny\"\nbuild.dev = \"deny\"\n", &["build"]).expect(101);
}
