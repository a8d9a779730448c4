//! cuDNN's libraries: which names a major has, and what in them tells their version.

use crate::version::Version;

/// The inner library without which cuDNN's loader library does nothing but abort, per major, and the data symbol that it
/// exports with its packed version (facts: cuDNN, `[version_without_loading]`). cuDNN 7 is one library.
pub const fn inner_libraries(major: u32) -> &'static [(&'static str, &'static str)] {
    match major {
        8 => &[("libcudnn_ops_infer.so.8", "cudnn_ops_infer_version")],
        9 => &[("libcudnn_graph.so.9", "cudnn_graph_version")],
        _ => &[],
    }
}

/// Further libraries that tell their version: of another release they make a mix; missing they are worth a warning.
///
/// `libcudnn_ops` stands here and not among [`inner_libraries`] (where the decisions would have it): without it cuDNN 9
/// answers `cudnnGetVersion` and `cudnnCreate` (measured with the loader and `libcudnn_graph` of 9.15.1 alone), and the
/// graph library names no other among the libraries that it needs. A program that only asks, or only uses the graph API,
/// works: refusing it would be a false alarm. One that does need it is told by cuDNN itself, which names the file
/// (`Unable to load any of {libcudnn_ops.so.9.10.2, ...`), and the report has warned before.
pub const fn further_libraries(major: u32) -> &'static [(&'static str, &'static str)] {
    match major {
        // The symbol kept its name from cuDNN 8 (measured: 9.1.0, 9.15.1, 9.28.0).
        9 => &[("libcudnn_ops.so.9", "cudnn_ops_infer_version")],
        _ => &[],
    }
}

/// From which release on cuDNN of this major wants GPUs of which compute capability, where one of its releases left
/// behind GPUs that drivers still drive. Whatever CUDA it is built for: 9.11 is the first that exists for no CUDA whose
/// builds reach further back (facts: cuDNN, `min_cc` by release and CUDA major).
pub const fn gpu_floor(major: u32) -> Option<(Version, (u8, u8))> {
    match major {
        9 => Some((Version::new(9, 11, 0), (7, 5))),
        _ => None,
    }
}

/// The loader library's soname.
pub fn soname(version: Version) -> String {
    format!("libcudnn.so.{}", version.major)
}

/// The version that a loader library's real file name says: `libcudnn.so.9.10.2`. `None` where it has no three numbers.
pub fn version_in_name(file: &str) -> Option<Version> {
    let mut numbers = file.strip_prefix("libcudnn.so.")?.split('.').map(|number| match number.len() {
        1..=3 if number.bytes().all(|b| b.is_ascii_digit()) => number.parse().ok(),
        _ => None,
    });
    let version = Version::new(numbers.next()??, numbers.next()??, numbers.next()??);
    version.packed().map(Version::from_packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_a_version() {
        assert_eq!(version_in_name("libcudnn.so.9.10.2"), Some(Version::new(9, 10, 2)));
        assert_eq!(version_in_name("libcudnn.so.8.9.7.29"), Some(Version::new(8, 9, 7)));
        for none in [
            "libcudnn.so",
            "libcudnn.so.9",
            "libcudnn.so.9.1",
            "libcudnn_graph.so.9.1.0",
            "libcudnn.so.9.x.1",
            "libcudnn.so.9.300.1",
            "libcudnn.so.9..1",
            "",
        ] {
            assert_eq!(version_in_name(none), None, "{none}");
        }
    }

    #[test]
    fn every_library_is_of_its_major() {
        for major in 7..12 {
            for (file, symbol) in inner_libraries(major).iter().chain(further_libraries(major)) {
                assert!(file.ends_with(&format!(".so.{major}")) && symbol.ends_with("_version"), "{file} {symbol}");
            }
        }
    }
}
