//! Finds the fatbin containers of a file and the purpose of each.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use memchr::memmem;
use memmap2::Mmap;

use super::fatbin::{self, Compression};
use super::{
    Container, ImageForm, ImageKind, KernelImage, KernelPlace, Kernels, Role, cover, cubin, lto, ptx, scan, unpack,
};
use cudaguard::internal::arch::{Arch, Suffix};
use cudaguard::internal::elf::{self, Elf};
use cudaguard::internal::vendor;

const PROGBITS: u32 = 1;
const RELA: u32 = 4;
const WRITABLE: u64 = 1;
const ALLOCATED: u64 = 2;
const EXECUTABLE: u64 = 4;
const SYMBOL_OF_FILE: u8 = 4;
const LOAD: u32 = 1;

/// Size of the smallest header in an ELF file's tables.
const LEAST_HEADER: u64 = 32;

/// Size of a record in `.nvFatBinSegment`, and its version if a device linker wrote it.
const RECORD: usize = 24;
const LINKED: u32 = 2;

/// The error for a file that no reader recognises.
pub(crate) const NO_KNOWN_FORM: &str = "is no ELF file, no archive of them, no fatbin, no cubin, no PTX and no LTO-IR";

/// Section of whole programs and of device linkers' results.
pub(super) const WHOLE: &str = ".nv_fatbin";
/// Section of relocatable code.
pub(super) const RELOCATABLE: &str = "__nv_relfatbin";

/// Unpacked size up to which the image is searched for a kernel. Measured with nvcc 11.8 to 13.5: cubins without
/// kernels have 660 to 1736 bytes, those with an empty kernel 2408 and more; PTX has 56 to a few hundred bytes
/// without and 94 and more with one.
const SMALL_CUBIN: u64 = 2560;
const SMALL_PTX: u64 = 1024;
/// The limit for several cubins that are compressed together.
const SMALL_CONCATENATED: u64 = 16 << 10;

/// Limit of images, above every real file (TensorFlow: 20 000), so that a crafted file cannot fill the memory.
const MOST_IMAGES: usize = 1 << 18;

/// Limit of reported problems of a file.
const MOST_DOUBTS: usize = 64;

/// Reads the bytes of a file; `map` is their mapping, if they come from one.
pub(super) fn read_data(data: &[u8], map: Option<&Mmap>) -> Result<Kernels, String> {
    let mut reader = KernelReader { map, ..KernelReader::default() };
    if elf::is_archive(data) {
        for member in elf::archive_members(data)? {
            let member = match member {
                Ok(member) => member,
                Err(error) => {
                    reader.push_warning(error);
                    break;
                }
            };
            let Some(bytes) = member.data else {
                return Err("is a thin archive: it names its objects and holds none of them".to_owned());
            };
            // Rust libraries contain metadata, and archives other files, next to their objects.
            if let Err(error) = reader.read_image(bytes, member.offset, Some(&member.name)) {
                if Elf::is_elf(bytes) {
                    reader.push_warning(format!("{} {error}", member.name));
                }
            }
        }
    } else {
        reader.read_image(data, 0, None)?;
    }
    if reader.is_full() {
        return Err(format!("holds more than {MOST_IMAGES} images of GPU code, as no program does"));
    }
    let soname = Elf::parse(data).ok().and_then(|elf| elf.soname());
    Ok(Kernels { published: soname.is_some_and(vendor::is_nvidia_soname), ..reader.into_kernels() })
}

#[derive(Default)]
struct KernelReader<'data> {
    map: Option<&'data Mmap>,
    entries: Vec<KernelImage>,
    containers: Vec<Container>,
    places: Vec<KernelPlace>,
    doubts: Vec<String>,
    /// Number of problems above the limit.
    further_doubts: usize,
    /// Number of images and containers so far, in the whole file.
    read: Arc<AtomicUsize>,
    /// Number of unpacked bytes of this piece.
    unpacked: u64,
    /// Offsets of containers that a record of a device link points to.
    links: Vec<u64>,
    /// Small packed images, and whether they contain a kernel. Libraries repeat the same empty one a thousand times.
    small: HashMap<(&'data [u8], u64), bool>,
}

