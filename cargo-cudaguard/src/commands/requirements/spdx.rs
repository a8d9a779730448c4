//! CUDA components as packages of a bill of materials: SPDX 2.3 as JSON.
//!
//! SPDX has no field for a range, so the comment of the relationship contains it. SPDX 2.3 requires a creation time; it
//! is always 1970. The namespace of the document ends with a digest of its content. Equal files thus give equal text.

use cudaguard::internal::digest::Digest;
use cudaguard::internal::json::{Value, array, object};

use super::RequirementsQuery;
use super::family::{self, FamilyPart, FamilyReport};

const NAMESPACE: &str = "https://github.com/cudaguard/cudaguard/spdx";

pub(super) fn write_spdx(asked: &RequirementsQuery<'_>) -> Result<String, String> {
    let FamilyReport { parts, needs } = family::family_of(asked)?;
    let mut packages = Vec::new();
    let mut relations = Vec::new();
    for (at, (name, mine)) in needs.iter().enumerate() {
        let file = format!("SPDXRef-file-{at}");
        packages.push(package_value(&file, name, None, None));
        relations.push(relation_value("SPDXRef-DOCUMENT", "DESCRIBES", &file, None));
        for (number, (_, part)) in parts.iter().enumerate().filter(|(_, (reference, _))| mine.contains(*reference)) {
            let own = format!("SPDXRef-part-{number}");
            relations.push(match (&part.version, part.optional) {
                (Some(_), _) => relation_value(&file, "STATIC_LINK", &own, None),
                (None, true) => relation_value(&own, "OPTIONAL_DEPENDENCY_OF", &file, part_comment(part)),
                (None, false) => relation_value(&own, "RUNTIME_DEPENDENCY_OF", &file, part_comment(part)),
            });
        }
    }
    for (number, part) in parts.values().enumerate() {
        let own = format!("SPDXRef-part-{number}");
        packages.push(package_value(&own, &part.name, part.version.as_deref(), Some(&part.purl)));
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

fn package_value(id: &str, name: &str, version: Option<&str>, purl: Option<&str>) -> Value {
    let mut value = object([("SPDXID", id.into()), ("name", name.into())]);
    value.insert_some("versionInfo", version);
    value.insert_some("supplier", purl.map(|_| "Organization: NVIDIA"));
    value.insert_some("downloadLocation", Some("NOASSERTION"));
    value.insert_some("filesAnalyzed", Some(false));
    let reference = |purl: &str| {
        array([object([
            ("referenceCategory", "PACKAGE-MANAGER".into()),
            ("referenceType", "purl".into()),
            ("referenceLocator", purl.into()),
        ])])
    };
    value.insert_some("externalRefs", purl.map(reference));
    value
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
    let evidence = part.told_by.iter().map(|told_by| format!("told by: {told_by}"));
    Some(ranges.chain(evidence).collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
}
