//! A reader of little-endian ELF files, 32 and 64 bits. It does not copy or execute the file, and its work is bounded.
//! The toolchain, seal, loader and kernel code all use it.
//!
//! Damaged files cause no panic and no endless loop: tables and sections outside of the file are treated as absent, and
//! [`Elf::find_damage`] reports them. Formats: System V ABI, generic part; names from glibc's `elf/elf.h`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::CStr;

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

/// Flag in `st_other` of a symbol that sealing has made weak. If the symbol is missing, the guard reports it.
pub const MADE_WEAK: u8 = 8;

/// Flag in `st_other` next to [`MADE_WEAK`]: the reference has a symbol version, which is named after its library.
pub const HAS_VERSION: u8 = 16;

/// Tags of the dynamic section.
pub mod tag {
    /// Name of a needed library.
    pub const NEEDED: u64 = 1;
    /// Size of the relocations for calls.
    pub const PLTRELSZ: u64 = 2;
    /// Address of the System V hash table.
    pub const HASH: u64 = 4;
    /// Address of the string table.
    pub const STRTAB: u64 = 5;
    /// Address of the symbol table.
    pub const SYMTAB: u64 = 6;
    /// Address of the relocations with addends.
    pub const RELA: u64 = 7;
    /// Their size.
    pub const RELASZ: u64 = 8;
    /// Size of the string table.
    pub const STRSZ: u64 = 10;
    /// Name of the library itself (soname).
    pub const SONAME: u64 = 14;
    /// Search directories of the old kind, searched before `LD_LIBRARY_PATH`.
    pub const RPATH: u64 = 15;
    /// Address of the relocations without addends.
    pub const REL: u64 = 17;
    /// Their size.
    pub const RELSZ: u64 = 18;
    /// Kind of the relocations for calls: [`RELA`] or [`REL`].
    pub const PLTREL: u64 = 20;
    /// Address of the relocations for calls.
    pub const JMPREL: u64 = 23;
    /// All symbols are bound at start-up.
    pub const BIND_NOW: u64 = 24;
    /// Search directories, searched after `LD_LIBRARY_PATH`.
    pub const RUNPATH: u64 = 29;
    /// Older flags, such as `DF_BIND_NOW`.
    pub const FLAGS: u64 = 30;
    /// Address of the GNU hash table.
    pub const GNU_HASH: u64 = 0x6fff_fef5;
    /// Address of the symbols' version numbers, one for each symbol.
    pub const VERSYM: u64 = 0x6fff_fff0;
    /// Flags such as `DF_1_NODEFLIB`.
    pub const FLAGS_1: u64 = 0x6fff_fffb;
    /// Address of the versions that the file defines.
    pub const VERDEF: u64 = 0x6fff_fffc;
    /// Address of the versions that the file requires.
    pub const VERNEED: u64 = 0x6fff_fffe;
    /// Filter: another object provides all symbols of this one.
    pub const FILTER: u64 = 0x7fff_ffff;
    /// Filter: another object may provide some symbols of this one.
    pub const AUXILIARY: u64 = 0x7fff_fffd;
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
const SHT_SYMTAB: u32 = 2;
const SHT_NOTE: u32 = 7;
const SHT_NOBITS: u32 = 8;
const SHT_DYNSYM: u32 = 11;
const PN_XNUM: u64 = 0xffff;
const SHN_XINDEX: u64 = 0xffff;
/// Maximum length of a symbol, soname or path. Tools write none that is longer; the limit keeps the search for its end
/// in a damaged table short.
pub const LONGEST_TEXT: usize = 1 << 16;
/// Maximum length of a symbol version, for example `CUDART_12.0_EXTENDED_AND_PRIVATE`.
const LONGEST_VERSION: usize = 256;
/// Maximum number of symbol versions; libstdc++ has about sixty.
pub const MOST_VERSIONS: usize = 4096;

fn slice_at(data: &[u8], at: u64, size: u64) -> Option<&[u8]> {
    let start = usize::try_from(at).ok()?;
    data.get(start..start.checked_add(usize::try_from(size).ok()?)?)
}

/// Reads two bytes.
pub fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(data.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

/// Reads four bytes.
pub fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(data.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(data.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// Reads a number of the file's word size.
pub fn word_at(data: &[u8], at: usize, class64: bool) -> Option<u64> {
    if class64 { u64_at(data, at) } else { u32_at(data, at).map(u64::from) }
}

/// Reads a NUL-terminated text in a table.
pub fn text_at(table: &[u8], at: u64) -> Option<&[u8]> {
    text_within(table, at, LONGEST_TEXT)
}

fn text_within(table: &[u8], at: u64, longest: usize) -> Option<&[u8]> {
    let rest = table.get(usize::try_from(at).ok()?..)?;
    CStr::from_bytes_until_nul(&rest[..rest.len().min(longest)]).ok().map(CStr::to_bytes)
}

/// A string table with a read limit. In a damaged file, names may overlap; the limit keeps the number of bytes read in
/// proportion to the table's size and the number of names.
struct StringTable<'data> {
    table: &'data [u8],
    left: usize,
}

impl<'data> StringTable<'data> {
    /// `PAID`: bytes that each entry adds to the limit. `SHARED`: how often linkers let names share their ends
    /// (`.rela.text.f`).
    const PAID: usize = 64;
    const SHARED: usize = 8;

    fn new(table: &'data [u8], count: u64) -> Self {
        let paid = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(Self::PAID);
        Self { table, left: table.len().saturating_mul(Self::SHARED).saturating_add(paid) }
    }

    fn name_at(&mut self, at: u64) -> Option<&'data [u8]> {
        if self.left == 0 {
            return None;
        }
        let name = text_at(self.table, at);
        self.left = self.left.saturating_sub(name.map_or(LONGEST_TEXT, <[u8]>::len) + 1);
        name
    }
}

/// Returns, for each piece of a file (offset, length), the number of bytes at its start that an earlier piece also
/// contains. A caller that skips these reads each byte once. Linkers do not let sections overlap, but a damaged file
/// may have a thousand overlapping sections.
pub fn read_before(pieces: &[(u64, usize)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by_key(|at| pieces[*at].0);
    let mut read = 0;
    let mut known = vec![0; pieces.len()];
    for at in order {
        let (offset, length) = pieces[at];
        known[at] = usize::try_from(read.max(offset) - offset).unwrap_or(usize::MAX).min(length);
        read = read.max(offset.saturating_add(length as u64));
    }
    known
}

/// Returns true if the NUL-terminated text at this offset is `name`. Does not search for the end of the text.
pub fn text_is(table: &[u8], at: u64, name: &[u8]) -> bool {
    usize::try_from(at)
        .ok()
        .and_then(|at| table.get(at..))
        .is_some_and(|rest| rest.get(name.len()) == Some(&0) && rest.starts_with(name))
}

/// A header table of the file: offset, number of entries and entry size. It is only created if the entire table is
/// within the file.
#[derive(Clone, Copy, Debug, Default)]
struct HeaderTable {
    offset: u64,
    count: u64,
    stride: u64,
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

/// An ELF note.
#[derive(Clone, Copy, Debug)]
pub struct ElfNote<'data> {
    /// Owner: `GNU`, `cudaguard`; empty if it is not UTF-8.
    pub owner: &'data str,
    /// Type.
    pub kind: u32,
    /// Descriptor.
    pub desc: &'data [u8],
    /// Offset of the descriptor in the file.
    pub offset: u64,
}

/// An ELF symbol.
#[derive(Clone, Copy, Debug)]
pub struct Symbol<'data> {
    names: &'data [u8],
    /// The offset of its name in the string table.
    pub name: u32,
    /// Address; in an object, the offset in the section.
    pub value: u64,
    /// Size in bytes.
    pub size: u64,
    /// Index of the section that defines the symbol; 0 if it is undefined.
    pub section: u16,
    /// 0: local, 1: global, 2: weak.
    pub binding: u8,
    /// 0: no type, 1: object, 2: function.
    pub kind: u8,
    /// 0: default, 1: internal, 2: hidden, 3: protected.
    pub visibility: u8,
}

impl<'data> Symbol<'data> {
    /// Returns the name. `None` if it is outside of the table or not UTF-8.
    pub fn name(&self) -> Option<&'data str> {
        std::str::from_utf8(text_at(self.names, self.name.into())?).ok()
    }

    /// Returns true if the symbol has this name; faster than reading the name.
    pub fn has_name(&self, name: &str) -> bool {
        text_is(self.names, self.name.into(), name.as_bytes())
    }

    /// Returns true if the symbol is defined here and visible to other objects.
    pub fn is_exported(&self) -> bool {
        self.section != 0 && self.binding != 0 && matches!(self.visibility, 0 | 3)
    }

    /// Returns true if the symbol must come from another object.
    pub fn is_undefined(&self) -> bool {
        self.section == 0 && self.binding != 0
    }
}

impl<'data> Elf<'data> {
    /// Returns true if these bytes start with the ELF magic number.
    pub fn is_elf(data: &[u8]) -> bool {
        data.starts_with(b"\x7fELF")
    }

