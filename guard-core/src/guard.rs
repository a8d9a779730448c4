//! The guard as object files: the note of a component, and the shim.
