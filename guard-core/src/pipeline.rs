//! The steps of a build: detect the toolchain, check it, compare it with the lock, apply the policy, write the
//! manifest.
//!
//! Each front end (a build.rs, the command, CMake) passes its [`BuildInputs`] and prints the results in its own format.
//! The detection, the order of the checks and the severity of each finding are the same for all of them. After linking,
//! the file is checked against the policy and its note is sealed.

use std::path::{Path, PathBuf};

use crate::checks;
use crate::config::lock::{self, Lock, Scope};
use crate::config::policy::{self, Policy};
use crate::coverage::requirements;
use crate::finding::{Code, Finding, Severity};
use crate::knowledge::tables;
use crate::knowledge::vendor::CUDNN;
use crate::manifest::model::{Component, Manifest, Requirement};
use crate::manifest::note::{self, SIZE};
use crate::sys::env::Env;
use crate::toolchain::{BuildSystem, BuildSystemFacts, DetectOptions, Sourced, Toolchain};
<<<<<<< OURS
use crate::vendor::CUDNN;

/// The reason that a file is reported as unguarded if the linker, or a later step, removed its note.
#[cfg(feature = "command")]
pub const NOTE_MISSING: &str = "it is not in the file";
||||||| BASE
use crate::vendor::CUDNN;

/// Why a file is not guarded from whose note the linker, or a step after it, has left nothing.
#[cfg(feature = "command")]
pub const NOTE_MISSING: &str = "it is not in the file";
=======
>>>>>>> THEIRS

/// Evidence that a package uses CUDA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CudaIntent {
    /// No evidence: the installed toolchain is not checked, unless the linked file uses CUDA.
    #[default]
    Nobody,
    /// The user declared that it uses CUDA, but not whether anything is compiled for GPUs.
    Owner,
    /// The build shows it: kernels among the sources, a crate that uses CUDA, or a build system that knows.
    Build,
}

/// The facts that a front end knows about a build.
#[derive(Clone, Debug)]
pub struct BuildInputs<'a> {
    /// The component that findings and note refer to.
    pub component: Component,
    /// The package's name: policy and lock may have sections for it.
    pub package: &'a str,
    /// The package's directory.
    pub folder: &'a Path,
    /// The project's root: no policy is searched above it, and the lock is in it.
    pub top: &'a Path,
    /// The policy file, if one was specified.
    pub policy: Option<PathBuf>,
    /// The target triple.
    pub target: &'a str,
    /// The profile or configuration, as recorded in the manifest.
    pub profile: &'a str,
    /// True for a release build.
    pub release: bool,
    /// True if any drift from the lock is an error; `None`: as [`lock::LOCKED`] specifies.
    pub locked: Option<bool>,
    /// True if the linked file will be inspected, which shows more facts than declarations do.
    pub sees_linked: bool,
    /// Evidence of the front end that the package uses CUDA.
    pub intent: CudaIntent,
    /// Archs that a build script specifies.
    pub archs: Option<String>,
    /// The directory of the cuDNN headers that a build script specifies.
    pub headers: Option<PathBuf>,
    /// Facts that the build system has determined.
    pub given: Option<BuildSystemFacts>,
<<<<<<< OURS
    /// The C compiler that the build system has selected.
    pub tool: Option<&'a Tool>,
    /// The crates of the package that use CUDA.
    #[cfg(feature = "command")]
    pub crates: &'a [Crate],
||||||| BASE
    /// The C compiler that a build system has chosen.
    pub tool: Option<&'a Tool>,
    /// The crates in it that reach CUDA.
    #[cfg(feature = "command")]
    pub crates: &'a [Crate],
=======
    /// Whether a crate in it reaches CUDA.
    pub reaches_cuda: bool,
>>>>>>> THEIRS
}

