//! Build-script front end for `cudaguard::embed!()`.

mod compiled;
mod error;
mod package;
pub mod rebuild_stamp;
pub use package::is_device_code;

pub use error::EmbedError;
use error::{EmbedFailure, fail_build};

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::mem;
use std::path::{self, Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::lock;
use crate::config::policy;
use crate::finding::render;
use crate::finding::{self, Finding, MessageTemplate, Severity, Values};
use crate::guard::{self, GuardObjects, NoteSource};
use crate::manifest::model::Component;
use crate::pipeline::{self, BuildCheck, BuildInputs, CudaIntent};
use crate::sys::env::{self, Env};
use crate::sys::file_error::FileError;
use crate::sys::files;

/// Options for [`embed!`](crate::embed!).
///
/// ```no_run
/// cudaguard::Embed::new().archs(["sm_80", "sm_90a", "compute_90"]).cudnn_include("vendor/cudnn/include").embed();
/// ```
///
/// Relative paths are relative to the package. The last call is always [`Embed::embed`]; without it nothing happens.
#[derive(Clone, Debug, Default)]
pub struct Embed {
    policy: Option<PathBuf>,
    cudnn_include: Option<PathBuf>,
    archs: Vec<String>,
    component: Option<Component>,
}

impl Embed {
    /// Creates the options with the defaults of [`embed!`](crate::embed!).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the policy file. The default is the `cudaguard.toml` of the package or the workspace.
    ///
    /// ```no_run
    /// cudaguard::Embed::new().policy("../policies/inference.toml").embed();
    /// ```
    #[must_use]
    pub fn policy(mut self, file: impl Into<PathBuf>) -> Self {
        self.policy = Some(file.into());
        self
    }

    /// Sets the directory of cuDNN's headers, for a build that uses headers which cudaguard would not find. It takes
    /// precedence over all variables and directories of the machine.
    #[must_use]
    pub fn cudnn_include(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cudnn_include = Some(dir.into());
        self
    }

    /// Sets the archs that the build compiles for, in the spelling of any tool: `sm_90a`, `90a`, `9.0+PTX`,
    /// `compute_90`. They take precedence over variables such as `CUDAARCHS` and over PTX files in `OUT_DIR`; `[gpu] archs`
    /// of the policy takes precedence over them. A text that is no arch is reported as a finding.
    #[must_use]
    pub fn archs<A: Into<String>>(mut self, archs: impl IntoIterator<Item = A>) -> Self {
        self.archs.extend(archs.into_iter().map(Into::into));
        self
    }

    /// Sets the component's name and version, which findings and `inspect` print. The default is the package's name and
    /// version.
    #[must_use]
    pub fn component(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.component = Some(Component { name: name.into(), version: version.into() });
        self
    }

    /// Checks the toolchain, and makes cargo link the manifest and the shim into everything that this package builds,
    /// and, from a library, into everything that links the library.
    ///
    /// If the policy refuses this build or cannot be read, the build script ends, and cargo shows the reasons as the errors of the
    /// failed build. The same happens if the manifest does not fit into
    /// its note, or a file of the build cannot be written.
    ///
    /// A build without a guard prints a warning: for a target other than Linux and Windows, for docs.rs, for a procedural macro, or
    /// without a C compiler.
    pub fn embed(self) {
        if let Err(error) = self.try_embed() {
            fail_build(&Env::from_process(), &error);
        }
    }

    /// Does the same as [`Embed::embed`], but returns the error instead of ending the build script.
    ///
    /// # Errors
    ///
    /// The reasons why this build may not continue. Nothing was printed for cargo then, so no guard is linked.
    ///
    /// ```no_run
    /// if let Err(error) = cudaguard::Embed::new().try_embed() {
    ///     println!("cargo::warning=built without a guard: {}", error.to_string().lines().next().unwrap_or_default());
    /// }
    /// ```
    pub fn try_embed(self) -> Result<(), EmbedError> {
        print!("{}", self.cargo_directives(&Env::from_process())?);
        Ok(())
    }

    /// Returns the `cargo:` directives, or the error that fails the build. Nothing is printed before the result is
    /// known, because cargo shows the stdout of a failed build script above the reason.
    fn cargo_directives(&self, env: &Env) -> Result<String, EmbedError> {
        let package = BuildScriptPackage::from_env(env)?;
        let component = self.component.clone().unwrap_or_else(|| package.component.clone());
        if env.var_os("DOCS_RS").is_some() {
            return Ok(unguarded_warning(&component, "docs.rs does not link"));
        }
        if is_proc_macro(&package.dir) {
            return Ok(unguarded_warning(
                &component,
                "a procedural macro runs inside the compiler, which the guard could end",
            ));
        }
        let own = package::package_files(&package.dir, &package.out_dir);
        let facts = self.build_inputs(env, &package, &component, own.kernels);
        let judged = facts.check(env).map_err(|error| EmbedError::unchecked(env, &error))?;
        leave(env, &package.component, &judged.findings);
        if judged.is_refused() {
            return Err(EmbedError::refused(env, &judged.findings, &component, package.release));
        }
        let mut cargo_lines = String::new();
        for finding in with_severity(&judged.findings) {
            warn_of(&mut cargo_lines, finding);
        }
        let descriptor = judged.encode_note(&facts).map_err(|error| EmbedError::unchecked(env, &error))?;
        // `cargo cudaguard` names the directory that it owns in the target directory. With plain cargo, the next run
        // of this build script finds the shim in its own directory: to compile it takes seconds.
        let shims = env
            .var_os(env::STAMP_DIR_VAR)
            .map_or_else(|| package.out_dir.join("shims"), |stamps| Path::new(&stamps).with_file_name("shims"));
        let note = NoteSource { descriptor: &descriptor, component: &facts.component, dlopen: None };
        let guarded = guard::compile_guard(env, note, facts.target, &package.out_dir, &shims);
        match guarded.map_err(|error| EmbedError::unchecked(env, &error))? {
            GuardObjects::Objects { note, shim } => {
                if let Some(archive) = archive_alone(&package) {
                    push_warning(
                        &mut cargo_lines,
                        &format!(
                            "{archive} contains the guard, but a linker omits archive members that no symbol refers to: link it \
                             between -Wl,--whole-archive and -Wl,--no-whole-archive, or guard the program that links it"
                        ),
                    );
                }
                if guard::windows::is_windows(facts.target) {
                    push_warning(
                        &mut cargo_lines,
                        "the guard for Windows is experimental: it was tested under Wine, and not on Windows",
                    );
                }
                push_link_directives(env, &mut cargo_lines, &component, &package, &note, &shim)?;
                for argument in guard::windows::delay_load_arguments(&judged.to_manifest(&facts)) {
                    push_directive(&mut cargo_lines, "rustc-link-arg", &argument);
                }
            }
            GuardObjects::Unguarded(why) => {
                let applied = facts.apply_policy(&judged.policy, vec![not_guarded(&component, &why)]).findings;
                if pipeline::fails_build(&applied) {
                    return Err(EmbedError::refused(env, &applied, &component, package.release));
                }
                for finding in with_severity(&applied) {
                    warn_of(&mut cargo_lines, finding);
                }
            }
        }
        announce_inputs(env, &mut cargo_lines, &package, own.announced, &judged)?;
        Ok(cargo_lines)
    }

    /// Returns what this build script knows about the package's use of CUDA. `compiles`: it has kernels.
    fn intent(&self, package: &BuildScriptPackage, compiles: bool) -> CudaIntent {
        let shows_use =
            !self.archs.is_empty() || self.cudnn_include.is_some() || pipeline::script_names_cuda(&package.dir);
        if compiles {
            CudaIntent::Build
        } else if !shows_use && pipeline::only_loads_cuda(&package.component.name, &package.dir, &package.workspace) {
            CudaIntent::RunTime
        } else {
            CudaIntent::Owner
        }
    }

    fn build_inputs<'a>(
        &self,
        env: &Env,
        package: &'a BuildScriptPackage,
        component: &Component,
        kernels: bool,
    ) -> BuildInputs<'a> {
        // `cargo cudaguard` examines the linked file, and sets the directory of stamps. Another project links an archive.
        let sees_linked = env.var_os(env::STAMP_DIR_VAR).is_some() && archive_alone(package).is_none();
        let compiled = (!sees_linked).then(|| compiled::read_ptx_files(&package.out_dir)).flatten();
        let declared = (!self.archs.is_empty()).then(|| self.archs.join(";"));
        BuildInputs {
            component: component.clone(),
            package: &package.component.name,
            dir: &package.dir,
            top: &package.workspace,
            policy: self.policy.as_ref().map(|file| package.dir.join(file)),
            target: &package.target,
            profile: &package.profile,
            release: package.release,
            locked: None,
            sees_linked,
            intent: self.intent(package, kernels || compiled.is_some()),
            ptx_isa: compiled.as_ref().map(|ptx| ptx.isa),
            archs: declared.or_else(|| compiled.map(|ptx| ptx.archs)),
            headers: self.cudnn_include.as_ref().map(|dir| package.dir.join(dir)),
            given: None,
            by_crates: CudaIntent::Unstated,
            uses_cudnn: false,
        }
    }
}

