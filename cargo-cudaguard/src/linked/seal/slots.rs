//! Makes references to functions of NVIDIA's libraries weak in a program, so that the guard reports a function that an
//! older library lacks. Otherwise the loader would end the program before any code of the shim runs. The guard in the
//! same file provides the slots (`templates/shim/detection.c`): an empty slot is never called.
//!
//! Changes only references that the loader resolves at startup: for the others, the loader reports a missing function
//! at its first call. Changes only programs: `dlopen` of a library that lacks a function fails immediately, which the
//! shim cannot delay. Changes no program whose code may run before its guard, because that code could call an empty
//! slot.

use std::collections::BTreeMap;

use memchr::memmem;

use super::NotePatch;
use crate::binary::elf::links::{Slot, dynamic_links};
use crate::binary::elf::{Elf, HAS_VERSION, MADE_WEAK};
use crate::binary::mapped_file::Contents;
use crate::binary::symbols::{self, Releases};
use crate::knowledge::vendor;
use cudaguard::internal::bytes::u64_at;
use object::elf::{
    DT_INIT, DT_INIT_ARRAY, DT_INIT_ARRAYSZ, DT_JMPREL, DT_NEEDED, DT_PLTRELSZ, DT_PREINIT_ARRAY, DT_RELA, DT_RELASZ,
    EM_AARCH64, EM_X86_64, PT_LOAD, R_AARCH64_IRELATIVE, R_AARCH64_RELATIVE, R_X86_64_IRELATIVE, R_X86_64_RELATIVE,
    SHN_UNDEF, STT_GNU_IFUNC,
};

/// The binding of a weak symbol, in the upper half of the byte that also contains the type.
const WEAK: u8 = 2 << 4;
/// Prefix of the shim's counter variable, with all bits inverted here, so that this program does not contain it.
const MARK: [u8; 12] = [!0xc6, !0x2a, !b'c', !b'u', !b'd', !b'a', !b's', !b'l', !b'o', !b't', !b's', !0x95];
const DRIVER: &str = "libcuda.so.1";

/// Returns the changes to this program. Empty if it contains no guard that handles the weak references.
pub(super) fn slot_changes(data: &Contents) -> Vec<NotePatch> {
    let Ok(elf) = Elf::parse(data) else { return Vec::new() };
    let known = matches!(elf.machine, EM_X86_64 | EM_AARCH64) && elf.is_64_bit;
    if !known || elf.interpreter().is_none() || !elf.needed().iter().any(|name| is_guarded(name)) {
        return Vec::new();
    }
    let slots = dynamic_links(&elf).map(|links| links.startup_slots()).unwrap_or_default();
    let made: Vec<_> = slots.iter().filter_map(|slot| Some((slot, symbol_owner(&elf, slot)?))).collect();
    let Ok(count) = u32::try_from(made.len()) else { return Vec::new() };
    let counters = if made.is_empty() { Vec::new() } else { counter_offsets(data) };
    if counters.is_empty() || may_run_before_guard(&elf, &counters) {
        return Vec::new();
    }
    let mut changes: Vec<NotePatch> = counters.into_iter().map(|at| (at as u64, count.to_le_bytes().into())).collect();
    for (slot, library) in made {
        let Some(entry) = data.get(slot.offset..slot.offset + 24) else { return Vec::new() };
        let mut entry = entry.to_vec();
        entry[4] = WEAK | entry[4] & 15;
        entry[5] |= MADE_WEAK | if slot.version.is_some() { HAS_VERSION } else { 0 };
        entry[16..].copy_from_slice(&(library.name_at << 32 | u64::from(library.first)).to_le_bytes());
        changes.push((slot.offset as u64, entry));
    }
    changes.retain(|(at, new)| usize::try_from(*at).ok().and_then(|at| data.get(at..at + new.len())) != Some(new));
    changes
}

fn is_guarded(soname: &str) -> bool {
    soname == DRIVER || vendor::DESCRIBED.iter().any(|library| library.is_named(soname))
}

struct SlotOwner {
    /// Offset of the library's name in the string table.
    name_at: u64,
    /// The first release that has the function, packed; 0 if unknown.
    first: u32,
}

/// Returns the checked library that a symbol belongs to. The symbol versions of NVIDIA's libraries are named like the
/// library, and the guard uses that name for both. A function without a version is assigned only if the symbol table
/// lists it.
fn symbol_owner(elf: &Elf<'_>, slot: &Slot<'_>) -> Option<SlotOwner> {
    let name = std::str::from_utf8(slot.name).ok()?;
    elf.dynamic_values(DT_NEEDED)
        .filter_map(|at| Some((at, std::str::from_utf8(elf.dynamic_string(at)?).ok()?)))
        .find_map(|(name_at, soname)| {
            let releases = symbols::releases_with(soname, name);
            let asked = match slot.version {
                Some(version) => version.of == Some(soname.as_bytes()) && version.name == soname.as_bytes(),
                None => releases.is_some(),
            };
            let first = match releases {
                Some(Releases { first: Some(first), .. }) => first.packed().unwrap_or(0),
                _ => 0,
            };
            let fits = is_guarded(soname) && asked && u32::try_from(name_at).is_ok();
            fits.then_some(SlotOwner { name_at, first })
        })
}

