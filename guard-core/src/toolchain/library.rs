//! Reads facts from the file of a shared library. Reads only the required ranges, because some libraries have up to 600
//! MB, of which a query needs some hundred KB.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::sys::elf::{Elf, tag};
use crate::sys::file_error::FileProblem;
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
    /// Reads the headers and the tables of names.
    ///
    /// # Errors
    /// If the file is not a complete ELF file.
    pub(super) fn open(path: &Path) -> Result<Self, FileProblem> {
        let file = files::open_regular(path)?;
        let length = usize::try_from(file.metadata()?.len()).map_err(|_| FileProblem::too_large("is too large"))?;
        let mut image = Self { file, bytes: vec![0; length] };
        image.load_range(0, 4096)?;
        let elf = Elf::parse(&image.bytes).map_err(|_| FileProblem::unsupported("is not an ELF file"));
        // The section table is at the end of the file; its offset is in the header.
        let at = u64::from_le_bytes(image.bytes.get(40..48).and_then(|at| at.try_into().ok()).unwrap_or_default());
        if elf?.is_64_bit() {
            image.load_range(at, (length as u64).saturating_sub(at).min(64 << 10))?;
        }
        let elf = Elf::parse(&image.bytes)?;
        let tables = elf
            .sections()
            // PROGBITS and NOBITS are the large ones.
            .filter(|section| !matches!(section.kind, 0 | 1 | 8))
            .map(|section| (section.offset, section.size))
            .chain(
                elf.segments().filter(|segment| segment.kind == 2).map(|segment| (segment.offset, segment.file_size)),
            )
            .collect::<Vec<_>>();
        for (at, size) in tables {
            image.load_range(at, size)?;
        }
        Ok(image)
    }

    fn as_elf(&self) -> Option<Elf<'_>> {
        Elf::parse(&self.bytes).ok()
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
        let elf = self.as_elf()?;
        let address = elf.dynamic_symbols().find(|symbol| symbol.is_exported() && symbol.has_name(name))?.value;
        let at = elf.segments().find_map(|segment| {
            let into =
                address.checked_sub(segment.addr).filter(|into| segment.kind == 1 && *into < segment.file_size)?;
            segment.offset.checked_add(into)
        })?;
        self.load_range(at, 4).ok()?;
        self.as_elf()?.exported_u32(name)
    }

    /// Returns its `DT_NEEDED`, `RPATH` and `RUNPATH` entries.
    pub(super) fn dynamic_texts(&self) -> Vec<String> {
        let Some(elf) = self.as_elf() else { return Vec::new() };
        // If the strings are in a segment whose section was not read, the result is empty.
        let mut texts = Vec::new();
        for tag in [tag::NEEDED, tag::RPATH, tag::RUNPATH] {
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
            .section_named(".rodata")
            .map(|section| (section.offset, section.size))
            .filter(|(_, size)| *size <= MOST_RODATA)?;
        self.load_range(at, size).ok()?;
        let data = self.as_elf()?.section_named(".rodata")?.data;
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
        let section = self.as_elf()?.section_named(".nv_fatbin")?;
        let end = section.offset.checked_add(section.size)?;
        let mut at = section.offset;
        // In the known core libraries, one of the first eight entries is PTX. The limit avoids a walk through a file
        // without PTX.
        for _ in 0..64 {
            let container = self.read_header(at, end)?;
            if u32_of(&container, 0) != CONTAINER {
                return None;
            }
            let stop = at.checked_add(16)?.checked_add(u64_of(&container, 8))?.min(end);
            at = at.checked_add(16)?;
            while at < stop {
                let entry = self.read_header(at, stop)?;
                if u16_of(&entry, 0) == PTX {
                    return Some((u16_of(&entry, 26), u16_of(&entry, 24)));
                }
                let size = u64::from(u32_of(&entry, 4)).checked_add(u64_of(&entry, 8))?;
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

fn u16_of(bytes: &[u8; 32], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_of(bytes: &[u8; 32], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_of(bytes: &[u8; 32], at: usize) -> u64 {
    u64::from(u32_of(bytes, at)) | u64::from(u32_of(bytes, at + 4)) << 32
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
        assert!(LibraryImage::open(Path::new("/nowhere")).is_err());
        assert!(LibraryImage::open(Path::new("/dev/null")).is_err());
        assert!(LibraryImage::open(Path::new(file!())).is_err());
    }

    /// Uses the test program, since any ELF file is suitable.
    #[test]
    fn current_executable_texts_are_read() {
        let image = LibraryImage::open(&std::env::current_exe().unwrap()).unwrap();
        let texts = image.dynamic_texts();
        assert!(texts.iter().any(|text| text.starts_with("libc.so")), "{texts:?}");
    }
}
