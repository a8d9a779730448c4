//! (policy, manifest, linked file) → findings: whether what came out is what was declared.
//!
//! Kernels of other packages and of NVIDIA's static libraries are no business of `[gpu] archs`: only containers that are
//! known to be the package's own are held against it. The whole file is held against `[gpu] fleet`.

use std::path::{Component, Path, PathBuf};

use crate::arch::Target;
use crate::finding::{Code, Finding, Severity};
use crate::kernels::{By, Container, Group, Kernels, Service};
use crate::manifest::{Linkage, Manifest};
use crate::policy::Policy;
use crate::seal::{cudart_named, cudart_speaks_for};
use crate::tables::Cc;
use crate::vendor::GUARDED;
use crate::version::CudaVersion;

use super::fleet::{self, Named, OldestDriver, cure, cures, gpus, listed};
use super::wording::{facts, in_file, names};

/// What was seen in a linked file.
#[derive(Clone, Copy, Debug)]
pub struct Linked<'a> {
    /// What people call it: the name of the program or library.
    pub name: &'a str,
    /// Whether it is for others to run: paths of the building machine are the very point of a dev build.
    pub release: bool,
    /// Its GPU code.
    pub kernels: &'a Kernels,
    /// For each container whether it is known to be of the package's own sources; empty where nobody has looked.
    pub own: &'a [bool],
    /// `DT_NEEDED`.
    pub needed: &'a [String],
    /// How it reaches cudart.
    pub cudart: Linkage,
    /// How it reaches cuDNN.
    pub library: Linkage,
    /// `DT_RPATH`, as written.
    pub rpath: Option<&'a str>,
    /// `DT_RUNPATH`, as written.
    pub runpath: Option<&'a str>,
    /// Folders that only the building machine has, each with what it is: `cargo's target folder`.
    pub folders: &'a [(PathBuf, &'a str)],
}

/// What is wrong with the file under this policy. `manifest` is what was recorded before it was linked. Severities are the
/// codes' own, or as said there; the policy's `[build]` and `[allow]` are applied after.
pub fn judge(policy: &Policy, manifest: &Manifest, linked: &Linked<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    runtime_paths(linked, &mut findings);
    if linked.kernels.any() {
        let groups = linked.kernels.groups();
        archs(policy, manifest, linked, &groups, &mut findings);
        gpu_fleet(policy, manifest, linked, &mut findings);
        ptx(policy, manifest, linked, &groups, &mut findings);
    }
    driver_fleet(policy, manifest, linked, &mut findings);
    cudart(manifest, linked, &mut findings);
    library(policy, manifest, linked, &mut findings);
    findings.sort_by_key(|finding| finding.code);
    findings
}

/// What a container is called: its source or object, else where it stands.
fn called(kernels: &Kernels, container: &Container) -> String {
    match &container.origin {
        Some(origin) => origin.clone(),
        None => match kernels.section(container) {
            "" => format!("the one at {:#x}", container.offset),
            section => format!("one at {:#x} in {section}", container.offset),
        },
    }
}

fn containers(number: usize) -> String {
    format!("{number} container{} of kernels", if number == 1 { "" } else { "s" })
}

/// A group's containers that are the package's own.
fn own<'a>(linked: &'a Linked<'_>, group: &'a Group) -> impl Iterator<Item = &'a Container> {
    let is_own = |at: &&usize| linked.own.get(**at).copied().unwrap_or(false);
    group.containers.iter().filter(is_own).filter_map(|at| linked.kernels.containers().get(*at))
}

/// The archs that the package's own kernels must be; none where the policy names none, or in words that this toolkit
/// does not tell.
fn demanded(policy: &Policy, manifest: &Manifest) -> Vec<Target> {
    let mut demanded = match manifest.toolkit {
        Some(toolkit) => policy.archs_by(toolkit),
        None if policy.arch_words.is_empty() => policy.archs.clone(),
        None => Vec::new(),
    };
    demanded.sort_unstable();
    demanded.dedup();
    demanded
}

/// What containers of this group lack, as far as they can be read.
fn missing<'a>(group: &Group, demanded: &'a [Target]) -> Vec<&'a Target> {
    demanded.iter().filter(|target| group.whole && !group.targets.contains(target)).collect()
}

