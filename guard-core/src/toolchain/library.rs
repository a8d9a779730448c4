//! Reads facts from the file of a shared library. Reads only the required ranges, because some libraries have up to 600
//! MB, of which a query needs some hundred KB.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::sys::bytes::{u16_at, u32_at, u64_at};
use crate::sys::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, Elf64, PT_DYNAMIC, SHT_NOBITS, SHT_NULL, SHT_PROGBITS};
use crate::sys::files;

/// Size limit for a search in `.rodata`: only one of the queried libraries exceeds it (24 MB).
const MOST_RODATA: u64 = 4 << 20;

/// A sparse image of a library in memory: it has the length of the file, but only the queried ranges are read. The rest
/// is zero pages, which the system never allocates.
pub(super) struct LibraryImage {
    file: File,
    bytes: Vec<u8>,
}

impl LibraryImage {
    /// Reads the headers and the tables of names. `None` if the file is not a complete ELF file.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let file = files::open_regular(path).ok()?;
        let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
        let mut image = Self { file, bytes: vec![0; length] };
        image.load_range(0, 4096).ok()?;
        image.as_elf()?;
        // The section table is at the end of the file; its offset is in the header.
        let at = u64_at(&image.bytes, 40)?;
        image.load_range(at, (length as u64).saturating_sub(at).min(64 << 10)).ok()?;
        let elf = image.as_elf()?;
        // PROGBITS and NOBITS are the large ones.
        let sections =
            elf.sections.iter().filter(|section| !matches!(section.kind, SHT_NULL | SHT_PROGBITS | SHT_NOBITS));
        let segments = elf.segments.iter().filter(|segment| segment.kind == PT_DYNAMIC);
        let tables = sections.map(|section| (section.offset, section.size));
        let tables: Vec<_> = tables.chain(segments.map(|segment| (segment.offset, segment.size))).collect();
        for (at, size) in tables {
            image.load_range(at, size).ok()?;
        }
        Some(image)
    }

    fn as_elf(&self) -> Option<Elf64<'_>> {
        Elf64::parse(&self.bytes)
    }

    fn load_range(&mut self, at: u64, size: u64) -> io::Result<()> {
        let Ok(from) = usize::try_from(at) else { return Ok(()) };
        let to = usize::try_from(at.saturating_add(size)).unwrap_or(usize::MAX).min(self.bytes.len());
        if from < to {
            read_at(&mut self.file, at, &mut self.bytes[from..to])?;
        }
        Ok(())
    }

    /// Returns the value of an exported 4-byte object.
    pub(super) fn exported_u32(&mut self, name: &str) -> Option<u32> {
        let at = self.as_elf()?.offset_of_u32(name)?;
        self.load_range(at, 4).ok()?;
        u32_at(&self.bytes, usize::try_from(at).ok()?)
    }

    /// Returns its `DT_NEEDED`, `RPATH` and `RUNPATH` entries.
    pub(super) fn dynamic_texts(&self) -> Vec<String> {
        let Some(elf) = self.as_elf() else { return Vec::new() };
        // If the strings are in a segment whose section was not read, the result is empty.
        let mut texts = Vec::new();
        for tag in [DT_NEEDED, DT_RPATH, DT_RUNPATH] {
            for text in elf.dynamic_texts(tag) {
                texts.push(String::from_utf8_lossy(text).into_owned());
            }
        }
        texts
    }

    /// Returns the number that follows `before` in the strings of `.rodata`: 12 for `libcublas.so.` and
    /// `libcublas.so.12`.
    pub(super) fn number_after(&mut self, before: &str) -> Option<u32> {
        let (at, size) = self
            .as_elf()?
            .section_named(b".rodata")
            .map(|section| (section.offset, section.size))
            .filter(|(_, size)| *size <= MOST_RODATA)?;
        self.load_range(at, size).ok()?;
        let data = self.as_elf()?.section_named(b".rodata")?.data;
        data.windows(before.len()).enumerate().filter(|(_, window)| *window == before.as_bytes()).find_map(|(at, _)| {
            let digits: String =
                data[at + before.len()..].iter().take_while(|b| b.is_ascii_digit()).map(|b| char::from(*b)).collect();
            digits.parse().ok()
        })
    }

    /// Returns the ISA of the first PTX among its kernels, (major, minor). Reads only headers and unpacks nothing (the
    /// format: containers of entries with headers of at least 64 bytes).
    pub(super) fn ptx_isa(&mut self) -> Option<(u16, u16)> {
        const CONTAINER: u32 = 0xba55_ed50;
        const PTX: u16 = 1;
        let elf = self.as_elf()?;
        let section = elf.section_named(b".nv_fatbin")?;
        let end = section.offset.checked_add(section.size)?;
        let mut at = section.offset;
        // In the known core libraries, one of the first eight entries is PTX. The limit avoids a walk through a file
        // without PTX.
        for _ in 0..64 {
            let container = self.read_header(at, end)?;
            if u32_at(&container, 0)? != CONTAINER {
                return None;
            }
            let stop = at.checked_add(16)?.checked_add(u64_at(&container, 8)?)?.min(end);
            at = at.checked_add(16)?;
            while at < stop {
                let entry = self.read_header(at, stop)?;
                if u16_at(&entry, 0)? == PTX {
                    return Some((u16_at(&entry, 26)?, u16_at(&entry, 24)?));
                }
                let size = u64::from(u32_at(&entry, 4)?).checked_add(u64_at(&entry, 8)?)?;
                at = at.checked_add(size.max(1))?;
            }
            // Containers are aligned to 8.
            at = stop.checked_next_multiple_of(8)?;
        }
        None
    }

    fn read_header(&mut self, at: u64, end: u64) -> Option<[u8; 32]> {
        let mut header = [0; 32];
        (at.checked_add(32)? <= end).then_some(())?;
        read_at(&mut self.file, at, &mut header).ok()?;
        Some(header)
    }
}

fn read_at(file: &mut File, at: u64, into: &mut [u8]) -> std::io::Result<()> {
    use std::io::{Seek, SeekFrom};
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_libraries_are_rejected() {
        assert!(LibraryImage::open(Path::new("/nowhere")).is_none());
        assert!(LibraryImage::open(Path::new("/dev/null")).is_none());
        assert!(LibraryImage::open(Path::new(file!())).is_none());
    }

    /// Uses the test program, since any ELF file is suitable.
    #[test]
    fn current_executable_texts_are_read() {
        let image = LibraryImage::open(&std::env::current_exe().unwrap()).unwrap();
        let texts = image.dynamic_texts();
        assert!(texts.iter().any(|text| text.starts_with("libc.so")), "{texts:?}");
    }
}
