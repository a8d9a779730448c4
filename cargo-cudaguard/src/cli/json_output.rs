//! JSON on stdout. Each object begins with `schema`, the number of its published JSON schema. A missing fact is absent,
//! never null.

use cudaguard::internal::finding::{self, Finding};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The number of the JSON schemas. It changes if a key is removed or gets another meaning; new keys do not change it.
const SCHEMA: u32 = 1;

/// An object with its schema number.
#[derive(Serialize)]
struct VersionedView<'a, T> {
    schema: u32,
    #[serde(flatten)]
    content: &'a T,
}

/// Renders a structure with its schema number over several lines.
pub(crate) fn render<T: Serialize>(content: &T) -> String {
    render_foreign(&VersionedView { schema: SCHEMA, content })
}

/// Renders a structure with its schema number in one line.
pub(crate) fn render_line<T: Serialize>(content: &T) -> String {
    format!("{}\n", to_value(&VersionedView { schema: SCHEMA, content }))
}

/// Renders a structure without a schema number, over several lines: another project publishes its schema.
pub(crate) fn render_foreign<T: Serialize>(content: &T) -> String {
    format!("{:#}\n", to_value(content))
}

/// Converts a structure without its missing facts.
pub(crate) fn to_value<T: Serialize>(content: &T) -> Value {
    let mut value = serde_json::to_value(content).expect("all keys are texts");
    remove_missing(&mut value);
    value
}

fn remove_missing(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(remove_missing);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_missing),
        _ => {}
    }
}

/// An object whose keys are data, in this order.
pub(crate) struct Members<K, V>(pub(crate) Vec<(K, V)>);

impl<K, V> Members<K, V> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Serialize, V: Serialize> Serialize for Members<K, V> {
    fn serialize<S: Serializer>(&self, json: S) -> Result<S::Ok, S::Error> {
        json.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// Returns the names of the items.
pub(crate) fn texts<T: ToString>(items: impl IntoIterator<Item = T>) -> Vec<String> {
    items.into_iter().map(|item| item.to_string()).collect()
}

/// A version and its origin.
#[derive(Serialize)]
pub(crate) struct VersionView {
    version: String,
    source: Option<String>,
}

impl VersionView {
    pub(crate) fn new(version: &impl ToString, source: impl Into<Option<String>>) -> Self {
        Self { version: version.to_string(), source: source.into() }
    }
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
    facts: Members<&'static str, &'a str>,
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
            facts: Members(finding.facts().collect()),
        }
    }

    /// The views of these findings, each once, in report order.
    pub(crate) fn sorted(findings: &'a [Finding]) -> Vec<Self> {
        finding::sorted_unique(findings).into_iter().map(Self::new).collect()
    }
}
