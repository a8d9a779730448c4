//! A minimal JSON writer for the manifest and the reports, so that a build.rs needs no JSON dependency.

use std::fmt::{self, Write as _};

/// A JSON value. Objects keep the order of their members.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An unknown fact, which an object does not contain.
    Missing,
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

/// Creates an object of the members that have a value, in this order. A missing fact is absent, never null.
pub fn object<K: Into<String>>(members: impl IntoIterator<Item = (K, Value)>) -> Value {
    let mut object = Vec::new();
    for (key, value) in members {
        if value != Value::Missing {
            object.push((key.into(), value));
        }
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

impl fmt::Display for Value {
    /// Formats the value on one line, without blanks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("null"),
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

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
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
    fn missing_facts_are_left_out() {
        let value = object([
            ("a", array([1u32, 2])),
            ("b", object::<&str>([])),
            ("c", Some(true).into()),
            ("d", None::<&str>.into()),
        ]);
        assert_eq!(value.to_string(), r#"{"a":[1,2],"b":{},"c":true}"#);
    }
}
