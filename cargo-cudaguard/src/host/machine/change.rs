//! Finds the fewest changes to a machine or to files after which the machine no longer refuses the files. Each
//! candidate is verified with the checks.

use crate::verdict::{Verdict, is_about_cudnn};
use std::collections::HashMap;

use super::{Components, Driver, HostLibrary, Machine};
use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::finding::{Code, Finding};
use cudaguard::internal::manifest::Requirement;
use cudaguard::internal::tables;
use cudaguard::internal::version::{DriverRelease, Version};

/// The fewest changes after which a machine refuses none of the files. A `None` field needs no change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Driver of this branch or newer.
    pub driver: Option<u32>,
    /// cuDNN of this release or a newer one of its major.
    pub library: Option<Version>,
    /// Device code for this compute capability.
    pub code: Option<(u8, u8)>,
}

/// Errors that remain after some changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RemainingErrors {
    Nothing,
    /// Only errors for missing device code.
    Code,
    Other,
}

impl Change {
    /// Describes the changes: `driver 550 or newer`, `driver 580 or newer, and code for 7.5 (sm_75)`.
    pub fn describe(self) -> String {
        let driver = self.driver.map(|branch| format!("driver {branch} or newer"));
        let library = self.library.map(|version| format!("{} {version} or newer", CUDNN.name));
        let code = self.code.map(|cc| format!("code for {}.{} ({})", cc.0, cc.1, tables::code_to_add(cc)));
        [driver, library, code].into_iter().flatten().collect::<Vec<_>>().join(", and ")
    }

    /// Returns the number of changes.
    pub fn change_count(self) -> usize {
        usize::from(self.driver.is_some()) + usize::from(self.library.is_some()) + usize::from(self.code.is_some())
    }

    /// Returns the smallest set of changes that suffices. Sets of the same size are tried in a fixed order: those
    /// without a change of the library first, then older drivers first. Returns `None` if nothing is refused or no such
    /// set suffices.
    pub(super) fn fewest_changes(files: &[&Components], machine: &Machine, findings: &[Finding]) -> Option<Self> {
        let refusing: Vec<&Finding> = findings.iter().filter(|finding| is_refusal(finding)).collect();
        // A newer driver does not fix a driver that does not work, so only codes about an old or missing driver count.
        let about_old_driver = [
            Code::DriverTooOld,
            Code::DriverTooOldForCode,
            Code::DriverMissing,
            Code::CudnnNeedsNewerDriver,
            Code::GpuNotForDriver,
        ];
        let mut drivers = vec![None];
        if refusing.iter().any(|finding| about_old_driver.contains(&finding.code)) {
            let own = machine.driver.as_ref().and_then(|driver| driver.user.or(driver.kernel));
            let branches = tables::branch_rows().iter().filter(|row| row.exact).map(|row| row.branch);
            drivers.extend(branches.filter(|branch| own.is_none_or(|own| *branch > own.branch)).map(Some));
        }
        let mut libraries = vec![None];
        if refusing.iter().any(|finding| is_about_cudnn(finding.code)) {
            libraries.extend(oldest_library(files).map(Some));
        }
        let newest = machine.visible_ccs().into_iter().max();
        let mut known = HashMap::new();
        for count in 1..=3 {
            for &library in &libraries {
                for &driver in &drivers {
                    for code in [None, newest] {
                        let change = Self { driver, library, code };
                        if change.change_count() != count {
                            continue;
                        }
                        let left =
                            *known.entry((driver, library)).or_insert_with(|| remaining_errors(files, machine, change));
                        if left == if code.is_some() { RemainingErrors::Code } else { RemainingErrors::Nothing } {
                            return Some(change);
                        }
                    }
                }
            }
        }
        None
    }
}

fn is_refusal(finding: &Finding) -> bool {
    Verdict::from_findings([finding]) == Verdict::Refused
}

/// Returns the oldest cuDNN release that is new enough for all files.
fn oldest_library(files: &[&Components]) -> Option<Version> {
    let rows = files.iter().flat_map(|file| &file.manifests).flat_map(|manifest| &manifest.requires);
    rows.filter_map(|row| if let Requirement::Library { min, .. } = row { Some(*min) } else { None }).max()
}

/// Returns the errors that remain with the driver and library of `change`.
fn remaining_errors(files: &[&Components], machine: &Machine, change: Change) -> RemainingErrors {
    let mut machine = machine.clone();
    if let Some(branch) = change.driver {
        let release = Some(DriverRelease::new(branch, 0, 0));
        machine = machine.with_driver(Driver { user: release, kernel: release, ..Driver::default() });
    }
    if let Some(version) = change.library {
        let library = HostLibrary { version: Some(version), taken: true, ..HostLibrary::default() };
        machine.libraries.insert(CUDNN.key, vec![library]);
    }
    let mut left = RemainingErrors::Nothing;
    for finding in files.iter().flat_map(|file| file.check_on(&machine, "that machine")).filter(is_refusal) {
        match finding.code {
            Code::NoCodeForGpu | Code::PartialCode => left = RemainingErrors::Code,
            _ => return RemainingErrors::Other,
        }
    }
    left
}
