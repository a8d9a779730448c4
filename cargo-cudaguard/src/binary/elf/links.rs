//! The dynamic linking of a file: the symbols in its relocations, the symbol versions that they require, and the
//! symbols that a file defines. Reads the dynamic section only, as the loader does, because section headers may be
//! missing.
//!
//! Rules: the System V ABI with its processor supplements; glibc, `elf/dynamic-link.h`, `elf/do-rel.h`,
//! `elf/dl-lookup.c` and `elf/dl-version.c` (2.31 to 2.41); musl, `ldso/dynlink.c` (1.2).

use std::collections::BTreeMap;

use object::LittleEndian as LE;
use object::elf;
use object::read::elf::Crel;

use super::hash::SymbolHash;
use super::symbol::SymbolTable;
use super::{Elf, Symbol, SymbolVersion, entries};

/// The first number of a version that the file itself defines, after those of local, global and base symbols.
const FIRST_VERSION: elf::VersionIndex = elf::VersionIndex(3);

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
pub struct Links<'elf, 'data> {
    elf: &'elf Elf<'data>,
    symbols: SymbolTable<'data>,
    symbol_versions: Option<&'data [elf::Versym<LE>]>,
    versions: BTreeMap<elf::VersionIndex, SymbolVersion<'data>>,
    hash: Option<SymbolHash<'data>>,
}

/// Returns the dynamic linking data of the file. `None` if the file has no dynamic symbols.
pub fn dynamic_links<'elf, 'data>(elf: &'elf Elf<'data>) -> Option<Links<'elf, 'data>> {
    let versions = elf.versions().into_iter();
    Some(Links {
        elf,
        symbols: SymbolTable::new(elf.is_64_bit, elf.dynamic_data(elf::DT_SYMTAB)?, elf.dynamic_strings()),
        symbol_versions: elf.dynamic_data(elf::DT_VERSYM).map(entries),
        versions: versions
            .filter(|entry| entry.version.of.is_some() || !entry.flags.contains(elf::VER_FLG_BASE))
            .map(|entry| (entry.index, entry.version))
            .collect(),
        hash: elf.symbol_hash(),
    })
}

/// Returns the relocation types of a processor for a jump slot and for a copy of a variable.
fn relocation_types(machine: elf::Machine) -> Option<(elf::RelocationType, elf::RelocationType)> {
    Some(match machine {
        elf::EM_386 => (elf::R_386_JMP_SLOT, elf::R_386_COPY),
        elf::EM_X86_64 => (elf::R_X86_64_JUMP_SLOT, elf::R_X86_64_COPY),
        elf::EM_AARCH64 => (elf::R_AARCH64_JUMP_SLOT, elf::R_AARCH64_COPY),
        elf::EM_ARM => (elf::R_ARM_JUMP_SLOT, elf::R_ARM_COPY),
        elf::EM_PPC64 => (elf::R_PPC64_JMP_SLOT, elf::R_PPC64_COPY),
        elf::EM_RISCV => (elf::R_RISCV_JUMP_SLOT, elf::R_RISCV_COPY),
        elf::EM_LOONGARCH => (elf::R_LARCH_JUMP_SLOT, elf::R_LARCH_COPY),
        elf::EM_S390 => (elf::R_390_JMP_SLOT, elf::R_390_COPY),
        _ => return None,
    })
}

