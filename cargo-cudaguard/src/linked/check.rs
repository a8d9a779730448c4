//! Pure: (policy, manifest, linked file) → findings: whether the linked file matches the declarations.
//!
//! `[gpu] archs` does not concern kernels of other packages and of NVIDIA's static libraries, so only containers that
//! are known to come from the package are checked against it. All containers of the file are checked against
//! `[gpu] fleet`.

use std::path::{Component, Path, PathBuf};

use crate::binary::kernels::{Container, Cover, Coverage, GpuSupport, Group, Kernels};
use crate::knowledge::vendor::{CUDNN, cudart_named};
use crate::linked::evidence::LinkEvidence;
use crate::linked::seal::cudart_speaks_for;
use cudaguard::internal::arch::{Suffix, Target};
use cudaguard::internal::coverage::compatibility::Compatibility;
use cudaguard::internal::finding::{Code, Finding, MessageFragment, MessageTemplate, Severity, Values};
use cudaguard::internal::manifest::{Linkage, Manifest};
use cudaguard::internal::policy::Policy;
use cudaguard::internal::tables::{self, Cc};
use cudaguard::internal::toolchain::{BuildSystem, LibraryFile, Sourced};
use cudaguard::internal::version::{CudaVersion, Version};

use cudaguard::internal::checks::fleet::{self, FleetDriver, Named, fix_for_gpus, join_archs, join_gpus, join_unique};
use cudaguard::internal::checks::wording::{join_targets, policy_args};

mod releases;

pub use releases::still_holds;

/// Facts about a linked file.
#[derive(Clone, Copy, Debug)]
pub struct Linked<'a> {
    /// Name of the program or library, for messages.
    pub name: &'a str,
    /// True for a build that is distributed. In a dev build, paths of the building machine are intended.
    pub release: bool,
    /// GPU code of the file.
    pub kernels: &'a Kernels,
    /// Source of the archs that the manifest declares, if it concerns this package.
    pub declared_by: Option<&'a str>,
    /// For each container, true if it is known to come from the package's own sources. Empty if this was not
    /// determined.
    pub own: &'a [bool],
    /// Evidence in the file about the toolkit.
    pub seen: &'a LinkEvidence,
    /// Releases and sources of the detected toolkits: first the one in use, then others that variables name.
    pub in_use: &'a [Sourced<Version>],
    /// The build system, which selects the wording of hints.
    pub by: BuildSystem,
    /// `DT_NEEDED`.
    pub needed: &'a [String],
    /// How the file reaches cudart.
    pub cudart: Linkage,
    /// How the file reaches cuDNN.
    pub library: Linkage,
    /// Returns `DT_RPATH`, as written.
    pub rpath: Option<&'a str>,
    /// Returns `DT_RUNPATH`, as written.
    pub runpath: Option<&'a str>,
    /// Directories that exist on the building machine only, each with a description: `cargo's target directory`.
    pub dirs: &'a [(PathBuf, &'a str)],
}

/// Returns the problems of the file under this policy. `manifest` is the record from before linking. Severities are
/// those of the codes, or as documented for the code; the policy's `[build]` and `[allow]` are applied later.
pub fn check_linked(policy: &Policy, manifest: &Manifest, linked: &Linked<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut shown = manifest.clone();
    crate::linked::seal::set_toolkit(&mut shown, linked.seen);
    releases::check_toolkit_evidence(policy, manifest.toolkit, linked, &mut findings);
    let manifest = &shown;
    runtime_paths(linked, &mut findings);
    if linked.kernels.has_kernels() {
        let groups = linked.kernels.container_groups();
        check_archs(policy, manifest, linked, &groups, &mut findings);
        gpu_fleet(policy, manifest, linked, &mut findings);
        check_ptx(policy, manifest, linked, &groups, &mut findings);
    }
    driver_fleet(policy, manifest, linked, &mut findings);
    check_cudart(manifest, linked, &mut findings);
    check_library(policy, manifest, linked, &mut findings);
    check_torch(linked, &mut findings);
    findings.sort_by_key(|finding| finding.code);
    findings
}

