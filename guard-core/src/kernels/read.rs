//! Finds the containers of a file, and what each is there for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use memmap2::Mmap;

use super::fatbin::{self, Compression};
use super::{Container, Entry, Form, Kernels, Kind, Place, Role, cover, cubin, ptx, scan, unpack};
use crate::elf::{self, Elf};

const PROGBITS: u32 = 1;
const RELA: u32 = 4;
const WRITABLE: u64 = 1;
const ALLOCATED: u64 = 2;
const EXECUTABLE: u64 = 4;
const SYMBOL_OF_FILE: u8 = 4;
const LOAD: u32 = 1;

/// Bytes of the smallest header in an ELF file's tables.
const LEAST_HEADER: u64 = 32;

/// Bytes of a record in `.nvFatBinSegment`, and the version of one that a device linker wrote.
const RECORD: usize = 24;
const LINKED: u32 = 2;

/// Where nvcc puts whole programs, and device linkers their results.
const WHOLE: &str = ".nv_fatbin";
/// Where nvcc puts relocatable code.
const RELOCATABLE: &str = "__nv_relfatbin";

/// Sections of every program that hold tables of the compiler's and the loader's, never anything embedded.
const TABLES: [&str; 10] = [
    ".eh_frame",
    ".eh_frame_hdr",
    ".gcc_except_table",
    ".got",
    ".got.plt",
    ".interp",
    ".nvFatBinSegment",
    ".plt",
    ".plt.got",
    "__nv_module_id",
];

/// Unpacked bytes up to which it is worth looking inside for a kernel. Measured with nvcc 11.8 to 13.5: cubins without
/// any have 660 to 1736 bytes, those of an empty kernel 2408 and more; PTX 56 bytes to a few hundred against 94 and more.
const SMALL_CUBIN: u64 = 2560;
const SMALL_PTX: u64 = 1024;
/// Of several cubins packed together.
const SMALL_CONCATENATED: u64 = 16 << 10;

/// Reads a file's bytes; `map` is the mapping that they are all of, if they are one.
pub(super) fn read(data: &[u8], map: Option<&Mmap>) -> Result<Kernels, String> {
    let mut reader = Reader { map, ..Reader::default() };
    if elf::is_archive(data) {
        for member in elf::archive(data)? {
            let member = match member {
                Ok(member) => member,
                Err(error) => {
                    reader.doubts.push(error);
                    break;
                }
            };
            let Some(bytes) = member.data else {
                return Err("is a thin archive: it names its objects and holds none of them".to_owned());
            };
            // Rust libraries carry metadata, and archives whatever else they like, beside their objects.
            if let Err(error) = reader.image(bytes, member.offset, Some(&member.name)) {
                if Elf::is_elf(bytes) {
                    reader.doubts.push(format!("{} {error}", member.name));
                }
            }
        }
    } else {
        reader.image(data, 0, None)?;
    }
    Ok(reader.finish())
}

#[derive(Default)]
struct Reader<'data> {
    map: Option<&'data Mmap>,
    entries: Vec<Entry>,
    containers: Vec<Container>,
    places: Vec<Place>,
    doubts: Vec<String>,
    /// Offsets of containers that a record of a device link points to.
    links: Vec<u64>,
    /// Small packed images, and whether they hold a kernel: libraries repeat the same empty one a thousand times.
    small: HashMap<(&'data [u8], u64), bool>,
}

/// A piece of the file: its bytes, where they stand in the file, and the section they are.
#[derive(Clone, Copy)]
struct Piece<'data> {
    data: &'data [u8],
    base: u64,
    place: u32,
}

