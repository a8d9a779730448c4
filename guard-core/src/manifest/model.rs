//! The manifest: the facts of a build, and the requirements that follow from them.

use std::fmt;

use crate::config::policy::{Policy, Runtime};
use crate::finding::Code;
use crate::knowledge::cudnn;
use crate::knowledge::tables::{NO_DRIVER_KNOWN, dotted_cc};
use crate::model::arch::Target;
use crate::model::version::{CudaVersion, DriverRelease, Version};
use crate::text::json::{Value, array, object};
use crate::toolchain::Toolchain;

pub use crate::model::linkage::Linkage;

/// The revision of the note's format that this version writes.
pub const REVISION: u32 = 1;

/// The facts and requirements of one component. Contains no path, no user name and no time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The package that embedded it.
    pub component: Component,
    /// The version of cudaguard that wrote it.
    pub cudaguard: String,
    /// The target triple.
    pub target: String,
    /// cargo's profile by its name: `release`, `dev`, or the name of a custom one if known. For CMake, the
    /// configuration in lower case (CMake ignores case); `none` if there is none.
    pub profile: String,
    /// The toolkit's release: from the code in the linked file if it contains one, else from nvcc, else from `cuda.h`.
    pub toolkit: Option<Version>,
    /// The origin of the toolkit's release; `None` if there is none, and in manifests of older releases of cudaguard.
    pub toolkit_known: Option<FactSource>,
    /// Additional toolkits that compiled code in the linked file, oldest first.
    pub other_toolkits: Vec<CudaVersion>,
    /// cuDNN as the program was built with it.
    pub library: Option<BuiltWith>,
    /// The origin of the cuDNN release, if it does not come from the headers.
    pub library_known: Option<FactSource>,
    /// The cuDNN release that the linker resolved, if it differs from the headers.
    pub library_linked: Option<Version>,
    /// The CUDA runtime; `None` until the file is sealed.
    pub cudart: Option<RecordedCudart>,
    /// Archs that the policy, variables or the build system declare.
    pub declared: Vec<Target>,
    /// Archs in the linked file; `None` until the file is sealed.
    pub observed: Option<Vec<Target>>,
    /// The host compiler, if known: `gcc 12.2.0`.
    pub host_compiler: Option<String>,
    /// The `[runtime]` settings of the policy, which the shim applies.
    pub runtime: Runtime,
    /// True for `[gpu] partial = "refuse"`.
    pub partial_refuse: bool,
    /// Entries of the policy's `[allow]`, with their reasons.
    pub allow: Vec<(Code, String)>,
    /// Libraries that crates of the component load with dlopen.
    pub opens: Vec<Opens>,
    /// True if linkage and kernels were observed in the linked file.
    pub sealed: bool,
    /// The requirements for a host.
    pub requires: Vec<Requirement>,
}

/// The origin of a fact in a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactSource {
    /// Declared by variables, files and compilers of the build machine.
    Declared,
    /// Observed in the linked file.
    LinkObservation,
    /// The release of the library that the linker resolved.
    Linked,
    /// The first release with all functions that the file binds.
    Symbols,
}

impl FactSource {
    /// Returns the name for JSON and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Declared => "declared",
            Self::LinkObservation => "observed",
            Self::Linked => "linked",
            Self::Symbols => "symbols",
        }
    }

    /// Returns the variant with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Declared, Self::LinkObservation, Self::Linked, Self::Symbols]
            .into_iter()
            .find(|known| known.name() == name)
    }
}

/// A package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Name of the package.
    pub name: String,
    /// Version of the package.
    pub version: String,
}

/// The libraries that one crate loads with dlopen, and the names that it tries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opens {
    /// The crate: `cudarc 0.19.10`.
    pub by: String,
    /// The names of the libraries without `lib` and ending.
    pub libraries: Vec<String>,
    /// The endings that it appends to each name, in this order: `.so`, `.so.13`.
    pub endings: Vec<String>,
}

/// cuDNN as the program was built with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltWith {
    /// The version in the headers.
    pub version: Version,
    /// How the program links or loads it.
    pub linkage: Linkage,
}

