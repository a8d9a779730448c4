//! The CUDA family as components of a bill of materials: `CycloneDX` 1.6.
//!
//! What stands in the files has its version. What a machine must bring has none: 1.6 knows no ranges, so they stand in properties,
//! `cudaguard:range`. No serial number and no time: equal files give equal text.

use std::collections::{BTreeMap, BTreeSet};

use cudaguard::json::{Value, array, object};
use cudaguard::manifest::{Linkage, Manifest, Requirement};
use cudaguard::vendor::{CUDART, GUARDED};

use super::{Asked, span_of};

const DRIVER: &str = "nvidia-driver";

/// A component, by its `bom-ref`.
#[derive(Default)]
struct Part {
    kind: &'static str,
    name: String,
    version: Option<String>,
    /// Of NVIDIA's package, without a version.
    purl: String,
    /// Whether a file can do without it.
    optional: bool,
    properties: BTreeSet<(String, String)>,
    /// What in the files tells of it.
    told_by: BTreeSet<&'static str>,
    /// In which file, by which function.
    seen: BTreeSet<(String, Option<String>)>,
}

pub(super) fn write(asked: &Asked<'_>) -> Result<String, String> {
    let mut parts: BTreeMap<String, Part> = BTreeMap::new();
    let mut needs: Vec<(String, BTreeSet<String>)> = Vec::new();
    for file in asked.components {
        let mut mine = BTreeSet::new();
        let mut put = |reference: &str, told_by: &'static str, symbol: Option<&str>, part: Part| {
            mine.insert(reference.to_owned());
            let entry = parts.entry(reference.to_owned()).or_insert(part);
            entry.told_by.insert(told_by);
            entry.seen.insert((file.file.clone(), symbol.map(str::to_owned)));
        };
        for needed in &file.needed {
            let soname = needed.soname.as_str();
            if soname.starts_with("libcuda.so") {
                put(DRIVER, "needed library (DT_NEEDED)", None, driver(asked));
                continue;
            }
            let bound = file.bound.iter().find(|bound| bound.soname == soname);
            let mut part = library(soname, purl(soname));
            part.properties.extend(bound.map(|bound| ("cudaguard:range".to_owned(), format!(">={}", bound.first))));
            put(soname, "needed library (DT_NEEDED)", bound.map(|bound| bound.name.as_str()), part);
        }
        for manifest in &file.manifests {
            inside(manifest, &mut put);
            for row in &manifest.requires {
                match row {
                    Requirement::Library {
                        soname, linkage: linkage @ (Linkage::Linked | Linkage::Dlopened), ..
                    } => {
                        let mut part = library(soname, purl(soname));
                        let range = asked.placement.library.map(|of| format!(">={},<{}", of.min, of.below));
                        part.properties.extend(range.map(|range| ("cudaguard:range".to_owned(), range)));
                        part.optional = asked.placement.library.is_some_and(|of| !of.needed);
                        let told_by =
                            if *linkage == Linkage::Linked { "needed library (DT_NEEDED)" } else { "opened by name" };
                        put(soname, told_by, None, part);
                    }
                    Requirement::Driver { .. } => put(DRIVER, "what it is linked to", None, driver(asked)),
                    Requirement::Gpu { .. } => put(DRIVER, "its kernels", None, driver(asked)),
                    _ => {}
                }
            }
        }
        needs.push((file.file.clone(), mine));
    }
    if parts.is_empty() {
        return Err("nothing of the CUDA family is asked for".to_owned());
    }
    let files = needs.iter().enumerate().map(|(at, (name, _))| {
        object([("type", "file".into()), ("bom-ref", format!("file-{at}").into()), ("name", name.as_str().into())])
    });
    let all = files.chain(parts.iter().map(|(reference, part)| part.to_json(reference)));
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
    Ok(format!("{}\n", value.pretty()))
}

fn library(name: &str, purl: String) -> Part {
    Part { kind: "library", name: name.to_owned(), purl, ..Part::default() }
}

/// By the name without what stands around it: `pkg:generic/nvidia/cudart`.
fn purl(soname: &str) -> String {
    let stem = soname.split(".so").next().unwrap_or(soname);
    format!("pkg:generic/nvidia/{}", stem.strip_prefix("lib").unwrap_or(stem))
}

/// What stands in the file itself, with its version.
fn inside(manifest: &Manifest, put: &mut impl FnMut(&str, &'static str, Option<&str>, Part)) {
    let cudart = manifest.cudart.filter(|cudart| cudart.linkage == Linkage::Static);
    let guarded = manifest.library.as_ref().filter(|library| library.linkage == Linkage::Static);
    let all = [
        cudart.and_then(|cudart| Some((CUDART.stem, cudart.version?.to_string()))),
        guarded.map(|library| (GUARDED.stem, library.version.to_string())),
    ];
    for (stem, version) in all.into_iter().flatten() {
        let part = Part { version: Some(version.clone()), ..library(stem, format!("{}@{version}", purl(stem))) };
        put(&format!("{stem}@{version}"), "linked into the file", None, part);
    }
}

fn driver(asked: &Asked<'_>) -> Part {
    let mut part = Part {
        kind: "device-driver",
        name: "NVIDIA driver".to_owned(),
        purl: "pkg:generic/nvidia/driver".to_owned(),
        optional: !asked.placement.needs_driver,
        ..Part::default()
    };
    for gpus in &asked.placement.fit {
        let needs = gpus.driver.map_or_else(
            || "any".to_owned(),
            |driver| {
                let release = driver.release.map(|release| format!(", release >={release}")).unwrap_or_default();
                format!("CUDA >={}{release}", driver.cuda)
            },
        );
        part.properties.insert((format!("cudaguard:range:{}", span_of(gpus)), needs));
    }
    part
}

impl Part {
    fn to_json(&self, reference: &str) -> Value {
        let mut value = object([
            ("type", self.kind.into()),
            ("bom-ref", reference.into()),
            ("supplier", object([("name", "NVIDIA".into())])),
            ("name", self.name.as_str().into()),
        ]);
        value.put("version", self.version.as_deref());
        value.put("scope", Some(if self.optional { "optional" } else { "required" }));
        value.put("purl", Some(self.purl.as_str()));
        let methods = self.told_by.iter().map(|told_by| {
            object([
                ("technique", "binary-analysis".into()),
                ("confidence", 1_u32.into()),
                ("value", (*told_by).into()),
            ])
        });
        let identity = object([("field", "name".into()), ("confidence", 1_u32.into()), ("methods", array(methods))]);
        let occurrences = self.seen.iter().map(|(file, symbol)| {
            let mut value = object([("location", file.as_str().into())]);
            value.put("symbol", symbol.as_deref());
            value
        });
        value.put("evidence", Some(object([("identity", array([identity])), ("occurrences", array(occurrences))])));
        let properties = self.properties.iter();
        let properties =
            properties.map(|(name, text)| object([("name", name.as_str().into()), ("value", text.as_str().into())]));
        value.put("properties", (!self.properties.is_empty()).then(|| array(properties)));
        value
    }
}
