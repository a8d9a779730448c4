//! GPU code in any file.
