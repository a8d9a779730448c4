//! Checks of the GPU architectures that the code is compiled for.

use crate::checks::wording::{describe, join_targets, policy_args, policy_file};
use crate::config::policy::Policy;
use crate::coverage::compatibility::Compatibility;
use crate::finding::{Finding, MessageTemplate, Severity, Values};
use crate::knowledge::tables::{self, CcSupport};
use crate::model::arch::{Arch, ArchRequest, Dialect, Target};
use crate::model::version::{CudaVersion, Version};
use crate::text::lists::IteratorExt as _;
use crate::toolchain::{Declared, Native, Toolchain, Toolkit};
use std::collections::BTreeSet;

pub(super) fn check_archs(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    let archs = &toolchain.archs;
    for declared in &archs.declared {
        if let Err(error) = &declared.requests {
            // Each tool reads its variable in its own spelling.
            let example = match Dialect::from_variable(&declared.source) {
                Some(Dialect::Torch) => "8.0;9.0",
                Some(Dialect::ComputeCap) => "90",
                _ => "80;90",
            };
            let values = Values::default().with("variable", &declared.source).with("value", &declared.text);
            let values = values.with("example", example);
            findings
                .push(unless_torch(MessageTemplate::ArchUnreadable.to_finding(&values.with("why", error)), [declared]));
        }
    }
    check_arch_sources(toolchain, findings);
    check_native(policy, toolchain, findings);
    let Some(toolkit) = toolchain.compiling_toolkit().and_then(Toolkit::version) else { return };
    let release = CudaVersion::from(toolkit.value);
    let values = Values::default().with("nvcc", describe(&toolkit)).with("toolkit_cuda", release);
    let values = values.built_by(toolchain.by);
    let mut refused: Vec<(CcSupport, Vec<Target>)> = Vec::new();
    for target in &archs.in_force {
        let answer = tables::can_make(toolkit.value, *target);
        if matches!(answer, CcSupport::TooNew { .. } | CcSupport::Dropped { .. }) {
            match refused.iter_mut().find(|(known, _)| *known == answer) {
                Some((_, targets)) => targets.push(*target),
                None => refused.push((answer, vec![*target])),
            }
        }
    }
    for (answer, targets) in refused {
        let list = join_targets(&targets);
        let declaring = archs.declared.iter().filter(|one| one.targets.iter().any(|target| targets.contains(target)));
        let declaring = declaring.collect::<Vec<_>>();
        let sources = declaring.iter().map(|one| format!("{} = {}", one.source, one.text)).collect::<Vec<_>>();
        let values = values.clone().with("targets", list).with("declared", sources.join("; "));
        let values = values.with_known("variable", declaring.first().map(|one| &one.source));
        let finding = match answer {
            CcSupport::Dropped { last } => MessageTemplate::ArchDropped.to_finding(&values.with_known("last", last)),
            CcSupport::TooNew { first } => {
                let oldest = targets.iter().map(|target| target.base_arch().cc()).min();
                let ptx = oldest.and_then(|cc| tables::only_ptx(toolkit.value, cc));
                let words = match first {
                    Some(_) => MessageTemplate::ArchTooNew,
                    None => MessageTemplate::ArchTooNewUnknown,
                };
                let installed = toolchain.sufficient.as_ref().map(|one| format!("{} in {}", one.value, one.source));
                let values = values.with_known("others", installed);
                words.to_finding(&values.with_known("first", first).with_known("ptx", ptx))
            }
            _ => continue,
        };
        findings.push(unless_torch(finding, declaring));
    }
    only_by_ptx(policy, toolkit.value, toolchain, &values, findings);
}

/// Returns the GPUs of the fleet for which this toolkit compiles no machine code.
fn only_by_ptx(policy: &Policy, toolkit: Version, toolchain: &Toolchain, values: &Values, findings: &mut Vec<Finding>) {
    let in_force = &toolchain.archs.in_force;
    for gpu in &policy.fleet {
        let Some(cc) = tables::gpu_cc(gpu) else { continue };
        let Some(own) = Arch::from_cc(cc) else { continue };
        let too_new = matches!(tables::can_make(toolkit, Target::Cubin(own)), CcSupport::TooNew { .. });
        // Machine code of an older arch of the same major also serves it, if the toolkit compiles one.
        let older = (0..=cc.1).filter_map(|minor| Arch::from_cc((cc.0, minor))).map(Target::Cubin);
        let served = older
            .filter(|target| tables::can_make(toolkit, *target) == CcSupport::Made)
            .any(|target| target.compatibility_with(cc) != Compatibility::No);
        if !too_new || served {
            continue;
        }
        if tables::only_ptx(toolkit, cc).is_none() {
            continue;
        }
        let cc = tables::dotted_cc(cc);
        let shown = if cc == *gpu { cc } else { format!("{gpu} ({cc})") };
        let values = values.clone().with("gpu", gpu).with("fleet", gpu).with("gpus", shown);
        let values = values.with_known("policy", policy_file(policy)).with("declared", join_targets(in_force));
        findings.push(MessageTemplate::ArchOnlyByPtx.to_finding(&values));
    }
}

