//! The catalogue of NVIDIA's libraries: their file names, who provides them, and what cudaguard knows about each.

use std::ops::RangeInclusive;

use super::{CodeMark, Traces, major_of, stem_of};
use VersionSource::{ExportedNames, Getter, Text, TextOfTools};
use cudaguard::internal::cudnn::{self, CudnnPart, VersionGetter};

/// What provides a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The driver, in the release of its kernel module.
    Driver,
    /// The toolkit.
    Toolkit,
    /// The toolkit, but the file is a program.
    Tool,
    /// cuDNN.
    Cudnn,
    /// A product that NVIDIA releases apart from the toolkit.
    Product,
}

/// The form of a DLL name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dll {
    /// None, or unknown.
    None,
    /// `cublas64_13.dll`.
    Numbered,
    /// `nvrtc64_130_0.dll`, with a number that the soname does not determine.
    Long,
    /// `nvJitLink_130_0.dll`, the same without the size of a pointer.
    Versioned,
    /// This name, and what follows `.so.` in the soname.
    Named(&'static str, &'static str),
}

/// The CUDA majors whose toolkits contain a library.
#[derive(Clone, Copy, Debug)]
pub(super) enum CudaMajors {
    /// Unknown.
    Unknown,
    /// The major of the soname.
    Same,
    /// By the major of the soname: the first and the last CUDA major.
    Listed(&'static [(u32, u32, u32)]),
}

/// The driver that a library needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DriverDependency {
    /// None, or other rules determine it.
    None,
    /// Any release.
    Any,
    /// One of its CUDA major.
    OfCuda,
    /// The same, because it contains a CUDA runtime.
    Runtime,
    /// By the major of the soname; any release for other majors.
    Listed(&'static [(u32, u32)]),
}

/// A place in a file that contains the version of the library.
#[derive(Clone, Copy, Debug)]
pub enum VersionSource {
    /// The code of an exported function that returns the version as a number, or stores it through its argument.
    Getter(VersionGetter),
    /// A text in the constants of the file, followed by the version.
    Text(&'static str),
    /// [`TOOLS`], followed by the release, `, V` and the version.
    TextOfTools,
    /// Names of exported functions with this prefix, followed by major and minor: `12_4`. The patch level is unknown.
    ExportedNames(&'static str),
}

/// The text with the version in every tool of the toolkit and in the libraries that contain one.
pub const TOOLS: &str = "Cuda compilation tools, release ";

/// A library or tool of NVIDIA.
#[derive(Clone, Debug)]
pub struct Library {
    /// The file names before `.so`; of a tool, the complete name. An asterisk replaces the rest of a name.
    pub stems: &'static [&'static str],
    /// What provides it.
    pub owner: Owner,
    /// The key in JSON and in host files, `cusparse`; empty if its version is not read.
    pub key: &'static str,
    /// The name in messages: `cuSPARSE`.
    pub name: &'static str,
    /// The places of its version, the most certain first. Measured in the wheels of `tests/parts/family.json`.
    pub versions: &'static [VersionSource],
    /// The start of the names of its functions, if crates look them up.
    pub functions: &'static str,
    /// NVIDIA packages that contain it: of pip, without `nvidia-` and the CUDA major, and of conda.
    pub packages: &'static [&'static str],
    /// True if a program that contains its whole name opens it because it cannot work without it.
    pub is_essential: bool,
    /// True if programs open it. Other libraries open those for which it is false.
    pub is_opened: bool,
    /// The majors to search whose soname ends with only the major; some do not exist yet.
    pub majors: RangeInclusive<u32>,
    /// The version suffixes of older sonames, newest first.
    pub older_sonames: &'static [&'static str],
    /// Libraries that it loads with dlopen; those that contain its version come first.
    pub parts: &'static [CudnnPart],
    /// Evidence in a file that it uses this library.
    pub traces: Traces,
    pub(super) dll: Dll,
    pub(super) cuda: CudaMajors,
    pub(super) driver: DriverDependency,
}

/// The CUDA runtime that a driver for Windows brings, from CUDA 13 on.
pub const HYBRID_CUDART: &str = "nvcudart_hybrid64.dll\0";