/// The CUDA runtime of the linked file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedCudart {
    /// How the program links or loads it.
    pub linkage: Linkage,
    /// The CUDA version; `None` if unknown.
    pub version: Option<CudaVersion>,
}

/// A requirement for the host: one row of the note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// A cuDNN release in [min, below).
    Library {
        /// Lowest version, inclusive.
        min: Version,
        /// Upper end, exclusive.
        below: Version,
        /// The headers' version.
        built: Version,
        /// Its soname.
        soname: String,
        /// How the program links or loads it.
        linkage: Linkage,
        /// True if older patch releases are refused, too.
        patch_refuse: bool,
        /// True if the program is refused without it although it loads the library at run time.
        required: bool,
    },
    /// A library that cuDNN loads with dlopen.
    Part {
        /// The file name.
        file: String,
        /// The exported data symbol that contains its packed version; empty if it has none.
        symbol: String,
        /// True if cuDNN does not work without it.
        needed: bool,
    },
    /// The driver requirement that does not depend on the GPU.
    Driver {
        /// The CUDA version that the driver must support.
        cuda: CudaVersion,
        /// The oldest driver release, used if only the release of a driver is known; 0.0.0 if no document names one.
        release: DriverRelease,
        /// The code that requires it: `libcudart 13.0`.
        because: String,
    },
    /// The coverage of the GPUs in an interval of compute capabilities.
    Gpu {
        /// Lowest cc, inclusive.
        from: (u8, u8),
        /// Highest cc, inclusive; `None`: no end.
        to: Option<(u8, u8)>,
        /// The kind of coverage.
        by: GpuCoverage,
        /// The code: `sm_90a`, `compute_90`; empty if there is none.
        code: String,
        /// The CUDA version that the driver must support for it.
        cuda: Option<CudaVersion>,
        /// The oldest driver release, used if only the release of a driver is known.
        release: Option<DriverRelease>,
        /// The driver from which its machine code certainly loads; no document describes the behaviour of older ones
        /// (docs/internals/decisions, decision 24).
        guaranteed_from: Option<(CudaVersion, DriverRelease)>,
        /// The coverage if `CUDA_FORCE_PTX_JIT=1` disables machine code.
        ptx_fallback: PtxFallback,
    },
}

/// The PTX next to machine code, which the driver compiles instead if `CUDA_FORCE_PTX_JIT=1` is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PtxFallback {
    /// There is none. In a row with PTX coverage: some of the machine code has no PTX, or that is unknown.
    Nothing,
    /// All machine code has PTX, and a driver that compiles this ISA compiles all of it.
    Isa((u8, u8)),
    /// Some of the machine code has PTX, or that is unknown. In a row with PTX coverage: only the PTX that is compiled
    /// anyway.
    Undetermined,
}

/// The coverage of the GPUs in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuCoverage {
    /// Machine code in every container.
    Cubin,
    /// PTX, compiled by the driver, in at least one container.
    Ptx,
    /// Code in some containers.
    Partial,
    /// Code in some containers, in at least one only PTX.
    PartialPtx,
    /// Some containers serve it, and others cannot be read: partial at worst.
    AtLeastPartial,
    /// Like [`Self::AtLeastPartial`], but a container that serves it has only PTX for it.
    AtLeastPartialPtx,
    /// Some containers do not serve it, and others cannot be read: partial at best.
    AtMostPartial,
    /// No code.
    Nothing,
    /// Unknown.
    Unknown,
}

impl GpuCoverage {
    /// Returns the name in reports and JSON: `cubin`, `ptx`, `partial`, `partial-ptx`, `none`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubin => "cubin",
            Self::Ptx => "ptx",
            Self::Partial => "partial",
            Self::PartialPtx => "partial-ptx",
            Self::AtLeastPartial => "at-least-partial",
            Self::AtLeastPartialPtx => "at-least-partial-ptx",
            Self::AtMostPartial => "at-most-partial",
            Self::Nothing => "none",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// The version of a component without a manifest.
const UNRECORDED: &str = "(no manifest)";

impl Component {
    /// Returns the component of a file without a manifest.
    pub fn unrecorded(name: &str) -> Self {
        Self { name: name.to_owned(), version: UNRECORDED.to_owned() }
    }