/// A piece of the file: its bytes, their offset in the file, and their section.
#[derive(Clone, Copy)]
struct SectionPiece<'data> {
    data: &'data [u8],
    base: u64,
    place: u32,
}

impl<'data> KernelReader<'data> {
    /// Reads one file, or one member of an archive.
    fn read_image(&mut self, data: &'data [u8], base: u64, member: Option<&str>) -> Result<(), String> {
        let whole = |reader: &mut Self| SectionPiece { data, base, place: reader.add_place(member, "") };
        if data.starts_with(&fatbin::MAGIC) {
            let piece = whole(self);
            self.walk_containers(piece);
            return match self.doubts.first() {
                Some(doubt) if self.entries.is_empty() => Err(format!("is damaged or cut off: {doubt}")),
                _ => Ok(()),
            };
        }
        if data.starts_with(&lto::MAGIC) {
            let arch = lto::read_lto_arch(data).ok_or("is damaged or cut off: LTO-IR for no arch that there is")?;
            let piece = whole(self);
            self.add_lto(piece, arch);
            return Ok(());
        }
        if Elf::is_elf(data) {
            let elf = Elf::parse(data)?;
            if elf.machine() != elf::machine::CUDA {
                self.read_host_file(&elf, base, member);
                return Ok(());
            }
            let piece = whole(self);
            let Ok(cubin) = cubin::read_cubin(data) else {
                let damage = elf.find_damage().unwrap_or_else(|| "is a damaged cubin".to_owned());
                return Err(damage);
            };
            self.add_cubin(piece, 0, &cubin);
            return Ok(());
        }
        if let Some(at) = ptx::find_version(data) {
            let text = ptx::read_module(data, at)
                .ok_or("begins like PTX, but names no `.target sm_NN` after its `.version`")?;
            let piece = whole(self);
            self.add_ptx(piece, &text);
            return Ok(());
        }
        Err(if data.is_empty() { "is empty".to_owned() } else { NO_KNOWN_FORM.to_owned() })
    }

    fn push_warning(&mut self, doubt: String) {
        if self.doubts.len() < MOST_DOUBTS {
            self.doubts.push(doubt);
        } else {
            self.further_doubts += 1;
        }
    }

    /// Returns true if the file has more images and containers than the limit.
    fn is_full(&self) -> bool {
        self.read.load(Ordering::Relaxed) > MOST_IMAGES
    }

    fn add_place(&mut self, member: Option<&str>, section: &str) -> u32 {
        let known = self.places.last();
        if !known.is_some_and(|place| place.section == section && place.member.as_deref() == member) {
            self.places.push(KernelPlace { member: member.map(str::to_owned), section: section.to_owned() });
        }
        u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
    }

    /// Reads a program, a library or an object for the processor of the host.
    fn read_host_file(&mut self, elf: &Elf<'data>, base: u64, member: Option<&str>) {
        if let Some(damage) = elf.find_damage() {
            self.push_warning(member.map_or_else(|| damage.clone(), |member| format!("{member} {damage}")));
        }
        let first = self.containers.len();
        let tasks = section_tasks(elf, base);
        let size: usize = tasks.iter().map(|task| task.data.len()).sum();
        let parts = if size < WORTH_THREADS {
            tasks.iter().map(|task| task.run_task(self)).collect()
        } else {
            at_once(&tasks, self)
        };
        let mut has_inputs = false;
        for (task, part) in tasks.iter().zip(parts) {
            has_inputs |= task.name == RELOCATABLE && !part.containers.is_empty();
            self.merge_section(part, member, task.name);
        }
        if self.containers.len() == first {
            return;
        }
        if has_inputs {
            self.module_ids(elf, first);
        }
        // In an archive, the result of a device link is in another member than its inputs.
        if has_inputs || elf.kind() == elf::kind::OBJECT {
            self.mark_device_links(elf, base);
        }
        self.name_containers(elf, base, first);
        if let Some(member) = member {
            for container in &mut self.containers[first..] {
                container.origin.get_or_insert_with(|| member.to_owned());
            }
        }
    }

