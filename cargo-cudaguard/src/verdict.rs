//! The verdict for a program on a machine, from its findings.

use cudaguard::internal::finding::{Code, Effect, Finding, Severity};
use cudaguard::internal::manifest::Manifest;

/// Result for a program on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It runs: the machine fulfils all requirements.
    Runs,
    /// Unknown, because a fact cannot be determined.
    Unknown,
    /// It does not start, or it does not work.
    Refused,
}

impl Verdict {
    /// Returns the verdict of these findings. The shim applies the same rule, generated from the same table.
    pub fn from_findings<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        let one = |finding: &Finding| match finding.code.effect() {
            Effect::Refuses if finding.severity == Severity::Error => Self::Refused,
            Effect::Open => Self::Unknown,
            Effect::Refuses | Effect::Informs => Self::Runs,
        };
        findings.into_iter().map(one).max().unwrap_or(Self::Runs)
    }

    /// Returns the name: `runs`, `unknown`, `refused`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Unknown => "unknown",
            Self::Refused => "refused",
        }
    }
}

/// Returns true if the code is about driver and GPU. A refusal with such a code needs the answer of the real driver.
pub(crate) const fn is_about_driver_or_gpu(code: Code) -> bool {
    matches!(code as u16, 300..=399)
}

/// Returns true if the dynamic linker reports the problem and ends the program.
pub(crate) const fn is_reported_by_loader(code: Code) -> bool {
    matches!(code as u16, 210..=214)
}

/// Marks the errors and warnings that neither the guard of a program nor the dynamic linker reports when it starts. Does
/// nothing if no file has a guard.
pub(crate) fn mark_unchecked(findings: &mut [Finding], manifests: &[Manifest]) {
    if manifests.iter().all(|manifest| manifest.component.is_unrecorded()) {
        return;
    }
    for finding in findings {
        let is_checked = is_reported_at_start(finding, manifests);
        if finding.severity > Severity::Info && finding.code.effect() == Effect::Refuses && !is_checked {
            finding.mark_unchecked_at_start();
        }
    }
}

/// Returns true if the dynamic linker, or the guard of one of these components, reports an error when a program starts.
fn is_reported_at_start(finding: &Finding, manifests: &[Manifest]) -> bool {
    if finding.code == Code::LibraryLacksSymbol && finding.fact("later").is_some() {
        return false;
    }
    let mut guarded = manifests.iter().filter(|manifest| !manifest.component.is_unrecorded());
    is_reported_by_loader(finding.code)
        || finding.code.is_judged_at_start()
            && guarded.any(|manifest| manifest.component.to_string() == finding.component)
}

/// Returns true if the code is only about the release of cuDNN.
pub(crate) const fn is_about_cudnn(code: Code) -> bool {
    matches!(code as u16, 201..=207) || matches!(code, Code::CudnnCannotTell)
}
