//! Detects a program that loads libtorch without its CUDA part, although its libtorch has one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::binary::file::Binary;

/// The file names of libtorch's CUDA part. Before `PyTorch` 2, it could consist of two libraries.
const CUDA_PARTS: [&str; 2] = ["libtorch_cuda.so", "libtorch_cuda_cu.so"];

/// A libtorch with a CUDA part that a program does not load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnloadedTorchCuda {
    /// The library of libtorch that the program needs.
    pub library: String,
    /// The CUDA part next to it.
    pub path: PathBuf,
}

impl UnloadedTorchCuda {
    /// Returns the CUDA part of libtorch that a file with these `DT_NEEDED` entries does not load. `searched` are the
    /// directories in which the linker searched for libraries.
    pub fn detect(needed: &[String], searched: &[PathBuf]) -> Option<Self> {
        let library =
            needed.iter().find(|name| name.starts_with("libtorch.so") || name.starts_with("libtorch_cpu.so"))?;
        let path = cuda_part(searched.iter().find(|dir| dir.join(library).is_file())?)?;
        (!loads_gpu_part(needed, searched)).then(|| Self { library: library.clone(), path })
    }
}

/// Returns the CUDA part of the libtorch in a directory.
pub fn cuda_part(dir: &Path) -> Option<PathBuf> {
    CUDA_PARTS.iter().map(|name| dir.join(name)).find(|path| path.is_file())
}

/// Returns true if the dynamic linker loads libtorch's part for CUDA, or that for AMD, with these libraries: libtorch.so
/// may need it. True also if there are more libraries than any build has.
fn loads_gpu_part(needed: &[String], searched: &[PathBuf]) -> bool {
    const MOST: usize = 1000;
    let (mut open, mut seen) = (needed.to_vec(), BTreeSet::new());
    while let Some(name) = open.pop() {
        if seen.len() == MOST || name.starts_with("libtorch_cuda") || name.starts_with("libtorch_hip") {
            return true;
        }
        if !seen.insert(name.clone()) {
            continue;
        }
        let file = searched.iter().map(|dir| dir.join(&name)).find(|file| file.is_file());
        open.extend(file.and_then(|file| Binary::read(&file).ok()).map(|library| library.needed).unwrap_or_default());
    }
    false
}
