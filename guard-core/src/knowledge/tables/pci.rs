//! PCI device ids of NVIDIA GPUs and their compute capabilities. An id outside of the ranges is unknown.

pub(crate) use super::PCI_RANGES;

/// A range of ids: first, last, compute capability.
pub(crate) type Range = (u16, u16, (u8, u8));

/// Returns the compute capability of a device id of vendor 0x10de, as in `/sys/bus/pci/devices/*/device`.
pub fn compute_capability(device: u16) -> Option<(u8, u8)> {
    PCI_RANGES.iter().find(|(first, last, _)| (*first..=*last).contains(&device)).map(|(.., cc)| *cc)
}

/// Returns a device id of this compute capability.
pub fn device_of(cc: (u8, u8)) -> Option<u16> {
    PCI_RANGES.iter().find(|(.., known)| *known == cc).map(|(first, ..)| *first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_sorted_and_disjoint() {
        assert!(PCI_RANGES.len() > 50);
        for pair in PCI_RANGES.windows(2) {
            assert!(pair[0].0 <= pair[0].1 && pair[0].1 < pair[1].0, "{pair:x?}");
        }
    }

    #[test]
    fn known_cards_are_found() {
        // T4, A100, H100 and H200, by the PCI id database.
        for (id, expected) in [
            (0x1eb8, Some((7, 5))),
            (0x20b0, Some((8, 0))),
            (0x2330, Some((9, 0))),
            (0x2335, Some((9, 0))),
            (0x128b, Some((3, 5))),
            (0xffff, None),
            (0, None),
        ] {
            assert_eq!(compute_capability(id), expected, "{id:x}");
        }
    }
}
