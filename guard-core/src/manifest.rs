//! The manifest: the facts of a build, and the requirements that follow from them.

use std::fmt;

use crate::arch::Target;
use crate::finding::Code;
use crate::json::{Value, array, object};
use crate::policy::{Policy, Runtime};
use crate::toolchain::Toolchain;
use crate::vendor::{self, CUDNN};
use crate::version::{CudaVersion, DriverRelease, Version};

pub use crate::linkage::Linkage;

/// The revision of the note's format that is written here.
pub const REVISION: u32 = 1;

/// What one component says of its build. Holds no path, no user name and no time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The package that embedded it.
    pub component: Component,
    /// The version of cudaguard that wrote it.
    pub cudaguard: String,
    /// The target triple.
    pub target: String,
    /// cargo's profile, as cargo names it: `release`, `dev`, or a custom one's name where that is known. Of CMake the
    /// configuration, in lower case (CMake makes no difference); `none` where there is none.
    pub profile: String,
    /// The toolkit's release: by the code in the linked file, where that shows it; else by nvcc, else by `cuda.h`.
    pub toolkit: Option<Version>,
    /// How that is known; `None` where there is none, and in what older releases of cudaguard wrote.
    pub toolkit_known: Option<KnownBy>,
    /// Other toolkits whose code stands in the linked file, oldest first.
    pub toolkits_besides: Vec<CudaVersion>,
    /// The guarded library's headers.
    pub library: Option<BuiltWith>,
    /// How its release is known, where that is not by the headers.
    pub library_known: Option<KnownBy>,
    /// The release of the guarded library that the linker took, where it is another than its headers'.
    pub library_linked: Option<Version>,
    /// cudart; `None` until it is sealed.
    pub cudart: Option<RecordedCudart>,
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
    /// Each allow of the policy, with its reason.
    pub allow: Vec<(Code, String)>,
    /// Libraries that crates in it open by name when it runs.
    pub opens: Vec<Opens>,
    /// Whether linkage and kernels were observed in the linked file.
    pub sealed: bool,
    /// What a host must have.
    pub requires: Vec<Requirement>,
}

/// How a fact of a manifest is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownBy {
    /// Variables, files and compilers of the building machine say so.
    Declared,
    /// The linked file shows it.
    LinkObservation,
    /// It is that of the library which the linker took.
    Linked,
    /// It is the first that has all the functions which the file binds.
    Symbols,
}

impl KnownBy {
    /// In JSON, and to people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Declared => "declared",
            Self::LinkObservation => "observed",
            Self::Linked => "linked",
            Self::Symbols => "symbols",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Declared, Self::LinkObservation, Self::Linked, Self::Symbols]
            .into_iter()
            .find(|known| known.name() == name)
    }
}

/// A package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The libraries that one crate opens by name, and the names that it tries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opens {
    /// The crate: `cudarc 0.19.10`.
    pub by: String,
    /// Their stems, without `lib`.
    pub libraries: Vec<String>,
    /// What is put behind each, in this order: `.so`, `.so.13`.
    pub endings: Vec<String>,
}

/// The guarded library as built with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltWith {
    /// By the headers.
    pub version: Version,
    /// How the program reaches it.
    pub linkage: Linkage,
}

/// cudart as the linked file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedCudart {
    /// How the program reaches it.
    pub linkage: Linkage,
    /// Of which CUDA version; `None` where nothing tells.
    pub version: Option<CudaVersion>,
}

/// One row: what a host must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The guarded library in [min, below).
    Library {
        /// Lowest version, inclusive.
        min: Version,
        /// Upper end, exclusive.
        below: Version,
        /// The headers' version.
        built: Version,
        /// Its soname.
        soname: String,
        /// How it is reached.
        linkage: Linkage,
        /// Older patches are refused as well.
        patch_refuse: bool,
        /// Refuse when absent although loaded at run time.
        required: bool,
    },
    /// A library that the guarded one opens by name.
    Part {
        /// Its file's name.
        file: String,
        /// The exported data symbol with its packed version; empty where it has none.
        symbol: String,
        /// The guarded one does not work without it.
        needed: bool,
    },
    /// What the driver must support whatever the GPU.
    Driver {
        /// CUDA version.
        cuda: CudaVersion,
        /// The release where that is all that is known; 0.0.0 where no document names one.
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
        by: GpuCoverage,
        /// The code: `sm_90a`, `compute_90`; empty where none.
        code: String,
        /// CUDA version that the driver must support for it.
        cuda: Option<CudaVersion>,
        /// The release where that is all that is known.
        release: Option<DriverRelease>,
        /// From which driver on it is sure that its machine code loads; what an older one makes of it, no document says
        /// (docs/internals/decisions, decision 24).
        sure_from: Option<(CudaVersion, DriverRelease)>,
        /// What is left of it where a variable has machine code passed over.
        beside: PtxFallback,
    },
}

