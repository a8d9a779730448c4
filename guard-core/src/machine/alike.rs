//! Lines that are written alike: byte for byte the same, but for what stands in texts. A list of machines has few ways to write
//! one, so that most lines need not be read again key by key: what is judged of them is found where it stood before.
//!
//! Nothing is guessed: a line that is written as one that was read, with the same texts wherever somebody judges them, is
//! read as the same machine.

use super::json_reader::{Text, Use, until_quote};

/// So many ways of writing are remembered.
const SHAPES: usize = 32;
/// A longer line is read anew each time: what is remembered has an end.
pub(super) const LONGEST: usize = 16 * 1024;

/// A line that was read, and the texts in it, in their order.
#[derive(Debug)]
struct Shape {
    number: u32,
    line: Box<str>,
    texts: Vec<Text>,
}

/// The name in a line; `None`: it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label<'line>(pub(super) Option<&'line str>);

impl Shape {
    /// The name in a line of this shape; what is judged of it is written to `key`. `None`: it has another shape.
    fn name<'line>(&self, line: &'line str, key: &mut Vec<u8>) -> Option<Label<'line>> {
        let (own, bytes) = (self.line.as_bytes(), line.as_bytes());
        let (mut at, mut behind, mut name) = (0, 0, None);
        key.clear();
        for text in &self.texts {
            let fixed = &own[behind..text.start];
            if !bytes[at..].starts_with(fixed) {
                return None;
            }
            at += fixed.len();
            let end = at + until_quote(&bytes[at..])?;
            match text.for_what {
                Use::Judged => key.extend_from_slice(&bytes[at..=end]),
                Use::Name => name = Some(&line[at..end]),
                Use::Passed => {}
            }
            (at, behind) = (end, text.end);
        }
        key.extend_from_slice(&self.number.to_le_bytes());
        (bytes[at..] == own[behind..]).then_some(Label(name))
    }
}

/// The shapes of the lines so far, the one seen last first.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    all: Vec<Shape>,
    count: u32,
    /// What is judged of the line that was looked at last, and its shape: lines with the same are of one machine.
    key: Vec<u8>,
}

impl Shapes {
    /// The name in a line whose shape is known, and its key.
    pub(super) fn find<'line>(&mut self, line: &'line str) -> Option<(Label<'line>, &[u8])> {
        let key = &mut self.key;
        let (at, name) = self.all.iter().enumerate().find_map(|(at, shape)| Some((at, shape.name(line, key)?)))?;
        self.all.swap(0, at);
        Some((name, &self.key))
    }

    /// Remembers the shape of a line that was read, and gives its key.
    pub(super) fn learn(&mut self, line: &str, texts: Vec<Text>) -> Option<&[u8]> {
        let shape = Shape { number: self.count, line: line.into(), texts };
        self.count = self.count.wrapping_add(1);
        let _ = shape.name(line, &mut self.key)?;
        if self.all.len() == SHAPES {
            self.all.pop();
        }
        self.all.insert(0, shape);
        Some(&self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str, uses: &[Use]) -> Vec<Text> {
        let quotes: Vec<usize> = line.match_indices('"').map(|(at, _)| at).collect();
        // Every second pair is a value; the others are keys.
        let values = quotes.chunks(4).map(|four| (four[2] + 1, four[3]));
        values.zip(uses).map(|((start, end), for_what)| Text { start, end, for_what: *for_what }).collect()
    }

    #[test]
    fn what_is_judged_tells_lines_of_one_shape_apart() {
        let line = r#"{"name":"a","cc":"8.0","uuid":"x"}"#;
        let mut shapes = Shapes::default();
        assert!(shapes.find(line).is_none());
        let uses = [Use::Name, Use::Judged, Use::Passed];
        let own = shapes.learn(line, texts(line, &uses)).expect("a key").to_vec();
        let mut find = |line: &str| shapes.find(line).map(|(name, key)| (name.0.map(str::to_owned), key.to_vec()));
        assert_eq!(find(line), Some((Some("a".to_owned()), own.clone())));
        assert_eq!(find(r#"{"name":"bé","cc":"8.0","uuid":""}"#), Some((Some("bé".to_owned()), own.clone())));
        let other = find(r#"{"name":"a","cc":"8.6","uuid":"x"}"#).expect("the shape is known");
        assert_ne!(other.1, own);
        for line in [
            r#"{"name":"a","cc":"8.0","uuid":"x""#,
            r#"{"name":"a","cc":"8.0","uuid":"x"} "#,
            r#"{"name":"a","cc":"8.0","pci":"x"}"#,
            r#"{"name":"a", "cc":"8.0","uuid":"x"}"#,
            r#"{"name":"a\u0062","cc":"8.0","uuid":"x"}"#,
            r#"{"name":"a","cc":"8.0","uuid":"x"#,
            "{\"name\":\"a\u{1}\",\"cc\":\"8.0\",\"uuid\":\"x\"}",
            r#"{"name":"a","cc":"8.0"}"#,
            "",
        ] {
            assert_eq!(find(line), None, "{line}");
        }
    }

    #[test]
    fn what_is_remembered_has_an_end() {
        let mut shapes = Shapes::default();
        for number in 0..3 * SHAPES {
            let line = format!(r#"{{"key {number}":"a"}}"#);
            let _ = shapes.learn(&line, texts(&line, &[Use::Judged])).expect("a key");
            assert!(shapes.all.len() <= SHAPES && shapes.find(&line).is_some());
        }
    }
}
