//! Replaces a file by a changed copy, without a moment in which it is missing or incomplete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::attributes::keep_capabilities;

/// A file that is removed on drop, unless it was renamed.
struct Temporary(Option<PathBuf>);

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            let _ = fs::remove_file(path);
        }
    }
}

/// The offset in the file, and the new bytes.
pub(super) type NotePatch = (u64, Vec<u8>);

/// Replaces `file` by a changed copy of `from`; both may be the same file.
pub(super) fn replace_file(file: &Path, from: &Path, changes: &[NotePatch]) -> io::Result<()> {
    let metadata = fs::metadata(from)?;
    let (dir, name) = (file.parent(), file.file_name());
    let (Some(dir), Some(name)) = (dir, name) else { return Err(io::ErrorKind::InvalidInput.into()) };
    let prefix = format!(".{}.cudaguard-{}", name.to_string_lossy(), process_space());
    remove_leftovers(dir, &prefix);
    let mut temporary = create_temporary(dir, &prefix)?;
    let Some(path) = temporary.0.clone() else { return Err(io::ErrorKind::NotFound.into()) };
    fs::copy(from, &path)?;
    // The copy of a read-only file is read-only.
    set_writable(&path)?;
    write_changes(&path, changes)?;
    keep_owner(&path, &metadata);
    fs::set_permissions(&path, metadata.permissions())?;
    if file == from {
        keep_capabilities(&path, from)?;
    }
    fs::rename(&path, file)?;
    temporary.0 = None;
    Ok(())
}

pub(super) fn write_changes(file: &Path, changes: &[NotePatch]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(file)?;
    for (offset, bytes) in changes {
        file.seek(SeekFrom::Start(*offset))?;
        file.write_all(bytes)?;
    }
    Ok(())
}

fn create_temporary(dir: &Path, prefix: &str) -> io::Result<Temporary> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("{prefix}{}-{number}", std::process::id()));
        match File::create_new(&path) {
            Ok(_) => return Ok(Temporary(Some(path))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Identifies the processes among which a process id is unique: those of one boot and one PID namespace. Containers
/// that share a directory do not see each other's processes.
fn process_space() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let digits: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    format!("{}.{digits}-", boot.get(..8).unwrap_or_default())
}

/// Removes temporary files of processes that were killed. Files of running processes are not removed.
fn remove_leftovers(dir: &Path, prefix: &str) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(prefix)?.split('-').next());
        let Some(process) = process.and_then(|number| number.parse::<u32>().ok()) else { continue };
        if Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{process}")).exists() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns true if the file has only one hard link. With several, another program such as a cache may use the file.
#[cfg(unix)]
pub(super) fn has_one_name(file: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(file).is_ok_and(|about| about.nlink() == 1)
}

#[cfg(not(unix))]
pub(super) fn has_one_name(_: &Path) -> bool {
    false
}

#[cfg(unix)]
fn set_writable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
#[allow(clippy::permissions_set_readonly_false)]
fn set_writable(path: &Path) -> io::Result<()> {
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_readonly(false);
    fs::set_permissions(path, permissions)
}

/// Sets the owner before the mode, because changing the owner clears mode bits. Only root can do this, and only for
/// root it is necessary.
#[cfg(unix)]
fn keep_owner(path: &Path, metadata: &fs::Metadata) {
    use std::os::unix::fs::MetadataExt as _;
    if !fs::metadata(path).is_ok_and(|new| (new.uid(), new.gid()) == (metadata.uid(), metadata.gid())) {
        let _ = std::os::unix::fs::chown(path, Some(metadata.uid()), Some(metadata.gid()));
    }
}

#[cfg(not(unix))]
fn keep_owner(_: &Path, _: &fs::Metadata) {}
