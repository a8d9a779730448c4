//! The dynamic section: needed libraries, run paths, symbol versions and relocations.

use object::LittleEndian as LE;
use object::elf;
use object::pod::{self, Pod};
use object::read::elf::Crel;

use super::names::{NameReader, text_at};
use super::{Elf, entries};

/// Maximum number of symbol versions; libstdc++ has about sixty.
const MOST_VERSIONS: usize = 4096;

/// A symbol version, and the library that it is required from. `None` for a version that the file itself defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolVersion<'data> {
    /// `GLIBC_2.34`.
    pub name: &'data [u8],
    /// `libc.so.6`.
    pub of: Option<&'data [u8]>,
}

/// An entry of a table of symbol versions.
#[derive(Clone, Copy, Debug)]
pub struct VersionEntry<'data> {
    /// The number by which symbols refer to it.
    pub index: elf::VersionIndex,
    /// `vd_flags` or `vna_flags`.
    pub flags: elf::VersionFlags,
    /// The version.
    pub version: SymbolVersion<'data>,
}

/// Returns entries, each with its offset, that contain the distance to the next one; 0 ends the list. The list only goes
/// forward, so it ends with the data.
fn linked_entries<T: Pod>(data: &[u8], start: usize, distance: fn(&T) -> u32) -> impl Iterator<Item = (usize, &T)> {
    let mut next = Some(start);
    let all = std::iter::from_fn(move || {
        let at = next?;
        let (entry, _) = pod::from_bytes::<T>(data.get(at..)?).ok()?;
        next = at.checked_add(distance(entry) as usize).filter(|next| *next != at);
        Some((at, entry))
    });
    all.take(MOST_VERSIONS)
}

impl<'data> Elf<'data> {
    /// Returns true if the file has a dynamic section: ld.so loads it, or loads other files for it.
    pub fn is_dynamic(&self) -> bool {
        !self.dynamic.is_empty()
    }

    /// Returns the entries of the dynamic section, (tag, value), up to its end marker.
    pub fn dynamic(&self) -> &[(elf::DynamicTag, u64)] {
        &self.dynamic
    }

    /// Returns the values of all entries of the dynamic section with this tag.
    pub fn dynamic_values(&self, tag: elf::DynamicTag) -> impl Iterator<Item = u64> + use<'_, 'data> {
        self.dynamic.iter().filter(move |(found, _)| *found == tag).map(|(_, value)| *value)
    }

    /// Returns the value of the first entry with this tag.
    pub fn dynamic_value(&self, tag: elf::DynamicTag) -> Option<u64> {
        self.dynamic_values(tag).next()
    }

    /// Returns true if the first entry with this tag has this flag.
    pub fn has_flag(&self, tag: elf::DynamicTag, flag: u64) -> bool {
        self.dynamic_value(tag).is_some_and(|flags| flags & flag != 0)
    }

