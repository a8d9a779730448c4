//! Reader for tars, compressed or not, and for Debian packages, which contain one.

use crate::binary::ar;
use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::binary::mapped_file::Contents;
use crate::cli::platform::is_executable;
use bzip2::bufread::MultiBzDecoder;
use cudaguard::internal::file_error::{FileError, FileProblem};
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;
use tar::{Archive, EntryType};

use super::bounds::{self, Names, Packed, Unpacked};
use super::{ArchiveFormat, ArchivePlace, ReadAt};

pub(super) fn walk_tar(file: &File, form: ArchiveFormat, of: &ArchivePlace<'_>) -> Result<&'static str, FileError> {
    for_each_member(decompress(file, form, of), of, &mut |_, _| true)?;
    Ok("tar archive")
}

/// Reads a compressed file that is not a tar.
pub(super) fn walk_single(
    file: &File,
    form: ArchiveFormat,
    path: &Path,
    of: &ArchivePlace<'_>,
) -> Result<&'static str, FileError> {
    let name = name_of_contents(path);
    of.budget.count_member().map_err(|why| of.error_for("", why))?;
    let mut spooled = super::spool_to_temp_file(&mut decompress(file, form, of), of.budget)
        .map_err(|error| damaged_archive(of, &error))?;
    let length = spooled.metadata().map_err(|error| of.error_for("", error))?.len();
    of.read_member(&name, false, &mut spooled, length)?;
    Ok(match form {
        ArchiveFormat::Bzip2 => "file compressed with bzip2",
        ArchiveFormat::Xz => "file compressed with xz",
        ArchiveFormat::Zstd => "file compressed with Zstandard",
        _ => "file compressed with gzip",
    })
}

/// Maximum memory of a decoder, in bytes: the dictionary of `xz -9`, or the window of `zstd --ultra -21`.
const MOST_MEMORY: u64 = 80 << 20;

/// Lock that limits decoders with a large dictionary to one at a time, because several threads read the members of a
/// zip archive.
static DECODER: Mutex<()> = Mutex::new(());

thread_local! {
    /// Set if this thread holds the lock, because archives may be nested.
    static DECODES: Cell<bool> = const { Cell::new(false) };
}

/// Prevents other threads from decoding during its lifetime.
struct DecodeLock(Option<MutexGuard<'static, ()>>);

impl DecodeLock {
    fn take() -> Self {
        if DECODES.replace(true) {
            return Self(None);
        }
        Self(Some(DECODER.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Drop for DecodeLock {
    fn drop(&mut self) {
        if self.0.is_some() {
            DECODES.set(false);
        }
    }
}

struct LockedReader<R> {
    reader: R,
    _turn: DecodeLock,
}

impl<R: Read> Read for LockedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

/// Returns a reader for the unpacked stream that enforces the limits.
pub(super) fn decompress<'a, R: Read + 'a>(
    reader: R,
    form: ArchiveFormat,
    of: &'a ArchivePlace<'_>,
) -> Box<dyn Read + 'a> {
    if form == ArchiveFormat::Tar {
        return Box::new(BufReader::with_capacity(1 << 16, reader));
    }
    let length = Arc::new(AtomicU64::new(0));
    let packed = BufReader::with_capacity(1 << 16, Packed { reader, length: Arc::clone(&length) });
    let kibibytes = u32::try_from(MOST_MEMORY >> 10).unwrap_or(u32::MAX);
    let reader: Box<dyn Read + 'a> = match form {
        ArchiveFormat::Bzip2 => Box::new(MultiBzDecoder::new(packed)),
        ArchiveFormat::Xz => Box::new(LockedReader {
            _turn: DecodeLock::take(),
            reader: XzReader::new_mem_limit(packed, true, kibibytes),
        }),
        ArchiveFormat::Zstd => {
            Box::new(LockedReader { _turn: DecodeLock::take(), reader: Frames { source: Some(packed), frame: None } })
        }
        _ => Box::new(MultiGzDecoder::new(packed)),
    };
    Box::new(Unpacked { reader, packed: length, length: 0, budget: of.budget })
}

/// The consecutive frames of a Zstandard file.
struct Frames<R: BufRead> {
    source: Option<R>,
    frame: Option<Box<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>>,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let length = frame.read(buffer)?;
                if length > 0 || buffer.is_empty() {
                    return Ok(length);
                }
                self.source = self.frame.take().map(|frame| frame.into_inner());
            }
            let Some(mut source) = self.source.take() else { return Ok(0) };
            let start = source.fill_buf()?;
            if start.is_empty() {
                return Ok(0);
            }
            if window(start) > MOST_MEMORY {
                let most = MOST_MEMORY >> 20;
                return Err(FileProblem::too_large(format!("its window is larger than {most} MiB")).into());
            }
            let frame = StreamingDecoder::new(source).map_err(|error| io::Error::other(error.to_string()))?;
            self.frame = Some(Box::new(frame));
        }
    }
}

