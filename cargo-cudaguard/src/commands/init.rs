//! `init`: writes the files that guard a project under plain cargo as well. It overwrites nothing, so that it can be run again.

mod cmake;
mod dependency;

use dependency::{dependency_source, version_series};

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::PUBLISHED;
use cudaguard::internal::env::Env;
use cudaguard::internal::file_error::{FileError, FileProblem};
use cudaguard::internal::files;
use cudaguard::internal::json;
use cudaguard::internal::lock::{LockScope, Pins};
use cudaguard::internal::pipeline::{CudaIntent, names_cudnn};
use cudaguard::internal::policy::{FILE, Policy};
use cudaguard::internal::version::Version;

use crate::cargo::graph::CrateGraph;
use crate::cargo::guards;
use crate::cargo::project::{Package, Project, repository_root, shows_use_of_cuda};
use crate::cli::arguments::Call;
use crate::cli::report::{self, CliError};
use crate::knowledge::crates::Crate;

const BUILD_RS: &str = "fn main() {\n    cudaguard::embed!();\n}\n";
/// The command of the templates that installs `cargo cudaguard`.
const TEMPLATE_INSTALL: &str = "cargo install --locked --path third_party/cudaguard/cargo-cudaguard";
/// First line of a policy, from which editors download the schema.
const SCHEMA: &str = "https://raw.githubusercontent.com/cudaguard/cudaguard/main/templates/cudaguard.schema.json";
const INTRODUCTION: &str = "# Requirements for the CUDA builds of this project. `cargo cudaguard check` checks them.\n";
const WORKFLOW: Workflow = Workflow {
    template: include_str!("../../templates/cudaguard.yml"),
    check: "run `cargo cudaguard check --workspace --release`",
};

/// A workflow of GitHub, and what a job without it has to do.
struct Workflow {
    template: &'static str,
    check: &'static str,
}

/// The changes that `init` made or, in a dry run, would make.
struct Changes {
    /// The output: one line for each file.
    report: String,
    dry_run: bool,
}

impl Changes {
    fn line(&mut self, text: impl std::fmt::Display) {
        let _ = writeln!(self.report, "{text}");
    }

    /// Prints the report. `unchecked`: why the crates of a package that was skipped are not known.
    fn finish(&self, unchecked: Option<&String>) -> Result<ExitCode, CliError> {
        report::print_result(&self.report)?;
        match unchecked {
            Some(why) => Err(CliError::operational(format_args!("the dependencies cannot be checked: {why}"))),
            None => Ok(ExitCode::SUCCESS),
        }
    }

    /// Reports a change, in a dry run as a change that would be made.
    fn done(&mut self, verb: &str, infinitive: &str, what: impl std::fmt::Display) {
        if self.dry_run {
            self.line(format_args!("would {infinitive} {what}"));
        } else {
            self.line(format_args!("{verb} {what}"));
        }
    }
}

