//! (policy, what a build makes) → findings: whether the machines of the policy's fleets can run it.
//!
//! Before linking only what is declared is known, so [`declared`] speaks where nobody will look at the linked file:
//! under plain cargo, and for `check`. Where the file is seen, [`super::linked`] asks the same questions of it.

use crate::arch::{Arch, ArchRequest, Target};
use crate::finding::{Finding, MessageFragment, MessageTemplate, Severity, Values};
use crate::manifest::Linkage;
use crate::policy::Policy;
use crate::serves::Compatibility;
use crate::tables::{self, Answer, Cc, Floor, Supports};
#[cfg(feature = "command")]
use crate::toolchain::LibraryFile;
use crate::toolchain::Toolchain;
use crate::vendor::{CUDNN, serves_later};
use crate::version::{CudaVersion, Version};

use super::wording::{describe, names, of_policy};

/// Whether what is declared serves the fleets; what cannot be told is one info. The guarded library's fleet is not among it:
/// that the headers tell, in every build.
pub fn declared(policy: &Policy, toolchain: &Toolchain) -> Vec<Finding> {
    let (mut findings, mut open) = (Vec::new(), Vec::new());
    archs(policy, toolchain, &mut findings, &mut open);
    driver(policy, toolchain, &mut findings, &mut open);
    if policy.library_fleet.is_some()
        && policy.library_linkage != Some(Linkage::None)
        && used_library(policy, toolchain).is_none()
    {
        open.push(MessageFragment::OpenCudnn.of(&Values::default()));
    }
    if !open.is_empty() {
        findings.push(MessageTemplate::FleetCannotTell.finding(&Values::default().with("open", open.join("\n"))));
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
pub(super) fn cure(unserved: &[(&str, Cc)], toolkit: Option<Version>, to: Option<&str>) -> String {
    let not_made = unserved.iter().find_map(|(_, cc)| {
        let arch = Arch::of_cc(*cc)?;
        let answer = tables::can_make(toolkit?, Target::Cubin(arch));
        (answer != Answer::Made).then_some((arch, answer))
    });
    let values = Values::default().with("archs", cures(unserved)).known("variable", to);
    let values = values.known("targets", not_made.as_ref().map(|(arch, _)| format!("sm_{arch}")));
    match not_made {
        Some((_, Answer::Dropped { last: Some(last) })) => {
            MessageFragment::BuildWithOlder.of(&values.with("last", last))
        }
        Some((_, Answer::Dropped { last: None })) => MessageFragment::BuildWithAnOlder.of(&values),
        Some((_, Answer::TooNew { first: Some(first) })) => {
            MessageFragment::BuildWithNewer.of(&values.with("first", first))
        }
        _ if to.is_some() => MessageFragment::AddToList.of(&values),
        _ => MessageFragment::AddToFlags.of(&values),
    }
}

/// Values of a finding that speaks of `[gpu] fleet`.
pub(super) fn of_fleet(policy: &Policy, named: &[(&str, Cc)]) -> Values {
    of_policy(policy).with("fleet", gpus(named))
}

/// What cannot be told, and why.
type Open = Vec<String>;

fn archs(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>, open: &mut Open) {
    let (named, archs) = (policy.fleet_ccs(), &toolchain.archs);
    if named.is_empty() {
        return;
    }
    let strongest = archs.declared.iter().find(|declared| !declared.adds);
    if archs.in_force.is_empty() {
        // One that cannot be read, or `native` without a GPU, is told as such.
        if strongest.is_none() {
            open.push(MessageFragment::OpenArchs.of(&Values::default()));
        }
        return;
    }
    if strongest.is_some_and(|declared| declared.asks(ArchRequest::Native)) {
        return;
    }
    let by_any = |serves: Compatibility| {
        let archs = &archs.in_force;
        move |cc: Cc| archs.iter().any(|target| target.serves(cc) == serves)
    };
    let (served, unknown) = (by_any(Compatibility::Yes), by_any(Compatibility::CannotTell));
    let (unclear, unserved): (Named<'_>, Named<'_>) =
        named.iter().copied().filter(|(_, cc)| !served(*cc)).partition(|(_, cc)| unknown(*cc));
    let list = names(&archs.in_force);
    let about = |named: &[(&str, Cc)]| Values::default().with("targets", &list).with("gpus", gpus(named));
    if !unclear.is_empty() {
        open.push(MessageFragment::OpenGpus.of(&about(&unclear)));
    }
    // One crate leaves PTX beside the machine code for it, another does not: the graph knows which crates there are.
    let beside = |cc: Cc| {
        let by_crates = strongest.is_some_and(|declared| declared.source == "CUDA_COMPUTE_CAP");
        by_crates && archs.in_force.iter().any(|target| Target::Ptx(target.arch()).serves(cc) == Compatibility::Yes)
    };
    let (by_crates, unserved): (Named<'_>, Named<'_>) = unserved.into_iter().partition(|(_, cc)| beside(*cc));
    if !by_crates.is_empty() {
        open.push(MessageFragment::OpenPtx.of(&about(&by_crates)));
    }
    if unserved.is_empty() {
        return;
    }
    let source = strongest.or(archs.declared.first()).map(|declared| declared.source.as_str()).unwrap_or_default();
    let lists = ["[gpu] archs", "CUDAARCHS", "CMAKE_CUDA_ARCHITECTURES"];
    let to = lists.contains(&source).then_some(source);
    let values = of_fleet(policy, &named).with("gpus", gpus(&unserved)).with("declared", list).with("source", source);
    let finding = MessageTemplate::FleetUndeclared
        .finding(&values.with("cure", cure(&unserved, toolchain.toolkit_version(), to)));
    findings.push(unless_declared(finding, toolchain));
}

/// The finding, a warning where only a variable names archs: it is there for whatever is built, and whether this package has
/// kernels of its own the linked file tells. PyTorch's list is there for PyTorch's extensions alone: an info.
fn unless_declared(finding: Finding, toolchain: &Toolchain) -> Finding {
    let strongest = toolchain.archs.declared.iter().find(|declared| !declared.adds);
    match strongest {
        Some(declared) if declared.is_of_project() => finding,
        Some(declared) if declared.is_of_torch() => finding.with_severity(Severity::Info),
        _ => finding.with_severity(Severity::Warning),
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

    /// The same of code for this GPU: machines that have it have a driver that drives it, however old others are.
    pub(super) fn serves_on(self, floor: Floor, cc: Cc) -> Option<bool> {
        let first = tables::first_of_generation(cc);
        if first.is_some_and(|first| first.cuda >= floor.cuda) {
            return Some(true).filter(|_| floor.exact);
        }
        self.serves(floor)
    }

    /// Values of a finding about what it cannot serve.
    fn against(self, policy: &Policy, floor: Floor) -> Values {
        let values = of_fleet(policy, &policy.fleet_ccs()).with("driver_fleet", self.text);
        let values = match self.supports.exactly() {
            Some(cuda) => values.with("cuda", cuda),
            None => values.known("most", self.supports.most),
        };
        // To which branch `[driver] fleet` would have to be raised.
        let branch = tables::branches().iter().find(|row| row.exact && row.least >= floor.cuda).map(|row| row.branch);
        let branch = branch.or(floor.release.map(|release| release.branch));
        values.with("needs_cuda", floor.cuda).known("needs_release", floor.release).known("branch", branch)
    }
}

/// A program with this cudart, on the oldest driver of the fleet. `built` has what names it.
pub(super) fn cudart(
    policy: &Policy,
    fleet: OldestDriver<'_>,
    cudart: CudaVersion,
    words: MessageTemplate,
    (name, built): (&'static str, &str),
) -> Option<Finding> {
    let floor = tables::cudart_floor(cudart);
    (fleet.serves(floor) == Some(false)).then(|| {
        let older = fleet.supports.most.filter(|most| most.major < cudart.major);
        let values = fleet.against(policy, floor).known("instead", older.map(|most| most.major));
        words.finding(&values.with("cuda_major", cudart.major).with(name, built).with("found_cuda", cudart))
    })
}

/// A program that is linked to this library, which brings a cudart of its own, on the oldest driver of the fleet.
#[cfg(feature = "command")]
pub(super) fn library(policy: &Policy, fleet: OldestDriver<'_>, library: &LibraryFile, file: &str) -> Option<Finding> {
    let made_for = library.cuda_major.as_ref()?;
    let floor = tables::cudart_floor(CudaVersion::new(made_for.value, 0));
    (fleet.serves(floor) == Some(false)).then(|| {
        let older = fleet.supports.most.filter(|most| most.major < made_for.value);
        let values = fleet.against(policy, floor).known("instead", older.map(|most| most.major));
        let values = values.with("file", file).with("cuda_major", made_for.value).with("told_by", &made_for.source);
        let version = library.version.as_ref().map_or(library.major.to_string(), |version| version.value.to_string());
        let values = values.with("found", version).with("path", library.path.display());
        MessageTemplate::DriverFleetOlderCudnn.finding(&values)
    })
}

/// Code that the oldest driver of the fleet cannot take, for these GPUs.
pub(super) fn code(
    policy: &Policy,
    fleet: OldestDriver<'_>,
    floor: Floor,
    gpus_of_it: &[(&str, Cc)],
    toolkit: Option<Version>,
) -> Values {
    let values = fleet.against(policy, floor).with("gpus", gpus(gpus_of_it));
    values.with("cure", machine_code(gpus_of_it, toolkit))
}

fn driver(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>, open: &mut Open) {
    let Some(fleet) = OldestDriver::of(policy) else { return };
    let Some(toolkit) = toolchain.toolkit() else {
        open.push(MessageFragment::OpenToolkit.of(&Values::default()));
        return;
    };
    let release = CudaVersion::from(toolkit.value);
    let line = describe(&toolkit);
    match fleet.serves(tables::cudart_floor(release)) {
        Some(true) => {}
        // Only the linked file tells whether cudart is in it: a program of the driver API has no such floor.
        Some(false) => findings.extend(
            cudart(policy, fleet, release, MessageTemplate::DriverFleetOlderDeclared, ("toolkit", &line))
                .map(|finding| finding.with_severity(Severity::Warning)),
        ),
        None => open.push(MessageFragment::OpenDriver.of(&Values::default().with("driver_fleet", fleet.text))),
    }
    let serves = |target: &&Target, cc: Cc| target.serves(cc) == Compatibility::Yes;
    let floor = tables::ptx_isa(toolkit.value).map_or_else(|| tables::toolkit_floor(toolkit.value), tables::ptx_floor);
    let by_ptx: Named<'_> = policy
        .fleet_ccs()
        .into_iter()
        .filter(|(_, cc)| fleet.serves_on(floor, *cc) == Some(false))
        .filter(|(_, cc)| {
            let mut serving = toolchain.archs.in_force.iter().filter(|target| serves(target, *cc)).peekable();
            serving.peek().is_some() && serving.all(|target| matches!(target, Target::Ptx(_)))
        })
        .collect();
    if by_ptx.is_empty() {
        return;
    }
    let values = code(policy, fleet, floor, &by_ptx, Some(toolkit.value)).with("toolkit", line);
    let finding = MessageTemplate::DriverFleetCodeDeclared.finding(&values.with("toolkit_cuda", release));
    findings.push(unless_declared(finding, toolchain));
}

/// What to do where PTX does not serve: machine code, from this toolkit or a newer one.
fn machine_code(gpus: &[(&str, Cc)], toolkit: Option<Version>) -> String {
    let made = |cc: Cc| {
        let arch = Arch::of_cc(cc).zip(toolkit);
        arch.is_some_and(|(arch, toolkit)| tables::can_make(toolkit, Target::Cubin(arch)) == Answer::Made)
    };
    let made = gpus.iter().all(|(_, cc)| made(*cc));
    let phrase = if made { MessageFragment::AddMachineCode } else { MessageFragment::AddMachineCodeElsewhere };
    phrase.of(&Values::default().with("archs", cures(gpus)))
}

/// The guarded library in use: its version, where that stands, and the CUDA major that it is built for.
fn used_library(policy: &Policy, toolchain: &Toolchain) -> Option<(Version, String, Option<u32>)> {
    let library = toolchain.library_used();
    let by_library = library.and_then(|library| Some((library.version.as_ref()?.value, &library.path)));
    let by_headers = toolchain.library_headers_used().and_then(|headers| Some((headers.version?, &headers.path)));
    let by_policy = policy.library_built.zip(policy.path.as_ref());
    // The program is held to its headers when it starts.
    let (version, path) = by_headers.or(by_policy).or(by_library)?;
    let built = library.and_then(|library| library.cuda_major.as_ref()).map(|major| major.value);
    Some((version, path.display().to_string(), built.or(toolchain.toolkit_version().map(|toolkit| toolkit.major))))
}

/// The guarded library against its fleet and that of the GPUs.
pub(super) fn guarded(policy: &Policy, toolchain: &Toolchain) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some((version, path, cuda)) = used_library(policy, toolchain) else { return findings };
    let named = policy.fleet_ccs();
    let values = of_fleet(policy, &named).with("found", version).with("path", path);
    // One that is linked in needs none on the machine.
    let fleet = policy.library_fleet.as_deref().filter(|_| policy.library_linkage != Some(Linkage::Static));
    if let Some((text, oldest)) = fleet.zip(policy.library_fleet_version()) {
        let patch_named = text.split('.').nth(2).is_some();
        let (built, older) = ((version.major, version.minor), (oldest.major, oldest.minor));
        let older_patch = built == older && policy.library_patch_refuse && patch_named && oldest.patch < version.patch;
        if oldest.major != version.major || older < built || older_patch {
            let values = values.clone().with("library_fleet", text).with("min", format!("{}.{}", built.0, built.1));
            let values = values.with("instead", format!("{}.{}", oldest.major, oldest.minor));
            let words = (
                MessageTemplate::CudnnFleetOlder,
                MessageTemplate::CudnnFleetOlderCMake,
                MessageTemplate::CudnnFleetOlderOptions,
            );
            findings.push(toolchain.by.of(words.0, words.1, words.2).finding(&values));
        }
    }
    let Some(cuda) = cuda else { return findings };
    let values = values.with("cuda_major", cuda);
    let discrete = || named.iter().copied().filter(|(_, cc)| !tables::is_tegra(*cc));
    let oldest = CUDNN.table().min_cc(version, cuda);
    let left: Named<'_> = discrete().filter(|(_, cc)| oldest.is_some_and(|oldest| *cc < oldest)).collect();
    if let Some(newest_of) = left.first().map(|_| &left) {
        let serving = CUDNN.table().releases(cuda).iter().rev().find(|release| {
            let least = CUDNN.table().min_cc(**release, cuda);
            least.is_some_and(|least| newest_of.iter().all(|(_, cc)| *cc >= least))
        });
        let (major, minor) = oldest.unwrap_or_default();
        let values = values.clone().with("gpus", gpus(newest_of)).with("oldest", format!("{major}.{minor}"));
        let words = if serving.is_some() { MessageTemplate::CudnnLeftGpu } else { MessageTemplate::CudnnLeftGpuNone };
        findings.push(words.finding(&values.known("last", serving)));
    }
    let newest = discrete().find_map(|(_, cc)| newest_before(version, cuda, cc));
    if let Some((major, minor)) = newest {
        let newer: Named<'_> = discrete().filter(|(_, cc)| newest_before(version, cuda, *cc).is_some()).collect();
        let values = values.with("gpus", gpus(&newer)).with("newest", format!("{major}.{minor}"));
        findings.push(MessageTemplate::CudnnBeforeGpu.finding(&values));
    }
    findings
}

/// The newest that the build for this CUDA has code for, where it is older than this GPU: what becomes of it there is in no
/// document.
fn newest_before(version: Version, cuda: u32, cc: (u8, u8)) -> Option<(u8, u8)> {
    // Machine code serves later GPUs of its own major.
    let newest = CUDNN.table().newest_cc(version, cuda).filter(|_| !serves_later(version, cuda));
    newest.filter(|newest| cc.0 > newest.0)
}

#[cfg(test)]
mod tests;
