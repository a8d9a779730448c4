//! The dynamic linking of a file: the symbols in its relocations, the symbol versions that they require, and the
//! symbols that a file defines. Reads the dynamic section only, as the loader does, because section headers may be
//! missing.
//!
//! Rules: the System V ABI with its processor supplements; glibc, `elf/dynamic-link.h`, `elf/do-rel.h`,
//! `elf/dl-lookup.c` and `elf/dl-version.c` (2.31 to 2.41); musl, `ldso/dynlink.c` (1.2).

use std::collections::{BTreeMap, BTreeSet};

use cudaguard::internal::elf::{
    Elf, MOST_VERSIONS, Symbol, linked_records, machine, tag, text_at, text_is, u16_at, u32_at, word_at,
};

const DF_BIND_NOW: u64 = 8;
const DF_1_NOW: u64 = 1;
const SHN_ABS: u16 = 0xfff1;
const STB_LOCAL: u8 = 0;
const STB_GLOBAL: u8 = 1;
const STB_WEAK: u8 = 2;
const STB_GNU_UNIQUE: u8 = 10;
const STT_TLS: u8 = 6;
/// Symbol types that define code or data: no type, object, function, common, thread-local, indirect function.
const DEFINING_TYPES: u32 = 1 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << STT_TLS | 1 << 10;
const HIDDEN: u16 = 0x8000;
const VERSION: u16 = 0x7fff;
const VER_FLG_BASE: u16 = 1;
/// Limit for the hash chains of a damaged file.
const LONGEST_CHAIN: usize = 1 << 16;

/// A symbol version, and the library that it is required from. `None` for a version that the file itself defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolVersion<'data> {
    /// `GLIBC_2.34`.
    pub name: &'data [u8],
    /// `libc.so.6`.
    pub of: Option<&'data [u8]>,
}

/// Kind of reference to a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SymbolUse {
    /// A call through the procedure linkage table.
    Call,
    /// Its address is stored in data.
    Address,
    /// The program contains a copy of a library's variable.
    Copy,
}

/// A symbol that a file imports.
#[derive(Clone, Copy, Debug)]
pub struct SymbolImport<'data> {
    /// Name of the symbol.
    pub name: &'data [u8],
    /// Version of the symbol.
    pub version: Option<SymbolVersion<'data>>,
    /// Kind of reference.
    pub by: SymbolUse,
    /// True if the symbol is resolved at the first call, not at start-up.
    pub lazy: bool,
    /// True if the symbol may be missing.
    pub weak: bool,
}

/// A function or variable whose address the loader stores at start-up. If it is missing, the loader starts nothing.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'data> {
    /// Name of the symbol.
    pub name: &'data [u8],
    /// Version of the symbol.
    pub version: Option<SymbolVersion<'data>>,
    /// Offset of the symbol table entry in the file.
    pub offset: usize,
}

/// A linked file, as the loader binds it.
#[derive(Debug)]
pub struct Links<'data> {
    elf: Elf<'data>,
    symbols: &'data [u8],
    names: &'data [u8],
    symbol_versions: Option<&'data [u8]>,
    versions: BTreeMap<u16, SymbolVersion<'data>>,
    gnu_hash: Option<GnuHash<'data>>,
    hash: Option<&'data [u8]>,
}

/// A GNU hash table: a Bloom filter, and for each remainder of a hash the first symbol of a chain.
#[derive(Debug)]
struct GnuHash<'data> {
    class64: bool,
    shift: u32,
    first: u32,
    filter: &'data [u8],
    buckets: &'data [u8],
    chains: &'data [u8],
}

/// Returns the dynamic linking data of the file. `None` if the file has no dynamic symbols.
pub fn dynamic_links<'data>(elf: &Elf<'data>) -> Option<Links<'data>> {
    let [symbols, symbol_versions, gnu_hash, hash] =
        [tag::SYMTAB, tag::VERSYM, tag::GNU_HASH, tag::HASH].map(|tag| elf.at_address(elf.dynamic_value(tag)?));
    Some(Links {
        elf: *elf,
        symbols: symbols?,
        names: elf.dynamic_strings(),
        symbol_versions,
        versions: versions_by_number(elf),
        gnu_hash: gnu_hash.and_then(|table| GnuHash::parse(table, elf.is_64_bit())),
        hash,
    })
}

