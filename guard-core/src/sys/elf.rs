//! A reader of little-endian ELF files, 32 and 64 bits. It does not copy or execute the file, and its work is bounded.
//! The toolchain, seal, loader and kernel code all use it.
//!
//! Damaged files cause no panic and no endless loop: tables and sections outside of the file are treated as absent, and
//! [`Elf::find_damage`] reports them. Formats: System V ABI, generic part; names from glibc's `elf/elf.h`.

mod bytes;
mod dynamic;
mod note;
mod symbol;

pub use bytes::{LONGEST_TEXT, read_before, text_at, text_is, u16_at, u32_at, u64_at, word_at};
use bytes::{StringTable, slice_at};
pub use dynamic::{MOST_VERSIONS, linked_records, tag};
pub use note::ElfNote;
pub use symbol::{HAS_VERSION, MADE_WEAK, Symbol};

use super::file_error::FileProblem;

/// File types: `e_type`.
pub mod kind {
    /// A relocatable object.
    pub const OBJECT: u16 = 1;
    /// An executable at a fixed address.
    pub const EXECUTABLE: u16 = 2;
    /// A shared library, or a position-independent executable.
    pub const SHARED: u16 = 3;
    /// A core dump.
    pub const CORE: u16 = 4;
}

/// Processors: `e_machine`.
pub mod machine {
    /// 32-bit x86.
    pub const X86: u16 = 3;
    /// 32-bit ARM.
    pub const ARM: u16 = 40;
    /// `x86_64`, also with 32-bit pointers.
    pub const X86_64: u16 = 62;
    /// `aarch64`.
    pub const AARCH64: u16 = 183;
    /// NVIDIA's cubins.
    pub const CUDA: u16 = 190;
    /// 64-bit POWER.
    pub const PPC64: u16 = 21;
    /// RISC-V.
    pub const RISCV: u16 = 243;
    /// `LoongArch`.
    pub const LOONGARCH: u16 = 258;
    /// S/390.
    pub const S390: u16 = 22;

    /// Returns the processor's usual name.
    pub fn machine_name(machine: u16) -> std::borrow::Cow<'static, str> {
        match machine {
            X86 => "x86".into(),
            ARM => "arm".into(),
            X86_64 => "x86_64".into(),
            AARCH64 => "aarch64".into(),
            CUDA => "an NVIDIA GPU".into(),
            PPC64 => "powerpc64".into(),
            RISCV => "riscv".into(),
            LOONGARCH => "loongarch".into(),
            S390 => "s390".into(),
            other => format!("machine {other}").into(),
        }
    }
}

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

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
const PF_R: u32 = 4;
/// `sh_type` of the data and code of a program.
pub const SHT_PROGBITS: u32 = 1;
/// `sh_flags` of a section that is loaded.
pub const SHF_ALLOC: u64 = 2;
const SHT_SYMTAB: u32 = 2;
const SHT_NOTE: u32 = 7;
const SHT_NOBITS: u32 = 8;
const SHT_DYNSYM: u32 = 11;
const PN_XNUM: u64 = 0xffff;
const SHN_XINDEX: u64 = 0xffff;

/// A header table of the file: offset, number of entries and entry size. It is only created if the entire table is
/// within the file.
#[derive(Clone, Copy, Debug, Default)]
struct HeaderTable {
    offset: u64,
    count: u64,
    stride: u64,
}

/// Reads two bytes of a header whose size was checked.
fn half_at(header: &[u8], at: usize) -> u16 {
    u16_at(header, at).unwrap_or_default()
}

impl HeaderTable {
    fn new(data: &[u8], offset: u64, count: u64, stride: u64, least: u64) -> Option<Self> {
        if stride < least {
            return None;
        }
        slice_at(data, offset, count.checked_mul(stride)?)?;
        Some(Self { offset, count, stride })
    }

    fn entry_at<'data>(&self, data: &'data [u8], index: u64) -> Option<&'data [u8]> {
        if index >= self.count {
            return None;
        }
        slice_at(data, self.offset + index * self.stride, self.stride)
    }
}

