//! A file's bytes.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::ops::Deref;
use std::path::Path;

/// A file's bytes: mapped where that works, read otherwise.
#[derive(Debug)]
pub struct Contents(Held);

#[derive(Debug)]
enum Held {
    Mapped(memmap2::Mmap),
    Read(Vec<u8>),
}

impl Contents {
    /// Opens a regular file; an error names it. What could block or never end (a FIFO, a device, a folder) is not
    /// opened at all.
    pub fn open(path: &Path) -> Result<Self, String> {
        let fail = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
        let regular = |metadata: &std::fs::Metadata| {
            if metadata.is_dir() {
                return Err(fail(&"is a folder"));
            }
            if !metadata.is_file() {
                return Err(fail(&"is not a regular file"));
            }
            Ok(())
        };
        regular(&std::fs::metadata(path).map_err(|error| fail(&error))?)?;
        let mut file = File::open(path).map_err(|error| fail(&error))?;
        let metadata = file.metadata().map_err(|error| fail(&error))?;
        regular(&metadata)?;
        if metadata.len() == 0 {
            return Err(fail(&"is empty"));
        }
        if let Some(map) = map(&file) {
            return Ok(Self(Held::Mapped(map)));
        }
        let mut data = Vec::new();
        file.read_to_end(&mut data).map_err(|error| fail(&error))?;
        Ok(Self(Held::Read(data)))
    }
}

impl Contents {
    /// The mapping that all of the bytes are, where they are one.
    pub(crate) fn mapping(&self) -> Option<&memmap2::Mmap> {
        match &self.0 {
            Held::Mapped(map) => Some(map),
            Held::Read(_) => None,
        }
    }
}

impl Deref for Contents {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Held::Mapped(map) => map,
            Held::Read(data) => data,
        }
    }
}

#[allow(unsafe_code)]
fn map(file: &File) -> Option<memmap2::Mmap> {
    // SAFETY: the file is mapped read-only and privately, and nothing but bytes is made of it, so any content is valid.
    // What remains is another process that writes to the file meanwhile: the bytes may then change between two looks,
    // which the reader bears since it checks each number where it is used; or that cuts it off, which ends this
    // process by SIGBUS. A linker replaces its output under a new inode and does neither; the alternative, a copy of
    // a library of many hundred megabytes for each look, would cost every user for that.
    unsafe { memmap2::Mmap::map(file) }.ok()
}
