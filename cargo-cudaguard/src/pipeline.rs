//! The steps of a build after [`cudaguard::internal::pipeline`]: the crates, the linked file, the lock, the note that is sealed.

use std::ops::{Deref, DerefMut};
use std::path::Path;

use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::ConfigError;
use cudaguard::internal::checks;
use cudaguard::internal::env::Env;
use cudaguard::internal::file_error::FileError;
use cudaguard::internal::finding::{Code, Finding, MessageTemplate, Values};
use cudaguard::internal::lock::{self, Lock};
use cudaguard::internal::manifest::{BuiltWith, FactSource, Linkage, Manifest};
use cudaguard::internal::note::{self, EncodeError, SIZE};
use cudaguard::internal::pipeline::{
    BuildCheck, BuildError, BuildInputs, CudaIntent, is_library_absent, needs_use_of_cudnn,
};
use cudaguard::internal::policy::Policy;
use cudaguard::internal::toolchain::{BuildSystem, LibraryHeaders, Toolchain};

use crate::binary::file::Binary;
use crate::binary::kernels::Kernels;
use crate::family::opened_without_requirement;
use crate::knowledge::crates::{self, Crate, CrateUse};
use crate::linked::check::{self, Linked};
use crate::linked::evidence::{Included, LinkEvidence};
use crate::linked::linked_lock;
use crate::linked::seal::{self, LinkObservation, ResolvedCudnn, SealError};

/// The reason that a file is reported as unguarded if the linker, or a later step, removed its note.
pub const NOTE_MISSING: &str = "it is not in the file";

/// A checked build, and what its crates would do.
#[derive(Debug)]
pub struct CheckedBuild {
    /// The build.
    pub build: BuildCheck,
    /// The CUDA usage of its crates.
    pub uses: Vec<CrateUse>,
    /// The findings about those.
    pub of_crates: Vec<Finding>,
}

impl Deref for CheckedBuild {
    type Target = BuildCheck;

    fn deref(&self) -> &BuildCheck {
        &self.build
    }
}

impl DerefMut for CheckedBuild {
    fn deref_mut(&mut self) -> &mut BuildCheck {
        &mut self.build
    }
}

/// Checks a build and its crates.
///
/// # Errors
/// Why it cannot be checked: see [`BuildInputs::check`].
pub fn check_build(facts: &BuildInputs<'_>, crates: &[Crate], env: &Env) -> Result<CheckedBuild, BuildError> {
    let mut build = facts.check(env)?;
    if facts.sees_linked && build.toolchain.by != BuildSystem::Options {
        // nvcc's host compiler may be named by an option, and a library to the linker alone: the linked file shows them.
        let (later, now) = std::mem::take(&mut build.findings)
            .into_iter()
            .partition(|finding| linked_lock::is_decided_by_linked(finding, &build.toolchain));
        build.findings = now;
        build.deferred.extend::<Vec<Finding>>(later);
    }
    if facts.cuda_intent(&build.policy) != CudaIntent::Unstated && crates.iter().any(uses_cudnn) {
        let BuildCheck { deferred, policy, .. } = &mut build;
        let of_crates: Vec<Finding> = deferred.extract_if(.., |finding| needs_use_of_cudnn(finding, policy)).collect();
        build.findings.extend(of_crates);
    }
    let uses = crates::detect_crates(env, crates, &build.toolchain, Path::new("/"), !build.policy.fleet.is_empty());
    let of_crates = crates::check_crates(&build.policy, &build.toolchain, &uses);
    Ok(CheckedBuild { of_crates: facts.apply_policy(&build.policy, of_crates).findings, uses, build })
}

/// Returns true if a crate uses cuDNN.
pub fn uses_cudnn(one: &Crate) -> bool {
    one.library_stems().contains(&CUDNN.key)
}

impl CheckedBuild {
    /// Builds the manifest of this build.
    pub fn to_manifest(&self, facts: &BuildInputs<'_>) -> Manifest {
        let mut manifest = self.build.to_manifest(facts);
        manifest.opens = crates::dlopen::dlopened_libraries(&self.uses);
        manifest
    }

    /// Encodes the descriptor of the note.
    ///
    /// # Errors
    /// The entry that is too long.
    pub fn encode_note(&self, facts: &BuildInputs<'_>) -> Result<Box<[u8; SIZE]>, EncodeError> {
        note::encode(&self.to_manifest(facts))
    }
}

/// Returns true if a linked file does not use CUDA and nothing indicates that it should. Such a file is not
/// checked.
///
/// # Errors
/// Returns a message if the file cannot be read.
pub fn has_nothing(
    facts: &BuildInputs<'_>,
    policy: &Policy,
    binary: &Binary,
    kernels: &Kernels,
) -> Result<bool, FileError> {
    let is_plain = facts.cuda_intent(policy) == CudaIntent::Unstated && !kernels.has_kernels();
    Ok(is_plain && !binary.reaches_cuda()? && opened_without_requirement(binary).is_empty())
}

