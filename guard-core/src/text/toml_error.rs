//! Text about mistakes in TOML files.

use crate::text::lists::IteratorExt as _;
use toml::de::{DeValue, Error};

/// Returns the position and the cause of a TOML syntax error.
pub(crate) fn not_toml(text: &str, error: &Error) -> (usize, String) {
    let message = error.message().lines().join("; ");
    // The parser's message does not contain the duplicate key.
    let key = error.span().and_then(|span| text.get(span)).filter(|_| message == "duplicate key");
    let key = key.map(|key| format!(" `{key}`")).unwrap_or_default();
    (error.span().map_or(0, |span| span.start), format!("is not TOML: {message}{key}"))
}

/// Counts the ends of lines.
pub(crate) fn count_newlines(bytes: &[u8]) -> usize {
    bytes.split(|&byte| byte == b'\n').count() - 1
}

/// Describes the type of a value: "an integer".
pub(crate) fn kind_of(value: &DeValue<'_>) -> String {
    let kind = value.type_str();
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {kind}")
}
