//! The manifest of a component, and the note that contains it.

pub mod model;
pub mod note;
pub(crate) mod windows;
