//! The release gate of `verify`: what files must contain, and the newest driver and cuDNN that they may require.

mod driver_floor;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::artifact::file_name;
use crate::binary::examined::{self, NotExamined};
use crate::binary::file::BinaryKind;
use crate::binary::kernels::{Coverage, KernelImage, Kernels, Role};
use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::arch::{Suffix, Target};
use cudaguard::internal::coverage::compatibility::Compatibility;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{self, Code, Effect, Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::glob;
use cudaguard::internal::manifest::Requirement;
use cudaguard::internal::policy::{ReleaseRequirements, parse_archs, parse_driver_floor};
use cudaguard::internal::sanitize;
use cudaguard::internal::tables;
use cudaguard::internal::version::Version;
use serde::{Serialize, Serializer};

use crate::cli::arguments::GateOptions;
use crate::cli::counts::join_some;
use crate::cli::json_output::texts;
use crate::cli::report::{self, CliError, Level};
use crate::commands::artifact_report::{ArtifactMember, ArtifactReport};
use crate::verdict::Verdict;

use driver_floor::{driver_findings, floor_text};

/// The value of `--policy` that ignores the requirements of the project.
const NO_POLICY: &str = "none";
/// Maximum number of files with a line each; the others are counted.
const LISTED: usize = 24;

/// The requirements, with their sources.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) requirements: ReleaseRequirements,
    /// The file of the project, if it has any.
    source: Option<PathBuf>,
}

/// The answer for one file, package or image.
pub(crate) struct GateReport {
    pub(crate) findings: Vec<Finding>,
    pub(crate) not_examined: Vec<NotExamined>,
    files: Vec<GateFile>,
    /// False if something was not examined that may use CUDA, also if `--except` excludes it.
    knows_all_files: bool,
}

/// The requirements of a release, and the files that were compared with them, as JSON.
#[derive(Serialize)]
pub(crate) struct GateView<'a> {
    source: Option<String>,
    archs: Vec<String>,
    driver_floor: Option<String>,
    cudnn_floor: Option<String>,
    guarded: bool,
    strict: bool,
    files: &'a [GateFile],
}

/// A file of a release that uses CUDA.
#[derive(Serialize)]
#[allow(clippy::struct_excessive_bools)]
struct GateFile {
    name: String,
    /// Each required arch, and how much of the file has it; empty if the file has no kernels.
    #[serde(serialize_with = "presence_by_arch")]
    archs: Vec<(Target, ArchPresence)>,
    guarded: bool,
    /// NVIDIA publishes it; it needs no guard.
    vendor: bool,
    excepted: bool,
    /// False for a static library or an object.
    #[serde(skip)]
    linked: bool,
}

fn presence_by_arch<S: Serializer>(archs: &[(Target, ArchPresence)], json: S) -> Result<S::Ok, S::Error> {
    json.collect_map(archs.iter().map(|(target, presence)| (target.to_string(), presence.name())))
}

/// How much of a file has the code of an arch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ArchPresence {
    All,
    Partial,
    Missing,
    Unknown,
}

impl ArchPresence {
    const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Partial => "partial",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
        }
    }
}

impl Gate {
    /// Combines the options with the requirements of the project. Options win. `None` if there is nothing to check:
    /// without gate options the project counts only if no option describes a machine.
    pub(crate) fn from_options(
        env: &Env,
        options: &GateOptions,
        machine_described: bool,
    ) -> Result<Option<Self>, CliError> {
        let own = options.is_any_set();
        if !own && machine_described {
            return Ok(None);
        }
        let found = match &options.policy {
            Some(path) if path.as_os_str() == NO_POLICY => None,
            Some(path) => {
                let found = ReleaseRequirements::from_file(path)?;
                Some((path.clone(), found.ok_or_else(|| no_requirements(path))?))
            }
            None => ReleaseRequirements::for_project(env.current_dir())?,
        };
        let (source, mut requirements) = match found {
            Some((path, requirements)) => (Some(path), requirements),
            None if own => (None, ReleaseRequirements::default()),
            None => return Ok(None),
        };
        if !options.archs.is_empty() {
            let parsed = parse_archs(&options.archs.join(","))
                .map_err(|error| CliError::operational(format_args!("--archs: {error}")))?;
            if parsed.is_empty() {
                return Err(CliError::operational("--archs: expected architectures such as 80,90,120+ptx"));
            }
            requirements.archs = parsed;
            requirements.archs.sort_unstable();
            requirements.archs.dedup();
        }
        if let Some(text) = &options.driver_floor {
            let expected = "expected a driver branch or release such as 525 or 525.60.13";
            let parsed = parse_driver_floor(text)
                .ok_or_else(|| CliError::operational(format_args!("--driver-floor {text}: {expected}")))?;
            report::note_unknown_branch("--driver-floor", parsed);
            requirements.driver_floor = Some(parsed);
        }
        if let Some(text) = &options.cudnn_floor {
            let parsed = text.parse().map_err(|_| {
                CliError::operational(format_args!("--cudnn-floor {text}: expected a version such as 9.1"))
            })?;
            requirements.cudnn_floor = Some(parsed);
        }
        requirements.guarded |= options.guarded;
        requirements.strict |= options.strict;
        requirements.except.extend(options.except.iter().cloned());
        let gate = Self { requirements, source };
        if !gate.has_requirements() && !machine_described {
            let expected = "expected --archs, --driver-floor, --cudnn-floor, --guarded or a machine";
            return Err(CliError::operational(format_args!("nothing is required of the release: {expected}")));
        }
        Ok(Some(gate))
    }

