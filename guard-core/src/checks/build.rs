//! Pure: (policy, toolchain) → findings.
//!
//! A finding is an error only if the build really uses the faulty part. A cuDNN that is only installed, without a
//! variable or policy that names it, is an info: before linking it is unknown if the package uses it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use semver::VersionReq;

use crate::config::policy::Policy;
use crate::coverage::compatibility::Compatibility;
use crate::finding::{Code, Finding, MessageFragment, MessageTemplate, Severity, Values};
use crate::knowledge::tables::{self, CcSupport};
use crate::knowledge::vendor::CUDNN;
use crate::manifest::model::Linkage;
use crate::model::arch::{Arch, ArchRequest, Target};
use crate::model::version::{CudaVersion, Version};
use crate::toolchain::{
    CompilerFamily, Declared, HostCompiler, LibraryFile, Native, Nvcc, Sourced, Toolchain, Toolkit,
};

use super::fleet;
use super::wording::{describe, join_targets, policy_args, policy_file};

/// Returns the findings about this toolchain under this policy. Severities are those of the codes, or lower if the
/// build may be unaffected. [`crate::config::policy::Policy`] applies `[build]` and `[allow]` afterwards.
pub fn check_build(policy: &Policy, toolchain: &Toolchain) -> Vec<Finding> {
    let mut findings = Vec::new();
    check_toolkit(policy, toolchain, &mut findings);
    host_compiler(toolchain, &mut findings);
    check_stubs(toolchain, &mut findings);
    if policy.library_linkage != Some(Linkage::None) {
        check_cudnn(policy, toolchain, false, &mut findings);
    }
    check_archs(policy, toolchain, &mut findings);
    findings.sort_by_key(|finding| finding.code);
    findings
}

/// Returns the findings that [`check_build`] reported as infos, because nothing showed that the build uses the library,
/// with the severity that they have after the linked file shows it.
pub fn linked_library(policy: &Policy, toolchain: &Toolchain) -> Vec<Finding> {
    recheck_linked_cudnn(policy, toolchain, toolchain)
}

/// Returns the same findings if the linked file shows another library than the one `before`.
pub fn recheck_linked_cudnn(policy: &Policy, before: &Toolchain, now: &Toolchain) -> Vec<Finding> {
    let (mut before_link, mut after) = (Vec::new(), Vec::new());
    if policy.library_linkage != Some(Linkage::None) {
        check_cudnn(policy, before, false, &mut before_link);
        check_cudnn(policy, now, true, &mut after);
    }
    after.retain(|finding| !before_link.contains(finding));
    after
}

/// Lowers findings about architectures that only variables declare, if nothing is known to be compiled for them:
/// variables apply to every build on this machine.
pub fn downgrade_env_only_archs(toolchain: &Toolchain, findings: &mut [Finding]) {
    let by_project = toolchain.archs.declared.iter().any(Declared::is_of_project);
    for finding in findings.iter_mut().filter(|finding| finding.severity == Severity::Error) {
        let by_variable = match finding.code {
            Code::ArchUnreadable => {
                let mut declared = toolchain.archs.declared.iter();
                declared.any(|one| one.source == finding.subject && !one.is_of_project())
            }
            Code::ArchTooNew | Code::ArchDropped | Code::NativeUnknown => !by_project,
            _ => false,
        };
        if by_variable {
            finding.severity = Severity::Warning;
        }
    }
}

/// Returns true if a version satisfies a requirement. An unknown third number satisfies every requirement, because
/// unknown never refuses.
pub fn requirement_matches(require: &VersionReq, version: Version, patch_known: bool) -> bool {
    let of = |patch: u64| semver::Version::new(version.major.into(), version.minor.into(), patch);
    require.matches(&of(version.patch.into()))
        || !patch_known
            && (require.matches(&of(u64::MAX))
                || require.comparators.iter().any(|comparator| {
                    comparator.patch.is_some_and(|patch| {
                        [patch.saturating_sub(1), patch, patch.saturating_add(1)]
                            .iter()
                            .any(|patch| require.matches(&of(*patch)))
                    })
                }))
}

