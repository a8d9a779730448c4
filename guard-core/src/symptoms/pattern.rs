//! Whether a pasted text says something. Pasted texts have paths, numbers, line breaks of a terminal, colours and escaped
//! quotes in them, so that blanks and quotes do not count on either side.

/// How far `*` reaches.
const WORD: usize = 60;
/// How far ` ... ` reaches.
const ANYTHING: usize = 200;

/// A text without what does not count.
pub(super) struct Text {
    bytes: Vec<u8>,
    /// Whether something that does not count stood before each byte: a word may begin or end there.
    gaps: Vec<bool>,
}

impl Text {
    pub(super) fn new(text: &str) -> Self {
        let (mut bytes, mut gaps) = (Vec::with_capacity(text.len()), Vec::with_capacity(text.len()));
        let mut gap = true;
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                // A colour of a terminal.
                '\u{1b}' => {
                    if rest.next_if_eq(&'[').is_some() {
                        while rest.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
                    }
                    gap = true;
                }
                // As JSON and Rust write a line break within a text; or as Windows parts a path.
                '\\' => {
                    rest.next_if(|next| matches!(next, 'n' | 'r' | 't'));
                    gap = true;
                }
                _ if c.is_whitespace() => gap = true,
                '"' | '\'' | '`' | '‘' | '’' | '“' | '”' => gap = true,
                _ => {
                    let from = bytes.len();
                    bytes.extend_from_slice(c.to_ascii_lowercase().encode_utf8(&mut [0; 4]).as_bytes());
                    gaps.resize(bytes.len(), false);
                    gaps[from] = gap;
                    gap = false;
                }
            }
        }
        Self { bytes, gaps }
    }

    /// Whether no word goes on over this place.
    fn parts(&self, at: usize) -> bool {
        let is_of_a_word =
            |at: usize| self.bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        at == 0 || self.gaps.get(at).is_none_or(|gap| *gap) || !is_of_a_word(at - 1) || !is_of_a_word(at)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(Vec<u8>),
    Word,
    Anything,
    Number,
}

/// What a text may say, by the rules of the data file.
#[derive(Clone, Debug)]
pub(super) struct Pattern(Vec<Piece>);

impl Pattern {
    pub(super) fn new(pattern: &str) -> Self {
        let mut pieces = Vec::new();
        for (at, part) in pattern.split(" ... ").enumerate() {
            if at > 0 {
                pieces.push(Piece::Anything);
            }
            let mut literal = String::new();
            let put = |literal: &mut String, pieces: &mut Vec<Piece>| {
                let bytes = Text::new(&std::mem::take(literal)).bytes;
                if !bytes.is_empty() {
                    pieces.push(Piece::Literal(bytes));
                }
            };
            for c in part.chars() {
                let piece = match c {
                    '*' => Piece::Word,
                    '#' => Piece::Number,
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
        Self(pieces)
    }

    /// Each place where the text says it, with the last whole number that stands for a `#`.
    pub(super) fn find<'a>(&'a self, text: &'a Text) -> impl Iterator<Item = Option<u32>> + 'a {
        let (first, rest) = match self.0.split_first() {
            Some((Piece::Literal(first), rest)) => (first.as_slice(), rest),
            // Nothing begins with a wildcard: it would be looked for at every place.
            _ => (&b"\0"[..], &[][..]),
        };
        memchr::memmem::find_iter(&text.bytes, first).filter_map(move |at| {
            let begins = !is_word(first[0]) || text.parts(at);
            begins.then(|| follows(text, at + first.len(), first, rest, None)).flatten()
        })
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether these pieces follow at this place, behind this literal; the inner value is the last number.
#[allow(clippy::option_option)]
fn follows(text: &Text, at: usize, before: &[u8], pieces: &[Piece], number: Option<u32>) -> Option<Option<u32>> {
    let Some((piece, rest)) = pieces.split_first() else {
        let ends = !before.last().is_some_and(|byte| is_word(*byte)) || text.parts(at);
        return ends.then_some(number);
    };
    match piece {
        Piece::Literal(literal) => {
            text.bytes[at..].starts_with(literal).then(|| follows(text, at + literal.len(), literal, rest, number))?
        }
        Piece::Number => {
            let digits = text.bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let mut end = at + digits;
            while text.bytes.get(end) == Some(&b'.') && text.bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
                end += 1;
                end += text.bytes[end..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            }
            let whole = std::str::from_utf8(&text.bytes[at..end]).ok()?.parse().ok();
            (digits > 0).then(|| follows(text, end, b"0", rest, whole.or(number)))?
        }
        Piece::Word => {
            // A blank may stand before the word, and none within it.
            let inside = |end: &usize| *end <= at + 1 || !text.gaps[*end - 1];
            let reach = (at..=(at + WORD).min(text.bytes.len())).take_while(inside);
            reach.into_iter().find_map(|end| follows(text, end, b"", rest, number))
        }
        Piece::Anything => {
            let reach = at..=(at + ANYTHING).min(text.bytes.len());
            reach.into_iter().find_map(|end| follows(text, end, b"", rest, number))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(text: &str, pattern: &str) -> bool {
        Pattern::new(pattern).find(&Text::new(text)).next().is_some()
    }

    #[test]
    fn blanks_quotes_colours_and_breaks_do_not_count() {
        for text in [
            "no kernel image is available",
            "NO  kernel\n  image is   avail\nable",
            "\u{1b}[31mno kernel\u{1b}[0m image is available",
            "x(\\\"no kernel image\\nis available\\\")",
        ] {
            assert!(says(text, "no kernel image is available"), "{text}");
        }
    }

    #[test]
    fn words_begin_and_end_where_they_do() {
        assert!(says("ld: cannot find -lcuda: No such file", "cannot find -lcuda"));
        assert!(!says("ld: cannot find -lcudart", "cannot find -lcuda"));
        assert!(!says("XCUDNN_STATUS_A", "CUDNN_STATUS_A") && !says("CUDNN_STATUS_A_B", "CUDNN_STATUS_A"));
        assert!(says("Some(CUDNN_STATUS_A)", "CUDNN_STATUS_A"));
        assert!(says("C:\\cudarc-0.11.1\\src\\driver\\sys\\mod.rs:38", "driversysmod.rs"));
    }

    #[test]
    fn wildcards_stand_for_what_they_may() {
        assert!(says("/x/libcudnn_ops.so.9.1: cannot open", "libcudnn*.so*: cannot open"));
        assert!(!says("libcudnn.so.9 is here, libz.so.1: cannot open", "libcudnn*.so*: cannot open"));
        assert!(says("a version (12.4) of mine mismatches b", "version ... mismatches"));
        assert!(!says(&format!("version {} mismatches", "x".repeat(300)), "version ... mismatches"));
        assert!(says("later than 8 are", "later than # are") && says("version 8.0.5 but", "version # but"));
        assert!(!says("later than are", "later than # are"));
        assert_eq!(
            Pattern::new("error (#)").find(&Text::new("error (35) error (x) error (36)")).collect::<Vec<_>>(),
            [Some(35), Some(36)]
        );
    }

    #[test]
    fn any_text_ends() {
        let text = "libcudnn ".repeat(20_000);
        assert!(!says(&text, "libcudnn*.so*: cannot open") && !says(&text, "libcudnn ... x ... y"));
        assert!(!says("", "x") && !says("a", "*b"));
    }
}
