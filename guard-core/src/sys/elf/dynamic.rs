//! The dynamic section: needed libraries, run paths and symbol versions.

use super::bytes::{StringTable, text_at, text_within, u16_at, u32_at, word_at};
use super::{Elf, PT_DYNAMIC};

/// Tags of the dynamic section.
pub mod tag {
    /// Name of a needed library.
    pub const NEEDED: u64 = 1;
    /// Size of the relocations for calls.
    pub const PLTRELSZ: u64 = 2;
    /// Address of the System V hash table.
    pub const HASH: u64 = 4;
    /// Address of the string table.
    pub const STRTAB: u64 = 5;
    /// Address of the symbol table.
    pub const SYMTAB: u64 = 6;
    /// Address of the relocations with addends.
    pub const RELA: u64 = 7;
    /// Their size.
    pub const RELASZ: u64 = 8;
    /// Size of the string table.
    pub const STRSZ: u64 = 10;
    /// Address of the initialization function.
    pub const INIT: u64 = 12;
    /// Name of the library itself (soname).
    pub const SONAME: u64 = 14;
    /// Search directories of the old kind, searched before `LD_LIBRARY_PATH`.
    pub const RPATH: u64 = 15;
    /// Address of the relocations without addends.
    pub const REL: u64 = 17;
    /// Their size.
    pub const RELSZ: u64 = 18;
    /// Kind of the relocations for calls: [`RELA`] or [`REL`].
    pub const PLTREL: u64 = 20;
    /// Address of the relocations for calls.
    pub const JMPREL: u64 = 23;
    /// All symbols are bound at start-up.
    pub const BIND_NOW: u64 = 24;
    /// Address of the pointers to constructors.
    pub const INIT_ARRAY: u64 = 25;
    /// Size of these pointers.
    pub const INIT_ARRAYSZ: u64 = 27;
    /// Search directories, searched after `LD_LIBRARY_PATH`.
    pub const RUNPATH: u64 = 29;
    /// Older flags, such as `DF_BIND_NOW`.
    pub const FLAGS: u64 = 30;
    /// Address of the pointers to functions that run before all constructors.
    pub const PREINIT_ARRAY: u64 = 32;
    /// Address of the GNU hash table.
    pub const GNU_HASH: u64 = 0x6fff_fef5;
    /// Address of the symbols' version numbers, one for each symbol.
    pub const VERSYM: u64 = 0x6fff_fff0;
    /// Flags such as `DF_1_NODEFLIB`.
    pub const FLAGS_1: u64 = 0x6fff_fffb;
    /// Address of the versions that the file defines.
    pub const VERDEF: u64 = 0x6fff_fffc;
    /// Address of the versions that the file requires.
    pub const VERNEED: u64 = 0x6fff_fffe;
    /// Filter: another object provides all symbols of this one.
    pub const FILTER: u64 = 0x7fff_ffff;
    /// Filter: another object may provide some symbols of this one.
    pub const AUXILIARY: u64 = 0x7fff_fffd;
}

/// Maximum length of a symbol version, for example `CUDART_12.0_EXTENDED_AND_PRIVATE`.
const LONGEST_VERSION: usize = 256;

/// Maximum number of symbol versions; libstdc++ has about sixty.
pub const MOST_VERSIONS: usize = 4096;

impl<'data> Elf<'data> {
    /// Returns true if the file has a dynamic section: ld.so loads it, or loads other files for it.
    pub fn is_dynamic(&self) -> bool {
        self.dynamic_data().is_some()
    }

