//! The guard as object files: the note of a component, and the shim.
//!
//! The note is written in assembly, because no C compiler can create a note section in a COMDAT group that the linker
//! must not discard. Nothing here depends on a path or a time: equal inputs give equal bytes.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub use error::{GuardError, NoGuard};

use crate::manifest::model::Component;
use crate::manifest::note::{OWNER, SECTION, SIZE, TYPE};
use crate::sys::digest::Digest;
use crate::sys::env::{Env, STAMP_DIR_VAR};
use crate::sys::file_error::FileError;
use crate::text::lists::IteratorExt as _;

/// Result of [`compile_guard`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardObjects {
    /// Two objects that must both be linked. Linking them several times is allowed.
    Objects {
        /// The component's note.
        note: PathBuf,
        /// The shim.
        shim: PathBuf,
    },
    /// There is no guard; the reason, in one line.
    Unguarded(String),
}

/// Linker argument that must follow the objects if the C library is linked statically. rustc puts the objects after all
/// libraries, and bfd and gold do not search earlier libraries again (lld and mold do). It uses the file name, because
/// rustc has already switched the linker back to shared libraries.
pub const LIBC_LINK_ARG: &str = "-l:libc.a";

/// Returns true if programs of this target link the C library statically, so that [`LIBC_LINK_ARG`] is needed. `stated`
/// is the setting in the flags ([`crt_static`]). If the flags contain none, rustc is queried, but only for musl: musl's
/// own targets are static, and the targets of distributions that use musl are not. (`CARGO_CFG_TARGET_FEATURE` contains
/// this feature only if flags set it: cargo queries all crate types at once, and procedural macros are never static.)
pub fn is_static(target: &str, stated: Option<bool>, rustc: &OsStr) -> bool {
    if stated.is_some() || !target.contains("musl") {
        return stated == Some(true);
    }
    let asked = Command::new(rustc)
        .args(["--print", "cfg", "--target", target])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    asked.is_ok_and(|stated| {
        stated.stdout.split(|byte| *byte == b'\n').any(|line| line == br#"target_feature="crt-static""#)
    })
}

/// Parses the setting for the C library from a compiler flag or its value: `-Ctarget-feature=+avx2,+crt-static`.
pub fn crt_static(flag: &str) -> Option<bool> {
    let (_, features) = flag.split_once("target-feature=")?;
    features.rsplit(',').find_map(|feature| match feature {
        "+crt-static" => Some(true),
        "-crt-static" => Some(false),
        _ => None,
    })
}

/// The files of the shim, by their paths below `templates`.
macro_rules! parts {
    ($($name:literal)*) => {
        &[
            ("cudaguard.h", include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/templates/cudaguard.h"))),
            $((
                concat!("shim/", $name),
                include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/templates/shim/", $name)),
            )),*
        ]
    };
}

/// Names and texts of parts.
type Parts = &'static [(&'static str, &'static str)];

const PARTS: Parts = parts!(
    "attributes.h" "platform.h" "tables.h" "note_layout.h" "coverage.h" "findings.h" "judge.h" "returned_constant.h"
    "context.h" "shim.h" "text.c" "process.c" "objects.c" "search.c" "notes.c" "kernels.c" "coverage.c" "probe.c"
    "detection.c" "findings.c" "judge.c" "verdict.c" "report.c" "entry.c"
);

const WHOLE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/templates/shim.c"));

/// Returns the source of the shim: `templates/shim.c` with its parts inserted.
pub fn shim_source() -> String {
    // A fixed name: for inline assembly gcc writes the path of the file without escaping quotes, and the assembler
    // fails on these.
    "#line 2 \"cudaguard.c\"\n".to_owned() + &inline_includes_of(WHOLE, PARTS)
}

/// Returns the source of the shim for a target.
pub fn shim_source_for(target: &str) -> String {
    if windows::is_windows(target) { windows::shim_source() } else { shim_source() }
}

/// Returns the digest of the shim's sources. It is not a constant, because the compiler's interpreter needed a tenth of
/// the compile time of this crate for it.
pub fn source_digest() -> Digest {
    let mut digest = Digest::new();
    for (whole, parts) in [(WHOLE, PARTS), (windows::WHOLE, windows::PARTS)] {
        digest.push_words(whole.as_bytes());
        for (name, text) in parts {
            digest.push_text(name).push_words(text.as_bytes());
        }
    }
    digest
}

/// Replaces the first `#include` of every part with its text, recursively, and drops the others: they are repeated, or name a file of
/// another system in a condition that is false.
fn inline_includes_of(text: &str, parts: Parts) -> String {
    let mut joined = String::with_capacity(text.len());
    append_part(&mut joined, "", text, parts, &mut Vec::new());
    joined
}

/// Appends a text of this directory. `included` has the names of the parts that were appended before.
fn append_part(joined: &mut String, directory: &str, text: &str, parts: Parts, included: &mut Vec<&'static str>) {
    for line in text.lines() {
        let Some(name) = line.strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"')) else {
            joined.push_str(line);
            joined.push('\n');
            continue;
        };
        let path = join_path(directory, name);
        let Some((part, text)) = parts.iter().find(|(part, _)| *part == path) else { continue };
        if !included.contains(part) {
            included.push(part);
            let directory = part.rsplit_once('/').map_or("", |(directory, _)| directory);
            append_part(joined, directory, text, parts, included);
        }
    }
}

/// Returns the path of an included file: `shim/windows` and `../shim.h` give `shim/shim.h`.
fn join_path(directory: &str, name: &str) -> String {
    match name.strip_prefix("../") {
        Some(name) => join_path(directory.rsplit_once('/').map_or("", |(parent, _)| parent), name),
        None if directory.is_empty() => name.to_owned(),
        None => format!("{directory}/{name}"),
    }
}

/// The section, owner and type of the note in which other tools find the libraries that a file opens by name:
/// <https://systemd.io/ELF_DLOPEN_METADATA>.
pub const DLOPEN_SECTION: &str = ".note.dlopen";
/// Its owner, without the NUL.
pub const DLOPEN_OWNER: &str = "FDO";
/// Type of the note.
pub const DLOPEN_TYPE: u32 = 0x407c_0c0a;

/// The note of a component, before it is assembled.
#[derive(Clone, Copy, Debug)]
pub struct NoteSource<'a> {
    /// Its payload.
    pub descriptor: &'a [u8; SIZE],
    /// The component.
    pub component: &'a Component,
    /// The JSON text of `.note.dlopen`; without one there is no such section.
    pub dlopen: Option<&'a str>,
}

