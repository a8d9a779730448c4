//! `[runtime] loader = "guard"`: NVIDIA's libraries are taken from the list of the system's loader, so that the guard loads
//! and binds them itself (`templates/loader.c`), and says in words what is wrong with one.
//!
//! Only where it cannot be wrong. Beside them the program may need the C and C++ runtime alone: any other library might define
//! or use functions of NVIDIA's, and would find others, or none, since these now come last. Nothing of them may be bound in a
//! way that only the loader knows: a variable's copy, thread-local storage.
//!
//! What changes in the file: the tags of these libraries in the dynamic section, the list of versions asked for (an entry of
//! which no library is needed stops glibc), the version numbers of their symbols (glibc reads past its table at a number that
//! the list does not have), their binding (weak), and what the guard has to know, in `st_other` and `st_size`.

use std::collections::{BTreeMap, BTreeSet};

use super::Change;
use super::slots::{self, WEAK};
use crate::dlopen_note;
use crate::elf::{BOUND_BY_GUARD, Elf, HAS_VERSION, MADE_WEAK, Symbol, machine, tag};
use crate::symbols::{self, Releases};
use crate::vendor;

/// The libraries of the C and C++ runtime: all their symbols have versions, and none of them knows of NVIDIA's.
const RUNTIME: [&str; 12] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libutil.so.1",
    "libresolv.so.2",
    "libgcc_s.so.1",
    "libstdc++.so.6",
    "libatomic.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];
/// What a program may define all the same: copies of the C library's streams, which lead to the same streams, and the places that
/// a linker marks in each file for itself.
const ALIKE_WHEREVER_FOUND: [&str; 8] =
    ["stdin", "stdout", "stderr", "_init", "_fini", "__bss_start", "_edata", "_end"];
/// Before what sealing sets in the shim's variable, turned over as in [`slots`].
const MARK: [u8; 12] = [!0xc6, !0x2a, !b'c', !b'u', !b'd', !b'a', !b'l', !b'o', !b'a', !b'd', !b's', !0x95];
/// The note that the guard's text holds room for.
const NOTE_ROOM: usize = 1024;
const MOST: usize = 16;
const DF_TEXTREL: u64 = 4;
const VERSION: u16 = 0x7fff;

/// What to change in this program; nothing where it needs none of these libraries, or was changed already.
///
/// # Errors
/// Why its libraries must be left to the system's loader.
pub(super) fn changes(data: &[u8]) -> Result<Vec<Change>, String> {
    let Ok(elf) = Elf::parse(data) else { return Ok(Vec::new()) };
    let late = late(&elf, data);
    if late.is_empty() {
        return Ok(Vec::new());
    }
    let known = matches!(elf.machine(), machine::X86_64 | machine::AARCH64) && elf.class64();
    let loader = elf.interpreter().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    if !known || !loader.starts_with("ld-linux-") {
        return Err("that is for programs of 64-bit x86 and Arm that glibc's loader starts".to_owned());
    }
    let file = File { elf, data };
    let (mark, counters) = (slots::behind(data, MARK), slots::counters(data));
    let (Some(mark), false) = (mark.first(), counters.is_empty()) else {
        return Err("its guard was compiled without it".to_owned());
    };
    let note = file.note(&late)?;
    file.others(&late)?;
    let versions = file.versions(&late)?;
    let mut changes = file.unlinked(&versions)?;
    let (symbols, made_weak) = file.symbols(&late, &versions)?;
    changes.extend(symbols);
    changes.extend(late.iter().map(|one| (one.entry as u64, tag::LOADED_BY_GUARD.to_le_bytes().into())));
    changes.push(note);
    changes.push((*mark as u64, [1, file.objects_at_start(&late)].map(u32::to_le_bytes).concat()));
    changes.extend(counters.into_iter().map(|at| (at as u64, made_weak.to_le_bytes().into())));
    Ok(changes)
}

