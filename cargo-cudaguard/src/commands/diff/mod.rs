//! `diff`: which machines a new release gains and loses, compared with an old one.

mod markdown;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use crate::host::facts::HostGpu;
use crate::host::judge::answer::{self, Service, answers};
use crate::host::machine::{Components, Driver, Gpu, Machine};
use cudaguard::internal::coverage::compatibility::Compatibility;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::Verdict;
use cudaguard::internal::json::{Value, array, object};
use cudaguard::internal::manifest::Requirement;
use cudaguard::internal::policy::{LossKind, ReleaseRequirements};
use cudaguard::internal::tables;
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};

use crate::cli::arguments::{DiffFormat, DiffOptions};
use crate::cli::json_output;
use crate::cli::report::{self, CliError, EXIT_ERROR, REFUSED};
use crate::commands::whole::{self, ArtifactReport};

const UNKNOWN_VERSION: &str = "version not known";

/// A GPU generation, with the driver requirement of an artifact for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GpuState {
    service: Service,
    driver: Option<DriverNeed>,
}

/// A driver, by the CUDA version that it must support and its first release.
type DriverNeed = (CudaVersion, Option<DriverRelease>);

/// The facts of a release that are compared.
struct ReleaseFacts {
    file: String,
    title: String,
    processor: String,
    /// The state of each GPU generation, by compute capability. The last entry also represents newer GPUs. Empty without GPU code.
    gpus: Vec<((u8, u8), GpuState)>,
    /// The driver that it needs on any GPU, if it has no GPU code.
    driver: Option<DriverNeed>,
    /// The oldest cuDNN that a machine must have.
    cudnn: Option<Version>,
    /// NVIDIA's libraries inside, by name, with their versions.
    inside: BTreeMap<String, BTreeSet<String>>,
    /// NVIDIA's libraries that must come from elsewhere, by name, with their sonames.
    elsewhere: BTreeMap<String, BTreeSet<String>>,
    /// Requirements of the package.
    requires: BTreeMap<String, BTreeSet<String>>,
    /// Bytes of GPU code by architecture.
    sizes: BTreeMap<String, u64>,
    /// Files that use CUDA, and whether they are guarded.
    guarded: BTreeMap<String, bool>,
    not_examined: Vec<String>,
}

/// A GPU whose support differs.
struct GpuChange {
    cc: (u8, u8),
    newer: bool,
    old: GpuState,
    new: GpuState,
}

/// A name with its old and new value; empty if it is absent.
struct ValueChange {
    name: String,
    old: String,
    new: String,
}

/// Support that the new release lacks.
struct Loss {
    kind: LossKind,
    /// The GPUs or the file that it is about.
    subject: String,
    old: String,
    new: String,
    /// The policy allows it.
    allowed: bool,
}

/// The comparison.
struct ReleaseDiff {
    old: ReleaseFacts,
    new: ReleaseFacts,
    gpus: Vec<GpuChange>,
    drivers: Vec<GpuChange>,
    driver: Option<ValueChange>,
    cudnn: Option<ValueChange>,
    inside: Vec<ValueChange>,
    elsewhere: Vec<ValueChange>,
    requires: Vec<ValueChange>,
    sizes: Vec<(String, u64, u64)>,
    guard: Vec<(String, Option<bool>, Option<bool>)>,
    losses: Vec<Loss>,
}

pub(crate) fn run_diff(env: &Env, options: &DiffOptions) -> Result<ExitCode, CliError> {
    let policy = if let Some(path) = &options.policy {
        ReleaseRequirements::from_file(path).map_err(CliError::operational)?
    } else {
        let found = ReleaseRequirements::for_project(env.current_dir()).map_err(CliError::operational)?;
        found.map(|(_, requirements)| requirements)
    };
    let mut policy = policy.unwrap_or_default();
    policy.allow_loss.extend(&options.allow_loss);
    let (mut old, mut new) = (ReleaseFacts::read(&options.old)?, ReleaseFacts::read(&options.new)?);
    if old.title == new.title {
        (old.title, new.title) = (old.file.clone(), new.file.clone());
    }
    let diff = ReleaseDiff::new(old, new, &policy);
    report::print_result(&match options.format.get() {
        DiffFormat::Text => text::render_text(&diff),
        DiffFormat::Markdown => markdown::render_markdown(&diff),
        DiffFormat::Json => json_output::render(diff.to_json()),
    })?;
    Ok(if diff.losses.iter().any(|loss| !loss.allowed) {
        ExitCode::from(REFUSED)
    } else if diff.is_known() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(EXIT_ERROR)
    })
}

