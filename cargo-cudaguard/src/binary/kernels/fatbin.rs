//! Parses the headers of fatbin containers and their entries in place. Payloads are not unpacked here.
//!
//! Source of the layout: bytes written by nvcc 11.8, 13.0, 13.2 and 13.5, and shipped libraries of CUDA 10 to 13. Every
//! length is read from the file, and unknown kinds are accepted, because NVIDIA adds new ones.

use cudaguard::internal::arch::{Arch, Suffix};
pub(super) use cudaguard::internal::bytes::{u16_at, u32_at, u64_at};

/// Magic bytes at the start of a container.
pub(super) const MAGIC: [u8; 4] = [0x50, 0xed, 0x55, 0xba];
const CONTAINER_HEADER: usize = 16;
const ENTRY_HEADER: usize = 64;

/// Converts a length from the file to an index. A value that does not fit is outside of any file.
fn to_index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// The header of a container.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// Format version; only 1 is known.
    pub(super) version: u16,
    /// Bytes of the header: 16 in version 1.
    pub(super) length: usize,
    /// Bytes of the entries after the header.
    pub(super) payload: usize,
}

impl Header {
    /// Reads the header at the beginning of `data`, of any version.
    pub(super) fn read(data: &[u8]) -> Option<Self> {
        if !data.starts_with(&MAGIC) {
            return None;
        }
        let header = Self {
            version: u16_at(data, 4)?,
            length: usize::from(u16_at(data, 6)?),
            payload: to_index(u64_at(data, 8)?),
        };
        (header.length >= CONTAINER_HEADER).then_some(header)
    }

    /// Bytes of the header and the entries.
    pub(super) fn total_size(self) -> usize {
        self.length.saturating_add(self.payload)
    }
}

/// Reads the header at the beginning of `data` if the bytes cannot be anything else. Used in sections with arbitrary
/// contents.
pub(super) fn read_header(data: &[u8]) -> Option<Header> {
    let header = Header::read(data)?;
    if header.version != 1 || header.length != CONTAINER_HEADER || header.total_size() > data.len() {
        return None;
    }
    let payload = &data[CONTAINER_HEADER..header.total_size()];
    if payload.is_empty() {
        return Some(header);
    }
    (Entries::new(payload).next()?.ok()?.version == 0x0101).then_some(header)
}

/// An entry of a container, or an image of a concatenated entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct FatbinEntry<'data> {
    /// 1 PTX, 2 cubin, 8 LTO-IR, …
    pub(super) kind: u16,
    /// 0x0101 in every file seen.
    pub(super) version: u16,
    /// The header with its options and names.
    pub(super) header: &'data [u8],
    /// The image, compressed or not, with padding; empty for an image of a concatenated entry.
    pub(super) payload: &'data [u8],
    /// Bytes of the image in the file.
    pub(super) size: u64,
    /// (major, minor): the PTX ISA, or the cubin's ELF ABI.
    pub(super) code_version: (u16, u16),
    pub(super) arch: u32,
    pub(super) flags: u64,
    /// Size of the unpacked image in bytes; equals `size` if the image is not compressed.
    pub(super) unpacked: u64,
    /// Offset of its header in the container's payload.
    pub(super) at: usize,
}

/// Known entry kinds.
pub(super) mod kind {
    pub(crate) const PTX: u16 = 1;
    pub(crate) const CUBIN: u16 = 2;
    pub(crate) const LTO_IR: u16 = 8;
    pub(crate) const RELOCATABLE_PTX: u16 = 0x40;
    pub(crate) const TILE_IR: u16 = 0x80;
    /// Several cubins in one compressed stream.
    pub(crate) const CONCATENATED: u16 = 0x100;
}

const DEBUG: u64 = 0x2;
const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;
const SPECIFIC: u64 = 0x10_0000;
const FAMILY: u64 = 0x20_0000;

/// Compression of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compression {
    /// Not compressed.
    None,
    /// LZ4: every driver unpacks it.
    Lz4,
    /// Zstandard: drivers since 550.54.14 unpack it.
    Zstd,
    /// gzip, which the program itself unpacks.
    Gzip,
    /// A scheme that this reader does not know.
    Unknown,
}

impl<'data> FatbinEntry<'data> {
    fn read(header: &'data [u8], at: usize) -> Option<Self> {
        let packed = u32_at(header, 16)?;
        let unpacked = u64_at(header, 56)?;
        let size = u64_at(header, 8)?;
        Some(Self {
            kind: u16_at(header, 0)?,
            version: u16_at(header, 2)?,
            header,
            payload: &[],
            size: if packed == 0 { size } else { size.min(packed.into()) },
            code_version: (u16_at(header, 26)?, u16_at(header, 24)?),
            arch: u32_at(header, 28)?,
            flags: u64_at(header, 40)?,
            unpacked: if unpacked == 0 { size } else { unpacked },
            at,
        })
    }

    /// Returns the arch with its suffix, or `None` if its number is impossible.
    pub(super) fn arch(&self) -> Option<Arch> {
        let suffix = match self.flags & (SPECIFIC | FAMILY) {
            0 => Suffix::None,
            FAMILY => Suffix::Family,
            _ => Suffix::Specific,
        };
        Some(Arch { number: u16::try_from(self.arch).ok().filter(|number| is_possible_arch(*number))?, suffix })
    }

