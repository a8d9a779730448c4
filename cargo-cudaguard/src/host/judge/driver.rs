//! Checks driver and GPU: the rows with driver requirements, and the rows with the code for each GPU.

use std::borrow::Cow;

use crate::host::facts::{CompatState, CudnnState, DriverMismatch, DriverState, Host, HostDriver, HostGpu};
use cudaguard::internal::coverage::requirements::higher_floor;
use cudaguard::internal::finding::{Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::manifest::{GpuCoverage, Linkage, Manifest, PtxFallback, Requirement};
use cudaguard::internal::policy::GpuNeed;
use cudaguard::internal::tables::{self, Floor};
use cudaguard::internal::vendor::CUDNN;
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};

/// Results of `cuInit`.
mod answer {
    pub(super) const RIGHT: u32 = 0;
    pub(super) const STUB: u32 = 34;
    pub(super) const NO_GPU: u32 = 100;
    pub(super) const MISMATCH: u32 = 803;
    pub(super) const COMPAT_UNSUPPORTED: u32 = 804;
}

/// The result for a row or a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Fits,
    /// Unknown.
    Open,
    Wrong(MessageTemplate),
}

/// Reports nothing about driver and GPU if the manifest requires nothing of them. A GPU that is too old for the
/// library is reported anyway.
pub(super) fn judge(manifest: &Manifest, host: &Host, component: &Values, findings: &mut Vec<Finding>) {
    let judge = Judge::new(manifest, host, component);
    if !judge.asks {
        // A broken driver does not affect a program without requirements.
        if matches!(judge.predicted(), None | Some(answer::RIGHT)) {
            if judge.gpus.as_ref().is_none_or(|gpus| !gpus.is_empty()) {
                judge.made_with(findings);
                findings.extend(judge.before_gpus());
            }
            judge.coverage(findings);
        }
        return;
    }
    if host.driver == DriverState::Absent {
        findings.push(judge.nothing(MessageTemplate::DriverMissing));
        return;
    }
    let all = || judge.values(None);
    match judge.predicted() {
        None if judge.gpus.as_ref().is_some_and(Vec::is_empty) && judge.host.gpus.iter().flatten().any(is_undriven) => {
            findings.extend(judge.undriven());
        }
        None | Some(answer::RIGHT) if judge.gpus.as_ref().is_some_and(Vec::is_empty) => {
            findings.push(judge.nothing(MessageTemplate::GpuMissing));
        }
        None | Some(answer::RIGHT) => judge.rows(findings),
        // A stub without a GPU is harmless: build images contain it, on hosts with a driver too.
        Some(answer::STUB) if judge.required || judge.gpus.as_ref().is_some_and(|gpus| !gpus.is_empty()) => {
            findings.push(MessageTemplate::StubDriver.to_finding(&all()));
        }
        Some(answer::STUB | answer::NO_GPU) => findings.push(judge.nothing(MessageTemplate::GpuMissing)),
        Some(answer::MISMATCH) => findings.push(MessageTemplate::DriverMismatch.to_finding(&all())),
        Some(answer::COMPAT_UNSUPPORTED) => findings.push(MessageTemplate::ForwardCompatUnsupported.to_finding(&all())),
        // These results do not concern versions: a system that is not ready, too little memory, a late fork.
        Some(other) => findings.push(MessageTemplate::DriverCannotTellAnswer.to_finding(&all().with("answer", other))),
    }
}

fn is_undriven(gpu: &HostGpu) -> bool {
    gpu.visible && gpu.undriven.is_some()
}

/// Builds the warning about two components with no common GPU.
pub(super) fn together(manifests: &[&Manifest], host: &Host) -> Option<Finding> {
    let nobody = Values::default();
    let fit: Vec<(&Manifest, Vec<usize>)> = manifests
        .iter()
        .filter(|manifest| manifest.requires.iter().any(|row| matches!(row, Requirement::Gpu { .. })))
        .map(|manifest| (*manifest, Judge::new(manifest, host, &nobody)))
        .filter(|(_, judge)| matches!(judge.predicted(), None | Some(answer::RIGHT)))
        .map(|(manifest, judge)| (manifest, judge.usable_gpus()))
        .filter(|(_, fit)| !fit.is_empty())
        .collect();
    let pairs = fit.iter().enumerate().flat_map(|(at, one)| fit[at + 1..].iter().map(move |other| (one, other)));
    let mut apart = pairs.filter(|(one, other)| !one.1.iter().any(|gpu| other.1.contains(gpu)));
    let ((one, _), (other, _)) = apart.next()?;
    let component = Values::default().with("component", &one.component).with("other", &other.component);
    Some(MessageTemplate::NoGpuForAll.to_finding(&Judge::new(one, host, &component).values(None)))
}

/// Returns true if a cuDNN release is older than each of these GPUs. The finding reports it for every user of cuDNN.
pub(crate) fn older_than(
    version: Version,
    made_with: Option<CudaVersion>,
    gpus: &[(u8, u8)],
    values: Values,
) -> Option<Finding> {
    let newest =
        CUDNN.release_table().newest_gpus(version.major)?.newest_for(version, made_with.map(|made| made.major))?;
    let later = |cc: &(u8, u8)| cc.0 > newest && !tables::is_tegra(*cc);
    if gpus.is_empty() || !gpus.iter().all(later) {
        return None;
    }
    let mut names: Vec<String> = Vec::new();
    for (major, minor) in gpus {
        let name = format!("{major}.{minor}");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let values = values.with("found", version).with("newest_major", newest).with("gpus", names.join(", "));
    Some(MessageTemplate::CudnnBeforeThisGpu.to_finding(&values))
}

struct Judge<'a> {
    manifest: &'a Manifest,
    host: &'a Host,
    component: &'a Values,
    required: bool,
    /// True if the manifest has a requirement for driver or GPU.
    asks: bool,
    driver: HostDriver,
    /// The GPUs that the process sees.
    gpus: Option<Vec<&'a HostGpu>>,
}

/// A GPU row, the GPUs of its interval by index, and their result.
struct Row<'a> {
    outcome: Outcome,
    here: Vec<usize>,
    code: Cow<'a, str>,
    cuda: Option<CudaVersion>,
    release: Option<DriverRelease>,
    /// The reason if the row itself is unknown.
    unsure: Option<Unsure>,
    /// True if a variable disables its machine code.
    forced: bool,
}

