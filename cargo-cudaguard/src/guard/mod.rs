//! The guard for builds that the command runs: compiled once for many components, or written as one file.

mod object_cache;
pub mod stamp;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cudaguard::internal::env::Env;
use cudaguard::internal::guard::shared::SharedDir;
use cudaguard::internal::guard::{
    GuardCompiler, GuardObjects, Keep, NoteSource, check_target, note_assembly, shim_source_for, windows,
};
use cudaguard::internal::manifest::Component;
use cudaguard::internal::note::SIZE;

use crate::binary::dlopen_note::note_text;
use crate::binary::manifest_decoder::decode;
use object_cache::GuardObjectCache;

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
    /// Directory that caches the objects which all components share. Only the command sets it.
    pub kept: Option<PathBuf>,
}

/// The shim of one target, compiled once for all packages, profiles and policies that share a directory.
#[derive(Clone, Debug)]
pub struct Shim {
    compiler: GuardCompiler,
    dir: PathBuf,
}

impl Shim {
    /// Finds the compiler for this target. `dir` is created if it does not exist. The inner error is why there can be no
    /// guard, in one line.
    ///
    /// # Errors
    /// If the directory cannot be created.
    pub fn new(env: &Env, target: &str, dir: &Path) -> Result<Result<Self, String>, String> {
        if let Err(why) = check_target(target) {
            return Ok(Err(why));
        }
        fs::create_dir_all(dir).map_err(|error| format!("cannot create {}: {error}", dir.display()))?;
        Ok(GuardCompiler::detect(env, target, dir).map(|compiler| Self { compiler, dir: dir.to_owned() }))
    }

    /// Returns true if the object exists.
    pub fn is_compiled(&self) -> bool {
        SharedDir::new(&self.dir).shim_path(&self.compiler).is_file()
    }

    /// Compiles the object unless it exists, and returns its path. The inner error is the compiler's, in one line.
    ///
    /// # Errors
    /// If the directory cannot be written to.
    pub fn compile(&self) -> Result<Result<PathBuf, String>, String> {
        SharedDir::new(&self.dir).shim(&self.compiler)
    }

    /// Writes the note of this descriptor into `dir`. The inner error is the compiler's, in one line.
    ///
    /// # Errors
    /// If a directory cannot be written to.
    pub fn note(
        &self,
        descriptor: &[u8; SIZE],
        component: &Component,
        dir: &Path,
    ) -> Result<Result<PathBuf, String>, String> {
        let json = dlopen_json(descriptor);
        GuardObjectCache::new(&self.dir).note_or_assemble(
            &self.compiler,
            NoteSource { descriptor, component, dlopen: json.as_deref() },
            dir,
        )
    }
}

/// Does the same as `compile_guard` with this compiler. No variable selects the compiler or its flags.
pub fn compile_with(
    tool: &Tool,
    descriptor: &[u8; SIZE],
    component: &Component,
    target: &str,
    dir: &Path,
) -> Result<GuardObjects, String> {
    if let Err(why) = check_target(target) {
        return Ok(GuardObjects::Unguarded(why));
    }
    let compiler = tool.to_compiler(target);
    let json = dlopen_json(descriptor);
    let note = NoteSource { descriptor, component, dlopen: json.as_deref() };
    if let Some(kept) = &tool.kept {
        return GuardObjectCache::new(kept).cached_guard(&compiler, note, dir);
    }
    compiler.compile_guard(note, dir)
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

/// Compiles the complete guard as one object. The inner error is the reason why there is no guard, in one line; the
/// object is then empty.
///
/// # Errors
/// If the directory cannot be written to, or the compiler cannot even compile an empty file.
pub fn compile_whole(
    tool: &Tool,
    descriptor: &[u8; SIZE],
    component: &Component,
    target: &str,
    object: &Path,
) -> Result<Result<(), String>, String> {
    let compiler = tool.to_compiler(target);
    let dir = object.with_extension(format!("making-{}", std::process::id()));
    let fail = |path: &Path, error: io::Error| format!("cannot write {}: {error}", path.display());
    fs::create_dir_all(&dir).map_err(|error| fail(&dir, error))?;
    let made = (|| {
        let one = |text: &str| compiler.compile_object(&dir, "guard", "c", text);
        let made = match check_target(target) {
            Err(why) => Err(why),
            Ok(()) => match one(&full_source(descriptor, component, target, Keep::Retain))? {
                Ok(made) => Ok(made),
                Err(_) => one(&full_source(descriptor, component, target, Keep::Anchor))?,
            },
        };
        let (made, outcome) = match made {
            Ok(made) => (made, Ok(())),
            Err(why) => (one("")??, Err(why)),
        };
        fs::rename(made, object).map_err(|error| fail(object, error))?;
        Ok(outcome)
    })();
    let _ = fs::remove_dir_all(&dir);
    made
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