pub(crate) fn run_init(env: &Env, arguments: &[OsString]) -> Result<ExitCode, CliError> {
    let call = Call::parse(None, arguments);
    let mut changes = Changes { report: String::new(), dry_run: call.dry_run };
    if call.cmake {
        cmake::init_cmake(env, &mut changes, &dependency_source(&call)?)?;
        report::print_result(&changes.report)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (call, config, project) = Project::from_args(env, arguments)?;
    let source = dependency_source(&call)?;
    let variables = config.env_table();
    let target = &project.targets[0];
    let graph = CrateGraph::from_project(&project, &call, &config, &project.target_dir.join("cudaguard"), false);
    let (mut guards_one, mut unchecked) = (false, None);
    for at in &project.selected {
        let package = &project.members[*at];
        let policy = Policy::for_package(&package.dir, &project.top, &package.name);
        let inputs = guards::build_inputs(&project, package, target);
        if call.packages.contains(&package.name)
            || package.embeds
            || !graph.crates_of(target, &package.name).is_empty()
            || policy.is_ok_and(|policy| inputs.wants_guard(&policy))
            || shows_use_of_cuda(&package.dir)
        {
            guards_one = true;
            add_embed(&mut changes, package, &source)?;
        } else if let Some(why) = &graph.unchecked {
            unchecked = Some(why);
            changes.line(format_args!(
                "skipped {}: its crates are not known. To guard it anyway, add `-p {}` to this command",
                package.dir.join("Cargo.toml").display(),
                package.name
            ));
        } else {
            changes.line(format_args!(
                "skipped {}: it has no CUDA source file, build script or known crate. To guard it anyway, add `-p {}` to this command",
                package.dir.join("Cargo.toml").display(),
                package.name
            ));
        }
    }
    let first = project.selected.first().map(|at| &project.members[*at]);
    let first = first.ok_or_else(|| CliError::operational("no package is selected: pass -p PACKAGE or --workspace"))?;
    if !guards_one {
        // A policy would make each package use CUDA.
        return changes.finish(unchecked);
    }
    let found = Policy::candidate_paths(&first.dir, &project.top).into_iter().find(|place| place.exists());
    let requires_toolkit = if let Some(found) = found {
        changes.line(format_args!("kept {}", found.display()));
        Policy::for_package(&first.dir, &project.top, &first.name).is_ok_and(|policy| policy.toolkit.is_some())
    } else {
        // Only if there is no policy yet: the existing file may be unreadable, which is not an error here.
        let judged =
            guards::check_package(&config.env, &guards::build_inputs(&project, first, target), &[], &variables)?;
        let crates = graph.crates_of(target, &first.name);
        let pins = Pins::from_toolchain(&judged.policy, &judged.toolchain, LockScope::WHOLE);
        let uses_toolkit = guards::intent_of_crates(crates, &first.dir) != CudaIntent::RunTime;
        let pins = Pins {
            toolkit: pins.toolkit.filter(|_| uses_toolkit),
            library: pins.library.filter(|_| uses_cudnn(&first.dir, crates)),
            ..pins
        };
        write_new_file(&mut changes, &project.top.join(FILE), &policy_text(&pins))?;
        pins.toolkit.is_some()
    };
    write_workflow(&mut changes, &project.top, &WORKFLOW, requires_toolkit, &source)?;
    changes.finish(unchecked)
}

/// Returns true if a crate, or the build script of the package, mentions cuDNN. A cuDNN that is only installed is no reason to
/// require it.
fn uses_cudnn(package: &Path, crates: &[Crate]) -> bool {
    let mut names = crates.iter().flat_map(|one| std::iter::once(&one.name).chain(&one.features));
    names.any(|name| name.contains("cudnn")) || names_cudnn(package)
}

/// The `cudaguard` library that packages will depend on.
enum DependencySource {
    /// A directory; `because` explains it if the user did not name it.
    Directory { directory: PathBuf, because: &'static str },
    /// A repository.
    Repository { url: String, revision: String, because: &'static str },
    /// A release that a registry may not have.
    Registry,
}

impl DependencySource {
    /// Returns the value of `cudaguard =` in the manifest of a package. A path is relative to the package.
    fn dependency(&self, package: &Path) -> String {
        // A path or a repository also needs the version: without it, `cargo package` fails. TOML and JSON strings have
        // the same syntax here.
        match self {
            Self::Directory { directory, .. } => {
                let path = relative(package, directory);
                format!("{{ path = {}, version = \"{}\" }}", json::quote(&path.to_string_lossy()), version_series())
            }
            Self::Repository { url, revision, .. } if revision.is_empty() => {
                format!("{{ git = {}, version = \"{}\" }}", json::quote(url), version_series())
            }
            Self::Repository { url, revision, .. } => {
                format!(
                    "{{ git = {}, rev = {}, version = \"{}\" }}",
                    json::quote(url),
                    json::quote(revision),
                    version_series()
                )
            }
            Self::Registry => format!("\"{}\"", version_series()),
        }
    }

    /// Returns the shell command that installs this release of `cargo cudaguard` in the project directory `top`, or `None`
    /// for a registry: the command is not published yet.
    fn install_command(&self, top: &Path) -> Option<String> {
        match self {
            Self::Directory { directory, .. } => {
                let path = relative(top, &directory.with_file_name("cargo-cudaguard"));
                Some(format!("cargo install --locked --path {}", shell_quote(&path.to_string_lossy())))
            }
            Self::Repository { url, revision, .. } => {
                let revision =
                    if revision.is_empty() { String::new() } else { format!(" --rev {}", shell_quote(revision)) };
                Some(format!("cargo install --locked --git {}{revision} cargo-cudaguard", shell_quote(url)))
            }
            Self::Registry => None,
        }
    }

    const fn because(&self) -> &'static str {
        match self {
            Self::Directory { because, .. } | Self::Repository { because, .. } => because,
            Self::Registry => "",
        }
    }
}

fn shell_quote(text: &str) -> Cow<'_, str> {
    shlex::try_quote(text).unwrap_or(Cow::Borrowed(text))
}

/// Returns the path of `to` as seen from the directory `from`.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let [from, to] = [from, to].map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
    let common = from.components().zip(to.components()).take_while(|(one, other)| one == other).count();
    let up = from.components().skip(common).map(|_| Path::new(".."));
    let down = to.components().skip(common).map(|component| Path::new(component.as_os_str()));
    up.chain(down).collect()
}