    /// Parses the headers.
    pub fn parse(data: &'data [u8]) -> Result<Self, String> {
        if data.is_empty() {
            return Err("is empty".to_owned());
        }
        if !Self::is_elf(data) {
            return Err("is not an ELF file".to_owned());
        }
        let cut = || format!("is cut off within the ELF header: {} bytes", data.len());
        let &[class, order, version, os_abi, abi_version] = data.get(4..9).ok_or_else(cut)? else {
            return Err(cut());
        };
        let class64 = match class {
            1 => false,
            2 => true,
            other => {
                return Err(format!("is an ELF file of class {other}, which is neither 32-bit (1) nor 64-bit (2)"));
            }
        };
        match order {
            1 => {}
            2 => return Err("is a big-endian ELF file, which cudaguard does not read".to_owned()),
            other => {
                return Err(format!("is an ELF file of byte order {other}, which is neither little (1) nor big (2)"));
            }
        }
        if version != 1 {
            return Err(format!("is an ELF file of version {version}; only version 1 exists"));
        }
        let header = data.get(..if class64 { 64 } else { 52 }).ok_or_else(cut)?;
        let half = |at: usize| u16_at(header, at).unwrap_or_default();
        let word = |at: usize| word_at(header, at, class64).unwrap_or_default();
        let (phoff, shoff, rest) = if class64 { (32, 40, 48) } else { (28, 32, 36) };
        let mut elf = Self {
            data,
            class64,
            kind: half(16),
            machine: half(18),
            flags: u32_at(header, rest).unwrap_or_default(),
            os_abi,
            abi_version,
            segments: HeaderTable::default(),
            sections: HeaderTable::default(),
            sections_lost: false,
            names: 0,
        };
        let (section_least, segment_least) = if class64 { (64, 56) } else { (40, 32) };
        let mut segment_count = u64::from(half(rest + 8));
        let mut section_count = u64::from(half(rest + 12));
        elf.names = u64::from(half(rest + 14));
        let section_stride = u64::from(half(rest + 10));
        if word(shoff) != 0 {
            // Counts that do not fit into their header field are in the first section header.
            if let Some(first) = HeaderTable::new(data, word(shoff), 1, section_stride, section_least)
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
            match HeaderTable::new(data, word(shoff), section_count, section_stride, section_least) {
                Some(table) => elf.sections = table,
                None => elf.sections_lost = section_count != 0 || section_stride < section_least,
            }
        }
        if word(phoff) != 0 && segment_count != 0 {
            let stride = u64::from(half(rest + 6));
            elf.segments = HeaderTable::new(data, word(phoff), segment_count, stride, segment_least).ok_or_else(|| {
                format!(
                    "is damaged or cut off: {segment_count} program headers of {stride} bytes at {}, and the file has {} bytes",
                    word(phoff),
                    data.len()
                )
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
        if self.sections_lost && self.is_packed() {
            return Some("is packed by UPX: what is in it can be read once `upx -d` has unpacked it".to_owned());
        }
        if self.sections_lost {
            return Some(format!("is cut off or damaged: its section headers do not lie within its {size} bytes"));
        }
        let beyond = |offset: u64, length: u64| offset.checked_add(length).is_none_or(|end| end > size);
        for segment in self.segments().filter(|segment| segment.file_size != 0) {
            if beyond(segment.offset, segment.file_size) {
                return Some(format!(
                    "is cut off or damaged: a segment has {} bytes at {}, the file {size}",
                    segment.file_size, segment.offset
                ));
            }
        }
        for section in self.sections().filter(|section| section.kind != SHT_NOBITS && section.kind != 0) {
            if beyond(section.offset, section.size) {
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
        let of_table = |table: &HeaderTable| table.offset.saturating_add(table.count.saturating_mul(table.stride));
        let segments = self.segments().filter(|segment| segment.file_size != 0);
        let sections = self.sections().filter(|section| section.kind != SHT_NOBITS && section.kind != 0);
        let ends = segments
            .map(|segment| segment.offset.saturating_add(segment.file_size))
            .chain(sections.map(|section| section.offset.saturating_add(section.size)))
            .chain([of_table(&self.segments), of_table(&self.sections), if self.class64 { 64 } else { 52 }]);
        let end = ends.max().and_then(|end| usize::try_from(end).ok());
        end.filter(|_| !self.sections_lost).and_then(|end| self.data.get(end..)).unwrap_or_default()
    }

    /// Returns true if the file ends with the marker of UPX, which removes the sections.
    fn is_packed(&self) -> bool {
        const MARK: &[u8] = b"UPX!";
        let end = &self.data[self.data.len().saturating_sub(64)..];
        end.windows(MARK.len()).any(|bytes| bytes == MARK)
    }

    /// Returns the number of segment and section headers, which limits the cost of reading all of them.
    pub fn header_count(&self) -> u64 {
        self.segments.count.saturating_add(self.sections.count)
    }

    fn section_header(&self, entry: &[u8]) -> Option<Section<'data>> {
        let word = |at: usize| word_at(entry, at, self.class64);
        let (addr, offset, size, link, align, entsize) =
            if self.class64 { (16, 24, 32, 40, 48, 56) } else { (12, 16, 20, 24, 32, 36) };
        let kind = u32_at(entry, 4)?;
        let (offset, size) = (word(offset)?, word(size)?);
        Some(Section {
            index: 0,
            name: "",
            kind,
            flags: word(8)?,
            addr: word(addr)?,
            offset,
            size,
            link: u32_at(entry, link)?,
            info: u32_at(entry, link + 4)?,
            align: word(align)?,
            entsize: word(entsize)?,
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
        let (elf, mut names) = (*self, self.section_names());
        (0..elf.sections.count).map_while(move |index| elf.section_called(index, &mut names))
    }

    /// Returns the first section with this name.
    pub fn section_named(&self, name: &str) -> Option<Section<'data>> {
        self.sections().find(|section| section.name == name)
    }

    fn segment_at(&self, index: u64) -> Option<Segment<'data>> {
        let entry = self.segments.entry_at(self.data, index)?;
        let word = |at: usize| word_at(entry, at, self.class64);
        let (flags, offset, addr, file_size, memory_size, align) =
            if self.class64 { (4, 8, 16, 32, 40, 48) } else { (24, 4, 8, 16, 20, 28) };
        let (offset, file_size) = (word(offset)?, word(file_size)?);
        Some(Segment {
            kind: u32_at(entry, 0)?,
            flags: u32_at(entry, flags)?,
            offset,
            addr: word(addr)?,
            file_size,
            memory_size: word(memory_size)?,
            align: word(align)?,
            data: slice_at(self.data, offset, file_size).unwrap_or_default(),
        })
    }

    /// Returns the program headers.
    pub fn segments(&self) -> impl Iterator<Item = Segment<'data>> + use<'data> {
        let elf = *self;
        (0..elf.segments.count).map_while(move |index| elf.segment_at(index))
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
        let segment = self.segments().find(|segment| segment.kind == PT_INTERP)?;
        let text = segment.data.split(|byte| *byte == 0).next()?;
        std::str::from_utf8(text).ok().filter(|text| !text.is_empty())
    }

    /// Returns true if the file has a dynamic section: ld.so loads it, or loads other files for it.
    pub fn is_dynamic(&self) -> bool {
        self.dynamic_data().is_some()
    }

    fn dynamic_data(&self) -> Option<&'data [u8]> {
        const SHT_DYNAMIC: u32 = 6;
        self.segments()
            .find(|segment| segment.kind == PT_DYNAMIC)
            .map(|segment| segment.data)
            .or_else(|| self.sections().find(|section| section.kind == SHT_DYNAMIC).map(|section| section.data))
            .filter(|data| !data.is_empty())
    }

    /// Returns the entries of the dynamic section, (tag, value), up to its end marker.
    pub fn dynamic(&self) -> impl Iterator<Item = (u64, u64)> + use<'data> {
        let class64 = self.class64;
        let width = if class64 { 8 } else { 4 };
        self.dynamic_data()
            .unwrap_or_default()
            .chunks_exact(width * 2)
            .filter_map(move |entry| Some((word_at(entry, 0, class64)?, word_at(entry, width, class64)?)))
            .take_while(|(tag, _)| *tag != 0)
    }

    /// Returns the value of the first entry with this tag.
    pub fn dynamic_value(&self, tag: u64) -> Option<u64> {
        self.dynamic().find(|(found, _)| *found == tag).map(|(_, value)| value)
    }

    /// The string table of the dynamic section.
    pub fn dynamic_strings(&self) -> &'data [u8] {
        let table = self.dynamic_value(tag::STRTAB).and_then(|address| self.at_address(address));
        if let Some(table) = table {
            let size = self.dynamic_value(tag::STRSZ).and_then(|size| usize::try_from(size).ok()).unwrap_or(usize::MAX);
            return &table[..table.len().min(size)];
        }
        // In an object without program headers, or if no segment contains the table, the sections locate it.
        let link = self.section_named(".dynamic").map(|section| section.link);
        link.and_then(|link| self.section_at(link.into())).map(|section| section.data).unwrap_or_default()
    }

    /// Returns the text at this offset of the dynamic section's string table.
    pub fn dynamic_string(&self, at: u64) -> Option<&'data [u8]> {
        text_at(self.dynamic_strings(), at)
    }

