//! Simulated machines: an unmodified program runs with any NVIDIA driver and any GPUs.
//!
//! A [`World`] describes a machine and writes its files to a directory. [`namespace`] mounts them in a mount namespace, in
//! which `/proc/driver`, `/dev`, `/sys/bus/pci`, the loader cache and the library directories are those of the machine. The
//! libraries are [`Fakes`] in C, or real NVIDIA libraries.

mod described;
mod fakes;
pub mod namespace;
mod world;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

pub use described::{Extras, describe};
pub use fakes::Fakes;
pub use world::{DriverLibraries, LibraryLayout, Manner, SimulatedGpu, Text, World};

/// An error that prevents a simulation.
#[derive(Debug)]
pub enum SimulationError {
    /// A file of the machine cannot be written.
    File(PathBuf, io::Error),
    /// `PATH` has no C compiler.
    NoCompiler,
    /// The C compiler failed, with its output.
    Compiler(PathBuf, String),
    /// `ldconfig` failed or cannot be started.
    Ldconfig(io::Error),
    /// The kernel does not permit the namespace or a mount: the operation, and the error.
    Namespace(String, io::Error),
    /// The machine has no NVIDIA driver, and this file of the present one would be visible.
    Visible(PathBuf),
}

impl SimulationError {
    fn file(path: &Path, error: io::Error) -> Self {
        Self::File(path.to_owned(), error)
    }
}

impl fmt::Display for SimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, error) => write!(
                f,
                "cannot write {}: {error}\n  hint: set XDG_CACHE_HOME to a directory that can be written",
                path.display()
            ),
            Self::NoCompiler => f.write_str(
                "the fake driver is compiled on this machine, and PATH contains no C compiler\n  \
                 searched: cc, gcc, clang\n  hint: install one, such as the package gcc",
            ),
            Self::Compiler(compiler, text) => {
                write!(
                    f,
                    "{} cannot compile the fake driver\n  {}",
                    compiler.display(),
                    text.trim().replace('\n', "\n  ")
                )
            }
            Self::Ldconfig(error) => write!(f, "ldconfig cannot write the loader cache of the machine: {error}"),
            Self::Namespace(operation, error) => {
                write!(f, "this system does not permit a namespace for the machine\n  {operation}: {error}")?;
                namespace::obstacles().iter().try_for_each(|hint| write!(f, "\n  hint: {hint}"))
            }
            Self::Visible(file) => write!(
                f,
                "a machine without a driver cannot hide the driver of this one\n  file: {}\n  hint: run the command in a \
                 container without GPUs",
                file.display()
            ),
        }
    }
}

impl std::error::Error for SimulationError {}
