//! What is known of crates and of error messages, from the tables in `data/`.

pub mod crates;
pub mod entry;
pub mod symptoms;
