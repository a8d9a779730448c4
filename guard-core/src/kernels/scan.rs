//! Looks through data for GPU code that no section's name announces, at the speed of memory.

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
    /// Fatbins and ELF images at multiples of four, no texts.
    Aligned,
}

const BLOCK: usize = 128;

/// The next place at or after `from` where one of the marks stands.
///
/// Blocks without anything suspicious are passed over by comparisons that the compiler turns into vector instructions.
pub(super) fn next(data: &[u8], from: usize, marks: Marks) -> Option<(usize, Hit)> {
    let mut at = match marks {
        Marks::Anywhere => from,
        Marks::Aligned => from.checked_next_multiple_of(4)?,
    };
    loop {
        let rest = data.get(at..)?;
        // One byte more than a block: pairs may stand across its end.
        let Some(block) = rest.get(..=BLOCK) else { return exactly(data, at, data.len(), marks) };
        let suspicious = match marks {
            Marks::Anywhere => pair_within(block),
            Marks::Aligned => word_within(block),
        };
        if suspicious {
            if let Some(hit) = exactly(data, at, at + BLOCK, marks) {
                return Some(hit);
            }
        }
        at += BLOCK;
    }
}

/// Whether the first two bytes of a mark stand in the block: pairs that are rare in code and text. Without branches, so
/// that it becomes vector code.
#[inline]
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

#[inline]
fn word_within(block: &[u8]) -> bool {
    let mut found = 0u32;
    for word in block[..BLOCK].chunks_exact(4) {
        let word = [word[0], word[1], word[2], word[3]];
        found |= u32::from(word == super::fatbin::MAGIC) | u32::from(word == *b"\x7fELF");
    }
    found != 0
}

fn exactly(data: &[u8], from: usize, to: usize, marks: Marks) -> Option<(usize, Hit)> {
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
            noise in proptest::collection::vec(prop_oneof![Just(b'.'), Just(b'v'), Just(0x50), Just(0x7f), any::<u8>()], 0..700),
            marks in proptest::collection::vec((0usize..700, 0usize..3), 0..4),
        ) {
            let mut data = noise;
            for (at, which) in marks {
                let mark: &[u8] = [&super::super::fatbin::MAGIC[..], b"\x7fELF", b".version "][which];
                if at + mark.len() <= data.len() {
                    data[at..at + mark.len()].copy_from_slice(mark);
                }
            }
            for marks in [Marks::Anywhere, Marks::Aligned] {
                let mut at = 0;
                while let Some((hit, what)) = next(&data, at, marks) {
                    prop_assert_eq!(exactly(&data, at.next_multiple_of(if marks == Marks::Aligned { 4 } else { 1 }), data.len(), marks), Some((hit, what)));
                    at = hit + 1;
                }
                prop_assert_eq!(exactly(&data, at, data.len(), Marks::Anywhere).filter(|_| marks == Marks::Anywhere), None);
            }
        }
    }
}