    /// Returns false if only `strict` is set, which applies to a machine, too.
    pub(crate) fn has_requirements(&self) -> bool {
        let ReleaseRequirements { archs, driver_floor, cudnn_floor, guarded, .. } = &self.requirements;
        !archs.is_empty() || driver_floor.is_some() || cudnn_floor.is_some() || *guarded
    }

    /// Returns true if an exception excludes a file of the artifact.
    pub(crate) fn excludes(&self, artifact: &Path, name: &str) -> bool {
        is_excepted(&self.requirements, artifact, name)
    }

    /// Reports exceptions that matched none of these files.
    pub(crate) fn stale_exceptions(&self, reports: &[(&Path, &GateReport)]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for glob in &self.requirements.except {
            let is_used = reports.iter().any(|(path, report)| {
                let names = report.files.iter().map(|file| &file.name);
                let mut names = names.chain(report.not_examined.iter().map(|part| &part.name));
                matches_glob(glob, path, "") || names.any(|name| matches_glob(glob, path, name))
            });
            if !is_used {
                let values = Values::default().with("value", glob);
                findings.push(MessageTemplate::ReleaseStaleException.to_finding(&values));
            }
        }
        findings
    }

    /// Checks one file, package, directory or image, or these packages of it.
    pub(crate) fn check_artifact(
        &self,
        artifact: &mut ArtifactReport,
        packages: &[String],
    ) -> Result<GateReport, CliError> {
        let wanted = &self.requirements;
        let components = artifact.components_with_packages(packages)?;
        artifact.limit_to(packages)?;
        let artifact = &*artifact;
        let mut findings = Vec::new();
        let mut files = Vec::new();
        // A static library or an object has no guard: the program that links it has. It needs one only if it is the release.
        let has_linked = artifact.released_parts().any(is_linked);
        let unlinked_need_guard = artifact.archive.is_file() && !has_linked;
        let groups = artifact.variant_groups();
        let of_developers = artifact.files_of_developers();
        for part in artifact.released_parts() {
            if !uses_cuda(part) || of_developers.contains(part.name.as_str()) {
                continue;
            }
            let excepted = is_excepted(wanted, &artifact.archive, &part.name);
            let guarded = part.is_guarded();
            let archs: Vec<(Target, ArchPresence)> = if part.kernels.has_kernels() {
                wanted.archs.iter().map(|target| (*target, presence_of(&part.kernels, *target))).collect()
            } else {
                Vec::new()
            };
            if excepted {
                report::log(Level::Info, || format!("{} is excluded from archs and guard by --except", part.name));
            } else {
                findings.extend(arch_findings(part, &archs_without_variants(part, &archs, &groups), wanted.strict));
                let needs_guard = wanted.guarded && (is_linked(part) || unlinked_need_guard);
                if needs_guard && !guarded && !part.is_of_vendor() {
                    findings.push(MessageTemplate::ReleaseUnguarded.to_finding(&file_values(&part.name)));
                }
            }
            let vendor = part.is_of_vendor();
            let linked = is_linked(part);
            files.push(GateFile { name: part.name.clone(), archs, guarded, vendor, excepted, linked });
        }
        // A file that opens CUDA when it runs needs a guard and a driver, too.
        if wanted.guarded || wanted.driver_floor.is_some() {
            let openers =
                artifact.unexamined_openers().filter(|opener| !is_excepted(wanted, &artifact.archive, &opener.name));
            for opener in openers.filter(|opener| files.iter().all(|file| file.name != opener.name)) {
                let values = file_values(&opener.name).with("why", &opener.reason);
                findings.push(MessageTemplate::ReleaseCannotTell.to_finding(&values));
            }
        }
        if !wanted.archs.is_empty() && !is_excepted(wanted, &artifact.archive, "") {
            findings.extend(findings_without_kernels(artifact, &wanted.archs));
        }
        if let Some(floor) = wanted.driver_floor {
            for unit in components.units() {
                findings.extend(driver_findings(artifact, unit, &groups, floor));
            }
        }
        if let Some(floor) = wanted.cudnn_floor {
            findings.extend(cudnn_findings(artifact, floor));
        }
        let asks_kernels = !wanted.archs.is_empty() || wanted.driver_floor.is_some();
        let relevant = components.findings.iter().filter(|finding| match finding.code {
            Code::CudartInsideUnknown => wanted.driver_floor.is_some(),
            Code::KernelsCannotTell => asks_kernels,
            code => code.effect() == Effect::Open,
        });
        findings.extend(relevant.cloned());
        finding::sort_findings(&mut findings);
        findings.dedup();
        let mut not_examined = artifact.judged_not_examined();
        let knows_all_files = examined::is_complete(&not_examined) && artifact.unexamined_openers().next().is_none();
        for part in &mut not_examined {
            part.may_contradict =
                (wanted.strict || part.may_contradict) && !is_excepted(wanted, &artifact.archive, &part.name);
        }
        Ok(GateReport { findings, not_examined, files, knows_all_files })
    }
}