impl<'data> Reader<'data> {
    /// One file, or one member of an archive.
    fn image(&mut self, data: &'data [u8], base: u64, member: Option<&str>) -> Result<(), String> {
        let whole = |reader: &mut Self| Piece { data, base, place: reader.place(member, "") };
        if data.starts_with(&fatbin::MAGIC) {
            let piece = whole(self);
            self.walk(piece);
            return Ok(());
        }
        if Elf::is_elf(data) {
            let elf = Elf::parse(data)?;
            if elf.machine() != elf::machine::CUDA {
                self.host(&elf, base, member);
                return Ok(());
            }
            let piece = whole(self);
            let Ok(cubin) = cubin::read(data) else {
                let damage = elf.damage().unwrap_or_else(|| "is a damaged cubin".to_owned());
                return Err(damage);
            };
            self.cubin(piece, 0, &cubin);
            return Ok(());
        }
        if let Some(at) = ptx::starts(data) {
            let text =
                ptx::read(data, at).ok_or("begins like PTX, but names no `.target sm_NN` after its `.version`")?;
            let piece = whole(self);
            self.ptx(piece, &text);
            return Ok(());
        }
        Err(if data.is_empty() {
            "is empty".to_owned()
        } else {
            "is no ELF file, no archive of them, no fatbin, no cubin and no PTX".to_owned()
        })
    }

    fn place(&mut self, member: Option<&str>, section: &str) -> u32 {
        let known = self.places.last();
        if !known.is_some_and(|place| place.section == section && place.member.as_deref() == member) {
            self.places.push(Place { member: member.map(str::to_owned), section: section.to_owned() });
        }
        u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
    }

    /// A program, a library or an object of the machine's own processor.
    fn host(&mut self, elf: &Elf<'data>, base: u64, member: Option<&str>) {
        if let Some(damage) = elf.damage() {
            self.doubts.push(member.map_or_else(|| damage.clone(), |member| format!("{member} {damage}")));
        }
        let first = self.containers.len();
        let tasks = tasks(elf, base);
        let size: usize = tasks.iter().map(|task| task.data.len()).sum();
        let parts = if size < WORTH_THREADS {
            tasks.iter().map(|task| task.run(self.map)).collect()
        } else {
            at_once(&tasks, self.map)
        };
        let mut has_inputs = false;
        for (task, part) in tasks.iter().zip(parts) {
            has_inputs |= task.name == RELOCATABLE && !part.containers.is_empty();
            self.absorb(part, member, task.name);
        }
        if self.containers.len() == first {
            return;
        }
        if has_inputs {
            self.module_ids(elf, first);
        }
        // In an archive, a device link's result stands in another member than its inputs.
        if has_inputs || elf.kind() == elf::kind::OBJECT {
            self.records(elf, base);
        }
        self.symbols(elf, base, first);
        if let Some(member) = member {
            for container in &mut self.containers[first..] {
                container.origin.get_or_insert_with(|| member.to_owned());
            }
        }
    }

    /// Takes over what was read of a section.
    fn absorb(&mut self, part: Reader, member: Option<&str>, section: &str) {
        self.doubts.extend(part.doubts);
        if part.containers.is_empty() {
            return;
        }
        let place = self.place(member, section);
        let (containers, entries) = (self.number(), self.entries_from(0).end);
        self.entries.extend(
            part.entries
                .into_iter()
                .map(|entry| Entry { container: entry.container.saturating_add(containers), ..entry }),
        );
        self.containers.extend(part.containers.into_iter().map(|container| {
            let std::ops::Range { start, end } = container.entries;
            Container { place, entries: start.saturating_add(entries)..end.saturating_add(entries), ..container }
        }));
    }

    /// A section of nothing but containers: one after the other, with padding between.
    fn walk(&mut self, piece: Piece<'data>) {
        let data = piece.data;
        let mut at = 0usize;
        while at < data.len() {
            let aligned = at.next_multiple_of(8);
            if let Some(header) = data.get(aligned..).and_then(fatbin::Header::read) {
                at = aligned + self.fatbin(piece, aligned, header);
                continue;
            }
            // Padding of another width, or damage.
            match scan::next(data, at..data.len(), scan::Marks::Anywhere) {
                Some((found, scan::Hit::Fatbin)) => match fatbin::Header::read(&data[found..]) {
                    Some(header) => at = found + self.fatbin(piece, found, header),
                    None => at = found + 1,
                },
                Some((found, _)) => at = found + 1,
                None => break,
            }
        }
    }

