//! GPU code in PE files. The containers are those of Linux; the names of their sections are cut off after eight characters.

use super::attribution::MOST_LINKS;
use super::{
    KernelReader, LINKED, MODULE_IDS, RECORD, RELOCATABLE, Task, WHOLE, fatbin, marks_to_search, remove_overlaps,
};
use crate::binary::pe::{CoffObject, Pe, PeSection};

/// Length of a section's name in an image.
const NAME: usize = 8;
/// The magic number of a record in `.nvFatBinSegment`.
const RECORD_MAGIC: u32 = 0x4662_43b1;
/// Sections that contain tables of the linker, the loader and nvcc, never a container.
const TABLES: [&str; 4] = [".pdata", ".reloc", RECORDS, ".xdata"];
const RECORDS: &str = ".nvFatBi";

/// Returns the name that the section has on Linux, if it is one of nvcc's.
fn full_name(name: &str) -> &str {
    [WHOLE, RELOCATABLE, MODULE_IDS].into_iter().find(|full| full[..NAME] == *name).unwrap_or(name)
}

impl<'data> KernelReader<'data> {
    /// Reads a program or DLL for Windows.
    pub(super) fn read_pe(&mut self, image: &Pe<'data>, base: u64, member: Option<&str>) {
        if let Some(damage) = image.find_damage() {
            self.push_warning(member.map_or_else(|| damage.clone(), |member| format!("{member} {damage}")));
        }
        let first = self.containers.len();
        if !self.read_sections(&section_tasks(image.sections(), base), member) {
            return;
        }
        let sections = image.sections().filter(|section| full_name(section.name) == MODULE_IDS);
        self.module_ids(&sections.map(|section| (section.offset, section.data)).collect::<Vec<_>>(), first);
        let links = linked_pointers(image).filter_map(|pointer| base.checked_add(image.offset_of_pointer(pointer)?));
        self.links.extend(links);
    }

    /// Reads a member of a static library for Windows.
    pub(super) fn read_coff(&mut self, object: CoffObject<'data>, base: u64, member: Option<&str>) {
        let first = self.containers.len();
        let ids = object.sections.iter().filter(|section| full_name(section.name) == MODULE_IDS);
        let ids: Vec<_> = ids.map(|section| (section.offset, section.data)).collect();
        let sections = object.sections.into_iter().filter(|section| !is_left_out(section));
        if self.read_sections(&section_tasks(sections, base), member) {
            self.module_ids(&ids, first);
        }
        for container in &mut self.containers[first..] {
            container.origin = container.origin.take().or_else(|| member.map(str::to_owned));
        }
    }
}

/// Returns true for the sections of an object that the linker leaves out: debug information and options.
fn is_left_out(section: &PeSection) -> bool {
    section.name.starts_with(".debug$") || section.name == ".drectve"
}

/// Returns the sections of a PE file or a COFF object that may contain GPU code: those without machine code.
fn section_tasks<'data>(sections: impl Iterator<Item = PeSection<'data>>, base: u64) -> Vec<Task<'data>> {
    let mut tasks = Vec::new();
    for section in sections {
        if section.is_code || section.data.is_empty() || TABLES.contains(&section.name) {
            continue;
        }
        let name = full_name(section.name);
        let marks = ![WHOLE, RELOCATABLE].contains(&name);
        tasks.push(Task {
            name,
            data: section.data,
            base: base.saturating_add(section.offset),
            marks: marks.then(|| marks_to_search(section.is_writable, section.data.len() as u64)),
        });
    }
    remove_overlaps(&mut tasks);
    tasks
}

/// Returns the pointers to containers that a device linker wrote. The linker of Microsoft may leave gaps between records.
fn linked_pointers<'data>(image: &Pe<'data>) -> impl Iterator<Item = u64> + use<'data> {
    const STEP: usize = 8;
    let sections = image.sections().filter(|section| section.name == RECORDS);
    let records = sections.flat_map(|section| section.data.windows(RECORD).step_by(STEP));
    let linked = records
        .filter(|record| fatbin::u32_at(record, 0) == Some(RECORD_MAGIC) && fatbin::u32_at(record, 4) == Some(LINKED));
    linked.filter_map(|record| fatbin::u64_at(record, 8)).take(MOST_LINKS)
}
