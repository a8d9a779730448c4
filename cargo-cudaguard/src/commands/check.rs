//! `check`: checks the toolchain without building.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::cli::counts::count_of;
use crate::cli::crates_report::{self, CrateView};
use crate::cli::json_output::{self, FindingView, VersionView, texts};
use crate::cli::toolchain_json::ToolchainView;
use crate::cli::toolchain_report;
use crate::knowledge::vendor::CUDNN;
use crate::pipeline::{CheckedBuild, uses_cudnn};
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{self, Code, Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::pipeline::{self, BuildCheck, BuildInputs, CudaIntent};
use cudaguard::internal::policy::Policy;
use cudaguard::internal::suggest::closest_match;
use serde::Serialize;
use serde_json::Value;

use crate::cargo::graph::CrateGraph;
use crate::cargo::guards;
use crate::cargo::project::{Project, repository_root, shows_use_of_cuda};
use crate::cli::findings::{self as render, SarifResult};
use crate::cli::report::{self, CliError, REFUSED};

pub(crate) fn run_check(env: &Env, arguments: &[OsString]) -> Result<ExitCode, CliError> {
    let (call, config, project) = Project::from_args(env, arguments)?;
    let variables = config.env_table();
    let graph = CrateGraph::from_project(&project, &call, &config, &project.target_dir.join("cudaguard"), false);
    let (mut findings, mut results, mut packages) = (Vec::new(), Vec::new(), Vec::new());
    for at in &project.selected {
        for target in &project.targets {
            let member = &project.members[*at];
            let crates = graph.crates_of(target, &member.name);
            let inputs = guards::build_inputs(&project, member, target);
            let facts = BuildInputs {
                sees_linked: false,
                intent: if shows_use_of_cuda(&member.dir) { CudaIntent::Build } else { inputs.intent },
                by_crates: guards::intent_of_crates(crates, &member.dir),
                uses_cudnn: crates.iter().any(uses_cudnn),
                ..inputs
            };
            let judged = guards::check_package(env, &facts, crates, &variables)?;
            let (line, value) = describe_toolchain(&facts, &judged, graph.unchecked.as_deref());
            let mut listing = toolchain_report::render(&judged.toolchain) + &crates_report::render(&judged.uses);
            if let Some(why) = &graph.unchecked {
                listing = listing + "crates    not checked      " + why + "\n";
            }
            packages.push(CheckedPackage { line, value, listing });
            let manifest = facts.dir.join("Cargo.toml");
            let uri = manifest
                .strip_prefix(repository_root(&project.top))
                .unwrap_or(&manifest)
                .to_string_lossy()
                .into_owned();
            let of_policy: Vec<Finding> = unused_allows(&facts, &judged)
                .into_iter()
                .chain(unknown_policy_packages(&project, &judged.policy))
                .collect();
            let CheckedBuild { build, of_crates, .. } = judged;
            for mut finding in build.findings.into_iter().chain(of_crates).chain(of_policy) {
                // The build that follows reads the linked file.
                if finding.code == Code::FleetCannotTell {
                    finding.severity = Severity::Info;
                }
                let allowed = build.policy.allow.get(&finding.code).cloned();
                results.push(SarifResult { finding: finding.clone(), uri: uri.clone(), allowed });
                findings.push(finding);
            }
        }
    }
    finding::sort_findings(&mut findings);
    results.sort_by_key(|result| finding::sort_key(&result.finding));
    let is_refused = pipeline::fails_build(&findings);
    let form = if call.json { "json" } else { call.format.as_deref().unwrap_or("text") };
    if form != "github" {
        render::print_annotations(&findings);
    }
    match form {
        "json" => {
            let packages = packages.iter().map(|one| &one.value).collect();
            let findings = findings.iter().map(FindingView::new).collect();
            report::print_result(&json_output::render(&CheckView { packages, findings }))?;
        }
        "sarif" => report::print_result(&render::to_sarif(&results))?,
        "github" => {
            report::commands(&render::to_github(finding::sorted_unique(&findings)))?;
        }
        _ => {
            render::print_text(&findings);
            report::print_result(&(describe_packages(&packages) + &summary(&project, packages.len(), &findings)))?;
        }
    }
    if is_refused {
        return Ok(ExitCode::from(REFUSED));
    }
    match &graph.unchecked {
        Some(why) => Err(CliError::operational(format_args!("the dependencies cannot be checked: {why}"))),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// A package and its toolchain.
struct CheckedPackage {
    /// Summary line.
    line: String,
    value: Value,
    /// All detected components, one a line.
    listing: String,
}

/// Lists each package in one line. Consecutive packages with the same toolchain share one listing of it.
fn describe_packages(packages: &[CheckedPackage]) -> String {
    let mut text = String::new();
    for same in packages.chunk_by(|one, next| one.listing == next.listing) {
        text += &join_lines(same.iter().map(|package| package.line.as_str()));
        for line in same.iter().take(1).flat_map(|package| package.listing.lines()) {
            text = text + "  " + line + "\n";
        }
    }
    text
}

/// Returns the last line: what was checked, and the number of findings.
fn summary(project: &Project, checked: usize, findings: &[Finding]) -> String {
    let package_lines = finding::sorted_unique(findings);
    let count = |severity| package_lines.iter().filter(|finding| finding.severity == severity).count() as u64;
    let mut line = format!(
        "cudaguard: {} checked for the {} profile: {}, {}",
        count_of(checked as u64, "package"),
        project.profile,
        count_of(count(Severity::Error), "error"),
        count_of(count(Severity::Warning), "warning")
    );
    if !project.release && count(Severity::Warning) > 0 {
        line += "; --release checks as for a release build";
    }
    line + "\n"
}

fn join_lines<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Reports `allow` entries that match no finding. They are infos, because another machine may need them.
fn unused_allows(facts: &BuildInputs<'_>, judged: &BuildCheck) -> Vec<Finding> {
    let ours = |code: &&Code| **code != Code::StaleAllow && !judged.policy.allow.contains_key(&Code::StaleAllow);
    let policy = judged.policy.path.as_ref().map(|path| path.display());
    let say = |code: &Code| {
        let values = Values::default().with("component", &facts.component).with("finding", code);
        let values = values.with_known("why", judged.policy.allow.get(code)).with_known("policy", policy.as_ref());
        MessageTemplate::StaleAllow.to_finding(&values)
    };
    judged.stale_allows.iter().filter(ours).map(say).collect()
}

/// Reports packages in the policy that are not in the workspace. Only `check` knows all members.
fn unknown_policy_packages(project: &Project, policy: &Policy) -> Vec<Finding> {
    if policy.allow.contains_key(&Code::NoSuchPackage) {
        return Vec::new();
    }
    let members: Vec<&str> = project.members.iter().map(|member| member.name.as_str()).collect();
    let file = policy.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let mut findings = Vec::new();
    for (name, line) in policy.packages.iter().filter(|(name, _)| !members.contains(&name.as_str())) {
        let values = Values::default().with("package", name).with("policy", &file).with("line", line);
        let intent = closest_match(name, &members);
        let words = if intent.is_some() { MessageTemplate::NoSuchPackageMeant } else { MessageTemplate::NoSuchPackage };
        findings.push(words.to_finding(&values.with_known("meant", intent)));
    }
    findings
}

/// The output of `check` as JSON.
#[derive(Serialize)]
struct CheckView<'a> {
    packages: Vec<&'a Value>,
    findings: Vec<FindingView<'a>>,
}

#[derive(Serialize)]
struct PackageView<'a> {
    name: &'a str,
    version: &'a str,
    target: &'a str,
    profile: &'a str,
    toolkit: Option<VersionView>,
    cudnn: Option<VersionView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    archs: Vec<String>,
    host_compiler: Option<String>,
    policy: Option<String>,
    toolchain: ToolchainView<'a>,
    crates: Vec<CrateView<'a>>,
    crates_not_judged: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_judged: Vec<String>,
}

/// Describes the toolchain of a package, in one line and as JSON. `unchecked` is why its crates are not known.
fn describe_toolchain(facts: &BuildInputs<'_>, judged: &CheckedBuild, unchecked: Option<&str>) -> (String, Value) {
    let toolchain = &judged.toolchain;
    let toolkit = toolchain.sourced_toolkit_version();
    let cudnn_header = toolchain.library_headers_used().map(|headers| headers.path.display().to_string());
    let archs = texts(toolchain.declared_targets());
    let mut parts = Vec::new();
    parts.extend(toolkit.as_ref().map(|toolkit| format!("CUDA {} ({})", toolkit.value, toolkit.source)));
    if let Some(version) = toolchain.library_version() {
        parts.push(format!("{} {version} ({})", CUDNN.name, cudnn_header.as_deref().unwrap_or_default()));
    }
    if !archs.is_empty() {
        parts.push(archs.join(" "));
    }
    parts.extend(toolchain.host_compiler());
    let value = json_output::to_value(&PackageView {
        name: &facts.component.name,
        version: &facts.component.version,
        target: facts.target,
        profile: facts.profile,
        toolkit: toolkit.map(|toolkit| VersionView::new(&toolkit.value, toolkit.source)),
        cudnn: toolchain.library_version().map(|version| VersionView::new(&version, cudnn_header)),
        archs,
        host_compiler: toolchain.host_compiler(),
        policy: judged.policy.path.as_ref().map(|path| path.display().to_string()),
        toolchain: ToolchainView::new(toolchain),
        crates: crates_report::views(&judged.uses),
        crates_not_judged: unchecked,
        not_judged: crates_report::not_judged(&judged.uses),
    });
    let mut line = format!("{} for {}, {}: ", facts.component, facts.target, facts.profile);
    line.push_str(&if parts.is_empty() { "no CUDA toolkit".to_owned() } else { parts.join(", ") });
    (line, value)
}
