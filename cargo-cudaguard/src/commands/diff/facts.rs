//! The facts of a release that are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cudaguard::internal::finding::Verdict;
use cudaguard::internal::manifest::Requirement;
use cudaguard::internal::tables;
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};

use crate::cli::report::CliError;
use crate::commands::artifact_report::{self, ArtifactReport};
use crate::host::facts::HostGpu;
use crate::host::judge::answer::{self, Service, answers};
use crate::host::machine::{Components, Driver, Gpu, Machine};

const UNKNOWN_VERSION: &str = "version not known";

/// A GPU generation, with the driver requirement of an artifact for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GpuState {
    pub(super) service: Service,
    pub(super) driver: Option<DriverNeed>,
}

/// A driver, by the CUDA version that it must support and its first release.
pub(super) type DriverNeed = (CudaVersion, Option<DriverRelease>);

/// The facts of a release that are compared.
pub(super) struct ReleaseFacts {
    pub(super) file: String,
    pub(super) title: String,
    pub(super) processor: String,
    /// The state of each GPU generation, by compute capability. The last entry also represents newer GPUs. Empty without GPU code.
    pub(super) gpus: Vec<((u8, u8), GpuState)>,
    /// The driver that it needs on any GPU, if it has no GPU code.
    pub(super) driver: Option<DriverNeed>,
    /// The oldest cuDNN that a machine must have.
    pub(super) cudnn: Option<Version>,
    /// NVIDIA's libraries inside, by name, with their versions.
    pub(super) inside: BTreeMap<String, BTreeSet<String>>,
    /// NVIDIA's libraries that must come from elsewhere, by name, with their sonames.
    pub(super) elsewhere: BTreeMap<String, BTreeSet<String>>,
    /// Requirements of the package.
    pub(super) requires: BTreeMap<String, BTreeSet<String>>,
    /// Bytes of GPU code by architecture.
    pub(super) sizes: BTreeMap<String, u64>,
    /// Files that use CUDA, and whether they are guarded.
    pub(super) guarded: BTreeMap<String, bool>,
    pub(super) not_examined: Vec<String>,
}

impl ReleaseFacts {
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let artifact = ArtifactReport::open(path)?;
        let components = artifact.components();
        let mut ccs: Vec<(u8, u8)> = tables::arch_rows().iter().map(|row| row.cc).collect();
        ccs.retain(|cc| components.processor == "aarch64" || !tables::is_tegra(*cc));
        ccs.sort_unstable();
        ccs.dedup();
        let newer = (ccs.last().map_or(1, |(major, _)| major + 1), 0);
        ccs.push(newer);
        let cudas = known_cuda_versions();
        let state = |cc: &(u8, u8)| {
            let gpu = [HostGpu { cc: Some(*cc), visible: true, ..HostGpu::default() }];
            let all: Vec<_> = components.manifests.iter().map(|manifest| answers(manifest, &gpu, false)).collect();
            let answer = artifact_report::together_on(&all, &components.alternatives).into_iter().next()?;
            // The first driver of a GPU that no table has is newer than any of these.
            let needs_driver = answer.service != Service::None && *cc != newer;
            let driver = needs_driver.then(|| oldest_driver(&components, *cc, &cudas)).flatten();
            Some((*cc, GpuState { service: answer.service, driver }))
        };
        let gpus = ccs.iter().filter_map(state).collect();
        let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
        let (mut inside, mut elsewhere) = (BTreeMap::new(), BTreeMap::new());
        let mut guarded = BTreeMap::new();
        for part in &artifact.parts {
            for entry in part.kernels.entries() {
                *sizes.entry(entry.arch_name()).or_default() += entry.size;
            }
            for (library, version) in &part.holds {
                let version = version.clone().unwrap_or_else(|| UNKNOWN_VERSION.to_owned());
                insert(&mut inside, library.name, version);
            }
            if part.is_nvidias() && part.holds.is_empty() {
                let own = part.name.rsplit(['/', '!']).next().unwrap_or_default();
                let name = artifact_report::unmarked_name(own);
                insert(&mut inside, stem(&name), name.clone());
            }
            if !part.components.manifests.is_empty() && !part.is_of_vendor() {
                guarded.insert(part.name.clone(), part.is_guarded());
            }
        }
        for versions in inside.values_mut().filter(|versions: &&mut BTreeSet<String>| versions.len() > 1) {
            versions.remove(UNKNOWN_VERSION);
        }
        for soname in artifact.sonames_from_elsewhere() {
            insert(&mut elsewhere, stem(&soname), soname.clone());
        }
        let mut requires = BTreeMap::new();
        for (name, range) in artifact.package_requirements() {
            insert(&mut requires, &name, range);
        }
        let rows = || components.manifests.iter().flat_map(|manifest| &manifest.requires);
        Ok(Self {
            file: path.to_string_lossy().into_owned(),
            title: artifact.title(),
            gpus,
            driver: components.manifests.iter().filter_map(answer::least_driver).max(),
            cudnn: rows()
                .filter_map(|row| if let Requirement::Library { min, .. } = row { Some(*min) } else { None })
                .max(),
            processor: components.processor,
            inside,
            elsewhere,
            requires,
            sizes,
            guarded,
            not_examined: artifact.not_examined.iter().map(ToString::to_string).collect(),
        })
    }
}