/// Stores the findings in a file for `cargo cudaguard`, if it runs this build, because cargo has no message for the
/// output of a build script. A write error is ignored.
fn leave(env: &Env, component: &Component, findings: &[Finding]) {
    let Some(dir) = env.var_os(env::STAMP_DIR_VAR) else { return };
    let text = render::to_json(with_severity(findings)).to_string();
    let _ = fs::write(rebuild_stamp::findings_path(Path::new(&dir), component), text);
}

/// Returns the findings that are printed, in report order: warnings and errors.
fn with_severity(findings: &[Finding]) -> Vec<&Finding> {
    let mut printed = finding::sorted_unique(findings);
    printed.retain(|finding| finding.severity > Severity::Info);
    printed
}

/// Returns the message for a refused build: its findings and the other options of the user.
fn render_refusal(env: &Env, findings: &[Finding], component: &Component, release: bool) -> String {
    let printed = with_severity(findings);
    let refusal = policy::not_built(component, release);
    let text = render::to_text(printed.iter().copied());
    let annotations = if env.is_github_workflow() { render::to_github(printed) } else { String::new() };
    format!("{text}cudaguard: {refusal}\n{annotations}").trim_end().to_owned()
}

/// The package being built, from the variables that cargo sets for its build script.
struct BuildScriptPackage {
    dir: PathBuf,
    workspace: PathBuf,
    out_dir: PathBuf,
    component: Component,
    target: String,
    profile: String,
    release: bool,
}