/// The result of the checks of a build: the toolchain, and the findings with their severity in this build.
#[derive(Debug)]
pub struct BuildCheck {
    /// The policy that applies to it.
    pub policy: Policy,
    /// The toolchain that it is built with.
    pub toolchain: Toolchain,
    /// The findings.
    pub findings: Vec<Finding>,
    /// Findings that are deferred until the linked file shows whether they apply.
    pub deferred: Vec<Finding>,
    /// Entries of `[allow]` without a finding.
    pub stale_allows: Vec<Code>,
    /// The environment that was inspected, with the log of accessed variables and files.
    pub env: Env,
    /// The path of the project's lock, even if there is none; `None` for a package that cargo downloaded.
    pub lock: Option<PathBuf>,
<<<<<<< OURS
    /// The CUDA usage of its crates.
    #[cfg(feature = "command")]
    pub uses: Vec<CrateUse>,
    /// The findings about those.
    #[cfg(feature = "command")]
    pub of_crates: Vec<Finding>,
||||||| BASE
    /// What its crates would do.
    #[cfg(feature = "command")]
    pub uses: Vec<CrateUse>,
    /// What is wrong with those.
    #[cfg(feature = "command")]
    pub of_crates: Vec<Finding>,
=======
>>>>>>> THEIRS
}

