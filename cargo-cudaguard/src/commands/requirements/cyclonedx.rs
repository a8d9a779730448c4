//! CUDA components as a bill of materials in `CycloneDX` 1.6.
//!
//! Components in the files have a version. Components of the machine have none: 1.6 does not support ranges, so they
//! are in the property `cudaguard:range`. Serial number and time are omitted, so that equal files give equal text.

use cudaguard::internal::json::{Value, array, object};

use super::RequirementsQuery;
use super::bill::BilledFile;
use super::family::{self, FamilyPart, FamilyReport};

pub(super) fn write_cyclonedx(asked: &RequirementsQuery<'_>, bill: &[BilledFile]) -> Result<String, String> {
    let FamilyReport { parts, needs } = family::family_of(asked, bill)?;
    let files = bill.iter().enumerate().map(|(at, file)| {
        let kind = if file.package.is_some() { "library" } else { "file" };
        let name = file.package.as_ref().map_or(&file.name, |(name, ..)| name);
        let mut value =
            object([("type", kind.into()), ("bom-ref", format!("file-{at}").into()), ("name", name.as_str().into())]);
        value.insert_some("version", file.package.as_ref().map(|(_, version, _)| version.as_str()));
        value.insert_some("hashes", file.sha256.as_deref().map(hashes));
        value.insert_some("purl", file.package.as_ref().map(|(.., purl)| purl.as_str()));
        let path = object([("name", "cudaguard:file".into()), ("value", file.name.as_str().into())]);
        value.insert_some("properties", file.package.as_ref().map(|_| array([path])));
        value
    });
    let all = files.chain(parts.iter().map(|(reference, part)| to_json(part, reference)));
    let dependencies = needs.iter().enumerate().map(|(at, (_, mine))| {
        let on = array(mine.iter().map(String::as_str));
        object([("ref", format!("file-{at}").into()), ("dependsOn", on)])
    });
    let tool = object([("type", "application".into()), ("name", "cudaguard".into())]);
    let value = object([
        ("$schema", "http://cyclonedx.org/schema/bom-1.6.schema.json".into()),
        ("bomFormat", "CycloneDX".into()),
        ("specVersion", "1.6".into()),
        ("version", 1_u32.into()),
        ("metadata", object([("tools", object([("components", array([tool]))]))])),
        ("components", array(all)),
        ("dependencies", array(dependencies)),
    ]);
    Ok(format!("{}\n", value.to_pretty_string()))
}

fn hashes(sha256: &str) -> Value {
    array([object([("alg", "SHA-256".into()), ("content", sha256.into())])])
}

fn to_json(part: &FamilyPart, reference: &str) -> Value {
    let mut value = object([("type", part.kind.into()), ("bom-ref", reference.into())]);
    value.insert_some("supplier", part.is_of_nvidia.then(|| object([("name", "NVIDIA".into())])));
    value.insert_some("name", Some(part.name.as_str()));
    value.insert_some("version", part.version.as_deref());
    value.insert_some("hashes", part.sha256.as_deref().map(hashes));
    value.insert_some("scope", Some(if part.optional { "optional" } else { "required" }));
    value.insert_some("purl", Some(part.purl.as_str()));
    let methods = part.told_by.iter().map(|told_by| {
        object([("technique", "binary-analysis".into()), ("confidence", 1_u32.into()), ("value", (*told_by).into())])
    });
    let identity = object([("field", "name".into()), ("confidence", 1_u32.into()), ("methods", array(methods))]);
    let occurrences = part.seen.iter().map(|(file, symbol)| {
        let mut value = object([("location", file.as_str().into())]);
        value.insert_some("symbol", symbol.as_deref());
        value
    });
    value.insert_some("evidence", Some(object([("identity", array([identity])), ("occurrences", array(occurrences))])));
    let properties = part.properties.iter();
    let properties =
        properties.map(|(name, text)| object([("name", name.as_str().into()), ("value", text.as_str().into())]));
    value.insert_some("properties", (!part.properties.is_empty()).then(|| array(properties)));
    value
}