/// The PTX beside machine code, which `CUDA_FORCE_PTX_JIT=1` has the driver compile in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PtxFallback {
    /// There is none. In a row that PTX serves: some of the machine code there has none, or it cannot be told.
    Nothing,
    /// Wherever machine code serves, there is some, and a driver that compiles this ISA compiles all of it.
    Isa((u8, u8)),
    /// Some has it and some has not, or it cannot be told. In a row that PTX serves: nothing but what is compiled anyway.
    Untold,
}

/// How GPUs of an interval are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuCoverage {
    /// Machine code in every container.
    Cubin,
    /// PTX, compiled by the driver, in at least one container.
    Ptx,
    /// Some containers serve it, some do not.
    Partial,
    /// The same, and one that serves it has nothing but PTX for it.
    PartialPtx,
    /// None.
    Nothing,
    /// It cannot be told.
    Unknown,
}

impl GpuCoverage {
    /// `cubin`, `ptx`, `partial`, `partial-ptx`, `none`: in reports and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubin => "cubin",
            Self::Ptx => "ptx",
            Self::Partial => "partial",
            Self::PartialPtx => "partial-ptx",
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

/// What stands for the version of a component whose build nobody recorded.
const UNRECORDED: &str = "(no manifest)";

impl Component {
    /// A file that carries no manifest.
    pub(crate) fn unrecorded(name: &str) -> Self {
        Self { name: name.to_owned(), version: UNRECORDED.to_owned() }
    }

    /// Whether it is one: what it was built with is then known as a lower bound only.
    pub(crate) fn is_unrecorded(&self) -> bool {
        self.version == UNRECORDED
    }
}

impl Manifest {
    /// Asks for this release of the guarded library, which the file is linked to: what is known where nobody recorded a build.
    pub(crate) fn require_cudnn(&mut self, version: Version) {
        self.requires.extend(BuiltWith { version, linkage: Linkage::Linked }.requirement_rows(&Policy::default()));
    }

