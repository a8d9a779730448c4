//! The comparison of two releases: changes, and the support that the new one lacks.

use std::collections::{BTreeMap, BTreeSet};

use cudaguard::internal::coverage::compatibility::Compatibility;
use cudaguard::internal::policy::{LossKind, ReleaseRequirements};
use cudaguard::internal::tables;
use cudaguard::internal::version::Version;
use serde::Serialize;

use super::release_facts::{ComparedGpu, DriverNeed, ReleaseFacts, describe_driver};
use crate::binary::examined;
use crate::host::judge::gpu_answer::Service;

/// A GPU whose support differs.
pub(super) struct GpuChange {
    pub(super) cc: (u8, u8),
    pub(super) newer: bool,
    pub(super) old: ComparedGpu,
    pub(super) new: ComparedGpu,
}

/// A name with its old and new value; empty if it is absent.
#[derive(Serialize)]
pub(super) struct ValueChange {
    pub(super) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) old: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) new: String,
}

/// Support that the new release lacks.
pub(super) struct Loss {
    pub(super) kind: LossKind,
    /// The GPUs or the file that it is about.
    pub(super) subject: String,
    pub(super) old: String,
    pub(super) new: String,
    /// The policy allows it.
    pub(super) allowed: bool,
}

/// The comparison.
pub(super) struct ReleaseDiff {
    pub(super) old: ReleaseFacts,
    pub(super) new: ReleaseFacts,
    pub(super) gpus: Vec<GpuChange>,
    pub(super) drivers: Vec<GpuChange>,
    pub(super) driver: Option<ValueChange>,
    pub(super) cudnn: Option<ValueChange>,
    pub(super) inside: Vec<ValueChange>,
    pub(super) elsewhere: Vec<ValueChange>,
    pub(super) requires: Vec<ValueChange>,
    pub(super) sizes: Vec<(String, u64, u64)>,
    pub(super) guard: Vec<(String, Option<bool>, Option<bool>)>,
    pub(super) losses: Vec<Loss>,
}

impl ReleaseDiff {
    pub(super) fn new(old: ReleaseFacts, new: ReleaseFacts, policy: &ReleaseRequirements) -> Self {
        let none = ComparedGpu { service: Service::None, driver: None };
        let ccs: BTreeSet<(u8, u8)> = old.gpus.iter().chain(&new.gpus).map(|(cc, _)| *cc).collect();
        let last = ccs.last().copied();
        let of = |facts: &ReleaseFacts, cc: (u8, u8)| {
            facts.gpus.iter().find(|(own, _)| *own == cc).map_or(none, |(_, state)| *state)
        };
        let change = |cc: (u8, u8)| GpuChange { cc, newer: Some(cc) == last, old: of(&old, cc), new: of(&new, cc) };
        // Code that was added to a package without any, or removed from one, is a change of every GPU.
        let all: Vec<GpuChange> = ccs.iter().map(|cc| change(*cc)).collect();
        let (mut gpus, mut drivers) = (Vec::new(), Vec::new());
        for change in all {
            if change.old.service != change.new.service {
                gpus.push(change);
            } else if change.old.driver != change.new.driver {
                drivers.push(change);
            }
        }
        let (old_driver, new_driver) = (old.driver, new.driver);
        let without_code = old.gpus.is_empty() && new.gpus.is_empty();
        let driver = (without_code && old_driver != new_driver).then(|| ValueChange {
            name: "driver".to_owned(),
            old: old_driver.map_or(String::new(), describe_driver),
            new: new_driver.map_or(String::new(), describe_driver),
        });
        let version = |version: Option<Version>| version.map_or(String::new(), |version| version.to_string());
        let cudnn = (old.cudnn != new.cudnn).then(|| ValueChange {
            name: "cuDNN".to_owned(),
            old: version(old.cudnn),
            new: version(new.cudnn),
        });
        let mut archs: Vec<&String> = old.sizes.keys().chain(new.sizes.keys()).collect();
        let number =
            |arch: &str| arch.bytes().filter(u8::is_ascii_digit).fold(0, |all, b| all * 10 + u32::from(b - b'0'));
        archs.sort_by_key(|arch| (number(arch), *arch));
        archs.dedup();
        let size = |facts: &ReleaseFacts, arch: &String| facts.sizes.get(arch).copied().unwrap_or_default();
        let sizes = archs.into_iter().map(|arch| (arch.clone(), size(&old, arch), size(&new, arch))).collect();
        let files: BTreeSet<&String> = old.guarded.keys().chain(new.guarded.keys()).collect();
        let states = files
            .into_iter()
            .map(|file| (file.clone(), old.guarded.get(file).copied(), new.guarded.get(file).copied()));
        let guard: Vec<_> = states.filter(|(_, old, new)| old.unwrap_or_default() != new.unwrap_or_default()).collect();
        let mut diff = Self {
            inside: changed_values(&old.inside, &new.inside),
            elsewhere: changed_values(&old.elsewhere, &new.elsewhere),
            requires: changed_values(&old.requires, &new.requires),
            old,
            new,
            gpus,
            drivers,
            driver,
            cudnn,
            sizes,
            guard,
            losses: Vec::new(),
        };
        diff.losses = diff.find_losses(policy);
        diff
    }

