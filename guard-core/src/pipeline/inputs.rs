//! The facts that a front end knows about a build, and the conclusions from them alone.

use std::path::{Path, PathBuf};

use super::BuildError;
use super::evidence::names_cudnn;
use crate::config::ConfigError;
use crate::config::lock::{self, Lock, LockScope};
use crate::config::policy::Policy;
use crate::finding::{Code, Finding, Severity};
use crate::knowledge::cudnn;
use crate::manifest::model::{Component, Linkage};
use crate::sys::env::Env;
use crate::toolchain::{BuildSystem, BuildSystemFacts, DetectOptions, Sourced, Toolchain};

/// Evidence that a package uses CUDA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CudaIntent {
    /// No evidence: the installed toolchain is not checked, unless the linked file uses CUDA.
    #[default]
    Unstated,
    /// The user declared that it uses CUDA, but not whether anything is compiled for GPUs.
    Owner,
    /// Its crates load CUDA at run time, and nothing shows that the build uses a toolkit.
    RunTime,
    /// The build shows it: kernels among the sources, a crate that uses CUDA, or a build system that knows.
    Build,
}

/// The facts that a front end knows about a build.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "front ends know each of these by itself")]
pub struct BuildInputs<'a> {
    /// The component that findings and note refer to.
    pub component: Component,
    /// The package's name: policy and lock may have sections for it.
    pub package: &'a str,
    /// The package's directory.
    pub dir: &'a Path,
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
    /// Archs that a build script specifies, or those of the PTX that it compiled.
    pub archs: Option<String>,
    /// The newest ISA of that PTX.
    pub ptx_isa: Option<(u32, u32)>,
    /// The directory of the cuDNN headers that a build script specifies.
    pub headers: Option<PathBuf>,
    /// Facts that the build system has determined.
    pub given: Option<BuildSystemFacts>,
    /// Evidence of the crates in the build.
    pub by_crates: CudaIntent,
    /// Set if a crate in the build uses cuDNN.
    pub uses_cudnn: bool,
}

/// The lock of a project.
pub(super) struct ProjectLock {
    pub(super) lock: Lock,
    pub(super) path: PathBuf,
    /// Set if any drift is an error.
    pub(super) is_enforced: bool,
}