fn check_toolkit(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    let dangling = |fact: &Sourced<PathBuf>| {
        let values = Values::default().with("variable", &fact.source).with("path", fact.value.display());
        values.clone().with("dangling", MessageFragment::NotThere.render(&values))
    };
    let compilers = toolchain.dangling.iter().filter(|fact| matches!(fact.source.as_str(), "NVCC" | "CUDACXX"));
    findings.extend(compilers.map(|fact| MessageTemplate::ToolkitUnreadableNotThere.to_finding(&dangling(fact))));
    let Some(release) = toolchain.sourced_toolkit_version() else {
        let dangling: Vec<_> =
            toolchain.dangling.iter().map(|fact| dangling(fact).get("dangling").to_owned()).collect();
        unknown_toolkit(policy, toolchain, findings, &dangling.join("\n"));
        return;
    };
    if let Some(Toolkit { nvcc: Some(nvcc), .. }) = toolchain.compiling_toolkit() {
        findings.extend(nvcc.trouble.as_ref().map(|trouble| unreadable_nvcc(nvcc, trouble)));
    }
    let mixed = check_headers_match(toolchain, findings);
    check_cudart(toolchain, mixed, findings);
    if let Some(require) = &policy.toolkit {
        let patch_known = toolchain.compiling_toolkit().and_then(|toolkit| toolkit.nvcc.as_ref()?.version).is_some();
        if !requirement_matches(&require.parsed, release.value, patch_known) {
            let in_use = toolchain.release_text().unwrap_or_default();
            let values = policy_args(policy).with("require", &require.text).with("found", in_use);
            let values = values.with("source", release.source).with("others", other_toolkits(toolchain));
            let words = (
                MessageTemplate::ToolkitNotAllowed,
                MessageTemplate::ToolkitNotAllowedCMake,
                MessageTemplate::ToolkitNotAllowedOptions,
            );
            findings.push(toolchain.by.choose(words.0, words.1, words.2).to_finding(&values));
        }
    }
}

/// Lists the toolkits that are not in use in one line.
fn other_toolkits(toolchain: &Toolchain) -> String {
    let used = |index: usize| {
        [&toolchain.compiler, &toolchain.headers].into_iter().flatten().any(|choice| choice.index == index)
    };
    let others = toolchain.toolkits.iter().enumerate().filter(|(index, _)| !used(*index));
    others
        .map(|(_, toolkit)| format!("{} in {}", toolkit.describe(), toolkit.describe_place()))
        .collect::<Vec<_>>()
        .join("; ")
}

fn unreadable_nvcc(nvcc: &Nvcc, trouble: &str) -> Finding {
    MessageTemplate::ToolkitUnreadable
        .to_finding(&Values::default().with("path", nvcc.path.display()).with("why", trouble))
}

/// Reports that no release is known: no toolkit is in use, or it prints none.
fn unknown_toolkit(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>, dangling: &str) {
    let mut silent = false;
    if let Some(nvcc) = toolchain.compiling_toolkit().and_then(|toolkit| toolkit.nvcc.as_ref()) {
        findings.push(unreadable_nvcc(nvcc, nvcc.trouble.as_deref().unwrap_or("does not say which release it is")));
        silent = true;
    }
    if let Some(headers) = toolchain.including_toolkit().and_then(|toolkit| toolkit.headers.as_ref()) {
        if headers.version.is_none() {
            let values = Values::default().with("path", headers.path.display());
            findings.push(MessageTemplate::ToolkitUnreadableHeaders.to_finding(&values));
            silent = true;
        }
    }
    let Some(require) = policy.toolkit.as_ref().filter(|_| !silent) else { return };
    // A root without a compiler cannot build anything: wheels before CUDA 13, runtime containers.
    let unused = toolchain.toolkits.iter().find(|toolkit| toolkit.nvcc.is_some());
    let values = policy_args(policy).with("require", &require.text).with("dangling", dangling);
    let values =
        values.with("others", other_toolkits(toolchain)).with_known("root", unused.map(|unused| unused.root.display()));
    let by_cargo =
        if unused.is_some() { MessageTemplate::ToolkitMissingUnused } else { MessageTemplate::ToolkitMissing };
    let words =
        toolchain.by.choose(by_cargo, MessageTemplate::ToolkitMissingCMake, MessageTemplate::ToolkitMissingOptions);
    findings.push(words.to_finding(&values));
}