impl BuildInputs<'_> {
    /// Runs the steps before linking: detects the toolchain, checks it, compares it with the lock and applies the
    /// policy.
    ///
    /// # Errors
    /// Returns a message if the build cannot be checked: a policy or lock that cannot be read, or a specified directory
    /// without the headers.
    pub fn check(&self, env: &Env) -> Result<BuildCheck, String> {
        let policy = self.read_policy()?;
        let toolchain = self.detect_toolchain(env, &policy, &[]);
        self.named_headers_are_used(&toolchain)?;
        let intent = match self.cuda_intent(&policy) {
            // A build system reports every target, whether it uses CUDA or not.
            CudaIntent::Build
                if toolchain.by == BuildSystem::CMake && toolchain.is_empty() && !policy.constrains_cuda() =>
            {
                CudaIntent::Nobody
            }
            intent => intent,
        };
        let mut findings = checks::build::check_build(&policy, &toolchain);
        if intent == CudaIntent::Owner {
            checks::build::downgrade_env_only_archs(&toolchain, &mut findings);
        }
        if !self.sees_linked {
            findings.extend(checks::fleet::check_declared_fleet(&policy, &toolchain));
        }
        let place = Lock::lock_path(self.top);
        let mut insist = false;
        if let Some(file) = &place {
            if let Some(lock) = Lock::read(file)? {
                // A build.rs tracks the variable for cargo. Without a lock, it does not matter.
                insist = self.locked.unwrap_or_else(|| lock::is_locked(env));
                findings.extend(lock::check_lock(&lock, file, self.package, &policy, &toolchain, self.lock_scope()));
            }
        }
        let mut weighed = self.apply_policy(&policy, findings);
        if insist {
            lock::enforce_locked(&mut weighed.findings, &policy);
        }
        // The linked file may show which of several toolkits the build used.
        let tells = self.sees_linked && self.intent == CudaIntent::Nobody && intent == CudaIntent::Owner;
        let tells = tells && toolchain.named_releases().len() > 1;
        let of_toolkit = |finding: &Finding| {
            matches!(finding.code, Code::ToolkitMixed | Code::CudartMixed | Code::ToolkitNotAllowed)
        };
<<<<<<< OURS
        #[cfg(feature = "command")]
        let drift = |finding: &Finding| lock::is_told_by_linked(finding, &toolchain);
        #[cfg(not(feature = "command"))]
        let drift = |_: &Finding| false;
        // The linker options alone may name the library, and an nvcc option its host compiler, so these findings are
        // deferred. A tool that passes all facts as options may not pass the objects when it seals, so nothing is
        // deferred for it.
||||||| BASE
        #[cfg(feature = "command")]
        let drift = |finding: &Finding| lock::is_told_by_linked(finding, &toolchain);
        #[cfg(not(feature = "command"))]
        let drift = |_: &Finding| false;
        // A library may be named to the linker alone, and nvcc's compiler by an option. Who is told all by options need not
        // name the objects later.
=======
        // A library may be named to the linker alone. Who is told all by options need not name the objects later.
>>>>>>> THEIRS
        let open = |finding: &Finding| {
            self.sees_linked && toolchain.by != BuildSystem::Options && is_library_absent(finding, &toolchain)
        };
        let later = |finding: &Finding| intent == CudaIntent::Nobody || tells && of_toolkit(finding) || open(finding);
        let (deferred, findings) = weighed.findings.into_iter().partition(later);
        Ok(BuildCheck {
            findings,
            deferred,
            stale_allows: weighed.stale_allows,
            lock: place,
            env: env.clone(),
            policy,
            toolchain,
        })
    }

    /// Returns the evidence that this build uses CUDA: from the front end, a crate of the graph, or the package's own
    /// policy. A policy for an entire workspace applies to the members that use CUDA.
    pub fn cuda_intent(&self, policy: &Policy) -> CudaIntent {
        if self.reaches_cuda {
            return CudaIntent::Build;
        }
        if self.intent == CudaIntent::Nobody && self.owns(policy) && policy.constrains_cuda() {
            CudaIntent::Owner
        } else {
            self.intent
        }
    }

    /// Returns true if the policy is this package's own: a file in its directory, or a table with its name.
    fn owns(&self, policy: &Policy) -> bool {
        let file = policy.path.as_deref().and_then(Path::parent);
        file == Some(self.folder) || policy.packages.contains_key(self.package)
    }

    /// Returns true if the package is guarded whatever its linked files show: it is about CUDA, or its own policy asks
    /// for a guard.
    pub fn wants_guard(&self, policy: &Policy) -> bool {
        self.cuda_intent(policy) != CudaIntent::Nobody || self.owns(policy) && policy.asks_for_guard()
    }

    /// Reads the policy: the specified file, or the nearest one from the package's directory up to the project's root.
    ///
    /// # Errors
    /// Returns a message with file and line if it cannot be read.
    pub fn read_policy(&self) -> Result<Policy, String> {
        let read = match &self.policy {
            Some(file) => Policy::from_file(file, self.package),
            None => Policy::for_package(self.folder, self.top, self.package),
        };
        read.map_err(|error| error.to_string())
    }

    /// Detects the toolchain of the build. `libraries` are directories that the linker searches before all others.
    pub fn detect_toolchain(&self, env: &Env, policy: &Policy, libraries: &[Sourced<PathBuf>]) -> Toolchain {
        // A directory from a build script has precedence over those of the machine.
        let variable = format!("{}_INCLUDE_DIR", CUDNN.key.to_uppercase());
        let include = self.headers.iter().map(|folder| (variable.clone(), folder.into()));
        let env = if self.headers.is_some() { env.with_variables(include) } else { env.clone() };
        let mut given = self.given.clone();
        if let Some(given) = &mut given {
            given.libraries.splice(0..0, libraries.iter().cloned());
        }
        Toolchain::detect(&DetectOptions {
            release: self.release,
            archs: self.archs.clone(),
            policy_archs: policy.arch_requests(),
            given,
            ..DetectOptions::new(&env, self.target)
        })
    }

    fn named_headers_are_used(&self, toolchain: &Toolchain) -> Result<(), String> {
        let by_system = self.given.as_ref().and_then(|given| given.library_include.as_ref());
        let by_system = by_system.map(|named| (format!("{} of {}", named.source, self.component.name), &named.value));
        let by_script =
            self.headers.as_ref().map(|folder| (format!("{}_include of the build script", CUDNN.key), folder));
        let Some((by, folder)) = by_system.or(by_script) else { return Ok(()) };
        if toolchain.library_headers_used().is_some_and(|headers| headers.path.starts_with(folder)) {
            return Ok(());
        }
        let key = CUDNN.key;
        Err(format!("{by} names {}, where there is no {key}_version.h or {key}.h", folder.display()))
    }

    /// Returns the parts of the lock that apply to this build.
    pub fn lock_scope(&self) -> Scope {
        match &self.given {
            // Only the parts that the target has are compared with the lock: without kernels it has neither archs nor
            // an nvcc with a host compiler, and without cuDNN there is no release that could differ.
            Some(given) => Scope {
                archs: given.compiles || given.archs.is_some(),
                host_compiler: given.compiles,
                library: true,
                only_what_it_has: true,
            },
            // The values that a build script specifies are already in the source.
            None => Scope {
                archs: self.archs.is_none(),
                host_compiler: true,
                library: self.headers.is_none(),
                only_what_it_has: false,
            },
        }
    }

    /// Applies the policy to findings about this component. This is the only function that sets their severity.
    pub fn apply_policy(&self, policy: &Policy, findings: Vec<Finding>) -> policy::PolicyResult {
        let component = self.component.to_string();
        let findings = findings.into_iter().map(|finding| finding.with_component(&component)).collect();
        policy.apply_to(findings, self.release)
    }
