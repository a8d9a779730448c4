//! Reasons why a file gets no guard.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use super::one_line;
use crate::sys::file_error::FileError;

/// Why there is no guard, in one line. It fails no build, because a guard that breaks builds would be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoGuard {
    /// Files of this target have another format, or no C library of Linux.
    NoElf(String),
    /// CUDA does not exist for this target, whose machines have this property.
    NoCuda(String, &'static str),
    /// The guard for Windows does not support this target.
    Windows(String),
    /// The guard for this target needs clang, and there is none.
    NoClang(String),
    /// There is no compiler for this target, with the reason.
    NoCompiler(String, String),
    /// The compiler cannot be started, with the reason.
    NotStarted(PathBuf, String),
    /// The compiler succeeds and writes no object for the target.
    NoObject {
        /// The compiler.
        compiler: PathBuf,
        /// The target.
        target: String,
        /// The flags.
        flags: String,
    },
    /// The compiler fails, with its exit status and its first error.
    Failed(PathBuf, String),
    /// The compiler does not print its target, with its exit status.
    NoTriple(PathBuf, String),
}

impl fmt::Display for NoGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(&match self {
            Self::NoElf(target) => {
                format!("the guard needs ELF files that start through a Linux C library; {target} has none")
            }
            Self::NoCuda(target, property) => format!("CUDA does not exist for {target}, a {property} machine"),
            Self::Windows(target) => format!(
                "the guard for Windows supports x86_64 with the ABI of GNU or MSVC, and {target} is another target"
            ),
            Self::NoClang(target) => format!("the guard for {target} needs clang, and there is none in PATH"),
            Self::NoCompiler(target, why) => format!("no C compiler for {target}: {why}"),
            Self::NotStarted(compiler, why) => {
                format!("the C compiler `{}` cannot be started: {why}", compiler.display())
            }
            Self::NoObject { compiler, target, flags } => {
                format!("the C compiler `{}` creates no object for {target} with {flags}", compiler.display())
            }
            Self::Failed(compiler, why) => {
                format!("the C compiler `{}` failed on the guard {why}", compiler.display())
            }
            Self::NoTriple(compiler, status) => {
                format!("the compiler {} does not print its target (-dumpmachine): {status}", compiler.display())
            }
        }))
    }
}

impl Error for NoGuard {}

/// Why a part of the guard cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardError {
    /// There is no guard for the target, or no compiler for it.
    NoGuard(NoGuard),
    /// A file cannot be read or written.
    File(FileError),
}

impl fmt::Display for GuardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGuard(why) => why.fmt(f),
            Self::File(error) => error.fmt(f),
        }
    }
}

impl Error for GuardError {}

impl From<NoGuard> for GuardError {
    fn from(why: NoGuard) -> Self {
        Self::NoGuard(why)
    }
}

impl From<FileError> for GuardError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}
