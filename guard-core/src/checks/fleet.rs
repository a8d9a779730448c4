//! Pure: (policy, result of a build) → findings: whether the machines of the policy's fleets can run it.
//!
//! Before linking only the declarations are known. [`check_declared_fleet`] checks them if the linked file is not examined later:
//! under plain cargo, and for `check`. Otherwise the command checks the file.

use crate::config::policy::Policy;
use crate::coverage::compatibility::Compatibility;
use crate::finding::{Finding, MessageFragment, MessageTemplate, Severity, Values};
use crate::knowledge::cudnn::{self, serves_later};
use crate::knowledge::tables::{self, Cc, CcSupport, Floor, Supports};
use crate::manifest::model::Linkage;
use crate::model::arch::{Arch, ArchRequest, Target};
use crate::model::version::{CudaVersion, Version};
use crate::toolchain::{BuildSystem, Toolchain};
use std::collections::BTreeSet;

use super::wording::{describe, join_targets, policy_args};

/// Checks whether the declarations serve the fleets. All unknown facts give one info. cuDNN's fleet is excluded,
/// because every build knows the headers.
pub fn check_declared_fleet(policy: &Policy, toolchain: &Toolchain) -> Vec<Finding> {
    let (mut findings, mut open) = (Vec::new(), Vec::new());
    check_archs(policy, toolchain, &mut findings, &mut open);
    check_driver(policy, toolchain, &mut findings, &mut open);
    if policy.library_fleet.is_some()
        && policy.library_linkage != Some(Linkage::None)
        && used_library(policy, toolchain).is_none()
    {
        open.push(MessageFragment::OpenCudnn.render(&Values::default()));
    }
    if !open.is_empty() {
        let values = Values::default().with("open", open.join("\n"));
        let message = match toolchain.by {
            BuildSystem::CMake => MessageTemplate::FleetCannotTellCMake,
            _ => MessageTemplate::FleetCannotTell,
        };
        findings.push(message.to_finding(&values));
    }
    findings
}

/// Source of the archs in the policy.
const POLICY_ARCHS: &str = "[gpu] archs";
/// Start of the source of archs that are a property of a CMake target.
const TARGET_ARCHS: &str = "CUDA_ARCHITECTURES of ";

/// Compares the archs of a CMake target with `[gpu] fleet` before nvcc runs. A warning: libraries of the target may have code for
/// other GPUs, and the linked file decides.
pub fn check_target_archs(policy: &Policy, toolchain: &Toolchain) -> Option<Finding> {
    let strongest = toolchain.archs.declared.iter().find(|declared| !declared.adds)?;
    if !strongest.source.starts_with(TARGET_ARCHS) {
        return None;
    }
    let (mut findings, mut open) = (Vec::new(), Vec::new());
    check_archs(policy, toolchain, &mut findings, &mut open);
    Some(findings.into_iter().next()?.with_severity(Severity::Warning))
}

/// GPUs, each with its name in the policy.
pub type Named<'a> = Vec<(&'a str, Cc)>;

/// Number of names in a line; further ones are counted.
const NAMED: usize = 6;

/// Lists each name once, in one line.
pub fn join_unique(mut all: Vec<String>) -> String {
    let mut seen = BTreeSet::new();
    all.retain(|name| seen.insert(name.clone()));
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    let text = all.join(", ");
    if more == 0 { text } else { format!("{text} and {more} more") }
}

/// Lists GPUs by their names in the policy: `T4 (7.5)`.
pub fn join_gpus(gpus: &[(&str, Cc)]) -> String {
    let mut names = Vec::new();
    for (name, (major, minor)) in gpus {
        let cc = format!("{major}.{minor}");
        names.push(if *name == cc { cc } else { format!("{name} ({cc})") });
    }
    join_unique(names)
}

/// The machine code that serves these GPUs: `sm_75`.
pub fn join_archs(gpus: &[(&str, Cc)]) -> String {
    let mut ccs = gpus.iter().map(|(_, cc)| *cc).collect::<Vec<_>>();
    ccs.sort_unstable();
    ccs.dedup();
    join_unique(ccs.iter().map(|cc| tables::code_to_add(*cc)).collect::<Vec<_>>())
}

