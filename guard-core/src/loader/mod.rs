//! Which file the loader would take for a name, and why: the rules of glibc's ld.so and of musl, applied to files,
//! nothing executed.
//!
//! Sources: glibc, `elf/dl-load.c` and `elf/dl-deps.c` (2.31 to 2.41); musl, `ldso/dynlink.c` (1.2). Not followed, since
//! nothing on disk tells of them: `LD_AUDIT`, `GLIBC_TUNABLES`, file capabilities, a loader called by hand with options.

mod cache;
mod graph;
mod symbols;
mod system;
mod versions;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::env::Env;
use crate::mapped_file::OpenFiles;

pub use graph::{LibraryRequest, LoadGraph, LoadOutcome, Object};
pub use symbols::MissingSymbol;
pub use versions::MissingVersion;

/// What of a process's environment its loader obeys.
#[derive(Clone, Debug)]
struct Environment {
    /// `LD_LIBRARY_PATH`.
    library_path: Option<OsString>,
    /// `LD_PRELOAD`.
    preload: Option<OsString>,
    /// `LD_BIND_NOW`: every symbol is bound at the start.
    bind_now: bool,
    /// The folder it is started in: where relative entries start.
    folder: PathBuf,
}

impl Environment {
    fn from_env(env: &Env) -> Self {
        Self {
            library_path: env.var_os("LD_LIBRARY_PATH"),
            preload: env.var_os("LD_PRELOAD"),
            bind_now: env.var_os("LD_BIND_NOW").is_some(),
            folder: env.current_dir().to_owned(),
        }
    }
}

/// By what a file came, or would come, into the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchSource {
    /// It is the program.
    Program,
    /// It is the loader itself.
    Loader,
    /// An object of this name is loaded already.
    Loaded,
    /// The name is a path.
    Path,
    /// `DT_RPATH` of this object: with this entry.
    Rpath(PathBuf, String),
    /// `LD_LIBRARY_PATH`: with this entry.
    LibraryPath(String),
    /// `DT_RUNPATH` of this object: with this entry.
    Runpath(PathBuf, String),
    /// The cache that ldconfig writes: this file.
    Cache(PathBuf),
    /// A folder that the loader always looks into.
    System,
    /// A folder named in musl's path file.
    PathFile(PathBuf),
}

impl SearchSource {
    /// Without the entry of a list, as the shim says it.
    pub fn in_short(&self) -> String {
        match self {
            Self::Rpath(of, _) => format!("RPATH of {}", of.display()),
            Self::LibraryPath(_) => "LD_LIBRARY_PATH".to_owned(),
            Self::Runpath(of, _) => format!("RUNPATH of {}", of.display()),
            Self::System => "the system's library folders".to_owned(),
            Self::Loaded | Self::Path => "another library, LD_PRELOAD or its full path".to_owned(),
            Self::Program | Self::Loader | Self::Cache(_) | Self::PathFile(_) => self.to_string(),
        }
    }
}

impl fmt::Display for SearchSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program => f.write_str("the program"),
            Self::Loader => f.write_str("the loader itself"),
            Self::Loaded => f.write_str("already loaded under this name"),
            Self::Path => f.write_str("the name is a path"),
            Self::Rpath(of, entry) => write!(f, "DT_RPATH of {}: {entry}", of.display()),
            Self::LibraryPath(entry) => write!(f, "LD_LIBRARY_PATH: {entry}"),
            Self::Runpath(of, entry) => write!(f, "DT_RUNPATH of {}: {entry}", of.display()),
            Self::Cache(file) | Self::PathFile(file) => write!(f, "{}", file.display()),
            Self::System => f.write_str("a folder of the system"),
        }
    }
}

/// What the loader makes of a file that it looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inspection {
    /// It takes it.
    Usable,
    /// There is none, or it may not be read: it looks on.
    Missing,
    /// It is for another machine: it looks on.
    Foreign(String),
    /// It cannot even be asked for (a loop of links): the rest of this list is passed over.
    Stopped(String),
    /// It takes it, and dies of it.
    Broken(String),
}

/// One file that the loader looks at for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryCandidate {
    /// The file.
    pub path: PathBuf,
    /// Why it looks there.
    pub place: SearchSource,
    /// What it makes of it.
    pub look: Inspection,
}

/// Everything that the loader would load to start this program in this environment. An error: no program that can be
/// read. A program without a loader (static) gives a graph of itself alone.
pub fn resolve_program(program: &Path, env: &Env) -> Result<LoadGraph, String> {
    resolve_with(program, env, &OpenFiles::default())
}

/// The same with files that the command has open.
pub(crate) fn resolve_with(program: &Path, env: &Env, files: &OpenFiles) -> Result<LoadGraph, String> {
    LoadGraph::new_for_program(program, Environment::from_env(env), files.clone())
}

/// The processor that this is running on: [`crate::elf::machine`]; `None` where that is not known by name.
pub fn native_machine() -> Option<u16> {
    Some(system::native_machine()).filter(|machine| *machine != 0)
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(OsStr::from_bytes(bytes)).to_owned()
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

fn bytes_of(text: &OsStr) -> &[u8] {
    text.as_encoded_bytes()
}
