//! cuDNN: a loader library and the parts that it loads with dlopen, all of one release.

use super::{CodeMark, InCode, Library, LibraryNames, Part, Traces, VersionGetter, table};

/// libcudnn. Its parts export their version as a data symbol (measured: 8.5 to 9.28); cuDNN 7 is a single library.
///
/// `libcudnn_ops` is not marked as needed (docs/internals/decisions, decision 41): without it, `cudnnGetVersion` and
/// `cudnnCreate` of cuDNN 9 work (measured with only the loader and `libcudnn_graph` of 9.15.1), and the graph library
/// lists no other part among the libraries that it needs. A program that only calls these, or only uses the graph API,
/// works, so refusing it would be a false positive. For a program that needs it, cuDNN itself reports the file
/// (`Unable to load any of {libcudnn_ops.so.9.10.2, ...`), and the report has contained a warning before.
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
        // Parts without a version symbol, or too large to read it at each start: their file names may contain the
        // version, and the command searches their code (measured on x86-64: 9.0.0 to 9.28.1, for CUDA 11 to 13).
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
    names: LibraryNames {
        // In cuDNN 8 and 9, the header with the name of the library contains no version; in cuDNN 7 it does.
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
        // cudarc also accepts a root in CUDNN_LIB.
        files: &["CUDNN_LIBRARY", "CUDNN_LIB"],
        roots: &["CUDNN_PATH", "CUDNN_HOME", "CUDNN_ROOT", "CUDNN_ROOT_DIR"],
    },
    // A static cuDNN contains a string `cudnn_version_<major>_…_` (measured: 7.6 to 9.28); cuDNN's own libraries
    // contain it, too.
    traces: Traces {
        functions: Some("cudnn"),
        wanted: &[],
        opened_for: "cudnnCreate",
        answers: Some("CUDNN_STATUS_"),
        inside: &[CodeMark { text: "cudnn_version_", version: Some('_') }],
        inside_pe: &[&[CodeMark { text: "cudnn_version_", version: Some('_') }]],
    },
    asked: Some(VersionGetter { function: "cudnnGetVersion", scales: &[(90_000, 10_000), (0, 1000)] }),
    // Measured on x86-64: 8.5.0 to 9.28.0, for CUDA 11 to 13; the major and minor in 9.1.0 to 9.28.0.
    made_with: Some("cudnnGetCudartVersion"),
    table: Some(&table::CUDNN),
};

const fn with_word(major: u32, file: &'static str, symbol: &'static str) -> Part {
    Part { major, file, symbol, needed: false, in_code: InCode::Unknown }
}

/// Returns a part that is loaded only by the calls that need it.
const fn opened_later(major: u32, file: &'static str, in_code: InCode) -> Part {
    Part { major, file, symbol: "", needed: false, in_code }
}
