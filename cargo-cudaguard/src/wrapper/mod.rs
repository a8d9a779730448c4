//! The rustc wrapper: cargo calls it for each crate of the workspace as `RUSTC_WORKSPACE_WRAPPER`. It links the guard
//! into programs and C libraries, and seals their note before cargo copies the file to its final place. For all other
//! crates it only runs the compiler.

mod rustc_arguments;
mod verification;

use crate::cli::platform;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::binary::file::Binary;
use crate::binary::kernels::Kernels;
use crate::binary::mapped_file::OpenFiles;
use crate::knowledge::crates::Crate;
use crate::pipeline::{self, CheckedBuild, SealedFile};
use cudaguard::internal::env::Env;
use cudaguard::internal::file_error::FileError;
use cudaguard::internal::finding::{self, Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::guard::{self, GuardObjects};
use cudaguard::internal::manifest::Component;
use cudaguard::internal::pipeline::{BuildInputs, CudaIntent, fails_build};
use cudaguard::internal::policy::{self, Policy};

use crate::cargo::build_context::{BUILD, BuildContext, MARK, build_start_time};
use crate::cargo::build_records::{BuildRecord, BuildRecords, FileFingerprint, NotGuarded};
use crate::cargo::guards::{self, Guard, Shims};
use crate::cargo::project::{self, Artifact, ArtifactKind};
use crate::cli::findings::{self, MessageFormat};
use crate::cli::report::{self, CliError, Level};
use crate::cli::signals;
use crate::commands::inspect;
use crate::family::opened_without_requirement;
use crate::linked::linker;
use crate::linked::torch::UnloadedTorchCuda;
use rustc_arguments::{RustcArgs, expand_arg_files};

/// A call by cargo: the compiler and its arguments.
#[derive(Debug)]
pub(crate) struct WrapperCall {
    build: BuildContext,
    words: Vec<OsString>,
    /// The path of the build context, if it cannot be read.
    lost: Option<PathBuf>,
    /// Set if the crate belongs to the workspace. Other crates reach this wrapper only because it replaces the wrapper
    /// of the user.
    means_us: bool,
    /// The format of the compiler's diagnostics; `None` means text.
    form: Option<MessageFormat>,
    /// Set if a diagnostic already explains why the crate is refused.
    is_reported: Cell<bool>,
}

impl WrapperCall {
    fn fail(&self, error: &CliError) -> ExitCode {
        let error = error.text();
        match self.form.filter(|_| !self.is_reported.get()) {
            Some(form) => report::print_line(&form.error(&format!("cudaguard: {error}")).to_string()),
            None => report::print_line(&format!("error: cudaguard: {error}")),
        }
        ExitCode::FAILURE
    }

    fn cannot_run(&self, program: &OsStr, error: &std::io::Error) -> ExitCode {
        let program = Path::new(program).display();
        self.fail(&CliError::operational(format_args!("cannot run {program}: {error}")))
    }
}

/// Returns the call if cargo runs this process as a compiler wrapper.
pub(crate) fn detect_call(env: &Env) -> Option<WrapperCall> {
    env.var_os(MARK)?;
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    // A subcommand is a single word without a path; cargo passes the compiler as a path or by its name.
    let first = Path::new(words.first()?);
    let compiler = first.components().count() > 1 || first.to_str().is_some_and(|name| name.contains("rustc"));
    if !compiler {
        return None;
    }
    let file = env.var_os(BUILD).map(PathBuf::from);
    let build = file.as_deref().and_then(BuildContext::read);
    let lost = file.filter(|_| build.is_none());
    // If the build context is missing, the wrapper can only run the compiler.
    let build = build.unwrap_or_default();
    // If cudaguard replaces an outer wrapper, cargo calls cudaguard in its place, and names cudaguard a second time for
    // crates of the workspace.
    let ours = env.var_os("RUSTC_WORKSPACE_WRAPPER").is_some_and(|ours| ours == words[0]);
    let means_us = ours || build.outer.is_empty();
    let words: Vec<OsString> = words.into_iter().skip(usize::from(ours)).collect();
    let form = MessageFormat::from_rustc_args(&expand_arg_files(&words));
    Some(WrapperCall { build, words, lost, means_us, form, is_reported: Cell::new(false) })
}

/// Runs the compiler and guards its output if necessary.
pub(crate) fn run_wrapper(env: &Env, call: &WrapperCall) -> ExitCode {
    let mut command = compiler(call);
    let program = command.get_program().to_owned();
    let mut job = match CrateBuild::from_call(env, call) {
        Ok(Some(job)) => job,
        Ok(None) => return call.cannot_run(&program, &platform::replace_process(&mut command)),
        Err(error) => return call.fail(&error),
    };
    if let Err(error) = job.link_guard(call, &mut command) {
        return call.fail(&error);
    }
    let status = match command.status() {
        Ok(status) => status,
        Err(error) => return call.cannot_run(&program, &error),
    };
    if !status.success() {
        return signals::end_as(status);
    }
    // The linked file may use CUDA although nothing before it indicated that, or the other way round.
    match job.revise(env) {
        Ok(true) => {}
        Ok(false) => return job.seal_and_record(env).map_or_else(|error| call.fail(&error), |()| ExitCode::SUCCESS),
        Err(error) => return call.fail(&error),
    }
    let mut command = compiler(call);
    if let Err(error) = job.link_guard(call, &mut command) {
        return call.fail(&error);
    }
    // The compiler has already reported its diagnostics.
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let _ = std::io::stderr().write_all(&output.stderr);
            return signals::end_as(output.status);
        }
        Err(error) => return call.cannot_run(&program, &error),
    }
    job.seal_and_record(env).map_or_else(|error| call.fail(&error), |()| ExitCode::SUCCESS)
}

