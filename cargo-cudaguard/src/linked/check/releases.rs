//! Compares the releases that a linked file shows with the detected toolkit and with each other.

use std::collections::BTreeSet;

use super::{Linked, container_label};
use crate::linked::evidence::LinkEvidence;
use cudaguard::internal::checks::build::requirement_matches;
use cudaguard::internal::checks::fleet::join_unique;
use cudaguard::internal::checks::wording::{describe, policy_args};
use cudaguard::internal::finding::{Code, Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::manifest::Linkage;
use cudaguard::internal::policy::Policy;
use cudaguard::internal::toolchain::Sourced;
use cudaguard::internal::version::{CudaVersion, Version};

type CudaReleases = BTreeSet<CudaVersion>;

/// Checks the releases. `recorded` is the toolkit that was checked before linking.
pub(super) fn check_toolkit_evidence(
    policy: &Policy,
    recorded: Option<Version>,
    linked: &Linked<'_>,
    findings: &mut Vec<Finding>,
) {
    let before = findings.len();
    check_cudart_release(policy, linked, findings);
    in_use(linked, findings.len() > before, findings);
    check_required_toolkit(policy, recorded, linked, findings);
}

/// Returns true if a finding from before linking is still valid. If variables name two toolkits and the file shows that
/// one of them built all of it, the other is no reason to refuse the build.
pub fn still_holds(finding: &Finding, seen: &LinkEvidence, in_use: &[Sourced<Version>]) -> bool {
    let Some(release) = seen.only_toolkit() else { return true };
    let mut in_use = in_use.iter().map(|fact| CudaVersion::from(fact.value));
    match finding.code {
        Code::ToolkitMixed | Code::CudartMixed => !in_use.any(|toolkit| toolkit == release),
        // The toolkit that was used is checked separately.
        Code::ToolkitNotAllowed => in_use.next().is_none_or(|toolkit| toolkit == release),
        Code::ToolkitMissing => false,
        _ => true,
    }
}

/// Returns the toolkit in use: the named toolkit that built the entire file, otherwise the first detected one.
fn in_use_fact<'a>(linked: &Linked<'a>) -> Option<&'a Sourced<Version>> {
    let shown = linked.seen.only_toolkit();
    linked.in_use.iter().find(|fact| Some(CudaVersion::from(fact.value)) == shown).or(linked.in_use.first())
}

fn current_toolkit(linked: &Linked<'_>) -> Option<CudaVersion> {
    in_use_fact(linked).map(|fact| CudaVersion::from(fact.value))
}