/// Why it is unknown if code loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unsure {
    /// It certainly loads from this driver on, and the driver is older.
    Before(CudaVersion, DriverRelease),
    /// A variable requires PTX, and some code has none.
    Forced,
    /// It needs this, and the tables do not contain the driver's branch.
    Branch(CudaVersion),
    /// It is unknown if the driver drives the GPU. These certainly do.
    Drives(Floor),
}

/// GPUs, by index, that the cuDNN library no longer supports.
struct LeftBehind {
    version: Version,
    /// The oldest release that the program accepts.
    min: Version,
    dropped_in: Version,
    gpus: Vec<usize>,
}

/// The result for the visible GPUs.
enum Covered<'a> {
    /// Known and reported.
    Known,
    /// This code may load, and certainly does with a newer driver.
    Unsure(Cow<'a, str>, Vec<usize>, Unsure),
    /// Unknown.
    Open,
}

impl<'a> Judge<'a> {
    fn new(manifest: &'a Manifest, host: &'a Host, component: &'a Values) -> Self {
        let required = manifest.runtime.gpu == GpuNeed::Required;
        let rows = |row: &Requirement| matches!(row, Requirement::Driver { .. } | Requirement::Gpu { .. });
        let driver = match &host.driver {
            DriverState::Found(driver) => driver.clone(),
            DriverState::Unknown | DriverState::Absent => HostDriver::default(),
        };
        let gpus = host.gpus.as_ref();
        let gpus = gpus.map(|gpus| gpus.iter().filter(|gpu| gpu.visible && gpu.undriven.is_none()).collect());
        let asks = required || manifest.requires.iter().any(rows);
        Self { manifest, host, component, required, asks, driver, gpus }
    }

    /// The result of `cuInit`, or a prediction from two releases and the note of a file.
    ///
    /// An answer of `libcuda` decides. Otherwise different releases do not fit: a newer libcuda may be a cuda-compat
    /// from before these notes, an older one never works.
    fn predicted(&self) -> Option<u32> {
        let HostDriver { user: Some(user), kernel: Some(kernel), init: None, compat, .. } = &self.driver else {
            return self.driver.init;
        };
        let names = || self.gpus.iter().flatten().filter_map(|gpu| gpu.name.as_deref());
        match compat {
            _ if user == kernel => None,
            CompatState::Branches(branches) if branches.contains(&kernel.branch) => {
                // One GPU that is not supported fails the whole process.
                names().any(is_consumer).then_some(answer::COMPAT_UNSUPPORTED)
            }
            CompatState::Branches(branches) if branches.is_empty() => None,
            CompatState::Unknown if user > kernel => None,
            CompatState::Branches(_) | CompatState::Ordinary | CompatState::Unknown => Some(answer::MISMATCH),
        }
    }

    /// Returns true if libcuda comes from a cuda-compat that lists the kernel module's branch.
    fn is_listed(&self) -> bool {
        let HostDriver { kernel, compat, .. } = &self.driver;
        matches!(compat, CompatState::Branches(list) if kernel.is_some_and(|kernel| list.contains(&kernel.branch)))
    }

    /// Returns true if it is unknown whether libcuda and the kernel module work together.
    fn pair_is_open(&self) -> bool {
        let HostDriver { user, kernel, init: None, .. } = &self.driver else { return false };
        let listed = self.is_listed();
        let named = self.gpus.as_ref().is_some_and(|gpus| gpus.iter().all(|gpu| gpu.name.is_some()));
        user.zip(*kernel).is_some_and(|(user, kernel)| user != kernel) && !(listed && named)
    }

    fn rows(&self, findings: &mut Vec<Finding>) {
        let unknown = !matches!(self.host.driver, DriverState::Found(_));
        let mut open = unknown || self.gpus.is_none() || self.pair_is_open();
        let mut by_branch = None;
        for requirement in &self.manifest.requires {
            let Requirement::Driver { cuda, release, because } = requirement else { continue };
            // 0: no release is known for it.
            let (cuda, release) = (Some(*cuda), Some(*release).filter(|release| release.branch != 0));
            match self.floor(cuda, release, MessageTemplate::DriverTooOld) {
                Outcome::Fits => {}
                Outcome::Open => match self.open_by_branch(cuda) {
                    Some(why) => by_branch = Some(self.unsure(because, &[], why)),
                    None => open = true,
                },
                Outcome::Wrong(words) => {
                    let words = if release.is_none() { MessageTemplate::DriverTooOldNoneKnown } else { words };
                    let values = self.values(None).with("code", because).with_known("needs_cuda", cuda);
                    findings.push(words.to_finding(&values.with_known("needs_release", release)));
                }
            }
        }
        open |= self.made_with(findings) == Outcome::Open;
        findings.extend(self.before_gpus());
        match (self.coverage(findings), by_branch) {
            (Covered::Known | Covered::Unsure(..), Some(finding)) if !open => findings.push(finding),
            (Covered::Unsure(code, here, why), None) if !open => findings.push(self.unsure(&code, &here, why)),
            (Covered::Known, None) if !open => {}
            (Covered::Known | Covered::Unsure(..) | Covered::Open, _) => findings.push(self.cannot_tell()),
        }
        if self.driver.user.is_some() && self.driver.kernel.is_none() && self.driver.init.is_none() {
            findings.push(MessageTemplate::KernelModuleUnknown.to_finding(&self.values(None)));
        }
    }

    /// Returns true if the program uses a cuDNN of this major that is not linked statically.
    fn uses(&self, found: Option<Version>) -> bool {
        self.manifest.requires.iter().any(|row| {
            matches!(row, Requirement::Library { built, linkage, .. }
                if *linkage != Linkage::Static && found.is_none_or(|found| found.major == built.major))
        })
    }

    /// Returns true if the cuDNN library is older than every visible GPU.
    fn before_gpus(&self) -> Option<Finding> {
        let CudnnState::Found { version: Some(version), made_with, .. } = self.host.library else { return None };
        let gpus: Vec<(u8, u8)> = self.visible().iter().map(|gpu| gpu.cc).collect::<Option<_>>()?;
        self.uses(Some(version)).then(|| older_than(version, made_with, &gpus, self.values(None)))?
    }

    /// Checks the cudart inside of the cuDNN library, which needs a driver of its major.
    fn made_with(&self, findings: &mut Vec<Finding>) -> Outcome {
        let CudnnState::Found { version, made_with: Some(made), .. } = self.host.library else {
            return Outcome::Fits;
        };
        if !self.uses(version) {
            return Outcome::Fits;
        }
        let floor = tables::cudart_floor(CudaVersion::new(made.major, 0));
        let outcome = self.floor(Some(floor.cuda), floor.release, MessageTemplate::CudnnNeedsNewerDriver);
        if let Outcome::Wrong(words) = outcome {
            let values = self.values(None).with_known("found", version).with("found_cuda", made);
            let major = self.driver.cuda.map(|cuda| cuda.major);
            findings.push(words.to_finding(&values.with("needs_cuda", floor.cuda).with_known("cuda_major", major)));
        }
        outcome
    }

