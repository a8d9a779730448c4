//! Errors of the entries of a fleet.

use std::borrow::Cow;
use std::fmt;

use crate::commands::verify;
use crate::host::machine::ParseError;

/// Maximum number of GPUs in one machine.
pub(super) const GPUS: usize = 1024;

/// Why an entry of a fleet cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EntryError {
    /// The value of a key has another form.
    Value {
        /// The key or the label.
        key: Cow<'static, str>,
        /// The expected form.
        expected: &'static str,
        /// The value.
        found: String,
    },
    /// The GPUs of one machine have different drivers. The host, if it is known.
    SeveralDrivers(Option<String>),
    /// A line has another number of values than there are columns.
    Columns {
        /// The number of columns.
        expected: usize,
        /// The number of values.
        found: usize,
    },
    /// The machine has more GPUs than the limit.
    TooManyGpus,
    /// The byte at this offset is not UTF-8.
    NotUtf8(usize),
    /// The entry is a wrong host file.
    HostFile(ParseError),
    /// The file is a wrong host file, whose lines have numbers.
    HostFileAt(ParseError),
    /// The Kubernetes node of this name is wrong.
    Node(String, Box<Self>),
    /// The entry is of another kind.
    Kind(Cow<'static, str>),
}

impl EntryError {
    pub(super) fn value(key: impl Into<Cow<'static, str>>, expected: &'static str, found: &str) -> Self {
        Self::Value { key: key.into(), expected, found: found.to_owned() }
    }

    pub(super) fn kind(what: impl Into<Cow<'static, str>>) -> Self {
        Self::Kind(what.into())
    }
}

impl fmt::Display for EntryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { key, expected, found } => write!(f, "{key}: expected {expected}, found {found:?}"),
            Self::SeveralDrivers(Some(host)) => write!(f, "driver_version: differs from the other GPUs of {host}"),
            Self::SeveralDrivers(None) => f.write_str(
                "driver_version: differs from the other GPUs of the machine; add a column `host` if these are several \
                 machines",
            ),
            Self::Columns { expected, found } => {
                write!(f, "expected {expected} values, one for each column of the first line, found {found}")
            }
            Self::TooManyGpus => write!(f, "more than {GPUS} GPUs in one machine"),
            Self::NotUtf8(at) => write!(f, "byte {at} is not UTF-8"),
            Self::HostFile(error) => error.fmt(f),
            Self::HostFileAt(error) => f.write_str(&verify::position_text(error)),
            Self::Node(name, why) => write!(f, "{name}: {why}"),
            Self::Kind(what) => f.write_str(what),
        }
    }
}
