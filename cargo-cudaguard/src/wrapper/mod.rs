//! The rustc wrapper: cargo calls it for each crate of the workspace as `RUSTC_WORKSPACE_WRAPPER`. It links the guard
//! into programs and C libraries, and seals their note before cargo copies the file to its final place. For all other
//! crates it only runs the compiler.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::binary::file::Binary;
use crate::binary::kernels::Kernels;
use crate::binary::mapped_file::OpenFiles;
use crate::knowledge::crates::Crate;
use crate::linked::check::Linked;
use crate::linked::evidence::{self, HostCode, Included, LinkEvidence};
use crate::linked::seal::ResolvedCudnn;
use crate::pipeline::{self, CheckedBuild};
use cudaguard::internal::checks;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{self, Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::guard::{self, GuardObjects};
use cudaguard::internal::lock::is_locked;
use cudaguard::internal::manifest::{Component, Linkage};
use cudaguard::internal::pipeline::{BuildCheck, BuildInputs, CudaIntent, fails_build};
use cudaguard::internal::policy::{self, Policy};
use cudaguard::internal::toolchain::BuildSystem;
use cudaguard::internal::vendor::{CUDART, CUDNN};

use crate::cargo::build_context::{BUILD, BuildContext, MARK, NO_CUDA, build_start_time};
use crate::cargo::build_records::{BuildRecord, BuildRecords, FileFingerprint};
use crate::cargo::guards::{self, Guard, Plan, Shims};
use crate::cargo::project::{self, Artefact, ArtefactKind};
use crate::cli::message::MessageFormat;
use crate::cli::report::{self, Level};
use crate::cli::signals;
use crate::commands::inspect;
use crate::linked::kernel_ownership;
use crate::linked::linker;

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
    fn fail(&self, error: &str) -> ExitCode {
        match self.form.filter(|_| !self.is_reported.get()) {
            Some(form) => report::print_line(&form.error(&format!("cudaguard: {error}")).to_string()),
            None => report::print_line(&format!("error: cudaguard: {error}")),
        }
        ExitCode::FAILURE
    }

    fn cannot_run(&self, program: &OsStr, error: &std::io::Error) -> ExitCode {
        self.fail(&format!("cannot run {}: {error}", Path::new(program).display()))
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
    let form = MessageFormat::of_rustc(&expand_arg_files(&words));
    Some(WrapperCall { build, words, lost, means_us, form, is_reported: Cell::new(false) })
}

/// Runs the compiler and guards its output if necessary.
pub(crate) fn run_wrapper(env: &Env, call: &WrapperCall) -> ExitCode {
    let mut command = compiler(call);
    let program = command.get_program().to_owned();
    let mut job = match CrateBuild::from_call(env, call) {
        Ok(Some(job)) => job,
        Ok(None) => return call.cannot_run(&program, &command.exec()),
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
    folder: PathBuf,
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
    fn report_late_findings(&self, judged: &CheckedBuild, is_new: bool) -> Result<(), String> {
        let of_crates = judged.of_crates.iter().filter(|one| one.severity > Severity::Info);
        // A build script that runs the check reports its findings itself.
        let others = judged.findings.iter().filter(|_| !self.embeds);
        let found: Vec<Finding> = of_crates.chain(others).cloned().collect();
        let refuses = fails_build(&found);
        if self.was_judged() && (is_new || !refuses) {
            return Ok(());
        }
        self.report_findings(&found);
        if refuses { Err(policy::not_built(&self.component, self.release)) } else { Ok(()) }
    }

    /// Returns true if the toolchain of this package was checked before cargo started.
    fn was_judged(&self) -> bool {
        let BuildContext { profile, made, .. } = self.build;
        let is_this = |(target, package, _): &(String, String, Artefact)| {
            *target == self.target && *package == self.component.name
        };
        *profile == self.profile && made.iter().any(is_this)
    }

    /// Reports findings in the format that the caller of cargo requested.
    fn report_findings(&self, findings: &[Finding]) {
        let as_json = MessageFormat::from_values(&self.build.message_format).filter(|form| !form.on_stderr);
        let manifest = self.folder.join("Cargo.toml");
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
        report::print_findings(&as_text);
        report::print_annotations(findings);
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
            folder: &self.folder,
            top: if build.members.is_empty() { &self.folder } else { &build.top },
            policy: None,
            target: &self.target,
            profile: &self.profile,
            release: self.release,
            locked: None,
            sees_linked: true,
            intent: if self.embeds { CudaIntent::Owner } else { CudaIntent::Nobody },
            archs: None,
            headers: None,
            given: None,
            reaches_cuda: self.crates().iter().any(Crate::reaches_cuda),
        }
    }
}

impl<'a> CrateBuild<'a> {
    fn from_call(env: &Env, call: &'a WrapperCall) -> Result<Option<Self>, String> {
        if !call.means_us {
            return Ok(None);
        }
        let build = &call.build;
        let Some(unit) = RustcArgs::parse(env, &call.words[1..]) else { return Ok(None) };
        if let Some(file) = call.lost.as_ref().filter(|_| unit.kind.is_some()) {
            return Err(format!(
                "{} is gone, and with it what was prepared for this build: run `cargo cudaguard` again, `cargo cudaguard env` where \
                 its variables are in use",
                file.display()
            ));
        }
        let Some(folder) = env.var_os("CARGO_MANIFEST_DIR").map(PathBuf::from) else { return Ok(None) };
        let is_ours = if build.members.is_empty() {
            env.var_os("CARGO_PRIMARY_PACKAGE").is_some()
        } else {
            build.members.contains(&folder)
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
        let (profile, release) = match unit.profile_folder() {
            Some(folder) if !build.members.is_empty() => project::profile_of_folder(folder, env, &build.top),
            _ => (build.profile.clone(), build.release),
        };
        let component = Component { name, version };
        let of = CratePackage { build, component, folder, target, profile, release, embeds, call };
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
        let artefact = Artefact { kind, name: self.unit.name.clone(), file: String::new() };
        let records = BuildRecords::for_target(&self.of.build.own, &self.of.target, &self.of.profile);
        records.read(&self.of.component.name, &artefact).is_some_and(|entry| entry.unguarded.is_none())
    }

    /// Checks the toolchain of this package and writes its guard. Workspace packages with evidence of CUDA were checked
    /// before cargo started; a package from a registry or a repository was not.
    fn judge(&mut self, env: &Env) -> Result<(), String> {
        let CratePackage { build, .. } = self.of;
        let facts = self.of.build_inputs();
        let judged = guards::check_package(env, &facts, self.of.crates(), &build.variables)?;
        if build.members.is_empty() && judged.is_refused() {
            self.of.report_findings(&judged.findings);
            return Err(format!("{} is not built with this toolchain", self.of.component.name));
        }
        if !build.members.is_empty() && self.unit.kind.is_some() {
            self.of.report_late_findings(&judged, build_start_time(env).is_some())?;
        }
        if self.unit.kind.is_some() {
            // Cargo stores the output of a compiler and repeats it in later builds, so no progress is reported here.
            let mut shims = Shims::new(&build.own, true);
            let plan = Plan::new(&facts, &judged, &build.own)?;
            self.guard = Some(plan.make(&facts, &judged, build_start_time(env), &mut shims)?);
        }
        self.judged = Some(judged);
        Ok(())
    }

    /// Adds the objects of the guard to the arguments of the compiler, unless the build script has added its own.
    fn link_guard(&self, call: &WrapperCall, command: &mut Command) -> Result<(), String> {
        match self.guard.as_ref().map(|guard| &guard.guarded) {
            Some(GuardObjects::Objects { note, shim }) if !self.unit.embeds => {
                for object in [note, shim] {
                    command.arg("-C").arg(link_argument(object));
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
    fn revise(&mut self, env: &Env) -> Result<bool, String> {
        if self.judged.is_some() && !self.by_record {
            return Ok(false);
        }
        let Some(file) = self.unit.produced_file(self.unit.kind.unwrap_or(ArtefactKind::Bin)) else { return Ok(false) };
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
    fn has_nothing(&self, policy: &Policy, binary: &Binary, kernels: &Kernels) -> Result<bool, String> {
        let has_nothing = pipeline::has_nothing(&self.of.build_inputs(), policy, binary, kernels)?;
        Ok(has_nothing && !linker::need_cuda(&binary.needed, &self.unit.searched))
    }

    /// Records a target that does not use CUDA.
    fn finish_unguarded(&self, env: &Env) -> Result<(), String> {
        let Some(kind) = self.unit.kind else { return Ok(()) };
        let key = guards::unguarded_key(&self.of.build_inputs(), &self.of.build.own, build_start_time(env))?;
        self.unit.depend_on(&key, self.unit.extra.is_empty())?;
        self.unit
            .produced_file(kind)
            .map_or(Ok(()), |file| self.record(kind, file, Some(NO_CUDA.to_owned()), Vec::new(), Vec::new()))
    }

    fn record(
        &self,
        kind: ArtefactKind,
        file: PathBuf,
        unguarded: Option<String>,
        built_with: Vec<String>,
        findings: Vec<Finding>,
    ) -> Result<(), String> {
        let mark =
            FileFingerprint::from_path(&file).map_err(|error| format!("cannot look at {}: {error}", file.display()))?;
        let build_records = BuildRecords::for_target(&self.of.build.own, &self.of.target, &self.of.profile);
        build_records.write_entry(&BuildRecord {
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
    fn seal_and_record(&self, env: &Env) -> Result<(), String> {
        let Some(judged) = &self.judged else { return self.finish_unguarded(env) };
        let (Some(kind), Some(guard)) = (self.unit.kind, &self.guard) else {
            return self.unit.produced_file(ArtefactKind::Bin).map_or(Ok(()), |file| self.look_at(env, judged, &file));
        };
        let shared = self.unit.extra.is_empty();
        self.unit.depend_on(&guard.key, shared)?;
        let Some(file) = self.unit.produced_file(kind) else {
            // The file has a format that only its target defines.
            return Ok(());
        };
        let mut unguarded = match (&guard.guarded, self.unit.embeds) {
            (GuardObjects::Unguarded(why), false) => Some(why.clone()),
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
                Ok(components) => built_with = components.iter().map(inspect::built_with).collect(),
                Err(why) => {
                    // If the guard is not required, a file without CUDA may have none.
                    if self.unit.embeds || about_cuda {
                        let new_findings = pipeline::not_guarded(&facts, &judged.policy, &self.unit.name, &file, &why);
                        self.check_acceptable(&file, &new_findings)?;
                        findings.extend(new_findings);
                    }
                    unguarded = Some(format!("the guard was linked, and {why}"));
                }
            }
        } else {
            self.look_at(env, judged, &file)?;
        }
        self.record(kind, file, unguarded, built_with, findings)
    }

    /// Checks if a file may have no guard. If it may, the summary at the end of the build mentions it.
    fn check_unguarded(&self, file: &Path, why: &str) -> Result<(), String> {
        let values = Values::default().with("component", &self.of.component).with("why", why);
        let finding = MessageTemplate::Unguarded.to_finding(&values);
        let weighed = self.of.build_inputs().apply_policy(&self.policy, vec![finding]).findings;
        if fails_build(&weighed) { self.check_acceptable(file, &weighed) } else { Ok(()) }
    }

    /// Checks if a file with these findings is accepted; deletes it otherwise.
    fn check_acceptable(&self, file: &Path, findings: &[Finding]) -> Result<(), String> {
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
        Err(policy::not_built(&self.of.component, self.of.release))
    }

    /// Returns the final artifacts that cargo creates if this build succeeds, for the same target.
    fn handed_over(&self) -> Option<Vec<PathBuf>> {
        let build = self.of.build;
        let below = self.unit.out.parent()?.strip_prefix(&build.kept).ok()?;
        let folder = build.own.parent()?.join(below);
        let files = build.made.iter().map(|(_, _, artefact)| &artefact.file).chain(&build.static_libraries);
        Some(files.map(|file| folder.join(file)).collect())
    }

    /// Checks a file without a guard: it is refused like any other file if it uses CUDA.
    fn look_at(&self, env: &Env, judged: &CheckedBuild, file: &Path) -> Result<(), String> {
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
        let of_script = |folder: &PathBuf| {
            let mut ours = folder.ancestors().take_while(|folder| folder.starts_with(self.target_dir()));
            let out = |folder: &&Path| {
                folder.ends_with("out") && folder.ancestors().skip(2).take(2).any(|above| above.ends_with("build"))
            };
            ours.find(out).map(Path::to_owned)
        };
        let others: BTreeSet<PathBuf> = self.unit.searched.iter().filter_map(of_script).collect();
        let own = env.var_os("OUT_DIR").map(PathBuf::from).filter(|own| !others.contains(own));
        own.into_iter().chain(others).collect()
    }

    /// Returns the objects that the linker is given by name, if this build created them.
    fn linked_objects(&self) -> Vec<PathBuf> {
        self.unit.objects.iter().filter(|object| object.starts_with(self.target_dir())).cloned().collect()
    }

    /// Returns the locations of build script outputs.
    fn build_outputs<'p>(
        &'p self,
        env: &Env,
        objects: &'p [PathBuf],
        files: &'p OpenFiles,
    ) -> kernel_ownership::BuildPlaces<'p> {
        let (out_dirs, target_dir) = (self.out_dirs(env), self.target_dir());
        kernel_ownership::BuildPlaces { package: None, out_dirs, objects, files, target_dir }
    }

    /// Returns the cuDNN headers that the code was compiled with, as far as the outputs of build scripts show them.
    fn included_headers(&self, env: &Env, binary: &Binary, open: &OpenFiles) -> Vec<Included> {
        if !binary.needed.iter().any(|name| CUDNN.is_named(name)) {
            return Vec::new();
        }
        let objects = self.linked_objects();
        let places = self.build_outputs(env, &objects, open);
        evidence::included_headers(&places.out_dirs, &kernel_ownership::object_files(&places), open)
    }

    /// Collects the evidence in the linked file about the toolkit.
    fn link_evidence(
        &self,
        env: &Env,
        judged: &CheckedBuild,
        binary: &Binary,
        kernels: &Kernels,
        open: &OpenFiles,
    ) -> LinkEvidence {
        let in_use = judged.toolchain.toolkit_version().map(Into::into);
        // A directory that the linker searches without a `-L` option comes last.
        let usual = judged.toolchain.cudart.as_ref().filter(|cudart| !cudart.is_of_toolkit());
        let usual = usual.and_then(|cudart| cudart.path.parent().map(Path::to_owned));
        let library = judged.toolchain.library_used().and_then(|library| library.path.parent().map(Path::to_owned));
        let searched: Vec<PathBuf> = self.unit.searched.iter().cloned().chain(usual).chain(library).collect();
        let objects = self.linked_objects();
        let places = self.build_outputs(env, &objects, open);
        let mut seen = LinkEvidence::from_linked_file(binary, kernels, in_use, &searched, |data| {
            kernel_ownership::owned_containers(data, kernels, &places)
        });
        seen.host = Some(HostCode::from_objects(binary.data(), &kernel_ownership::object_files(&places), open));
        seen
    }

    /// Checks the linked file against the policy and its manifest.
    fn verify_linked_file(
        &self,
        env: &Env,
        judged: &CheckedBuild,
        binary: &Binary,
        kernels: &Kernels,
        seen: &LinkEvidence,
        open: &OpenFiles,
    ) -> Result<(Option<ResolvedCudnn>, Vec<Finding>), String> {
        let BuildCheck { policy, toolchain, .. } = &judged.build;
        let noted = binary.manifests().flatten().map(|note| note.manifest);
        let manifest = noted.into_iter().find(|manifest| manifest.component.name == self.of.component.name);
        let facts = self.of.build_inputs();
        let manifest = manifest.unwrap_or_else(|| judged.to_manifest(&facts));
        let target_dir = self.target_dir();
        let mut own = Vec::new();
        if kernels.has_kernels()
            && !(policy.archs.is_empty() && policy.arch_words.is_empty() && manifest.declared.is_empty())
        {
            let places = kernel_ownership::BuildPlaces {
                package: Some(&self.of.folder),
                out_dirs: env.var_os("OUT_DIR").map(PathBuf::from).into_iter().collect(),
                objects: &self.unit.objects,
                files: open,
                target_dir,
            };
            own = kernel_ownership::owned_containers(binary.data(), kernels, &places);
        }
        let mut folders = vec![(target_dir.to_owned(), "cargo's target folder")];
        folders.extend(env.var_os("HOME").map(|home| (PathBuf::from(home), "the home of who built it")));
        let in_use = toolchain.named_releases();
        let linked = Linked {
            name: &self.unit.name,
            release: self.of.release,
            kernels,
            own: &own,
            declared_by: toolchain.archs.named_by(),
            seen,
            in_use: &in_use,
            by: BuildSystem::Cargo,
            needed: &binary.needed,
            cudart: binary.linkage(&CUDART),
            library: binary.linkage(CUDNN),
            rpath: binary.rpath.as_deref(),
            runpath: binary.runpath.as_deref(),
            folders: &folders,
        };
        let shown = pipeline::compiled_with(policy, toolchain, seen, &self.included_headers(env, binary, open));
        let (taken, library) = if let Some((taken, new_findings)) = shown {
            (Some(taken), new_findings)
        } else {
            let found = self.links_the_library_found(judged, binary);
            let mut library = if found { checks::build::linked_library(policy, toolchain) } else { Vec::new() };
            let (taken, new_findings) = pipeline::resolve_cudnn(&facts, policy, toolchain, &manifest, binary, seen);
            library.extend(new_findings);
            (taken, library)
        };
        let mut findings = pipeline::judge_linked(&facts, policy, &manifest, &linked, library, taken.as_ref());
        findings.extend(pipeline::lock_drift(&facts, policy, &manifest, &linked, &judged.deferred, is_locked(env))?);
        Ok((taken, findings))
    }

    /// Returns true if the file links the cuDNN of the checked toolchain. A cuDNN that a build script passes to the
    /// linker is not the detected one.
    fn links_the_library_found(&self, judged: &CheckedBuild, binary: &Binary) -> bool {
        let Some(library) = judged.toolchain.library_used() else { return false };
        let soname = format!("{}.{}", CUDNN.link_name(), library.major);
        let real = |path: &Path| fs::canonicalize(path).ok();
        let found = real(&library.path);
        let other = |folder: &PathBuf| {
            let named = real(&folder.join(CUDNN.link_name())).or_else(|| real(&folder.join(&soname)));
            named.is_some() && named != found
        };
        binary.linkage(CUDNN) == Linkage::Linked
            && binary.needed.contains(&soname)
            && !self.unit.searched.iter().any(other)
    }
}

/// The arguments of rustc that affect the guard.
#[derive(Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an argument of rustc by itself")]
struct RustcArgs {
    name: String,
    /// `None` if the output cannot be guarded.
    kind: Option<ArtefactKind>,
    /// Set for a program of `cargo test` or `cargo bench`.
    is_test: bool,
    out: PathBuf,
    /// The suffix that cargo adds to the name; empty if all builds use the same file name.
    extra: String,
    target: Option<String>,
    /// Set if the build script has added a guard to the arguments.
    embeds: bool,
    /// Set if the linker is given an NVIDIA library or a directory that contains one.
    links_cuda: bool,
    dep_info: bool,
    /// Additional files for the linker: objects of the build script.
    objects: Vec<PathBuf>,
    /// Directories in which the linker searches for libraries.
    searched: Vec<PathBuf>,
    /// The choice of static or dynamic linking of the C library, if an argument specifies it.
    crt_static: Option<bool>,
}

impl RustcArgs {
    /// Parses a call of the compiler; `None` if it builds no crate.
    fn parse(env: &Env, words: &[OsString]) -> Option<Self> {
        let mut unit = Self::default();
        let (mut types, mut test, mut links) = (Vec::new(), false, false);
        let mut for_linker = Vec::new();
        let words = expand_arg_files(words);
        let mut rest = words.iter().map(String::as_str);
        while let Some(word) = rest.next() {
            let (name, glued) = match word.split_once('=') {
                Some((name, value)) if word.starts_with("--") => (name, Some(value)),
                _ if word.len() > 2
                    && !word.starts_with("--")
                    && ["-C", "-l", "-L"].iter().any(|short| word.starts_with(short)) =>
                {
                    (&word[..2], Some(&word[2..]))
                }
                _ => (word, None),
            };
            let mut value = || glued.or_else(|| rest.next()).unwrap_or_default();
            match name {
                "--crate-name" => value().clone_into(&mut unit.name),
                "--crate-type" => types.extend(value().split(',').map(str::to_owned)),
                "--out-dir" => unit.out = value().into(),
                "--target" => unit.target = Some(value().to_owned()),
                "--test" => test = true,
                "--print" => return None,
                "--emit" => {
                    for kind in value().split(',') {
                        links |= kind == "link" || kind.starts_with("link=");
                        unit.dep_info |= kind == "dep-info";
                    }
                }
                "-C" | "--codegen" => {
                    let option = value();
                    if let Some(extra) = option.strip_prefix("extra-filename=") {
                        extra.clone_into(&mut unit.extra);
                    }
                    unit.crt_static = guard::crt_static(option).or(unit.crt_static);
                    if let Some(argument) = option.strip_prefix("link-arg=") {
                        unit.embeds |= is_embed_argument(argument);
                        if !argument.starts_with('-') && !is_embed_argument(argument) {
                            unit.objects.push(argument.into());
                        }
                        for_linker.push(argument.to_owned());
                    }
                    if let Some(arguments) = option.strip_prefix("link-args=") {
                        for_linker.extend(arguments.split_whitespace().map(str::to_owned));
                    }
                }
                "-L" => {
                    let folder = value();
                    let is_of_rust = ["dependency=", "crate="].iter().any(|kind| folder.starts_with(kind));
                    let kinds = ["native=", "all=", "dependency=", "crate=", "framework="];
                    let bare = kinds.iter().find_map(|kind| folder.strip_prefix(kind)).unwrap_or(folder);
                    unit.links_cuda |= !is_of_rust && linker::has_cuda(Path::new(bare));
                    unit.searched.push(bare.into());
                }
                "-l" => {
                    let library = value();
                    unit.embeds |= is_embed_argument(library);
                    // The syntax is `KIND:MODIFIERS=NAME:RENAME`.
                    let name = library.rsplit('=').next().and_then(|name| name.split(':').next()).unwrap_or_default();
                    unit.links_cuda |= linker::is_cuda(name);
                }
                _ => {}
            }
        }
        if unit.name.is_empty() || unit.out.as_os_str().is_empty() {
            return None;
        }
        unit.links_cuda |= for_linker.iter().any(|word| linker::names_cuda(word));
        // A library that is named by its path takes precedence over the searched directories.
        let by_linker = linker::Folders::from_args(for_linker.iter().map(String::as_str), env.current_dir());
        unit.searched.splice(0..0, by_linker.named);
        unit.searched.extend(by_linker.searched);
        let is = |wanted: &str| types.iter().any(|kind| kind == wanted);
        // Cargo sets this variable only for programs and examples: a test or a benchmark with its own `main` is
        // neither.
        let program = is("bin") && env.var_os("CARGO_BIN_NAME").is_some();
        let example = unit.out.ends_with("examples");
        unit.kind = match (program, is("cdylib")) {
            _ if test || !links || unit.name.starts_with("build_script_") => None,
            (true, _) if example => Some(ArtefactKind::Example),
            (true, _) => Some(ArtefactKind::Bin),
            (_, true) if example => Some(ArtefactKind::ExampleCdylib),
            (_, true) => Some(ArtefactKind::Cdylib),
            _ => None,
        };
        unit.is_test = links && (test || is("bin") && !program) && !unit.name.starts_with("build_script_");
        Some(unit)
    }

    /// Returns the directory name of the profile; `None` if cargo uses another directory layout.
    fn profile_folder(&self) -> Option<&str> {
        let of_kind = self.out.ends_with("deps") || self.out.ends_with("examples");
        self.out.parent().filter(|_| of_kind)?.file_name()?.to_str()
    }

    /// Returns the expected path of the output.
    fn output_file(&self, kind: ArtefactKind) -> PathBuf {
        self.out.join(match kind {
            ArtefactKind::Bin | ArtefactKind::Example => format!("{}{}", self.name, self.extra),
            ArtefactKind::Cdylib | ArtefactKind::ExampleCdylib => format!("lib{}{}.so", self.name, self.extra),
        })
    }

    /// Returns the output file, even if the target gives it another extension.
    fn produced_file(&self, kind: ArtefactKind) -> Option<PathBuf> {
        let file = self.output_file(kind);
        if file.is_file() {
            return Some(file);
        }
        let stem = format!("{}{}", self.name, self.extra);
        let names = ["wasm", "exe", "dll", "dylib", "js"].map(|ending| format!("{stem}.{ending}"));
        let others = std::iter::once(format!("lib{stem}.dylib"));
        names.into_iter().chain(others).map(|name| self.out.join(name)).find(|file| file.is_file())
    }

    /// Adds the guard to the dependencies that cargo knows of this crate. If `cargo build` creates a file of the same
    /// name, its dependencies include this variable too, so that cargo does not confuse the two files.
    fn depend_on(&self, key: &Path, shared: bool) -> Result<(), String> {
        if !self.dep_info {
            return Ok(());
        }
        let path = self.out.join(format!("{}{}.d", self.name, self.extra));
        let fail = |error: std::io::Error| format!("cannot add the guard to {}: {error}", path.display());
        let text = fs::read_to_string(&path).map_err(fail)?;
        let key = key.to_string_lossy().replace(' ', "\\ ");
        let mut changed = String::with_capacity(text.len() + 2 * key.len());
        for line in text.lines() {
            changed.push_str(line);
            if line.contains(": ") && !line.starts_with('#') {
                changed.push(' ');
                changed.push_str(&key);
            }
            changed.push('\n');
        }
        if shared {
            let _ = write!(changed, "\n# env-dep:{MARK}=1\n");
        }
        fs::write(&path, changed).map_err(fail)
    }
}

/// Returns true for an argument that `embed!()` added: its files start with `cudaguard`.
fn is_embed_argument(argument: &str) -> bool {
    let name = argument.rsplit(['/', '=', ':']).next().unwrap_or_default();
    name.starts_with("cudaguard") || name.starts_with("libcudaguard")
}

/// Replaces `@file` by the arguments in the file. Cargo uses such files if a command line would be too long.
fn expand_arg_files(words: &[OsString]) -> Vec<String> {
    let mut all = Vec::new();
    for word in words {
        let word = word.to_string_lossy();
        match word.strip_prefix('@').map(fs::read_to_string) {
            Some(Ok(text)) => all.extend(text.lines().map(str::to_owned)),
            _ => all.push(word.into_owned()),
        }
    }
    all
}

#[cfg(test)]
mod tests;