/// Returns the name of a container: its source or object, otherwise its position.
fn container_label(kernels: &Kernels, container: &Container) -> String {
    match &container.origin {
        Some(origin) => origin.clone(),
        None => match kernels.section_name(container) {
            "" => format!("the one at {:#x}", container.offset),
            section => format!("one at {:#x} in {section}", container.offset),
        },
    }
}

/// Returns the containers of a group that come from the package.
fn own_containers<'a>(linked: &'a Linked<'_>, group: &'a Group) -> impl Iterator<Item = &'a Container> {
    let own = group.containers.iter().filter(|at| linked.own.get(**at).copied().unwrap_or(false));
    own.filter_map(|at| linked.kernels.containers().get(*at))
}

/// Returns the names of the containers of a group that come from the package.
fn own_labels(linked: &Linked<'_>, group: &Group) -> Vec<String> {
    own_containers(linked, group).map(|container| container_label(linked.kernels, container)).collect()
}

/// Returns the archs that the package's own kernels must have. Empty if the policy names none, or uses names that need
/// a toolkit and its release is unknown.
fn demanded_targets(policy: &Policy, manifest: &Manifest) -> Vec<Target> {
    let mut demanded = match manifest.toolkit {
        Some(toolkit) => policy.archs_by(toolkit),
        None if policy.arch_words.is_empty() => policy.archs.clone(),
        None => Vec::new(),
    };
    demanded.sort_unstable();
    demanded.dedup();
    demanded
}

/// Returns the required targets that the containers of this group lack. Empty if the group could not be read
/// completely.
fn missing_targets<'a>(group: &Group, demanded: &'a [Target]) -> Vec<&'a Target> {
    demanded.iter().filter(|target| group.whole && !group.targets.contains(target)).collect()
}

/// Returns the targets that are not required. PTX of a required arch does not count, because the usual `-arch=sm_80`
/// adds it.
fn surplus_targets<'a>(group: &'a Group, demanded: &[Target]) -> Vec<&'a Target> {
    let surplus = group.targets.iter().filter(|target| match target {
        Target::Ptx(arch) => !demanded.iter().any(|other| other.base_arch() == *arch),
        Target::Cubin(_) => !demanded.contains(target),
    });
    surplus.collect()
}

fn check_archs(
    policy: &Policy,
    manifest: &Manifest,
    linked: &Linked<'_>,
    groups: &[Group],
    findings: &mut Vec<Finding>,
) {
    let demanded = demanded_targets(policy, manifest);
    if demanded.is_empty() {
        not_as_declared(manifest, linked, groups, findings);
        return;
    }
    check_foreign_archs(policy, &demanded, linked, groups, findings);
    let values = policy_args(policy).with("file", linked.name).with("declared", join_targets(&demanded));
    let values = values.built_by(linked.by);
    for group in groups {
        let mine = own_labels(linked, group);
        if mine.is_empty() {
            continue;
        }
        let found = if group.targets.is_empty() { "nothing".to_owned() } else { join_targets(&group.targets) };
        let values = values.clone().with("kernels", join_unique(mine)).with("built_for", found);
        let values = values.with("variable", cmake_archs(linked));
        let missing = missing_targets(group, &demanded);
        if !missing.is_empty() {
            let values = values.clone().with("targets", join_targets(missing));
            findings.push(MessageTemplate::ArchMissing.to_finding(&values));
        }
        let surplus = surplus_targets(group, &demanded);
        if !surplus.is_empty() {
            let values = values.with("targets", join_targets(surplus));
            findings.push(MessageTemplate::ArchSurplus.to_finding(&values));
        }
    }
}

/// Returns the name of CMake's list of architectures: `CUDA_ARCHITECTURES of my-model`.
fn cmake_archs<'a>(linked: &Linked<'a>) -> &'a str {
    linked.declared_by.unwrap_or("CUDA_ARCHITECTURES of the target")
}