/// Compares nvcc with the headers. Returns true if their releases differ.
fn check_headers_match(toolchain: &Toolchain, findings: &mut Vec<Finding>) -> bool {
    let Some((including, chosen)) = toolchain.including_toolkit().zip(toolchain.headers.as_ref()) else { return false };
    let Some((headers, version)) = including.headers.as_ref().and_then(|headers| Some((headers, headers.version?)))
    else {
        return false;
    };
    let headers = format!("{version} in {} ({})", headers.path.display(), chosen.reason);
    let values = Values::default().with("headers", headers).with("headers_cuda", version);
    for (index, variable) in &toolchain.also_named {
        let other = toolchain.toolkits[*index].headers.as_ref();
        let Some((other, other_version)) = other.and_then(|headers| Some((headers, headers.version?))) else {
            continue;
        };
        if other_version != version {
            let values = values.clone().with("variable", variable).with("found_cuda", other_version);
            let values = values.with("path", other.path.display());
            findings.push(MessageTemplate::ToolkitMixedAlsoNamed.to_finding(&values).with_severity(Severity::Warning));
        }
    }
    let compiling = toolchain.compiling_toolkit().zip(toolchain.compiler.as_ref());
    let Some((compiler, choice)) = compiling else { return false };
    let Some(nvcc) = compiler.version().filter(|nvcc| CudaVersion::from(nvcc.value) != version) else { return false };
    let path = compiler.nvcc.as_ref().map(|nvcc| nvcc.path.display().to_string()).unwrap_or_default();
    let bin = including.nvcc.as_ref().and_then(|nvcc| Some(nvcc.path.parent()?.display().to_string()));
    let one_root = compiler.root == including.root;
    let variable = chosen.reason.strip_suffix(" names it").filter(|_| !one_root);
    let values = values.with("nvcc", format!("{} in {path} ({})", nvcc.value, choice.reason));
    let values = values.with("nvcc_cuda", CudaVersion::from(nvcc.value)).with("root", compiler.root.display());
    let by_cargo = match (variable, &bin) {
        (Some(_), Some(_)) => MessageTemplate::ToolkitMixed,
        (Some(_), None) => MessageTemplate::ToolkitMixedByVariable,
        (None, _) => MessageTemplate::ToolkitMixedOneRoot,
    };
    let words = toolchain.by.choose(by_cargo, MessageTemplate::ToolkitMixedCMake, MessageTemplate::ToolkitMixedOptions);
    findings.push(words.to_finding(&values.with_known("variable", variable).with_known("bin", bin)));
    true
}

/// Compares the linker's cudart with nvcc, or with the headers if there is no nvcc.
fn check_cudart(toolchain: &Toolchain, mixed: bool, findings: &mut Vec<Finding>) {
    let Some((cudart, toolkit)) = toolchain.cudart.as_ref().zip(toolchain.sourced_toolkit_version()) else { return };
    let differs = |from: CudaVersion| match (&cudart.version, cudart.major) {
        (Some(version), _) => CudaVersion::from(version.value) != from,
        (None, Some(major)) => major != from.major,
        (None, None) => false,
    };
    let headers = toolchain.including_toolkit().and_then(|toolkit| toolkit.headers.as_ref()?.version);
    // If nvcc and headers are mixed, a cudart from the headers' toolkit is the same fault, which was reported
    // already.
    if !differs(toolkit.value.into()) || mixed && headers.is_some_and(|headers| !differs(headers)) {
        return;
    }
    let words = match cudart.source.as_str() {
        "the toolkit's own folder" => MessageTemplate::CudartMixedOneRoot,
        "the system's folder" => MessageTemplate::CudartMixedOfSystem,
        _ => MessageTemplate::CudartMixed,
    };
    let values = Values::default().with("found", cudart.version_text()).with("path", cudart.path.display());
    let values = values.with("source", &cudart.source).with("nvcc_cuda", CudaVersion::from(toolkit.value));
    let mut finding = words.to_finding(&values.with("toolkit", describe(&toolkit)));
    if ["the system's folder", "LIBRARY_PATH", "CUDA_LIBRARY_PATH"].contains(&cudart.source.as_str()) {
        // Directories of a build script come before these. After linking, the linked library is checked.
        finding.severity = Severity::Warning;
    }
    findings.push(finding);
}

