//! The guard of a package for a target: its toolchain judged, its note and shim as objects that the wrapper links.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cudaguard::crates::{self, Crate, Use};
use cudaguard::env::Env;
use cudaguard::files::write_where_new;
use cudaguard::finding::{Code, Finding};
use cudaguard::guard::{self, Guarded};
use cudaguard::lock::{self, BySource, Lock};
use cudaguard::manifest::{Component, Manifest};
use cudaguard::policy::Policy;
use cudaguard::toolchain::{Request, Toolchain};
use cudaguard::{judge, note, stamp};

use crate::project::{Package, Project};

/// Which guard is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Order<'a> {
    /// The package.
    pub(crate) component: Component,
    /// Its folder.
    pub(crate) dir: &'a Path,
    /// The workspace's root: no policy is looked for above it.
    pub(crate) top: &'a Path,
    /// The target triple.
    pub(crate) target: &'a str,
    /// The profile, as cargo names it.
    pub(crate) profile: &'a str,
    /// Whether that is a release one.
    pub(crate) release: bool,
    /// cargo was told `--locked` or `--frozen`.
    pub(crate) locked: bool,
    /// Nothing will be linked: the fleet is held against what is declared.
    pub(crate) only_declared: bool,
    /// The crates that reach CUDA in it.
    pub(crate) crates: &'a [Crate],
}

/// What a package is built with, and what is wrong with that.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) policy: Policy,
    pub(crate) toolchain: Toolchain,
    pub(crate) findings: Vec<Finding>,
    /// What its crates would do.
    pub(crate) uses: Vec<Use>,
    /// What is wrong with that.
    pub(crate) of_crates: Vec<Finding>,
    /// Where the workspace's lock stands, or would stand.
    lock: Option<PathBuf>,
    /// Allows that nothing was found for.
    pub(crate) stale_allows: Vec<Code>,
    /// The environment that was looked at, with the log of what was read.
    env: Env,
}

impl<'a> Order<'a> {
    /// The order for a package of this project, whose crates nobody has asked for yet.
    pub(crate) fn of(project: &'a Project, package: &'a Package, target: &'a str) -> Self {
        Self {
            component: Component { name: package.name.clone(), version: package.version.clone() },
            dir: &package.dir,
            top: &project.top,
            target,
            profile: &project.profile,
            release: project.release,
            locked: project.locked,
            only_declared: false,
            crates: &[],
        }
    }

    /// Looks at the toolchain, with these variables of cargo's configuration laid over the process's own, and judges it.
    pub(crate) fn judge(&self, configured: &BTreeMap<String, OsString>) -> Result<Judged, String> {
        let env = match Env::of_process() {
            env if configured.is_empty() => env,
            env => env.with(configured.clone()),
        };
        let policy = Policy::of_package(self.dir, self.top, &self.component.name).map_err(|error| error.to_string())?;
        let request =
            Request { release: self.release, policy_archs: policy.arch_requests(), ..Request::new(&env, self.target) };
        let toolchain = Toolchain::look(&request);
        let component = self.component.to_string();
        let mut findings = judge::build::judge(&policy, &toolchain);
        if self.only_declared {
            findings.extend(judge::fleet::declared(&policy, &toolchain));
        }
        let place = Lock::place(self.top);
        if let Some(file) = &place {
            if let Some(lock) = Lock::read(file)? {
                let name = &self.component.name;
                findings.extend(lock::judge(&lock, file, name, &policy, &toolchain, BySource::default()));
            }
        }
        let mut judged = policy.apply(findings, self.release);
        if self.locked {
            lock::insist(&mut judged.findings, &policy);
        }
        let findings = judged.findings.into_iter().map(|one| one.of(&component)).collect();
        let uses = crates::look(&env, self.crates, &toolchain, Path::new("/"), !policy.fleet.is_empty());
        let of_crates = policy.apply(crates::judge(&policy, &toolchain, &uses), self.release).findings;
        Ok(Judged {
            findings,
            of_crates: of_crates.into_iter().map(|one| one.of(&component)).collect(),
            uses,
            policy,
            toolchain,
            lock: place,
            stale_allows: judged.stale_allows,
            env,
        })
    }

    /// Where the guard of this order lies.
    pub(crate) fn folder(&self, own: &Path) -> PathBuf {
        let Component { name, version } = &self.component;
        own.join("guards").join(self.target).join(self.profile).join(format!("{name}-{version}"))
    }
}

