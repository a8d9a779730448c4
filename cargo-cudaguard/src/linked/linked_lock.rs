//! The lock and a linked file.

use std::path::Path;

use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::finding::{Code, Finding, MessageTemplate, Values};
use cudaguard::internal::lock::{HOST, HOST_COMPILER, Lock, Pins, TOOLKIT, same_release, short_version};
use cudaguard::internal::manifest::{FactSource, Linkage, Manifest};
use cudaguard::internal::toolchain::{BuildSystem, Toolchain};
use cudaguard::internal::version::{CudaVersion, Version};

use super::check::Linked;
use super::evidence::{HostCode, LinkEvidence};

/// Puts the facts of a linked file in place of the detected ones.
pub fn observe_manifest(pins: &mut Pins, manifest: &Manifest) {
    if let Some(shown) = manifest.toolkit.filter(|_| manifest.toolkit_known == Some(FactSource::LinkObservation)) {
        let shown = short_version(shown);
        if !same_release(pins.toolkit.as_deref(), Some(&shown)) {
            pins.toolkit = Some(shown);
        }
    }
    // Only with kernels is it the compiler that nvcc called.
    let kernels = manifest.observed.as_ref().is_some_and(|archs| !archs.is_empty());
    if let Some(compiler) = manifest.host_compiler.as_ref().filter(|_| kernels) {
        pins.host_compiler = Some(compiler.clone());
    }
    if let Some(linked) = linked_library(manifest) {
        pins.library = Some(linked.to_string());
    }
}

/// The release of the cuDNN that a sealed file links, not of its headers.
fn linked_library(manifest: &Manifest) -> Option<Version> {
    let library = manifest.library.as_ref().filter(|library| manifest.sealed && library.linkage == Linkage::Linked)?;
    let known = !matches!(manifest.library_known, Some(FactSource::Declared | FactSource::Symbols));
    manifest.library_linked.or(Some(library.version).filter(|_| known))
}

/// Returns true if the linked file decides about a drift, if it is examined: only objects show the host compiler, cuDNN can
/// differ from its headers, and the detected facts can leave the toolkit open if no build system selects it.
pub fn is_decided_by_linked(finding: &Finding, toolchain: &Toolchain) -> bool {
    let is_toolkit = finding.subject == TOOLKIT && toolchain.by == BuildSystem::Cargo;
    let by_objects = finding.subject == HOST_COMPILER || finding.subject == CUDNN.name;
    finding.code == Code::LockDrift
        && (by_objects
            || is_toolkit && (toolchain.sourced_toolkit_version().is_none() || toolchain.named_releases().len() > 1))
}

/// Returns true if a linked file supersedes this drift, whose report was deferred until after linking.
pub fn is_superseded(finding: &Finding, seen: &LinkEvidence) -> bool {
    finding.code == Code::LockDrift
        && (finding.subject == HOST_COMPILER
            || finding.subject == TOOLKIT && seen.built_with(None).is_some()
            || finding.subject == CUDNN.name && seen.cudnn_version().is_some())
}

/// Compares a linked file with the locked toolchain. `recorded` is the record from before linking, and `deferred`
/// whether its drift was not reported yet.
pub fn judge_linked(
    lock: &Lock,
    path: &Path,
    recorded: &Manifest,
    linked: &Linked<'_>,
    deferred: bool,
) -> Vec<Finding> {
    let target = &recorded.target;
    let Some(pins) = lock.targets.get(target) else { return Vec::new() };
    let mut drifts = Vec::new();
    let before = recorded.toolkit.map(CudaVersion::from);
    if let Some(shown) = linked.seen.built_with(before).filter(|shown| deferred || before != Some(*shown)) {
        let shown = shown.to_string();
        if !same_release(pins.toolkit.as_deref(), Some(&shown)) {
            drifts.push((TOOLKIT, &pins.toolkit, shown, format!("the code of {}", linked.name)));
        }
    }
    if let Some((library, is)) = linked.seen.library_taken.as_ref().zip(linked.seen.cudnn_version()) {
        let is = is.to_string();
        if pins.library.as_ref().is_some_and(|was| *was != is) && linked.library == Linkage::Linked {
            drifts.push((CUDNN.name, &pins.library, is, library.path.display().to_string()));
        }
    }
    let called = linked.seen.host.as_ref().and_then(HostCode::nvcc_host_compiler);
    if let Some(is) = called.filter(|is| pins.host_compiler.as_ref().is_some_and(|was| was != *is)) {
        drifts.push((HOST_COMPILER, &pins.host_compiler, is.clone(), format!("the objects of {}", linked.name)));
    }
    let mut findings = Vec::new();
    for (what, was, is, by) in drifts {
        let values = Values::default().with("lock", path.display()).with("target", target).with("what", what);
        let values = values.with("was", was.as_deref().unwrap_or("none")).with("now", is).with("source", by);
        let values = values.with_known("lock_target", Some(target).filter(|target| *target != HOST));
        findings.push(MessageTemplate::LockDrift.to_finding(&values.built_by(linked.by)));
    }
    findings
}
