//! (policy, toolchain) → findings.
//!
//! A finding is an error only where the build would really use what is wrong. A cuDNN that merely stands on the machine,
//! named by no variable and asked for by no policy, is worth an info: whether the package uses it is not known before
//! linking.

use std::collections::BTreeSet;

use semver::VersionReq;

use crate::arch::{Arch, ArchRequest, Target};
use crate::finding::{Code, Finding, Severity};
use crate::manifest::Linkage;
use crate::policy::Policy;
use crate::serves::Serves;
use crate::tables::{self, Answer};
use crate::toolchain::{Declared, Family, HostCompiler, LibraryFile, Native, Toolchain, Toolkit};
use crate::vendor::GUARDED;
use crate::version::{CudaVersion, Version};

use super::fleet;
use super::wording::{facts, in_file, names};

/// What is wrong with building by this toolchain under this policy. Severities are the codes' own, or less where the
/// build need not be touched by it; the policy's `[build]` and `[allow]` are applied by [`crate::policy::Policy`]'s
/// owner, after.
pub fn judge(policy: &Policy, toolchain: &Toolchain) -> Vec<Finding> {
    let mut findings = Vec::new();
    toolkit(policy, toolchain, &mut findings);
    host_compiler(toolchain, &mut findings);
    stubs(toolchain, &mut findings);
    if policy.library_linkage != Some(Linkage::None) {
        guarded(policy, toolchain, false, &mut findings);
    }
    archs(policy, toolchain, &mut findings);
    findings.sort_by_key(|finding| finding.code);
    findings
}

/// What [`judge`] took for an info, since nothing said that the build is about that cuDNN, as it weighs once the linked
/// file is known to need it.
pub fn linked_library(policy: &Policy, toolchain: &Toolchain) -> Vec<Finding> {
    linked_library_anew(policy, toolchain, toolchain)
}

/// The same where the linked file has shown another library than was known `before`.
pub fn linked_library_anew(policy: &Policy, before: &Toolchain, now: &Toolchain) -> Vec<Finding> {
    let (mut said, mut after) = (Vec::new(), Vec::new());
    if policy.library_linkage != Some(Linkage::None) {
        guarded(policy, before, false, &mut said);
        guarded(policy, now, true, &mut after);
    }
    after.retain(|finding| !said.contains(finding));
    after
}

