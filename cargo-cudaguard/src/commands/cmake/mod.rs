//! The commands that the CMake module calls. The module passes the data of CMake, and all decisions are made here.
//!
//! - `begin` runs when CMake configures: it checks that targets of this system can be guarded, and that the module and
//!   the command belong to the same release.
//! - `embed` runs as a build step before nvcc, and for targets that are not linked: it checks the toolchain of the
//!   target and writes the objects of its guard.
//! - `link` replaces the linker: it runs `embed` if that was not a separate step, calls the linker, checks the file
//!   against the policy and seals its note.
//! - `lock` writes the lock of the project on request.
//!
//! Users call `install`, which writes the module itself.

mod copies;
mod dedup;
pub(crate) mod job;
mod linking;
mod package;
mod project_lock;
pub(crate) mod target_properties;

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::binary::file::{Binary, BinaryKind};
use crate::binary::kernels::Kernels;
use crate::binary::mapped_file::OpenFiles;
use crate::guard::{self, Tool};
use crate::knowledge::vendor::{CUDART, CUDNN};
use crate::linked::check::Linked;
use crate::linked::evidence::{HostCode, LinkEvidence};
use crate::linked::seal::{self, ResolvedCudnn};
use crate::pipeline::{self, SealedFile, check_build};
use cudaguard::internal::checks;
use cudaguard::internal::cudnn;
use cudaguard::internal::env::Env;
use cudaguard::internal::file_error::FileError;
use cudaguard::internal::finding::{Finding, MessageTemplate, Values};
use cudaguard::internal::guard::{self as core_guard, GuardObjects};
use cudaguard::internal::lock::Lock;
use cudaguard::internal::manifest::{FactSource, Linkage, Manifest};
use cudaguard::internal::pipeline::fails_build;
use cudaguard::internal::policy::Policy;
use cudaguard::internal::toolchain::{BuildSystem, Sourced, Toolchain};
use cudaguard::internal::version::Version;

use crate::cli::arguments::CmakeStep;
use crate::cli::report::{self, CliError, REFUSED};
use crate::cli::signals;
use crate::linked::kernel_ownership;
use job::{CmakeJob, target_triple};
use target_properties::TargetDescription;

/// Names of the objects, which the module uses too.
const NOTE: &str = "cudaguard-note.o";
const SHIM: &str = "cudaguard-shim.o";
/// File with the reason for empty objects, next to them.
const NO_GUARD: &str = "unguarded";

pub(crate) fn run_step(env: &Env, step: CmakeStep) -> Result<ExitCode, CliError> {
    match step {
        CmakeStep::Begin { module, compiler, flags } => {
            begin_configure(&module, &Tool { program: compiler, flags, kept: None })
        }
        CmakeStep::Embed { facts, depfile } => {
            let job = CmakeJob::from_dir(&facts)?;
            compile_guard(env, &job, &facts, depfile.as_deref())
        }
        CmakeStep::Link { facts, judge, words } => run_link_step(env, facts.as_deref(), judge, &words),
        CmakeStep::Lock { targets } => project_lock::run_lock(env, &targets),
        CmakeStep::Install { prefix } => package::install_package(&prefix).map(|()| ExitCode::SUCCESS),
    }
}

