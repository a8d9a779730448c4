//! The lock of a CMake project. It is in the root directory of the project, each check compares the target with it, and
//! the build target `cudaguard-lock` writes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::binary::file::{Binary, FoundNote};
use crate::binary::manifest_decoder::decode;
use crate::knowledge::vendor::CUDNN;
use crate::linked::linked_lock::observe_manifest;
use crate::pipeline::check_build;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{Code, Finding};
use cudaguard::internal::lock::{FILE, Lock, Pins, same_release};
use cudaguard::internal::manifest::Manifest;
use cudaguard::internal::toolchain::Toolchain;

use super::NOTE;
use super::dedup::modified;
use super::job::CmakeJob;
use crate::cli::report::CliError;
use crate::commands::lock::{describe_changes, write_lock};

/// Replaces the placeholder for the build directory in hints about writing the lock.
pub(super) fn name_build_dir(findings: &mut [Finding], job: &CmakeJob) {
    let build = job.facts.binary.display().to_string();
    let build = if build.contains(char::is_whitespace) { format!("\"{build}\"") } else { build };
    let configuration = &job.facts.configuration;
    let config = if configuration.is_empty() { String::new() } else { format!(" --config {configuration}") };
    for finding in findings.iter_mut().filter(|one| matches!(one.code, Code::LockDrift | Code::LockLacksTarget)) {
        finding.hint = finding.hint.replace("BUILD", &format!("{build}{config}"));
    }
}

/// The common pins of all targets with one triple.
#[derive(Default)]
struct Common {
    pins: Pins,
    /// The targets that the three values come from.
    by: [String; 3],
    /// The target and its archs, by component.
    archs: BTreeMap<String, (String, Vec<String>)>,
    /// The toolchain, which contains the sources of the values. It belongs to a target that nvcc compiles for, if there
    /// is one.
    toolchain: Toolchain,
    compiled: bool,
}

impl Common {
    fn add_target(&mut self, env: &Env, dir: &Path, job: &CmakeJob) -> Result<(), CliError> {
        let facts = job.build_inputs();
        let policy = facts.read_policy()?;
        let toolchain = facts.detect_toolchain(env, &policy, &[]);
        let (mut own, target) = (Pins::from_toolchain(&policy, &toolchain, facts.lock_scope()), &job.facts.target);
        if let Some(manifest) = last_linked_manifest(env, dir, job) {
            observe_manifest(&mut own, &manifest);
        }
        let all = [
            ("toolkits", &mut self.pins.toolkit, own.toolkit),
            (&*format!("{}s", CUDNN.name), &mut self.pins.library, own.library),
            ("host compilers", &mut self.pins.host_compiler, own.host_compiler),
        ];
        let first = self.by[0].is_empty();
        for ((what, ours, its), by) in all.into_iter().zip(&mut self.by) {
            match (&*ours, its) {
                (_, None) => {}
                // A version from headers is less precise.
                (Some(known), Some(its))
                    if *known == its || what == "toolkits" && same_release(Some(known), Some(&its)) =>
                {
                    if its.len() > known.len() {
                        *ours = Some(its);
                    }
                }
                (Some(known), Some(its)) => {
                    return Err(CliError::operational(format_args!(
                        "the targets of this project use different {what}, but a lock can contain only one: {known} ({by}), \
                         {its} ({target})"
                    )));
                }
                (None, its) => (*ours, *by) = (its, target.clone()),
            }
        }
        if facts.lock_scope().archs {
            let name = &job.facts.component.name;
            match self.archs.get(name) {
                Some((other, archs)) if *archs != own.archs => {
                    return Err(CliError::operational(format_args!(
                        "{other} and {target} belong to the component {name}, but are compiled for different archs: set \
                         another COMPONENT for one of them"
                    )));
                }
                Some(_) => {}
                None => drop(self.archs.insert(name.clone(), (target.clone(), own.archs))),
            }
        }
        let compiles = job.facts.given.compiles;
        if !self.compiled && (compiles || first && !self.by[0].is_empty()) {
            (self.toolchain, self.compiled) = (toolchain, compiles);
        }
        Ok(())
    }