impl ReleaseFacts {
    fn read(path: &Path) -> Result<Self, CliError> {
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
            let answer = whole::together_on(&all, &components.enough).into_iter().next()?;
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
                let name = whole::unmarked_name(own);
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

impl ReleaseDiff {
    fn new(old: ReleaseFacts, new: ReleaseFacts, policy: &ReleaseRequirements) -> Self {
        let none = GpuState { service: Service::None, driver: None };
        let ccs: BTreeSet<(u8, u8)> = old.gpus.iter().chain(&new.gpus).map(|(cc, _)| *cc).collect();
        let last = ccs.last().copied();
        let of = |facts: &ReleaseFacts, cc: (u8, u8)| {
            facts.gpus.iter().find(|(own, _)| *own == cc).map_or(none, |(_, state)| *state)
        };
        let change = |cc: (u8, u8)| GpuChange { cc, newer: Some(cc) == last, old: of(&old, cc), new: of(&new, cc) };
        // Code that was added to a package without any, or removed from one, is a change of every GPU.
        let all: Vec<GpuChange> = ccs.iter().map(|cc| change(*cc)).collect();
        let (mut gpus, mut drivers) = (Vec::new(), Vec::new());
        for change in all {
            if change.old.service != change.new.service {
                gpus.push(change);
            } else if change.old.driver != change.new.driver {
                drivers.push(change);
            }
        }
        let (old_driver, new_driver) = (old.driver, new.driver);
        let without_code = old.gpus.is_empty() && new.gpus.is_empty();
        let driver = (without_code && old_driver != new_driver).then(|| ValueChange {
            name: "driver".to_owned(),
            old: old_driver.map_or(String::new(), describe_driver),
            new: new_driver.map_or(String::new(), describe_driver),
        });
        let version = |version: Option<Version>| version.map_or(String::new(), |version| version.to_string());
        let cudnn = (old.cudnn != new.cudnn).then(|| ValueChange {
            name: "cuDNN".to_owned(),
            old: version(old.cudnn),
            new: version(new.cudnn),
        });
        let mut archs: Vec<&String> = old.sizes.keys().chain(new.sizes.keys()).collect();
        let number =
            |arch: &str| arch.bytes().filter(u8::is_ascii_digit).fold(0, |all, b| all * 10 + u32::from(b - b'0'));
        archs.sort_by_key(|arch| (number(arch), *arch));
        archs.dedup();
        let size = |facts: &ReleaseFacts, arch: &String| facts.sizes.get(arch).copied().unwrap_or_default();
        let sizes = archs.into_iter().map(|arch| (arch.clone(), size(&old, arch), size(&new, arch))).collect();
        let files: BTreeSet<&String> = old.guarded.keys().chain(new.guarded.keys()).collect();
        let states = files
            .into_iter()
            .map(|file| (file.clone(), old.guarded.get(file).copied(), new.guarded.get(file).copied()));
        let guard: Vec<_> = states.filter(|(_, old, new)| old.unwrap_or_default() != new.unwrap_or_default()).collect();
        let mut diff = Self {
            inside: changed_values(&old.inside, &new.inside),
            elsewhere: changed_values(&old.elsewhere, &new.elsewhere),
            requires: changed_values(&old.requires, &new.requires),
            old,
            new,
            gpus,
            drivers,
            driver,
            cudnn,
            sizes,
            guard,
            losses: Vec::new(),
        };
        diff.losses = diff.find_losses(policy);
        diff
    }

    /// Support that the old release has and the new one lacks.
    fn find_losses(&self, policy: &ReleaseRequirements) -> Vec<Loss> {
        let mut losses = Vec::new();
        let allows = |kind: LossKind| policy.allow_loss.contains(&kind);
        // Required archs and driver floors select the machines that matter.
        let is_required = |cc: (u8, u8)| {
            policy.archs.is_empty() || policy.archs.iter().any(|arch| arch.compatibility_with(cc) == Compatibility::Yes)
        };
        let is_below_floor = |driver: Option<DriverNeed>| {
            let supported = policy.driver_floor.and_then(|floor| tables::driver_supports(floor).least);
            driver.zip(supported).is_some_and(|((cuda, _), supported)| cuda <= supported)
        };
        for change in self.gpus.iter().filter(|change| rank(change.new.service) < rank(change.old.service)) {
            // JIT instead of machine code still runs; unknown is reported by the status.
            let still_runs = matches!(change.new.service, Service::Native | Service::Jit | Service::Unknown);
            if !still_runs {
                losses.push(Loss {
                    kind: LossKind::Gpu,
                    subject: change.label(),
                    old: change.old.service.name().to_owned(),
                    new: change.new.service.name().to_owned(),
                    allowed: allows(LossKind::Gpu) || !is_required(change.cc),
                });
            }
        }
        let runs = |state: GpuState| rank(state.service) > 1;
        let both = |change: &&GpuChange| runs(change.old) && runs(change.new);
        for change in self.gpus.iter().chain(&self.drivers).filter(both) {
            if change.is_driver_raised() {
                losses.push(Loss {
                    kind: LossKind::Driver,
                    subject: change.label(),
                    old: change.old.driver.map_or("any".to_owned(), describe_driver),
                    new: change.new.driver.map_or("any".to_owned(), describe_driver),
                    allowed: allows(LossKind::Driver) || is_below_floor(change.new.driver) || !is_required(change.cc),
                });
            }
        }
        if let Some(change) = self.driver.as_ref().filter(|_| self.old.driver < self.new.driver) {
            let (old, new) = (change.old.clone(), change.new.clone());
            let allowed = allows(LossKind::Driver) || is_below_floor(self.new.driver);
            losses.push(Loss { kind: LossKind::Driver, subject: "any GPU".to_owned(), old, new, allowed });
        }
        if let Some(change) = self.cudnn.as_ref().filter(|_| self.old.cudnn < self.new.cudnn) {
            let below = policy.cudnn_floor.zip(self.new.cudnn).is_some_and(|(floor, new)| new <= floor);
            let old = if change.old.is_empty() { "none".to_owned() } else { change.old.clone() };
            let allowed = allows(LossKind::Cudnn) || below;
            losses.push(Loss {
                kind: LossKind::Cudnn,
                subject: "cuDNN".to_owned(),
                old,
                new: change.new.clone(),
                allowed,
            });
        }
        for (file, _, new) in self.guard.iter().filter(|(_, old, _)| *old == Some(true)) {
            losses.push(Loss {
                kind: LossKind::Guard,
                subject: file.clone(),
                old: "guarded".to_owned(),
                new: if new.is_some() { "not guarded" } else { "absent" }.to_owned(),
                // A file that was removed or renamed is no loss by itself.
                allowed: allows(LossKind::Guard) || new.is_none(),
            });
        }
        losses
    }

    /// Returns false if something that could be a loss was not examined or is unknown.
    fn is_known(&self) -> bool {
        let unknown = |change: &GpuChange| change.new.service == Service::Unknown;
        self.old.not_examined.is_empty() && self.new.not_examined.is_empty() && !self.gpus.iter().any(unknown)
    }

    fn to_json(&self) -> Value {
        let side = |facts: &ReleaseFacts| {
            let mut value = object([("file", Value::from(facts.file.as_str())), ("name", facts.title.as_str().into())]);
            value.insert_some("processor", Some(facts.processor.as_str()).filter(|name| !name.is_empty()));
            let gpu = |(cc, state): &((u8, u8), GpuState)| {
                let mut value = object([("cc", Value::from(dotted(*cc)))]);
                put_state(&mut value, *state);
                value
            };
            value.insert_some("gpus", Some(array(facts.gpus.iter().map(gpu))));
            value.insert_some("driver", facts.driver.map(driver_value));
            value.insert_some("cudnn", facts.cudnn.map(|version| version.to_string()));
            let list = |map: &BTreeMap<String, BTreeSet<String>>| {
                object(map.iter().map(|(name, values)| (name.clone(), array(values.iter().map(String::as_str)))))
            };
            value.insert_some("inside", Some(list(&facts.inside)));
            value.insert_some("from_elsewhere", Some(list(&facts.elsewhere)));
            value.insert_some("requires", Some(list(&facts.requires)));
            let sizes = facts.sizes.iter().map(|(arch, size)| (arch.clone(), Value::from(*size)));
            value.insert_some("gpu_code", Some(object(sizes)));
            let guarded = facts.guarded.iter().map(|(file, guarded)| (file.clone(), Value::from(*guarded)));
            value.insert_some("guarded", Some(object(guarded)));
            let open = facts.not_examined.iter().map(String::as_str);
            value.insert_some("not_judged", (!facts.not_examined.is_empty()).then(|| array(open)));
            value
        };
        let gpu = |change: &GpuChange| {
            let state = |state: GpuState| {
                let mut value = object::<&str>([]);
                put_state(&mut value, state);
                value
            };
            let mut value = object([("cc", Value::from(dotted(change.cc)))]);
            value.insert_some("newer", change.newer.then_some(true));
            value.insert_some("name", change.example());
            value.insert_some("change", Some(change.kind()));
            value.insert_some("old", Some(state(change.old)));
            value.insert_some("new", Some(state(change.new)));
            value
        };
        let value_change = |change: &ValueChange| {
            let mut value = object([("name", Value::from(change.name.as_str()))]);
            value.insert_some("old", Some(change.old.as_str()).filter(|text| !text.is_empty()));
            value.insert_some("new", Some(change.new.as_str()).filter(|text| !text.is_empty()));
            value
        };
        let size = |(arch, old, new): &(String, u64, u64)| {
            object([("arch", Value::from(arch.as_str())), ("old", (*old).into()), ("new", (*new).into())])
        };
        let guard = |(file, old, new): &(String, Option<bool>, Option<bool>)| {
            let mut value = object([("name", Value::from(file.as_str()))]);
            value.insert_some("old", *old);
            value.insert_some("new", *new);
            value
        };
        let loss = |loss: &Loss| {
            object([
                ("kind", Value::from(loss.kind.name())),
                ("subject", loss.subject.as_str().into()),
                ("old", loss.old.as_str().into()),
                ("new", loss.new.as_str().into()),
                ("allowed", loss.allowed.into()),
            ])
        };
        let mut value = object([("old", side(&self.old)), ("new", side(&self.new))]);
        value.insert_some("gpus", Some(array(self.gpus.iter().map(gpu))));
        value.insert_some("drivers", Some(array(self.drivers.iter().map(gpu))));
        value.insert_some("driver", self.driver.as_ref().map(value_change));
        value.insert_some("cudnn", self.cudnn.as_ref().map(value_change));
        value.insert_some("inside", Some(array(self.inside.iter().map(value_change))));
        value.insert_some("from_elsewhere", Some(array(self.elsewhere.iter().map(value_change))));
        value.insert_some("requires", Some(array(self.requires.iter().map(value_change))));
        value.insert_some("gpu_code", Some(array(self.sizes.iter().map(size))));
        value.insert_some("guard", Some(array(self.guard.iter().map(guard))));
        value.insert_some("lost", Some(array(self.losses.iter().map(loss))));
        value
    }
}

fn put_state(value: &mut Value, state: GpuState) {
    value.insert_some("by", Some(state.service.name()));
    value.insert_some("driver", state.driver.map(driver_value));
}

fn driver_value((cuda, release): DriverNeed) -> Value {
    let mut value = object([("cuda", Value::from(cuda.to_string()))]);
    value.insert_some("release", release.map(|release| release.to_string()));
    value
}

fn describe_driver((cuda, release): DriverNeed) -> String {
    match release {
        Some(release) => format!("{release} (CUDA {cuda})"),
        None => format!("CUDA {cuda}"),
    }
}

fn dotted((major, minor): (u8, u8)) -> String {
    format!("{major}.{minor}")
}

/// The better the greater.
const fn rank(service: Service) -> u8 {
    match service {
        Service::None => 0,
        Service::Unknown => 1,
        Service::Partial => 2,
        Service::Jit => 3,
        Service::Native => 4,
    }
}

impl GpuChange {
    fn example(&self) -> Option<&'static str> {
        tables::gpu_examples(self.cc).first().map(String::as_str)
    }

    /// `8.0 (A100)`.
    fn label(&self) -> String {
        match self.example() {
            _ if self.newer => format!("{} and newer", dotted(self.cc)),
            Some(name) => format!("{} ({name})", dotted(self.cc)),
            None => dotted(self.cc),
        }
    }

    /// `gained`, `lost`, `improved`, `reduced`, `raised`, `lowered`.
    fn kind(&self) -> &'static str {
        match (rank(self.old.service), rank(self.new.service)) {
            (0, 1..) => "gained",
            (1.., 0) => "lost",
            (old, new) if old < new => "improved",
            (old, new) if old > new => "reduced",
            _ if self.is_driver_raised() => "raised",
            _ => "lowered",
        }
    }

