//! Determines which file the loader would pick for a name, and the reason. Applies the rules of glibc's ld.so and of
//! musl to files, without executing anything.
//!
//! Sources: glibc, `elf/dl-load.c` and `elf/dl-deps.c` (2.31 to 2.41); musl, `ldso/dynlink.c` (1.2). Not supported,
//! because files do not show them: `LD_AUDIT`, `GLIBC_TUNABLES`, and a loader that is started directly with options.

mod cache;
mod dll;
mod graph;
mod loader_facts;
mod system;
mod tree;
mod unbound_symbols;
mod versions;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::binary::mapped_file::OpenFiles;
use cudaguard::internal::env::Env;
use cudaguard::internal::file_error::FileError;
use object::elf::{EM_NONE, Machine};

pub use dll::{DllClosure, DllRequest, DllSearch, DllSource, FoundDll};
pub(crate) use dll::{SearchedDirs, sorted_entries};
pub use graph::{LibraryRequest, LoadGraph, LoadOutcome, Object};
pub use loader_facts::Inspection;
pub(crate) use loader_facts::LoadFacts;
pub(crate) use tree::{Entry, Tree};
pub use unbound_symbols::MissingSymbol;
pub use versions::MissingVersion;

/// The variables of a process that its loader reads.
#[derive(Clone, Debug)]
struct Environment {
    /// `LD_LIBRARY_PATH`.
    library_path: Option<OsString>,
    /// `LD_PRELOAD`.
    preload: Option<OsString>,
    /// True if `LD_BIND_NOW` is set: all symbols are bound at start-up.
    bind_now: bool,
    /// True if the program gets more privileges than its user has. The loader then ignores most variables and
    /// `$ORIGIN`.
    is_secure: bool,
    /// The current directory, to which relative entries refer.
    dir: PathBuf,
}

impl Environment {
    fn from_env(env: &Env) -> Self {
        Self {
            library_path: env.var_os("LD_LIBRARY_PATH").filter(|list| !list.is_empty()),
            preload: env.var_os("LD_PRELOAD"),
            bind_now: env.var_os("LD_BIND_NOW").is_some(),
            is_secure: false,
            dir: env.current_dir().to_owned(),
        }
    }
}

/// The place in which the loader finds a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchSource {
    /// The file is the program.
    Program,
    /// The file is the loader itself.
    Loader,
    /// An object with this name is already loaded.
    Loaded,
    /// The requested name is a path.
    Path,
    /// This entry in `DT_RPATH` of this object.
    Rpath(PathBuf, String),
    /// This entry in `LD_LIBRARY_PATH`.
    LibraryPath(String),
    /// This entry in `DT_RUNPATH` of this object.
    Runpath(PathBuf, String),
    /// This cache file, which ldconfig writes.
    Cache(PathBuf),
    /// A directory that the loader always searches.
    System,
    /// A directory in this path file of musl.
    PathFile(PathBuf),
    /// A package of the same Python environment, which loads it by its path before.
    Package,
}

impl SearchSource {
    /// Describes the place without the entry of a list, in the wording of the shim.
    pub fn in_short(&self) -> String {
        match self {
            Self::Rpath(of, _) => format!("RPATH of {}", of.display()),
            Self::LibraryPath(_) => "LD_LIBRARY_PATH".to_owned(),
            Self::Runpath(of, _) => format!("RUNPATH of {}", of.display()),
            Self::System => "the system directories".to_owned(),
            Self::Loaded | Self::Path => "another library, LD_PRELOAD or its full path".to_owned(),
            Self::Program | Self::Loader | Self::Cache(_) | Self::PathFile(_) | Self::Package => self.to_string(),
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
            Self::System => f.write_str("a system directory"),
            Self::Package => f.write_str("a package of the Python environment"),
        }
    }
}

/// A file that the loader tries for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryCandidate {
    /// Path of the file.
    pub path: PathBuf,
    /// The place that contains it.
    pub place: SearchSource,
    /// The loader's reaction to it.
    pub inspection: Inspection,
}

/// Returns everything that the loader would load to start this program in this environment. For a static program, that
/// is only the program. The error is the reason why the file cannot be read as a program.
pub fn resolve_program(program: &Path, env: &Env) -> Result<LoadGraph, FileError> {
    resolve_with(program, env, &OpenFiles::default())
}

/// Does the same as [`resolve_program`] with files that the command has opened.
pub(crate) fn resolve_with(program: &Path, env: &Env, files: &OpenFiles) -> Result<LoadGraph, FileError> {
    LoadGraph::new_for_program(program, Environment::from_env(env), files.clone())
}

/// Does the same as [`resolve_program`] in another file system. `library_path`: `LD_LIBRARY_PATH`.
pub(crate) fn resolve_in(
    tree: Rc<dyn Tree>,
    program: &Path,
    library_path: Option<&str>,
) -> Result<LoadGraph, FileError> {
    let environment = Environment {
        library_path: library_path.map(OsString::from),
        preload: None,
        bind_now: false,
        is_secure: false,
        dir: PathBuf::from("/"),
    };
    LoadGraph::new_in_tree(program, environment, tree, OpenFiles::default())
}

/// Returns the processor of this machine. `None` if it is none of the known ones.
pub fn native_machine() -> Option<Machine> {
    Some(system::native_machine()).filter(|machine| *machine != EM_NONE)
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
