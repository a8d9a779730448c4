//! The GPUs that the code of a program serves.

pub mod compatibility;
pub mod requirements;