/// A view of an ELF file's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Elf<'data> {
    data: &'data [u8],
    class64: bool,
    kind: u16,
    machine: u16,
    flags: u32,
    os_abi: u8,
    abi_version: u8,
    segments: HeaderTable,
    sections: HeaderTable,
    sections_lost: bool,
    names: u64,
}

/// An entry of the section table.
#[derive(Clone, Copy, Debug)]
pub struct Section<'data> {
    /// Index in the section table.
    pub index: u64,
    /// Name; empty if it cannot be read.
    pub name: &'data str,
    /// `sh_type`.
    pub kind: u32,
    /// `sh_flags`.
    pub flags: u64,
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
    /// Size of an entry if the section is a table.
    pub entsize: u64,
    /// Contents; empty if the section has none in the file or is outside of it.
    pub data: &'data [u8],
}

/// A program header.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'data> {
    /// `p_type`.
    pub kind: u32,
    /// `p_flags`.
    pub flags: u32,
    /// Offset in the file.
    pub offset: u64,
    /// Address in memory.
    pub addr: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// Bytes in memory.
    pub memory_size: u64,
    /// `p_align`.
    pub align: u64,
    /// Contents; empty if the segment has none in the file or is outside of it.
    pub data: &'data [u8],
}

impl<'data> Elf<'data> {
    /// Returns true if these bytes start with the ELF magic number.
    pub fn is_elf(data: &[u8]) -> bool {
        data.starts_with(b"\x7fELF")
    }

    /// Parses the headers.
    pub fn parse(data: &'data [u8]) -> Result<Self, FileProblem> {
        if data.is_empty() {
            return Err(FileProblem::Empty);
        }
        if !Self::is_elf(data) {
            return Err(FileProblem::unsupported("is not an ELF file"));
        }
        let Some(&[class, order, version, os_abi, abi_version]) = data.get(4..9) else {
            return Err(FileProblem::damaged(format!("is cut off within the ELF header: {} bytes", data.len())));
        };
        let class64 = match class {
            1 => false,
            2 => true,
            other => {
                return Err(FileProblem::unsupported(format!(
                    "is an ELF file of the unknown class {other}; expected 1 (32-bit) or 2 (64-bit)"
                )));
            }
        };
        match order {
            1 => {}
            2 => return Err(FileProblem::unsupported("is a big-endian ELF file, which cudaguard does not read")),
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
        let Some(header) = data.get(..if class64 { 64 } else { 52 }) else {
            return Err(FileProblem::damaged(format!("is cut off within the ELF header: {} bytes", data.len())));
        };
        let (phoff, shoff, rest) = if class64 { (32, 40, 48) } else { (28, 32, 36) };
        let [phoff, shoff] = [phoff, shoff].map(|at| word_at(header, at, class64).unwrap_or_default());
        let mut elf = Self {
            data,
            class64,
            kind: half_at(header, 16),
            machine: half_at(header, 18),
            flags: u32_at(header, rest).unwrap_or_default(),
            os_abi,
            abi_version,
            segments: HeaderTable::default(),
            sections: HeaderTable::default(),
            sections_lost: false,
            names: 0,
        };
        let (section_least, segment_least) = if class64 { (64, 56) } else { (40, 32) };
        let mut segment_count = u64::from(half_at(header, rest + 8));
        let mut section_count = u64::from(half_at(header, rest + 12));
        elf.names = u64::from(half_at(header, rest + 14));
        let section_stride = u64::from(half_at(header, rest + 10));
        if shoff != 0 {
            // Counts that do not fit into their header field are in the first section header.
            if let Some(first) = HeaderTable::new(data, shoff, 1, section_stride, section_least)
                .and_then(|table| table.entry_at(data, 0))
                .and_then(|entry| elf.section_header(entry))
            {
                if section_count == 0 {
                    section_count = first.size;
                }
                if elf.names == SHN_XINDEX {
                    elf.names = first.link.into();
                }
                if segment_count == PN_XNUM && first.info != 0 {
                    segment_count = first.info.into();
                }
            }
            match HeaderTable::new(data, shoff, section_count, section_stride, section_least) {
                Some(table) => elf.sections = table,
                None => elf.sections_lost = section_count != 0 || section_stride < section_least,
            }
        }
        if phoff != 0 && segment_count != 0 {
            let stride = u64::from(half_at(header, rest + 6));
            elf.segments = HeaderTable::new(data, phoff, segment_count, stride, segment_least).ok_or_else(|| {
                FileProblem::damaged(format!(
                    "is damaged or cut off: {segment_count} program headers of {stride} bytes at {phoff}, and the file has {} bytes",
                    data.len()
                ))
            })?;
        }
        Ok(elf)
    }

    /// Returns the contents of the file.
    pub fn data(&self) -> &'data [u8] {
        self.data
    }