/// Returns the compiler with the arguments of cargo, called through the wrappers of the user.
fn compiler(call: &WrapperCall) -> Command {
    let inner = call.build.inner.iter().filter(|_| call.means_us);
    let mut line = call.build.outer.iter().chain(inner).map(OsString::from).chain(call.words.iter().cloned());
    let mut command = Command::new(line.next().expect("the compiler"));
    command.args(line);
    command
}

fn link_argument(object: &Path) -> OsString {
    let mut argument = OsString::from("link-arg=");
    argument.push(object);
    argument
}

/// A crate to guard, or to examine after it is linked.
struct CrateBuild<'a> {
    of: CratePackage<'a>,
    unit: RustcArgs,
    policy: Policy,
    /// `None` until there is evidence that the crate uses CUDA.
    judged: Option<CheckedBuild>,
    /// `None` for a test program, and for a crate that does not use CUDA.
    guard: Option<Guard>,
    /// Set if an earlier build linked the guard because the linked file used CUDA, without earlier evidence.
    by_record: bool,
}

/// The package of a crate in this build.
struct CratePackage<'a> {
    build: &'a BuildContext,
    component: Component,
    dir: PathBuf,
    target: String,
    /// The profile that cargo builds, and whether it counts as a release profile.
    profile: String,
    release: bool,
    /// Set if the build script runs the check.
    embeds: bool,
    call: &'a WrapperCall,
}