fn no_requirements(path: &Path) -> CliError {
    CliError::operational(format_args!("{}: has no requirements of a release: expected [release]", path.display()))
}

fn file_values(name: &str) -> Values {
    Values::default().with("file", name)
}

/// Returns true for a program or shared library.
fn is_linked(part: &ArtifactMember) -> bool {
    !matches!(part.binary.kind, BinaryKind::Object | BinaryKind::Archive)
}

/// Returns true for what a release is checked for: kernels, a guard, or anything that requires a driver or a library.
fn uses_cuda(part: &ArtifactMember) -> bool {
    part.kernels.has_kernels() || !part.components.manifests.is_empty() || !part.binary.notes.is_empty()
}

/// Matches a glob: `*` and `?` match any characters, also `/`. A glob without `/` is compared with file names.
fn matches_glob(pattern: &str, artifact: &Path, member: &str) -> bool {
    let own = file_name(member);
    let artifact_name = artifact.file_name().unwrap_or(artifact.as_os_str()).to_string_lossy();
    let names = [member, own, &artifact_name, &artifact.to_string_lossy()];
    names.iter().filter(|name| !name.is_empty()).any(|name| glob::matches(pattern, name))
}

/// Code of the same number that runs on every known GPU that the required code runs on.
fn fulfils(found: Target, required: Target) -> bool {
    let same_kind = matches!(found, Target::Cubin(_)) == matches!(required, Target::Cubin(_));
    let number = required.base_arch().number;
    if !same_kind || found.base_arch().number != number {
        return false;
    }
    let (Target::Cubin(arch) | Target::Ptx(arch)) = required;
    if arch.suffix != Suffix::None {
        // A suffix allows instructions that other code of the same number does not use.
        return found == required;
    }
    let ccs = tables::arch_rows().iter().map(|row| row.cc).chain([required.base_arch().cc()]);
    let mut running = ccs.filter(|cc| required.compatibility_with(*cc) == Compatibility::Yes);
    found == required || running.all(|cc| found.compatibility_with(cc) == Compatibility::Yes)
}

/// Returns the targets in a file: the code that counts, and relocatable code that no device linker has linked yet.
fn targets_of(kernels: &Kernels) -> Vec<Target> {
    let mut targets = kernels.built_targets();
    if !kernels.containers().iter().any(|container| container.role == Role::Linked) {
        let inputs = kernels.containers().iter().filter(|container| container.role == Role::Input);
        targets.extend(inputs.flat_map(|input| kernels.entries_of(input)).filter_map(KernelImage::runnable_target));
    }
    targets.sort_unstable();
    targets.dedup();
    targets
}

fn presence_of(kernels: &Kernels, required: Target) -> ArchPresence {
    let coverage = kernels.gpu_support(required.base_arch().cc()).by;
    let carried = if kernels.is_published() {
        coverage != Coverage::Nothing
    } else {
        targets_of(kernels).into_iter().any(|found| fulfils(found, required))
    };
    match coverage {
        Coverage::Unknown => ArchPresence::Unknown,
        _ if !carried => ArchPresence::Missing,
        Coverage::Partial if !kernels.is_published() => ArchPresence::Partial,
        _ => ArchPresence::All,
    }
}