    /// Adds the results of a section.
    fn merge_section(&mut self, part: KernelReader, member: Option<&str>, section: &str) {
        self.further_doubts += part.further_doubts;
        part.doubts.into_iter().for_each(|doubt| self.push_warning(doubt));
        if part.containers.is_empty() {
            return;
        }
        let place = self.add_place(member, section);
        let (containers, entries) = (self.next_container_index(), self.entries_from(0).end);
        self.entries.extend(
            part.entries
                .into_iter()
                .map(|entry| KernelImage { container: entry.container.saturating_add(containers), ..entry }),
        );
        self.containers.extend(part.containers.into_iter().map(|container| {
            let std::ops::Range { start, end } = container.entries;
            Container { place, entries: start.saturating_add(entries)..end.saturating_add(entries), ..container }
        }));
    }

    /// Reads a section that contains only containers, with zeros between them. Other bytes are damage and may have
    /// been code.
    fn walk_containers(&mut self, piece: SectionPiece<'data>) {
        let data = piece.data;
        let (mut at, mut damage) = (0usize, None);
        while let Some(zeros) = data[at..].iter().position(|byte| *byte != 0) {
            at += zeros;
            if let Some(header) = fatbin::Header::read(&data[at..]) {
                if let Some(from) = damage.take() {
                    self.add_damaged(piece, from..at);
                }
                at += self.read_fatbin(piece, at, header);
            } else {
                damage.get_or_insert(at);
                at += 1;
                at += memmem::find(&data[at..], &fatbin::MAGIC).unwrap_or(data.len() - at);
            }
            if self.is_full() {
                return;
            }
        }
        if let Some(from) = damage {
            self.add_damaged(piece, from..data.len());
        }
    }

    /// Reports bytes in the place of a container.
    fn add_damaged(&mut self, piece: SectionPiece, bytes: std::ops::Range<usize>) {
        let offset = piece.base + bytes.start as u64;
        self.push_warning(format!(
            "{} bytes that are no fatbin, where nothing else stands (at {offset:#x})",
            bytes.len()
        ));
        self.add_container(
            piece,
            Container { offset, size: bytes.len() as u64, damaged: true, ..Container::unknown() },
        );
    }

    fn add_container(&mut self, piece: SectionPiece, container: Container) {
        self.read.fetch_add(1, Ordering::Relaxed);
        self.containers.push(Container { place: piece.place, ..container });
    }

    fn add_entry(&mut self, entry: KernelImage) {
        self.read.fetch_add(1, Ordering::Relaxed);
        self.entries.push(entry);
    }

    /// Reads a section with arbitrary contents.
    fn search_section(&mut self, piece: SectionPiece<'data>, marks: scan::Marks) {
        let map = self.map.zip(usize::try_from(piece.base).ok());
        let mut search = scan::MarkSearch::new(piece.data, marks, map);
        // Headers of images that proved invalid. Each image has its own, so together they fit into the piece; if many
        // claim the same bytes, only a few are examined.
        let mut in_vain = 0u64;
        let mut at = 0usize;
        while let Some((found, hit)) = search.next_hit(at) {
            let rest = &piece.data[found..];
            let end = match hit {
                scan::Hit::Fatbin => {
                    fatbin::read_header(rest).map(|header| found + self.read_fatbin(piece, found, header))
                }
                scan::Hit::Elf if in_vain > piece.data.len() as u64 / LEAST_HEADER => None,
                scan::Hit::Elf => match cubin::read_cubin(rest) {
                    Ok(cubin) => {
                        self.add_cubin(piece, found, &cubin);
                        Some(found + cubin.size)
                    }
                    Err(headers) => {
                        in_vain = in_vain.saturating_add(headers);
                        if in_vain > piece.data.len() as u64 / LEAST_HEADER {
                            self.push_warning(format!(
                                "holds damaged GPU code that shares its tables: from byte {:#x} on, cubins were not looked for",
                                piece.base.saturating_add(found as u64)
                            ));
                        }
                        None
                    }
                },
                scan::Hit::Ptx => ptx::read_module(piece.data, found).map(|text| {
                    // Only the first lines of PTX: text about PTX.
                    if text.declares {
                        self.add_ptx(piece, &text);
                    }
                    text.read
                }),
            };
            if self.is_full() {
                return;
            }
            at = end.unwrap_or(found).max(found + 1);
        }
    }

