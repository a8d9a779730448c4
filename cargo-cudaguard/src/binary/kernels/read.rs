//! Finds the fatbin containers of a file and the purpose of each.

mod attribution;
mod gpu_image;
mod parallel;
mod windows;

use crate::binary::ar;
use crate::binary::pe::{CoffObject, Pe};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use memchr::memmem;
use memmap2::Mmap;
use object::elf::{EM_CUDA, ET_REL};

use super::fatbin;
use super::{Container, ImageForm, ImageKind, KernelImage, KernelPlace, Kernels, Role, cover, cubin, lto, ptx, scan};
use crate::binary::elf::Elf;
use crate::knowledge::vendor;
use cudaguard::internal::file_error::FileProblem;
use parallel::{Task, WORTH_THREADS, at_once, remove_overlaps, section_tasks};

/// Size of the smallest header in an ELF file's tables.
const LEAST_HEADER: u64 = 32;

/// Size of a record in `.nvFatBinSegment`, and its version if a device linker wrote it.
const RECORD: usize = 24;
const LINKED: u32 = 2;

/// Returns the error for a file that no reader recognises.
pub(crate) fn describe_unknown_form(data: &[u8]) -> FileProblem {
    let known = "is not an ELF file, an archive of ELF files, a PE file, a fatbin, a cubin, PTX or LTO-IR";
    let advice = if data.starts_with(b"#!") { ": name the program that this script starts" } else { "" };
    FileProblem::unsupported(format!("{known}{advice}"))
}

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
/// Lower in unit tests, which must be fast.
const MOST_IMAGES: usize = if cfg!(test) { 1 << 12 } else { 1 << 18 };

/// Limit of reported problems of a file.
const MAX_WARNINGS: usize = 64;

/// Reads the bytes of a file; `map` is their mapping, if they come from one.
pub(super) fn read_data(data: &[u8], map: Option<&Mmap>) -> Result<Kernels, FileProblem> {
    let mut reader = KernelReader { map, ..KernelReader::default() };
    if ar::is_archive(data) {
        for member in ar::archive_members(data)? {
            let member = match member {
                Ok(member) => member,
                Err(error) => {
                    reader.push_warning(error.to_string());
                    break;
                }
            };
            let Some(bytes) = member.data else {
                return Err(FileProblem::unsupported("is a thin archive, which does not contain its objects"));
            };
            // Rust libraries contain metadata, and archives other files, next to their objects.
            if let Err(error) = reader.read_image(bytes, member.offset, Some(&member.name))
                && Elf::is_elf(bytes)
            {
                reader.push_warning(format!("{} {error}", member.name));
            }
        }
    } else {
        reader.read_image(data, 0, None)?;
    }
    if reader.is_full() {
        let what = format!("contains more than {MOST_IMAGES} images of GPU code, which no real program does");
        return Err(FileProblem::too_large(what));
    }
    let soname = match Elf::parse(data) {
        Ok(elf) => elf.soname(),
        Err(_) => Pe::parse(data).ok().and_then(|image| image.dll_name()),
    };
    Ok(Kernels { published: soname.is_some_and(vendor::is_beside_driver), ..reader.into_kernels() })
}

