//! The manifest as the bytes of MANIFEST.md, and back.

use crate::manifest::Manifest;

/// Size of a note's descriptor.
pub const SIZE: usize = 4096;

/// The descriptor; an error says which entry to shorten.
pub fn encode(_manifest: &Manifest) -> Result<Box<[u8; SIZE]>, String> {
    todo!()
}

/// What a reader got out of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The note's revision.
    pub revision: u16,
    /// The manifest as far as the fixed fields and the rows tell it.
    pub manifest: Manifest,
    /// Kinds of rows that this reader does not know.
    pub unknown_rows: Vec<u16>,
    /// The JSON text.
    pub json: String,
}

/// Reads a descriptor; an error says what is damaged, and where.
pub fn decode(_descriptor: &[u8]) -> Result<Note, String> {
    todo!()
}
