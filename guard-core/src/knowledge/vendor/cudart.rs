//! cudart, the CUDA runtime: a part of the toolkit whose shared library can be used with drivers of other releases.

use super::{CodeMark, Library, LibraryNames, Traces};
use crate::model::version::CudaVersion;

/// The CUDA runtime that a driver for Windows brings, from CUDA 13 on.
pub const HYBRID: &str = "nvcudart_hybrid64.dll\0";

/// libcudart. No string or note in its file contains its release (13.0 to 13.5), only the code of
/// `cudaRuntimeGetVersion` does. Therefore the release is read from the file name.
pub static CUDART: Library = Library {
    key: "cudart",
    name: "cudart",
    stem: "libcudart",
    majors: 12..=19,
    // Two numbers up to 11, for which every minor has the soname libcudart.so.11.0.
    older_sonames: &["11.0", "10.2", "10.1", "10.0", "9.2", "9.1", "9.0", "8.0"],
    parts: &[],
    names: LibraryNames::NONE,
    // Measured on 11.8, 13.0 and 13.5: the static cudart has symbols `libcudart_static_<hash>` if the file is not
    // stripped. A stripped file contains two strings that only cudart has: its table of error names and the name of its
    // shared memory. Bindings to cudart contain only the first.
    traces: Traces {
        functions: None,
        wanted: &["__cudaRegisterFatBinary", "cudaMalloc"],
        opened_for: "cudaMalloc",
        answers: None,
        inside: &[
            CodeMark { text: "/cudart.shm.", version: None },
            CodeMark { text: "cudaErrorCudartUnloading\0", version: None },
        ],
        // Measured on 11.8 to 12.9: the table of error names and the name of the driver's DLL; bindings contain one of them. Measured
        // on 13.0 to 13.3: the static cudart only loads the runtime that comes with the driver.
        inside_pe: &[
            &[
                CodeMark { text: "cudaErrorCudartUnloading\0", version: None },
                CodeMark { text: "nvcuda.dll\0", version: None },
            ],
            &[CodeMark { text: HYBRID, version: None }],
        ],
    },
    asked: None,
    made_with: None,
    table: None,
};

/// Parses the version in a soname: `libcudart.so.13`, `libcudart.so.11.0`, or `libcudart-ab12cd34.so.12.3.101` as
/// auditwheel names the file of a release.
pub fn cudart_named(soname: &str) -> Option<CudaVersion> {
    let numbers = CUDART.soname_version(soname)?;
    let mut numbers = numbers.split('.').map(|number| number.parse().ok());
    Some(CudaVersion::new(numbers.next()??, numbers.next().unwrap_or(Some(0))?))
}

/// Returns whether search paths name the directory of a cudart in NVIDIA's packages for Python, `nvidia/cuda_runtime/lib` or
/// `nvidia/cu13/lib`: the CUDA major in it, or 0 if it has none. A file that needs no cudart and has such a path opens it by name.
pub fn cudart_in_paths(paths: &str) -> Option<u32> {
    paths.split(':').find_map(|path| {
        let (_, package) = path.trim_end_matches('/').strip_suffix("/lib")?.rsplit_once("nvidia/")?;
        match package {
            "cuda_runtime" => Some(0),
            _ => package.strip_prefix("cu")?.parse().ok(),
        }
    })
}