/// Whether a requirement takes a version. A third number that is not known takes every value: what cannot be told does
/// not refuse.
fn takes(require: &VersionReq, version: Version, patch_known: bool) -> bool {
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

fn toolkit(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    let dangling: Vec<(&str, String)> = toolchain
        .dangling
        .iter()
        .map(|fact| (fact.source.as_str(), format!("{}, which is not there", fact.value.display())))
        .collect();
    for (variable, what) in dangling.iter().filter(|(variable, _)| matches!(*variable, "NVCC" | "CUDACXX")) {
        findings.push(Finding::new(
            Code::ToolkitUnreadable,
            *variable,
            facts(&format!("{variable} names a compiler that cannot be found."), [(*variable, what.clone())]),
            format!("correct {variable}, or unset it to use the nvcc in PATH"),
        ));
    }
    let Some(release) = toolchain.toolkit() else {
        unknown_toolkit(policy, toolchain, findings, dangling);
        return;
    };
    if let Some(Toolkit { nvcc: Some(nvcc), .. }) = toolchain.compiling() {
        if let Some(trouble) = &nvcc.trouble {
            unreadable(findings, &nvcc.path.display().to_string(), "nvcc does not tell its release.", trouble);
        }
    }
    let mixed = mixed(toolchain, findings);
    cudart(toolchain, mixed, findings);
    if let Some(require) = &policy.toolkit {
        let patch_known = toolchain.compiling().and_then(|toolkit| toolkit.nvcc.as_ref()?.version).is_some();
        if !takes(&require.parsed, release.value, patch_known) {
            let in_use = toolchain.release_text().unwrap_or_default();
            findings.push(Finding::new(
                Code::ToolkitNotAllowed,
                "toolkit",
                facts(
                    &format!("the policy asks for CUDA {}, and {in_use} is in use.", require.text),
                    [
                        ("required", format!("{} ([toolkit] require{})", require.text, in_file(policy))),
                        ("in use", format!("{in_use} ({})", release.source)),
                        ("also here", others(toolchain)),
                    ],
                ),
                if toolchain.by_cmake {
                    "configure an empty build folder with an allowed toolkit: -DCMAKE_CUDA_COMPILER=ROOT/bin/nvcc and \
                     -DCUDAToolkit_ROOT=ROOT; or change [toolkit] require"
                } else {
                    "put an allowed toolkit's bin folder first in PATH and set CUDA_HOME to its root, or change \
                     [toolkit] require"
                },
            ));
        }
    }
}

/// Toolkits that are not in use, in a line.
fn others(toolchain: &Toolchain) -> String {
    let used = |index: usize| {
        [&toolchain.compiler, &toolchain.headers].into_iter().flatten().any(|choice| choice.index == index)
    };
    let others = toolchain.toolkits.iter().enumerate().filter(|(index, _)| !used(*index));
    others.map(|(_, toolkit)| format!("{} in {}", toolkit.in_words(), toolkit.place())).collect::<Vec<_>>().join("; ")
}

fn unreadable(findings: &mut Vec<Finding>, subject: &str, message: &str, trouble: &str) {
    findings.push(Finding::new(
        Code::ToolkitUnreadable,
        subject,
        format!("{message}\n{subject} {trouble}"),
        "run it by hand with --version; reinstall the toolkit where that fails",
    ));
}

/// Nothing tells a release: there is no toolkit in use, or it is silent.
fn unknown_toolkit(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>, dangling: Vec<(&str, String)>) {
    let mut silent = false;
    if let Some(nvcc) = toolchain.compiling().and_then(|toolkit| toolkit.nvcc.as_ref()) {
        let trouble = nvcc.trouble.as_deref().unwrap_or("does not tell its release");
        unreadable(findings, &nvcc.path.display().to_string(), "nvcc does not tell its release.", trouble);
        silent = true;
    }
    if let Some(headers) = toolchain.including().and_then(|toolkit| toolkit.headers.as_ref()) {
        if headers.version.is_none() {
            findings.push(Finding::new(
                Code::ToolkitUnreadable,
                "cuda.h",
                facts("cuda.h does not tell its release.", [("file", headers.path.display().to_string())]),
                "it should hold a line `#define CUDA_VERSION 13000`; reinstall the toolkit's headers",
            ));
            silent = true;
        }
    }
    let Some(require) = policy.toolkit.as_ref().filter(|_| !silent) else { return };
    let found = others(toolchain);
    // A root without a compiler is no toolkit to build with: the wheels before CUDA 13, a container for running.
    let hint = match toolchain.toolkits.iter().find(|toolkit| toolkit.nvcc.is_some()) {
        _ if toolchain.by_cmake => {
            "enable the language CUDA, or call find_package(CUDAToolkit) before cudaguard_embed; drop [toolkit] require \
             where none is needed"
                .into()
        }
        Some(toolkit) => format!("set CUDA_HOME={}, or install the toolkit", toolkit.root.display()),
        None => {
            "install a toolkit, or set CUDA_HOME to the root of one; drop [toolkit] require where none is needed".into()
        }
    };
    let required = ("required", format!("{} ([toolkit] require{})", require.text, in_file(policy)));
    findings.push(Finding::new(
        Code::ToolkitMissing,
        "toolkit",
        facts(
            "the policy asks for a CUDA toolkit, and builds would find none.",
            [required].into_iter().chain(dangling).chain([("not in use", found)]),
        ),
        hint,
    ));
}

/// nvcc against headers. Whether they are of different releases.
fn mixed(toolchain: &Toolchain, findings: &mut Vec<Finding>) -> bool {
    let Some((including, chosen)) = toolchain.including().zip(toolchain.headers.as_ref()) else { return false };
    let Some((headers, version)) = including.headers.as_ref().and_then(|headers| Some((headers, headers.version?)))
    else {
        return false;
    };
    let header_line = format!("{version} in {} ({})", headers.path.display(), chosen.reason);
    for (index, variable) in &toolchain.also_named {
        let other = toolchain.toolkits[*index].headers.as_ref();
        let Some((other, other_version)) = other.and_then(|headers| Some((headers, headers.version?))) else {
            continue;
        };
        if other_version != version {
            findings.push(
                Finding::new(
                    Code::ToolkitMixed,
                    variable.as_str(),
                    facts(
                        &format!("{variable} names CUDA {other_version}, but the headers in use are of CUDA {version}."),
                        [
                            (variable.as_str(), format!("{other_version} in {}", other.path.display())),
                            ("in use", header_line.clone()),
                        ],
                    ),
                    format!("build scripts differ in which variable they follow: unset {variable}, or let both name one root"),
                )
                .weighing(Severity::Warning),
            );
        }
    }
    let compiling = toolchain.compiling().zip(toolchain.compiler.as_ref());
    let Some((compiler, choice)) = compiling else { return false };
    let Some(nvcc) = compiler.version().filter(|nvcc| CudaVersion::from(nvcc.value) != version) else { return false };
    let path = compiler.nvcc.as_ref().map(|nvcc| nvcc.path.display().to_string()).unwrap_or_default();
    let bin = including.nvcc.as_ref().and_then(|nvcc| Some(nvcc.path.parent()?.display().to_string()));
    let one_root = compiler.root == including.root;
    let variable = chosen.reason.strip_suffix(" names it").filter(|_| !one_root);
    let hint = match (variable, bin) {
        _ if toolchain.by_cmake => format!(
            "let compiler and headers come from one toolkit: configure an empty build folder with -DCUDAToolkit_ROOT={}, \
             or with the other's -DCMAKE_CUDA_COMPILER",
            compiler.root.display()
        ),
        (Some(variable), Some(bin)) => {
            format!("for {version}, put {bin} first in PATH; for the other, set {variable}={}", compiler.root.display())
        }
        (Some(variable), None) => format!("set {variable}={}, or unset it", compiler.root.display()),
        (None, _) => "reinstall the toolkit: parts of two releases stand in one root".to_owned(),
    };
    findings.push(Finding::new(
        Code::ToolkitMixed,
        "toolkit",
        facts(
            &format!("nvcc is of CUDA {}, the headers are of CUDA {version}.", CudaVersion::from(nvcc.value)),
            [("nvcc", format!("{} in {path} ({})", nvcc.value, choice.reason)), ("cuda.h", header_line)],
        ),
        hint,
    ));
    true
}

/// The linker's cudart against nvcc, or against the headers where there is no nvcc.
fn cudart(toolchain: &Toolchain, mixed: bool, findings: &mut Vec<Finding>) {
    let Some((cudart, toolkit)) = toolchain.cudart.as_ref().zip(toolchain.toolkit()) else { return };
    let differs = |from: CudaVersion| match (&cudart.version, cudart.major) {
        (Some(version), _) => CudaVersion::from(version.value) != from,
        (None, Some(major)) => major != from.major,
        (None, None) => false,
    };
    let headers = toolchain.including().and_then(|toolkit| toolkit.headers.as_ref()?.version);
    // Where nvcc and headers are mixed, a cudart that came with the headers is the same fault, said already.
    if !differs(toolkit.value.into()) || mixed && headers.is_some_and(|headers| !differs(headers)) {
        return;
    }
    let mut finding = Finding::new(
        Code::CudartMixed,
        "libcudart",
        facts(
            &format!(
                "the linker would take libcudart {} by itself, but nvcc is of CUDA {}.",
                cudart.version_text(),
                CudaVersion::from(toolkit.value)
            ),
            [
                ("cudart", format!("{} ({})", cudart.path.display(), cudart.source)),
                ("toolkit", format!("{} ({})", toolkit.value, toolkit.source)),
            ],
        ),
        match cudart.source.as_str() {
            "the toolkit's own folder" => "reinstall the toolkit: parts of two releases stand in one root".to_owned(),
            "the system's folder" => {
                "the toolkit in use has no libcudart of its own: install its cudart package".to_owned()
            }
            source => format!("take that folder out of {source}, or put the toolkit's own library folder before it"),
        },
    );
    if ["the system's folder", "LIBRARY_PATH", "CUDA_LIBRARY_PATH"].contains(&cudart.source.as_str()) {
        // The folders that a build script names go before these. What was linked is judged once it is.
        finding.severity = Severity::Warning;
    }
    findings.push(finding);
}

fn host_compiler(toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    let Some(toolkit) = toolchain.compiling().filter(|_| !toolchain.any_host) else { return };
    let Some(release) = toolkit.version() else { return };
    let own = toolkit.limits.as_ref();
    // Only where the toolkit itself does not say: reading the table costs more than all else here.
    let table = || tables::host_compiler(release.value);
    // Its major, and the newest of its maker that nvcc takes, where it is newer than that.
    let refused = |host: &HostCompiler| {
        let newest = match host.family {
            Family::Gcc => own.and_then(|own| own.gcc_max).or_else(|| table().gcc_newest),
            Family::Clang => {
                let below = own.and_then(|own| own.clang_below).or_else(|| table().clang_below);
                below.and_then(|below| below.checked_sub(1))
            }
            Family::Other => None,
        };
        Some((host.version?.major, newest?)).filter(|(major, newest)| major > newest)
    };
    let hosts = [toolchain.host.as_ref(), toolchain.host_of_cc.as_ref()].map(|host| Some((host?, refused(host?))));
    let Some((host, (major, newest))) = hosts.into_iter().flatten().find_map(|(host, refused)| Some((host, refused?)))
    else {
        return;
    };
    let accepted = hosts.into_iter().flatten().find(|(_, refused)| refused.is_none()).map(|(host, _)| host);
    let maker = host.family.name();
    let cxx = if host.family == Family::Gcc { "g++" } else { "clang++" };
    let named = |host: &HostCompiler| {
        let by = if Some(host) == toolchain.host_of_cc.as_ref() { "by the cc crate: " } else { "" };
        format!("{} in {} ({by}{})", host.in_words(), host.path.display(), host.source)
    };
    let mut finding = Finding::new(
        Code::HostCompilerRejected,
        host.in_words(),
        facts(
            &format!(
                "nvcc of CUDA {} does not accept {maker} {major}: {newest} is the newest it takes.",
                CudaVersion::from(release.value)
            ),
            [
                ("compiler", named(host)),
                ("another", accepted.map(named).unwrap_or_default()),
                ("nvcc", format!("{} ({})", release.value, release.source)),
                ("limit", own.map(|own| own.source.clone()).unwrap_or_default()),
            ],
        ),
        if toolchain.by_cmake {
            format!(
                "install {cxx}-{newest} and configure with -DCMAKE_CUDA_HOST_COMPILER={cxx}-{newest}, or build with a \
                 newer toolkit"
            )
        } else {
            format!(
                "install {cxx}-{newest} and set CXX={cxx}-{newest} where the cc crate calls nvcc, NVCC_CCBIN={cxx}-{newest} \
                 where anything else does, or build with a newer toolkit"
            )
        },
    );
    if accepted.is_some() {
        // Which of both this build uses its build script knows; nvcc itself refuses the other.
        finding.severity = Severity::Info;
    } else if !toolchain.host.as_ref().is_some_and(HostCompiler::is_named) {
        // Whether nvcc is called at all, and with which `-ccbin`, the build script knows; nvcc itself refuses this one.
        finding.severity = Severity::Warning;
    }
    findings.push(finding);
}

fn stubs(toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    for stub in &toolchain.stubs {
        let mut finding = Finding::new(
            Code::StubInRuntimePath,
            stub.source.as_str(),
            facts(
                &format!("{} makes programs load the toolkit's empty stub libraries.", stub.source),
                [("folder", stub.value.display().to_string())],
            ),
            format!("take the stubs folder out of {}; the linker needs it in -L or LIBRARY_PATH only", stub.source),
        );
        if stub.source == "LD_LIBRARY_PATH" {
            // It is this shell's, not the program's.
            finding.severity = Severity::Warning;
        }
        findings.push(finding);
    }
}

fn guarded(policy: &Policy, toolchain: &Toolchain, linked: bool, findings: &mut Vec<Finding>) {
    let headers = toolchain.library_headers_used();
    let library = toolchain.library_used();
    let version = headers.and_then(|headers| headers.version);
    let library_version = library.and_then(|library| library.version.as_ref());
    let reason =
        |choice: &Option<crate::toolchain::Choice>| choice.as_ref().map(|c| c.reason.clone()).unwrap_or_default();
    let (why_headers, why_library) = (reason(&toolchain.library_headers), reason(&toolchain.library_file));

    if let Some(require) = &policy.library {
        let found = version.or(library_version.map(|version| version.value));
        if !found.is_some_and(|found| takes(&require.parsed, found, true)) && (found.is_some() || headers.is_none()) {
            let required = ("required", format!("{} ([cudnn] require{})", require.text, in_file(policy)));
            let message = match found {
                Some(found) => format!("the policy asks for cuDNN {}, and {found} is in use.", require.text),
                None => "the policy asks for cuDNN, and builds would find none.".to_owned(),
            };
            let in_use = match (headers, library) {
                (Some(headers), _) => format!("{} ({why_headers})", headers.path.display()),
                (None, Some(library)) => format!("{} ({why_library})", library.path.display()),
                (None, None) => String::new(),
            };
            let listed: Vec<_> = toolchain
                .installs
                .iter()
                .filter(|_| found.is_none())
                .map(|c| format!("{} in {}", c.in_words(), c.place()))
                .collect();
            findings.push(Finding::new(
                Code::CudnnNotAllowed,
                "cuDNN",
                facts(&message, [required, ("in use", in_use), ("not in use", listed.join("; "))]),
                if toolchain.by_cmake {
                    "let the target's include directories, or CUDNN_INCLUDE_DIR of cudaguard_embed, name an allowed \
                     cuDNN, or change [cudnn] require"
                } else {
                    "set CUDNN_PATH to the root of an allowed cuDNN, or change [cudnn] require"
                },
            ));
        }
    }

    // Whether this build is about cuDNN at all: by the linked file, a variable or the policy.
    let meant = linked
        || policy.library.is_some()
        || policy.library_fleet.is_some()
        || policy.library_linkage.is_some_and(|linkage| linkage != Linkage::Unknown)
        || [&why_headers, &why_library].iter().any(|reason| reason.ends_with(" names it"));
    let weigh = |finding: Finding| if meant { finding } else { finding.weighing(Severity::Info) };

    if let Some(headers) = headers.filter(|headers| headers.version.is_none()) {
        findings.push(weigh(Finding::new(
            Code::CudnnUnreadable,
            "cuDNN",
            facts("cuDNN's headers do not tell their version.", [("file", headers.path.display().to_string())]),
            "cudnn_version.h should define CUDNN_MAJOR, CUDNN_MINOR and CUDNN_PATCHLEVEL; reinstall cuDNN's headers",
        )));
    }
    if let (Some(headers), Some(version), Some(library)) = (headers, version, library) {
        let library_text = library_version.map_or(library.major.to_string(), |version| version.value.to_string());
        let differs = match library_version {
            Some(found) => found.value != version,
            None => library.major != version.major,
        };
        if differs {
            let finding = Finding::new(
                Code::CudnnMixed,
                "cuDNN",
                facts(
                    &format!("cuDNN's headers are {version}, its library is {library_text}."),
                    [
                        ("headers", format!("{version} in {} ({why_headers})", headers.path.display())),
                        ("library", format!("{library_text} in {} ({why_library})", library.path.display())),
                        ("told by", library_version.map(|version| version.source.clone()).unwrap_or_default()),
                    ],
                ),
                if toolchain.by_cmake {
                    "make both come from one package: the include directories of the target and the library it links \
                     are of two"
                } else {
                    "make both come from one package: set CUDNN_PATH to its root and unset the other CUDNN_ variables"
                },
            );
            let patch_only = library_version
                .is_some_and(|found| (found.value.major, found.value.minor) == (version.major, version.minor));
            findings.push(weigh(if patch_only && !policy.library_patch_refuse {
                finding.weighing(Severity::Warning)
            } else {
                finding
            }));
        }
    }
    for variable in ["CUDNN_PATH", "CUDNN_HOME", "CUDNN_ROOT", "CUDNN_ROOT_DIR"] {
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
        findings.push(
            Finding::new(
                Code::CudnnMixed,
                variable,
                facts(
                    &format!("{variable} names cuDNN {other_version}, but the headers in use are {version}."),
                    [
                        (variable, format!("{other_version} in {}", other.path.display())),
                        ("in use", format!("{version} in {} ({why_headers})", headers.path.display())),
                    ],
                ),
                format!(
                    "build scripts differ in which variable they follow: unset {variable}, or let all name one root"
                ),
            )
            .weighing(Severity::Warning),
        );
    }
    if let Some(library) = library {
        findings.extend(parts(library).map(weigh));
    }
    findings.extend(fleet::guarded(policy, toolchain).into_iter().map(weigh));
    if let Some(toolkit) = toolchain.toolkit() {
        findings.extend(
            other_cuda(toolkit.value, version, headers.map(|h| h.path.display().to_string()), library, &toolkit.source)
                .map(weigh),
        );
    }
}

/// Inner libraries that are missing, or of another release than the rest.
fn parts(library: &LibraryFile) -> Option<Finding> {
    let folder = library.path.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    if !library.missing.is_empty() {
        let missing = library.missing.join(", ");
        let are = if library.missing.len() == 1 { "is" } else { "are" };
        let needed = |name: &String| GUARDED.needed_parts(library.major).any(|needed| needed.file == *name);
        let finding = Finding::new(
            Code::CudnnIncomplete,
            "cuDNN",
            facts(
                &format!("cuDNN {} is incomplete: {missing} {are} not there.", library.in_words()),
                [("library", library.path.display().to_string()), ("folder", folder)],
            ),
            "reinstall cuDNN whole: a call that needs the missing part aborts the program",
        );
        let works = !library.missing.iter().any(needed);
        return Some(if works { finding.weighing(Severity::Warning) } else { finding });
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
    let finding = Finding::new(
        Code::CudnnIncomplete,
        "cuDNN",
        facts(
            &format!("cuDNN's libraries are mixed: {} among those of {version}.", named(first)),
            [
                ("folder", folder),
                ("mixed in", other.iter().map(|part| named(part)).collect::<Vec<_>>().join(", ")),
                ("told by", library.version.as_ref().map(|version| version.source.clone()).unwrap_or_default()),
            ],
        ),
        "remove what an older cuDNN left in that folder, and reinstall cuDNN whole",
    );
    Some(if worst { finding } else { finding.weighing(Severity::Warning) })
}

/// cuDNN for another CUDA major than the toolkit's.
fn other_cuda(
    toolkit: Version,
    headers: Option<Version>,
    headers_path: Option<String>,
    library: Option<&LibraryFile>,
    toolkit_source: &str,
) -> Option<Finding> {
    let toolkit_line = ("toolkit", format!("{toolkit} ({toolkit_source})"));
    let hint = |major: u32| {
        format!(
            "install the cuDNN package for CUDA {}: for example cudnn{major}-cuda-{}, or the wheel nvidia-cudnn-cu{}",
            toolkit.major, toolkit.major, toolkit.major
        )
    };
    if let Some((library, built)) = library.and_then(|library| Some((library, library.cuda_major.as_ref()?))) {
        let known = library.version.as_ref().map_or(library.major.to_string(), |version| version.value.to_string());
        return (built.value != toolkit.major).then(|| {
            Finding::new(
                Code::CudnnForOtherCuda,
                "cuDNN",
                facts(
                    &format!(
                        "cuDNN {known} is built for CUDA {}, the toolkit is CUDA {}.",
                        built.value,
                        CudaVersion::from(toolkit)
                    ),
                    [("cuDNN", library.path.display().to_string()), ("told by", built.source.clone()), toolkit_line],
                ),
                hint(library.major.max(9)),
            )
        });
    }
    // No file tells: but some releases were never made for some majors.
    let by_library =
        library.and_then(|library| Some((library.version.as_ref()?.value, library.path.display().to_string())));
    let (version, path) = by_library.or(headers.zip(headers_path))?;
    let never = GUARDED.table().cuda_majors(version).is_some_and(|majors| !majors.contains(&toolkit.major));
    never.then(|| {
        Finding::new(
            Code::CudnnForOtherCuda,
            "cuDNN",
            facts(
                &format!("cuDNN {version} was never made for CUDA {}.", toolkit.major),
                [("cuDNN", path), toolkit_line],
            ),
            hint(version.major.max(9)),
        )
    })
}

fn archs(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    let archs = &toolchain.archs;
    for declared in &archs.declared {
        if let Err(error) = &declared.requests {
            let finding = Finding::new(
                Code::ArchUnreadable,
                declared.source.as_str(),
                facts(
                    &format!("{} names an architecture that cannot be read: {error}.", declared.source),
                    [(declared.source.as_str(), declared.text.clone())],
                ),
                format!("correct {}, for example to `80;90`", declared.source),
            );
            findings.push(unless_torch(finding, [declared]));
        }
    }
    contradictions(toolchain, findings);
    native(policy, toolchain, findings);
    let Some(toolkit) = toolchain.compiling().and_then(Toolkit::version) else { return };
    let release = CudaVersion::from(toolkit.value);
    let declaring = |wanted: &[Target]| -> Vec<&Declared> {
        archs.declared.iter().filter(|one| one.targets.iter().any(|target| wanted.contains(target))).collect()
    };
    let nvcc = format!("{} ({})", toolkit.value, toolkit.source);
    let mut refused: Vec<(Answer, Vec<Target>)> = Vec::new();
    for target in &archs.in_force {
        let answer = tables::can_make(toolkit.value, *target);
        if matches!(answer, Answer::TooNew { .. } | Answer::Dropped { .. }) {
            match refused.iter_mut().find(|(known, _)| *known == answer) {
                Some((_, targets)) => targets.push(*target),
                None => refused.push((answer, vec![*target])),
            }
        }
    }
    for (answer, targets) in refused {
        let list = names(&targets);
        let declaring = declaring(&targets);
        let sources: Vec<_> = declaring.iter().map(|one| format!("{} = {}", one.source, one.text)).collect();
        let common = [("declared", sources.join("; ")), ("nvcc", nvcc.clone())];
        if let Answer::Dropped { last } = answer {
            let last = last.map_or("an older one".to_owned(), |last| format!("{last} was the last"));
            let finding = Finding::new(
                Code::ArchDropped,
                list.as_str(),
                facts(&format!("CUDA {release} no longer makes {list}: {last}."), common),
                "drop it together with the GPUs that need it, or build with the older toolkit",
            );
            findings.push(unless_torch(finding, declaring));
        } else if let Answer::TooNew { first } = answer {
            let first = first
                .map_or("no release that is known does".to_owned(), |first| format!("{first} is the first that does"));
            let ptx = targets
                .iter()
                .map(|target| target.arch().cc())
                .min()
                .and_then(|cc| tables::only_ptx(toolkit.value, cc));
            let instead = ptx
                .map(|arch| format!(", or declare compute_{arch}, whose PTX newer GPUs compile at start"))
                .unwrap_or_default();
            let finding = Finding::new(
                Code::ArchTooNew,
                list.as_str(),
                facts(&format!("CUDA {release} cannot make {list}: {first}."), common),
                format!("build with a newer toolkit{instead}"),
            );
            findings.push(unless_torch(finding, declaring));
        }
    }
    only_by_ptx(policy, toolkit.value, &archs.in_force, &nvcc, findings);
}

/// GPUs of the fleet for which this toolkit makes no machine code.
fn only_by_ptx(policy: &Policy, toolkit: Version, in_force: &[Target], nvcc: &str, findings: &mut Vec<Finding>) {
    for gpu in &policy.fleet {
        let Some(cc) = tables::gpu_cc(gpu) else { continue };
        let Some(own) = Arch::of_cc(cc) else { continue };
        let too_new = matches!(tables::can_make(toolkit, Target::Cubin(own)), Answer::TooNew { .. });
        // Machine code of an older arch of the same major, where the toolkit makes one, serves as well.
        let older = (0..=cc.1).filter_map(|minor| Arch::of_cc((cc.0, minor))).map(Target::Cubin);
        let served = older
            .filter(|target| tables::can_make(toolkit, *target) == Answer::Made)
            .any(|target| target.serves(cc) != Serves::No);
        if !too_new || served {
            continue;
        }
        let Some(ptx) = tables::only_ptx(toolkit, cc) else { continue };
        let declared =
            in_force.iter().any(|target| matches!(target, Target::Ptx(_)) && target.serves(cc) == Serves::Yes);
        let cc = format!("{}.{}", cc.0, cc.1);
        let shown = if cc == *gpu { cc } else { format!("{gpu} ({cc})") };
        findings.push(Finding::new(
            Code::ArchOnlyByPtx,
            gpu.as_str(),
            facts(
                &format!("CUDA {} makes no machine code for {shown}, only PTX serves it.", CudaVersion::from(toolkit)),
                [
                    ("fleet", format!("{gpu} ([gpu] fleet{})", in_file(policy))),
                    ("nvcc", nvcc.to_owned()),
                    ("declared", if in_force.is_empty() { String::new() } else { names(in_force) }),
                ],
            ),
            if declared {
                "the driver compiles it at the first start; a newer toolkit makes machine code".to_owned()
            } else {
                format!("build with a newer toolkit, or declare compute_{ptx} as well")
            },
        ));
    }
}

/// Sources that do not name the same archs. What kind of code each means, and suffixes, are left aside: tools differ in
/// them.
fn contradictions(toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    let numbers =
        |declared: &Declared| -> BTreeSet<u16> { declared.targets.iter().map(|target| target.arch().number).collect() };
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
    let line = |declared: &'_ Declared| {
        format!(
            "{}{}",
            names(&declared.targets),
            if declared.text == names(&declared.targets) { String::new() } else { format!(" (`{}`)", declared.text) }
        )
    };
    let lines = [strongest]
        .into_iter()
        .chain(against.iter().copied())
        .map(|declared| (declared.source.as_str(), line(declared)));
    let other = against.iter().map(|declared| declared.source.as_str()).collect::<Vec<_>>().join(" and ");
    let finding = Finding::new(
        Code::ArchsContradict,
        "archs",
        facts(&format!("{} and {other} name different architectures.", strongest.source), lines),
        if toolchain.by_cmake {
            "let both name the same: [gpu] archs in cudaguard.toml and the target's CUDA_ARCHITECTURES"
        } else {
            "keep one of them, best [gpu] archs in cudaguard.toml, and unset the others"
        },
    );
    findings.push(unless_torch(finding, against));
}

/// The finding, an info where nothing but PyTorch's list is wrong.
fn unless_torch<'a>(finding: Finding, sources: impl IntoIterator<Item = &'a Declared>) -> Finding {
    if sources.into_iter().all(Declared::is_of_torch) { finding.weighing(Severity::Info) } else { finding }
}

