//! The guard of a package for a target: the check of its toolchain, and its note and shim as objects that the wrapper
//! links.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::guard::Shim;
use crate::guard::stamp::Stamp;
use crate::knowledge::crates::Crate;
use crate::pipeline::{CheckedBuild, check_build};
use cudaguard::internal::env::Env;
use cudaguard::internal::file_error::FileError;
use cudaguard::internal::files::write_where_new;
use cudaguard::internal::finding::Severity;
use cudaguard::internal::guard::{self, GuardError, GuardObjects};
use cudaguard::internal::manifest::Component;
use cudaguard::internal::note::SIZE;
use cudaguard::internal::pipeline::{BuildInputs, CudaIntent};
use cudaguard::internal::policy::Policy;
use cudaguard::internal::rebuild_stamp;

use crate::cargo::build_context::key_time;
use crate::cargo::project::{Package, Project, shows_use_of_cuda};
use crate::cli::platform::symlink;
use crate::cli::report::{self, CliError, Level};

/// Returns the inputs of a package of this project that are known before cargo builds it. Its crates are not resolved
/// yet.
pub(crate) fn build_inputs<'a>(project: &'a Project, package: &'a Package, target: &'a str) -> BuildInputs<'a> {
    BuildInputs {
        component: Component { name: package.name.clone(), version: package.version.clone() },
        package: &package.name,
        dir: &package.dir,
        top: &project.top,
        policy: None,
        target,
        profile: &project.profile,
        release: project.release,
        locked: Some(project.locked),
        sees_linked: true,
        intent: if package.embeds { CudaIntent::Owner } else { CudaIntent::Unstated },
        archs: None,
        ptx_isa: None,
        headers: None,
        given: None,
        by_crates: CudaIntent::Unstated,
        uses_cudnn: false,
    }
}

/// Returns what the crates of the package in this directory show about its use of CUDA.
pub(crate) fn intent_of_crates(crates: &[Crate], package: &Path) -> CudaIntent {
    if !crates.iter().any(Crate::reaches_cuda) {
        CudaIntent::Unstated
    } else if crates.iter().any(Crate::may_use_toolkit) || shows_use_of_cuda(package) {
        CudaIntent::Build
    } else {
        CudaIntent::RunTime
    }
}

/// Detects and checks the toolchain. The variables of cargo's configuration override the environment.
pub(crate) fn check_package(
    env: &Env,
    facts: &BuildInputs<'_>,
    crates: &[Crate],
    configured: &BTreeMap<String, OsString>,
) -> Result<CheckedBuild, CliError> {
    // cargo runs a build script in the directory of its package, and the stamp must contain only the inputs that were read
    // for this package.
    let env = env.in_dir(facts.dir);
    let env = if configured.is_empty() { env } else { env.with_variables(configured.clone()) };
    let judged = check_build(facts, crates, &env)?;
    report::log(Level::Info, || {
        let policy = judged.policy.path.as_ref().map_or("default policy".to_owned(), |path| path.display().to_string());
        let reason = match facts.intent.max(facts.by_crates) {
            CudaIntent::Owner => "its build.rs calls embed!()",
            CudaIntent::Build => "its sources or crates use CUDA",
            CudaIntent::RunTime => "its crates load CUDA at run time",
            CudaIntent::Unstated => "the toolchain counts only if the package reaches CUDA",
        };
        let toolkit = judged.toolchain.sourced_toolkit_version();
        let toolkit =
            toolkit.map_or("no toolkit".to_owned(), |toolkit| format!("CUDA {} by {}", toolkit.value, toolkit.source));
        format!("checked {} for {}, {}: {policy}; {toolkit}; {reason}", facts.component, facts.target, facts.profile)
    });
    Ok(judged)
}

/// Returns the directory for the guard of a package.
fn guard_dir(facts: &BuildInputs<'_>, own: &Path) -> PathBuf {
    let Component { name, version } = &facts.component;
    own.join("guards").join(facts.target).join(facts.profile).join(format!("{name}-{version}"))
}

/// A guard that was written for the linker.
#[derive(Debug)]
pub(crate) struct Guard {
    /// The file that contains the inputs of the guard. It is rewritten if they change, so that cargo links again.
    pub(crate) key: PathBuf,
    /// The objects of the guard, or the reason why there are none.
    pub(crate) guarded: GuardObjects,
}

