//! What a machine must have so that files run on it: which GPUs, with which driver at least, with which release of the
//! guarded library.
//!
//! No rule of its own: the judge of a run is asked about every compute capability at which its rows change or that the tables
//! know, with every CUDA version that a driver of the tables supports. What it calls `runs` is fit; what it cannot tell is not.

use std::collections::{BTreeMap, BTreeSet};

use super::{Components, Driver, Gpu, HostLibrary, Machine};
use crate::finding::{Code, Finding, Verdict};
use crate::host;
use crate::judge::run::answer::{GpuAnswer, Service, answers};
use crate::manifest::Requirement;
use crate::tables;
use crate::vendor::CUDNN;
use crate::version::{CudaVersion, DriverRelease, Version};

/// What files ask of a machine that is to run all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The processor that they are for; empty where they are for any.
    pub processor: String,
    /// The GPUs that run them, the oldest first; neighbours that come to the same stand together.
    pub fit: Vec<GpuRange>,
    /// The others, and why.
    pub unfit: Vec<Unfit>,
    /// Whether a driver must be there at all.
    pub needs_driver: bool,
    /// The guarded library, where they need it or can use it.
    pub library: Option<OfLibrary>,
}

/// GPUs of compute capabilities from here to there, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuRange {
    /// From here on.
    pub from: (u8, u8),
    /// To here; a minor of 255 stands for the whole major; `None`: and whatever is newer.
    pub to: Option<(u8, u8)>,
    /// How they are served; `None`: there are no kernels, so that any GPU will do.
    pub by: Option<Service>,
    /// The oldest driver; `None`: any that drives the GPU.
    pub driver: Option<OldestDriver>,
}

/// A driver, in both currencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OldestDriver {
    /// It supports this CUDA version.
    pub cuda: CudaVersion,
    /// The first release that is known to; `None`: none is.
    pub release: Option<DriverRelease>,
}

/// GPUs that do not run them, or of which that cannot be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// From here on.
    pub from: (u8, u8),
    /// To here, as in [`GpuRange`].
    pub to: Option<(u8, u8)>,
    /// What the judge says of them with the newest driver of the tables.
    pub why: Finding,
}

/// What they ask of the guarded library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfLibrary {
    /// This release or newer.
    pub min: Version,
    /// And older than this one.
    pub below: Version,
    /// Whether they do not run without it.
    pub needed: bool,
    /// The first release in between that leaves one of the fit GPUs behind.
    pub leaves_behind: Option<Version>,
}

/// A compute capability's interval, on the way to a row.
type Interval = ((u8, u8), Option<(u8, u8)>);

impl Placement {
    /// For these files together; an error says in words why nothing can be derived.
    pub fn from_components(files: &[Components]) -> Result<Self, String> {
        let processor = common_processor(files)?;
        // What cannot be told of a file cannot be told on any machine.
        for file in files {
            if let Some(doubt) =
                file.findings.iter().find(|finding| Verdict::from_findings([*finding]) != Verdict::Runs)
            {
                return Err(format!("{}: {}", file.file, first_line(doubt)));
            }
        }
        let files = &files.iter().map(Components::without_repeats).collect::<Vec<_>>()[..];
        let asked = PlacementQuery::from_components(files)?;
        let cudas = known_cuda_versions();
        let (mut fit, mut unfit): (Vec<GpuRange>, Vec<Unfit>) = (Vec::new(), Vec::new());
        for (from, to) in cc_intervals(files) {
            match asked.support_for_gpu(from, &cudas) {
                Ok((by, driver)) => match fit.last_mut() {
                    Some(last) if (last.by, last.driver) == (by, driver) && is_adjacent(last.to, from) => last.to = to,
                    _ => fit.push(GpuRange { from, to, by, driver }),
                },
                Err(why) => match unfit.last_mut() {
                    Some(last) if last.why.code == why.code && is_adjacent(last.to, from) => last.to = to,
                    _ => unfit.push(Unfit { from, to, why }),
                },
            }
        }
        if fit.is_empty() {
            let why = unfit.iter().find(|row| row.why.code != Code::NoCodeForGpu).map(|row| first_line(&row.why));
            let why = why.unwrap_or("it has no code that serves one");
            return Err(format!("no GPU of the tables runs it with any driver of the tables: {why}"));
        }
        let needs_driver = asked
            .verdict_on(&Machine { driver: Some(absent_driver()), ..asked.sample_machine(None, None) })
            != Verdict::Runs;
        let library = asked.library.map(|library| OfLibrary { leaves_behind: asked.leaves_behind(&fit), ..library });
        Ok(Self { processor, fit, unfit, needs_driver, library })
    }

