//! The guard for builds that the command runs: compiled once for many components, or written as one file.

pub mod stamp;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use cudaguard::internal::env::Env;
use cudaguard::internal::file_error::FileError;
use cudaguard::internal::guard::shared::SharedDir;
use cudaguard::internal::guard::{
    GuardCompiler, GuardError, GuardObjects, Keep, NoGuard, NoteSource, check_target, note_assembly, shim_source_for,
    windows,
};
use cudaguard::internal::manifest::Component;
use cudaguard::internal::note::SIZE;

use crate::binary::dlopen_note::note_text;
use crate::binary::manifest_decoder::decode;

/// The JSON text of the libraries that the file opens by name, from the payload of its note.
fn dlopen_json(descriptor: &[u8; SIZE]) -> Option<String> {
    decode(descriptor).ok().and_then(|note| note_text(&note.manifest))
}

/// The C compiler that a build system has selected, with the flags for the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// A C or C++ compiler that understands gcc's flags.
    pub program: PathBuf,
    /// Flags of the target alone: `--target=…`, `--sysroot=…`.
    pub flags: Vec<String>,
    /// Directory that caches the shim, which all components share. Only the command sets it.
    pub kept: Option<PathBuf>,
}

/// The shim of one target, compiled once for all packages, profiles and policies that share a directory.
#[derive(Clone, Debug)]
pub struct Shim {
    compiler: GuardCompiler,
    dir: PathBuf,
}

impl Shim {
    /// Finds the compiler for this target. `dir` is created if it does not exist.
    ///
    /// # Errors
    /// If there can be no guard, or the directory cannot be created.
    pub fn new(env: &Env, target: &str, dir: &Path) -> Result<Self, GuardError> {
        check_target(target)?;
        fs::create_dir_all(dir).map_err(|error| FileError::create(dir, error))?;
        Ok(Self { compiler: GuardCompiler::detect(env, target, dir)?, dir: dir.to_owned() })
    }

    /// Returns true if the object exists.
    pub fn is_compiled(&self) -> bool {
        SharedDir::new(&self.dir).shim_path(&self.compiler).is_file()
    }

    /// Compiles the object unless it exists, and returns its path.
    ///
    /// # Errors
    /// If the compiler fails, or the directory cannot be written to.
    pub fn compile(&self) -> Result<PathBuf, GuardError> {
        SharedDir::new(&self.dir).shim(&self.compiler)
    }

    /// Writes the note of this descriptor into `dir`.
    ///
    /// # Errors
    /// If the compiler fails, or a directory cannot be written to.
    pub fn note(&self, descriptor: &[u8; SIZE], component: &Component, dir: &Path) -> Result<PathBuf, GuardError> {
        let json = dlopen_json(descriptor);
        self.compiler.compile_note(NoteSource { descriptor, component, dlopen: json.as_deref() }, dir)
    }
}

/// Does the same as `compile_guard` with this compiler. No variable selects the compiler or its flags.
pub fn compile_with(
    tool: &Tool,
    descriptor: &[u8; SIZE],
    component: &Component,
    target: &str,
    dir: &Path,
) -> Result<GuardObjects, FileError> {
    if let Err(why) = check_target(target) {
        return Ok(GuardObjects::Unguarded(why.to_string()));
    }
    let compiler = tool.to_compiler(target);
    let json = dlopen_json(descriptor);
    let note = NoteSource { descriptor, component, dlopen: json.as_deref() };
    GuardObjects::from_compiled(match &tool.kept {
        Some(kept) => compile_with_shared_shim(&compiler, note, dir, kept),
        None => compiler.compile_guard(note, dir),
    })
}

/// Compiles the note, and copies the shim from the directory that all components share, in which it is compiled once.
fn compile_with_shared_shim(
    compiler: &GuardCompiler,
    note: NoteSource<'_>,
    dir: &Path,
    kept: &Path,
) -> Result<(PathBuf, PathBuf), GuardError> {
    let compiled = SharedDir::new(kept).shim(compiler)?;
    let shim = dir.join("cudaguard-shim.o");
    // A copy, not a link, because build tools compare its modification time.
    fs::copy(&compiled, &shim).map_err(|error| FileError::write(&shim, error))?;
    Ok((compiler.compile_note(note, dir)?, shim))
}

/// Returns the complete guard as one C source, the shim and the note of this descriptor, for users who compile it
/// themselves.
pub fn guard_source(descriptor: &[u8; SIZE], component: &Component, target: &str) -> String {
    full_source(descriptor, component, target, Keep::Anchor)
}

fn full_source(descriptor: &[u8; SIZE], component: &Component, target: &str, keep: Keep) -> String {
    let json = dlopen_json(descriptor);
    let note = NoteSource { descriptor, component, dlopen: json.as_deref() };
    let mut text = shim_source_for(target);
    if windows::is_windows(target) {
        return text + &windows::note_in_c(note);
    }
    text.push_str("\n#if defined(__linux__) && defined(__ELF__)\n__asm__(\".pushsection .text\\n\"\n");
    for line in note_assembly(note, keep).lines() {
        let line = line.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', "\\t");
        let _ = writeln!(text, "        \"{line}\\n\"");
    }
    text.push_str("        \".popsection\\n\");\n#endif\n");
    text
}

