//! Reader for zip archives: wheels and conda packages. Several threads read the members.

use std::fs::File;
use std::io::Read;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::read::DeflateDecoder;
use rawzip::{
    CompressionMethod, ErrorKind, FileReader, MAX_CENTRAL_DIRECTORY_RECORD_SIZE, ZipArchive, ZipArchiveEntryWayfinder,
    ZipLocator,
};

use crate::cli::platform::is_executable;
use cudaguard::internal::file_error::{FileError, FileProblem};

use super::ArchivePlace;
use super::bounds::{self, Names};

/// Maximum number of threads. More threads do not help, because they share the disk and the memory.
const MOST_THREADS: usize = 4;

/// Maximum number of members in one zip archive, and maximum length of their names in bytes: all names are stored in
/// memory.
const MOST_MEMBERS: usize = 200_000;
const MOST_NAMES: usize = 32 << 20;

/// A record of the central directory.
struct Record {
    name: String,
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    is_encrypted: bool,
    is_link: bool,
    is_executable: bool,
}

pub(super) fn walk_zip(file: File, of: &ArchivePlace<'_>) -> Result<&'static str, FileError> {
    let (archive, records) = read_directory(file, of)?;
    let next = AtomicUsize::new(0);
    // The error of the first unreadable member, so that the same archive always gives the same error.
    let failed: Mutex<Option<(usize, FileError)>> = Mutex::new(None);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(record) = records.get(index) else { return };
            if let Err(why) = read_member(&archive, record, of) {
                next.store(records.len(), Ordering::Relaxed);
                let mut failed = failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if failed.as_ref().is_none_or(|(first, _)| index < *first) {
                    *failed = Some((index, why));
                }
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS).min(records.len());
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    if let Some((_, why)) = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        return Err(why);
    }
    Ok(if records.iter().any(|record| record.name == "PEX-INFO") {
        "PEX file"
    } else if records.iter().any(|record| record.name == "__main__.py") {
        "Python zip application"
    } else {
        "zip archive"
    })
}

/// Reads the central directory. Rejects names that occur twice and members that share bytes: an unpacker could see other
/// files than this reader.
fn read_directory(file: File, of: &ArchivePlace<'_>) -> Result<(ZipArchive<FileReader>, Vec<Record>), FileError> {
    let describe = |error: rawzip::Error| of.error_for("", zip_problem(error));
    let length = file.metadata().map_err(|error| of.error_for("", super::read_problem(error)))?.len();
    let mut buffer = vec![0; MAX_CENTRAL_DIRECTORY_RECORD_SIZE];
    let archive = ZipLocator::new()
        .locate_in_reader(FileReader::from(file), &mut buffer, length)
        .map_err(|(_, error)| describe(error))?;
    let (mut records, mut names, mut ranges) = (Vec::new(), Names::default(), Vec::new());
    let mut names_length = 0;
    let mut entries = archive.entries(&mut buffer);
    while let Some(entry) = entries.next_entry().map_err(describe)? {
        let path = entry.file_path();
        let name = bounds::shown(path.as_bytes());
        if !names.insert(path.as_bytes()) {
            return Err(of.error_for(&name, FileProblem::damaged("occurs twice in the archive")));
        }
        names_length += name.len();
        if records.len() == MOST_MEMBERS || names_length > MOST_NAMES {
            let why = format!("has more than {MOST_MEMBERS} members, or {} MiB of names", MOST_NAMES >> 20);
            return Err(of.error_for("", FileProblem::too_large(why)));
        }
        let place = entry.wayfinder();
        let (_, end) = archive.get_entry(place).map_err(describe)?.compressed_data_range();
        ranges.push((entry.local_header_offset(), end));
        records.push(Record {
            name,
            place,
            method: entry.compression_method(),
            is_encrypted: entry.flags().is_encrypted(),
            is_link: entry.mode().is_symlink(),
            is_executable: is_executable(entry.mode().value()),
        });
    }
    if (records.len() as u64) < archive.entries_hint() {
        let what = "is cut off or damaged: its directory has too few members";
        return Err(of.error_for("", FileProblem::damaged(what)));
    }
    ranges.sort_unstable();
    if ranges.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        let what = "has overlapping members: possibly a decompression bomb";
        return Err(of.error_for("", FileProblem::damaged(what)));
    }
    Ok((archive, records))
}

fn read_member(archive: &ZipArchive<FileReader>, record: &Record, of: &ArchivePlace<'_>) -> Result<(), FileError> {
    let fails = |problem: FileProblem| of.error_for(&record.name, problem);
    of.budget.count_member().map_err(|why| of.error_for("", why))?;
    let name = bounds::normalize_member_path(&record.name).map_err(fails)?;
    if record.name.ends_with('/') || name.is_empty() {
        return Ok(());
    }
    if record.is_encrypted {
        return Err(fails(FileProblem::unsupported("is encrypted")));
    }
    let (packed, stated) = (record.place.compressed_size_hint(), record.place.uncompressed_size_hint());
    bounds::check_ratio(packed, stated).map_err(fails)?;
    let entry = archive.get_entry(record.place).map_err(|error| fails(zip_problem(error)))?;
    let unpacked: Box<dyn Read + '_> = match record.method {
        CompressionMethod::STORE => Box::new(entry.reader()),
        CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(entry.reader())),
        other => {
            let method = other.as_u16();
            let what = format!("is compressed with method {method}, which cudaguard does not support");
            return Err(fails(FileProblem::unsupported(what)));
        }
    };
    let mut member = entry.verifying_reader(unpacked);
    if record.is_link {
        let mut target = String::new();
        let read = member.take(super::LONGEST_TEXT).read_to_string(&mut target);
        read.map_err(|error| fails(super::read_problem(error)))?;
        return of.add_link(&name, &target);
    }
    of.read_member(&name, record.is_executable, &mut BoundedEntry { reader: &mut member, packed, length: 0 }, stated)
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

fn zip_problem(error: rawzip::Error) -> FileProblem {
    match error.into_kind() {
        ErrorKind::IO(error) => super::read_problem(error),
        kind => FileProblem::damaged(format!("is cut off or damaged: {kind}")),
    }
}
