//! GPU code in any file: what is there, and which GPUs it serves.
//!
//! Reads ELF programs, libraries, objects and archives, and bare `.fatbin`, `.cubin`, `.ptx` and `.ltoir` files, without any tool
//! of NVIDIA's. Headers are read in place; an image is unpacked only where it is small and nothing else tells whether
//! it holds a kernel at all.
//!
//! [`Kernels::entries`] lists every image. What serves a GPU is told per container, as the runtime loads them
//! ([`Kernels::gpu_support`]): a container is one translation unit's code, and one that has nothing for a GPU fails there
//! whatever the others hold.

mod cover;
mod cubin;
mod fatbin;
mod lto;
mod made;
mod ptx;
mod read;
mod scan;
mod unpack;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use crate::arch::{Arch, Target};
use crate::elf;
use crate::json::{self, Value};
use crate::mapped_file::Contents;

/// The sections of an object or linked file in which nvcc and clang put GPU code.
pub(crate) const SECTIONS: [&str; 2] = [read::WHOLE, read::RELOCATABLE];

pub use crate::served::{Coverage, GpuSupport};
pub use cover::{Cover, Group};
pub use fatbin::Compression;
pub use made::{Known, Provenance};
pub(crate) use read::NO_KNOWN_FORM;

/// The GPU code of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernels {
    entries: Vec<KernelImage>,
    containers: Vec<Container>,
    places: Vec<KernelPlace>,
    doubts: Vec<String>,
    units: cover::Units,
    /// Of a library that NVIDIA publishes.
    published: bool,
    /// The compute capabilities that others of the same package serve by machine code.
    served_beside: BTreeSet<(u8, u8)>,
}

/// One image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelImage {
    /// What it is.
    pub kind: ImageKind,
    /// For which arch.
    pub arch: Arch,
    /// (major, minor): of PTX, the ISA it is written in; of a cubin, the ELF ABI; of others as the file says.
    pub version: (u16, u16),
    /// Compiled for debugging (`-G`).
    pub debug: bool,
    /// How it is packed.
    pub compression: Compression,
    /// Bytes in the file. Images packed together have their unpacked size here.
    pub size: u64,
    /// Bytes unpacked.
    pub unpacked: u64,
    /// Where it stands in the file: its header, or a bare image's first byte.
    pub offset: u64,
    /// The number of its container: [`Kernels::containers`].
    pub container: u32,
}

/// What an image is. An open set: NVIDIA adds to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImageKind {
    /// PTX: the driver compiles it.
    Ptx,
    /// Machine code.
    Cubin,
    /// Intermediate code that a device linker turns into machine code; runs nowhere by itself.
    LtoIr,
    /// PTX that is to be linked with others (`-reloc-ptx`).
    RelocatablePtx,
    /// Tile IR: the driver compiles it.
    TileIr,
    /// A kind without a name here, by its number.
    Other(u16),
}

/// What a container is wrapped in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImageForm {
    /// A fatbin.
    Fatbin,
    /// A cubin by itself.
    Cubin,
    /// A text in PTX.
    Ptx,
    /// LTO-IR by itself.
    LtoIr,
}

/// What a container is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Code that the program runs.
    Kernels,
    /// Code that the program runs, made by the device linker of [`Role::Input`]s.
    Linked,
    /// Relocatable code that went into a [`Role::Linked`]: only its PTX counts, for newer GPUs.
    Input,
    /// Holds no kernel: a source file without any, or what nvcc's device linker leaves in every program.
    Empty,
    /// libcudadevrt, of which every toolkit links all it has.
    DeviceRuntime,
    /// Nothing but LTO-IR: the program has machine code made of it when it runs, and for which GPUs no file says.
    LinkTime,
    /// A bare image as data beside fatbins that hold kernels: a helper, which decides nothing.
    Aside,
}

/// A container: images of the same code for several GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// What it is wrapped in.
    pub form: ImageForm,
    /// What it is there for.
    pub role: Role,
    /// Where it stands in the file.
    pub offset: u64,
    /// Bytes, headers included.
    pub size: u64,
    /// The source or object that it comes from, where that can be told: `kernels.cu`.
    pub origin: Option<String>,
    place: u32,
    entries: Range<u32>,
    /// Of a bare image, the mark of its kernels' names; 0 elsewhere.
    kernels: u64,
    damaged: bool,
}

impl Container {
    /// One of which nothing is known yet.
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
            damaged: false,
        }
    }
}

/// A section.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KernelPlace {
    /// Of an archive.
    member: Option<String>,
    /// Empty in a file without sections.
    section: String,
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

impl KernelImage {
    /// The arch as toolkits name it: `sm_90a`, `compute_90`, `lto_80`.
    pub fn arch_name(&self) -> String {
        let prefix = match self.kind {
            ImageKind::Ptx | ImageKind::RelocatablePtx => "compute",
            ImageKind::LtoIr => "lto",
            _ => "sm",
        };
        format!("{prefix}_{}", self.arch)
    }

