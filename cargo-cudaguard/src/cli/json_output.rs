//! JSON on stdout. Each object begins with `schema`, the number of its published JSON schema.

use std::collections::BTreeMap;

use cudaguard::internal::finding::Finding;
use cudaguard::internal::json::{Value, array, object};
use serde::{Serialize, Serializer};

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

/// Serializes a value that is built by hand, as a field of a structure.
pub(crate) fn serialize_value<S: Serializer>(value: &Value, json: S) -> Result<S::Ok, S::Error> {
    match value {
        Value::Bool(value) => json.serialize_bool(*value),
        Value::Number(number) => json.serialize_u64(*number),
        Value::Text(text) => json.serialize_str(text),
        Value::Array(items) => json.collect_seq(items.iter().map(ValueView)),
        Value::Object(members) => json.collect_map(members.iter().map(|(key, value)| (key, ValueView(value)))),
    }
}

struct ValueView<'a>(&'a Value);

impl Serialize for ValueView<'_> {
    fn serialize<S: Serializer>(&self, json: S) -> Result<S::Ok, S::Error> {
        serialize_value(self.0, json)
    }
}

/// Converts structures for an object that is built from values. A missing fact is absent, never null.
pub(crate) fn to_values<T: Serialize>(rows: &[T]) -> Value {
    array(rows.iter().filter_map(|row| from_serde(serde_json::to_value(row).expect("all keys are texts"))))
}

fn from_serde(value: serde_json::Value) -> Option<Value> {
    Some(match value {
        serde_json::Value::Null => return None,
        serde_json::Value::Bool(value) => value.into(),
        serde_json::Value::Number(number) => Value::Number(number.as_u64()?),
        serde_json::Value::String(text) => text.into(),
        serde_json::Value::Array(items) => array(items.into_iter().filter_map(from_serde)),
        serde_json::Value::Object(members) => {
            object(members.into_iter().filter_map(|(key, value)| Some((key, from_serde(value)?))))
        }
    })
}

/// A finding, each fact with its own key.
#[derive(Serialize)]
pub(crate) struct FindingView<'a> {
    code: String,
    severity: &'static str,
    component: &'a str,
    subject: &'a str,
    message: &'a str,
    hint: &'a str,
    #[serde(flatten)]
    facts: BTreeMap<&'static str, &'a str>,
}

impl<'a> FindingView<'a> {
    /// The view of this finding.
    pub(crate) fn new(finding: &'a Finding) -> Self {
        Self {
            code: finding.code.to_string(),
            severity: finding.severity.name(),
            component: &finding.component,
            subject: &finding.subject,
            message: &finding.message,
            hint: &finding.hint,
            facts: finding.facts().collect(),
        }
    }
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