impl BuildScriptPackage {
    fn from_env(env: &Env) -> Result<Self, EmbedError> {
        let out_dir = PathBuf::from(cargo_variable(env, "OUT_DIR")?);
        // cargo sets `PROFILE` to `release` for every profile that inherits from `release`.
        let release = cargo_variable(env, "PROFILE")? == "release";
        let dir = PathBuf::from(cargo_variable(env, "CARGO_MANIFEST_DIR")?);
        let name = cargo_variable(env, "CARGO_PKG_NAME")?.to_string_lossy().into_owned();
        let version = cargo_variable(env, "CARGO_PKG_VERSION")?.to_string_lossy().into_owned();
        Ok(Self {
            workspace: workspace_root(&dir),
            dir,
            component: Component { name, version },
            target: cargo_variable(env, "TARGET")?.to_string_lossy().into_owned(),
            profile: profile_name(&out_dir, release),
            out_dir,
            release,
        })
    }
}

/// Returns the name of the profile. cargo passes only the inherited profile to build scripts, but `OUT_DIR` contains
/// the name (`target/bench-lto/build/package-hash/out`), with `debug` for `dev`.
fn profile_name(out_dir: &Path, release: bool) -> String {
    let names = out_dir.iter().rev().take(4).map(|name| name.to_string_lossy()).collect::<Vec<_>>();
    match &names[..] {
        [_, _, build, dir] if build == "build" && dir != "debug" => dir.to_string(),
        _ if release => "release".to_owned(),
        _ => "dev".to_owned(),
    }
}

