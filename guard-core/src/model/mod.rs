//! Versions, architectures and kinds of linkage.

pub mod arch;
pub mod linkage;
pub mod version;
