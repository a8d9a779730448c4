//! Functions of NVIDIA's libraries are made weak in a program, so that one which an older library lacks is told by the guard
//! and not by the loader, which would end the program before any code of ours runs. The guard that is linked into the same
//! file answers for their slots (`templates/shim/weak_symbols.h`): none that stayed empty is ever called.
//!
//! Only what the loader wants at the start: of what it looks up at the first call it says itself that it is missing, then.
//! Only in programs: a library that lacks a function fails in `dlopen`, which no code of ours could make fail later.

use memchr::memmem;

use super::Change;
use crate::elf::{Elf, HAS_VERSION, MADE_WEAK, Slot, machine, tag};
use crate::mapped_file::Contents;
use crate::symbols::{self, Releases};
use crate::vendor;

/// Weak, in the place of global.
const WEAK: u8 = 2 << 4;
/// The shim's variable that counts them begins so; here with each byte turned over, so that no other program has it.
const MARK: [u8; 12] = [!0xc6, !0x2a, !b'c', !b'u', !b'd', !b'a', !b's', !b'l', !b'o', !b't', !b's', !0x95];
const DRIVER: &str = "libcuda.so.1";

/// What to change in this file, which is a program. Nothing where it holds no guard that would answer for them.
pub(super) fn slot_changes(data: &Contents) -> Vec<Change> {
    let Ok(elf) = Elf::parse(data) else { return Vec::new() };
    let known = matches!(elf.machine(), machine::X86_64 | machine::AARCH64) && elf.is_64_bit();
    if !known || elf.interpreter().is_none() || !elf.needed().iter().any(|name| is_guarded(name)) {
        return Vec::new();
    }
    let slots = elf.dynamic_links().map(|links| links.startup_slots()).unwrap_or_default();
    let made: Vec<_> = slots.iter().filter_map(|slot| Some((slot, symbol_owner(&elf, slot)?))).collect();
    let Ok(count) = u32::try_from(made.len()) else { return Vec::new() };
    let counters = if made.is_empty() { Vec::new() } else { counter_offsets(data) };
    if counters.is_empty() {
        return Vec::new();
    }
    let mut changes: Vec<Change> = counters.into_iter().map(|at| (at as u64, count.to_le_bytes().into())).collect();
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
    soname == DRIVER || vendor::ALL.iter().any(|library| library.is_named(soname))
}

struct Whose {
    /// Where the library's name stands among the file's texts.
    name_at: u64,
    /// The first release that has the function, packed; 0 where nobody knows.
    first: u32,
}

/// The guarded library that a symbol is asked of. NVIDIA's versions are called as their library, and the guard says both by
/// that one name. Without a version only a function that the table knows says whose it is.
fn symbol_owner(elf: &Elf<'_>, slot: &Slot<'_>) -> Option<Whose> {
    let name = std::str::from_utf8(slot.name).ok()?;
    let asked = |soname: &str| match slot.version {
        Some(version) => version.of == Some(soname.as_bytes()) && version.name == soname.as_bytes(),
        None => symbols::releases_with(soname, name).is_some(),
    };
    let needed = elf.dynamic().filter(|(found, _)| *found == tag::NEEDED);
    needed.filter_map(|(_, at)| Some((at, std::str::from_utf8(elf.dynamic_string(at)?).ok()?))).find_map(
        |(name_at, soname)| {
            let first = match symbols::releases_with(soname, name) {
                Some(Releases { first: Some(first), .. }) => first.packed().unwrap_or(0),
                _ => 0,
            };
            let fits = is_guarded(soname) && asked(soname) && u32::try_from(name_at).is_ok();
            fits.then_some(Whose { name_at, first })
        },
    )
}

/// Where the shim's copies in this file count them.
fn counter_offsets(data: &[u8]) -> Vec<usize> {
    let mark = MARK.map(|byte| !byte);
    memmem::find_iter(data, &mark).map(|at| at + mark.len()).filter(|at| data.len() >= at + 4).collect()
}
