//! A folder: its files are read where they lie.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::{Content, Form, Held, LONGEST_TEXT, Place, bounds, describes, head, image, is_code, opened};

pub(super) fn walk(folder: &Path, of: &Place<'_>) -> Result<&'static str, String> {
    if image::is_layout(folder) {
        return image::walk_layout(folder, of);
    }
    below(folder, "", of)?;
    Ok("folder")
}

fn below(folder: &Path, name: &str, of: &Place<'_>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| of.fails(name, error))?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(|error| of.fails(name, error))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let own = entry.file_name().to_string_lossy().into_owned();
        let name = if name.is_empty() { own } else { format!("{name}/{own}") };
        let kind = entry.file_type().map_err(|error| of.fails(&name, error))?;
        if kind.is_dir() {
            below(&entry.path(), &name, of)?;
        } else if kind.is_symlink() {
            of.budget.member().map_err(|why| of.fails("", why))?;
            let target = fs::read_link(entry.path()).map_err(|error| of.fails(&name, error))?;
            // What lies elsewhere is not of this folder.
            if let Ok(target) = bounds::link(&name, &target.to_string_lossy(), false) {
                of.hand_on(&name, Content::Link(target))?;
            }
        } else if kind.is_file() {
            of.budget.member().map_err(|why| of.fails("", why))?;
            file(&entry.path(), &name, of)?;
        }
    }
    Ok(())
}

fn file(path: &Path, name: &str, of: &Place<'_>) -> Result<(), String> {
    let fails = |error: std::io::Error| of.fails(name, error);
    let mut file = match fs::File::open(path) {
        Ok(file) => file,
        // Gone since the folder was read.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(fails(error)),
    };
    let head = head(&mut file).map_err(fails)?;
    if is_code(&head) {
        return of.hand_on(name, Content::Code(Held { path: path.to_owned(), _file: None }));
    }
    if describes(name) {
        let size = file.metadata().map_err(fails)?.len().min(LONGEST_TEXT);
        let text = fs::read(path).map_err(fails)?;
        let text = &text[..usize::try_from(size).unwrap_or(usize::MAX).min(text.len())];
        return of.hand_on(name, Content::Text(String::from_utf8_lossy(text).into_owned()));
    }
    match Form::of(&head) {
        None => Ok(()),
        Some(form @ (Form::Gzip | Form::Bzip2 | Form::Xz | Form::Zstd)) => {
            use std::io::Seek as _;
            file.rewind().map_err(fails)?;
            if super::tape::holds_tar(&mut file, form) { opened(file, &of.within(name)?).map(drop) } else { Ok(()) }
        }
        Some(_) => opened(file, &of.within(name)?).map(drop),
    }
}