    /// Returns the texts of all entries with this tag, in order, as bytes, because a path need not be UTF-8.
    pub fn dynamic_texts(&self, tag: u64) -> impl Iterator<Item = &'data [u8]> + use<'data> {
        let mut strings = StringTable::new(self.dynamic_strings(), 0);
        self.dynamic().filter(move |(found, _)| *found == tag).filter_map(move |(_, at)| strings.name_at(at))
    }

    fn dynamic_text(&self, tag: u64) -> Option<&'data str> {
        self.dynamic_texts(tag).next().and_then(|text| std::str::from_utf8(text).ok())
    }

    /// Returns the libraries in `DT_NEEDED`, in order.
    pub fn needed(&self) -> Vec<&'data str> {
        self.dynamic_texts(tag::NEEDED).filter_map(|text| std::str::from_utf8(text).ok()).collect()
    }

    /// Returns `DT_SONAME`.
    pub fn soname(&self) -> Option<&'data str> {
        self.dynamic_text(tag::SONAME)
    }

    /// Returns `DT_RPATH`, as written.
    pub fn rpath(&self) -> Option<&'data str> {
        self.dynamic_text(tag::RPATH)
    }

    /// Returns `DT_RUNPATH`, as written.
    pub fn runpath(&self) -> Option<&'data str> {
        self.dynamic_text(tag::RUNPATH)
    }

    /// Returns each note once: first the notes of the note segments, then those of note sections outside of all
    /// segments (objects, and files whose linker put notes of different alignment into one segment).
    pub fn notes(&self) -> impl Iterator<Item = ElfNote<'data>> + use<'data> {
        let in_segments = self
            .segments()
            .filter(|segment| segment.kind == PT_NOTE)
            .map(|segment| (segment.data, segment.offset, segment.align));
        let in_sections = self
            .sections()
            .filter(|section| section.kind == SHT_NOTE)
            .map(|section| (section.data, section.offset, section.align));
        let mut seen = BTreeSet::new();
        // A byte may be in one segment and one section. If many pieces overlap, only the first are read.
        let mut left = self.data.len().saturating_mul(4);
        in_segments
            .chain(in_sections)
            .flat_map(move |(data, offset, align)| {
                let enough = data.len() > left;
                left = left.saturating_sub(data.len());
                Notes { data: if enough { &[] } else { data }, offset, align: if align == 8 { 8 } else { 4 } }
            })
            .filter(move |note| seen.insert(note.offset))
    }

    /// Returns true if the guard finds this note at start-up. It reads the program headers in memory: a `PT_NOTE` must contain the
    /// note at a multiple of four bytes, and a readable `PT_LOAD` must map it.
    pub fn maps_note(&self, descriptor_offset: u64) -> bool {
        /// Size of the note's header and owner.
        const BEFORE_DESCRIPTOR: u64 = 24;
        let Some(start) = descriptor_offset.checked_sub(BEFORE_DESCRIPTOR) else { return false };
        let contains =
            |segment: &Segment<'_>| start.checked_sub(segment.offset).is_some_and(|into| into < segment.file_size);
        self.segments()
            .any(|segment| segment.kind == PT_NOTE && contains(&segment) && (start - segment.offset) % 4 == 0)
            && self.segments().any(|segment| segment.kind == PT_LOAD && segment.flags & PF_R != 0 && contains(&segment))
    }

    /// Reads an entry of a symbol table.
    pub fn parse_symbol(&self, entry: &[u8], names: &'data [u8]) -> Option<Symbol<'data>> {
        let (value, size, info, other, section) = if self.class64 { (8, 16, 4, 5, 6) } else { (4, 8, 12, 13, 14) };
        let (info, other) = (*entry.get(info)?, *entry.get(other)?);
        // A symbol that sealing made weak counts as global, because the guard reports it if it is missing.
        let made_weak = other & MADE_WEAK != 0 && info >> 4 == 2;
        Some(Symbol {
            names,
            name: u32_at(entry, 0)?,
            value: word_at(entry, value, self.class64)?,
            size: word_at(entry, size, self.class64)?,
            section: u16_at(entry, section)?,
            binding: if made_weak { 1 } else { info >> 4 },
            kind: info & 15,
            visibility: other & 3,
        })
    }

    fn symbols_of(&self, table: &'data [u8], names: &'data [u8]) -> impl Iterator<Item = Symbol<'data>> + use<'data> {
        let elf = *self;
        // The first symbol is always empty.
        table
            .chunks_exact(if self.class64 { 24 } else { 16 })
            .skip(1)
            .filter_map(move |entry| elf.parse_symbol(entry, names))
    }

    fn symbol_section(&self, kind: u32) -> Option<(&'data [u8], &'data [u8])> {
        let section = self.sections().find(|section| section.kind == kind && !section.data.is_empty())?;
        Some((section.data, self.section_at(section.link.into())?.data))
    }

    /// Returns the number of dynamic symbols from the hash tables. Without section headers, only these contain it.
    fn dynamic_symbol_count(&self) -> Option<usize> {
        if let Some(table) = self.dynamic_value(tag::HASH).and_then(|address| self.at_address(address)) {
            return usize::try_from(u32_at(table, 4)?).ok();
        }
        let table = self.dynamic_value(tag::GNU_HASH).and_then(|address| self.at_address(address))?;
        let usize_at = |at: usize| u32_at(table, at).and_then(|number| usize::try_from(number).ok());
        let (buckets, first, bloom) = (usize_at(0)?, usize_at(4)?, usize_at(8)?);
        let buckets_at = bloom.checked_mul(if self.class64 { 8 } else { 4 })?.checked_add(16)?;
        let chains_at = buckets.checked_mul(4)?.checked_add(buckets_at)?;
        let bucket_bytes = table.get(buckets_at..chains_at)?;
        let last = bucket_bytes.chunks_exact(4).filter_map(|bucket| u32_at(bucket, 0)).max().unwrap_or(0);
        let last = usize::try_from(last).ok()?;
        if last < first {
            return Some(first);
        }
        // The last bucket's chain ends at the hash whose lowest bit is set.
        let chain = table.get((last - first).checked_mul(4)?.checked_add(chains_at)?..)?;
        let length = chain.chunks_exact(4).position(|hash| hash[0] & 1 == 1)?;
        last.checked_add(length)?.checked_add(1)
    }

    fn dynamic_symbol_table(&self) -> Option<(&'data [u8], &'data [u8])> {
        if let Some(found) = self.symbol_section(SHT_DYNSYM) {
            return Some(found);
        }
        let table = self.dynamic_value(tag::SYMTAB).and_then(|address| self.at_address(address))?;
        let size = self.dynamic_symbol_count()?.checked_mul(if self.class64 { 24 } else { 16 })?;
        Some((table.get(..size)?, self.dynamic_strings()))
    }

    /// Returns the symbols that the loader sees: those of `.dynsym`, or those of the dynamic section if there are no
    /// section headers.
    pub fn dynamic_symbols(&self) -> impl Iterator<Item = Symbol<'data>> + use<'data> {
        let (table, names) = self.dynamic_symbol_table().unwrap_or_default();
        self.symbols_of(table, names)
    }

    /// Returns all symbols: those of `.symtab` if the file is not stripped, otherwise those of
    /// [`Elf::dynamic_symbols`].
    pub fn symbols(&self) -> impl Iterator<Item = Symbol<'data>> + use<'data> {
        let (table, names) =
            self.symbol_section(SHT_SYMTAB).or_else(|| self.dynamic_symbol_table()).unwrap_or_default();
        self.symbols_of(table, names)
    }

    /// Returns true if the file exports a symbol with this name.
    pub fn has_export(&self, name: &str) -> bool {
        self.dynamic_symbols().any(|symbol| symbol.is_exported() && symbol.has_name(name))
    }

    /// Returns the value of an exported 4-byte data object, in which some libraries store their version. Relocations
    /// are not applied, because a plain number has none.
    pub fn exported_u32(&self, name: &str) -> Option<u32> {
        const OBJECT: u8 = 1;
        let found = self.dynamic_symbols().find(|symbol| {
            symbol.is_exported() && symbol.kind == OBJECT && symbol.size == 4 && symbol.has_name(name)
        })?;
        u32_at(self.at_address(found.value)?, 0)
    }

    /// Returns the machine code of an exported function.
    pub fn exported_code(&self, name: &str) -> Option<&'data [u8]> {
        const FUNCTION: u8 = 2;
        let found = self
            .dynamic_symbols()
            .find(|symbol| symbol.is_exported() && symbol.kind == FUNCTION && symbol.has_name(name))?;
        self.at_address(found.value)?.get(..usize::try_from(found.size).ok()?)
    }

    /// Returns the symbol versions that this object requires, (library, version). Weak ones are skipped, because they
    /// may be missing.
    pub fn needed_versions(&self) -> impl Iterator<Item = (&'data str, &'data str)> + use<'data> {
        const WEAK: u16 = 2;
        let table = self.dynamic_value(tag::VERNEED).and_then(|address| self.at_address(address)).unwrap_or_default();
        let strings = self.dynamic_strings();
        let text = move |at: u32| {
            text_within(strings, at.into(), LONGEST_VERSION).and_then(|text| std::str::from_utf8(text).ok())
        };
        // A record contains the library; its list of versions is elsewhere in the table.
        let records = linked_records(table, Some(0), 12, 16).take(MOST_VERSIONS);
        records.flat_map(move |record| {
            let file = u32_at(record, 4).and_then(text);
            let start = u32_at(record, 8).and_then(|skip| usize::try_from(skip).ok());
            let versions = linked_records(record, start.filter(|_| file.is_some()), 12, 16).take(MOST_VERSIONS);
            versions
                .filter(|version| u16_at(version, 4).is_some_and(|flags| flags & WEAK == 0))
                .filter_map(move |version| Some((file?, u32_at(version, 8).and_then(text)?)))
        })
    }

    /// Returns the symbol versions that this object defines.
    pub fn defined_versions(&self) -> impl Iterator<Item = &'data str> + use<'data> {
        let table = self.dynamic_value(tag::VERDEF).and_then(|address| self.at_address(address)).unwrap_or_default();
        let strings = self.dynamic_strings();
        linked_records(table, Some(0), 16, 20).take(MOST_VERSIONS).filter_map(move |record| {
            let first = record.get(usize::try_from(u32_at(record, 12)?).ok()?..)?;
            std::str::from_utf8(text_within(strings, u32_at(first, 0)?.into(), LONGEST_VERSION)?).ok()
        })
    }

    /// Returns the names of undefined symbols: the dynamic ones of a linked file, or all of an object.
    pub fn undefined_symbols(&self) -> impl Iterator<Item = &'data str> + use<'data> {
        let (table, names) =
            if self.kind == kind::OBJECT { self.symbol_section(SHT_SYMTAB) } else { self.dynamic_symbol_table() }
                .unwrap_or_default();
        let mut texts = StringTable::new(names, table.len() as u64 / 16);
        let wanted = self.symbols_of(table, names).filter(Symbol::is_undefined);
        wanted.filter_map(move |symbol| std::str::from_utf8(texts.name_at(symbol.name.into())?).ok())
    }
}

