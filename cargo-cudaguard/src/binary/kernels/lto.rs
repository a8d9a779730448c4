//! Parses the header of bare LTO-IR, as `nvcc -dlto -ltoir` writes it.
//!
//! Source of the layout: files that nvcc 13.0 and 13.5 wrote for archs 75 to 121.

use super::fatbin;
use cudaguard::internal::arch::{Arch, Suffix};

/// Magic bytes at the start.
pub(super) const MAGIC: [u8; 4] = [0xed, 0x43, 0x4e, 0x7f];
/// Offset of the arch, which is stored times ten.
const ARCH: usize = 26;
/// Offset of an option and its value, which are present for `lto_90a` only.
const OPTION: usize = 32;
const SPECIFIC: u32 = 0x0001_0020;

/// Returns the arch, or `None` if the data is not LTO-IR.
pub(super) fn read_lto_arch(data: &[u8]) -> Option<Arch> {
    if !data.starts_with(&MAGIC) {
        return None;
    }
    let number = Some(fatbin::u16_at(data, ARCH)? / 10).filter(|number| fatbin::is_possible_arch(*number))?;
    let specific = fatbin::u32_at(data, OPTION) == Some(SPECIFIC);
    Some(Arch { number, suffix: if specific { Suffix::Specific } else { Suffix::None } })
}
