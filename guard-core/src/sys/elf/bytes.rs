//! Numbers and strings in the bytes of a file.

use std::ffi::CStr;

/// Maximum length of a symbol, soname or path. Tools write none that is longer; the limit keeps the search for its end
/// in a damaged table short.
pub const LONGEST_TEXT: usize = 1 << 16;

pub(super) fn slice_at(data: &[u8], at: u64, size: u64) -> Option<&[u8]> {
    let start = usize::try_from(at).ok()?;
    data.get(start..start.checked_add(usize::try_from(size).ok()?)?)
}

/// Reads two bytes.
pub fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(data.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

/// Reads four bytes.
pub fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(data.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Reads eight bytes.
pub fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(data.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// Reads a number of the file's word size.
pub fn word_at(data: &[u8], at: usize, class64: bool) -> Option<u64> {
    if class64 { u64_at(data, at) } else { u32_at(data, at).map(u64::from) }
}

/// Reads a NUL-terminated text in a table.
pub fn text_at(table: &[u8], at: u64) -> Option<&[u8]> {
    text_within(table, at, LONGEST_TEXT)
}

pub(super) fn text_within(table: &[u8], at: u64, longest: usize) -> Option<&[u8]> {
    let rest = table.get(usize::try_from(at).ok()?..)?;
    CStr::from_bytes_until_nul(&rest[..rest.len().min(longest)]).ok().map(CStr::to_bytes)
}

/// A string table with a read limit. In a damaged file, names may overlap; the limit keeps the number of bytes read in
/// proportion to the table's size and the number of names.
pub(super) struct StringTable<'data> {
    table: &'data [u8],
    left: usize,
}

impl<'data> StringTable<'data> {
    /// `PAID`: bytes that each entry adds to the limit. `SHARED`: how often linkers let names share their ends
    /// (`.rela.text.f`).
    const PAID: usize = 64;
    const SHARED: usize = 8;

    pub(super) fn new(table: &'data [u8], count: u64) -> Self {
        let paid = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(Self::PAID);
        Self { table, left: table.len().saturating_mul(Self::SHARED).saturating_add(paid) }
    }

    pub(super) fn name_at(&mut self, at: u64) -> Option<&'data [u8]> {
        if self.left == 0 {
            return None;
        }
        let name = text_at(self.table, at);
        self.left = self.left.saturating_sub(name.map_or(LONGEST_TEXT, <[u8]>::len) + 1);
        name
    }
}

/// Returns, for each piece of a file (offset, length), the number of bytes at its start that an earlier piece also
/// contains. A caller that skips these reads each byte once. Linkers do not let sections overlap, but a damaged file
/// may have a thousand overlapping sections.
pub fn read_before(pieces: &[(u64, usize)]) -> Vec<usize> {
    let mut order = (0..pieces.len()).collect::<Vec<_>>();
    order.sort_by_key(|at| pieces[*at].0);
    let mut read = 0;
    let mut known = vec![0; pieces.len()];
    for at in order {
        let (offset, length) = pieces[at];
        known[at] = usize::try_from(read.max(offset) - offset).unwrap_or(usize::MAX).min(length);
        read = read.max(offset.saturating_add(length as u64));
    }
    known
}

/// Returns true if the NUL-terminated text at this offset is `name`. Does not search for the end of the text.
pub fn text_is(table: &[u8], at: u64, name: &[u8]) -> bool {
    usize::try_from(at)
        .ok()
        .and_then(|at| table.get(at..))
        .is_some_and(|rest| rest.get(name.len()) == Some(&0) && rest.starts_with(name))
}
