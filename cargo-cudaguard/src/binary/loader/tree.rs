//! The file systems in which the loader searches: the disk of this machine, or the members of an archive.

use cudaguard::internal::file_error::FileError;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::loader_facts::LoadFacts;
use crate::binary::mapped_file::{Contents, FileId, OpenFiles, file_id};

/// What is at a path, after all links are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Nothing, or nothing that the user may read.
    Missing,
    /// A path that cannot be followed, such as a loop of links.
    Stopped(String),
    Dir,
    /// A device, a FIFO or a socket.
    Special,
    /// A file with its length in bytes. `None`: the system does not identify files.
    File(Option<FileId>, u64),
}

/// A file system.
pub(crate) trait Tree: fmt::Debug {
    /// Returns what is at a path.
    fn entry(&self, path: &Path) -> Entry;

    /// Returns the names in a directory.
    fn list(&self, dir: &Path) -> Vec<String>;

    /// Returns the path without links.
    fn real_path(&self, path: &Path) -> Result<PathBuf, FileError>;

    /// Returns the facts that the loader reads in a file.
    fn facts(&self, path: &Path) -> Result<Arc<LoadFacts>, FileError>;

    /// Returns the contents of a loader, or of a file that configures it.
    fn settings(&self, path: &Path) -> Result<Arc<Contents>, FileError>;

    /// Returns true if the kernel starts this program with more privileges than the user has, because of its owner, its
    /// group or its capabilities.
    fn is_privileged(&self, _: &Path) -> bool {
        false
    }

    /// Returns true if a file may be in a place that this process cannot access.
    fn is_shut(&self, _: &Path) -> bool {
        false
    }

    /// Returns true if another machine completes the tree, and provides the loader.
    fn is_partial(&self) -> bool {
        false
    }

    /// Returns true if the path is that of a directory.
    fn is_dir(&self, path: &Path) -> bool {
        self.entry(path) == Entry::Dir
    }
}

/// The disk of this machine.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    files: OpenFiles,
    facts: RefCell<HashMap<FileId, Arc<LoadFacts>>>,
    dirs: RefCell<HashMap<PathBuf, bool>>,
}

impl Disk {
    /// Uses files that the command has opened.
    pub(crate) fn new(files: OpenFiles) -> Self {
        Self { files, ..Self::default() }
    }
}

impl Tree for Disk {
    fn entry(&self, path: &Path) -> Entry {
        use std::io::ErrorKind::{NotFound, PermissionDenied};
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Entry::Dir,
            Ok(metadata) if metadata.is_file() => Entry::File(file_id(&metadata), metadata.len()),
            Ok(_) => Entry::Special,
            Err(error) if matches!(error.kind(), NotFound | PermissionDenied) => Entry::Missing,
            Err(error) => Entry::Stopped(error.to_string()),
        }
    }

    fn list(&self, dir: &Path) -> Vec<String> {
        let entries = dir.read_dir().into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, FileError> {
        std::fs::canonicalize(path).map_err(|error| FileError::read(path, error))
    }

    fn facts(&self, path: &Path) -> Result<Arc<LoadFacts>, FileError> {
        let id = std::fs::metadata(path).ok().as_ref().and_then(file_id);
        if let Some(known) = id.and_then(|id| self.facts.borrow().get(&id).cloned()) {
            return Ok(known);
        }
        let facts = Arc::new(LoadFacts::with_contents(&self.files.open(path)?));
        if let Some(id) = id {
            self.facts.borrow_mut().insert(id, Arc::clone(&facts));
        }
        Ok(facts)
    }

    fn settings(&self, path: &Path) -> Result<Arc<Contents>, FileError> {
        self.files.open(path)
    }

    #[cfg(unix)]
    fn is_privileged(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let Ok(metadata) = std::fs::metadata(path) else { return false };
        // The owner of this directory is the user of this process.
        let Ok(me) = std::fs::metadata("/proc/self") else { return metadata.mode() & 0o6000 != 0 };
        (metadata.mode() & 0o4000 != 0 && metadata.uid() != me.uid())
            || (metadata.mode() & 0o2010 == 0o2010 && metadata.gid() != me.gid())
            || (me.uid() != 0 && has_capabilities(path))
    }

    fn is_shut(&self, path: &Path) -> bool {
        use std::io::ErrorKind::{NotADirectory, NotFound};
        let error = std::fs::File::open(path).err();
        error.is_some_and(|error| !matches!(error.kind(), NotFound | NotADirectory))
    }

    fn is_dir(&self, path: &Path) -> bool {
        if let Some(known) = self.dirs.borrow().get(path) {
            return *known;
        }
        let found = path.is_dir();
        self.dirs.borrow_mut().insert(path.to_owned(), found);
        found
    }
}

/// Returns true if a program has capabilities.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn has_capabilities(program: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(program.as_os_str().as_encoded_bytes()) else { return false };
    // SAFETY: both strings end with NUL, and no byte is written to a buffer of size 0.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn has_capabilities(_: &Path) -> bool {
    false
}