fn host_compiler(toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    let Some(toolkit) = toolchain.compiling_toolkit().filter(|_| !toolchain.any_host) else { return };
    let Some(release) = toolkit.version() else { return };
    let own = toolkit.limits.as_ref();
    // Only if the toolkit does not show it: reading the table costs more than everything else here.
    let table = || tables::host_compiler(release.value);
    // Its major, and the newest accepted one of its vendor if it is older than that.
    let refused = |host: &HostCompiler| {
        let newest = match host.family {
            CompilerFamily::Gcc => own.and_then(|own| own.gcc_max).or_else(|| table().gcc_newest),
            CompilerFamily::Clang => {
                let below = own.and_then(|own| own.clang_below).or_else(|| table().clang_below);
                below.and_then(|below| below.checked_sub(1))
            }
            CompilerFamily::Other => None,
        };
        Some((host.version?.major, newest?)).filter(|(major, newest)| major > newest)
    };
    let hosts = [toolchain.host.as_ref(), toolchain.host_of_cc.as_ref()].map(|host| Some((host?, refused(host?))));
    let Some((host, (major, newest))) = hosts.into_iter().flatten().find_map(|(host, refused)| Some((host, refused?)))
    else {
        return;
    };
    let accepted = hosts.into_iter().flatten().find(|(_, refused)| refused.is_none()).map(|(host, _)| host);
    let named = |host: &HostCompiler| {
        let values = Values::default().with("compiler", host.describe()).with("path", host.path.display());
        let by_cc = Some(host) == toolchain.host_of_cc.as_ref();
        if by_cc { MessageFragment::OfCc } else { MessageFragment::OfNvcc }.render(&values.with("source", &host.source))
    };
    let values = Values::default().with("compiler", host.describe()).with("maker", host.family.name());
    let values = values.with("cxx", if host.family == CompilerFamily::Gcc { "g++" } else { "clang++" });
    let values = values.with("nvcc", describe(&release)).with("nvcc_cuda", CudaVersion::from(release.value));
    let values = values.with("major", major).with("newest", newest).with("refused", named(host));
    let values = values.with_known("accepted", accepted.map(named)).with_known("limit", own.map(|own| &own.source));
    let words = (
        MessageTemplate::HostCompilerRejected,
        MessageTemplate::HostCompilerRejectedCMake,
        MessageTemplate::HostCompilerRejectedOptions,
    );
    let mut finding = toolchain.by.choose(words.0, words.1, words.2).to_finding(&values);
    if accepted.is_some() {
        // Only the build script knows which of the two this build uses; nvcc itself rejects the other.
        finding.severity = Severity::Info;
    } else if !toolchain.host.as_ref().is_some_and(HostCompiler::is_named) {
        // Only the build script knows if it calls nvcc, and with which `-ccbin`; nvcc itself rejects this compiler.
        finding.severity = Severity::Warning;
    }
    findings.push(finding);
}

fn check_stubs(toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    for stub in &toolchain.stubs {
        let values = Values::default().with("variable", &stub.source).with("folder", stub.value.display());
        let mut finding = MessageTemplate::StubInRuntimePath.to_finding(&values);
        if stub.source == "LD_LIBRARY_PATH" {
            // It belongs to this shell, not to the program.
            finding.severity = Severity::Warning;
        }
        findings.push(finding);
    }
}