/// Reports own kernels without code for an arch that a variable, a build script or a target's property declares.
fn not_as_declared(manifest: &Manifest, linked: &Linked<'_>, groups: &[Group], findings: &mut Vec<Finding>) {
    let Some(source) = linked.declared_by else { return };
    for group in groups.iter().filter(|group| group.whole) {
        let mine = own_labels(linked, group);
        // Machine code and PTX of an arch both run on its GPUs, and names often do not show which of them was intended.
        // A builder may compile arch-specific code (sm_90a) for a plain number.
        let mut missing: Vec<&Target> = manifest.declared.iter().collect();
        missing.retain(|target| {
            let wanted = target.base_arch();
            !group.targets.iter().any(|made| match wanted.suffix {
                Suffix::None => made.base_arch().number == wanted.number,
                _ => made.base_arch() == wanted,
            })
        });
        if mine.is_empty() || missing.is_empty() {
            continue;
        }
        let found = if group.targets.is_empty() { "nothing".to_owned() } else { join_targets(&group.targets) };
        let values = Values::default().with("file", linked.name).with("source", source);
        let values = values.with("targets", join_targets(missing)).with("declared", join_targets(&manifest.declared));
        let values = values.with("kernels", join_unique(mine)).with("built_for", found);
        let finding = MessageTemplate::ArchMissingDeclared.to_finding(&values.built_by(linked.by));
        findings.push(finding.with_severity(Severity::Warning));
    }
}

/// Reports kernels with other archs than the policy requires, in a file in which no kernel is known to come from the
/// package.
fn check_foreign_archs(
    policy: &Policy,
    demanded: &[Target],
    linked: &Linked<'_>,
    groups: &[Group],
    findings: &mut Vec<Finding>,
) {
    let right =
        |group: &Group| missing_targets(group, demanded).is_empty() && surplus_targets(group, demanded).is_empty();
    if linked.own.is_empty() || linked.own.contains(&true) || groups.iter().all(right) {
        return;
    }
    let all = groups.iter().flat_map(|group| &group.containers).filter_map(|at| linked.kernels.containers().get(*at));
    let kernels = join_unique(all.map(|container| container_label(linked.kernels, container)).collect());
    let values = policy_args(policy).with("file", linked.name).with("kernels", kernels);
    let values = values
        .with("built_for", join_targets(&linked.kernels.built_targets()))
        .with("declared", join_targets(demanded));
    findings.push(MessageTemplate::OwnKernelsUnknown.to_finding(&values));
}

fn gpu_fleet(policy: &Policy, manifest: &Manifest, linked: &Linked<'_>, findings: &mut Vec<Finding>) {
    let kernels = linked.kernels;
    let named = policy.fleet_ccs();
    let values = fleet::fleet_args(policy, &named)
        .with("file", linked.name)
        .with("built_for", join_targets(&kernels.built_targets()));
    let support = named.iter().map(|(name, cc)| (*name, *cc, kernels.gpu_support(*cc).by));
    let support: Vec<(&str, Cc, Coverage)> = support.collect();
    let unserved = support.iter().filter(|(.., by)| *by == Coverage::Nothing);
    let unserved: Named<'_> = unserved.map(|(name, cc, _)| (*name, *cc)).collect();
    if !unserved.is_empty() {
        let values = values.clone().with("gpus", join_gpus(&unserved));
        findings.push(
            MessageTemplate::FleetUnserved
                .to_finding(&values.with("cure", fix_for_gpus(&unserved, manifest.toolkit, None))),
        );
    }
    if named.is_empty() {
        // If own kernels have wrong archs, this is only a consequence.
        if findings.iter().any(|finding| matches!(finding.code, Code::ArchMissing | Code::ArchSurplus)) {
            return;
        }
        partial_without_fleet(policy, manifest, linked, findings);
        return;
    }
    // GPUs that lack the same containers are reported together.
    let mut reported: Vec<(Vec<u64>, Named<'_>)> = Vec::new();
    for (name, cc, _) in support.into_iter().filter(|(.., by)| *by == Coverage::Partial) {
        let lacking: Vec<u64> = kernels.containers_without(cc).map(|container| container.offset).collect();
        add_gpu(&mut reported, lacking, (name, cc));
    }
    for (lacking, partial) in reported {
        let Some((_, cc)) = partial.first() else { continue };
        let values = values.clone().with("gpus", join_gpus(&partial)).with("left_out", lacking.len());
        let values = values.with("without", containers_without(kernels, *cc)).with("archs", join_archs(&partial));
        let mut finding = MessageTemplate::FleetPartial.to_finding(&values.built_by(linked.by));
        if policy.partial_refuse {
            // The program would refuse to start on these GPUs.
            finding.severity = Severity::Error;
        }
        findings.push(finding);
    }
}

/// Adds a GPU to those that have the same reason.
fn add_gpu<'a, T: PartialEq>(reported: &mut Vec<(T, Named<'a>)>, reason: T, gpu: (&'a str, (u8, u8))) {
    match reported.iter_mut().find(|(other, _)| *other == reason) {
        Some((_, gpus)) => gpus.push(gpu),
        None => reported.push((reason, vec![gpu])),
    }
}

