//! CUDA components as a bill of materials in `CycloneDX` 1.6.
//!
//! Components in the files have a version. Components of the machine have none: 1.6 does not support ranges, so they
//! are in the property `cudaguard:range`. Serial number and time are omitted, so that equal files give equal text.

use serde::Serialize;
use serde_json::{Value, json};

use super::Inexpressible;
use super::RequirementsQuery;
use super::bill::BilledFile;
use super::bill_parts::{self, FamilyPart, FamilyReport};
use crate::cli::json_output;

pub(super) fn write_cyclonedx(asked: &RequirementsQuery<'_>, bill: &[BilledFile]) -> Result<String, Inexpressible> {
    let FamilyReport { parts, needs } = bill_parts::family_of(asked, bill)?;
    let files = bill.iter().enumerate().map(|(at, file)| ComponentView::of_file(at, file));
    let parts = parts.iter().map(|(reference, part)| ComponentView::of_part(reference, part));
    let dependencies = needs.iter().enumerate().map(|(at, (_, mine))| DependencyView {
        reference: format!("file-{at}"),
        depends_on: mine.iter().map(String::as_str).collect(),
    });
    Ok(json_output::render_foreign(&BillView {
        schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
        bom_format: "CycloneDX",
        spec_version: "1.6",
        version: 1,
        metadata: json!({ "tools": { "components": [{ "type": "application", "name": "cudaguard" }] } }),
        components: files.chain(parts).collect(),
        dependencies: dependencies.collect(),
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BillView<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    bom_format: &'static str,
    spec_version: &'static str,
    version: u32,
    metadata: Value,
    components: Vec<ComponentView<'a>>,
    dependencies: Vec<DependencyView<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DependencyView<'a> {
    #[serde(rename = "ref")]
    reference: String,
    depends_on: Vec<&'a str>,
}

#[derive(Serialize)]
struct ComponentView<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(rename = "bom-ref")]
    reference: String,
    supplier: Option<Value>,
    name: &'a str,
    version: Option<&'a str>,
    hashes: Option<Value>,
    scope: Option<&'static str>,
    purl: Option<&'a str>,
    evidence: Option<ComponentEvidenceView<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    properties: Vec<PropertyView<'a>>,
}

#[derive(Serialize)]
struct PropertyView<'a> {
    name: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct ComponentEvidenceView<'a> {
    identity: Value,
    occurrences: Vec<OccurrenceView<'a>>,
}

#[derive(Serialize)]
struct OccurrenceView<'a> {
    location: &'a str,
    symbol: Option<&'a str>,
}

impl<'a> ComponentView<'a> {
    fn of_file(at: usize, file: &'a BilledFile) -> Self {
        let package = file.package.as_ref();
        Self {
            kind: if package.is_some() { "library" } else { "file" },
            reference: format!("file-{at}"),
            supplier: None,
            name: package.map_or(&file.name, |(name, ..)| name),
            version: package.map(|(_, version, _)| version.as_str()),
            hashes: file.sha256.as_deref().map(hashes),
            scope: None,
            purl: package.map(|(.., purl)| purl.as_str()),
            evidence: None,
            properties: package.iter().map(|_| PropertyView { name: "cudaguard:file", value: &file.name }).collect(),
        }
    }

    fn of_part(reference: &str, part: &'a FamilyPart) -> Self {
        let methods = part.told_by.iter();
        let methods = methods.map(|by| json!({ "technique": "binary-analysis", "confidence": 1, "value": by }));
        let seen = part.seen.iter();
        let properties = part.properties.iter();
        Self {
            kind: part.kind,
            reference: reference.to_owned(),
            supplier: part.is_of_nvidia.then(|| json!({ "name": "NVIDIA" })),
            name: &part.name,
            version: part.version.as_deref(),
            hashes: part.sha256.as_deref().map(hashes),
            scope: Some(if part.optional { "optional" } else { "required" }),
            purl: Some(&part.purl),
            evidence: Some(ComponentEvidenceView {
                identity: json!([{ "field": "name", "confidence": 1, "methods": methods.collect::<Vec<_>>() }]),
                occurrences: seen
                    .map(|(file, symbol)| OccurrenceView { location: file, symbol: symbol.as_deref() })
                    .collect(),
            }),
            properties: properties.map(|(name, value)| PropertyView { name, value }).collect(),
        }
    }
}

fn hashes(sha256: &str) -> Value {
    json!([{ "alg": "SHA-256", "content": sha256 }])
}