/// Returns the root of the workspace, as cargo finds it: the path in the package's own manifest, otherwise the nearest
/// directory upwards whose manifest defines a workspace that does not exclude the package, otherwise the package
/// itself. The search stops at a package that cargo downloaded, because the directories above it belong to another
/// project.
fn workspace_root(package: &Path) -> PathBuf {
    let pointer = in_manifest(package, |table| {
        table.get("package")?.get_ref().get("workspace")?.get_ref().as_str().map(str::to_owned)
    });
    if let Some(pointer) = pointer.flatten() {
        return without_dots(&package.join(pointer));
    }
    let mut above_fetched = false;
    package
        .ancestors()
        .take_while(|dir| !mem::replace(&mut above_fetched, lock::is_fetched(dir)))
        .find(|dir| in_manifest(dir, |table| is_root(dir, table, package)).unwrap_or(false))
        .unwrap_or(package)
        .to_owned()
}

fn cargo_variable(env: &Env, name: &str) -> Result<OsString, EmbedError> {
    env.var_os(name).ok_or_else(|| EmbedError(EmbedFailure::NoBuildScript(name.to_owned())))
}

/// Returns true if this manifest defines a workspace that does not exclude the package. A listed member is never
/// excluded, even if a directory above it is.
fn is_root(dir: &Path, table: &DeTable<'_>, package: &Path) -> bool {
    let Some(workspace) = table.get("workspace") else { return false };
    lists_package(workspace.get_ref().get("members"), dir, package)
        || !lists_package(workspace.get_ref().get("exclude"), dir, package)
}

/// Returns true if a list of paths below `dir` contains the package or a directory above it.
fn lists_package(list: Option<&Spanned<DeValue<'_>>>, dir: &Path, package: &Path) -> bool {
    let Some(list) = list.and_then(|list| list.get_ref().as_array()) else { return false };
    let mut paths = list.iter().filter_map(|path| path.get_ref().as_str());
    paths.any(|path| package.starts_with(without_dots(&dir.join(path))))
}

/// Returns the path without `.` and `..`. Like cargo, this does not resolve links.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            path::Component::CurDir => {}
            path::Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

fn is_proc_macro(package: &Path) -> bool {
    in_manifest(package, |table| {
        ["proc-macro", "proc_macro", "crate-type", "crate_type"].into_iter().any(|key| {
            let value = table.get("lib").and_then(|library| library.get_ref().get(key)).map(Spanned::get_ref);
            match value {
                Some(DeValue::Boolean(is_marked)) => *is_marked && key.starts_with("proc"),
                Some(DeValue::Array(kinds)) => {
                    key.starts_with("crate") && kinds.iter().any(|kind| kind.get_ref().as_str() == Some("proc-macro"))
                }
                _ => false,
            }
        })
    })
    .unwrap_or(false)
}

