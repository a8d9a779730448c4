//! Evidence of the build in a linked file, and the note that records it.

pub mod check;
pub mod evidence;
pub(crate) mod kernel_ownership;
pub mod linked_lock;
pub(crate) mod linker;
pub mod seal;
pub mod torch;
