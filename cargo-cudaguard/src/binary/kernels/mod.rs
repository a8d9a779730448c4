//! Reads the GPU code of any file and computes which GPUs it supports.
//!
//! Reads ELF programs, libraries, objects and archives, and bare `.fatbin`, `.cubin`, `.ptx` and `.ltoir` files,
//! without any NVIDIA tool. Headers are read in place; an image is unpacked only if it is small and its headers do not
//! show whether it contains a kernel.
//!
//! [`Kernels::entries`] lists every image. GPU support is computed per container, as the CUDA runtime loads them
//! ([`Kernels::gpu_support`]): a container is the code of one translation unit, and if it has nothing for a GPU, it
//! fails there, whatever the other containers have.

mod cover;
mod cubin;
mod fatbin;
mod lto;
mod provenance;
mod ptx;
mod read;
mod scan;
mod unpack;
mod view;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use crate::binary::mapped_file::Contents;
use cudaguard::internal::arch::{Arch, Target};
use cudaguard::internal::file_error::{FileError, FileProblem};
use cudaguard::internal::tables;
use cudaguard::internal::version::CudaVersion;
use object::elf::EM_CUDA;

/// The sections of an object or linked file in which nvcc and clang put GPU code.
pub(crate) const SECTIONS: [&str; 2] = [read::WHOLE, read::RELOCATABLE];

pub use cover::{Cover, Group};
pub use cudaguard::internal::coverage::requirements::{Coverage, GpuSupport};
pub use fatbin::Compression;
pub use provenance::{Known, Provenance};
pub(crate) use read::describe_unknown_form;

/// The GPU code of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernels {
    entries: Vec<KernelImage>,
    containers: Vec<Container>,
    places: Vec<KernelPlace>,
    warnings: Vec<String>,
    units: cover::Units,
    /// True for a library that NVIDIA publishes.
    published: bool,
    /// The compute capabilities for which other files of the same package have machine code.
    covered_by_others: BTreeSet<(u8, u8)>,
}

/// An image: the code of a container for one arch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelImage {
    /// The kind of code.
    pub kind: ImageKind,
    /// The arch that it is compiled for.
    pub arch: Arch,
    /// (major, minor): the ISA of PTX, the ELF ABI of a cubin, and for other kinds the numbers in the file.
    pub version: (u16, u16),
    /// True if compiled for debugging (`-G`).
    pub debug: bool,
    /// The compression.
    pub compression: Compression,
    /// Bytes in the file. Images that are compressed together have their unpacked size here.
    pub size: u64,
    /// Size of the unpacked image in bytes.
    pub unpacked: u64,
    /// Offset in the file of its header, or of the first byte of a bare image.
    pub offset: u64,
    /// Index of its container in [`Kernels::containers`].
    pub container: u32,
}

/// The kind of an image. NVIDIA adds new kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImageKind {
    /// PTX, which the driver compiles.
    Ptx,
    /// Machine code.
    Cubin,
    /// Intermediate code that a device linker translates to machine code; no GPU can run it directly.
    LtoIr,
    /// PTX to be linked with other PTX (`-reloc-ptx`).
    RelocatablePtx,
    /// Tile IR, which the driver compiles.
    TileIr,
    /// An unknown kind, by its number.
    Other(u16),
}

/// The format of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImageForm {
    /// A fatbin.
    Fatbin,
    /// A bare cubin.
    Cubin,
    /// Bare PTX text.
    Ptx,
    /// Bare LTO-IR.
    LtoIr,
}

/// The role of a container in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Code that the program runs.
    Kernels,
    /// Code that the program runs, linked by the device linker from [`Role::Input`]s.
    Linked,
    /// Relocatable code that was linked into a [`Role::Linked`]: only its PTX counts, for newer GPUs. In an archive without
    /// any, the input of a device linker, which no driver loads.
    Input,
    /// No kernel: from a source file without any, or the empty container that nvcc's device linker adds to every
    /// program.
    Empty,
    /// libcudadevrt, which every toolkit links completely.
    DeviceRuntime,
    /// Only LTO-IR: the program has it compiled to machine code at run time, and the file does not record for which
    /// GPUs.
    LinkTime,
    /// A bare image in the data of a file whose fatbins have kernels: it does not affect GPU support, but the driver must
    /// compile its PTX.
    Aside,
}