/// A guard that lies ready.
#[derive(Debug)]
pub(crate) struct Guard {
    /// What it consists of: a file that is rewritten where its content changes, for cargo to see.
    pub(crate) key: PathBuf,
    /// Its objects, or why there are none.
    pub(crate) guarded: Guarded,
}

/// Makes the guard of this order, unless it lies ready just so. `since` is the time a new one is given: what is made
/// while cargo already builds must not look newer than that build.
pub(crate) fn make(order: &Order<'_>, judged: &Judged, own: &Path, since: Option<SystemTime>) -> Result<Guard, String> {
    let mut manifest =
        Manifest::of(order.component.clone(), order.target, order.profile, &judged.policy, &judged.toolchain);
    // An allow whose reason has gone is no fact of this build.
    manifest.allow.retain(|(code, _)| !judged.stale_allows.contains(code));
    manifest.opens = crates::dlopen::opens(&judged.uses);
    let descriptor = note::encode(&manifest)?;
    let folder = order.folder(own);
    let mut content = descriptor.to_vec();
    content.extend_from_slice(guard::source().as_bytes());
    content.extend_from_slice(held_against(&judged.policy).as_bytes());
    let key = folder.join("guard");
    let unchanged = fs::read(&key).is_ok_and(|old| old == content);
    if let Some(guarded) = ready(&folder).filter(|_| unchanged) {
        return Ok(Guard { key, guarded });
    }
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    // Compiled elsewhere and moved into place, so that a linker that reads the old ones meanwhile is not disturbed.
    let workshop = folder.join(format!(".{}", std::process::id()));
    fs::create_dir_all(&workshop).map_err(|error| format!("cannot make {}: {error}", workshop.display()))?;
    let made =
        guard::compile(&judged.env, &descriptor, &order.component, order.target, &workshop).and_then(|guarded| {
            if let Guarded::Objects { note, shim } = &guarded {
                let place = |from: &Path, to: PathBuf| {
                    fs::rename(from, &to).map_err(|error| format!("cannot write {}: {error}", to.display()))
                };
                place(note, folder.join(NOTE)).and_then(|()| place(shim, folder.join(SHIM)))?;
            }
            Ok(guarded)
        });
    let _ = fs::remove_dir_all(&workshop);
    let guarded = match made? {
        Guarded::Objects { .. } => ready(&folder).ok_or("the guard's objects have gone away meanwhile")?,
        unguarded @ Guarded::Unguarded(_) => {
            let _ = fs::remove_file(folder.join(NOTE));
            // The reason stands in the key too: should a guard become possible, cargo has to link again.
            content.extend_from_slice(format!("{unguarded:?}").as_bytes());
            unguarded
        }
    };
    if write_where_new(&key, &content)? {
        set_time(&key, since).map_err(|error| format!("cannot set the time of {}: {error}", key.display()))?;
    }
    Ok(Guard { key, guarded })
}

/// What of a policy the linked file is held against, beyond what its note says: with another one it is linked anew, and
/// judged anew.
fn held_against(policy: &Policy) -> String {
    let Policy { archs, arch_words, fleet, driver_fleet, partial_refuse, library_linkage, release, dev, allow, .. } =
        policy;
    format!(
        "{archs:?} {arch_words:?} {fleet:?} {driver_fleet:?} {partial_refuse} {library_linkage:?} {release:?} {dev:?} {allow:?}"
    )
}

const NOTE: &str = "cudaguard-note.o";
const SHIM: &str = "cudaguard-shim.o";

fn ready(folder: &Path) -> Option<Guarded> {
    let (note, shim) = (folder.join(NOTE), folder.join(SHIM));
    (note.is_file() && shim.is_file()).then_some(Guarded::Objects { note, shim })
}

fn set_time(path: &Path, since: Option<SystemTime>) -> std::io::Result<()> {
    match since {
        Some(time) => fs::File::options().write(true).open(path)?.set_modified(time),
        None => Ok(()),
    }
}

/// Writes the stamp that `embed!()` in this package's build script announces: a guard that depends on anything that
/// has changed since makes cargo run the script again.
pub(crate) fn stamp(order: &Order<'_>, judged: &Judged, stamps: &Path) -> Result<(), String> {
    let file = stamp::file(stamps, &order.component);
    stamp::Stamp::of(&judged.env, &judged.policy, judged.lock.as_deref(), &judged.toolchain)
        .write_if_changed(&file)
        .map(drop)
}