impl CratePackage<'_> {
    /// Reports findings that were not reported before the build, and fails if they refuse it. A tool may call cargo
    /// with another profile, target or package than the guard was prepared for. If a tool calls cargo itself, with the
    /// variables of `env`, the toolchain may have changed since its check.
    fn report_late_findings(&self, judged: &CheckedBuild, is_new: bool) -> Result<(), CliError> {
        let of_crates = judged.of_crates.iter().filter(|one| one.severity > Severity::Info);
        // A build script that runs the check reports its findings itself.
        let others = judged.findings.iter().filter(|_| !self.embeds);
        let found: Vec<Finding> = of_crates.chain(others).cloned().collect();
        let refuses = fails_build(&found);
        if self.was_judged() && (is_new || !refuses) {
            return Ok(());
        }
        self.report_findings(&found);
        let refusal = CliError::operational(policy::not_built(&self.component, self.release));
        if refuses { Err(refusal) } else { Ok(()) }
    }

    /// Returns true if the toolchain of this package was checked before cargo started.
    fn was_judged(&self) -> bool {
        let BuildContext { profile, made, .. } = self.build;
        *profile == self.profile
            && made.iter().any(|(target, package, _)| *target == self.target && *package == self.component.name)
    }

    /// Reports findings in the format that the caller of cargo requested.
    fn report_findings(&self, findings: &[Finding]) {
        let as_json = MessageFormat::from_values(&self.build.message_format).filter(|form| !form.on_stderr);
        let manifest = self.dir.join("Cargo.toml");
        let mut as_text = Vec::new();
        for finding in finding::sorted_unique(findings) {
            // Cargo treats a line of JSON as a message of the compiler and forwards it. It would repeat a warning in
            // each build, so warnings are printed as text unless the caller requested messages.
            match as_json.or(self.call.form.filter(|_| finding.severity == Severity::Error)) {
                Some(form) => {
                    self.call.is_reported.set(self.call.is_reported.get() || finding.severity == Severity::Error);
                    report::print_line(&form.to_diagnostic(finding, &manifest.to_string_lossy()).to_string());
                }
                None => as_text.push(finding.clone()),
            }
        }
        findings::print_text(&as_text);
        findings::print_annotations(findings);
    }

    /// The crates of the package that use CUDA.
    fn crates(&self) -> &[Crate] {
        self.build.graph.crates_of(&self.target, &self.component.name)
    }

    fn build_inputs(&self) -> BuildInputs<'_> {
        let build = self.build;
        BuildInputs {
            component: self.component.clone(),
            package: &self.component.name,
            dir: &self.dir,
            top: if build.members.is_empty() { &self.dir } else { &build.top },
            policy: None,
            target: &self.target,
            profile: &self.profile,
            release: self.release,
            locked: None,
            sees_linked: true,
            intent: if self.embeds { CudaIntent::Owner } else { CudaIntent::Unstated },
            archs: None,
            ptx_isa: None,
            headers: None,
            given: None,
            by_crates: guards::intent_of_crates(self.crates(), &self.dir),
            uses_cudnn: false,
        }
    }
}

impl<'a> CrateBuild<'a> {
    fn from_call(env: &Env, call: &'a WrapperCall) -> Result<Option<Self>, CliError> {
        if !call.means_us {
            return Ok(None);
        }
        let build = &call.build;
        let Some(unit) = RustcArgs::parse(env, &call.words[1..]) else { return Ok(None) };
        if let Some(file) = call.lost.as_ref().filter(|_| unit.kind.is_some()) {
            return Err(CliError::operational(format_args!(
                "{} was removed during the build: run `cargo cudaguard` again, or `cargo cudaguard env` if \
                 you use its variables",
                file.display()
            )));
        }
        let Some(dir) = env.var_os("CARGO_MANIFEST_DIR").map(PathBuf::from) else { return Ok(None) };
        let is_ours = if build.members.is_empty() {
            env.var_os("CARGO_PRIMARY_PACKAGE").is_some()
        } else {
            build.members.contains(&dir)
        };
        let (Some(name), Some(version)) = (env.var("CARGO_PKG_NAME"), env.var("CARGO_PKG_VERSION")) else {
            return Ok(None);
        };
        if !is_ours || !(unit.kind.is_some() || unit.is_test) {
            report::log(Level::Debug, || {
                let why = if is_ours { "no linker output" } else { "not a package of this build" };
                format!("not guarded: crate {} of {name}: {why}", unit.name)
            });
            return Ok(None);
        }
        let target = unit.target.clone().unwrap_or_else(|| build.host.clone());
        let embeds = unit.embeds;
        let (profile, release) = match unit.profile_dir() {
            Some(dir) if !build.members.is_empty() => project::profile_of_dir(dir, env, &build.top),
            _ => (build.profile.clone(), build.release),
        };
        let component = Component { name, version };
        let of = CratePackage { build, component, dir, target, profile, release, embeds, call };
        let policy = of.build_inputs().read_policy()?;
        let wants_guard = of.build_inputs().wants_guard(&policy) || unit.links_cuda;
        let mut job = Self { of, unit, policy, judged: None, guard: None, by_record: false };
        job.by_record = !wants_guard && job.was_guarded();
        if !wants_guard && !job.by_record {
            return Ok(Some(job));
        }
        job.judge(env)?;
        let deferred = job.judged.as_ref().is_some_and(|judged| fails_build(&judged.deferred));
        Ok((job.unit.kind.is_some() || deferred).then_some(job))
    }