/// A container: images of the same code for several GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The format.
    pub form: ImageForm,
    /// The role.
    pub role: Role,
    /// Offset in the file.
    pub offset: u64,
    /// Size in bytes, including headers.
    pub size: u64,
    /// The source or object that it was built from, if known: `kernels.cu`.
    pub origin: Option<String>,
    place: u32,
    entries: Range<u32>,
    /// Hash of the kernel names of a bare image; 0 for other formats.
    kernels: u64,
    /// The CUDA major in the header of its machine code; 0 if it is unknown.
    compiled_by: u32,
    /// True for PTX text that [`ptx::Ptx::sets_conditions`].
    sets_conditions: bool,
    damaged: bool,
}

impl Container {
    /// Returns a container with default values.
    fn unknown() -> Self {
        Self {
            form: ImageForm::Fatbin,
            role: Role::Kernels,
            offset: 0,
            size: 0,
            origin: None,
            place: 0,
            entries: 0..0,
            kernels: 0,
            compiled_by: 0,
            sets_conditions: false,
            damaged: false,
        }
    }
}

/// The location of a container: section and archive member.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KernelPlace {
    /// The member, if the file is an archive.
    member: Option<String>,
    /// Empty in a file without sections.
    section: String,
}

/// Returns true for the code of an archive.
fn is_archive(places: &[KernelPlace]) -> bool {
    places.iter().any(|place| place.member.is_some())
}

impl ImageKind {
    fn from_number(number: u16) -> Self {
        match number {
            fatbin::kind::PTX => Self::Ptx,
            fatbin::kind::CUBIN => Self::Cubin,
            fatbin::kind::LTO_IR => Self::LtoIr,
            fatbin::kind::RELOCATABLE_PTX => Self::RelocatablePtx,
            fatbin::kind::TILE_IR => Self::TileIr,
            other => Self::Other(other),
        }
    }
}

impl std::fmt::Display for ImageKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ptx => "ptx",
            Self::Cubin => "cubin",
            Self::LtoIr => "lto",
            Self::RelocatablePtx => "relocatable ptx",
            Self::TileIr => "tile",
            Self::Other(number) => return write!(f, "kind {number:#x}"),
        })
    }
}

/// An ISA that no driver of the tables compiles.
const NEWER_THAN_TABLES: (u16, u16) = (99, 0);

impl KernelImage {
    /// Returns the name that toolkits use for the arch: `sm_90a`, `compute_90`, `lto_80`.
    pub fn arch_name(&self) -> String {
        let prefix = match self.kind {
            ImageKind::Ptx | ImageKind::RelocatablePtx => "compute",
            ImageKind::LtoIr => "lto",
            ImageKind::TileIr => "tile",
            _ => "sm",
        };
        format!("{prefix}_{}", self.arch)
    }

    /// Returns the PTX ISA, or `None` if the image is not PTX.
    pub fn ptx_isa(&self) -> Option<(u16, u16)> {
        matches!(self.kind, ImageKind::Ptx | ImageKind::RelocatablePtx).then_some(self.version)
    }

    /// Returns the PTX ISA of the oldest driver that compiles the image; `None` for machine code. A driver compiles Tile IR of
    /// its own CUDA version and of older ones, as it does PTX.
    pub fn driver_isa(&self) -> Option<(u16, u16)> {
        if self.kind != ImageKind::TileIr {
            return self.ptx_isa();
        }
        let (major, minor) = self.version;
        let isa = tables::isa_of_driver(CudaVersion::new(major.into(), minor.into()));
        Some(isa.map_or(NEWER_THAN_TABLES, |(major, minor)| (major.into(), minor.into())))
    }

