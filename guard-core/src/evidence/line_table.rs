//! The source files that the debug info of an object names (DWARF 2 to 5, `.debug_line`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::elf::Elf;

/// The files of all units whose names `wanted` takes, as the compiler came to them: with their folders, as far as these are
/// not relative to one that the table does not name.
pub(super) fn files(elf: &Elf<'_>, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let section = |name: &str| elf.section_named(name).filter(|section| section.flags & COMPRESSED == 0);
    let Some(lines) = section(".debug_line") else { return Vec::new() };
    let texts = |name: &str| section(name).map_or(&[][..], |section| section.data);
    let relocated = section(".rela.debug_line").map(|section| addends(section.data)).unwrap_or_default();
    let tables = Texts { line: texts(".debug_line_str"), plain: texts(".debug_str"), relocated };
    let mut reader = Reader { data: lines.data, at: 0, wide: false };
    let mut found = Vec::new();
    while reader.at < lines.data.len() {
        let Some(next) = reader.unit(&tables, &wanted, &mut found) else { break };
        reader.at = next;
    }
    found
}

const COMPRESSED: u64 = 0x800;

/// Where texts stand beside the table, and where a relocation of an object says which one is meant.
struct Texts<'a> {
    line: &'a [u8],
    plain: &'a [u8],
    relocated: HashMap<u64, u64>,
}

/// `Elf64_Rela`: the sections that are meant begin at 0, so that the addend is the offset in them.
fn addends(data: &[u8]) -> HashMap<u64, u64> {
    let word = |entry: &[u8], at: usize| entry.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    data.chunks_exact(24).filter_map(|entry| Some((word(entry, 0)?, word(entry, 16)?))).collect()
}

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
    /// Offsets have 8 bytes.
    wide: bool,
}

/// What of an entry is used.
#[derive(Default)]
struct Entry<'a> {
    path: &'a str,
    folder: usize,
}

impl<'a> Reader<'a> {
    /// One unit's header; where the next one begins. `None` where it cannot be read.
    fn unit(&mut self, texts: &Texts<'a>, wanted: &impl Fn(&str) -> bool, found: &mut Vec<PathBuf>) -> Option<usize> {
        let mut length = self.number(4)?;
        self.wide = length == 0xffff_ffff;
        if self.wide {
            length = self.number(8)?;
        }
        let next = self.at.checked_add(usize::try_from(length).ok()?).filter(|next| *next <= self.data.len())?;
        let version = self.number(2)?;
        if !(2..=5).contains(&version) {
            return Some(next);
        }
        if version == 5 {
            self.at += 2;
        }
        self.offset()?;
        self.at += if version >= 4 { 5 } else { 4 };
        let opcodes = usize::try_from(self.number(1)?).ok()?;
        self.at = self.at.checked_add(opcodes.saturating_sub(1))?;
        let (folders, files) =
            if version == 5 { (self.entries(texts)?, self.entries(texts)?) } else { self.older_tables()? };
        for file in files.iter().filter(|file| wanted(file.path.rsplit('/').next().unwrap_or_default())) {
            // Up to version 4 the first folder, where it was compiled, is not in the table.
            let mut path = PathBuf::from(folders.first().filter(|_| version == 5).map_or("", |first| first.path));
            let folder = if version == 5 { folders.get(file.folder) } else { folders.get(file.folder.wrapping_sub(1)) };
            path.push(folder.map_or("", |folder| folder.path));
            path.push(file.path);
            if path.is_absolute() && !found.iter().any(|known| Path::new(known) == path) {
                found.push(path);
            }
        }
        Some(next)
    }

    /// Folders and files of versions 2 to 4.
    fn older_tables(&mut self) -> Option<(Vec<Entry<'a>>, Vec<Entry<'a>>)> {
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        loop {
            match self.text()? {
                "" => break,
                path => folders.push(Entry { path, folder: 0 }),
            }
        }
        loop {
            let path = self.text()?;
            if path.is_empty() {
                return Some((folders, files));
            }
            let folder = usize::try_from(self.leb()?).ok()?;
            // Time and length.
            let _ = (self.leb()?, self.leb()?);
            files.push(Entry { path, folder });
        }
    }