    /// Whether nothing is asked of driver or GPU.
    pub fn asks_nothing(&self) -> bool {
        !self.needs_driver && self.unfit.is_empty() && self.fit.iter().all(|gpus| gpus.driver.is_none())
    }

    /// Whether any GPU will do, of whatever compute capability.
    pub fn any_gpu(&self) -> bool {
        self.unfit.is_empty()
    }
}

/// Whether a compute capability lies between these, both included.
fn is_within(cc: (u8, u8), from: (u8, u8), to: Option<(u8, u8)>) -> bool {
    from <= cc && to.is_none_or(|to| cc <= to)
}

impl Unfit {
    /// Whether a GPU of this compute capability is one of these.
    pub fn contains(&self, cc: (u8, u8)) -> bool {
        is_within(cc, self.from, self.to)
    }
}

impl GpuRange {
    /// Whether a GPU of this compute capability is one of these.
    pub fn contains(&self, cc: (u8, u8)) -> bool {
        is_within(cc, self.from, self.to)
    }

    /// The first compute capability behind these; `None`: there is none.
    pub fn upper_bound(&self) -> Option<(u8, u8)> {
        self.to.and_then(next_cc)
    }
}

/// Files, and a guarded library that is to be found beside them.
pub(super) struct PlacementQuery<'a> {
    files: &'a [Components],
    library: Option<OfLibrary>,
}

impl<'a> PlacementQuery<'a> {
    pub(super) fn from_components(files: &'a [Components]) -> Result<Self, String> {
        Ok(Self { files, library: cudnn_interval(files)? })
    }

    pub(super) fn processor_name(&self) -> Result<String, String> {
        common_processor(self.files)
    }

    pub(super) fn sample_machine(&self, cc: Option<(u8, u8)>, cuda: Option<CudaVersion>) -> Machine {
        let gpus = cc.map(|cc| vec![Gpu { cc: Some(cc), visible: Some(true), ..Gpu::default() }]);
        // A GPU that is offered is one that its driver drives: `cuInit` answered.
        let driver = cuda.map(|cuda| Driver { cuda: Some(cuda), init: Some(0), ..Driver::default() });
        let libraries = self.library.map(|library| library_map(library.min)).unwrap_or_default();
        Machine { driver, gpus, libraries, ..Machine::default() }
    }

    pub(super) fn findings_on(&self, machine: &Machine) -> Vec<Finding> {
        self.files.iter().flat_map(|file| file.check_on(machine, "that machine")).collect()
    }

    fn verdict_on(&self, machine: &Machine) -> Verdict {
        Verdict::from_findings(&self.findings_on(machine))
    }