fn native(policy: &Policy, toolchain: &Toolchain, findings: &mut Vec<Finding>) {
    let archs = &toolchain.archs;
    let mut asking = archs.declared.iter().filter(|declared| declared.asks(ArchRequest::Native));
    let Some(first) = asking.next() else { return };
    let strongest = archs.declared.iter().find(|declared| !declared.adds);
    let in_force = first.adds || strongest.is_some_and(|strongest| strongest == first);
    let said = (first.source.as_str(), first.text.clone());
    match &archs.native {
        Some(Native::Gpus(gpus)) => {
            let missing: Vec<_> = policy
                .fleet
                .iter()
                .filter(|gpu| {
                    let cc = tables::gpu_cc(gpu);
                    cc.is_some_and(|cc| archs.in_force.iter().all(|target| target.serves(cc) == Serves::No))
                })
                .map(String::as_str)
                .collect();
            if in_force && !missing.is_empty() {
                let here: Vec<_> = gpus.value.iter().map(|(major, minor)| format!("{major}.{minor}")).collect();
                findings.push(Finding::new(
                    Code::NativeOutsideFleet,
                    "native",
                    facts(
                        &format!(
                            "`native` builds for this machine's GPU ({}), which does not serve the fleet's {}.",
                            here.join(", "),
                            missing.join(", ")
                        ),
                        [
                            said,
                            ("this machine", format!("{} ({})", here.join(", "), gpus.source)),
                            ("fleet", format!("{} ([gpu] fleet{})", policy.fleet.join(", "), in_file(policy))),
                        ],
                    ),
                    "name the archs of the fleet instead of `native`",
                ));
            }
        }
        Some(Native::Unknown(why)) => {
            let finding = Finding::new(
                Code::NativeUnknown,
                "native",
                facts("`native` was asked for, and there is no GPU to ask.", [said, ("driver", why.clone())]),
                if toolchain.by_cmake {
                    "name the archs, for example CMAKE_CUDA_ARCHITECTURES=\"80;90\""
                } else {
                    "name the archs, for example CUDAARCHS=\"80;90\""
                },
            );
            findings.push(if in_force { finding } else { finding.weighing(Severity::Warning) });
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_cuda_is_nothing_wrong() {
        assert_eq!(judge(&Policy::default(), &Toolchain::default()), []);
    }

    #[test]
    fn a_third_number_that_nobody_knows_does_not_refuse() {
        let takes =
            |require: &str, version: &str, known| takes(&require.parse().unwrap(), version.parse().unwrap(), known);
        assert!(takes(">=12.4, <14", "13.0.88", true));
        assert!(!takes("<13", "13.0.88", true));
        assert!(takes("=12.4", "12.4.131", true));
        // cuda.h says 12.4, which may be 12.4.131.
        assert!(takes(">=12.4.127", "12.4.0", false));
        assert!(takes("=12.4.131", "12.4.0", false));
        assert!(!takes(">=12.4.127", "12.4.0", true));
        assert!(!takes(">=12.5", "12.4.0", false));
        assert!(!takes("<12.4", "12.4.0", false));
    }

    #[test]
    fn facts_stand_in_columns_and_empty_ones_are_left_out() {
        let text = facts("it is wrong.", [("a", "1".to_owned()), ("none", String::new()), ("long", "2".to_owned())]);
        assert_eq!(text, "it is wrong.\na:    1\nlong: 2");
    }
}
