//! Nothing is built here: its manifest and its lock are what counts.
