//! The project as cargo sees it, and what a build of it leaves for the wrapper.

pub(crate) mod build_context;
pub(crate) mod build_records;
pub(crate) mod config;
pub(crate) mod graph;
pub(crate) mod guards;
pub(crate) mod project;
