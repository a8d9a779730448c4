//! Reads files by mapping them, and caches the files that a command has open.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::ops::Deref;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use cudaguard::internal::file_error::{FileError, FileProblem};

/// The bytes of a file: mapped if possible, read otherwise.
pub struct Contents(MappedBytes);

enum MappedBytes {
    Mapped(memmap2::Mmap),
    Read(Vec<u8>),
}

impl Contents {
    /// Opens a regular file. A FIFO, a device or a directory is not opened, because reading it could block or never
    /// end.
    ///
    /// # Errors
    /// If the file cannot be read, or is empty.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        Self::from_file(open_regular(path)?, path)
    }

    /// Reads the bytes of an open file; `path` names it in errors.
    pub fn from_file(mut file: File, path: &Path) -> Result<Self, FileError> {
        if file.metadata().map_err(|error| FileError::read(path, error))?.len() == 0 {
            return Err(FileError::read(path, FileProblem::Empty));
        }
        if let Some(map) = map_file(&file) {
            return Ok(Self(MappedBytes::Mapped(map)));
        }
        let mut data = Vec::new();
        file.read_to_end(&mut data).map_err(|error| FileError::read(path, error))?;
        Ok(Self(MappedBytes::Read(data)))
    }

    /// Returns the mapping, if the bytes are mapped.
    pub(crate) fn as_mapping(&self) -> Option<&memmap2::Mmap> {
        match &self.0 {
            MappedBytes::Mapped(map) => Some(map),
            MappedBytes::Read(_) => None,
        }
    }
}

impl From<Vec<u8>> for Contents {
    fn from(bytes: Vec<u8>) -> Self {
        Self(MappedBytes::Read(bytes))
    }
}

/// Writes the number of bytes, not the bytes.
impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

impl Deref for Contents {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            MappedBytes::Mapped(map) => map,
            MappedBytes::Read(data) => data,
        }
    }
}

/// Opens a regular file for reading.
///
/// # Errors
/// If the file cannot be opened or is not a regular file.
pub fn open_regular(path: &Path) -> Result<File, FileError> {
    check_regular(path, std::fs::metadata(path))?;
    let file = File::open(path).map_err(|error| FileError::read(path, error))?;
    check_regular(path, file.metadata())?;
    Ok(file)
}

fn check_regular(path: &Path, metadata: std::io::Result<Metadata>) -> Result<(), FileError> {
    match metadata {
        Err(error) => Err(FileError::read(path, error)),
        Ok(metadata) if metadata.is_dir() => Err(FileError::read(path, FileProblem::unsupported("is a directory"))),
        Ok(metadata) if !metadata.is_file() => {
            Err(FileError::read(path, FileProblem::unsupported("is not a regular file")))
        }
        Ok(_) => Ok(()),
    }
}

/// The files that a command reads. Each is opened once, even if several paths refer to it.
#[derive(Clone, Debug, Default)]
pub struct OpenFiles(Rc<RefCell<HashMap<FileId, Arc<Contents>>>>);

/// Device and inode number of a file, or the number of a member of an archive.
pub(crate) type FileId = (u64, u64);

impl OpenFiles {
    /// Returns the bytes of the file at this path. Errors are those of [`Contents::open`].
    pub fn open(&self, path: &Path) -> Result<Arc<Contents>, FileError> {
        let Some(id) = id(path) else { return Contents::open(path).map(Arc::new) };
        if let Some(known) = self.0.borrow().get(&id) {
            return Ok(Arc::clone(known));
        }
        let contents = Arc::new(Contents::open(path)?);
        self.0.borrow_mut().insert(id, Arc::clone(&contents));
        Ok(contents)
    }

    /// Adds a file that is already open.
    pub fn insert(&self, path: &Path, contents: &Arc<Contents>) {
        if let Some(id) = id(path) {
            self.0.borrow_mut().insert(id, Arc::clone(contents));
        }
    }
}

fn id(path: &Path) -> Option<FileId> {
    std::fs::metadata(path).ok().as_ref().and_then(file_id)
}

/// Returns the identity of a file. `None` if the system does not identify files.
#[cfg(unix)]
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn file_id(metadata: &Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt as _;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
pub(crate) fn file_id(_: &Metadata) -> Option<FileId> {
    None
}

#[allow(unsafe_code)]
fn map_file(file: &File) -> Option<memmap2::Mmap> {
    // SAFETY: the file is mapped read-only and used as bytes only, so any content is valid. Another process may write
    // to the file meanwhile: the bytes may then change between two reads, and the reader checks each number where it
    // uses it. If another process shortens the file, the kernel sends SIGBUS: the command handles that signal, names
    // the file and ends with status 2 (`signals.rs` of cargo-cudaguard). A linker replaces its output under a new inode
    // and does neither. The alternative, a copy of a library of many hundred megabytes, would slow down every user.
    unsafe { memmap2::Mmap::map(file) }.ok()
}
