//! The verdict for a program on a machine, from its findings.

use cudaguard::internal::finding::{Code, Effect, Finding, Severity};

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

/// Returns true if the code is only about the release of cuDNN.
pub(crate) const fn is_about_cudnn(code: Code) -> bool {
    matches!(code as u16, 201..=207) || matches!(code, Code::CudnnCannotTell)
}
