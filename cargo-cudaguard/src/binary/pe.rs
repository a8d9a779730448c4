//! Reader for Windows PE files (programs, DLLs, Python extension modules), 32 and 64 bits. It reads within bounds, copies no
//! section and executes nothing.
//!
//! The `object` crate parses headers and tables. This module adds limits, so that a crafted file costs no more than its size:
//! names end after `LONGEST_NAME` bytes, and each table after a fixed number of entries.

mod notes;
mod object_file;
mod version_resource;

use std::ops::Range;

use object::LittleEndian as LE;
use object::pe;
use object::read::pe::{
    DataDirectories, ImageNtHeaders, ImageOptionalHeader, ImageThunkData, ImportThunkList, ResourceDirectory,
    SectionTable,
};

use cudaguard::internal::bytes::u32_at;
use cudaguard::internal::file_error::FileProblem;
use object::elf::{EM_386, EM_AARCH64, EM_ARM, EM_NONE, EM_X86_64, Machine};

pub use object_file::CoffObject;
pub use version_resource::VersionResource;
pub(crate) use version_resource::version_in_resource;

/// The loader refuses images with more sections (PE format, COFF file header).
const MOST_SECTIONS: usize = 96;
/// Limits well above real files: `cudnn_graph64_9.dll` has about 1400 exports.
const MOST_DLLS: usize = 1 << 12;
const MOST_FUNCTIONS: usize = 1 << 17;
/// The longest decorated name that MSVC writes.
const LONGEST_NAME: usize = 4096;
/// UPX names its sections `UPX0`, `UPX1`.
const UPX: &str = "UPX";

/// A view of the bytes of a PE file.
#[derive(Clone, Copy, Debug)]
pub struct Pe<'data> {
    data: &'data [u8],
    machine: pe::Machine,
    flags: pe::FileFlags,
    is_64_bit: bool,
    image_base: u64,
    symbols: (u32, u32),
    headers_end: u64,
    sections: SectionTable<'data>,
    directories: DataDirectories<'data>,
}

/// A section of a PE file.
#[derive(Clone, Copy, Debug)]
pub struct PeSection<'data> {
    /// The name: at most eight characters in an image, so `.nv_fatbin` is `.nv_fatb`.
    pub name: &'data str,
    /// The address in memory, relative to the image base.
    pub address: u32,
    /// The offset in the file.
    pub offset: u64,
    /// The bytes in the file; empty if they are not within the file.
    pub data: &'data [u8],
    /// Set if the section contains machine code.
    pub is_code: bool,
    /// Set if the program may write to the section.
    pub is_writable: bool,
}

/// A DLL that a PE file imports from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedDll<'data> {
    /// The name as written: `cudart64_13.dll`.
    pub name: &'data str,
    /// The functions that are imported by name.
    pub functions: Vec<&'data str>,
    /// Set if the DLL is loaded at the first call of one of its functions, not at start-up.
    pub is_delayed: bool,
}

fn machine_number(machine: pe::Machine) -> Machine {
    match machine {
        pe::IMAGE_FILE_MACHINE_AMD64 => EM_X86_64,
        pe::IMAGE_FILE_MACHINE_ARM64 | pe::IMAGE_FILE_MACHINE_ARM64EC => EM_AARCH64,
        pe::IMAGE_FILE_MACHINE_I386 => EM_386,
        pe::IMAGE_FILE_MACHINE_ARMNT => EM_ARM,
        _ => EM_NONE,
    }
}

/// Returns the offset of the PE header that a DOS header states.
fn header_offset(data: &[u8]) -> Option<usize> {
    u32_at(data, 60).filter(|_| data.starts_with(b"MZ")).map(|offset| offset as usize)
}

impl<'data> Pe<'data> {
    /// Returns true if the bytes are those of a PE file.
    pub fn is_pe(data: &[u8]) -> bool {
        header_offset(data).and_then(|at| data.get(at..)).is_some_and(|rest| rest.starts_with(b"PE\0\0"))
    }

    /// Returns true if a file with these first bytes may be a PE file: its header may follow them.
    pub fn may_be_pe(head: &[u8]) -> bool {
        Self::is_pe(head) || header_offset(head).is_some_and(|at| at >= head.len())
    }

    /// Parses the headers.
    ///
    /// # Errors
    /// If the file is no PE image, or its headers are not within the file.
    pub fn parse(data: &'data [u8]) -> Result<Self, FileProblem> {
        let parsed = match object::read::pe::optional_header_magic(data) {
            Ok(pe::IMAGE_NT_OPTIONAL_HDR64_MAGIC) => Self::parse_headers::<pe::ImageNtHeaders64>(data),
            Ok(pe::IMAGE_NT_OPTIONAL_HDR32_MAGIC) => Self::parse_headers::<pe::ImageNtHeaders32>(data),
            Ok(other) => {
                let what = format!("is a PE file with the unknown optional header {other:#x}");
                return Err(FileProblem::unsupported(what));
            }
            Err(error) => Err(error),
        };
        let parsed =
            parsed.map_err(|error| FileProblem::damaged(format!("is a damaged or truncated PE file: {error}")))?;
        match parsed.sections.len() {
            0..=MOST_SECTIONS => Ok(parsed),
            count => Err(FileProblem::damaged(format!(
                "is a damaged PE file: {count} sections, and Windows loads at most {MOST_SECTIONS}"
            ))),
        }
    }