/// The shims of a build: one object for each target, shared by all packages, profiles and policies.
#[derive(Debug)]
pub(crate) struct Shims {
    dir: PathBuf,
    quiet: bool,
    /// The shim of each requested target, or the reason why there is none.
    by_target: BTreeMap<String, Result<Shim, GuardError>>,
}

impl Shims {
    /// Creates an empty set. `own` is the directory of cudaguard in the target directory.
    pub(crate) fn new(own: &Path, quiet: bool) -> Self {
        Self { dir: own.join(SHIMS), quiet, by_target: BTreeMap::new() }
    }

    /// Finds the compiler of a target, and compiles its shim unless it exists.
    fn compile(&self, env: &Env, target: &str) -> Result<Shim, GuardError> {
        let shim = Shim::new(env, target, &self.dir)?;
        if !self.quiet && !shim.is_compiled() {
            report::print_line(&format!("   Compiling cudaguard's start-up check for {target}"));
        }
        shim.compile()?;
        Ok(shim)
    }

    /// Writes the note and the shim of a package into `dir`. The shim is a link to the shared object.
    fn guard(
        &mut self,
        facts: &BuildInputs<'_>,
        env: &Env,
        descriptor: &[u8; SIZE],
        dir: &Path,
    ) -> Result<GuardObjects, FileError> {
        if !self.by_target.contains_key(facts.target) {
            let shim = self.compile(env, facts.target);
            self.by_target.insert(facts.target.to_owned(), shim);
        }
        let shim = self.by_target[facts.target].clone();
        GuardObjects::from_compiled(shim.and_then(|shim| write_objects(&shim, descriptor, &facts.component, dir)))
    }
}

/// Writes the note of this descriptor and the link to the shim.
fn write_objects(
    shim: &Shim,
    descriptor: &[u8; SIZE],
    component: &Component,
    dir: &Path,
) -> Result<(PathBuf, PathBuf), GuardError> {
    let (object, note) = (shim.compile()?, shim.note(descriptor, component, dir)?);
    let link = dir.join(SHIM);
    let _ = fs::remove_file(&link);
    symlink(&object, &link).map_err(|error| FileError::create(&link, error))?;
    Ok((note, link))
}

/// Writes the guard of a package, unless it is ready. `during` is set while cargo builds.
pub(crate) fn make_guard(
    facts: &BuildInputs<'_>,
    judged: &CheckedBuild,
    own: &Path,
    during: Option<&Env>,
    shims: &mut Shims,
) -> Result<Guard, CliError> {
    let descriptor = judged.encode_note(facts)?;
    let dir = guard_dir(facts, own);
    let key = dir.join(GUARD);
    let mut content = descriptor.to_vec();
    content.extend_from_slice(guard::source_digest().to_string().as_bytes());
    content.push(u8::from(facts.wants_guard(&judged.policy)));
    content.extend_from_slice(held_against(&judged.policy).as_bytes());
    content.extend(judged.lock.iter().flat_map(|lock| fs::read(lock).unwrap_or_default()));
    for finding in judged.deferred.iter().filter(|finding| finding.severity > Severity::Info) {
        content.extend_from_slice(finding.render().as_bytes());
    }
    let unchanged = fs::read(&key).is_ok_and(|old| old == content);
    if let Some(guarded) = read_ready_guard(&dir).filter(|_| unchanged) {
        return Ok(Guard { key, guarded });
    }
    // The files are written to another directory and moved into place, so that a linker that reads the old files is
    // not disturbed.
    let workshop = dir.join(format!(".{}", std::process::id()));
    fs::create_dir_all(&workshop).map_err(|error| FileError::create(&workshop, error))?;
    let made = shims.guard(facts, &judged.env, &descriptor, &workshop).and_then(|guarded| {
        if let GuardObjects::Objects { note, shim } = &guarded {
            for (from, to) in [(note, dir.join(NOTE)), (shim, dir.join(SHIM))] {
                fs::rename(from, &to).map_err(|error| FileError::write(&to, error))?;
            }
        }
        Ok(guarded)
    });
    let _ = fs::remove_dir_all(&workshop);
    let guarded = match made? {
        GuardObjects::Objects { .. } => read_ready_guard(&dir)
            .ok_or_else(|| CliError::operational("the objects of the guard were removed during the build"))?,
        unguarded @ GuardObjects::Unguarded(_) => {
            let _ = fs::remove_file(dir.join(NOTE));
            // The key contains the reason too: cargo has to link again when a guard becomes possible.
            content.extend_from_slice(format!("{unguarded:?}").as_bytes());
            unguarded
        }
    };
    write_key(&key, &content, during)?;
    Ok(Guard { key, guarded })
}

