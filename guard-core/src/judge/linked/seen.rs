//! The releases that a linked file shows, against the toolkit that was looked up, and against each other.

use std::collections::BTreeSet;

use super::{Linked, called};
use crate::evidence::Seen;
use crate::finding::{Code, Finding, MessageTemplate, Severity, Values};
use crate::judge::build::takes;
use crate::judge::fleet::listed;
use crate::judge::wording::{describe, of_policy};
use crate::manifest::Linkage;
use crate::policy::Policy;
use crate::toolchain::Sourced;
use crate::version::{CudaVersion, Version};

type Releases = BTreeSet<CudaVersion>;

/// `recorded` is the toolkit that was judged before linking.
pub(super) fn judge(policy: &Policy, recorded: Option<Version>, linked: &Linked<'_>, findings: &mut Vec<Finding>) {
    let before = findings.len();
    cudart(linked, findings);
    in_use(linked, findings.len() > before, findings);
    required(policy, recorded, linked, findings);
}

/// Whether what was said before linking still holds. Of two toolkits that variables name, the file may show that one made
/// all of it: then the other is no ground to refuse.
pub fn still_holds(finding: &Finding, seen: &Seen, in_use: &[Sourced<Version>]) -> bool {
    let Some(release) = seen.throughout() else { return true };
    let is = |fact: &Sourced<Version>| CudaVersion::from(fact.value) == release;
    match finding.code {
        Code::ToolkitMixed | Code::CudartMixed => !in_use.iter().any(is),
        // What was used is judged by itself.
        Code::ToolkitNotAllowed => in_use.first().is_none_or(is),
        Code::ToolkitMissing => false,
        _ => true,
    }
}

/// The toolkit in use: of several that are named the one that made all of the file, else the one that was looked up first.
fn in_use_fact<'a>(linked: &Linked<'a>) -> Option<&'a Sourced<Version>> {
    let shown = linked.seen.throughout();
    let made_it = |fact: &&Sourced<Version>| Some(CudaVersion::from(fact.value)) == shown;
    linked.in_use.iter().find(made_it).or(linked.in_use.first())
}

fn now(linked: &Linked<'_>) -> Option<CudaVersion> {
    in_use_fact(linked).map(|fact| CudaVersion::from(fact.value))
}