    /// Returns true for machine code of an ELF ABI that no known toolkit writes: it is unknown which drivers load it.
    pub fn has_unknown_abi(&self) -> bool {
        /// The ABI of CUDA 13; older toolkits write smaller numbers.
        const NEWEST: (u16, u16) = (1, 8);
        self.kind == ImageKind::Cubin && (self.version.0 != NEWEST.0 || self.version > NEWEST)
    }

    /// Returns the target if a GPU or its driver can run the image without a link step.
    pub fn runnable_target(&self) -> Option<Target> {
        match self.kind {
            ImageKind::Cubin => Some(Target::Cubin(self.arch)),
            ImageKind::Ptx | ImageKind::RelocatablePtx => Some(Target::Ptx(self.arch)),
            // An arch of 0: the version could not be read.
            ImageKind::TileIr if self.arch.number != 0 => Some(Target::Ptx(self.arch)),
            _ => None,
        }
    }
}

impl Compression {
    const fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Lz4 => Some("lz4"),
            Self::Zstd => Some("zstd"),
            Self::Gzip => Some("gzip"),
            Self::Unknown => Some("unknown"),
        }
    }
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Kernels => "kernels",
            Self::Linked => "linked",
            Self::Input => "input",
            Self::Empty => "empty",
            Self::DeviceRuntime => "device runtime",
            Self::LinkTime => "link time",
            Self::Aside => "aside",
        }
    }
}

/// Reads the GPU code of the file at this path.
///
/// # Errors
/// If the file cannot be read or its format cannot contain GPU code. A file without GPU
/// code is not an error.
pub fn read_kernels(path: &Path) -> Result<Kernels, FileError> {
    read_contents(path, &Contents::open(path)?)
}

/// Reads the GPU code of an open file. Errors are those of [`read_kernels`].
pub fn read_contents(path: &Path, data: &Contents) -> Result<Kernels, FileError> {
    read::read_data(data, data.as_mapping()).map_err(|problem| FileError::read(path, problem))
}

/// Returns true if the data begins like a bare file of GPU code: a fatbin, a cubin, PTX or LTO-IR.
pub fn are_bare(data: &[u8]) -> bool {
    data.starts_with(&fatbin::MAGIC)
        || data.starts_with(&lto::MAGIC)
        || data.starts_with(b"\x7fELF") && data.get(18..20) == Some(&EM_CUDA.0.to_le_bytes()[..])
        || ptx::find_version(data).is_some()
}

/// Returns true if a file that begins like this may be PTX, but has no directive so far.
pub fn may_be_ptx(head: &[u8]) -> bool {
    ptx::may_continue_as_ptx(head)
}

/// Reads the GPU code in these bytes. Does no I/O and never panics.
///
/// # Errors
/// If the format cannot contain GPU code.
pub fn read_bytes(data: &[u8]) -> Result<Kernels, FileProblem> {
    read::read_data(data, None)
}

impl Kernels {
    /// Returns every image, in the order of the containers.
    pub fn entries(&self) -> &[KernelImage] {
        &self.entries
    }

    /// Returns the containers, in the order of the file.
    pub fn containers(&self) -> &[Container] {
        &self.containers
    }

    /// Returns the images of a container.
    pub fn entries_of(&self, container: &Container) -> &[KernelImage] {
        self.entries.get(container.entries.start as usize..container.entries.end as usize).unwrap_or_default()
    }

    /// Returns messages about the parts that could not be read.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the section of a container, such as `.nv_fatbin`; empty in a file without sections.
    pub fn section_name(&self, container: &Container) -> &str {
        self.places.get(container.place as usize).map_or("", |place| &place.section)
    }

    /// Returns the archive member that contains a container.
    pub fn member_name(&self, container: &Container) -> Option<&str> {
        self.places.get(container.place as usize)?.member.as_deref()
    }
}

#[cfg(test)]
pub(crate) mod tests;
