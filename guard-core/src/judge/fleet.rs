//! Pure: (policy, result of a build) → findings: whether the machines of the policy's fleets can run it.
//!
//! Before linking only the declarations are known. [`declared`] checks them if the linked file is not examined later:
//! under plain cargo, and for `check`. Otherwise [`super::linked`] checks the file.

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

/// Checks whether the declarations serve the fleets. All unknown facts give one info. cuDNN's fleet is excluded,
/// because every build knows the headers.
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

/// GPUs, each with its name in the policy.
pub(super) type Named<'a> = Vec<(&'a str, Cc)>;

/// Number of names in a line; further ones are counted.
const NAMED: usize = 6;

/// Lists each name once, in one line.
pub(super) fn listed(mut all: Vec<String>) -> String {
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|name| seen.insert(name.clone()));
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    let text = all.join(", ");
    if more == 0 { text } else { format!("{text} and {more} more") }
}

/// Lists GPUs by their names in the policy: `T4 (7.5)`.
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

/// Returns the hint for GPUs without code. The toolkit in use cannot compile an arch that it has dropped or does not
/// know yet. `to` is the place to add archs; `None`: nvcc's flags.
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

/// Values of a finding about `[gpu] fleet`.
pub(super) fn of_fleet(policy: &Policy, named: &[(&str, Cc)]) -> Values {
    of_policy(policy).with("fleet", gpus(named))
}

/// The unknown facts, with reasons.
type Open = Vec<String>;

fn archs(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>, open: &mut Open) {
    let (named, archs) = (policy.fleet_ccs(), &toolchain.archs);
    if named.is_empty() {
        return;
    }
    let strongest = archs.declared.iter().find(|declared| !declared.adds);
    if archs.in_force.is_empty() {
        // Unreadable archs, and `native` without a GPU, are findings of their own.
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
    // One crate keeps PTX next to its machine code, another does not; only the dependency graph shows the crates.
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

/// Builds the finding. It is a warning if only a variable names archs: the variable applies to every build, and only
/// the linked file shows if this package has own kernels. PyTorch's list is for PyTorch's extensions alone, so it
/// gives an info.
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
    /// The text in the policy: `535`.
    text: &'a str,
    supports: Supports,
}

impl<'a> OldestDriver<'a> {
    pub(super) fn of(policy: &'a Policy) -> Option<Self> {
        let text = policy.driver_fleet.as_deref()?;
        Some(Self { text, supports: tables::driver_supports(policy.driver_fleet_release()?) })
    }

    /// Returns whether it meets a requirement; `None` if unknown. The CUDA version decides: every release of a branch
    /// supports the same one.
    pub(super) fn serves(self, floor: Floor) -> Option<bool> {
        self.supports.covers(floor.cuda).filter(|serves| floor.exact || !serves)
    }

    /// The same for code of this GPU. A machine with the GPU has a driver for it, however old the fleet's oldest
    /// driver is.
    pub(super) fn serves_on(self, floor: Floor, cc: Cc) -> Option<bool> {
        let first = tables::first_of_generation(cc);
        if first.is_some_and(|first| first.cuda >= floor.cuda) {
            return Some(true).filter(|_| floor.exact);
        }
        self.serves(floor)
    }

    /// Values of a finding about a requirement that it does not meet.
    fn against(self, policy: &Policy, floor: Floor) -> Values {
        let values = of_fleet(policy, &policy.fleet_ccs()).with("driver_fleet", self.text);
        let values = match self.supports.exactly() {
            Some(cuda) => values.with("cuda", cuda),
            None => values.known("most", self.supports.most),
        };
        // The branch to which `[driver] fleet` would have to be raised.
        let branch = tables::branches().iter().find(|row| row.exact && row.least >= floor.cuda).map(|row| row.branch);
        let branch = branch.or(floor.release.map(|release| release.branch));
        values.with("needs_cuda", floor.cuda).known("needs_release", floor.release).known("branch", branch)
    }
}

/// Checks a program with this cudart against the oldest driver of the fleet. `built` contains its name.
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

/// Checks a program that links this library, which contains a cudart, against the oldest driver of the fleet.
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

/// Checks for code that the oldest driver of the fleet cannot load, for these GPUs.
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
        // Only the linked file shows if it contains cudart. A program of the driver API has no such requirement.
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

/// Returns the hint if PTX does not serve: machine code, from this toolkit or a newer one.
fn machine_code(gpus: &[(&str, Cc)], toolkit: Option<Version>) -> String {
    let made = |cc: Cc| {
        let arch = Arch::of_cc(cc).zip(toolkit);
        arch.is_some_and(|(arch, toolkit)| tables::can_make(toolkit, Target::Cubin(arch)) == Answer::Made)
    };
    let made = gpus.iter().all(|(_, cc)| made(*cc));
    let phrase = if made { MessageFragment::AddMachineCode } else { MessageFragment::AddMachineCodeElsewhere };
    phrase.of(&Values::default().with("archs", cures(gpus)))
}

/// The cuDNN in use: its version, its path, and the CUDA major that it is built for.
fn used_library(policy: &Policy, toolchain: &Toolchain) -> Option<(Version, String, Option<u32>)> {
    let library = toolchain.library_used();
    let by_library = library.and_then(|library| Some((library.version.as_ref()?.value, &library.path)));
    let by_headers = toolchain.library_headers_used().and_then(|headers| Some((headers.version?, &headers.path)));
    let by_policy = policy.library_built.zip(policy.path.as_ref());
    // The start of the program compares with its headers.
    let (version, path) = by_headers.or(by_policy).or(by_library)?;
    let built = library.and_then(|library| library.cuda_major.as_ref()).map(|major| major.value);
    Some((version, path.display().to_string(), built.or(toolchain.toolkit_version().map(|toolkit| toolkit.major))))
}

/// Compares cuDNN with its fleet and with the GPUs.
pub(super) fn guarded(policy: &Policy, toolchain: &Toolchain) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some((version, path, cuda)) = used_library(policy, toolchain) else { return findings };
    let named = policy.fleet_ccs();
    let values = of_fleet(policy, &named).with("found", version).with("path", path);
    // A statically linked cuDNN needs none on the machine.
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

/// Returns the newest compute capability with code in this build, if it is older than the GPU. No document describes
/// cuDNN on newer GPUs.
fn newest_before(version: Version, cuda: u32, cc: (u8, u8)) -> Option<(u8, u8)> {
    // Machine code serves later GPUs of the same major.
    let newest = CUDNN.table().newest_cc(version, cuda).filter(|_| !serves_later(version, cuda));
    newest.filter(|newest| cc.0 > newest.0)
}

#[cfg(test)]
mod tests;