    fn next_container_index(&self) -> u32 {
        u32::try_from(self.containers.len()).unwrap_or(u32::MAX)
    }

    fn entries_from(&self, first: usize) -> std::ops::Range<u32> {
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        number(first)..number(self.entries.len())
    }

    /// Reads the fatbin at this offset. Returns its available length, 1 at least.
    fn read_fatbin(&mut self, piece: SectionPiece<'data>, at: usize, header: fatbin::Header) -> usize {
        let rest = &piece.data[at..];
        let size = header.total_size().min(rest.len());
        let payload = rest.get(header.length..size).unwrap_or_default();
        let base = piece.base + at as u64;
        let first = self.entries.len();
        let mut damaged = None;
        if header.version != 1 {
            damaged = Some(format!("a fatbin of version {}", header.version));
        } else if header.total_size() > rest.len() {
            damaged = Some(format!("a fatbin of {} bytes, of which {} are there", header.total_size(), rest.len()));
        }
        let (mut largest, mut largest_ptx): (Option<fatbin::FatbinEntry>, Option<fatbin::FatbinEntry>) = (None, None);
        let mut origin = None;
        let entries = fatbin::Entries::new(if header.version == 1 { payload } else { &[] });
        for entry in entries {
            match entry {
                Ok(entry) => {
                    let largest = if entry.kind == fatbin::kind::PTX { &mut largest_ptx } else { &mut largest };
                    if largest.is_none_or(|known| known.unpacked < entry.unpacked) {
                        *largest = Some(entry);
                    }
                    origin = origin.or_else(|| entry.name());
                    if let Err(why) = self.read_entry(&entry, base + header.length as u64) {
                        damaged.get_or_insert(why);
                    }
                }
                Err(at) => {
                    damaged.get_or_insert_with(|| format!("no entry's header at byte {at} of a fatbin"));
                }
            }
            if self.is_full() {
                break;
            }
        }
        if let Some(damage) = &damaged {
            self.push_warning(format!("{damage} (at {base:#x})"));
        }
        // An empty container is the guard's own, which the shim uses to find the others.
        if first == self.entries.len() && damaged.is_none() {
            self.read.fetch_add(1, Ordering::Relaxed);
            return size.max(1);
        }
        // The largest image represents all, because they come from one source; machine code is cheaper to read than
        // PTX.
        let kernels = damaged.is_some()
            || largest.or(largest_ptx).is_some_and(|entry| self.holds_kernels(&entry, piece.data.len()));
        let container = Container {
            role: if kernels { Role::Kernels } else { Role::Empty },
            offset: base,
            size: size as u64,
            origin: origin.map(|name| file_name(name).to_owned()),
            entries: self.entries_from(first),
            damaged: damaged.is_some(),
            ..Container::unknown()
        };
        self.add_container(piece, container);
        size.max(1)
    }

    /// Returns true if an entry contains a kernel, or if that is unknown without unpacking a large image.
    fn holds_kernels(&mut self, entry: &fatbin::FatbinEntry<'data>, piece: usize) -> bool {
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
        if let Some(known) = self.small.get(&(packed, entry.unpacked)) {
            return *known;
        }
        // Real images have at least an eighth of their unpacked size; this bounds the cost of a crafted file.
        self.unpacked += entry.unpacked;
        let enough = self.unpacked > (piece as u64).saturating_mul(8);
        let kernels = enough || unpack::unpack_image(packed, compression, length).is_none_or(|image| test(&image));
        self.small.insert((packed, entry.unpacked), kernels);
        kernels
    }

