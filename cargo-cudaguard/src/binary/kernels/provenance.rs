//! Detects which toolkit release compiled the code of a file, from its images.
//!
//! Measured on images of nvcc 11.8 to 13.5 and on shipped libraries: up to ELF ABI 7, the `e_version` of a cubin is the
//! release times ten; since ABI 8, a note of the assembler names it; PTX names it in a comment, unless a tool removed
//! it.

use memchr::memmem;

use super::fatbin::{self, Compression};
use super::{Container, ImageForm, ImageKind, Kernels, Role, unpack};
use crate::binary::elf::Elf;
use cudaguard::internal::tables;
use cudaguard::internal::version::CudaVersion;

/// The origin of the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Known {
    /// The header of the cubin.
    Header,
    /// A note in the cubin.
    Note,
    /// A comment in the PTX.
    Comment,
    /// The PTX ISA: older toolkits do not write it, so the release is this one or a newer one.
    Isa,
}

impl Known {
    /// Returns the name for messages.
    pub const fn display_name(self) -> &'static str {
        match self {
            Self::Header => "its header",
            Self::Note => "its assembler's note",
            Self::Comment => "its comment",
            Self::Isa => "its ISA",
        }
    }

    /// Returns the name for JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "elf header",
            Self::Note => "note",
            Self::Comment => "comment",
            Self::Isa => "isa",
        }
    }
}

/// Images that were compiled by the same release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Provenance {
    /// Cubins or PTX.
    pub kind: ImageKind,
    /// (major, minor) of the toolkit.
    pub release: (u32, u32),
    /// The origin of the release.
    pub known: Known,
}

/// Maximum number of bytes to unpack per file: a large library names the same release a thousand times, and unpacking
/// the images costs more than all other checks of the file.
const MOST_UNPACKED: u64 = 1 << 20;
/// Maximum size of a Zstandard block, which is unpacked completely even for its first byte.
const BLOCK: usize = 128 << 10;
/// Upper bound of the bytes that precede the comment in PTX.
const HEAD_OF_PTX: usize = 1024;
/// Size of an ELF header.
pub(super) const HEAD_OF_CUBIN: usize = 64;

/// The owner of the assembler's note, and the number of bytes after it that contain the release.
const ASSEMBLER: &[u8] = b"NVIDIA Corp\0";
const NOTE_OF_ASSEMBLER: usize = 256;

const RELEASE: &[u8] = b"Cuda compilation tools, release ";

impl Kernels {
    /// Returns the release that compiled each image of this file, with the index of its container. `data`: the bytes of
    /// the file. Inspects one cubin and one PTX image of each container, because one call of nvcc writes a container.
    /// Images whose release is unknown are omitted.
    pub fn provenance(&self, data: &[u8]) -> Vec<(usize, Provenance)> {
        let mut left = MOST_UNPACKED;
        let mut containers: Vec<(usize, &Container)> = self.containers.iter().enumerate().collect();
        containers.retain(|(_, container)| !matches!(container.role, Role::Empty | Role::DeviceRuntime));
        // The cheapest containers first, to inspect as many as possible.
        containers.sort_by_key(|(_, container)| self.entries_of(container).iter().map(|entry| entry.unpacked).min());
        let mut made = Vec::new();
        for (at, container) in containers {
            made.extend(self.made_of(container, data, &mut left).into_iter().map(|one| (at, one)));
        }
        made
    }

    fn made_of(&self, container: &Container, data: &[u8], left: &mut u64) -> Vec<Provenance> {
        let Some(bytes) = usize::try_from(container.offset).ok().and_then(|offset| data.get(offset..)) else {
            return Vec::new();
        };
        let bytes = &bytes[..bytes.len().min(usize::try_from(container.size).unwrap_or(usize::MAX))];
        match container.form {
            ImageForm::LtoIr => Vec::new(),
            ImageForm::Cubin => cubin_provenance(bytes).into_iter().collect(),
            ImageForm::Ptx => {
                let isa = self.entries_of(container).first().map_or((0, 0), |entry| entry.version);
                // The image begins with its first directive; the compiler's comment precedes it.
                let before = data.get(..usize::try_from(container.offset).unwrap_or_default()).unwrap_or_default();
                let before = &before[before.len().saturating_sub(HEAD_OF_PTX)..];
                let start = before.iter().rposition(|byte| matches!(byte, 0 | b'}' | b';')).map_or(0, |at| at + 1);
                ptx_provenance(&before[start..], isa).into_iter().collect()
            }
            ImageForm::Fatbin => {
                let payload = fatbin::Header::read(bytes).and_then(|header| bytes.get(header.length..));
                let [cubin, ptx] = [fatbin::kind::CUBIN, fatbin::kind::PTX].map(|kind| {
                    let entries = fatbin::Entries::new(payload.unwrap_or_default()).filter_map(Result::ok);
                    entries.filter(|entry| entry.kind == kind).min_by_key(|entry| (entry.unpacked, entry.at))
                });
                let cubin = cubin.and_then(|entry| {
                    let block = if entry.compression() == Compression::Zstd { BLOCK } else { HEAD_OF_CUBIN };
                    let head = unpack_image(&entry, Some(block), left)?;
                    let from_head = self::cubin_provenance(&head);
                    if from_head.is_some() || head.len() as u64 >= entry.unpacked {
                        return from_head;
                    }
                    self::cubin_provenance(&unpack_image(&entry, None, left)?)
                });
                let ptx = ptx.and_then(|entry| {
                    // Tools that use this compression usually remove the comment. If the cubin names the release, do
                    // not unpack a block for it.
                    let dear = cubin.is_some() && entry.compression() == Compression::Zstd;
                    let head = if dear { None } else { unpack_image(&entry, Some(HEAD_OF_PTX), left) };
                    self::ptx_provenance(head.as_deref().unwrap_or_default(), entry.code_version)
                });
                cubin.into_iter().chain(ptx).collect()
            }
        }
    }
}