impl<'data> Links<'_, 'data> {
    /// Returns true if the file requires that all symbols are bound at start-up.
    pub fn binds_at_start(&self) -> bool {
        self.elf.dynamic_value(elf::DT_BIND_NOW).is_some()
            || self.elf.has_flag(elf::DT_FLAGS, elf::DF_BIND_NOW.0)
            || self.elf.has_flag(elf::DT_FLAGS_1, elf::DF_1_NOW.0)
    }

    /// Returns the symbols that come from other files. Empty if the relocation types of the processor are unknown.
    pub fn symbol_imports(&self, all_at_start: bool) -> Vec<SymbolImport<'data>> {
        let Some((slot, copy)) = relocation_types(self.elf.machine) else { return Vec::new() };
        let lazily = !all_at_start && !self.binds_at_start();
        // For each symbol and kind of reference: are all its references lazy? A vector, because large libraries have a
        // million relocations.
        let mut uses: Vec<[Option<bool>; 3]> = Vec::new();
        for (of_calls, relocation) in self.relocations() {
            let (index, kind) = (relocation.r_sym as usize, relocation.r_type);
            if index == 0 || kind.0 == 0 || index >= self.symbols.len() {
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
        let symbol = self.symbols.get(index)?;
        // The program itself defines the copy of a variable, and the search skips the program.
        let wanted = symbol.section == elf::SHN_UNDEF || by == SymbolUse::Copy;
        if !wanted || symbol.binding == elf::STB_LOCAL || is_hidden(&symbol) {
            return None;
        }
        let name = symbol.name_bytes().filter(|name| !name.is_empty())?;
        Some(SymbolImport { name, version: self.version_of(index), by, lazy, weak: symbol.binding == elf::STB_WEAK })
    }

    /// Returns the symbols whose addresses the loader stores before any code of the file runs, and whose slots a
    /// missing symbol would leave empty: entries of the global offset table and jump slots, or pointers in data, on
    /// x86-64 and aarch64. Symbols that are resolved at the first call, and copied variables, are excluded.
    pub fn startup_slots(&self) -> Vec<Slot<'data>> {
        let kinds: &[elf::RelocationType] = match self.elf.machine {
            elf::EM_X86_64 => &[elf::R_X86_64_64, elf::R_X86_64_GLOB_DAT, elf::R_X86_64_JUMP_SLOT],
            elf::EM_AARCH64 => &[elf::R_AARCH64_ABS64, elf::R_AARCH64_GLOB_DAT, elf::R_AARCH64_JUMP_SLOT],
            _ => &[],
        };
        let lazily = !self.binds_at_start();
        let mut found: BTreeMap<u32, (bool, bool)> = BTreeMap::new();
        for (of_calls, relocation) in self.relocations().filter(|(_, relocation)| relocation.r_sym != 0) {
            let (at_start, plain) = found.entry(relocation.r_sym).or_insert((false, true));
            *at_start |= !(lazily && of_calls);
            *plain &= kinds.contains(&relocation.r_type);
        }
        let plain = found.into_iter().filter(|(_, (at_start, plain))| *at_start && *plain);
        plain.filter_map(|(index, _)| self.startup_slot(index)).collect()
    }

    fn startup_slot(&self, index: u32) -> Option<Slot<'data>> {
        let symbol = self.symbols.get(index)?;
        let plain = symbol.section == elf::SHN_UNDEF
            && symbol.binding == elf::STB_GLOBAL
            && symbol.kind != elf::STT_TLS
            && !is_hidden(&symbol);
        let name = symbol.name_bytes().filter(|name| plain && !name.is_empty())?;
        let table = self.elf.offset_of(self.elf.dynamic_data(elf::DT_SYMTAB)?);
        let at = usize::try_from(index).ok()?.checked_mul(24)?;
        Some(Slot { name, version: self.version_of(index), offset: table.checked_add(at)? })
    }

    /// Returns the relocations; true for those in the table of calls.
    fn relocations(&self) -> impl Iterator<Item = (bool, Crel)> + use<'_, 'data> {
        let [calls, mut rela, mut rel] =
            [(elf::DT_JMPREL, elf::DT_PLTRELSZ), (elf::DT_RELA, elf::DT_RELASZ), (elf::DT_REL, elf::DT_RELSZ)]
                .map(|(start, size)| self.elf.dynamic_value(start).zip(self.elf.dynamic_value(size)));
        let explicit = self.elf.dynamic_value(elf::DT_PLTREL) == Some(elf::DT_RELA.0.cast_unsigned());
        // Some linkers also count the relocations of calls in the other table.
        if let Some((first, length)) = calls {
            for (start, size) in rela.iter_mut().chain(&mut rel) {
                if first >= *start && start.saturating_add(*size) == first.saturating_add(length) {
                    *size = first - *start;
                }
            }
        }
        let tables = [(true, explicit, calls), (false, true, rela), (false, false, rel)];
        tables.into_iter().flat_map(|(of_calls, explicit, table)| {
            let table = table.and_then(|(address, size)| self.elf.table_at(address, size)).unwrap_or_default();
            self.elf.relocations(table, explicit).map(move |relocation| (of_calls, relocation))
        })
    }

    fn version_index(&self, symbol: u32) -> Option<elf::VersymIndex> {
        Some(self.symbol_versions?.get(symbol as usize)?.0.get(LE))
    }

    fn version_of(&self, symbol: u32) -> Option<SymbolVersion<'data>> {
        self.versions.get(&self.version_index(symbol)?.index()).copied()
    }

    /// Returns true if the file's symbols have versions.
    pub fn has_versions(&self) -> bool {
        self.symbol_versions.is_some()
    }

    /// Returns the symbols that the file defines for others: the name, the version, and true if an import without a
    /// version finds it.
    pub fn exports(&self) -> impl Iterator<Item = (&'data [u8], Option<&'data [u8]>, bool)> + use<'_, 'data> {
        self.elf.dynamic_symbols().zip(1..).filter_map(|(symbol, index)| {
            let is_defined = symbol.section != elf::SHN_UNDEF && has_definition(&symbol) && is_for_others(&symbol);
            let name = symbol.name_bytes().filter(|_| is_defined)?;
            let is_default = self.version_index(index).is_none_or(|version| !version.is_hidden());
            Some((name, self.version_of(index).map(|version| version.name), is_default))
        })
    }

    /// Returns true if this file defines the imported symbol. `by_name_alone`: the loader ignores versions.
    pub fn defines(&self, import: &SymbolImport<'_>, by_name_alone: bool) -> bool {
        let (mut versioned, mut count) = (None, 0);
        let candidates = self.hash.and_then(|table| table.candidates(import.name)).unwrap_or_default();
        for index in candidates {
            let Some(symbol) = self.symbols.get(index).filter(|symbol| symbol.has_name(import.name)) else { continue };
            if !has_definition(&symbol) || import.by == SymbolUse::Call && symbol.section == elf::SHN_UNDEF {
                continue;
            }
            let fits = match (self.version_index(index), import.version) {
                (None, _) => true,
                _ if by_name_alone => true,
                (Some(version), Some(wanted)) => match self.versions.get(&version.index()) {
                    Some(version) => version.name == wanted.name,
                    None => !version.is_hidden(),
                },
                (Some(version), None) if version.index() >= FIRST_VERSION => {
                    // A file with only one symbol of that name satisfies the import, whatever the symbol's version.
                    if !version.is_hidden() {
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
}

fn is_hidden(symbol: &Symbol<'_>) -> bool {
    matches!(symbol.visibility, elf::STV_INTERNAL | elf::STV_HIDDEN)
}

fn is_for_others(symbol: &Symbol<'_>) -> bool {
    matches!(symbol.binding, elf::STB_GLOBAL | elf::STB_WEAK | elf::STB_GNU_UNIQUE) && !is_hidden(symbol)
}

/// Returns true if the symbol has a value, and a type that defines code or data.
fn has_definition(symbol: &Symbol<'_>) -> bool {
    (symbol.value != 0 || symbol.section == elf::SHN_ABS || symbol.kind == elf::STT_TLS)
        && matches!(
            symbol.kind,
            elf::STT_NOTYPE | elf::STT_OBJECT | elf::STT_FUNC | elf::STT_COMMON | elf::STT_TLS | elf::STT_GNU_IFUNC
        )
}