/// Whether the guard of this program loads its libraries already.
pub(super) fn are_loaded(data: &[u8]) -> bool {
    Elf::parse(data).is_ok_and(|elf| entries(&elf, data).any(|(_, tag, _)| tag == tag::LOADED_BY_GUARD))
}

/// A library that the guard is to load.
struct Late<'data> {
    soname: &'data str,
    /// Where its name stands among the texts.
    name_at: u64,
    /// Where its entry of the dynamic section stands in the file.
    entry: usize,
}

/// The entries of the dynamic section as they stand in the file: where, tag, value.
fn entries(elf: &Elf<'_>, data: &[u8]) -> impl Iterator<Item = (usize, u64, u64)> {
    let raw = |at: usize| Some(u64::from_le_bytes(data.get(at..at.checked_add(8)?)?.try_into().ok()?));
    let start = elf.dynamic_start().unwrap_or(data.len());
    let all = (0..).map(move |index: usize| start + 16 * index);
    all.map_while(move |at| Some((at, raw(at)?, raw(at + 8)?))).take_while(|(_, tag, _)| *tag != 0)
}

fn late<'data>(elf: &Elf<'data>, data: &'data [u8]) -> Vec<Late<'data>> {
    let needed = entries(elf, data).filter(|(_, tag, _)| *tag == tag::NEEDED);
    let one = |(entry, _, name_at): (usize, u64, u64)| {
        let soname = std::str::from_utf8(elf.dynamic_string(name_at)?).ok()?;
        Some(Late { soname, name_at, entry })
    };
    needed.filter_map(one).filter(|one| is_for_guard(one.soname)).collect()
}

/// Whether it is a library of NVIDIA's, by its whole name: what only begins like one may be anybody's.
fn is_for_guard(soname: &str) -> bool {
    let stem = soname.split(".so").next().unwrap_or_default();
    slots::is_guarded(soname) || vendor::OF_TOOLKIT.contains(&stem)
}

struct File<'data> {
    elf: Elf<'data>,
    data: &'data [u8],
}

/// The versions that are asked of the libraries to load, by their numbers; and the others' records, in their order.
struct Versions {
    /// Of which library each is.
    late: BTreeMap<u16, usize>,
    /// Of each record of the list: where it stands, and whether it stays.
    records: Vec<(usize, bool)>,
}

const DAMAGED: &str = "what it asks of its libraries cannot be read";

