//! The source files that the debug info of an object names (DWARF 2 to 5, `.debug_line`).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;

use gimli::{AttributeValue, DebugLine, DebugLineOffset, DebugLineStr, DebugStr, EndianSlice, LittleEndian};

use cudaguard::internal::elf::{Elf, machine};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

const COMPRESSED: u64 = 0x800;

/// Returns the source files of all units whose file name `wanted` accepts, with the directories that the compiler
/// recorded. Relative paths are skipped.
pub(super) fn files(elf: &Elf<'_>, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let section = |name: &str| elf.section_named(name).filter(|section| section.flags & COMPRESSED == 0);
    let texts = |name: &str| section(name).map_or(&[][..], |section| section.data);
    let relocations = section(".rela.debug_line").map_or(&[][..], |section| section.data);
    let lines = relocated(texts(".debug_line"), relocations, elf.machine());
    let tables = Texts {
        line: DebugLineStr::from(EndianSlice::new(texts(".debug_line_str"), LittleEndian)),
        plain: DebugStr::new(texts(".debug_str"), LittleEndian),
    };
    let table = DebugLine::new(&lines, LittleEndian);
    let mut found = BTreeSet::new();
    let mut at = 0;
    while let Some(next) = end_of_unit(&lines, at) {
        // A unit of an unknown version is skipped.
        if let Ok(program) = table.program(DebugLineOffset(at), 8, None, None) {
            let header = program.header();
            let first = header.directory(0).filter(|_| header.version() >= 5);
            for file in header.file_names() {
                let Some(path) = tables.text(file.path_name()) else { continue };
                if !wanted(path.rsplit('/').next().unwrap_or_default()) {
                    continue;
                }
                let parts = [first, file.directory(header)].into_iter().flatten();
                let mut whole: PathBuf = parts.filter_map(|part| tables.text(part)).collect();
                whole.push(path);
                if whole.is_absolute() {
                    found.insert(whole);
                }
            }
        }
        at = next;
    }
    found.into_iter().collect()
}

/// Returns the end of the unit at this offset. `None` if the unit is not within the table.
fn end_of_unit(lines: &[u8], at: usize) -> Option<usize> {
    let number = |from: usize, width: usize| {
        let bytes = lines.get(from..from.checked_add(width)?)?;
        Some(bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    let (start, length) = match number(at, 4)? {
        0xffff_ffff => (at + 12, number(at + 4, 8)?),
        length => (at + 4, length),
    };
    start.checked_add(usize::try_from(length).ok()?).filter(|end| *end <= lines.len())
}

/// Applies the relocations like the linker: in an object, the offsets of texts are the addends of `Elf64_Rela` entries.
fn relocated<'a>(lines: &'a [u8], relocations: &[u8], processor: u16) -> Cow<'a, [u8]> {
    let word = |entry: &[u8], at: usize| Some(u64::from_le_bytes(entry.get(at..at + 8)?.try_into().ok()?));
    let mut lines = Cow::Borrowed(lines);
    for entry in relocations.chunks_exact(24) {
        let (Some(at), Some(info), Some(addend)) = (word(entry, 0), word(entry, 8), word(entry, 16)) else { continue };
        // R_X86_64_64 and R_AARCH64_ABS64. The other types that occur here have 32 bits.
        let width = match (processor, info & 0xffff_ffff) {
            (machine::X86_64, 1) | (machine::AARCH64, 257) => 8,
            _ => 4,
        };
        let place = usize::try_from(at).ok().and_then(|at| Some(at..at.checked_add(width)?));
        if let Some(place) = place.filter(|place| place.end <= lines.len()) {
            lines.to_mut()[place].copy_from_slice(&addend.to_le_bytes()[..width]);
        }
    }
    lines
}

/// The string tables that a line table refers to.
struct Texts<'a> {
    line: DebugLineStr<Slice<'a>>,
    plain: DebugStr<Slice<'a>>,
}

impl<'a> Texts<'a> {
    fn text(&self, value: AttributeValue<Slice<'a>>) -> Option<&'a str> {
        let text = match value {
            AttributeValue::String(text) => text,
            AttributeValue::DebugLineStrRef(at) => self.line.get_str(at).ok()?,
            AttributeValue::DebugStrRef(at) => self.plain.get_str(at).ok()?,
            _ => return None,
        };
        std::str::from_utf8(text.slice()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::kernels::tests::writer::{self, Section};

    fn named(lines: &[u8], texts: &[u8]) -> Vec<PathBuf> {
        let section = |name, data| Section { name, kind: 1, flags: 0, data };
        let bytes = writer::elf(1, 62, 0, 0, &[section(".debug_line", lines), section(".debug_line_str", texts)]);
        files(&Elf::parse(&bytes).unwrap(), |name| name.starts_with('w'))
    }

    fn unit(version: u16, tables: &[u8]) -> Vec<u8> {
        let mut rest = version.to_le_bytes().to_vec();
        rest.extend(if version == 5 { &[8, 0][..] } else { &[] });
        let mut header = if version >= 4 { vec![1, 1, 1, 0, 1] } else { vec![1, 1, 0, 1] };
        header.push(1);
        header.extend(tables);
        rest.extend(u32::try_from(header.len()).unwrap().to_le_bytes());
        rest.extend(header);
        let mut unit = u32::try_from(rest.len()).unwrap().to_le_bytes().to_vec();
        unit.extend(rest);
        unit
    }

    #[test]
    fn dwarf_4_and_5_are_read() {
        let older = b"/a\0/b\0\0other.h\0\x01\0\0wanted.h\0\x02\0\0wanted_too.h\0\x00\0\0\0";
        // Directories by offset; files by offset, number of their directory and digest.
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
        fn parsing_always_terminates(lines: Vec<u8>, tables: Vec<u8>, version in 2_u16..6) {
            let _ = (named(&lines, b"x"), named(&unit(version, &tables), b"x"));
        }
    }
}
