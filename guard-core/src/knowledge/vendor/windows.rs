//! Names of NVIDIA's libraries on Windows, and the soname that each has on Linux. Every table uses the soname.

/// DLL names that follow no rule.
const IRREGULAR: [(&str, &str); 7] = [
    ("nvcuda", "libcuda.so.1"),
    ("nvml", "libnvidia-ml.so.1"),
    ("nvcuvid", "libnvcuvid.so.1"),
    ("nvencodeapi64", "libnvidia-encode.so.1"),
    ("cutensor", "libcutensor.so.2"),
    ("cutensormg", "libcutensorMg.so.2"),
    ("cusparselt", "libcusparseLt.so.0"),
];

/// Stems of the other DLL names, before the number: `cublasLt64_13.dll` is `libcublasLt.so.13`.
const STEMS: [&str; 41] = [
    "cublas",
    "cublasLt",
    "cudart",
    "cudnn",
    "cudnn_adv",
    "cudnn_adv_infer",
    "cudnn_adv_train",
    "cudnn_cnn",
    "cudnn_cnn_infer",
    "cudnn_cnn_train",
    "cudnn_engines_precompiled",
    "cudnn_engines_runtime_compiled",
    "cudnn_engines_tensor_ir",
    "cudnn_ext",
    "cudnn_graph",
    "cudnn_heuristic",
    "cudnn_ops",
    "cudnn_ops_infer",
    "cudnn_ops_train",
    "cufft",
    "cufftw",
    "cupti",
    "curand",
    "cusolver",
    "cusolverMg",
    "cusparse",
    "nvblas",
    "nvfatbin",
    "nvinfer",
    "nvinfer_plugin",
    "nvJitLink",
    "nvjpeg",
    "nvonnxparser",
    "nvrtc",
    "nvrtc-builtins",
    "nvToolsExt",
    "nvvm",
    "nppc",
    "npps",
    "nppi",
    "nvptxcompiler",
];

/// Returns the Linux soname of a DLL of NVIDIA's: `cudart64_110.dll` is `libcudart.so.11.0`, `cudnn_ops64_9.dll` is
/// `libcudnn_ops.so.9`. Windows ignores case, and `delvewheel` adds a hash.
pub(super) fn soname_of_dll(file: &str) -> Option<String> {
    let lower = file.to_ascii_lowercase();
    let name = strip_hash(lower.strip_suffix(".dll")?);
    if let Some((_, soname)) = IRREGULAR.iter().find(|(dll, _)| *dll == name) {
        return Some((*soname).to_owned());
    }
    let (stem, number) = split_number(name)?;
    let known = STEMS.iter().find(|known| known.eq_ignore_ascii_case(stem));
    // `nppial64_13.dll`, `nppist64_13.dll`: NPP consists of a library for each group of functions.
    let is_npp = stem.strip_prefix("nppi").is_some_and(|rest| matches!(rest.len(), 1..=3) && rest.is_ascii());
    let stem = known.copied().or(is_npp.then_some(stem))?;
    Some(format!("lib{stem}.so.{}", soname_number(stem, number)?))
}

/// Returns the DLL of a soname, as the guard names it: `libcudnn_ops.so.9` is `cudnn_ops64_9.dll`, `libcudart.so.11.0` is
/// `cudart64_110.dll`.
pub(crate) fn dll_of_soname(soname: &str) -> Option<String> {
    /// Stems of DLLs whose names have another form.
    const OTHERS: [&str; 9] = [
        "cupti",
        "nvJitLink",
        "nvfatbin",
        "nvinfer",
        "nvinfer_plugin",
        "nvonnxparser",
        "nvptxcompiler",
        "nvrtc",
        "nvvm",
    ];
    if let Some((dll, _)) = IRREGULAR.iter().find(|(_, name)| *name == soname) {
        return Some(format!("{dll}.dll"));
    }
    let (stem, number) = soname.strip_prefix("lib")?.split_once(".so.")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    (is_number && STEMS.contains(&stem) && !OTHERS.contains(&stem))
        .then(|| format!("{stem}64_{}.dll", number.replace('.', "")))
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
        Some((major, _)) if major >= 12 && stem != "nvrtc-builtins" => major.to_string(),
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

#[cfg(test)]
mod tests {
    use super::dll_of_soname;
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
}
