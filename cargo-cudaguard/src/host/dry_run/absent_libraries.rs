//! Libraries that files need and that are not found. Every way to name the files, alone or in an archive, has the same rule.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::binary::elf::Elf;
use crate::binary::examined::names_library_of_cuda;
use crate::binary::file::{Binary, TargetOs};
use crate::family::{is_of_nvidia, opened_libraries};
use crate::knowledge::vendor;

/// The libraries that machines provide (`data/libraries.toml`).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineLibraries {
    system: BTreeSet<String>,
    languages: BTreeSet<String>,
    other_vendors: BTreeSet<String>,
    mkl: BTreeSet<String>,
    windows: BTreeSet<String>,
}

static OF_MACHINE: LazyLock<MachineLibraries> = LazyLock::new(|| {
    let text = include_str!("../../../data/libraries.toml");
    toml::from_str(text).unwrap_or_else(|error| unreachable!("built-in table: {error}"))
});

/// Returns true for a DLL that every Windows machine has, or that an interpreter or a package of Microsoft installs.
fn is_of_windows(dll: &str) -> bool {
    let lower = dll.to_ascii_lowercase();
    if lower.starts_with("api-ms-") || lower.starts_with("ext-ms-") || lower.ends_with(".drv") {
        return true;
    }
    let stem = lower.split('.').next().unwrap_or_default();
    let root = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    // `d3d12core.dll`, `vcruntime140_1.dll`, `mfc140u.dll`
    let mut versions = OF_MACHINE.windows.iter().filter_map(|start| stem.strip_prefix(start.as_str()));
    let is_variant = versions.any(|version| {
        let rest = version.trim_start_matches(|c: char| c.is_ascii_digit());
        rest.len() < version.len() && (rest.starts_with('_') || matches!(rest, "u" | "ud" | "d" | "core" | "t"))
    });
    OF_MACHINE.windows.contains(root) || OF_MACHINE.windows.contains(stem) || is_variant
}

/// Returns true for the name of a DLL or of an extension module for Windows.
pub(crate) fn is_dll_name(name: &str) -> bool {
    let ending = name.rsplit('.').next().unwrap_or_default();
    ["dll", "pyd", "drv"].iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// Returns true if a program works on a machine only if it brings this library, which may therefore contain GPU code of the
/// program. NVIDIA's libraries may be a part of the machine, like those of the system.
pub(crate) fn is_of_program(soname: &str) -> bool {
    let file = soname.rsplit('/').next().unwrap_or_default();
    if is_dll_name(file) {
        return !is_of_windows(file) && !is_of_nvidia(file);
    }
    let plain = vendor::plain_name(file);
    let Some(stem) = plain.strip_prefix("lib").map(vendor::stem_of) else {
        return !plain.starts_with("ld-") && !plain.starts_with("ld64.") && !is_of_nvidia(file);
    };
    // `libpython3.12.so.1.0`, `libxcb-shm.so.0`, `libc.musl-x86_64.so.1`
    let root = stem.split(['-', '.']).next().unwrap_or_default().trim_end_matches(|c: char| c.is_ascii_digit());
    // Only a linker finds those of a distribution without a version.
    let is_versioned = plain.contains(".so.") || matches!(stem, "c" | "m" | "dl");
    let is_system = OF_MACHINE.languages.contains(stem) || is_versioned && OF_MACHINE.system.contains(stem);
    let is_variant = matches!(root, "python" | "xcb") || stem.starts_with("c.musl-");
    let is_others = OF_MACHINE.other_vendors.contains(stem.trim_end_matches(|c: char| c.is_ascii_digit()))
        || OF_MACHINE.mkl.iter().any(|start| stem.starts_with(start.as_str()));
    !(is_system || is_variant || is_others || is_of_nvidia(file))
}

/// Returns true if this file uses CUDA, or shows by a name that a library which it needs does.
///
/// A library that is absent may contradict an answer about GPUs only if a file that is loaded with it does so: it may contain
/// GPU code for that file, or load another release of a library of NVIDIA's. Without it, the dynamic linker loads no file of
/// the closure, so files that do not use CUDA contradict nothing. Words such as `__cuda_array_interface__` are no use.
pub(crate) fn reaches_cuda(file: &Binary) -> bool {
    !file.notes.is_empty()
        || file.needed.iter().any(|name| names_cuda(name) || is_of_nvidia(name))
        || names_library_of_cuda(file.data())
        || file.reaches_cuda().unwrap_or(true)
        || !opened_libraries(file.data()).is_empty()
        || Elf::parse(file.data()).is_ok_and(|elf| elf.undefined_symbols().any(names_cuda))
        || file.kernels().map_or(true, |kernels| !kernels.entries().is_empty())
}

fn names_cuda(name: &str) -> bool {
    name.to_ascii_lowercase().contains("cuda")
}

/// Resolves a path below a directory of an artifact, as the loader does for `$ORIGIN`. `None` if the path leaves the artifact.
fn resolve_within(dir: &str, path: &str) -> Option<String> {
    let mut at: Vec<&str> = dir.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            at.pop()?;
        } else {
            at.push(part);
        }
    }
    Some(at.join("/"))
}

