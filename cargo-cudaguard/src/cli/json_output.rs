//! JSON on stdout. Each object begins with `schema`, the number of its published JSON schema.

use cudaguard::internal::json::{Value, object};

/// The number of the JSON schemas. It changes if a key is removed or gets another meaning; new keys do not change it.
pub(crate) const SCHEMA: u32 = 1;

/// Returns the object with its schema number first.
pub(crate) fn versioned(value: Value) -> Value {
    let mut all = object([("schema", Value::from(SCHEMA))]);
    if let (Value::Object(all), Value::Object(members)) = (&mut all, value) {
        all.extend(members);
    }
    all
}

/// Renders an object with its schema number over several lines.
pub(crate) fn render(value: Value) -> String {
    format!("{}\n", versioned(value).to_pretty_string())
}