fn check_cudnn(policy: &Policy, toolchain: &Toolchain, linked: bool, findings: &mut Vec<Finding>) {
    let headers = toolchain.library_headers_used();
    let library = toolchain.library_used();
    let version = headers.and_then(|headers| headers.version);
    let library_version = library.and_then(|library| library.version.as_ref());
    let reason =
        |choice: &Option<crate::toolchain::Selection>| choice.as_ref().map(|c| c.reason.clone()).unwrap_or_default();
    let (why_headers, why_library) = (reason(&toolchain.library_headers), reason(&toolchain.library_file));

    if let Some(require) = &policy.library {
        let found = version.or(policy.library_built).or(library_version.map(|version| version.value));
        if !found.is_some_and(|found| requirement_matches(&require.parsed, found, true))
            && (found.is_some() || headers.is_none())
        {
            let listed: Vec<_> = toolchain
                .installs
                .iter()
                .filter(|_| found.is_none())
                .map(|c| format!("{} in {}", c.describe(), c.describe_place()))
                .collect();
            let values = policy_args(policy).with("require", &require.text).with_known("found", found);
            let values = match (headers, library) {
                (Some(headers), _) => values.with("path", headers.path.display()).with("source", &why_headers),
                (None, Some(library)) => values.with("path", library.path.display()).with("source", &why_library),
                (None, None) => values,
            };
            let values = values.with("others", listed.join("; "));
            let words = if found.is_some() {
                (
                    MessageTemplate::CudnnNotAllowed,
                    MessageTemplate::CudnnNotAllowedCMake,
                    MessageTemplate::CudnnNotAllowedOptions,
                )
            } else {
                (
                    MessageTemplate::CudnnNotAllowedAbsent,
                    MessageTemplate::CudnnNotAllowedAbsentCMake,
                    MessageTemplate::CudnnNotAllowedAbsentOptions,
                )
            };
            findings.push(toolchain.by.choose(words.0, words.1, words.2).to_finding(&values));
        }
    }

    // True if the linked file, a variable or the policy shows that the build uses the library.
    let suggestion = linked
        || policy.library.is_some()
        || policy.library_fleet.is_some()
        || policy.library_linkage.is_some_and(|linkage| linkage != Linkage::Unknown)
        || [&why_headers, &why_library].iter().any(|reason| reason.ends_with(" names it"));
    let weigh = |finding: Finding| if suggestion { finding } else { finding.with_severity(Severity::Info) };

    if let Some(headers) = headers.filter(|headers| headers.version.is_none()) {
        let values = Values::default().with("path", headers.path.display());
        findings.push(weigh(MessageTemplate::CudnnUnreadable.to_finding(&values)));
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
            let words = toolchain.by.choose(
                MessageTemplate::CudnnMixed,
                MessageTemplate::CudnnMixedCMake,
                MessageTemplate::CudnnMixedOptions,
            );
            let finding = words.to_finding(&values);
            let patch_only = library_version
                .is_some_and(|found| (found.value.major, found.value.minor) == (version.major, version.minor));
            findings.push(weigh(if patch_only && !policy.library_patch_refuse {
                finding.with_severity(Severity::Warning)
            } else {
                finding
            }));
        }
    }
    for &variable in CUDNN.names.roots {
        let used = toolchain.library_headers.as_ref().map(|choice| choice.index);
        let other = toolchain
            .installs
            .iter()
            .enumerate()
            .find(|(_, install)| install.found.iter().any(|found| found == variable));
        let Some((_, other)) = other.filter(|(index, _)| used.is_some_and(|used| used != *index)) else { continue };
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
    if let Some(library) = library {
        findings.extend(check_cudnn_parts(library).map(weigh));
    }
    findings.extend(fleet::check_cudnn(policy, toolchain).into_iter().map(weigh));
    if let Some(toolkit) = toolchain.sourced_toolkit_version() {
        findings
            .extend(other_cuda(&toolkit, version, headers.map(|h| h.path.display().to_string()), library).map(weigh));
    }
}

/// Checks for inner libraries that are missing or of another release.
fn check_cudnn_parts(library: &LibraryFile) -> Option<Finding> {
    let folder = library.path.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    if !library.missing.is_empty() {
        let needed = |name: &String| CUDNN.needed_parts(library.major).any(|needed| needed.file == *name);
        let values = Values::default().with("found", library.describe()).with("missing", library.missing.join(", "));
        let values = values.with("path", library.path.display()).with("folder", folder);
        let finding = MessageTemplate::CudnnIncomplete.to_finding(&values);
        let works = !library.missing.iter().any(needed);
        return Some(if works { finding.with_severity(Severity::Warning) } else { finding });
    }
    let version = library.version.as_ref()?.value;
    let other: Vec<_> = library.parts.iter().filter(|part| part.version.is_some_and(|own| own != version)).collect();
    let worst = other
        .iter()
        .any(|part| part.version.is_some_and(|own| (own.major, own.minor) != (version.major, version.minor)));
    let first = other.first()?;
    let named = |part: &crate::toolchain::LibraryPart| {
        part.version.map(|own| format!("{} {own}", part.file)).unwrap_or_default()
    };
    let parts = other.iter().map(|part| named(part)).collect::<Vec<_>>().join(", ");
    let values = Values::default().with("found", version).with("part", named(first)).with("parts", parts);
    let values =
        values.with("folder", folder).with_known("told_by", library.version.as_ref().map(|version| &version.source));
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
    let never = CUDNN.release_table().cuda_majors(version).is_some_and(|majors| !majors.contains(&toolkit.value.major));
    never.then(|| {
        let values = values.with("found", version).with("path", path).with("built_major", version.major.max(9));
        MessageTemplate::CudnnForOtherCudaNever.to_finding(&values)
    })
}

