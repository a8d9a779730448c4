//! Reading and writing text.

pub mod glob;
pub mod json;
pub(crate) mod lists;
pub mod sanitize;
pub mod shell_words;
pub mod suggest;
pub(crate) mod toml_error;