    /// Combines the targets. The most frequent archs apply to every component that is not listed.
    fn into_pins(mut self) -> (Pins, Toolchain) {
        let mut counts: BTreeMap<&Vec<String>, usize> = BTreeMap::new();
        for (_, archs) in self.archs.values() {
            *counts.entry(archs).or_default() += 1;
        }
        // The first of several, in the order of their names.
        let usual = counts.into_iter().rev().max_by_key(|(_, count)| *count);
        let usual = usual.map(|(archs, _)| archs.clone()).unwrap_or_default();
        let others = self.archs.into_iter().filter(|(_, (_, archs))| *archs != usual);
        self.pins.packages = others.map(|(name, (_, archs))| (name, archs)).collect();
        self.pins.archs = usual;
        (self.pins, self.toolchain)
    }
}

/// The note of a refused file, in the directory of the target's facts: `cudaguard-lock` may accept what it shows.
const REFUSED: &str = "refused.note";

pub(super) fn keep_refused(dir: &Path, job: &CmakeJob, file: &Path) {
    let note = Binary::notes_of(file)
        .ok()
        .and_then(|notes| notes.into_iter().find(|note| sealed_manifest(job, note).is_some()));
    let _ = note.map(|note| fs::write(dir.join(REFUSED), note.descriptor));
}

pub(super) fn forget_refused(dir: &Path) {
    let _ = fs::remove_file(dir.join(REFUSED));
}

/// Returns the manifest of the target in a note, if it is sealed.
fn sealed_manifest(job: &CmakeJob, note: &FoundNote) -> Option<Manifest> {
    let manifest = note.decode().ok()?.manifest;
    (manifest.sealed && manifest.component == job.facts.component).then_some(manifest)
}

/// Returns the manifest of the last linked file of a target, if no input of the target has changed since.
fn last_linked_manifest(env: &Env, dir: &Path, job: &CmakeJob) -> Option<Manifest> {
    let facts = job.build_inputs();
    let (guard, output) = (dir.join(NOTE), job.facts.output.as_ref()?);
    let now = check_build(&facts, &[], env).ok()?.encode_note(&facts).ok()?;
    if !Binary::notes_of(&guard).ok()?.iter().any(|note| note.descriptor[..] == now[..]) {
        return None;
    }
    let made_of = std::iter::once(&guard).chain(&job.facts.objects).chain(&job.facts.inside);
    let newest = made_of.filter_map(|path| modified(path)).max()?;
    if modified(output).is_some_and(|made| newest <= made) {
        return Binary::notes_of(output).ok()?.iter().find_map(|note| sealed_manifest(job, note));
    }
    let refused = dir.join(REFUSED);
    modified(&refused).filter(|made| newest <= *made)?;
    Some(decode(&fs::read(refused).ok()?).ok()?.manifest)
}

/// Writes the lock of a project. `list` contains one line for each guarded target: the directory of its facts.
pub(super) fn run_lock(env: &Env, list: &Path) -> Result<ExitCode, CliError> {
    let text = fs::read_to_string(list).map_err(|error| {
        CliError::operational(format_args!("{}: cannot be read: {error}; run cmake again", list.display()))
    })?;
    let mut all: BTreeMap<String, Common> = BTreeMap::new();
    let mut top = None;
    for dir in text.lines() {
        let job = CmakeJob::from_dir(Path::new(dir))?;
        all.entry(job.build_inputs().target.to_owned()).or_default().add_target(env, Path::new(dir), &job)?;
        top.get_or_insert(job.facts.top);
    }
    let top: PathBuf = top.ok_or_else(|| CliError::operational("no target of this project is guarded"))?;
    let file = top.join(FILE);
    // An unreadable lock may contain the entries of other targets, so it is not overwritten.
    let old = Lock::read(&file)?;
    let mut lock = old.clone().unwrap_or_default();
    let mut lock_output = String::new();
    for (triple, common) in all {
        let (pins, toolchain) = common.into_pins();
        if pins.toolkit.is_none() {
            return Err(CliError::operational(format_args!(
                "nothing to lock: CMake has no CUDA toolkit with a known release for {triple}, and no built file shows one; build \
                 the project first, enable the language CUDA, or call find_package(CUDAToolkit) before cudaguard_embed"
            )));
        }
        let before = old.as_ref().and_then(|old| old.targets.get(&triple));
        describe_changes(&mut lock_output, &triple, before, &pins, &toolchain);
        lock.targets.insert(triple, pins);
    }
    write_lock(&file, old.as_ref(), &lock, lock_output, false)
}