    /// A section that may hold anything.
    fn search(&mut self, piece: Piece<'data>, marks: scan::Marks) {
        let map = self.map.zip(usize::try_from(piece.base).ok());
        let mut search = scan::Search::new(piece.data, marks, map);
        // Headers of images that turned out to be none. Each image has its own, so that together they fit into the piece;
        // where many claim the same, only a few are looked at.
        let mut in_vain = 0u64;
        let mut at = 0usize;
        while let Some((found, hit)) = search.next(at) {
            let rest = &piece.data[found..];
            let end = match hit {
                scan::Hit::Fatbin => fatbin::certain(rest).map(|header| found + self.fatbin(piece, found, header)),
                scan::Hit::Elf if in_vain > piece.data.len() as u64 / LEAST_HEADER => None,
                scan::Hit::Elf => match cubin::read(rest) {
                    Ok(cubin) => {
                        self.cubin(piece, found, &cubin);
                        Some(found + cubin.size)
                    }
                    Err(headers) => {
                        in_vain = in_vain.saturating_add(headers);
                        if in_vain > piece.data.len() as u64 / LEAST_HEADER {
                            self.doubts.push(format!(
                                "holds damaged GPU code that shares its tables: from byte {:#x} on, cubins were not looked for",
                                piece.base.saturating_add(found as u64)
                            ));
                        }
                        None
                    }
                },
                scan::Hit::Ptx => ptx::read(piece.data, found).map(|text| {
                    self.ptx(piece, &text);
                    text.read
                }),
            };
            at = end.unwrap_or(found).max(found + 1);
        }
    }

    fn number(&self) -> u32 {
        u32::try_from(self.containers.len()).unwrap_or(u32::MAX)
    }

    fn entries_from(&self, first: usize) -> std::ops::Range<u32> {
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        number(first)..number(self.entries.len())
    }

    /// The fatbin at this place. Returns its length as far as it is there, 1 at least.
    fn fatbin(&mut self, piece: Piece<'data>, at: usize, header: fatbin::Header) -> usize {
        let rest = &piece.data[at..];
        let size = header.size().min(rest.len());
        let payload = rest.get(header.length..size).unwrap_or_default();
        let base = piece.base + at as u64;
        let first = self.entries.len();
        let mut damaged = None;
        if header.version != 1 {
            damaged = Some(format!("a fatbin of version {}", header.version));
        } else if header.size() > rest.len() {
            damaged = Some(format!("a fatbin of {} bytes, of which {} are there", header.size(), rest.len()));
        }
        let (mut largest, mut largest_ptx): (Option<fatbin::Entry>, Option<fatbin::Entry>) = (None, None);
        let mut origin = None;
        if header.version == 1 {
            for entry in fatbin::Entries::new(payload) {
                match entry {
                    Ok(entry) => {
                        let largest = if entry.kind == fatbin::kind::PTX { &mut largest_ptx } else { &mut largest };
                        if largest.is_none_or(|known| known.unpacked < entry.unpacked) {
                            *largest = Some(entry);
                        }
                        origin = origin.or_else(|| entry.name());
                        if let Err(at) = self.entry(&entry, base + header.length as u64) {
                            damaged
                                .get_or_insert_with(|| format!("no image's header at byte {at} of a fatbin's table"));
                        }
                    }
                    Err(at) => {
                        damaged.get_or_insert_with(|| format!("no entry's header at byte {at} of a fatbin"));
                    }
                }
            }
        }
        if let Some(damage) = &damaged {
            self.doubts.push(format!("{damage} (at {base:#x})"));
        }
        // One image speaks for all, since all come from one source; machine code says it more cheaply than PTX.
        let kernels = largest.or(largest_ptx).is_some_and(|entry| self.holds_kernels(&entry));
        let role = if kernels || damaged.is_some() { Role::Kernels } else { Role::Empty };
        self.containers.push(Container {
            form: Form::Fatbin,
            role,
            offset: base,
            size: size as u64,
            origin: origin.map(|name| file_name(name).to_owned()),
            place: piece.place,
            entries: self.entries_from(first),
            kernels: 0,
            damaged: damaged.is_some(),
        });
        size.max(1)
    }