    fn dynamic_data(&self) -> Option<&'data [u8]> {
        const SHT_DYNAMIC: u32 = 6;
        self.segments()
            .find(|segment| segment.kind == PT_DYNAMIC)
            .map(|segment| segment.data)
            .or_else(|| self.sections().find(|section| section.kind == SHT_DYNAMIC).map(|section| section.data))
            .filter(|data| !data.is_empty())
    }

    /// Returns the entries of the dynamic section, (tag, value), up to its end marker.
    pub fn dynamic(&self) -> impl Iterator<Item = (u64, u64)> + use<'data> {
        let class64 = self.class64;
        let width = if class64 { 8 } else { 4 };
        let mut entries = self.dynamic_data().unwrap_or_default().chunks_exact(width * 2);
        std::iter::from_fn(move || {
            let entry = entries.next()?;
            Some((word_at(entry, 0, class64)?, word_at(entry, width, class64)?)).filter(|(tag, _)| *tag != 0)
        })
    }

    /// Returns the value of the first entry with this tag.
    pub fn dynamic_value(&self, tag: u64) -> Option<u64> {
        self.dynamic().find(|(found, _)| *found == tag).map(|(_, value)| value)
    }

    /// The string table of the dynamic section.
    pub fn dynamic_strings(&self) -> &'data [u8] {
        let table = self.dynamic_value(tag::STRTAB).and_then(|address| self.at_address(address));
        if let Some(table) = table {
            let size = self.dynamic_value(tag::STRSZ).and_then(|size| usize::try_from(size).ok()).unwrap_or(usize::MAX);
            return &table[..table.len().min(size)];
        }
        // In an object without program headers, or if no segment contains the table, the sections locate it.
        let link = self.section_named(".dynamic").map(|section| section.link);
        link.and_then(|link| self.section_at(link.into())).map(|section| section.data).unwrap_or_default()
    }

    /// Returns the text at this offset of the dynamic section's string table.
    pub fn dynamic_string(&self, at: u64) -> Option<&'data [u8]> {
        text_at(self.dynamic_strings(), at)
    }

    /// Returns the texts of all entries with this tag, in order, as bytes, because a path need not be UTF-8.
    pub fn dynamic_texts(&self, tag: u64) -> impl Iterator<Item = &'data [u8]> + use<'data> {
        let (mut strings, mut entries) = (StringTable::new(self.dynamic_strings(), 0), self.dynamic());
        std::iter::from_fn(move || {
            loop {
                match entries.next()? {
                    (found, at) if found == tag => match strings.name_at(at) {
                        None => {}
                        text => return text,
                    },
                    _ => {}
                }
            }
        })
    }

    fn dynamic_text(&self, tag: u64) -> Option<&'data str> {
        self.dynamic_texts(tag).next().and_then(|text| std::str::from_utf8(text).ok())
    }

    /// Returns the libraries in `DT_NEEDED`, in order.
    pub fn needed(&self) -> Vec<&'data str> {
        self.dynamic_texts(tag::NEEDED).filter_map(|text| std::str::from_utf8(text).ok()).collect::<Vec<_>>()
    }

    /// Returns `DT_SONAME`.
    pub fn soname(&self) -> Option<&'data str> {
        self.dynamic_text(tag::SONAME)
    }

    /// Returns `DT_RPATH`, as written.
    pub fn rpath(&self) -> Option<&'data str> {
        self.dynamic_text(tag::RPATH)
    }

    /// Returns `DT_RUNPATH`, as written.
    pub fn runpath(&self) -> Option<&'data str> {
        self.dynamic_text(tag::RUNPATH)
    }

    /// Returns the symbol versions that this object requires, (library, version). Weak ones are skipped, because they
    /// may be missing.
    pub fn needed_versions(&self) -> impl Iterator<Item = (&'data str, &'data str)> + use<'data> {
        const WEAK: u16 = 2;
        let table = self.dynamic_value(tag::VERNEED).and_then(|address| self.at_address(address)).unwrap_or_default();
        let strings = self.dynamic_strings();
        // A record contains the library; its list of versions is elsewhere in the table.
        let records = linked_records(table, Some(0), 12, 16).take(MOST_VERSIONS);
        records.flat_map(move |record| {
            let file = version_text(strings, record, 4);
            let start = u32_at(record, 8).and_then(|skip| usize::try_from(skip).ok());
            let versions = linked_records(record, start.filter(|_| file.is_some()), 12, 16).take(MOST_VERSIONS);
            versions
                .filter(|version| u16_at(version, 4).is_some_and(|flags| flags & WEAK == 0))
                .filter_map(move |version| Some((file?, version_text(strings, version, 8)?)))
        })
    }

    /// Returns the symbol versions that this object defines.
    pub fn defined_versions(&self) -> impl Iterator<Item = &'data str> + use<'data> {
        let table = self.dynamic_value(tag::VERDEF).and_then(|address| self.at_address(address)).unwrap_or_default();
        let strings = self.dynamic_strings();
        linked_records(table, Some(0), 16, 20).take(MOST_VERSIONS).filter_map(move |record| {
            let first = record.get(usize::try_from(u32_at(record, 12)?).ok()?..)?;
            std::str::from_utf8(text_within(strings, u32_at(first, 0)?.into(), LONGEST_VERSION)?).ok()
        })
    }
}

/// Iterates over records that contain, at offset `link`, the distance to the next record; 0 ends the list. The list
/// only goes forward, so it ends with the data.
pub fn linked_records(
    data: &[u8],
    start: Option<usize>,
    link: usize,
    size: usize,
) -> impl Iterator<Item = &[u8]> + use<'_> {
    let mut at = start;
    std::iter::from_fn(move || {
        let here = data.get(at?..).filter(|here| here.len() >= size)?;
        let skip = usize::try_from(u32_at(here, link)?).ok()?;
        at = if skip == 0 { None } else { at?.checked_add(skip) };
        Some(here)
    })
}

/// Returns the text in the string table whose offset is at this place of a version record.
fn version_text<'data>(strings: &'data [u8], record: &[u8], at: usize) -> Option<&'data str> {
    std::str::from_utf8(text_within(strings, u32_at(record, at)?.into(), LONGEST_VERSION)?).ok()
}