/// Compares the driver requirement of the file with the oldest driver of the fleet.
fn driver_fleet(policy: &Policy, manifest: &Manifest, linked: &Linked<'_>, findings: &mut Vec<Finding>) {
    let Some(oldest) = FleetDriver::from_policy(policy) else { return };
    let named = linked.needed.iter().find_map(|name| cudart_named(name));
    if let Some(cudart) = cudart_speaks_for(manifest, linked.cudart, named, linked.seen.newest_cudart()) {
        let inside = linked.cudart == Linkage::Static;
        let words = if inside { MessageTemplate::DriverFleetOlderInside } else { MessageTemplate::DriverFleetOlder };
        findings.extend(fleet::check_cudart(policy, oldest, cudart, words, ("file", linked.name)));
    }
    // The cudart inside cuDNN has the same driver requirement, whatever the program contains.
    let reported = findings.iter().any(|finding| finding.code == Code::DriverFleetOlder);
    if let Some(library) = linked.seen.library_taken.as_ref().filter(|_| !reported && linked.library == Linkage::Linked)
    {
        findings.extend(check_library_driver(policy, oldest, library, linked.name));
    }
    // GPUs that the same code excludes are reported together.
    let mut reported: Vec<(GpuSupport, Named<'_>)> = Vec::new();
    for (name, cc) in policy.fleet_ccs() {
        let service = linked.kernels.gpu_support(cc);
        if service.floor.and_then(|floor| oldest.serves_on(floor, cc)) != Some(false) {
            continue;
        }
        add_gpu(&mut reported, service, (name, cc));
    }
    let is_older = findings.iter().any(|finding| finding.code == Code::DriverFleetOlder);
    if policy.fleet.is_empty() && !is_older {
        reported.extend(unloadable_on_all(linked, oldest).map(|service| (service, Vec::new())));
    }
    for (service, of) in reported {
        let Some((floor, code)) = service.floor.zip(service.code) else { continue };
        let values = fleet::check_code(policy, oldest, floor, &of, manifest.toolkit).with("file", linked.name);
        let values =
            values.with("code", code).with_known("isa", service.isa.map(|(major, minor)| format!("{major}.{minor}")));
        let words = if service.isa.is_some() {
            MessageTemplate::DriverFleetCode
        } else {
            MessageTemplate::DriverFleetCodePacked
        };
        findings.push(words.to_finding(&values));
    }
}

/// Returns the service of a GPU if the driver cannot load the code for any GPU that both it and the file support.
fn unloadable_on_all(linked: &Linked<'_>, oldest: FleetDriver<'_>) -> Option<GpuSupport> {
    let mut found = None;
    for Cover { cc, service } in linked.kernels.coverage_by_cc() {
        let is_newer = tables::first_of_generation(cc).is_some_and(|first| oldest.meets_floor(first) == Some(false));
        if is_newer || service.by == Coverage::Nothing {
            continue;
        }
        if service.floor.and_then(|floor| oldest.serves_on(floor, cc)) != Some(false) {
            return None;
        }
        found.get_or_insert(service);
    }
    found
}

fn containers_without(kernels: &Kernels, cc: Cc) -> String {
    join_unique(kernels.containers_without(cc).map(|container| container_label(kernels, container)).collect())
}

/// Reports containers that serve only some GPUs if the policy names no fleet. The GPUs are those of the required archs,
/// or else those of all archs in the file. The severity is low, because libraries do this on purpose.
fn partial_without_fleet(policy: &Policy, manifest: &Manifest, linked: &Linked<'_>, findings: &mut Vec<Finding>) {
    let kernels = linked.kernels;
    let mut asked = demanded_targets(policy, manifest);
    if asked.is_empty() {
        asked = kernels.built_targets();
    }
    let mut ccs: Vec<Cc> = asked.iter().map(|target| target.base_arch().cc()).collect();
    ccs.sort_unstable();
    ccs.dedup();
    ccs.retain(|cc| kernels.gpu_support(*cc).by == Coverage::Partial);
    let Some(first) = ccs.first() else { return };
    let list = join_unique(ccs.iter().copied().map(tables::dotted_cc).collect());
    let values = Values::default().with("file", linked.name).with("gpus", list);
    let values =
        values.with("without", containers_without(kernels, *first)).with("gpu", format!("{}.{}", first.0, first.1));
    let finding = MessageTemplate::FleetPartialNoFleet
        .to_finding(&values.with("built_for", join_targets(&kernels.built_targets())));
    findings.push(if policy.partial_refuse {
        finding.with_severity(Severity::Warning)
    } else {
        finding.with_severity(Severity::Info)
    });
}

/// A compute capability that is newer than every possible arch.
const LATER: Cc = (99, 0);

fn check_ptx(policy: &Policy, manifest: &Manifest, linked: &Linked<'_>, groups: &[Group], findings: &mut Vec<Finding>) {
    let mut declared = demanded_targets(policy, manifest);
    if declared.is_empty() {
        declared.clone_from(&manifest.declared);
    }
    let Some(newest) = declared.iter().map(|target| target.base_arch()).max() else { return };
    let known = groups.iter().any(|group| own_containers(linked, group).next().is_some());
    let mut judged = groups.iter().filter(|group| !known || own_containers(linked, group).next().is_some());
    if judged.any(|group| {
        !group.whole || group.targets.iter().any(|target| target.compatibility_with(LATER) == Compatibility::Yes)
    }) {
        return;
    }
    let values =
        Values::default().with("file", linked.name).with("built_for", join_targets(&linked.kernels.built_targets()));
    let values = values.with("declared", join_targets(&declared)).with("ptx", newest.number);
    let ptx = declared.iter().find(|target| **target == Target::Ptx(newest));
    let words = if ptx.is_some() { MessageTemplate::NoPtxDeclared } else { MessageTemplate::NoPtx };
    let values = values.with("variable", cmake_archs(linked)).built_by(linked.by);
    findings.push(words.to_finding(&values.with_known("targets", ptx)));
}

/// Returns the directories in the runtime paths. An empty entry means the directory in which the program is started.
fn runtime_path_entries<'a>(linked: &Linked<'a>) -> impl Iterator<Item = (&'static str, &'a str)> {
    let lists = [("RPATH", linked.rpath), ("RUNPATH", linked.runpath)];
    lists.into_iter().flat_map(|(name, list)| {
        let entries = list.filter(|list| !list.is_empty()).into_iter().flat_map(|list| list.split(':'));
        entries.map(move |entry| (name, entry))
    })
}

