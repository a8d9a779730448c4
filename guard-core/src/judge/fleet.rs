//! (policy, what a build makes) → findings: whether the machines of the policy's fleets can run it.
//!
//! Before linking only what is declared is known, so [`declared`] speaks where nobody will look at the linked file:
//! under plain cargo, and for `check`. Where the file is seen, [`super::linked`] asks the same questions of it.

use crate::arch::{Arch, ArchRequest, Target};
use crate::finding::{Code, Finding, Severity};
use crate::manifest::Linkage;
use crate::policy::Policy;
use crate::serves::Serves;
use crate::tables::{self, Answer, Cc, Floor, Supports};
use crate::toolchain::Toolchain;
use crate::vendor::GUARDED;
use crate::version::{CudaVersion, Version};

use super::wording::{facts, in_file, names};

/// Whether what is declared serves the fleets; what cannot be told is one info. `[cudnn] fleet` is not among it: that the
/// headers tell, in every build.
pub fn declared(policy: &Policy, toolchain: &Toolchain) -> Vec<Finding> {
    let (mut findings, mut open) = (Vec::new(), Vec::new());
    archs(policy, toolchain, &mut findings, &mut open);
    driver(policy, toolchain, &mut findings, &mut open);
    if policy.library_fleet.is_some()
        && policy.library_linkage != Some(Linkage::None)
        && used_library(toolchain).is_none()
    {
        open.push(("[cudnn] fleet", "no cuDNN is in use whose version can be told".to_owned()));
    }
    if !open.is_empty() {
        findings.push(Finding::new(
            Code::FleetCannotTell,
            "fleet",
            facts("whether this build serves the whole fleet cannot be told here.", open),
            "`cargo cudaguard build` reads the linked file, and holds that against the fleet",
        ));
    }
    findings
}

/// GPUs, each with the word of the policy that names it.
pub(super) type Named<'a> = Vec<(&'a str, Cc)>;

/// How many names a line holds: what lies beyond is counted.
const NAMED: usize = 6;

/// Each name once, in a line.
pub(super) fn listed(mut all: Vec<String>) -> String {
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|name| seen.insert(name.clone()));
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    let text = all.join(", ");
    if more == 0 { text } else { format!("{text} and {more} more") }
}

/// GPUs by the words of the policy, `T4 (7.5)`.
pub(super) fn gpus(gpus: &[(&str, Cc)]) -> String {
    let one = |(name, (major, minor)): &(&str, Cc)| {
        let cc = format!("{major}.{minor}");
        if *name == cc { cc } else { format!("{name} ({cc})") }
    };
    listed(gpus.iter().map(one).collect())
}

/// The machine code that serves these GPUs: `sm_75`.
pub(super) fn cures(gpus: &[(&str, Cc)]) -> String {
    let mut ccs: Vec<Cc> = gpus.iter().map(|(_, cc)| *cc).collect();
    ccs.sort_unstable();
    ccs.dedup();
    listed(ccs.iter().map(|(major, minor)| format!("sm_{major}{minor}")).collect())
}

/// What to do about GPUs that nothing serves: an arch that the toolkit in use has dropped, or does not know yet, is not to
/// be had from it.
/// `to` says where archs are added; `None`: the flags that nvcc is given.
pub(super) fn cure(unserved: &[(&str, Cc)], toolkit: Option<Version>, text: &str, to: Option<&str>) -> String {
    let not_made = unserved.iter().find_map(|(_, cc)| {
        let arch = Arch::of_cc(*cc)?;
        let answer = tables::can_make(toolkit?, Target::Cubin(arch));
        (answer != Answer::Made).then_some((arch, answer))
    });
    match not_made {
        Some((arch, Answer::Dropped { last: Some(last) })) => format!(
            "the toolkit in use no longer makes sm_{arch}: build with CUDA {last} or older, or take {text} out of [gpu] fleet"
        ),
        Some((arch, Answer::Dropped { last: None })) => {
            format!("the toolkit in use no longer makes sm_{arch}: take {text} out of [gpu] fleet")
        }
        Some((arch, Answer::TooNew { first: Some(first) })) => format!(
            "the toolkit in use does not make sm_{arch} yet: build with CUDA {first} or newer, or let nvcc add PTX of its \
             newest arch, or take {text} out of [gpu] fleet"
        ),
        _ => {
            let add = match to {
                Some(source) => format!("add {} to {source}", cures(unserved)),
                None => format!("let nvcc make {}", cures(unserved)),
            };
            format!("{add}, or take {text} out of [gpu] fleet")
        }
    }
}

