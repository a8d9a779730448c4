//! A view of little-endian ELF files, 32 and 64 bits. It does not copy or execute the file, and its work is bounded.
//!
//! `object` reads the entries of the tables. Damaged files cause no panic and no endless loop: tables and sections outside
//! of the file are treated as absent, and [`Elf::find_damage`] reports them.

use std::borrow::Cow;

use cudaguard::internal::file_error::FileProblem;
use object::LittleEndian as LE;
use object::elf;
use object::pod::{self, Pod};
use object::read::elf::{Dyn as _, FileHeader, ProgramHeader, SectionHeader};

mod dynamic;
mod hash;
pub mod links;
mod names;
mod note;
mod symbol;

pub use dynamic::{SymbolVersion, VersionEntry};
use names::NameReader;
pub(crate) use names::{LONGEST_TEXT, text_at, text_is, without_overlaps};
pub use note::ElfNote;
pub use symbol::Symbol;
pub(crate) use symbol::{HAS_VERSION, MADE_WEAK};

/// Sections that contain tables for the compiler and the loader, and never embedded data.
pub const TABLES: [&str; 10] = [
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

/// Limit for the headers of a table. No linker writes as many; it bounds the memory for a damaged file.
const MOST_HEADERS: usize = 1 << 20;

/// A view of an ELF file's bytes.
#[derive(Clone, Debug)]
pub struct Elf<'data> {
    /// Contents of the file.
    pub data: &'data [u8],
    /// True for a 64-bit file.
    pub is_64_bit: bool,
    /// `e_type`.
    pub kind: elf::FileType,
    /// `e_machine`.
    pub machine: elf::Machine,
    /// `e_flags`.
    pub flags: elf::FileFlags,
    /// The system for which the file was linked.
    pub os_abi: elf::OsAbi,
    /// Version of its ABI.
    pub abi_version: u8,
    /// Offset of the end of the headers and their tables.
    pub tables_end: u64,
    segments: Vec<Segment<'data>>,
    sections: Vec<Section<'data>>,
    sections_lost: bool,
    dynamic: Vec<(elf::DynamicTag, u64)>,
}

/// An entry of the section table.
#[derive(Clone, Copy, Debug)]
pub struct Section<'data> {
    /// Index in the section table.
    pub index: usize,
    /// Name; empty if it cannot be read.
    pub name: &'data str,
    /// `sh_type`.
    pub kind: elf::SectionType,
    /// `sh_flags`.
    pub flags: elf::SectionFlags,
    /// Address in memory.
    pub addr: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// `sh_link`.
    pub link: u32,
    /// `sh_info`.
    pub info: u32,
    /// `sh_addralign`.
    pub align: u64,
    /// Contents; empty if the section has none in the file or is outside of it.
    pub data: &'data [u8],
}

impl<'data> Section<'data> {
    fn new<H: SectionHeader<Endian = LE>>(index: usize, header: &H, name: &'data str, data: &'data [u8]) -> Self {
        let kind = header.sh_type(LE);
        Self {
            index,
            name,
            kind,
            flags: header.sh_flags(LE),
            addr: header.sh_addr(LE).into(),
            offset: header.sh_offset(LE).into(),
            size: header.sh_size(LE).into(),
            link: header.sh_link(LE),
            info: header.sh_info(LE),
            align: header.sh_addralign(LE).into(),
            data: if kind == elf::SHT_NULL { &[] } else { header.data(LE, data).unwrap_or_default() },
        }
    }

    /// Returns true if the file contains the section.
    fn is_stored(&self) -> bool {
        !matches!(self.kind, elf::SHT_NULL | elf::SHT_NOBITS)
    }
}

/// A program header.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'data> {
    /// `p_type`.
    pub kind: elf::ProgramType,
    /// `p_flags`.
    pub flags: elf::ProgramFlags,
    /// Offset in the file.
    pub offset: u64,
    /// Address in memory.
    pub addr: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// `p_align`.
    pub align: u64,
    /// Contents; empty if the segment has none in the file or is outside of it.
    pub data: &'data [u8],
}

impl<'data> Segment<'data> {
    fn new<H: ProgramHeader<Endian = LE>>(header: &H, data: &'data [u8]) -> Self {
        Self {
            kind: header.p_type(LE),
            flags: header.p_flags(LE),
            offset: header.p_offset(LE).into(),
            addr: header.p_vaddr(LE).into(),
            file_size: header.p_filesz(LE).into(),
            align: header.p_align(LE).into(),
            data: header.data(LE, data).unwrap_or_default(),
        }
    }
}

/// Returns the complete entries at the beginning of these bytes.
fn entries<T: Pod>(data: &[u8]) -> &[T] {
    pod::slice_from_bytes(data, data.len() / size_of::<T>()).map(|(entries, _)| entries).unwrap_or_default()
}

