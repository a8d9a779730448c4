//! Names of NVIDIA's libraries on Windows, and the soname that each has on Linux. Every table uses the soname.

use super::catalogue::{CATALOGUE, Dll, Library};
use cudaguard::internal::finding::{Finding, WINDOWS_NAMES};

/// Returns the Linux soname of a DLL of NVIDIA's: `cudart64_110.dll` is `libcudart.so.11.0`, `cudnn_ops64_9.dll` is
/// `libcudnn_ops.so.9`. Windows ignores case, and `delvewheel` adds a hash.
pub(super) fn soname_of_dll(file: &str) -> Option<String> {
    find_dll(file)?.1
}

/// Returns the library of NVIDIA's whose DLL has this name.
pub(super) fn library_of_dll(file: &str) -> Option<&'static Library> {
    Some(find_dll(file)?.0)
}

fn find_dll(file: &str) -> Option<(&'static Library, Option<String>)> {
    let ending = file.len().checked_sub(".dll".len())?;
    if !file.get(ending..)?.eq_ignore_ascii_case(".dll") {
        return None;
    }
    let lower = file[..ending].to_ascii_lowercase();
    let name = strip_hash(&lower);
    for library in CATALOGUE {
        match library.dll {
            Dll::Named(dll, number) if dll == name => {
                return Some((library, Some(format!("{}.so.{number}", library.stem()))));
            }
            _ => {}
        }
    }
    let (word, number) = split_number(name)?;
    let (library, stem) = CATALOGUE.into_iter().find_map(|library| Some((library, stem_of_dll(library, word)?)))?;
    Some((library, soname_number(&stem, number).map(|number| format!("{stem}.so.{number}"))))
}

/// Returns the stem on Linux of a DLL name without its number, if it is this library.
fn stem_of_dll(library: &Library, word: &str) -> Option<String> {
    if matches!(library.dll, Dll::None | Dll::Named(..)) {
        return None;
    }
    let stem = format!("lib{word}");
    library.stems.iter().find_map(|known| match known.strip_suffix('*') {
        Some(start) => stem.starts_with(start).then(|| stem.clone()),
        None => known.eq_ignore_ascii_case(&stem).then(|| (*known).to_owned()),
    })
}

/// Returns the DLL of a soname, as the guard names it: `libcudnn_ops.so.9` is `cudnn_ops64_9.dll`, `libcudart.so.11.0` is
/// `cudart64_110.dll`.
fn dll_of_soname(soname: &str) -> Option<String> {
    let (stem, number) = soname.split_once(".so.")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let library = CATALOGUE.into_iter().find(|library| library.has_stem(stem, soname)).filter(|_| is_number)?;
    match library.dll {
        Dll::Numbered => Some(format!("{}64_{}.dll", stem.strip_prefix("lib")?, number.replace('.', ""))),
        Dll::Named(name, own) if own == number => Some(format!("{name}.dll")),
        _ => None,
    }
}

/// Splits `cublas64_13`, `nvjitlink_130_0` or `nvinfer_10` before the number.
fn split_number(name: &str) -> Option<(&str, &str)> {
    let at = name
        .match_indices('_')
        .map(|(at, _)| at)
        .find(|at| name[at + 1..].starts_with(|c: char| c.is_ascii_digit()))?;
    let (stem, number) = (&name[..at], &name[at + 1..]);
    // The builtins of NVRTC have no separator: `nvrtc-builtins64_130`.
    let stem = stem.strip_suffix("64").or_else(|| stem.strip_suffix("32")).unwrap_or(stem);
    Some((stem, number))
}

/// Returns what follows `.so.`. Three digits are major and minor of a CUDA release (`110`, `130_0`), two digits above any major are,
/// too (`80`, `92`); other numbers are the major.
fn soname_number(stem: &str, number: &str) -> Option<String> {
    let first = number.split(['_', '.']).next()?;
    let value: u32 = first.parse().ok()?;
    let release = match first.len() {
        3 => Some((value / 10, value % 10)),
        2 if value >= 75 => Some((value / 10, value % 10)),
        1 | 2 => None,
        // `cupti64_2025.1.0.dll`: the year determines no soname.
        _ => return None,
    };
    Some(match release {
        // From CUDA 12 on, sonames consist of the major.
        Some((major, _)) if major >= 12 && stem != "libnvrtc-builtins" => major.to_string(),
        Some((major, minor)) => format!("{major}.{minor}"),
        None => value.to_string(),
    })
}

/// Removes what `delvewheel` adds: a dash and 32 hexadecimal digits.
fn strip_hash(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((stem, hash)) if hash.len() >= 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => stem,
        _ => name,
    }
}