    fn is_driver_raised(&self) -> bool {
        self.old.driver < self.new.driver
    }
}

/// Names whose values differ.
fn changed_values(
    old: &BTreeMap<String, BTreeSet<String>>,
    new: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<ValueChange> {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let join = |map: &BTreeMap<String, BTreeSet<String>>, name: &String| {
        let values = map.get(name).into_iter().flatten();
        values.map(String::as_str).collect::<Vec<_>>().join(", ")
    };
    let change = |name: &String| ValueChange { name: name.clone(), old: join(old, name), new: join(new, name) };
    names.into_iter().map(change).filter(|change| change.old != change.new).collect()
}

/// `1.2 MB`.
fn describe_size(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        1..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}

/// Describes whether a file is guarded; `None` if it is absent.
const fn describe_guard(guarded: Option<bool>) -> &'static str {
    match guarded {
        None => "absent",
        Some(true) => "guarded",
        Some(false) => "not guarded",
    }
}

/// The value of a side, or a dash.
fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

/// Neighbours with the same change, as first and last of each group.
fn group_changes(changes: &[GpuChange]) -> Vec<Vec<&GpuChange>> {
    let mut groups: Vec<Vec<&GpuChange>> = Vec::new();
    for change in changes {
        let same = |last: &&GpuChange| (last.old, last.new) == (change.old, change.new);
        match groups.last_mut() {
            Some(group) if group.last().is_some_and(same) => group.push(change),
            _ => groups.push(vec![change]),
        }
    }
    groups
}

