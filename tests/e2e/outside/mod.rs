//! Environment of the command: archives of real parts, special files in place of each input, output that cannot be written,
//! Python, and CI pipelines.

mod artifacts;
mod closed_output;
mod conda;
mod environment;
mod family;
mod memory;
mod python;
mod special_files;
mod workflows;
