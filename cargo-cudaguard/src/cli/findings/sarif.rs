//! Converts findings to SARIF.

use std::path::{Path, PathBuf};

use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{self, Code, Finding, Severity};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::json_output;

/// A finding with the additional data for SARIF.
pub(crate) struct SarifResult {
    pub(crate) finding: Finding,
    /// The Cargo.toml of the package, relative to the repository root and with `/`, because GitHub accepts no other
    /// path. The absolute path if the file is outside of the repository.
    pub(crate) uri: String,
    /// The reason why the policy allows it.
    pub(crate) allowed: Option<String>,
}

/// Converts the findings of files to SARIF. The files are named as the user named them.
pub(crate) fn files_to_sarif(files: &[(PathBuf, Vec<Finding>)]) -> String {
    let env = Env::from_process();
    let of_file = |(file, findings): &(PathBuf, Vec<Finding>)| {
        let uri = place_of(file, env.current_dir());
        let one = |finding: &Finding| SarifResult { finding: finding.clone(), uri: uri.clone(), allowed: None };
        finding::sorted_unique(findings).into_iter().map(one).collect::<Vec<_>>()
    };
    to_sarif(&files.iter().flat_map(of_file).collect::<Vec<_>>())
}

/// Returns the path relative to the current directory if it is below it, else the unchanged path.
fn place_of(file: &Path, here: &Path) -> String {
    if file == Path::new("-") {
        return "stdin".to_owned();
    }
    let below = file.strip_prefix(here).unwrap_or(file);
    below.strip_prefix(".").unwrap_or(below).to_string_lossy().into_owned()
}