impl BuildInputs<'_> {
    /// Returns the evidence that this build uses CUDA: from the front end, a crate of the graph, or the package's own
    /// policy. A policy for an entire workspace applies to the members that use CUDA.
    pub fn cuda_intent(&self, policy: &Policy) -> CudaIntent {
        let evident = self.intent.max(self.by_crates);
        if evident == CudaIntent::Unstated && self.owns(policy) && policy.constrains_cuda() {
            CudaIntent::Owner
        } else {
            evident
        }
    }

    /// Returns true if the policy is this package's own: a file in its directory, or a table with its name.
    fn owns(&self, policy: &Policy) -> bool {
        let file = policy.path.as_deref().and_then(Path::parent);
        file == Some(self.dir) || policy.packages.contains_key(self.package)
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
    pub fn read_policy(&self) -> Result<Policy, ConfigError> {
        match &self.policy {
            Some(file) => Policy::from_file(file, self.package),
            None => Policy::for_package(self.dir, self.top, self.package),
        }
    }

    /// Detects the toolchain of the build. `libraries` are directories that the linker searches before all others.
    pub fn detect_toolchain(&self, env: &Env, policy: &Policy, libraries: &[Sourced<PathBuf>]) -> Toolchain {
        // A directory from a build script has precedence over those of the machine.
        let env = match &self.headers {
            Some(dir) => env.with_variables([(format!("{}_INCLUDE_DIR", cudnn::KEY.to_uppercase()), dir.into())]),
            None => env.clone(),
        };
        let mut given = self.given.clone();
        if let Some(given) = &mut given {
            given.libraries = [libraries, &given.libraries].concat();
        }
        Toolchain::detect(&DetectOptions {
            release: self.release,
            archs: self.archs.clone(),
            policy_archs: policy.arch_requests(),
            given,
            ..DetectOptions::new(&env, self.target)
        })
    }

    /// Checks that the build uses the directory of cuDNN headers that a build script or build system names.
    ///
    /// # Errors
    /// Returns a message if that directory contains no header.
    pub(super) fn check_named_headers(&self, toolchain: &Toolchain) -> Result<(), BuildError> {
        let by_system = self.given.as_ref().and_then(|given| given.library_include.as_ref());
        let by_system = by_system.map(|named| (format!("{} of {}", named.source, self.component.name), &named.value));
        let by_script = self.headers.as_ref().map(|dir| (format!("{}_include of the build script", cudnn::KEY), dir));
        let Some((by, dir)) = by_system.or(by_script) else { return Ok(()) };
        if toolchain.library_headers_used().is_some_and(|headers| headers.path.starts_with(dir)) {
            return Ok(());
        }
        Err(BuildError::NoHeaders { by, dir: dir.clone() })
    }

    /// Returns the parts of the lock that apply to this build.
    pub fn lock_scope(&self) -> LockScope {
        match &self.given {
            // Only the parts that the target has are compared with the lock: without kernels it has neither archs nor
            // an nvcc with a host compiler, and without cuDNN there is no release that could differ.
            Some(given) => LockScope {
                archs: given.compiles || given.archs.is_some(),
                host_compiler: given.compiles,
                library: true,
                only_what_it_has: true,
            },
            // The values that a build script specifies are already in the source.
            None => LockScope {
                archs: self.archs.is_none(),
                host_compiler: true,
                library: self.headers.is_none(),
                only_what_it_has: false,
            },
        }
    }

    /// Reads the lock at this path, if the project has one.
    ///
    /// # Errors
    /// Returns a message if it cannot be read.
    pub(super) fn read_lock(&self, path: Option<&Path>, env: &Env) -> Result<Option<ProjectLock>, ConfigError> {
        let Some(path) = path else { return Ok(None) };
        let Some(lock) = Lock::read(path)? else { return Ok(None) };
        Ok(Some(ProjectLock { lock, path: path.to_owned(), is_enforced: self.is_lock_enforced(env) }))
    }

    /// Returns true if any drift from the lock is an error. A build.rs tracks the variable for cargo.
    fn is_lock_enforced(&self, env: &Env) -> bool {
        self.locked.unwrap_or_else(|| lock::is_locked(env))
    }

    /// Checks that a project without a lock does not require one.
    ///
    /// # Errors
    /// Returns a message with the commands that write the lock.
    pub(super) fn check_no_lock_required(&self, path: Option<&Path>, env: &Env) -> Result<(), BuildError> {
        let Some(path) = path.filter(|_| self.is_lock_enforced(env)) else { return Ok(()) };
        let write = match &self.given {
            Some(_) => "configure with -DCUDAGUARD_LOCKED=OFF and build the target cudaguard-lock",
            None => "run `cargo cudaguard lock`",
        };
        Err(BuildError::NoLock { path: path.to_owned(), write })
    }

    /// Returns the evidence that this build uses CUDA, if the toolchain is known. A build system reports every target,
    /// whether it uses CUDA or not.
    pub(super) fn intent_with(&self, policy: &Policy, toolchain: &Toolchain) -> CudaIntent {
        match self.cuda_intent(policy) {
            CudaIntent::Build
                if toolchain.by == BuildSystem::CMake && toolchain.is_empty() && !policy.constrains_cuda() =>
            {
                CudaIntent::Unstated
            }
            intent => intent,
        }
    }

    /// Returns true if the project shows that the build uses cuDNN.
    pub(super) fn shows_use_of_cudnn(&self) -> bool {
        self.uses_cudnn || self.headers.is_some() || names_cudnn(self.dir) || names_cudnn(self.top)
    }

    /// Returns true if only the linked file shows whether this finding applies.
    pub(super) fn awaits_linked(
        &self,
        finding: &Finding,
        policy: &Policy,
        toolchain: &Toolchain,
        intent: CudaIntent,
    ) -> bool {
        if intent == CudaIntent::Unstated || !self.sees_linked {
            return self.sees_linked;
        }
        // The linked file may show which of several toolkits the build used.
        let is_declared = self.intent == CudaIntent::Unstated && intent == CudaIntent::Owner;
        let is_of_toolkit = matches!(finding.code, Code::ToolkitMixed | Code::CudartMixed | Code::ToolkitNotAllowed);
        let is_one_of_several = is_declared && is_of_toolkit && toolchain.named_releases().len() > 1;
        // Possibly only the linker call names the library, so the finding waits for it. A build that passes all facts
        // as options may never pass its objects.
        let is_library_open = toolchain.by != BuildSystem::Options && is_library_absent(finding, toolchain);
        let is_unused =
            toolchain.by == BuildSystem::Cargo && self.headers.is_none() && needs_use_of_cudnn(finding, policy);
        is_one_of_several || is_library_open || is_unused
    }
}

/// Returns true if the finding applies only to a build that uses a toolkit.
pub(super) const fn needs_use_of_toolkit(finding: &Finding) -> bool {
    matches!(
        finding.code,
        Code::ToolkitUnreadable
            | Code::ToolkitMixed
            | Code::CudartMixed
            | Code::HostCompilerRejected
            | Code::MathHeadersConflict
    )
}

/// Returns true if the finding applies only to a build that uses cuDNN, and the policy does not mention cuDNN: a variable that
/// names an installed cuDNN is no use.
pub fn needs_use_of_cudnn(finding: &Finding, policy: &Policy) -> bool {
    let is_open = policy.library.is_none()
        && policy.library_fleet.is_none()
        && policy.library_linkage.is_none_or(|linkage| linkage == Linkage::Unknown);
    is_open
        && finding.severity > Severity::Info
        && matches!(
            finding.code,
            Code::CudnnMixed
                | Code::CudnnForOtherCuda
                | Code::CudnnIncomplete
                | Code::CudnnUnreadable
                | Code::CudnnLeftGpu
                | Code::CudnnBeforeGpu
        )
}

/// Returns true if the finding reports that the policy requires cuDNN and none was found.
pub fn is_library_absent(finding: &Finding, toolchain: &Toolchain) -> bool {
    let found = toolchain.library_headers_used().is_some() || toolchain.library_used().is_some();
    finding.code == Code::CudnnNotAllowed && !found
}
