//! Assigns fatbin containers to the source files and modules that they were compiled from, through the symbols,
//! relocations and registration records of the host file.

use std::collections::{HashMap, HashSet};

use super::{DEVICE_RUNTIME, KernelReader, LINKED, RECORD, is_relocatable};
use crate::binary::elf::{self, Elf};
use crate::binary::kernels::{Role, fatbin};
use object::elf::{ET_REL, SHF_ALLOC, SHT_RELA, SHT_SYMTAB, STT_FILE, SymbolSection};
use object::read::elf::Crel;

impl KernelReader<'_> {
    /// Assigns a source to each relocatable container: objects carry one name each, in the same order.
    pub(super) fn module_ids(&mut self, sections: &[(u64, &[u8])], first: usize) {
        let names: Vec<&str> = elf::without_overlaps(sections.iter().copied())
            .into_iter()
            .flat_map(|data| data.split(|byte| *byte == 0))
            .filter_map(|name| std::str::from_utf8(name).ok())
            .filter_map(source_of_module)
            .collect();
        let places = &self.places;
        let inputs: Vec<usize> =
            (first..self.containers.len()).filter(|at| is_relocatable(places, &self.containers[*at])).collect();
        let runtime = if inputs.len() == names.len() {
            for (at, name) in inputs.iter().zip(&names) {
                let origin = name.strip_suffix("_cu").map_or((*name).to_owned(), |stem| format!("{stem}.cu"));
                self.containers[*at].origin = Some(origin);
            }
            names.iter().position(|name| name.starts_with(DEVICE_RUNTIME)).map(|at| inputs[at])
        } else if names.iter().any(|name| name.starts_with(DEVICE_RUNTIME)) {
            // Another order, or lost names: the one with code for every arch of its toolkit.
            inputs.into_iter().max_by_key(|at| self.containers[*at].entries.len())
        } else {
            None
        };
        if let Some(runtime) = runtime {
            self.containers[runtime].role = Role::DeviceRuntime;
        }
    }

    /// Marks containers that are results of a device link: their record has version 2.
    pub(super) fn mark_device_links(&mut self, elf: &Elf, base: u64) {
        let records = linked_records(elf);
        if records.is_empty() {
            return;
        }
        let object = elf.kind == ET_REL;
        let relocated = relocation_targets(elf, &records);
        let symbols = if object { symbols_numbered(elf, &relocated) } else { HashMap::new() };
        let sections = Sections::from_elf(elf);
        for (place, stored) in records {
            // Some linkers write the address into the section too, some only into the relocation.
            let offset = match relocated.get(&place) {
                Some(target) if object => sections.object_offset(symbols.get(&target.r_sym), target.r_addend),
                Some(target) if stored == 0 && target.r_sym == 0 => {
                    sections.file_offset(target.r_addend.cast_unsigned())
                }
                _ if stored != 0 && !object => sections.file_offset(stored),
                _ => None,
            };
            self.links.extend(offset.and_then(|offset| base.checked_add(offset)));
        }
    }

    /// Names containers by the symbols at their beginning, if they were not stripped. nvcc's symbols (`fatbinData`)
    /// follow the name of their source; others contain a name themselves.
    pub(super) fn name_containers(&mut self, elf: &Elf, base: u64, first: usize) {
        if !elf.sections().any(|section| section.kind == SHT_SYMTAB) {
            return;
        }
        let containers = &mut self.containers[first..];
        let mut by_offset: Vec<(u64, usize)> =
            containers.iter().enumerate().map(|(at, container)| (container.offset, at)).collect();
        by_offset.sort_unstable();
        // Sections with containers, and the difference between their addresses and their offsets in the file.
        let mut sections: HashMap<SymbolSection, u64> = HashMap::new();
        for section in elf.sections().filter(|section| section.flags.contains(SHF_ALLOC) && !section.data.is_empty()) {
            // A section with bytes is inside the file.
            let start = base + section.offset;
            let end = start + section.data.len() as u64;
            let next = by_offset.get(by_offset.partition_point(|(offset, _)| *offset < start));
            if next.is_some_and(|(offset, _)| *offset < end)
                && let Ok(index) = u16::try_from(section.index)
            {
                sections.insert(SymbolSection(index), start.wrapping_sub(section.addr));
            }
        }
        let mut file = None;
        // Overlapping names, which no linker writes, must not cost more than the file's length.
        let mut left = elf.data.len();
        for symbol in elf.symbols() {
            if symbol.kind == STT_FILE {
                file = Some(symbol);
                continue;
            }
            let Some(shift) = sections.get(&symbol.section) else { continue };
            let Ok(found) = by_offset.binary_search_by_key(&symbol.value.wrapping_add(*shift), |(offset, _)| *offset)
            else {
                continue;
            };
            let container = &mut containers[by_offset[found].1];
            if container.origin.is_some() || left == 0 {
                continue;
            }
            let name = symbol.name();
            left = left.saturating_sub(name.map_or(elf::LONGEST_TEXT, str::len) + 1);
            let name = name.filter(|name| !name.is_empty());
            container.origin = match name {
                // A mark of the linker, the assembler, or the section itself.
                None | Some("fatbinData" | "__cuda_fatbin") => {
                    file.and_then(|file| file.name()).and_then(source_of_file)
                }
                Some(name) if name.starts_with(".L") || name.starts_with("__start_") => None,
                Some(name) => Some(name.to_owned()),
            };
        }
    }
}

