//! cuDNN: a loader library and the parts that it opens, all of one release.

use std::sync::OnceLock;

use super::{CodeMark, InCode, Library, LibraryNames, LibraryTable, Part, Traces, VersionGetter};

/// libcudnn. Its parts tell the version (an exported word: measured, 8.5 to 9.28); cuDNN 7 is one library.
///
/// `libcudnn_ops` is not among the needed ones (docs/internals/decisions, decision 41): without it cuDNN 9 answers
/// `cudnnGetVersion` and `cudnnCreate` (measured with the loader and `libcudnn_graph` of 9.15.1 alone), and the graph
/// library names no other among the libraries that it needs. A program that only asks, or only uses the graph API, works:
/// refusing it would be a false alarm. One that does need it is told by cuDNN itself, which names the file
/// (`Unable to load any of {libcudnn_ops.so.9.10.2, ...`), and the report has warned before.
pub(super) const CUDNN: Library = Library {
    key: "cudnn",
    name: "cuDNN",
    stem: "libcudnn",
    majors: 5..=19,
    older_sonames: &[],
    parts: &[
        Part { needed: true, ..with_word(8, "libcudnn_ops_infer.so.8", "cudnn_ops_infer_version") },
        Part { needed: true, ..with_word(9, "libcudnn_graph.so.9", "cudnn_graph_version") },
        // The symbol kept its name from cuDNN 8 (measured: 9.1.0, 9.15.1, 9.28.0).
        with_word(9, "libcudnn_ops.so.9", "cudnn_ops_infer_version"),
        // These have no word, or are too large to ask for it at each start: the names of their files tell, where they do, and the
        // command looks into their code (measured on x86-64: 9.0.0 to 9.28.1, for CUDA 11 to 13).
        opened_later(8, "libcudnn_ops_train.so.8", InCode::Unknown),
        opened_later(8, "libcudnn_cnn_infer.so.8", InCode::Unknown),
        opened_later(8, "libcudnn_cnn_train.so.8", InCode::Unknown),
        opened_later(8, "libcudnn_adv_infer.so.8", InCode::Unknown),
        opened_later(8, "libcudnn_adv_train.so.8", InCode::Unknown),
        opened_later(9, "libcudnn_cnn.so.9", InCode::Logged("cudnnCnnVersionCheck")),
        opened_later(9, "libcudnn_adv.so.9", InCode::Logged("cudnnAdvVersionCheck")),
        opened_later(9, "libcudnn_engines_precompiled.so.9", InCode::Compared),
        opened_later(9, "libcudnn_engines_runtime_compiled.so.9", InCode::Compared),
        opened_later(9, "libcudnn_heuristic.so.9", InCode::Compared),
    ],
    own_text: false,
    names: LibraryNames {
        // The header of 8 and 9 that is called as the library says no version by itself; 7's does.
        headers: &[
            "cudnn_version.h",
            "cudnn_version_v9.h",
            "cudnn_version_v8.h",
            "cudnn.h",
            "cudnn_v9.h",
            "cudnn_v8.h",
        ],
        macros: ["CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"],
        include: "CUDNN_INCLUDE_DIR",
        // cudarc takes CUDNN_LIB for a root as well.
        files: &["CUDNN_LIBRARY", "CUDNN_LIB"],
        roots: &["CUDNN_PATH", "CUDNN_HOME", "CUDNN_ROOT", "CUDNN_ROOT_DIR"],
    },
    // A static cuDNN brings a text `cudnn_version_<major>_…_` along (measured: 7.6 to 9.28); cuDNN's own libraries hold it
    // too.
    traces: Traces {
        functions: Some("cudnn"),
        wanted: &[],
        opened_for: "cudnnCreate",
        answers: Some("CUDNN_STATUS_"),
        inside: &[CodeMark { text: "cudnn_version_", version: Some('_') }],
    },
    asked: Some(VersionGetter { function: "cudnnGetVersion", scales: &[(90_000, 10_000), (0, 1000)] }),
    // Measured on x86-64: 8.5.0 to 9.28.0, for CUDA 11 to 13; the major and minor in 9.1.0 to 9.28.0.
    made_with: Some("cudnnGetCudartVersion"),
    table: Some(cudnn_table),
};

const fn with_word(major: u32, file: &'static str, symbol: &'static str) -> Part {
    Part { major, file, symbol, needed: false, in_code: InCode::Unknown }
}

/// A part that is opened by the calls that need it, and not before.
const fn opened_later(major: u32, file: &'static str, in_code: InCode) -> Part {
    Part { major, file, symbol: "", needed: false, in_code }
}

fn cudnn_table() -> &'static LibraryTable {
    static TABLE: OnceLock<LibraryTable> = OnceLock::new();
    TABLE.get_or_init(|| LibraryTable::compiled_in("cudnn.toml", include_str!("../../data/cudnn.toml")))
}