/// cudart. No string or note in its file contains its release (13.0 to 13.5), only the code of `cudaRuntimeGetVersion` does. Therefore
/// the release is read from the file name.
///
/// Measured on 11.8, 13.0 and 13.5: the static cudart has symbols `libcudart_static_<hash>` if the file is not stripped. A stripped file
/// contains two strings that only cudart has: its table of error names and the name of its shared memory. Bindings to cudart contain
/// only the first. In PE files, measured on 11.8 to 12.9: the table of error names and the name of the driver's DLL; bindings contain one
/// of them. Measured on 13.0 to 13.3: the static cudart only loads the runtime that comes with the driver.
pub static CUDART: Library = Library {
    majors: 12..=19,
    // Two numbers up to 11, for which every minor has the soname libcudart.so.11.0.
    older_sonames: &["11.0", "10.2", "10.1", "10.0", "9.2", "9.1", "9.0", "8.0"],
    traces: Traces {
        wanted: &["__cudaRegisterFatBinary", "cudaMalloc"],
        opened_for: "cudaMalloc",
        inside: &[
            CodeMark { text: "/cudart.shm.", version: None },
            CodeMark { text: "cudaErrorCudartUnloading\0", version: None },
        ],
        inside_pe: &[
            &[
                CodeMark { text: "cudaErrorCudartUnloading\0", version: None },
                CodeMark { text: "nvcuda.dll\0", version: None },
            ],
            &[CodeMark { text: HYBRID_CUDART, version: None }],
        ],
        ..Traces::NONE
    },
    ..toolkit(&["libcudart"])
        .named("cudart", "cudart", &[])
        .cuda(CudaMajors::Same)
        .functions("cuda")
        // Each of the last packages selects the CUDA version of all other conda packages.
        .packages(&[
            "cuda-cudart",
            "cuda-cudart-linux-64",
            "cuda-runtime",
            "cuda-libraries",
            "cuda-toolkit",
            "cuda-version",
            "cudatoolkit",
            "pytorch-cuda",
        ])
};

/// cuDNN, whose facts for builds are in [`cudnn`]. A static cuDNN contains a string `cudnn_version_<major>_…_` (measured: 7.6 to 9.28);
/// cuDNN's own libraries contain it, too.
pub static CUDNN: Library = Library {
    majors: 5..=19,
    parts: cudnn::PARTS,
    traces: Traces {
        functions: Some("cudnn"),
        getter: cudnn::GETTER.function,
        opened_for: "cudnnCreate",
        answers: Some("CUDNN_STATUS_"),
        inside: &[CodeMark { text: "cudnn_version_", version: Some('_') }],
        inside_pe: &[&[CodeMark { text: "cudnn_version_", version: Some('_') }]],
        ..Traces::NONE
    },
    ..of(Owner::Cudnn, &[cudnn::STEM, "libcudnn_*"])
        .named(cudnn::KEY, cudnn::NAME, &[])
        .dll(Dll::Numbered)
        .driver(DriverDependency::Listed(&[(9, 11), (8, 10)]))
        .functions("cudnn")
        .packages(&["cudnn"])
};

/// `NCCL_VERSION` in nccl.h: up to 2.8 the major is multiplied by 1000.
pub const NCCL_GETTER: VersionGetter =
    VersionGetter { function: "ncclGetVersion", scales: &[(10_000, 10_000), (0, 1000)] };

/// NCCL. Its code contains the line that it prints if `NCCL_DEBUG` is set, `NCCL version 2.21.5+cuda12.4` (measured in pip's packages:
/// 2.16.5, 2.18.1, 2.21.5 and 2.27.7 for CUDA 12; 2.27.7 and 2.32.3 for CUDA 13). The name of its file contains only the major.
pub static NCCL: Library = Library {
    majors: 1..=9,
    traces: Traces {
        functions: Some("nccl"),
        getter: NCCL_GETTER.function,
        opened_for: "ncclCommInitRank",
        inside: &[CodeMark { text: "NCCL version ", version: Some('.') }],
        ..Traces::NONE
    },
    ..product(&["libnccl"])
        .named("nccl", "NCCL", &[Getter(NCCL_GETTER)])
        .driver(DriverDependency::Any)
        .functions("nccl")
        .packages(&["nccl"])
};

