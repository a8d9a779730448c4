//! The CUDA family as packages of a bill of materials: SPDX 2.3, as JSON.
//!
//! A range has no field of its own there: it stands in the comment of the relationship. The time of creation, which 2.3 demands, is
//! that of nothing, 1970, and the document's namespace ends with a digest of what it says: equal files give equal text.

use cudaguard::digest::Digest;
use cudaguard::json::{Value, array, object};

use super::Asked;
use super::family::{self, Family, Part};

const NAMESPACE: &str = "https://github.com/cudaguard/cudaguard/spdx";

pub(super) fn write(asked: &Asked<'_>) -> Result<String, String> {
    let Family { parts, needs } = family::of(asked)?;
    let mut packages = Vec::new();
    let mut relations = Vec::new();
    for (at, (name, mine)) in needs.iter().enumerate() {
        let file = format!("SPDXRef-file-{at}");
        packages.push(package(&file, name, None, None));
        relations.push(relation("SPDXRef-DOCUMENT", "DESCRIBES", &file, None));
        for (number, (_, part)) in parts.iter().enumerate().filter(|(_, (reference, _))| mine.contains(*reference)) {
            let own = format!("SPDXRef-part-{number}");
            relations.push(match (&part.version, part.optional) {
                (Some(_), _) => relation(&file, "STATIC_LINK", &own, None),
                (None, true) => relation(&own, "OPTIONAL_DEPENDENCY_OF", &file, comment(part)),
                (None, false) => relation(&own, "RUNTIME_DEPENDENCY_OF", &file, comment(part)),
            });
        }
    }
    for (number, part) in parts.values().enumerate() {
        let own = format!("SPDXRef-part-{number}");
        packages.push(package(&own, &part.name, part.version.as_deref(), Some(&part.purl)));
    }
    let (packages, relations) = (array(packages), array(relations));
    let mut digest = Digest::new();
    digest.text(&packages.to_string()).text(&relations.to_string());
    let created = [("created", "1970-01-01T00:00:00Z".into()), ("creators", array(["Tool: cudaguard"]))];
    let value = object([
        ("spdxVersion", "SPDX-2.3".into()),
        ("dataLicense", "CC0-1.0".into()),
        ("SPDXID", "SPDXRef-DOCUMENT".into()),
        ("name", asked.title().into()),
        ("documentNamespace", format!("{NAMESPACE}/{:016x}", digest.short()).into()),
        ("creationInfo", object(created)),
        ("packages", packages),
        ("relationships", relations),
    ]);
    Ok(format!("{}\n", value.pretty()))
}

fn package(id: &str, name: &str, version: Option<&str>, purl: Option<&str>) -> Value {
    let mut value = object([("SPDXID", id.into()), ("name", name.into())]);
    value.put("versionInfo", version);
    value.put("supplier", purl.map(|_| "Organization: NVIDIA"));
    value.put("downloadLocation", Some("NOASSERTION"));
    value.put("filesAnalyzed", Some(false));
    let reference = |purl: &str| {
        array([object([
            ("referenceCategory", "PACKAGE-MANAGER".into()),
            ("referenceType", "purl".into()),
            ("referenceLocator", purl.into()),
        ])])
    };
    value.put("externalRefs", purl.map(reference));
    value
}

fn relation(from: &str, kind: &str, to: &str, comment: Option<String>) -> Value {
    let mut value =
        object([("spdxElementId", from.into()), ("relationshipType", kind.into()), ("relatedSpdxElement", to.into())]);
    value.put("comment", comment);
    value
}

/// Its ranges, and what in the file tells of it.
fn comment(part: &Part) -> Option<String> {
    let range = |(name, range): &(String, String)| match name.strip_prefix("cudaguard:range:") {
        Some(gpus) => format!("GPU {gpus}: {range}"),
        None => range.clone(),
    };
    let ranges = part.properties.iter().map(range);
    let told = part.told_by.iter().map(|told_by| format!("told by: {told_by}"));
    Some(ranges.chain(told).collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
}