/// Iterates over records that contain, at offset `link`, the distance to the next record; 0 ends the list. The list
/// only goes forward, so it ends with the data.
pub fn linked_records(
    data: &[u8],
    start: Option<usize>,
    link: usize,
    size: usize,
) -> impl Iterator<Item = &[u8]> + use<'_> {
    let mut at = start;
    std::iter::from_fn(move || {
        let here = data.get(at?..).filter(|here| here.len() >= size)?;
        let skip = usize::try_from(u32_at(here, link)?).ok()?;
        at = if skip == 0 { None } else { at?.checked_add(skip) };
        Some(here)
    })
}

struct Notes<'data> {
    data: &'data [u8],
    offset: u64,
    align: usize,
}

impl<'data> Iterator for Notes<'data> {
    type Item = ElfNote<'data>;

    fn next(&mut self) -> Option<ElfNote<'data>> {
        let owner_size = usize::try_from(u32_at(self.data, 0)?).ok()?;
        let desc_size = usize::try_from(u32_at(self.data, 4)?).ok()?;
        let kind = u32_at(self.data, 8)?;
        let owner = self.data.get(12..12_usize.checked_add(owner_size)?)?;
        let desc_at = 12_usize.checked_add(owner_size)?.checked_next_multiple_of(self.align)?;
        let end = desc_at.checked_add(desc_size)?;
        let desc = self.data.get(desc_at..end)?;
        let note = ElfNote {
            owner: std::str::from_utf8(owner.strip_suffix(&[0]).unwrap_or(owner)).unwrap_or_default(),
            kind,
            desc,
            offset: self.offset.checked_add(desc_at as u64)?,
        };
        // The last note of a segment need not be padded.
        let next = end.checked_next_multiple_of(self.align)?.min(self.data.len());
        self.data = &self.data[next..];
        self.offset = self.offset.checked_add(next as u64)?;
        Some(note)
    }
}

