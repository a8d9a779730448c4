//! The CUDA components for bills of materials: the components in the files, and those that a machine must provide.

use std::collections::{BTreeMap, BTreeSet};

use crate::knowledge::vendor::{CUDART, CUDNN, is_libcuda};
use cudaguard::internal::manifest::{Linkage, Manifest, Requirement};

use super::Inexpressible;
use super::bill::{BilledFile, generic_purl};
use super::text::jetpack_of;
use super::{RequirementsQuery, span_of};

const DRIVER: &str = "nvidia-driver";

/// A component: a library of CUDA, the driver, or another library in a file.
#[derive(Default)]
pub(super) struct FamilyPart {
    /// Type of the component in `CycloneDX`: `library`, `application` or `device-driver`.
    pub(super) kind: &'static str,
    /// Name of the component.
    pub(super) name: String,
    /// Version of the component, if it is in the file.
    pub(super) version: Option<String>,
    /// Package URL of NVIDIA's package, without a version.
    pub(super) purl: String,
    /// Set if a file works without it.
    pub(super) optional: bool,
    /// Version ranges with their names.
    pub(super) properties: BTreeSet<(String, String)>,
    /// Evidence of the component in the files.
    pub(super) told_by: BTreeSet<&'static str>,
    /// The files that need it, each with the function that needs it.
    pub(super) seen: BTreeSet<(String, Option<String>)>,
    /// SHA-256 of a library inside a file.
    pub(super) sha256: Option<String>,
    /// Set if it is inside a file, and not required of the machine.
    pub(super) inside: bool,
    /// Set if NVIDIA supplies it.
    pub(super) is_of_nvidia: bool,
}

/// The components by a unique name, and for each file its name and the components that it needs. If there are none,
/// `family_of` returns an error.
pub(super) struct FamilyReport {
    pub(super) parts: BTreeMap<String, FamilyPart>,
    pub(super) needs: Vec<(String, BTreeSet<String>)>,
}

pub(super) fn family_of(asked: &RequirementsQuery<'_>, bill: &[BilledFile]) -> Result<FamilyReport, Inexpressible> {
    let mut parts: BTreeMap<String, FamilyPart> = BTreeMap::new();
    let mut needs: Vec<(String, BTreeSet<String>)> = Vec::new();
    for (at, (file, billed)) in asked.components.iter().zip(bill).enumerate() {
        let mut mine = BTreeSet::new();
        let mut put = |reference: &str, told_by: &'static str, symbol: Option<&str>, part: FamilyPart| {
            mine.insert(reference.to_owned());
            let entry = parts.entry(reference.to_owned()).or_insert_with(|| FamilyPart {
                kind: part.kind,
                name: part.name,
                version: part.version,
                purl: part.purl,
                optional: true,
                sha256: part.sha256,
                inside: part.inside,
                is_of_nvidia: part.is_of_nvidia,
                ..FamilyPart::default()
            });
            entry.optional &= part.optional;
            entry.properties.extend(part.properties);
            entry.told_by.insert(told_by);
            entry.seen.insert((file.file.clone(), symbol.map(str::to_owned)));
        };
        for needed in &file.needed {
            let soname = needed.soname.as_str();
            if is_libcuda(soname) {
                put(DRIVER, "needed library (DT_NEEDED)", None, driver_part(asked));
                continue;
            }
            let bound = file.bound.iter().find(|bound| bound.soname == soname);
            let mut part = library_part(soname, generic_purl(soname));
            part.properties.extend(bound.map(|bound| ("cudaguard:range".to_owned(), format!(">={}", bound.first))));
            put(soname, "needed library (DT_NEEDED)", bound.map(|bound| bound.name.as_str()), part);
        }
        for manifest in &file.manifests {
            add_embedded_parts(manifest, &mut put);
            for row in &manifest.requires {
                match row {
                    Requirement::Library {
                        soname, linkage: linkage @ (Linkage::Linked | Linkage::Dlopened), ..
                    } => {
                        let mut part = library_part(soname, generic_purl(soname));
                        let range = asked.placement.library.map(|of| format!(">={},<{}", of.min, of.below));
                        part.properties.extend(range.map(|range| ("cudaguard:range".to_owned(), range)));
                        for gpus in &asked.placement.fit {
                            let range = asked.placement.differing_library(gpus);
                            let range = range.map(|of| format!(">={},<{}", of.min, of.below));
                            let name = format!("cudaguard:range:{}", span_of(gpus));
                            part.properties.extend(range.map(|range| (name, range)));
                        }
                        part.optional = asked.placement.library.is_some_and(|of| !of.needed);
                        let told_by =
                            if *linkage == Linkage::Linked { "needed library (DT_NEEDED)" } else { "opened by name" };
                        put(soname, told_by, None, part);
                    }
                    Requirement::Driver { .. } => put(DRIVER, "its linked libraries", None, driver_part(asked)),
                    Requirement::Gpu { .. } => put(DRIVER, "its kernels", None, driver_part(asked)),
                    _ => {}
                }
            }
        }
        for library in &billed.bundled {
            let part = FamilyPart {
                version: library.version.clone(),
                sha256: library.sha256.clone(),
                inside: true,
                kind: if library.is_program { "application" } else { "library" },
                is_of_nvidia: library.is_of_nvidia,
                ..library_part(&library.name, library.purl.clone())
            };
            // Two packages may contain the same path.
            let reference = if bill.len() == 1 { library.path.clone() } else { format!("file-{at}/{}", library.path) };
            put(&reference, "file in the package", None, part);
        }
        for required in &billed.requires {
            let mut part = FamilyPart {
                version: required.version.clone(),
                optional: required.optional,
                ..library_part(&required.name, required.purl.clone())
            };
            let range = required.version.is_none().then(|| ("cudaguard:range".to_owned(), required.range.clone()));
            part.properties.extend(range);
            put(&required.purl, "requirement of the package", None, part);
        }
        needs.push((file.file.clone(), mine));
    }
    if !parts.values().any(|part| part.is_of_nvidia) {
        return Err(Inexpressible::NoComponent);
    }
    Ok(FamilyReport { parts, needs })
}