/// Compiles the note and the shim into `dir`, which must exist, for the target triple. The shim is taken
/// from the directory `shared`, or compiled there first.
///
/// Works the same inside and outside of a build script. The C compiler is the one that the `cc` crate selects, with the
/// project's `CFLAGS` except those that code which runs before `main` cannot use (sanitizers, LTO, coverage). An
/// unsupported target or a compiler error gives [`GuardObjects::Unguarded`], because a guard that breaks builds would
/// be removed.
///
/// # Errors
/// If the directory cannot be written to.
pub fn compile_guard(
    env: &Env,
    note: NoteSource<'_>,
    target: &str,
    directory: &Path,
    shared: &Path,
) -> Result<GuardObjects, FileError> {
    GuardObjects::from_compiled(compile_objects(env, note, target, directory, shared))
}

fn compile_objects(
    env: &Env,
    note: NoteSource<'_>,
    target: &str,
    directory: &Path,
    shared: &Path,
) -> Result<(PathBuf, PathBuf), GuardError> {
    check_target(target)?;
    let compiler = GuardCompiler::detect(env, target, directory)?;
    // A shared directory that cannot be written to is no reason to fail: the shim is compiled here then.
    if let Ok(compiled) = shared::SharedDir::new(shared).shim(&compiler) {
        let shim = directory.join("cudaguard-shim.o");
        // A copy: cargo keeps what this script printed longer than the shared object.
        if fs::copy(compiled, &shim).is_ok() {
            return Ok((compiler.compile_note(note, directory)?, shim));
        }
    }
    compiler.compile_guard(note, directory)
}

impl GuardObjects {
    /// Returns the note and the shim, or the reason why there are none.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn from_compiled(objects: Result<(PathBuf, PathBuf), GuardError>) -> Result<Self, FileError> {
        match objects {
            Ok((note, shim)) => Ok(Self::Objects { note, shim }),
            Err(GuardError::NoGuard(why)) => Ok(Self::Unguarded(why.to_string())),
            Err(GuardError::File(error)) => Err(error),
        }
    }
}