    /// Finds the visible GPUs that the driver does not drive: one finding for each reason.
    fn undriven(&self) -> Vec<Finding> {
        let mut all: Vec<(DriverMismatch, Vec<String>)> = Vec::new();
        for gpu in self.host.gpus.iter().flatten().filter(|gpu| gpu.visible) {
            let (Some(why), Some((major, minor))) = (gpu.undriven, gpu.cc) else { continue };
            let cc = format!("{major}.{minor}");
            match all.iter_mut().find(|(known, _)| *known == why) {
                Some((_, ccs)) if ccs.contains(&cc) => {}
                Some((_, ccs)) => ccs.push(cc),
                None => all.push((why, vec![cc])),
            }
        }
        let described_rows = all.into_iter().map(|(why, ccs)| {
            let values = self.values(None).with("gpus", ccs.join(", "));
            match why {
                DriverMismatch::NoLonger(last) => {
                    MessageTemplate::GpuNotForDriver.to_finding(&values.with("branch", last))
                }
                DriverMismatch::NotYet(Floor { cuda, release, .. }) => MessageTemplate::GpuNotForDriverYet
                    .to_finding(&values.with("needs_cuda", cuda).with_known("needs_release", release)),
            }
        });
        described_rows.collect()
    }

    fn visible(&self) -> &[&'a HostGpu] {
        self.gpus.as_deref().unwrap_or_default()
    }