/// Returns true if code of the program may run before its guard: while the loader binds symbols, from `.preinit_array`,
/// from an initialization function, or from a constructor that precedes the guard's. The constructor of Rust's standard
/// library calls no function of another library.
fn may_run_before_guard(elf: &Elf<'_>, counters: &[usize]) -> bool {
    let relocations = DataRelocations::read(elf);
    let has_resolvers = relocations.computes_addresses
        || elf.dynamic_symbols().any(|symbol| symbol.section != SHN_UNDEF && symbol.kind == STT_GNU_IFUNC);
    let has_own_init = elf.dynamic_value(DT_INIT).is_some_and(|init| {
        let usual = elf.section_named(".init").map(|section| section.addr);
        usual != Some(init)
    });
    if has_resolvers || has_own_init || elf.dynamic_value(DT_PREINIT_ARRAY).is_some() {
        return true;
    }
    // The address of the guard's constructor follows the counter.
    let guards: Vec<u64> = counters
        .iter()
        .filter_map(|at| relocations.pointer(elf, address_of_offset(elf, at.checked_add(4)?)?))
        .collect();
    let (Some(array), Some(size)) = (elf.dynamic_value(DT_INIT_ARRAY), elf.dynamic_value(DT_INIT_ARRAYSZ)) else {
        return true;
    };
    // A stripped program of Rust has this one constructor without its name.
    let mut unnamed = usize::from(elf.section_named(".symtab").is_none() && is_made_by_rustc(elf));
    for entry in (array..array.saturating_add(size)).step_by(8) {
        match relocations.pointer(elf, entry) {
            Some(constructor) if guards.contains(&constructor) => return false,
            Some(constructor) if is_of_rust(elf, constructor) => {}
            Some(_) if unnamed > 0 => unnamed -= 1,
            _ => return true,
        }
    }
    true
}

/// Returns true if the compiler of Rust is among those that the file lists.
fn is_made_by_rustc(elf: &Elf<'_>) -> bool {
    elf.section_named(".comment").is_some_and(|comment| memmem::find(comment.data, b"rustc version ").is_some())
}

/// Returns true if this function is a function of Rust's standard library.
fn is_of_rust(elf: &Elf<'_>, address: u64) -> bool {
    let mut names = elf.symbols().filter(|symbol| symbol.value == address && symbol.section != SHN_UNDEF);
    names.any(|symbol| {
        let name = symbol.name().unwrap_or_default();
        name.starts_with("_ZN3std") || (name.starts_with("_RN") && name.contains("_3std"))
    })
}

fn address_of_offset(elf: &Elf<'_>, offset: usize) -> Option<u64> {
    let offset = u64::try_from(offset).ok()?;
    elf.segments().filter(|segment| segment.kind == PT_LOAD).find_map(|segment| {
        let into = offset.checked_sub(segment.offset).filter(|into| *into < segment.file_size)?;
        segment.addr.checked_add(into)
    })
}

/// The pointers in data that the loader adapts to the address of the program.
#[derive(Default)]
struct DataRelocations {
    addends: BTreeMap<u64, u64>,
    /// True if functions of the program compute addresses.
    computes_addresses: bool,
}

impl DataRelocations {
    fn read(elf: &Elf<'_>) -> Self {
        let (relative, computed) = if elf.machine == EM_X86_64 {
            (R_X86_64_RELATIVE, R_X86_64_IRELATIVE)
        } else {
            (R_AARCH64_RELATIVE, R_AARCH64_IRELATIVE)
        };
        let mut found = Self::default();
        for (table, size) in [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)] {
            let (Some(table), Some(size)) = (elf.dynamic_value(table), elf.dynamic_value(size)) else { continue };
            for relocation in elf.relocations(elf.table_at(table, size).unwrap_or_default(), true) {
                if relocation.r_type == relative {
                    found.addends.insert(relocation.r_offset, relocation.r_addend.cast_unsigned());
                }
                found.computes_addresses |= relocation.r_type == computed;
            }
        }
        found
    }

    /// Returns the pointer at this address. A packed relocation, or none, leaves it in the file.
    fn pointer(&self, elf: &Elf<'_>, address: u64) -> Option<u64> {
        self.addends.get(&address).copied().or_else(|| u64_at(elf.at_address(address)?, 0))
    }
}

/// Returns the offsets of the shim's counters in this file.
fn counter_offsets(data: &[u8]) -> Vec<usize> {
    let mark = MARK.map(|byte| !byte);
    memmem::find_iter(data, &mark).map(|at| at + mark.len()).filter(|at| data.len() >= at + 4).collect()
}