/// `7.0 (Tesla V100), 7.5 (Tesla T4)`.
fn labels(group: &[&GpuChange]) -> String {
    group.iter().map(|change| change.label()).collect::<Vec<_>>().join(", ")
}

/// `native, driver 525.60.13 (CUDA 12.0)`.
fn describe_state(state: GpuState) -> String {
    match state.driver {
        Some(driver) => format!("{}, driver {}", state.service.name(), describe_driver(driver)),
        None => state.service.name().to_owned(),
    }
}

/// The result in one sentence.
fn summary(diff: &ReleaseDiff) -> String {
    let count = |allowed: bool| {
        let counts = LossKind::ALL.into_iter().filter_map(|kind| {
            let number = diff.losses.iter().filter(|loss| loss.kind == kind && loss.allowed == allowed).count();
            (number > 0).then(|| format!("{}: {number}", kind.name()))
        });
        counts.collect::<Vec<_>>().join(", ")
    };
    let (lost, allowed) = (count(false), count(true));
    let allowed = if allowed.is_empty() { allowed } else { format!("; allowed by the policy: {allowed}") };
    if !lost.is_empty() {
        format!("support is lost ({lost}){allowed}")
    } else if diff.is_known() {
        format!("no support is lost{allowed}")
    } else {
        format!("cannot tell whether support is lost: something is unknown or was not examined{allowed}")
    }
}

/// Rows for the size of GPU code: archs whose size differs, and the sum.
fn size_rows(diff: &ReleaseDiff) -> Vec<(String, String, String)> {
    let sum = |side: fn(&(String, u64, u64)) -> u64| diff.sizes.iter().map(side).sum::<u64>();
    let all = ("all".to_owned(), sum(|(_, old, _)| *old), sum(|(.., new)| *new));
    let rows = diff.sizes.iter().chain((!diff.sizes.is_empty()).then_some(&all));
    let rows = rows.map(|(arch, old, new)| (arch.clone(), describe_size(*old), describe_size(*new)));
    rows.filter(|(arch, old, new)| old != new || arch == "all").collect()
}

#[cfg(test)]
mod tests;
