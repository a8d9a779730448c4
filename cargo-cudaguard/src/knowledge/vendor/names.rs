//! Questions about the names of NVIDIA's libraries, which [`CATALOGUE`] answers.

use super::catalogue::{CATALOGUE, CUDART, CUDNN, CudaMajors, DriverDependency, Library, Owner};
use super::windows::library_of_dll;
use super::{NVML, major_of, plain_name};
use cudaguard::internal::version::{CudaVersion, Version};
use std::ops::RangeInclusive;

/// The soname of the driver's library.
pub const LIBCUDA: &str = "libcuda.so.1";

/// Returns what precedes `.so` in the name of a file: `libcudart.so.12` is `libcudart`.
pub fn stem_of(file: &str) -> &str {
    file.split(".so").next().unwrap_or(file)
}

/// Returns the library of NVIDIA's that a file with this name is: a soname, a DLL or a tool. Compares complete names, because other
/// projects use the same prefixes.
pub fn nvidia_library(name: &str) -> Option<&'static Library> {
    if let Some(library) = library_of_dll(name) {
        return Some(library);
    }
    let plain = plain_name(name);
    let stem = stem_of(&plain);
    let stem = stem.strip_suffix(".alt").or_else(|| stem.strip_suffix(".exe")).unwrap_or(stem);
    CATALOGUE.into_iter().find(|library| library.has_stem(stem, &plain))
}

/// Returns the library or tool of the family with this name. Other rules judge cudart and cuDNN.
pub fn released_library(name: &str) -> Option<&'static Library> {
    nvidia_library(name).filter(|library| !["", CUDART.key, CUDNN.key].contains(&library.key))
}

/// Returns true for the name of a library of NVIDIA's. What it needs is a part of the machine.
pub fn is_of_nvidia(name: &str) -> bool {
    nvidia_library(name).is_some()
}

/// Returns true for the name of a library that is a part of the driver.
pub fn is_of_driver(name: &str) -> bool {
    nvidia_library(name).is_some_and(|library| library.owner == Owner::Driver)
}

/// Returns true for the name of a library of NVIDIA's that is no part of the driver.
pub fn is_beside_driver(name: &str) -> bool {
    nvidia_library(name).is_some_and(|library| library.owner != Owner::Driver)
}

/// Returns true for a library of NVIDIA's that a machine has only if it is installed there. Drivers bring their own libraries, and
/// cuDNN has its own rules.
pub fn is_installed(name: &str) -> bool {
    let library = nvidia_library(name.rsplit('/').next().unwrap_or_default());
    library.is_some_and(|library| matches!(library.owner, Owner::Toolkit | Owner::Product))
}

/// Returns true for the driver's library, `libcuda.so.1` or `nvcuda.dll`.
pub fn is_libcuda(name: &str) -> bool {
    plain_name(name).starts_with("libcuda.so")
}

/// Returns true if a word in a `links` key, in a feature or after `-l` denotes a library that is no part of the driver, libcuda or NVML.
/// Parts that are not in the catalogue count.
pub fn is_nvidia_word(word: &str) -> bool {
    const STARTS: [&str; 4] = ["cuda_", "cuda-", "npp", "nvtx"];
    let word = word.strip_prefix("lib").unwrap_or(word);
    let known = CATALOGUE.into_iter().filter(|library| library.owner != Owner::Driver);
    matches!(word, "cuda" | "nvml" | NVML)
        || known.flat_map(Library::words).any(|own| own.eq_ignore_ascii_case(word) || is_part_name(word, own))
        || STARTS.iter().any(|start| is_part_name(word, start))
}

/// Returns true if a name is this one, or that of a part of it: `cublasLt`, `nvinfer_plugin`. A name that continues with a
/// lowercase letter, such as `cublasplus`, is another one.
fn is_part_name(name: &str, start: &str) -> bool {
    let is_word = start.ends_with(|last: char| last.is_ascii_alphanumeric());
    name.strip_prefix(start).is_some_and(|rest| !is_word || !rest.starts_with(|next: char| next.is_ascii_lowercase()))
}