    pub(super) fn is_debug(&self) -> bool {
        self.flags & DEBUG != 0
    }

    pub(super) fn compression(&self) -> Compression {
        match self.flags & (LZ4 | ZSTD) {
            LZ4 => Compression::Lz4,
            ZSTD => Compression::Zstd,
            0 if self.unpacked == self.size || u32_at(self.header, 16) == Some(0) => Compression::None,
            _ => Compression::Unknown,
        }
    }

    /// Returns the name of the source if the compiler stored one (`-G`, `--ident`).
    pub(super) fn name(&self) -> Option<&'data str> {
        let (at, length) = (u32_at(self.header, 32)? as usize, u32_at(self.header, 36)? as usize);
        if at < ENTRY_HEADER || length == 0 {
            return None;
        }
        let name = self.header.get(at..at.checked_add(length)?)?;
        let name = name.split(|byte| *byte == 0).next()?;
        std::str::from_utf8(name).ok().filter(|name| !name.is_empty())
    }

    /// Iterates over the images of a concatenated entry. Their headers are stored uncompressed in the header of the
    /// entry.
    pub(super) fn images(&self) -> Images<'data> {
        let at = u32_at(self.header, 20).map_or(usize::MAX, |at| at as usize);
        let table = self.header.get(at..).unwrap_or_default();
        let count = u32_at(table, 0).unwrap_or_default();
        let length = u32_at(table, 4).map_or(0, |length| length as usize);
        let table = table.get(..length).unwrap_or(table);
        Images { table, left: count, at: 8, outer: *self }
    }
}

/// Returns true if a GPU of this number can exist: 10 was the first, and the digits before the last one are the major
/// of the compute capability.
pub(super) fn is_possible_arch(arch: u16) -> bool {
    (10..1000).contains(&arch)
}

/// The entries of a container's payload. Iteration ends after the first entry that exceeds the payload, because each
/// length determines the position of the next entry.
pub(super) struct Entries<'data> {
    payload: &'data [u8],
    at: usize,
}

impl<'data> Entries<'data> {
    pub(super) fn new(payload: &'data [u8]) -> Self {
        Self { payload, at: 0 }
    }

    fn next_entry(&self) -> Option<(FatbinEntry<'data>, usize)> {
        let rest = self.payload.get(self.at..)?;
        let header_length = u32_at(rest, 4)? as usize;
        let length = to_index(u64_at(rest, 8)?);
        if header_length < ENTRY_HEADER {
            return None;
        }
        let end = header_length.checked_add(length)?;
        let payload = rest.get(header_length..end)?;
        let entry = FatbinEntry::read(&rest[..header_length], self.at)?;
        Some((FatbinEntry { payload, ..entry }, self.at + end))
    }
}

impl<'data> Iterator for Entries<'data> {
    /// The entry, or the offset of a damaged one in the payload.
    type Item = Result<FatbinEntry<'data>, usize>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.payload.len() {
            return None;
        }
        let at = self.at;
        if let Some((entry, next)) = self.next_entry() {
            self.at = next;
            return Some(Ok(entry));
        }
        self.at = self.payload.len();
        // Bytes that are too few for a header and all zero are padding.
        let rest = &self.payload[at..];
        (rest.len() >= ENTRY_HEADER || rest.iter().any(|byte| *byte != 0)).then_some(Err(at))
    }
}

/// See [`FatbinEntry::images`].
pub(super) struct Images<'data> {
    table: &'data [u8],
    left: u32,
    at: usize,
    outer: FatbinEntry<'data>,
}

impl<'data> Images<'data> {
    /// Computes the length of an image's header, which is not stored: 64 bytes, or up to the end of the name or of the
    /// options.
    fn image_length(header: &[u8]) -> Option<usize> {
        let [options, name, name_length] = [20, 32, 36].map(|at| u32_at(header, at).map(|value| value as usize));
        let (options, name, name_length) = (options?, name?, name_length?);
        let mut end = ENTRY_HEADER;
        if name_length != 0 {
            end = end.max(name.checked_add(name_length)?.checked_add(1)?);
        }
        if options != 0 {
            let length = u32_at(header, options.checked_add(4)?)? as usize;
            end = end.max(options.checked_add(length)?.checked_add(9)?);
        }
        end.checked_next_multiple_of(8)
    }

    fn next_image(&self) -> Option<(FatbinEntry<'data>, usize)> {
        let rest = self.table.get(self.at..)?;
        let length = Self::image_length(rest)?;
        // The last one may end without its padding.
        let header = rest.get(..length.min(rest.len()))?;
        if header.len() < ENTRY_HEADER {
            return None;
        }
        let image = FatbinEntry::read(header, self.outer.at + self.at)?;
        // The images are compressed together: the size and the scheme are those of the outer entry.
        let flags = image.flags & !(LZ4 | ZSTD) | self.outer.flags & (LZ4 | ZSTD);
        Some((FatbinEntry { flags, ..image }, self.at.checked_add(length)?))
    }
}

impl<'data> Iterator for Images<'data> {
    /// The image, or the offset in the outer entry's table at which its header was expected.
    type Item = Result<FatbinEntry<'data>, usize>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        if let Some((image, next)) = self.next_image() {
            self.left -= 1;
            self.at = next;
            Some(Ok(image))
        } else {
            self.left = 0;
            Some(Err(self.at))
        }
    }
}