/// What nobody asked for. `-arch=sm_80` brings PTX of the same arch along, in the spelling that everyone uses.
fn surplus<'a>(group: &'a Group, demanded: &[Target]) -> Vec<&'a Target> {
    let along = |target: &Target| {
        matches!(target, Target::Ptx(_)) && demanded.iter().any(|other| other.arch() == target.arch())
    };
    group.targets.iter().filter(|target| !demanded.contains(target) && !along(target)).collect()
}

fn archs(policy: &Policy, manifest: &Manifest, linked: &Linked<'_>, groups: &[Group], findings: &mut Vec<Finding>) {
    let demanded = demanded(policy, manifest);
    if demanded.is_empty() {
        return;
    }
    nobodys(policy, &demanded, linked, groups, findings);
    let required = || ("declared", format!("{} ([gpu] archs{})", names(&demanded), in_file(policy)));
    for group in groups {
        let mine: Vec<String> = own(linked, group).map(|container| called(linked.kernels, container)).collect();
        if mine.is_empty() {
            continue;
        }
        let found = || ("found", if group.targets.is_empty() { "nothing".to_owned() } else { names(&group.targets) });
        let subject = listed(mine);
        let missing = missing(group, &demanded);
        if !missing.is_empty() {
            findings.push(Finding::new(
                Code::ArchMissing,
                linked.name,
                facts(
                    &format!(
                        "kernels of this package in {} are not built for {}, which the policy asks for.",
                        linked.name,
                        names(missing)
                    ),
                    [("kernels", subject.clone()), found(), required()],
                ),
                "compile them for every arch in [gpu] archs and delete objects of earlier builds; where fewer are meant, \
                 allow it with a reason",
            ));
        }
        let surplus = surplus(group, &demanded);
        if !surplus.is_empty() {
            findings.push(Finding::new(
                Code::ArchSurplus,
                linked.name,
                facts(
                    &format!(
                        "kernels of this package in {} are built for {}, which the policy does not ask for.",
                        linked.name,
                        names(surplus)
                    ),
                    [("kernels", subject), found(), required()],
                ),
                "see what adds it: nvcc's flags in the build script, NVCC_APPEND_FLAGS, NVCC_PREPEND_FLAGS, or an object \
                 of an earlier build; or add it to [gpu] archs",
            ));
        }
    }
}

/// Kernels with other archs than the policy asks for, in a file none of whose kernels is known to be the package's own.
fn nobodys(policy: &Policy, demanded: &[Target], linked: &Linked<'_>, groups: &[Group], findings: &mut Vec<Finding>) {
    let right = |group: &Group| missing(group, demanded).is_empty() && surplus(group, demanded).is_empty();
    if linked.own.is_empty() || linked.own.contains(&true) || groups.iter().all(right) {
        return;
    }
    let all = groups.iter().flat_map(|group| &group.containers);
    let all = all.filter_map(|at| linked.kernels.containers().get(*at));
    findings.push(Finding::new(
        Code::OwnKernelsUnknown,
        linked.name,
        facts(
            &format!("cannot tell which kernels in {} are this package's: [gpu] archs was held against none.", linked.name),
            [
                ("kernels", listed(all.map(|container| called(linked.kernels, container)).collect())),
                ("built for", names(&linked.kernels.targets())),
                ("declared", format!("{} ([gpu] archs{})", names(demanded), in_file(policy))),
            ],
        ),
        "let the build script leave in OUT_DIR what nvcc made; where the package has no kernels of its own, [gpu] fleet says \
         what the whole file must run on",
    ));
}

