//! The comparison of two releases: changes, and the support that the new one lacks.

use std::collections::{BTreeMap, BTreeSet};

use cudaguard::internal::coverage::compatibility::Compatibility;
use cudaguard::internal::policy::{LossKind, ReleaseRequirements};
use cudaguard::internal::tables;
use serde::{Serialize, Serializer};

use super::release_facts::{ComparedGpu, ReleaseFacts, describe_driver};
use crate::as_text;
use crate::binary::examined;
use crate::host::machine::judge::gpu_answer::{OldestDriver, Service};

/// A GPU whose support differs.
#[derive(Serialize)]
pub(super) struct GpuChange {
    #[serde(serialize_with = "as_text::dotted_cc")]
    cc: (u8, u8),
    /// Set for the entry that also represents newer GPUs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    newer: bool,
    name: Option<&'static str>,
    /// `gained`, `lost`, `improved`, `reduced`, `raised`, `lowered`.
    pub(super) change: &'static str,
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

/// Bytes of GPU code of an architecture.
#[derive(Serialize)]
pub(super) struct SizeChange {
    pub(super) arch: String,
    pub(super) old: u64,
    pub(super) new: u64,
}

/// A file that is guarded in only one of the releases; `None` if it is absent.
#[derive(Serialize)]
pub(super) struct GuardChange {
    pub(super) name: String,
    pub(super) old: Option<bool>,
    pub(super) new: Option<bool>,
}

/// Support that the new release lacks.
#[derive(Serialize)]
pub(super) struct Loss {
    #[serde(serialize_with = "write_kind")]
    pub(super) kind: LossKind,
    /// The GPUs or the file that it is about.
    pub(super) subject: String,
    pub(super) old: String,
    pub(super) new: String,
    /// The policy allows it.
    pub(super) allowed: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
fn write_kind<S: Serializer>(kind: &LossKind, json: S) -> Result<S::Ok, S::Error> {
    json.serialize_str(kind.name())
}

/// The comparison.
#[derive(Serialize)]
pub(super) struct ReleaseDiff {
    pub(super) old: ReleaseFacts,
    pub(super) new: ReleaseFacts,
    pub(super) gpus: Vec<GpuChange>,
    pub(super) drivers: Vec<GpuChange>,
    pub(super) driver: Option<ValueChange>,
    pub(super) cudnn: Option<ValueChange>,
    pub(super) inside: Vec<ValueChange>,
    #[serde(rename = "from_elsewhere")]
    pub(super) elsewhere: Vec<ValueChange>,
    pub(super) requires: Vec<ValueChange>,
    #[serde(rename = "gpu_code")]
    pub(super) sizes: Vec<SizeChange>,
    pub(super) guard: Vec<GuardChange>,
    #[serde(rename = "lost")]
    pub(super) losses: Vec<Loss>,
}

impl ReleaseDiff {
    pub(super) fn new(old: ReleaseFacts, new: ReleaseFacts, policy: &ReleaseRequirements) -> Self {
        let ccs: BTreeSet<(u8, u8)> = old.gpus.iter().chain(&new.gpus).map(|gpu| gpu.cc).collect();
        let (mut gpus, mut drivers) = (Vec::new(), Vec::new());
        for cc in &ccs {
            // Code that was added to a package without any, or removed from one, is a change of every GPU.
            let change = GpuChange::new(*cc, Some(cc) == ccs.last(), old.gpu_state(*cc), new.gpu_state(*cc));
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
        let cudnn = (old.cudnn != new.cudnn).then(|| ValueChange {
            name: "cuDNN".to_owned(),
            old: old.cudnn.map(|version| version.to_string()).unwrap_or_default(),
            new: new.cudnn.map(|version| version.to_string()).unwrap_or_default(),
        });
        let mut archs: Vec<&String> = old.sizes.keys().chain(new.sizes.keys()).collect();
        archs.sort_by_key(|arch| {
            let digits: String = arch.chars().filter(char::is_ascii_digit).collect();
            (digits.parse::<u32>().unwrap_or_default(), *arch)
        });
        archs.dedup();
        let sizes = archs.into_iter().map(|arch| {
            let [old, new] = [&old, &new].map(|facts| facts.sizes.get(arch).copied().unwrap_or_default());
            SizeChange { arch: arch.clone(), old, new }
        });
        let sizes = sizes.collect();
        let files: BTreeSet<&String> = old.guarded.keys().chain(new.guarded.keys()).collect();
        let states = files.into_iter().map(|file| GuardChange {
            name: file.clone(),
            old: old.guarded.get(file).copied(),
            new: new.guarded.get(file).copied(),
        });
        let is_change = |one: &GuardChange| one.old.unwrap_or_default() != one.new.unwrap_or_default();
        let guard: Vec<_> = states.filter(is_change).collect();
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
        for change in self.gpus.iter().filter(|change| change.new.service < change.old.service) {
            // JIT instead of machine code still runs; unknown is reported by the status.
            let still_runs = matches!(change.new.service, Service::Native | Service::Jit | Service::Unknown);
            if !still_runs {
                losses.push(Loss {
                    kind: LossKind::Gpu,
                    subject: change.label(),
                    old: change.old.service.name().to_owned(),
                    new: change.new.service.name().to_owned(),
                    allowed: policy.allow_loss.contains(&LossKind::Gpu) || !is_required(policy, change.cc),
                });
            }
        }
        for change in self.gpus.iter().chain(&self.drivers) {
            let runs = change.old.service.min(change.new.service) > Service::Unknown;
            if runs && change.old.driver < change.new.driver {
                losses.push(Loss {
                    kind: LossKind::Driver,
                    subject: change.label(),
                    old: change.old.driver.map_or("any".to_owned(), describe_driver),
                    new: change.new.driver.map_or("any".to_owned(), describe_driver),
                    allowed: allows_driver(policy, change.new.driver) || !is_required(policy, change.cc),
                });
            }
        }
        if let Some(change) = self.driver.as_ref().filter(|_| self.old.driver < self.new.driver) {
            let (old, new) = (change.old.clone(), change.new.clone());
            let allowed = allows_driver(policy, self.new.driver);
            losses.push(Loss { kind: LossKind::Driver, subject: "any GPU".to_owned(), old, new, allowed });
        }
        if let Some(change) = self.cudnn.as_ref().filter(|_| self.old.cudnn < self.new.cudnn) {
            let below = policy.cudnn_floor.zip(self.new.cudnn).is_some_and(|(floor, new)| new <= floor);
            let old = if change.old.is_empty() { "none".to_owned() } else { change.old.clone() };
            let allowed = policy.allow_loss.contains(&LossKind::Cudnn) || below;
            losses.push(Loss {
                kind: LossKind::Cudnn,
                subject: "cuDNN".to_owned(),
                old,
                new: change.new.clone(),
                allowed,
            });
        }
        for change in self.guard.iter().filter(|change| change.old == Some(true)) {
            losses.push(Loss {
                kind: LossKind::Guard,
                subject: change.name.clone(),
                old: describe_guard(change.old).to_owned(),
                new: describe_guard(change.new).to_owned(),
                // A file that was removed or renamed is no loss by itself.
                allowed: policy.allow_loss.contains(&LossKind::Guard) || change.new.is_none(),
            });
        }
        losses
    }

    /// Returns false if something that could be a loss was not examined or is unknown.
    pub(super) fn is_known(&self) -> bool {
        examined::is_complete(&self.old.not_examined)
            && examined::is_complete(&self.new.not_examined)
            && !self.gpus.iter().any(|change| change.new.service == Service::Unknown)
    }
}

impl GpuChange {
    fn new(cc: (u8, u8), newer: bool, old: ComparedGpu, new: ComparedGpu) -> Self {
        let change = match (old.service, new.service) {
            (Service::None, new) if new != Service::None => "gained",
            (old, Service::None) if old != Service::None => "lost",
            (old, new) if old < new => "improved",
            (old, new) if old > new => "reduced",
            _ if old.driver < new.driver => "raised",
            _ => "lowered",
        };
        Self { cc, newer, name: tables::gpu_examples(cc).first().copied(), change, old, new }
    }

