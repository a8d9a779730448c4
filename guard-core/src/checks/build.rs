//! Pure: (policy, toolchain) → findings.
//!
//! A finding is an error only if the build really uses the faulty part. A cuDNN that is only installed, without a
//! variable or policy that names it, is an info: before linking it is unknown if the package uses it.

mod archs;
mod cudnn;

use std::path::PathBuf;

use semver::VersionReq;

use crate::config::policy::Policy;
use crate::finding::{Code, Finding, MessageFragment, MessageTemplate, Severity, Values};
use crate::knowledge::cudnn::ROOT_VARIABLES;
use crate::knowledge::tables;
use crate::manifest::model::Linkage;
use crate::model::version::{CudaVersion, Version};
use crate::text::lists::IteratorExt as _;
use crate::toolchain::{BuildSystem, CompilerFamily, Declared, HostCompiler, Nvcc, Sourced, Toolchain, Toolkit};

use super::wording::{describe, policy_args};
use archs::check_archs;
use cudnn::check_cudnn;

/// Returns the findings about this toolchain under this policy. Severities are those of the codes, or lower if the
/// build may be unaffected. [`crate::config::policy::Policy`] applies `[build]` and `[allow]` afterwards.
pub fn check_build(policy: &Policy, toolchain: &Toolchain) -> Vec<Finding> {
    let mut findings = Vec::new();
    check_toolkit(policy, toolchain, &mut findings);
    host_compiler(toolchain, &mut findings);
    check_math_headers(toolchain, &mut findings);
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
    let mut patches = vec![version.patch.into()];
    if !patch_known {
        patches.push(u64::MAX);
        for patch in require.comparators.iter().filter_map(|comparator| comparator.patch) {
            patches.extend([patch.saturating_sub(1), patch, patch.saturating_add(1)]);
        }
    }
    let (major, minor) = (version.major.into(), version.minor.into());
    patches.into_iter().any(|patch| require.matches(&semver::Version::new(major, minor, patch)))
}

fn check_toolkit(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    for fact in &toolchain.dangling {
        let is_compiler = matches!(fact.source.as_str(), "NVCC" | "CUDACXX");
        let of_cudnn = ROOT_VARIABLES.contains(&fact.source.as_str());
        // The finding about the missing toolkit names the variable.
        if !is_compiler && !of_cudnn && policy.toolkit.is_some() && toolchain.sourced_toolkit_version().is_none() {
            continue;
        }
        let finding = MessageTemplate::ToolkitUnreadableNamed.to_finding(&dangling_values(fact));
        // A project without cuDNN does not read the variables of cuDNN.
        let is_unused = of_cudnn
            && policy.library.is_none()
            && toolchain.library_used().is_none()
            && toolchain.library_headers_used().is_none();
        findings.push(if is_unused { finding.with_severity(Severity::Info) } else { finding });
    }
    let Some(release) = toolchain.sourced_toolkit_version() else {
        let of_toolkit = toolchain.dangling.iter().filter(|fact| !ROOT_VARIABLES.contains(&fact.source.as_str()));
        let dangling: Vec<_> = of_toolkit.map(|fact| dangling_values(fact).get("dangling").to_owned()).collect();
        unknown_toolkit(policy, toolchain, findings, &dangling.join("\n"));
        return;
    };
    if let Some(Toolkit { nvcc: Some(nvcc), .. }) = toolchain.compiling_toolkit() {
        findings.extend(nvcc.problem.as_ref().map(|problem| unreadable_nvcc(nvcc, problem)));
    }
    check_cudart(toolchain, check_headers_match(toolchain, findings), findings);
    if let Some(require) = &policy.toolkit {
        let patch_known = toolchain.compiling_toolkit().and_then(|toolkit| toolkit.nvcc.as_ref()?.version).is_some();
        if !requirement_matches(&require.parsed, release.value, patch_known) {
            let in_use = toolchain.release_text().unwrap_or_default();
            let values = policy_args(policy).with("require", &require.text).with("found", in_use);
            let values = values.with("source", release.source).with("others", other_toolkits(toolchain));
            findings.push(MessageTemplate::ToolkitNotAllowed.to_finding(&values.built_by(toolchain.by)));
        }
    }
}

