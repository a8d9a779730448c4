//! Reads the facts of a library that a build needs. Only 64-bit little-endian files, because CUDA has no other libraries.
//!
//! Damaged files cause no panic: tables and sections outside of the file are treated as absent. Formats: System V ABI,
//! generic part; names from glibc's `elf/elf.h`.

use std::ffi::CStr;

use super::bytes::{u16_at, u32_at, u64_at};

pub(crate) const SHT_NULL: u32 = 0;
pub(crate) const SHT_PROGBITS: u32 = 1;
pub(crate) const SHT_NOBITS: u32 = 8;
const SHT_DYNSYM: u32 = 11;
const PT_LOAD: u32 = 1;
pub(crate) const PT_DYNAMIC: u32 = 2;
pub(crate) const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_SONAME: u64 = 14;
pub(crate) const DT_RPATH: u64 = 15;
pub(crate) const DT_RUNPATH: u64 = 29;
const SHN_UNDEF: u16 = 0;
const STB_LOCAL: u8 = 0;
const STT_OBJECT: u8 = 1;
const STV_DEFAULT: u8 = 0;
const STV_PROTECTED: u8 = 3;

/// A view of an ELF file's bytes.
pub(crate) struct Elf64<'data> {
    pub(crate) segments: Vec<Elf64Segment<'data>>,
    pub(crate) sections: Vec<Elf64Section<'data>>,
}

/// A program header.
pub(crate) struct Elf64Segment<'data> {
    pub(crate) kind: u32,
    pub(crate) offset: u64,
    addr: u64,
    pub(crate) size: u64,
    data: &'data [u8],
}

/// An entry of the section table.
pub(crate) struct Elf64Section<'data> {
    pub(crate) name: &'data [u8],
    pub(crate) kind: u32,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    link: u32,
    pub(crate) data: &'data [u8],
}

fn slice_at(data: &[u8], at: u64, size: u64) -> Option<&[u8]> {
    let start = usize::try_from(at).ok()?;
    data.get(start..start.checked_add(usize::try_from(size).ok()?)?)
}

fn text_at(table: &[u8], at: u64) -> Option<&[u8]> {
    CStr::from_bytes_until_nul(table.get(usize::try_from(at).ok()?..)?).ok().map(CStr::to_bytes)
}

/// Returns the entries of a header table. The file header contains its offset at `place`, and at `sizes` the size of an
/// entry and their number.
fn headers(data: &[u8], place: usize, sizes: usize, size: usize) -> Option<impl Iterator<Item = &[u8]>> {
    let (stride, count) = (usize::from(u16_at(data, sizes)?), u64::from(u16_at(data, sizes + 2)?));
    let table = slice_at(data, u64_at(data, place)?, count * size as u64)?;
    (stride == size).then(|| table.chunks_exact(size))
}

impl<'data> Elf64<'data> {
    /// Parses the headers.
    pub(crate) fn parse(data: &'data [u8]) -> Option<Self> {
        if !data.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let mut elf = Self { segments: Vec::new(), sections: Vec::new() };
        for entry in headers(data, 32, 54, 56)? {
            let (offset, size) = (u64_at(entry, 8)?, u64_at(entry, 32)?);
            let (kind, addr) = (u32_at(entry, 0)?, u64_at(entry, 16)?);
            let data = slice_at(data, offset, size).unwrap_or_default();
            elf.segments.push(Elf64Segment { kind, offset, addr, size, data });
        }
        let mut names = Vec::new();
        for entry in headers(data, 40, 58, 64).into_iter().flatten() {
            let (kind, link) = (u32_at(entry, 4)?, u32_at(entry, 40)?);
            let (offset, size) = (u64_at(entry, 24)?, u64_at(entry, 32)?);
            let data = slice_at(data, offset, size).filter(|_| kind != SHT_NOBITS).unwrap_or_default();
            names.push(u32_at(entry, 0)?);
            elf.sections.push(Elf64Section { name: &[], kind, offset, size, link, data });
        }
        let table = elf.sections.get(usize::from(u16_at(data, 62)?)).map_or(&[][..], |names| names.data);
        for (section, name) in elf.sections.iter_mut().zip(names) {
            section.name = text_at(table, name.into()).unwrap_or_default();
        }
        Some(elf)
    }

    /// Returns the first section with this name.
    pub(crate) fn section_named(&self, name: &[u8]) -> Option<&Elf64Section<'data>> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// Returns the segment that is loaded to this address, and the offset in it.
    fn place_of(&self, address: u64) -> Option<(&Elf64Segment<'data>, u64)> {
        self.segments.iter().filter(|segment| segment.kind == PT_LOAD).find_map(|segment| {
            let into = address.checked_sub(segment.addr).filter(|into| *into < segment.size)?;
            Some((segment, into))
        })
    }

    /// Returns the texts of all entries of the dynamic section with this tag, as bytes, because a path need not be UTF-8.
    pub(crate) fn dynamic_texts(&self, tag: u64) -> Vec<&'data [u8]> {
        let dynamic =
            self.segments.iter().find(|segment| segment.kind == PT_DYNAMIC).map_or(&[][..], |found| found.data);
        let entries: Vec<_> = dynamic
            .chunks_exact(16)
            .filter_map(|entry| u64_at(entry, 0).zip(u64_at(entry, 8)))
            .take_while(|(tag, _)| *tag != 0)
            .collect();
        let strings = entries.iter().find(|(tag, _)| *tag == DT_STRTAB).and_then(|(_, address)| {
            let (segment, into) = self.place_of(*address)?;
            segment.data.get(usize::try_from(into).ok()?..)
        });
        let strings = strings.unwrap_or_default();
        entries.iter().filter(|(found, _)| *found == tag).filter_map(|(_, at)| text_at(strings, *at)).collect()
    }

    /// Returns `DT_SONAME`.
    pub(crate) fn soname(&self) -> Option<&'data str> {
        std::str::from_utf8(self.dynamic_texts(DT_SONAME).first()?).ok()
    }

    /// Returns the offset in the file of an exported 4-byte data object. Relocations are not applied, because a plain number
    /// has none.
    pub(crate) fn offset_of_u32(&self, name: &str) -> Option<u64> {
        let table = self.sections.iter().find(|section| section.kind == SHT_DYNSYM)?;
        let names = self.sections.get(table.link as usize)?.data;
        let symbol = table.data.chunks_exact(24).find(|symbol| {
            let (info, visibility) = (symbol[4], symbol[5] & 3);
            u16_at(symbol, 6) != Some(SHN_UNDEF)
                && (info >> 4 != STB_LOCAL && info & 15 == STT_OBJECT)
                && matches!(visibility, STV_DEFAULT | STV_PROTECTED)
                && u64_at(symbol, 16) == Some(4)
                && u32_at(symbol, 0).and_then(|at| text_at(names, at.into())) == Some(name.as_bytes())
        })?;
        let (segment, into) = self.place_of(u64_at(symbol, 8)?)?;
        segment.offset.checked_add(into)
    }
}