/// Every CUDA version that some driver supports, the oldest first.
fn known_cuda_versions() -> Vec<CudaVersion> {
    let of_branches = tables::branch_rows().iter().map(|row| row.least);
    let of_toolkits = tables::toolkit_rows().iter().map(|row| row.version);
    let all: BTreeSet<CudaVersion> = of_branches.chain(of_toolkits).collect();
    all.into_iter().collect()
}

/// Returns the oldest driver that neither the artifact nor the GPU rejects. `None`: every known one is sufficient.
fn oldest_driver(components: &Components, cc: (u8, u8), cudas: &[CudaVersion]) -> Option<DriverNeed> {
    let is_refused = |cuda: &CudaVersion| {
        let driver = Driver { cuda: Some(*cuda), init: Some(0), ..Driver::default() };
        let gpu = Gpu { cc: Some(cc), visible: Some(true), ..Gpu::default() };
        let machine = Machine { driver: Some(driver), gpus: Some(vec![gpu]), ..Machine::default() };
        Verdict::from_findings(&components.check_on(&machine, "a machine")) == Verdict::Refused
    };
    let refused = cudas.iter().rposition(is_refused);
    // The release that the requirement names, or the first one of that CUDA version.
    let rows = components.manifests.iter().flat_map(|manifest| &manifest.requires);
    let named: Vec<(CudaVersion, DriverRelease)> = rows
        .filter_map(|row| match row {
            Requirement::Driver { cuda, release, .. } if release.branch != 0 => Some((*cuda, *release)),
            Requirement::Gpu { cuda: Some(cuda), release: Some(release), .. } => Some((*cuda, *release)),
            _ => None,
        })
        .collect();
    let release = |cuda: CudaVersion| {
        let own = named.iter().filter(|(of, _)| *of == cuda).map(|(_, release)| *release).max();
        own.or_else(|| tables::first_release(cuda))
    };
    let own = refused.and_then(|last| cudas.get(last + 1)).map(|cuda| (*cuda, release(*cuda)));
    own.max(tables::first_driver(cc).map(|floor| (floor.cuda, floor.release)))
}

fn insert(map: &mut BTreeMap<String, BTreeSet<String>>, name: &str, value: String) {
    map.entry(name.to_owned()).or_default().insert(value);
}

/// `libcudart.so.12` → `libcudart`.
fn stem(soname: &str) -> &str {
    soname.split(".so").next().unwrap_or(soname)
}

pub(super) fn describe_driver((cuda, release): DriverNeed) -> String {
    match release {
        Some(release) => format!("{release} (CUDA {cuda})"),
        None => format!("CUDA {cuda}"),
    }
}

pub(super) fn dotted((major, minor): (u8, u8)) -> String {
    format!("{major}.{minor}")
}