    /// A table of version 5, which says of itself what its entries hold.
    fn entries(&mut self, texts: &Texts<'a>) -> Option<Vec<Entry<'a>>> {
        const PATH: u64 = 1;
        const FOLDER: u64 = 2;
        let kinds = self.number(1)?;
        let format: Vec<(u64, u64)> = (0..kinds).map(|_| Some((self.leb()?, self.leb()?))).collect::<Option<_>>()?;
        // Entries without anything in them would never end.
        let count = if format.is_empty() { 0 } else { self.leb()? };
        let mut entries = Vec::new();
        for _ in 0..count {
            let mut entry = Entry::default();
            for (content, form) in &format {
                match *content {
                    PATH => entry.path = self.text_of(*form, texts)?,
                    FOLDER => entry.folder = usize::try_from(self.number_of(*form)?).ok()?,
                    _ => drop(self.number_of(*form)?),
                }
            }
            entries.push(entry);
        }
        Some(entries)
    }

    fn text_of(&mut self, form: u64, texts: &Texts<'a>) -> Option<&'a str> {
        let table = match form {
            0x08 => return self.text(),
            0x1f => texts.line,
            0x0e => texts.plain,
            _ => return None,
        };
        let place = self.at as u64;
        let stands = self.offset()?;
        let at = texts.relocated.get(&place).copied().unwrap_or(stands);
        Reader { data: table, at: usize::try_from(at).ok()?, wide: false }.text()
    }

    fn number_of(&mut self, form: u64) -> Option<u64> {
        match form {
            0x0b => self.number(1),
            0x05 => self.number(2),
            0x06 => self.number(4),
            0x07 => self.number(8),
            0x0f => self.leb(),
            // A digest.
            0x1e => self.number(8).and_then(|_| self.number(8)),
            0x1f | 0x0e => self.offset(),
            0x08 => self.text().map(|_| 0),
            _ => None,
        }
    }

    fn offset(&mut self) -> Option<u64> {
        self.number(if self.wide { 8 } else { 4 })
    }

    fn number(&mut self, size: usize) -> Option<u64> {
        let bytes = self.data.get(self.at..self.at.checked_add(size)?)?;
        self.at += size;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn leb(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.number(1)?;
            number |= (byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<&'a str> {
        let rest = self.data.get(self.at..)?;
        let length = memchr::memchr(0, rest)?;
        self.at += length + 1;
        std::str::from_utf8(&rest[..length]).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tests::writer::{self, Section};

    fn named(lines: &[u8], texts: &[u8]) -> Vec<PathBuf> {
        let section = |name, data| Section { name, kind: 1, flags: 0, data };
        let bytes = writer::elf(1, 62, 0, 0, &[section(".debug_line", lines), section(".debug_line_str", texts)]);
        files(&Elf::parse(&bytes).unwrap(), |name| name.starts_with('w'))
    }

    fn unit(version: u16, tables: &[u8]) -> Vec<u8> {
        let mut rest = version.to_le_bytes().to_vec();
        rest.extend(if version == 5 { &[8, 0][..] } else { &[] });
        rest.extend([0; 4]);
        rest.extend(if version >= 4 { &[1, 1, 1, 0, 1][..] } else { &[1, 1, 0, 1] });
        rest.push(1);
        rest.extend(tables);
        let mut unit = u32::try_from(rest.len()).unwrap().to_le_bytes().to_vec();
        unit.extend(rest);
        unit
    }

    #[test]
    fn tables_of_two_kinds() {
        let older = b"/a\0/b\0\0other.h\0\x01\0\0wanted.h\0\x02\0\0wanted_too.h\0\x00\0\0\0";
        // Folders by offset; files by offset, the number of their folder and a digest.
        let mut newer = vec![1, 1, 0x1f, 2];
        newer.extend([0, 0, 0, 0, 3, 0, 0, 0]);
        newer.extend([3, 1, 0x1f, 2, 0x0b, 5, 0x1e, 1]);
        newer.extend([6, 0, 0, 0, 1]);
        newer.extend([0; 16]);
        let mut both = unit(4, older);
        both.extend(unit(5, &newer));
        assert_eq!(named(&both, b"/c\0/d\0want.h\0"), ["/b/wanted.h", "/d/want.h"].map(PathBuf::from));
    }

    proptest::proptest! {
        #[test]
        fn anything_is_read_to_an_end(lines: Vec<u8>, tables: Vec<u8>, version in 2_u16..6) {
            let _ = (named(&lines, b"x"), named(&unit(version, &tables), b"x"));
        }
    }
}
