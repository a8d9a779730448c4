//! CUDA components as packages of a bill of materials: SPDX 2.3 as JSON.
//!
//! SPDX has no field for a range, so the comment of the relationship contains it. SPDX 2.3 requires a creation time; it
//! is always 1970. The namespace of the document ends with a digest of its content. Equal files thus give equal text.

use cudaguard::internal::digest::Digest;
use cudaguard::internal::json::{Value, array, object};

use super::RequirementsQuery;
use super::bill::BilledFile;
use super::family::{self, FamilyPart, FamilyReport};

const NAMESPACE: &str = "https://github.com/cudaguard/cudaguard/spdx";

pub(super) fn write_spdx(asked: &RequirementsQuery<'_>, bill: &[BilledFile]) -> Result<String, String> {
    let FamilyReport { parts, needs } = family::family_of(asked, bill)?;
    let mut packages = Vec::new();
    let mut relations = Vec::new();
    for (at, ((_, mine), billed)) in needs.iter().zip(bill).enumerate() {
        let file = format!("SPDXRef-file-{at}");
        packages.push(file_value(&file, billed));
        relations.push(relation_value("SPDXRef-DOCUMENT", "DESCRIBES", &file, None));
        for (number, (_, part)) in parts.iter().enumerate().filter(|(_, (reference, _))| mine.contains(*reference)) {
            let own = format!("SPDXRef-part-{number}");
            relations.push(match (part.inside, part.optional) {
                (true, _) if part.sha256.is_some() => relation_value(&file, "CONTAINS", &own, None),
                (true, _) => relation_value(&file, "STATIC_LINK", &own, None),
                (false, true) => relation_value(&own, "OPTIONAL_DEPENDENCY_OF", &file, part_comment(part)),
                (false, false) => relation_value(&own, "RUNTIME_DEPENDENCY_OF", &file, part_comment(part)),
            });
        }
    }
    for (number, part) in parts.values().enumerate() {
        let own = format!("SPDXRef-part-{number}");
        packages.push(package_value(&own, part));
    }
    let (packages, relations) = (array(packages), array(relations));
    let mut digest = Digest::new();
    digest.push_text(&packages.to_string()).push_text(&relations.to_string());
    let created = [("created", "1970-01-01T00:00:00Z".into()), ("creators", array(["Tool: cudaguard"]))];
    let value = object([
        ("spdxVersion", "SPDX-2.3".into()),
        ("dataLicense", "CC0-1.0".into()),
        ("SPDXID", "SPDXRef-DOCUMENT".into()),
        ("name", asked.file_names().into()),
        ("documentNamespace", format!("{NAMESPACE}/{:016x}", digest.to_u64()).into()),
        ("creationInfo", object(created)),
        ("packages", packages),
        ("relationships", relations),
    ]);
    Ok(format!("{}\n", value.to_pretty_string()))
}

/// A file that the bill is about.
fn file_value(id: &str, file: &BilledFile) -> Value {
    let name = file.package.as_ref().map_or(&file.name, |(name, ..)| name);
    let mut value = object([("SPDXID", id.into()), ("name", name.as_str().into())]);
    value.insert_some("versionInfo", file.package.as_ref().map(|(_, version, _)| version.as_str()));
    value.insert_some("packageFileName", Some(file.name.as_str()));
    value.insert_some("downloadLocation", Some("NOASSERTION"));
    value.insert_some("filesAnalyzed", Some(false));
    value.insert_some("checksums", file.sha256.as_deref().map(checksums));
    value.insert_some("externalRefs", file.package.as_ref().map(|(.., purl)| purl_reference(purl)));
    value
}

/// A library or driver.
fn package_value(id: &str, part: &FamilyPart) -> Value {
    let mut value = object([("SPDXID", id.into()), ("name", part.name.as_str().into())]);
    value.insert_some("versionInfo", part.version.as_deref());
    value.insert_some("supplier", part.is_of_nvidia.then_some("Organization: NVIDIA"));
    value.insert_some("downloadLocation", Some("NOASSERTION"));
    value.insert_some("filesAnalyzed", Some(false));
    value.insert_some("checksums", part.sha256.as_deref().map(checksums));
    value.insert_some("externalRefs", Some(purl_reference(&part.purl)));
    value
}

fn checksums(sha256: &str) -> Value {
    array([object([("algorithm", "SHA256".into()), ("checksumValue", sha256.into())])])
}

fn purl_reference(purl: &str) -> Value {
    array([object([
        ("referenceCategory", "PACKAGE-MANAGER".into()),
        ("referenceType", "purl".into()),
        ("referenceLocator", purl.into()),
    ])])
}

fn relation_value(from: &str, kind: &str, to: &str, comment: Option<String>) -> Value {
    let mut value =
        object([("spdxElementId", from.into()), ("relationshipType", kind.into()), ("relatedSpdxElement", to.into())]);
    value.insert_some("comment", comment);
    value
}

/// Returns the ranges of a component and its evidence in the file.
fn part_comment(part: &FamilyPart) -> Option<String> {
    let range = |(name, range): &(String, String)| match name.strip_prefix("cudaguard:range:") {
        Some(gpus) => format!("GPU {gpus}: {range}"),
        None => range.clone(),
    };
    let ranges = part.properties.iter().map(range);
    let evidence = part.told_by.iter().map(|told_by| format!("evidence: {told_by}"));
    Some(ranges.chain(evidence).collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
}
