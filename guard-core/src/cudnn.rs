//! cuDNN's libraries: which names a major has, and what in them tells their version.

use crate::version::Version;

/// The inner libraries without which cuDNN's loader library does not work, per major, and the data symbol that each
/// exports with its packed version (facts: cuDNN, `[version_without_loading]`).
pub const fn inner_libraries(major: u32) -> &'static [(&'static str, &'static str)] {
    match major {
        8 => &[("libcudnn_ops_infer.so.8", "cudnn_ops_infer_version")],
        9 => &[("libcudnn_graph.so.9", "cudnn_graph_version"), ("libcudnn_ops.so.9", "cudnn_ops_version")],
        _ => &[],
    }
}

/// The loader library's soname.
pub fn soname(version: Version) -> String {
    format!("libcudnn.so.{}", version.major)
}