    /// Whether an entry holds a kernel, as far as that can be told without unpacking much; in doubt it does.
    fn holds_kernels(&mut self, entry: &fatbin::Entry<'data>) -> bool {
        let (least, test): (u64, fn(&[u8]) -> bool) = match entry.kind {
            fatbin::kind::PTX => (SMALL_PTX, ptx::has_kernels),
            fatbin::kind::CUBIN => (SMALL_CUBIN, cubin::has_kernels),
            fatbin::kind::CONCATENATED => {
                (SMALL_CONCATENATED, |images| images.windows(6).any(|window| window == b".text."))
            }
            _ => return true,
        };
        let compression = entry.compression();
        if compression == Compression::None {
            return test(entry.payload);
        }
        if entry.unpacked > least {
            return true;
        }
        let packed = usize::try_from(entry.size).ok().and_then(|size| entry.payload.get(..size));
        let Some((packed, length)) = packed.zip(usize::try_from(entry.unpacked).ok()) else { return true };
        *self
            .small
            .entry((packed, entry.unpacked))
            .or_insert_with(|| unpack::unpack(packed, compression, length).is_none_or(|image| test(&image)))
    }

    /// Lists an entry, or the images in it.
    fn entry(&mut self, entry: &fatbin::Entry, base: u64) -> Result<(), usize> {
        let container = self.number();
        let mut push = |image: &fatbin::Entry, compression: Compression| {
            self.entries.push(Entry {
                kind: Kind::of(image.kind),
                arch: image.arch(),
                version: image.code_version,
                debug: image.debug(),
                compression,
                size: image.size,
                unpacked: image.unpacked,
                offset: base + image.at as u64,
                container,
            });
        };
        if entry.kind != fatbin::kind::CONCATENATED {
            push(entry, entry.compression());
            return Ok(());
        }
        for image in entry.images() {
            push(&image?, entry.compression());
        }
        Ok(())
    }

    fn bare(&mut self, piece: Piece, form: Form, entry: Entry, kernels: u64) {
        let first = self.entries.len();
        self.entries.push(entry);
        self.containers.push(Container {
            form,
            role: if kernels == 0 { Role::Empty } else { Role::Kernels },
            offset: entry.offset,
            size: entry.size,
            origin: None,
            place: piece.place,
            entries: self.entries_from(first),
            kernels,
            damaged: false,
        });
    }

    fn cubin(&mut self, piece: Piece, at: usize, cubin: &cubin::Cubin) {
        let entry = Entry {
            kind: Kind::Cubin,
            arch: cubin.arch,
            version: (1, cubin.abi),
            debug: cubin.debug,
            compression: Compression::None,
            size: cubin.size as u64,
            unpacked: cubin.size as u64,
            offset: piece.base + at as u64,
            container: self.number(),
        };
        self.bare(piece, Form::Cubin, entry, cubin.kernels);
    }

    fn ptx(&mut self, piece: Piece, text: &ptx::Ptx) {
        let size = (text.end - text.start) as u64;
        let entry = Entry {
            kind: Kind::Ptx,
            arch: text.arch,
            version: text.isa,
            debug: text.debug,
            compression: Compression::None,
            size,
            unpacked: size,
            offset: piece.base + text.start as u64,
            container: self.number(),
        };
        self.bare(piece, Form::Ptx, entry, text.kernels);
    }