fn join_targets(targets: impl IntoIterator<Item = Target>) -> String {
    targets.into_iter().map(|target| target.to_string()).collect::<Vec<_>>().join(", ")
}

fn arch_findings(part: &ArtifactMember, archs: &[(Target, ArchPresence)], strict: bool) -> Vec<Finding> {
    let [missing, partial, unknown] =
        [ArchPresence::Missing, ArchPresence::Partial, ArchPresence::Unknown].map(|wanted| {
            let with = archs.iter().filter(|(_, presence)| *presence == wanted);
            with.map(|(target, _)| *target).collect::<Vec<_>>()
        });
    let mut findings = Vec::new();
    if !missing.is_empty() {
        let built = join_targets(targets_of(&part.kernels));
        let built = if built.is_empty() { "nothing that a GPU runs without a further link".to_owned() } else { built };
        let values = file_values(&part.name).with("targets", join_targets(missing)).with("built_for", built);
        findings.push(MessageTemplate::ReleaseArchMissing.to_finding(&values));
    }
    // Machine code and PTX of the same number share a finding.
    let mut partial_by_cc: BTreeMap<(u8, u8), Vec<Target>> = BTreeMap::new();
    for target in partial {
        partial_by_cc.entry(target.base_arch().cc()).or_default().push(target);
    }
    for ((major, minor), targets) in partial_by_cc {
        let without: Vec<_> = part.kernels.containers_without((major, minor)).collect();
        let origins: BTreeSet<&str> = without.iter().filter_map(|container| container.origin.as_deref()).collect();
        let count = format!("{} of {} containers", without.len(), part.kernels.container_count());
        let named = join_some(&origins.into_iter().collect::<Vec<_>>());
        let text = if named.is_empty() { count } else { format!("{count}: {named}") };
        let values = file_values(&part.name).with("gpus", format!("{major}.{minor}")).with("without", text);
        let finding = MessageTemplate::ReleaseArchPartial.to_finding(&values.with("targets", join_targets(targets)));
        findings.push(if strict { finding } else { finding.with_severity(Severity::Warning) });
    }
    if !unknown.is_empty() {
        let why = format!("it is unknown whether a part of its GPU code runs on {}", join_targets(unknown));
        findings.push(MessageTemplate::ReleaseCannotTell.to_finding(&file_values(&part.name).with("why", why)));
    }
    findings
}

/// Returns the archs without those that the file lacks and another variant of it has.
fn archs_without_variants(
    part: &ArtifactMember,
    archs: &[(Target, ArchPresence)],
    groups: &[Vec<&ArtifactMember>],
) -> Vec<(Target, ArchPresence)> {
    let group = groups.iter().find(|group| group.iter().any(|other| other.name == part.name));
    let mut required = archs.to_vec();
    required.retain(|(target, presence)| {
        let mut variants = group.into_iter().flatten();
        *presence != ArchPresence::Missing
            || !variants.any(|other| presence_of(&other.kernels, *target) != ArchPresence::Missing)
    });
    required
}

/// Returns true if `--except` or the policy excludes a file of the artifact.
fn is_excepted(wanted: &ReleaseRequirements, archive: &Path, name: &str) -> bool {
    wanted.except.iter().any(|glob| matches_glob(glob, archive, name))
}

/// Returns the components of these that are variants of one that is not among them.
fn components_with_variant(refused: &BTreeSet<String>, groups: &[Vec<&ArtifactMember>]) -> BTreeSet<String> {
    let mut replaced = BTreeSet::new();
    for group in groups {
        let mut is_sufficient = false;
        let mut names = Vec::new();
        for part in group {
            let own = names.len();
            names.extend(part.components.manifests.iter().map(|one| one.component.to_string()));
            is_sufficient |= !names[own..].iter().any(|name| refused.contains(name));
        }
        if is_sufficient {
            replaced.extend(names);
        }
    }
    replaced
}

/// Archs are required, and no file has kernels.
fn findings_without_kernels(artifact: &ArtifactReport, archs: &[Target]) -> Option<Finding> {
    if artifact.released_parts().any(|part| part.kernels.has_kernels()) {
        return None;
    }
    let name = artifact.archive.to_string_lossy();
    let at_link_time =
        |part: &&ArtifactMember| part.kernels.containers().iter().any(|container| container.role == Role::LinkTime);
    if let Some(part) = artifact.released_parts().find(at_link_time) {
        let why = "its GPU code is LTO-IR, which the program compiles when it runs";
        return Some(MessageTemplate::ReleaseCannotTell.to_finding(&file_values(&part.name).with("why", why)));
    }
    // The rest may be what was not examined.
    let values = file_values(&name).with("targets", join_targets(archs.iter().copied()));
    let is_examined = examined::is_complete(&artifact.judged_not_examined());
    is_examined.then(|| MessageTemplate::ReleaseArchMissingEverywhere.to_finding(&values))
}

