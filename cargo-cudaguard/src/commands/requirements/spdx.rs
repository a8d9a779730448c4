//! CUDA components as packages of a bill of materials: SPDX 2.3 as JSON.
//!
//! SPDX has no field for a range, so the comment of the relationship contains it. SPDX 2.3 requires a creation time; it
//! is always 1970. The namespace of the document ends with a digest of its content. Equal files thus give equal text.

use cudaguard::internal::digest::Digest;
use serde::Serialize;
use serde_json::{Value, json};

use super::Inexpressible;
use super::RequirementsQuery;
use super::bill::BilledFile;
use super::bill_parts::{self, FamilyPart, FamilyReport};
use crate::cli::json_output;

const NAMESPACE: &str = "https://github.com/cudaguard/cudaguard/spdx";

pub(super) fn write_spdx(asked: &RequirementsQuery<'_>, bill: &[BilledFile]) -> Result<String, Inexpressible> {
    let FamilyReport { parts, needs } = bill_parts::family_of(asked, bill)?;
    let mut packages = Vec::new();
    let mut relationships = Vec::new();
    for (at, ((_, mine), billed)) in needs.iter().zip(bill).enumerate() {
        let file = format!("SPDXRef-file-{at}");
        packages.push(SpdxPackageView::of_file(file.clone(), billed));
        relationships.push(RelationshipView::new("SPDXRef-DOCUMENT", "DESCRIBES", &file, None));
        for (number, (_, part)) in parts.iter().enumerate().filter(|(_, (reference, _))| mine.contains(*reference)) {
            let own = format!("SPDXRef-part-{number}");
            relationships.push(match (part.inside, part.optional) {
                (true, _) if part.sha256.is_some() => RelationshipView::new(&file, "CONTAINS", &own, None),
                (true, _) => RelationshipView::new(&file, "STATIC_LINK", &own, None),
                (false, true) => RelationshipView::new(&own, "OPTIONAL_DEPENDENCY_OF", &file, part_comment(part)),
                (false, false) => RelationshipView::new(&own, "RUNTIME_DEPENDENCY_OF", &file, part_comment(part)),
            });
        }
    }
    for (number, part) in parts.values().enumerate() {
        packages.push(SpdxPackageView::of_part(format!("SPDXRef-part-{number}"), part));
    }
    let mut digest = Digest::new();
    digest.push_text(&json_output::to_value(&packages).to_string());
    digest.push_text(&json_output::to_value(&relationships).to_string());
    Ok(json_output::render_foreign(&DocumentView {
        spdx_version: "SPDX-2.3",
        data_license: "CC0-1.0",
        id: "SPDXRef-DOCUMENT",
        name: asked.file_names(),
        document_namespace: format!("{NAMESPACE}/{:016x}", digest.to_u64()),
        creation_info: json!({ "created": "1970-01-01T00:00:00Z", "creators": ["Tool: cudaguard"] }),
        packages,
        relationships,
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DocumentView<'a> {
    spdx_version: &'static str,
    data_license: &'static str,
    #[serde(rename = "SPDXID")]
    id: &'static str,
    name: String,
    document_namespace: String,
    creation_info: Value,
    packages: Vec<SpdxPackageView<'a>>,
    relationships: Vec<RelationshipView>,
}

/// A file that the bill is about, a library or the driver.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpdxPackageView<'a> {
    #[serde(rename = "SPDXID")]
    id: String,
    name: &'a str,
    version_info: Option<&'a str>,
    package_file_name: Option<&'a str>,
    supplier: Option<&'static str>,
    download_location: &'static str,
    files_analyzed: bool,
    checksums: Option<Value>,
    external_refs: Option<Value>,
}

impl<'a> SpdxPackageView<'a> {
    fn of_file(id: String, file: &'a BilledFile) -> Self {
        let package = file.package.as_ref();
        Self {
            id,
            name: package.map_or(&file.name, |(name, ..)| name),
            version_info: package.map(|(_, version, _)| version.as_str()),
            package_file_name: Some(&file.name),
            supplier: None,
            download_location: "NOASSERTION",
            files_analyzed: false,
            checksums: file.sha256.as_deref().map(checksums),
            external_refs: package.map(|(.., purl)| purl_reference(purl)),
        }
    }

    fn of_part(id: String, part: &'a FamilyPart) -> Self {
        Self {
            id,
            name: &part.name,
            version_info: part.version.as_deref(),
            package_file_name: None,
            supplier: part.is_of_nvidia.then_some("Organization: NVIDIA"),
            download_location: "NOASSERTION",
            files_analyzed: false,
            checksums: part.sha256.as_deref().map(checksums),
            external_refs: Some(purl_reference(&part.purl)),
        }
    }
}

fn checksums(sha256: &str) -> Value {
    json!([{ "algorithm": "SHA256", "checksumValue": sha256 }])
}

fn purl_reference(purl: &str) -> Value {
    json!([{ "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl }])
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RelationshipView {
    spdx_element_id: String,
    relationship_type: &'static str,
    related_spdx_element: String,
    comment: Option<String>,
}

impl RelationshipView {
    fn new(from: &str, relationship_type: &'static str, to: &str, comment: Option<String>) -> Self {
        Self { spdx_element_id: from.to_owned(), relationship_type, related_spdx_element: to.to_owned(), comment }
    }
}

/// Returns the ranges of a component and its evidence in the file.
fn part_comment(part: &FamilyPart) -> Option<String> {
    let ranges = part.properties.iter().map(|(name, range)| match name.strip_prefix("cudaguard:range:") {
        Some(gpus) => format!("GPU {gpus}: {range}"),
        None => range.clone(),
    });
    let evidence = part.told_by.iter().map(|told_by| format!("evidence: {told_by}"));
    Some(ranges.chain(evidence).collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
}
