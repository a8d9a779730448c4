//! The guard of a package for a target: its toolchain judged, its note and shim as objects that the wrapper links.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cudaguard::env::Env;
use cudaguard::files::write_where_new;
use cudaguard::finding::Severity;
use cudaguard::guard::{self, GuardObjects};
use cudaguard::manifest::Component;
use cudaguard::pipeline::{CudaIntent, Facts, Judged};
use cudaguard::policy::Policy;
use cudaguard::rebuild_stamp;

use crate::project::{Package, Project};

/// What is known of a package of this project before cargo builds it; nobody has asked for its crates yet.
pub(crate) fn facts<'a>(project: &'a Project, package: &'a Package, target: &'a str) -> Facts<'a> {
    Facts {
        component: Component { name: package.name.clone(), version: package.version.clone() },
        package: &package.name,
        folder: &package.dir,
        top: &project.top,
        policy: None,
        target,
        profile: &project.profile,
        release: project.release,
        locked: Some(project.locked),
        sees_linked: true,
        meant: if package.embeds { CudaIntent::Owner } else { CudaIntent::Nobody },
        archs: None,
        headers: None,
        given: None,
        tool: None,
        crates: &[],
    }
}

/// Looks and judges, with these variables of cargo's configuration laid over the environment.
pub(crate) fn judge(env: &Env, facts: &Facts<'_>, configured: &BTreeMap<String, OsString>) -> Result<Judged, String> {
    // The stamp is of what was read for this package alone.
    let env = env.with_fresh_log();
    facts.judge(&if configured.is_empty() { env } else { env.with(configured.clone()) })
}

/// Where the guard of a package lies.
fn folder(facts: &Facts<'_>, own: &Path) -> PathBuf {
    let Component { name, version } = &facts.component;
    own.join("guards").join(facts.target).join(facts.profile).join(format!("{name}-{version}"))
}

/// A guard that lies ready.
#[derive(Debug)]
pub(crate) struct Guard {
    /// What it consists of: a file that is rewritten where its content changes, for cargo to see.
    pub(crate) key: PathBuf,
    /// Its objects, or why there are none.
    pub(crate) guarded: GuardObjects,
}

/// Makes the guard of a package, unless it lies ready just so. `since` is the time a new one is given: what is made
/// while cargo already builds must not look newer than that build.
pub(crate) fn make(facts: &Facts<'_>, judged: &Judged, own: &Path, since: Option<SystemTime>) -> Result<Guard, String> {
    let descriptor = judged.note(facts)?;
    let folder = folder(facts, own);
    let mut content = descriptor.to_vec();
    content.extend_from_slice(guard::SOURCE_DIGEST.to_string().as_bytes());
    content.extend_from_slice(held_against(&judged.policy).as_bytes());
    content.extend(judged.lock.iter().flat_map(|lock| fs::read(lock).unwrap_or_default()));
    for finding in judged.deferred.iter().filter(|finding| finding.severity > Severity::Info) {
        content.extend_from_slice(finding.render().as_bytes());
    }
    let key = folder.join("guard");
    let unchanged = fs::read(&key).is_ok_and(|old| old == content);
    if let Some(guarded) = ready(&folder).filter(|_| unchanged) {
        return Ok(Guard { key, guarded });
    }
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    // Compiled elsewhere and moved into place, so that a linker that reads the old ones meanwhile is not disturbed.
    let workshop = folder.join(format!(".{}", std::process::id()));
    fs::create_dir_all(&workshop).map_err(|error| format!("cannot make {}: {error}", workshop.display()))?;
    let made = facts.guard(&judged.env, &descriptor, &workshop).and_then(|guarded| {
        if let GuardObjects::Objects { note, shim } = &guarded {
            let place = |from: &Path, to: PathBuf| {
                fs::rename(from, &to).map_err(|error| format!("cannot write {}: {error}", to.display()))
            };
            place(note, folder.join(NOTE)).and_then(|()| place(shim, folder.join(SHIM)))?;
        }
        Ok(guarded)
    });
    let _ = fs::remove_dir_all(&workshop);
    let guarded = match made? {
        GuardObjects::Objects { .. } => ready(&folder).ok_or("the guard's objects were removed meanwhile")?,
        unguarded @ GuardObjects::Unguarded(_) => {
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

/// Whether the guard that lies ready was made by what is found now: then what was linked with it shows what a build of now
/// is made with.
pub(crate) fn is_current(facts: &Facts<'_>, judged: &Judged, own: &Path) -> bool {
    let kept = fs::read(folder(facts, own).join("guard"));
    let descriptor = judged.note(facts);
    kept.is_ok_and(|kept| descriptor.is_ok_and(|descriptor| kept.starts_with(&descriptor[..])))
}

/// What of a policy the linked file is held against, beyond what its note says: with another one it is linked anew, and
/// judged anew.
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

const NOTE: &str = "cudaguard-note.o";
const SHIM: &str = "cudaguard-shim.o";

fn ready(folder: &Path) -> Option<GuardObjects> {
    let (note, shim) = (folder.join(NOTE), folder.join(SHIM));
    (note.is_file() && shim.is_file()).then_some(GuardObjects::Objects { note, shim })
}

fn set_time(path: &Path, since: Option<SystemTime>) -> std::io::Result<()> {
    match since {
        Some(time) => fs::File::options().write(true).open(path)?.set_modified(time),
        None => Ok(()),
    }
}

/// Writes the stamp that `embed!()` in this package's build script announces: a guard that depends on anything that
/// has changed since makes cargo run the script again.
pub(crate) fn stamp(facts: &Facts<'_>, judged: &Judged, stamps: &Path) -> Result<(), String> {
    let file = rebuild_stamp::file(stamps, &facts.component);
    rebuild_stamp::Stamp::of(&judged.env, &judged.policy, judged.lock.as_deref(), &judged.toolchain)
        .write_if_changed(&file)
        .map(drop)
}
