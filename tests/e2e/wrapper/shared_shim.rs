//! The shim is compiled once per target directory, and packages that do not use CUDA get none.

use std::fs;
use std::path::{Path, PathBuf};

use cudaguard_tests::{Call, Outcome, e2e, scratch, tools};

use super::fixture::{Fixture, GUARDED, compiled, notes, package, sealed, set, summary};

const MAIN: &str = "fn main() {}\n";

/// Returns a workspace of programs without CUDA. The policy of those in `guarded` requests a guard.
fn workspace(name: &str, guarded: &[&str], plain: &[&str]) -> Fixture {
    let members: Vec<String> = guarded.iter().chain(plain).map(|name| format!("\"{name}\"")).collect();
    let top = format!("[workspace]\nresolver = \"2\"\nmembers = [{}]\n", members.join(", "));
    let fixture = Fixture::without_policy(name, &[("Cargo.toml", &top)]);
    for package_name in guarded.iter().chain(plain) {
        fixture.write(&format!("{package_name}/Cargo.toml"), package(package_name, ""));
        fixture.write(&format!("{package_name}/src/main.rs"), MAIN);
    }
    for package_name in guarded {
        fixture.write(&format!("{package_name}/cudaguard.toml"), GUARDED);
    }
    fixture
}

fn one(name: &str, main: &str) -> Fixture {
    Fixture::without_policy(name, &[("Cargo.toml", &package("app", "[workspace]\n")), ("src/main.rs", main)])
}

/// Compiler that logs each shim that it compiles.
struct Compiler {
    path: PathBuf,
    log: PathBuf,
}

impl Compiler {
    fn new(fixture: &Fixture) -> Self {
        let (path, log) = (fixture.sibling("counting-cc"), fixture.sibling("compiled"));
        let text = format!(
            "#!/bin/sh\ncase \"$*\" in *cudaguard-shim.c*) echo x >> '{}';; esac\nexec '{}' \"$@\"\n",
            log.display(),
            tools::find("cc").expect("a C compiler").display()
        );
        scratch::program(&path, &text);
        Self { path, log }
    }

    fn count(&self) -> usize {
        fs::read_to_string(&self.log).map_or(0, |text| text.lines().count())
    }

    fn build(&self, fixture: &Fixture, words: &[&str]) -> Outcome {
        fixture.guard(words).env("CC", &self.path).run().success()
    }
}

#[e2e]
fn packages_share_one_shim() {
    let fixture = workspace("once-packages", &["one", "two", "three"], &[]);
    let compiler = Compiler::new(&fixture);
    let _ = compiler.build(&fixture, &["build"]);
    for name in ["one", "two", "three"] {
        let _ = sealed(&fixture.built(&format!("debug/{name}")), name);
    }
    assert_eq!(compiler.count(), 1);
}

#[e2e]
fn policy_edit_compiles_no_shim() {
    let fixture = workspace("once-policy", &["one"], &[]);
    let compiler = Compiler::new(&fixture);
    let _ = compiler.build(&fixture, &["build"]);
    fixture.write("one/cudaguard.toml", "[runtime]\nmismatch = \"warn\"\n");
    let _ = compiler.build(&fixture, &["build"]);
    assert!(sealed(&fixture.built("debug/one"), "one").manifest.runtime.mismatch_warns);
    assert_eq!(compiler.count(), 1);
}

#[e2e]
fn embed_shares_the_shim() {
    let project = cudaguard_tests::Project::guarded("once-embed").file("src/main.rs", MAIN);
    let log = project.sibling().join("compiled");
    let path = project.sibling().join("counting-cc");
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in *cudaguard-shim.c*) echo x >> '{}';; esac\nexec '{}' \"$@\"\n",
        log.display(),
        tools::find("cc").expect("a C compiler").display()
    );
    scratch::program(&path, &text);
    for profile in ["dev", "release"] {
        let _ = project.cudaguard(["build", "--profile", profile]).env("CC", &path).run().success();
    }
    let _ = sealed(&project.built("release/once-embed"), "once-embed");
    assert_eq!(fs::read_to_string(&log).expect("it was called").lines().count(), 1);
}

#[e2e]
fn quiet_build_announces_nothing() {
    let fixture = workspace("once-quiet", &["one"], &[]);
    let built = fixture.guard(["build", "-q"]).run().success();
    assert_eq!(built.stderr, "", "{built}");
}

#[e2e]
fn package_without_cuda_is_not_guarded() {
    let fixture = workspace("once-plain", &["guarded"], &["plain"]);
    let built = fixture.guard(["build"]).run().success();
    let _ = sealed(&fixture.built("debug/guarded"), "guarded");
    assert!(notes(&fixture.built("debug/plain")).is_empty());
    assert_eq!(summary(&built), "cudaguard: 1 of 2 targets guarded (no CUDA toolkit)");
    assert!(built.stderr.contains("\n  not guarded: plain: does not use CUDA"), "{built}");
}