fn begin_configure(module: &str, tool: &Tool) -> Result<ExitCode, CliError> {
    let own = env!("CARGO_PKG_VERSION");
    if module != own {
        return Err(CliError::operational(format_args!(
            "the CMake package is from cudaguard {module}, but the command is from {own}: install both from one release"
        )));
    }
    // A compiler that does not name its target, such as a wrapper of nvcc, must not fail the configuration of a project.
    match target_triple(tool).and_then(|triple| core_guard::check_target(&triple).map(|()| triple)) {
        Ok(triple) => {
            // The module stores the triple in the facts of each target, so that the compiler is queried only once.
            report::print_result(&format!("{triple}\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            report::print_result(&format!("{why}\n"))?;
            Ok(ExitCode::from(REFUSED))
        }
    }
}

/// Checks the toolchain of a target, and writes the objects of its guard next to its facts.
fn compile_guard(env: &Env, job: &CmakeJob, dir: &Path, depfile: Option<&Path>) -> Result<ExitCode, CliError> {
    let facts = job.build_inputs();
    let mut judged = check_build(&facts, &[], env)?;
    if !job.facts.sees_linked() {
        // The file that it will be linked into is not examined.
        judged.build.findings.append(&mut judged.build.deferred);
    }
    project_lock::name_build_dir(&mut judged.findings, job);
    let mut files = judged.toolchain.read_files();
    files.extend(std::env::current_exe().ok());
    files.retain(|file| file.exists());
    if judged.is_refused() {
        // The outputs of an earlier build are not outputs of this build.
        remove_earlier(&job.facts);
        job.report_findings(&judged.findings)?;
    } else {
        let inputs: Vec<PathBuf> = files.iter().chain(&job.facts.files).cloned().collect();
        let findings = std::mem::take(&mut judged.findings);
        let target_properties::TargetDescription { target, binary, configuration, .. } = &job.facts;
        job.report_findings(&dedup::retain_unreported(findings, target, binary, configuration, &inputs))?;
    }
    let marker = dir.join(NO_GUARD);
    let made = if let Some(why) = &job.facts.unguarded {
        GuardObjects::Unguarded(why.clone())
    } else {
        let descriptor = judged.encode_note(&facts)?;
        let delayed = dir.join(linking::DELAYED);
        linking::write_delayed(&delayed, &judged.to_manifest(&facts))
            .map_err(|error| CliError::cannot_write(&delayed, &error))?;
        guard::compile_with(&job.facts.tool, &descriptor, &facts.component, facts.target, dir)?
    };
    let first = match made {
        GuardObjects::Objects { note, shim } => {
            debug_assert_eq!((&note, shim), (&dir.join(NOTE), dir.join(SHIM)));
            let _ = fs::remove_file(marker);
            note
        }
        GuardObjects::Unguarded(why) => {
            let values = Values::default().with("component", &facts.component).with("why", &why);
            let findings =
                facts.apply_policy(&judged.policy, vec![MessageTemplate::Unguarded.to_finding(&values)]).findings;
            if fails_build(&findings) {
                let _ = fs::remove_file(&marker);
                remove_earlier(&job.facts);
            }
            // Reasons that were known when CMake configured were reported then, once for all targets.
            if job.facts.unguarded.is_none() || fails_build(&findings) {
                job.report_findings(&findings)?;
            }
            if job.facts.unguarded.is_none() {
                write_empty_objects(&job.facts.tool, dir)?;
            }
            fs::write(&marker, why).map_err(|error| CliError::cannot_write(&marker, &error))?;
            if job.facts.unguarded.is_some() { marker } else { dir.join(NOTE) }
        }
    };
    if let Some(depfile) = depfile {
        fs::write(depfile, make_rule(&first, &files)).map_err(|error| CliError::cannot_write(depfile, &error))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Deletes the outputs of an earlier build if a target is refused before it is linked.
fn remove_earlier(facts: &TargetDescription) {
    for file in facts.output.iter().chain(&facts.archive).chain(&facts.linked_into) {
        copies::remove_earlier(facts, file);
        let _ = fs::remove_file(file);
    }
}

/// Writes empty objects if no guard is possible, because the module has added two files to the linker's arguments.
fn write_empty_objects(tool: &Tool, out: &Path) -> Result<(), CliError> {
    let source = out.join("empty.c");
    fs::write(&source, "").map_err(|error| FileError::write(&source, error))?;
    for object in [NOTE, SHIM] {
        let status = Command::new(&tool.program)
            .args(tool.arguments())
            .args(["-x", "c", "-fPIC", "-c"])
            .arg(&source)
            .arg("-o")
            .arg(out.join(object))
            .status();
        if !status.as_ref().is_ok_and(std::process::ExitStatus::success) {
            let compiler = tool.program.display();
            return Err(CliError::operational(format_args!(
                "the compiler {compiler} cannot compile an empty file: {status:?}"
            )));
        }
    }
    Ok(())
}

/// Returns a makefile rule: `file` depends on `files`.
pub(crate) fn make_rule(file: &Path, files: &[PathBuf]) -> String {
    let mut text = format!("{}:", escape_for_make(file));
    for file in files {
        let _ = write!(text, " \\\n  {}", escape_for_make(file));
    }
    text.push('\n');
    text
}

/// Returns a makefile rule without prerequisites: make continues if the file does not exist.
pub(crate) fn make_target(file: &Path) -> String {
    format!("{}:\n", escape_for_make(file))
}

fn escape_for_make(path: &Path) -> String {
    let mut text = String::new();
    for letter in path.to_string_lossy().chars() {
        match letter {
            ' ' | '#' => text.push('\\'),
            '$' => text.push('$'),
            _ => {}
        }
        text.push(letter);
    }
    text
}

fn run_link_step(env: &Env, facts: Option<&Path>, judge: bool, words: &[OsString]) -> Result<ExitCode, CliError> {
    let (program, arguments) = words.split_first().expect("at least one word");
    let made = words.windows(2).find_map(|pair| (pair[0] == "-o").then(|| Path::new(&pair[1])));
    // The linkers of Windows.
    let of_windows = words
        .iter()
        .find_map(|word| Some(PathBuf::from(word.to_str()?.strip_prefix(['/', '-'])?.strip_prefix("out:")?)));
    let made = made.or(of_windows.as_deref());
    // Separately linked device code is an object, and not the file of a target.
    let made = made.filter(|made| !made.extension().is_some_and(|ending| ending == "o" || ending == "obj"));
    let of_target = match (facts, made) {
        (Some(facts), Some(made)) => job_of(facts, made)?,
        _ => None,
    };
    if judge {
        let (dir, job) = of_target.as_ref().ok_or_else(|| {
            CliError::operational(format_args!(
                "{}: CMake links {}, which it did not know at configuration: run cmake again",
                facts.unwrap_or(Path::new("")).display(),
                made.unwrap_or(Path::new("a file without a name")).display()
            ))
        })?;
        compile_guard(env, job, dir, None)?;
    }
    let delayed = of_target.as_ref().map(|(dir, _)| linking::read_delayed(dir, of_windows.is_none()));
    let status = Command::new(program).args(arguments).args(delayed.unwrap_or_default()).status().map_err(|error| {
        CliError::operational(format_args!("cannot start {}: {error}", Path::new(program).display()))
    })?;
    if !status.success() {
        return Ok(signals::end_as(status));
    }
    let Some(made) = made else { return Ok(ExitCode::SUCCESS) };
    let libraries = library_jobs(env, words, made, of_target.as_ref().map(|(dir, _)| dir.as_path()))?;
    for (dir, job) in of_target.iter().chain(&libraries) {
        seal_outputs(env, job, dir)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the guarded libraries that a linker command names. Each is checked in the file that is linked.
fn library_jobs(
    env: &Env,
    words: &[OsString],
    made: &Path,
    of_target: Option<&Path>,
) -> Result<Vec<(PathBuf, CmakeJob)>, CliError> {
    let words = linking::expand_response_files(words);
    let of_target = of_target.map(same_place);
    let mut jobs = Vec::new();
    for dir in linking::guard_dirs(&words) {
        if Some(same_place(&dir)) == of_target {
            continue;
        }
        let mut job = CmakeJob::from_dir(&dir)?;
        job.facts.output = Some(env.current_dir().join(made));
        job.facts.link_command = Some((words.clone(), env.current_dir().to_owned()));
        jobs.push((dir, job));
    }
    Ok(jobs)
}

/// Returns the target whose file the linker writes, and the directory of its facts: this one, or a subdirectory if
/// there are several configurations.
fn job_of(facts: &Path, made: &Path) -> Result<Option<(PathBuf, CmakeJob)>, CliError> {
    let made = same_place(made);
    let mut dirs = Vec::new();
    for entry in fs::read_dir(facts).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(b"facts.") {
            dirs = vec![facts.to_owned()];
            break;
        }
        if entry.path().is_dir() {
            dirs.push(entry.path());
        }
    }
    let several = dirs.len() > 1;
    for dir in dirs {
        let job = match CmakeJob::from_dir(&dir) {
            Ok(job) => job,
            // The facts belong to a configuration that the project no longer has.
            Err(_) if several => continue,
            Err(error) => return Err(error),
        };
        if job.facts.output.as_deref().map(same_place) == Some(made.clone()) {
            return Ok(Some((dir, job)));
        }
    }
    Ok(None)
}

/// Returns the path of a file, which need not exist, with the canonical path of its directory.
fn same_place(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (whole.parent().map(fs::canonicalize), whole.file_name()) {
        (Some(Ok(dir)), Some(name)) => dir.join(name),
        _ => whole,
    }
}

/// Checks a linked file against the policy and seals it; deletes a refused file.
fn seal_outputs(env: &Env, job: &CmakeJob, dir: &Path) -> Result<ExitCode, CliError> {
    let file = job.facts.output.as_deref().expect("what is linked is a file");
    if dir.join(NO_GUARD).exists() {
        return Ok(ExitCode::SUCCESS);
    }
    match verify_and_seal(env, job, file, None) {
        Ok(()) => {
            project_lock::forget_refused(dir);
            Ok(ExitCode::SUCCESS)
        }
        Err(stop) => {
            project_lock::keep_refused(dir, job, file);
            // Neither make nor ninja must treat the file as accepted.
            seal::remove_refused(file);
            copies::remove_earlier(&job.facts, file);
            Err(stop)
        }
    }
}

/// Checks a linked file and seals its note, either in place or in a copy that is written only if the file is accepted.
pub(crate) fn verify_and_seal(env: &Env, job: &CmakeJob, file: &Path, to: Option<&Path>) -> Result<(), CliError> {
    let binary = Binary::read(file)?;
    if matches!(binary.kind, BinaryKind::Object | BinaryKind::Archive) {
        return Err(CliError::operational(format_args!("{}: not a linked file ({})", file.display(), binary.kind)));
    }
    let kernels = binary.kernels()?;
    let open = OpenFiles::default();
    let facts = job.build_inputs();
    let policy = facts.read_policy()?;
    let name = job.facts.linked_name();
    let refuse = |why: &str| job.report_findings(&pipeline::not_guarded(&facts, &policy, &name, file, why));
    let manifest = binary.manifests().flatten().map(|note| note.manifest).find(|one| one.component == facts.component);
    let Some(manifest) = manifest else { return refuse(pipeline::NOTE_MISSING) };
    let recorded = manifest.toolkit.map(Into::into);
    let linked_from = linked_from(job, &binary);
    let searched: Vec<PathBuf> =
        linked_from.iter().chain(&job.facts.given.libraries).map(|dir| dir.value.clone()).collect();
    let mut objects = object_files(job);
    objects.extend(job.facts.inside.iter().cloned());
    let places = kernel_places(job, &objects, &open);
    let mut seen = LinkEvidence::from_linked_file(&binary, kernels, recorded, &searched, |data| {
        kernel_ownership::owned_containers(data, kernels, &places)
    });
    seen.host = Some(HostCode::from_objects(binary.data(), &kernel_ownership::object_files(&places), &open));
    let linked_file = LinkedFile {
        policy: &policy,
        manifest: &manifest,
        binary: &binary,
        kernels,
        linked_from: &linked_from,
        open: &open,
    };
    let (taken, findings) = verify_linked_file(env, job, &linked_file, &seen)?;
    if to.is_some() && fails_build(&findings) {
        return job.report_findings(&findings);
    }
    // A refused file is sealed too: its note shows its toolchain before it is deleted.
    let noted = pipeline::seal_file(&facts, &binary, to, kernels, None, Some(seen), taken)?;
    job.report_findings(&findings)?;
    match noted {
        SealedFile::Unguarded(why) => refuse(&why),
        SealedFile::Guarded(_) => Ok(()),
    }
}

/// A linked file, its manifest, and the policy for it.
struct LinkedFile<'l> {
    policy: &'l Policy,
    manifest: &'l Manifest,
    binary: &'l Binary,
    kernels: &'l Kernels,
    /// The directories of its libraries.
    linked_from: &'l [Sourced<PathBuf>],
    open: &'l OpenFiles,
}

/// Checks the linked file against the policy and its manifest.
fn verify_linked_file(
    env: &Env,
    job: &CmakeJob,
    linked_file: &LinkedFile<'_>,
    seen: &LinkEvidence,
) -> Result<(Option<ResolvedCudnn>, Vec<Finding>), CliError> {
    let facts = &job.facts;
    let LinkedFile { policy, manifest, binary, kernels, linked_from, open } = *linked_file;
    let mut kernel_ownership = Vec::new();
    if kernels.has_kernels()
        && !(policy.archs.is_empty() && policy.arch_words.is_empty() && manifest.declared.is_empty())
    {
        kernel_ownership =
            kernel_ownership::owned_containers(binary.data(), kernels, &kernel_places(job, &object_files(job), open));
    }
    // The toolkit is detected again only if the file shows another one, to describe both.
    let recorded = manifest.toolkit.filter(|_| manifest.toolkit_known != Some(FactSource::LinkObservation));
    let in_use: Vec<Sourced<Version>> = match recorded {
        None => Vec::new(),
        Some(release) if seen.shows_only(release.into()) => vec![Sourced::new(release, "CMake")],
        Some(_) => looked_up(job, env, policy),
    };
    let dirs =
        [(facts.binary.clone(), "the build directory"), (facts.top.clone(), "the source directory of the project")];
    let [rpath, runpath] = [&binary.rpath, &binary.runpath]
        .map(|written| Some(without_harmless_stubs(written.as_ref()?, facts.install_rpath, &binary.needed)));
    let name = facts.linked_name();
    let linked = Linked {
        name: &name,
        // In the build directory, CMake adds the directories of libraries to the runtime path; installing removes them.
        release: facts.release && facts.install_rpath,
        kernels,
        own: &kernel_ownership,
        declared_by: facts.given.archs.as_ref().map(|archs| archs.source.as_str()),
        seen,
        in_use: &in_use,
        by: job.facts.given.by,
        needed: &binary.needed,
        cudart: binary.linkage_in_build(&CUDART),
        library: binary.linkage_in_build(&CUDNN),
        rpath: rpath.as_deref(),
        runpath: runpath.as_deref(),
        dirs: &dirs,
    };
    let linked_to = binary.linkage_in_build(&CUDNN) == Linkage::Linked;
    let mut library = if linked_to { linked_library(env, job, policy, binary, linked_from) } else { Vec::new() };
    let mut taken = None;
    // CMake knows the include path of the compiler, so the detected headers are the included ones.
    if linked_to && (manifest.library.is_none() || manifest.library_known == Some(FactSource::Declared)) {
        let mut toolchain = Toolchain::default();
        toolchain.by = job.facts.given.by;
        let new_findings;
        (taken, new_findings) =
            pipeline::resolve_cudnn(&job.build_inputs(), policy, &toolchain, manifest, binary, seen);
        library.extend(new_findings);
    }
    let mut findings = pipeline::judge_linked(&job.build_inputs(), policy, manifest, &linked, library, taken.as_ref());
    // The findings were deferred because nothing indicated CUDA, or because the policy requires a cuDNN that was not
    // specified. They apply if the linked file shows otherwise.
    let asked = policy.library.is_some() || policy.library_linkage.is_some();
    let applies = if manifest.library.is_some() {
        // The lock contains a library, and none is linked.
        seen.cudnn_version().is_none() && Lock::lock_path(&facts.top).is_some_and(|lock| lock.exists())
    } else {
        asked || manifest.toolkit.is_none() && (kernels.has_kernels() || binary.reaches_cuda()?)
    };
    if applies {
        let mut deferred = pipeline::deferred_findings(&check_build(&job.build_inputs(), &[], env)?, seen, binary);
        project_lock::name_build_dir(&mut deferred, job);
        findings.extend(deferred);
    }
    // The only other deferred check is that of the host compiler, which the objects show.
    let mut drifted = pipeline::lock_drift(&job.build_inputs(), policy, manifest, &linked, &[], facts.locked)?;
    project_lock::name_build_dir(&mut drifted, job);
    if facts.given.by == BuildSystem::CMake && !fails_build(&drifted) {
        drifted = dedup::retain_unreported(drifted, &facts.target, &facts.binary, &facts.configuration, &facts.files);
    }
    findings.extend(drifted);
    Ok((taken, findings))
}

fn looked_up(job: &CmakeJob, env: &Env, policy: &Policy) -> Vec<Sourced<Version>> {
    job.build_inputs().detect_toolchain(env, policy, &[]).sourced_toolkit_version().into_iter().collect()
}

/// Returns the objects of a target, including the one with its linked device code.
fn object_files(job: &CmakeJob) -> Vec<PathBuf> {
    let mut objects = job.facts.objects.clone();
    objects.extend(device_link(&job.facts.objects));
    objects
}

fn kernel_places<'a>(
    job: &'a CmakeJob,
    objects: &'a [PathBuf],
    files: &'a OpenFiles,
) -> kernel_ownership::BuildPlaces<'a> {
    kernel_ownership::BuildPlaces { package: None, out_dirs: Vec::new(), objects, files, target_dir: &job.facts.binary }
}

/// Removes stub directories of the toolkit from a runtime path if nothing is loaded from them. `CUDA::cuda_driver` is a
/// file in such a directory, so CMake adds the directory to the runtime path of its users and removes it when
/// installing. The dynamic linker finds only libcuda.so there, not libcuda.so.1, and continues.
fn without_harmless_stubs(path: &str, installed: bool, needed: &[String]) -> String {
    let kept = path.split(':').filter(|entry| {
        let dir = Path::new(entry);
        installed || !dir.ends_with("stubs") || needed.iter().any(|name| dir.join(name).exists())
    });
    kept.collect::<Vec<_>>().join(":")
}

/// Returns the directories in which the file searches for libraries.
fn runtime_path(binary: &Binary) -> impl Iterator<Item = &str> {
    let entries = [&binary.rpath, &binary.runpath].into_iter().flatten().flat_map(|path| path.split(':'));
    entries.filter(|entry| Path::new(entry).is_absolute())
}

/// Returns the directories of the linked libraries: first those of the linker, then those of the dynamic linker.
fn linked_from(job: &CmakeJob, binary: &Binary) -> Vec<Sourced<PathBuf>> {
    let asked = binary.needed.iter().any(|name| CUDNN.is_named(name) || CUDART.is_named(name));
    let target = &job.facts.target;
    let by_linker = if asked { linking::library_dirs(&job.facts) } else { Vec::new() };
    let by_linker = by_linker.into_iter().map(|dir| Sourced::new(dir, format!("the link line of {target}")));
    let loaded =
        runtime_path(binary).map(|entry| Sourced::new(PathBuf::from(entry), format!("the runtime path of {target}")));
    by_linker.chain(loaded).collect()
}

/// Checks the linked cuDNN. Its findings were only notes before it was known that the file needs it.
fn linked_library(
    env: &Env,
    job: &CmakeJob,
    policy: &Policy,
    binary: &Binary,
    dirs: &[Sourced<PathBuf>],
) -> Vec<Finding> {
    let toolchain = job.build_inputs().detect_toolchain(env, policy, dirs);
    let Some(library) = toolchain.library_used() else { return Vec::new() };
    let dir = library.path.parent();
    let is_the_one = binary.needed.contains(&format!("{}.{}", cudnn::LINK_NAME, library.major))
        && dirs.iter().chain(&job.facts.given.libraries).any(|known| dir == Some(&known.value));
    if !is_the_one {
        return Vec::new();
    }
    let before = job.build_inputs().detect_toolchain(env, policy, &[]);
    checks::build::recheck_linked_cudnn(policy, &before, &toolchain)
}

/// Returns the object with separately linked device code (`CUDA_SEPARABLE_COMPILATION`). CMake stores it in the object
/// directory of the target, or of its configuration if there are several, and has no property with its name.
fn device_link(objects: &[PathBuf]) -> Option<PathBuf> {
    let object = objects.first()?;
    let directory = object.ancestors().find(|directory| directory.extension() == Some(OsStr::new("dir")))?;
    let below = object.strip_prefix(directory).ok()?.components().next()?;
    let places = [directory.join(below), directory.to_owned()];
    places.iter().map(|place| place.join("cmake_device_link.o")).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stub_directory_counts_if_loaded_from() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path();
        let (bare, full) = (dir.join("bare/stubs"), dir.join("full/stubs"));
        for (stubs, name) in [(&bare, "libcuda.so"), (&full, "libcuda.so.1")] {
            fs::create_dir_all(stubs).unwrap();
            fs::write(stubs.join(name), "").unwrap();
        }
        let path = format!("/lib:{}:{}", bare.display(), full.display());
        let needed = ["libcuda.so.1".to_owned(), "libc.so.6".to_owned()];
        assert_eq!(without_harmless_stubs(&path, false, &needed), format!("/lib:{}", full.display()));
        assert_eq!(without_harmless_stubs(&path, true, &needed), path, "as it is installed, it is judged whole");
        assert_eq!(without_harmless_stubs(&path, false, &[]), "/lib");
    }

    #[test]
    fn depfile_names_are_escaped_for_make() {
        let text = make_rule(Path::new("/b/a b/o"), &["/x/$y #1".into(), "/ü".into()]);
        assert_eq!(text, "/b/a\\ b/o: \\\n  /x/$$y\\ \\#1 \\\n  /ü\n");
    }
}