    /// The manifest of a component built by this toolchain under this policy: pure, nothing is looked up.
    ///
    /// What only the linked file can tell (kernels, cudart, how the guarded library is reached) is left open until it is sealed.
    /// A linkage that the policy declares is taken at its word: `none` means that the headers on this machine
    /// are no business of the program.
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
            toolkit_known: toolchain.toolkit_version().map(|_| KnownBy::Declared),
            toolkits_besides: Vec::new(),
            requires: library.as_ref().map(|library| library.requirement_rows(policy)).unwrap_or_default(),
            library_known: library
                .as_ref()
                .filter(|_| toolchain.library_version().is_none())
                .map(|_| KnownBy::Declared),
            library_linked: None,
            library,
            cudart: None,
            declared: toolchain.declared_targets(),
            observed: None,
            host_compiler: toolchain.host_compiler(),
            runtime: policy.runtime,
            partial_refuse: policy.partial_refuse,
            allow: policy.allow.iter().map(|(code, reason)| (*code, reason.clone())).collect(),
            opens: Vec::new(),
            sealed: false,
        }
    }

    /// The shared libcudart that the program is linked to, by soname, and the version that it was built with; `None` where
    /// it is linked otherwise, not at all, or to one of another major than the toolkit's.
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

    /// The CUDA that the program was made with: its toolkit's, else its cudart's.
    pub fn cuda_version(&self) -> Option<CudaVersion> {
        let cudart = |row: &Requirement| match row {
            Requirement::Driver { cuda, because, .. } if because.starts_with(vendor::CUDART.stem) => Some(*cuda),
            _ => None,
        };
        self.toolkit.map(CudaVersion::from).or_else(|| self.requires.iter().find_map(cudart))
    }

    /// The names by which the program opens the guarded library when it runs, in the order in which it tries them; `None` where no crate is
    /// known to do so, and the soname alone counts.
    pub fn library_names(&self) -> Option<Vec<String>> {
        let by_crate = self.opens.iter().find(|opens| opens.libraries.iter().any(|stem| stem == CUDNN.key));
        by_crate.map(|opens| opens.candidate_names(CUDNN.key))
    }

    /// What its kernels are built for, in words: `sm_80, compute_90`. Empty where nobody has looked.
    pub fn built_for(&self) -> String {
        let mut names: Vec<String> = match &self.observed {
            Some(observed) => observed.iter().map(ToString::to_string).collect(),
            None => self
                .requires
                .iter()
                .filter_map(|requirement| match requirement {
                    Requirement::Gpu { code, .. } if !code.is_empty() => Some(code.clone()),
                    _ => None,
                })
                .collect(),
        };
        names.dedup();
        names.join(", ")
    }

    /// How the archs are known: `observed`, `declared` or `unsealed`. Where archs are declared and the file shows none, the
    /// declaration is all there is: the code may be packed, or stand elsewhere.
    pub fn archs_known(&self) -> &'static str {
        match (&self.observed, self.declared.is_empty()) {
            (Some(observed), declared_none) if declared_none || !observed.is_empty() => "observed",
            (None, true) => "unsealed",
            _ => "declared",
        }
    }

    /// What of a file that was read whole no rule has judged, in the shim's words (templates/shim/judge.h): where its owner gave
    /// his word for what cannot be seen, that counts.
    pub fn not_judged(&self) -> Option<&'static str> {
        let rows = self.requires.iter().any(|row| matches!(row, Requirement::Gpu { .. }));
        let unseen = self.observed.is_some() && self.archs_known() == "declared" && !rows;
        unseen.then_some("GPU code that was declared and not found")
    }

    /// The JSON text of the note; keys as MANIFEST.md lists them. Absent is what nobody knows.
    pub fn to_json(&self) -> Value {
        let names = |targets: &[Target]| array(targets.iter().map(ToString::to_string));
        let mut archs = object([("known", self.archs_known().into()), ("declared", names(&self.declared))]);
        archs.insert_some("observed", self.observed.as_deref().map(names));
        let library = self.library.as_ref().map(|library| {
            let mut value = object([("version", library.version.to_string().into())]);
            value.insert_some("linkage", library.linkage.name());
            value.insert_some("known", self.library_known.map(KnownBy::name));
            value.insert_some("library", self.library_linked.map(|version| version.to_string()));
            value
        });
        let cudart = self.cudart.and_then(|cudart| {
            let mut value = object([("linkage", cudart.linkage.name()?.into())]);
            value.insert_some("version", cudart.version.map(|version| version.to_string()));
            Some(value)
        });
        let mut value = object([
            ("revision", REVISION.into()),
            (
                "component",
                object([
                    ("name", self.component.name.as_str().into()),
                    ("version", self.component.version.as_str().into()),
                ]),
            ),
            ("cudaguard", self.cudaguard.as_str().into()),
            ("target", self.target.as_str().into()),
            ("profile", self.profile.as_str().into()),
        ]);
        let toolkit = self.toolkit.map(|version| {
            let mut value = object([("version", version.to_string().into())]);
            value.insert_some("known", self.toolkit_known.map(KnownBy::name));
            let besides = self.toolkits_besides.iter().map(ToString::to_string);
            value.insert_some("besides", (!self.toolkits_besides.is_empty()).then(|| array(besides)));
            value
        });
        value.insert_some("toolkit", toolkit);
        value.insert_some(CUDNN.key, library);
        value.insert_some("cudart", cudart);
        value.insert_some("archs", Some(archs));
        value.insert_some("host_compiler", self.host_compiler.as_deref());
        value.insert_some("dlopen", (!self.opens.is_empty()).then(|| array(self.opens.iter().map(Opens::to_json))));
        value.insert_some("sealed", Some(self.sealed));
        let policy = object([
            ("mismatch", if self.runtime.mismatch_warns { "warn" } else { "refuse" }.into()),
            ("gpu", self.runtime.gpu.name().into()),
            ("library", if self.runtime.library_enforces { "enforce" } else { "report" }.into()),
            ("partial", if self.partial_refuse { "refuse" } else { "silent" }.into()),
        ]);
        value.insert_some("policy", Some(policy));
        value.insert_some(
            "allow",
            Some(object(self.allow.iter().map(|(code, reason)| (code.to_string(), reason.as_str().into())))),
        );
        value.insert_some("requires", Some(array(self.requires.iter().map(Requirement::to_json))));
        value
    }
}