/// Replaces what a finding names of Linux by the same of Windows.
pub fn use_names_of_windows(finding: &mut Finding) {
    finding.rewrite(with_names_of_windows);
}

/// Replaces sonames and other names of Linux in a text by those of Windows.
pub fn with_names_of_windows(text: &str) -> String {
    let mut named = String::new();
    for part in text.split_inclusive(is_separator) {
        let (word, rest) = part.split_at(part.trim_end_matches(|c| is_separator(c) || c == '.').len());
        match dll_of_soname(word) {
            Some(dll) => named = named + &dll + rest,
            None => named += part,
        }
    }
    WINDOWS_NAMES.iter().fold(named, |text, (linux, windows)| text.replace(linux, windows))
}

fn is_separator(c: char) -> bool {
    !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

#[cfg(test)]
mod tests {
    use super::{dll_of_soname, with_names_of_windows};
    use crate::knowledge::vendor::{CUDART, CUDNN, plain_name};

    #[test]
    fn dll_has_the_soname_of_linux() {
        for (dll, soname) in [
            ("cudart64_13.dll", "libcudart.so.13"),
            ("cudart64_110.dll", "libcudart.so.11.0"),
            ("cudart64_80.dll", "libcudart.so.8.0"),
            ("CUDART64_12.DLL", "libcudart.so.12"),
            ("cudart64_12-0123456789abcdef0123456789abcdef.dll", "libcudart.so.12"),
            ("cublasLt64_12.dll", "libcublasLt.so.12"),
            ("cudnn64_7.dll", "libcudnn.so.7"),
            ("cudnn_ops_infer64_8.dll", "libcudnn_ops_infer.so.8"),
            ("cudnn_engines_precompiled64_9.dll", "libcudnn_engines_precompiled.so.9"),
            ("nvrtc64_112_0.dll", "libnvrtc.so.11.2"),
            ("nvrtc64_130_0.dll", "libnvrtc.so.13"),
            ("nvrtc-builtins64_129.dll", "libnvrtc-builtins.so.12.9"),
            ("nvJitLink_120_0.dll", "libnvJitLink.so.12"),
            ("cusolverMg64_11.dll", "libcusolverMg.so.11"),
            ("nppial64_13.dll", "libnppial.so.13"),
            ("nvinfer_10.dll", "libnvinfer.so.10"),
            ("nvcuda.dll", "libcuda.so.1"),
            ("nvml.dll", "libnvidia-ml.so.1"),
        ] {
            assert_eq!(plain_name(dll), soname, "{dll}");
        }
        for other in [
            "KERNEL32.dll",
            "cudart64_x.dll",
            "mycudart64_12.dll",
            "cublas64.dll",
            "nvcuda.so",
            "api-ms-win-crt-heap-l1-1-0.dll",
        ] {
            assert_eq!(plain_name(other), other);
        }
        for (soname, dll) in [
            ("libcudnn_graph.so.9", Some("cudnn_graph64_9.dll")),
            ("libcudart.so.11.0", Some("cudart64_110.dll")),
            ("libcuda.so.1", Some("nvcuda.dll")),
            ("libnvrtc-builtins.so.12.9", Some("nvrtc-builtins64_129.dll")),
            ("libnvrtc.so.12", None),
            ("libfoo.so.1", None),
        ] {
            assert_eq!(dll_of_soname(soname).as_deref(), dll, "{soname}");
        }
        assert!(CUDART.is_named("cudart64_110.dll") && !CUDNN.is_named("cudnn_ops64_9.dll"));
        assert_eq!((CUDNN.major("cudnn64_9.dll"), CUDART.major("cudart64_110.dll")), (Some(9), Some(11)));
    }

    #[test]
    fn names_of_linux_are_replaced() {
        for (text, windows) in [
            ("finds no libcudnn.so.9: set LD_LIBRARY_PATH=x", "finds no cudnn64_9.dll: set PATH=x"),
            ("there is no libcuda.so.1, and app", "there is no nvcuda.dll, and app"),
            ("first in LD_LIBRARY_PATH.", "first in PATH."),
            ("libcudnn_graph.so.9\tlibcudart.so.11.0 libfoo.so.1", "cudnn_graph64_9.dll\tcudart64_110.dll libfoo.so.1"),
            ("install the NVIDIA driver (container: --gpus all)", "install the NVIDIA driver"),
            ("too old for libcudart 12", "too old for cudart 12"),
            ("the libcuda found is the stub", "the nvcuda.dll found is the stub"),
        ] {
            assert_eq!(with_names_of_windows(text), windows);
        }
    }
}