fn check_archs(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    let archs = &toolchain.archs;
    for declared in &archs.declared {
        if let Err(error) = &declared.requests {
            let values = Values::default().with("variable", &declared.source).with("value", &declared.text);
            findings
                .push(unless_torch(MessageTemplate::ArchUnreadable.to_finding(&values.with("why", error)), [declared]));
        }
    }
    check_arch_sources(toolchain, findings);
    check_native(policy, toolchain, findings);
    let Some(toolkit) = toolchain.compiling_toolkit().and_then(Toolkit::version) else { return };
    let release = CudaVersion::from(toolkit.value);
    let declaring = |wanted: &[Target]| -> Vec<&Declared> {
        archs.declared.iter().filter(|one| one.targets.iter().any(|target| wanted.contains(target))).collect()
    };
    let values = Values::default().with("nvcc", describe(&toolkit)).with("toolkit_cuda", release);
    let mut refused: Vec<(CcSupport, Vec<Target>)> = Vec::new();
    for target in &archs.in_force {
        let answer = tables::can_make(toolkit.value, *target);
        if matches!(answer, CcSupport::TooNew { .. } | CcSupport::Dropped { .. }) {
            match refused.iter_mut().find(|(known, _)| *known == answer) {
                Some((_, targets)) => targets.push(*target),
                None => refused.push((answer, vec![*target])),
            }
        }
    }
    for (answer, targets) in refused {
        let list = join_targets(&targets);
        let declaring = declaring(&targets);
        let sources: Vec<_> = declaring.iter().map(|one| format!("{} = {}", one.source, one.text)).collect();
        let values = values.clone().with("targets", list).with("declared", sources.join("; "));
        let finding = match answer {
            CcSupport::Dropped { last } => MessageTemplate::ArchDropped.to_finding(&values.with_known("last", last)),
            CcSupport::TooNew { first } => {
                let oldest = targets.iter().map(|target| target.base_arch().cc()).min();
                let ptx = oldest.and_then(|cc| tables::only_ptx(toolkit.value, cc));
                let words =
                    if first.is_some() { MessageTemplate::ArchTooNew } else { MessageTemplate::ArchTooNewUnknown };
                words.to_finding(&values.with_known("first", first).with_known("ptx", ptx))
            }
            _ => continue,
        };
        findings.push(unless_torch(finding, declaring));
    }
    only_by_ptx(policy, toolkit.value, &archs.in_force, &values, findings);
}

/// Returns the GPUs of the fleet for which this toolkit compiles no machine code.
fn only_by_ptx(policy: &Policy, toolkit: Version, in_force: &[Target], values: &Values, findings: &mut Vec<Finding>) {
    for gpu in &policy.fleet {
        let Some(cc) = tables::gpu_cc(gpu) else { continue };
        let Some(own) = Arch::from_cc(cc) else { continue };
        let too_new = matches!(tables::can_make(toolkit, Target::Cubin(own)), CcSupport::TooNew { .. });
        // Machine code of an older arch of the same major also serves it, if the toolkit compiles one.
        let older = (0..=cc.1).filter_map(|minor| Arch::from_cc((cc.0, minor))).map(Target::Cubin);
        let served = older
            .filter(|target| tables::can_make(toolkit, *target) == CcSupport::Made)
            .any(|target| target.compatibility_with(cc) != Compatibility::No);
        if !too_new || served {
            continue;
        }
        let Some(ptx) = tables::only_ptx(toolkit, cc) else { continue };
        let declared = in_force
            .iter()
            .any(|target| matches!(target, Target::Ptx(_)) && target.compatibility_with(cc) == Compatibility::Yes);
        let cc = format!("{}.{}", cc.0, cc.1);
        let shown = if cc == *gpu { cc } else { format!("{gpu} ({cc})") };
        let values = values.clone().with("gpu", gpu).with("fleet", gpu).with("gpus", shown).with("ptx", ptx);
        let values = values.with_known("policy", policy_file(policy)).with("declared", join_targets(in_force));
        let words = if declared { MessageTemplate::ArchOnlyByPtxDeclared } else { MessageTemplate::ArchOnlyByPtx };
        findings.push(words.to_finding(&values));
    }
}