/// Returns the window size that this frame header requests (RFC 8878, 3.1.1.1).
fn window(header: &[u8]) -> u64 {
    let Some((descriptor, rest)) = header.get(4).zip(header.get(5..)) else { return 0 };
    if descriptor & 0x20 == 0 {
        let Some(byte) = rest.first() else { return 0 };
        let base = 1_u64 << (10 + (byte >> 3));
        return base + base / 8 * u64::from(byte & 7);
    }
    // The frame is a single segment: the window is as large as the content.
    let skipped = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let width = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let bytes = rest.get(skipped..skipped + width).unwrap_or_default();
    let size = bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    if width == 2 { size + 256 } else { size }
}

/// Returns the first bytes of the content of a compressed file. An error contains the reason why it cannot be unpacked.
pub(super) fn unpacked_head(file: &File, form: ArchiveFormat) -> io::Result<Vec<u8>> {
    let budget = bounds::Budget::default();
    let of = ArchivePlace {
        archive: String::new(),
        prefix: String::new(),
        nested: 0,
        rooted: false,
        budget: &budget,
        each: &|_| Ok(()),
    };
    super::read_head(&mut decompress(ReadAt { file, at: 0 }, form, &of))
}

/// Returns the name of the content of a compressed file: that of the file without the extension of the compression.
pub(super) fn name_of_contents(path: &Path) -> Cow<'_, str> {
    path.file_stem().map_or_else(|| "contents".into(), OsStr::to_string_lossy)
}

/// Maximum number of bytes between two members of a tar, such as a longer name or a header of another type.
const LONGEST_HEADER: u64 = 2 << 20;

/// The number of bytes that the tar reader may still read before the next member.
#[derive(Clone, Default)]
pub(super) struct HeaderLimit(Rc<Cell<u64>>);

impl HeaderLimit {
    /// Allows the header of the next member and this number of remaining bytes of the current member.
    pub(super) fn allow(&self, bytes: u64) {
        self.0.set(LONGEST_HEADER.saturating_add(bytes));
    }

    /// Removes the limit after the last member.
    fn end(&self) {
        self.0.set(u64::MAX);
    }
}

/// Reader that limits the tar reader, which reads names and other headers of any length into memory.
pub(super) struct Bounded<R> {
    pub(super) reader: R,
    pub(super) header: HeaderLimit,
}

impl<R: io::Seek> io::Seek for Bounded<R> {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.reader.seek(to)
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        let left = self.header.0.get().checked_sub(length as u64);
        self.header.0.set(left.ok_or_else(|| {
            FileProblem::too_large(format!("the header of a member is larger than {} MiB", LONGEST_HEADER >> 20))
        })?);
        Ok(length)
    }
}

fn damaged_archive(of: &ArchivePlace<'_>, error: &io::Error) -> FileError {
    of.error_for("", FileProblem::damaged(format!("is cut off or damaged: {error}")))
}

