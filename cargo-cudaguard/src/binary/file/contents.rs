//! Versions, texts and notes in the bytes of a file.

use std::collections::BTreeSet;

use crate::binary::elf::Elf;
use crate::binary::pe::Pe;
use crate::knowledge::vendor::{CodeMark, Library};
use cudaguard::internal::file_error::FileProblem;
use cudaguard::internal::version::Version;
use memchr::memmem;

use super::strings::FileStrings;
use super::{FoundNote, find_notes, find_pe_notes};

/// Returns the version of a library whose code is in this file, from the text that the library contains.
pub(crate) fn version_inside(library: &Library, data: &[u8]) -> Option<Version> {
    let text = FileStrings::from_bytes(data).ok()?;
    let mark_version =
        |mark: &CodeMark| text.occurrences(mark.text.as_bytes()).find_map(|behind| mark.version_after(behind));
    library.traces.inside.iter().find_map(mark_version)
}

/// Returns true if the constants of a file show that it contains the code of this library.
pub(crate) fn has_code_of(library: &Library, data: &[u8]) -> bool {
    let Ok(text) = FileStrings::from_bytes(data) else { return false };
    let traces = &library.traces;
    let marks = if Pe::is_pe(data) { traces.inside_pe } else { &[traces.inside] };
    marks.iter().any(|marks| marks.iter().all(|mark| text.contains_mark(mark)))
}

/// Returns the value that all items have. `None` if they differ or if there is none.
pub(crate) fn only_value<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// Returns the versions of three numbers that follow a text in the constants of a file. `then` is a second text between them,
/// at most a few words after the first one.
pub(crate) fn versions_after(data: &[u8], text: &str, then: &str) -> Vec<Version> {
    const NEAR: usize = 64;
    let Ok(strings) = FileStrings::from_bytes(data) else { return Vec::new() };
    let mark = CodeMark { text: "", version: Some('.') };
    let versions = strings.occurrences(text.as_bytes()).filter_map(|behind| {
        let line = &behind[..behind.len().min(NEAR)];
        mark.version_after(&line[memmem::find(line, then.as_bytes())? + then.len()..])
    });
    versions.collect()
}

/// Returns the texts in the constants of a file that begin with `start` and end with NUL, each once.
pub(crate) fn texts_starting_with(data: &[u8], start: &str) -> Vec<String> {
    const LONGEST: usize = 256;
    let Ok(strings) = FileStrings::from_bytes(data) else { return Vec::new() };
    let texts: BTreeSet<String> = strings
        .occurrences(start.as_bytes())
        .filter_map(|behind| {
            let end = behind.iter().take(LONGEST).position(|byte| *byte == 0)?;
            Some(format!("{start}{}", std::str::from_utf8(&behind[..end]).ok()?))
        })
        .collect();
    texts.into_iter().collect()
}

/// Returns the constants of a file that follow each occurrence of a text.
pub(crate) fn constants_after<'data>(data: &'data [u8], text: &str) -> Vec<&'data [u8]> {
    FileStrings::from_bytes(data).map(|strings| strings.occurrences(text.as_bytes()).collect()).unwrap_or_default()
}

/// Returns the notes of a linked file or an object.
pub(crate) fn notes_in(data: &[u8]) -> Result<Vec<FoundNote>, FileProblem> {
    if Pe::is_pe(data) {
        return Ok(find_pe_notes(&Pe::parse(data)?));
    }
    Ok(find_notes(&Elf::parse(data)?, 0, None))
}

/// Returns the packed version that a file exports as this symbol. `None` if the major is not plausible.
pub(crate) fn exported_version(data: &[u8], symbol: &str) -> Option<Version> {
    let word = if Pe::is_pe(data) {
        Pe::parse(data).ok()?.exported_u32(symbol)
    } else {
        Elf::parse(data).ok()?.exported_u32(symbol)
    };
    let version = Version::from_packed(word?);
    (1..100).contains(&version.major).then_some(version)
}