/// cuBLAS returns the version of the cuBLASLt that is loaded, so its own file contains none.
pub static CUBLAS: Library =
    toolkit(&["libcublas"]).named("cublas", "cuBLAS", &[]).computes(CudaMajors::Same).essential(&["cublas"]);
/// cuBLASLt, of which cuBLAS consists.
pub static CUBLAS_LT: Library = toolkit(&["libcublasLt"])
    .named("cublasLt", "cuBLASLt", &[getter("cublasLtGetVersion", &[(0, 10_000)])])
    .computes(CudaMajors::Same)
    .essential(&["cublasLt"])
    .packages(&["cublas"]);
/// nvJitLink.
pub static NVJITLINK: Library = toolkit(&["libnvJitLink"])
    .named("nvjitlink", "nvJitLink", &[TextOfTools, ExportedNames("__nvJitLinkCreate_")])
    .dll(Dll::Versioned)
    .cuda(CudaMajors::Same)
    .packages(&["nvjitlink"]);
/// NVRTC.
pub static NVRTC: Library = toolkit(&["libnvrtc"])
    .named("nvrtc", "NVRTC", &[TextOfTools])
    .dll(Dll::Long)
    .cuda(CudaMajors::Same)
    .functions("nvrtc")
    .packages(&["cuda-nvrtc"]);
/// The builtins that NVRTC opens when it compiles.
pub static BUILTINS: Library = toolkit(&["libnvrtc-builtins"])
    .named("nvrtc-builtins", "NVRTC's builtins", &[TextOfTools, ExportedNames("__nvrtc_builtins__")])
    .hidden();
/// ptxas. Triton brings one for older GPUs and one for Blackwell: `ptxas-blackwell`.
pub static PTXAS: Library = of(Owner::Tool, &["ptxas", "ptxas-*"]).named("ptxas", "ptxas", &[TextOfTools]).hidden();