fn arch_numbers(declared: &Declared) -> BTreeSet<u16> {
    declared.targets.iter().map(|target| target.base_arch().number).collect()
}

/// Compares the architectures of all sources. The kind of code and suffixes are ignored, because tools differ in
/// them.
fn check_arch_sources(toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    let mut speaking = toolchain.archs.declared.iter().filter(|declared| !declared.targets.is_empty());
    let Some(strongest) = speaking.clone().find(|declared| !declared.adds) else { return };
    let wanted = arch_numbers(strongest);
    let against: Vec<&Declared> = speaking
        .by_ref()
        .filter(|declared| {
            let own = arch_numbers(declared);
            if declared.adds { own.iter().any(|number| !wanted.contains(number)) } else { own != wanted }
        })
        .collect::<Vec<_>>();
    if against.is_empty() {
        return;
    }
    let mut lines = Vec::new();
    for declared in [strongest].iter().chain(&against) {
        let (names, text) = (join_targets(&declared.targets), &declared.text);
        let spelt = if *text == names { String::new() } else { format!(" (`{text}`)") };
        lines.push(format!("{}:\t{names}{spelt}", declared.source));
    }
    let others = against.iter().map(|declared| declared.source.as_str()).join(" and ");
    let values = Values::default().with("variable", &strongest.source).with("others", others);
    let values = values.with("sources", lines.join("\n")).built_by(toolchain.by);
    findings.push(unless_torch(MessageTemplate::ArchsContradict.to_finding(&values), against));
}

/// Builds the finding; an info if only PyTorch's list is wrong.
fn unless_torch<'a>(finding: Finding, sources: impl IntoIterator<Item = &'a Declared>) -> Finding {
    if sources.into_iter().all(Declared::is_of_torch) { finding.with_severity(Severity::Info) } else { finding }
}

fn check_native(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    let archs = &toolchain.archs;
    let mut asking = archs.declared.iter().filter(|declared| declared.has_request(ArchRequest::Native));
    let Some(first) = asking.next() else { return };
    let strongest = archs.declared.iter().find(|declared| !declared.adds);
    let in_force = first.adds || strongest.is_some_and(|strongest| strongest == first);
    let values = policy_args(policy).with("variable", &first.source).with("value", &first.text).built_by(toolchain.by);
    match &archs.native {
        Some(Native::Gpus(gpus)) => {
            let missing: Vec<_> = policy
                .fleet
                .iter()
                .filter(|gpu| {
                    let cc = tables::gpu_cc(gpu);
                    cc.is_some_and(|cc| {
                        archs.in_force.iter().all(|target| target.compatibility_with(cc) == Compatibility::No)
                    })
                })
                .map(String::as_str)
                .collect::<Vec<_>>();
            if in_force && !missing.is_empty() {
                let here = gpus.value.iter().copied().map(tables::dotted_cc).collect::<Vec<_>>();
                let values = values.with("here", here.join(", ")).with("source", &gpus.source);
                let values = values.with("gpus", missing.join(", ")).with("fleet", policy.fleet.join(", "));
                let mut named = policy.fleet.iter().filter_map(|gpu| tables::gpu_cc(gpu)).collect::<Vec<_>>();
                named.sort_unstable();
                named.dedup();
                let named = named.iter().map(|(major, minor)| format!("{major}{minor}")).collect::<Vec<_>>();
                let finding = MessageTemplate::NativeOutsideFleet.to_finding(&values.with("archs", named.join(";")));
                findings.push(finding);
            }
        }
        Some(Native::Unknown(why)) => {
            let finding = MessageTemplate::NativeUnknown.to_finding(&values.with("why", why));
            findings.push(if in_force { finding } else { finding.with_severity(Severity::Warning) });
        }
        None => {}
    }
}