    fn parse_headers<Headers: ImageNtHeaders>(data: &'data [u8]) -> Result<Self, object::read::Error> {
        let mut offset = pe::ImageDosHeader::parse(data)?.nt_headers_offset().into();
        let (headers, directories) = Headers::parse(data, &mut offset)?;
        let sections = headers.sections(data, offset)?;
        let file = headers.file_header();
        Ok(Self {
            data,
            machine: file.machine.get(LE),
            flags: file.characteristics.get(LE),
            is_64_bit: headers.is_type_64(),
            image_base: headers.optional_header().image_base(),
            symbols: (file.pointer_to_symbol_table.get(LE), file.number_of_symbols.get(LE)),
            headers_end: headers.optional_header().size_of_headers().into(),
            sections,
            directories,
        })
    }

    /// Returns the processor as an ELF file would number it; `EM_NONE` if it has no number there.
    pub fn machine(&self) -> Machine {
        // The header of an ARM64EC image names x86-64.
        let is_for_arm = self.machine == pe::IMAGE_FILE_MACHINE_AMD64 && self.is_hybrid();
        if is_for_arm { EM_AARCH64 } else { machine_number(self.machine) }
    }

    /// Returns true for an image with code for ARM64 and x86-64 (ARM64EC, ARM64X): its load configuration has a table of both.
    pub fn is_hybrid(&self) -> bool {
        const HYBRID_TABLE: usize = 200;
        let directory = self.directories.get(pe::IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG);
        let load_config = directory.and_then(|directory| self.at_address(directory.virtual_address.get(LE)));
        let Some(bytes) = load_config.filter(|_| self.is_64_bit) else { return false };
        let size = bytes.first_chunk().map_or(0, |size| u32::from_le_bytes(*size) as usize);
        let table = bytes.get(..size).and_then(|bytes| bytes.get(HYBRID_TABLE..HYBRID_TABLE + 8));
        table.is_some_and(|pointer| pointer.iter().any(|byte| *byte != 0))
    }

    /// Returns the processor that the image is for; `None` if it is for several.
    pub fn processor(&self) -> Option<Machine> {
        (!self.is_hybrid()).then(|| self.machine())
    }

    /// Returns what of the image no rule of this crate covers: code for an unknown processor, or code for .NET.
    pub fn foreign_code(&self) -> Option<String> {
        if machine_number(self.machine) == EM_NONE {
            return Some(format!("code for an unknown processor ({:#06x})", self.machine.0));
        }
        let is_managed = self.directories.get(pe::IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR).is_some();
        is_managed.then(|| "code for .NET, whose metadata names the libraries that it loads".to_owned())
    }

    /// Returns true for a 64-bit image.
    pub fn is_64_bit(&self) -> bool {
        self.is_64_bit
    }

    /// Returns true for a DLL, of whatever file name.
    pub fn is_dll(&self) -> bool {
        self.flags.contains(pe::IMAGE_FILE_DLL)
    }

    /// Returns the sections, in the order of the file.
    pub fn sections(&self) -> impl Iterator<Item = PeSection<'data>> + use<'data> {
        let data = self.data;
        self.sections.iter().map(move |section| {
            let flags = section.characteristics.get(LE);
            let name = section.name.as_slice();
            let name = &name[..name.iter().position(|byte| *byte == 0).unwrap_or(name.len())];
            PeSection {
                name: std::str::from_utf8(name).unwrap_or_default(),
                address: section.virtual_address.get(LE),
                offset: section.pe_file_range().0.into(),
                data: section.pe_data(data).unwrap_or_default(),
                is_code: flags.contains(pe::IMAGE_SCN_MEM_EXECUTE) || flags.contains(pe::IMAGE_SCN_CNT_CODE),
                is_writable: flags.contains(pe::IMAGE_SCN_MEM_WRITE),
            }
        })
    }

