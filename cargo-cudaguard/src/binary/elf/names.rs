//! Texts in the string tables of a file, with bounds for damaged tables.

use std::ffi::CStr;

/// Maximum length of a symbol, soname or path. Tools write none that is longer; the limit keeps the search for its end
/// in a damaged table short.
pub(crate) const LONGEST_TEXT: usize = 1 << 16;

/// Reads a NUL-terminated text in a table.
pub(crate) fn text_at(table: &[u8], at: u32) -> Option<&[u8]> {
    let rest = table.get(at as usize..)?;
    CStr::from_bytes_until_nul(&rest[..rest.len().min(LONGEST_TEXT)]).ok().map(CStr::to_bytes)
}

/// Returns true if the NUL-terminated text at this offset is `name`. Does not search for the end of the text.
pub(crate) fn text_is(table: &[u8], at: u32, name: &[u8]) -> bool {
    table.get(at as usize..).is_some_and(|rest| rest.get(name.len()) == Some(&0) && rest.starts_with(name))
}

/// Reads names in a string table, up to a limit. In a damaged file, names may overlap; the limit keeps the number of bytes
/// read in proportion to the table's size and the number of names.
pub(super) struct NameReader<'data> {
    table: &'data [u8],
    left: usize,
}

impl<'data> NameReader<'data> {
    /// `PAID`: bytes that each entry adds to the limit. `SHARED`: how often linkers let names share their ends
    /// (`.rela.text.f`).
    const PAID: usize = 64;
    const SHARED: usize = 8;

    pub(super) fn new(table: &'data [u8], count: usize) -> Self {
        let paid = count.saturating_mul(Self::PAID);
        Self { table, left: table.len().saturating_mul(Self::SHARED).saturating_add(paid) }
    }

    pub(super) fn name_at(&mut self, at: u32) -> Option<&'data [u8]> {
        if self.left == 0 {
            return None;
        }
        let name = text_at(self.table, at);
        let searched = self.table.get(at as usize..).map_or(0, |rest| rest.len().min(LONGEST_TEXT));
        self.left = self.left.saturating_sub(name.map_or(searched, <[u8]>::len) + 1);
        name
    }
}

/// Returns pieces of a file, (offset, bytes), without the bytes at their start that an earlier piece also contains, so that
/// each byte is read once. Linkers do not let sections overlap, but a damaged file may have a thousand overlapping
/// sections.
pub(crate) fn without_overlaps<'data>(pieces: impl Iterator<Item = (u64, &'data [u8])>) -> Vec<&'data [u8]> {
    let mut pieces: Vec<_> = pieces.enumerate().collect();
    pieces.sort_by_key(|(_, (offset, _))| *offset);
    let mut read = 0;
    let mut rests = vec![&[][..]; pieces.len()];
    for (at, (offset, data)) in pieces {
        let known = usize::try_from(read.max(offset) - offset).unwrap_or(usize::MAX).min(data.len());
        rests[at] = &data[known..];
        read = read.max(offset.saturating_add(data.len() as u64));
    }
    rests
}