/// Returns true if a file of this package was linked with a guard before.
pub(crate) fn exists(facts: &BuildInputs<'_>, own: &Path) -> bool {
    guard_dir(facts, own).join(GUARD).is_file()
}

/// Writes the file that targets without a guard depend on, and returns its path. Its content changes when the package
/// must be guarded.
pub(crate) fn unguarded_key(facts: &BuildInputs<'_>, own: &Path, env: &Env) -> Result<PathBuf, CliError> {
    let key = guard_dir(facts, own).join(NO_GUARD);
    write_key(&key, b"unguarded", Some(env))?;
    Ok(key)
}

/// Makes cargo link the targets of this package again that were linked without a guard.
pub(crate) fn expire_unguarded(facts: &BuildInputs<'_>, own: &Path) -> Result<(), CliError> {
    let key = guard_dir(facts, own).join(NO_GUARD);
    if key.is_file() { write_key(&key, b"guarded", None) } else { Ok(()) }
}

fn write_key(key: &Path, content: &[u8], during: Option<&Env>) -> Result<(), CliError> {
    let time = during.and_then(|env| key_time(env, !key.exists()));
    if !write_where_new(key, content)? {
        return Ok(());
    }
    let Some(time) = time else { return Ok(()) };
    let set = fs::File::options().write(true).open(key).and_then(|file| file.set_modified(time));
    set.map_err(|error| CliError::operational(format_args!("cannot set the time of {}: {error}", key.display())))
}

/// Returns true if the stored guard was written for the current toolchain. The files that were linked with it then show
/// what a build would use now.
pub(crate) fn is_current(facts: &BuildInputs<'_>, judged: &CheckedBuild, own: &Path) -> bool {
    let kept = fs::read(guard_dir(facts, own).join(GUARD));
    let descriptor = judged.encode_note(facts);
    kept.is_ok_and(|kept| descriptor.is_ok_and(|descriptor| kept.starts_with(&descriptor[..])))
}

/// Returns the parts of a policy that apply to the linked file and are not in its note. If they change, the file is
/// linked and checked again.
fn held_against(policy: &Policy) -> String {
    let Policy { archs, arch_words, fleet, driver_fleet, partial_refuse, library_linkage, release, dev, allow, .. } =
        policy;
    let Policy { toolkit, library, library_built, library_fleet, library_patch_refuse, .. } = policy;
    let [toolkit, library] = [toolkit, library].map(|require| require.as_ref().map(|require| &require.text));
    format!(
        "{archs:?} {arch_words:?} {fleet:?} {driver_fleet:?} {partial_refuse} {library_linkage:?} {release:?} {dev:?} {allow:?} \
         {toolkit:?} {library:?} {library_built:?} {library_fleet:?} {library_patch_refuse}"
    )
}

const GUARD: &str = "guard";
const NO_GUARD: &str = "unguarded";
/// The directory of compiled shims. `embed!()` finds it next to the stamps.
const SHIMS: &str = "shims";
const NOTE: &str = "cudaguard-note.o";
const SHIM: &str = "cudaguard-shim.o";

fn read_ready_guard(dir: &Path) -> Option<GuardObjects> {
    let (note, shim) = (dir.join(NOTE), dir.join(SHIM));
    (note.is_file() && shim.is_file()).then_some(GuardObjects::Objects { note, shim })
}

/// Writes the stamp that `embed!()` in the build script of this package announces. If an input of the guard has changed
/// since, cargo runs the script again.
pub(crate) fn write_stamp(facts: &BuildInputs<'_>, judged: &CheckedBuild, stamps: &Path) -> Result<(), CliError> {
    let file = rebuild_stamp::digest_file(stamps, &facts.component);
    Stamp::from_toolchain(&judged.env, &judged.policy, judged.lock.as_deref(), &judged.toolchain)
        .write_if_changed(&file)?;
    Ok(())
}