/// Every library, those with versions in the order of reports.
pub static CATALOGUE: [&Library; 56] = [
    &CUBLAS,
    &CUBLAS_LT,
    &toolkit(&["libcusparse"])
        .named("cusparse", "cuSPARSE", &[getter("cusparseGetVersion", &[(0, 1000)])])
        .computes(CudaMajors::Listed(&[(10, 10, 10), (11, 11, 11), (12, 12, 13)]))
        .essential(&["cusparse"]),
    &toolkit(&["libcufft"])
        .named("cufft", "cuFFT", &[getter("cufftGetVersion", &[(0, 1000)])])
        .computes(CudaMajors::Listed(&[(10, 10, 11), (11, 12, 12), (12, 13, 13)]))
        .essential(&["cufft"]),
    &toolkit(&["libcusolver"])
        .named("cusolver", "cuSOLVER", &[getter("cusolverGetVersion", &[(0, 1000)])])
        .computes(CudaMajors::Listed(&[(10, 10, 11), (11, 11, 12), (12, 13, 13)]))
        .essential(&["cusolver"]),
    &toolkit(&["libcurand"])
        .named("curand", "cuRAND", &[getter("curandGetVersion", &[(0, 1000)])])
        .cuda(CudaMajors::Listed(&[(10, 10, 13)]))
        .driver(DriverDependency::OfCuda)
        .essential(&["curand"]),
    &NVJITLINK,
    &NVRTC,
    &BUILTINS,
    &PTXAS,
    &NCCL,
    &product(&["libcutensor"])
        .named("cutensor", "cuTENSOR", &[getter("cutensorGetVersion", &[(0, 10_000)])])
        .dll(Dll::Named("cutensor", "2"))
        .driver(DriverDependency::Any)
        .functions("cutensor"),
    &product(&["libcusparseLt"])
        .named("cusparseLt", "cuSPARSELt", &[getter("cusparseLtGetVersion", &[(0, 1000)])])
        .dll(Dll::Named("cusparselt", "0"))
        .driver(DriverDependency::Any)
        .packages(&["cusparselt"]),
    &product(&["libnvshmem_host"])
        .named("nvshmem", "NVSHMEM", &[Text("NVSHMEM v")])
        .driver(DriverDependency::Any)
        .packages(&["nvshmem"]),
    // Up to release 8, the scale was 1000.
    &product(&["libnvinfer", "libnvinfer_lean", "libnvinfer_dispatch"])
        .named("tensorrt", "TensorRT", &[getter("getInferLibVersion", &[(10_000, 10_000), (0, 1000)])])
        .dll(Dll::Versioned)
        .driver(DriverDependency::Any),
    &CUDART,
    &CUDNN,
    &toolkit(&["libcufftw"]),
    &toolkit(&["libcufile"]).dll(Dll::None).packages(&["cufile"]),
    &toolkit(&["libcusolverMg"]).functions("cusolverMg"),
    &toolkit(&["libnvjpeg"]).computes(CudaMajors::Same).packages(&["nvjpeg"]),
    &toolkit(&["libnppc"]).computes(CudaMajors::Same).packages(&["npp"]),
    &toolkit(&[
        "libnppial",
        "libnppicc",
        "libnppidei",
        "libnppif",
        "libnppig",
        "libnppim",
        "libnppist",
        "libnppisu",
        "libnppitc",
        "libnpps",
    ])
    .computes(CudaMajors::Same)
    .packages(&["npp"])
    .hidden(),
    &toolkit(&["libnppi", "libnppicom"]).computes(CudaMajors::Same).hidden(),
    &toolkit(&["libnvToolsExt"]).packages(&["nvtx"]),
    &toolkit(&["libcupti"]).dll(Dll::Long).packages(&["cuda-cupti"]),
    &toolkit(&["libnvperf_host", "libnvperf_target", "libpcsamplingutil"]).dll(Dll::None).hidden(),
    &toolkit(&["libaccinj64", "libcufile_rdma", "libcuinj64", "libnvtx3interop"]).dll(Dll::None).hidden(),
    &toolkit(&["libnvblas"]).hidden(),
    &toolkit(&["libnvfatbin", "libnvptxcompiler", "libnvvm"]).dll(Dll::Versioned).hidden(),
    &product(&["libcal"]).hidden(),
    &product(&["libcublasMp"]),
    &product(&["libcudss"]).driver(DriverDependency::Any),
    &product(&["libcudss_*"]).driver(DriverDependency::Any).hidden(),
    &product(&["libcudensitymat", "libcupauliprop", "libcustabilizer"]),
    &product(&["libcufftMp"]),
    &product(&["libcusolverMp"]),
    &product(&["libcustatevec"]),
    &product(&["libcutensorMg"]).dll(Dll::Named("cutensormg", "2")).driver(DriverDependency::Any),
    &product(&["libcutensorMp"]).driver(DriverDependency::Any),
    &product(&["libcutensornet"]).driver(DriverDependency::Any),
    &product(&["libnvcomp"]),
    &product(&["libnvcomp_bitcomp", "libnvcomp_cpu", "libnvcomp_device", "libnvcomp_gdeflate"]).hidden(),
    &product(&["libnvimgcodec"]),
    &product(&["libnvinfer_plugin"]).dll(Dll::Versioned).driver(DriverDependency::Any),
    &product(&["libnvinfer_builder_resource*", "libnvinfer_safe", "libnvinfer_vc_plugin"])
        .dll(Dll::Versioned)
        .driver(DriverDependency::Any)
        .hidden(),
    &product(&["libnvonnxparser", "libnvparsers"]).dll(Dll::Versioned).hidden(),
    &product(&["libnvjpeg2k"]),
    &product(&["libnvshmem", "libnvshmem_*", "nvshmem_bootstrap_*", "nvshmem_transport_*"]).hidden(),
    &product(&["libnvtiff"]),
    &driver(&["libcuda"]).dll(Dll::Named("nvcuda", "1")).opened(),
    &driver(&["libnvidia-ml"]).dll(Dll::Named("nvml", "1")).opened(),
    &driver(&["libnvcuvid"]).dll(Dll::Named("nvcuvid", "1")),
    &driver(&["libnvidia-encode"]).dll(Dll::Named("nvencodeapi64", "1")),
    &driver(&["libnvidia-*", "libcudadebugger", "libnvml", "libnvoptix"]),
    // Of a Jetson.
    &driver(&["libnvrm_*", "libnvbufsurface", "libnvbufsurftransform"]),
];