    /// Adds an entry, or the images in it.
    ///
    /// # Errors
    /// Returns a description of the problem of the entry.
    fn read_entry(&mut self, entry: &fatbin::FatbinEntry, base: u64) -> Result<(), String> {
        let container = self.next_container_index();
        let mut push = |image: &fatbin::FatbinEntry, compression: Compression| {
            let kind = ImageKind::from_number(image.kind);
            let unknown = matches!(kind, ImageKind::Other(_) | ImageKind::TileIr)
                .then_some(Arch { number: 0, suffix: Suffix::None });
            let arch =
                image.arch().or(unknown).ok_or_else(|| format!("{kind} for arch {}, which no GPU has", image.arch))?;
            self.add_entry(KernelImage {
                kind,
                arch,
                version: image.code_version,
                debug: image.is_debug(),
                compression,
                size: image.size,
                unpacked: image.unpacked,
                offset: base + image.at as u64,
                container,
            });
            Ok(())
        };
        if entry.kind != fatbin::kind::CONCATENATED {
            return push(entry, entry.compression());
        }
        for image in entry.images() {
            push(
                &image.map_err(|at| format!("no image's header at byte {at} of a fatbin's table"))?,
                entry.compression(),
            )?;
        }
        Ok(())
    }

    fn add_bare_image(&mut self, piece: SectionPiece, form: ImageForm, entry: KernelImage, kernels: u64) {
        let first = self.entries.len();
        self.add_entry(entry);
        let container = Container {
            form,
            role: if kernels == 0 { Role::Empty } else { Role::Kernels },
            offset: entry.offset,
            size: entry.size,
            entries: self.entries_from(first),
            kernels,
            ..Container::unknown()
        };
        self.add_container(piece, container);
    }

    fn add_cubin(&mut self, piece: SectionPiece, at: usize, cubin: &cubin::Cubin) {
        let entry = KernelImage {
            kind: ImageKind::Cubin,
            arch: cubin.arch,
            version: (1, cubin.abi),
            debug: cubin.debug,
            compression: Compression::None,
            size: cubin.size as u64,
            unpacked: cubin.size as u64,
            offset: piece.base + at as u64,
            container: self.next_container_index(),
        };
        self.add_bare_image(piece, ImageForm::Cubin, entry, cubin.kernels);
    }

    fn add_ptx(&mut self, piece: SectionPiece, text: &ptx::Ptx) {
        let size = (text.end - text.start) as u64;
        let entry = KernelImage {
            kind: ImageKind::Ptx,
            arch: text.arch,
            version: text.isa,
            debug: text.debug,
            compression: Compression::None,
            size,
            unpacked: size,
            offset: piece.base + text.start as u64,
            container: self.next_container_index(),
        };
        self.add_bare_image(piece, ImageForm::Ptx, entry, text.kernels);
    }

    fn add_lto(&mut self, piece: SectionPiece, arch: Arch) {
        let size = piece.data.len() as u64;
        let entry = KernelImage {
            kind: ImageKind::LtoIr,
            arch,
            version: (0, 0),
            debug: false,
            compression: Compression::None,
            size,
            unpacked: size,
            offset: piece.base,
            container: self.next_container_index(),
        };
        self.add_bare_image(piece, ImageForm::LtoIr, entry, 0);
        if let Some(container) = self.containers.last_mut() {
            container.role = Role::LinkTime;
        }
    }

