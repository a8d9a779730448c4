//! Limits for reading untrusted archives. `docs/reference/artifacts.md` documents the values.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use cudaguard::internal::file_error::FileProblem;

/// Maximum nesting of archives, for example an image, its layer, a tar in the layer and a wheel in the tar.
pub(super) const MOST_NESTED: usize = 4;
/// Maximum number of members, including those of inner archives.
const MOST_MEMBERS: u64 = 1_000_000;
/// Maximum number of bytes that are unpacked from one archive, including inner archives.
pub(super) const MOST_UNPACKED: u64 = 64 << 30;
/// Maximum compression ratio of a stream, and of all archives together, that unpack to more than [`SMALL`] bytes.
const MOST_TIMES: u64 = 250;
const SMALL: u64 = 64 << 20;

/// Maximum number of bytes of names and texts that are stored in memory.
const MOST_KEPT: usize = 64 << 20;
/// Memory overhead of a stored name in the tables, in bytes.
const PER_NAME: usize = 96;

/// The resources that were used so far, checked against the limits.
#[derive(Default)]
pub(super) struct Budget {
    members: AtomicU64,
    /// Bytes of the archives on disk, without those inside of others.
    packed: AtomicU64,
    unpacked: AtomicU64,
    kept: AtomicUsize,
    exceeded: AtomicBool,
}

impl Budget {
    /// Counts a member.
    pub(super) fn count_member(&self) -> Result<(), FileProblem> {
        if self.members.fetch_add(1, Ordering::Relaxed) < MOST_MEMBERS {
            return Ok(());
        }
        self.exceeded.store(true, Ordering::Relaxed);
        Err(FileProblem::too_large(format!("has more than {MOST_MEMBERS} members")))
    }

    /// Returns true if a limit is exceeded.
    pub(super) fn is_exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }

    pub(super) fn member_count(&self) -> u64 {
        self.members.load(Ordering::Relaxed)
    }

    /// Counts the memory for a stored name or text of this length.
    pub(super) fn keep(&self, bytes: usize) -> Result<(), FileProblem> {
        let bytes = bytes.saturating_add(PER_NAME);
        if self.kept.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= MOST_KEPT {
            return Ok(());
        }
        self.exceeded.store(true, Ordering::Relaxed);
        Err(FileProblem::too_large(format!("has more than {} MiB of names and texts", MOST_KEPT >> 20)))
    }

    /// Adds the size of an archive that is not inside of another one.
    pub(super) fn add_packed(&self, bytes: u64) {
        self.packed.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts unpacked bytes, those of nested archives included, against the size of the archives on disk.
    pub(super) fn count_unpacked(&self, bytes: u64) -> Result<(), FileProblem> {
        let unpacked = self.unpacked.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let within = if unpacked > MOST_UNPACKED {
            Err(FileProblem::too_large(format!("unpacks to more than {} GiB in all", MOST_UNPACKED >> 30)))
        } else {
            check_ratio(self.packed.load(Ordering::Relaxed), unpacked)
        };
        self.exceeded.fetch_or(within.is_err(), Ordering::Relaxed);
        within
    }
}

/// Checks the compression ratio of a stream.
pub(super) fn check_ratio(packed: u64, unpacked: u64) -> Result<(), FileProblem> {
    if unpacked <= SMALL || unpacked / MOST_TIMES <= packed {
        return Ok(());
    }
    let what = format!("unpacks to more than {MOST_TIMES} times its size: possibly a decompression bomb");
    Err(FileProblem::too_large(what))
}

/// Reader for unpacked data that checks its length against the length of the packed data.
pub(super) struct Unpacked<'a, R> {
    pub(super) reader: R,
    pub(super) packed: Arc<AtomicU64>,
    pub(super) length: u64,
    pub(super) budget: &'a Budget,
}

impl<R: Read> Read for Unpacked<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.length += length as u64;
        self.budget.count_unpacked(length as u64)?;
        check_ratio(self.packed.load(Ordering::Relaxed), self.length)?;
        Ok(length)
    }
}

/// Reader that counts the packed bytes of a stream.
pub(super) struct Packed<R> {
    pub(super) reader: R,
    pub(super) length: Arc<AtomicU64>,
}

impl<R: Read> Read for Packed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.length.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

/// Set of names, stored as hashes so that a million names need little memory.
#[derive(Default)]
pub(super) struct Names(HashSet<[u64; 2]>);

impl Names {
    /// Adds a name and returns true if it is new.
    pub(super) fn insert(&mut self, name: &[u8]) -> bool {
        self.0.insert(hash(name))
    }

    pub(super) fn contains(&self, name: &[u8]) -> bool {
        self.0.contains(&hash(name))
    }

    pub(super) fn extend(&mut self, other: &Self) {
        self.0.extend(&other.0);
    }
}

/// Hashes a name with two random keys for each process, so that no archive can be crafted whose names collide.
fn hash(name: &[u8]) -> [u64; 2] {
    static HASHERS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
    HASHERS.each_ref().map(|hasher| hasher.hash_one(name))
}

/// Returns a name for display. Bytes that are not UTF-8 are written as `\xff`, so that different names look different.
pub(super) fn shown(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for part in name.utf8_chunks() {
        text.push_str(part.valid());
        for byte in part.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Normalizes the path of a member: without `./`, and without the `/` at the end of a directory.
pub(super) fn normalize_member_path(name: &str) -> Result<String, FileProblem> {
    if name.contains('\0') {
        return Err(FileProblem::damaged("its path contains a NUL byte"));
    }
    if name.starts_with(['/', '\\']) || name.as_bytes().get(1) == Some(&b':') && name[2..].starts_with(['/', '\\']) {
        return Err(FileProblem::unsupported("its path is absolute"));
    }
    if name.split(['/', '\\']).any(|part| part == "..") {
        return Err(FileProblem::unsupported("its path is outside of the archive (`..`)"));
    }
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    Ok(parts.join("/"))
}

/// Resolves the target of the link `member`, relative to the root of the archive. If `rooted` is set, this root is the
/// root of a file system.
pub(super) fn resolve_link(member: &str, target: &str, rooted: bool) -> Result<String, FileProblem> {
    let mut at: Vec<&str> = member.split('/').collect();
    at.pop();
    let mut is_outside = false;
    if target.starts_with('/') {
        is_outside = true;
        at.clear();
    }
    for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            is_outside |= at.pop().is_none();
        } else {
            at.push(part);
        }
    }
    if is_outside && !rooted {
        return Err(FileProblem::unsupported(format!("is a link to a target outside of the archive: {target}")));
    }
    Ok(at.join("/"))
}
