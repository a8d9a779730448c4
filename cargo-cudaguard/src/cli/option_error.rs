//! Options with a wrong value.

use std::fmt;

/// An option whose value has another form than it expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OptionError {
    /// The option, such as `--gpu`.
    pub(crate) option: String,
    /// The value as written.
    pub(crate) value: String,
    /// The expected form.
    pub(crate) expected: &'static str,
}

impl OptionError {
    pub(crate) fn new(option: &str, value: &str, expected: &'static str) -> Self {
        Self { option: option.to_owned(), value: value.to_owned(), expected }
    }
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: expected {}", self.option, self.value, self.expected)
    }
}

impl std::error::Error for OptionError {}