    fn gpu_rows(&self) -> Vec<Row<'a>> {
        let row = |requirement: &'a Requirement| {
            let Requirement::Gpu { from, to, .. } = requirement else { return None };
            let inside = |cc: (u8, u8)| cc >= *from && to.is_none_or(|to| cc <= to);
            let here = self.places(|gpu| gpu.cc.is_some_and(inside));
            let forced = self.host.jit.forced.then(|| forced(requirement)).flatten();
            let (row, is_forced) = (forced.as_ref().unwrap_or(requirement), forced.is_some());
            let outcome = self.served(row);
            let Requirement::Gpu { by, cuda, release, sure_from, .. } = row else { return None };
            let before = sure_from.filter(|from| match self.sure(*from) {
                Outcome::Fits => false,
                Outcome::Open => *from != tables::NO_DRIVER_KNOWN && self.open_by_branch(Some(from.0)).is_some(),
                Outcome::Wrong(_) => true,
            });
            let before = || before.map(|(cuda, release)| Unsure::Before(cuda, release));
            let unsure = match by {
                GpuCoverage::Unknown if is_forced => Some(Unsure::Forced),
                GpuCoverage::Unknown => None,
                _ => self.open_by_branch(*cuda).or_else(before),
            };
            let (cuda, release) = (*cuda, *release);
            let code = match (forced, requirement) {
                (Some(Requirement::Gpu { code, .. }), _) => Cow::Owned(code),
                (_, Requirement::Gpu { code, .. }) => Cow::Borrowed(code.as_str()),
                _ => return None,
            };
            Some(Row { outcome, here, code, cuda, release, unsure, forced: is_forced })
        };
        self.manifest.requires.iter().filter_map(row).filter(|row| !row.here.is_empty()).collect()
    }

    fn places(&self, is: impl Fn(&HostGpu) -> bool) -> Vec<usize> {
        (0..self.visible().len()).filter(|at| is(self.visible()[*at])).collect()
    }

    /// Returns the visible GPUs that the cuDNN library has dropped, and the release that dropped them.
    fn left_behind(&self) -> Option<LeftBehind> {
        let CudnnState::Found { version: Some(version), .. } = self.host.library else { return None };
        let (built, min) = self.manifest.requires.iter().find_map(|requirement| match requirement {
            Requirement::Library { built, min, linkage, .. } if *linkage != Linkage::Static => Some((*built, *min)),
            _ => None,
        })?;
        let (dropped_in, floor) = CUDNN.release_table().gpu_floor(version)?;
        let gpus = self.places(|gpu| gpu.cc.is_some_and(|cc| cc < floor));
        (!gpus.is_empty() && version.major == built.major).then_some(LeftBehind { version, min, dropped_in, gpus })
    }

    /// Returns the visible GPUs, by index, without an objection.
    fn usable_gpus(&self) -> Vec<usize> {
        let mut unfit: Vec<usize> = self.left_behind().map_or_else(Vec::new, |behind| behind.gpus);
        unfit.extend(
            self.gpu_rows().iter().filter(|row| matches!(row.outcome, Outcome::Wrong(_))).flat_map(|row| &row.here),
        );
        (0..self.visible().len()).filter(|at| !unfit.contains(at)).collect()
    }

    /// One suitable GPU is enough.
    fn coverage(&self, findings: &mut Vec<Finding>) -> Covered<'a> {
        let kernels = self.manifest.requires.iter().any(|row| matches!(row, Requirement::Gpu { .. }));
        let rows = self.gpu_rows();
        let behind = self.left_behind();
        let free = self.usable_gpus();
        let suits =
            |at: &usize| !kernels || rows.iter().any(|row| row.outcome == Outcome::Fits && row.here.contains(at));
        let doubt = |at: &usize| self.visible()[*at].sure_from;
        let fits = |at: &usize| suits(at) && doubt(at).is_none();
        let severity = if free.is_empty() { Severity::Error } else { Severity::Info };
        for row in &rows {
            let Outcome::Wrong(wrong) = row.outcome else { continue };
            findings.push(self.unserved(wrong, row).with_severity(severity));
        }
        if let Some(LeftBehind { version, min, dropped_in, gpus }) = behind {
            let values = self.values(Some(&gpus)).with("found", version).with("min", min);
            findings.push(
                MessageTemplate::CudnnTooNewForGpu
                    .to_finding(&values.with("dropped_in", dropped_in))
                    .with_severity(severity),
            );
        }
        if free.is_empty() || free.iter().any(fits) {
            return Covered::Known;
        }
        if let Some((at, from)) = free.iter().filter(|at| suits(at)).find_map(|at| Some((*at, doubt(at)?))) {
            return Covered::Unsure(Cow::Borrowed(""), vec![at], Unsure::Drives(from));
        }
        // The first possible GPU contains the reason.
        let unsure = |row: &&Row<'a>| row.outcome == Outcome::Open && free.iter().any(|at| row.here.contains(at));
        let row = rows.iter().find(unsure);
        row.and_then(|row| row.unsure.map(|why| Covered::Unsure(row.code.clone(), row.here.clone(), why)))
            .unwrap_or(Covered::Open)
    }

    /// Reports code that may not load: machine code of a newer major than the driver's, without another requirement for
    /// the newer driver; or PTX that is newer than every table.
    fn unsure(&self, code: &str, here: &[usize], why: Unsure) -> Finding {
        let (cuda, release) = match why {
            Unsure::Before(cuda, release) => (cuda, release),
            Unsure::Forced => {
                let values = self.values(Some(here)).with("built_for", self.manifest.built_for());
                return MessageTemplate::DriverCannotTellForced.to_finding(&values);
            }
            Unsure::Drives(Floor { cuda, release, .. }) => {
                let values = self.values(Some(here)).with("needs_cuda", cuda).with_known("needs_release", release);
                return MessageTemplate::DriverCannotTellDrives.to_finding(&values);
            }
            Unsure::Branch(needed) => {
                let bounds = self.driver.user.map(tables::driver_supports);
                let values = self.values(Some(here).filter(|here| !here.is_empty()));
                let values = values.with("code", code).with("needs_cuda", needed);
                let values = values.with_known("least", bounds.and_then(|bounds| bounds.least));
                return MessageTemplate::DriverCannotTellBranch
                    .to_finding(&values.with_known("most", bounds.and_then(|bounds| bounds.most)));
            }
        };
        if (cuda, release) == tables::NO_DRIVER_KNOWN {
            return MessageTemplate::DriverCannotTellNewerPtx.to_finding(&self.values(Some(here)).with("code", code));
        }
        let values = self.values(None).with("code", code).with("nvcc_major", cuda.major).with("needs_release", release);
        let major = self.driver.cuda.map(|cuda| cuda.major);
        MessageTemplate::DriverCannotTellUnsure.to_finding(&values.with_known("cuda_major", major))
    }

    fn served(&self, row: &Requirement) -> Outcome {
        let Requirement::Gpu { by, cuda, release, sure_from, beside, .. } = row else { return Outcome::Open };
        let floor = self.floor(*cuda, *release, MessageTemplate::DriverTooOldForCode);
        let sure = || sure_from.is_none_or(|from| self.sure(from) == Outcome::Fits);
        match by {
            GpuCoverage::Nothing => Outcome::Wrong(MessageTemplate::NoCodeForGpu),
            GpuCoverage::Unknown => Outcome::Open,
            GpuCoverage::Cubin | GpuCoverage::Partial | GpuCoverage::PartialPtx
                if self.host.jit.forced && *beside == PtxFallback::Nothing =>
            {
                Outcome::Wrong(MessageTemplate::JitForced)
            }
            GpuCoverage::Partial | GpuCoverage::PartialPtx if self.manifest.partial_refuse => {
                Outcome::Wrong(MessageTemplate::PartialCode)
            }
            GpuCoverage::Ptx | GpuCoverage::PartialPtx if self.host.jit.disabled => {
                Outcome::Wrong(MessageTemplate::JitDisabled)
            }
            GpuCoverage::Ptx | GpuCoverage::PartialPtx
                if floor == Outcome::Fits && self.host.jit.compiler == Some(false) =>
            {
                Outcome::Wrong(MessageTemplate::JitMissing)
            }
            GpuCoverage::Cubin | GpuCoverage::Ptx | GpuCoverage::Partial | GpuCoverage::PartialPtx
                if floor == Outcome::Fits && !sure() =>
            {
                Outcome::Open
            }
            // The requirement of the code that serves it applies whatever other containers hold.
            GpuCoverage::Cubin | GpuCoverage::Ptx | GpuCoverage::Partial | GpuCoverage::PartialPtx => floor,
        }
    }

    /// Compares with the CUDA version that libcuda supports. If it is unknown, the release decides. The kernel
    /// module's release can only accept, because cuda-compat may be newer.
    fn floor(&self, cuda: Option<CudaVersion>, release: Option<DriverRelease>, too_old: MessageTemplate) -> Outcome {
        let HostDriver { user, kernel, cuda: supports, .. } = self.driver;
        if cuda.is_none() && release.is_none() {
            return Outcome::Fits;
        }
        let bounds = cuda.zip(user).map(|(needed, user)| tables::driver_supports(user).covers(needed));
        let enough = match (cuda.zip(supports), release.zip(user), release.zip(kernel)) {
            (Some((needed, found)), ..) => found >= needed,
            // For a branch outside of the tables, its neighbours give bounds.
            (None, ..) if bounds == Some(Some(true)) => true,
            (None, Some((needed, found)), _) if bounds == Some(None) && found < needed => return Outcome::Open,
            (None, Some((needed, found)), _) => found >= needed,
            (None, None, Some((needed, found))) if found >= needed => true,
            (None, None, _) => return Outcome::Open,
        };
        if enough { Outcome::Fits } else { Outcome::Wrong(too_old) }
    }

    /// Reports missing facts: for a described machine the facts that the user did not name.
    fn cannot_tell(&self) -> Finding {
        let HostDriver { user, cuda, init, .. } = self.driver;
        let unknown = !matches!(self.host.driver, DriverState::Found(_));
        let cc = |gpu: &&HostGpu| gpu.cc.is_none();
        let missing = [
            (unknown, "the driver"),
            (!unknown && user.is_none() && cuda.is_none() && init.is_none(), "the release of libcuda"),
            (self.gpus.is_none(), "the GPUs that a program sees"),
            (self.visible().iter().any(cc), "the compute capability of a GPU"),
            (
                self.pair_is_open() && self.is_listed(),
                "the product name of a GPU, because cuda-compat does not support all",
            ),
            (self.pair_is_open() && !self.is_listed(), "whether this libcuda works on that kernel module"),
        ];
        let missing: Vec<&str> = missing.into_iter().filter(|(lacks, _)| *lacks).map(|(_, what)| what).collect();
        if !self.host.described || missing.is_empty() {
            return MessageTemplate::DriverCannotTell.to_finding(&self.values(None));
        }
        MessageTemplate::DriverCannotTellNotNamed.to_finding(&self.values(None).with("missing", missing.join(", ")))
    }

    /// Returns the reason if only the CUDA version of the driver's branch is unknown.
    fn open_by_branch(&self, cuda: Option<CudaVersion>) -> Option<Unsure> {
        let (needed, user, None) = (cuda?, self.driver.user?, self.driver.cuda) else { return None };
        tables::driver_supports(user).covers(needed).is_none().then_some(Unsure::Branch(needed))
    }

    /// Compares the driver with the one from which machine code certainly loads.
    fn sure(&self, (cuda, release): (CudaVersion, DriverRelease)) -> Outcome {
        self.floor(
            Some(cuda),
            Some(release).filter(|release| release.branch != 0),
            MessageTemplate::DriverTooOldForCode,
        )
    }

    fn nothing(&self, words: MessageTemplate) -> Finding {
        if self.required { words } else { MessageTemplate::NothingToSee }.to_finding(&self.values(None))
    }

    fn unserved(&self, wrong: MessageTemplate, row: &Row<'_>) -> Finding {
        let mut values =
            self.values(Some(&row.here)).with("code", &*row.code).with("built_for", self.manifest.built_for());
        let mut wrong = wrong;
        if wrong == MessageTemplate::NoCodeForGpu {
            (wrong, values) = self.no_code(&row.here, values);
        }
        if wrong == MessageTemplate::DriverTooOldForCode && row.forced {
            wrong = MessageTemplate::DriverTooOldForCodeForced;
        } else if wrong == MessageTemplate::DriverTooOldForCode && row.release.is_none() {
            wrong = MessageTemplate::DriverTooOldForCodeNoneKnown;
        }
        wrong.to_finding(&values.with_known("needs_cuda", row.cuda).with_known("needs_release", row.release))
    }

    /// Reports GPUs without code. The hint differs if the toolkit in use cannot compile for them.
    fn no_code(&self, here: &[usize], values: Values) -> (MessageTemplate, Values) {
        let ccs = here.iter().filter_map(|at| self.visible()[*at].cc);
        let makers = tables::compiling_toolkits(ccs);
        let built = self.manifest.toolkit.map(CudaVersion::from);
        let words = match built {
            Some(built) if makers.1.is_some_and(|last| built > last) => MessageTemplate::NoCodeForGpuNoLongerMade,
            Some(built) if makers.0.is_some_and(|first| built < first) => MessageTemplate::NoCodeForGpuNotYetMade,
            _ => MessageTemplate::NoCodeForGpu,
        };
        (
            words,
            values.with_known("built_cuda", built).with_known("made_from", makers.0).with_known("made_to", makers.1),
        )
    }

    /// Values about component and driver, and these visible GPUs, or all of them.
    fn values(&self, here: Option<&[usize]>) -> Values {
        let HostDriver { user, kernel, cuda, .. } = self.driver;
        let mut ccs: Vec<(u8, u8)> = Vec::new();
        for (at, gpu) in self.visible().iter().enumerate() {
            let Some(cc) = gpu.cc.filter(|_| here.is_none_or(|here| here.contains(&at))) else { continue };
            if !ccs.contains(&cc) {
                ccs.push(cc);
            }
        }
        let list = |name: &dyn Fn(&(u8, u8)) -> String| ccs.iter().map(name).collect::<Vec<_>>().join(", ");
        self.component
            .clone()
            .with_known("driver", user)
            .with_known("cuda", cuda)
            .with_known("kernel", kernel.filter(|_| kernel != user))
            .with_known("libcuda", self.driver.library.as_deref())
            .with("gpus", list(&|(major, minor)| format!("{major}.{minor}")))
            .with("archs", list(&|(major, minor)| format!("sm_{major}{minor}")))
    }
}

