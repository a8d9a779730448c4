//! Names of NVIDIA's libraries.

use std::ops::RangeInclusive;

use super::descriptors::Descriptor;
use crate::binary::examined::NotExamined;
use cudaguard::internal::vendor::{self, CUDNN};

/// The start of the names of NVIDIA's libraries without kernels of their own, in addition to those in [`vendor`].
const OF_NVIDIA: &[&str] = &[
    "nvidia-",
    "nvinfer",
    "nvonnxparser",
    "nvparsers",
    "nvshmem",
    "nvblas",
    "nvperf",
    "nvrtc",
    "nvJitLink",
    "nvptxcompiler",
    "nvfatbin",
    "nvvm",
    "nvcuvid",
    "nvrm_",
    "nvbufsurface",
    "nvbufsurftransform",
    "cudss",
];

/// The start of the names of NVIDIA's libraries without `lib`: the optional parts of NVSHMEM.
const PLUGINS_OF_NVIDIA: &[&str] = &["nvshmem_bootstrap_", "nvshmem_transport_"];

/// The start of the names of NVIDIA's libraries that contain an underscore or a dash. Others with one are libraries of programs:
/// `libcublas_ext.so`, `libcuda-kernels.so`.
const COMPOSED: &[&str] = &[
    "cudnn_",
    "cudss_",
    "cufile_rdma",
    "nvidia-",
    "nvinfer_builder_resource",
    "nvinfer_dispatch",
    "nvinfer_lean",
    "nvinfer_plugin",
    "nvinfer_safe",
    "nvinfer_vc_plugin",
    "nvperf_host",
    "nvperf_target",
    "nvrm_",
    "nvrtc-builtins",
    "nvshmem_",
];

/// Returns true for the name of a library of NVIDIA's. What it needs is a part of the machine.
pub(crate) fn is_of_nvidia(name: &str) -> bool {
    let plain = vendor::plain_name(name);
    let stem = plain.strip_prefix("lib").and_then(|name| name.split(".so").next()).unwrap_or_default();
    let is_known =
        vendor::is_nvidia_name(stem) || vendor::is_nvidia_soname(&plain) || Descriptor::named(&plain).is_some();
    let is_plugin = PLUGINS_OF_NVIDIA.iter().any(|start| plain.starts_with(start));
    let is_it = is_known || OF_NVIDIA.iter().any(|start| vendor::is_part_name(stem, start));
    is_plugin || is_it && (!stem.contains(['_', '-']) || COMPOSED.iter().any(|start| stem.starts_with(start)))
}

/// Returns true for the name of a library that reports list under CUDA.
pub(crate) fn is_listed_under_cuda(name: &str) -> bool {
    /// The start of the names of NVIDIA's libraries for images and compression, which are not in the toolkit.
    const OTHERS: [&str; 4] = ["libnvcomp", "libnvimgcodec", "libnvjpeg2k", "libnvtiff"];
    let plain = vendor::plain_name(name);
    is_of_nvidia(&plain) || OTHERS.iter().any(|start| plain.starts_with(start))
}

/// Returns true for a library of NVIDIA's that a machine has only if it is installed there. Drivers bring their own libraries, and
/// cuDNN has its own rules.
pub(crate) fn is_installed(name: &str) -> bool {
    /// The start of the names of the driver's libraries, and of those of a Jetson.
    const OF_DRIVERS: [&str; 5] = ["nvidia-", "nvml", "nvcuvid", "nvrm_", "nvbufsurf"];
    let file = name.rsplit('/').next().unwrap_or_default();
    let plain = vendor::plain_name(file);
    let Some(stem) = plain.strip_prefix("lib").and_then(|name| name.split(".so").next()) else { return false };
    let is_driver =
        stem.starts_with("cuda") && stem != "cudart" || OF_DRIVERS.iter().any(|start| stem.starts_with(start));
    !is_driver && !plain.starts_with(CUDNN.stem) && is_of_nvidia(file)
}

/// Returns the oldest CUDA major with a library of this soname, if the library contains a CUDA runtime. Drivers of an older major do not
/// run it.
pub(crate) fn cuda_major_of(soname: &str) -> Option<u32> {
    let plain = vendor::plain_name(soname);
    let with_runtime = ["cublas", "cublasLt", "cufft", "cusolver", "cusparse", "nvjpeg", "npp"];
    let is_it = plain.strip_prefix("lib").is_some_and(|name| with_runtime.iter().any(|stem| name.starts_with(stem)));
    Some(*cuda_majors_with(&plain).filter(|_| is_it)?.start())
}

/// Returns the oldest CUDA major of a driver that can serve a library of this soname; 1 if that is any driver. `None` for libraries
/// that work without a driver, and for cudart, which has its own rules.
pub(crate) fn oldest_driver_of(soname: &str) -> Option<u32> {
    /// The start of the names of the others that start the driver.
    const STARTS: [&str; 6] = ["libcusparseLt", "libcutensor", "libcudss", "libnccl", "libnvinfer", "libnvshmem_host"];
    let plain = vendor::plain_name(soname);
    if let Some(major) = cuda_major_of(soname) {
        return Some(major);
    }
    match vendor::major_of(&plain).filter(|_| plain.starts_with(CUDNN.stem)) {
        Some(9) => return Some(11),
        Some(8) => return Some(10),
        Some(_) => return Some(1),
        None => {}
    }
    match cuda_majors_with(&plain).filter(|_| plain.starts_with("libcurand.")) {
        Some(majors) => Some(*majors.start()),
        None => STARTS.iter().any(|start| vendor::is_part_name(&plain, start)).then_some(1),
    }
}