fn library_part(name: &str, purl: String) -> FamilyPart {
    FamilyPart { kind: "library", name: name.to_owned(), purl, is_of_nvidia: true, ..FamilyPart::default() }
}

/// Adds the components that are linked into the file itself, with their versions.
fn add_embedded_parts(manifest: &Manifest, put: &mut impl FnMut(&str, &'static str, Option<&str>, FamilyPart)) {
    let cudart = manifest.cudart.filter(|cudart| cudart.linkage == Linkage::Static);
    let guarded = manifest.library.as_ref().filter(|library| library.linkage == Linkage::Static);
    let all = [
        cudart.and_then(|cudart| Some((CUDART.stem(), cudart.version?.to_string()))),
        guarded.map(|library| (CUDNN.stem(), library.version.to_string())),
    ];
    for (stem, version) in all.into_iter().flatten() {
        let part = FamilyPart {
            version: Some(version.clone()),
            inside: true,
            ..library_part(stem, format!("{}@{version}", generic_purl(stem)))
        };
        put(&format!("{stem}@{version}"), "linked into the file", None, part);
    }
}

fn driver_part(asked: &RequirementsQuery<'_>) -> FamilyPart {
    let mut part = FamilyPart {
        kind: "device-driver",
        name: "NVIDIA driver".to_owned(),
        purl: "pkg:generic/nvidia/driver".to_owned(),
        optional: !asked.placement.needs_driver,
        is_of_nvidia: true,
        ..FamilyPart::default()
    };
    for gpus in &asked.placement.fit {
        let needs = gpus.driver.map_or_else(
            || "any".to_owned(),
            |driver| {
                let release = || driver.release.map(|release| format!(", release >={release}"));
                let origin = jetpack_of(gpus).map(|jetpack| format!(", {jetpack}")).or_else(release);
                format!("CUDA >={}{}", driver.cuda, origin.unwrap_or_default())
            },
        );
        part.properties.insert((format!("cudaguard:range:{}", span_of(gpus)), needs));
    }
    part
}