    /// Returns true if this target was guarded when it was last built.
    fn was_guarded(&self) -> bool {
        let Some(kind) = self.unit.kind else { return false };
        let artifact = Artifact { kind, name: self.unit.name.clone(), file: String::new() };
        let records = BuildRecords::for_target(&self.of.build.own, &self.of.target, &self.of.profile);
        records.read(&self.of.component.name, &artifact).is_some_and(|entry| entry.unguarded.is_none())
    }

    /// Checks the toolchain of this package and writes its guard. Workspace packages with evidence of CUDA were checked
    /// before cargo started; a package from a registry or a repository was not.
    fn judge(&mut self, env: &Env) -> Result<(), CliError> {
        let CratePackage { build, .. } = self.of;
        let facts = self.of.build_inputs();
        let judged = guards::check_package(env, &facts, self.of.crates(), &build.variables)?;
        if build.members.is_empty() && judged.is_refused() {
            self.of.report_findings(&judged.findings);
            let name = &self.of.component.name;
            return Err(CliError::operational(format_args!("{name} is not built with this toolchain")));
        }
        if !build.members.is_empty() && self.unit.kind.is_some() {
            self.of.report_late_findings(&judged, build_start_time(env).is_some())?;
        }
        if self.unit.kind.is_some() {
            // Cargo stores the output of a compiler and repeats it in later builds, so no progress is reported here.
            let mut shims = Shims::new(&build.own, true);
            self.guard = Some(guards::make_guard(&facts, &judged, &build.own, Some(env), &mut shims)?);
        }
        self.judged = Some(judged);
        Ok(())
    }

    /// Adds the objects of the guard to the arguments of the compiler, unless the build script has added its own.
    fn link_guard(&self, call: &WrapperCall, command: &mut Command) -> Result<(), CliError> {
        match self.guard.as_ref().map(|guard| &guard.guarded) {
            Some(GuardObjects::Objects { note, shim }) if !self.unit.embeds => {
                for object in [note, shim] {
                    command.arg("-C").arg(link_argument(object));
                }
                let manifest = self.judged.as_ref().map(|judged| judged.to_manifest(&self.of.build_inputs()));
                let delayed = manifest.as_ref().map(guard::windows::delay_load_arguments).unwrap_or_default();
                let own = guard::windows::link_arguments(&self.of.target).iter().copied();
                for argument in own.chain(delayed.iter().map(String::as_str)) {
                    command.arg("-C").arg(link_argument(Path::new(argument)));
                }
                if guard::is_static(&self.of.target, self.unit.crt_static, &call.words[0]) {
                    command.arg("-C").arg(link_argument(Path::new(guard::LIBC_LINK_ARG)));
                }
                Ok(())
            }
            Some(GuardObjects::Unguarded(why)) => self.check_unguarded(&self.unit.out.join(&self.unit.name), why),
            _ => Ok(()),
        }
    }

    /// Compares the linked file with the evidence before linking. Returns true if it must be linked again: it uses CUDA
    /// and has no guard, or it has one only because it used CUDA when it was last built.
    fn revise(&mut self, env: &Env) -> Result<bool, CliError> {
        if self.judged.is_some() && !self.by_record {
            return Ok(false);
        }
        let Some(file) = self.unit.produced_file(self.unit.kind.unwrap_or(ArtifactKind::Bin)) else { return Ok(false) };
        // A file in an unsupported format has no code for NVIDIA GPUs.
        let Ok(binary) = Binary::read(&file) else { return Ok(false) };
        let Ok(kernels) = binary.kernels() else { return Ok(false) };
        let has_nothing = self.has_nothing(&self.policy, &binary, kernels)?;
        if self.by_record && has_nothing {
            (self.judged, self.guard, self.by_record) = (None, None, false);
            return Ok(true);
        }
        if self.judged.is_none() && !has_nothing {
            self.judge(env)?;
            return match self.guard.as_ref().map(|guard| &guard.guarded) {
                Some(GuardObjects::Unguarded(why)) => self.check_unguarded(&file, why).map(|()| false),
                guarded => Ok(guarded.is_some()),
            };
        }
        Ok(false)
    }

