//! Reads `/etc/ld.so.cache` as glibc's ldconfig writes it: `glibc-ld.so.cache1.1`, alone or after the old format.
//!
//! Source of the rules: glibc, `elf/cache.c`, `elf/dl-cache.c` and `sysdeps/generic/dl-cache.h`.

use crate::binary::elf::{text_at, text_is};
use cudaguard::internal::bytes::u32_at;

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const OLD_MAGIC: &[u8] = b"ld.so-1.7.0";
const HEADER: usize = 48;
const ENTRY: usize = 24;
const EXTENSION_MAGIC: u32 = 0xeaa4_2174;
const HWCAPS_TAG: u32 = 1;
/// The entry is in a `glibc-hwcaps` directory; the low half is the index of its name.
const HWCAP_EXTENSION: u64 = 1 << 62;

/// An entry of the cache: one line of `ldconfig -p`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CacheEntry<'data> {
    /// Path of the file.
    pub(super) path: &'data [u8],
    /// Kind of program that can load the file: `FLAG_ELF_LIBC6` and the bits of the machine.
    pub(super) flags: u32,
    /// Name of the directory below `glibc-hwcaps` that contains the file.
    pub(super) hwcaps: Option<&'data [u8]>,
    /// Bits of the hardware directories of the old kind.
    pub(super) legacy: u64,
}

/// Returns the part in the new format.
fn new_format(data: &[u8]) -> Option<&[u8]> {
    if data.starts_with(MAGIC) {
        return Some(data);
    }
    if !data.starts_with(OLD_MAGIC) {
        return None;
    }
    // 12 bytes of name, the number of entries, 12 bytes each; the new part starts at the next multiple of 8.
    let count = usize::try_from(u32_at(data, 12)?).ok()?;
    let end = count.checked_mul(12)?.checked_add(16)?.checked_next_multiple_of(8)?;
    data.get(end..).filter(|rest| rest.starts_with(MAGIC))
}

/// Returns the name of the directory below `glibc-hwcaps` with this index.
fn hwcaps_name(data: &[u8], wanted: u32) -> Option<&[u8]> {
    let at = usize::try_from(u32_at(data, 32)?).ok()?;
    if at == 0 || u32_at(data, at)? != EXTENSION_MAGIC {
        return None;
    }
    let sections = usize::try_from(u32_at(data, at + 4)?).ok()?;
    let table = data.get(at + 8..)?;
    let section = table.chunks_exact(16).take(sections).find(|section| u32_at(section, 0) == Some(HWCAPS_TAG))?;
    let (offset, size) = (u32_at(section, 8)?, u32_at(section, 12)?);
    if wanted >= size / 4 {
        return None;
    }
    text_at(data, u32_at(data, usize::try_from(offset.checked_add(wanted.checked_mul(4)?)?).ok()?)?)
}

/// Returns the bytes of each entry. Empty if the data are not a cache in the new format.
fn entries(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let count = u32_at(data, 20).and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
    data.get(HEADER..).unwrap_or_default().chunks_exact(ENTRY).take(count)
}

/// Returns the names of all entries that are UTF-8.
pub(super) fn names(data: &[u8]) -> impl Iterator<Item = &str> {
    let data = new_format(data).unwrap_or_default();
    entries(data).filter_map(|entry| std::str::from_utf8(text_at(data, u32_at(entry, 4)?)?).ok())
}