/// Returns the CUDA majors from 10 to 13 whose toolkits contain a library of this soname.
pub(super) fn cuda_majors_with(soname: &str) -> Option<RangeInclusive<u32>> {
    let plain = vendor::plain_name(soname);
    let major = vendor::major_of(&plain)?;
    let (first, last) = match (plain.strip_prefix("lib")?.split(".so").next()?, major) {
        ("cublas" | "cublasLt" | "cudart" | "nvJitLink" | "nvjpeg" | "nvrtc", _) | ("cusparse", 10 | 11) => {
            (major, major)
        }
        ("cufft" | "cusolver", 10) => (10, 11),
        ("cufft", 11) => (12, 12),
        ("cufft" | "cusolver", 12) => (13, 13),
        ("cusolver", 11) => (11, 12),
        ("cusparse", 12) => (12, 13),
        ("curand", 10) => (10, 13),
        (stem, _) if stem.starts_with("npp") => (major, major),
        _ => return None,
    };
    Some(first..=last)
}

/// Returns the reason why the functions of a library of the toolkit are unknown: it is loaded under the name of another CUDA major,
/// because a link or a copy has that name.
pub(crate) fn misnamed(path: &str, loaded_as: &str, soname: Option<&str>) -> Option<NotExamined> {
    let of_name = cuda_majors_with(loaded_as)?;
    let soname = soname.filter(|soname| cuda_majors_with(soname).is_some_and(|majors| majors != of_name))?;
    Some(NotExamined::new(path, format!("is loaded as {loaded_as}, but is {soname}: whether it fits is unknown")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sonames_show_the_oldest_cuda() {
        for (soname, expected) in [
            ("libcublas.so.12", Some(12)),
            ("libnppial.so.13", Some(13)),
            ("libcufft.so.10", Some(10)),
            ("libcufft.so.11", Some(12)),
            ("libcusolver.so.11", Some(11)),
            ("libcusolver.so.12", Some(13)),
            ("libcusparse.so.12", Some(12)),
            ("libcufft.so.13", None),
            ("libcurand.so.10", None),
            ("libcudart.so.12", None),
            ("libnvrtc.so.12", None),
            ("libnccl.so.2", None),
            ("cufft64_11.dll", Some(12)),
        ] {
            assert_eq!(cuda_major_of(soname), expected, "{soname}");
        }
        for (soname, expected) in [
            ("libnvrtc.so.11.2", Some(11..=11)),
            ("libcusolver.so.11", Some(11..=12)),
            ("libcusparse.so.12", Some(12..=13)),
            ("libcurand.so.10", Some(10..=13)),
            ("libnccl.so.2", None),
        ] {
            assert_eq!(cuda_majors_with(soname), expected, "{soname}");
        }
    }

    #[test]
    fn oldest_drivers_of_libraries() {
        for (soname, expected) in [
            ("libcublas.so.12", Some(12)),
            ("libcudnn.so.9", Some(11)),
            ("libcudnn_ops_infer.so.8", Some(10)),
            ("libcurand.so.10", Some(10)),
            ("libnccl.so.2", Some(1)),
            ("libcudart.so.12", None),
            ("libnvrtc.so.12", None),
            ("libnvToolsExt.so.1", None),
            ("libmine.so", None),
        ] {
            assert_eq!(oldest_driver_of(soname), expected, "{soname}");
        }
    }

    #[test]
    fn names_of_other_majors_are_found() {
        for (loaded_as, soname, expected) in [
            ("libcudart.so.12", Some("libcudart.so.13"), true),
            ("libnvJitLink.so.12", Some("libnvJitLink.so.13"), true),
            ("libcudart.so.12", Some("libcudart.so.12"), false),
            ("libcudart-e409450e.so.11.0", Some("libcudart.so.11.0"), false),
            ("libcudart.so", Some("libcudart.so.13"), false),
            ("libcusolver.so.11.7.5", Some("libcusolver.so.11"), false),
            ("libcufile.so.1.9.1", Some("libcufile.so.0"), false),
            ("libcupti.so.2024.1.1", Some("libcupti.so.12"), false),
            ("libcudart.so.12", None, false),
        ] {
            assert_eq!(misnamed("", loaded_as, soname).is_some(), expected, "{loaded_as}");
        }
    }

    #[test]
    fn installed_libraries_are_distinguished() {
        for installed in [
            "libcudart.so.13",
            "libcublas.so.12",
            "libnvrtc.so",
            "libnvrtc-builtins.so.13.0",
            "libnppial.so.12",
            "libnccl.so.2",
            "libnvinfer.so.10",
            "libnvToolsExt.so.1",
            "cublas64_13.dll",
            "nvrtc64_130_0.dll",
        ] {
            assert!(is_installed(installed), "{installed}");
        }
        for other in [
            "libcuda.so.1",
            "nvcuda.dll",
            "libcudadebugger.so.1",
            "libnvidia-ml.so.1",
            "libnvcuvid.so.1",
            "libcudnn.so.9",
            "libcudnn_graph.so.9",
            "libcuda_kernels.so",
            "libc.so.6",
            "libtorch_cuda.so",
            "libcufftplus.so",
            "libnvrtcache.so.1",
            "libnvinfermine.so",
            "KERNEL32.dll",
        ] {
            assert!(!is_installed(other), "{other}");
        }
    }
}