fn join_releases(releases: &CudaReleases) -> String {
    releases.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// Returns values that describe the evidence in the file, with the kernels of these releases.
fn evidence_args(linked: &Linked<'_>, releases: &CudaReleases) -> Values {
    let kernels = &linked.seen.kernels;
    let mut lines = Vec::new();
    for release in releases {
        let of = kernels.iter().filter(|kernel| kernel.release == *release);
        let known: BTreeSet<_> = of.clone().map(|kernel| kernel.known.display_name()).collect();
        let containers = of.filter_map(|kernel| linked.kernels.containers().get(kernel.container));
        let names = join_unique(containers.map(|container| container_label(linked.kernels, container)).collect());
        if !names.is_empty() {
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            lines.push(format!("CUDA {release}, by {known}: {names}"));
        }
    }
    let values = Values::default().with("file", linked.name).with("built", join_releases(releases));
    let values = values.with("kernels", lines.join("\n\t")).with_known("toolkit", in_use_fact(linked).map(describe));
    values.with_known("toolkit_cuda", current_toolkit(linked)).with_known("code", cudart_in_words(linked))
}

fn cudart_in_words(linked: &Linked<'_>) -> Option<String> {
    let inside: CudaReleases = linked.seen.cudart.iter().copied().collect();
    if linked.cudart == Linkage::Static && !inside.is_empty() {
        return Some(format!("{} inside, by a constant in its code", join_releases(&inside)));
    }
    if let Some((release, file)) = &linked.seen.cudart_taken {
        return Some(format!("{release} in {}, by a constant in its code", file.display()));
    }
    let needed = linked.needed.iter().find(|name| crate::knowledge::vendor::cudart_named(name).is_some());
    needed.filter(|_| linked.cudart == Linkage::Linked).cloned()
}

/// Compares the cudart in the file with the kernels that it registers.
fn check_cudart_release(policy: &Policy, linked: &Linked<'_>, findings: &mut Vec<Finding>) {
    let seen = linked.seen;
    let (kernels, cudarts) = (seen.registered_releases(), seen.cudart_releases());
    let Some(newest) = seen.newest_cudart() else { return };
    let others: CudaReleases = kernels.difference(&cudarts).copied().collect();
    // Kernels of this build that an earlier toolkit compiled differ from the cudart of the toolkit in use, too: one cause, one finding.
    let is_of_toolkit = current_toolkit(linked) == Some(newest) && others.is_subset(&seen.own_kernel_releases());
    if others.is_empty() || is_of_toolkit && !policy.allow.contains_key(&Code::OtherToolkitUsed) {
        return;
    }
    let of_this_build =
        seen.own_kernel_releases().iter().chain(&current_toolkit(linked)).any(|release| others.contains(release));
    let values = evidence_args(linked, &others).with("found_cuda", newest);
    let finding = MessageTemplate::CudartOfOtherToolkit.to_finding(&values.built_by(linked.by));
    // CUDA guarantees that objects of an older toolkit of the same major work.
    let promised = others.iter().all(|release| release.major == newest.major && *release < newest);
    findings.push(if promised && !of_this_build { finding.with_severity(Severity::Warning) } else { finding });
}

/// Compares the detected toolkit with the evidence in the file. `is_known` is true if kernels of another release were
/// reported already.
fn in_use(linked: &Linked<'_>, is_known: bool, findings: &mut Vec<Finding>) {
    let Some(now) = current_toolkit(linked) else { return };
    let seen = linked.seen;
    let words = MessageTemplate::OtherToolkitUsed;
    let (mut own, mut registered) = (seen.own_kernel_releases(), seen.registered_releases());
    if !own.is_empty() {
        own.remove(&now);
        if !own.is_empty() {
            findings.push(words.to_finding(&evidence_args(linked, &own).built_by(linked.by)));
            return;
        }
    } else if registered.is_empty() {
        let cudart = seen.cudart_releases();
        if !cudart.is_empty() && !cudart.contains(&now) {
            findings.push(words.to_finding(&evidence_args(linked, &cudart).built_by(linked.by)));
            return;
        }
    } else if !registered.contains(&now) && !seen.may_take_cudart_of(now) {
        findings.push(words.to_finding(&evidence_args(linked, &registered).built_by(linked.by)));
        return;
    }
    registered.remove(&now);
    if !registered.is_empty() && !is_known {
        let finding = MessageTemplate::OtherToolkitUsedBesides.to_finding(&evidence_args(linked, &registered));
        findings.push(finding.with_severity(Severity::Warning));
        return;
    }
    let mut bare = seen.bare_image_releases();
    bare.remove(&now);
    if registered.is_empty() && !bare.is_empty() {
        let finding = MessageTemplate::OtherToolkitUsedBesides.to_finding(&evidence_args(linked, &bare));
        findings.push(finding.with_severity(Severity::Info));
    }
}

/// Checks `[toolkit] require` against the toolkits that were used. The detected one was checked before.
fn check_required_toolkit(
    policy: &Policy,
    recorded: Option<Version>,
    linked: &Linked<'_>,
    findings: &mut Vec<Finding>,
) {
    let Some(require) = &policy.toolkit else { return };
    let seen = linked.seen;
    let recorded = recorded.map(CudaVersion::from);
    let own = seen.own_kernel_releases();
    let mut used = if own.is_empty() { seen.registered_releases() } else { own };
    used.extend(seen.cudart_releases());
    used.retain(|release| {
        let version = Version::new(release.major, release.minor, 0);
        Some(*release) != recorded && !requirement_matches(&require.parsed, version, false)
    });
    if !used.is_empty() {
        let mut all = evidence_args(linked, &used).with("require", &require.text).with("found", join_releases(&used));
        all = all.with_known("policy", Some(policy_args(policy).get("policy")).filter(|file| !file.is_empty()));
        findings.push(MessageTemplate::ToolkitNotAllowedLinked.to_finding(&all));
    }
}
