//! Files that people or tools wrote for others to read: a header, a lock, a build script. What has such a file's name may be
//! anything, and reading it must come to an end. And writing those that others look at meanwhile.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// No such file is larger.
const LARGEST: u64 = 16 << 20;

/// Opens a file, and nothing that could keep us waiting for ever, or never ends: a FIFO, a socket, a device.
///
/// # Errors
/// As [`File::open`], and where it is no file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let about = fs::metadata(path)?;
    // Of a folder the system says so itself.
    if about.is_file() || about.is_dir() { File::open(path) } else { Err(no_file()) }
}

/// A file's bytes.
///
/// # Errors
/// As [`open_regular`], and where it is too large for what it is taken for.
pub fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Files of /proc say of themselves that they are empty.
    open_regular(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other("is larger than 16 MiB: some other file"));
    }
    Ok(bytes)
}

/// A file's text.
///
/// # Errors
/// As [`read_bytes`], and where it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_bytes(path)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "is not UTF-8 text"))
}

/// Writes a file, and nothing that waits for a reader who may never come. A pipe without a name is one that the caller holds open
/// for us, as a shell's `>(…)` does.
///
/// # Errors
/// As [`fs::write`], and where it is a FIFO.
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
    io::Error::other("is not a regular file")
}

/// Writes the file, whole or not at all, unless it holds just that already; says whether it wrote. Folders above it are
/// made.
///
/// # Errors
/// With the file's name and why.
pub fn write_where_new(path: &Path, content: &[u8]) -> Result<bool, String> {
    if read_bytes(path).is_ok_and(|old| old == content) {
        return Ok(false);
    }
    let fail = |error: io::Error| format!("cannot write {}: {error}", path.display());
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(fail(io::ErrorKind::InvalidInput.into()));
    };
    fs::create_dir_all(folder).map_err(fail)?;
    // Beside it and renamed: who looks at this moment sees the old one or the new one.
    let beside = folder.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    fs::write(&beside, content).and_then(|()| fs::rename(&beside, path)).map_err(|error| {
        let _ = fs::remove_file(&beside);
        fail(error)
    })?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_only_where_they_differ() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        let file = folder.join("new/one");
        assert_eq!(write_where_new(&file, b"one"), Ok(true));
        assert_eq!(write_where_new(&file, b"one"), Ok(false));
        assert_eq!(write_where_new(&file, b"two"), Ok(true));
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.join("new")).unwrap().count(), 1, "nothing is left beside it");
        let why = write_where_new(&file.join("below"), b"").unwrap_err();
        assert!(why.starts_with(&format!("cannot write {}: ", file.join("below").display())), "{why}");
        assert!(write_where_new(Path::new("/"), b"").is_err());
    }
}
