//! JSON on stdout. Each object begins with `schema`, the number of its published JSON schema.

use cudaguard::internal::json::{Value, object};
use serde::Serialize;

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

/// An object with its schema number.
#[derive(Serialize)]
struct VersionedView<'a, T> {
    schema: u32,
    #[serde(flatten)]
    content: &'a T,
}

/// Renders a structure with its schema number over several lines.
pub(crate) fn render_view<T: Serialize>(content: &T) -> String {
    let text = serde_json::to_string_pretty(&VersionedView { schema: SCHEMA, content });
    format!("{}\n", text.expect("all keys are texts"))
}

/// Renders a structure with its schema number in one line.
pub(crate) fn render_view_line<T: Serialize>(content: &T) -> String {
    let text = serde_json::to_string(&VersionedView { schema: SCHEMA, content });
    format!("{}\n", text.expect("all keys are texts"))
}
