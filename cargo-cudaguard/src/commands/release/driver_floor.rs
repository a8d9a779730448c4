//! The driver floor of a release.

use std::collections::{BTreeMap, BTreeSet};

use crate::commands::artifact_report::{ArtifactMember, ArtifactReport};
use crate::host::machine::oldest_driver::{OldestDriver, driver_needs, machine_with_gpu};
use crate::host::machine::{Components, Driver, Machine};
use cudaguard::internal::finding::{self, Code, Finding, MessageTemplate, Severity};
use cudaguard::internal::manifest::{GpuCoverage, Manifest, Requirement};
use cudaguard::internal::tables;
use cudaguard::internal::version::{CudaVersion, DriverRelease};

use super::{components_with_variant, file_values};

/// Reports members that need a newer driver than the floor, or than the first driver of the GPU if that is newer.
pub(super) fn driver_findings(
    artifact: &ArtifactReport,
    components: &Components,
    groups: &[Vec<&ArtifactMember>],
    floor: DriverRelease,
) -> Vec<Finding> {
    let mut ccs: Vec<Option<(u8, u8)>> = vec![None];
    if components.manifests.iter().any(|manifest| manifest.requires.iter().any(is_gpu_row)) {
        ccs = tables::arch_rows().iter().map(|row| row.cc).filter(|cc| !tables::is_tegra(*cc)).map(Some).collect();
        ccs.sort_unstable();
        ccs.dedup();
    }
    let mut too_old: BTreeMap<String, Vec<(u8, u8)>> = BTreeMap::new();
    let mut unknown: BTreeMap<String, Vec<(u8, u8)>> = BTreeMap::new();
    let mut findings = Vec::new();
    for cc in ccs {
        let first = cc.and_then(tables::first_driver).and_then(|first| first.release);
        let release = first.map_or(floor, |first| first.max(floor));
        let driver = Driver { user: Some(release), ..Driver::default() };
        let machine = Machine { driver: Some(driver), ..machine_with_gpu(cc) };
        let found = components.check_on(&machine, "a machine with the oldest driver");
        let refused = found
            .iter()
            .filter(|finding| matches!(finding.code, Code::DriverTooOld | Code::DriverTooOldForCode))
            .filter(|finding| finding.severity == Severity::Error);
        let refused: BTreeSet<String> = refused.map(|finding| finding.component.clone()).collect();
        let replaced = components_with_variant(&refused, groups);
        for finding in found {
            let refuses = finding.severity == Severity::Error && !replaced.contains(&finding.component);
            let place = match finding.code {
                Code::DriverTooOld | Code::DriverTooOldForCode if refuses => &mut too_old,
                Code::DriverCannotTell => &mut unknown,
                // cuDNN and what NVRTC compiles belong to the process, not to one file.
                Code::CudnnNeedsNewerDriver if finding.severity == Severity::Error => {
                    findings.extend(floor_of_process(components, cc, &finding, floor));
                    continue;
                }
                Code::OnlyCompiledPtx => {
                    let values = file_values(&components.file).with("why", finding.first_line());
                    findings.push(MessageTemplate::ReleaseCannotTell.to_finding(&values));
                    continue;
                }
                _ => continue,
            };
            place.entry(finding.component).or_default().extend(cc);
        }
    }
    finding::sort_findings(&mut findings);
    findings.dedup();
    for (component, ccs) in &too_old {
        let part = owner_of(artifact, component);
        let values = file_values(part.map_or(component, |part| &part.name)).with("floor", floor_text(floor));
        let manifests = part.map_or(&components.manifests, |part| &part.components.manifests);
        let causes: Vec<DriverCause> = manifests.iter().flat_map(|manifest| driver_causes(manifest, ccs)).collect();
        let owned = [Components { manifests: manifests.clone(), os: components.os, ..Components::default() }];
        let ccs_or_any = ccs.iter().map(|cc| Some(*cc)).chain(ccs.is_empty().then_some(None));
        let needs = ccs_or_any.filter_map(|cc| driver_needs(&owned, &machine_with_gpu(cc)).driver).max();
        let Some(OldestDriver { cuda, release }) = needs else { continue };
        let mut reasons: Vec<&DriverCause> = causes.iter().filter(|cause| cause.cuda == cuda).collect();
        reasons.sort_by_key(|cause| (cause.of_gpu, &cause.why));
        reasons.dedup_by_key(|cause| &cause.why);
        let of_gpus = reasons.iter().all(|cause| cause.of_gpu);
        let why = reasons.iter().map(|cause| cause.why.as_str()).collect::<Vec<_>>().join(", ");
        let values = values.with("needs_cuda", cuda).with_known("needs_release", release).with("why", why);
        let values = if of_gpus { values.with("gpus", join_ccs(ccs)) } else { values };
        findings.push(MessageTemplate::ReleaseDriverFloor.to_finding(&values));
    }
    for (component, ccs) in unknown.iter().filter(|(component, _)| !too_old.contains_key(*component)) {
        let name = owner_of(artifact, component).map_or(component.as_str(), |part| &part.name);
        let gpus = if ccs.is_empty() { String::new() } else { format!(" on GPUs {}", join_ccs(ccs)) };
        let why = format!("no document says whether driver {} loads its code{gpus}", floor_text(floor));
        findings.push(MessageTemplate::ReleaseCannotTell.to_finding(&file_values(name).with("why", why)));
    }
    findings
}

