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

/// Evidence that a package uses CUDA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CudaIntent {
    /// No evidence: the installed toolchain is not checked, unless the linked file uses CUDA.
    #[default]
    Unstated,
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
    /// Set if a crate in the build reaches CUDA.
    pub reaches_cuda: bool,
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
                CudaIntent::Unstated
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
        let tells = self.sees_linked && self.intent == CudaIntent::Unstated && intent == CudaIntent::Owner;
        let tells = tells && toolchain.named_releases().len() > 1;
        let of_toolkit = |finding: &Finding| {
            matches!(finding.code, Code::ToolkitMixed | Code::CudartMixed | Code::ToolkitNotAllowed)
        };
        // Possibly only the linker call names the library, so the finding waits for it. A build that passes all facts as options
        // may never pass its objects.
        let open = |finding: &Finding| {
            self.sees_linked && toolchain.by != BuildSystem::Options && is_library_absent(finding, &toolchain)
        };
        let later = |finding: &Finding| intent == CudaIntent::Unstated || tells && of_toolkit(finding) || open(finding);
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
        if self.intent == CudaIntent::Unstated && self.owns(policy) && policy.constrains_cuda() {
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

    /// Returns true if the package is guarded independently of its linked files: it is about CUDA, or its own policy requires a
    /// guard.
    pub fn wants_guard(&self, policy: &Policy) -> bool {
        self.cuda_intent(policy) != CudaIntent::Unstated || self.owns(policy) && policy.asks_for_guard()
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
        Err(format!("{by} names {}, which contains no {key}_version.h or {key}.h", folder.display()))
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