/// Returns the entries for a name, in cache order. Empty if the file is not a cache.
pub(super) fn lookup_entries<'data>(data: &'data [u8], name: &[u8]) -> Vec<CacheEntry<'data>> {
    let Some(data) = new_format(data) else { return Vec::new() };
    // The cache is sorted in a special order; a linear search of a few thousand entries does not depend on it.
    entries(data)
        .filter(|entry| u32_at(entry, 4).is_some_and(|key| text_is(data, key, name)))
        .filter_map(|entry| {
            let low = u32_at(entry, 16)?;
            let hwcap = u64::from(low) | u64::from(u32_at(entry, 20)?) << 32;
            let extended = hwcap & HWCAP_EXTENSION != 0;
            Some(CacheEntry {
                path: text_at(data, u32_at(entry, 8)?)?,
                flags: u32_at(entry, 0)?,
                hwcaps: if extended { Some(hwcaps_name(data, low)?) } else { None },
                legacy: if extended { 0 } else { hwcap },
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a cache of these (name, path, flags, hwcaps) entries.
    fn written(entries: &[(&str, &str, u32, Option<u32>)], hwcaps: &[&str]) -> Vec<u8> {
        let mut strings = Vec::new();
        let base = HEADER + entries.len() * ENTRY;
        let mut put = |text: &str| {
            let at = base + strings.len();
            strings.extend(text.bytes());
            strings.push(0);
            u32::try_from(at).unwrap().to_le_bytes()
        };
        let mut table = Vec::new();
        for (name, path, flags, hwcap) in entries {
            table.extend(flags.to_le_bytes());
            table.extend(put(name));
            table.extend(put(path));
            table.extend(0_u32.to_le_bytes());
            table.extend(hwcap.map_or(0, |index| HWCAP_EXTENSION | u64::from(index)).to_le_bytes());
        }
        let names: Vec<u8> = hwcaps.iter().flat_map(|name| put(name)).collect();
        while !(base + strings.len()).is_multiple_of(4) {
            strings.push(0);
        }
        let extension = base + strings.len();
        let mut data = MAGIC.to_vec();
        data.extend(u32::try_from(entries.len()).unwrap().to_le_bytes());
        data.extend(u32::try_from(strings.len()).unwrap().to_le_bytes());
        data.extend(2_u32.to_le_bytes());
        data.extend(u32::try_from(extension).unwrap().to_le_bytes());
        data.resize(HEADER, 0);
        data.extend(table);
        data.extend(strings);
        data.extend(EXTENSION_MAGIC.to_le_bytes());
        data.extend(1_u32.to_le_bytes());
        for number in [HWCAPS_TAG, 0, u32::try_from(extension).unwrap() + 24, u32::try_from(names.len()).unwrap()] {
            data.extend(number.to_le_bytes());
        }
        data.extend(names);
        data
    }

    #[test]
    fn cache_formats_and_hwcaps_are_read() {
        let new = written(
            &[
                ("libx.so.1", "/lib/glibc-hwcaps/x86-64-v3/libx.so.1", 0x303, Some(0)),
                ("libx.so.1", "/lib/libx.so.1", 0x303, None),
                ("libx.so.1", "/lib32/libx.so.1", 3, None),
                ("libx.so.11", "/lib/libx.so.11", 0x303, None),
            ],
            &["x86-64-v3"],
        );
        let mut old = OLD_MAGIC.to_vec();
        old.push(0);
        old.extend(1_u32.to_le_bytes());
        old.resize(32, 7);
        old.extend(&new);
        for data in [&new, &old] {
            let found = lookup_entries(data, b"libx.so.1");
            assert_eq!(found.len(), 3);
            assert_eq!(found[0].hwcaps, Some(&b"x86-64-v3"[..]));
            assert_eq!((found[1].path, found[1].hwcaps, found[1].flags), (&b"/lib/libx.so.1"[..], None, 0x303));
            assert_eq!(found[2].flags, 3);
            assert!(lookup_entries(data, b"libx.so").is_empty());
            assert_eq!(names(data).collect::<Vec<_>>(), ["libx.so.1", "libx.so.1", "libx.so.1", "libx.so.11"]);
        }
    }

    #[test]
    fn damaged_entries_are_skipped() {
        let whole = written(&[("liba.so", "/lib/liba.so", 0x303, Some(0))], &["x86-64-v2"]);
        assert_eq!(lookup_entries(&whole, b"liba.so").len(), 1);
        for end in 0..whole.len() {
            lookup_entries(&whole[..end], b"liba.so");
            assert!(names(&whole[..end]).count() <= 1);
        }
        for at in 0..whole.len() {
            for byte in [0, 0xff] {
                let mut bad = whole.clone();
                bad[at] = byte;
                lookup_entries(&bad, b"liba.so");
            }
        }
        assert!(lookup_entries(b"", b"liba.so").is_empty());
    }
}
