//! Looks through data for GPU code that no section's name announces, at the speed of memory.

use std::ops::Range;

/// What may begin at a place: to be looked at closely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    /// The mark of a fatbin container.
    Fatbin,
    /// The mark of an ELF image.
    Elf,
    /// `.version` and a blank.
    Ptx,
}

/// Where to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    /// At every byte: `include_bytes!` and `.incbin` align nothing.
    Anywhere,
    /// Fatbins and ELF images at multiples of [`ALIGNED`], no texts.
    Aligned,
}

/// What compilers and assemblers align containers to, at least.
pub(super) const ALIGNED: u64 = 4;

/// Long enough that the comparisons of a block become vector instructions without a rest.
const BLOCK: usize = 256;

/// A search through a section that may be mapped from a file, from its beginning to its end.
pub(super) struct MarkSearch<'data> {
    data: &'data [u8],
    marks: Marks,
    /// The mapping, and where in it the section begins.
    map: Option<(&'data memmap2::Mmap, usize)>,
    /// How far the pages are there, and how many bytes of them to ask for next.
    present: usize,
    ahead: usize,
}

/// Bytes of pages to ask for at once: few behind a container, since another may follow, which is passed over unread.
const AHEAD: Range<usize> = 64 << 10..4 << 20;

impl<'data> MarkSearch<'data> {
    pub(super) fn new(data: &'data [u8], marks: Marks, map: Option<(&'data memmap2::Mmap, usize)>) -> Self {
        Self { data, marks, map, present: 0, ahead: AHEAD.start }
    }

    /// The next place at or after `from` where one of the marks stands.
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

/// Has the pages of a range mapped in one go: page faults, one for every few pages, cost more than looking through them.
fn populate_pages(map: &memmap2::Mmap, at: usize, length: usize) {
    // Where that is refused, as by Linux before 5.14, faults fetch the pages.
    #[cfg(target_os = "linux")]
    let _ = map.advise_range(memmap2::Advice::PopulateRead, at, length);
    #[cfg(not(target_os = "linux"))]
    let _ = (map, at, length);
}

/// The first place in a range where one of the marks begins; its end may lie behind the range.
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

/// Passes blocks without anything suspicious. Returns where the first other one begins, or the rest that is too short
/// for a block.
fn skip_clean_blocks(data: &[u8], range: Range<usize>, marks: Marks) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has been asked for what the function needs.
        #[allow(unsafe_code)]
        return unsafe { pass_wide(data, range, marks) };
    }
    pass_blocks(data, range, marks)
}

/// [`pass_blocks`] in vectors of twice the width; for processors with AVX2 only. (Rust before 1.86 wants the word `unsafe`
/// here.)
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code)]
unsafe fn pass_wide(data: &[u8], range: Range<usize>, marks: Marks) -> usize {
    pass_blocks(data, range, marks)
}

// Inlined into each caller: it is compiled for the processor that its caller is compiled for.
#[allow(clippy::inline_always)]
#[inline(always)]
fn pass_blocks(data: &[u8], range: Range<usize>, marks: Marks) -> usize {
    // One byte more than a block: pairs may stand across its end.
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

/// Whether the first two bytes of a mark stand in the block: pairs that are rare in code and text. Without branches, so
/// that it becomes vector code.
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

/// Whether a mark stands at a multiple of four in the block.
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
        fn finds_what_a_slow_search_finds(
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
