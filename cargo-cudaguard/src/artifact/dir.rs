//! Reader for a directory: its files are read in place.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::cli::platform;
use cudaguard::internal::file_error::FileError;

use super::{ArchivePlace, Content, Handling, bounds, image, read_head};

pub(super) fn walk_dir(dir: &Path, of: &ArchivePlace<'_>) -> Result<&'static str, FileError> {
    if image::is_layout(dir) {
        return image::walk_layout(dir, of);
    }
    visit_child(fs::read_dir(dir).map_err(|error| of.error_for("", error))?, "", of)?;
    Ok("directory")
}

fn visit_child(entries: fs::ReadDir, name: &str, of: &ArchivePlace<'_>) -> Result<(), FileError> {
    let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(|error| of.error_for(name, error))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let own = bounds::shown(entry.file_name().as_encoded_bytes());
        let name = if name.is_empty() { own } else { format!("{name}/{own}") };
        let kind = entry.file_type().map_err(|error| of.error_for(&name, error))?;
        if kind.is_dir() {
            // In a build directory of CMake, it contains objects and compiler tests, which nothing starts or loads.
            if entry.file_name() == "CMakeFiles" && entry.path().with_file_name("cmake_install.cmake").exists() {
                continue;
            }
            match fs::read_dir(entry.path()) {
                Ok(entries) => visit_child(entries, &name, of)?,
                Err(error) => not_read(&name, &error, of)?,
            }
            continue;
        }
        if kind.is_symlink() || kind.is_file() {
            of.budget.count_member().map_err(|why| of.error_for("", why))?;
        }
        if kind.is_symlink() {
            link(&entry.path(), &name, of)?;
        } else if kind.is_file() {
            visit_file(&entry.path(), &name, of)?;
        }
    }
    Ok(())
}

/// Handles a symbolic link. A link within the directory refers to another member. A file outside is read as a member,
/// because environments of uv, Bazel and Nix consist of such links. Other targets outside do not belong to the
/// directory.
fn link(path: &Path, name: &str, of: &ArchivePlace<'_>) -> Result<(), FileError> {
    let target = match fs::read_link(path) {
        Ok(target) => target,
        Err(error) => return not_read(name, &error, of),
    };
    let written = bounds::shown(target.as_os_str().as_encoded_bytes());
    if let Ok(target) = bounds::resolve_link(name, &written, false) {
        return of.hand_on(name, Content::Link(target));
    }
    let reason = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => return visit_file(path, name, of),
        Ok(metadata) if metadata.is_dir() => format!("a link to the directory {written}"),
        Ok(_) => return Ok(()),
        Err(error) => format!("a link to {written}: {error}"),
    };
    of.hand_on(name, Content::NotExamined(reason.into()))
}

/// Reports a file or a directory that cannot be read. One that was deleted after its parent was read is ignored.
fn not_read(name: &str, error: &io::Error, of: &ArchivePlace<'_>) -> Result<(), FileError> {
    match error.kind() {
        ErrorKind::NotFound => Ok(()),
        _ => of.hand_on(name, Content::NotExamined(format!("it cannot be read: {error}").into())),
    }
}

fn visit_file(path: &Path, name: &str, of: &ArchivePlace<'_>) -> Result<(), FileError> {
    let mut file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) => return not_read(name, &error, of),
    };
    let head = match read_head(&mut file) {
        Ok(head) => head,
        Err(error) => return not_read(name, &error, of),
    };
    let metadata = file.metadata();
    let is_executable = metadata.as_ref().is_ok_and(platform::is_executable_file);
    of.budget.add_packed(metadata.map_or(0, |metadata| metadata.len()));
    let outcome = match Handling::from_head(name, is_executable, &head) {
        Handling::Ignored => return of.ignore(name),
        Handling::NotExamined(why) => return of.not_examined(name, why),
        Handling::Text => return of.text(name, &mut io::Read::chain(&head[..], file)),
        Handling::LoaderSettings => return of.loader_settings(name, &mut io::Read::chain(&head[..], file)),
        Handling::Whole => of.examine_file(name, file, &head),
    };
    match outcome {
        // Only this archive is skipped: the rest of the directory is examined.
        Err(error) if !of.budget.is_exceeded() => {
            let why = if error.file == of.full_name(name) { error.problem.to_string() } else { error.to_string() };
            of.hand_on(name, Content::NotExamined(why.into()))
        }
        outcome => outcome,
    }
}
