//! Patterns of error messages. Pasted texts contain paths, numbers, line breaks of a terminal, colours and escaped
//! quotes, so blanks and quotes are ignored on both sides.

use serde::Deserialize;

/// The longest match of `*`, in bytes.
const WORD: usize = 60;
/// The longest match of ` ... `, in bytes.
const ANYTHING: usize = 200;

/// A text without the characters that are ignored.
pub(super) struct NormalizedText {
    bytes: Vec<u8>,
    /// The ignored characters before each byte.
    gaps: Vec<Gap>,
}

/// The kind of ignored characters before a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    Nothing,
    /// An ignored character: a word may begin or end here.
    Blank,
    /// The beginning of the text or a line break.
    Line,
}

impl NormalizedText {
    pub(super) fn new(text: &str) -> Self {
        let (mut bytes, mut gaps) = (Vec::with_capacity(text.len()), Vec::with_capacity(text.len()));
        let mut gap = Gap::Line;
        let (mut is_path, mut before) = (false, [' '; 3]);
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                // A colour of a terminal.
                '\u{1b}' => {
                    if rest.next_if_eq(&'[').is_some() {
                        while rest.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
                    }
                    gap = gap.max(Gap::Blank);
                }
                // A separator of a Windows path that begins with a drive, or a line break within a string of JSON or Rust.
                '\\' => {
                    is_path |=
                        matches!(before, [edge, drive, ':'] if !edge.is_alphanumeric() && drive.is_ascii_alphabetic());
                    rest.next_if(|next| !is_path && matches!(next, 'n' | 'r' | 't'));
                    gap = gap.max(Gap::Blank);
                }
                '\n' => gap = Gap::Line,
                _ if c.is_whitespace() => gap = gap.max(Gap::Blank),
                '"' | '\'' | '`' | '‘' | '’' | '“' | '”' | '„' | '«' | '»' | '「' | '」' => {
                    gap = gap.max(Gap::Blank);
                }
                _ => {
                    let from = bytes.len();
                    bytes.extend_from_slice(c.to_ascii_lowercase().encode_utf8(&mut [0; 4]).as_bytes());
                    gaps.resize(bytes.len(), Gap::Nothing);
                    gaps[from] = gap;
                    gap = Gap::Nothing;
                }
            }
            is_path &= !c.is_whitespace() && c != '"';
            before = [before[1], before[2], c];
        }
        Self { bytes, gaps }
    }

    /// Replaces each match of the pattern.
    pub(super) fn replace(&mut self, pattern: &Pattern, with: &Self) {
        let spans: Vec<(usize, usize)> = pattern.find_matches(self).map(|found| (found.start, found.end)).collect();
        if spans.is_empty() {
            return;
        }
        let (mut bytes, mut gaps, mut from) = (Vec::with_capacity(self.bytes.len()), Vec::new(), 0);
        for (start, end) in spans.into_iter().filter(|(start, end)| end > start) {
            if start < from {
                continue;
            }
            bytes.extend_from_slice(&self.bytes[from..start]);
            gaps.extend_from_slice(&self.gaps[from..start]);
            bytes.extend_from_slice(&with.bytes);
            gaps.extend_from_slice(&with.gaps);
            if let Some(first) = gaps.len().checked_sub(with.gaps.len()).and_then(|at| gaps.get_mut(at)) {
                *first = self.gaps[start];
            }
            from = end;
            if let Some(next) = self.gaps.get_mut(end) {
                *next = (*next).max(Gap::Blank);
            }
        }
        bytes.extend_from_slice(&self.bytes[from..]);
        gaps.extend_from_slice(&self.gaps[from..]);
        (self.bytes, self.gaps) = (bytes, gaps);
    }

    /// Returns true if no word continues over this place.
    fn is_word_boundary(&self, at: usize) -> bool {
        let is_in_word = |at: usize| self.bytes.get(at).is_some_and(|byte| is_word(*byte));
        at == 0 || self.gaps.get(at).is_none_or(|gap| *gap != Gap::Nothing) || !is_in_word(at - 1) || !is_in_word(at)
    }

    /// Returns true if a line begins or the text ends at this place.
    fn is_line_boundary(&self, at: usize) -> bool {
        self.gaps.get(at).is_none_or(|gap| *gap == Gap::Line)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPiece {
    Literal(Vec<u8>),
    Word,
    Anything,
    Number,
}

/// A pattern in the syntax of the data file.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "String")]
pub(super) struct Pattern {
    pieces: Vec<PatternPiece>,
    whole_line: bool,
}

/// A match of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    start: usize,
    end: usize,
    /// The last whole number that matched a `#`.
    pub(super) number: Option<u32>,
}