/// Checks whether files of this target can contain the guard.
pub fn check_target(target: &str) -> Result<(), NoGuard> {
    const BIG_ENDIAN: [&str; 10] =
        ["s390", "powerpc-", "powerpc64-", "sparc", "mips-", "mips64-", "mipsisa32r6-", "mipsisa64r6-", "m68k", "hppa"];
    const BITS_32: [&str; 10] =
        ["i386", "i486", "i586", "i686", "arm", "thumb", "mipsel", "mipsisa32r6el", "riscv32", "hexagon"];
    if windows::is_windows(target) {
        return windows::check_target(target);
    }
    let parts = target.split('-').collect::<Vec<_>>();
    let system = parts.last().copied().unwrap_or_default();
    if !parts.contains(&"linux") || system.starts_with("android") || system == "none" {
        return Err(NoGuard::NoElf(target.to_owned()));
    }
    if parts[0].ends_with("_be") || parts[0].ends_with("eb") || BIG_ENDIAN.iter().any(|arch| target.starts_with(arch)) {
        return Err(NoGuard::NoCuda(target.to_owned(), "big-endian"));
    }
    if BITS_32.iter().any(|arch| target.starts_with(arch)) || system.ends_with("x32") || system.ends_with("ilp32") {
        return Err(NoGuard::NoCuda(target.to_owned(), "32-bit"));
    }
    Ok(())
}

/// The method that keeps the note if the linker discards sections without references.
#[derive(Clone, Copy)]
pub enum Keep {
    /// `SHF_GNU_RETAIN`, supported since binutils 2.36 and LLVM 13.
    Retain,
    /// An empty `.init_array` section in the same group, for older assemblers. Linkers keep such a section, and keep or
    /// drop a group as a unit. (Tested with bfd, gold, lld and mold; without it bfd and lld discard the note.)
    Anchor,
}

/// Returns the assembly of the note's section. Each component has its own group, so that an object which is linked
/// twice gives one note.
pub fn note_assembly(note: NoteSource<'_>, keep: Keep) -> String {
    let group = note_group(note.component);
    let flags = match keep {
        Keep::Retain => "aGR",
        Keep::Anchor => "aG",
    };
    let mut text = format!(
        "\t.section {SECTION},\"{flags}\",%note,{group},comdat\n\
         \t.balign 4\n\
         \t.long {}, {SIZE}, {TYPE}\n\
         \t.ascii \"{}\\0\"\n\
         \t.balign 4\n",
        OWNER.len(),
        String::from_utf8_lossy(&OWNER[..OWNER.len() - 1]),
    );
    write_bytes(&mut text, note.descriptor);
    if let Some(json) = note.dlopen {
        text.push_str(&dlopen_note(json, flags, &group));
    }
    if matches!(keep, Keep::Anchor) {
        let _ = writeln!(text, "\t.section .init_array,\"awG\",%init_array,{group},comdat");
    }
    text.push_str("\t.section .note.GNU-stack,\"\",%progbits\n");
    text
}

/// Writes these bytes as assembler directives.
fn write_bytes(text: &mut String, bytes: &[u8]) {
    for line in bytes.chunks(32) {
        text.push_str("\t.ascii \"");
        for byte in line {
            let _ = write!(text, "\\{byte:03o}");
        }
        text.push_str("\"\n");
    }
}

/// The note with the libraries that the file opens by name; in the same group, so that it shares the other note's fate.
fn dlopen_note(json: &str, flags: &str, group: &str) -> String {
    let mut note = format!(
        "\t.section {DLOPEN_SECTION},\"{flags}\",%note,{group},comdat\n\t.balign 4\n\t.long {}, {}, {DLOPEN_TYPE}\n\
         \t.ascii \"{DLOPEN_OWNER}\\0\"\n\t.balign 4\n",
        DLOPEN_OWNER.len() + 1,
        json.len() + 1,
    );
    let mut bytes = json.to_owned().into_bytes();
    bytes.push(0);
    write_bytes(&mut note, &bytes);
    note.push_str("\t.balign 4\n");
    note
}

/// Returns a symbol name for the component: `cudaguard_note_resnet_2d_rs_40_0_2e_3_2e_1`.
pub fn note_group(component: &Component) -> String {
    let mut name = "cudaguard_note_".to_owned();
    for part in &[&component.name, "@", &component.version] {
        for byte in part.bytes() {
            if byte.is_ascii_alphanumeric() {
                name.push(char::from(byte));
            } else {
                let _ = write!(name, "_{byte:02x}_");
            }
        }
    }
    name
}

