//! PCI device ids of NVIDIA GPUs and their compute capabilities. An id outside of the ranges is unknown.

use std::sync::OnceLock;

use toml::de::{DeTable, DeValue};

/// A range of ids: first, last, compute capability.
pub(crate) type Range = (u16, u16, (u8, u8));

pub(crate) fn device_ranges() -> &'static [Range] {
    static TABLE: OnceLock<Vec<Range>> = OnceLock::new();
    // The tests parse the table, so an error is a bug in this crate.
    TABLE.get_or_init(|| {
        parse_ranges(include_str!("../../../data/pci.toml")).unwrap_or_else(|| unreachable!("data/pci.toml"))
    })
}

fn parse_ranges(text: &str) -> Option<Vec<Range>> {
    let whole = DeTable::parse(text).ok()?;
    let rows = whole.get_ref().get("table")?.get_ref().as_table()?.get("range")?.get_ref().as_array()?;
    rows.iter().map(|row| parse_range(row.get_ref().as_table()?)).collect()
}

fn parse_range(row: &DeTable<'_>) -> Option<Range> {
    let id = |key: &str| match row.get(key)?.get_ref() {
        DeValue::Integer(number) => u16::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    };
    let (major, minor) = row.get("cc")?.get_ref().as_str()?.split_once('.')?;
    Some((id("first")?, id("last")?, (major.parse().ok()?, minor.parse().ok()?)))
}

/// Returns the compute capability of a device id of vendor 0x10de, as in `/sys/bus/pci/devices/*/device`.
pub fn compute_capability(device: u16) -> Option<(u8, u8)> {
    device_ranges().iter().find(|(first, last, _)| (*first..=*last).contains(&device)).map(|(.., cc)| *cc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_sorted_and_disjoint() {
        assert!(device_ranges().len() > 50);
        for pair in device_ranges().windows(2) {
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