/// Returns the hint for GPUs without code. The toolkit in use cannot compile an arch that it has dropped or does not
/// know yet. `to` is the place to add archs; `None`: nvcc's flags.
pub fn fix_for_gpus(unserved: &[(&str, Cc)], toolkit: Option<Version>, to: Option<&str>) -> String {
    let not_made = unserved.iter().find_map(|(_, cc)| {
        let arch = Arch::from_cc(*cc)?;
        let answer = tables::can_make(toolkit?, Target::Cubin(arch));
        (answer != CcSupport::Made).then_some((arch, answer))
    });
    let values = Values::default().with("archs", join_archs(unserved)).with_known("variable", to);
    let values = values.with_known("targets", not_made.as_ref().map(|(arch, _)| format!("sm_{arch}")));
    match not_made {
        Some((_, CcSupport::Dropped { last: Some(last) })) => {
            MessageFragment::BuildWithOlder.render(&values.with("last", last))
        }
        Some((_, CcSupport::Dropped { last: None })) => MessageFragment::BuildWithAnOlder.render(&values),
        Some((_, CcSupport::TooNew { first: Some(first) })) => {
            MessageFragment::BuildWithNewer.render(&values.with("first", first))
        }
        // The other lists are CMake's, which have numbers: 75 is sm_75.
        _ if to.is_some_and(|to| to != POLICY_ARCHS) => {
            MessageFragment::AddToList.render(&values.with("archs", join_archs(unserved).replace("sm_", "")))
        }
        _ if to.is_some() => MessageFragment::AddToList.render(&values),
        _ => MessageFragment::AddToFlags.render(&values),
    }
}

/// Values of a finding about `[gpu] fleet`.
pub fn fleet_args(policy: &Policy, named: &[(&str, Cc)]) -> Values {
    policy_args(policy).with("fleet", join_gpus(named))
}

/// The unknown facts, with reasons.
type Open = Vec<String>;

fn any_answers(archs: &[Target], cc: Cc, answer: Compatibility) -> bool {
    archs.iter().any(|target| target.compatibility_with(cc) == answer)
}

