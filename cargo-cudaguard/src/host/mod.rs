//! Machines: what they have, and which programs start there.

pub mod diagnosis;
pub mod dry_run;
pub(crate) mod formats;
pub(crate) mod libcuda_fix;
pub mod library_version;
pub mod machine;