/// Converts results to SARIF 2.1.0: one run, whose rules are the codes that occur.
pub(crate) fn to_sarif(results: &[SarifResult]) -> String {
    let mut codes: Vec<Code> = results.iter().map(|result| result.finding.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let rules: Vec<RuleView> = codes.iter().copied().map(RuleView::new).collect();
    let results: Vec<ResultView<'_>> = results.iter().map(|result| ResultView::new(result, &codes)).collect();
    json_output::render_foreign(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {
                "driver": {
                    "name": "cudaguard",
                    "version": env!("CARGO_PKG_VERSION"),
                    "informationUri": env!("CARGO_PKG_REPOSITORY"),
                    "rules": rules,
                },
            },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleView {
    id: String,
    short_description: TextView<&'static str>,
    full_description: TextView<&'static str>,
    help: TextView<&'static str>,
    default_configuration: Value,
}

#[derive(Serialize)]
struct TextView<T> {
    text: T,
}

impl RuleView {
    fn new(code: Code) -> Self {
        Self {
            id: code.to_string(),
            short_description: TextView { text: code.title() },
            full_description: TextView { text: code.explanation() },
            help: TextView { text: code.explanation() },
            default_configuration: json!({ "level": sarif_level(code.severity()) }),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultView<'a> {
    rule_id: String,
    rule_index: usize,
    level: &'static str,
    message: TextView<String>,
    locations: [LocationView<'a>; 1],
    suppressions: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LocationView<'a> {
    physical_location: PhysicalLocationView,
    logical_locations: [LogicalLocationView<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocationView {
    artifact_location: ArtifactLocationView,
    region: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactLocationView {
    uri: String,
    uri_base_id: Option<&'static str>,
}

#[derive(Serialize)]
struct LogicalLocationView<'a> {
    name: &'a str,
    kind: &'static str,
}

impl<'a> ResultView<'a> {
    fn new(SarifResult { finding, uri, allowed }: &'a SarifResult, codes: &[Code]) -> Self {
        let artifact_location = if uri.starts_with('/') {
            ArtifactLocationView { uri: format!("file://{}", escape_uri(uri)), uri_base_id: None }
        } else {
            ArtifactLocationView { uri: escape_uri(uri), uri_base_id: Some("%SRCROOT%") }
        };
        Self {
            rule_id: finding.code.to_string(),
            rule_index: codes.binary_search(&finding.code).unwrap_or_default(),
            level: sarif_level(finding.severity),
            message: TextView { text: finding.text() },
            locations: [LocationView {
                physical_location: PhysicalLocationView { artifact_location, region: json!({ "startLine": 1 }) },
                logical_locations: [LogicalLocationView { name: &finding.component, kind: "module" }],
            }],
            suppressions: allowed.as_ref().map(|reason| json!([{ "kind": "external", "justification": reason }])),
        }
    }
}

fn sarif_level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// Returns a path as a relative URI.
fn escape_uri(path: &str) -> String {
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
    fn paths_are_uris() {
        assert_eq!(escape_uri("a b/ü#c/Cargo.toml"), "a%20b/%C3%BC%23c/Cargo.toml");
    }

    #[test]
    fn paths_are_relative_to_directory() {
        for (file, expected) in [
            ("/a/b/c.whl", "c.whl"),
            ("/a/c.whl", "/a/c.whl"),
            ("./d/c.whl", "d/c.whl"),
            ("c.whl", "c.whl"),
            ("-", "stdin"),
        ] {
            assert_eq!(place_of(Path::new(file), Path::new("/a/b")), expected);
        }
        let finding = Finding::from_record(
            Code::PackageUnfit,
            Severity::Warning,
            ["app", "package", "message", "hint"].map(str::to_owned),
        );
        let written = files_to_sarif(&[("/elsewhere/a b.whl".into(), vec![finding.clone(), finding])]);
        let parsed: serde_json::Value = serde_json::from_str(&written).unwrap();
        let results = parsed["runs"][0]["results"].as_array().unwrap();
        assert_eq!(results.len(), 1, "equal results are listed once");
        let place = &results[0]["locations"][0]["physicalLocation"]["artifactLocation"];
        assert_eq!(place["uri"], "file:///elsewhere/a%20b.whl");
        assert!(place["uriBaseId"].is_null(), "{place}");
    }

    /// Name of an object, its required properties, and its allowed properties with their types.
    type Shape = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

    /// The parts of the published schema that apply to the written objects (SARIF 2.1.0 with errata 01,
    /// <https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json>): the required
    /// properties, and the optional properties that are used. None of these objects allows additional properties.
    const SHAPES: &[Shape] = &[
        ("log", &["version", "runs"], &[("$schema", "uri"), ("version", "2.1.0"), ("runs", "[run]")]),
        (
            "run",
            &["tool"],
            &[("tool", "tool"), ("columnKind", "utf16CodeUnits|unicodeCodePoints"), ("results", "[result]")],
        ),
        ("tool", &["driver"], &[("driver", "component")]),
        (
            "component",
            &["name"],
            &[("name", "text"), ("version", "text"), ("informationUri", "uri"), ("rules", "[rule]")],
        ),
        (
            "rule",
            &["id"],
            &[
                ("id", "text"),
                ("shortDescription", "message"),
                ("fullDescription", "message"),
                ("help", "message"),
                ("defaultConfiguration", "configuration"),
            ],
        ),
        ("configuration", &[], &[("level", "none|note|warning|error")]),
        (
            "result",
            &["message"],
            &[
                ("ruleId", "text"),
                ("ruleIndex", "number"),
                ("level", "none|note|warning|error"),
                ("message", "message"),
                ("locations", "[location]"),
                ("suppressions", "[suppression]"),
            ],
        ),
        ("message", &["text"], &[("text", "text")]),
        ("location", &[], &[("physicalLocation", "place"), ("logicalLocations", "[logical]")]),
        ("place", &["artifactLocation"], &[("artifactLocation", "artifact"), ("region", "region")]),
        ("artifact", &[], &[("uri", "relative"), ("uriBaseId", "text")]),
        ("region", &[], &[("startLine", "line")]),
        ("logical", &[], &[("name", "text"), ("kind", "text")]),
        ("suppression", &["kind"], &[("kind", "inSource|external"), ("justification", "text")]),
    ];

    fn fits(kind: &str, value: &serde_json::Value, at: &str) {
        if let Some(kind) = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')) {
            let items = value.as_array().unwrap_or_else(|| panic!("{at}: a list is wanted: {value}"));
            return items.iter().enumerate().for_each(|(number, item)| fits(kind, item, &format!("{at}[{number}]")));
        }
        let Some((_, required, known)) = SHAPES.iter().find(|(name, ..)| *name == kind) else {
            let text = value.as_str();
            let right = match kind {
                "text" => text.is_some(),
                "uri" => text.is_some_and(|text| text.starts_with("https://") && !text.contains(' ')),
                "relative" => text.is_some_and(|text| !text.starts_with('/') && !text.contains([' ', '\\'])),
                "number" => value.is_u64(),
                "line" => value.as_u64().is_some_and(|line| line > 0),
                words => text.is_some_and(|text| words.split('|').any(|word| word == text)),
            };
            assert!(right, "{at}: {kind} is wanted: {value}");
            return;
        };
        let members = value.as_object().unwrap_or_else(|| panic!("{at}: an object is wanted: {value}"));
        for name in *required {
            assert!(members.contains_key(*name), "{at}: lacks {name}");
        }
        for (name, value) in members {
            let known = known.iter().find(|(known, _)| known == name);
            let (_, kind) = known.unwrap_or_else(|| panic!("{at}: the schema knows no {name}"));
            fits(kind, value, &format!("{at}.{name}"));
        }
    }

    #[test]
    fn output_matches_published_schema() {
        let results: Vec<SarifResult> = Code::ALL
            .iter()
            .enumerate()
            .map(|(number, code)| SarifResult {
                finding: Finding::from_record(
                    *code,
                    code.severity(),
                    ["app 0.1.0", "subject", "message\nfact: \"a\"", "hint"].map(str::to_owned),
                ),
                uri: ["Cargo.toml", "a b/ü/Cargo.toml"][number % 2].to_owned(),
                allowed: (number % 3 == 0).then(|| "a reason".to_owned()),
            })
            .collect();
        for results in [&results[..], &results[..1], &[]] {
            let value: serde_json::Value = serde_json::from_str(&to_sarif(results)).unwrap();
            fits("log", &value, "log");
            let run = &value["runs"][0];
            let found = run["results"].as_array().unwrap();
            assert_eq!(found.len(), results.len());
            for result in found {
                let rule = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
                assert_eq!(run["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
            }
        }
    }
}