/// `[gpu] fleet` in a line of facts.
pub(super) fn asked(policy: &Policy, named: &[(&str, Cc)]) -> (&'static str, String) {
    ("fleet", format!("{} ([gpu] fleet{})", gpus(named), in_file(policy)))
}

/// What cannot be told: of which key, and why.
type Open = Vec<(&'static str, String)>;

fn archs(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>, open: &mut Open) {
    let (named, archs) = (policy.fleet_ccs(), &toolchain.archs);
    if named.is_empty() {
        return;
    }
    let strongest = archs.declared.iter().find(|declared| !declared.adds);
    if archs.in_force.is_empty() {
        // One that cannot be read, or `native` without a GPU, is told as such.
        if strongest.is_none() {
            open.push(("[gpu] fleet", "no source declares the archs".to_owned()));
        }
        return;
    }
    if strongest.is_some_and(|declared| declared.asks(ArchRequest::Native)) {
        return;
    }
    let by_any = |serves: Serves| {
        let archs = &archs.in_force;
        move |cc: Cc| archs.iter().any(|target| target.serves(cc) == serves)
    };
    let (served, unknown) = (by_any(Serves::Yes), by_any(Serves::CannotTell));
    let (unclear, unserved): (Named<'_>, Named<'_>) =
        named.iter().copied().filter(|(_, cc)| !served(*cc)).partition(|(_, cc)| unknown(*cc));
    let list = names(&archs.in_force);
    if !unclear.is_empty() {
        open.push(("[gpu] fleet", format!("no document says whether {list} serves {}", gpus(&unclear))));
    }
    // One crate leaves PTX beside the machine code for it, another does not: the graph knows which crates there are.
    let beside = |cc: Cc| {
        let by_crates = strongest.is_some_and(|declared| declared.source == "CUDA_COMPUTE_CAP");
        by_crates && archs.in_force.iter().any(|target| Target::Ptx(target.arch()).serves(cc) == Serves::Yes)
    };
    let (by_crates, unserved): (Named<'_>, Named<'_>) = unserved.into_iter().partition(|(_, cc)| beside(*cc));
    if !by_crates.is_empty() {
        let text = gpus(&by_crates);
        open.push((
            "[gpu] fleet",
            format!("whether PTX stands beside {list} for {text} is up to the crate that compiles"),
        ));
    }
    if unserved.is_empty() {
        return;
    }
    let text = gpus(&unserved);
    let source = strongest.or(archs.declared.first()).map(|declared| declared.source.as_str()).unwrap_or_default();
    let lists = ["[gpu] archs", "CUDAARCHS", "CMAKE_CUDA_ARCHITECTURES"];
    let to = lists.contains(&source).then_some(source);
    let toolkit = toolchain.toolkit_version();
    let finding = Finding::new(
        Code::FleetUndeclared,
        "fleet",
        facts(
            &format!("this build will not run on {text}: no declared architecture serves it."),
            [("declared", format!("{list} ({source})")), asked(policy, &named)],
        ),
        cure(&unserved, toolkit, &text, to),
    );
    findings.push(unless_declared(finding, toolchain));
}

/// The finding, a warning where only a variable names archs: it is there for whatever is built, and whether this package has
/// kernels of its own the linked file tells. PyTorch's list is there for PyTorch's extensions alone: an info.
fn unless_declared(finding: Finding, toolchain: &Toolchain) -> Finding {
    let strongest = toolchain.archs.declared.iter().find(|declared| !declared.adds);
    match strongest {
        Some(declared) if declared.is_of_project() => finding,
        Some(declared) if declared.is_of_torch() => finding.weighing(Severity::Info),
        _ => finding.weighing(Severity::Warning),
    }
}

/// The oldest driver of the fleet.
#[derive(Clone, Copy, Debug)]
pub(super) struct OldestDriver<'a> {
    /// As the policy writes it: `535`.
    text: &'a str,
    supports: Supports,
}