    /// Returns true if nothing in the linked file, and in the libraries from its build, uses CUDA, and no policy
    /// declares that it does.
    fn has_nothing(&self, policy: &Policy, binary: &Binary, kernels: &Kernels) -> Result<bool, CliError> {
        let has_nothing = pipeline::has_nothing(&self.of.build_inputs(), policy, binary, kernels)?;
        let (needed, searched) = (&binary.needed, &self.unit.searched);
        Ok(has_nothing && !linker::need_cuda(needed, searched) && UnloadedTorchCuda::detect(needed, searched).is_none())
    }

    /// Records a target that does not use CUDA.
    fn finish_unguarded(&self, env: &Env) -> Result<(), CliError> {
        let Some(kind) = self.unit.kind else { return Ok(()) };
        let key = guards::unguarded_key(&self.of.build_inputs(), &self.of.build.own, env)?;
        self.unit.depend_on(&key, self.unit.extra.is_empty())?;
        self.unit
            .produced_file(kind)
            .map_or(Ok(()), |file| self.record(kind, file, Some(NotGuarded::NoCuda), Vec::new(), Vec::new()))
    }

    fn record(
        &self,
        kind: ArtifactKind,
        file: PathBuf,
        unguarded: Option<NotGuarded>,
        built_with: Vec<String>,
        findings: Vec<Finding>,
    ) -> Result<(), CliError> {
        let mark = FileFingerprint::from_path(&file).map_err(|error| FileError::read(&file, error))?;
        BuildRecords::for_target(&self.of.build.own, &self.of.target, &self.of.profile).write_entry(&BuildRecord {
            package: self.of.component.name.clone(),
            kind: kind.name().to_owned(),
            name: self.unit.name.clone(),
            file,
            mark,
            unguarded,
            built_with,
            findings,
        })
    }

    /// Seals the file, adds its dependencies for cargo, and writes its record.
    fn seal_and_record(&self, env: &Env) -> Result<(), CliError> {
        let Some(judged) = &self.judged else { return self.finish_unguarded(env) };
        let (Some(kind), Some(guard)) = (self.unit.kind, &self.guard) else {
            return self
                .unit
                .produced_file(ArtifactKind::Bin)
                .map_or(Ok(()), |file| self.check_file(env, judged, &file));
        };
        let shared = self.unit.extra.is_empty();
        self.unit.depend_on(&guard.key, shared)?;
        let Some(file) = self.unit.produced_file(kind) else {
            // The file has a format that only its target defines.
            return Ok(());
        };
        let mut unguarded = match (&guard.guarded, self.unit.embeds) {
            (GuardObjects::Unguarded(why), false) => Some(NotGuarded::Because(why.clone())),
            _ => None,
        };
        let (mut built_with, mut findings) = (Vec::new(), Vec::new());
        if unguarded.is_none() {
            let binary = Binary::read(&file)?;
            let (kernels, open) = (binary.kernels()?, OpenFiles::default());
            let facts = self.of.build_inputs();
            let (mut seen, mut taken) = (None, None);
            if !self.has_nothing(&judged.policy, &binary, kernels)? {
                let shown = self.link_evidence(env, judged, &binary, kernels, &open);
                findings = pipeline::deferred_findings(judged, &shown, &binary);
                let (library, new_findings) = self.verify_linked_file(env, judged, &binary, kernels, &shown, &open)?;
                findings.extend(new_findings);
                (seen, taken) = (Some(shown), library);
            }
            self.check_acceptable(&file, &findings)?;
            let about_cuda = seen.is_some();
            match pipeline::seal_file(&facts, &binary, None, kernels, Some(judged), seen, taken)? {
                SealedFile::Guarded(components) => {
                    let opened = opened_without_requirement(&binary).join(", ");
                    let is_opener = components.iter().all(|one| one.requires.is_empty()) && !opened.is_empty();
                    built_with = if is_opener {
                        vec![format!("may open {opened}")]
                    } else {
                        components.iter().map(inspect::built_with).collect()
                    };
                }
                SealedFile::Unguarded(why) => {
                    // If the guard is not required, a file without CUDA may have none.
                    if self.unit.embeds || about_cuda {
                        let new_findings = pipeline::not_guarded(&facts, &judged.policy, &self.unit.name, &file, &why);
                        self.check_acceptable(&file, &new_findings)?;
                        findings.extend(new_findings);
                    }
                    unguarded = Some(NotGuarded::Because(format!("the guard was linked, but {why}")));
                }
            }
        } else {
            self.check_file(env, judged, &file)?;
        }
        self.record(kind, file, unguarded, built_with, findings)
    }