/// Evaluates a row of GPUs if the driver ignores machine code and compiles PTX. `None` if nothing changes: the row is
/// PTX anyway, or there is none.
pub(super) fn forced(row: &Requirement) -> Option<Requirement> {
    let Requirement::Gpu { from, to, by, cuda, release, sure_from, beside, .. } = row else { return None };
    let served = match by {
        GpuCoverage::Cubin | GpuCoverage::Ptx => GpuCoverage::Ptx,
        GpuCoverage::Partial | GpuCoverage::PartialPtx => GpuCoverage::PartialPtx,
        GpuCoverage::Nothing | GpuCoverage::Unknown => return None,
    };
    let isa = match (by, beside) {
        (GpuCoverage::Ptx, PtxFallback::Untold) => return None,
        (GpuCoverage::Ptx, PtxFallback::Nothing) | (_, PtxFallback::Untold) => None,
        (_, PtxFallback::Nothing) => return None,
        (_, PtxFallback::Isa((major, minor))) => Some((u32::from(*major), u32::from(*minor))),
    };
    // Rows that are PTX anyway keep their requirement.
    let was_ptx = matches!(by, GpuCoverage::Ptx | GpuCoverage::PartialPtx);
    let own = cuda.filter(|_| was_ptx).map(|cuda| Floor { cuda, release: *release, exact: true });
    let floor = isa.and_then(|isa| higher_floor(own, Some(tables::ptx_floor(isa))));
    Some(Requirement::Gpu {
        from: *from,
        to: *to,
        by: if isa.is_some() { served } else { GpuCoverage::Unknown },
        code: isa.map(|(major, minor)| format!("PTX {major}.{minor}")).unwrap_or_default(),
        cuda: floor.map(|floor| floor.cuda),
        release: floor.and_then(|floor| floor.release),
        sure_from: sure_from.filter(|_| was_ptx),
        beside: *beside,
    })
}