impl Opens {
    /// The names that are tried for one of them, in order.
    pub fn candidate_names(&self, stem: &str) -> Vec<String> {
        self.endings.iter().map(|ending| format!("lib{stem}{ending}")).collect()
    }

    fn to_json(&self) -> Value {
        let texts = |list: &[String]| array(list.iter().map(String::as_str));
        object([
            ("by", self.by.as_str().into()),
            ("libraries", texts(&self.libraries)),
            ("endings", texts(&self.endings)),
        ])
    }
}

impl BuiltWith {
    /// NVIDIA's rule: the same major, the same minor or a newer one; patches are interchangeable both ways, unless the
    /// policy wants no older one.
    pub(crate) fn requirement_rows(&self, policy: &Policy) -> Vec<Requirement> {
        let Version { major, minor, .. } = self.version;
        let whole = Requirement::Library {
            min: if policy.library_patch_refuse { self.version } else { Version::new(major, minor, 0) },
            below: Version::new(major + 1, 0, 0),
            built: self.version,
            soname: CUDNN.soname(self.version),
            linkage: self.linkage,
            patch_refuse: policy.library_patch_refuse,
            required: policy.library_required,
        };
        std::iter::once(whole).chain(CUDNN.parts_of_major(major).map(Requirement::for_part)).collect()
    }
}

impl Requirement {
    /// The row that asks for a library which the guarded one opens by itself.
    pub fn for_part(part: &vendor::Part) -> Self {
        Self::Part { file: part.file.to_owned(), symbol: part.symbol.to_owned(), needed: part.needed }
    }