/// Compiles the complete guard as one object. Returns the reason if there is no guard; the object is then empty.
///
/// # Errors
/// If the directory cannot be written to, or the compiler cannot even compile an empty file.
pub fn compile_whole(
    tool: &Tool,
    descriptor: &[u8; SIZE],
    component: &Component,
    target: &str,
    object: &Path,
) -> Result<Option<NoGuard>, GuardError> {
    let compiler = tool.to_compiler(target);
    let dir = object.with_extension(format!("making-{}", std::process::id()));
    fs::create_dir_all(&dir).map_err(|error| FileError::write(&dir, error))?;
    let compiled = compile_whole_in(&dir, &compiler, descriptor, component);
    let outcome = compiled.and_then(|(made, why)| {
        fs::rename(made, object).map_err(|error| FileError::write(object, error))?;
        Ok(why)
    });
    let _ = fs::remove_dir_all(&dir);
    outcome
}

/// Compiles the complete guard, or an empty file and returns the reason.
fn compile_whole_in(
    dir: &Path,
    compiler: &GuardCompiler,
    descriptor: &[u8; SIZE],
    component: &Component,
) -> Result<(PathBuf, Option<NoGuard>), GuardError> {
    let target = &compiler.target;
    let mut why = check_target(target).err();
    let attempts: &[Keep] = if why.is_some() { &[] } else { &[Keep::Retain, Keep::Anchor] };
    for keep in attempts {
        match compiler.compile_object(dir, "guard", "c", &full_source(descriptor, component, target, *keep)) {
            Ok(made) => return Ok((made, None)),
            Err(GuardError::NoGuard(reason)) => why = Some(reason),
            Err(error) => return Err(error),
        }
    }
    Ok((compiler.compile_object(dir, "guard", "c", "")?, why))
}

impl Tool {
    /// Returns the flags of the target. `clang-cl` gets an option that makes it accept the flags of gcc.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        let is_cl = self.program.file_stem().is_some_and(|name| name.to_string_lossy().contains("clang-cl"));
        is_cl.then_some("--driver-mode=gcc").into_iter().chain(self.flags.iter().map(String::as_str))
    }

    fn to_compiler(&self, target: &str) -> GuardCompiler {
        let flags = self.arguments().map(OsString::from).collect();
        let is_clang = self.program.file_name().is_some_and(|name| name.to_string_lossy().contains("clang"));
        GuardCompiler { program: self.program.clone(), is_clang, flags, target: target.to_owned(), is_fast: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::elf::Elf;

    /// The shim is compiled once, and the linker keeps one note of each component.
    #[test]
    fn components_share_compiled_shim() {
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        let mut found = Env::from_process().path_list("PATH").into_iter().map(|dir| dir.join("cc"));
        let program = found.find(|file| file.is_file()).expect("cargo links with it");
        let tool = Tool { program: program.clone(), flags: Vec::new(), kept: Some(at("kept")) };
        let mut objects = Vec::new();
        for (name, byte) in [("a", 3), ("b", 5)] {
            fs::create_dir_all(at(name)).unwrap();
            let component = Component { name: name.to_owned(), version: "0.3.1".to_owned() };
            let made = compile_with(&tool, &[byte; SIZE], &component, &target, &at(name));
            let Ok(GuardObjects::Objects { note, shim }) = made else { panic!("{made:?}") };
            objects.extend([note.clone(), note, shim]);
        }
        assert_eq!(fs::read_dir(at("kept")).unwrap().count(), 1, "a shim, and nothing else");
        fs::write(at("main.c"), "int main(void) { return 0; }\n").unwrap();
        for linker in ["bfd", "gold", "lld", "mold"] {
            let mut call = std::process::Command::new(&program);
            call.arg(format!("-fuse-ld={linker}")).args(["-s", "-Wl,--gc-sections", "-o"]).arg(at("program"));
            let linked = call.arg(at("main.c")).args(&objects).arg("-ldl").output().unwrap();
            if !linked.status.success() {
                let message = String::from_utf8_lossy(&linked.stderr).into_owned();
                assert!(message.contains("-fuse-ld") || message.contains("cannot find"), "{linker}: {message}");
                continue;
            }
            let program = fs::read(at("program")).unwrap();
            let elf = Elf::parse(&program).unwrap();
            let mut notes: Vec<u8> =
                elf.notes().filter(|note| note.owner == "cudaguard").map(|note| note.desc[0]).collect();
            notes.sort_unstable();
            assert_eq!(notes, [3, 5], "{linker}: each component's note once");
        }
    }
}