/// Returns every version that the file defines or requires, by version number.
fn versions_by_number<'data>(elf: &Elf<'data>) -> BTreeMap<u16, SymbolVersion<'data>> {
    let [needed, defined] = [tag::VERNEED, tag::VERDEF]
        .map(|tag| elf.dynamic_value(tag).and_then(|address| elf.at_address(address)).unwrap_or_default());
    let strings = elf.dynamic_strings();
    let mut found = BTreeMap::new();
    for record in linked_records(needed, Some(0), 12, 16).take(MOST_VERSIONS) {
        let of = name_at(strings, record, 4);
        let start = u32_at(record, 8).and_then(|skip| usize::try_from(skip).ok());
        for version in linked_records(record, start, 12, 16).take(MOST_VERSIONS) {
            if let (Some(number), Some(name)) = (u16_at(version, 6), name_at(strings, version, 8)) {
                found.insert(number & VERSION, SymbolVersion { name, of });
            }
        }
    }
    for record in linked_records(defined, Some(0), 16, 20).take(MOST_VERSIONS) {
        let (Some(flags), Some(number)) = (u16_at(record, 2), u16_at(record, 4)) else { continue };
        let first = u32_at(record, 12).and_then(|skip| record.get(usize::try_from(skip).ok()?..));
        if let (0, Some(name)) = (flags & VER_FLG_BASE, first.and_then(|first| name_at(strings, first, 0))) {
            found.insert(number & VERSION, SymbolVersion { name, of: None });
        }
    }
    found
}

/// Returns the text in the string table whose offset is at this place of a record.
fn name_at<'data>(strings: &'data [u8], record: &[u8], at: usize) -> Option<&'data [u8]> {
    text_at(strings, u32_at(record, at)?.into())
}

/// Returns the relocation types of a processor for a jump slot and for a copy of a variable.
fn relocation_types(machine: u16) -> Option<(u32, u32)> {
    Some(match machine {
        machine::X86 | machine::X86_64 => (7, 5),
        machine::AARCH64 => (1026, 1024),
        machine::ARM => (22, 20),
        machine::PPC64 => (21, 19),
        machine::RISCV | machine::LOONGARCH => (5, 4),
        machine::S390 => (11, 9),
        _ => return None,
    })
}

impl<'data> Links<'data> {
    /// Returns true if the file requires that all symbols are bound at start-up.
    pub fn binds_at_start(&self) -> bool {
        let flags = [(tag::FLAGS, DF_BIND_NOW), (tag::FLAGS_1, DF_1_NOW)];
        self.elf.dynamic_value(tag::BIND_NOW).is_some()
            || flags.iter().any(|(tag, bit)| self.elf.dynamic_value(*tag).is_some_and(|flags| flags & bit != 0))
    }