<<<<<<< OURS

    /// Compiles the guard as objects in this directory, which must exist. `shared` is a directory with compiled shims.
    ///
    /// # Errors
    /// Returns a message if the directory is not writable.
    pub fn compile_guard(
        &self,
        env: &Env,
        descriptor: &[u8; SIZE],
        folder: &Path,
        shared: Option<&Path>,
    ) -> Result<GuardObjects, String> {
        match self.tool {
            Some(tool) => guard::compile_with(tool, descriptor, &self.component, self.target, folder),
            None => guard::compile_guard(env, descriptor, &self.component, self.target, folder, shared),
        }
    }
||||||| BASE

    /// Its guard as objects in this folder, which must exist. `shared` is a directory with compiled shims.
    ///
    /// # Errors
    /// Where the folder cannot be written to.
    pub fn compile_guard(
        &self,
        env: &Env,
        descriptor: &[u8; SIZE],
        folder: &Path,
        shared: Option<&Path>,
    ) -> Result<GuardObjects, String> {
        match self.tool {
            Some(tool) => guard::compile_with(tool, descriptor, &self.component, self.target, folder),
            None => guard::compile_guard(env, descriptor, &self.component, self.target, folder, shared),
        }
    }
=======
>>>>>>> THEIRS
}

impl BuildCheck {
    /// Returns true if the build must fail.
    pub fn is_refused(&self) -> bool {
        fails_build(&self.findings)
    }

    /// Builds the manifest of this build.
    pub fn to_manifest(&self, facts: &BuildInputs<'_>) -> Manifest {
        let mut manifest =
            Manifest::from_build(facts.component.clone(), facts.target, facts.profile, &self.policy, &self.toolchain);
        // An allow entry without a finding is not recorded.
        manifest.allow.retain(|(code, _)| !self.stale_allows.contains(code));
        if !facts.sees_linked {
            manifest.requires.extend(self.declared_kernels());
        }
        manifest
    }

    /// Returns the requirements of the project's own archs if nothing will inspect the linked file. At startup, the
    /// shim uses the kernels of the program instead if it finds any; if they are plain data, it uses these rows.
    fn declared_kernels(&self) -> Vec<Requirement> {
        let isa = self.toolchain.toolkit_version().and_then(tables::ptx_isa).unwrap_or_default();
        let declared = self.toolchain.archs.declared.iter().find(|one| one.is_of_project());
        declared.map(|one| requirements::declared_rows(&one.targets, isa)).unwrap_or_default()
    }

    /// Encodes the descriptor of the note.
    ///
    /// # Errors
    /// Returns a message that names the entry that is too long.
    pub fn encode_note(&self, facts: &BuildInputs<'_>) -> Result<Box<[u8; SIZE]>, String> {
        note::encode(&self.to_manifest(facts))
    }
}

/// Returns true if the finding reports that the policy requires cuDNN and none was found.
pub fn is_library_absent(finding: &Finding, toolchain: &Toolchain) -> bool {
    let found = toolchain.library_headers_used().is_some() || toolchain.library_used().is_some();
    finding.code == Code::CudnnNotAllowed && !found
}

/// Returns true if any finding fails the build. Policy and lock have already set the severities.
pub fn fails_build(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}
<<<<<<< OURS

