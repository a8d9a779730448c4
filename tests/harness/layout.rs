//! Directory trees that consist of symbolic links, so that no large file is copied.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Creates the directory tree of `from` in `into`, with a symbolic link for each file. Existing files are not replaced:
/// the first source takes precedence. Relative symbolic links in `from` to a neighbor keep their text.
pub fn farm(from: &Path, into: &Path) {
    let failed = |error| panic!("cannot lay out {} from {}: {error}", into.display(), from.display());
    fs::create_dir_all(into).unwrap_or_else(failed);
    for entry in fs::read_dir(from).unwrap_or_else(|error| panic!("cannot read {}: {error}", from.display())) {
        let source = entry.unwrap_or_else(|error| panic!("cannot read {}: {error}", from.display())).path();
        let target = into.join(source.file_name().expect("an entry has a name"));
        if source.is_dir() && !source.is_symlink() {
            farm(&source, &target);
        } else if !target.is_symlink() && !target.exists() {
            let neighbour = fs::read_link(&source).ok().filter(|link| link.components().count() == 1);
            symlink(neighbour.unwrap_or(source), &target).unwrap_or_else(failed);
        }
    }
}

/// Links `into` to one file, and creates the parent directories. An existing `into` is replaced.
pub fn link(file: &Path, into: &Path) {
    let failed = |error| panic!("cannot link {} to {}: {error}", into.display(), file.display());
    fs::create_dir_all(into.parent().expect("a file has a parent directory")).unwrap_or_else(failed);
    if into.is_symlink() || into.exists() {
        fs::remove_file(into).unwrap_or_else(failed);
    }
    symlink(file, into).unwrap_or_else(failed);
}