/// Extracts `a_cu` from `_7f1bd79f_4_a_cu__Z1kPi`: mark, length and name of the source, then a kernel or another
/// mark.
fn source_of_module(id: &str) -> Option<&str> {
    let (mark, rest) = id.strip_prefix('_')?.split_once('_')?;
    let (length, rest) = rest.split_once('_')?;
    let hexadecimal = !mark.is_empty() && mark.bytes().all(|byte| byte.is_ascii_hexdigit());
    rest.get(..length.parse().ok()?).filter(|_| hexadecimal)
}

/// Extracts `k.cu` from `tmpxft_00002673_00000000-6_k.compute_100f.cudafe1.cpp`; `None` for the device linker's stub.
fn source_of_file(name: &str) -> Option<String> {
    if name == "link.stub" || name.is_empty() {
        return None;
    }
    let Some(stem) = name.strip_suffix(".cudafe1.cpp") else { return Some(name.to_owned()) };
    let stem = stem.rsplit_once(".compute_").map_or(stem, |(stem, _)| stem);
    let stem = match stem.strip_prefix("tmpxft_").and_then(|rest| rest.split_once('-')) {
        Some((_, rest)) => rest.split_once('_').map_or(rest, |(_, stem)| stem),
        None => stem,
    };
    Some(format!("{stem}.cu"))
}

/// An address: the number of its section in an object, because addresses restart in each; 0 elsewhere.
type Address = (u64, u64);

/// Limit of results of device links, above every real file; each has its own container.
pub(super) const MOST_LINKS: usize = 1 << 16;

/// Returns the records of device links' results: the address of the pointer to the container, and the stored value.
fn linked_records(elf: &Elf) -> Vec<(Address, u64)> {
    let object = elf.kind == ET_REL;
    let segments: Vec<_> = elf.sections().filter(|section| section.name == ".nvFatBinSegment").collect();
    let rests = elf::without_overlaps(segments.iter().map(|segment| (segment.offset, segment.data)));
    let all = segments.iter().zip(rests).flat_map(|(segment, rest)| {
        // No compiler writes a section that begins inside another.
        let data = if rest.len() == segment.data.len() { rest } else { &[] };
        data.chunks_exact(RECORD).zip(0u64..).filter_map(move |(record, at)| {
            let place = segment.addr.wrapping_add(at * RECORD as u64 + 8);
            let stored = fatbin::u64_at(record, 8).unwrap_or_default();
            let linked = fatbin::u32_at(record, 4) == Some(LINKED);
            linked.then_some(((if object { segment.index as u64 } else { 0 }, place), stored))
        })
    });
    all.take(MOST_LINKS).collect()
}

/// Returns the relocation that gives each address its value. If there are several, the first one
/// is used.
fn relocation_targets(elf: &Elf, records: &[(Address, u64)]) -> HashMap<Address, Crel> {
    let wanted: HashSet<Address> = records.iter().map(|(place, _)| *place).collect();
    let object = elf.kind == ET_REL;
    let tables: Vec<_> =
        elf.sections().filter(|table| table.kind == SHT_RELA && (object || table.flags.contains(SHF_ALLOC))).collect();
    let rests = elf::without_overlaps(tables.iter().map(|table| (table.offset, table.data)));
    let mut targets = HashMap::new();
    for (table, rest) in tables.iter().zip(rests) {
        let section = if object { table.info.into() } else { 0 };
        for relocation in elf.relocations(rest, true) {
            let place = (section, relocation.r_offset);
            if wanted.contains(&place) {
                targets.entry(place).or_insert(relocation);
            }
        }
    }
    targets
}

/// Returns the symbols of relocations, by number.
fn symbols_numbered<'data>(elf: &Elf<'data>, relocated: &HashMap<Address, Crel>) -> HashMap<u32, elf::Symbol<'data>> {
    let wanted: HashSet<u32> = relocated.values().map(|target| target.r_sym).collect();
    // The first symbol of a table is a placeholder and is omitted.
    (1..).zip(elf.symbols()).filter(|(number, _)| wanted.contains(number)).collect()
}

/// The addresses of a file's sections.
struct Sections {
    offsets: Vec<u64>,
    /// Sections with bytes in memory: address, bytes and offset, by address.
    loaded: Vec<(u64, u64, u64)>,
}

impl Sections {
    fn from_elf(elf: &Elf) -> Self {
        let mut sections = Self {
            offsets: elf.sections().map(|section| section.offset).collect(),
            loaded: elf
                .sections()
                .filter(|section| section.flags.contains(SHF_ALLOC) && !section.data.is_empty())
                .map(|section| (section.addr, section.data.len() as u64, section.offset))
                .collect(),
        };
        sections.loaded.sort_unstable();
        sections
    }

    fn file_offset(&self, address: u64) -> Option<u64> {
        let behind = self.loaded.partition_point(|(start, ..)| *start <= address);
        let (start, size, offset) = self.loaded.get(behind.checked_sub(1)?)?;
        (address - start < *size).then(|| offset.checked_add(address - start))?
    }

    /// Returns the file offset of a pointer's target in an object file.
    fn object_offset(&self, symbol: Option<&elf::Symbol>, addend: i64) -> Option<u64> {
        let symbol = symbol?;
        self.offsets.get(usize::from(symbol.section.0))?.checked_add(symbol.value)?.checked_add_signed(addend)
    }
}