/// Determines the cuDNN release of a linked file if the headers that it was compiled with are unknown. Uses the
/// release of the library that the linker resolved, since one package contains both; else the first release that
/// has all functions that the file binds. Also returns the finding about that.
pub fn resolve_cudnn(
    facts: &BuildInputs<'_>,
    policy: &Policy,
    toolchain: &Toolchain,
    manifest: &Manifest,
    binary: &Binary,
    seen: &LinkEvidence,
) -> (Option<ResolvedCudnn>, Vec<Finding>) {
    let Some(soname) = binary.imported().find(|name| CUDNN.is_named(name)) else { return (None, Vec::new()) };
    let library = seen.library_taken.clone();
    let known = library.as_ref().and_then(|library| Some((library.version.as_ref()?.value, &library.path)));
    let judged = toolchain.library_used().and_then(|library| library.path.canonicalize().ok());
    let is_judged = known.is_some_and(|(_, path)| judged.is_some() && path.canonicalize().ok() == judged);
    let by_policy = policy.library_built.map(|version| (version, FactSource::Declared));
    if let Some(recorded) = &manifest.library {
        // The headers of the system and a library from another directory need not belong together.
        let other = known.is_some_and(|(version, _)| version != recorded.version && !is_judged);
        let of_system = manifest.library_known.is_none() && toolchain.has_library_headers_of_system() && other;
        if !of_system && manifest.library_known != Some(FactSource::Declared) {
            return (None, Vec::new());
        }
    }
    let bound = binary.bound.iter().find(|bound| CUDNN.is_named(&bound.soname));
    let release = by_policy.or(known.map(|(version, _)| (version, FactSource::Linked)));
    let release = release.or_else(|| Some((bound?.first, FactSource::Symbols)));
    let taken = release.map(|(version, known)| {
        let built = BuiltWith { version, linkage: Linkage::Linked };
        ResolvedCudnn { version, known: Some(known), rows: built.requirement_rows(policy) }
    });
    let mut findings = Vec::new();
    if by_policy.is_none() {
        let values = Values::default().with("file", &facts.component.name).with("library", soname);
        let values = values.with_known("found", known.map(|(version, _)| version));
        let values = values.with_known("path", known.map(|(_, path)| path.display()));
        let values = values
            .with_known("symbol", bound.map(|bound| &bound.name))
            .with_known("min", bound.map(|bound| bound.first));
        let words = if taken.is_some() {
            MessageTemplate::CudnnHeadersUnknown
        } else {
            MessageTemplate::CudnnHeadersUnknownNothing
        };
        findings.push(words.to_finding(&values.built_by(toolchain.by)));
    }
    // Check the library against policy and toolkit. If a build system selected it, that was already done.
    if let Some(library) = library.filter(|_| !is_judged && toolchain.by == BuildSystem::Cargo) {
        let taken = toolchain.with_library_taken(library);
        findings.extend(checks::build::recheck_linked_cudnn(policy, toolchain, &taken));
    }
    (taken, findings)
}

