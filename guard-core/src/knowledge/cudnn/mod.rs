//! cuDNN: a loader library and the parts that it loads with dlopen, all of one release. It is the library with rows in the
//! manifest, a table in the policy and a pin in the lock.

mod table;

pub(crate) use table::serves_later;
pub use table::{CudnnReleases, NewestGpus, RELEASES};

/// The key in host files, policies, locks and reports, and the name for `-l`.
pub const KEY: &str = "cudnn";

/// The name in messages.
pub const NAME: &str = "cuDNN";

/// The file name before `.so`.
pub const STEM: &str = "libcudnn";

/// The file name that a linker searches.
pub const LINK_NAME: &str = "libcudnn.so";

/// The exported function that returns its version.
pub const GETTER: VersionGetter = VersionGetter { function: "cudnnGetVersion", scales: &[(90_000, 10_000), (0, 1000)] };

/// The function that returns the release of the cudart inside, in the part that contains the version: the number is in its
/// code. The library's own file has, next to [`GETTER`], the major and minor from which it builds the names of its parts.
/// Measured on x86-64: 8.5.0 to 9.28.0, for CUDA 11 to 13; the major and minor in 9.1.0 to 9.28.0.
pub const CUDART_GETTER: &str = "cudnnGetCudartVersion";

/// The headers that define its version, the most certain first. In cuDNN 8 and 9, the header with the name of the library
/// contains no version; in cuDNN 7 it does.
pub const HEADERS: [&str; 6] =
    ["cudnn_version.h", "cudnn_version_v9.h", "cudnn_version_v8.h", "cudnn.h", "cudnn_v9.h", "cudnn_v8.h"];

/// The macros of these headers: major, minor and patch.
pub const MACROS: [&str; 3] = ["CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"];

/// The variable with the directory of its headers.
pub const INCLUDE_VARIABLE: &str = "CUDNN_INCLUDE_DIR";

/// Variables with the path of its file or of the directory. cudarc also accepts a root in `CUDNN_LIB`.
pub const FILE_VARIABLES: [&str; 2] = ["CUDNN_LIBRARY", "CUDNN_LIB"];

/// Variables with its root, in the order of most build scripts.
pub const ROOT_VARIABLES: [&str; 4] = ["CUDNN_PATH", "CUDNN_HOME", "CUDNN_ROOT", "CUDNN_ROOT_DIR"];

/// The libraries that it loads with dlopen; those that contain its version come first. They export their version as a data
/// symbol (measured: 8.5 to 9.28); cuDNN 7 is a single library.
///
/// `libcudnn_ops` is not marked as needed (docs/internals/decisions, decision 41): without it, `cudnnGetVersion` and
/// `cudnnCreate` of cuDNN 9 work (measured with only the loader and `libcudnn_graph` of 9.15.1), and the graph library
/// lists no other part among the libraries that it needs. A program that only calls these, or only uses the graph API,
/// works, so refusing it would be a false positive. For a program that needs it, cuDNN itself reports the file
/// (`Unable to load any of {libcudnn_ops.so.9.10.2, ...`), and the report has contained a warning before.
pub const PARTS: &[CudnnPart] = &[
    CudnnPart { needed: true, ..with_word(8, "libcudnn_ops_infer.so.8", "cudnn_ops_infer_version") },
    CudnnPart { needed: true, ..with_word(9, "libcudnn_graph.so.9", "cudnn_graph_version") },
    // The symbol kept its name from cuDNN 8 (measured: 9.1.0, 9.15.1, 9.28.0).
    with_word(9, "libcudnn_ops.so.9", "cudnn_ops_infer_version"),
    // Parts without a version symbol, or too large to read it at each start.
    opened_later(8, "libcudnn_ops_train.so.8"),
    opened_later(8, "libcudnn_cnn_infer.so.8"),
    opened_later(8, "libcudnn_cnn_train.so.8"),
    opened_later(8, "libcudnn_adv_infer.so.8"),
    opened_later(8, "libcudnn_adv_train.so.8"),
    opened_later(9, "libcudnn_cnn.so.9"),
    opened_later(9, "libcudnn_adv.so.9"),
    opened_later(9, "libcudnn_engines_precompiled.so.9"),
    opened_later(9, "libcudnn_engines_runtime_compiled.so.9"),
    opened_later(9, "libcudnn_heuristic.so.9"),
];

/// A library that cuDNN loads with dlopen.
#[derive(Debug)]
pub struct CudnnPart {
    /// The major that it belongs to.
    pub major: u32,
    /// The file name: `libcudnn_graph.so.9`.
    pub file: &'static str,
    /// The exported data symbol with its packed version; empty if the symbol is not read and a build does not need the
    /// part.
    pub symbol: &'static str,
    /// True if the library only aborts without it.
    pub needed: bool,
}

const fn with_word(major: u32, file: &'static str, symbol: &'static str) -> CudnnPart {
    CudnnPart { major, file, symbol, needed: false }
}

/// Returns a part that is loaded only by the calls that need it.
const fn opened_later(major: u32, file: &'static str) -> CudnnPart {
    CudnnPart { major, file, symbol: "", needed: false }
}

/// Returns the soname of this major.
pub fn soname(major: u32) -> String {
    format!("{LINK_NAME}.{major}")
}

/// Iterates over the parts of a major.
pub fn parts_of_major(major: u32) -> impl Iterator<Item = &'static CudnnPart> {
    PARTS.iter().filter(move |part| part.major == major)
}

/// Iterates over the parts of a major that are required.
pub fn needed_parts(major: u32) -> impl Iterator<Item = &'static CudnnPart> {
    parts_of_major(major).filter(|part| part.needed)
}

/// A function that returns a version as one number: `major * scale + minor * 100 + patch`.
#[derive(Clone, Copy, Debug)]
pub struct VersionGetter {
    /// The function.
    pub function: &'static str,
    /// Pairs of the smallest result and the scale of its major, largest first.
    pub scales: &'static [(u64, u64)],
}

/// Returns the numbers after `.so.` in the file name of a library: `libcudart.so.13.0.96` → [13, 0, 96].
pub fn numbers_of(file: &str) -> Vec<u32> {
    let Some((_, suffix)) = file.split_once(".so.") else { return Vec::new() };
    suffix.split('.').map_while(|part| part.parse().ok()).collect::<Vec<_>>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_match_their_major() {
        for part in PARTS {
            // The shim relies on the separator (detection.c).
            assert!(part.file.starts_with(&format!("{STEM}_")), "{part:?}");
            let tells = part.symbol.is_empty() || part.symbol.ends_with("_version");
            assert!(part.file.ends_with(&format!(".so.{}", part.major)) && tells, "{part:?}");
            assert!(!part.needed || !part.symbol.is_empty(), "{part:?}");
        }
    }
}
