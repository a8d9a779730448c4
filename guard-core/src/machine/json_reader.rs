//! A reader of JSON text that walks and never builds: a fleet's line costs what its bytes cost, and an error knows the key
//! that it stands under. RFC 8259, with a limit to nesting, and no two members of one name: readers do not agree on which
//! of them counts.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

/// Deeper than this nothing of ours goes.
const DEPTH: usize = 64;

/// With more members than this an object's keys are looked up; fewer are compared faster one by one.
const FEW: usize = 24;

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The byte at which it shows.
    pub at: usize,
    /// The keys above it, outermost first: `gpus[2].cc`; empty at the top.
    pub key: String,
    /// What was expected, and what stands there.
    pub what: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            f.write_str(&self.what)
        } else {
            write!(f, "`{}`: {}", crate::sanitize::sanitize_line(&self.key), self.what)
        }
    }
}

impl ParseError {
    /// The same, under this key.
    fn under(mut self, key: &str) -> Self {
        let dot = if self.key.is_empty() || self.key.starts_with('[') { "" } else { "." };
        self.key = format!("{key}{dot}{}", self.key);
        self
    }
}

/// What a text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// The verdict may rest on it.
    Judged,
    /// It names the machine.
    Name,
    /// Nobody judges it.
    Passed,
}

/// A text in quotes, from the first byte behind the first to the second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) for_what: Use,
}

/// So much of a text that is not what it should be as a message bears.
fn short(text: &str) -> String {
    crate::sanitize::sanitize_line(&text.chars().take(24).collect::<String>()).into_owned()
}

/// How many bytes at the start are neither a quote, a backslash nor a control character; eight are looked at in one go, so
/// up to seven may be left uncounted.
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The high bit of each byte that is zero, or of a byte above such a one: enough to know whether there is one.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let mut at = 0;
    for chunk in bytes.chunks_exact(8) {
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let special = zero(word ^ (ONES * u64::from(b'"'))) | zero(word ^ (ONES * u64::from(b'\\'))) | control;
        if special != 0 {
            return at + (special.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at
}

/// How long the text is that stands at the start: up to its closing quote. `None`: that is not there, or an escape or a control
/// character stands before it.
pub(super) fn until_quote(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += plain(&bytes[at..]);
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' | 0..=0x1f => return None,
            _ => at += 1,
        }
    }
}

/// A text being read.
#[derive(Debug)]
pub(super) struct JsonReader<'text> {
    text: &'text str,
    at: usize,
    depth: usize,
    /// Of every object that is being read, the outermost first: its keys up to here.
    keys: Vec<Cow<'text, str>>,
    /// The values in quotes so far; `None` where one of them, or a key, is spelled with an escape.
    texts: Option<Vec<Text>>,
}

impl<'text> JsonReader<'text> {
    pub(super) fn new(text: &'text str) -> Self {
        Self { text, at: 0, depth: 0, keys: Vec::new(), texts: Some(Vec::new()) }
    }

    /// Every value in quotes that was read, and what it was for; `None` where something is spelled with an escape.
    pub(super) fn texts(self) -> Option<Vec<Text>> {
        self.texts
    }

    /// Says what the text that was read last is for.
    pub(super) fn was(&mut self, for_what: Use) {
        if let Some(last) = self.texts.as_mut().and_then(|texts| texts.last_mut()) {
            last.for_what = for_what;
        }
    }

    /// Where it stands.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// The mistake that something else was expected here.
    fn not(&mut self, expected: &str) -> ParseError {
        let found = if self.peek().is_some() {
            let rest = &self.text[self.at..];
            let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
            format!("found `{}`", short(&rest[..end]))
        } else {
            "the text ends".to_owned()
        };
        ParseError { at: self.at, key: String::new(), what: format!("expected {expected}; {found}") }
    }

    /// A value that is well formed and not what it should be: it starts at `at`.
    pub(super) fn wrong(at: usize, expected: &str, found: &str) -> ParseError {
        ParseError { at, key: String::new(), what: format!("expected {expected}; found `{}`", short(found)) }
    }