fn cut_off(data: &[u8]) -> FileProblem {
    FileProblem::damaged(format!("is cut off within the ELF header: {} bytes", data.len()))
}

impl<'data> Elf<'data> {
    /// Returns true if these bytes start with the ELF magic number.
    pub fn is_elf(data: &[u8]) -> bool {
        data.starts_with(&elf::ELFMAG)
    }

    /// Parses the headers.
    pub fn parse(data: &'data [u8]) -> Result<Self, FileProblem> {
        if data.is_empty() {
            return Err(FileProblem::Empty);
        }
        if !Self::is_elf(data) {
            return Err(FileProblem::unsupported("is not an ELF file"));
        }
        let Some(&[class, order, version]) = data.get(4..7) else { return Err(cut_off(data)) };
        let class = elf::FileClass(class);
        if !matches!(class, elf::ELFCLASS32 | elf::ELFCLASS64) {
            let what = format!("is an ELF file of the unknown class {class}; expected 1 (32-bit) or 2 (64-bit)");
            return Err(FileProblem::unsupported(what));
        }
        match elf::DataEncoding(order) {
            elf::ELFDATA2LSB => {}
            elf::ELFDATA2MSB => {
                return Err(FileProblem::unsupported("is a big-endian ELF file, which cudaguard does not read"));
            }
            other => {
                return Err(FileProblem::unsupported(format!(
                    "is an ELF file of the unknown byte order {other}; expected 1 (little) or 2 (big)"
                )));
            }
        }
        if version != 1 {
            let what = format!("is an ELF file of version {version}; only version 1 exists");
            return Err(FileProblem::unsupported(what));
        }
        if class == elf::ELFCLASS64 {
            Self::read::<elf::FileHeader64<LE>>(data)
        } else {
            Self::read::<elf::FileHeader32<LE>>(data)
        }
    }

    fn read<H: FileHeader<Endian = LE>>(data: &'data [u8]) -> Result<Self, FileProblem> {
        let header = H::parse(data).map_err(|_| cut_off(data))?;
        let [segments_at, sections_at]: [u64; 2] = [header.e_phoff(LE), header.e_shoff(LE)].map(Into::into);
        let segment_headers = header.program_headers(LE, data).map_err(|_| {
            FileProblem::damaged(format!(
                "is damaged or cut off: {} program headers of {} bytes at {segments_at}, and the file has {} bytes",
                header.e_phnum(LE),
                header.e_phentsize(LE),
                data.len()
            ))
        })?;
        let section_table = header.section_headers(LE, data);
        let section_headers = section_table.unwrap_or_default();
        let mut tables_end = size_of::<H>() as u64;
        for (offset, size) in [(segments_at, size_of_val(segment_headers)), (sections_at, size_of_val(section_headers))]
        {
            if size != 0 {
                tables_end = tables_end.max(offset.saturating_add(size as u64));
            }
        }
        let segments: Vec<_> =
            segment_headers.iter().take(MOST_HEADERS).map(|header| Segment::new(header, data)).collect();
        let names = header.section_strings_index(LE, data).ok().and_then(|names| section_headers.get(names.0));
        let names = names.and_then(|names| names.data(LE, data).ok()).unwrap_or_default();
        let mut names = NameReader::new(names, section_headers.len());
        let mut sections = Vec::new();
        for (index, header) in section_headers.iter().take(MOST_HEADERS).enumerate() {
            let name = names.name_at(header.sh_name(LE)).and_then(|name| std::str::from_utf8(name).ok());
            sections.push(Section::new(index, header, name.unwrap_or_default(), data));
        }
        let dynamic = match segments.iter().find(|segment| segment.kind == elf::PT_DYNAMIC) {
            Some(segment) => segment.data,
            None => {
                sections.iter().find(|section| section.kind == elf::SHT_DYNAMIC).map_or(&[][..], |section| section.data)
            }
        };
        let dynamic = entries::<H::Dyn>(dynamic).iter().map(|entry| (entry.d_tag(LE), entry.d_val(LE).into()));
        Ok(Self {
            data,
            is_64_bit: header.is_type_64(),
            kind: header.e_type(LE),
            machine: header.e_machine(LE),
            flags: header.e_flags(LE),
            os_abi: header.e_ident().os_abi,
            abi_version: header.e_ident().abi_version,
            tables_end,
            dynamic: dynamic.take_while(|(tag, _)| *tag != elf::DT_NULL).take(MOST_HEADERS).collect(),
            segments,
            sections,
            sections_lost: section_table.is_err(),
        })
    }