    /// Assigns a source to each relocatable container: objects carry one name each, in the same order.
    fn module_ids(&mut self, elf: &Elf, first: usize) {
        let sections: Vec<_> = elf.sections().filter(|section| section.name == "__nv_module_id").collect();
        let places: Vec<_> = sections.iter().map(|section| (section.offset, section.data.len())).collect();
        let names: Vec<&str> = sections
            .iter()
            .zip(elf::read_before(&places))
            .flat_map(|(section, known)| section.data[known..].split(|byte| *byte == 0))
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
    fn mark_device_links(&mut self, elf: &Elf, base: u64) {
        let records = linked_records(elf);
        if records.is_empty() {
            return;
        }
        let object = elf.kind() == elf::kind::OBJECT;
        let relocated = relocation_targets(elf, &records);
        let symbols = if object { symbols_numbered(elf, &relocated) } else { HashMap::new() };
        let sections = Sections::from_elf(elf);
        for (place, stored) in records {
            // Some linkers write the address into the section too, some only into the relocation.
            let offset = match relocated.get(&place) {
                Some(target) if object => sections.object_offset(symbols.get(&target.symbol), target.addend),
                Some(target) if stored == 0 && target.symbol == 0 => sections.file_offset(target.addend),
                _ if stored != 0 && !object => sections.file_offset(stored),
                _ => None,
            };
            self.links.extend(offset.and_then(|offset| base.checked_add(offset)));
        }
    }

    /// Names containers by the symbols at their beginning, if they were not stripped. nvcc's symbols (`fatbinData`)
    /// follow the name of their source; others contain a name themselves.
    fn name_containers(&mut self, elf: &Elf, base: u64, first: usize) {
        if !elf.sections().any(|section| section.kind == 2) {
            return;
        }
        let containers = &mut self.containers[first..];
        let mut by_offset: Vec<(u64, usize)> =
            containers.iter().enumerate().map(|(at, container)| (container.offset, at)).collect();
        by_offset.sort_unstable();
        // Sections with containers, and the difference between their addresses and their offsets in the file.
        let mut sections: HashMap<u16, u64> = HashMap::new();
        for section in elf.sections().filter(|section| section.flags & ALLOCATED != 0 && !section.data.is_empty()) {
            // A section with bytes is inside the file.
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
        // Overlapping names, which no linker writes, must not cost more than the file's length.
        let mut left = elf.data().len();
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

    fn into_kernels(mut self) -> Kernels {
        if self.further_doubts > 0 {
            self.doubts.push(format!("and {} more of the kind", self.further_doubts));
        }
        self.links.sort_unstable();
        let places = &self.places;
        let is_input =
            |container: &Container| container.role != Role::DeviceRuntime && is_relocatable(places, container);
        let is_linked = |container: &Container| {
            container.role == Role::Kernels
                && !is_input(container)
                && self.links.binary_search(&container.offset).is_ok()
        };
        let cubins = |container: &Container| {
            let entries = &self.entries[container.entries.start as usize..container.entries.end as usize];
            entries.iter().any(|entry| entry.kind == ImageKind::Cubin)
        };
        let only_lto = |container: &Container| {
            let entries = &self.entries[container.entries.start as usize..container.entries.end as usize];
            !container.damaged && !entries.is_empty() && entries.iter().all(|entry| entry.kind == ImageKind::LtoIr)
        };
        let inputs = self.containers.iter().any(is_input);
        // Objects that no device linker has processed, and code whose link records were lost, are checked by their
        // contents.
        let linked = !self.links.is_empty()
            && (self.containers.iter().any(is_linked)
                || !self.containers.iter().any(|container| is_input(container) && cubins(container)));
        for container in &mut self.containers {
            if linked && is_input(container) {
                container.role = Role::Input;
            } else if inputs && is_linked(container) {
                container.role = Role::Linked;
            } else if container.role == Role::Kernels && only_lto(container) {
                container.role = Role::LinkTime;
            }
        }
        let holds = |container: &Container| {
            container.form == ImageForm::Fatbin && matches!(container.role, Role::Kernels | Role::Linked | Role::Input)
        };
        if self.containers.iter().any(holds) {
            for container in self.containers.iter_mut().filter(|container| container.form != ImageForm::Fatbin) {
                if container.role == Role::Kernels {
                    container.role = Role::Aside;
                }
            }
        }
        let mut kernels = Kernels {
            entries: self.entries,
            containers: self.containers,
            places: self.places,
            doubts: self.doubts,
            ..Kernels::default()
        };
        kernels.units = cover::Units::from_kernels(&kernels);
        kernels
    }
}

/// A section to read.
struct Task<'data> {
    name: &'data str,
    data: &'data [u8],
    base: u64,
    /// The search mode for containers; `None` if the section contains nothing else.
    marks: Option<scan::Marks>,
}

/// Number of bytes from which several threads are faster than one.
const WORTH_THREADS: usize = 32 << 20;

/// Returns the parts of a host file that may contain GPU code: loaded, and no machine code.
fn section_tasks<'data>(elf: &Elf<'data>, base: u64) -> Vec<Task<'data>> {
    let mut tasks = Vec::new();
    let mut sections = false;
    for section in elf.sections() {
        sections |= section.index != 0;
        let data = section.kind == PROGBITS && section.flags & (ALLOCATED | EXECUTABLE) == ALLOCATED;
        if !data || section.data.is_empty() || elf::TABLES.contains(&section.name) {
            continue;
        }
        let whole = section.name == WHOLE || section.name == RELOCATABLE;
        tasks.push(Task {
            name: section.name,
            data: section.data,
            base: base.saturating_add(section.offset),
            marks: (!whole).then(|| marks_to_search(section.flags, section.size)),
        });
    }
    if !sections {
        let loaded = elf.segments().filter(|segment| segment.kind == LOAD && segment.flags & 1 == 0);
        tasks.extend(loaded.map(|segment| Task {
            name: "",
            data: segment.data,
            base: base.saturating_add(segment.offset),
            marks: Some(marks_to_search(if segment.flags & 2 == 0 { 0 } else { WRITABLE }, segment.file_size)),
        }));
    }
    remove_overlaps(&mut tasks);
    tasks
}