    /// `8.0 (A100)`.
    pub(super) fn label(&self) -> String {
        match self.name {
            _ if self.newer => format!("{} and newer", tables::dotted_cc(self.cc)),
            Some(name) => format!("{} ({name})", tables::dotted_cc(self.cc)),
            None => tables::dotted_cc(self.cc),
        }
    }
}

/// Describes whether a file is guarded; `None` if it is absent.
pub(super) const fn describe_guard(guarded: Option<bool>) -> &'static str {
    match guarded {
        None => "absent",
        Some(true) => "guarded",
        Some(false) => "not guarded",
    }
}

/// Names whose values differ.
fn changed_values(
    old: &BTreeMap<String, BTreeSet<String>>,
    new: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<ValueChange> {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut changes = Vec::new();
    for name in names.into_iter().filter(|name| old.get(*name) != new.get(*name)) {
        let [old, new] = [old, new]
            .map(|values| values.get(name).into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", "));
        changes.push(ValueChange { name: name.clone(), old, new });
    }
    changes
}

/// Returns true if the GPUs of this compute capability matter: those that run a required arch.
fn is_required(policy: &ReleaseRequirements, cc: (u8, u8)) -> bool {
    policy.archs.is_empty() || policy.archs.iter().any(|arch| arch.compatibility_with(cc) == Compatibility::Yes)
}

/// Returns true if a release may need this driver: it is not newer than the floor, or every driver may be needed.
fn allows_driver(policy: &ReleaseRequirements, driver: Option<OldestDriver>) -> bool {
    let supported = policy.driver_floor.and_then(|floor| tables::driver_supports(floor).least);
    policy.allow_loss.contains(&LossKind::Driver)
        || driver.zip(supported).is_some_and(|(driver, supported)| driver.cuda <= supported)
}
