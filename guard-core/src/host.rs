//! Facts of the run side, as the run judge wants them: gathered by whoever looks, invented by nobody.

use std::path::PathBuf;

use crate::tables::Floor;
use crate::version::{CudaVersion, DriverRelease, Version};

/// A machine, or a process on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// The guarded library that the program gets, or would get.
    pub library: CudnnState,
    /// The driver.
    pub driver: DriverState,
    /// The GPUs that the driver drives; `None`: nobody looked, or looking failed.
    pub gpus: Option<Vec<HostGpu>>,
    /// Whether the driver can compile PTX, and may.
    pub jit: Jit,
    /// The shared libcudart that the program gets, where it needs one.
    pub cudart: CudartState,
    /// Whether somebody describes it: what is lacking could be named.
    pub described: bool,
}

/// What was found of a shared libcudart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CudartState {
    /// Nobody looked, or the program needs none.
    #[default]
    Unknown,
    /// There.
    Found {
        /// Its file.
        path: PathBuf,
        /// By the file's name; `None`: that says the major alone, as in pip's packages.
        version: Option<Version>,
    },
}

/// What was found of the driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DriverState {
    /// Nobody looked, or looking failed: cannot tell.
    #[default]
    Unknown,
    /// Looked everywhere: there is no libcuda.
    Absent,
    /// There.
    Found(HostDriver),
}

/// A driver: libcuda and the kernel module under it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostDriver {
    /// The file of libcuda.
    pub library: Option<String>,
    /// Release of libcuda, by its file's name.
    pub user: Option<DriverRelease>,
    /// Release of the kernel module, by `/proc/driver/nvidia/version`.
    pub kernel: Option<DriverRelease>,
    /// CUDA version that libcuda supports, as `cuDriverGetVersion` says it.
    pub cuda: Option<CudaVersion>,
    /// What `cuInit` answered: 0 is right, 100 no GPU, 803 libcuda and kernel module of different releases. `None`:
    /// nobody asked.
    pub init: Option<u32>,
    /// Whether this libcuda may stand over an older kernel module: asked only where nobody asked `cuInit`.
    pub compat: CompatState,
}

/// What a libcuda's file says of forward compatibility, in its ELF note `.note.cuda.fwd_compatibility`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CompatState {
    /// Nobody read the file; or it has no note and lies in a cuda-compat folder (packages up to 2025 had none).
    #[default]
    Unknown,
    /// It has no such note: the libcuda of an ordinary driver.
    Ordinary,
    /// It is cuda-compat's, and these are the branches of kernel modules that it works on; empty where it names none
    /// (Jetson).
    Branches(Vec<u32>),
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostGpu {
    /// Compute capability, where known.
    pub cc: Option<(u8, u8)>,
    /// The product's name, where known: `NVIDIA GeForce RTX 4090`.
    pub name: Option<String>,
    /// `GPU-…`, where known.
    pub uuid: Option<String>,
    /// Whether the process can use it: its device can be opened and `CUDA_VISIBLE_DEVICES` does not hide it.
    pub visible: bool,
    /// Why the driver does not drive it: then it is not counted.
    pub undriven: Option<DriverMismatch>,
    /// It is not known whether the driver drives it: these are sure to.
    pub sure_from: Option<Floor>,
}

/// Why a driver drives no GPUs of a compute capability, as far as its release tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverMismatch {
    /// This branch was the last that did.
    NoLonger(u32),
    /// These were the first that did.
    NotYet(Floor),
}

/// Whether the driver can compile PTX, and may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jit {
    /// `CUDA_FORCE_PTX_JIT=1`: machine code is passed over.
    pub forced: bool,
    /// `CUDA_DISABLE_PTX_JIT=1`: PTX is not compiled.
    pub disabled: bool,
    /// Whether `libnvidia-ptxjitcompiler.so.1` is to be found. `None`: nobody looked; a whole driver has it.
    pub compiler: Option<bool>,
}

/// What was found of the guarded library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CudnnState {
    /// Nobody looked, or looking failed: cannot tell.
    #[default]
    Unknown,
    /// Looked everywhere: not there.
    Absent,
    /// There.
    Found {
        /// The loader library's file.
        path: PathBuf,
        /// Why that file and no other, where it is known; in the shim's words.
        picked_by: Option<String>,
        /// Its major, by soname.
        major: u32,
        /// By the inner library's exported word, the file name or a child's answer; `None`: cannot tell.
        version: Option<Version>,
        /// Inner libraries of which the manifest's rows ask: file name → what was found.
        inner: Vec<Inner>,
        /// What the loader library's own file says of its release.
        loader: LoaderVersion,
        /// The release of the cudart that it was made with: it has its own inside.
        made_with: Option<CudaVersion>,
    },
}

/// What the file of a library that opens its parts by itself says of its own release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LoaderVersion {
    /// Nothing.
    #[default]
    Unknown,
    /// By its name.
    Version(Version),
    /// Major and minor, as a host file says.
    Minor(u32, u32),
}

/// One of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inner {
    /// Its file's name.
    pub file: String,
    /// Whether it is there.
    pub present: bool,
    /// Its own version, where it exports one.
    pub version: Option<Version>,
    /// Its file, where known.
    pub path: Option<PathBuf>,
}