/// Reports members that need another cuDNN than the floor, because of their code or of the requirements of their package.
fn cudnn_findings(artifact: &ArtifactReport, floor: Version) -> Vec<Finding> {
    let mut findings = Vec::new();
    for part in artifact.released_parts() {
        let values = file_values(&part.name).with("floor", floor);
        for manifest in &part.components.manifests {
            for row in &manifest.requires {
                let Requirement::Library { min, below, soname, .. } = row else { continue };
                if artifact.is_bundled(part, soname) {
                    continue;
                }
                if *below <= floor {
                    let values = values.clone().with("built", below);
                    findings.push(MessageTemplate::ReleaseCudnnFloorMajor.to_finding(&values));
                } else if *min > floor {
                    let bound = part.binary.bound.iter().find(|bound| bound.soname == *soname && bound.first == *min);
                    let why = match bound {
                        Some(bound) => format!("it calls {}", bound.name),
                        None => format!("it was built with {} {min}", CUDNN.name),
                    };
                    let values = values.clone().with("min", min).with("why", why);
                    findings.push(MessageTemplate::ReleaseCudnnFloor.to_finding(&values));
                }
            }
        }
    }
    for (name, text, least) in artifact.cudnn_promises().filter(|(.., least)| *least > floor) {
        let values = file_values(&name).with("floor", floor).with("min", least);
        let values = values.with("why", format!("the package requires {text}"));
        findings.push(MessageTemplate::ReleaseCudnnFloor.to_finding(&values));
    }
    findings
}

impl GateReport {
    pub(crate) fn view<'a>(&'a self, gate: &Gate) -> GateView<'a> {
        let wanted = &gate.requirements;
        GateView {
            source: gate.source.as_ref().map(|path| path.to_string_lossy().into_owned()),
            archs: texts(&wanted.archs),
            driver_floor: wanted.driver_floor.map(floor_text),
            cudnn_floor: wanted.cudnn_floor.map(|version| version.to_string()),
            guarded: wanted.guarded,
            strict: wanted.strict,
            files: &self.files,
        }
    }

    pub(crate) fn to_text(&self, file: &Path, gate: &Gate) -> String {
        let answer = match self.verdict() {
            Verdict::Runs => "meets the requirements of the release",
            Verdict::Unknown => "it is unknown whether it meets the requirements of the release",
            Verdict::Refused => "does not meet the requirements of the release",
        };
        let source = gate.source.as_ref().map(|path| format!(" ({})", path.display())).unwrap_or_default();
        let mut text = sanitize::sanitize_line(&format!("{}: {answer}{source}", file.display())).into_owned() + "\n";
        for file in self.files.iter().take(LISTED) {
            let mut facts: Vec<String> = Vec::new();
            for (presence, label) in [
                (ArchPresence::All, "has"),
                (ArchPresence::Partial, "in part"),
                (ArchPresence::Missing, "lacks"),
                (ArchPresence::Unknown, "unknown"),
            ] {
                let targets = file.archs.iter().filter(|(_, own)| *own == presence).map(|(target, _)| *target);
                let targets = join_targets(targets);
                if !targets.is_empty() {
                    facts.push(format!("{label} {targets}"));
                }
            }
            let guard = match (file.guarded, file.vendor, file.linked) {
                (true, ..) => "guarded",
                (false, true, _) => "a library of NVIDIA",
                (false, false, true) => "not guarded",
                (false, false, false) => "not linked, so it has no guard",
            };
            facts.push(guard.to_owned());
            if file.excepted {
                facts.push("excluded from archs and guard".to_owned());
            }
            text += &sanitize::sanitize_line(&format!("  {}: {}", file.name, facts.join("; ")));
            text += "\n";
        }
        if self.files.len() > LISTED {
            let _ = writeln!(text, "  and {} more (--json has all)", self.files.len() - LISTED);
        }
        if self.files.is_empty() {
            let none = if self.knows_all_files {
                "no program or library uses CUDA"
            } else {
                "it is unknown whether a program or library uses CUDA"
            };
            let _ = writeln!(text, "  {none}");
        }
        text
    }

    fn verdict(&self) -> Verdict {
        examined::verdict(&self.findings, &self.not_examined)
    }
}

#[cfg(test)]
mod tests;