    /// How a GPU is served and its oldest driver, or why no driver will do.
    fn support_for_gpu(
        &self,
        cc: (u8, u8),
        cudas: &[CudaVersion],
    ) -> Result<(Option<Service>, Option<OldestDriver>), Finding> {
        let runs = |cuda: &CudaVersion| self.verdict_on(&self.sample_machine(Some(cc), Some(*cuda))) == Verdict::Runs;
        let newest = cudas[cudas.len() - 1];
        let unfit = cudas.iter().rposition(|cuda| !runs(cuda));
        let oldest = match unfit {
            None => None,
            Some(last) if last + 1 == cudas.len() => {
                let all = self.findings_on(&self.sample_machine(Some(cc), Some(newest)));
                let worst = Verdict::from_findings(&all);
                let why = all.into_iter().find(|finding| Verdict::from_findings([finding]) == worst);
                return Err(why.expect("a verdict rests on a finding"));
            }
            Some(last) => Some(cudas[last + 1]),
        };
        let manifests = self.files.iter().flat_map(|file| &file.manifests);
        let driver = oldest.map(|cuda| {
            // The release that the rows name for it: the judge goes by the CUDA version wherever that is known.
            let named = manifests.flat_map(|manifest| cuda_releases(&manifest.requires));
            let release = named.filter(|(of, _)| *of == cuda).map(|(_, release)| release).max();
            OldestDriver { cuda, release }
        });
        Ok((self.worst_support(cc), driver))
    }

    /// How a GPU is served by the worst of the files; `None`: there are no kernels.
    pub(super) fn worst_support(&self, cc: (u8, u8)) -> Option<Service> {
        let gpu = [host::HostGpu { cc: Some(cc), visible: true, ..host::HostGpu::default() }];
        let manifests = self.files.iter().flat_map(|file| &file.manifests);
        let all: Vec<GpuAnswer> = manifests.flat_map(|manifest| answers(manifest, &gpu, false)).collect();
        all.iter().map(|answer| answer.service).max_by_key(|service| support_rank(*service))
    }

    /// Of the library's releases, the first that a file takes and that leaves a GPU behind which runs it otherwise.
    fn leaves_behind(&self, fit: &[GpuRange]) -> Option<Version> {
        let library = self.library?;
        let newest = *known_cuda_versions().last()?;
        let mut releases: Vec<Version> =
            (0..=64).flat_map(|cuda| CUDNN.release_table().releases_for(cuda).iter().copied()).collect();
        releases.sort_unstable();
        releases.dedup();
        releases.retain(|release| (library.min..library.below).contains(release));
        let refused = |release: &Version, cc: (u8, u8)| {
            let machine = Machine { libraries: library_map(*release), ..self.sample_machine(Some(cc), Some(newest)) };
            self.verdict_on(&machine) == Verdict::Refused
        };
        releases.into_iter().find(|release| fit.iter().any(|gpus| refused(release, gpus.from)))
    }
}

/// The worse the greater.
fn support_rank(service: Service) -> u8 {
    match service {
        Service::Native => 0,
        Service::Jit => 1,
        Service::Partial => 2,
        Service::Unknown => 3,
        Service::None => 4,
    }
}

/// What rows name as the release that first supports a CUDA version.
fn cuda_releases(rows: &[Requirement]) -> impl Iterator<Item = (CudaVersion, DriverRelease)> + '_ {
    let known = |(_, release): &(CudaVersion, DriverRelease)| release.branch != 0;
    let pairs = rows.iter().flat_map(|row| match row {
        Requirement::Driver { cuda, release, .. } => [Some((*cuda, *release)), None],
        Requirement::Gpu { cuda, release, sure_from, .. } => [cuda.zip(*release), *sure_from],
        _ => [None, None],
    });
    pairs.flatten().filter(known)
}

fn absent_driver() -> Driver {
    Driver { absent: true, ..Driver::default() }
}

fn library_map(version: Version) -> BTreeMap<&'static str, Vec<HostLibrary>> {
    let library = HostLibrary { version: Some(version), taken: true, ..HostLibrary::default() };
    BTreeMap::from([(CUDNN.key, vec![library])])
}

/// The one processor that all of them are for.
fn common_processor(files: &[Components]) -> Result<String, String> {
    let mut named = files.iter().filter(|file| !file.processor.is_empty());
    let Some(first) = named.next() else { return Ok(String::new()) };
    match named.find(|file| file.processor != first.processor) {
        None => Ok(first.processor.clone()),
        Some(other) => Err(format!(
            "no machine runs both: {} is for {}, {} for {}",
            first.file, first.processor, other.file, other.processor
        )),
    }
}