    /// Returns true if the component has no manifest. The versions that it was built with are then known as lower
    /// bounds only.
    pub fn is_unrecorded(&self) -> bool {
        self.version == UNRECORDED
    }
}

impl Manifest {
    /// Adds a requirement for this cuDNN release, to which a file without a manifest is linked.
    pub fn require_cudnn(&mut self, version: Version) {
        self.requires.extend(BuiltWith { version, linkage: Linkage::Linked }.requirement_rows(&Policy::default()));
    }

    /// Builds the manifest of a component from its toolchain and policy. Does no I/O.
    ///
    /// Facts that only the linked file shows (kernels, cudart, linkage of cuDNN) are added when it is sealed. A linkage
    /// that the policy declares is not verified: with `none`, the headers on this machine are ignored.
    pub fn from_build(
        component: Component,
        target: &str,
        profile: &str,
        policy: &Policy,
        toolchain: &Toolchain,
    ) -> Self {
        let linkage = policy.library_linkage.unwrap_or_default();
        let library = toolchain
            .library_version()
            .or(policy.library_built)
            .filter(|_| linkage != Linkage::None)
            .map(|version| BuiltWith { version, linkage });
        Self {
            component,
            cudaguard: env!("CARGO_PKG_VERSION").to_owned(),
            target: target.to_owned(),
            profile: profile.to_owned(),
            toolkit: toolchain.toolkit_version(),
            toolkit_known: toolchain.toolkit_version().map(|_| FactSource::Declared),
            other_toolkits: Vec::new(),
            requires: library.as_ref().map(|library| library.requirement_rows(policy)).unwrap_or_default(),
            library_known: library
                .as_ref()
                .filter(|_| toolchain.library_version().is_none())
                .map(|_| FactSource::Declared),
            library_linked: None,
            library,
            cudart: None,
            declared: toolchain.declared_targets(),
            observed: None,
            host_compiler: toolchain.host_compiler(),
            runtime: policy.runtime,
            partial_refuse: policy.partial_refuse,
            allow: policy.allow.clone().into_iter().collect(),
            opens: Vec::new(),
            sealed: false,
        }
    }

    /// Returns the soname of the shared libcudart that the program is linked to, and the version that it was built
    /// with; `None` if it is linked statically, not linked, or of another major than the toolkit.
    pub fn shared_cudart(&self) -> Option<(String, CudaVersion)> {
        let RecordedCudart { linkage: Linkage::Linked, version: Some(version) } = self.cudart? else { return None };
        let CudaVersion { major, minor } = version;
        let soname = match major {
            12.. => format!("libcudart.so.{major}"),
            11 => "libcudart.so.11.0".to_owned(),
            _ => format!("libcudart.so.{major}.{minor}"),
        };
        Some((soname, version))
    }

    /// Returns true if a cudart with an unknown minimum driver is linked in.
    pub fn has_unknown_cudart(&self) -> bool {
        self.cudart.as_ref().is_some_and(|cudart| cudart.linkage == Linkage::Static) && self.cudart_minimum().is_none()
    }

    /// Returns the minimum driver of its cudart.
    fn cudart_minimum(&self) -> Option<CudaVersion> {
        self.requires.iter().find_map(|row| match row {
            Requirement::Driver { cuda, because, .. } if because.starts_with("libcudart") => Some(*cuda),
            _ => None,
        })
    }

    /// Returns the CUDA version that the program was built with: that of the toolkit, else that of its cudart.
    pub fn cuda_version(&self) -> Option<CudaVersion> {
        self.toolkit.map(CudaVersion::from).or_else(|| self.cudart_minimum())
    }

    /// Returns the names with which a crate opens this library, such as `cudnn` or `cuda`, in order. `None` if no crate is
    /// known to open it, and only the soname counts.
    pub fn names_of_opened(&self, stem: &str) -> Option<Vec<String>> {
        let by_crate = self.opens.iter().find(|opens| opens.libraries.iter().any(|library| library == stem))?;
        Some(by_crate.candidate_names(stem))
    }

