//! Writing files that others look at meanwhile.

use std::fs;
use std::io;
use std::path::Path;

/// Writes the file, whole or not at all, unless it holds just that already; says whether it wrote. Folders above it are
/// made.
///
/// # Errors
/// With the file's name and why.
pub fn write_where_new(path: &Path, content: &[u8]) -> Result<bool, String> {
    if fs::read(path).is_ok_and(|old| old == content) {
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
        let folder = std::env::temp_dir().join(format!("cudaguard-files-{}", std::process::id()));
        let file = folder.join("new/one");
        assert_eq!(write_where_new(&file, b"one"), Ok(true));
        assert_eq!(write_where_new(&file, b"one"), Ok(false));
        assert_eq!(write_where_new(&file, b"two"), Ok(true));
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.join("new")).unwrap().count(), 1, "nothing is left beside it");
        let why = write_where_new(&file.join("below"), b"").unwrap_err();
        assert!(why.starts_with(&format!("cannot write {}: ", file.join("below").display())), "{why}");
        assert!(write_where_new(Path::new("/"), b"").is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