fn runtime_paths(linked: &Linked<'_>, findings: &mut Vec<Finding>) {
    for (kind, entry) in runtime_path_entries(linked) {
        let path = Path::new(entry);
        let values = Values::default().with("variable", kind).with("file", linked.name).with("folder", entry);
        if path.is_absolute() && path.components().any(|part| part == Component::Normal("stubs".as_ref())) {
            findings.push(MessageTemplate::StubInRuntimePathInFile.to_finding(&values));
        } else if let Some(what) = build_machine_dir(linked, path).filter(|_| linked.release) {
            findings.push(MessageTemplate::BuildMachinePath.to_finding(&values.with("what", what)));
        }
    }
}

/// Returns a description of a directory of the building machine. `None` if any machine may have it.
fn build_machine_dir<'a>(linked: &Linked<'a>, path: &Path) -> Option<&'a str> {
    if !path.is_absolute() {
        return None;
    }
    let known = linked.dirs.iter().find(|(dir, _)| dir.parent().is_some() && path.starts_with(dir));
    let scratch = ["/tmp", "/var/tmp", "/dev/shm"].iter().any(|dir| path.starts_with(dir));
    known
        .map(|(_, what)| *what)
        .or_else(|| scratch.then_some("a temporary directory"))
        .or_else(|| (path.starts_with("/home") || path.starts_with("/root")).then_some("a home directory"))
}

