//! Reads the images of a fatbin (cubins, PTX and LTO IR) and adds them to the result.

use std::sync::atomic::Ordering;

use super::{KernelReader, SMALL_CONCATENATED, SMALL_CUBIN, SMALL_PTX, SectionPiece};
use crate::binary::kernels::fatbin::{self, Compression};
use crate::binary::kernels::{Container, ImageForm, ImageKind, KernelImage, Role, cubin, provenance, ptx, unpack};
use cudaguard::internal::arch::{Arch, Suffix};
use cudaguard::internal::file_error::FileProblem;

impl<'data> KernelReader<'data> {
    /// Reads the fatbin at this offset. Returns its available length, 1 at least.
    pub(super) fn read_fatbin(&mut self, piece: SectionPiece<'data>, at: usize, header: fatbin::Header) -> usize {
        let rest = &piece.data[at..];
        let size = header.total_size().min(rest.len());
        let payload = rest.get(header.length..size).unwrap_or_default();
        let base = piece.base + at as u64;
        let first = self.entries.len();
        let mut damaged = None;
        if header.version != 1 {
            damaged = Some(format!("a fatbin of version {}", header.version));
        } else if header.total_size() > rest.len() {
            damaged = Some(format!("a fatbin of {} bytes, of which {} are there", header.total_size(), rest.len()));
        }
        let (mut largest, mut largest_ptx): (Option<fatbin::FatbinEntry>, Option<fatbin::FatbinEntry>) = (None, None);
        let (mut origin, mut compiled_by) = (None, 0);
        let entries = fatbin::Entries::new(if header.version == 1 { payload } else { &[] });
        for entry in entries {
            match entry {
                Ok(entry) => {
                    let largest = if entry.kind == fatbin::kind::PTX { &mut largest_ptx } else { &mut largest };
                    if largest.is_none_or(|known| known.unpacked < entry.unpacked) {
                        *largest = Some(entry);
                    }
                    origin = origin.or_else(|| entry.name());
                    // One call of nvcc writes a container.
                    if compiled_by == 0 {
                        compiled_by = provenance::compiled_by(&entry);
                    }
                    if let Err(why) = self.read_entry(&entry, base + header.length as u64) {
                        damaged.get_or_insert_with(|| why.to_string());
                    }
                }
                Err(at) => {
                    damaged.get_or_insert_with(|| format!("no header of an entry at byte {at} of a fatbin"));
                }
            }
            if self.is_full() {
                break;
            }
        }
        if let Some(damage) = &damaged {
            self.push_warning(format!("{damage} (at {base:#x})"));
        }
        // An empty container is the guard's own, which the shim uses to find the others.
        if first == self.entries.len() && damaged.is_none() {
            self.read.fetch_add(1, Ordering::Relaxed);
            return size.max(1);
        }
        // The largest image represents all, because they come from one source; machine code is cheaper to read than
        // PTX.
        let kernels = damaged.is_some()
            || largest.or(largest_ptx).is_some_and(|entry| self.holds_kernels(&entry, piece.data.len()));
        let container = Container {
            role: if kernels { Role::Kernels } else { Role::Empty },
            offset: base,
            size: size as u64,
            origin: origin.map(|name| file_name(name).to_owned()),
            entries: self.entries_from(first),
            compiled_by,
            damaged: damaged.is_some(),
            ..Container::unknown()
        };
        self.add_container(piece, container);
        size.max(1)
    }

    /// Returns true if an entry contains a kernel, or if that is unknown without unpacking a large image.
    fn holds_kernels(&mut self, entry: &fatbin::FatbinEntry<'data>, piece: usize) -> bool {
        let (least, test): (u64, fn(&[u8]) -> bool) = match entry.kind {
            fatbin::kind::PTX => (SMALL_PTX, ptx::has_kernels),
            fatbin::kind::CUBIN => (SMALL_CUBIN, cubin::has_kernels),
            fatbin::kind::CONCATENATED => {
                (SMALL_CONCATENATED, |images| images.windows(6).any(|window| window == b".text."))
            }
            _ => return true,
        };
        let compression = entry.compression();
        if compression == Compression::None {
            return test(entry.payload);
        }
        if entry.unpacked > least {
            return true;
        }
        let packed = usize::try_from(entry.size).ok().and_then(|size| entry.payload.get(..size));
        let Some((packed, length)) = packed.zip(usize::try_from(entry.unpacked).ok()) else { return true };
        if let Some(known) = self.small.get(&(packed, entry.unpacked)) {
            return *known;
        }
        // Real images have at least an eighth of their unpacked size; this bounds the cost of a crafted file.
        self.unpacked += entry.unpacked;
        let enough = self.unpacked > (piece as u64).saturating_mul(8);
        let kernels = enough || unpack::unpack_image(packed, compression, length).is_none_or(|image| test(&image));
        self.small.insert((packed, entry.unpacked), kernels);
        kernels
    }

    /// Adds an entry, or the images in it.
    ///
    /// # Errors
    /// If the entry is damaged.
    fn read_entry(&mut self, entry: &fatbin::FatbinEntry, base: u64) -> Result<(), FileProblem> {
        if entry.kind != fatbin::kind::CONCATENATED {
            return self.read_entry_image(entry, entry.compression(), base);
        }
        for image in entry.images() {
            let image = image.map_err(|at| {
                FileProblem::damaged(format!("no header of an image at byte {at} of a fatbin's table"))
            })?;
            self.read_entry_image(&image, entry.compression(), base)?;
        }
        Ok(())
    }

