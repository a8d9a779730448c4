//! The notes of a guarded program or DLL for Windows: in a section, with the header of an ELF note.

use cudaguard::internal::bytes::u32_at;
use cudaguard::internal::guard::windows::SECTION;
use cudaguard::internal::note::{OWNER, TYPE};

use super::Pe;

/// Size of a note's header: three numbers, and the owner with its padding.
const HEADER: usize = 24;

/// A note in the section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeNote<'data> {
    /// Offsets of the descriptor in the file: several if an object was linked several times.
    pub offsets: Vec<u64>,
    /// The bytes of the descriptor.
    pub descriptor: &'data [u8],
}

impl<'data> Pe<'data> {
    /// Returns cudaguard's notes, each once.
    pub fn notes(&self) -> Vec<PeNote<'data>> {
        let mut notes: Vec<PeNote<'data>> = Vec::new();
        for section in self.sections().filter(|section| section.name == SECTION) {
            let mut at = 0;
            while let Some(header) = section.data.get(at..at + HEADER) {
                let size = descriptor_size(header);
                let start = at + HEADER;
                let Some(descriptor) = size.and_then(|size| section.data.get(start..start.checked_add(size)?)) else {
                    at += 4;
                    continue;
                };
                let offset = section.offset + start as u64;
                match notes.iter_mut().find(|note| note.descriptor == descriptor) {
                    Some(note) => note.offsets.push(offset),
                    None => notes.push(PeNote { offsets: vec![offset], descriptor }),
                }
                at = start + descriptor.len().next_multiple_of(4);
            }
        }
        notes
    }
}

/// Returns the size of the descriptor if this is the header of a note of cudaguard.
fn descriptor_size(header: &[u8]) -> Option<usize> {
    let (owner, size, kind) = (u32_at(header, 0)?, u32_at(header, 4)?, u32_at(header, 8)?);
    let is_ours = owner as usize == OWNER.len() && kind == TYPE && header[12..].starts_with(OWNER);
    is_ours.then_some(size as usize)
}
