//! Symbol tables.

use super::bytes::{StringTable, text_at, text_is, u16_at, u32_at, word_at};
use super::dynamic::tag;
use super::{Elf, SHT_DYNSYM, SHT_SYMTAB, kind};

/// Flag in `st_other` of a symbol that sealing has made weak. If the symbol is missing, the guard reports it.
pub const MADE_WEAK: u8 = 8;

/// Flag in `st_other` next to [`MADE_WEAK`]: the reference has a symbol version, which is named after its library.
pub const HAS_VERSION: u8 = 16;

/// An ELF symbol.
#[derive(Clone, Copy, Debug)]
pub struct Symbol<'data> {
    names: &'data [u8],
    /// The offset of its name in the string table.
    pub name: u32,
    /// Address; in an object, the offset in the section.
    pub value: u64,
    /// Size in bytes.
    pub size: u64,
    /// Index of the section that defines the symbol; 0 if it is undefined.
    pub section: u16,
    /// 0: local, 1: global, 2: weak.
    pub binding: u8,
    /// 0: no type, 1: object, 2: function.
    pub kind: u8,
    /// 0: default, 1: internal, 2: hidden, 3: protected.
    pub visibility: u8,
}

impl<'data> Symbol<'data> {
    /// Returns the name. `None` if it is outside of the table or not UTF-8.
    pub fn name(&self) -> Option<&'data str> {
        std::str::from_utf8(text_at(self.names, self.name.into())?).ok()
    }

    /// Returns true if the symbol has this name; faster than reading the name.
    pub fn has_name(&self, name: &str) -> bool {
        text_is(self.names, self.name.into(), name.as_bytes())
    }

    /// Returns true if the symbol is defined here and visible to other objects.
    pub fn is_exported(&self) -> bool {
        self.section != 0 && self.binding != 0 && matches!(self.visibility, 0 | 3)
    }

    /// Returns true if the symbol must come from another object.
    pub fn is_undefined(&self) -> bool {
        self.section == 0 && self.binding != 0
    }
}

