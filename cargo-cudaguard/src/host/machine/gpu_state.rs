//! States of a GPU in which no CUDA program can use it.

use serde::Serialize;

/// A state that a driver reports for a GPU. If a GPU is in several states, the last of them is the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GpuState {
    /// Its compute mode is Prohibited.
    ComputeProhibited,
    /// MIG is enabled, and it has no MIG instance.
    MigWithoutInstances,
    /// It must be reset.
    ResetRequired,
    /// The driver cannot reach it any more.
    Lost,
}

impl GpuState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::ComputeProhibited, Self::MigWithoutInstances, Self::ResetRequired, Self::Lost];

    /// Returns the name that the host file uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ComputeProhibited => "compute-prohibited",
            Self::MigWithoutInstances => "mig-without-instances",
            Self::ResetRequired => "reset-required",
            Self::Lost => "lost",
        }
    }

    /// Returns the state with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Returns the reason why no CUDA program can use the GPU.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::ComputeProhibited => "its compute mode is Prohibited",
            Self::MigWithoutInstances => "MIG is enabled and it has no MIG instance",
            Self::ResetRequired => "it must be reset",
            Self::Lost => "the driver has lost it",
        }
    }
}
