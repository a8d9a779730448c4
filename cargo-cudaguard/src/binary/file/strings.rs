//! The constants of a file, and a search for texts in them.

use std::cell::OnceCell;

use memchr::memmem;

use crate::binary::elf::{self, Elf};
use crate::binary::pe::Pe;
use crate::binary::searcher::Searcher;
use crate::knowledge::vendor::{self, CodeMark, Traces};
use cudaguard::internal::file_error::FileProblem;
use object::elf::{PF_X, PT_LOAD, SHF_ALLOC, SHF_EXECINSTR, SHT_PROGBITS};

/// The parts of a file that contain its constants: loaded, and neither code, kernels nor notes (notes contain names of
/// libraries).
pub(super) struct FileStrings<'data> {
    parts: Vec<&'data [u8]>,
    /// First occurrence of each of [`linkage_markers`], computed on first use.
    traced: OnceCell<Vec<(&'static str, Option<StringPlace>)>>,
}

/// Position in the file's parts: (index of the part, byte offset in it).
type StringPlace = (usize, usize);

/// Returns every text by which [`super::detect_linkage`] detects a library.
fn linkage_markers() -> Vec<&'static str> {
    let mut markers = Vec::new();
    for library in vendor::DESCRIBED {
        let Traces { functions, answers, opened_for, inside, inside_pe, .. } = &library.traces;
        markers.extend(functions.iter().chain(answers).chain([opened_for]));
        markers.extend(inside.iter().chain(inside_pe.iter().copied().flatten()).map(|mark| mark.text));
    }
    markers
}

impl<'data> FileStrings<'data> {
    pub(super) fn new(parts: Vec<&'data [u8]>) -> Self {
        Self { parts, traced: OnceCell::new() }
    }

    /// # Errors
    /// If the file is neither an ELF nor a PE file.
    pub(super) fn from_bytes(data: &'data [u8]) -> Result<Self, FileProblem> {
        if Pe::is_pe(data) {
            Pe::parse(data).map(|image| Self::from_pe(&image))
        } else {
            Elf::parse(data).map(|elf| Self::from_elf(&elf))
        }
    }

    pub(super) fn from_pe(image: &Pe<'data>) -> Self {
        const TABLES: [&str; 4] = [".pdata", ".reloc", ".rsrc", ".xdata"];
        let sections = image.sections().filter(|section| {
            !section.is_code
                && !section.name.starts_with(".nv")
                && !section.name.starts_with("__nv")
                && !TABLES.contains(&section.name)
        });
        Self::new(elf::without_overlaps(sections.map(|section| (section.offset, section.data))))
    }

    pub(super) fn from_elf(elf: &Elf<'data>) -> Self {
        let sections = elf.sections().filter(|section| {
            section.kind == SHT_PROGBITS
                && section.flags.contains(SHF_ALLOC)
                && !section.flags.contains(SHF_EXECINSTR)
                && !section.name.starts_with(".nv")
                && !section.name.starts_with("__nv")
                // In a large library, half of the loaded bytes are in these sections.
                && !elf::TABLES.contains(&section.name)
        });
        let parts = elf::without_overlaps(sections.map(|section| (section.offset, section.data)));
        if !parts.is_empty() {
            return Self::new(parts);
        }
        let segments: Vec<_> =
            elf.segments().filter(|segment| segment.kind == PT_LOAD && !segment.flags.contains(PF_X)).collect();
        let rests = elf::without_overlaps(segments.iter().map(|segment| (segment.offset, segment.data)));
        let mut notes: Vec<_> = elf.notes().map(|note| (note.offset, note.desc.len())).collect();
        notes.sort_unstable();
        let mut parts = Vec::new();
        for (segment, mut rest) in segments.iter().zip(rests) {
            let mut at = segment.offset.saturating_add((segment.data.len() - rest.len()) as u64);
            let first = notes.partition_point(|(offset, _)| *offset < at);
            for (offset, length) in &notes[first..] {
                let Some(before) = offset.checked_sub(at).and_then(|skip| usize::try_from(skip).ok()) else { continue };
                let Some(end) = before.checked_add(*length).filter(|end| *end <= rest.len()) else { break };
                parts.push(&rest[..before]);
                rest = &rest[end..];
                at = offset + *length as u64;
            }
            parts.push(rest);
        }
        Self::new(parts)
    }

    /// Returns the first occurrence of each text. One search covers all texts, because the constants of large libraries
    /// take hundreds of megabytes.
    pub(super) fn find_first_of_each(&self, texts: &[&str]) -> Vec<Option<StringPlace>> {
        let mut firsts = vec![None; texts.len()];
        let mut from = (0, 0);
        loop {
            // Texts that were already found are excluded: a library may contain one of them a million times.
            let sought: Vec<usize> = (0..texts.len()).filter(|text| firsts[*text].is_none()).collect();
            let Some((text, place)) = self.first_of(&sought, texts, from) else { return firsts };
            firsts[text] = Some(place);
            from = place;
        }
    }

    /// Returns the first occurrence of any of these texts at or after this place, and the index of the text.
    fn first_of(&self, sought: &[usize], texts: &[&str], (part, at): StringPlace) -> Option<(usize, StringPlace)> {
        let words: Vec<&str> = sought.iter().map(|text| texts[*text]).collect();
        let searcher = Searcher::new(&words);
        self.parts.iter().enumerate().skip(part).find_map(|(number, data)| {
            let (word, place) = searcher.find(data, if number == part { at } else { 0 })?;
            Some((sought[word], (number, place)))
        })
    }

    /// Returns the place where the search for a text starts. `None` if the text does not occur.
    fn find_start(&self, wanted: &[u8]) -> Option<StringPlace> {
        let traced = self.traced.get_or_init(|| {
            let texts = linkage_markers();
            let firsts = self.find_first_of_each(&texts);
            texts.into_iter().zip(firsts).collect()
        });
        // A text cannot occur earlier than any of its prefixes.
        let mut begins_with = traced.iter().filter(|(text, _)| wanted.starts_with(text.as_bytes()));
        begins_with.try_fold((0, 0), |from, (_, first)| first.map(|first| from.max(first)))
    }

    /// Returns the bytes that follow each occurrence of a text.
    pub(super) fn occurrences<'text>(&'text self, wanted: &'text [u8]) -> impl Iterator<Item = &'data [u8]> + 'text {
        let finder = memmem::Finder::new(wanted);
        let parts = self.find_start(wanted).into_iter().flat_map(|(part, at)| {
            let first = self.parts.get(part).map(|data| &data[at..]);
            first.into_iter().chain(self.parts.iter().skip(part + 1).copied())
        });
        parts.flat_map(move |part| {
            let (finder, mut rest): (_, &'data [u8]) = (finder.clone(), part);
            std::iter::from_fn(move || {
                let at = finder.find(rest)?;
                rest = &rest[at + wanted.len()..];
                Some(rest)
            })
        })
    }

    /// Returns true if the file contains this mark of a library's code.
    pub(super) fn contains_mark(&self, mark: &CodeMark) -> bool {
        self.occurrences(mark.text.as_bytes())
            .any(|behind| mark.version.is_none() || behind.first().is_some_and(u8::is_ascii_digit))
    }

    pub(super) fn contains_bytes(&self, wanted: &[u8]) -> bool {
        self.occurrences(wanted).next().is_some()
    }
}