/// Returns the libraries of an NVIDIA package, without `lib`.
pub fn libraries_of_package(package: &str) -> Vec<&'static str> {
    let contained = CATALOGUE.into_iter().filter(|library| library.packages.contains(&package));
    contained.flat_map(Library::words).collect()
}

/// Returns the version in the name of a library with at least two numbers, `libssl.so.1.1`; `None` for another name.
pub fn numbers_in_name(file: &str) -> Option<&str> {
    let (_, numbers) = file.split_once(".so.")?;
    let is_version = numbers.contains('.') && numbers.split('.').all(|number| number.parse::<u32>().is_ok());
    is_version.then_some(numbers)
}

/// Returns the version in a complete file name, `libcublas.so.12.4.5.8`; `None` if it has fewer than three numbers.
pub fn version_in_name(file: &str) -> Option<Version> {
    let numbers = numbers_in_name(file)?;
    (numbers.split('.').count() >= 3).then(|| numbers.parse().ok())?
}

/// Returns the CUDA majors from 10 to 13 whose toolkits contain a library of this soname.
pub fn cuda_majors_with(soname: &str) -> Option<RangeInclusive<u32>> {
    let major = major_of(soname)?;
    match nvidia_library(soname)?.cuda {
        CudaMajors::Unknown => None,
        CudaMajors::Same => Some(major..=major),
        CudaMajors::Listed(all) => all.iter().find(|(own, ..)| *own == major).map(|(_, first, last)| *first..=*last),
    }
}

/// Returns the oldest CUDA major with a library of this soname, if the library contains a CUDA runtime. Drivers of an older major do not
/// run it.
pub fn cuda_major_of(soname: &str) -> Option<u32> {
    let has_runtime = nvidia_library(soname).is_some_and(|library| library.driver == DriverDependency::Runtime);
    cuda_majors_with(soname).filter(|_| has_runtime).map(|majors| *majors.start())
}

/// Returns the oldest CUDA major of a driver that can serve a library of this soname; 1 if that is any driver. `None` for libraries
/// that work without a driver, and for cudart, which has its own rules.
pub fn oldest_driver_of(soname: &str) -> Option<u32> {
    match nvidia_library(soname)?.driver {
        DriverDependency::None => None,
        DriverDependency::Any => Some(1),
        DriverDependency::OfCuda | DriverDependency::Runtime => Some(*cuda_majors_with(soname)?.start()),
        DriverDependency::Listed(all) => {
            let major = major_of(soname)?;
            Some(all.iter().find(|(own, _)| *own == major).map_or(1, |(_, oldest)| *oldest))
        }
    }
}

/// Parses the version in a soname: `libcudart.so.13`, `libcudart.so.11.0`, or `libcudart-ab12cd34.so.12.3.101` as
/// auditwheel names the file of a release.
pub fn cudart_named(soname: &str) -> Option<CudaVersion> {
    let numbers = CUDART.soname_version(soname)?;
    let mut numbers = numbers.split('.').map(|number| number.parse().ok());
    Some(CudaVersion::new(numbers.next()??, numbers.next().unwrap_or(Some(0))?))
}

/// Returns whether search paths name the directory of a cudart in NVIDIA's packages for Python, `nvidia/cuda_runtime/lib` or
/// `nvidia/cu13/lib`: the CUDA major in it, or 0 if it has none. A file that needs no cudart and has such a path opens it by name.
pub fn cudart_in_paths(paths: &str) -> Option<u32> {
    paths.split(':').find_map(|path| {
        let (_, package) = path.trim_end_matches('/').strip_suffix("/lib")?.rsplit_once("nvidia/")?;
        match package {
            "cuda_runtime" => Some(0),
            _ => package.strip_prefix("cu")?.parse().ok(),
        }
    })
}
