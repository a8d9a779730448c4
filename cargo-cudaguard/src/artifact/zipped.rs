//! Reader for zip archives: wheels and conda packages. Several threads read the members.

use std::fs::File;
use std::io::Read as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use crate::cli::platform::{is_executable, read_exact_at};

use super::bounds::Names;
use super::{ArchivePlace, ReadAt, bounds};

/// Maximum number of threads. More threads do not help, because they share the disk and the memory.
const MOST_THREADS: usize = 4;
type Source = ReadAt<Arc<File>>;
const LINK: u32 = 0o120_000;
const KIND: u32 = 0o170_000;

/// Maximum number of members in one zip archive, and maximum length of their names in bytes: the reader stores all
/// names in memory.
const MOST_MEMBERS: u64 = 200_000;
const MOST_NAMES: u64 = 32 << 20;

pub(super) fn walk_zip(file: &Arc<File>, of: &ArchivePlace<'_>) -> Result<&'static str, String> {
    check_directory(file).map_err(|why| of.error_for("", why))?;
    let archive = ZipArchive::new(ReadAt { file: Arc::clone(file), at: 0 })
        .map_err(|error| of.error_for("", describe_zip_error(&error)))?;
    let kind = check_names(file, &archive, of)?;
    let mut all = archive.clone();
    if all.has_overlapping_files().map_err(|error| of.error_for("", describe_zip_error(&error)))? {
        return Err(of.error_for("", "has overlapping members: possibly a decompression bomb"));
    }
    let next = AtomicUsize::new(0);
    // The error of the first unreadable member, so that the same archive always gives the same error.
    let failed: Mutex<Option<(usize, String)>> = Mutex::new(None);
    let work = || {
        let mut archive = archive.clone();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= archive.len() {
                return;
            }
            if let Err(why) = read_zip_member(&mut archive, index, of) {
                next.store(usize::MAX / 2, Ordering::Relaxed);
                let mut failed = failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if failed.as_ref().is_none_or(|(first, _)| index < *first) {
                    *failed = Some((index, why));
                }
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS).min(archive.len());
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    match failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some((_, why)) => Err(why),
        None => Ok(kind),
    }
}

/// Rejects a directory that is too large before it is read into memory.
fn check_directory(file: &File) -> Result<(), String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let from = length.saturating_sub(super::END_OF_ZIP);
    let mut end = Vec::new();
    ReadAt { file, at: from }.read_to_end(&mut end).map_err(|error| error.to_string())?;
    let number = |at: usize, width: usize| {
        let bytes = end.get(at..at + width).unwrap_or_default();
        bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    // Several records may be the last one, and each may have a larger variant next to it. All of them must be within
    // the limits.
    for at in 0..end.len().saturating_sub(3) {
        let (members, size) = match &end[at..at + 4] {
            b"PK\x05\x06" => (number(at + 10, 2), number(at + 12, 4)),
            b"PK\x06\x06" => (number(at + 32, 8), number(at + 40, 8)),
            _ => continue,
        };
        let is_64 = members == u64::from(u16::MAX) || size == u64::from(u32::MAX);
        if end[at + 2] == 5 && is_64 {
            continue;
        }
        if members > MOST_MEMBERS || size > MOST_NAMES && size < length {
            return Err(format!("has more than {MOST_MEMBERS} members, or {} MiB of names", MOST_NAMES >> 20));
        }
    }
    Ok(())
}

/// Checks all names, because the reader returns each name only once. Returns a description of the archive.
fn check_names(file: &File, archive: &ZipArchive<Source>, of: &ArchivePlace<'_>) -> Result<&'static str, String> {
    const HEADER: usize = 46;
    let mut known = Names::default();
    let mut members = 0;
    let (mut program, mut pex) = (false, false);
    let mut at = archive.central_directory_start();
    let mut header = [0; HEADER];
    while read_exact_at(file, &mut header, at).is_ok() && header.starts_with(b"PK\x01\x02") {
        let number = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let (name, extra, comment) = (number(28), number(30), number(32));
        let mut bytes = vec![0; name];
        read_exact_at(file, &mut bytes, at + HEADER as u64)
            .map_err(|error| of.error_for("", super::describe_io_error(&error)))?;
        if !known.insert(&bytes) {
            return Err(of.error_for(&bounds::shown(&bytes), "occurs twice in the archive"));
        }
        members += 1;
        program |= bytes == b"__main__.py";
        pex |= bytes == b"PEX-INFO";
        at += (HEADER + name + extra + comment) as u64;
    }
    // If names contain invalid UTF-8, the reader removes it and keeps only one of several equal names.
    if members != archive.len() {
        return Err(of.error_for("", "has names that are marked as UTF-8, but are not"));
    }
    Ok(match (pex, program) {
        (true, _) => "PEX file",
        (false, true) => "Python zip application",
        (false, false) => "zip archive",
    })
}

fn read_zip_member(archive: &mut ZipArchive<Source>, index: usize, of: &ArchivePlace<'_>) -> Result<(), String> {
    let (name, stated, packed) = {
        let raw = archive.by_index_raw(index).map_err(|error| of.error_for("", describe_zip_error(&error)))?;
        let fails = |why: &dyn std::fmt::Display| of.error_for(raw.name(), why);
        of.budget.count_member().map_err(|why| of.error_for("", why))?;
        let name = bounds::normalize_member_path(raw.name()).map_err(|why| fails(&why))?;
        if raw.is_dir() || name.is_empty() {
            return Ok(());
        }
        if raw.encrypted() {
            return Err(fails(&"is encrypted"));
        }
        if !matches!(raw.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) {
            #[expect(deprecated, reason = "nothing else returns the number of an unknown method")]
            let method = raw.compression().to_u16();
            return Err(fails(&format_args!("is compressed with method {method}, which cudaguard does not support")));
        }
        bounds::check_ratio(raw.compressed_size(), raw.size()).map_err(|error| fails(&error))?;
        (name, raw.size(), raw.compressed_size())
    };
    let mut entry = archive.by_index(index).map_err(|error| of.error_for(&name, describe_zip_error(&error)))?;
    if entry.unix_mode().is_some_and(|mode| mode & KIND == LINK) {
        let mut target = String::new();
        let read = entry.take(super::LONGEST_TEXT).read_to_string(&mut target);
        read.map_err(|error| of.error_for(&name, super::describe_io_error(&error)))?;
        return of.add_link(&name, &target);
    }
    let is_executable = entry.unix_mode().is_some_and(is_executable);
    let mut bounded = BoundedEntry { reader: &mut entry, packed, length: 0 };
    of.read_member(&name, is_executable, &mut bounded, stated)
}

/// Reader that limits the unpacked length, independently of the stated size.
struct BoundedEntry<'a, R> {
    reader: &'a mut R,
    packed: u64,
    length: u64,
}

impl<R: std::io::Read> std::io::Read for BoundedEntry<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.length += length as u64;
        bounds::check_ratio(self.packed, self.length)?;
        Ok(length)
    }
}

fn describe_zip_error(error: &ZipError) -> String {
    match error {
        ZipError::Io(error) => super::describe_io_error(error),
        ZipError::InvalidArchive(why) => format!("is cut off or damaged: {why}"),
        ZipError::UnsupportedArchive(why) => format!("cannot be read: {why}"),
        other => other.to_string(),
    }
}
