//! NVIDIA libraries that a file names in its constants and may open by name.

use std::collections::BTreeSet;

use super::file::{Binary, constants_after};
use cudaguard::internal::elf::Elf;

/// The names up to the version.
const NAMES: [&str; 8] = [
    "libcuda.so",
    "libcudart.so",
    "libcudnn.so",
    "libcublas.so",
    "libnccl.so",
    "libnvrtc.so",
    "libnvJitLink.so",
    "libnvidia-ml.so",
];

/// Returns the names of NVIDIA libraries in the constants of a file for Linux that can open libraries by name. The note of a guarded
/// file lists them, and its guard contains such names.
pub(crate) fn named_libraries(binary: &Binary) -> Vec<String> {
    if !binary.notes.is_empty() {
        return Vec::new();
    }
    let Ok(elf) = Elf::parse(binary.data()) else { return Vec::new() };
    let opens = |name: &str| name == "dlopen" || name == "dlmopen";
    if elf.is_dynamic() && !elf.undefined_symbols().any(opens) {
        return Vec::new();
    }
    let mut found = BTreeSet::new();
    for name in NAMES {
        for behind in constants_after(binary.data(), name) {
            let is_version = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
            let version: String = behind.iter().take_while(is_version).map(|byte| char::from(*byte)).collect();
            found.insert(format!("{name}{}", version.trim_end_matches('.')));
        }
    }
    found.into_iter().collect()
}

/// Describes the libraries of CUDA that a file without any needed one uses.
pub(crate) fn describe_no_needed_library(binary: &Binary) -> String {
    let named = named_libraries(binary);
    if named.is_empty() { "none needed".to_owned() } else { format!("none needed; may open {}", named.join(", ")) }
}