    fn read_entry_image(
        &mut self,
        image: &fatbin::FatbinEntry,
        compression: Compression,
        base: u64,
    ) -> Result<(), FileProblem> {
        let kind = ImageKind::from_number(image.kind);
        let tile = (kind == ImageKind::TileIr).then(|| tile_version(image, compression)).flatten();
        let oldest = tile.map_or(0, |_| OLDEST_TILE_ARCH);
        let unknown = matches!(kind, ImageKind::Other(_) | ImageKind::TileIr)
            .then_some(Arch { number: oldest, suffix: Suffix::None });
        let arch = image
            .arch()
            .or(unknown)
            .ok_or_else(|| FileProblem::damaged(format!("{kind} for arch {}, which no GPU has", image.arch)))?;
        self.add_entry(KernelImage {
            kind,
            arch,
            version: tile.unwrap_or(image.code_version),
            debug: image.is_debug(),
            compression,
            size: image.size,
            unpacked: image.unpacked,
            offset: base + image.at as u64,
            container: self.next_container_index(),
        });
        Ok(())
    }

    fn add_bare_image(&mut self, piece: SectionPiece, form: ImageForm, entry: KernelImage, kernels: u64) {
        let first = self.entries.len();
        self.add_entry(entry);
        let container = Container {
            form,
            role: if kernels == 0 { Role::Empty } else { Role::Kernels },
            offset: entry.offset,
            size: entry.size,
            entries: self.entries_from(first),
            kernels,
            ..Container::unknown()
        };
        self.add_container(piece, container);
    }

    pub(super) fn add_cubin(&mut self, piece: SectionPiece, at: usize, cubin: &cubin::Cubin) {
        let entry = KernelImage {
            kind: ImageKind::Cubin,
            arch: cubin.arch,
            version: (1, cubin.abi),
            debug: cubin.debug,
            compression: Compression::None,
            size: cubin.size as u64,
            unpacked: cubin.size as u64,
            offset: piece.base + at as u64,
            container: self.next_container_index(),
        };
        self.add_bare_image(piece, ImageForm::Cubin, entry, cubin.kernels);
        if let Some(container) = self.containers.last_mut() {
            container.compiled_by = cubin.compiled_by;
        }
    }

    pub(super) fn add_ptx(&mut self, piece: SectionPiece, text: &ptx::Ptx) {
        let size = (text.end - text.start) as u64;
        let entry = KernelImage {
            kind: ImageKind::Ptx,
            arch: text.arch,
            version: text.isa,
            debug: text.debug,
            compression: Compression::None,
            size,
            unpacked: size,
            offset: piece.base + text.start as u64,
            container: self.next_container_index(),
        };
        self.add_bare_image(piece, ImageForm::Ptx, entry, text.kernels);
        if let Some(container) = self.containers.last_mut() {
            container.sets_conditions = text.sets_conditions;
        }
    }

    /// Reads the gzip stream at this offset. Returns its end if it contains PTX.
    pub(super) fn read_gzipped_ptx(&mut self, piece: SectionPiece, at: usize) -> Option<usize> {
        let stream = match ptx::unpack_gzipped_ptx(&piece.data[at..]) {
            Ok(stream) => stream?,
            Err(why) => {
                self.push_warning(format!("{why} at {:#x}", piece.base + at as u64));
                return None;
            }
        };
        let module = ptx::read_module(&stream.text, stream.version)?;
        self.add_ptx(piece, &module);
        if let Some(image) = self.entries.last_mut() {
            image.compression = Compression::Gzip;
            image.offset = piece.base + at as u64;
            image.size = stream.packed as u64;
        }
        if let Some(container) = self.containers.last_mut() {
            (container.offset, container.size) = (piece.base + at as u64, stream.packed as u64);
        }
        Some(at + stream.packed)
    }

    pub(super) fn add_lto(&mut self, piece: SectionPiece, arch: Arch) {
        let size = piece.data.len() as u64;
        let entry = KernelImage {
            kind: ImageKind::LtoIr,
            arch,
            version: (0, 0),
            debug: false,
            compression: Compression::None,
            size,
            unpacked: size,
            offset: piece.base,
            container: self.next_container_index(),
        };
        self.add_bare_image(piece, ImageForm::LtoIr, entry, 0);
        if let Some(container) = self.containers.last_mut() {
            container.role = Role::LinkTime;
        }
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Tile IR has no arch in its header; it runs on GPUs from 8.0 (NVIDIA Tile IR documentation 13.5, stability).
const OLDEST_TILE_ARCH: u16 = 80;

/// Reads the version in the payload of Tile IR, whose header contains none: `\x7fTileIR\0`, major, minor. `None` if the image
/// cannot be read.
fn tile_version(image: &fatbin::FatbinEntry, compression: Compression) -> Option<(u16, u16)> {
    const MAGIC: &[u8] = b"\x7fTileIR\0";
    // Larger images are not unpacked: their version is unknown.
    const MOST: u64 = 64 << 20;
    let packed = image.payload.get(..usize::try_from(image.size).ok()?)?;
    let length = usize::try_from(image.unpacked).ok().filter(|_| image.unpacked <= MOST)?;
    match unpack::unpack_image(packed, compression, length)?.strip_prefix(MAGIC)? {
        [major, minor, ..] => Some((u16::from(*major), u16::from(*minor))),
        _ => None,
    }
}