    /// Returns true for a 64-bit file.
    pub fn is_64_bit(&self) -> bool {
        self.class64
    }

    /// Returns `e_machine`; see [`machine`].
    pub fn machine(&self) -> u16 {
        self.machine
    }

    /// Returns `e_type`; see [`kind`].
    pub fn kind(&self) -> u16 {
        self.kind
    }

    /// Returns `e_flags`.
    pub fn flags(&self) -> u32 {
        self.flags
    }

    /// Returns byte 7 of the file: 0 for System V, 3 for Linux.
    pub fn os_abi(&self) -> u8 {
        self.os_abi
    }

    /// Returns byte 8 of the file.
    pub fn abi_version(&self) -> u8 {
        self.abi_version
    }

    /// Describes a table, segment or section that is not within the file, because the file is cut off or damaged. The
    /// other parts of the file can still be read.
    pub fn find_damage(&self) -> Option<String> {
        let size = self.data.len() as u64;
        if self.sections_lost && !self.is_packed() {
            return Some(format!("is cut off or damaged: its section headers are not within its {size} bytes"));
        }
        for segment in self.segments().filter(|segment| segment.file_size != 0) {
            if segment.offset.checked_add(segment.file_size).is_none_or(|end| end > size) {
                return Some(format!(
                    "is cut off or damaged: a segment has {} bytes at {}, the file {size}",
                    segment.file_size, segment.offset
                ));
            }
        }
        for section in self.sections().filter(|section| section.kind != SHT_NOBITS && section.kind != 0) {
            if section.offset.checked_add(section.size).is_none_or(|end| end > size) {
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
        let tables = [&self.segments, &self.sections]
            .map(|table| table.offset.saturating_add(table.count.saturating_mul(table.stride)));
        let segments = self.segments().filter(|segment| segment.file_size != 0);
        let sections = self.sections().filter(|section| section.kind != SHT_NOBITS && section.kind != 0);
        let ends = segments
            .map(|segment| segment.offset.saturating_add(segment.file_size))
            .chain(sections.map(|section| section.offset.saturating_add(section.size)))
            .chain(tables)
            .chain([if self.class64 { 64 } else { 52 }]);
        let end = ends.max().and_then(|end| usize::try_from(end).ok());
        end.filter(|_| !self.sections_lost).and_then(|end| self.data.get(end..)).unwrap_or_default()
    }

    /// Returns true if UPX packed the file: it removes the sections and ends the file with its marker.
    pub fn is_packed(&self) -> bool {
        const MARK: &[u8] = b"UPX!";
        let end = &self.data[self.data.len().saturating_sub(64)..];
        self.sections.count == 0 && end.windows(MARK.len()).any(|bytes| bytes == MARK)
    }

    /// Returns the number of segment and section headers, which limits the cost of reading all of them.
    pub fn header_count(&self) -> u64 {
        self.segments.count.saturating_add(self.sections.count)
    }

    fn section_header(&self, entry: &[u8]) -> Option<Section<'data>> {
        let (link, words) = if self.class64 { (40, [8, 16, 24, 32, 48, 56]) } else { (24, [8, 12, 16, 20, 32, 36]) };
        let [flags, addr, offset, size, align, entsize] = words.map(|at| word_at(entry, at, self.class64));
        let kind = u32_at(entry, 4)?;
        let (offset, size) = (offset?, size?);
        Some(Section {
            index: 0,
            name: "",
            kind,
            flags: flags?,
            addr: addr?,
            offset,
            size,
            link: u32_at(entry, link)?,
            info: u32_at(entry, link + 4)?,
            align: align?,
            entsize: entsize?,
            data: if matches!(kind, 0 | SHT_NOBITS) {
                &[]
            } else {
                slice_at(self.data, offset, size).unwrap_or_default()
            },
        })
    }

    /// Returns the section with this index.
    pub fn section_at(&self, index: u64) -> Option<Section<'data>> {
        self.section_called(index, &mut self.section_names())
    }