fn check_archs(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>, open: &mut Open) {
    let (named, archs) = (policy.fleet_ccs(), &toolchain.archs);
    if named.is_empty() {
        return;
    }
    let strongest = archs.declared.iter().find(|declared| !declared.adds);
    if archs.in_force.is_empty() {
        // Unreadable archs, and `native` without a GPU, have separate findings.
        if strongest.is_none() {
            open.push(MessageFragment::OpenArchs.render(&Values::default()));
        }
        return;
    }
    if strongest.is_some_and(|declared| declared.has_request(ArchRequest::Native)) {
        return;
    }
    let (unclear, unserved): (Named<'_>, Named<'_>) = named
        .iter()
        .copied()
        .filter(|(_, cc)| !any_answers(&archs.in_force, *cc, Compatibility::Yes))
        .partition(|(_, cc)| any_answers(&archs.in_force, *cc, Compatibility::CannotTell));
    let list = join_targets(&archs.in_force);
    let values = Values::default().with("targets", &list);
    if !unclear.is_empty() {
        open.push(MessageFragment::OpenGpus.render(&values.clone().with("gpus", join_gpus(&unclear))));
    }
    // Some crates keep PTX next to their machine code; only the dependency graph shows which crates compile here.
    let with_ptx = match strongest {
        Some(declared) if declared.source == "CUDA_COMPUTE_CAP" => {
            archs.in_force.iter().map(|target| Target::Ptx(target.base_arch())).collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    let (by_crates, unserved): (Named<'_>, Named<'_>) =
        unserved.into_iter().partition(|(_, cc)| any_answers(&with_ptx, *cc, Compatibility::Yes));
    if !by_crates.is_empty() {
        open.push(MessageFragment::OpenPtx.render(&values.with("gpus", join_gpus(&by_crates))));
    }
    if unserved.is_empty() {
        return;
    }
    let source = strongest.or(archs.declared.first()).map(|declared| declared.source.as_str()).unwrap_or_default();
    let lists = [POLICY_ARCHS, "CUDAARCHS", "CMAKE_CUDA_ARCHITECTURES"];
    let to = (source.starts_with(TARGET_ARCHS) || lists.contains(&source)).then_some(source);
    let values =
        fleet_args(policy, &named).with("gpus", join_gpus(&unserved)).with("declared", list).with("source", source);
    let finding = MessageTemplate::FleetUndeclared
        .to_finding(&values.with("cure", fix_for_gpus(&unserved, toolchain.toolkit_version(), to)));
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
pub struct FleetDriver<'a> {
    /// The text in the policy: `535`.
    text: &'a str,
    /// The CUDA versions that it supports.
    pub supports: Supports,
}

impl<'a> FleetDriver<'a> {
    /// `[driver] fleet`.
    pub fn from_policy(policy: &'a Policy) -> Option<Self> {
        let text = policy.driver_fleet.as_deref()?;
        Some(Self { text, supports: tables::driver_supports(policy.driver_fleet_release()?) })
    }

    /// Returns whether it meets a requirement; `None` if unknown. The CUDA version decides: every release of a branch
    /// supports the same one.
    pub fn meets_floor(self, floor: Floor) -> Option<bool> {
        self.supports.covers(floor.cuda).filter(|serves| floor.exact || !serves)
    }

    /// Does the same for code of this GPU. A machine with the GPU has a driver for it, however old the fleet's oldest
    /// driver is.
    pub fn serves_on(self, floor: Floor, cc: Cc) -> Option<bool> {
        let first = tables::first_of_generation(cc);
        if first.is_some_and(|first| first.cuda >= floor.cuda) {
            return Some(true).filter(|_| floor.exact);
        }
        self.meets_floor(floor)
    }

    /// Values of a finding about a requirement that it does not meet.
    pub fn floor_args(self, policy: &Policy, floor: Floor) -> Values {
        let values = fleet_args(policy, &policy.fleet_ccs()).with("driver_fleet", self.text);
        let values = match self.supports.exact_version() {
            Some(cuda) => values.with("cuda", cuda),
            None => values.with_known("most", self.supports.most),
        };
        // The branch to which `[driver] fleet` would have to be raised.
        let branch =
            tables::branch_rows().iter().find(|row| row.exact && row.least >= floor.cuda).map(|row| row.branch);
        let branch = branch.or(floor.release.map(|release| release.branch));
        values.with("needs_cuda", floor.cuda).with_known("needs_release", floor.release).with_known("branch", branch)
    }
}

/// Checks a program with this cudart against the oldest driver of the fleet. `built` contains its name.
pub fn check_cudart(
    policy: &Policy,
    fleet: FleetDriver<'_>,
    cudart: CudaVersion,
    words: MessageTemplate,
    (name, built): (&'static str, &str),
) -> Option<Finding> {
    let floor = tables::cudart_floor(cudart);
    (fleet.meets_floor(floor) == Some(false)).then(|| {
        let older = fleet.supports.most.filter(|most| most.major < cudart.major);
        let values = fleet.floor_args(policy, floor).with_known("instead", older.map(|most| most.major));
        words.to_finding(&values.with("cuda_major", cudart.major).with(name, built).with("found_cuda", cudart))
    })
}

/// Checks for code that the oldest driver of the fleet cannot load, for these GPUs, or for all GPUs if the list is empty.
pub fn check_code(
    policy: &Policy,
    fleet: FleetDriver<'_>,
    floor: Floor,
    gpus_of_it: &[(&str, Cc)],
    toolkit: Option<Version>,
) -> Values {
    let values = fleet.floor_args(policy, floor);
    if gpus_of_it.is_empty() {
        return values.with("gpus", "any GPU").with("cure", "add machine code (sm_XY) for the GPUs of the fleet");
    }
    values.with("gpus", join_gpus(gpus_of_it)).with("cure", machine_code(gpus_of_it, toolkit))
}

fn check_driver(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>, open: &mut Open) {
    let Some(fleet) = FleetDriver::from_policy(policy) else { return };
    let Some(toolkit) = toolchain.sourced_toolkit_version() else {
        open.push(MessageFragment::OpenToolkit.render(&Values::default()));
        return;
    };
    let release = CudaVersion::from(toolkit.value);
    let line = describe(&toolkit);
    match fleet.meets_floor(tables::cudart_floor(release)) {
        Some(true) => {}
        // Only the linked file shows if it contains cudart. A program of the driver API has no such requirement.
        Some(false) => findings.extend(
            check_cudart(policy, fleet, release, MessageTemplate::DriverFleetOlderDeclared, ("toolkit", &line))
                .map(|finding| finding.with_severity(Severity::Warning)),
        ),
        None => open.push(MessageFragment::OpenDriver.render(&Values::default().with("driver_fleet", fleet.text))),
    }
    let floor = tables::ptx_isa(toolkit.value).map_or_else(|| tables::toolkit_floor(toolkit.value), tables::ptx_floor);
    let by_ptx: Named<'_> = policy
        .fleet_ccs()
        .into_iter()
        .filter(|(_, cc)| fleet.serves_on(floor, *cc) == Some(false))
        .filter(|(_, cc)| {
            let archs = toolchain.archs.in_force.iter();
            let mut serving = archs.filter(|target| target.compatibility_with(*cc) == Compatibility::Yes).peekable();
            serving.peek().is_some() && serving.all(|target| matches!(target, Target::Ptx(_)))
        })
        .collect::<Vec<_>>();
    if by_ptx.is_empty() {
        return;
    }
    let values = check_code(policy, fleet, floor, &by_ptx, Some(toolkit.value)).with("toolkit", line);
    let finding = MessageTemplate::DriverFleetCodeDeclared.to_finding(&values.with("toolkit_cuda", release));
    findings.push(unless_declared(finding, toolchain));
}

/// Returns the hint if PTX does not serve: machine code, from this toolkit or a newer one.
fn machine_code(gpus: &[(&str, Cc)], toolkit: Option<Version>) -> String {
    let made = gpus.iter().all(|(_, cc)| {
        let arch = Arch::from_cc(*cc).zip(toolkit);
        arch.is_some_and(|(arch, toolkit)| tables::can_make(toolkit, Target::Cubin(arch)) == CcSupport::Made)
    });
    let phrase = if made { MessageFragment::AddMachineCode } else { MessageFragment::AddMachineCodeElsewhere };
    phrase.render(&Values::default().with("archs", join_archs(gpus)))
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
pub(super) fn check_cudnn(policy: &Policy, toolchain: &Toolchain) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some((version, path, cuda)) = used_library(policy, toolchain) else { return findings };
    let named = policy.fleet_ccs();
    let values = fleet_args(policy, &named).with("found", version).with("path", path);
    // A statically linked cuDNN needs none on the machine.
    let fleet = policy.library_fleet.as_deref().filter(|_| policy.library_linkage != Some(Linkage::Static));
    if let Some((text, oldest)) = fleet.zip(policy.library_fleet_version()) {
        let patch_named = text.split('.').nth(2).is_some();
        let (built, older) = ((version.major, version.minor), (oldest.major, oldest.minor));
        let older_patch = built == older && policy.library_patch_refuse && patch_named && oldest.patch < version.patch;
        if oldest.major != version.major || older < built || older_patch {
            let values = values.clone().with("library_fleet", text).with("min", format!("{}.{}", built.0, built.1));
            let values = values.with("instead", format!("{}.{}", oldest.major, oldest.minor));
            findings.push(MessageTemplate::CudnnFleetOlder.to_finding(&values.built_by(toolchain.by)));
        }
    }
    let Some(cuda) = cuda else { return findings };
    let values = values.with("cuda_major", cuda);
    let discrete = named.iter().copied().filter(|(_, cc)| !tables::is_tegra(*cc));
    let oldest = cudnn::RELEASES.min_cc(version, cuda);
    let left = discrete.clone().filter(|(_, cc)| oldest.is_some_and(|oldest| *cc < oldest)).collect::<Vec<_>>();
    if !left.is_empty() {
        let serving = cudnn::RELEASES.releases_for(cuda).iter().rev().find(|release| {
            let least = cudnn::RELEASES.min_cc(**release, cuda);
            least.is_some_and(|least| left.iter().all(|(_, cc)| *cc >= least))
        });
        let (major, minor) = oldest.unwrap_or_default();
        let values = values.clone().with("gpus", join_gpus(&left)).with("oldest", format!("{major}.{minor}"));
        let words = if serving.is_some() { MessageTemplate::CudnnLeftGpu } else { MessageTemplate::CudnnLeftGpuNone };
        findings.push(words.to_finding(&values.with_known("last", serving)));
    }
    let newer = discrete.filter(|(_, cc)| newest_before(version, cuda, *cc).is_some()).collect::<Vec<_>>();
    if let Some((major, minor)) = newer.first().and_then(|(_, cc)| newest_before(version, cuda, *cc)) {
        let values = values.with("gpus", join_gpus(&newer)).with("newest", format!("{major}.{minor}"));
        findings.push(MessageTemplate::CudnnBeforeGpu.to_finding(&values));
    }
    findings
}

/// Returns the newest compute capability with code in this build, if it is older than the GPU. No document describes
/// cuDNN on newer GPUs.
fn newest_before(version: Version, cuda: u32, cc: (u8, u8)) -> Option<(u8, u8)> {
    // Machine code serves later GPUs of the same major.
    let newest = cudnn::RELEASES.newest_cc(version, cuda).filter(|_| !serves_later(version, cuda));
    newest.filter(|newest| cc.0 > newest.0)
}

#[cfg(test)]
mod tests;