#[derive(Default)]
struct KernelReader<'data> {
    map: Option<&'data Mmap>,
    entries: Vec<KernelImage>,
    containers: Vec<Container>,
    places: Vec<KernelPlace>,
    warnings: Vec<String>,
    /// Number of problems above the limit.
    further_warnings: usize,
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
    fn read_image(&mut self, data: &'data [u8], base: u64, member: Option<&str>) -> Result<(), FileProblem> {
        if data.starts_with(&fatbin::MAGIC) {
            let place = self.add_place(member, "");
            self.walk_containers(SectionPiece { data, base, place });
            return match self.warnings.first() {
                Some(warning) if self.entries.is_empty() => {
                    Err(FileProblem::damaged(format!("is damaged or cut off: {warning}")))
                }
                _ => Ok(()),
            };
        }
        if data.starts_with(&lto::MAGIC) {
            let arch = lto::read_lto_arch(data)
                .ok_or(FileProblem::Damaged("is damaged or cut off: LTO-IR for an arch that does not exist".into()))?;
            let place = self.add_place(member, "");
            self.add_lto(SectionPiece { data, base, place }, arch);
            return Ok(());
        }
        if Elf::is_elf(data) {
            let elf = Elf::parse(data)?;
            if elf.machine != EM_CUDA {
                self.read_host_file(&elf, base, member);
                return Ok(());
            }
            let place = self.add_place(member, "");
            let Ok(cubin) = cubin::read_cubin(data) else {
                let damage = elf.find_damage().unwrap_or_else(|| "is a damaged cubin".to_owned());
                return Err(FileProblem::damaged(damage));
            };
            self.add_cubin(SectionPiece { data, base, place }, 0, &cubin);
            return Ok(());
        }
        if Pe::is_pe(data) {
            self.read_pe(&Pe::parse(data)?, base, member);
            return Ok(());
        }
        if let Some(object) = CoffObject::parse(data).filter(|_| member.is_some()) {
            self.read_coff(object, base, member);
            return Ok(());
        }
        if let Some(at) = ptx::find_version(data) {
            let text = ptx::read_module(data, at)
                .ok_or(FileProblem::Damaged("begins like PTX, but has no `.target sm_NN` after `.version`".into()))?;
            let place = self.add_place(member, "");
            self.add_ptx(SectionPiece { data, base, place }, &text);
            return Ok(());
        }
        Err(if data.is_empty() { FileProblem::Empty } else { describe_unknown_form(data) })
    }

    fn push_warning(&mut self, warning: String) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(warning);
        } else {
            self.further_warnings += 1;
        }
    }

    /// Returns true if the file has more images and containers than the limit.
    fn is_full(&self) -> bool {
        self.read.load(Ordering::Relaxed) > MOST_IMAGES
    }

    fn add_place(&mut self, member: Option<&str>, section: &str) -> u32 {
        if !self.places.last().is_some_and(|place| place.section == section && place.member.as_deref() == member) {
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
        let has_inputs = self.read_sections(&section_tasks(elf, base), member);
        if self.containers.len() == first {
            return;
        }
        if has_inputs {
            let sections = elf.sections().filter(|section| section.name == MODULE_IDS);
            self.module_ids(&sections.map(|section| (section.offset, section.data)).collect::<Vec<_>>(), first);
        }
        // In an archive, the result of a device link is in another member than its inputs.
        if has_inputs || elf.kind == ET_REL {
            self.mark_device_links(elf, base);
        }
        self.name_containers(elf, base, first);
        if let Some(member) = member {
            for container in &mut self.containers[first..] {
                container.origin.get_or_insert_with(|| member.to_owned());
            }
        }
    }

    /// Reads the sections of a file. Returns true if there is relocatable device code, which a device linker reads.
    fn read_sections(&mut self, tasks: &[Task<'data>], member: Option<&str>) -> bool {
        let size: usize = tasks.iter().map(|task| task.data.len()).sum();
        let parts = if size < WORTH_THREADS {
            tasks.iter().map(|task| task.run_task(self)).collect()
        } else {
            at_once(tasks, self)
        };
        let mut has_inputs = false;
        for (task, part) in tasks.iter().zip(parts) {
            has_inputs |= task.name == RELOCATABLE && !part.containers.is_empty();
            self.merge_section(part, member, task.name);
        }
        has_inputs
    }

    /// Adds the results of a section.
    fn merge_section(&mut self, part: KernelReader, member: Option<&str>, section: &str) {
        self.further_warnings += part.further_warnings;
        part.warnings.into_iter().for_each(|warning| self.push_warning(warning));
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
            "{} bytes at {offset:#x} are not a fatbin, although the section contains only fatbins",
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
                                "contains damaged GPU code with shared tables: cubins after byte {:#x} were not searched for",
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
                scan::Hit::Gzip => self.read_gzipped_ptx(piece, found),
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
        let [first, end] = [first, self.entries.len()].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        first..end
    }

    fn into_kernels(mut self) -> Kernels {
        if self.further_warnings > 0 {
            self.warnings.push(format!("and {} more of this kind", self.further_warnings));
        }
        self.links.sort_unstable();
        let (mut has_input, mut has_output, mut has_cubin_input) = (false, false, false);
        let mut forms = Vec::new();
        for container in &self.containers {
            let entries = &self.entries[container.entries.start as usize..container.entries.end as usize];
            let is_input = container.role != Role::DeviceRuntime && is_relocatable(&self.places, container);
            let is_output =
                container.role == Role::Kernels && !is_input && self.links.binary_search(&container.offset).is_ok();
            let only_lto = container.role == Role::Kernels
                && !container.damaged
                && !entries.is_empty()
                && entries.iter().all(|entry| entry.kind == ImageKind::LtoIr);
            has_input |= is_input;
            has_output |= is_output;
            has_cubin_input |= is_input && entries.iter().any(|entry| entry.kind == ImageKind::Cubin);
            forms.push((is_input, is_output, only_lto));
        }
        // Relocatable code in an archive is the input of a device linker, unless the archive has its output. Objects that no
        // device linker has processed, and code whose link records were lost, are checked by their contents.
        let linked =
            if self.links.is_empty() { super::is_archive(&self.places) } else { has_output || !has_cubin_input };
        for (container, (is_input, is_output, only_lto)) in self.containers.iter_mut().zip(forms) {
            if linked && is_input {
                container.role = Role::Input;
            } else if has_input && is_output {
                container.role = Role::Linked;
            } else if only_lto {
                container.role = Role::LinkTime;
            }
        }
        let has_fatbins = self.containers.iter().any(|container| {
            container.form == ImageForm::Fatbin && matches!(container.role, Role::Kernels | Role::Linked | Role::Input)
        });
        let has_others = self.containers.iter().any(|one| one.role == Role::Kernels && !one.sets_conditions);
        for container in self.containers.iter_mut().filter(|container| container.role == Role::Kernels) {
            let is_helper = has_others && container.sets_conditions;
            if is_helper || has_fatbins && container.form != ImageForm::Fatbin {
                container.role = Role::Aside;
            }
        }
        let mut kernels = Kernels {
            entries: self.entries,
            containers: self.containers,
            places: self.places,
            warnings: self.warnings,
            ..Kernels::default()
        };
        kernels.units = cover::Units::from_kernels(&kernels);
        kernels
    }
}

/// Section of the names of relocatable objects.
const MODULE_IDS: &str = "__nv_module_id";

const DEVICE_RUNTIME: &str = "cuda_device_runtime";

fn is_relocatable(places: &[KernelPlace], container: &Container) -> bool {
    places.get(container.place as usize).is_some_and(|place| place.section == RELOCATABLE)
}

/// Selects the search mode. Writable data is large in some libraries (100 MB of tables), and compilers align their
/// output there. PTX text is searched only if the section has an ordinary size.
fn marks_to_search(is_writable: bool, size: u64) -> scan::Marks {
    if is_writable && size > ORDINARY_DATA { scan::Marks::Aligned } else { scan::Marks::Anywhere }
}

const ORDINARY_DATA: u64 = 4 << 20;