impl<'a> OldestDriver<'a> {
    pub(super) fn of(policy: &'a Policy) -> Option<Self> {
        let text = policy.driver_fleet.as_deref()?;
        Some(Self { text, supports: tables::driver_supports(policy.driver_fleet_release()?) })
    }

    /// Whether it serves a floor; `None`: cannot tell. The CUDA version decides: every release of a branch supports the
    /// same one.
    pub(super) fn serves(self, floor: Floor) -> Option<bool> {
        self.supports.covers(floor.cuda).filter(|serves| floor.exact || !serves)
    }

    fn line(self, policy: &Policy) -> (&'static str, String) {
        let supports = match (self.supports.exactly(), self.supports.most) {
            (Some(cuda), _) => format!(", which supports CUDA {cuda}"),
            (None, Some(most)) => format!(", which supports CUDA {most} at most"),
            (None, None) => String::new(),
        };
        ("fleet", format!("{}{supports} ([driver] fleet{})", self.text, in_file(policy)))
    }
}

/// The driver that a floor asks for, in words: `driver 580.65.06 or newer (CUDA 13.0)`.
fn needs(floor: Floor) -> String {
    match floor.release {
        Some(release) => format!("driver {} or newer, which supports CUDA {}", release, floor.cuda),
        None => format!("a driver that supports CUDA {}", floor.cuda),
    }
}

/// To which branch `[driver] fleet` would have to be raised.
fn raised(floor: Floor) -> String {
    let branch = tables::branches().iter().find(|row| row.exact && row.least >= floor.cuda).map(|row| row.branch);
    match branch.or(floor.release.map(|release| release.branch)) {
        Some(branch) => format!("raise [driver] fleet to \"{branch}\" once those machines are updated"),
        None => "raise [driver] fleet once those machines are updated".to_owned(),
    }
}

/// A program with this cudart, on the oldest driver of the fleet. `built` names it, and is a line of facts; `who` is the
/// subject as the sentence calls it.
pub(super) fn cudart(
    policy: &Policy,
    fleet: OldestDriver<'_>,
    cudart: CudaVersion,
    (subject, who): (&str, &str),
    built: (&str, String),
) -> Option<Finding> {
    let floor = tables::cudart_floor(cudart);
    (fleet.serves(floor) == Some(false)).then(|| {
        let older = fleet.supports.most.filter(|most| most.major < cudart.major);
        let instead = older.map(|most| format!("build with CUDA {}, or ", most.major)).unwrap_or_default();
        Finding::new(
            Code::DriverFleetOlder,
            subject,
            facts(
                &format!(
                    "{who} will not run on driver {}, the oldest of the fleet: CUDA {} needs a newer one.",
                    fleet.text, cudart.major
                ),
                [built, ("needs", needs(floor)), fleet.line(policy)],
            ),
            format!(
                "{instead}{}: on older drivers every call answers 35, cudaErrorInsufficientDriver; without cudart, or with \
                 cuda-compat on those machines, allow it with a reason",
                raised(floor)
            ),
        )
    })
}

