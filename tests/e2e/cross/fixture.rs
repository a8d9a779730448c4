//! Packages built for other targets, with a compiler that has their standard library.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_cudaguard::binary::elf::{Elf, machine_name};
use cargo_cudaguard::binary::file::Binary;
use cargo_cudaguard::binary::manifest_decoder::Note;
use cudaguard_tests::{Call, Outcome, Project, parts, places};
use object::elf::Machine;

pub(crate) const AARCH64: &str = "aarch64-unknown-linux-gnu";
pub(crate) const MUSL: &str = "x86_64-unknown-linux-musl";
pub(crate) const WASM: &str = "wasm32-unknown-unknown";
/// Target of the build machine.
pub(crate) const HOST: &str = "x86_64-unknown-linux-gnu";

/// A program, and a C library. For targets without `std` in the compiler's directory they use `core` only.
pub(crate) const MAIN: &str = r#"#![cfg_attr(target_arch = "wasm32", no_std, no_main)]
#[cfg(not(target_arch = "wasm32"))]
fn main() {
    println!("ran");
}
#[cfg(target_arch = "wasm32")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
"#;
pub(crate) const C_LIBRARY: &str = r#"#![cfg_attr(target_arch = "wasm32", no_std)]
#[no_mangle]
pub extern "C" fn answer() -> u32 {
    42
}
#[cfg(target_arch = "wasm32")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
"#;

/// Returns a package whose sources do not mention cudaguard and whose policy requests a guard. It has a program `app` and
/// an example that is a C library.
pub(crate) fn plain(name: &str) -> Project {
    Project::bare(name)
        .file("Cargo.toml", cudaguard_tests::project::package("app") + EXAMPLE)
        .file("cudaguard.toml", "[build]\nunguarded = \"warn\"\n")
        .file("src/main.rs", MAIN)
        .file("examples/plugin.rs", C_LIBRARY)
}

/// Returns the same package with `embed!()` and an unused library. Cargo then passes only linker arguments to the program.
pub(crate) fn embedding(name: &str) -> Project {
    Project::bare(name)
        .with_compiler(&parts::rustc_for_others())
        .file(
            "Cargo.toml",
            cudaguard_tests::project::package("app") + EXAMPLE + &cudaguard_tests::project::build_dependency(),
        )
        .file("build.rs", "fn main() {\n    cudaguard::embed!();\n}\n")
        .file("src/lib.rs", "#![no_std]\npub fn unused() {}\n")
        .file("src/main.rs", MAIN)
        .file("examples/plugin.rs", C_LIBRARY)
}

const EXAMPLE: &str = "\n[[example]]\nname = \"plugin\"\ncrate-type = [\"cdylib\"]\n";

/// Sets the compiler and a linker for each target.
pub(crate) fn with_linkers(call: Call) -> Call {
    call.env("RUSTC", parts::rustc_for_others())
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc")
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-ld")
}

/// Returns a call of `cargo cudaguard` with the compiler and linkers of the targets.
pub(crate) fn guard<A: AsRef<OsStr>>(project: &Project, words: impl IntoIterator<Item = A>) -> Call {
    with_linkers(project.cudaguard(words)).env("CARGO_TERM_COLOR", "never")
}

/// Returns the path of a file in this target's directory of the dev profile.
pub(crate) fn built(project: &Project, target: &str, file: &str) -> PathBuf {
    project.built(&format!("{target}/debug/{file}"))
}

/// Returns the only note for this machine in a file. Checks that it belongs to component `app` and is sealed for this
/// target.
#[track_caller]
pub(crate) fn sealed(file: &Path, machine: Machine, target: &str) -> Note {
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

/// Checks that the guard's objects of a target, a note and a shim, have the machine number of the target.
#[track_caller]
pub(crate) fn objects_are_of(project: &Project, target: &str, number: Machine) {
    let dir = project.built(&format!("cudaguard/guards/{target}"));
    let found = Call::new("find").arg(&dir).args(["-name", "cudaguard-*.o"]).run().success().stdout;
    assert_eq!(found.lines().count(), 2, "{found}");
    for object in found.lines() {
        let bytes = fs::read(object).expect("an object");
        let elf = Elf::parse(&bytes).expect("ELF");
        assert_eq!(machine_name(elf.machine), machine_name(number), "{object}");
    }
}

/// Program that is linked with cuDNN and prints its version.
pub(crate) const ASKS: &str = r#"#[link(name = "cudnn")]
extern "C" {
    fn cudnnGetVersion() -> usize;
}
fn main() {
    println!("cuDNN {}", unsafe { cudnnGetVersion() });
}
"#;

/// Starts a program of the target under qemu with these libraries.
pub(crate) fn start(program: &Path, libraries: &Path) -> Outcome {
    let mut variable = std::ffi::OsString::from("LD_LIBRARY_PATH=");
    variable.push(libraries);
    Call::new("qemu-aarch64").args(["-L", SYSROOT, "-E"]).arg(variable).arg(program).run()
}

/// Sysroot of Debian's cross compiler.
pub(crate) const SYSROOT: &str = "/usr/aarch64-linux-gnu";

/// Counts the lines of stderr that contain `what`.
pub(crate) fn printed(outcome: &Outcome, what: &str) -> usize {
    // The path of the target directory may contain any word, so it is removed.
    let stderr = outcome.stderr.replace(&places::target().display().to_string(), "");
    stderr.lines().filter(|line| line.contains(what)).count()
}

/// Checks that cargo compiled nothing.
#[track_caller]
pub(crate) fn nothing_to_do(outcome: &Outcome) {
    assert_eq!(printed(outcome, "Compiling"), 0, "{outcome}");
}
