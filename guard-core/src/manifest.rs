//! The manifest: the facts of a build, and the requirements that follow from them.

use crate::arch::Target;
use crate::finding::Code;
use crate::json::Value;
use crate::policy::{Policy, Runtime};
use crate::toolchain::Toolchain;
use crate::version::{CudaVersion, DriverRelease, Version};

/// What one component says of its build. Holds no path, no user name and no time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The package that embedded it.
    pub component: Component,
    /// The version of cudaguard that wrote it.
    pub cudaguard: String,
    /// The target triple.
    pub target: String,
    /// cargo's profile, as cargo names it: `release`, `dev`, or a custom one's name where that is known.
    pub profile: String,
    /// The toolkit's release, by nvcc, else by `cuda.h`.
    pub toolkit: Option<Version>,
    /// cuDNN's headers.
    pub cudnn: Option<Cudnn>,
    /// Archs as declared: by the policy, variables or the builder.
    pub declared: Vec<Target>,
    /// Archs as found in the linked file; `None` until it is sealed.
    pub observed: Option<Vec<Target>>,
    /// `gcc 12.2.0`: the host compiler, where known.
    pub host_compiler: Option<String>,
    /// What the shim does with a mismatch.
    pub runtime: Runtime,
    /// `[gpu] partial = "refuse"`.
    pub partial_refuse: bool,
    /// Each allow that applied, with its reason.
    pub allow: Vec<(Code, String)>,
    /// Whether linkage and kernels were observed in the linked file.
    pub sealed: bool,
    /// What a host must have.
    pub requires: Vec<Requirement>,
}

/// A package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// cuDNN as built with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cudnn {
    /// By the headers.
    pub version: Version,
    /// How the program reaches it.
    pub linkage: Linkage,
}

/// How a program reaches a library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linkage {
    /// Not known before linking.
    #[default]
    Unknown,
    /// In DT_NEEDED.
    Linked,
    /// Inside the file.
    Static,
    /// By name at run time.
    Dlopened,
    /// Not at all.
    None,
}

/// One row: what a host must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// cuDNN in [min, below).
    Cudnn {
        /// Lowest version, inclusive.
        min: Version,
        /// Upper end, exclusive.
        below: Version,
        /// The headers' version.
        built: Version,
        /// `libcudnn.so.9`.
        soname: String,
        /// How it is reached.
        linkage: Linkage,
        /// Older patches are refused as well.
        patch_refuse: bool,
        /// Refuse when absent although loaded at run time.
        required: bool,
    },
    /// A library that cuDNN's loader opens by name.
    CudnnInner {
        /// `libcudnn_graph.so.9`.
        file: String,
        /// The exported data symbol with its packed version; empty where it has none.
        symbol: String,
        /// cuDNN does not work without it.
        needed: bool,
    },
    /// What the driver must support whatever the GPU.
    Driver {
        /// CUDA version.
        cuda: CudaVersion,
        /// The release where that is all that is known.
        release: DriverRelease,
        /// What needs it: `libcudart 13.0`.
        because: String,
    },
    /// What serves the GPUs of an interval of compute capabilities.
    Gpu {
        /// Lowest cc, inclusive.
        from: (u8, u8),
        /// Highest cc, inclusive; `None`: no end.
        to: Option<(u8, u8)>,
        /// By what.
        by: ServedBy,
        /// The code: `sm_90a`, `compute_90`; empty where none.
        code: String,
        /// CUDA version that the driver must support for it.
        cuda: Option<CudaVersion>,
        /// The release where that is all that is known.
        release: Option<DriverRelease>,
    },
}

/// How GPUs of an interval are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedBy {
    /// Machine code in every container.
    Cubin,
    /// PTX, compiled by the driver, in at least one container.
    Ptx,
    /// Some containers serve it, some do not.
    Partial,
    /// None.
    Nothing,
}

impl Manifest {
    /// The manifest of a component built by this toolchain under this policy: pure, nothing is looked up.
    pub fn of(component: Component, target: &str, profile: &str, policy: &Policy, toolchain: &Toolchain) -> Self {
        let _ = (component, target, profile, policy, toolchain);
        todo!()
    }

    /// The JSON text of the note.
    pub fn to_json(&self) -> Value {
        todo!()
    }
}
