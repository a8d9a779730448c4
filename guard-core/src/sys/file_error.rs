//! Errors of files that cannot be read or written.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::{self, Display};
use std::io;
use std::path::Path;

/// What is wrong with a file. The text follows the name of the file: `is empty`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileProblem {
    /// The system cannot read or write it.
    Io(io::ErrorKind, String),
    /// It has no content.
    Empty,
    /// It is damaged or cut off.
    Damaged(Cow<'static, str>),
    /// It is a kind of file that cudaguard does not read, or that the operation does not accept.
    Unsupported(Cow<'static, str>),
    /// It exceeds a limit.
    TooLarge(Cow<'static, str>),
}

impl FileProblem {
    /// Creates a problem of a damaged file.
    pub fn damaged(what: impl Into<Cow<'static, str>>) -> Self {
        Self::Damaged(what.into())
    }

    /// Creates a problem of a file of another kind.
    pub fn unsupported(what: impl Into<Cow<'static, str>>) -> Self {
        Self::Unsupported(what.into())
    }

    /// Creates a problem of a file that exceeds a limit.
    pub fn too_large(what: impl Into<Cow<'static, str>>) -> Self {
        Self::TooLarge(what.into())
    }
}

impl Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::Io(_, text) => f.write_str(text),
            Self::Damaged(text) | Self::Unsupported(text) | Self::TooLarge(text) => f.write_str(text),
        }
    }
}

impl Error for FileProblem {}

/// A reader of a format passes its own problem through [`io::Error`].
impl From<io::Error> for FileProblem {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(problem) => problem,
            Err(error) => Self::Io(error.kind(), error.to_string()),
        }
    }
}

impl From<FileProblem> for io::Error {
    fn from(problem: FileProblem) -> Self {
        Self::other(problem)
    }
}

/// The operation that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Read,
    Write,
    Create,
}

/// A file that cannot be read or written, or a member of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    operation: Operation,
    /// The path. That of a member follows the archive and `!`.
    pub file: String,
    /// The reason.
    pub problem: FileProblem,
}

impl FileError {
    /// Creates an error of a file or member that cannot be read.
    pub fn new(file: impl Into<String>, problem: impl Into<FileProblem>) -> Self {
        Self { operation: Operation::Read, file: file.into(), problem: problem.into() }
    }

    /// Creates an error of a file that cannot be read.
    pub fn read(path: &Path, problem: impl Into<FileProblem>) -> Self {
        Self::new(path.display().to_string(), problem)
    }

    /// Creates an error of a file that cannot be written.
    pub fn write(path: &Path, problem: impl Into<FileProblem>) -> Self {
        Self { operation: Operation::Write, ..Self::read(path, problem) }
    }

    /// Creates an error of a directory or link that cannot be created.
    pub fn create(path: &Path, problem: impl Into<FileProblem>) -> Self {
        Self { operation: Operation::Create, ..Self::read(path, problem) }
    }
}

impl Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, file, problem } = self;
        match operation {
            Operation::Read => write!(f, "{file}: {problem}"),
            Operation::Write => write!(f, "cannot write {file}: {problem}"),
            Operation::Create => write!(f, "cannot create {file}: {problem}"),
        }
    }
}

impl Error for FileError {}
