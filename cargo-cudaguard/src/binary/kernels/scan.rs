//! Searches data for GPU code that is not in a section for it, at the speed of memory.

use std::ops::Range;
use std::sync::OnceLock;

use crate::binary::searcher::Searcher;

/// The kind of mark that was found. The caller must parse what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    /// The magic bytes of a fatbin container.
    Fatbin,
    /// The magic bytes of an ELF image.
    Elf,
    /// `.version` and a blank.
    Ptx,
    /// The magic bytes of a gzip stream.
    Gzip,
}

/// The positions to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    /// Every byte: `include_bytes!` and `.incbin` do not align data.
    Anywhere,
    /// Multiples of [`ALIGNED`], for fatbins and ELF images only; no text.
    Aligned,
}

/// Minimum alignment of the containers that compilers and assemblers write.
pub(super) const ALIGNED: u64 = 4;

const PTX: &[u8] = b".version";
const GZIP: &[u8] = b"\x1f\x8b\x08";
const MARKS: [(&[u8], Hit); 4] =
    [(&super::fatbin::MAGIC, Hit::Fatbin), (b"\x7fELF", Hit::Elf), (PTX, Hit::Ptx), (GZIP, Hit::Gzip)];
/// [`PTX`] and a blank.
const LONGEST_MARK: usize = 9;

/// A search through a section, from its beginning to its end. The section may be mapped from a file.
pub(super) struct MarkSearch<'data> {
    data: &'data [u8],
    marks: Marks,
    /// The mapping, and the offset of the section in it.
    map: Option<(&'data memmap2::Mmap, usize)>,
    /// End of the pages that were populated, and the number of bytes to populate next.
    present: usize,
    ahead: usize,
}

/// Number of bytes to populate at once: few after a container, because another one may follow, which is skipped without
/// reading it.
const AHEAD: Range<usize> = 64 << 10..4 << 20;

impl<'data> MarkSearch<'data> {
    pub(super) fn new(data: &'data [u8], marks: Marks, map: Option<(&'data memmap2::Mmap, usize)>) -> Self {
        Self { data, marks, map, present: 0, ahead: AHEAD.start }
    }

    /// Returns the next position at or after `from` of one of the marks.
    pub(super) fn next_hit(&mut self, from: usize) -> Option<(usize, Hit)> {
        let Some((map, base)) = self.map else { return next_hit(self.data, from..self.data.len(), self.marks) };
        let mut at = from;
        while at < self.data.len() {
            if at > self.present {
                self.ahead = AHEAD.start;
            }
            if at >= self.present {
                self.present = at.saturating_add(self.ahead).min(self.data.len());
                populate_pages(map, base.saturating_add(at), self.present - at);
                self.ahead = (self.ahead * 2).min(AHEAD.end);
            }
            let hit = next_hit(self.data, at..self.present, self.marks);
            if hit.is_some() {
                return hit;
            }
            at = self.present;
        }
        None
    }
}

/// Maps the pages of a range in one call: page faults, one for every few pages, cost more than the search.
fn populate_pages(map: &memmap2::Mmap, at: usize, length: usize) {
    // If the kernel does not support it (Linux before 5.14), page faults load the pages.
    #[cfg(target_os = "linux")]
    let _ = map.advise_range(memmap2::Advice::PopulateRead, at, length);
    #[cfg(not(target_os = "linux"))]
    let _ = (map, at, length);
}

/// Returns the first position in a range at which a mark begins; the mark may end after the range.
pub(super) fn next_hit(data: &[u8], range: Range<usize>, marks: Marks) -> Option<(usize, Hit)> {
    static SEARCHER: OnceLock<Searcher> = OnceLock::new();
    let searcher = SEARCHER.get_or_init(|| Searcher::new(&MARKS.map(|(text, _)| text)));
    let to = range.end.min(data.len());
    let data = &data[..to.saturating_add(LONGEST_MARK).min(data.len())];
    let mut from = range.start;
    while let Some((text, at)) = searcher.find(data, from).filter(|(_, at)| *at < to) {
        let hit = MARKS[text].1;
        let is_mark = match marks {
            Marks::Aligned => !matches!(hit, Hit::Ptx | Hit::Gzip) && (at as u64).is_multiple_of(ALIGNED),
            Marks::Anywhere if hit == Hit::Ptx => data.get(at + PTX.len()).is_some_and(u8::is_ascii_whitespace),
            Marks::Anywhere => true,
        };
        if is_mark {
            return Some((at, hit));
        }
        from = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn scan_matches_slow_search(
            noise in proptest::collection::vec(prop_oneof![Just(b'.'), Just(b'v'), Just(0x50), Just(0x7f), any::<u8>()], 0..1400),
            marks in proptest::collection::vec((0usize..1400, 0usize..4), 0..4),
            from in prop_oneof![Just(0usize), 0usize..700],
            to in prop_oneof![Just(usize::MAX), 0usize..1400],
        ) {
            let mut data = noise;
            for (at, which) in marks {
                let mark: &[u8] = [&super::super::fatbin::MAGIC[..], b"\x7fELF", b".version ", GZIP][which];
                if at + mark.len() <= data.len() {
                    data[at..at + mark.len()].copy_from_slice(mark);
                }
            }
            for marks in [Marks::Anywhere, Marks::Aligned] {
                let step = if marks == Marks::Aligned { 4 } else { 1 };
                let slowly = |at: usize| {
                    (at.next_multiple_of(step)..to.min(data.len())).step_by(step).find_map(|at| {
                        let rest = &data[at..];
                        let is_ptx = step == 1 && rest.starts_with(b".version") && rest.get(8).is_some_and(u8::is_ascii_whitespace);
                        let marks = [
                            (rest.starts_with(&super::super::fatbin::MAGIC), Hit::Fatbin),
                            (rest.starts_with(b"\x7fELF"), Hit::Elf),
                            (is_ptx, Hit::Ptx),
                            (step == 1 && rest.starts_with(GZIP), Hit::Gzip),
                        ];
                        marks.into_iter().find(|(is_here, _)| *is_here).map(|(_, hit)| (at, hit))
                    })
                };
                let mut at = from;
                while let Some((hit, what)) = next_hit(&data, at..to, marks) {
                    prop_assert_eq!(slowly(at), Some((hit, what)));
                    at = hit + 1;
                }
                prop_assert_eq!(slowly(at), None);
            }
        }
    }
}
