//! Facts about crates and error messages, from the tables in `data/`.

use std::str::FromStr;

use serde::de::{Deserialize as _, Deserializer, Error as _};

pub mod crates;
pub mod jetpack;
pub(crate) mod publishers;
pub(crate) mod pytorch;
pub mod symptoms;
pub mod vendor;

/// Deserializes a value that is written as a string.
fn from_text<'de, D: Deserializer<'de>, T: FromStr>(input: D) -> Result<T, D::Error> {
    let text = String::deserialize(input)?;
    text.parse().map_err(|_| D::Error::custom(format_args!("`{text}` is not valid here")))
}