const fn of(owner: Owner, stems: &'static [&'static str]) -> Library {
    Library {
        stems,
        owner,
        key: "",
        name: "",
        versions: &[],
        functions: "",
        packages: &[],
        is_essential: false,
        is_opened: true,
        majors: 0..=0,
        older_sonames: &[],
        parts: &[],
        traces: Traces::NONE,
        dll: Dll::None,
        cuda: CudaMajors::Unknown,
        driver: DriverDependency::None,
    }
}

const fn toolkit(stems: &'static [&'static str]) -> Library {
    of(Owner::Toolkit, stems).dll(Dll::Numbered)
}

const fn product(stems: &'static [&'static str]) -> Library {
    of(Owner::Product, stems)
}

const fn driver(stems: &'static [&'static str]) -> Library {
    of(Owner::Driver, stems).hidden()
}

const fn getter(function: &'static str, scales: &'static [(u64, u64)]) -> VersionSource {
    Getter(VersionGetter { function, scales })
}

impl Library {
    const fn named(self, key: &'static str, name: &'static str, versions: &'static [VersionSource]) -> Self {
        Self { key, name, versions, ..self }
    }

    const fn dll(self, dll: Dll) -> Self {
        Self { dll, ..self }
    }

    const fn cuda(self, cuda: CudaMajors) -> Self {
        Self { cuda, ..self }
    }

    const fn driver(self, driver: DriverDependency) -> Self {
        Self { driver, ..self }
    }

    const fn functions(self, functions: &'static str) -> Self {
        Self { functions, ..self }
    }

    const fn packages(self, packages: &'static [&'static str]) -> Self {
        Self { packages, ..self }
    }

    const fn hidden(self) -> Self {
        Self { is_opened: false, ..self }
    }

    const fn opened(self) -> Self {
        Self { is_opened: true, ..self }
    }

    /// It contains a CUDA runtime.
    const fn computes(self, cuda: CudaMajors) -> Self {
        self.cuda(cuda).driver(DriverDependency::Runtime)
    }

    /// Programs cannot work without it, and its functions and package have this name.
    const fn essential(self, word: &'static [&'static str; 1]) -> Self {
        Self { is_essential: true, ..self.functions(word[0]).packages(word) }
    }

    /// Returns the file name before `.so` of the library itself: `libcublas`.
    pub fn stem(&self) -> &'static str {
        self.stems[0]
    }

    /// Returns true if this is the row of `other`.
    pub fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }

    /// Returns the complete file names before `.so`, without `lib`.
    pub fn words(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.stems.iter().filter(|stem| !stem.ends_with('*')).filter_map(|stem| stem.strip_prefix("lib"))
    }

    /// Returns the start of the name of each DLL up to its number.
    pub fn dll_starts(&self) -> impl Iterator<Item = String> {
        self.words().filter_map(|word| match self.dll {
            Dll::None => None,
            Dll::Numbered | Dll::Long => Some(format!("{word}64_")),
            Dll::Versioned => Some(format!("{word}_")),
            Dll::Named(name, _) => Some(format!("{name}.dll")),
        })
    }

    /// Returns true if the stem is one of its file names. The parts of cuDNN that no table lists have its major in their soname.
    pub(super) fn has_stem(&self, stem: &str, file: &str) -> bool {
        let has_start = |known: &&str| known.strip_suffix('*').is_some_and(|start| stem.starts_with(start));
        let is_part = || {
            let is_listed = cudnn::PARTS.iter().any(|part| stem_of(part.file) == stem);
            is_listed || major_of(file).is_some_and(|major| CUDNN.majors.contains(&major))
        };
        self.stems.contains(&stem) || self.stems.iter().any(has_start) && (self.owner != Owner::Cudnn || is_part())
    }
}