/// Writes build.rs and adds the dependency that it needs. If there is a build script already, reports what to add to
/// it.
fn add_embed(changes: &mut Changes, package: &Package, source: &DependencySource) -> Result<(), CliError> {
    let manifest = package.dir.join("Cargo.toml");
    let text = files::read_text(&manifest).map_err(|error| FileError::read(&manifest, error))?;
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| FileError::read(&manifest, FileProblem::damaged(error.to_string())))?;
    let named = table.get("package").and_then(|table| table.get("build"));
    let script = package.dir.join(named.and_then(toml::Value::as_str).unwrap_or("build.rs"));
    let [marked, also_marked] = ["proc-macro", "proc_macro"].map(|key| table.get("lib")?.get(key)?.as_bool());
    if marked.or(also_marked) == Some(true) {
        changes.line(format_args!("{}: skipped, because a procedural macro runs in the compiler", manifest.display()));
        return Ok(());
    }
    // `cargo add` would write no version next to a repository, and `cargo package` would then fail.
    let by_version = matches!(source, DependencySource::Registry);
    let forbidden = named.and_then(toml::Value::as_bool) == Some(false);
    if forbidden {
        changes.line(format_args!(
            "{}: it has `build = false`: use `cargo cudaguard build` to guard it",
            manifest.display()
        ));
        return Ok(());
    }
    if by_version && PUBLISHED.is_empty() && !package.embeds {
        changes.line(format_args!(
            "{}: not changed, because no registry has cudaguard: run `cargo cudaguard init --path CHECKOUT/guard-core`, or pass --git URL",
            manifest.display()
        ));
        return Ok(());
    }
    let there = match files::read_text(&script) {
        Ok(text) => Some(["cudaguard::", "use cudaguard"].iter().any(|word| text.contains(word))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(FileError::read(&script, error).into()),
    };
    let dependency = source.dependency(&package.dir);
    let add = if by_version {
        format!("run `cargo add --build --package {} cudaguard`", package.name)
    } else {
        format!("add `cudaguard = {dependency}` to [build-dependencies] of {}", manifest.display())
    };
    if there == Some(false) {
        // The dependency alone would make `cargo cudaguard` assume that the script runs the check.
        let line = "`cudaguard::embed!();`";
        let first = if package.embeds { String::new() } else { format!("{add} and ") };
        changes.line(format_args!(
            "{}: exists, but does not call embed!(): {first}add {line} to its main",
            script.display()
        ));
        return Ok(());
    }
    if !package.embeds {
        let Some(text) = add_dependency(&text, &table, &dependency) else {
            // A build.rs without its dependency would break the build.
            changes.line(format_args!(
                "{}: cannot edit [build-dependencies]: {add}, then run this command again",
                manifest.display()
            ));
            return Ok(());
        };
        // Written in place, because the file may be a symbolic link or have special permissions.
        if !changes.dry_run {
            fs::write(&manifest, text).map_err(|error| FileError::read(&manifest, error))?;
        }
        let because = source.because();
        changes.done(
            "added",
            "add",
            format_args!("cudaguard to [build-dependencies] of {}{because}", manifest.display()),
        );
    } else if !by_version {
        let is_named = source.because().is_empty();
        replace_dependency(changes, &manifest, &text, &table, (&dependency, is_named))?;
    }
    write_new_file(changes, &script, BUILD_RS).map(drop)
}

/// Replaces a build-dependency on a release of cudaguard, which a registry may not have, by this one. `is_named`: the user named the
/// source, so that it replaces another one, too.
fn replace_dependency(
    changes: &mut Changes,
    manifest: &Path,
    text: &str,
    table: &toml::Table,
    (dependency, is_named): (&str, bool),
) -> Result<(), CliError> {
    let Some(written) = table.get("build-dependencies").and_then(|table| table.get("cudaguard")) else { return Ok(()) };
    let new = format!("cudaguard = {dependency}");
    if value_of_line(&new).as_ref() == Some(written) || !(written.is_str() || is_named) {
        return Ok(());
    }
    let names_source_only = written.as_table().is_none_or(|table| {
        table.keys().all(|key| ["path", "git", "rev", "branch", "tag", "version"].contains(&key.as_str()))
    });
    let line = text.lines().find(|line| value_of_line(line).as_ref() == Some(written));
    let Some(line) = line.filter(|_| names_source_only) else {
        changes.line(format_args!("{}: not changed: write `{new}`, with your options", manifest.display()));
        return Ok(());
    };
    if !changes.dry_run {
        fs::write(manifest, text.replacen(line, &new, 1)).map_err(|error| FileError::read(manifest, error))?;
    }
    changes.done(
        "changed",
        "change",
        format_args!("cudaguard in [build-dependencies] of {} from {line}", manifest.display()),
    );
    Ok(())
}