    /// Checks if a file may have no guard. If it may, the summary at the end of the build mentions it.
    fn check_unguarded(&self, file: &Path, why: &str) -> Result<(), CliError> {
        let values = Values::default().with("component", &self.of.component).with("why", why);
        let finding = MessageTemplate::Unguarded.to_finding(&values);
        let applied = self.of.build_inputs().apply_policy(&self.policy, vec![finding]).findings;
        if fails_build(&applied) { self.check_acceptable(file, &applied) } else { Ok(()) }
    }

    /// Checks if a file with these findings is accepted; deletes it otherwise.
    fn check_acceptable(&self, file: &Path, findings: &[Finding]) -> Result<(), CliError> {
        if !fails_build(findings) {
            return Ok(());
        }
        self.of.report_findings(findings);
        // Cargo has not recorded this crate as built, and no tool must treat the file as accepted. The same applies to
        // the final artifacts of an earlier build, including those of crates that cargo does not reach now.
        let _ = fs::remove_file(file);
        for file in self.handed_over().unwrap_or_default() {
            let _ = fs::remove_file(file);
        }
        Err(CliError::operational(policy::not_built(&self.of.component, self.of.release)))
    }

    /// Returns the final artifacts that cargo creates if this build succeeds, for the same target.
    fn handed_over(&self) -> Option<Vec<PathBuf>> {
        let build = self.of.build;
        let below = self.unit.out.parent()?.strip_prefix(&build.kept).ok()?;
        let dir = build.own.parent()?.join(below);
        let files = build.made.iter().map(|(_, _, artifact)| &artifact.file).chain(&build.static_libraries);
        Some(files.map(|file| dir.join(file)).collect())
    }

    /// Checks a file without a guard: it is refused like any other file if it uses CUDA.
    fn check_file(&self, env: &Env, judged: &CheckedBuild, file: &Path) -> Result<(), CliError> {
        // A file in an unsupported format has no code for NVIDIA GPUs.
        let Ok(binary) = Binary::read(file) else { return Ok(()) };
        let Ok(kernels) = binary.kernels() else { return Ok(()) };
        if self.has_nothing(&judged.policy, &binary, kernels)? {
            return Ok(());
        }
        let seen = self.link_evidence(env, judged, &binary, kernels, &OpenFiles::default());
        self.check_acceptable(file, &pipeline::deferred_findings(judged, &seen, &binary))
    }

    fn target_dir(&self) -> &Path {
        self.of.build.own.parent().unwrap_or(&self.of.build.own)
    }

    /// Returns the output directories of build scripts, including those of other packages. Files in the directory of a
    /// package may belong to its sources, so it is not included.
    fn out_dirs(&self, env: &Env) -> Vec<PathBuf> {
        let of_script = |dir: &PathBuf| {
            let mut ours = dir.ancestors().take_while(|dir| dir.starts_with(self.target_dir()));
            let out = |dir: &&Path| {
                dir.ends_with("out") && dir.ancestors().skip(2).take(2).any(|above| above.ends_with("build"))
            };
            ours.find(out).map(Path::to_owned)
        };
        let others: BTreeSet<PathBuf> = self.unit.searched.iter().filter_map(of_script).collect();
        env.var_os("OUT_DIR").map(PathBuf::from).filter(|own| !others.contains(own)).into_iter().chain(others).collect()
    }
}

#[cfg(test)]
mod tests;
