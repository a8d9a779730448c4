//! ELF notes.

use super::bytes::u32_at;
use std::collections::BTreeSet;

use super::{Elf, PF_R, PT_LOAD, PT_NOTE, SHT_NOTE, Segment};

/// An ELF note.
#[derive(Clone, Copy, Debug)]
pub struct ElfNote<'data> {
    /// Owner: `GNU`, `cudaguard`; empty if it is not UTF-8.
    pub owner: &'data str,
    /// Type.
    pub kind: u32,
    /// Descriptor.
    pub desc: &'data [u8],
    /// Offset of the descriptor in the file.
    pub offset: u64,
}

impl<'data> Elf<'data> {
    /// Returns each note once: first the notes of the note segments, then those of note sections outside of all
    /// segments (objects, and files whose linker put notes of different alignment into one segment).
    pub fn notes(&self) -> impl Iterator<Item = ElfNote<'data>> + use<'data> {
        let in_segments = self
            .segments()
            .filter(|segment| segment.kind == PT_NOTE)
            .map(|segment| (segment.data, segment.offset, segment.align));
        let in_sections = self
            .sections()
            .filter(|section| section.kind == SHT_NOTE)
            .map(|section| (section.data, section.offset, section.align));
        let mut seen = BTreeSet::new();
        // A byte may be in one segment and one section. If many pieces overlap, only the first are read.
        let mut left = self.data.len().saturating_mul(4);
        in_segments
            .chain(in_sections)
            .flat_map(move |(data, offset, align)| {
                let enough = data.len() > left;
                left = left.saturating_sub(data.len());
                Notes { data: if enough { &[] } else { data }, offset, align: if align == 8 { 8 } else { 4 } }
            })
            .filter(move |note| seen.insert(note.offset))
    }

    /// Returns true if the guard finds this note at start-up. It reads the program headers in memory: a `PT_NOTE` must contain the
    /// note at a multiple of four bytes, and a readable `PT_LOAD` must map it.
    pub fn maps_note(&self, descriptor_offset: u64) -> bool {
        /// Size of the note's header and owner.
        const BEFORE_DESCRIPTOR: u64 = 24;
        let Some(start) = descriptor_offset.checked_sub(BEFORE_DESCRIPTOR) else { return false };
        let contains =
            |segment: &Segment<'_>| start.checked_sub(segment.offset).is_some_and(|into| into < segment.file_size);
        self.segments()
            .any(|segment| segment.kind == PT_NOTE && contains(&segment) && (start - segment.offset) % 4 == 0)
            && self.segments().any(|segment| segment.kind == PT_LOAD && segment.flags & PF_R != 0 && contains(&segment))
    }
}

struct Notes<'data> {
    data: &'data [u8],
    offset: u64,
    align: usize,
}

impl<'data> Iterator for Notes<'data> {
    type Item = ElfNote<'data>;

    fn next(&mut self) -> Option<ElfNote<'data>> {
        let owner_size = usize::try_from(u32_at(self.data, 0)?).ok()?;
        let desc_size = usize::try_from(u32_at(self.data, 4)?).ok()?;
        let kind = u32_at(self.data, 8)?;
        let owner = self.data.get(12..12_usize.checked_add(owner_size)?)?;
        let desc_at = 12_usize.checked_add(owner_size)?.checked_next_multiple_of(self.align)?;
        let end = desc_at.checked_add(desc_size)?;
        let desc = self.data.get(desc_at..end)?;
        let note = ElfNote {
            owner: std::str::from_utf8(owner.strip_suffix(&[0]).unwrap_or(owner)).unwrap_or_default(),
            kind,
            desc,
            offset: self.offset.checked_add(desc_at as u64)?,
        };
        // The last note of a segment need not be padded.
        let next = end.checked_next_multiple_of(self.align)?.min(self.data.len());
        self.data = &self.data[next..];
        self.offset = self.offset.checked_add(next as u64)?;
        Some(note)
    }
}