/// A member of an `ar` archive.
#[derive(Clone, Debug)]
pub struct ArMember<'data> {
    /// Name of the member.
    pub name: Cow<'data, str>,
    /// Contents of the member; `None` in a thin archive, which contains only names.
    pub data: Option<&'data [u8]>,
    /// Offset of the contents in the archive.
    pub offset: u64,
}

/// Returns true if these bytes start with the magic number of an archive or a thin archive.
pub fn is_archive(data: &[u8]) -> bool {
    data.starts_with(b"!<arch>\n") || data.starts_with(b"!<thin>\n")
}

/// Returns the members of an `ar` archive, in order, without the archive's symbol and name tables. Supports the long
/// names of GNU and BSD. Damage ends the iteration with an error that contains its position.
pub fn archive_members(data: &[u8]) -> Result<impl Iterator<Item = Result<ArMember<'_>, String>> + use<'_>, String> {
    if !is_archive(data) {
        return Err("is not an archive".to_owned());
    }
    Ok(Archive { data, at: 8, thin: data.starts_with(b"!<thin>\n"), names: &[] })
}

struct Archive<'data> {
    data: &'data [u8],
    at: usize,
    thin: bool,
    names: &'data [u8],
}

impl<'data> Archive<'data> {
    /// Reads the next member. `Ok(None)` if it is one of the archive's own tables.
    fn next_member(&mut self) -> Result<Option<ArMember<'data>>, String> {
        let at = self.at;
        let damaged = |what: &str| format!("is damaged or cut off: {what} at byte {at}");
        let header = self.data.get(at..at + 60).ok_or_else(|| damaged("the header of a member"))?;
        if &header[58..] != b"`\n" {
            return Err(damaged("no member's header"));
        }
        let number = |field: &[u8]| {
            std::str::from_utf8(field).ok().and_then(|text| text.trim_end_matches([' ', '\0']).parse::<usize>().ok())
        };
        let size = number(&header[48..58]).ok_or_else(|| damaged("the size of a member"))?;
        let field = header[..16].trim_ascii_end();
        let table = field == b"/" || field == b"/SYM64/";
        let names = field == b"//";
        let start = at + 60;
        let stored = if self.thin && !table && !names { 0 } else { size };
        let end = start.checked_add(stored).ok_or_else(|| damaged("the size of a member"))?;
        let mut body =
            self.data.get(start..end).ok_or_else(|| damaged("a member that goes on behind the end of the file"))?;
        // Members start at even bytes.
        self.at = end.checked_next_multiple_of(2).unwrap_or(end);
        if names {
            self.names = body;
        }
        if table || names {
            return Ok(None);
        }
        let mut offset = start;
        let name = if let Some(length) = field.strip_prefix(b"#1/") {
            let length = number(length).filter(|length| *length <= body.len()).ok_or_else(|| damaged("a long name"))?;
            let (name, rest) = body.split_at(length);
            body = rest;
            offset += length;
            name.split(|byte| *byte == 0).next().unwrap_or_default()
        } else if let Some(place) = field.strip_prefix(b"/") {
            let rest = number(place).and_then(|place| self.names.get(place..));
            let rest = rest.ok_or_else(|| damaged("the place of a long name"))?;
            let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
            line.strip_suffix(b"/").unwrap_or(line)
        } else {
            field.strip_suffix(b"/").unwrap_or(field)
        };
        if name.starts_with(b"__.SYMDEF") {
            return Ok(None);
        }
        let data = (!self.thin).then_some(body);
        Ok(Some(ArMember { name: String::from_utf8_lossy(name), data, offset: offset as u64 }))
    }
}

impl<'data> Iterator for Archive<'data> {
    type Item = Result<ArMember<'data>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.data.len() {
            match self.next_member() {
                Ok(Some(member)) => return Some(Ok(member)),
                Ok(None) => {}
                Err(error) => {
                    self.at = self.data.len();
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