fn gpu_fleet(policy: &Policy, manifest: &Manifest, linked: &Linked<'_>, findings: &mut Vec<Finding>) {
    let kernels = linked.kernels;
    let built = || names(&kernels.targets());
    let named = policy.fleet_ccs();
    let by =
        |by: By| -> Vec<(&str, Cc)> { named.iter().copied().filter(|(_, cc)| kernels.service(*cc).by == by).collect() };
    let asked = || fleet::asked(policy, &named);
    let unserved = by(By::Nothing);
    if !unserved.is_empty() {
        let text = gpus(&unserved);
        findings.push(Finding::new(
            Code::FleetUnserved,
            linked.name,
            facts(
                &format!("{} has no code for {text}, on which it must run.", linked.name),
                [("built for", built()), asked()],
            ),
            cure(&unserved, manifest.toolkit, &text, None),
        ));
    }
    if named.is_empty() {
        // Of own kernels with other archs than they should have it is but a consequence.
        if findings.iter().any(|finding| matches!(finding.code, Code::ArchMissing | Code::ArchSurplus)) {
            return;
        }
        partial_without_fleet(policy, manifest, linked, findings);
        return;
    }
    // Those that leave out the same containers are told together.
    let mut told: Vec<(Vec<u64>, Named<'_>)> = Vec::new();
    for (name, cc) in by(By::Partial) {
        let lacking: Vec<u64> = kernels.without(cc).map(|container| container.offset).collect();
        match told.iter_mut().find(|(other, _)| *other == lacking) {
            Some((_, gpus)) => gpus.push((name, cc)),
            None => told.push((lacking, vec![(name, cc)])),
        }
    }
    for (lacking, partial) in told {
        let Some((_, cc)) = partial.first() else { continue };
        let mut finding = Finding::new(
            Code::FleetPartial,
            linked.name,
            facts(
                &format!(
                    "{} runs on {} only in part: {} nothing for it.",
                    linked.name,
                    gpus(&partial),
                    have(lacking.len())
                ),
                [("without", without(kernels, *cc)), ("built for", built()), asked()],
            ),
            format!(
                "compile them for {} as well; where the program chooses such kernels at run time, allow it with a reason",
                cures(&partial)
            ),
        );
        if policy.partial_refuse {
            // It would refuse to start there.
            finding.severity = Severity::Error;
        }
        findings.push(finding);
    }
}

/// The oldest driver of the fleet against what the file asks of one.
fn driver_fleet(policy: &Policy, manifest: &Manifest, linked: &Linked<'_>, findings: &mut Vec<Finding>) {
    let Some(oldest) = OldestDriver::of(policy) else { return };
    let named = linked.needed.iter().find_map(|name| cudart_named(name));
    if let Some(cudart) = cudart_speaks_for(manifest, linked.cudart, named) {
        let how = if linked.cudart == Linkage::Static { "inside" } else { "linked" };
        let built = ("cudart", format!("CUDA {cudart}, {how}"));
        findings.extend(fleet::cudart(policy, oldest, cudart, (linked.name, linked.name), built));
    }
    // Those that the same code keeps out are told together.
    let mut told: Vec<(Service, Named<'_>)> = Vec::new();
    for (name, cc) in policy.fleet_ccs() {
        let service = linked.kernels.service(cc);
        if service.floor.and_then(|floor| oldest.serves(floor)) != Some(false) {
            continue;
        }
        match told.iter_mut().find(|(other, _)| *other == service) {
            Some((_, gpus)) => gpus.push((name, cc)),
            None => told.push((service, vec![(name, cc)])),
        }
    }
    for (service, of) in told {
        let Some((floor, code)) = service.floor.zip(service.code) else { continue };
        let (what, from, instead) = match service.isa {
            Some((major, minor)) => {
                ("compile the PTX", format!("{code}, PTX {major}.{minor}"), fleet::machine_code(&of, manifest.toolkit))
            }
            None => (
                "unpack the code",
                format!("{code}, compressed with Zstandard"),
                "let nvcc leave it uncompressed (-compress-mode=none)".to_owned(),
            ),
        };
        findings.push(fleet::code(policy, oldest, floor, &of, linked.name, (what, ("code", from), &instead)));
    }
}

fn have(number: usize) -> String {
    format!("{} {}", containers(number), if number == 1 { "has" } else { "have" })
}

fn without(kernels: &Kernels, cc: Cc) -> String {
    listed(kernels.without(cc).map(|container| called(kernels, container)).collect())
}

/// Nobody has said what it must run on. That the archs that were asked for, or else those that there is any code for, are
/// served in some containers and not in others is worth a word, and no more: libraries do so on purpose.
fn partial_without_fleet(policy: &Policy, manifest: &Manifest, linked: &Linked<'_>, findings: &mut Vec<Finding>) {
    let kernels = linked.kernels;
    let mut asked = demanded(policy, manifest);
    if asked.is_empty() {
        asked = kernels.targets();
    }
    let mut ccs: Vec<Cc> = asked.iter().map(|target| target.arch().cc()).collect();
    ccs.sort_unstable();
    ccs.dedup();
    ccs.retain(|cc| kernels.service(*cc).by == By::Partial);
    let Some(first) = ccs.first() else { return };
    let list = listed(ccs.iter().map(|(major, minor)| format!("{major}.{minor}")).collect());
    let finding = Finding::new(
        Code::FleetPartial,
        linked.name,
        facts(
            &format!("{} runs on GPUs of {list} only in part.", linked.name),
            [
                ("without", format!("{} (for {}.{})", without(kernels, *first), first.0, first.1)),
                ("built for", names(&kernels.targets())),
            ],
        ),
        "`inspect` shows all of it; name in [gpu] fleet what it must run on, and it is held against that",
    );
    findings.push(if policy.partial_refuse {
        finding.weighing(Severity::Warning)
    } else {
        finding.weighing(Severity::Info)
    });
}

/// A compute capability that is newer than every arch there can be a name for.
const LATER: Cc = (99, 0);

fn ptx(policy: &Policy, manifest: &Manifest, linked: &Linked<'_>, groups: &[Group], findings: &mut Vec<Finding>) {
    let mut declared = demanded(policy, manifest);
    if declared.is_empty() {
        declared.clone_from(&manifest.declared);
    }
    let Some(newest) = declared.iter().map(|target| target.arch()).max() else { return };
    let serves = |group: &&Group| {
        !group.whole || group.targets.iter().any(|target| target.serves(LATER) == crate::serves::Serves::Yes)
    };
    let known = groups.iter().any(|group| own(linked, group).next().is_some());
    let mut judged = groups.iter().filter(|group| !known || own(linked, group).next().is_some());
    if judged.any(|group| serves(&group)) {
        return;
    }
    findings.push(Finding::new(
        Code::NoPtx,
        linked.name,
        facts(
            &format!("{} holds no PTX that GPUs newer than those it is built for could run.", linked.name),
            [("built for", names(&linked.kernels.targets())), ("declared", names(&declared))],
        ),
        format!("add compute_{} to the archs; where that is not wanted, allow it with a reason", newest.number),
    ));
}

/// Folders of a runtime path; an empty one means the folder in which the program is started.
fn entries<'a>(linked: &Linked<'a>) -> impl Iterator<Item = (&'static str, &'a str)> {
    let of = |name: &'static str, list: Option<&'a str>| {
        list.filter(|list| !list.is_empty())
            .into_iter()
            .flat_map(|list| list.split(':'))
            .map(move |entry| (name, entry))
    };
    of("RPATH", linked.rpath).chain(of("RUNPATH", linked.runpath))
}

fn runtime_paths(linked: &Linked<'_>, findings: &mut Vec<Finding>) {
    for (kind, entry) in entries(linked) {
        let path = Path::new(entry);
        if path.is_absolute() && path.components().any(|part| part == Component::Normal("stubs".as_ref())) {
            findings.push(Finding::new(
                Code::StubInRuntimePath,
                linked.name,
                facts(
                    &format!("the {kind} of {} makes it load the toolkit's empty stub libraries.", linked.name),
                    [("folder", entry.to_owned())],
                ),
                "take the stubs folder out of -rpath: the linker needs it in -L only",
            ));
        } else if let Some(what) = building(linked, path).filter(|_| linked.release) {
            findings.push(Finding::new(
                Code::BuildMachinePath,
                linked.name,
                facts(
                    &format!("the {kind} of {} leads into {what}.", linked.name),
                    [("folder", entry.to_owned())],
                ),
                "take that -rpath out of the build script or RUSTFLAGS, or name the folder from the program's own by $ORIGIN",
            ));
        }
    }
}

/// What of the building machine a folder is; `None` where any machine may have it.
fn building<'a>(linked: &Linked<'a>, path: &Path) -> Option<&'a str> {
    if !path.is_absolute() {
        return None;
    }
    let known = linked.folders.iter().find(|(folder, _)| folder.parent().is_some() && path.starts_with(folder));
    let scratch = ["/tmp", "/var/tmp", "/dev/shm"].iter().any(|folder| path.starts_with(folder));
    known
        .map(|(_, what)| *what)
        .or_else(|| scratch.then_some("a scratch folder"))
        .or_else(|| (path.starts_with("/home") || path.starts_with("/root")).then_some("somebody's home"))
}