    /// Tells from which source each relocatable container comes: their objects carry one name each, in the same order.
    fn module_ids(&mut self, elf: &Elf, first: usize) {
        let names: Vec<&str> = elf
            .sections()
            .filter(|section| section.name == "__nv_module_id")
            .flat_map(|section| section.data.split(|byte| *byte == 0))
            .filter_map(|name| std::str::from_utf8(name).ok())
            .filter_map(source_of_module)
            .collect();
        let places = &self.places;
        let inputs: Vec<usize> =
            (first..self.containers.len()).filter(|at| relocatable(places, &self.containers[*at])).collect();
        let runtime = if inputs.len() == names.len() {
            for (at, name) in inputs.iter().zip(&names) {
                let origin = name.strip_suffix("_cu").map_or((*name).to_owned(), |stem| format!("{stem}.cu"));
                self.containers[*at].origin = Some(origin);
            }
            names.iter().position(|name| name.starts_with(DEVICE_RUNTIME)).map(|at| inputs[at])
        } else if names.iter().any(|name| name.starts_with(DEVICE_RUNTIME)) {
            // Another order, or names lost: it is the one with code for everything that its toolkit knew.
            inputs.into_iter().max_by_key(|at| self.containers[*at].entries.len())
        } else {
            None
        };
        if let Some(runtime) = runtime {
            self.containers[runtime].role = Role::DeviceRuntime;
        }
    }

    /// Notes which containers are results of a device link: the record of such a one has version 2.
    fn records(&mut self, elf: &Elf, base: u64) {
        let object = elf.kind() == elf::kind::OBJECT;
        for segment in elf.sections().filter(|section| section.name == ".nvFatBinSegment") {
            let records = || segment.data.chunks_exact(RECORD).enumerate();
            if !records().any(|(_, record)| fatbin::u32_at(record, 4) == Some(LINKED)) {
                continue;
            }
            let relocated = relocated(elf, &segment);
            let symbols: Vec<elf::Symbol> = if object { elf.symbols().collect() } else { Vec::new() };
            for (at, record) in records().filter(|(_, record)| fatbin::u32_at(record, 4) == Some(LINKED)) {
                let place = segment.addr.wrapping_add((at * RECORD + 8) as u64);
                let stored = fatbin::u64_at(record, 8).unwrap_or_default();
                // Some linkers write the address in place as well, some only into the relocation.
                let offset = match relocated.get(&place) {
                    Some(target) if object => object_offset(elf, &symbols, target),
                    Some(target) if stored == 0 && target.symbol == 0 => file_offset(elf, target.addend),
                    _ if stored != 0 && !object => file_offset(elf, stored),
                    _ => None,
                };
                self.links.extend(offset.and_then(|offset| base.checked_add(offset)));
            }
        }
    }

    /// Names containers by the symbols that stand at their beginning, where these have not been stripped: nvcc's
    /// (`fatbinData`) say nothing by themselves, but follow the name of their source; others say it themselves.
    fn symbols(&mut self, elf: &Elf, base: u64, first: usize) {
        if !elf.sections().any(|section| section.kind == 2) {
            return;
        }
        let containers = &mut self.containers[first..];
        let mut by_offset: Vec<(u64, usize)> =
            containers.iter().enumerate().map(|(at, container)| (container.offset, at)).collect();
        by_offset.sort_unstable();
        // Sections that hold containers, and how far their addresses are from their place in the file.
        let mut sections: HashMap<u16, u64> = HashMap::new();
        for section in elf.sections().filter(|section| section.flags & ALLOCATED != 0 && !section.data.is_empty()) {
            // A section with bytes lies within the file.
            let start = base + section.offset;
            let end = start + section.data.len() as u64;
            let next = by_offset.get(by_offset.partition_point(|(offset, _)| *offset < start));
            if next.is_some_and(|(offset, _)| *offset < end) {
                if let Ok(index) = u16::try_from(section.index) {
                    sections.insert(index, start.wrapping_sub(section.addr));
                }
            }
        }
        let mut file = None;
        for symbol in elf.symbols() {
            if symbol.kind == SYMBOL_OF_FILE {
                file = Some(symbol);
                continue;
            }
            let Some(shift) = sections.get(&symbol.section) else { continue };
            let Ok(found) = by_offset.binary_search_by_key(&symbol.value.wrapping_add(*shift), |(offset, _)| *offset)
            else {
                continue;
            };
            let container = &mut containers[by_offset[found].1];
            if container.origin.is_some() {
                continue;
            }
            let name = symbol.name().filter(|name| !name.is_empty());
            container.origin = match name {
                // A mark of the linker or the assembler, or of the section itself.
                None | Some("fatbinData" | "__cuda_fatbin") => {
                    file.and_then(|file| file.name()).and_then(source_of_file)
                }
                Some(name) if name.starts_with(".L") || name.starts_with("__start_") => None,
                Some(name) => Some(name.to_owned()),
            };
        }
    }

