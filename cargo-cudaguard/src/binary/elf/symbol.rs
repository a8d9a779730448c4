//! Symbol tables.

use object::LittleEndian as LE;
use object::elf;
use object::read::elf::Sym;

use super::names::{NameReader, text_at, text_is};
use super::{Elf, entries};

/// Flag in `st_other` of a symbol that sealing has made weak. If the symbol is missing, the guard reports it.
pub(crate) const MADE_WEAK: u8 = 8;

/// Flag in `st_other` next to [`MADE_WEAK`]: the reference has a symbol version, which is named after its library.
pub(crate) const HAS_VERSION: u8 = 16;

/// An ELF symbol.
#[derive(Clone, Copy, Debug)]
pub struct Symbol<'data> {
    names: &'data [u8],
    /// The offset of its name in the string table.
    name: u32,
    /// Address; in an object, the offset in the section.
    pub value: u64,
    /// Size in bytes.
    pub size: u64,
    /// The section that defines the symbol.
    pub section: elf::SymbolSection,
    /// `st_bind`; global for a symbol that sealing made weak, because the guard reports it if it is missing.
    pub binding: elf::SymbolBind,
    /// `st_type`.
    pub kind: elf::SymbolType,
    /// `st_visibility`.
    pub visibility: elf::SymbolVisibility,
    /// True if sealing has made the symbol weak.
    pub made_weak: bool,
}

impl<'data> Symbol<'data> {
    fn new<S: Sym<Endian = LE>>(entry: &S, names: &'data [u8]) -> Self {
        let made_weak = entry.st_other().0 & MADE_WEAK != 0 && entry.is_weak();
        Self {
            names,
            name: entry.st_name(LE),
            value: entry.st_value(LE).into(),
            size: entry.st_size(LE).into(),
            section: entry.st_shndx(LE),
            binding: if made_weak { elf::STB_GLOBAL } else { entry.st_bind() },
            kind: entry.st_type(),
            visibility: entry.st_visibility(),
            made_weak,
        }
    }

    /// Returns the name. `None` if it is outside of the table.
    pub(super) fn name_bytes(&self) -> Option<&'data [u8]> {
        text_at(self.names, self.name)
    }

    /// Returns the name. `None` if it is outside of the table or not UTF-8.
    pub fn name(&self) -> Option<&'data str> {
        std::str::from_utf8(self.name_bytes()?).ok()
    }

    /// Returns true if the symbol has this name; faster than reading the name.
    pub fn has_name(&self, name: &[u8]) -> bool {
        text_is(self.names, self.name, name)
    }

    /// Returns true if the symbol is defined here and visible to other objects.
    pub fn is_exported(&self) -> bool {
        self.section != elf::SHN_UNDEF
            && self.binding != elf::STB_LOCAL
            && matches!(self.visibility, elf::STV_DEFAULT | elf::STV_PROTECTED)
    }

    /// Returns true if the symbol must come from another object.
    pub fn is_undefined(&self) -> bool {
        self.section == elf::SHN_UNDEF && self.binding != elf::STB_LOCAL
    }
}

/// A symbol table; one of the lists is empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SymbolTable<'data> {
    wide: &'data [elf::Sym64<LE>],
    narrow: &'data [elf::Sym32<LE>],
    names: &'data [u8],
}

impl<'data> SymbolTable<'data> {
    pub(super) fn new(is_64_bit: bool, table: &'data [u8], names: &'data [u8]) -> Self {
        let (wide, narrow) = if is_64_bit { (table, &[][..]) } else { (&[][..], table) };
        Self { wide: entries(wide), narrow: entries(narrow), names }
    }

    pub(super) fn len(&self) -> usize {
        self.wide.len() + self.narrow.len()
    }

    pub(super) fn get(&self, index: u32) -> Option<Symbol<'data>> {
        let wide = self.wide.get(index as usize).map(|entry| Symbol::new(entry, self.names));
        wide.or_else(|| Some(Symbol::new(self.narrow.get(index as usize)?, self.names)))
    }

    /// Returns the symbols without the first one, which is always empty.
    fn iter(&self) -> impl Iterator<Item = Symbol<'data>> + use<'data> {
        let names = self.names;
        let wide = self.wide.iter().skip(1).map(move |entry| Symbol::new(entry, names));
        wide.chain(self.narrow.iter().skip(1).map(move |entry| Symbol::new(entry, names)))
    }
}

impl<'data> Elf<'data> {
    fn symbol_section(&self, kind: elf::SectionType) -> Option<SymbolTable<'data>> {
        let section = self.sections().find(|section| section.kind == kind && !section.data.is_empty())?;
        Some(SymbolTable::new(self.is_64_bit, section.data, self.linked_data(&section)?))
    }

    fn dynamic_symbol_table(&self) -> Option<SymbolTable<'data>> {
        if let Some(found) = self.symbol_section(elf::SHT_DYNSYM) {
            return Some(found);
        }
        // Without section headers, only the hash table contains the number of symbols.
        let count = self.symbol_hash()?.symbol_count()?;
        let size = count.checked_mul(if self.is_64_bit { 24 } else { 16 })?;
        let table = self.dynamic_data(elf::DT_SYMTAB)?.get(..size)?;
        Some(SymbolTable::new(self.is_64_bit, table, self.dynamic_strings()))
    }

    /// Returns the symbols that the loader sees: those of `.dynsym`, or those of the dynamic section if there are no
    /// section headers.
    pub fn dynamic_symbols(&self) -> impl Iterator<Item = Symbol<'data>> + use<'data> {
        self.dynamic_symbol_table().unwrap_or_default().iter()
    }

    /// Returns all symbols: those of `.symtab` if the file is not stripped, otherwise those of
    /// [`Elf::dynamic_symbols`].
    pub fn symbols(&self) -> impl Iterator<Item = Symbol<'data>> + use<'data> {
        self.symbol_section(elf::SHT_SYMTAB).or_else(|| self.dynamic_symbol_table()).unwrap_or_default().iter()
    }

    fn exported_bytes(&self, name: &str, kind: elf::SymbolType) -> Option<&'data [u8]> {
        let found = self
            .dynamic_symbols()
            .find(|symbol| symbol.is_exported() && symbol.kind == kind && symbol.has_name(name.as_bytes()))?;
        self.at_address(found.value)?.get(..usize::try_from(found.size).ok()?)
    }

    /// Returns the value of an exported 4-byte data object, in which some libraries store their version. Relocations
    /// are not applied, because a plain number has none.
    pub fn exported_u32(&self, name: &str) -> Option<u32> {
        Some(u32::from_le_bytes(self.exported_bytes(name, elf::STT_OBJECT)?.try_into().ok()?))
    }

    /// Returns the machine code of an exported function.
    pub fn exported_code(&self, name: &str) -> Option<&'data [u8]> {
        self.exported_bytes(name, elf::STT_FUNC)
    }

    /// Returns the names of undefined symbols: the dynamic ones of a linked file, or all of an object.
    pub fn undefined_symbols(&self) -> impl Iterator<Item = &'data str> + use<'data> {
        let table =
            if self.kind == elf::ET_REL { self.symbol_section(elf::SHT_SYMTAB) } else { self.dynamic_symbol_table() };
        let table = table.unwrap_or_default();
        let mut names = NameReader::new(table.names, table.len());
        let wanted = table.iter().filter(Symbol::is_undefined);
        wanted.filter_map(move |symbol| std::str::from_utf8(names.name_at(symbol.name)?).ok())
    }
}