/// Steps after linking.
#[cfg(feature = "command")]
impl BuildInputs<'_> {
    /// Returns true if a linked file does not use CUDA and nothing indicates that it should. Such a file is not
    /// checked.
    ///
    /// # Errors
    /// Returns a message if the file cannot be read.
    pub fn has_nothing(&self, policy: &Policy, binary: &Binary, kernels: &Kernels) -> Result<bool, String> {
        Ok(self.cuda_intent(policy) == CudaIntent::Nobody && !kernels.has_kernels() && !binary.reaches_cuda()?)
    }

    /// Determines the cuDNN release of a linked file if the headers that it was compiled with are unknown. Uses the
    /// release of the library that the linker resolved, since one package contains both; else the first release that
    /// has all functions that the file binds. Also returns the finding about that.
    pub fn resolve_cudnn(
        &self,
        policy: &Policy,
        toolchain: &Toolchain,
        manifest: &Manifest,
        binary: &Binary,
        seen: &LinkEvidence,
    ) -> (Option<ResolvedCudnn>, Vec<Finding>) {
        let Some(soname) = binary.needed.iter().find(|name| CUDNN.is_named(name)) else { return (None, Vec::new()) };
        let library = seen.library_taken.clone();
        let known = library.as_ref().and_then(|library| Some((library.version.as_ref()?.value, &library.path)));
        let judged = toolchain.library_used().and_then(|library| library.path.canonicalize().ok());
        let is_judged = known.is_some_and(|(_, path)| judged.is_some() && path.canonicalize().ok() == judged);
        let by_policy = policy.library_built.map(|version| (version, KnownBy::Declared));
        if let Some(recorded) = &manifest.library {
            // The headers of the system and a library from another directory need not belong together.
            let other = known.is_some_and(|(version, _)| version != recorded.version && !is_judged);
            let of_system = manifest.library_known.is_none() && toolchain.has_library_headers_of_system() && other;
            if !of_system && manifest.library_known != Some(KnownBy::Declared) {
                return (None, Vec::new());
            }
        }
        let bound = binary.bound.iter().find(|bound| CUDNN.is_named(&bound.soname));
        let release = by_policy.or(known.map(|(version, _)| (version, KnownBy::Linked)));
        let release = release.or_else(|| Some((bound?.first, KnownBy::Symbols)));
        let taken = release.map(|(version, known)| {
            let built = BuiltWith { version, linkage: Linkage::Linked };
            ResolvedCudnn { version, known: Some(known), rows: built.requirement_rows(policy) }
        });
        let mut findings = Vec::new();
        if by_policy.is_none() {
            let values = Values::default().with("file", &self.component.name).with("library", soname);
            let values = values.with_known("found", known.map(|(version, _)| version));
            let values = values.with_known("path", known.map(|(_, path)| path.display()));
            let values = values
                .with_known("symbol", bound.map(|bound| &bound.name))
                .with_known("min", bound.map(|bound| bound.first));
            let by_cargo = if taken.is_some() {
                MessageTemplate::CudnnHeadersUnknown
            } else {
                MessageTemplate::CudnnHeadersUnknownNothing
            };
            let words = toolchain.by.choose(
                by_cargo,
                MessageTemplate::CudnnHeadersUnknownCMake,
                MessageTemplate::CudnnHeadersUnknownOptions,
            );
            findings.push(words.to_finding(&values));
        }
        // Check the library against policy and toolkit. If a build system selected it, that was already done.
        if let Some(library) = library.filter(|_| !is_judged && toolchain.by == BuildSystem::Cargo) {
            let taken = toolchain.with_library_taken(library);
            findings.extend(judge::build::recheck_linked_cudnn(policy, toolchain, &taken));
        }
        (taken, findings)
    }

    /// Checks the cuDNN headers that the code of a linked file was compiled with against the library that the linker
    /// resolved. They have precedence over other sources for the manifest; if there are several, the newest is
    /// recorded. Returns `None` if the build's files show no headers.
    pub fn compiled_with(
        &self,
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
            for finding in judge::build::recheck_linked_cudnn(policy, toolchain, &now) {
                if !findings.contains(&finding) {
                    findings.push(finding);
                }
            }
        }
        let built = BuiltWith { version: newest, linkage: Linkage::Linked };
        Some((ResolvedCudnn { version: newest, known: None, rows: built.requirement_rows(policy) }, findings))
    }

    /// Returns the deferred findings that apply to the linked file.
    pub fn deferred_findings(&self, judged: &BuildCheck, seen: &LinkEvidence, binary: &Binary) -> Vec<Finding> {
        let takes_library = binary.needed.iter().any(|name| CUDNN.is_named(name));
        let named = judged.toolchain.named_releases();
        let holds = |finding: &&Finding| {
            let found = takes_library && is_library_absent(finding, &judged.toolchain);
            judge::linked::still_holds(finding, seen, &named) && !lock::is_superseded(finding, seen) && !found
        };
        judged.deferred.iter().filter(holds).cloned().collect()
    }

    /// Checks the linked file against the policy and the recorded manifest, and applies the policy to the findings.
    /// `library` are findings about the cuDNN that it needs.
    pub fn judge_linked(
        &self,
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
        let mut findings = judge::linked::check_linked(policy, &manifest, linked);
        findings.extend(library);
        self.apply_policy(policy, findings).findings
    }

    /// Compares the linked file with the lock. `kept_back` are the deferred findings; `insist`: any drift is an error.
    ///
    /// # Errors
    /// Returns a message if the lock cannot be read.
    pub fn lock_drift(
        &self,
        policy: &Policy,
        recorded: &Manifest,
        linked: &Linked<'_>,
        kept_back: &[Finding],
        insist: bool,
    ) -> Result<Vec<Finding>, String> {
        let Some(file) = Lock::lock_path(self.top) else { return Ok(Vec::new()) };
        let Some(lock) = Lock::read(&file)? else { return Ok(Vec::new()) };
        let kept_back = kept_back.iter().any(|finding| finding.code == Code::LockDrift);
        let mut weighed =
            self.apply_policy(policy, lock::judge_linked(&lock, &file, recorded, linked, kept_back)).findings;
        if insist {
            lock::enforce_locked(&mut weighed, policy);
        }
        Ok(weighed)
    }

    /// Seals the notes in the file, or in `to`, which becomes a copy of it. Returns the resulting manifests. `seen` is
    /// the evidence of its toolkit; `None` if the file does not use CUDA. `judged` is the build, if its crates and
    /// variables apply to the file. The inner error is the reason why the file does not contain the guard that was
    /// passed to the linker, for [`Self::not_guarded`].
    ///
    /// # Errors
    /// Returns a message if the file cannot be read or written.
    pub fn seal_file(
        &self,
        binary: &Binary,
        to: Option<&Path>,
        kernels: &Kernels,
        judged: Option<&BuildCheck>,
        seen: Option<LinkEvidence>,
        taken: Option<ResolvedCudnn>,
    ) -> Result<Result<Vec<Manifest>, String>, String> {
        let uses = judged.map_or(&[][..], |judged| &judged.uses);
        let mut looked_up = Vec::new();
        for (symbol, cuda, by) in crates::driver_floors(uses) {
            if binary.holds_name(symbol)? {
                looked_up.push((cuda, by));
            }
        }
        let of_file = LinkObservation::from_binary(binary);
        // The file contains names of cuDNN functions, and the crate graph shows which crate looks them up.
        let opened = binary.linkage(CUDNN) == Linkage::Unknown && uses.iter().any(|one| one.opens_library(CUDNN.key));
        let observed = LinkObservation {
            looked_up,
            // cargo uses a file only if its compiler succeeded, and runs the compiler again otherwise.
            fresh: self.given.is_none(),
            nothing: seen.is_none(),
            archs_of_nobody: judged.is_some_and(|judged| judged.toolchain.archs.named_by().is_none()),
            seen: seen.unwrap_or_default(),
            taken,
            library: if opened { Linkage::Dlopened } else { of_file.library },
            component: Some(self.package.to_owned()),
            archs: Some(kernels.built_targets()),
            gpus: Some(kernels.requirement_rows()),
            ..of_file
        };
        let (sealed, manifests) = seal::seal_open(binary, to, &observed)?;
        if sealed.written + sealed.same == 0 {
            return Ok(Err(sealed.left.into_iter().next().unwrap_or_else(|| NOTE_MISSING.to_owned())));
        }
        Ok(Ok(manifests))
    }

    /// Returns the finding about a file without the guard that was passed to the linker, with the policy applied.
    pub fn not_guarded(&self, policy: &Policy, name: &str, file: &Path, why: &str) -> Vec<Finding> {
        let values = Values::default().with("file", name).with("path", file.display());
        let values = values.with("component", &self.component).with("why", why);
        self.apply_policy(policy, vec![MessageTemplate::GuardNotLinked.to_finding(&values)]).findings
    }
}
||||||| BASE

