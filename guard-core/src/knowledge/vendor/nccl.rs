//! NCCL: a single library, whose file name in pip's packages contains only its major.

use super::{CodeMark, Library, LibraryNames, Traces, VersionGetter};

/// libnccl. Its code contains the line that it prints if `NCCL_DEBUG` is set, `NCCL version 2.21.5+cuda12.4` (measured
/// in pip's packages: 2.16.5, 2.18.1, 2.21.5 and 2.27.7 for CUDA 12; 2.27.7 and 2.32.3 for CUDA 13).
pub static NCCL: Library = Library {
    key: "nccl",
    name: "NCCL",
    stem: "libnccl",
    majors: 1..=9,
    older_sonames: &[],
    parts: &[],
    names: LibraryNames::NONE,
    traces: Traces {
        functions: Some("nccl"),
        wanted: &[],
        opened_for: "ncclCommInitRank",
        answers: None,
        inside: &[CodeMark { text: "NCCL version ", version: Some('.') }],
        inside_pe: &[],
    },
    // `NCCL_VERSION` in nccl.h: up to 2.8 the major is multiplied by 1000.
    asked: Some(VersionGetter { function: "ncclGetVersion", scales: &[(10_000, 10_000), (0, 1000)] }),
    made_with: None,
    table: None,
};