    /// Support that the old release has and the new one lacks.
    pub(super) fn find_losses(&self, policy: &ReleaseRequirements) -> Vec<Loss> {
        let mut losses = Vec::new();
        let allows = |kind: LossKind| policy.allow_loss.contains(&kind);
        // Required archs and driver floors select the machines that matter.
        let is_required = |cc: (u8, u8)| {
            policy.archs.is_empty() || policy.archs.iter().any(|arch| arch.compatibility_with(cc) == Compatibility::Yes)
        };
        let is_below_floor = |driver: Option<DriverNeed>| {
            let supported = policy.driver_floor.and_then(|floor| tables::driver_supports(floor).least);
            driver.zip(supported).is_some_and(|((cuda, _), supported)| cuda <= supported)
        };
        for change in self.gpus.iter().filter(|change| change.new.service < change.old.service) {
            // JIT instead of machine code still runs; unknown is reported by the status.
            let still_runs = matches!(change.new.service, Service::Native | Service::Jit | Service::Unknown);
            if !still_runs {
                losses.push(Loss {
                    kind: LossKind::Gpu,
                    subject: change.label(),
                    old: change.old.service.name().to_owned(),
                    new: change.new.service.name().to_owned(),
                    allowed: allows(LossKind::Gpu) || !is_required(change.cc),
                });
            }
        }
        let runs = |state: ComparedGpu| state.service > Service::Unknown;
        for change in self.gpus.iter().chain(&self.drivers).filter(|change| runs(change.old) && runs(change.new)) {
            if change.is_driver_raised() {
                losses.push(Loss {
                    kind: LossKind::Driver,
                    subject: change.label(),
                    old: change.old.driver.map_or("any".to_owned(), describe_driver),
                    new: change.new.driver.map_or("any".to_owned(), describe_driver),
                    allowed: allows(LossKind::Driver) || is_below_floor(change.new.driver) || !is_required(change.cc),
                });
            }
        }
        if let Some(change) = self.driver.as_ref().filter(|_| self.old.driver < self.new.driver) {
            let (old, new) = (change.old.clone(), change.new.clone());
            let allowed = allows(LossKind::Driver) || is_below_floor(self.new.driver);
            losses.push(Loss { kind: LossKind::Driver, subject: "any GPU".to_owned(), old, new, allowed });
        }
        if let Some(change) = self.cudnn.as_ref().filter(|_| self.old.cudnn < self.new.cudnn) {
            let below = policy.cudnn_floor.zip(self.new.cudnn).is_some_and(|(floor, new)| new <= floor);
            let old = if change.old.is_empty() { "none".to_owned() } else { change.old.clone() };
            let allowed = allows(LossKind::Cudnn) || below;
            losses.push(Loss {
                kind: LossKind::Cudnn,
                subject: "cuDNN".to_owned(),
                old,
                new: change.new.clone(),
                allowed,
            });
        }
        for (file, _, new) in self.guard.iter().filter(|(_, old, _)| *old == Some(true)) {
            losses.push(Loss {
                kind: LossKind::Guard,
                subject: file.clone(),
                old: "guarded".to_owned(),
                new: if new.is_some() { "not guarded" } else { "absent" }.to_owned(),
                // A file that was removed or renamed is no loss by itself.
                allowed: allows(LossKind::Guard) || new.is_none(),
            });
        }
        losses
    }

    /// Returns false if something that could be a loss was not examined or is unknown.
    pub(super) fn is_known(&self) -> bool {
        let unknown = |change: &GpuChange| change.new.service == Service::Unknown;
        let is_complete = |facts: &ReleaseFacts| examined::is_complete(&facts.not_examined);
        is_complete(&self.old) && is_complete(&self.new) && !self.gpus.iter().any(unknown)
    }
}

impl GpuChange {
    pub(super) fn example(&self) -> Option<&'static str> {
        tables::gpu_examples(self.cc).first().copied()
    }

    /// `8.0 (A100)`.
    pub(super) fn label(&self) -> String {
        match self.example() {
            _ if self.newer => format!("{} and newer", tables::dotted_cc(self.cc)),
            Some(name) => format!("{} ({name})", tables::dotted_cc(self.cc)),
            None => tables::dotted_cc(self.cc),
        }
    }

    /// `gained`, `lost`, `improved`, `reduced`, `raised`, `lowered`.
    pub(super) fn kind(&self) -> &'static str {
        match (self.old.service, self.new.service) {
            (Service::None, new) if new != Service::None => "gained",
            (old, Service::None) if old != Service::None => "lost",
            (old, new) if old < new => "improved",
            (old, new) if old > new => "reduced",
            _ if self.is_driver_raised() => "raised",
            _ => "lowered",
        }
    }

    pub(super) fn is_driver_raised(&self) -> bool {
        self.old.driver < self.new.driver
    }
}

/// Names whose values differ.
fn changed_values(
    old: &BTreeMap<String, BTreeSet<String>>,
    new: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<ValueChange> {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let join = |map: &BTreeMap<String, BTreeSet<String>>, name: &String| {
        map.get(name).into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ")
    };
    let change = |name: &String| ValueChange { name: name.clone(), old: join(old, name), new: join(new, name) };
    names.into_iter().map(change).filter(|change| change.old != change.new).collect()
}