    fn section_names(&self) -> StringTable<'data> {
        let names = self.sections.entry_at(self.data, self.names).and_then(|entry| self.section_header(entry));
        StringTable::new(names.map_or(&[][..], |section| section.data), self.sections.count)
    }

    fn section_called(&self, index: u64, names: &mut StringTable<'data>) -> Option<Section<'data>> {
        let entry = self.sections.entry_at(self.data, index)?;
        let name = names.name_at(u32_at(entry, 0)?.into()).and_then(|name| std::str::from_utf8(name).ok());
        Some(Section { index, name: name.unwrap_or_default(), ..self.section_header(entry)? })
    }

    /// Returns the sections, including the empty first one. Empty if the file has no section headers.
    pub fn sections(&self) -> impl Iterator<Item = Section<'data>> + use<'data> {
        let (elf, mut names, mut index) = (*self, self.section_names(), 0);
        std::iter::from_fn(move || {
            index += 1;
            elf.section_called(index - 1, &mut names)
        })
    }

    /// Returns the first section with this name.
    pub fn section_named(&self, name: &str) -> Option<Section<'data>> {
        self.sections().find(|section| section.name == name)
    }

    fn segment_at(&self, index: u64) -> Option<Segment<'data>> {
        let entry = self.segments.entry_at(self.data, index)?;
        let (flags, words) = if self.class64 { (4, [8, 16, 32, 40, 48]) } else { (24, [4, 8, 16, 20, 28]) };
        let [offset, addr, file_size, memory_size, align] = words.map(|at| word_at(entry, at, self.class64));
        let (offset, file_size) = (offset?, file_size?);
        Some(Segment {
            kind: u32_at(entry, 0)?,
            flags: u32_at(entry, flags)?,
            offset,
            addr: addr?,
            file_size,
            memory_size: memory_size?,
            align: align?,
            data: slice_at(self.data, offset, file_size).unwrap_or_default(),
        })
    }

    /// Returns the program headers.
    pub fn segments(&self) -> impl Iterator<Item = Segment<'data>> + use<'data> {
        let (elf, mut index) = (*self, 0);
        std::iter::from_fn(move || {
            index += 1;
            elf.segment_at(index - 1)
        })
    }

    /// Returns the bytes from this memory address to the end of the segment that contains it.
    pub fn at_address(&self, address: u64) -> Option<&'data [u8]> {
        self.segments().filter(|segment| segment.kind == PT_LOAD).find_map(|segment| {
            let into = usize::try_from(address.checked_sub(segment.addr)?).ok()?;
            segment.data.get(into..).filter(|rest| !rest.is_empty())
        })
    }

    /// Returns the file offset of this memory address.
    pub fn offset_of(&self, address: u64) -> Option<usize> {
        self.segments().filter(|segment| segment.kind == PT_LOAD).find_map(|segment| {
            let into = address.checked_sub(segment.addr).filter(|into| *into < segment.file_size)?;
            usize::try_from(segment.offset.checked_add(into)?).ok()
        })
    }

    /// Returns the program interpreter: `/lib64/ld-linux-x86-64.so.2`.
    pub fn interpreter(&self) -> Option<&'data str> {
        let text = self.segments().find(|segment| segment.kind == PT_INTERP)?.data.split(|byte| *byte == 0).next()?;
        std::str::from_utf8(text).ok().filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests;