    /// Returns the bytes from an address to the end of its section.
    fn at_address(&self, address: u32) -> Option<&'data [u8]> {
        self.sections.pe_data_at(self.data, address)
    }

    /// Returns the offset in the file of a pointer that the image contains.
    pub fn offset_of_pointer(&self, pointer: u64) -> Option<u64> {
        let address = u32::try_from(pointer.checked_sub(self.image_base)?).ok()?;
        self.sections.pe_file_range_at(address).map(|(offset, _)| offset.into())
    }

    fn name_at(&self, address: u32) -> Option<&'data str> {
        let bytes = self.at_address(address)?;
        let end = bytes.iter().take(LONGEST_NAME).position(|byte| *byte == 0)?;
        std::str::from_utf8(&bytes[..end]).ok().filter(|name| !name.is_empty())
    }

    /// Returns the DLLs that the file imports from: those that load at start-up, then the delay-loaded ones.
    pub fn imports(&self) -> Vec<ImportedDll<'data>> {
        if self.is_64_bit {
            self.imports_of::<pe::ImageNtHeaders64>()
        } else {
            self.imports_of::<pe::ImageNtHeaders32>()
        }
    }

    fn imports_of<Headers: ImageNtHeaders>(&self) -> Vec<ImportedDll<'data>> {
        let mut dlls = Vec::new();
        let mut left = MOST_FUNCTIONS;
        if let Ok(Some(table)) = self.directories.import_table(self.data, &self.sections) {
            let mut descriptors = table.descriptors();
            while let Ok(Some(descriptor)) =
                descriptors.as_mut().map_err(|_| ()).and_then(|all| all.next().map_err(|_| ()))
            {
                if dlls.len() == MOST_DLLS {
                    break;
                }
                // Bound images keep names in the first table alone; Borland wrote the second alone.
                let [first, second] = [descriptor.original_first_thunk.get(LE), descriptor.first_thunk.get(LE)];
                let thunks = table.thunks(if first == 0 { second } else { first }).ok();
                if let Some(name) = self.name_at(descriptor.name.get(LE)) {
                    let functions = self.functions_of::<Headers>(thunks, &mut left);
                    dlls.push(ImportedDll { name, functions, is_delayed: false });
                }
            }
        }
        let at_start = dlls.len();
        if let Ok(Some(table)) = self.directories.delay_load_import_table(self.data, &self.sections) {
            let mut descriptors = table.descriptors();
            while let Ok(Some(descriptor)) =
                descriptors.as_mut().map_err(|_| ()).and_then(|all| all.next().map_err(|_| ()))
            {
                if dlls.len() - at_start == MOST_DLLS {
                    break;
                }
                // Linkers before Visual C++ 7 wrote addresses in memory. Visual C++ 6 exists for 32 bits only.
                let base = u32::try_from(self.image_base).ok().filter(|_| descriptor.attributes.get(LE) & 1 == 0);
                let base = base.unwrap_or_default();
                let [names, name] = [descriptor.import_name_table_rva, descriptor.dll_name_rva]
                    .map(|address| address.get(LE).wrapping_sub(base));
                let thunks = table.thunks(names).ok().filter(|_| base == 0);
                if let Some(name) = self.name_at(name) {
                    let functions = self.functions_of::<Headers>(thunks, &mut left);
                    dlls.push(ImportedDll { name, functions, is_delayed: true });
                }
            }
        }
        dlls
    }

    fn functions_of<Headers: ImageNtHeaders>(
        &self,
        thunks: Option<ImportThunkList<'data>>,
        left: &mut usize,
    ) -> Vec<&'data str> {
        let mut functions = Vec::new();
        let Some(mut thunks) = thunks else { return functions };
        while let Ok(Some(thunk)) = thunks.next::<Headers>() {
            if *left == 0 {
                break;
            }
            *left -= 1;
            if !thunk.is_ordinal() {
                // A hint of two bytes precedes the name.
                functions.extend(thunk.address().checked_add(2).and_then(|address| self.name_at(address)));
            }
        }
        functions
    }

    /// Returns the name that a DLL was linked as; the file may have been renamed since.
    pub fn dll_name(&self) -> Option<&'data str> {
        self.name_at(self.exports()?.directory().name.get(LE))
    }

    fn exports(&self) -> Option<object::read::pe::ExportTable<'data>> {
        self.directories.export_table(self.data, &self.sections).ok().flatten()
    }

    /// Returns the names of the exported functions and variables.
    pub fn exported_names(&self) -> impl Iterator<Item = &'data str> + use<'data> {
        let image = *self;
        let pointers = self.exports().map_or(&[][..], |table| table.name_pointers());
        pointers.iter().take(MOST_FUNCTIONS).filter_map(move |pointer| image.name_at(pointer.get(LE)))
    }

    /// Returns the value of an exported variable of four bytes.
    pub fn exported_u32(&self, name: &str) -> Option<u32> {
        let address = self.exported_address(name)?;
        let (section, at) = self.sections().find_map(|section| {
            let at = address.checked_sub(section.address)? as usize;
            (at < section.data.len()).then_some((section, at))
        })?;
        u32_at(section.data, at).filter(|_| !section.is_code)
    }

    /// Returns the machine code of an exported function of an x86-64 image. The exception table has its length.
    pub fn exported_code(&self, name: &str) -> Option<&'data [u8]> {
        const ENTRY: usize = 12;
        let address = self.exported_address(name)?;
        let table = self.sections().find(|section| section.name == ".pdata")?.data;
        let (mut low, mut high) = (0, table.len() / ENTRY);
        while low < high {
            let middle = low + (high - low) / 2;
            match u32_at(table, middle * ENTRY)? {
                // Zeros fill the section after the last entry.
                start if start != 0 && start < address => low = middle + 1,
                _ => high = middle,
            }
        }
        let end = u32_at(table, low * ENTRY + 4).filter(|_| u32_at(table, low * ENTRY) == Some(address))?;
        self.at_address(address)?.get(..end.checked_sub(address)?.try_into().ok()?)
    }

    fn exported_address(&self, name: &str) -> Option<u32> {
        let table = self.exports()?;
        let mut names = table.name_iter().take(MOST_FUNCTIONS);
        let (_, index) = names.find(|(pointer, _)| self.name_at(*pointer) == Some(name))?;
        table.address_by_index(index).ok().filter(|address| !table.is_forward(*address))
    }

    /// Returns the version resource; `None` if there is none.
    pub fn version(&self) -> Option<VersionResource> {
        const ENTRIES: usize = 64;
        let directory = self.directories.get(pe::IMAGE_DIRECTORY_ENTRY_RESOURCE)?;
        let resources = ResourceDirectory::new(self.at_address(directory.virtual_address.get(LE))?);
        let mut types = resources.root().ok()?.entries.iter().take(ENTRIES);
        let of_type = types.find(|entry| entry.name_or_id().id() == Some(pe::RT_VERSION) && entry.is_table())?;
        let by_language = of_type.data(resources).ok()?.table()?.entries.first()?.data(resources).ok()?.table()?;
        let entry = by_language.entries.first()?.data(resources).ok()?.data()?;
        let data = self.at_address(entry.offset_to_data.get(LE))?;
        let size = usize::try_from(entry.size.get(LE)).ok()?;
        VersionResource::parse(&data[..size.min(data.len())])
    }

    /// Returns what the headers describe and the file does not contain: the file was truncated or damaged.
    pub fn find_damage(&self) -> Option<String> {
        let size = self.data.len() as u64;
        for section in self.sections.iter() {
            let [at, length] = [section.pointer_to_raw_data.get(LE), section.size_of_raw_data.get(LE)].map(u64::from);
            if length != 0 && at != 0 && at + length > size {
                let name = String::from_utf8_lossy(section.raw_name()).into_owned();
                return Some(format!(
                    "is truncated or damaged: section `{name}` has {length} bytes at {at}, the file {size}"
                ));
            }
        }
        for (index, name) in [
            (pe::IMAGE_DIRECTORY_ENTRY_IMPORT, "import"),
            (pe::IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT, "delay-import"),
            (pe::IMAGE_DIRECTORY_ENTRY_EXPORT, "export"),
        ] {
            let directory = self.directories.get(index);
            if directory.is_some_and(|directory| self.at_address(directory.virtual_address.get(LE)).is_none()) {
                return Some(format!("is damaged: its {name} table is in no section"));
            }
        }
        None
    }

    /// Returns true if UPX packed the image: its code and data can be read after `upx -d`.
    pub fn is_packed(&self) -> bool {
        self.sections().any(|section| section.name.starts_with(UPX))
    }

    /// Returns the bytes that no header describes, after the image: data that an installer or a packer added. Signatures and the
    /// symbols of MinGW are part of the image.
    pub fn trailing(&self) -> &'data [u8] {
        let mut end = self.sections.max_section_file_offset().max(self.headers_end);
        let (at, count) = self.symbols;
        if at != 0 && count != 0 {
            let strings = u64::from(at) + u64::from(count) * pe::IMAGE_SIZEOF_SYMBOL as u64;
            let size = self.data_at(strings..strings.saturating_add(4)).and_then(|size| u32_at(size, 0));
            end = end.max(size.map_or(strings, |size| strings + u64::from(size)));
        }
        // The address of this directory is an offset in the file.
        if let Some(directory) = self.directories.get(pe::IMAGE_DIRECTORY_ENTRY_SECURITY) {
            let (at, size) = directory.address_range();
            let before = end..u64::from(at);
            if self.data_at(before).is_none_or(|bytes| bytes.iter().all(|byte| *byte == 0)) {
                end = end.max(u64::from(at) + u64::from(size));
            }
        }
        usize::try_from(end).ok().and_then(|end| self.data.get(end..)).unwrap_or_default()
    }

    fn data_at(&self, range: Range<u64>) -> Option<&'data [u8]> {
        self.data.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
    }
}

#[cfg(test)]
pub(crate) mod tests;