    /// Returns the bytes from the address in the first entry with this tag to the end of the segment.
    pub(super) fn dynamic_data(&self, tag: elf::DynamicTag) -> Option<&'data [u8]> {
        self.at_address(self.dynamic_value(tag)?)
    }

    /// Returns the string table of the dynamic section.
    pub(super) fn dynamic_strings(&self) -> &'data [u8] {
        let size = self.dynamic_value(elf::DT_STRSZ).unwrap_or(u64::MAX);
        let table = self.dynamic_value(elf::DT_STRTAB).and_then(|address| self.table_at(address, size));
        // In an object without program headers, or if no segment contains the table, the sections locate it.
        table.or_else(|| self.linked_data(&self.section_named(".dynamic")?)).unwrap_or_default()
    }

    /// Returns the text at this offset of the dynamic section's string table.
    pub fn dynamic_string(&self, at: u64) -> Option<&'data [u8]> {
        text_at(self.dynamic_strings(), u32::try_from(at).ok()?)
    }

    /// Returns the texts of all entries with this tag, in order, as bytes, because a path need not be UTF-8.
    pub fn dynamic_texts(&self, tag: elf::DynamicTag) -> impl Iterator<Item = &'data [u8]> + use<'_, 'data> {
        let mut names = NameReader::new(self.dynamic_strings(), 0);
        self.dynamic_values(tag).filter_map(move |at| names.name_at(u32::try_from(at).unwrap_or(u32::MAX)))
    }

    /// Returns the text of the first entry with this tag.
    pub fn dynamic_text(&self, tag: elf::DynamicTag) -> Option<&'data str> {
        self.dynamic_texts(tag).next().and_then(|text| std::str::from_utf8(text).ok())
    }

    /// Returns the libraries in `DT_NEEDED`, in order.
    pub fn needed(&self) -> Vec<&'data str> {
        self.dynamic_texts(elf::DT_NEEDED).filter_map(|text| std::str::from_utf8(text).ok()).collect()
    }

    /// Returns `DT_SONAME`.
    pub fn soname(&self) -> Option<&'data str> {
        self.dynamic_text(elf::DT_SONAME)
    }

    /// Returns the symbol versions that this object requires, and those that it defines.
    pub fn versions(&self) -> Vec<VersionEntry<'data>> {
        let mut names = NameReader::new(self.dynamic_strings(), MOST_VERSIONS);
        let mut found = Vec::new();
        let table = self.dynamic_data(elf::DT_VERNEED).unwrap_or_default();
        for (at, library) in linked_entries(table, 0, |entry: &elf::Verneed<LE>| entry.vn_next.get(LE)) {
            let Some(of) = names.name_at(library.vn_file.get(LE)) else { continue };
            let start = at.saturating_add(library.vn_aux.get(LE) as usize);
            for (_, entry) in linked_entries(table, start, |entry: &elf::Vernaux<LE>| entry.vna_next.get(LE)) {
                if found.len() < MOST_VERSIONS
                    && let Some(name) = names.name_at(entry.vna_name.get(LE))
                {
                    let version = SymbolVersion { name, of: Some(of) };
                    found.push(VersionEntry {
                        index: entry.vna_other(LE).index(),
                        flags: entry.vna_flags.get(LE),
                        version,
                    });
                }
            }
        }
        let table = self.dynamic_data(elf::DT_VERDEF).unwrap_or_default();
        for (at, entry) in linked_entries(table, 0, |entry: &elf::Verdef<LE>| entry.vd_next.get(LE)) {
            let first = table.get(at.saturating_add(entry.vd_aux.get(LE) as usize)..).unwrap_or_default();
            let Ok((first, _)) = pod::from_bytes::<elf::Verdaux<LE>>(first) else { continue };
            if let Some(name) = names.name_at(first.vda_name.get(LE)) {
                let version = SymbolVersion { name, of: None };
                found.push(VersionEntry { index: entry.vd_ndx.get(LE), flags: entry.vd_flags.get(LE), version });
            }
        }
        found
    }

    /// Returns the relocations in these bytes. `explicit`: each contains its addend.
    pub fn relocations(&self, table: &'data [u8], explicit: bool) -> Box<dyn Iterator<Item = Crel> + 'data> {
        match (self.is_64_bit, explicit) {
            (true, true) => {
                Box::new(entries::<elf::Rela64<LE>>(table).iter().map(|one| Crel::from_rela(one, LE, false)))
            }
            (true, false) => Box::new(entries::<elf::Rel64<LE>>(table).iter().map(|one| Crel::from_rel(one, LE))),
            (false, true) => {
                Box::new(entries::<elf::Rela32<LE>>(table).iter().map(|one| Crel::from_rela(one, LE, false)))
            }
            (false, false) => Box::new(entries::<elf::Rel32<LE>>(table).iter().map(|one| Crel::from_rel(one, LE))),
        }
    }
}
