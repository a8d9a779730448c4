//! Searches data for GPU code that is not in a section for it, at the speed of memory.

use std::ops::Range;

/// The kind of mark that was found. The caller must parse what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    /// The magic bytes of a fatbin container.
    Fatbin,
    /// The magic bytes of an ELF image.
    Elf,
    /// `.version` and a blank.
    Ptx,
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

/// Block size: a multiple of the vector width, so that the comparisons compile to vector instructions without a
/// remainder.
const BLOCK: usize = 256;

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
    let to = range.end.min(data.len());
    let mut at = match marks {
        Marks::Anywhere => range.start,
        Marks::Aligned => range.start.checked_next_multiple_of(4)?,
    };
    while at < to {
        at = skip_clean_blocks(data, at..to, marks);
        let end = at.saturating_add(BLOCK).min(to);
        if let Some(hit) = search_exactly(data, at, end, marks) {
            return Some(hit);
        }
        at = end;
    }
    None
}

/// Skips blocks without a suspicious pair. Returns the start of the first other block, or of the rest that is too short
/// for a block.
fn skip_clean_blocks(data: &[u8], range: Range<usize>, marks: Marks) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor supports AVX2, which the function requires.
        #[allow(unsafe_code)]
        return unsafe { pass_wide(data, range, marks) };
    }
    pass_blocks(data, range, marks)
}

/// Runs [`pass_blocks`] with AVX2, which doubles the vector width. (Rust before 1.86 requires `unsafe` here.)
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code)]
unsafe fn pass_wide(data: &[u8], range: Range<usize>, marks: Marks) -> usize {
    pass_blocks(data, range, marks)
}

// Inlined into each caller, so that it is compiled for the processor features of the caller.
#[allow(clippy::inline_always)]
#[inline(always)]
fn pass_blocks(data: &[u8], range: Range<usize>, marks: Marks) -> usize {
    // Includes the byte after the block, because a pair may cross its end.
    let data = &data[..range.end.saturating_add(1).min(data.len())];
    let mut at = range.start;
    while let Some(block) = data.get(at..).and_then(|rest| rest.get(..=BLOCK)) {
        let suspicious = match marks {
            Marks::Anywhere => pair_within(block),
            Marks::Aligned => word_within(block),
        };
        if suspicious {
            break;
        }
        at += BLOCK;
    }
    at
}

/// Returns true if the block contains the first two bytes of a mark, pairs that are rare in code and text. Has no
/// branches, so that it compiles to vector code.
#[allow(clippy::inline_always)]
#[inline(always)]
fn pair_within(block: &[u8]) -> bool {
    let mut found = 0u8;
    for (first, second) in block[..BLOCK].iter().zip(&block[1..=BLOCK]) {
        let fatbin = u8::from(*first == 0x50) & u8::from(*second == 0xed);
        let elf = u8::from(*first == 0x7f) & u8::from(*second == b'E');
        let ptx = u8::from(*first == b'.') & u8::from(*second == b'v');
        found |= fatbin | elf | ptx;
    }
    found != 0
}

/// Returns true if the block contains a mark at a multiple of four.
#[allow(clippy::inline_always)]
#[inline(always)]
fn word_within(block: &[u8]) -> bool {
    const FATBIN: u32 = u32::from_ne_bytes(super::fatbin::MAGIC);
    const ELF: u32 = u32::from_ne_bytes(*b"\x7fELF");
    let mut found = 0u32;
    for word in block[..BLOCK].chunks_exact(4) {
        let word = word.try_into().map_or(0, u32::from_ne_bytes);
        found |= u32::from(word == FATBIN) | u32::from(word == ELF);
    }
    found != 0
}

fn search_exactly(data: &[u8], from: usize, to: usize, marks: Marks) -> Option<(usize, Hit)> {
    let step = if marks == Marks::Aligned { 4 } else { 1 };
    (from..to).step_by(step).find_map(|at| {
        let rest = &data[at..];
        let hit = match rest.first()? {
            0x50 if rest.starts_with(&super::fatbin::MAGIC) => Hit::Fatbin,
            0x7f if rest.starts_with(b"\x7fELF") => Hit::Elf,
            b'.' if step == 1 && rest.starts_with(b".version") && rest.get(8).is_some_and(u8::is_ascii_whitespace) => {
                Hit::Ptx
            }
            _ => return None,
        };
        Some((at, hit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn scan_matches_slow_search(
            noise in proptest::collection::vec(prop_oneof![Just(b'.'), Just(b'v'), Just(0x50), Just(0x7f), any::<u8>()], 0..1400),
            marks in proptest::collection::vec((0usize..1400, 0usize..3), 0..4),
            from in prop_oneof![Just(0usize), 0usize..700],
            to in prop_oneof![Just(usize::MAX), 0usize..1400],
        ) {
            let mut data = noise;
            for (at, which) in marks {
                let mark: &[u8] = [&super::super::fatbin::MAGIC[..], b"\x7fELF", b".version "][which];
                if at + mark.len() <= data.len() {
                    data[at..at + mark.len()].copy_from_slice(mark);
                }
            }
            for marks in [Marks::Anywhere, Marks::Aligned] {
                let step = if marks == Marks::Aligned { 4 } else { 1 };
                let slowly = |at: usize| search_exactly(&data, at.next_multiple_of(step), to.min(data.len()), marks);
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