    /// The PTX ISA; `None` for what is not PTX.
    pub fn ptx_isa(&self) -> Option<(u16, u16)> {
        matches!(self.kind, ImageKind::Ptx | ImageKind::RelocatablePtx).then_some(self.version)
    }

    /// As code that a GPU may run by itself.
    pub fn runnable_target(&self) -> Option<Target> {
        match self.kind {
            ImageKind::Cubin => Some(Target::Cubin(self.arch)),
            ImageKind::Ptx | ImageKind::RelocatablePtx => Some(Target::Ptx(self.arch)),
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
/// With the path, where the file cannot be read or is no file that can hold GPU code. A file without any is no error.
pub fn read_kernels(path: &Path) -> Result<Kernels, String> {
    read_contents(path, &Contents::open(path)?)
}

/// The same of a file that is open.
pub fn read_contents(path: &Path, data: &Contents) -> Result<Kernels, String> {
    read::read_data(data, data.as_mapping()).map_err(|error| format!("{}: {error}", path.display()))
}

/// Whether these bytes begin as GPU code does that stands in a file by itself: a fatbin, a cubin, PTX or LTO-IR.
pub fn are_bare(data: &[u8]) -> bool {
    data.starts_with(&fatbin::MAGIC)
        || data.starts_with(&lto::MAGIC)
        || data.starts_with(b"\x7fELF") && data.get(18..20) == Some(&elf::machine::CUDA.to_le_bytes()[..])
        || ptx::find_version(data).is_some()
}

/// Reads the GPU code of a file's bytes. Reads nothing outside of them, and never panics on them.
///
/// # Errors
/// Where the bytes are of no kind that can hold GPU code; the text goes on behind the file's name.
pub fn read_bytes(data: &[u8]) -> Result<Kernels, String> {
    read::read_data(data, None)
}

impl Kernels {
    /// Every image, container by container.
    pub fn entries(&self) -> &[KernelImage] {
        &self.entries
    }

    /// The containers, in the order of the file.
    pub fn containers(&self) -> &[Container] {
        &self.containers
    }

    /// The images of a container.
    pub fn entries_of(&self, container: &Container) -> &[KernelImage] {
        self.entries.get(container.entries.start as usize..container.entries.end as usize).unwrap_or_default()
    }

    /// What could not be read, in words.
    pub fn warnings(&self) -> &[String] {
        &self.doubts
    }

    /// The section that holds a container, `.nv_fatbin`; empty in a file without sections.
    pub fn section_name(&self, container: &Container) -> &str {
        self.places.get(container.place as usize).map_or("", |place| &place.section)
    }

    /// The member of an archive that holds a container.
    pub fn member_name(&self, container: &Container) -> Option<&str> {
        self.places.get(container.place as usize)?.member.as_deref()
    }

    /// `inspect`'s `kernels`: `{entries, covers}`, and the containers beside them.
    pub fn to_json(&self) -> Value {
        let entries = self.containers.iter().flat_map(|container| {
            self.entries_of(container).iter().map(move |entry| {
                let mut value = json::object([
                    ("kind", Value::from(entry.kind.to_string())),
                    ("arch", Value::from(entry.arch_name())),
                ]);
                value.insert_some("isa", entry.ptx_isa().map(|(major, minor)| format!("{major}.{minor}")));
                value.insert_some("container", Some(entry.container));
                let section = self.section_name(container);
                value.insert_some("section", (!section.is_empty()).then_some(section));
                value.insert_some("size", Some(entry.size));
                value.insert_some("compression", entry.compression.name());
                value.insert_some("debug", entry.debug.then_some(true));
                value
            })
        });
        let containers = self.containers.iter().zip(0u32..).map(|(container, number)| {
            let mut value = json::object([
                ("container", Value::from(number)),
                ("role", container.role.name().into()),
                ("offset", container.offset.into()),
                ("size", container.size.into()),
            ]);
            value.insert_some("member", self.member_name(container));
            value.insert_some("origin", container.origin.as_deref());
            value
        });
        let covers = self.coverage_by_cc().into_iter().map(|cover| {
            let mut value = json::object([
                ("cc", Value::from(format!("{}.{}", cover.cc.0, cover.cc.1))),
                ("by", cover.service.by.name().into()),
            ]);
            value.insert_some("code", cover.service.code.map(|code| code.to_string()));
            let partial = cover.service.by == Coverage::Partial;
            value.insert_some(
                "without",
                partial.then(|| u64::try_from(self.containers_without(cover.cc).count()).unwrap_or(u64::MAX)),
            );
            value
        });
        let mut value = json::object([("entries", json::array(entries)), ("covers", json::array(covers))]);
        value.insert_some("containers", Some(json::array(containers)));
        let doubts = self.doubts.iter().map(String::as_str);
        value.insert_some("doubts", (!self.doubts.is_empty()).then(|| json::array(doubts)));
        value
    }
}

#[cfg(test)]
pub(crate) mod tests;
