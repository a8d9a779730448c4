//! ELF notes.

use std::collections::BTreeSet;

use object::LittleEndian as LE;
use object::elf;
use object::read::elf::NoteIterator;

use super::{Elf, Segment};

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
    pub fn notes(&self) -> impl Iterator<Item = ElfNote<'data>> + use<'_, 'data> {
        let in_segments = self.segments().filter(|segment| segment.kind == elf::PT_NOTE);
        let in_sections = self.sections().filter(|section| section.kind == elf::SHT_NOTE);
        let pieces = in_segments
            .map(|segment| (segment.data, segment.align))
            .chain(in_sections.map(|section| (section.data, section.align)));
        let mut seen = BTreeSet::new();
        // A byte may be in one segment and one section. If many pieces overlap, only the first are read.
        let mut left = self.data.len().saturating_mul(4);
        pieces
            .flat_map(move |(data, align)| {
                let data = if data.len() > left { &[] } else { data };
                left = left.saturating_sub(data.len());
                // Notes have the same format in files of 32 and 64 bits.
                NoteIterator::<elf::FileHeader64<LE>>::new(LE, if align == 8 { 8 } else { 4 }, data)
            })
            .flat_map(|notes| notes.filter_map(Result::ok))
            .map(move |note| ElfNote {
                owner: std::str::from_utf8(note.name()).unwrap_or_default(),
                kind: note.n_type(LE).0,
                desc: note.desc(),
                offset: self.offset_of(note.desc()) as u64,
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
        let holding: Vec<_> = self.segments().filter(contains).collect();
        holding.iter().any(|segment| segment.kind == elf::PT_NOTE && (start - segment.offset) % 4 == 0)
            && holding.iter().any(|segment| segment.kind == elf::PT_LOAD && segment.flags.contains(elf::PF_R))
    }
}