/// Checks the cuDNN headers that the code of a linked file was compiled with against the library that the linker
/// resolved. They have precedence over other sources for the manifest; if there are several, the newest is
/// recorded. Returns `None` if the build's files show no headers.
pub fn compiled_with(
    policy: &Policy,
    toolchain: &Toolchain,
    seen: &LinkEvidence,
    included: &[Included],
) -> Option<(ResolvedCudnn, Vec<Finding>)> {
    let newest = included.iter().map(|one| one.version).max()?;
    let linked = match &seen.library_taken {
        Some(library) => toolchain.with_library_taken(library.clone()),
        None => toolchain.clone(),
    };
    let mut findings = Vec::new();
    for one in included {
        let headers = LibraryHeaders { path: one.path.clone(), version: Some(one.version) };
        let now = linked.with_library_included(headers, &one.by);
        for finding in checks::build::recheck_linked_cudnn(policy, toolchain, &now) {
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }
    let built = BuiltWith { version: newest, linkage: Linkage::Linked };
    Some((ResolvedCudnn { version: newest, known: None, rows: built.requirement_rows(policy) }, findings))
}

/// Returns the deferred findings that apply to the linked file.
pub fn deferred_findings(judged: &CheckedBuild, seen: &LinkEvidence, binary: &Binary) -> Vec<Finding> {
    let takes_library = binary.imported().any(|name| CUDNN.is_named(name));
    let named = judged.toolchain.named_releases();
    let uses_library = binary.linkage_in_build(&CUDNN) != Linkage::None;
    let holds = |finding: &&Finding| {
        if !uses_library && needs_use_of_cudnn(finding, &judged.policy) {
            return false;
        }
        let found = takes_library && is_library_absent(finding, &judged.toolchain);
        check::still_holds(finding, seen, &named) && !linked_lock::is_superseded(finding, seen) && !found
    };
    judged.deferred.iter().filter(holds).cloned().collect()
}

/// Checks the linked file against the policy and the recorded manifest, and applies the policy to the findings.
/// `library` are findings about the cuDNN that it needs.
pub fn judge_linked(
    facts: &BuildInputs<'_>,
    policy: &Policy,
    manifest: &Manifest,
    linked: &Linked<'_>,
    library: Vec<Finding>,
    taken: Option<&ResolvedCudnn>,
) -> Vec<Finding> {
    let mut manifest = manifest.clone();
    if let Some(taken) = taken {
        taken.record_in(&mut manifest);
    }
    let mut findings = check::check_linked(policy, &manifest, linked);
    findings.extend(library);
    facts.apply_policy(policy, findings).findings
}

/// Compares the linked file with the lock. `deferred` are the deferred findings; `insist`: any drift is an error.
///
/// # Errors
/// Returns a message if the lock cannot be read.
pub fn lock_drift(
    facts: &BuildInputs<'_>,
    policy: &Policy,
    recorded: &Manifest,
    linked: &Linked<'_>,
    deferred: &[Finding],
    insist: bool,
) -> Result<Vec<Finding>, ConfigError> {
    let Some(file) = Lock::lock_path(facts.top) else { return Ok(Vec::new()) };
    let Some(lock) = Lock::read(&file)? else { return Ok(Vec::new()) };
    let deferred = deferred.iter().any(|finding| finding.code == Code::LockDrift);
    let mut applied =
        facts.apply_policy(policy, linked_lock::judge_linked(&lock, &file, recorded, linked, deferred)).findings;
    if insist {
        lock::enforce_locked(&mut applied, policy);
    }
    Ok(applied)
}

/// A linked file after its notes are sealed.
#[derive(Debug)]
pub enum SealedFile {
    /// The manifests in it.
    Guarded(Vec<Manifest>),
    /// The reason why it does not contain the guard of its package, although the linker received one; [`not_guarded`] reports it.
    Unguarded(String),
}

/// Writes the observed facts of the link into the notes of the file, or of its copy `to`, and returns the manifests in it. `seen`
/// is the evidence of the link step; `None` if it shows no use of CUDA. `judged` is the check of the build, if its crates and
/// variables apply to this file.
///
/// # Errors
/// Why the file cannot be read or written.
pub fn seal_file(
    facts: &BuildInputs<'_>,
    binary: &Binary,
    to: Option<&Path>,
    kernels: &Kernels,
    judged: Option<&CheckedBuild>,
    seen: Option<LinkEvidence>,
    taken: Option<ResolvedCudnn>,
) -> Result<SealedFile, SealError> {
    let uses = judged.map_or(&[][..], |judged| &judged.uses);
    let mut looked_up = Vec::new();
    for floors in crates::driver_floors(uses) {
        for (constant, cuda, by) in floors {
            if binary.holds_constant(constant.as_bytes())? {
                looked_up.push((cuda, by));
                break;
            }
        }
    }
    let of_file = LinkObservation::from_binary(binary);
    // The file contains names of cuDNN functions, and the crate graph shows which crate looks them up.
    let opened = binary.linkage(&CUDNN) == Linkage::Unknown && uses.iter().any(|one| one.opens_library(CUDNN.key));
    let observed = LinkObservation {
        looked_up,
        // cargo uses a file only if its compiler succeeded, and runs the compiler again otherwise.
        fresh: facts.given.is_none(),
        nothing: seen.is_none(),
        archs_of_nobody: judged.is_some_and(|judged| judged.toolchain.archs.named_by().is_none()),
        seen: seen.unwrap_or_default(),
        taken,
        library: if opened { Linkage::Dlopened } else { of_file.library },
        component: Some(facts.package.to_owned()),
        archs: Some(kernels.built_targets()),
        gpus: Some(kernels.requirement_rows()),
        ..of_file
    };
    let (sealed, manifests) = seal::seal_open(binary, to, &observed)?;
    if sealed.written + sealed.same == 0 {
        let why = sealed.left.into_iter().next().unwrap_or_else(|| NOTE_MISSING.to_owned());
        return Ok(SealedFile::Unguarded(why));
    }
    Ok(SealedFile::Guarded(manifests))
}

/// Returns the finding about a file without the guard that was passed to the linker, with the policy applied.
pub fn not_guarded(facts: &BuildInputs<'_>, policy: &Policy, name: &str, file: &Path, why: &str) -> Vec<Finding> {
    let values = Values::default().with("file", name).with("path", file.display());
    let values = values.with("component", &facts.component).with("why", why);
    facts.apply_policy(policy, vec![MessageTemplate::GuardNotLinked.to_finding(&values)]).findings
}
