//! A search for several texts at once, at the speed of memory.

use aho_corasick::{AhoCorasick, Input, MatchKind, packed};

/// Finds the first occurrence of any of several texts.
pub(crate) enum Searcher {
    /// Uses vector instructions, which some processors lack.
    Packed(packed::Searcher),
    /// Several times slower. `None` if there are no texts, or far more than there are.
    Automaton(Option<AhoCorasick>),
}

impl Searcher {
    pub(crate) fn new<T: AsRef<[u8]>>(texts: &[T]) -> Self {
        packed::Searcher::new(texts).map_or_else(
            || Self::Automaton(AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(texts).ok()),
            Self::Packed,
        )
    }

    /// Returns the index of the text that begins first at or after `from`, and where it begins.
    pub(crate) fn find(&self, data: &[u8], from: usize) -> Option<(usize, usize)> {
        let range = from.min(data.len())..data.len();
        let found = match self {
            Self::Packed(searcher) => searcher.find_in(data, range.into()),
            Self::Automaton(searcher) => searcher.as_ref()?.find(Input::new(data).range(range)),
        }?;
        Some((found.pattern().as_usize(), found.start()))
    }
}
