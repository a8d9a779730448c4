//! A minimal JSON writer for the manifest and the reports, so that a build.rs needs no JSON dependency.

use std::fmt::{self, Write as _};

/// A JSON value. Objects keep the order of their members.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `true`, `false`.
    Bool(bool),
    /// A non-negative integer.
    Number(u64),
    /// Text.
    Text(String),
    /// `[…]`.
    Array(Vec<Value>),
    /// `{…}`.
    Object(Vec<(String, Value)>),
}

/// Creates an object of these members, in this order.
pub fn object<K: Into<String>>(members: impl IntoIterator<Item = (K, Value)>) -> Value {
    let mut object = Vec::new();
    for (key, value) in members {
        object.push((key.into(), value));
    }
    Value::Object(object)
}

/// Creates an array of these items.
pub fn array<V: Into<Value>>(items: impl IntoIterator<Item = V>) -> Value {
    Value::Array(items.into_iter().map(Into::into).collect::<Vec<_>>())
}

/// Formats a text as a string of JSON, which is also a basic string of TOML.
pub fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

impl Value {
    /// Adds a member to an object if there is a value. A missing fact is absent, never null.
    ///
    /// # Panics
    /// If this is not an object, which is a bug in the caller.
    pub fn insert_some(&mut self, key: &str, value: Option<impl Into<Self>>) {
        let Self::Object(members) = self else { panic!("cannot insert a key into a value that is not an object") };
        if let Some(value) = value {
            members.push((key.to_owned(), value.into()));
        }
    }

    /// Formats the value over several lines, indented by two blanks per level, for people.
    pub fn to_pretty_string(&self) -> String {
        let mut out = String::new();
        self.write_pretty(&mut out, 0);
        out
    }
    fn write_pretty(&self, out: &mut String, level: usize) {
        let (open, close, empty) = match self {
            Self::Array(items) => ('[', ']', items.is_empty()),
            Self::Object(members) => ('{', '}', members.is_empty()),
            _ => ('\0', '\0', true),
        };
        if empty {
            let _ = write!(out, "{self}");
            return;
        }
        let line = |out: &mut String, level: usize| {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", level));
        };
        out.push(open);
        match self {
            Self::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    line(out, level + 1);
                    item.write_pretty(out, level + 1);
                }
            }
            Self::Object(members) => {
                for (at, (key, value)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    line(out, level + 1);
                    let _ = write!(out, "{}: ", Self::Text(key.clone()));
                    value.write_pretty(out, level + 1);
                }
            }
            _ => {}
        }
        line(out, level);
        out.push(close);
    }
}

impl fmt::Display for Value {
    /// Formats the value on one line, without blanks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(text) => write_text(f, text),
            Self::Array(items) => {
                f.write_char('[')?;
                for (at, item) in items.iter().enumerate() {
                    f.write_str(if at > 0 { "," } else { "" })?;
                    item.fmt(f)?;
                }
                f.write_char(']')
            }
            Self::Object(members) => {
                f.write_char('{')?;
                for (at, (key, value)) in members.iter().enumerate() {
                    f.write_str(if at > 0 { "," } else { "" })?;
                    write_text(f, key)?;
                    f.write_char(':')?;
                    value.fmt(f)?;
                }
                f.write_char('}')
            }
        }
    }
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c < ' ' || c == '\u{7f}' => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Number(value.into())
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        array(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(Value::from("a\"b\\c\n\u{1}é").to_string(), "\"a\\\"b\\\\c\\n\\u0001é\"");
    }

    #[test]
    fn compact_and_pretty_output() {
        let mut value = object([("a", array([1u32, 2])), ("b", object::<&str>([]))]);
        value.insert_some("c", Some(true));
        value.insert_some("d", None::<&str>);
        assert_eq!(value.to_string(), r#"{"a":[1,2],"b":{},"c":true}"#);
        assert_eq!(value.to_pretty_string(), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {},\n  \"c\": true\n}");
    }
}