    fn inside<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, ParseError>) -> Result<T, ParseError> {
        if self.depth == DEPTH {
            let what = format!("expected at most {DEPTH} levels");
            return Err(ParseError { at: self.at, key: String::new(), what });
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// An object; `member` reads the value behind each key.
    pub(super) fn object(
        &mut self,
        expected: &str,
        mut member: impl FnMut(&str, &mut Self) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        if !self.take(b'{') {
            return Err(self.not(expected));
        }
        self.inside(|json| {
            if json.take(b'}') {
                return Ok(());
            }
            let (above, mut many) = (json.keys.len(), HashSet::new());
            loop {
                let _ = json.peek();
                let at = json.at;
                let key = json.text("a key in quotes")?;
                let _ = json.texts.as_mut().and_then(Vec::pop);
                if !json.take(b':') {
                    return Err(json.not("`:`").under(&key));
                }
                let siblings = &json.keys[above..];
                let known = if siblings.len() < FEW {
                    siblings.contains(&key)
                } else {
                    if many.is_empty() {
                        many.extend(siblings.iter().cloned());
                    }
                    !many.insert(key.clone())
                };
                if known {
                    let what = "stands here for the second time in one object; expected it once".to_owned();
                    return Err(ParseError { at, key: String::new(), what }.under(&key));
                }
                member(&key, json).map_err(|mistake| mistake.under(&key))?;
                json.keys.push(key);
                if json.take(b'}') {
                    json.keys.truncate(above);
                    return Ok(());
                }
                if !json.take(b',') {
                    return Err(json.not("`,` or `}`"));
                }
            }
        })
    }

    /// An array; `item` reads each value.
    pub(super) fn array(
        &mut self,
        expected: &str,
        mut item: impl FnMut(&mut Self) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        if !self.take(b'[') {
            return Err(self.not(expected));
        }
        self.inside(|json| {
            if json.take(b']') {
                return Ok(());
            }
            for index in 0_usize.. {
                item(json).map_err(|mistake| mistake.under(&format!("[{index}]")))?;
                if json.take(b']') {
                    break;
                }
                if !json.take(b',') {
                    return Err(json.not("`,` or `]`"));
                }
            }
            Ok(())
        })
    }

    /// A text in quotes.
    pub(super) fn text(&mut self, expected: &str) -> Result<Cow<'text, str>, ParseError> {
        if !self.take(b'"') {
            return Err(self.not(expected));
        }
        let start = self.at;
        let bytes = self.text.as_bytes();
        loop {
            self.at += plain(&bytes[self.at..]);
            match bytes.get(self.at) {
                Some(b'"') => {
                    let end = self.at;
                    self.at += 1;
                    if let Some(texts) = &mut self.texts {
                        texts.push(Text { start, end, for_what: Use::Judged });
                    }
                    return Ok(Cow::Borrowed(&self.text[start..end]));
                }
                Some(b'\\') => {
                    self.texts = None;
                    return self.escaped(start).map(Cow::Owned);
                }
                Some(0..=0x1f) | None => return Err(self.not("`\"` at the end of a text")),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escaped(&mut self, start: usize) -> Result<String, ParseError> {
        let mut out = self.text[start..self.at].to_owned();
        loop {
            let rest = &self.text[self.at..];
            match rest.chars().next() {
                Some('"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some('\\') => {
                    let Some(escape) = rest.as_bytes().get(1) else { return Err(self.not("an escape")) };
                    let plain = match escape {
                        b'"' => '"',
                        b'\\' => '\\',
                        b'/' => '/',
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'n' => '\n',
                        b'r' => '\r',
                        b't' => '\t',
                        b'u' => {
                            let c = self.unicode()?;
                            out.push(c);
                            continue;
                        }
                        _ => return Err(self.not("an escape such as \\n")),
                    };
                    out.push(plain);
                    self.at += 2;
                }
                Some(c) if c >= ' ' => {
                    out.push(c);
                    self.at += c.len_utf8();
                }
                _ => return Err(self.not("`\"` at the end of a text")),
            }
        }
    }

    /// `\u` and four digits, twice where the first is the half of a pair.
    fn unicode(&mut self) -> Result<char, ParseError> {
        let unit = |at: usize| {
            let digits = self.text.get(at..at + 6)?.strip_prefix("\\u")?;
            digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
        };
        let found = match unit(self.at) {
            Some(high @ 0xd800..=0xdbff) => unit(self.at + 6)
                .filter(|low| (0xdc00..=0xdfff).contains(low))
                .and_then(|low| char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)))
                .map(|c| (c, 12)),
            Some(unit) => char::from_u32(unit).map(|c| (c, 6)),
            None => None,
        };
        let Some((c, length)) = found else { return Err(self.not("an escape such as \\u00e9")) };
        self.at += length;
        Ok(c)
    }

    /// The text of a number, as it is spelled.
    fn number(&mut self, expected: &str) -> Result<&'text str, ParseError> {
        let _ = self.peek();
        let rest = &self.text[self.at..];
        let digits = |from: usize| rest[from..].bytes().take_while(u8::is_ascii_digit).count();
        let minus = usize::from(rest.starts_with('-'));
        let whole = digits(minus);
        if whole == 0 || (whole > 1 && rest.as_bytes()[minus] == b'0') {
            return Err(self.not(expected));
        }
        let mut end = minus + whole;
        if rest.as_bytes().get(end) == Some(&b'.') {
            let fraction = digits(end + 1);
            if fraction == 0 {
                return Err(self.not(expected));
            }
            end += 1 + fraction;
        }
        if matches!(rest.as_bytes().get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(rest.as_bytes().get(end + 1), Some(b'+' | b'-')));
            let exponent = digits(end + 1 + sign);
            if exponent == 0 {
                return Err(self.not(expected));
            }
            end += 1 + sign + exponent;
        }
        self.at += end;
        Ok(&rest[..end])
    }

    /// A whole number that fits.
    pub(super) fn whole(&mut self, expected: &str) -> Result<u32, ParseError> {
        let _ = self.peek();
        let at = self.at;
        let spelled = self.number(expected)?;
        spelled.parse().map_err(|_| Self::wrong(at, expected, spelled))
    }

    fn word(&mut self, word: &str) -> bool {
        let _ = self.peek();
        let there = self.text[self.at..].starts_with(word);
        self.at += if there { word.len() } else { 0 };
        there
    }

    /// `true` or `false`.
    pub(super) fn truth(&mut self) -> Result<bool, ParseError> {
        if self.word("true") {
            Ok(true)
        } else if self.word("false") {
            Ok(false)
        } else {
            Err(self.not("`true` or `false`"))
        }
    }

    /// Whether the value is `null`: an absent fact, however it is spelled.
    pub(super) fn null(&mut self) -> bool {
        self.peek() == Some(b'n') && self.word("null")
    }

    /// Passes over a value of any kind.
    pub(super) fn skip(&mut self) -> Result<(), ParseError> {
        match self.peek() {
            Some(b'{') => self.object("an object", |_, json| json.skip()),
            Some(b'[') => self.array("an array", Self::skip),
            Some(b'"') => {
                let _ = self.text("a text")?;
                self.was(Use::Passed);
                Ok(())
            }
            Some(b't' | b'f') => self.truth().map(drop),
            Some(b'n') if self.null() => Ok(()),
            Some(b'-' | b'0'..=b'9') => self.number("a number").map(drop),
            _ => Err(self.not("a value")),
        }
    }

    /// Nothing may follow.
    pub(super) fn end(&mut self) -> Result<(), ParseError> {
        if self.peek().is_none() { Ok(()) } else { Err(self.not("nothing more")) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn accepts(text: &str) -> bool {
        let mut json = JsonReader::new(text);
        json.skip().and_then(|()| json.end()).is_ok()
    }

    /// What it makes of a value, as `serde_json` makes it.
    fn value(json: &mut JsonReader<'_>) -> Result<serde_json::Value, ParseError> {
        Ok(match json.peek() {
            Some(b'{') => {
                let mut members = serde_json::Map::new();
                json.object("", |key, json| {
                    members.insert(key.to_owned(), value(json)?);
                    Ok(())
                })?;
                members.into()
            }
            Some(b'[') => {
                let mut items = Vec::new();
                json.array("", |json| {
                    items.push(value(json)?);
                    Ok(())
                })?;
                items.into()
            }
            Some(b'"') => json.text("")?.into_owned().into(),
            Some(b't' | b'f') => json.truth()?.into(),
            Some(b'n') if json.null() => serde_json::Value::Null,
            _ => {
                let spelled = json.number("a value")?;
                serde_json::from_str(spelled).expect("a number of ours is one of theirs")
            }
        })
    }

    fn any_value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(serde_json::Value::from),
            any::<i64>().prop_map(serde_json::Value::from),
            any::<String>().prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
                proptest::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn reads_what_serde_json_writes(written in any_value(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&written) } else { serde_json::to_string(&written) };
            let text = text.expect("it can be written");
            let mut json = JsonReader::new(&text);
            prop_assert_eq!(value(&mut json).expect(&text), written);
            prop_assert!(json.end().is_ok());
        }

        #[test]
        fn agrees_with_serde_json_on_what_is_json(text in r#"[\[\]{}:,"\\0-9eE.+\- a-fnrtu]{0,24}"#) {
            // serde_json alone minds numbers that no float holds.
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            let out_of_range = theirs.as_ref().err().is_some_and(|error| error.to_string().contains("out of range"));
            // And it takes two members of one name.
            let twice = JsonReader::new(&text).skip().is_err_and(|mistake| mistake.what.contains("second time"));
            prop_assert!(out_of_range || twice || accepts(&text) == theirs.is_ok(), "{}", text);
        }

        #[test]
        fn anything_is_read_or_refused(text: String) {
            let _ = accepts(&text);
        }
    }

    #[test]
    fn nesting_ends() {
        assert!(accepts(&("[".repeat(DEPTH) + &"]".repeat(DEPTH))));
        assert!(!accepts(&"[".repeat(1_000_000)));
    }

    #[test]
    fn a_key_stands_once_in_an_object() {
        let mistake = |text: &str| JsonReader::new(text).skip().expect_err(text);
        let found = mistake(r#"{"a": [{"b": 1}, {"b": 1, "c": 2, "\u0062": 3}]}"#);
        assert_eq!((found.key.as_str(), found.at), ("a[1].b", 34));
        assert_eq!(found.to_string(), "`a[1].b`: stands here for the second time in one object; expected it once");
        let numbered = |count: usize, last: usize| {
            let keys: Vec<String> = (0..count).chain([last]).map(|key| format!("\"{key}\":0")).collect();
            format!("{{{}}}", keys.join(","))
        };
        for count in [1, FEW - 1, FEW, FEW + 1, 100_000] {
            for again in [0, count / 2, count - 1] {
                assert_eq!(mistake(&numbered(count, again)).key, again.to_string(), "{count}");
            }
            assert!(accepts(&numbered(count, count)), "{count}");
        }
        assert!(accepts(r#"{"a": {"a": 1, "b": {"a": 1}}, "b": [{"a": 1}, {"a": 1}]}"#));
    }

    #[test]
    fn a_mistake_names_its_key() {
        let mut json = JsonReader::new(r#"{"a": {"b": [1, {"c": x}]}}"#);
        let mistake = json.skip().expect_err("x is nothing");
        assert_eq!((mistake.key.as_str(), mistake.at), ("a.b[1].c", 22));
        assert_eq!(mistake.to_string(), "`a.b[1].c`: expected a value; found `x}]}}`");
        assert_eq!(JsonReader::new("{").skip().unwrap_err().to_string(), "expected a key in quotes; the text ends");
    }
}
