//! GPU architectures, in every spelling that tools use.

use std::fmt;

/// `90a`: the number of an `sm_` or `compute_` name, with its suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch {
    /// 75, 90, 100, 120: ten times the major plus the minor.
    pub number: u16,
    /// What limits it.
    pub suffix: Suffix,
}

/// The letter behind an arch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Suffix {
    /// None: forward compatible by the general rule.
    #[default]
    None,
    /// `f`: its family.
    Family,
    /// `a`: exactly this cc.
    Specific,
}

/// One thing to build for: machine code or PTX of an arch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// `sm_90a`.
    Cubin(Arch),
    /// `compute_90`.
    Ptx(Arch),
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.suffix {
            Suffix::None => "",
            Suffix::Family => "f",
            Suffix::Specific => "a",
        };
        write!(f, "{}{suffix}", self.number)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cubin(arch) => write!(f, "sm_{arch}"),
            Self::Ptx(arch) => write!(f, "compute_{arch}"),
        }
    }
}

impl Arch {
    /// (major, minor) of the compute capability it is named after: 90 → 9.0, 103 → 10.3.
    pub const fn cc(self) -> (u8, u8) {
        #[allow(clippy::cast_possible_truncation)]
        ((self.number / 10) as u8, (self.number % 10) as u8)
    }
}