    /// Returns the symbols that come from other files. Empty if the relocation types of the processor are unknown.
    pub fn symbol_imports(&self, all_at_start: bool) -> Vec<SymbolImport<'data>> {
        let Some((slot, copy)) = relocation_types(self.elf.machine()) else { return Vec::new() };
        let lazily = !all_at_start && !self.binds_at_start();
        // For each symbol and kind of reference: are all its references lazy? A vector, because large libraries have a
        // million relocations.
        let mut uses: Vec<[Option<bool>; 3]> = Vec::new();
        let count = self.symbols.len() / self.symbol_size();
        for (of_calls, kind, symbol) in self.relocations() {
            let index = symbol as usize;
            if symbol == 0 || kind == 0 || index >= count {
                continue;
            }
            if uses.len() <= index {
                uses.resize(index + 1, [None; 3]);
            }
            let by = match kind {
                _ if kind == slot => SymbolUse::Call,
                _ if kind == copy => SymbolUse::Copy,
                _ => SymbolUse::Address,
            };
            let lazy = lazily && of_calls && by == SymbolUse::Call;
            let all_lazy = &mut uses[index][by as usize];
            *all_lazy = Some(lazy && all_lazy.unwrap_or(true));
        }
        let mut imports = Vec::new();
        for (index, uses) in (0..).zip(uses) {
            for by in [SymbolUse::Call, SymbolUse::Address, SymbolUse::Copy] {
                if let Some(lazy) = uses[by as usize] {
                    imports.extend(self.symbol_import(index, by, lazy));
                }
            }
        }
        imports
    }

    fn symbol_import(&self, index: u32, by: SymbolUse, lazy: bool) -> Option<SymbolImport<'data>> {
        let symbol = self.symbol_at(index)?;
        // The program itself defines the copy of a variable, and the search skips the program.
        let wanted = symbol.section == 0 || by == SymbolUse::Copy;
        if !wanted || symbol.binding == STB_LOCAL || is_hidden(&symbol) {
            return None;
        }
        let name = text_at(self.names, symbol.name.into()).filter(|name| !name.is_empty())?;
        Some(SymbolImport { name, version: self.version_of(index), by, lazy, weak: symbol.binding == STB_WEAK })
    }

    /// Returns the symbols whose addresses the loader stores before any code of the file runs, and whose slots a
    /// missing symbol would leave empty: entries of the global offset table and jump slots, or pointers in data, on
    /// x86-64 and aarch64. Symbols that are resolved at the first call, and copied variables, are excluded.
    pub fn startup_slots(&self) -> Vec<Slot<'data>> {
        let kinds: &[u32] = match self.elf.machine() {
            machine::X86_64 => &[1, 6, 7],
            machine::AARCH64 => &[257, 1025, 1026],
            _ => &[],
        };
        let lazily = !self.binds_at_start();
        let mut found: BTreeMap<u32, (bool, bool)> = BTreeMap::new();
        for (of_calls, kind, symbol) in self.relocations().filter(|(.., symbol)| *symbol != 0) {
            let (at_start, plain) = found.entry(symbol).or_insert((false, true));
            *at_start |= !(lazily && of_calls);
            *plain &= kinds.contains(&kind);
        }
        let plain = found.into_iter().filter(|(_, (at_start, plain))| *at_start && *plain);
        plain.filter_map(|(index, _)| self.startup_slot(index)).collect()
    }

    fn startup_slot(&self, index: u32) -> Option<Slot<'data>> {
        let symbol = self.symbol_at(index)?;
        let plain =
            symbol.section == 0 && symbol.binding == STB_GLOBAL && symbol.kind != STT_TLS && !is_hidden(&symbol);
        let name = text_at(self.names, symbol.name.into()).filter(|name| plain && !name.is_empty())?;
        let at = usize::try_from(index).ok()?.checked_mul(24)?;
        let table = self.elf.offset_of(self.elf.dynamic_value(tag::SYMTAB)?)?;
        Some(Slot { name, version: self.version_of(index), offset: table.checked_add(at)? })
    }

    /// Returns the names of the symbols that sealing has made weak.
    pub fn made_weak(&self) -> Vec<&'data [u8]> {
        let size = if self.elf.is_64_bit() { 24 } else { 16 };
        let mut indices: BTreeSet<u32> = self.relocations().map(|(.., symbol)| symbol).collect();
        indices.retain(|index| {
            let entry = self.symbols.chunks_exact(size).nth(*index as usize);
            entry.is_some_and(|entry| entry[5] & cudaguard::internal::elf::MADE_WEAK != 0)
        });
        indices.into_iter().filter_map(|index| text_at(self.names, self.symbol_at(index)?.name.into())).collect()
    }

    /// Returns (true if in the table of calls, type, symbol) for each relocation.
    fn relocations(&self) -> impl Iterator<Item = (bool, u32, u32)> + use<'_, 'data> {
        let [calls, mut rela, mut rel] =
            [(tag::JMPREL, tag::PLTRELSZ), (tag::RELA, tag::RELASZ), (tag::REL, tag::RELSZ)]
                .map(|(start, size)| self.elf.dynamic_value(start).zip(self.elf.dynamic_value(size)));
        let explicit = self.elf.dynamic_value(tag::PLTREL) == Some(tag::RELA);
        // Some linkers also count the relocations of calls in the other table.
        if let Some((first, length)) = calls {
            for (start, size) in rela.iter_mut().chain(&mut rel) {
                if first >= *start && start.saturating_add(*size) == first.saturating_add(length) {
                    *size = first - *start;
                }
            }
        }
        let tables = [(true, explicit, calls), (false, true, rela), (false, false, rel)];
        let class64 = self.elf.is_64_bit();
        let word = if class64 { 8 } else { 4 };
        tables.into_iter().filter_map(|(of_calls, explicit, range)| Some((of_calls, explicit, range?))).flat_map(
            move |(of_calls, explicit, (address, size))| {
                let table = self.elf.at_address(address).unwrap_or_default();
                let table = &table[..usize::try_from(size).unwrap_or(usize::MAX).min(table.len())];
                table.chunks_exact(word * if explicit { 3 } else { 2 }).filter_map(move |entry| {
                    let info = word_at(entry, word, class64)?;
                    let (symbol, kind) =
                        if class64 { (info >> 32, info & u64::from(u32::MAX)) } else { (info >> 8, info & 0xff) };
                    Some((of_calls, u32::try_from(kind).ok()?, u32::try_from(symbol).ok()?))
                })
            },
        )
    }

    fn symbol_size(&self) -> usize {
        if self.elf.is_64_bit() { 24 } else { 16 }
    }

    fn symbol_at(&self, index: u32) -> Option<Symbol<'data>> {
        let size = self.symbol_size();
        let at = usize::try_from(index).ok()?.checked_mul(size)?;
        self.elf.parse_symbol(self.symbols.get(at..at.checked_add(size)?)?, self.names)
    }

    fn version_of(&self, index: u32) -> Option<SymbolVersion<'data>> {
        let number = u16_at(self.symbol_versions?, usize::try_from(index).ok()?.checked_mul(2)?)?;
        self.versions.get(&(number & VERSION)).copied()
    }

    /// Returns true if the file's symbols have versions.
    pub fn has_versions(&self) -> bool {
        self.symbol_versions.is_some()
    }

    /// Returns the symbols that the file defines for others: the name, the version, and true if an import without a
    /// version finds it.
    pub fn exports(&self) -> impl Iterator<Item = (&'data [u8], Option<&'data [u8]>, bool)> + use<'_, 'data> {
        self.elf.dynamic_symbols().zip(1_usize..).filter_map(|(symbol, index)| {
            let is_defined = symbol.section != 0
                && (symbol.value != 0 || symbol.section == SHN_ABS || symbol.kind == STT_TLS)
                && DEFINING_TYPES >> symbol.kind & 1 == 1;
            let name = text_at(self.names, symbol.name.into()).filter(|_| is_defined && is_for_others(&symbol))?;
            let number = self.symbol_versions.and_then(|table| u16_at(table, index.checked_mul(2)?));
            let version = number.and_then(|number| self.versions.get(&(number & VERSION)));
            Some((name, version.map(|version| version.name), number.is_none_or(|number| number & HIDDEN == 0)))
        })
    }

    /// Returns true if this file defines the imported symbol. `by_name_alone`: the loader ignores versions.
    pub fn defines(&self, import: &SymbolImport<'_>, by_name_alone: bool) -> bool {
        let (mut versioned, mut count) = (None, 0);
        for index in self.symbols_named(import.name) {
            let Some(symbol) = self.symbol_at(index) else { continue };
            let defines = (symbol.value != 0 || symbol.section == SHN_ABS || symbol.kind == STT_TLS)
                && (import.by != SymbolUse::Call || symbol.section != 0)
                && DEFINING_TYPES >> symbol.kind & 1 == 1;
            if !defines {
                continue;
            }
            let number = self.symbol_versions.and_then(|table| u16_at(table, usize::try_from(index).ok()? * 2));
            let fits = match (number, import.version) {
                (None, _) => true,
                _ if by_name_alone => true,
                (Some(number), Some(wanted)) => match self.versions.get(&(number & VERSION)) {
                    Some(version) => version.name == wanted.name,
                    None => number & HIDDEN == 0,
                },
                (Some(number), None) if number & VERSION >= 3 => {
                    // A file with only one symbol of that name satisfies the import, whatever the symbol's version.
                    if number & HIDDEN == 0 {
                        count += 1;
                        versioned = versioned.or(Some(symbol));
                    }
                    false
                }
                (Some(_), None) => true,
            };
            if fits {
                return is_for_others(&symbol);
            }
        }
        versioned.is_some_and(|symbol| count == 1 && is_for_others(&symbol))
    }

    /// Returns the symbols with this name, found in the hash table.
    fn symbols_named(&self, name: &[u8]) -> Vec<u32> {
        let found = match (&self.gnu_hash, self.hash) {
            (Some(table), _) => table.symbols_named(name),
            (None, Some(table)) => sysv_symbols_named(table, name),
            (None, None) => None,
        };
        let mut found = found.unwrap_or_default();
        found
            .retain(|index| self.symbol_at(*index).is_some_and(|symbol| text_is(self.names, symbol.name.into(), name)));
        found
    }
}