/// The interval of the guarded library: the judge is asked about every release at which a row changes.
fn cudnn_interval(files: &[Components]) -> Result<Option<OfLibrary>, String> {
    let mut points = BTreeSet::new();
    for row in files.iter().flat_map(|file| &file.manifests).flat_map(|manifest| &manifest.requires) {
        if let Requirement::Library { min, below, built, .. } = row {
            points.extend([*min, *built, *below]);
        }
    }
    if points.is_empty() {
        return Ok(None);
    }
    let verdict = |libraries: BTreeMap<&'static str, Vec<HostLibrary>>| {
        let machine = Machine { libraries, ..Machine::default() };
        let all = files.iter().flat_map(|file| file.check_on(&machine, "that machine"));
        // Of driver and GPU nothing is known here, and nothing is asked.
        let mine: Vec<Finding> = all.filter(|finding| finding.code.is_of_library()).collect();
        Verdict::from_findings(&mine)
    };
    let runs: Vec<(Version, bool)> =
        points.into_iter().map(|version| (version, verdict(library_map(version)) == Verdict::Runs)).collect();
    let Some(first) = runs.iter().position(|(_, runs)| *runs) else {
        return Err(format!("no release of {} serves all of it", CUDNN.name));
    };
    let needed = verdict(BTreeMap::from([(CUDNN.key, Vec::new())])) != Verdict::Runs;
    // Whatever release is there, and none as well: it stands in the file itself.
    let Some((below, _)) = runs[first..].iter().find(|(_, runs)| !*runs) else { return Ok(None) };
    Ok(Some(OfLibrary { min: runs[first].0, below: *below, needed, leaves_behind: None }))
}

/// Every CUDA version that some driver may support, and one that is older than all.
fn known_cuda_versions() -> Vec<CudaVersion> {
    let of_branches = tables::branch_rows().iter().flat_map(|row| [Some(row.least), row.most]).flatten();
    let of_toolkits = tables::toolkit_rows().iter().map(|row| row.version);
    let all: BTreeSet<CudaVersion> = of_branches.chain(of_toolkits).chain([CudaVersion::new(1, 0)]).collect();
    all.into_iter().collect()
}

/// Intervals in each of which every compute capability comes to the same.
fn cc_intervals(files: &[Components]) -> Vec<Interval> {
    let mut starts = BTreeSet::from([(0, 0)]);
    for row in files.iter().flat_map(|file| &file.manifests).flat_map(|manifest| &manifest.requires) {
        if let Requirement::Gpu { from, to, .. } = row {
            starts.insert(*from);
            starts.extend(to.and_then(next_cc));
        }
    }
    let starts: Vec<(u8, u8)> = starts.into_iter().collect();
    let to = |at: usize| starts.get(at + 1).map(|next| previous_cc(*next));
    starts.iter().enumerate().map(|(at, from)| (*from, to(at))).collect()
}

/// The compute capability behind this one; a minor of 255 ends its major.
fn next_cc((major, minor): (u8, u8)) -> Option<(u8, u8)> {
    match (major.checked_add(1), minor.checked_add(1)) {
        (_, Some(minor)) => Some((major, minor)),
        (Some(major), None) => Some((major, 0)),
        (None, None) => None,
    }
}

fn previous_cc((major, minor): (u8, u8)) -> (u8, u8) {
    minor.checked_sub(1).map_or((major.saturating_sub(1), u8::MAX), |minor| (major, minor))
}

fn is_adjacent(to: Option<(u8, u8)>, from: (u8, u8)) -> bool {
    to.and_then(next_cc) == Some(from)
}

fn first_line(finding: &Finding) -> &str {
    finding.message.lines().next().unwrap_or_default()
}