/// Returns the finding that the libraries of a process need a newer driver than the floor.
fn floor_of_process(
    components: &Components,
    cc: Option<(u8, u8)>,
    cause: &Finding,
    floor: DriverRelease,
) -> Option<Finding> {
    let OldestDriver { cuda, release } = driver_needs(std::slice::from_ref(components), &machine_with_gpu(cc)).driver?;
    let values = file_values(&components.file).with("floor", floor_text(floor)).with("needs_cuda", cuda);
    let values = values.with_known("needs_release", release).with("why", cause.first_line());
    Some(MessageTemplate::ReleaseDriverFloor.to_finding(&values))
}

fn is_gpu_row(row: &Requirement) -> bool {
    matches!(row, Requirement::Gpu { .. })
}

fn join_ccs(ccs: &[(u8, u8)]) -> String {
    ccs.iter().copied().map(tables::dotted_cc).collect::<Vec<_>>().join(", ")
}

/// A branch is written without the zeros.
pub(super) fn floor_text(floor: DriverRelease) -> String {
    if (floor.minor, floor.patch) == (0, 0) { floor.branch.to_string() } else { floor.to_string() }
}

/// A driver requirement of a component, and its reason.
struct DriverCause {
    cuda: CudaVersion,
    why: String,
    /// It depends on the GPU.
    of_gpu: bool,
}

/// The file that contains a component.
fn owner_of<'a>(artifact: &'a ArtifactReport, component: &str) -> Option<&'a ArtifactMember> {
    artifact
        .judged_parts()
        .find(|part| part.components.manifests.iter().any(|manifest| manifest.component.to_string() == component))
}

/// The driver requirements of a component on these GPUs.
fn driver_causes(manifest: &Manifest, ccs: &[(u8, u8)]) -> Vec<DriverCause> {
    let causes = manifest.requires.iter().filter_map(|row| match row {
        Requirement::Driver { cuda, because, .. } => {
            Some(DriverCause { cuda: *cuda, why: because.clone(), of_gpu: false })
        }
        Requirement::Gpu { from, to, by, code, cuda: Some(cuda), .. } if *by != GpuCoverage::Nothing => {
            let is_concerned = ccs.iter().any(|cc| cc >= from && to.is_none_or(|to| *cc <= to));
            let why = if code.contains("PTX text") {
                format!("PTX text that the driver compiles ({code})")
            } else if code.starts_with("compute_") {
                format!("PTX ({code}) that the driver compiles")
            } else {
                format!("the compression of its code ({code})")
            };
            is_concerned.then_some(DriverCause { cuda: *cuda, why, of_gpu: true })
        }
        _ => None,
    });
    causes.collect()
}
