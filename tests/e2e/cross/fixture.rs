//! Packages built for other targets, by a compiler that has their standard library.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_cudaguard::binary::file::Binary;
use cargo_cudaguard::binary::manifest_decoder::Note;
use cudaguard::internal::elf::{Elf, machine};
use cudaguard_tests::{Call, Outcome, Project, parts, places};

pub(crate) const AARCH64: &str = "aarch64-unknown-linux-gnu";
pub(crate) const MUSL: &str = "x86_64-unknown-linux-musl";
pub(crate) const WINDOWS: &str = "x86_64-pc-windows-gnu";
pub(crate) const WASM: &str = "wasm32-unknown-unknown";
/// The compiler's own machine.
pub(crate) const HOST: &str = "x86_64-unknown-linux-gnu";

pub(crate) const MAIN: &str = "fn main() {\n    println!(\"ran\");\n}\n";
pub(crate) const C_LIBRARY: &str = "#[no_mangle]\npub extern \"C\" fn answer() -> u32 {\n    42\n}\n";

/// A package without a line of cudaguard in its sources, whose policy asks for a guard: a program of the package's name, `app`, and an example that is a C library.
pub(crate) fn plain(name: &str) -> Project {
    Project::bare(name)
        .file("Cargo.toml", cudaguard_tests::project::package("app") + EXAMPLE)
        .file("cudaguard.toml", "[build]\nunguarded = \"warn\"\n")
        .file("src/main.rs", MAIN)
        .file("examples/plugin.rs", C_LIBRARY)
}

/// The same with `embed!()`, and a library that the program does not use: then cargo hands the program nothing but
/// arguments for the linker.
pub(crate) fn embedding(name: &str) -> Project {
    Project::bare(name)
        .file(
            "Cargo.toml",
            cudaguard_tests::project::package("app") + EXAMPLE + &cudaguard_tests::project::build_dependency(),
        )
        .file("build.rs", "fn main() {\n    cudaguard::embed!();\n}\n")
        .file("src/lib.rs", "pub fn unused() {}\n")
        .file("src/main.rs", MAIN)
        .file("examples/plugin.rs", C_LIBRARY)
}

const EXAMPLE: &str = "\n[[example]]\nname = \"plugin\"\ncrate-type = [\"cdylib\"]\n";

/// As one sets up a machine for these targets: a linker for each.
pub(crate) fn with_linkers(call: Call) -> Call {
    call.env("RUSTC", parts::rustc_for_others())
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc")
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-ld")
}

/// `cargo cudaguard` with them.
pub(crate) fn guard<A: AsRef<OsStr>>(project: &Project, words: impl IntoIterator<Item = A>) -> Call {
    with_linkers(project.cudaguard(words)).env("CARGO_TERM_COLOR", "never")
}

/// A file of this target's folder, of the dev profile.
pub(crate) fn built(project: &Project, target: &str, file: &str) -> PathBuf {
    project.built(&format!("{target}/debug/{file}"))
}

/// The one note in a file that is of this machine; it is of component `app` and sealed for this target.
#[track_caller]
pub(crate) fn sealed(file: &Path, machine: u16, target: &str) -> Note {
    let binary = Binary::read(file).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(binary.machine, machine, "{}", file.display());
    let mut notes: Vec<Note> =
        binary.manifests().map(|note| note.unwrap_or_else(|error| panic!("{}: {error}", file.display()))).collect();
    assert_eq!(notes.len(), 1, "{}: one note", file.display());
    let note = notes.remove(0);
    assert_eq!(note.manifest.component.name, "app", "{}", file.display());
    assert_eq!(note.manifest.target, target, "{}", file.display());
    assert!(note.manifest.sealed, "{}: sealed", file.display());
    note
}

/// The guard's objects of this target are the target's: a note and a shim.
#[track_caller]
pub(crate) fn objects_are_of(project: &Project, target: &str, number: u16) {
    let folder = project.built(&format!("cudaguard/guards/{target}"));
    let found = Call::new("find").arg(&folder).args(["-name", "cudaguard-*.o"]).run().success().stdout;
    assert_eq!(found.lines().count(), 2, "{found}");
    for object in found.lines() {
        let bytes = fs::read(object).expect("an object");
        let elf = Elf::parse(&bytes).expect("ELF");
        assert_eq!(machine::machine_name(elf.machine()), machine::machine_name(number), "{object}");
    }
}

/// A program that asks cuDNN for its version, linked with it.
pub(crate) const ASKS: &str = r#"#[link(name = "cudnn")]
extern "C" {
    fn cudnnGetVersion() -> usize;
}
fn main() {
    println!("cuDNN {}", unsafe { cudnnGetVersion() });
}
"#;

/// A program of the target, started on this machine, with these libraries.
pub(crate) fn start(program: &Path, libraries: &Path) -> Outcome {
    let mut variable = std::ffi::OsString::from("LD_LIBRARY_PATH=");
    variable.push(libraries);
    Call::new("qemu-aarch64").args(["-L", SYSROOT, "-E"]).arg(variable).arg(program).run()
}

/// Where Debian has the cross compiler's C library.
pub(crate) const SYSROOT: &str = "/usr/aarch64-linux-gnu";

/// How often stderr says so.
pub(crate) fn said(outcome: &Outcome, what: &str) -> usize {
    // Wherever the tests stand: that folder's name may be any word.
    let stderr = outcome.stderr.replace(&places::target().display().to_string(), "");
    stderr.lines().filter(|line| line.contains(what)).count()
}

/// cargo had nothing to compile.
#[track_caller]
pub(crate) fn nothing_to_do(outcome: &Outcome) {
    assert_eq!(said(outcome, "Compiling"), 0, "{outcome}");
}