#[e2e]
fn many_packages_are_summarised() {
    let names: Vec<String> = (0..7).map(|number| format!("p{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let fixture = workspace("once-many", &[], &names);
    let built = fixture.guard(["build"]).run().success();
    let line = "  not guarded: p0, p1, p2, p3 and 3 others (-v lists them): does not use CUDA";
    assert!(built.stderr.lines().any(|one| one == line), "{built}");
    let built = fixture.guard(["build", "-v"]).run().success();
    let line = "  not guarded: p0, p1, p2, p3, p4, p5, p6: does not use CUDA";
    assert!(built.stderr.lines().any(|one| one == line), "{built}");
}

#[e2e]
fn bad_policy_fails_package_without_cuda() {
    let fixture = one("once-bad", MAIN);
    fixture.write("cudaguard.toml", "[gpu]\nflet = [\"T4\"]\n");
    let built = fixture.guard(["build"]).run();
    assert_ne!(built.status(), Some(0), "{built}");
    assert!(built.stderr.contains("flet"), "{built}");
}

#[e2e]
fn package_policy_asks_for_guard() {
    for policy in ["[gpu]\nfleet = [\"T4\"]\n", "[runtime]\ngpu = \"required\"\n", GUARDED] {
        let fixture = one("once-asks", MAIN);
        fixture.write("cudaguard.toml", policy);
        let _ = fixture.guard(["build"]).run().success();
        let _ = sealed(&fixture.built("debug/app"), "app");
    }
}

#[e2e]
fn added_policy_links_guard() {
    let fixture = one("once-added", MAIN);
    let _ = fixture.guard(["build"]).run().success();
    assert!(notes(&fixture.built("debug/app")).is_empty());
    fixture.write("cudaguard.toml", GUARDED);
    let _ = fixture.guard(["build"]).run().success();
    let _ = sealed(&fixture.built("debug/app"), "app");
}

/// A directory with a libcuda for the linker, and the flags that make it search there.
fn driver(fixture: &Fixture) -> (PathBuf, String) {
    let dir = fixture.sibling("lib");
    fs::create_dir_all(&dir).expect("a directory");
    shared_library(
        &dir.join("libcuda.so"),
        "int cuInit(unsigned flags) { return (int)flags; }\n",
        &["-Wl,-soname,libcuda.so.1"],
    );
    let flags = format!("-Clink-arg=-L{}", dir.display());
    (dir, flags)
}

fn shared_library(file: &Path, text: &str, more: &[&str]) {
    let source = file.with_extension("c");
    fs::write(&source, text).expect("it can be written");
    let call = Call::new("cc").args(["-shared", "-fPIC", "-o"]).arg(file).arg(&source).args(more);
    let _ = call.run().success();
}

const LINKS: &str = "#[link(name = \"cuda\")]\nextern \"C\" {\n    fn cuInit(flags: u32) -> i32;\n}\n\
                     fn main() {\n    println!(\"{}\", unsafe { cuInit(0) });\n}\n";

#[e2e]
fn link_attribute_is_guarded() {
    let fixture = one("once-attribute", LINKS);
    let (_, flags) = driver(&fixture);
    let built = fixture.guard(["build"]).env("CARGO_ENCODED_RUSTFLAGS", &flags).run().success();
    let _ = sealed(&fixture.built("debug/app"), "app");
    assert!(summary(&built).starts_with("cudaguard: 1 of 1 target guarded"), "{built}");
    let again = fixture.guard(["build", "-v"]).env("CARGO_ENCODED_RUSTFLAGS", &flags).run().success();
    assert_eq!(compiled(&again), set(&[]), "{again}");
    fixture.change("src/main.rs", &format!("{LINKS}// changed\n"));
    let _ = fixture.guard(["build"]).env("CARGO_ENCODED_RUSTFLAGS", &flags).run().success();
    let _ = sealed(&fixture.built("debug/app"), "app");
}

#[e2e]
fn vendor_library_is_guarded() {
    let fixture = one("once-vendor", &LINKS.replace("\"cuda\"", "\"vendor\"").replace("cuInit", "vendorInit"));
    let dir = fixture.sibling("lib");
    fs::create_dir_all(&dir).expect("a directory");
    let cudart = dir.join("cudart.so");
    shared_library(&cudart, "int cudaInit(void) { return 0; }\n", &["-Wl,-soname,libcudart.so.13"]);
    let text = "int cudaInit(void);\nint vendorInit(unsigned flags) { return cudaInit() + (int)flags; }\n";
    shared_library(&dir.join("libvendor.so"), text, &["-Wl,-soname,libvendor.so.1", &cudart.display().to_string()]);
    let flags = format!("-Clink-arg=-L{}\u{1f}-Clink-arg=-Wl,--allow-shlib-undefined", dir.display());
    let _ = fixture.guard(["build"]).env("CARGO_ENCODED_RUSTFLAGS", &flags).run().success();
    let _ = sealed(&fixture.built("debug/app"), "app");
}

#[e2e]
fn opened_library_is_guarded() {
    let main = "extern \"C\" {\n    fn dlopen(name: *const u8, flags: i32) -> *const u8;\n    \
                fn dlsym(library: *const u8, name: *const u8) -> *const u8;\n}\nfn main() {\n    \
                let library = unsafe { dlopen(\"libcuda.so.1\\0\".as_ptr(), 1) };\n    \
                println!(\"{:?}\", unsafe { dlsym(library, \"cuModuleLoad\\0\".as_ptr()) });\n}\n";
    let fixture = one("once-opened", main);
    let _ = fixture.guard(["build"]).run().success();
    let _ = sealed(&fixture.built("debug/app"), "app");
}

#[e2e]
fn dropped_cuda_drops_guard() {
    let fixture = one("once-no-longer", LINKS);
    let (_, flags) = driver(&fixture);
    let build = || fixture.guard(["build"]).env("CARGO_ENCODED_RUSTFLAGS", &flags).run().success();
    let _ = build();
    let _ = sealed(&fixture.built("debug/app"), "app");
    fixture.change("src/main.rs", MAIN);
    let built = build();
    assert!(notes(&fixture.built("debug/app")).is_empty(), "{built}");
    assert!(built.stderr.contains("not guarded: app: does not use CUDA"), "{built}");
}
