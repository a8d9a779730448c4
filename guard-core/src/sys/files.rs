//! Bounded reading of files such as headers, locks and build scripts, and atomic writing. A path may name anything (a
//! FIFO, a huge file), and reading it must end.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use super::file_error::{FileError, FileProblem};

/// Maximum size of a file in bytes.
const LARGEST: u64 = 16 << 20;

/// Opens a file or directory. Rejects a FIFO, a socket or a device, which could block forever or never end.
///
/// # Errors
/// The errors of [`File::open`], or an error if the path is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let about = fs::metadata(path)?;
    // For a directory, the system's error follows when it is read.
    if about.is_file() || about.is_dir() { File::open(path) } else { Err(no_file()) }
}

/// Reads the bytes of a file.
///
/// # Errors
/// The errors of [`open_regular`], or an error if the file has more than 16 MiB.
pub fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    // Files in /proc have a length of 0, so the length does not decide.
    let (bytes, read) = read_at_most(open_regular(path)?, LARGEST + 1);
    read?;
    if bytes.len() as u64 > LARGEST {
        return Err(FileProblem::too_large("is larger than 16 MiB: this is another kind of file").into());
    }
    Ok(bytes)
}

/// Reads at most `limit` bytes of a file or a pipe. Also returns the bytes before an error.
pub(crate) fn read_at_most(file: File, limit: u64) -> (Vec<u8>, io::Result<usize>) {
    let mut bytes = Vec::new();
    let read = file.take(limit).read_to_end(&mut bytes);
    (bytes, read)
}

/// Reads the text of a file.
///
/// # Errors
/// The errors of [`read_bytes`], or an error if the file is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_bytes(path)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "is not UTF-8 text"))
}

/// Writes a file. Rejects a named FIFO, because a write would wait for a reader that may never come. An unnamed pipe is
/// accepted, because the caller holds it open, like a shell's `>(…)`.
///
/// # Errors
/// The errors of [`fs::write`], or an error if the path is a FIFO.
pub fn write_regular(path: &Path, text: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|about| is_fifo(&about)) && fs::canonicalize(path).is_ok() {
        return Err(no_file());
    }
    fs::write(path, text)
}
fn is_fifo(about: &fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        std::os::unix::fs::FileTypeExt::is_fifo(&about.file_type())
    }
    #[cfg(not(unix))]
    {
        let _ = about;
        false
    }
}

fn no_file() -> io::Error {
    FileProblem::unsupported("is not a regular file").into()
}

/// Writes the file atomically unless it already has this content, and returns true if it wrote. Creates missing parent
/// directories.
///
/// # Errors
/// If the file cannot be written.
pub fn write_where_new(path: &Path, content: &[u8]) -> Result<bool, FileError> {
    if read_bytes(path).is_ok_and(|old| old == content) {
        return Ok(false);
    }
    replace_file(path, content).map_err(|error| FileError::write(path, error))?;
    Ok(true)
}

/// Writes the file under a temporary name and renames it, so that readers see the old file or the new one.
fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    fs::create_dir_all(dir)?;
    let temporary = dir.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let written = fs::write(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_files_are_not_rewritten() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path();
        let file = dir.join("new/one");
        assert_eq!(write_where_new(&file, b"one"), Ok(true));
        assert_eq!(write_where_new(&file, b"one"), Ok(false));
        assert_eq!(write_where_new(&file, b"two"), Ok(true));
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::read_dir(dir.join("new")).unwrap().count(), 1, "no temporary file remains");
        let why = write_where_new(&file.join("below"), b"").unwrap_err().to_string();
        assert!(why.starts_with(&format!("cannot write {}: ", file.join("below").display())), "{why}");
        assert!(write_where_new(Path::new("/"), b"").is_err());
    }
}