    fn finish(mut self) -> Kernels {
        self.links.sort_unstable();
        let places = &self.places;
        let is_input = |container: &Container| container.role != Role::DeviceRuntime && relocatable(places, container);
        let is_linked = |container: &Container| {
            container.role == Role::Kernels
                && !is_input(container)
                && self.links.binary_search(&container.offset).is_ok()
        };
        let cubins = |container: &Container| {
            let entries = &self.entries[container.entries.start as usize..container.entries.end as usize];
            entries.iter().any(|entry| entry.kind == Kind::Cubin)
        };
        let inputs = self.containers.iter().any(is_input);
        // Objects that no device linker has seen are judged by what they hold, and so is code whose link got lost.
        let linked = !self.links.is_empty()
            && (self.containers.iter().any(is_linked)
                || !self.containers.iter().any(|container| is_input(container) && cubins(container)));
        for container in &mut self.containers {
            if linked && is_input(container) {
                container.role = Role::Input;
            } else if inputs && is_linked(container) {
                container.role = Role::Linked;
            }
        }
        let mut kernels = Kernels {
            entries: self.entries,
            containers: self.containers,
            places: self.places,
            doubts: self.doubts,
            units: cover::Units::default(),
        };
        kernels.units = cover::Units::of(&kernels);
        kernels
    }
}

/// A section to be read.
struct Task<'data> {
    name: &'data str,
    data: &'data [u8],
    base: u64,
    /// How to look for containers; `None` where nothing else stands.
    marks: Option<scan::Marks>,
}

/// Bytes to look through from which on several threads are faster than one.
const WORTH_THREADS: usize = 32 << 20;

/// The parts of a host's file that may hold GPU code: loaded, and no machine code.
fn tasks<'data>(elf: &Elf<'data>, base: u64) -> Vec<Task<'data>> {
    let mut tasks = Vec::new();
    let mut sections = false;
    for section in elf.sections() {
        sections |= section.index != 0;
        let data = section.kind == PROGBITS && section.flags & (ALLOCATED | EXECUTABLE) == ALLOCATED;
        if !data || section.data.is_empty() || TABLES.contains(&section.name) {
            continue;
        }
        let whole = section.name == WHOLE || section.name == RELOCATABLE;
        tasks.push(Task {
            name: section.name,
            data: section.data,
            base: base.saturating_add(section.offset),
            marks: (!whole).then(|| marks(section.flags, section.size)),
        });
    }
    if !sections {
        let loaded = elf.segments().filter(|segment| segment.kind == LOAD && segment.flags & 1 == 0);
        tasks.extend(loaded.map(|segment| Task {
            name: "",
            data: segment.data,
            base: base.saturating_add(segment.offset),
            marks: Some(marks(if segment.flags & 2 == 0 { 0 } else { WRITABLE }, segment.file_size)),
        }));
    }
    once(&mut tasks);
    tasks
}

/// Takes away what several tasks have in common, so that each byte is read once. No linker lets sections overlap; in a
/// damaged file a table of a thousand that do would turn one image into a thousand.
fn once(tasks: &mut [Task]) {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|at| tasks[*at].base);
    let mut read = 0;
    for at in order {
        let task = &mut tasks[at];
        let end = task.base.saturating_add(task.data.len() as u64);
        let known = usize::try_from(read.max(task.base) - task.base).unwrap_or(usize::MAX).min(task.data.len());
        task.data = &task.data[known..];
        task.base += known as u64;
        read = read.max(end);
    }
}