/// Describes a variable with the path of a missing directory.
fn dangling_values(fact: &Sourced<PathBuf>) -> Values {
    let values = Values::default().with("variable", &fact.source).with("path", fact.value.display());
    values.clone().with("dangling", MessageFragment::NotThere.render(&values))
}

/// Lists the toolkits that are not in use in one line.
fn other_toolkits(toolchain: &Toolchain) -> String {
    let used = [&toolchain.compiler, &toolchain.headers].map(|choice| choice.as_ref().map(|choice| choice.index));
    let others = toolchain.toolkits.iter().enumerate().filter(|(index, _)| !used.contains(&Some(*index)));
    others.map(|(_, toolkit)| format!("{} in {}", toolkit.describe(), toolkit.describe_place())).join("; ")
}

fn unreadable_nvcc(nvcc: &Nvcc, problem: &str) -> Finding {
    MessageTemplate::ToolkitUnreadable
        .to_finding(&Values::default().with("path", nvcc.path.display()).with("why", problem))
}

/// Reports that no release is known: no toolkit is in use, or it prints none.
fn unknown_toolkit(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>, dangling: &str) {
    let mut silent = false;
    if let Some(nvcc) = toolchain.compiling_toolkit().and_then(|toolkit| toolkit.nvcc.as_ref()) {
        findings.push(unreadable_nvcc(nvcc, nvcc.problem.as_deref().unwrap_or("prints no release")));
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
    findings.push(MessageTemplate::ToolkitMissing.to_finding(&values.built_by(toolchain.by)));
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
    let variable = chosen.reason.named_by().filter(|_| !one_root);
    let values = values.with("nvcc", format!("{} in {path} ({})", nvcc.value, choice.reason));
    let values = values.with("nvcc_cuda", CudaVersion::from(nvcc.value)).with("root", compiler.root.display());
    let words = match variable {
        _ if toolchain.by != BuildSystem::Cargo => MessageTemplate::ToolkitMixedElsewhere,
        Some(_) => MessageTemplate::ToolkitMixed,
        None => MessageTemplate::ToolkitMixedOneRoot,
    };
    let values = values.with_known("variable", variable).with_known("bin", bin).built_by(toolchain.by);
    findings.push(words.to_finding(&values));
    true
}

/// Compares the linker's cudart with nvcc, or with the headers if there is no nvcc.
fn check_cudart(toolchain: &Toolchain, mixed: bool, findings: &mut Vec<Finding>) {
    let Some((cudart, toolkit)) = toolchain.cudart.as_ref().zip(toolchain.sourced_toolkit_version()) else { return };
    let headers = toolchain.including_toolkit().and_then(|toolkit| toolkit.headers.as_ref()?.version);
    // If nvcc and headers are mixed, a cudart from the headers' toolkit is the same fault, which was reported
    // already.
    if !cudart.differs_from(toolkit.value.into())
        || mixed && headers.is_some_and(|headers| !cudart.differs_from(headers))
    {
        return;
    }
    let words = match cudart.source.as_str() {
        "the directory of the toolkit" => MessageTemplate::CudartMixedOneRoot,
        "the system directory" => MessageTemplate::CudartMixedOfSystem,
        _ => MessageTemplate::CudartMixed,
    };
    let values = Values::default()
        .built_by(toolchain.by)
        .with("found", cudart.version_text())
        .with("path", cudart.path.display());
    let values = values.with("source", &cudart.source).with("nvcc_cuda", CudaVersion::from(toolkit.value));
    let mut finding = words.to_finding(&values.with("toolkit", describe(&toolkit)));
    if ["the system directory", "LIBRARY_PATH", "CUDA_LIBRARY_PATH"].contains(&cudart.source.as_str()) {
        // Directories of a build script come before these. After linking, the linked library is checked.
        finding.severity = Severity::Warning;
    }
    findings.push(finding);
}

fn host_compiler(toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    let Some(toolkit) = toolchain.compiling_toolkit().filter(|_| !toolchain.any_host) else { return };
    let Some(release) = toolkit.version() else { return };
    let hosts = [toolchain.host.as_ref(), toolchain.host_of_cc.as_ref()]
        .map(|host| Some((host?, refused_major(host?, toolkit, release.value))));
    let Some((host, (major, newest))) = hosts.into_iter().flatten().find_map(|(host, refused)| Some((host, refused?)))
    else {
        return;
    };
    let accepted = hosts.into_iter().flatten().find(|(_, refused)| refused.is_none()).map(|(host, _)| host);
    let values = Values::default().with("compiler", host.describe()).with("maker", host.family.name());
    let values = values.with("cxx", if host.family == CompilerFamily::Gcc { "g++" } else { "clang++" });
    let values = values.with("nvcc", describe(&release)).with("nvcc_cuda", CudaVersion::from(release.value));
    let values = values.with("major", major).with("newest", newest).with("refused", host_and_caller(host, toolchain));
    let values = values.with_known("accepted", accepted.map(|host| host_and_caller(host, toolchain)));
    let values = values.with_known("limit", toolkit.limits.as_ref().map(|own| &own.source));
    let mut finding = MessageTemplate::HostCompilerRejected.to_finding(&values.built_by(toolchain.by));
    if accepted.is_some() {
        // Only the build script knows which of the two this build uses; nvcc itself rejects the other.
        finding.severity = Severity::Info;
    } else if !toolchain.host.as_ref().is_some_and(HostCompiler::is_named) {
        // Only the build script knows if it calls nvcc, and with which `-ccbin`; nvcc itself rejects this compiler.
        finding.severity = Severity::Warning;
    }
    findings.push(finding);
}

/// Returns the major of a host compiler and the newest one that the toolkit accepts, if the compiler is newer.
fn refused_major(host: &HostCompiler, toolkit: &Toolkit, release: Version) -> Option<(u32, u32)> {
    let own = toolkit.limits.as_ref();
    // The table is read only if the toolkit does not show the limit: that costs more than everything else here.
    let newest = match host.family {
        CompilerFamily::Gcc => own.and_then(|own| own.gcc_max).or_else(|| tables::host_compiler(release).gcc_newest)?,
        CompilerFamily::Clang => {
            let below = own.and_then(|own| own.clang_below).or_else(|| tables::host_compiler(release).clang_below);
            below?.checked_sub(1)?
        }
        CompilerFamily::Other => return None,
    };
    Some((host.version?.major, newest)).filter(|(major, newest)| major > newest)
}

/// Describes a host compiler and whether nvcc or the cc crate calls it.
fn host_and_caller(host: &HostCompiler, toolchain: &Toolchain) -> String {
    let values = Values::default().with("compiler", host.describe()).with("path", host.path.display());
    let by_cc = Some(host) == toolchain.host_of_cc.as_ref();
    if by_cc { MessageFragment::OfCc } else { MessageFragment::OfNvcc }.render(&values.with("source", &host.source))
}

fn check_math_headers(toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    let Some((conflict, release)) = toolchain.math_conflict.as_ref().zip(toolchain.sourced_toolkit_version()) else {
        return;
    };
    let values = Values::default().with("nvcc_cuda", CudaVersion::from(release.value)).with("first", conflict.first);
    let values = values.with("found", &conflict.glibc).with("newest", &conflict.newest);
    let compiler = format!("{} ({})", conflict.compiler.value.display(), conflict.compiler.source);
    let values = values.with("symbols", &conflict.functions).with("path", conflict.header.display());
    let values = values.with("compiler", compiler);
    let mut finding = MessageTemplate::MathHeadersConflict.to_finding(&values);
    if !toolchain.host.as_ref().is_some_and(HostCompiler::is_named) {
        // Only the build script knows if it calls nvcc, and with which `-ccbin`.
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

#[cfg(test)]
mod tests;