/// Returns the name of the static library that this package builds, if no other target of the package can contain the
/// guard.
fn archive_alone(package: &BuildScriptPackage) -> Option<String> {
    let dir = &package.dir;
    let name = in_manifest(dir, |table| {
        let library = table.get("lib")?.get_ref();
        let kinds = library.get("crate-type").or_else(|| library.get("crate_type"))?.get_ref().as_array()?;
        let alone = !kinds.is_empty()
            && kinds.iter().all(|kind| kind.get_ref().as_str().is_some_and(|kind| kind == "staticlib"));
        let programs = table.get("bin").is_some();
        let named = library.get("name").and_then(|name| Some(name.get_ref().as_str()?.to_owned()));
        (alone && !programs).then(|| named.unwrap_or_else(|| package.component.name.replace('-', "_")))
    });
    let name = name.flatten()?;
    let programs = ["src/main.rs", "src/bin"].iter().any(|path| dir.join(path).exists());
    (!programs).then(|| format!("lib{name}.a"))
}

/// Returns true if the package has a library target.
fn has_library(package: &Path) -> bool {
    package.join("src/lib.rs").exists() || in_manifest(package, |table| table.contains_key("lib")).unwrap_or(false)
}

fn in_manifest<T>(dir: &Path, answer: impl FnOnce(&DeTable<'_>) -> T) -> Option<T> {
    let text = files::read_text(&dir.join("Cargo.toml")).ok()?;
    let table = DeTable::parse(&text).ok()?;
    Some(answer(table.get_ref()))
}

/// Prints the directives that link the note and the shim, as link arguments and as an archive. Both are needed: in a
/// package with a library, the archive reaches only the library, so a binary that does not use the library would have
/// no guard; and only the archive reaches the packages that link the library. A file that gets both contains each part
/// once, because the objects use COMDAT groups.
fn push_link_directives(
    env: &Env,
    cargo_lines: &mut String,
    component: &Component,
    package: &BuildScriptPackage,
    note: &Path,
    shim: &Path,
) -> Result<(), EmbedError> {
    let BuildScriptPackage { out_dir, target, .. } = package;
    for object in &[note, shim] {
        push_directive(cargo_lines, "rustc-link-arg", utf8_path(object)?);
    }
    let flags = env.var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let static_libc = flags.split('\x1f').filter_map(guard::crt_static).next_back();
    if guard::is_static(target, static_libc, &env.var_os("RUSTC").unwrap_or_else(|| "rustc".into())) {
        push_directive(cargo_lines, "rustc-link-arg", guard::LIBC_LINK_ARG);
    }
    for argument in guard::windows::link_arguments(target) {
        push_directive(cargo_lines, "rustc-link-arg", argument);
    }
    // Objects for Windows have no COMDAT groups. Without a library, the arguments reach every file of the package.
    if guard::windows::is_windows(target) && !has_library(&package.dir) {
        return Ok(());
    }
    let name = guard::note_group(component);
    let archive = guard::windows::archive_path(out_dir, target, &name);
    let [note, shim] = [note, shim].map(|path| fs::read(path).map_err(|error| FileError::read(path, error)));
    fs::write(&archive, guard::write_archive(&[("note.o", &note?), ("shim.o", &shim?)]))
        .map_err(|error| FileError::write(&archive, error))?;
    push_directive(cargo_lines, "rustc-link-search", &format!("native={}", utf8_path(out_dir)?));
    push_directive(cargo_lines, "rustc-link-lib", &format!("static:+whole-archive={name}"));
    Ok(())
}

/// Prints the directives that rerun the build script when an input changes: the package's files, the files that were
/// read, and the variables that were accessed.
fn announce_inputs(
    env: &Env,
    cargo_lines: &mut String,
    package: &BuildScriptPackage,
    mut files: Vec<PathBuf>,
    judged: &BuildCheck,
) -> Result<(), EmbedError> {
    files.extend(judged.policy.path.clone());
    files.extend(judged.lock.clone());
    files.push(package.workspace.join("Cargo.lock"));
    files.extend(judged.toolchain.read_files());
    if let Some(dir) = env.var_os(env::STAMP_DIR_VAR) {
        // Uses the name of the package even if the builder sets a component, because the command knows only the
        // package.
        files.push(rebuild_stamp::digest_file(Path::new(&dir), &package.component));
    }
    files.sort();
    files.dedup();
    // cargo treats a missing file as changed, every time.
    for file in files.iter().filter(|file| file.exists()) {
        push_directive(cargo_lines, "rerun-if-changed", utf8_path(file)?);
    }
    push_directive(cargo_lines, "rerun-if-env-changed", env::STAMP_DIR_VAR);
    for variable in env.accessed().iter().filter(|name| !rebuild_stamp::given_by_cargo(name)) {
        push_directive(cargo_lines, "rerun-if-env-changed", variable);
    }
    Ok(())
}

fn utf8_path(path: &Path) -> Result<&str, EmbedError> {
    let text = path.to_str().filter(|text| !text.contains('\n'));
    text.ok_or_else(|| EmbedError(EmbedFailure::Path(path.to_owned())))
}

/// Prints a directive as `cargo:`, not `cargo::`: cargo rejects the newer form if the package's rust-version is older
/// than 1.77.
fn push_directive(cargo_lines: &mut String, key: &str, value: &str) {
    let _ = writeln!(cargo_lines, "cargo:{key}={value}");
}

fn push_warning(cargo_lines: &mut String, line: &str) {
    push_directive(cargo_lines, "warning", line);
}

fn warn_of(cargo_lines: &mut String, finding: &Finding) {
    for line in finding.render().lines() {
        push_warning(cargo_lines, line);
    }
}

fn unguarded_warning(component: &Component, why: &str) -> String {
    let mut cargo_lines = String::new();
    warn_of(&mut cargo_lines, &not_guarded(component, why));
    cargo_lines
}

fn not_guarded(component: &Component, why: &str) -> Finding {
    MessageTemplate::Unguarded.to_finding(&Values::default().with("component", component).with("why", why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profile_is_derived_from_directory() {
        for (out_dir, release, expected) in [
            ("/w/target/debug/build/p-0123/out", false, "dev"),
            ("/w/target/release/build/p-0123/out", true, "release"),
            ("/w/target/aarch64-unknown-linux-gnu/release/build/p-0123/out", true, "release"),
            ("/w/target/bench-lto/build/p-0123/out", true, "bench-lto"),
            ("/elsewhere", true, "release"),
            ("/elsewhere", false, "dev"),
        ] {
            assert_eq!(profile_name(Path::new(out_dir), release), expected, "{out_dir}");
        }
    }

    #[test]
    fn missing_build_script_is_an_error() {
        let why = Embed::new().cargo_directives(&Env::without_variables()).unwrap_err();
        assert_eq!(why, EmbedError(EmbedFailure::NoBuildScript("OUT_DIR".to_owned())));
    }

    #[test]
    fn workspace_matches_cargo() {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path();
        let plain = "[package]\nname = \"p\"\n";
        for (dir, manifest) in [
            ("", "[workspace]\nmembers = [\"in\", \"apart/but/in\"]\nexclude = [\"out\", \"apart\"]\n"),
            ("in", plain),
            ("out/of/it", plain),
            ("apart/but/in", plain),
            ("own", "[workspace]\n[package]\nname = \"p\"\n"),
            ("aside", "[package]\nname = \"p\"\nworkspace = \"../own/./\"\n"),
            ("vendor/fetched", plain),
            ("vendor/fetched/below", plain),
        ] {
            fs::create_dir_all(top.join(dir)).unwrap();
            fs::write(top.join(dir).join("Cargo.toml"), manifest).unwrap();
        }
        fs::write(top.join("vendor/fetched/.cargo-checksum.json"), "{}").unwrap();
        for (package, root) in [
            ("in", ""),
            ("out/of/it", "out/of/it"),
            ("apart/but/in", ""),
            ("own", "own"),
            ("aside", "own"),
            ("vendor/fetched", "vendor/fetched"),
            ("vendor/fetched/below", "vendor/fetched/below"),
        ] {
            assert_eq!(workspace_root(&top.join(package)).components(), top.join(root).components(), "{package}");
        }
    }
}
