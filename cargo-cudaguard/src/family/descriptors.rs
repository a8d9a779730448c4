//! Descriptors of the libraries and tools that NVIDIA releases together: file names, and the place of the version in the file.
//!
//! cuDNN, cudart and NCCL have their descriptors in [`vendor`]; this table refers to them for what is the same.

use cudaguard::internal::vendor::{self, Library, NCCL, VersionGetter};

/// A library or tool of NVIDIA.
#[derive(Debug)]
pub(crate) struct Descriptor {
    /// The key in JSON: `cusparse`.
    pub(crate) key: &'static str,
    /// The name in messages: `cuSPARSE`.
    pub(crate) name: &'static str,
    /// The file names before `.so`; of a tool, the complete name.
    pub(crate) stems: &'static [&'static str],
    /// The places of its version, the most certain first.
    pub(crate) versions: &'static [VersionSource],
}

/// A place in a file that contains the version of the library.
#[derive(Debug)]
pub(crate) enum VersionSource {
    /// The code of an exported function that returns the version as a number, or stores it through its argument.
    Getter(VersionGetter),
    /// The same function of a library with another descriptor.
    GetterOf(&'static Library),
    /// A text in the constants of the file, followed by the version.
    Text(&'static str),
    /// [`TOOLS`], followed by the release, `, V` and the version.
    TextOfTools,
    /// Names of exported functions with this prefix, followed by major and minor: `12_4`. The patch level is unknown.
    ExportedNames(&'static str),
}

use VersionSource::{ExportedNames, Getter, GetterOf, Text, TextOfTools};

/// The text with the version in every tool of the toolkit and in the libraries that contain one.
pub(super) const TOOLS: &str = "Cuda compilation tools, release ";

/// cuBLAS returns the version of the cuBLASLt that is loaded, so its own file contains none. See [`super::rules`].
pub(crate) static CUBLAS: Descriptor = plain("cublas", "cuBLAS", &["libcublas"], &[]);
pub(crate) static CUBLAS_LT: Descriptor = plain(
    "cublasLt",
    "cuBLASLt",
    &["libcublasLt"],
    &[Getter(VersionGetter { function: "cublasLtGetVersion", scales: &[(0, 10_000)] })],
);
pub(crate) static NVJITLINK: Descriptor =
    plain("nvjitlink", "nvJitLink", &["libnvJitLink"], &[TextOfTools, ExportedNames("__nvJitLinkCreate_")]);
pub(crate) static NVRTC: Descriptor = plain("nvrtc", "NVRTC", &["libnvrtc", "libnvrtc.alt"], &[TextOfTools]);
pub(crate) static BUILTINS: Descriptor = plain(
    "nvrtc-builtins",
    "NVRTC's builtins",
    &["libnvrtc-builtins", "libnvrtc-builtins.alt"],
    &[TextOfTools, ExportedNames("__nvrtc_builtins__")],
);
pub(crate) static PTXAS: Descriptor = plain("ptxas", "ptxas", &["ptxas"], &[TextOfTools]);

/// Every descriptor, in the order of reports. Measured in the wheels of `tests/parts/family.json`.
static FAMILY: [&Descriptor; 15] = [
    &CUBLAS,
    &CUBLAS_LT,
    &plain(
        "cusparse",
        "cuSPARSE",
        &["libcusparse"],
        &[Getter(VersionGetter { function: "cusparseGetVersion", scales: &[(0, 1000)] })],
    ),
    &plain(
        "cufft",
        "cuFFT",
        &["libcufft"],
        &[Getter(VersionGetter { function: "cufftGetVersion", scales: &[(0, 1000)] })],
    ),
    &plain(
        "cusolver",
        "cuSOLVER",
        &["libcusolver"],
        &[Getter(VersionGetter { function: "cusolverGetVersion", scales: &[(0, 1000)] })],
    ),
    &plain(
        "curand",
        "cuRAND",
        &["libcurand"],
        &[Getter(VersionGetter { function: "curandGetVersion", scales: &[(0, 1000)] })],
    ),
    &NVJITLINK,
    &NVRTC,
    &BUILTINS,
    &PTXAS,
    &plain(NCCL.key, NCCL.name, &["libnccl"], &[GetterOf(&NCCL)]),
    &plain(
        "cutensor",
        "cuTENSOR",
        &["libcutensor"],
        &[Getter(VersionGetter { function: "cutensorGetVersion", scales: &[(0, 10_000)] })],
    ),
    &plain(
        "cusparseLt",
        "cuSPARSELt",
        &["libcusparseLt"],
        &[Getter(VersionGetter { function: "cusparseLtGetVersion", scales: &[(0, 1000)] })],
    ),
    &plain("nvshmem", "NVSHMEM", &["libnvshmem_host"], &[Text("NVSHMEM v")]),
    // Up to release 8, the scale was 1000.
    &plain(
        "tensorrt",
        "TensorRT",
        &["libnvinfer", "libnvinfer_lean", "libnvinfer_dispatch"],
        &[Getter(VersionGetter { function: "getInferLibVersion", scales: &[(10_000, 10_000), (0, 1000)] })],
    ),
];

const fn plain(
    key: &'static str,
    name: &'static str,
    stems: &'static [&'static str],
    versions: &'static [VersionSource],
) -> Descriptor {
    Descriptor { key, name, stems, versions }
}

impl Descriptor {
    /// Returns every descriptor, in the order of reports.
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        FAMILY.into_iter()
    }

    /// Returns the descriptor of a file with this soname, or of a DLL or tool with this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        let plain = vendor::plain_name(name);
        if let Some((stem, _)) = plain.split_once(".so") {
            return Self::all().find(|known| known.stems.contains(&stem));
        }
        // Triton brings one for older GPUs and one for Blackwell: `ptxas-blackwell`.
        let tool = plain.strip_suffix(".exe").unwrap_or(&plain);
        (tool.split('-').next() == Some(PTXAS.stems[0])).then_some(&PTXAS)
    }

    /// Returns true if this is the descriptor of `other`.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
