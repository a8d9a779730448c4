//! Checks of the cuDNN library and headers.

use super::requirement_matches;
use crate::checks::fleet;
use crate::checks::wording::{describe, policy_args};
use crate::config::policy::Policy;
use crate::finding::{Finding, MessageTemplate, Severity, Values};
use crate::knowledge::cudnn;
use crate::manifest::model::Linkage;
use crate::model::version::{CudaVersion, Version};
use crate::toolchain::{LibraryFile, Selection, Sourced, Toolchain};

fn reason(choice: Option<&Selection>) -> String {
    choice.map(|choice| choice.reason.to_string()).unwrap_or_default()
}

pub(super) fn check_cudnn(policy: &Policy, toolchain: &Toolchain, linked: bool, findings: &mut Vec<Finding>) {
    let headers = toolchain.library_headers_used();
    let library = toolchain.library_used();
    let version = headers.and_then(|headers| headers.version);
    let library_version = library.and_then(|library| library.version.as_ref());
    let (why_headers, why_library) =
        (reason(toolchain.library_headers.as_ref()), reason(toolchain.library_file.as_ref()));

    if let Some(require) = &policy.library {
        let found = version.or(policy.library_built).or(library_version.map(|version| version.value));
        if !found.is_some_and(|found| requirement_matches(&require.parsed, found, true))
            && (found.is_some() || headers.is_none())
        {
            let listed = toolchain
                .installs
                .iter()
                .filter(|_| found.is_none())
                .map(|c| format!("{} in {}", c.describe(), c.describe_place()))
                .collect::<Vec<_>>();
            let values = policy_args(policy).with("require", &require.text).with_known("found", found);
            let values = match (headers, library) {
                (Some(headers), _) => values.with("path", headers.path.display()).with("source", &why_headers),
                (None, Some(library)) => values.with("path", library.path.display()).with("source", &why_library),
                (None, None) => values,
            };
            let values = values.with("others", listed.join("; "));
            let words = match found {
                Some(_) => MessageTemplate::CudnnNotAllowed,
                None => MessageTemplate::CudnnNotAllowedAbsent,
            };
            findings.push(words.to_finding(&values.built_by(toolchain.by)));
        }
    }

    // True if the linked file, a variable or the policy shows that the build uses the library.
    let used = linked
        || policy.library.is_some()
        || policy.library_fleet.is_some()
        || policy.library_linkage.is_some_and(|linkage| linkage != Linkage::Unknown)
        || toolchain.names_library();
    if let Some(headers) = headers.filter(|headers| headers.version.is_none()) {
        let values = Values::default().with("path", headers.path.display());
        findings.push(info_unless(used, MessageTemplate::CudnnUnreadable.to_finding(&values)));
    }
    if let (Some(headers), Some(version), Some(library)) = (headers, version, library) {
        let library_text = library_version.map_or(library.major.to_string(), |version| version.value.to_string());
        let differs = match library_version {
            Some(found) => found.value != version,
            None => library.major != version.major,
        };
        if differs {
            let in_use = format!("{version} in {} ({why_headers})", headers.path.display());
            let values = Values::default().with("built", version).with("found", library_text).with("headers", in_use);
            let values = values.with("path", library.path.display()).with("source", &why_library);
            let values = values.with_known("told_by", library_version.map(|version| &version.source));
            let finding = MessageTemplate::CudnnMixed.to_finding(&values.built_by(toolchain.by));
            let patch_only = library_version
                .is_some_and(|found| (found.value.major, found.value.minor) == (version.major, version.minor));
            let is_warning = patch_only && !policy.library_patch_refuse;
            let finding = if is_warning { finding.with_severity(Severity::Warning) } else { finding };
            findings.push(info_unless(used, finding));
        }
    }
    for variable in cudnn::ROOT_VARIABLES {
        let used_headers = toolchain.library_headers.as_ref().map(|choice| choice.index);
        let other = toolchain
            .installs
            .iter()
            .enumerate()
            .find(|(_, install)| install.found.iter().any(|found| found == variable));
        let Some((_, other)) = other.filter(|(index, _)| used_headers.is_some_and(|used| used != *index)) else {
            continue;
        };
        let Some((other, other_version)) = other.headers.as_ref().and_then(|headers| Some((headers, headers.version?)))
        else {
            continue;
        };
        let Some((version, headers)) = version.zip(headers).filter(|(version, _)| *version != other_version) else {
            continue;
        };
        let in_use = format!("{version} in {} ({why_headers})", headers.path.display());
        let values = Values::default().with("variable", variable).with("found", other_version).with("built", version);
        let values = values.with("path", other.path.display()).with("headers", in_use);
        findings.push(MessageTemplate::CudnnMixedAlsoNamed.to_finding(&values).with_severity(Severity::Warning));
    }
    let mut others = library.and_then(check_cudnn_parts).into_iter().collect::<Vec<_>>();
    others.extend(fleet::check_cudnn(policy, toolchain));
    if let Some(toolkit) = toolchain.sourced_toolkit_version() {
        others.extend(other_cuda(&toolkit, version, headers.map(|h| h.path.display().to_string()), library));
    }
    findings.extend(others.into_iter().map(|finding| info_unless(used, finding)));
}