/// Code that the oldest driver of the fleet cannot take, for these GPUs. `what` is that code in words: `PTX of CUDA
/// 12.9`.
pub(super) fn code(
    policy: &Policy,
    fleet: OldestDriver<'_>,
    floor: Floor,
    gpus_of_it: &[(&str, Cc)],
    subject: &str,
    (what, from, instead): (&str, (&str, String), &str),
) -> Finding {
    Finding::new(
        Code::DriverFleetCode,
        subject,
        facts(
            &format!(
                "driver {}, the oldest of the fleet, cannot {what} that {subject} has for {}.",
                fleet.text,
                gpus(gpus_of_it)
            ),
            [from, ("needs", needs(floor)), fleet.line(policy), ("GPUs", asked(policy, &policy.fleet_ccs()).1)],
        ),
        format!("{instead}, or {}", raised(floor)),
    )
}

fn driver(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>, open: &mut Open) {
    let Some(fleet) = OldestDriver::of(policy) else { return };
    let Some(toolkit) = toolchain.toolkit() else {
        open.push(("[driver] fleet", "no CUDA toolkit is in use whose release can be told".to_owned()));
        return;
    };
    let release = CudaVersion::from(toolkit.value);
    let line = ("toolkit", format!("{} ({})", toolkit.value, toolkit.source));
    let subject = "this build";
    match fleet.serves(tables::cudart_floor(release)) {
        Some(true) => {}
        // Only the linked file tells whether cudart is in it: a program of the driver API has no such floor.
        Some(false) => findings.extend(
            cudart(policy, fleet, release, (subject, "this build, if cudart is in it,"), line.clone())
                .map(|finding| finding.weighing(Severity::Warning)),
        ),
        None => open.push(("[driver] fleet", format!("what driver {} supports is in no document", fleet.text))),
    }
    let serves = |target: &&Target, cc: Cc| target.serves(cc) == Serves::Yes;
    let by_ptx: Named<'_> = policy
        .fleet_ccs()
        .into_iter()
        .filter(|(_, cc)| {
            let mut serving = toolchain.archs.in_force.iter().filter(|target| serves(target, *cc)).peekable();
            serving.peek().is_some() && serving.all(|target| matches!(target, Target::Ptx(_)))
        })
        .collect();
    let floor = tables::ptx_isa(toolkit.value).map_or_else(|| tables::toolkit_floor(toolkit.value), tables::ptx_floor);
    if by_ptx.is_empty() || fleet.serves(floor) != Some(false) {
        return;
    }
    let what = format!("compile the PTX of CUDA {release}");
    let instead = machine_code(&by_ptx, Some(toolkit.value));
    let finding = code(policy, fleet, floor, &by_ptx, subject, (&what, line, &instead));
    findings.push(unless_declared(finding, toolchain));
}

/// What to do where PTX does not serve: machine code, from this toolkit or a newer one.
pub(super) fn machine_code(gpus: &[(&str, Cc)], toolkit: Option<Version>) -> String {
    let made = |cc: Cc| {
        let arch = Arch::of_cc(cc).zip(toolkit);
        arch.is_some_and(|(arch, toolkit)| tables::can_make(toolkit, Target::Cubin(arch)) == Answer::Made)
    };
    let from = if gpus.iter().all(|(_, cc)| made(*cc)) { "" } else { ", by a toolkit that makes it" };
    format!("add machine code of {}{from}", cures(gpus))
}

/// The cuDNN in use: its version, where that stands, and the CUDA major that it is built for.
fn used_library(toolchain: &Toolchain) -> Option<(Version, String, Option<u32>)> {
    let library = toolchain.library_used();
    let by_library = library.and_then(|library| Some((library.version.as_ref()?.value, &library.path)));
    let by_headers = toolchain.library_headers_used().and_then(|headers| Some((headers.version?, &headers.path)));
    // The program is held to its headers when it starts.
    let (version, path) = by_headers.or(by_library)?;
    let built = library.and_then(|library| library.cuda_major.as_ref()).map(|major| major.value);
    Some((version, path.display().to_string(), built.or(toolchain.toolkit_version().map(|toolkit| toolkit.major))))
}

/// What ends the hint where a variable alone makes a package one of cuDNN's.
const WITHOUT_IT: &str = "; for a package that uses no cuDNN: [cudnn] linkage = \"none\"";