/// Writes a static archive of these objects, so that no `ar` for the target is needed. It has no symbol index, because
/// it is linked with `whole-archive`.
pub fn write_archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, data) in members {
        let header = format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", format!("{name}/"), 0, 0, 0, 644, data.len());
        debug_assert_eq!(header.len(), 60, "a member's name has 15 bytes at most");
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(data);
        if data.len() % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}

/// A C compiler that compiles the guard.
#[derive(Clone, Debug)]
pub struct GuardCompiler {
    /// The program.
    pub program: PathBuf,
    /// Set for a clang.
    pub is_clang: bool,
    /// Flags of the project and the target.
    pub flags: Vec<OsString>,
    /// The target triple.
    pub target: String,
    /// Set to compile fast, for a build without optimization. Otherwise the shim is compiled for its size.
    pub is_fast: bool,
}

impl GuardCompiler {
    /// Finds the compiler that the `cc` crate selects.
    pub fn detect(env: &Env, target: &str, dir: &Path) -> Result<Self, NoGuard> {
        announce_variables(env, target);
        if let Some(clang) = windows::detect_clang(env, target) {
            return clang;
        }
        let host = env.var("HOST").unwrap_or_else(|| {
            // The value only decides between `cc` and the name of a cross compiler, depending on whether it equals the
            // target.
            let ours = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
            if same_machine(&ours, target) { target.to_owned() } else { ours }
        });
        let tool = cc::Build::new()
            .target(target)
            .host(&host)
            .out_dir(dir)
            .opt_level_str("s")
            .debug(false)
            .pic(!windows::is_windows(target))
            .warnings(false)
            .inherit_rustflags(false)
            .cargo_metadata(false)
            .cargo_warnings(false)
            .cargo_debug(false)
            .try_get_compiler()
            .map_err(|error| NoGuard::NoCompiler(target.to_owned(), error.to_string()))?;
        let flags =
            tool.args().iter().filter(|flag| !is_of_others(&flag.to_string_lossy())).cloned().collect::<Vec<_>>();
        let is_clang = tool.is_like_clang();
        // A build script under plain cargo. `cargo cudaguard` compiles one shim for all profiles.
        let is_fast = env.var("OPT_LEVEL").as_deref() == Some("0") && env.var_os(STAMP_DIR_VAR).is_none();
        Ok(Self { program: tool.path().to_owned(), is_clang, flags, target: target.to_owned(), is_fast })
    }

    /// Compiles the note and the shim into `dir`.
    pub fn compile_guard(&self, note: NoteSource<'_>, dir: &Path) -> Result<(PathBuf, PathBuf), GuardError> {
        let shim = self.compile_object(dir, "cudaguard-shim", "c", &shim_source_for(&self.target))?;
        Ok((self.compile_note(note, dir)?, shim))
    }

    /// Compiles the note into `dir`.
    pub fn compile_note(&self, note: NoteSource<'_>, dir: &Path) -> Result<PathBuf, GuardError> {
        if windows::is_windows(&self.target) {
            return self.compile_object(dir, "cudaguard-note", "c", &windows::note_in_c(note));
        }
        match self.compile_object(dir, "cudaguard-note", "s", &note_assembly(note, Keep::Retain)) {
            Err(GuardError::NoGuard(_)) => {
                self.compile_object(dir, "cudaguard-note", "s", &note_assembly(note, Keep::Anchor))
            }
            compiled => compiled,
        }
    }

