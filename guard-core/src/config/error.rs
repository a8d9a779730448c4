//! Errors of the files that a project writes.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::sys::file_error::{FileError, FileProblem};
use crate::text::sanitize;

/// A policy or a lock that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The file cannot be read.
    File(FileError),
    /// The file contains mistakes.
    Mistakes {
        /// The file.
        path: PathBuf,
        /// Each mistake after its line: the key and the expected value.
        mistakes: Vec<(usize, String)>,
        /// True if there are more mistakes.
        more: bool,
    },
}

impl ConfigError {
    /// Creates the error of a file with one mistake.
    pub(super) fn mistake(path: &Path, line: usize, message: &str) -> Self {
        Self::Mistakes { path: path.to_owned(), mistakes: vec![(line, message.to_owned())], more: false }
    }

    /// Creates the error of a file that the system cannot read.
    pub(super) fn unreadable(path: &Path, error: io::Error) -> Self {
        Self::File(match fs::read_link(path) {
            Ok(to) if error.kind() == io::ErrorKind::NotFound => {
                let what = format!("is a link to {}, which does not exist", to.display());
                FileError::read(path, FileProblem::unsupported(what))
            }
            _ => FileError::read(path, error),
        })
    }
}

/// One line for each mistake.
impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, mistakes, more) = match self {
            Self::File(error) => return error.fmt(f),
            Self::Mistakes { path, mistakes, more } => (path.display(), mistakes, *more),
        };
        for (at, (line, message)) in mistakes.iter().enumerate() {
            let separator = if at > 0 { "\n" } else { "" };
            write!(f, "{separator}{path}:{line}: {}", sanitize::sanitize_line(message))?;
        }
        if more { write!(f, "\n{path}: and more errors, which are not listed") } else { Ok(()) }
    }
}

impl Error for ConfigError {}

impl From<FileError> for ConfigError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

/// Checks that this can be a text file of at most this size: a policy, a lock, a host file. A file that could block or
/// never end is not opened.
pub fn check_regular_file(metadata: &fs::Metadata, what: &str, largest: u64) -> Result<(), FileProblem> {
    let size = metadata.len();
    if metadata.is_dir() {
        Err(FileProblem::unsupported(format!("is a directory; expected a {what} file")))
    } else if !metadata.is_file() {
        Err(FileProblem::unsupported(format!("is not a regular file; expected a {what} file")))
    } else if size > largest {
        let what = format!("has {size} bytes, but a {what} file has at most {largest}: this is another kind of file");
        Err(FileProblem::too_large(what))
    } else {
        Ok(())
    }
}
