//! The comparison as JSON.

use std::collections::{BTreeMap, BTreeSet};

use cudaguard::internal::tables;
use serde::Serialize;

use super::compare::{GpuChange, Loss, ReleaseDiff, ValueChange};
use super::release_facts::{ComparedGpu, ReleaseFacts};
use crate::host::machine::judge::gpu_answer::DriverView;

/// Values by name.
type ValuesByName<'a> = &'a BTreeMap<String, BTreeSet<String>>;

#[derive(Serialize)]
pub(super) struct DiffView<'a> {
    old: ReleaseView<'a>,
    new: ReleaseView<'a>,
    gpus: Vec<GpuChangeView>,
    drivers: Vec<GpuChangeView>,
    driver: Option<&'a ValueChange>,
    cudnn: Option<&'a ValueChange>,
    inside: &'a [ValueChange],
    from_elsewhere: &'a [ValueChange],
    requires: &'a [ValueChange],
    gpu_code: Vec<SizeView<'a>>,
    guard: Vec<GuardView<'a>>,
    lost: Vec<LossView<'a>>,
}

#[derive(Serialize)]
struct ReleaseView<'a> {
    file: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    processor: &'a str,
    gpus: Vec<GpuView>,
    driver: Option<DriverView>,
    cudnn: Option<String>,
    inside: ValuesByName<'a>,
    from_elsewhere: ValuesByName<'a>,
    requires: ValuesByName<'a>,
    gpu_code: &'a BTreeMap<String, u64>,
    guarded: &'a BTreeMap<String, bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_judged: Vec<String>,
}

#[derive(Serialize)]
struct GpuView {
    cc: String,
    #[serde(flatten)]
    state: GpuStateView,
}

#[derive(Serialize)]
struct GpuStateView {
    by: &'static str,
    driver: Option<DriverView>,
}

#[derive(Serialize)]
struct GpuChangeView {
    cc: String,
    /// Set for the entry that also represents newer GPUs.
    newer: Option<bool>,
    name: Option<&'static str>,
    change: &'static str,
    old: GpuStateView,
    new: GpuStateView,
}

#[derive(Serialize)]
struct SizeView<'a> {
    arch: &'a str,
    old: u64,
    new: u64,
}

#[derive(Serialize)]
struct GuardView<'a> {
    name: &'a str,
    old: Option<bool>,
    new: Option<bool>,
}

#[derive(Serialize)]
struct LossView<'a> {
    kind: &'static str,
    subject: &'a str,
    old: &'a str,
    new: &'a str,
    allowed: bool,
}

impl<'a> DiffView<'a> {
    pub(super) fn new(diff: &'a ReleaseDiff) -> Self {
        Self {
            old: ReleaseView::new(&diff.old),
            new: ReleaseView::new(&diff.new),
            gpus: diff.gpus.iter().map(GpuChangeView::new).collect(),
            drivers: diff.drivers.iter().map(GpuChangeView::new).collect(),
            driver: diff.driver.as_ref(),
            cudnn: diff.cudnn.as_ref(),
            inside: &diff.inside,
            from_elsewhere: &diff.elsewhere,
            requires: &diff.requires,
            gpu_code: diff.sizes.iter().map(|(arch, old, new)| SizeView { arch, old: *old, new: *new }).collect(),
            guard: diff.guard.iter().map(|(name, old, new)| GuardView { name, old: *old, new: *new }).collect(),
            lost: diff.losses.iter().map(LossView::new).collect(),
        }
    }
}

impl<'a> ReleaseView<'a> {
    fn new(facts: &'a ReleaseFacts) -> Self {
        let gpus = facts.gpus.iter();
        Self {
            file: &facts.file,
            name: &facts.title,
            processor: &facts.processor,
            gpus: gpus
                .map(|(cc, gpu)| GpuView { cc: tables::dotted_cc(*cc), state: GpuStateView::new(*gpu) })
                .collect(),
            driver: facts.driver.map(|(cuda, release)| DriverView::new(cuda, release)),
            cudnn: facts.cudnn.map(|version| version.to_string()),
            inside: &facts.inside,
            from_elsewhere: &facts.elsewhere,
            requires: &facts.requires,
            gpu_code: &facts.sizes,
            guarded: &facts.guarded,
            not_judged: facts.not_examined.iter().map(ToString::to_string).collect(),
        }
    }
}

impl GpuStateView {
    fn new(gpu: ComparedGpu) -> Self {
        Self { by: gpu.service.name(), driver: gpu.driver.map(|(cuda, release)| DriverView::new(cuda, release)) }
    }
}

impl GpuChangeView {
    fn new(change: &GpuChange) -> Self {
        Self {
            cc: tables::dotted_cc(change.cc),
            newer: change.newer.then_some(true),
            name: change.example(),
            change: change.kind(),
            old: GpuStateView::new(change.old),
            new: GpuStateView::new(change.new),
        }
    }
}

impl<'a> LossView<'a> {
    fn new(loss: &'a Loss) -> Self {
        let Loss { kind, subject, old, new, allowed } = loss;
        Self { kind: kind.name(), subject, old, new, allowed: *allowed }
    }
}