/// Visits each member of a tar for which `wanted` returns true, given its path and whether it is a directory.
pub(super) fn for_each_member(
    reader: Box<dyn Read + '_>,
    of: &ArchivePlace<'_>,
    wanted: &mut dyn FnMut(&str, bool) -> bool,
) -> Result<(), FileError> {
    let header = HeaderLimit::default();
    let mut archive = Archive::new(Bounded { reader, header: header.clone() });
    let mut known = Names::default();
    let mut any = false;
    let entries = archive.entries().map_err(|error| damaged_archive(of, &error))?;
    header.allow(0);
    for entry in entries {
        let mut entry = entry.map_err(|error| damaged_archive(of, &error))?;
        header.end();
        any = true;
        let raw_path = bounds::shown(&entry.path_bytes());
        of.budget.count_member().map_err(|why| of.error_for("", why))?;
        let name = bounds::normalize_member_path(&raw_path).map_err(|why| of.error_for(&raw_path, why))?;
        let kind = entry.header().entry_type();
        let skipped = kind == EntryType::XGlobalHeader || !wanted(&name, kind.is_dir()) || kind.is_dir();
        if !skipped && !name.is_empty() && !known.insert(name.as_bytes()) {
            return Err(of.error_for(&name, FileProblem::damaged("occurs twice in the archive")));
        }
        let target = entry.link_name_bytes().map(|target| bounds::shown(&target));
        // The stored bytes differ from the content of the file, because holes are omitted.
        let sparse = kind == EntryType::GNUSparse || raw_path.contains("GNUSparseFile.");
        match (kind, target) {
            _ if skipped || name.is_empty() => {}
            _ if sparse => of.hand_on(&name, super::Content::NotExamined("a sparse file of GNU tar".into()))?,
            (EntryType::Symlink, Some(target)) => of.add_link(&name, &target)?,
            // The target is relative to the root of the archive, like the path of a member.
            (EntryType::Link, Some(target)) => {
                let target = bounds::normalize_member_path(&target).map_err(|_| {
                    let what = format!("is a link to a target outside of the archive: {target}");
                    of.error_for(&name, FileProblem::unsupported(what))
                })?;
                of.hand_on(&name, super::Content::Link(format!("{}{target}", of.prefix)))?;
            }
            _ => {
                let size = entry.size();
                let is_executable = entry.header().mode().is_ok_and(is_executable);
                of.read_member(&name, is_executable, &mut entry, size)?;
            }
        }
        // The tar reader skips the rest of a sparse file, whose length in the archive is the length in its header.
        let left = if kind == EntryType::GNUSparse {
            entry.header().entry_size().map_err(|error| damaged_archive(of, &error))?
        } else {
            io::copy(&mut entry, &mut io::sink()).map_err(|error| damaged_archive(of, &error))?;
            0
        };
        header.allow(left);
    }
    header.end();
    // The end of the compressed data contains the checksum.
    let mut rest = archive.into_inner();
    io::copy(&mut rest, &mut io::sink()).map_err(|error| damaged_archive(of, &error))?;
    if !any {
        let what = "is an empty tar archive, or not an archive";
        return Err(of.error_for("", FileProblem::unsupported(what)));
    }
    Ok(())
}

/// Reads a Debian package: an `ar` archive with the files in `data.tar`, and the scripts or programs of the installation in
/// `control.tar`.
pub(super) fn walk_deb(file: File, of: &ArchivePlace<'_>) -> Result<&'static str, FileError> {
    let data = Contents::from_file(file, Path::new(&of.archive))?;
    let mut has_data = false;
    for member in ar::archive_members(&data).map_err(|error| of.error_for("", error))? {
        let member = member.map_err(|error| of.error_for("", error))?;
        let (name, Some(bytes)) = (member.name, member.data) else { continue };
        let prefix = match name.split(".tar").next() {
            Some("data") => of.prefix.clone(),
            Some("control") => format!("{}{name}!", of.prefix),
            _ => continue,
        };
        let form = ArchiveFormat::from_magic(&bytes[..bytes.len().min(super::HEAD)]);
        let form = form.filter(|form| !matches!(form, ArchiveFormat::Zip | ArchiveFormat::Deb | ArchiveFormat::Rpm));
        let form =
            form.ok_or_else(|| of.error_for(&name, FileProblem::unsupported("is not a known kind of tar archive")))?;
        has_data |= prefix == of.prefix;
        let inner = ArchivePlace { archive: of.archive.clone(), prefix, rooted: true, ..*of };
        for_each_member(decompress(bytes, form, &inner), &inner, &mut |_, _| true)?;
    }
    let missing = FileProblem::damaged("is a Debian package without data.tar");
    if has_data { Ok("Debian package") } else { Err(of.error_for("", missing)) }
}