impl File<'_> {
    fn u16(&self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(self.data.get(at..at.checked_add(2)?)?.try_into().ok()?))
    }

    fn u32(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.data.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }

    fn place(&self, tag: u64) -> Option<usize> {
        self.elf.offset_of(self.elf.dynamic_value(tag)?)
    }

    /// Whether the program needs nothing else that may know of these libraries' functions, and can load by itself.
    fn others(&self, late: &[Late<'_>]) -> Result<(), String> {
        let is_late = |name: &str| late.iter().any(|one| one.soname == name);
        if let Some(other) = self.elf.needed().iter().find(|name| !is_late(name) && !RUNTIME.contains(name)) {
            return Err(format!("it needs {other}, too, which may use or define their functions"));
        }
        let flags = self.elf.dynamic_value(tag::FLAGS).unwrap_or_default();
        if self.elf.dynamic_value(tag::TEXTREL).is_some() || flags & DF_TEXTREL != 0 {
            return Err("it has addresses in its code, which is not written to".to_owned());
        }
        if late.len() > MOST {
            return Err(format!("it needs more than {MOST} of them"));
        }
        let symbol_imports = self.elf.links().map(|links| links.symbol_imports(true)).unwrap_or_default();
        let has = |name: &str| symbol_imports.iter().any(|wish| wish.name == name.as_bytes() && wish.version.is_some());
        match ["dlopen", "dlvsym"].into_iter().find(|name| !has(name)) {
            Some(name) => Err(format!("it is linked without {name} (-ldl, before glibc 2.34)")),
            None => Ok(()),
        }
    }

    /// How many objects the system's loader has loaded when the guard comes, where nobody adds one: the program, what it needs,
    /// the loader itself. 0 where the program defines a symbol to which a library might refer, so that each must be looked up
    /// in the program first.
    fn objects_at_start(&self, late: &[Late<'_>]) -> u32 {
        let is_alike = |symbol: &Symbol<'_>| ALIKE_WHEREVER_FOUND.iter().any(|name| symbol.is(name));
        let defines = |symbol: Symbol<'_>| symbol.binding != 0 && symbol.value != 0 && !is_alike(&symbol);
        if self.elf.dynamic_symbols().any(defines) {
            return 0;
        }
        let needed: BTreeSet<&str> = self.elf.needed().into_iter().collect();
        let before = |name: &&str| !name.starts_with("ld-linux") && late.iter().all(|one| one.soname != *name);
        u32::try_from(needed.into_iter().filter(before).count()).map_or(0, |count| count + 2)
    }

    /// The list for packagers' tools.
    fn note(&self, late: &[Late<'_>]) -> Result<Change, String> {
        let json = dlopen_note::needed(late.iter().map(|one| one.soname));
        let room = self.elf.notes().find(|note| {
            note.owner == dlopen_note::OWNER && note.kind == dlopen_note::TYPE && note.desc.len() == NOTE_ROOM
        });
        let Some(room) = room else { return Err("its guard was compiled without it".to_owned()) };
        let mut text = json.into_bytes();
        if text.len() >= NOTE_ROOM {
            return Err("their names take more room than the note has".to_owned());
        }
        text.resize(NOTE_ROOM, 0);
        Ok((room.offset, text))
    }

    fn versions(&self, late: &[Late<'_>]) -> Result<Versions, String> {
        let mut found = Versions { late: BTreeMap::new(), records: Vec::new() };
        let mut at = self.place(tag::VERNEED).ok_or(DAMAGED)?;
        loop {
            let read = |skip: usize| self.u32(at + skip).ok_or(DAMAGED);
            let of = self.elf.dynamic_string(read(4)?.into()).ok_or(DAMAGED)?;
            let library = late.iter().position(|one| one.soname.as_bytes() == of);
            if let Some(library) = library {
                let mut version = at + read(8)? as usize;
                loop {
                    let name = self.u32(version + 8).and_then(|name| self.elf.dynamic_string(name.into()));
                    if name != Some(of) {
                        return Err(format!("{} has versions of another name", late[library].soname));
                    }
                    found.late.insert(self.u16(version + 6).ok_or(DAMAGED)? & VERSION, library);
                    match self.u32(version + 12).ok_or(DAMAGED)? {
                        0 => break,
                        skip => version += skip as usize,
                    }
                }
            }
            found.records.push((at, library.is_none()));
            match read(12)? {
                0 => break,
                skip => at += skip as usize,
            }
            if found.records.len() > usize::from(VERSION) {
                return Err(DAMAGED.to_owned());
            }
        }
        Ok(found)
    }

    /// The list of versions without theirs. What stays comes to stand at its start, since patchelf goes by the section and not
    /// by the dynamic entry.
    fn unlinked(&self, versions: &Versions) -> Result<Vec<Change>, String> {
        let kept: Vec<usize> = versions.records.iter().filter(|(_, stays)| *stays).map(|(at, _)| *at).collect();
        if kept.is_empty() {
            return Err("it asks for no version of the C library".to_owned());
        }
        let mut changes: Vec<Change> = Vec::new();
        let places: Vec<usize> = versions.records.iter().map(|(at, _)| *at).take(kept.len()).collect();
        if !places.is_sorted() {
            return Err(DAMAGED.to_owned());
        }
        for (index, (place, from)) in places.iter().zip(&kept).enumerate() {
            let mut record = self.data.get(*from..from + 16).ok_or(DAMAGED)?.to_vec();
            let first = self.u32(from + 8).ok_or(DAMAGED)? as usize + from - place;
            let next = places.get(index + 1).map_or(0, |next| next - place);
            record[8..12].copy_from_slice(&u32::try_from(first).map_err(|_| DAMAGED)?.to_le_bytes());
            record[12..].copy_from_slice(&u32::try_from(next).map_err(|_| DAMAGED)?.to_le_bytes());
            changes.push((*place as u64, record));
        }
        let count = u32::try_from(kept.len()).map_err(|_| DAMAGED)?;
        let entry = entries(&self.elf, self.data).find(|(_, tag, _)| *tag == tag::VERNEEDNUM);
        changes.extend(entry.map(|(at, ..)| (at as u64 + 8, u64::from(count).to_le_bytes().into())));
        let header = self.elf.section_header_of(".gnu.version_r");
        changes.extend(header.map(|at| (at as u64 + 44, count.to_le_bytes().into())));
        Ok(changes)
    }

    /// Their symbols, and how many were made weak.
    fn symbols(&self, late: &[Late<'_>], versions: &Versions) -> Result<(Vec<Change>, u32), String> {
        let links = self.elf.links().ok_or(DAMAGED)?;
        let (table, numbers) = self.place(tag::SYMTAB).zip(self.place(tag::VERSYM)).ok_or(DAMAGED)?;
        let kinds: &[u32] = if self.elf.machine() == machine::X86_64 { &[1, 6, 7] } else { &[257, 1025, 1026] };
        let unversioned: Vec<usize> =
            (0..late.len()).filter(|index| !versions.late.values().any(|library| library == index)).collect();
        let (mut changes, mut seen, mut made_weak) = (Vec::new(), BTreeSet::new(), 0_u32);
        for (kind, index) in links.kinds() {
            let at = table + 24 * index as usize;
            let entry = self.data.get(at..at + 24).ok_or(DAMAGED)?;
            let name = self.elf.dynamic_string(self.u32(at).ok_or(DAMAGED)?.into()).unwrap_or_default();
            let name = String::from_utf8_lossy(name);
            let number = self.u16(numbers + 2 * index as usize).ok_or(DAMAGED)? & VERSION;
            let asks = versions.late.get(&number).copied();
            let defined = self.u16(at + 6) != Some(0);
            let is_copy = matches!((self.elf.machine(), kind), (machine::X86_64, 5) | (machine::AARCH64, 1024));
            let whose = match asks {
                Some(library) => library,
                // Nobody else's: the runtime's symbols all have versions.
                None if number <= 1 && (!defined || is_copy) && !unversioned.is_empty() => {
                    let knows = |library: &&usize| symbols::releases(late[**library].soname, &name).is_some();
                    *unversioned.iter().find(knows).unwrap_or(&unversioned[0])
                }
                None => continue,
            };
            let soname = late[whose].soname;
            if is_copy {
                return Err(format!("it has a copy of {name}, a variable of {soname}'s"));
            }
            if defined {
                continue;
            }
            if !kinds.contains(&kind) || entry[4] & 15 == 6 {
                return Err(format!("{name} of {soname} is bound in a way that only the loader knows"));
            }
            if !seen.insert(index) {
                continue;
            }
            let mut entry = entry.to_vec();
            let global = entry[4] >> 4 == 1;
            entry[4] = WEAK | entry[4] & 15;
            entry[5] |= BOUND_BY_GUARD;
            entry[5] |= if asks.is_some() { HAS_VERSION } else { 0 } | if global { MADE_WEAK } else { 0 };
            made_weak += u32::from(global);
            let first = match symbols::releases(soname, &name) {
                Some(Releases { first: Some(first), .. }) => first.packed().unwrap_or(0),
                _ => 0,
            };
            entry[16..].copy_from_slice(&(late[whose].name_at << 32 | u64::from(first)).to_le_bytes());
            changes.push((at as u64, entry));
            // No number may be left that the list of versions does not have.
            changes.push(((numbers + 2 * index as usize) as u64, 1_u16.to_le_bytes().into()));
        }
        Ok((changes, made_weak))
    }
}