/// Removes the overlap of tasks: in a damaged file, a table of a thousand overlapping sections would turn one image
/// into a thousand.
fn remove_overlaps(tasks: &mut [Task]) {
    let places: Vec<_> = tasks.iter().map(|task| (task.base, task.data.len())).collect();
    for (task, known) in tasks.iter_mut().zip(elf::read_before(&places)) {
        task.data = &task.data[known..];
        task.base += known as u64;
    }
}

impl<'data> Task<'data> {
    fn run_task(&self, outer: &KernelReader<'data>) -> KernelReader<'data> {
        let mut reader = KernelReader { map: outer.map, read: outer.read.clone(), ..KernelReader::default() };
        // Alignment is relative to the file; a section may begin at any offset (`.ldata` of cuFFT 11.3.3).
        let skipped = match self.marks {
            Some(scan::Marks::Aligned) => self.base.wrapping_neg() % scan::ALIGNED,
            _ => 0,
        };
        let data = self.data.get(usize::try_from(skipped).unwrap_or_default()..).unwrap_or_default();
        let piece = SectionPiece { data, base: self.base.saturating_add(skipped), place: 0 };
        match self.marks {
            None => reader.walk_containers(piece),
            Some(marks) => reader.search_section(piece, marks),
        }
        reader
    }
}

/// Runs the tasks on all processors, the largest first. Results have the order of the tasks.
fn at_once<'data>(tasks: &[Task<'data>], outer: &KernelReader<'data>) -> Vec<KernelReader<'data>> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(tasks[*at].data.len()));
    let next = AtomicUsize::new(0);
    let order = &order;
    let work = || {
        let mut done = Vec::new();
        while let Some(at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((*at, tasks[*at].run_task(outer)));
        }
        done
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MOST_THREADS);
    let mut done: Vec<(usize, KernelReader)> = std::thread::scope(|scope| {
        // This thread works too, alone if no other can be started.
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

/// Memory bandwidth is the limit; more threads are not faster.
const MOST_THREADS: usize = 4;

const DEVICE_RUNTIME: &str = "cuda_device_runtime";

fn is_relocatable(places: &[KernelPlace], container: &Container) -> bool {
    places.get(container.place as usize).is_some_and(|place| place.section == RELOCATABLE)
}

/// Selects the search mode. Writable data is large in some libraries (100 MB of tables), and compilers align their
/// output there. PTX text is searched only if the section has an ordinary size.
fn marks_to_search(flags: u64, size: u64) -> scan::Marks {
    if flags & WRITABLE != 0 && size > ORDINARY_DATA { scan::Marks::Aligned } else { scan::Marks::Anywhere }
}

const ORDINARY_DATA: u64 = 4 << 20;

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

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// An address: the number of its section in an object, because addresses restart in each; 0 elsewhere.
type Address = (u64, u64);

/// Limit of results of device links, above every real file; each has its own container.
const MOST_LINKS: usize = 1 << 16;

/// Returns the records of device links' results: the address of the pointer to the container, and the stored value.
fn linked_records(elf: &Elf) -> Vec<(Address, u64)> {
    let object = elf.kind() == elf::kind::OBJECT;
    let segments: Vec<_> = elf.sections().filter(|section| section.name == ".nvFatBinSegment").collect();
    let places: Vec<_> = segments.iter().map(|segment| (segment.offset, segment.data.len())).collect();
    let known = elf::read_before(&places);
    let all = segments.iter().zip(known).flat_map(|(segment, known)| {
        // No compiler writes a section that begins inside another.
        let data = if known == 0 { segment.data } else { &[] };
        data.chunks_exact(RECORD).zip(0u64..).filter_map(move |(record, at)| {
            let place = segment.addr.wrapping_add(at * RECORD as u64 + 8);
            let stored = fatbin::u64_at(record, 8).unwrap_or_default();
            let linked = fatbin::u32_at(record, 4) == Some(LINKED);
            linked.then_some(((if object { segment.index } else { 0 }, place), stored))
        })
    });
    all.take(MOST_LINKS).collect()
}

/// The target of a relocation: the address of a symbol plus an addend.
#[derive(Clone, Copy)]
struct RelocationTarget {
    symbol: u64,
    addend: u64,
}

/// Returns the value that the linker or the dynamic linker writes to each address. If there are several, the first one
/// is used.
fn relocation_targets(elf: &Elf, records: &[(Address, u64)]) -> HashMap<Address, RelocationTarget> {
    let wanted: HashSet<Address> = records.iter().map(|(place, _)| *place).collect();
    let object = elf.kind() == elf::kind::OBJECT;
    let tables: Vec<_> =
        elf.sections().filter(|table| table.kind == RELA && (object || table.flags & ALLOCATED != 0)).collect();
    let places: Vec<_> = tables.iter().map(|table| (table.offset, table.data.len())).collect();
    let mut targets = HashMap::new();
    for (table, known) in tables.iter().zip(elf::read_before(&places)) {
        let section = if object { table.info.into() } else { 0 };
        for entry in table.data[known..].chunks_exact(24) {
            let word = |at| fatbin::u64_at(entry, at).unwrap_or_default();
            let place = (section, word(0));
            if wanted.contains(&place) {
                targets.entry(place).or_insert(RelocationTarget { symbol: word(8) >> 32, addend: word(16) });
            }
        }
    }
    targets
}

/// Returns the symbols of relocations, by number.
fn symbols_numbered<'data>(
    elf: &Elf<'data>,
    relocated: &HashMap<Address, RelocationTarget>,
) -> HashMap<u64, elf::Symbol<'data>> {
    let wanted: HashSet<u64> = relocated.values().map(|target| target.symbol).collect();
    // The first symbol of a table is a placeholder and is omitted.
    (1u64..).zip(elf.symbols()).filter(|(number, _)| wanted.contains(number)).collect()
}

/// The addresses of a file's sections.
struct Sections {
    offsets: Vec<u64>,
    /// Sections with bytes in memory: address, bytes and offset, by address.
    loaded: Vec<(u64, u64, u64)>,
}

impl Sections {
    fn from_elf(elf: &Elf) -> Self {
        let loaded = |section: &elf::Section| section.flags & ALLOCATED != 0 && !section.data.is_empty();
        let mut sections = Self {
            offsets: elf.sections().map(|section| section.offset).collect(),
            loaded: elf
                .sections()
                .filter(loaded)
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
    fn object_offset(&self, symbol: Option<&elf::Symbol>, addend: u64) -> Option<u64> {
        let symbol = symbol?;
        let offset = self.offsets.get(usize::from(symbol.section))?;
        offset.checked_add(symbol.value)?.checked_add(addend)
    }
}