/// What was linked, as the doors come to know it.
#[cfg(feature = "command")]
impl BuildInputs<'_> {
    /// Whether a linked file, and everything that was said before it, has nothing of CUDA: it is not judged then.
    ///
    /// # Errors
    /// Why the file cannot be read.
    pub fn has_nothing(&self, policy: &Policy, binary: &Binary, kernels: &Kernels) -> Result<bool, String> {
        Ok(self.cuda_intent(policy) == CudaIntent::Nobody && !kernels.has_kernels() && !binary.reaches_cuda()?)
    }

    /// The guarded library that a linked file needs, where nobody can tell which headers it was compiled with: the release
    /// of the library that the linker took stands for theirs, since they come in one package; else the first release that
    /// has all the functions that the file binds. With it the finding that says so.
    pub fn resolve_cudnn(
        &self,
        policy: &Policy,
        toolchain: &Toolchain,
        manifest: &Manifest,
        binary: &Binary,
        seen: &LinkEvidence,
    ) -> (Option<ResolvedCudnn>, Vec<Finding>) {
        let Some(soname) = binary.needed.iter().find(|name| CUDNN.is_named(name)) else { return (None, Vec::new()) };
        let library = seen.library_taken.clone();
        let known = library.as_ref().and_then(|library| Some((library.version.as_ref()?.value, &library.path)));
        let judged = toolchain.library_used().and_then(|library| library.path.canonicalize().ok());
        let is_judged = known.is_some_and(|(_, path)| judged.is_some() && path.canonicalize().ok() == judged);
        let by_policy = policy.library_built.map(|version| (version, KnownBy::Declared));
        if let Some(recorded) = &manifest.library {
            // Headers of the system, and a library from elsewhere: these need not be its headers.
            let other = known.is_some_and(|(version, _)| version != recorded.version && !is_judged);
            let of_system = manifest.library_known.is_none() && toolchain.has_library_headers_of_system() && other;
            if !of_system && manifest.library_known != Some(KnownBy::Declared) {
                return (None, Vec::new());
            }
        }
        let bound = binary.bound.iter().find(|bound| CUDNN.is_named(&bound.soname));
        let release = by_policy.or(known.map(|(version, _)| (version, KnownBy::Linked)));
        let release = release.or_else(|| Some((bound?.first, KnownBy::Symbols)));
        let taken = release.map(|(version, known)| {
            let built = BuiltWith { version, linkage: Linkage::Linked };
            ResolvedCudnn { version, known: Some(known), rows: built.requirement_rows(policy) }
        });
        let mut findings = Vec::new();
        if by_policy.is_none() {
            let values = Values::default().with("file", &self.component.name).with("library", soname);
            let values = values.with_known("found", known.map(|(version, _)| version));
            let values = values.with_known("path", known.map(|(_, path)| path.display()));
            let values = values
                .with_known("symbol", bound.map(|bound| &bound.name))
                .with_known("min", bound.map(|bound| bound.first));
            let by_cargo = if taken.is_some() {
                MessageTemplate::CudnnHeadersUnknown
            } else {
                MessageTemplate::CudnnHeadersUnknownNothing
            };
            let words = toolchain.by.choose(
                by_cargo,
                MessageTemplate::CudnnHeadersUnknownCMake,
                MessageTemplate::CudnnHeadersUnknownOptions,
            );
            findings.push(words.to_finding(&values));
        }
        // What policy and toolkit say of it; a build system's way to it has been followed.
        if let Some(library) = library.filter(|_| !is_judged && toolchain.by == BuildSystem::Cargo) {
            let taken = toolchain.with_library_taken(library);
            findings.extend(judge::build::recheck_linked_cudnn(policy, toolchain, &taken));
        }
        (taken, findings)
    }

    /// The guarded library's headers that the code of a linked file was compiled with, where the build has left something that
    /// shows them: whatever is named elsewhere, the record is of these, and they are held against the library that the linker
    /// took. Of several the newest is recorded. Nothing where the file needs no such library, or nothing shows its headers.
    pub fn compiled_with(
        &self,
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
            for finding in judge::build::recheck_linked_cudnn(policy, toolchain, &now) {
                if !findings.contains(&finding) {
                    findings.push(finding);
                }
            }
        }
        let built = BuiltWith { version: newest, linkage: Linkage::Linked };
        Some((ResolvedCudnn { version: newest, known: None, rows: built.requirement_rows(policy) }, findings))
    }

    /// What was kept back before linking, and holds now that the file has shown what was used.
    pub fn deferred_findings(&self, judged: &BuildCheck, seen: &LinkEvidence, binary: &Binary) -> Vec<Finding> {
        let takes_library = binary.needed.iter().any(|name| CUDNN.is_named(name));
        let named = judged.toolchain.named_releases();
        let holds = |finding: &&Finding| {
            let found = takes_library && is_library_absent(finding, &judged.toolchain);
            judge::linked::still_holds(finding, seen, &named) && !lock::is_superseded(finding, seen) && !found
        };
        judged.deferred.iter().filter(holds).cloned().collect()
    }

    /// Holds the linked file against the policy and what was recorded before, and weighs. `library` is what is
    /// wrong with the guarded library that it turned out to need.
    pub fn judge_linked(
        &self,
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
        let mut findings = judge::linked::check_linked(policy, &manifest, linked);
        findings.extend(library);
        self.apply_policy(policy, findings).findings
    }

    /// Holds the linked file against the lock. `kept_back` is what was not said before linking, `insist` whether any drift is
    /// an error.
    ///
    /// # Errors
    /// Where the lock cannot be read.
    pub fn lock_drift(
        &self,
        policy: &Policy,
        recorded: &Manifest,
        linked: &Linked<'_>,
        kept_back: &[Finding],
        insist: bool,
    ) -> Result<Vec<Finding>, String> {
        let Some(file) = Lock::lock_path(self.top) else { return Ok(Vec::new()) };
        let Some(lock) = Lock::read(&file)? else { return Ok(Vec::new()) };
        let kept_back = kept_back.iter().any(|finding| finding.code == Code::LockDrift);
        let mut weighed =
            self.apply_policy(policy, lock::judge_linked(&lock, &file, recorded, linked, kept_back)).findings;
        if insist {
            lock::enforce_locked(&mut weighed, policy);
        }
        Ok(weighed)
    }

    /// Seals its notes in the file, or in `to`, which becomes a copy of it: the manifests that stand in it then. `seen` is what its tools tell; `None` where it has
    /// nothing of CUDA; `judged` is the build, where its crates and variables are its own. The inner error is why the file does not carry this package's guard, though one was given to the
    /// linker: what [`Self::not_guarded`] takes.
    ///
    /// # Errors
    /// Why the file cannot be read or written.
    pub fn seal_file(
        &self,
        binary: &Binary,
        to: Option<&Path>,
        kernels: &Kernels,
        judged: Option<&BuildCheck>,
        seen: Option<LinkEvidence>,
        taken: Option<ResolvedCudnn>,
    ) -> Result<Result<Vec<Manifest>, String>, String> {
        let uses = judged.map_or(&[][..], |judged| &judged.uses);
        let mut looked_up = Vec::new();
        for (symbol, cuda, by) in crates::driver_floors(uses) {
            if binary.holds_name(symbol)? {
                looked_up.push((cuda, by));
            }
        }
        let of_file = LinkObservation::from_binary(binary);
        // The file names functions of the library's, and who looks them up is known from the graph.
        let opened = binary.linkage(CUDNN) == Linkage::Unknown && uses.iter().any(|one| one.opens_library(CUDNN.key));
        let observed = LinkObservation {
            looked_up,
            // cargo hands a file on only where its compiler has ended well, and runs it again where it has not.
            fresh: self.given.is_none(),
            nothing: seen.is_none(),
            archs_of_nobody: judged.is_some_and(|judged| judged.toolchain.archs.named_by().is_none()),
            seen: seen.unwrap_or_default(),
            taken,
            library: if opened { Linkage::Dlopened } else { of_file.library },
            component: Some(self.package.to_owned()),
            archs: Some(kernels.built_targets()),
            gpus: Some(kernels.requirement_rows()),
            ..of_file
        };
        let (sealed, manifests) = seal::seal_open(binary, to, &observed)?;
        if sealed.written + sealed.same == 0 {
            return Ok(Err(sealed.left.into_iter().next().unwrap_or_else(|| NOTE_MISSING.to_owned())));
        }
        Ok(Ok(manifests))
    }

    /// What to say of a file that does not carry the guard which the linker was given, as it weighs in this build.
    pub fn not_guarded(&self, policy: &Policy, name: &str, file: &Path, why: &str) -> Vec<Finding> {
        let values = Values::default().with("file", name).with("path", file.display());
        let values = values.with("component", &self.component).with("why", why);
        self.apply_policy(policy, vec![MessageTemplate::GuardNotLinked.to_finding(&values)]).findings
    }
}
=======
>>>>>>> THEIRS
