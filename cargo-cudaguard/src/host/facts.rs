//! Facts about the machine that runs a program, as input for the run-time checks. A fact that was not determined is
//! unknown.

use std::path::PathBuf;

use cudaguard::internal::tables::Floor;
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};

/// A machine, or a process on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// The cuDNN that the program gets or would get.
    pub library: CudnnState,
    /// The driver.
    pub driver: DriverState,
    /// The GPUs that the driver supports; `None` if they were not determined.
    pub gpus: Option<Vec<HostGpu>>,
    /// PTX compilation by the driver.
    pub jit: Jit,
    /// The shared libcudart that the program gets, if it needs one.
    pub cudart: CudartState,
    /// True if the machine is described, for example by a host file, so that the user can add missing facts.
    pub described: bool,
}

/// State of a shared libcudart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CudartState {
    /// Not determined, or the program needs none.
    #[default]
    Unknown,
    /// It exists.
    Found {
        /// Path of the file.
        path: PathBuf,
        /// Version in the file name. `None` if the name contains only the major, as in pip's packages.
        version: Option<Version>,
    },
}

/// State of the driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DriverState {
    /// Not determined.
    #[default]
    Unknown,
    /// All places were searched: there is no libcuda.
    Absent,
    /// It exists.
    Found(HostDriver),
}

/// A driver: libcuda and the kernel module under it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostDriver {
    /// Path of libcuda.
    pub library: Option<String>,
    /// Release of libcuda, from its file name.
    pub user: Option<DriverRelease>,
    /// Release of the kernel module, from `/proc/driver/nvidia/version`.
    pub kernel: Option<DriverRelease>,
    /// Branch of libcuda as Linux numbers it. `None` if it is unknown, or if the last branch of a GPU does not apply, as on WSL
    /// and Jetson.
    pub branch: Option<u32>,
    /// CUDA version that libcuda supports, from `cuDriverGetVersion`.
    pub cuda: Option<CudaVersion>,
    /// Result of `cuInit`: 0: success, 100: no GPU, 803: libcuda and kernel module have different releases. `None` if
    /// it was not called.
    pub init: Option<u32>,
    /// Support for an older kernel module; only determined if `cuInit` was not called.
    pub compat: CompatState,
}

/// Forward compatibility of a libcuda, from its ELF note `.note.cuda.fwd_compatibility`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CompatState {
    /// The file was not read, or it is in a cuda-compat directory and has no note (packages up to 2025 had none).
    #[default]
    Unknown,
    /// The file has no such note: the libcuda of an ordinary driver.
    Ordinary,
    /// A libcuda of cuda-compat, with the branches of kernel modules that it supports; empty if the note contains none
    /// (Jetson).
    Branches(Vec<u32>),
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostGpu {
    /// Compute capability, if known.
    pub cc: Option<(u8, u8)>,
    /// Product name, if known: `NVIDIA GeForce RTX 4090`.
    pub name: Option<String>,
    /// `GPU-…`, if known.
    pub uuid: Option<String>,
    /// True if the process can use the GPU: its device can be opened and `CUDA_VISIBLE_DEVICES` does not hide it.
    pub visible: bool,
    /// The reason why the driver does not support the GPU, which is then not counted.
    pub undriven: Option<DriverMismatch>,
    /// It is unknown if the driver supports the GPU; drivers from this floor on certainly do.
    pub guaranteed_from: Option<Floor>,
}

/// The reason why a driver does not support GPUs of a compute capability, according to its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverMismatch {
    /// This branch was the last that supported them.
    NoLonger(u32),
    /// The first drivers that supported them.
    NotYet(Floor),
}

/// PTX compilation by the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jit {
    /// True if `CUDA_FORCE_PTX_JIT=1` is set: machine code is ignored.
    pub forced: bool,
    /// True if `CUDA_DISABLE_PTX_JIT=1` is set: PTX is not compiled.
    pub disabled: bool,
    /// True if `libnvidia-ptxjitcompiler.so.1` can be found. `None` if it was not searched; a complete driver has it.
    pub compiler: Option<bool>,
}

/// State of cuDNN.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CudnnState {
    /// Not determined.
    #[default]
    Unknown,
    /// All places were searched: there is no cuDNN.
    Absent,
    /// It exists.
    Found {
        /// Path of `libcudnn.so.*`.
        path: PathBuf,
        /// The reason why the loader picks this file, if known, in the wording of the shim.
        picked_by: Option<String>,
        /// Major version, from the soname.
        major: u32,
        /// Version, from the inner library's exported number, the file name or the answer of a child process. `None` if
        /// unknown.
        version: Option<Version>,
        /// State of the inner libraries that have rows in the manifest.
        inner: Vec<Inner>,
        /// Release of `libcudnn.so.*` itself, from its own file.
        loader: LoaderVersion,
        /// Release of the cudart that cuDNN was built with; cuDNN contains its own cudart.
        made_with: Option<CudaVersion>,
    },
}

/// Release of a library that opens its parts by itself, from its own file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LoaderVersion {
    /// Unknown.
    #[default]
    Unknown,
    /// Release in the file name.
    Version(Version),
    /// Major and minor, from a host file.
    Minor(u32, u32),
}

/// An inner library of cuDNN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inner {
    /// Name of the file.
    pub file: String,
    /// True if the file exists.
    pub present: bool,
    /// Version that the file exports, if any.
    pub version: Option<Version>,
    /// Path of the file, if known.
    pub path: Option<PathBuf>,
}