/// Returns the value of a line `cudaguard = VALUE`.
fn value_of_line(line: &str) -> Option<toml::Value> {
    line.parse::<toml::Table>().ok()?.remove("cudaguard")
}

/// Returns the manifest with the dependency added; `None` if its table is not an ordinary `[build-dependencies]` table.
fn add_dependency(text: &str, table: &toml::Table, source: &str) -> Option<String> {
    let line = format!("cudaguard = {source}\n");
    let updated = if table.contains_key("build-dependencies") {
        let start = text.lines().position(|line| line.trim() == "[build-dependencies]")?;
        let offset: usize = text.split_inclusive('\n').take(start + 1).map(str::len).sum();
        let (before, after) = text.split_at(offset);
        let gap = if before.ends_with('\n') { "" } else { "\n" };
        format!("{before}{gap}{line}{after}")
    } else {
        format!("{}\n\n[build-dependencies]\n{line}", text.trim_end())
    };
    let updated = if text.contains("\r\n") { updated.replace("\r\n", "\n").replace('\n', "\r\n") } else { updated };
    // A TOML parser has to confirm the result: a header inside a multi-line string is not a table.
    let read: toml::Table = updated.parse().ok()?;
    read.get("build-dependencies")?.get("cudaguard")?;
    Some(updated)
}

/// Returns a policy that matches the toolchain in use.
fn policy_text(pins: &Pins) -> String {
    let [toolkit, library]: [Option<Version>; 2] =
        [&pins.toolkit, &pins.library].map(|text| text.as_deref()?.parse().ok());
    let mut text = format!("#:schema {SCHEMA}\n{INTRODUCTION}");
    match toolkit {
        Some(Version { major, minor, .. }) => {
            let _ = write!(text, "\n[toolkit]\nrequire = \">={major}.{minor}, <{}\"\n", major + 1);
        }
        None => text.push_str(
            "\n# No CUDA toolkit was in use when this was written.\n# [toolkit]\n# require = \">=12.4, <14\"\n",
        ),
    }
    if let Some(Version { major, minor, .. }) = library {
        let _ = write!(text, "\n[{}]\nrequire = \"^{major}.{minor}\"\n", CUDNN.key);
    }
    let archs: Vec<String> = pins.archs.iter().map(|arch| format!("\"{arch}\"")).collect();
    if archs.is_empty() {
        text.push_str("\n# [gpu]\n# archs = [\"sm_80\", \"sm_90\", \"compute_90\"]\n");
    } else {
        let _ = write!(text, "\n[gpu]\narchs = [{}]\n", archs.join(", "));
    }
    text.push_str("\n[build]\nrelease = \"deny\"\ndev = \"warn\"\n# A release build fails if the guard cannot be built.\nunguarded = \"deny\"\n");
    text
}