    /// Describes a table, segment or section that is not within the file, because the file is cut off or damaged. The
    /// other parts of the file can still be read.
    pub fn find_damage(&self) -> Option<String> {
        let size = self.data.len() as u64;
        if self.sections_lost && !self.is_packed() {
            return Some(format!("is cut off or damaged: its section headers are not within its {size} bytes"));
        }
        for segment in self.segments().filter(|segment| segment.file_size != 0) {
            if segment.offset.saturating_add(segment.file_size) > size {
                return Some(format!(
                    "is cut off or damaged: a segment has {} bytes at {}, the file {size}",
                    segment.file_size, segment.offset
                ));
            }
        }
        for section in self.sections().filter(Section::is_stored) {
            if section.offset.saturating_add(section.size) > size {
                return Some(format!(
                    "is cut off or damaged: section `{}` has {} bytes at {}, the file {size}",
                    section.name, section.size, section.offset
                ));
            }
        }
        None
    }

    /// Returns the bytes after everything that the file's tables describe, such as data that a packer appended. Empty
    /// if the section headers are missing or damaged.
    pub fn trailing(&self) -> &'data [u8] {
        let segments = self.segments().filter(|segment| segment.file_size != 0);
        let sections = self.sections().filter(Section::is_stored);
        let ends = segments
            .map(|segment| segment.offset.saturating_add(segment.file_size))
            .chain(sections.map(|section| section.offset.saturating_add(section.size)));
        let end = ends.fold(self.tables_end, u64::max);
        let rest = usize::try_from(end).ok().filter(|_| !self.sections_lost).and_then(|end| self.data.get(end..));
        rest.unwrap_or_default()
    }

    /// Returns true if UPX packed the file: it removes the sections and ends the file with its marker.
    pub fn is_packed(&self) -> bool {
        const MARK: &[u8] = b"UPX!";
        let end = &self.data[self.data.len().saturating_sub(64)..];
        self.sections.is_empty() && end.windows(MARK.len()).any(|bytes| bytes == MARK)
    }

    /// Returns the number of segment and section headers, which limits the cost of reading all of them.
    pub fn header_count(&self) -> u64 {
        (self.segments.len() + self.sections.len()) as u64
    }

    /// Returns the sections, including the empty first one. Empty if the file has no section headers.
    pub fn sections(&self) -> impl Iterator<Item = Section<'data>> + use<'_, 'data> {
        self.sections.iter().copied()
    }

    /// Returns the first section with this name.
    pub fn section_named(&self, name: &str) -> Option<Section<'data>> {
        self.sections().find(|section| section.name == name)
    }

    /// Returns the contents of the section that another one names with its field `sh_link`.
    fn linked_data(&self, section: &Section<'_>) -> Option<&'data [u8]> {
        Some(self.sections.get(section.link as usize)?.data)
    }

    /// Returns the program headers.
    pub fn segments(&self) -> impl Iterator<Item = Segment<'data>> + use<'_, 'data> {
        self.segments.iter().copied()
    }

    /// Returns the bytes from this memory address to the end of the segment that contains it.
    pub fn at_address(&self, address: u64) -> Option<&'data [u8]> {
        self.segments().filter(|segment| segment.kind == elf::PT_LOAD).find_map(|segment| {
            let into = usize::try_from(address.checked_sub(segment.addr)?).ok()?;
            segment.data.get(into..).filter(|rest| !rest.is_empty())
        })
    }

    /// Returns the bytes of a table at this memory address.
    pub fn table_at(&self, address: u64, size: u64) -> Option<&'data [u8]> {
        let rest = self.at_address(address)?;
        Some(&rest[..usize::try_from(size).unwrap_or(usize::MAX).min(rest.len())])
    }

    /// Returns the offset of these bytes in the file, of which they are a part.
    fn offset_of(&self, part: &[u8]) -> usize {
        part.as_ptr().addr() - self.data.as_ptr().addr()
    }

    /// Returns the program interpreter: `/lib64/ld-linux-x86-64.so.2`.
    pub fn interpreter(&self) -> Option<&'data str> {
        let text =
            self.segments().find(|segment| segment.kind == elf::PT_INTERP)?.data.split(|byte| *byte == 0).next()?;
        std::str::from_utf8(text).ok().filter(|text| !text.is_empty())
    }
}

/// Returns the usual name of a processor.
pub fn machine_name(machine: elf::Machine) -> Cow<'static, str> {
    match machine {
        elf::EM_386 => "x86".into(),
        elf::EM_ARM => "arm".into(),
        elf::EM_X86_64 => "x86_64".into(),
        elf::EM_AARCH64 => "aarch64".into(),
        elf::EM_CUDA => "an NVIDIA GPU".into(),
        elf::EM_PPC64 => "powerpc64".into(),
        elf::EM_RISCV => "riscv".into(),
        elf::EM_LOONGARCH => "loongarch".into(),
        elf::EM_S390 => "s390".into(),
        other => format!("machine {other}").into(),
    }
}

#[cfg(test)]
mod tests;