    /// The row as a JSON object, told apart by its `kind`.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Library { min, below, built, soname, linkage, patch_refuse, required } => {
                let mut value = object([
                    ("kind", CUDNN.key.into()),
                    ("min", min.to_string().into()),
                    ("below", below.to_string().into()),
                    ("built", built.to_string().into()),
                    ("soname", soname.as_str().into()),
                ]);
                value.insert_some("linkage", linkage.name());
                value.insert_some("patch", patch_refuse.then_some("refuse"));
                value.insert_some("required", required.then_some(true));
                value
            }
            Self::Part { file, symbol, needed } => {
                let mut value =
                    object([("kind", format!("{}-inner", CUDNN.key).into()), ("file", file.as_str().into())]);
                value.insert_some("symbol", (!symbol.is_empty()).then_some(symbol.as_str()));
                value.insert_some("needed", Some(*needed));
                value
            }
            Self::Driver { cuda, release, because } => {
                let mut value = object([("kind", "driver".into()), ("cuda", cuda.to_string().into())]);
                value.insert_some("release", (*release != DriverRelease::new(0, 0, 0)).then(|| release.to_string()));
                value.insert_some("because", Some(because.as_str()));
                value
            }
            Self::Gpu { from, to, by, code, cuda, release, sure_from, beside } => {
                let cc = |(major, minor): (u8, u8)| format!("{major}.{minor}");
                let mut value = object([("kind", "gpu".into()), ("from", cc(*from).into())]);
                value.insert_some("to", to.map(cc));
                value.insert_some("by", Some(by.name()));
                value.insert_some("code", (!code.is_empty()).then_some(code.as_str()));
                value.insert_some("cuda", cuda.map(|version| version.to_string()));
                value.insert_some("release", release.map(|release| release.to_string()));
                let nobody = |sure: &_| *sure == crate::tables::NO_DRIVER_KNOWN;
                let named = sure_from.map(|(cuda, _)| cuda.to_string());
                value.insert_some(
                    "sure_from",
                    if sure_from.as_ref().is_some_and(nobody) { Some("unknown".to_owned()) } else { named },
                );
                value.insert_some("no_ptx", (*beside == PtxFallback::Nothing).then_some(true));
                if let PtxFallback::Isa((major, minor)) = beside {
                    value.insert_some("ptx_isa", Some(format!("{major}.{minor}")));
                }
                value
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{Arch, Suffix};

    fn library(version: Version, policy: &Policy) -> Vec<String> {
        let rows = BuiltWith { version, linkage: Linkage::Linked }.requirement_rows(policy);
        rows.iter().map(|row| row.to_json().to_string()).collect()
    }

    #[test]
    fn the_cudnn_rule_is_an_interval() {
        assert_eq!(
            library(Version::new(9, 15, 1), &Policy::default()),
            [
                r#"{"kind":"cudnn","min":"9.15.0","below":"10.0.0","built":"9.15.1","soname":"libcudnn.so.9","linkage":"linked"}"#,
                r#"{"kind":"cudnn-inner","file":"libcudnn_graph.so.9","symbol":"cudnn_graph_version","needed":true}"#,
                r#"{"kind":"cudnn-inner","file":"libcudnn_ops.so.9","symbol":"cudnn_ops_infer_version","needed":false}"#,
                r#"{"kind":"cudnn-inner","file":"libcudnn_cnn.so.9","needed":false}"#,
                r#"{"kind":"cudnn-inner","file":"libcudnn_adv.so.9","needed":false}"#,
                r#"{"kind":"cudnn-inner","file":"libcudnn_engines_precompiled.so.9","needed":false}"#,
                r#"{"kind":"cudnn-inner","file":"libcudnn_engines_runtime_compiled.so.9","needed":false}"#,
                r#"{"kind":"cudnn-inner","file":"libcudnn_heuristic.so.9","needed":false}"#,
            ]
        );
        let strict = Policy { library_patch_refuse: true, library_required: true, ..Policy::default() };
        assert_eq!(
            library(Version::new(7, 6, 5), &strict),
            [
                r#"{"kind":"cudnn","min":"7.6.5","below":"8.0.0","built":"7.6.5","soname":"libcudnn.so.7","linkage":"linked","patch":"refuse","required":true}"#
            ]
        );
    }

    #[test]
    fn a_project_without_anything_has_a_manifest() {
        let component = Component { name: "plain".to_owned(), version: "1.0.0".to_owned() };
        let manifest = Manifest::from_build(
            component,
            "x86_64-unknown-linux-gnu",
            "release",
            &Policy::default(),
            &Toolchain::default(),
        );
        assert_eq!(manifest.requires, []);
        let expected = format!(
            "{{\"revision\":1,\"component\":{{\"name\":\"plain\",\"version\":\"1.0.0\"}},\"cudaguard\":\"{}\",\
             \"target\":\"x86_64-unknown-linux-gnu\",\"profile\":\"release\",\
             \"archs\":{{\"known\":\"unsealed\",\"declared\":[]}},\"sealed\":false,\
             \"policy\":{{\"mismatch\":\"refuse\",\"gpu\":\"auto\",\"library\":\"report\",\"partial\":\"silent\"}},\
             \"allow\":{{}},\"requires\":[]}}",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(manifest.to_json().to_string(), expected);
    }

    #[test]
    fn how_archs_are_known() {
        let component = Component { name: "k".to_owned(), version: "1.0.0".to_owned() };
        let mut manifest = Manifest::from_build(component, "t", "dev", &Policy::default(), &Toolchain::default());
        assert_eq!(manifest.archs_known(), "unsealed");
        manifest.declared = vec![Target::Cubin(Arch { number: 90, suffix: Suffix::Specific })];
        assert_eq!((manifest.archs_known(), manifest.not_judged()), ("declared", None));
        manifest.observed = Some(Vec::new());
        assert_eq!(manifest.archs_known(), "declared");
        assert_eq!(manifest.not_judged(), Some("GPU code that was declared and not found"));
        manifest.observed = Some(manifest.declared.clone());
        assert_eq!((manifest.archs_known(), manifest.not_judged()), ("observed", None));
        (manifest.observed, manifest.declared) = (Some(Vec::new()), Vec::new());
        assert_eq!((manifest.archs_known(), manifest.not_judged()), ("observed", None));
    }

    #[test]
    fn linkages_have_names() {
        for linkage in [Linkage::Linked, Linkage::Static, Linkage::Dlopened, Linkage::None] {
            assert_eq!(Linkage::from_name(linkage.name().unwrap()), linkage);
        }
        assert_eq!(Linkage::from_name("by pigeon"), Linkage::Unknown);
    }
}
