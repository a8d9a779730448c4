//! The facts of a release that are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::as_text;
use crate::knowledge::vendor;
use cudaguard::internal::manifest::Requirement;
use cudaguard::internal::tables;
use cudaguard::internal::version::Version;
use serde::Serialize;

use crate::artifact::file_name;
use crate::binary::examined::NotExamined;
use crate::cli::report::CliError;
use crate::commands::artifact_report::ArtifactReport;
use crate::host::machine::judge::gpu_answer::Service;
use crate::host::machine::oldest_driver::{OldestDriver, driver_needs, machine_with_gpu};
use crate::host::machine::{Components, worst_service};

const UNKNOWN_VERSION: &str = "version not known";

/// A GPU generation, with the driver requirement of an artifact for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ComparedGpu {
    #[serde(rename = "by")]
    pub(super) service: Service,
    pub(super) driver: Option<OldestDriver>,
}

/// The state of a GPU generation.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct ReleaseGpu {
    #[serde(serialize_with = "as_text::dotted_cc")]
    pub(super) cc: (u8, u8),
    #[serde(flatten)]
    state: ComparedGpu,
}

/// The facts of a release that are compared.
#[derive(Serialize)]
pub(super) struct ReleaseFacts {
    pub(super) file: String,
    #[serde(rename = "name")]
    pub(super) title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) processor: String,
    /// The GPU generations. The last one also represents newer GPUs. Empty without GPU code.
    pub(super) gpus: Vec<ReleaseGpu>,
    /// The driver that it needs on any GPU, if it has no GPU code.
    pub(super) driver: Option<OldestDriver>,
    /// The oldest cuDNN that a machine must have.
    #[serde(serialize_with = "as_text::optional")]
    pub(super) cudnn: Option<Version>,
    /// NVIDIA's libraries inside, by name, with their versions.
    pub(super) inside: BTreeMap<String, BTreeSet<String>>,
    /// NVIDIA's libraries that must come from elsewhere, by name, with their sonames.
    #[serde(rename = "from_elsewhere")]
    pub(super) elsewhere: BTreeMap<String, BTreeSet<String>>,
    /// Requirements of the package.
    pub(super) requires: BTreeMap<String, BTreeSet<String>>,
    /// Bytes of GPU code by architecture.
    #[serde(rename = "gpu_code")]
    pub(super) sizes: BTreeMap<String, u64>,
    /// Files that use CUDA, and whether they are guarded.
    pub(super) guarded: BTreeMap<String, bool>,
    #[serde(rename = "not_judged", skip_serializing_if = "Vec::is_empty", serialize_with = "as_text::each")]
    pub(super) not_examined: Vec<NotExamined>,
}

impl ReleaseFacts {
    /// Returns its state on a GPU. A release without any GPU code has no code for it.
    pub(super) fn gpu_state(&self, cc: (u8, u8)) -> ComparedGpu {
        let none = ComparedGpu { service: Service::None, driver: None };
        self.gpus.iter().find(|gpu| gpu.cc == cc).map_or(none, |gpu| gpu.state)
    }

    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let mut artifact = ArtifactReport::open(path, false)?;
        let components = artifact.components_with_packages(&[])?;
        let distinct: Vec<Components> = components.units().iter().map(Components::without_repeats).collect();
        let mut ccs: Vec<(u8, u8)> = tables::arch_rows().iter().map(|row| row.cc).collect();
        ccs.retain(|cc| components.processor == "aarch64" || !tables::is_tegra(*cc));
        ccs.sort_unstable();
        ccs.dedup();
        let newer = (ccs.last().map_or(1, |(major, _)| major + 1), 0);
        ccs.push(newer);
        let gpus = ccs.iter().filter_map(|cc| {
            let service = worst_service(&distinct, *cc)?;
            // The first driver of a GPU that no table has is newer than any of these.
            let needs_driver = service != Service::None && *cc != newer;
            let driver = needs_driver.then(|| oldest_driver(&distinct, Some(*cc))).flatten();
            Some(ReleaseGpu { cc: *cc, state: ComparedGpu { service, driver } })
        });
        let gpus = gpus.collect();
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
            if part.is_of_nvidia() && part.holds.is_empty() {
                let name = vendor::plain_name(file_name(&part.name));
                insert(&mut inside, vendor::stem_of(&name), name.to_string());
            }
            if !part.components.manifests.is_empty() && !part.is_of_vendor() {
                guarded.insert(part.name.clone(), part.is_guarded());
            }
        }
        for versions in inside.values_mut().filter(|versions: &&mut BTreeSet<String>| versions.len() > 1) {
            versions.remove(UNKNOWN_VERSION);
        }
        for soname in artifact.sonames_from_elsewhere() {
            insert(&mut elsewhere, vendor::stem_of(&soname), soname.clone());
        }
        let mut requires = BTreeMap::new();
        for (name, range) in artifact.package_requirements() {
            insert(&mut requires, &name, range);
        }
        let rows = components.manifests.iter().flat_map(|manifest| &manifest.requires);
        Ok(Self {
            file: path.to_string_lossy().into_owned(),
            title: artifact.title(),
            gpus,
            driver: oldest_driver(&distinct, None),
            cudnn: rows
                .filter_map(|row| if let Requirement::Library { min, .. } = row { Some(*min) } else { None })
                .max(),
            processor: components.processor,
            inside,
            elsewhere,
            requires,
            sizes,
            guarded,
            not_examined: components.not_examined,
        })
    }
}

/// Returns the oldest driver that certainly runs the artifact on any GPU, or on this one. `None`: every known one does.
fn oldest_driver(units: &[Components], cc: Option<(u8, u8)>) -> Option<OldestDriver> {
    driver_needs(units, &machine_with_gpu(cc)).certain()
}

fn insert(map: &mut BTreeMap<String, BTreeSet<String>>, name: &str, value: String) {
    map.entry(name.to_owned()).or_default().insert(value);
}

pub(super) fn describe_driver(OldestDriver { cuda, release }: OldestDriver) -> String {
    match release {
        Some(release) => format!("{release} (CUDA {cuda})"),
        None => format!("CUDA {cuda}"),
    }
}
