//! The steps of a build: detect the toolchain, check it, compare it with the lock, apply the policy, write the
//! manifest, encode the note.
//!
//! Each front end (a build.rs, the command, CMake) passes its [`BuildInputs`] to [`BuildInputs::check`], prints the
//! findings in its own format, and links the note of [`BuildCheck::encode_note`]. The detection, the order of the
//! checks and the severity of each finding are the same for all of them. After linking, the file is checked against the
//! policy and its note is sealed.

mod error;
mod evidence;
mod inputs;

use std::path::PathBuf;

use crate::checks;
use crate::config::lock;
use crate::config::policy::{Policy, PolicyResult};
use crate::coverage::requirements;
use crate::finding::{Code, Finding, Severity};
use crate::knowledge::tables;
use crate::manifest::model::{Manifest, Requirement};
use crate::manifest::note::{self, EncodeError, SIZE};
use crate::sys::env::Env;
use crate::toolchain::{BuildSystem, Toolchain};

pub use error::BuildError;
pub(crate) use evidence::only_loads_cuda;
pub use evidence::{may_use_toolkit, names_cudnn, script_names_cuda};
use inputs::ProjectLock;
pub use inputs::{BuildInputs, CudaIntent, is_library_absent, needs_use_of_cudnn};

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
    /// Returns a message if the build cannot be checked: a policy or lock that cannot be read, a lock that `--locked` requires and
    /// that does not exist, or a specified directory without the headers.
    pub fn check(&self, env: &Env) -> Result<BuildCheck, BuildError> {
        let policy = self.read_policy()?;
        let toolchain = self.detect_toolchain(env, &policy, &[]);
        self.check_named_headers(&toolchain)?;
        let intent = self.intent_with(&policy, &toolchain);
        let lock_path = lock::Lock::lock_path(self.top);
        let lock = self.read_lock(lock_path.as_deref(), env)?;
        if lock.is_none() && intent != CudaIntent::Unstated {
            self.check_no_lock_required(lock_path.as_deref(), env)?;
        }

        let mut found = self.check_toolchain(&policy, &toolchain, intent);
        if let Some(lock) = &lock {
            found.extend(self.check_lock(lock, &policy, &toolchain));
        }
        let mut applied = self.apply_policy(&policy, found);
        if lock.is_some_and(|lock| lock.is_enforced) {
            lock::enforce_locked(&mut applied.findings, &policy);
        }
        let (deferred, findings) =
            applied.findings.into_iter().partition(|finding| self.awaits_linked(finding, &policy, &toolchain, intent));
        Ok(BuildCheck {
            findings,
            deferred,
            stale_allows: applied.stale_allows,
            lock: lock_path,
            env: env.clone(),
            policy,
            toolchain,
        })
    }

    /// Checks the toolchain against the policy and, if nothing will inspect the linked file, the declared archs against
    /// the fleet.
    fn check_toolchain(&self, policy: &Policy, toolchain: &Toolchain, intent: CudaIntent) -> Vec<Finding> {
        let mut findings = checks::build::check_build(policy, toolchain);
        if matches!(intent, CudaIntent::Owner | CudaIntent::RunTime) {
            checks::build::downgrade_env_only_archs(toolchain, &mut findings);
        }
        if !self.sees_linked {
            findings.extend(checks::fleet::check_declared_fleet(policy, toolchain));
        } else if toolchain.by == BuildSystem::CMake {
            findings.extend(checks::fleet::check_target_archs(policy, toolchain));
        }
        let lacks_cudnn = !self.sees_linked && toolchain.by == BuildSystem::Cargo && !self.shows_use_of_cudnn();
        for finding in &mut findings {
            let is_unused = match intent {
                CudaIntent::Unstated => !self.sees_linked,
                CudaIntent::RunTime => inputs::needs_use_of_toolkit(finding),
                _ => false,
            };
            if is_unused || lacks_cudnn && needs_use_of_cudnn(finding, policy) {
                finding.severity = Severity::Info;
            }
        }
        findings
    }

    fn check_lock(&self, project: &ProjectLock, policy: &Policy, toolchain: &Toolchain) -> Vec<Finding> {
        lock::check_lock(&project.lock, &project.path, self.package, policy, toolchain, self.lock_scope())
    }

    /// Applies the policy to findings about this component. This is the only function that sets their severity.
    pub fn apply_policy(&self, policy: &Policy, findings: Vec<Finding>) -> PolicyResult {
        let component = self.component.to_string();
        let findings = findings.into_iter().map(|finding| finding.with_component(&component)).collect::<Vec<_>>();
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
            manifest.requires.extend(self.declared_kernels(facts.ptx_isa));
        }
        manifest
    }

    /// Returns the requirements of the project's own archs if nothing will inspect the linked file. At startup, the
    /// shim uses the kernels of the program instead if it finds any; if they are plain data, it uses these rows.
    fn declared_kernels(&self, compiled: Option<(u32, u32)>) -> Vec<Requirement> {
        let isa = compiled.or_else(|| self.toolchain.toolkit_version().and_then(tables::ptx_isa)).unwrap_or_default();
        let declared = self.toolchain.archs.declared.iter().find(|one| one.is_of_project());
        declared.map(|one| requirements::declared_rows(&one.targets, isa)).unwrap_or_default()
    }

    /// Encodes the descriptor of the note.
    ///
    /// # Errors
    /// Returns a message that names the entry that is too long.
    pub fn encode_note(&self, facts: &BuildInputs<'_>) -> Result<Box<[u8; SIZE]>, EncodeError> {
        note::encode(&self.to_manifest(facts))
    }
}

/// Returns true if any finding fails the build. Policy and lock have already set the severities.
pub fn fails_build(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}
