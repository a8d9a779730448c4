//! NVIDIA libraries that a file names in its constants and may open by name.

use std::collections::BTreeSet;

use super::names::is_of_nvidia;
use crate::binary::file::{Binary, constants_after};
use crate::binary::kernels::Kernels;
use cudaguard::internal::elf::Elf;
use cudaguard::internal::manifest::Linkage;
use cudaguard::internal::vendor;

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

/// Returns these names for a file that needs no library of NVIDIA's and is none: what it requires of the libraries is unknown.
pub(crate) fn opened_without_requirement(binary: &Binary) -> Vec<String> {
    let file = binary.path.file_name().unwrap_or_default().to_string_lossy();
    let is_known = binary.soname.as_deref().is_some_and(is_of_nvidia)
        || is_of_nvidia(&file)
        || binary.imported().any(|name| is_of_nvidia(name))
        || binary.kernels().is_ok_and(Kernels::has_kernels);
    if is_known {
        return Vec::new();
    }
    let mut all = named_libraries(binary);
    // Tools that open only NVML run no GPU code.
    all.retain(|name| !name.starts_with("libnvidia-ml.so"));
    // The parts of a name may be joined when the program runs (XLA).
    let opened = vendor::ALL.into_iter().filter(|library| binary.linkage(library) == Linkage::Dlopened);
    for library in opened.filter(|_| binary.notes.is_empty()) {
        if !all.iter().any(|name| library.is_named(name)) {
            all.push(format!("{}.so", library.stem));
        }
    }
    all
}

/// Describes the libraries of CUDA that a file without any needed one uses.
pub(crate) fn describe_no_needed_library(binary: &Binary) -> String {
    let named = named_libraries(binary);
    if named.is_empty() { "none needed".to_owned() } else { format!("none needed; may open {}", named.join(", ")) }
}