impl<'data> Elf<'data> {
    /// Reads an entry of a symbol table.
    pub fn parse_symbol(&self, entry: &[u8], names: &'data [u8]) -> Option<Symbol<'data>> {
        let (value, size, info, other, section) = if self.class64 { (8, 16, 4, 5, 6) } else { (4, 8, 12, 13, 14) };
        let (info, other) = (*entry.get(info)?, *entry.get(other)?);
        // A symbol that sealing made weak counts as global, because the guard reports it if it is missing.
        let made_weak = other & MADE_WEAK != 0 && info >> 4 == 2;
        Some(Symbol {
            names,
            name: u32_at(entry, 0)?,
            value: word_at(entry, value, self.class64)?,
            size: word_at(entry, size, self.class64)?,
            section: u16_at(entry, section)?,
            binding: if made_weak { 1 } else { info >> 4 },
            kind: info & 15,
            visibility: other & 3,
        })
    }

    fn symbols_of(&self, table: &'data [u8], names: &'data [u8]) -> impl Iterator<Item = Symbol<'data>> + use<'data> {
        let elf = *self;
        // The first symbol is always empty.
        table
            .chunks_exact(if self.class64 { 24 } else { 16 })
            .skip(1)
            .filter_map(move |entry| elf.parse_symbol(entry, names))
    }

    fn symbol_section(&self, kind: u32) -> Option<(&'data [u8], &'data [u8])> {
        let section = self.sections().find(|section| section.kind == kind && !section.data.is_empty())?;
        Some((section.data, self.section_at(section.link.into())?.data))
    }

    /// Returns the number of dynamic symbols from the hash tables. Without section headers, only these contain it.
    fn dynamic_symbol_count(&self) -> Option<usize> {
        if let Some(table) = self.dynamic_value(tag::HASH).and_then(|address| self.at_address(address)) {
            return usize::try_from(u32_at(table, 4)?).ok();
        }
        let table = self.dynamic_value(tag::GNU_HASH).and_then(|address| self.at_address(address))?;
        let [buckets, first, bloom] = [0, 4, 8].map(|at| usize::try_from(u32_at(table, at)?).ok());
        let (buckets, first, bloom) = (buckets?, first?, bloom?);
        let buckets_at = bloom.checked_mul(if self.class64 { 8 } else { 4 })?.checked_add(16)?;
        let chains_at = buckets.checked_mul(4)?.checked_add(buckets_at)?;
        let bucket_bytes = table.get(buckets_at..chains_at)?;
        let last = bucket_bytes.chunks_exact(4).filter_map(|bucket| u32_at(bucket, 0)).max().unwrap_or(0);
        let last = usize::try_from(last).ok()?;
        if last < first {
            return Some(first);
        }
        // The last bucket's chain ends at the hash whose lowest bit is set.
        let chain = table.get((last - first).checked_mul(4)?.checked_add(chains_at)?..)?;
        let length = chain.chunks_exact(4).position(|hash| hash[0] & 1 == 1)?;
        last.checked_add(length)?.checked_add(1)
    }

    fn dynamic_symbol_table(&self) -> Option<(&'data [u8], &'data [u8])> {
        if let Some(found) = self.symbol_section(SHT_DYNSYM) {
            return Some(found);
        }
        let table = self.dynamic_value(tag::SYMTAB).and_then(|address| self.at_address(address))?;
        let size = self.dynamic_symbol_count()?.checked_mul(if self.class64 { 24 } else { 16 })?;
        Some((table.get(..size)?, self.dynamic_strings()))
    }

    /// Returns the symbols that the loader sees: those of `.dynsym`, or those of the dynamic section if there are no
    /// section headers.
    pub fn dynamic_symbols(&self) -> impl Iterator<Item = Symbol<'data>> + use<'data> {
        let (table, names) = self.dynamic_symbol_table().unwrap_or_default();
        self.symbols_of(table, names)
    }

    /// Returns all symbols: those of `.symtab` if the file is not stripped, otherwise those of
    /// [`Elf::dynamic_symbols`].
    pub fn symbols(&self) -> impl Iterator<Item = Symbol<'data>> + use<'data> {
        let (table, names) =
            self.symbol_section(SHT_SYMTAB).or_else(|| self.dynamic_symbol_table()).unwrap_or_default();
        self.symbols_of(table, names)
    }

    /// Returns true if the file exports a symbol with this name.
    pub fn has_export(&self, name: &str) -> bool {
        self.dynamic_symbols().any(|symbol| symbol.is_exported() && symbol.has_name(name))
    }

    /// Returns the value of an exported 4-byte data object, in which some libraries store their version. Relocations
    /// are not applied, because a plain number has none.
    pub fn exported_u32(&self, name: &str) -> Option<u32> {
        const OBJECT: u8 = 1;
        let found = self.dynamic_symbols().find(|symbol| {
            symbol.is_exported() && symbol.kind == OBJECT && symbol.size == 4 && symbol.has_name(name)
        })?;
        u32_at(self.at_address(found.value)?, 0)
    }

    /// Returns the machine code of an exported function.
    pub fn exported_code(&self, name: &str) -> Option<&'data [u8]> {
        const FUNCTION: u8 = 2;
        let found = self
            .dynamic_symbols()
            .find(|symbol| symbol.is_exported() && symbol.kind == FUNCTION && symbol.has_name(name))?;
        self.at_address(found.value)?.get(..usize::try_from(found.size).ok()?)
    }

    /// Returns the names of undefined symbols: the dynamic ones of a linked file, or all of an object.
    pub fn undefined_symbols(&self) -> impl Iterator<Item = &'data str> + use<'data> {
        let (table, names) =
            if self.kind == kind::OBJECT { self.symbol_section(SHT_SYMTAB) } else { self.dynamic_symbol_table() }
                .unwrap_or_default();
        let mut texts = StringTable::new(names, table.len() as u64 / 16);
        let wanted = self.symbols_of(table, names).filter(Symbol::is_undefined);
        wanted.filter_map(move |symbol| std::str::from_utf8(texts.name_at(symbol.name.into())?).ok())
    }
}