/// Returns an image, or the first `head` bytes of it; `None` if it cannot be unpacked or the limit is reached.
fn unpack_image(entry: &fatbin::FatbinEntry, head: Option<usize>, left: &mut u64) -> Option<Vec<u8>> {
    let packed = entry.payload.get(..usize::try_from(entry.size).ok()?)?;
    let whole = usize::try_from(entry.unpacked).ok()?;
    let cost = match (head, entry.compression()) {
        (Some(head), Compression::None | Compression::Lz4) => head as u64,
        (Some(_), _) => entry.unpacked.min(BLOCK as u64),
        (None, _) => entry.unpacked,
    };
    *left = left.checked_sub(cost)?;
    match head.filter(|head| *head < whole) {
        Some(head) => unpack::unpack_beginning(packed, entry.compression(), head),
        None => unpack::unpack_image(packed, entry.compression(), whole),
    }
}

/// Detects the release of a cubin, of which only the header may be given.
pub(super) fn cubin_provenance(image: &[u8]) -> Option<Provenance> {
    if !Elf::is_elf(image) {
        return None;
    }
    let (release, known) = if *image.get(8)? < 8 {
        let version = fatbin::u32_at(image, 20)?;
        (Some((version / 10, version % 10)).filter(is_plausible_release)?, Known::Header)
    } else {
        let whole = Elf::parse(image).ok().and_then(|elf| elf.notes().find_map(|note| release_in(note.desc)));
        (whole.or_else(|| header_release(image))?, Known::Note)
    };
    Some(Provenance { kind: ImageKind::Cubin, release, known })
}

/// Returns the CUDA major that compiled machine code of an ELF ABI before 8, from its header; 0 if it is unknown.
pub(super) fn compiled_by(entry: &fatbin::FatbinEntry) -> u32 {
    if entry.kind != fatbin::kind::CUBIN || entry.code_version >= (1, 8) {
        return 0;
    }
    if entry.compression() == Compression::Zstd {
        // The first toolkits that compress so are of CUDA 12; a block is too expensive to unpack for the header.
        return 12;
    }
    let mut unlimited = u64::MAX;
    unpack_image(entry, Some(HEAD_OF_CUBIN), &mut unlimited).map_or(0, |head| major_in_header(&head))
}

/// Returns the CUDA major in the header of a cubin of an ELF ABI before 8; 0 if there is none.
pub(super) fn major_in_header(cubin: &[u8]) -> u32 {
    let head = cubin.get(..HEAD_OF_CUBIN).and_then(cubin_provenance);
    head.filter(|made| made.known == Known::Header).map_or(0, |made| made.release.0)
}

/// Detects the release of a cubin whose end is not unpacked. The table of its notes is missing then, but the notes
/// precede its code.
fn header_release(beginning: &[u8]) -> Option<(u32, u32)> {
    memmem::find_iter(beginning, ASSEMBLER).find_map(|at| {
        let behind = &beginning[at..];
        release_in(&behind[..behind.len().min(NOTE_OF_ASSEMBLER)])
    })
}

/// Detects the release of PTX from its beginning, or from the ISA version.
fn ptx_provenance(text: &[u8], (major, minor): (u16, u16)) -> Option<Provenance> {
    let head = &text[..text.len().min(HEAD_OF_PTX)];
    if let Some(release) = release_in(head) {
        return Some(Provenance { kind: ImageKind::Ptx, release, known: Known::Comment });
    }
    let CudaVersion { major, minor } = tables::ptx_floor((major.into(), minor.into())).cuda;
    (major > 0).then_some(Provenance { kind: ImageKind::Ptx, release: (major, minor), known: Known::Isa })
}

/// Extracts 13.2 from `Cuda compilation tools, release 13.2, V13.2.86`.
fn release_in(text: &[u8]) -> Option<(u32, u32)> {
    let rest = &text[memmem::find(text, RELEASE)? + RELEASE.len()..];
    let end = rest.iter().position(|byte| *byte == b',')?;
    let (major, minor) = std::str::from_utf8(&rest[..end]).ok()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns true if a toolkit release may have this number. The list is open, since there will be newer releases.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_plausible_release(release: &(u32, u32)) -> bool {
    (4..100).contains(&release.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cubin_header_names_toolkit() {
        let note = |release: &str| {
            let text = format!("ptxas\0Cuda compilation tools, release {release}, V{release}.88\0");
            [b"\x0c\0\0\0\x8c\0\0\0\xd0\x07\0\0NVIDIA Corp\0\x02\0\0\0", text.as_bytes()].concat()
        };
        let cubin = |behind: &[u8]| {
            let mut image = vec![0; HEAD_OF_CUBIN];
            image[..9].copy_from_slice(b"\x7fELF\x02\x01\x01\x41\x08");
            image.extend_from_slice(behind);
            self::cubin_provenance(&image).map(|made| (made.release, made.known))
        };
        assert_eq!(cubin(&note("13.5")), Some(((13, 5), Known::Note)));
        assert_eq!(cubin(&[vec![1; 5000], note("13.0"), vec![0; 500]].concat()), Some(((13, 0), Known::Note)));
        // Cut off within the note, and a string without an assembler's note.
        assert_eq!(cubin(&note("13.5")[..70]), None);
        assert_eq!(cubin(b"Cuda compilation tools, release 13.5, V13.5.88\0"), None);
        let far = [b"NVIDIA Corp\0".as_slice(), &[0; NOTE_OF_ASSEMBLER], &note("13.5")[28..]].concat();
        assert_eq!(cubin(&far), None);
    }
}
