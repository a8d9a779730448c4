//! Operations that differ between operating systems.

use std::ffi::OsStr;
use std::fs::{File, FileType, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a program in the place of this process, and returns the error if it cannot start. Where no process can become another one,
/// this process waits and ends with the status of the program.
pub(crate) fn replace_process(command: &mut Command) -> io::Error {
    #[cfg(unix)]
    {
        std::os::unix::process::CommandExt::exec(command)
    }
    #[cfg(not(unix))]
    {
        crate::signals::leave_to_cargo();
        match command.status() {
            Ok(status) => std::process::exit(status.code().unwrap_or(1)),
            Err(error) => error,
        }
    }
}

/// Returns the file that starts for the name of a program: in `PATH` if the name has no slash.
pub(crate) fn find_program(name: &OsStr) -> Option<PathBuf> {
    which::which(name).ok()
}

/// Returns a hint for a file that does not exist, if `PATH` has a program of its name.
pub(crate) fn hint_of_path(file: &Path) -> String {
    let is_name = file.file_name() == Some(file.as_os_str()) && !file.exists();
    let program = is_name.then(|| find_program(file.as_os_str())).flatten();
    program.map(|program| format!("; the program of this name is {}", program.display())).unwrap_or_default()
}

/// Reads from an offset, whatever the position of the file.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    {
        std::os::unix::fs::FileExt::read_at(file, buffer, offset)
    }
    #[cfg(windows)]
    {
        use std::io::Seek as _;
        // The call moves the position of the file, which other readers use.
        let mut file = file;
        let before = file.stream_position()?;
        let length = std::os::windows::fs::FileExt::seek_read(file, buffer, offset);
        file.seek(io::SeekFrom::Start(before))?;
        length
    }
}

/// Makes a link to a file or a directory. Windows allows symbolic links only to administrators and developers, so a file gets a hard
/// link there, or is copied to another volume.
pub(crate) fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(target, link)
    }
    #[cfg(windows)]
    if target.as_ref().is_dir() {
        std::os::windows::fs::symlink_dir(target, link)
    } else {
        match std::fs::hard_link(&target, &link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => std::fs::copy(target, link).map(drop),
            made => made,
        }
    }
}

/// Returns true if [`symlink`] has made this link to this file.
pub(crate) fn is_link_to(link: &Path, target: &Path) -> bool {
    #[cfg(unix)]
    {
        std::fs::read_link(link).is_ok_and(|to| to == target)
    }
    #[cfg(windows)]
    {
        let [link, target] = [link, target].map(|path| std::fs::metadata(path).ok());
        link.zip(target)
            .is_some_and(|(link, target)| link.len() == target.len() && link.modified().ok() >= target.modified().ok())
    }
}

/// Returns true if these permissions of Unix let someone execute a file.
pub(crate) const fn is_executable(mode: u32) -> bool {
    mode & 0o111 != 0
}

/// Returns true if someone may execute a file. Windows has no such permission.
pub(crate) fn is_executable_file(metadata: &Metadata) -> bool {
    #[cfg(unix)]
    {
        is_executable(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()))
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        false
    }
}

/// Returns true for a pipe that has a place in the file system.
pub(crate) fn is_fifo(kind: FileType) -> bool {
    #[cfg(unix)]
    {
        std::os::unix::fs::FileTypeExt::is_fifo(&kind)
    }
    #[cfg(not(unix))]
    {
        let _ = kind;
        false
    }
}
