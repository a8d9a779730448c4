//! Linked files: what they contain, and what the loader makes of them.

pub mod ar;
pub mod dlopen_note;
pub mod elf;
pub mod examined;
pub mod file;
pub mod kernels;
pub mod loader;
pub mod manifest_decoder;
pub mod mapped_file;
pub mod pe;
pub(crate) mod returned_constant;
pub(crate) mod searcher;
pub mod symbols;
pub(crate) mod vendor_symbols;
