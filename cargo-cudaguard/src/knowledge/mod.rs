//! Facts about crates and error messages, from the tables in `data/`.

pub mod crates;
pub mod entry;
pub mod symptoms;