impl From<String> for Pattern {
    fn from(pattern: String) -> Self {
        Self::new(&pattern)
    }
}

impl Pattern {
    pub(super) fn new(pattern: &str) -> Self {
        let (whole_line, pattern) = pattern.strip_prefix("= ").map_or((false, pattern), |rest| (true, rest));
        let mut pieces = Vec::new();
        for (at, part) in pattern.split(" ... ").enumerate() {
            if at > 0 {
                pieces.push(PatternPiece::Anything);
            }
            let mut literal = String::new();
            let put = |literal: &mut String, pieces: &mut Vec<PatternPiece>| {
                let bytes = NormalizedText::new(&std::mem::take(literal)).bytes;
                if !bytes.is_empty() {
                    pieces.push(PatternPiece::Literal(bytes));
                }
            };
            for c in part.chars() {
                let piece = match c {
                    '*' => PatternPiece::Word,
                    '#' => PatternPiece::Number,
                    _ => {
                        literal.push(c);
                        continue;
                    }
                };
                put(&mut literal, &mut pieces);
                pieces.push(piece);
            }
            put(&mut literal, &mut pieces);
        }
        Self { pieces, whole_line }
    }

    /// Returns each place where the pattern matches.
    pub(super) fn find_matches<'a>(&'a self, text: &'a NormalizedText) -> impl Iterator<Item = Match> + 'a {
        let (first, rest) = match self.pieces.split_first() {
            Some((PatternPiece::Literal(first), rest)) => (first.as_slice(), rest),
            // No pattern begins with a wildcard: it would be tried at every place.
            _ => (&b"\0"[..], &[][..]),
        };
        memchr::memmem::find_iter(&text.bytes, first).filter_map(move |start| {
            let begins = !is_word(first[0]) || text.is_word_boundary(start);
            let (end, number) = begins.then(|| matches_at(text, start + first.len(), first, rest, None)).flatten()?;
            let is_wanted = !self.whole_line || (text.is_line_boundary(start) && text.is_line_boundary(end));
            is_wanted.then_some(Match { start, end, number })
        })
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Matches the pieces at this place, after the literal `before`. Returns the end of the match and the last number.
fn matches_at(
    text: &NormalizedText,
    at: usize,
    before: &[u8],
    pieces: &[PatternPiece],
    number: Option<u32>,
) -> Option<(usize, Option<u32>)> {
    let Some((piece, rest)) = pieces.split_first() else {
        let ends = !before.last().is_some_and(|byte| is_word(*byte)) || text.is_word_boundary(at);
        return ends.then_some((at, number));
    };
    match piece {
        PatternPiece::Literal(literal) => text.bytes[at..]
            .starts_with(literal)
            .then(|| matches_at(text, at + literal.len(), literal, rest, number))?,
        PatternPiece::Number => {
            let digits = text.bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let mut end = at + digits;
            while text.bytes.get(end) == Some(&b'.') && text.bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
                end += 1;
                end += text.bytes[end..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            }
            let whole = std::str::from_utf8(&text.bytes[at..end]).ok()?.parse().ok();
            (digits > 0).then(|| matches_at(text, end, b"0", rest, whole.or(number)))?
        }
        PatternPiece::Word => {
            // A blank may precede the word, but not be within it.
            let inside = |end: &usize| *end <= at + 1 || text.gaps[*end - 1] == Gap::Nothing;
            let reach = (at..=(at + WORD).min(text.bytes.len())).take_while(inside);
            reach.into_iter().find_map(|end| matches_at(text, end, b"", rest, number))
        }
        PatternPiece::Anything => {
            let reach = at..=(at + ANYTHING).min(text.bytes.len());
            reach.into_iter().find_map(|end| matches_at(text, end, b"", rest, number))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(text: &str, pattern: &str) -> bool {
        Pattern::new(pattern).find_matches(&NormalizedText::new(text)).next().is_some()
    }

    #[test]
    fn blanks_quotes_and_colours_are_ignored() {
        for text in [
            "no kernel image is available",
            "NO  kernel\n  image is   avail\nable",
            "\u{1b}[31mno kernel\u{1b}[0m image is available",
            "x(\\\"no kernel image\\nis available\\\")",
        ] {
            assert!(matches(text, "no kernel image is available"), "{text}");
        }
    }

    #[test]
    fn only_complete_words_match() {
        assert!(matches("ld: cannot find -lcuda: No such file", "cannot find -lcuda"));
        assert!(!matches("ld: cannot find -lcudart", "cannot find -lcuda"));
        assert!(!matches("XCUDNN_STATUS_A", "CUDNN_STATUS_A") && !matches("CUDNN_STATUS_A_B", "CUDNN_STATUS_A"));
        assert!(matches("Some(CUDNN_STATUS_A)", "CUDNN_STATUS_A"));
        assert!(matches("C:\\cudarc-0.11.1\\src\\driver\\sys\\mod.rs:38", "driversysmod.rs"));
    }

    #[test]
    fn wildcards_have_limits() {
        assert!(matches("/x/libcudnn_ops.so.9.1: cannot open", "libcudnn*.so*: cannot open"));
        assert!(!matches("libcudnn.so.9 is here, libz.so.1: cannot open", "libcudnn*.so*: cannot open"));
        assert!(matches("a version (12.4) of mine mismatches b", "version ... mismatches"));
        assert!(!matches(&format!("version {} mismatches", "x".repeat(300)), "version ... mismatches"));
        assert!(matches("later than 8 are", "later than # are") && matches("version 8.0.5 but", "version # but"));
        assert!(!matches("later than are", "later than # are"));
        let text = NormalizedText::new("error (35) error (x) error (36)");
        let numbers: Vec<_> = Pattern::new("error (#)").find_matches(&text).map(|found| found.number).collect();
        assert_eq!(numbers, [Some(35), Some(36)]);
    }

    #[test]
    fn whole_lines_match_only_alone() {
        for (text, expected) in [
            ("No devices were found", true),
            ("$ nvidia-smi\n  No devices were found \r\n$", true),
            ("No devices were found on the network", false),
            ("Error: no devices were found", false),
        ] {
            assert_eq!(matches(text, "= No devices were found"), expected, "{text}");
        }
    }

    #[test]
    fn replaced_text_keeps_word_boundaries() {
        let mut text = NormalizedText::new("libcublas.so.12: Ne peut ouvrir le fichier d'objet partagé: Aucun\nx");
        text.replace(
            &Pattern::new("Ne peut ouvrir le fichier d'objet partagé"),
            &NormalizedText::new("cannot open shared object file"),
        );
        assert!(Pattern::new("libcublas*.so*: cannot open shared object file").find_matches(&text).next().is_some());
        assert!(Pattern::new("= x").find_matches(&text).next().is_some());
        text.replace(&Pattern::new("libcublas*: cannot open shared object file"), &NormalizedText::new(""));
        assert_eq!(text.bytes, b":aucunx");
    }

    #[test]
    fn long_texts_take_linear_time() {
        let text = "libcudnn ".repeat(20_000);
        assert!(!matches(&text, "libcudnn*.so*: cannot open") && !matches(&text, "libcudnn ... x ... y"));
        assert!(!matches("", "x") && !matches("a", "*b"));
    }
}