fn cudart(manifest: &Manifest, linked: &Linked<'_>, findings: &mut Vec<Finding>) {
    if linked.cudart != Linkage::Linked {
        return;
    }
    let Some(toolkit) = manifest.toolkit.map(CudaVersion::from) else { return };
    let Some((soname, needs)) = linked.needed.iter().find_map(|name| Some((name, cudart_named(name)?))) else { return };
    if needs.major == toolkit.major {
        return;
    }
    let finding = Finding::new(
        Code::NotAsRecorded,
        linked.name,
        facts(
            &format!("{} is built with CUDA {toolkit}, and linked to {soname}.", linked.name),
            [("needs", soname.clone()), ("built with", format!("CUDA {toolkit}"))],
        ),
        format!("link the libcudart of CUDA {}: see -L in the build script, and LIBRARY_PATH", toolkit.major),
    );
    // Without a kernel nothing of the toolkit's need be in it.
    findings.push(if linked.kernels.any() { finding } else { finding.weighing(Severity::Warning) });
}

fn library(policy: &Policy, manifest: &Manifest, linked: &Linked<'_>, findings: &mut Vec<Finding>) {
    let in_words = |linkage: Linkage| match linkage {
        Linkage::Linked => "linked to libcudnn",
        Linkage::Static => "with cuDNN inside",
        Linkage::Dlopened => "loads cuDNN by name at run time",
        Linkage::None => "without any use of cuDNN",
        Linkage::Unknown => "",
    };
    let declared = policy.library_linkage.unwrap_or_default();
    // Opened by name it leaves no trace that must be found, and the names of functions alone do not open it.
    let no_trace =
        matches!((declared, linked.library), (Linkage::Dlopened, Linkage::None) | (Linkage::None, Linkage::Dlopened));
    let told = declared != Linkage::Unknown && linked.library != Linkage::Unknown;
    let contradicts = told && !no_trace && declared != linked.library;
    let soname = linked.needed.iter().find(|name| name.starts_with("libcudnn.so"));
    let needs = || ("needs", soname.cloned().unwrap_or_default());
    if contradicts {
        let finding = Finding::new(
            Code::NotAsRecorded,
            linked.name,
            facts(
                &format!("the policy declares another cuDNN linkage than {} has.", linked.name),
                [
                    (
                        "declared",
                        format!(
                            "{} ([cudnn] linkage = \"{}\"{})",
                            in_words(declared),
                            declared.name().unwrap_or_default(),
                            in_file(policy)
                        ),
                    ),
                    ("found", in_words(linked.library).to_owned()),
                    needs(),
                ],
            ),
            "correct [cudnn] linkage, or what the build script links",
        );
        // One that is not used asks for nothing.
        findings.push(if linked.library == Linkage::None { finding.weighing(Severity::Warning) } else { finding });
        return;
    }
    let Some((soname, recorded)) = soname.zip(manifest.library.as_ref()) else { return };
    if GUARDED.major(soname).is_some_and(|major| major != recorded.version.major) {
        findings.push(Finding::new(
            Code::NotAsRecorded,
            linked.name,
            facts(
                &format!(
                    "the headers found are of cuDNN {}, and {} is linked to {soname}.",
                    recorded.version, linked.name
                ),
                [needs(), ("recorded", format!("cuDNN {}, by its headers", recorded.version))],
            ),
            "make headers and library come from one package: set CUDNN_PATH to its root",
        ));
    }
}

#[cfg(test)]
mod tests;