fn check_cudart(manifest: &Manifest, linked: &Linked<'_>, findings: &mut Vec<Finding>) {
    // If the library itself was examined, its release was already compared with the kernels.
    let reported = findings.iter().any(|finding| finding.code == Code::CudartOfOtherToolkit);
    if linked.cudart != Linkage::Linked || reported {
        return;
    }
    let Some(toolkit) = manifest.toolkit.map(CudaVersion::from) else { return };
    let Some((soname, needs)) = linked.needed.iter().find_map(|name| Some((name, cudart_named(name)?))) else { return };
    if needs.major == toolkit.major {
        return;
    }
    let values = Values::default().with("file", linked.name).with("library", soname).with("built_cuda", toolkit);
    let values = values.with("built_major", toolkit.major).built_by(linked.by);
    let finding = MessageTemplate::NotAsRecorded.to_finding(&values);
    // A file without kernels needs nothing from the toolkit.
    findings.push(if linked.kernels.has_kernels() { finding } else { finding.with_severity(Severity::Warning) });
}

fn describe_linkage(linkage: Linkage) -> String {
    let phrase = match linkage {
        Linkage::Linked => MessageFragment::Linked,
        Linkage::Static => MessageFragment::Inside,
        Linkage::Dlopened => MessageFragment::ByName,
        Linkage::None => MessageFragment::Unused,
        Linkage::Unknown => return String::new(),
    };
    phrase.render(&Values::default())
}

fn check_library(policy: &Policy, manifest: &Manifest, linked: &Linked<'_>, findings: &mut Vec<Finding>) {
    let declared = policy.library_linkage.unwrap_or_default();
    // A library that is opened by name may leave no evidence, and function names alone do not open a library.
    let no_trace =
        matches!((declared, linked.library), (Linkage::Dlopened, Linkage::None) | (Linkage::None, Linkage::Dlopened));
    let reported = declared != Linkage::Unknown && linked.library != Linkage::Unknown;
    let contradicts = reported && !no_trace && declared != linked.library;
    let soname = linked.needed.iter().find(|name| CUDNN.is_named(name));
    let values = policy_args(policy).with("file", linked.name).with_known("library", soname);
    if contradicts {
        let values = values.with("declared", describe_linkage(declared)).with_known("value", declared.name());
        let values = values.with("linkage", describe_linkage(linked.library));
        let finding = MessageTemplate::NotAsRecordedLinkage.to_finding(&values);
        // A library that is not used has no requirements.
        findings.push(if linked.library == Linkage::None { finding.with_severity(Severity::Warning) } else { finding });
        return;
    }
    let Some((soname, recorded)) = soname.zip(manifest.library.as_ref()) else { return };
    if CUDNN.major(soname).is_some_and(|major| major != recorded.version.major) {
        let values = values.with("built", recorded.version).built_by(linked.by);
        findings.push(MessageTemplate::NotAsRecordedHeaders.to_finding(&values));
    }
}

/// Reports a libtorch whose CUDA part the linker dropped.
fn check_torch(linked: &Linked<'_>, findings: &mut Vec<Finding>) {
    let Some(torch) = &linked.seen.torch_cuda else { return };
    let values = Values::default().with("file", linked.name).with("library", &torch.library);
    let values = values.with("path", torch.path.display()).built_by(linked.by);
    findings.push(MessageTemplate::TorchWithoutCuda.to_finding(&values));
}

/// Checks a program that links this library, which contains a cudart, against the oldest driver of the fleet.
fn check_library_driver(policy: &Policy, fleet: FleetDriver<'_>, library: &LibraryFile, file: &str) -> Option<Finding> {
    let made_for = library.cuda_major.as_ref()?;
    let floor = tables::cudart_floor(CudaVersion::new(made_for.value, 0));
    (fleet.meets_floor(floor) == Some(false)).then(|| {
        let older = fleet.supports.most.filter(|most| most.major < made_for.value);
        let values = fleet.floor_args(policy, floor).with_known("instead", older.map(|most| most.major));
        let values = values.with("file", file).with("cuda_major", made_for.value).with("told_by", &made_for.source);
        let version = library.version.as_ref().map_or(library.major.to_string(), |version| version.value.to_string());
        let values = values.with("found", version).with("path", library.path.display());
        MessageTemplate::DriverFleetOlderCudnn.to_finding(&values)
    })
}

#[cfg(test)]
mod tests;