fn is_hidden(symbol: &Symbol<'_>) -> bool {
    matches!(symbol.visibility, 1 | 2)
}

fn is_for_others(symbol: &Symbol<'_>) -> bool {
    matches!(symbol.binding, STB_GLOBAL | STB_WEAK | STB_GNU_UNIQUE) && !is_hidden(symbol)
}

impl<'data> GnuHash<'data> {
    fn parse(table: &'data [u8], class64: bool) -> Option<Self> {
        let (buckets, first, filter, shift) =
            (u32_at(table, 0)?, u32_at(table, 4)?, u32_at(table, 8)?, u32_at(table, 12)?);
        let filter_size = (filter as usize).checked_mul(if class64 { 8 } else { 4 })?;
        let (filter, rest) = table.get(16..)?.split_at_checked(filter_size)?;
        let (buckets, chains) = rest.split_at_checked((buckets as usize).checked_mul(4)?)?;
        Some(Self { class64, shift, first, filter, buckets, chains })
    }

    /// Returns the symbols with the hash of this name.
    fn symbols_named(&self, name: &[u8]) -> Option<Vec<u32>> {
        let hash = name.iter().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)));
        let (word, bits) = if self.class64 { (8, 64) } else { (4, 32) };
        let at = ((hash / bits) as usize).checked_rem(self.filter.len() / word)? * word;
        let filter = word_at(self.filter, at, self.class64)?;
        if filter >> (hash % bits) & (filter >> (hash.checked_shr(self.shift)? % bits)) & 1 == 0 {
            return None;
        }
        let start = u32_at(self.buckets, (hash as usize).checked_rem(self.buckets.len() / 4)? * 4)?;
        let skip = start.checked_sub(self.first).filter(|_| start != 0)? as usize;
        let chain = self.chains.get(skip.checked_mul(4)?..)?;
        let mut found = Vec::new();
        for (step, entry) in chain.chunks_exact(4).take(LONGEST_CHAIN).enumerate() {
            let here = u32_at(entry, 0)?;
            if here | 1 == hash | 1 {
                found.push(start.checked_add(u32::try_from(step).ok()?)?);
            }
            if here & 1 == 1 {
                break;
            }
        }
        Some(found)
    }
}

/// Returns the symbols in this name's chain of the System V hash table.
fn sysv_symbols_named(table: &[u8], name: &[u8]) -> Option<Vec<u32>> {
    let hash = name.iter().fold(0_u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(*byte));
        let high = hash & 0xf000_0000;
        (hash ^ high >> 24) & !high
    });
    let buckets = u32_at(table, 0)?;
    let mut index = element_at(table, hash.checked_rem(buckets)?.checked_add(2)?)?;
    let mut found = Vec::new();
    while index != 0 && found.len() < LONGEST_CHAIN {
        found.push(index);
        index = element_at(table, buckets.checked_add(2)?.checked_add(index)?)?;
    }
    Some(found)
}

fn element_at(table: &[u8], index: u32) -> Option<u32> {
    u32_at(table, (index as usize).checked_mul(4)?)
}