fn lists(releases: &Releases) -> String {
    releases.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// Values that name what the file shows: of these releases the kernels.
fn values(linked: &Linked<'_>, releases: &Releases) -> Values {
    let kernels = &linked.seen.kernels;
    let line = |release: &CudaVersion| {
        let of = kernels.iter().filter(|kernel| kernel.release == *release);
        let known: BTreeSet<_> = of.clone().map(|kernel| kernel.known.words()).collect();
        let containers = of.filter_map(|kernel| linked.kernels.containers().get(kernel.container));
        let names = listed(containers.map(|container| called(linked.kernels, container)).collect());
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then(|| format!("CUDA {release}, by {known}: {names}"))
    };
    let lines: Vec<_> = releases.iter().filter_map(line).collect();
    let values = Values::default().with("file", linked.name).with("built", lists(releases));
    let values = values.with("kernels", lines.join("\n\t"));
    let values = values.known("toolkit", in_use_fact(linked).map(describe));
    let values = values.known("toolkit_cuda", now(linked));
    values.known("code", cudart_in_words(linked))
}

fn cudart_in_words(linked: &Linked<'_>) -> Option<String> {
    let inside: Releases = linked.seen.cudart.iter().copied().collect();
    if linked.cudart == Linkage::Static && !inside.is_empty() {
        return Some(format!("{} inside, by a constant in its code", lists(&inside)));
    }
    if let Some((release, file)) = &linked.seen.cudart_taken {
        return Some(format!("{release} in {}, by a constant in its code", file.display()));
    }
    let needed = linked.needed.iter().find(|name| crate::vendor::cudart_named(name).is_some());
    needed.filter(|_| linked.cudart == Linkage::Linked).cloned()
}

/// The cudart in the file against the kernels that it registers.
fn cudart(linked: &Linked<'_>, findings: &mut Vec<Finding>) {
    let seen = linked.seen;
    let (kernels, cudarts) = (seen.registered(), seen.cudarts());
    let Some(newest) = seen.newest_cudart() else { return };
    let others: Releases = kernels.difference(&cudarts).copied().collect();
    if others.is_empty() {
        return;
    }
    // Objects that an older toolkit of the same major made elsewhere are promised to work.
    let promised = |release: &CudaVersion| release.major == newest.major && *release < newest;
    let of_this_build = seen.own().iter().chain(&now(linked)).any(|release| others.contains(release));
    let values = values(linked, &others).with("found_cuda", newest);
    let words = (
        MessageTemplate::CudartOfOtherToolkit,
        MessageTemplate::CudartOfOtherToolkitCMake,
        MessageTemplate::CudartOfOtherToolkitOptions,
    );
    let finding = linked.by.of(words.0, words.1, words.2).finding(&values);
    let fine = others.iter().all(promised) && !of_this_build;
    findings.push(if fine { finding.with_severity(Severity::Warning) } else { finding });
}

/// What was looked up against what the file shows. `told` is whether the kernels of another release have been named.
fn in_use(linked: &Linked<'_>, told: bool, findings: &mut Vec<Finding>) {
    let Some(now) = now(linked) else { return };
    let seen = linked.seen;
    let without_now = |releases: Releases| -> Releases { releases.into_iter().filter(|one| *one != now).collect() };
    let words = linked.by.of(
        MessageTemplate::OtherToolkitUsed,
        MessageTemplate::OtherToolkitUsedCMake,
        MessageTemplate::OtherToolkitUsedOptions,
    );
    let (own, registered) = (seen.own(), seen.registered());
    if !own.is_empty() {
        let strange = without_now(own);
        if !strange.is_empty() {
            findings.push(words.finding(&values(linked, &strange)));
            return;
        }
    } else if registered.is_empty() {
        let cudart = seen.cudarts();
        if !cudart.is_empty() && !cudart.contains(&now) {
            findings.push(words.finding(&values(linked, &cudart)));
            return;
        }
    } else if !registered.contains(&now) && !seen.may_take_cudart_of(now) {
        findings.push(words.finding(&values(linked, &registered)));
        return;
    }
    let strange = without_now(registered);
    if !strange.is_empty() && !told {
        let finding = MessageTemplate::OtherToolkitUsedBesides.finding(&values(linked, &strange));
        findings.push(finding.with_severity(Severity::Warning));
        return;
    }
    let bare = without_now(seen.bare());
    if strange.is_empty() && !bare.is_empty() {
        let finding = MessageTemplate::OtherToolkitUsedBesides.finding(&values(linked, &bare));
        findings.push(finding.with_severity(Severity::Info));
    }
}

/// `[toolkit] require` is about what was used, not only about what was looked up, which has been judged.
fn required(policy: &Policy, recorded: Option<Version>, linked: &Linked<'_>, findings: &mut Vec<Finding>) {
    let Some(require) = &policy.toolkit else { return };
    let seen = linked.seen;
    let recorded = recorded.map(CudaVersion::from);
    let own = seen.own();
    let mut used = if own.is_empty() { seen.registered() } else { own };
    used.extend(seen.cudarts());
    let refused = |release: &CudaVersion| {
        let version = Version::new(release.major, release.minor, 0);
        Some(*release) != recorded && !takes(&require.parsed, version, false)
    };
    let refused: Releases = used.into_iter().filter(refused).collect();
    if !refused.is_empty() {
        let mut all = values(linked, &refused).with("require", &require.text).with("found", lists(&refused));
        all = all.known("policy", Some(of_policy(policy).get("policy")).filter(|file| !file.is_empty()));
        findings.push(MessageTemplate::ToolkitNotAllowedLinked.finding(&all));
    }
}