    /// Describes the targets of the kernels: `sm_80, compute_90`. Empty if they are unknown.
    pub fn built_for(&self) -> String {
        let mut names: Vec<String> = match &self.observed {
            Some(observed) => observed.iter().map(ToString::to_string).collect::<Vec<_>>(),
            None => self
                .requires
                .iter()
                .filter_map(|requirement| match requirement {
                    Requirement::Gpu { code, .. } if !code.is_empty() => Some(code.clone()),
                    _ => None,
                })
                .collect::<Vec<_>>(),
        };
        names.dedup();
        names.join(", ")
    }

    /// Returns the origin of the archs: `observed`, `declared` or `unsealed`. If archs are declared and the file
    /// contains none, the declaration is used: the code may be compressed, or in another file.
    pub fn archs_known(&self) -> &'static str {
        match (&self.observed, self.declared.is_empty()) {
            (Some(observed), declared_none) if declared_none || !observed.is_empty() => "observed",
            (None, true) => "unsealed",
            _ => "declared",
        }
    }

    /// Describes GPU code that no rule checks, in the shim's terms (templates/shim/judge.h): archs are declared, but a
    /// search of the complete file found no code. `None` if there are GPU rows, which are checked.
    pub fn not_judged(&self) -> Option<&'static str> {
        let rows = self.requires.iter().any(|row| matches!(row, Requirement::Gpu { .. }));
        let unseen = self.observed.is_some() && self.archs_known() == "declared" && !rows;
        unseen.then_some("declared GPU code that was not found")
    }

    /// Returns the JSON of the note, with the keys that MANIFEST.md lists. Unknown facts are absent.
    pub fn to_json(&self) -> Value {
        let component = object([
            ("name", self.component.name.as_str().into()),
            ("version", self.component.version.as_str().into()),
        ]);
        let policy = object([
            ("mismatch", if self.runtime.mismatch_warns { "warn" } else { "refuse" }.into()),
            ("gpu", self.runtime.gpu.name().into()),
            ("library", if self.runtime.library_enforces { "enforce" } else { "report" }.into()),
            ("partial", if self.partial_refuse { "refuse" } else { "silent" }.into()),
        ]);
        let allow = self.allow.iter().map(|(code, reason)| (code.to_string(), reason.as_str().into()));
        object([
            ("revision", REVISION.into()),
            ("component", component),
            ("cudaguard", self.cudaguard.as_str().into()),
            ("target", self.target.as_str().into()),
            ("profile", self.profile.as_str().into()),
            ("toolkit", self.toolkit_to_json().into()),
            (cudnn::KEY, self.library_to_json().into()),
            ("cudart", self.cudart.and_then(RecordedCudart::to_json).into()),
            ("archs", self.archs_to_json()),
            ("host_compiler", self.host_compiler.as_deref().into()),
            ("dlopen", non_empty(self.opens.iter().map(Opens::to_json).collect()).into()),
            ("sealed", self.sealed.into()),
            ("policy", policy),
            ("allow", object(allow)),
            ("requires", array(self.requires.iter().map(Requirement::to_json))),
        ])
    }

    fn toolkit_to_json(&self) -> Option<Value> {
        Some(object([
            ("version", self.toolkit?.to_string().into()),
            ("known", self.toolkit_known.map(FactSource::name).into()),
            ("besides", non_empty(texts(&self.other_toolkits)).into()),
        ]))
    }

    fn library_to_json(&self) -> Option<Value> {
        let library = self.library.as_ref()?;
        Some(object([
            ("version", library.version.to_string().into()),
            ("linkage", library.linkage.name().into()),
            ("known", self.library_known.map(FactSource::name).into()),
            ("library", self.library_linked.map(|version| version.to_string()).into()),
        ]))
    }

    fn archs_to_json(&self) -> Value {
        object([
            ("known", self.archs_known().into()),
            ("declared", texts(&self.declared).into()),
            ("observed", self.observed.as_deref().map(texts).into()),
        ])
    }
}

/// Returns the names of the items.
fn texts<T: ToString>(items: &[T]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}

fn non_empty<T>(items: Vec<T>) -> Option<Vec<T>> {
    (!items.is_empty()).then_some(items)
}

