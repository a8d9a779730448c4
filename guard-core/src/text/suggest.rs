//! Suggestions for typing mistakes.

/// Returns the candidate that a mistyped word most probably means: at most a third of its letters may differ.
pub fn closest_match<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    // A word of this length is not a typing mistake, and comparing it would take long.
    if word.len() > 64 {
        return None;
    }
    let mut best = None;
    for candidate in candidates {
        let distance = edit_distance(&word.to_ascii_lowercase(), &candidate.to_ascii_lowercase());
        // If two candidates have the same distance, prefer a prefix of the word: for `A10G`, `A10` rather than `A100`.
        let rank = (distance, !word.starts_with(candidate));
        if distance <= candidate.len().div_ceil(3).min(3) && best.is_none_or(|(least, _)| rank < least) {
            best = Some((rank, *candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Returns the edit distance: the number of letters to insert, delete or replace.
pub(crate) fn edit_distance(one: &str, other: &str) -> usize {
    let other = other.chars().collect::<Vec<_>>();
    let mut row = (0..=other.len()).collect::<Vec<_>>();
    for (above, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (column, &b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_get_suggestions() {
        for (word, expected) in
            [("archz", Some("archs")), ("ARCHS", Some("archs")), ("flet", Some("fleet")), ("x", None)]
        {
            assert_eq!(closest_match(word, &["archs", "fleet", "partial"]), expected, "{word}");
        }
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
    }
}
