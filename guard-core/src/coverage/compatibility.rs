//! Rules for which GPU can run which code.

use crate::knowledge::tables;
use crate::model::arch::{Suffix, Target};

/// The compatibility of code with a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compatibility {
    /// Incompatible.
    No,
    /// Unknown: neither documents nor measurements show it.
    CannotTell,
    /// Compatible.
    Yes,
}

impl Target {
    /// Returns whether a GPU of this cc can run the code by its architecture. Whether a driver compiles the PTX is
    /// determined by [`tables::ptx_floor`].
    ///
    /// The rules are those of NVIDIA's CUDA C++ programming guide, 6.1 (binary and PTX compatibility), and of families
    /// as ptxas 12.9 to 13.5 assembles them:
    /// - machine code: same major, minor not smaller, discrete GPUs only; on a Tegra exactly its own;
    /// - PTX: any GPU that is not older;
    /// - `a`, both kinds: exactly that cc; `f`: its family, minor not smaller.
    pub fn compatibility_with(self, cc: (u8, u8)) -> Compatibility {
        let arch = self.base_arch();
        let made_for = arch.cc();
        let same_major_not_older = made_for.0 == cc.0 && made_for.1 <= cc.1;
        match (self, arch.suffix) {
            (Self::Ptx(_), Suffix::None) if made_for <= cc => Compatibility::Yes,
            _ if made_for == cc => Compatibility::Yes,
            // A chip with two names: CUDA 12 calls it 10.1, CUDA 13 11.0. It is undocumented if code for one runs on
            // the other.
            _ if tables::same_chip(made_for, cc) => Compatibility::CannotTell,
            (_, Suffix::Specific) | (Self::Ptx(_), Suffix::None) => Compatibility::No,
            (Self::Cubin(_), Suffix::None) => {
                let discrete = !tables::is_tegra(made_for) && !tables::is_tegra(cc);
                if same_major_not_older && discrete { Compatibility::Yes } else { Compatibility::No }
            }
            (_, Suffix::Family) => match tables::same_family(made_for, cc) {
                Some(same) if same && made_for.1 <= cc.1 => Compatibility::Yes,
                None if same_major_not_older => Compatibility::CannotTell,
                _ => Compatibility::No,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::arch::Arch;
    use proptest::prelude::*;

    #[test]
    fn compatibility_follows_architecture() {
        use Compatibility::{CannotTell, No, Yes};
        for (target, cc, wanted) in [
            ("sm_80", (8, 0), Yes),
            ("sm_80", (8, 6), Yes),
            ("sm_86", (8, 9), Yes),
            ("sm_86", (8, 0), No),
            ("sm_89", (8, 6), No),
            ("sm_80", (9, 0), No),
            ("sm_80", (7, 5), No),
            // An arch that is in no document is treated as a discrete GPU.
            ("sm_86", (8, 8), Yes),
            ("sm_130", (13, 4), Yes),
            ("sm_130", (14, 0), No),
            // Tegra.
            ("sm_87", (8, 7), Yes),
            ("sm_87", (8, 9), No),
            ("sm_80", (8, 7), No),
            ("sm_72", (7, 5), No),
            ("compute_72", (7, 5), Yes),
            ("compute_80", (8, 7), Yes),
            // a
            ("sm_90a", (9, 0), Yes),
            ("sm_90a", (10, 0), No),
            ("sm_100a", (10, 3), No),
            ("compute_90a", (9, 0), Yes),
            ("compute_90a", (10, 0), No),
            // f
            ("sm_100f", (10, 0), Yes),
            ("sm_100f", (10, 3), Yes),
            ("sm_100f", (10, 7), Yes),
            ("sm_103f", (10, 0), No),
            ("sm_103f", (10, 7), Yes),
            ("sm_100f", (10, 1), No),
            ("sm_100f", (11, 0), No),
            ("sm_120f", (12, 1), Yes),
            ("compute_120f", (12, 1), Yes),
            ("compute_120f", (12, 0), Yes),
            ("compute_120f", (13, 0), No),
            ("sm_120f", (12, 5), CannotTell),
            ("sm_130f", (13, 1), CannotTell),
            ("sm_130f", (13, 0), Yes),
            ("sm_131f", (13, 0), No),
            // Two names of one chip.
            ("sm_101", (11, 0), CannotTell),
            ("sm_110", (10, 1), CannotTell),
            ("sm_101a", (11, 0), CannotTell),
            ("sm_101f", (11, 0), CannotTell),
            ("sm_101", (10, 1), Yes),
            ("sm_110", (11, 0), Yes),
            ("sm_101", (10, 3), No),
            // PTX
            ("compute_75", (7, 5), Yes),
            ("compute_75", (12, 1), Yes),
            ("compute_75", (7, 0), No),
            ("compute_90", (13, 0), Yes),
            ("compute_101", (11, 0), Yes),
            ("compute_110", (10, 1), CannotTell),
        ] {
            assert_eq!(target.parse::<Target>().unwrap().compatibility_with(cc), wanted, "{target} on {cc:?}");
        }
    }

    fn any_arch() -> impl Strategy<Value = Arch> {
        let suffix = prop_oneof![Just(Suffix::None), Just(Suffix::Family), Just(Suffix::Specific)];
        (10u16..1000, suffix).prop_map(|(number, suffix)| Arch { number, suffix })
    }

    proptest! {
        /// An unknown arch always runs on its own GPU and never on an older one.
        #[test]
        fn code_excludes_older_gpus(arch in any_arch(), older in 1u16..40) {
            for target in [Target::Cubin(arch), Target::Ptx(arch)] {
                prop_assert_eq!(target.compatibility_with(arch.cc()), Compatibility::Yes);
                let cc = Arch::without_suffix(arch.number.saturating_sub(older)).cc();
                if !tables::same_chip(arch.cc(), cc) {
                    prop_assert_eq!(target.compatibility_with(cc), Compatibility::No);
                }
            }
        }
    }
}