/// Returns true if the search path of a member with this name contains only directories of the artifact.
pub(crate) fn is_searched_inside(name: &str, file: &Binary) -> bool {
    let dir = name.rfind('/').map_or("", |at| &name[..at]);
    let Some(path) = file.runpath.as_ref().or(file.rpath.as_ref()).filter(|_| file.os != Some(TargetOs::Windows))
    else {
        return false;
    };
    path.split(':').all(|entry| {
        let below = entry.strip_prefix("$ORIGIN").or_else(|| entry.strip_prefix("${ORIGIN}"));
        below.is_some_and(|below| resolve_within(dir, below).is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_programs_are_distinguished() {
        for of_machine in [
            "libc.so.6",
            "ld-linux-x86-64.so.2",
            "libc.musl-x86_64.so.1",
            "libgcc_s.so.1",
            "libgomp-a34b3233.so.1.0.0",
            "libpython3.12.so.1.0",
            "libxcb-shm.so.0",
            "libGL.so.1",
            "libglib-2.0.so.0",
            "libcuda.so.1",
            "libcublas.so.12",
            "libnvinfer.so.10",
            "libcudnn_ops.so.9",
            "libnvidia-ml.so.1",
            "libamdhip64.so.6",
            "libhipblaslt.so.0",
            "nvshmem_transport_ucx.so.3",
            "libmkl_rt.so.2",
            "libutil.so.1",
            "KERNEL32.dll",
            "api-ms-win-crt-runtime-l1-1-0.dll",
            "VCRUNTIME140_1.dll",
            "MSVCP140.dll",
            "python312.dll",
            "WS2_32.dll",
            "mfc140u.dll",
            "nvcuda.dll",
            "cudart64_110.dll",
            "libomp.so",
            "libnvinfer_plugin.so.10",
            "libsycl.so.8",
        ] {
            assert!(!is_of_program(of_machine), "{of_machine}");
        }
        for own in [
            "libtorch_cuda.so",
            "libc10.so",
            "libggml-cuda.so.0",
            "libzmq.so.5",
            "libmine.so",
            "plugin.so",
            "nvrtc.cpython-312-x86_64-linux-gnu.so",
            "/opt/libx.so",
            "libcuda_kernels.so",
            "libcublas_ext.so.1",
            "libnvinfer_myplugin.so",
            "librocket.so",
            "libhippo.so.1",
            "libirc_engine.so",
            "libmkl_fused.so",
            "libutil.so",
            "myframework.dll",
            "torch_cuda.dll",
            "user_kernels.dll",
            "python_plugin.dll",
        ] {
            assert!(is_of_program(own), "{own}");
        }
    }
}
