//! cudart, the CUDA runtime: a part of the toolkit whose shared library comes with programs and drivers of other releases.

use super::{CodeMark, Library, LibraryNames, Traces};
use crate::version::CudaVersion;

/// libcudart. No text or note in its file says its release (13.0 to 13.5): that stands in the code of
/// `cudaRuntimeGetVersion` alone, so the file's name has to.
pub static CUDART: Library = Library {
    key: "cudart",
    name: "cudart",
    stem: "libcudart",
    majors: 12..=19,
    // Two numbers up to 11, whose name is libcudart.so.11.0 in every minor.
    older_sonames: &["11.0", "10.2", "10.1", "10.0", "9.2", "9.1", "9.0", "8.0"],
    parts: &[],
    own_text: false,
    names: LibraryNames::NONE,
    // Measured on 11.8, 13.0 and 13.5: the static cudart leaves symbols `libcudart_static_<hash>` where the file is not
    // stripped; stripped, two texts that stand in every cudart and only there: its table of error names and the name of its
    // shared memory. Bindings to cudart hold the first alone.
    traces: Traces {
        functions: None,
        wanted: &["__cudaRegisterFatBinary", "cudaMalloc"],
        opened_for: "cudaMalloc",
        answers: None,
        inside: &[
            CodeMark { text: "/cudart.shm.", version: None },
            CodeMark { text: "cudaErrorCudartUnloading\0", version: None },
        ],
    },
    asked: None,
    made_with: None,
    table: None,
};

/// The version in a soname, `libcudart.so.13` or `libcudart.so.11.0`.
pub(crate) fn cudart_named(soname: &str) -> Option<CudaVersion> {
    let number = CUDART.soname_version(soname)?;
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    Some(CudaVersion::new(major.parse().ok()?, minor.parse().ok()?))
}