    /// Returns the flags for this language that follow those of the project.
    fn own_flags(&self, language: &str) -> Vec<&'static str> {
        if windows::is_windows(&self.target) {
            return windows::own_flags(self.is_clang, language);
        }
        let mut flags = vec!["-Os", "-g0", "-w", "-fPIC", "-c"];
        if self.is_fast {
            // A quarter of the time of -Os, and 38 KiB more.
            flags.push("-O0");
        } else if self.is_clang {
            flags.push("-Oz");
        }
        // The unwind tables would be a fifth of the shim, and no exception passes through it.
        flags.extend(["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]);
        if language == "c" {
            // Some compilers enable these by default.
            flags.extend(["-x", "c", "-std=gnu11", "-fvisibility=hidden", "-fno-lto", "-fno-sanitize=all"]);
        }
        flags
    }

    /// Compiles this text to `dir/name.o`.
    pub fn compile_object(&self, dir: &Path, name: &str, language: &str, text: &str) -> Result<PathBuf, GuardError> {
        let source = dir.join(format!("{name}.{language}"));
        let object = dir.join(format!("{name}.o"));
        fs::write(&source, text).map_err(|error| FileError::write(&source, error))?;
        let _ = fs::remove_file(&object);
        let mut command = Command::new(&self.program);
        command.args(&self.flags).args(self.own_flags(language)).arg(&source).arg("-o").arg(&object);
        let output = command.output().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                NoGuard::NoCompiler(self.target.clone(), format!("`{}` was not found", self.program.display()))
            }
            _ => NoGuard::NotStarted(self.program.clone(), error.to_string()),
        })?;
        if output.status.success() {
            // Flags can make the compiler write something else: nothing, assembly, bitcode, or code for another
            // processor.
            let made = if text.is_empty() { object.is_file() } else { is_object(&object, &self.target) };
            if made {
                return Ok(object);
            }
            let flags = self.flags.iter().map(|flag| flag.to_string_lossy()).join(" ");
            return Err(NoGuard::NoObject { compiler: self.program.clone(), target: self.target.clone(), flags }.into());
        }
        let stated = String::from_utf8_lossy(&output.stderr);
        // The assembler's message starts with a capital letter.
        let line = stated
            .lines()
            .find(|line| line.contains("error") || line.contains("Error"))
            .or_else(|| stated.lines().next())
            .unwrap_or_default();
        Err(NoGuard::Failed(self.program.clone(), format!("({}): {line}", output.status)).into())
    }
}

/// Returns true if a linker for this target accepts the file: an object for its processor, in the format of its system. On Linux that
/// is a 64-bit little-endian ELF file.
fn is_object(file: &Path, target: &str) -> bool {
    let Ok(bytes) = fs::read(file) else { return false };
    if windows::is_windows(target) {
        return windows::is_object(&bytes);
    }
    let machine = [("x86_64", 62), ("aarch64", 183)].into_iter().find(|(arch, _)| target.starts_with(arch));
    bytes.starts_with(b"\x7fELF\x02\x01")
        && bytes.get(16..18) == Some(&[1, 0])
        && machine.is_none_or(|(_, machine)| bytes.get(18..20) == Some(&[machine, 0]))
}

/// Returns true if two triples mean the same machine: `x86_64-unknown-linux-gnu` and `x86_64-pc-linux-gnu` do, `…-musl`
/// and `…-windows-gnu` are others.
fn same_machine(one: &str, other: &str) -> bool {
    let (mut parts, mut others) = (one.split('-'), other.split('-'));
    parts.next() == others.next()
        && parts.next_back() == others.next_back()
        && windows::is_windows(one) == windows::is_windows(other)
}

/// Returns true for flags in `CFLAGS` that concern the program's own code. In the guard they would require a runtime
/// that is not ready before `main`, make the bytes differ from build to build, or turn harmless code into errors.
fn is_of_others(flag: &str) -> bool {
    const WHOLE: [&str; 6] = ["--coverage", "-coverage", "-pg", "-p", "-pedantic", "-pedantic-errors"];
    const STARTS: [&str; 12] = [
        "-O",
        "-g",
        "-std=",
        "-W",
        "-fsanitize",
        "-flto",
        "-fprofile",
        "-ftest-coverage",
        "-fcoverage",
        "-fcs-profile",
        "-finstrument",
        "-fxray",
    ];
    // `-Wl,…`, `-Wp,…` and `-Wa,…` are for other tools, which may need them.
    let for_tools = ["-Wl,", "-Wa,", "-Wp,"].iter().any(|start| flag.starts_with(start));
    WHOLE.contains(&flag) || (!for_tools && STARTS.iter().any(|start| flag.starts_with(start)))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().join(" ")
}

/// The `cc` crate reads its variables without [`Env`], so this reads them too, to log them for cargo.
fn announce_variables(env: &Env, target: &str) {
    let underscored = target.replace(['-', '.'], "_");
    for name in ["CC", "CFLAGS"] {
        for variable in
            [name.to_owned(), format!("{name}_{target}"), format!("{name}_{underscored}"), format!("TARGET_{name}")]
        {
            let _ = env.var_os(&variable);
        }
    }
}

mod error;
pub mod shared;
pub mod windows;

#[cfg(test)]
mod tests;