impl<'data> Task<'data> {
    fn run(&self, map: Option<&'data Mmap>) -> Reader<'data> {
        let mut reader = Reader { map, ..Reader::default() };
        let piece = Piece { data: self.data, base: self.base, place: 0 };
        match self.marks {
            None => reader.walk(piece),
            Some(marks) => reader.search(piece, marks),
        }
        reader
    }
}

/// Runs the tasks on as many threads as the machine has, the largest first. Results are in the order of the tasks.
fn at_once<'data>(tasks: &[Task<'data>], map: Option<&'data Mmap>) -> Vec<Reader<'data>> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(tasks[*at].data.len()));
    let next = AtomicUsize::new(0);
    let order = &order;
    let work = || {
        let mut done = Vec::new();
        while let Some(at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((*at, tasks[*at].run(map)));
        }
        done
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MOST_THREADS);
    let mut done: Vec<(usize, Reader)> = std::thread::scope(|scope| {
        // This thread works too; where no other can be started, alone.
        let others: Vec<_> =
            (1..threads).filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
        let mut done = work();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, part)| part).collect()
}

/// Memory is what limits; more threads than this do not read it faster.
const MOST_THREADS: usize = 4;

const DEVICE_RUNTIME: &str = "cuda_device_runtime";

fn relocatable(places: &[Place], container: &Container) -> bool {
    places.get(container.place as usize).is_some_and(|place| place.section == RELOCATABLE)
}

/// How closely to look: writable data is large in some libraries (100 MB of tables), and what compilers put there is
/// aligned; texts are looked for where it is of an ordinary size.
fn marks(flags: u64, size: u64) -> scan::Marks {
    if flags & WRITABLE != 0 && size > ORDINARY_DATA { scan::Marks::Aligned } else { scan::Marks::Anywhere }
}

const ORDINARY_DATA: u64 = 4 << 20;

/// `a_cu` out of `_7f1bd79f_4_a_cu__Z1kPi`: mark, length and name of the source, a kernel or another mark.
fn source_of_module(id: &str) -> Option<&str> {
    let (mark, rest) = id.strip_prefix('_')?.split_once('_')?;
    let (length, rest) = rest.split_once('_')?;
    let hexadecimal = !mark.is_empty() && mark.bytes().all(|byte| byte.is_ascii_hexdigit());
    rest.get(..length.parse().ok()?).filter(|_| hexadecimal)
}

/// `k.cu` out of `tmpxft_00002673_00000000-6_k.compute_100f.cudafe1.cpp`; `None` for the device linker's own stub.
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

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn file_offset(elf: &Elf, address: u64) -> Option<u64> {
    let section = elf.sections().find(|section| {
        section.flags & ALLOCATED != 0 && address >= section.addr && address - section.addr < section.data.len() as u64
    })?;
    section.offset.checked_add(address - section.addr)
}

/// What a relocation writes: the place of a symbol, and so many bytes behind it.
#[derive(Clone, Copy)]
struct Target {
    symbol: u64,
    addend: u64,
}

/// What will be written to each place of a section, by the linker or the loader. Of several the first counts.
fn relocated(elf: &Elf, section: &elf::Section) -> HashMap<u64, Target> {
    let within = section.addr..section.addr.saturating_add(section.data.len() as u64);
    let object = elf.kind() == elf::kind::OBJECT;
    let mut targets = HashMap::new();
    for table in elf.sections().filter(|table| table.kind == RELA) {
        // An object has a table for each section, and addresses that begin anew in each.
        if if object { u64::from(table.info) != section.index } else { table.flags & ALLOCATED == 0 } {
            continue;
        }
        for entry in table.data.chunks_exact(24) {
            let word = |at| fatbin::u64_at(entry, at).unwrap_or_default();
            if within.contains(&word(0)) {
                targets.entry(word(0)).or_insert(Target { symbol: word(8) >> 32, addend: word(16) });
            }
        }
    }
    targets
}

/// Where in an object's file a pointer will point to.
fn object_offset(elf: &Elf, symbols: &[elf::Symbol], target: &Target) -> Option<u64> {
    // The first symbol of a table, which stands for none, is not among them.
    let symbol = symbols.get(usize::try_from(target.symbol.checked_sub(1)?).ok()?)?;
    let section = elf.section(symbol.section.into())?;
    section.offset.checked_add(symbol.value)?.checked_add(target.addend)
}