/// Lowers a finding about a cuDNN that the build may not use.
fn info_unless(used: bool, finding: Finding) -> Finding {
    if used { finding } else { finding.with_severity(Severity::Info) }
}

/// Checks for inner libraries that are missing or of another release.
fn check_cudnn_parts(library: &LibraryFile) -> Option<Finding> {
    let dir = library.path.parent().map(|dir| dir.display().to_string()).unwrap_or_default();
    if !library.missing.is_empty() {
        let values = Values::default().with("found", library.describe()).with("missing", library.missing.join(", "));
        let values = values.with("path", library.path.display()).with("folder", dir);
        let finding = MessageTemplate::CudnnIncomplete.to_finding(&values);
        let works =
            !cudnn::needed_parts(library.major).any(|part| library.missing.iter().any(|name| name == part.file));
        return Some(if works { finding.with_severity(Severity::Warning) } else { finding });
    }
    let version = library.version.as_ref()?.value;
    let other = library.parts.iter().filter(|part| part.version.is_some_and(|own| own != version)).collect::<Vec<_>>();
    let worst = other
        .iter()
        .any(|part| part.version.is_some_and(|own| (own.major, own.minor) != (version.major, version.minor)));
    let names = other.iter().map(|part| part.version.map(|own| format!("{} {own}", part.file)).unwrap_or_default());
    let names = names.collect::<Vec<_>>();
    let values = Values::default().with("found", version).with("part", names.first()?).with("parts", names.join(", "));
    let values =
        values.with("folder", dir).with_known("told_by", library.version.as_ref().map(|version| &version.source));
    let finding = MessageTemplate::CudnnIncompleteMixed.to_finding(&values);
    Some(if worst { finding } else { finding.with_severity(Severity::Warning) })
}

/// Checks for a library of another CUDA major than the toolkit's.
fn other_cuda(
    toolkit: &Sourced<Version>,
    headers: Option<Version>,
    headers_path: Option<String>,
    library: Option<&LibraryFile>,
) -> Option<Finding> {
    let values = Values::default().with("toolkit", describe(toolkit)).with("toolkit_major", toolkit.value.major);
    let values = values.with("toolkit_cuda", CudaVersion::from(toolkit.value));
    if let Some((library, built)) = library.and_then(|library| Some((library, library.cuda_major.as_ref()?))) {
        let known = library.version.as_ref().map_or(library.major.to_string(), |version| version.value.to_string());
        return (built.value != toolkit.value.major).then(|| {
            let values = values.with("found", known).with("path", library.path.display());
            let values = values.with("cuda_major", built.value).with("told_by", &built.source);
            MessageTemplate::CudnnForOtherCuda.to_finding(&values.with("built_major", library.major.max(9)))
        });
    }
    // No file shows it, but some releases were never published for some majors.
    let by_library =
        library.and_then(|library| Some((library.version.as_ref()?.value, library.path.display().to_string())));
    let (version, path) = by_library.or(headers.zip(headers_path))?;
    let never = cudnn::RELEASES.cuda_majors(version).is_some_and(|majors| !majors.contains(&toolkit.value.major));
    never.then(|| {
        let values = values.with("found", version).with("path", path).with("built_major", version.major.max(9));
        MessageTemplate::CudnnForOtherCudaNever.to_finding(&values)
    })
}