/// cuDNN against `[cudnn] fleet` and `[gpu] fleet`.
pub(super) fn guarded(policy: &Policy, toolchain: &Toolchain) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some((version, path, cuda)) = used_library(toolchain) else { return findings };
    let line = || ("cuDNN", format!("{version} in {path}"));
    // One that is linked in needs none on the machine.
    let fleet = policy.library_fleet.as_deref().filter(|_| policy.library_linkage != Some(Linkage::Static));
    if let Some((text, oldest)) = fleet.zip(policy.library_fleet_version()) {
        let patch_named = text.split('.').nth(2).is_some();
        let (built, older) = ((version.major, version.minor), (oldest.major, oldest.minor));
        let older_patch = built == older && policy.library_patch_refuse && patch_named && oldest.patch < version.patch;
        if oldest.major != version.major || older < built || older_patch {
            let (major, minor) = built;
            findings.push(Finding::new(
                Code::CudnnFleetOlder,
                "cuDNN",
                facts(
                    &format!("this build will not start with cuDNN {text}, the oldest of the fleet."),
                    [line(), ("fleet", format!("{text} ([cudnn] fleet{})", in_file(policy)))],
                ),
                format!(
                    "build with cuDNN {}.{} or older: set CUDNN_PATH to its root; or raise [cudnn] fleet to \"{major}.{minor}\" \
                     once those machines are updated",
                    oldest.major, oldest.minor
                ),
            ));
        }
    }
    let Some(cuda) = cuda else { return findings };
    let named = policy.fleet_ccs();
    let discrete = || named.iter().copied().filter(|(_, cc)| !tables::is_tegra(*cc));
    let oldest = GUARDED.table().min_cc(version, cuda);
    let left: Named<'_> = discrete().filter(|(_, cc)| oldest.is_some_and(|oldest| *cc < oldest)).collect();
    if let Some(newest_of) = left.first().map(|_| &left) {
        let text = gpus(newest_of);
        let serving = GUARDED.table().releases(cuda).iter().rev().find(|release| {
            let least = GUARDED.table().min_cc(**release, cuda);
            least.is_some_and(|least| newest_of.iter().all(|(_, cc)| *cc >= least))
        });
        let (major, minor) = oldest.unwrap_or_default();
        findings.push(Finding::new(
            Code::CudnnLeftGpu,
            "cuDNN",
            facts(
                &format!("cuDNN {version} no longer serves {text}."),
                [
                    line(),
                    ("serves", format!("compute capability {major}.{minor} and newer, in its build for CUDA {cuda}")),
                    asked(policy, &named),
                ],
            ),
            match serving {
                Some(last) => format!(
                    "build with cuDNN {last} or older, the last that serves it, or take {text} out of [gpu] fleet{WITHOUT_IT}"
                ),
                None => format!(
                    "no cuDNN for CUDA {cuda} serves it: build for an older CUDA, or take {text} out of [gpu] \
                     fleet{WITHOUT_IT}"
                ),
            },
        ));
    }
    // From cuDNN 9 for CUDA 12 on newer GPUs are served by what it was built with (hardware forward compatibility).
    if version.major >= 9 && cuda >= 12 {
        return findings;
    }
    let newest = GUARDED.table().newest_cc(version, cuda);
    let newer: Named<'_> = discrete().filter(|(_, cc)| newest.is_some_and(|newest| *cc > newest)).collect();
    if let Some((major, minor)) = newest.filter(|_| !newer.is_empty()) {
        findings.push(Finding::new(
            Code::CudnnBeforeGpu,
            "cuDNN",
            facts(
                &format!("cuDNN {version} is older than {}.", gpus(&newer)),
                [
                    line(),
                    ("has code", format!("up to compute capability {major}.{minor}, in its build for CUDA {cuda}")),
                    asked(policy, &named),
                ],
            ),
            "build with a cuDNN that knows that GPU; whether this one works there is in no document",
        ));
    }
    findings
}

#[cfg(test)]
mod tests;
