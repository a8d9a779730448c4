//! Findings for machines: GitHub's annotations and SARIF.

use cudaguard::finding::{Code, Finding, Severity};
use cudaguard::json::{Value, array, object};

/// One workflow command of GitHub's: an annotation.
pub(crate) fn github(finding: &Finding) -> String {
    let level = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    };
    let title = format!("{}: {}", finding.code, finding.code.title());
    let mut text = finding.message.clone();
    if !finding.hint.is_empty() {
        text.push_str("\nhint: ");
        text.push_str(&finding.hint);
    }
    format!("::{level} title={}::{}", property(&title), data(&text))
}

/// As the runner undoes it (`ActionCommand`): `%` first, and what ends a line.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The same for a property, which `:` and `,` end too.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// A finding with what SARIF wants besides.
pub(crate) struct Result {
    pub(crate) finding: Finding,
    /// The package's Cargo.toml, from the workspace's root, with `/`.
    pub(crate) uri: String,
    /// Why the policy allows it.
    pub(crate) allowed: Option<String>,
}

/// SARIF 2.1.0: one run, the codes that occur as its rules.
pub(crate) fn sarif(results: &[Result]) -> Value {
    let mut codes: Vec<Code> = results.iter().map(|result| result.finding.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let text = |text: &str| object([("text", Value::from(text))]);
    let rules = codes.iter().map(|code| {
        object([
            ("id", code.to_string().into()),
            ("shortDescription", text(code.title())),
            ("fullDescription", text(code.explanation())),
            ("help", text(code.explanation())),
            ("defaultConfiguration", object([("level", level(code.severity()).into())])),
        ])
    });
    let driver = object([
        ("name", "cudaguard".into()),
        ("version", env!("CARGO_PKG_VERSION").into()),
        ("informationUri", env!("CARGO_PKG_REPOSITORY").into()),
        ("rules", array(rules)),
    ]);
    let results = results.iter().map(|Result { finding, uri, allowed }| {
        let mut message = finding.message.clone();
        if !finding.hint.is_empty() {
            message.push_str("\nhint: ");
            message.push_str(&finding.hint);
        }
        let artifact = object([("uri", escaped(uri).into()), ("uriBaseId", "%SRCROOT%".into())]);
        let place = object([("artifactLocation", artifact), ("region", object([("startLine", 1u32.into())]))]);
        let package = object([("name", finding.component.as_str().into()), ("kind", "module".into())]);
        let location = object([("physicalLocation", place), ("logicalLocations", array([package]))]);
        let index = codes.binary_search(&finding.code).unwrap_or_default();
        let mut result = object([
            ("ruleId", finding.code.to_string().into()),
            ("ruleIndex", Value::Number(index as u64)),
            ("level", level(finding.severity).into()),
            ("message", text(&message)),
            ("locations", array([location])),
        ]);
        let suppressed = allowed.as_ref().map(|reason| {
            array([object([("kind", Value::from("external")), ("justification", reason.as_str().into())])])
        });
        result.put("suppressions", suppressed);
        result
    });
    let run = object([
        ("tool", object([("driver", driver)])),
        ("columnKind", "unicodeCodePoints".into()),
        ("results", array(results)),
    ]);
    object([
        ("$schema", "https://json.schemastore.org/sarif-2.1.0.json".into()),
        ("version", "2.1.0".into()),
        ("runs", array([run])),
    ])
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// A path as a relative URI.
fn escaped(path: &str) -> String {
    use std::fmt::Write as _;
    let mut uri = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~+".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_hold_on_one_line_whatever_is_in_them() {
        let finding = Finding::new(Code::ToolkitMixed, "s", "100%\r\nof: a, b", "");
        assert_eq!(
            github(&finding),
            "::error title=CG101%3A nvcc and cuda.h are of different releases::100%25%0D%0Aof: a, b"
        );
        let finding = Finding::new(Code::ToolkitMixed, "s", "m", "h").weighing(Severity::Info);
        assert!(github(&finding).starts_with("::notice ") && github(&finding).ends_with("::m%0Ahint: h"));
        assert_eq!(property("a:b,c%d"), "a%3Ab%2Cc%25d");
    }

    #[test]
    fn paths_are_uris() {
        assert_eq!(escaped("a b/ü#c/Cargo.toml"), "a%20b/%C3%BC%23c/Cargo.toml");
    }

    #[test]
    fn nothing_found_is_a_run_without_results() {
        let value: serde_json::Value = serde_json::from_str(&sarif(&[]).to_string()).unwrap();
        assert_eq!(value["runs"][0]["results"].as_array().map(Vec::len), Some(0));
    }
}
