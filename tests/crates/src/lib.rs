//! An empty crate: only its manifest and its lock are used.
