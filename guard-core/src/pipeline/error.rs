//! Errors of a build that cannot be checked.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use crate::config::ConfigError;
use crate::knowledge::cudnn;

/// Why a build cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// The policy or the lock cannot be used.
    Config(ConfigError),
    /// A directory that the project names contains no headers of cuDNN.
    NoHeaders {
        /// What names it.
        by: String,
        /// The directory.
        dir: PathBuf,
    },
    /// The build requires a lock, and there is none.
    NoLock {
        /// The file.
        path: PathBuf,
        /// How to write it.
        write: &'static str,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::NoHeaders { by, dir } => {
                let key = cudnn::KEY;
                write!(f, "{by} names {}, which contains no {key}_version.h or {key}.h", dir.display())
            }
            Self::NoLock { path, write } => {
                let path = path.display();
                write!(f, "{path} does not exist, but --locked requires it: {write}, and commit the file")
            }
        }
    }
}

impl Error for BuildError {}

impl From<ConfigError> for BuildError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}