/// Writes the workflow of the project in `top` to the root of the repository, where GitHub reads it. No workflow is
/// written that cannot work: the runners of GitHub have no toolkit, and no path outside of the repository.
fn write_workflow(
    changes: &mut Changes,
    top: &Path,
    workflow: &Workflow,
    requires_toolkit: bool,
    source: &DependencySource,
) -> Result<(), CliError> {
    let repository = repository_root(top);
    let below = top.strip_prefix(repository).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    let (mut text, mut name) = (workflow.template.to_owned(), "cudaguard".to_owned());
    if !below.is_empty() {
        // A different project of the same repository gets another file.
        name.push('-');
        name.extend(below.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' }));
        // JSON strings are valid in YAML.
        let title = json::quote(&format!("cudaguard {below}"));
        let dir = json::quote(&below);
        text = text.replacen("name: cudaguard\n", &format!("name: {title}\n"), 1);
        text = text.replacen("jobs:\n", &format!("defaults:\n  run:\n    working-directory: {dir}\njobs:\n"), 1);
    }
    let install = source.install_command(top);
    if let Some(command) = &install {
        let is_plain = !command.contains(": ") && !command.contains(" #");
        let value = if is_plain { command.clone() } else { json::quote(command) };
        text = text.replacen(TEMPLATE_INSTALL, &value, 1);
    }
    let path = repository.join(".github/workflows").join(format!("{name}.yml"));
    let outside = matches!(source, DependencySource::Directory { directory, .. } if !directory.starts_with(repository));
    let reason = if requires_toolkit {
        "the policy requires a CUDA toolkit, which the runners of GitHub do not have. In a job whose image contains it"
    } else if outside {
        "cudaguard is a path outside of this repository: in a job that has it"
    } else if install.is_none() {
        "this repository contains no checkout of cudaguard, and no registry has it: in a job that has the command"
    } else {
        return write_new_file(changes, &path, &text).map(drop);
    };
    if path.exists() {
        changes.line(format_args!("kept {}", path.display()));
    } else {
        changes.line(format_args!("no workflow: {reason}, {}", workflow.check));
    }
    Ok(())
}

/// Writes a file if it does not exist.
fn write_new_file(changes: &mut Changes, path: &Path, content: &str) -> Result<(), CliError> {
    if path.symlink_metadata().is_ok() {
        changes.line(format_args!("kept {}", path.display()));
        return Ok(());
    }
    if !changes.dry_run {
        create_file(path, content).map_err(|error| CliError::cannot_write(path, &error))?;
    }
    changes.done("wrote", "write", path.display());
    Ok(())
}

fn create_file(path: &Path, content: &str) -> std::io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::File::create_new(path)?.write_all(content.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::dependency::{Origin, came_from};
    use super::*;

    #[test]
    fn command_knows_its_source() {
        let scratch = tempfile::tempdir().unwrap();
        let checkout = scratch.path().join("a checkout ü");
        let write = |path: &Path, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(&checkout.join("guard-core/Cargo.toml"), "[package]\nname = \"cudaguard\"\n");
        let library = Origin::Dir(checkout.join("guard-core"));
        let target = checkout.join("target");
        assert_eq!(came_from(&target.join("release/cargo-cudaguard")).as_ref(), Some(&library));
        assert_eq!(
            came_from(&target.join("x86_64-unknown-linux-gnu/release/cargo-cudaguard")).as_ref(),
            Some(&library)
        );
        assert_eq!(came_from(Path::new("/usr/bin/cargo-cudaguard")), None);
        let root = scratch.path().join("root");
        let installed = |source: &str| {
            let key = format!("cargo-cudaguard {} ({source})", env!("CARGO_PKG_VERSION"));
            let record = serde_json::json!({"installs": {"other 1.0.0 (path+file:///x)": {}, key: {"bins": ["cargo-cudaguard"]}}});
            write(&root.join(".crates2.json"), &record.to_string());
            came_from(&root.join("bin/cargo-cudaguard"))
        };
        let address = checkout.to_string_lossy().replace(' ', "%20").replace('ü', "%C3%BC");
        assert_eq!(installed(&format!("path+file://{address}/cargo-cudaguard")), Some(library));
        assert_eq!(installed("path+file:///gone/cargo-cudaguard"), None);
        assert_eq!(installed("registry+https://github.com/rust-lang/crates.io-index"), None);
        let url = "https://example.invalid/cudaguard";
        assert_eq!(
            installed(&format!("git+{url}?branch=main#0123456789")),
            Some(Origin::Repository { url: url.into(), revision: "0123456789".into() })
        );
    }

    #[test]
    fn path_dependency_is_relative() {
        for (from, to, expected) in [
            ("/no/such/a/b", "/no/such/c/guard-core", "../../c/guard-core"),
            ("/no/such/a", "/no/such/a/vendor/x", "vendor/x"),
            ("/no/such", "/no/other", "../other"),
        ] {
            assert_eq!(relative(Path::new(from), Path::new(to)), Path::new(expected), "{from} {to}");
        }
    }

    #[test]
    fn dependency_is_inserted_in_its_section() {
        let with = |text: &str| add_dependency(text, &text.parse().unwrap(), "\"0.1\"");
        let line = "cudaguard = \"0.1\"\n";
        assert_eq!(
            with("[package]\nname = \"a\"\n").unwrap(),
            format!("[package]\nname = \"a\"\n\n[build-dependencies]\n{line}")
        );
        assert_eq!(
            with("[build-dependencies]\ncc = \"1\"\n[lib]\n").unwrap(),
            format!("[build-dependencies]\n{line}cc = \"1\"\n[lib]\n")
        );
        assert_eq!(with("[build-dependencies]").unwrap(), format!("[build-dependencies]\n{line}"));
        assert_eq!(
            with("[package]\r\nname = \"a\"\r\n").unwrap(),
            "[package]\r\nname = \"a\"\r\n\r\n[build-dependencies]\r\ncudaguard = \"0.1\"\r\n"
        );
        assert_eq!(with("build-dependencies = { cc = \"1\" }\n"), None);
        assert_eq!(with("[build-dependencies.cc]\nversion = \"1\"\n"), None);
    }
}