/// Forward compatibility excludes these (NVIDIA's "CUDA Compatibility"; the brands that cuda-compat's note omits).
fn is_consumer(name: &str) -> bool {
    ["GeForce", "TITAN", "NVS", "GRID"].iter().any(|brand| name.contains(brand))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::facts::{CudartState, Jit, LoaderVersion};
    use cudaguard::internal::finding::Code;
    use cudaguard::internal::manifest::Component;
    use cudaguard::internal::policy::Policy;
    use cudaguard::internal::toolchain::Toolchain;

    fn manifest(requires: Vec<Requirement>) -> Manifest {
        let component = Component { name: "demo".to_owned(), version: "0.1.0".to_owned() };
        let mut manifest = Manifest::from_build(component, "t", "release", &Policy::default(), &Toolchain::default());
        manifest.requires = requires;
        manifest
    }

    fn cudart_13() -> Requirement {
        Requirement::Driver {
            cuda: CudaVersion::new(13, 0),
            release: DriverRelease::new(580, 65, 6),
            because: "libcudart 13.0".to_owned(),
        }
    }

    fn sm_80() -> Vec<Requirement> {
        [
            ((0, 0), Some((7, 255)), GpuCoverage::Nothing),
            ((8, 0), Some((8, 255)), GpuCoverage::Cubin),
            ((9, 0), None, GpuCoverage::Nothing),
        ]
        .into_iter()
        .map(|(from, to, by)| Requirement::Gpu {
            from,
            to,
            by,
            code: "sm_80".to_owned(),
            cuda: None,
            release: None,
            sure_from: None,
            beside: PtxFallback::Untold,
        })
        .collect()
    }

    fn gpus(ccs: &[(u8, u8)]) -> Vec<HostGpu> {
        ccs.iter().map(|cc| HostGpu { cc: Some(*cc), visible: true, ..HostGpu::default() }).collect()
    }

    fn codes(manifest: &Manifest, driver: DriverState, gpus: Option<Vec<HostGpu>>) -> Vec<String> {
        let host = Host { driver, gpus, jit: Jit::default(), ..Host::default() };
        let findings = crate::host::judge::judge(manifest, &host);
        findings.iter().map(|finding| format!("{} {}", finding.code, finding.severity)).collect()
    }

    fn releases(user: Option<u32>, kernel: Option<u32>) -> DriverState {
        let release = |branch| DriverRelease::new(branch, 95, 5);
        DriverState::Found(HostDriver { user: user.map(release), kernel: kernel.map(release), ..HostDriver::default() })
    }

    #[test]
    fn release_alone_identifies_driver() {
        let manifest = manifest(vec![cudart_13()]);
        let one = || Some(gpus(&[(9, 0)]));
        for (user, kernel, expected) in [
            (Some(535), None, &["CG301 error", "CG506 info"][..]),
            (Some(580), None, &["CG506 info"]),
            (Some(590), Some(590), &[]),
            // cuda-compat may be newer than the kernel module, but never older than a release that works with it.
            (None, Some(535), &["CG505 info"]),
            (None, Some(590), &[]),
            (Some(590), Some(535), &["CG505 info"]),
            (Some(535), Some(590), &["CG304 error"]),
            (None, None, &["CG505 info"]),
        ] {
            assert_eq!(codes(&manifest, releases(user, kernel), one()), expected, "{user:?} on {kernel:?}");
        }
        let nobody_knows = Requirement::Driver {
            cuda: CudaVersion::new(99, 0),
            release: DriverRelease::new(0, 0, 0),
            because: String::new(),
        };
        assert_eq!(codes(&self::manifest(vec![nobody_knows]), releases(Some(590), Some(590)), one()), ["CG505 info"]);
    }

    #[test]
    fn unknown_branch_support_is_named() {
        let jetson = DriverRelease::new(540, 4, 0);
        let driver =
            DriverState::Found(HostDriver { user: Some(jetson), kernel: Some(jetson), ..HostDriver::default() });
        let mut ptx = manifest(sm_80());
        for row in &mut ptx.requires {
            if let Requirement::Gpu { by, cuda, release, .. } = row {
                (*by, *cuda) = (GpuCoverage::Ptx, Some(CudaVersion::new(12, 4)));
                *release = Some(DriverRelease::new(550, 54, 14));
            }
        }
        let mut code = manifest(sm_80());
        for row in &mut code.requires {
            if let Requirement::Gpu { by: GpuCoverage::Cubin, sure_from, .. } = row {
                *sure_from = Some((CudaVersion::new(13, 0), DriverRelease::new(580, 65, 6)));
            }
        }
        let mut both = manifest(vec![cudart_13()]);
        both.requires.extend(ptx.requires.clone());
        for (manifest, expected) in [
            (
                &manifest(vec![cudart_13()]),
                "driver 540.4.0 supports libcudart 13.0: that needs CUDA 13.0, and no table",
            ),
            (&both, "driver 540.4.0 supports libcudart 13.0: that needs CUDA 13.0, and no table"),
            (&ptx, "driver 540.4.0 supports sm_80: that needs CUDA 12.4, and no table"),
            (&code, "sm_80 loads on this driver: nvcc 13 compiled it"),
        ] {
            let host = Host { driver: driver.clone(), gpus: Some(gpus(&[(8, 7)])), ..Host::default() };
            let findings = crate::host::judge::judge(manifest, &host);
            let [finding] = findings.as_slice() else { panic!("{findings:?}") };
            assert!(finding.code == Code::DriverCannotTell && finding.message.contains(expected), "{finding:?}");
            assert_eq!(finding.message.contains("but 12.2 at least"), expected.contains("how much"), "{finding:?}");
        }
    }

    #[test]
    fn newer_major_machine_code_is_named() {
        let mut manifest = manifest(sm_80());
        for row in &mut manifest.requires {
            if let Requirement::Gpu { by: GpuCoverage::Cubin, sure_from, .. } = row {
                *sure_from = Some((CudaVersion::new(13, 0), DriverRelease::new(580, 65, 6)));
            }
        }
        let described_rows = |driver: DriverState, ccs: &[(u8, u8)], jit: Jit| {
            let host = Host { driver, gpus: Some(gpus(ccs)), jit, ..Host::default() };
            let findings = crate::host::judge::judge(&manifest, &host);
            findings
                .iter()
                .map(|finding| format!("{} {}", finding.code, finding.message))
                .collect::<Vec<_>>()
                .join("\n")
        };
        let driver = |branch| releases(Some(branch), Some(branch));
        let named = "CG505 it is unknown whether sm_80 loads on this driver: nvcc 13 compiled it, and NVIDIA guarantees that from driver \
                     580.65.06 on\n";
        assert!(described_rows(driver(535), &[(8, 0)], Jit::default()).starts_with(named));
        assert_eq!(described_rows(driver(590), &[(8, 0)], Jit::default()), "");
        // If more than that is unknown, this is not the reason.
        let forced = Jit { forced: true, ..Jit::default() };
        assert!(described_rows(driver(535), &[(8, 0)], forced).contains("CUDA_FORCE_PTX_JIT=1 leaves code"));
        assert!(described_rows(releases(None, None), &[(8, 0)], Jit::default()).contains("some facts are missing"));
    }

    #[test]
    fn supported_cuda_precedes_driver_release() {
        let driver = HostDriver {
            user: Some(DriverRelease::new(535, 0, 0)),
            cuda: Some(CudaVersion::new(13, 0)),
            init: Some(0),
            ..HostDriver::default()
        };
        assert_eq!(codes(&manifest(vec![cudart_13()]), DriverState::Found(driver), Some(gpus(&[(9, 0)]))), [""; 0]);
    }

    #[test]
    fn unknown_facts_do_not_refuse() {
        let mut manifest = manifest(vec![cudart_13()]);
        manifest.requires.extend(sm_80());
        for need in [GpuNeed::Auto, GpuNeed::Required, GpuNeed::Optional] {
            manifest.runtime.gpu = need;
            assert_eq!(codes(&manifest, DriverState::Unknown, None), ["CG505 info"]);
        }
        // A GPU with an unknown compute capability next to an unsuitable one.
        let two = Some(vec![HostGpu { visible: true, ..HostGpu::default() }, gpus(&[(7, 5)]).remove(0)]);
        assert_eq!(codes(&manifest, releases(Some(590), Some(590)), two), ["CG303 info", "CG505 info"]);
    }

    #[test]
    fn invisible_gpus_are_not_checked() {
        let manifest = manifest(sm_80());
        let mut two = gpus(&[(8, 6), (7, 5)]);
        assert_eq!(codes(&manifest, releases(Some(590), Some(590)), Some(two.clone())), ["CG303 info"]);
        two[0].visible = false;
        assert_eq!(codes(&manifest, releases(Some(590), Some(590)), Some(two.clone())), ["CG303 error"]);
        two[1].visible = false;
        assert_eq!(codes(&manifest, releases(Some(590), Some(590)), Some(two)), ["CG504 info"]);
    }

    #[test]
    fn mixed_driver_releases_are_refused() {
        let manifest = manifest(sm_80());
        let named = |name: &str| Some(vec![HostGpu { name: Some(name.to_owned()), ..gpus(&[(8, 6)]).remove(0) }]);
        let driver = |user, kernel, compat| {
            let DriverState::Found(driver) = releases(Some(user), Some(kernel)) else { unreachable!() };
            DriverState::Found(HostDriver { compat, ..driver })
        };
        let listed = || CompatState::Branches(vec![535, 550, 570]);
        for (user, kernel, compat, gpus, expected) in [
            (580, 580, CompatState::Unknown, named("NVIDIA GeForce RTX 3090"), &[][..]),
            (580, 580, CompatState::Branches(vec![535]), named("NVIDIA GeForce RTX 3090"), &[]),
            (580, 535, CompatState::Ordinary, named("NVIDIA A10"), &["CG304 error"]),
            (535, 580, CompatState::Ordinary, named("NVIDIA A10"), &["CG304 error"]),
            (580, 545, listed(), named("NVIDIA A10"), &["CG304 error"]),
            (580, 535, listed(), named("NVIDIA A10"), &[]),
            (580, 535, listed(), named("NVIDIA GeForce RTX 3090"), &["CG305 error"]),
            (580, 535, listed(), named("NVIDIA TITAN RTX"), &["CG305 error"]),
            (580, 535, listed(), Some(gpus(&[(8, 6)])), &["CG505 info"]),
            (580, 535, CompatState::Branches(Vec::new()), named("Orin"), &["CG505 info"]),
            (580, 535, CompatState::Unknown, named("NVIDIA A10"), &["CG505 info"]),
        ] {
            let name = format!("{user} on {kernel}, {compat:?}, {gpus:?}");
            assert_eq!(codes(&manifest, driver(user, kernel, compat), gpus), expected, "{name}");
        }
        // One consumer GPU next to a supported one fails the process.
        let two = [named("NVIDIA A10"), named("NVIDIA GeForce RTX 3090")].into_iter().flatten().flatten().collect();
        assert_eq!(codes(&manifest, driver(580, 535, listed()), Some(two)), ["CG305 error"]);
        // The driver's own answer comes before all of that.
        let DriverState::Found(found) = driver(580, 535, CompatState::Ordinary) else { unreachable!() };
        let found = DriverState::Found(HostDriver { init: Some(0), ..found });
        assert_eq!(codes(&manifest, found, named("NVIDIA A10")), [""; 0]);
    }

    #[test]
    fn ptx_needs_jit_compiler() {
        let mut manifest = manifest(sm_80());
        for row in &mut manifest.requires {
            if let Requirement::Gpu { by, .. } = row {
                *by = GpuCoverage::Ptx;
            }
        }
        for (compiler, expected) in [(None, &[][..]), (Some(true), &[]), (Some(false), &["CG309 error"])] {
            let jit = Jit { compiler, ..Jit::default() };
            let host =
                Host { driver: releases(Some(590), Some(590)), gpus: Some(gpus(&[(8, 6)])), jit, ..Host::default() };
            let codes: Vec<_> = crate::host::judge::judge(&manifest, &host)
                .iter()
                .map(|f| format!("{} {}", f.code, f.severity))
                .collect();
            assert_eq!(codes, expected, "{compiler:?}");
        }
    }

    #[test]
    fn partial_code_keeps_its_floor() {
        let row = |by, floor: bool| {
            let mut manifest = manifest(sm_80());
            manifest.requires.truncate(1);
            let Some(Requirement::Gpu { to, by: served, cuda, release, .. }) = manifest.requires.first_mut() else {
                unreachable!()
            };
            (*to, *served) = (None, by);
            if floor {
                (*cuda, *release) = (Some(CudaVersion::new(12, 4)), Some(DriverRelease::new(550, 54, 14)));
            }
            manifest
        };
        let (disabled, missing) =
            (Jit { disabled: true, ..Jit::default() }, Jit { compiler: Some(false), ..Jit::default() });
        for (by, floor, branch, jit, refuse, expected) in [
            (GpuCoverage::PartialPtx, true, 590, Jit::default(), false, &[][..]),
            (GpuCoverage::PartialPtx, true, 535, Jit::default(), false, &["CG302 error"]),
            (GpuCoverage::PartialPtx, true, 590, disabled, false, &["CG308 error"]),
            (GpuCoverage::PartialPtx, true, 590, missing, false, &["CG309 error"]),
            (GpuCoverage::PartialPtx, true, 535, disabled, true, &["CG311 error"]),
            // Zstandard, which an older driver cannot decompress.
            (GpuCoverage::Partial, true, 535, Jit::default(), false, &["CG302 error"]),
            (GpuCoverage::Partial, true, 590, missing, false, &[]),
            (GpuCoverage::Partial, false, 535, disabled, false, &[]),
        ] {
            let manifest = Manifest { partial_refuse: refuse, ..row(by, floor) };
            let driver = releases(Some(branch), Some(branch));
            let host = Host { driver, gpus: Some(gpus(&[(9, 0)])), jit, ..Host::default() };
            let found: Vec<_> = crate::host::judge::judge(&manifest, &host)
                .iter()
                .map(|finding| format!("{} {}", finding.code, finding.severity))
                .collect();
            assert_eq!(found, expected, "{by:?} {floor} on {branch} with {jit:?}");
        }
    }

    fn with_library(built: Version) -> Requirement {
        Requirement::Library {
            min: Version::new(built.major, built.minor, 0),
            below: Version::new(built.major + 1, 0, 0),
            built,
            soname: CUDNN.soname(built),
            linkage: Linkage::Linked,
            patch_refuse: false,
            required: false,
        }
    }

    #[test]
    fn cudnn_without_gpu_support_is_refused() {
        let judged = |found: Version, ccs: &[(u8, u8)], kernels: bool| {
            let mut manifest = manifest(vec![with_library(Version::new(9, 5, 0))]);
            if kernels {
                manifest.requires.extend(sm_80());
            }
            let guarded = CudnnState::Found {
                path: "c".into(),
                picked_by: None,
                major: 9,
                version: Some(found),
                inner: Vec::new(),
                loader: LoaderVersion::Unknown,
                made_with: None,
            };
            let driver = releases(Some(590), Some(590));
            let host = Host { library: guarded, driver, gpus: Some(gpus(ccs)), ..Host::default() };
            let findings = crate::host::judge::judge(&manifest, &host);
            findings.iter().map(|finding| format!("{} {}", finding.code, finding.severity)).collect::<Vec<_>>()
        };
        let (old, new) = (Version::new(9, 10, 2), Version::new(9, 11, 0));
        assert_eq!(judged(old, &[(6, 1)], false), [""; 0]);
        assert_eq!(judged(new, &[(6, 1)], false), ["CG313 error"]);
        assert_eq!(judged(new, &[(7, 5)], false), [""; 0]);
        assert_eq!(judged(new, &[(6, 1), (7, 5)], false), ["CG313 info"]);
        assert_eq!(judged(new, &[], false), [""; 0]);
        assert_eq!(judged(new, &[(6, 1)], true), ["CG303 error", "CG313 error"]);
        // Suitable for one by its kernels, for the other by cuDNN alone.
        assert_eq!(judged(new, &[(6, 1), (8, 6)], true), ["CG303 info", "CG313 info"]);
    }

    #[test]
    fn components_with_different_gpus_conflict() {
        let named = |name: &str, from: (u8, u8), to: (u8, u8)| {
            let mut manifest = manifest(
                [((0, 0), None, GpuCoverage::Nothing), (from, Some(to), GpuCoverage::Cubin)]
                    .into_iter()
                    .map(|(from, to, by)| Requirement::Gpu {
                        from,
                        to,
                        by,
                        code: String::new(),
                        cuda: None,
                        release: None,
                        sure_from: None,
                        beside: PtxFallback::Untold,
                    })
                    .collect(),
            );
            // Without the overlap that only this test has.
            manifest.requires.remove(0);
            for (from, to) in [((0, 0), (from.0 - 1, 255)), ((to.0 + 1, 0), (255, 255))] {
                let (by, code) = (GpuCoverage::Nothing, String::new());
                manifest.requires.push(Requirement::Gpu {
                    from,
                    to: Some(to),
                    by,
                    code,
                    cuda: None,
                    release: None,
                    sure_from: None,
                    beside: PtxFallback::Untold,
                });
            }
            name.clone_into(&mut manifest.component.name);
            manifest
        };
        let (old, new, both) =
            (named("old", (7, 0), (7, 255)), named("new", (9, 0), (9, 255)), named("both", (7, 0), (9, 255)));
        let host =
            Host { driver: releases(Some(590), Some(590)), gpus: Some(gpus(&[(7, 5), (9, 0)])), ..Host::default() };
        let described_rows = |manifests: &[&Manifest]| crate::host::judge::together(manifests.iter().copied(), &host);
        let finding = described_rows(&[&both, &old, &new]).expect("old and new have no GPU in common");
        assert_eq!((finding.code, finding.severity), (Code::NoGpuForAll, Severity::Warning));
        assert!(finding.message.starts_with("no GPU can run both old 0.1.0 and new 0.1.0"), "{}", finding.message);
        assert_eq!(finding.component, "old 0.1.0");
        assert_eq!(described_rows(&[&both, &old]), None);
        assert_eq!(described_rows(&[&new]), None);
        // A component without any suitable GPU is refused separately.
        assert_eq!(described_rows(&[&old, &named("none", (3, 0), (3, 255))]), None);
    }

    #[test]
    fn older_cudart_is_refused() {
        let mut manifest = manifest(Vec::new());
        let built = |version| Some(cudaguard::internal::manifest::RecordedCudart { linkage: Linkage::Linked, version });
        let on = |manifest: &Manifest, cudart: CudartState| {
            let host = Host { cudart, ..Host::default() };
            let findings = crate::host::judge::judge(manifest, &host);
            findings.iter().map(|finding| format!("{} {}", finding.code, finding.severity)).collect::<Vec<_>>()
        };
        let judged = |manifest: &Manifest, version: Option<Version>| {
            on(manifest, CudartState::Found { path: "libcudart.so".into(), version })
        };
        manifest.cudart = built(Some(CudaVersion::new(12, 6)));
        assert_eq!(judged(&manifest, Some(Version::new(12, 4, 127))), ["CG314 warning"]);
        assert_eq!(judged(&manifest, Some(Version::new(12, 6, 0))), [""; 0]);
        assert_eq!(judged(&manifest, Some(Version::new(12, 9, 1))), [""; 0]);
        assert_eq!(judged(&manifest, None), ["CG507 info"]);
        assert_eq!(on(&manifest, CudartState::Unknown), [""; 0]);
        manifest.cudart = built(None);
        assert_eq!(judged(&manifest, Some(Version::new(12, 4, 127))), [""; 0]);
        assert_eq!(judged(&manifest, None), [""; 0]);
    }

    #[test]
    fn component_without_requirements_has_no_findings() {
        let mut manifest = manifest(Vec::new());
        assert_eq!(codes(&manifest, DriverState::Absent, None), [""; 0]);
        manifest.runtime.gpu = GpuNeed::Required;
        assert_eq!(codes(&manifest, DriverState::Absent, None), ["CG307 error"]);
        assert_eq!(codes(&manifest, releases(Some(590), None), Some(gpus(&[]))), ["CG310 error"]);
    }
}