impl RecordedCudart {
    /// `None` if it is not linked.
    fn to_json(self) -> Option<Value> {
        Some(object([
            ("linkage", self.linkage.name()?.into()),
            ("version", self.version.map(|version| version.to_string()).into()),
        ]))
    }
}

impl Opens {
    /// Returns the file names that are tried for one of the libraries, in order.
    pub fn candidate_names(&self, stem: &str) -> Vec<String> {
        self.endings.iter().map(|ending| format!("lib{stem}{ending}")).collect::<Vec<_>>()
    }

    fn to_json(&self) -> Value {
        object([
            ("by", self.by.as_str().into()),
            ("libraries", self.libraries.clone().into()),
            ("endings", self.endings.clone().into()),
        ])
    }
}

impl BuiltWith {
    /// Returns the rows by NVIDIA's rule: the same major, and the same minor or a newer one; patches are
    /// interchangeable, unless the policy refuses older ones.
    pub fn requirement_rows(&self, policy: &Policy) -> Vec<Requirement> {
        let Version { major, minor, .. } = self.version;
        let whole = Requirement::Library {
            min: if policy.library_patch_refuse { self.version } else { Version::new(major, minor, 0) },
            below: Version::new(major + 1, 0, 0),
            built: self.version,
            soname: cudnn::soname(self.version.major),
            linkage: self.linkage,
            patch_refuse: policy.library_patch_refuse,
            required: policy.library_required,
        };
        std::iter::once(whole).chain(cudnn::parts_of_major(major).map(Requirement::for_part)).collect::<Vec<_>>()
    }
}

impl Requirement {
    /// Returns the row for a library that cuDNN loads with dlopen.
    pub fn for_part(part: &cudnn::CudnnPart) -> Self {
        Self::Part { file: part.file.to_owned(), symbol: part.symbol.to_owned(), needed: part.needed }
    }

    /// Returns the row as a JSON object, with its type in `kind`.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Library { min, below, built, soname, linkage, patch_refuse, required } => object([
                ("kind", cudnn::KEY.into()),
                ("min", min.to_string().into()),
                ("below", below.to_string().into()),
                ("built", built.to_string().into()),
                ("soname", soname.as_str().into()),
                ("linkage", linkage.name().into()),
                ("patch", patch_refuse.then_some("refuse").into()),
                ("required", required.then_some(true).into()),
            ]),
            Self::Part { file, symbol, needed } => object([
                ("kind", format!("{}-inner", cudnn::KEY).into()),
                ("file", file.as_str().into()),
                ("symbol", (!symbol.is_empty()).then_some(symbol.as_str()).into()),
                ("needed", (*needed).into()),
            ]),
            Self::Driver { cuda, release, because } => object([
                ("kind", "driver".into()),
                ("cuda", cuda.to_string().into()),
                ("release", (*release != DriverRelease::new(0, 0, 0)).then(|| release.to_string()).into()),
                ("because", because.as_str().into()),
            ]),
            Self::Gpu { from, to, by, code, cuda, release, guaranteed_from, ptx_fallback } => {
                let sure_from = guaranteed_from.as_ref().map(|sure| match sure {
                    sure if *sure == NO_DRIVER_KNOWN => "unknown".to_owned(),
                    (cuda, _) => cuda.to_string(),
                });
                let ptx_isa = match ptx_fallback {
                    PtxFallback::Isa((major, minor)) => Some(format!("{major}.{minor}")),
                    _ => None,
                };
                object([
                    ("kind", "gpu".into()),
                    ("from", dotted_cc(*from).into()),
                    ("to", to.map(dotted_cc).into()),
                    ("by", by.name().into()),
                    ("code", (!code.is_empty()).then_some(code.as_str()).into()),
                    ("cuda", cuda.map(|version| version.to_string()).into()),
                    ("release", release.map(|release| release.to_string()).into()),
                    ("sure_from", sure_from.into()),
                    ("no_ptx", (*ptx_fallback == PtxFallback::Nothing).then_some(true).into()),
                    ("ptx_isa", ptx_isa.into()),
                ])
            }
        }
    }
}

#[cfg(test)]
mod tests;
