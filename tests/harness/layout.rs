//! Folders laid out from others: as links, so that nothing big is copied.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Makes `into` a tree of the same folders as `from`, each file in them a symbolic link. What is there already stays: lay
/// the winner first. Links of `from` become links with the same text where they point to a neighbour.
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

/// Links one file to `into`, making the folders above it; replaces what is there.
pub fn link(file: &Path, into: &Path) {
    let failed = |error| panic!("cannot link {} to {}: {error}", into.display(), file.display());
    fs::create_dir_all(into.parent().expect("a file lies in a folder")).unwrap_or_else(failed);
    if into.is_symlink() || into.exists() {
        fs::remove_file(into).unwrap_or_else(failed);
    }
    symlink(file, into).unwrap_or_else(failed);
}