/// Compares the architectures of all sources. The kind of code and suffixes are ignored, because tools differ in
/// them.
fn check_arch_sources(toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    let numbers = |declared: &Declared| -> BTreeSet<u16> {
        declared.targets.iter().map(|target| target.base_arch().number).collect()
    };
    let mut speaking = toolchain.archs.declared.iter().filter(|declared| !declared.targets.is_empty());
    let Some(strongest) = speaking.clone().find(|declared| !declared.adds) else { return };
    let wanted = numbers(strongest);
    let against: Vec<&Declared> = speaking
        .by_ref()
        .filter(|declared| {
            let own = numbers(declared);
            if declared.adds { !own.is_subset(&wanted) } else { own != wanted }
        })
        .collect();
    if against.is_empty() {
        return;
    }
    let line = |declared: &Declared| {
        let (names, text) = (join_targets(&declared.targets), &declared.text);
        let spelt = if *text == names { String::new() } else { format!(" (`{text}`)") };
        format!("{}:\t{names}{spelt}", declared.source)
    };
    let lines: Vec<_> = [strongest].into_iter().chain(against.iter().copied()).map(line).collect();
    let others = against.iter().map(|declared| declared.source.as_str()).collect::<Vec<_>>().join(" and ");
    let values = Values::default().with("variable", &strongest.source).with("others", others);
    let words = toolchain.by.choose(
        MessageTemplate::ArchsContradict,
        MessageTemplate::ArchsContradictCMake,
        MessageTemplate::ArchsContradictOptions,
    );
    findings.push(unless_torch(words.to_finding(&values.with("sources", lines.join("\n"))), against));
}

/// Builds the finding; an info if only PyTorch's list is wrong.
fn unless_torch<'a>(finding: Finding, sources: impl IntoIterator<Item = &'a Declared>) -> Finding {
    if sources.into_iter().all(Declared::is_of_torch) { finding.with_severity(Severity::Info) } else { finding }
}

fn check_native(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    let archs = &toolchain.archs;
    let mut asking = archs.declared.iter().filter(|declared| declared.has_request(ArchRequest::Native));
    let Some(first) = asking.next() else { return };
    let strongest = archs.declared.iter().find(|declared| !declared.adds);
    let in_force = first.adds || strongest.is_some_and(|strongest| strongest == first);
    let values = policy_args(policy).with("variable", &first.source).with("value", &first.text);
    match &archs.native {
        Some(Native::Gpus(gpus)) => {
            let missing: Vec<_> = policy
                .fleet
                .iter()
                .filter(|gpu| {
                    let cc = tables::gpu_cc(gpu);
                    cc.is_some_and(|cc| {
                        archs.in_force.iter().all(|target| target.compatibility_with(cc) == Compatibility::No)
                    })
                })
                .map(String::as_str)
                .collect();
            if in_force && !missing.is_empty() {
                let here: Vec<_> = gpus.value.iter().map(|(major, minor)| format!("{major}.{minor}")).collect();
                let values = values.with("here", here.join(", ")).with("source", &gpus.source);
                let values = values.with("gpus", missing.join(", ")).with("fleet", policy.fleet.join(", "));
                findings.push(MessageTemplate::NativeOutsideFleet.to_finding(&values));
            }
        }
        Some(Native::Unknown(why)) => {
            let words = toolchain.by.choose(
                MessageTemplate::NativeUnknown,
                MessageTemplate::NativeUnknownCMake,
                MessageTemplate::NativeUnknownOptions,
            );
            let finding = words.to_finding(&values.with("why", why));
            findings.push(if in_force { finding } else { finding.with_severity(Severity::Warning) });
        }
        None => {}
    }
}

#[cfg(test)]
mod tests;
