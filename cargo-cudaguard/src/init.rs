//! `init`: writes what a project needs to be guarded under plain cargo too. Nothing is ever overwritten, so that it can
//! be run again.

mod cmake;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cudaguard::env::Env;
use cudaguard::files;
use cudaguard::json::Value;
use cudaguard::lock::{Pins, Scope};
use cudaguard::policy::{FILE, Policy};
use cudaguard::toolchain::Toolchain;
use cudaguard::vendor::CUDNN;
use cudaguard::version::Version;

use crate::arguments::Call;
use crate::guards;
use crate::project::{Package, Project, absolute, repository};
use crate::report::{self, CliError};

const BUILD_RS: &str = "fn main() {\n    cudaguard::embed!();\n}\n";
const WORKFLOW: &str = include_str!("../templates/cudaguard.yml");
const RUNS_ON: &str = "    runs-on: ubuntu-latest\n";
const WAITS: &str = "    # cudaguard.toml requires a toolkit: name the image, and remove this line.\n    if: false\n";

pub(crate) fn run(env: &Env, arguments: &[OsString]) -> Result<ExitCode, CliError> {
    if Call::read(None, arguments).cmake {
        report::result(&cmake::run(env)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (call, config, project) = Project::asked(env, arguments)?;
    let source = source(&call)?;
    let variables = config.variables();
    let target = &project.targets[0];
    let mut said = String::new();
    for at in &project.selected {
        embed(&mut said, &project.members[*at], &source)?;
    }
    let first = project.selected.first().map(|at| &project.members[*at]);
    let first =
        first.ok_or_else(|| CliError::operational("no package is selected: name one with -p, or --workspace"))?;
    let found = Policy::places(&first.dir, &project.top).into_iter().find(|place| place.exists());
    if let Some(found) = found {
        let _ = writeln!(said, "kept {}", found.display());
    } else {
        // Only where there is none: one that cannot be read is not ours to judge here.
        let judged = guards::judge(&config.env, &guards::facts(&project, first, target), &variables)
            .map_err(CliError::operational)?;
        new(&mut said, &project.top.join(FILE), &policy(&judged.policy, &judged.toolchain))?;
    }
    let held = Policy::of_package(&first.dir, &project.top, &first.name);
    workflow(&mut said, &project.top, WORKFLOW, held.is_ok_and(|policy| policy.toolkit.is_some()))?;
    report::result(&said)?;
    Ok(ExitCode::SUCCESS)
}

/// Where the library comes from.
struct Source {
    /// What is written behind `cudaguard =`.
    dependency: String,
    /// Why it is that, where nobody has named it.
    because: &'static str,
    /// Whether it is a release that a registry may not have.
    by_version: bool,
}

/// What was named, else where this command came from itself: it depends on that very release. A path that leads to no library would
/// break the build.
fn source(call: &Call) -> Result<Source, CliError> {
    if let Some(folder) = &call.path {
        let folder = absolute(folder);
        if !holds_the_library(&folder) {
            return Err(CliError::operational(format_args!(
                "--path {}: holds no package `cudaguard`; in a checkout it is the folder guard-core",
                folder.display()
            )));
        }
        return Ok(Source { dependency: by_path(&folder), because: "", by_version: false });
    }
    if let Some(url) = &call.git {
        return Ok(Source { dependency: by_git(url, ""), because: "", by_version: false });
    }
    let exe = std::env::current_exe().unwrap_or_default();
    Ok(match came_from(&exe) {
        Some(Origin::Folder(folder)) => {
            let because = ", by the path of the checkout that this command comes from";
            Source { dependency: by_path(&folder), because, by_version: false }
        }
        Some(Origin::Repository { url, revision }) => {
            let because = ", from the repository that this command comes from";
            Source { dependency: by_git(&url, &revision), because, by_version: false }
        }
        None => Source { dependency: format!("\"{}\"", series()), because: "", by_version: true },
    })
}

/// The releases that stand in for this one.
fn series() -> &'static str {
    let version = env!("CARGO_PKG_VERSION");
    version.rsplit_once('.').map_or(version, |(series, _)| series)
}

/// Beside a path, too: without a version cargo packs nothing that depends on it.
fn by_path(folder: &Path) -> String {
    // A basic string of TOML and one of JSON are spelled alike.
    format!("{{ path = {}, version = \"{}\" }}", Value::from(folder.to_string_lossy().into_owned()), series())
}

fn by_git(url: &str, revision: &str) -> String {
    let revision = if revision.is_empty() { String::new() } else { format!("rev = {}, ", Value::from(revision)) };
    format!("{{ git = {}, {revision}version = \"{}\" }}", Value::from(url), series())
}

fn holds_the_library(folder: &Path) -> bool {
    let manifest = files::text(&folder.join("Cargo.toml")).ok().and_then(|text| text.parse::<toml::Table>().ok());
    manifest.as_ref().and_then(|table| table.get("package")?.get("name")?.as_str()) == Some("cudaguard")
}

#[derive(Debug, PartialEq, Eq)]
enum Origin {
    /// The library in a checkout.
    Folder(PathBuf),
    Repository {
        url: String,
        revision: String,
    },
}

/// Where a command came from that no registry has given: cargo writes down what it has installed, and in a checkout a program lies in
/// the target folder.
fn came_from(exe: &Path) -> Option<Origin> {
    let library = |checkout: &Path| Some(checkout.join("guard-core")).filter(|folder| holds_the_library(folder));
    let built = [3, 4].into_iter().find_map(|above| library(exe.ancestors().nth(above)?));
    if built.is_some() {
        return built.map(Origin::Folder);
    }
    let root = exe.parent()?.parent()?;
    let record: serde_json::Value = serde_json::from_str(&files::text(&root.join(".crates2.json")).ok()?).ok()?;
    // `cargo-cudaguard 0.1.0 (path+file:///folder/cargo-cudaguard)`, `… (git+https://host/name?branch=x#revision)`
    let ours = concat!("cargo-cudaguard ", env!("CARGO_PKG_VERSION"), " (");
    let installed =
        record.get("installs")?.as_object()?.keys().find_map(|key| key.strip_prefix(ours)?.strip_suffix(')'))?;
    if let Some(folder) = installed.strip_prefix("path+file://") {
        let folder = PathBuf::from(decoded(folder.split(['#', '?']).next()?)?);
        return library(folder.parent()?).map(Origin::Folder);
    }
    let (url, revision) = installed.strip_prefix("git+")?.split_once('#')?;
    let url = url.split('?').next()?.to_owned();
    Some(Origin::Repository { url, revision: revision.to_owned() })
}

/// The path in an address: `%20` is a blank.
fn decoded(path: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), path.as_bytes());
    while let [first, behind @ ..] = rest {
        rest = behind;
        let byte = if *first == b'%' {
            let (digits, behind) = rest.split_at_checked(2)?;
            rest = behind;
            u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
        } else {
            *first
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

/// build.rs and the dependency that it needs; where there is a build script already, what to add to it.
fn embed(said: &mut String, package: &Package, source: &Source) -> Result<(), CliError> {
    let manifest = package.dir.join("Cargo.toml");
    let fail = |error: &dyn std::fmt::Display| CliError::operational(format_args!("{}: {error}", manifest.display()));
    let text = files::text(&manifest).map_err(|error| fail(&error))?;
    let table: toml::Table = text.parse().map_err(|error| fail(&error))?;
    let named = table.get("package").and_then(|table| table.get("build"));
    let script = package.dir.join(named.and_then(toml::Value::as_str).unwrap_or("build.rs"));
    let library = |key: &str| table.get("lib").and_then(|library| library.get(key)?.as_bool());
    if library("proc-macro").or(library("proc_macro")) == Some(true) {
        let _ = writeln!(said, "{}: a procedural macro runs in the compiler: it gets no guard", manifest.display());
        return Ok(());
    }
    let forbidden = named.and_then(toml::Value::as_bool) == Some(false);
    if forbidden {
        let _ = writeln!(
            said,
            "{}: says `build = false`: nothing embeds there; `cargo cudaguard build` guards it all the same",
            manifest.display()
        );
        return Ok(());
    }
    let embeds = |text: &str| ["cudaguard::", "use cudaguard"].iter().any(|word| text.contains(word));
    let there = match files::text(&script) {
        Ok(text) => Some(embeds(&text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(CliError::operational(format_args!("{}: {error}", script.display()))),
    };
    // From elsewhere than a registry: cargo's own verb would write no version beside a repository, and then packs nothing.
    let add = if source.by_version {
        format!("run `cargo add --build --package {} cudaguard`", package.name)
    } else {
        format!("add `cudaguard = {}` to [build-dependencies] of {}", source.dependency, manifest.display())
    };
    if there == Some(false) {
        // The dependency alone would tell `cargo cudaguard` that the script judges by itself.
        let line = "`cudaguard::embed!();`";
        let first = if package.embeds { String::new() } else { format!("{add} and ") };
        let _ = writeln!(said, "{}: is there and embeds nothing: {first}add {line} to its main", script.display());
        return Ok(());
    }
    if !package.embeds {
        let Some(text) = depending(&text, &table, &source.dependency) else {
            // A build.rs without its dependency would break the build.
            let _ = writeln!(
                said,
                "{}: [build-dependencies] is written in a way that is not edited here: {add}, then run this again",
                manifest.display()
            );
            return Ok(());
        };
        // In place: the file may be a link, or have a mode of its own.
        fs::write(&manifest, text).map_err(|error| fail(&error))?;
        let _ = writeln!(said, "added cudaguard to [build-dependencies] of {}{}", manifest.display(), source.because);
        if source.by_version {
            let _ = writeln!(
                said,
                "{}: that is a release from a registry; where yours has none, put `cudaguard = {{ path = \"CHECKOUT/guard-core\", \
                 version = \"{}\" }}` in its place",
                manifest.display(),
                series()
            );
        }
    }
    new(said, &script, BUILD_RS).map(drop)
}

/// The manifest with the dependency in it; `None` where its table is no plain `[build-dependencies]`.
fn depending(text: &str, table: &toml::Table, source: &str) -> Option<String> {
    let line = format!("cudaguard = {source}\n");
    let anew = if table.contains_key("build-dependencies") {
        let start = text.lines().position(|line| line.trim() == "[build-dependencies]")?;
        let offset: usize = text.split_inclusive('\n').take(start + 1).map(str::len).sum();
        let (before, after) = text.split_at(offset);
        let gap = if before.ends_with('\n') { "" } else { "\n" };
        format!("{before}{gap}{line}{after}")
    } else {
        format!("{}\n\n[build-dependencies]\n{line}", text.trim_end())
    };
    let anew = if text.contains("\r\n") { anew.replace("\r\n", "\n").replace('\n', "\r\n") } else { anew };
    // The last word has a reader of TOML: a header within a text of several lines is none.
    let read: toml::Table = anew.parse().ok()?;
    read.get("build-dependencies")?.get("cudaguard")?;
    Some(anew)
}

/// A policy of what is seen here.
fn policy(policy: &Policy, toolchain: &Toolchain) -> String {
    let pins = Pins::of(policy, toolchain, Scope::WHOLE);
    let version = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<Version>().ok());
    let mut text = "# What this project asks of its CUDA builds. `cargo cudaguard check` judges by it.\n".to_owned();
    match version(&pins.toolkit) {
        Some(Version { major, minor, .. }) => {
            let _ = write!(text, "\n[toolkit]\nrequire = \">={major}.{minor}, <{}\"\n", major + 1);
        }
        None => text.push_str(
            "\n# No CUDA toolkit was in use when this was written.\n# [toolkit]\n# require = \">=12.4, <14\"\n",
        ),
    }
    if let Some(Version { major, minor, .. }) = version(&pins.library) {
        let _ = write!(text, "\n[{}]\nrequire = \"^{major}.{minor}\"\n", CUDNN.key);
    }
    let archs: Vec<String> = pins.archs.iter().map(|arch| format!("\"{arch}\"")).collect();
    if archs.is_empty() {
        text.push_str("\n# [gpu]\n# archs = [\"sm_80\", \"sm_90\", \"compute_90\"]\n");
    } else {
        let _ = write!(text, "\n[gpu]\narchs = [{}]\n", archs.join(", "));
    }
    text.push_str("\n[build]\nrelease = \"deny\"\ndev = \"warn\"\n# Where no guard can be made, a release would go out without one.\nunguarded = \"deny\"\n");
    text
}

/// The workflow of the project in `top`, where GitHub reads it: at the repository's top. Where the policy demands a toolkit
/// it waits for an image: GitHub's machines have none, and which tag has the one in use nvcc does not tell (13.0.88 came
/// with three updates of CUDA 13.0).
fn workflow(said: &mut String, top: &Path, template: &str, waits: bool) -> Result<(), CliError> {
    let repository = repository(top);
    let below = top.strip_prefix(repository).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    let (mut text, mut name) = (template.to_owned(), "cudaguard".to_owned());
    if !below.is_empty() {
        // Another project of the repository has a file of its own.
        name.push('-');
        name.extend(below.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' }));
        // YAML reads JSON's strings.
        let title = Value::from(format!("cudaguard {below}"));
        let folder = Value::from(below);
        text = text.replacen("name: cudaguard\n", &format!("name: {title}\n"), 1);
        text = text.replacen("jobs:\n", &format!("defaults:\n  run:\n    working-directory: {folder}\njobs:\n"), 1);
    }
    if waits {
        text = text.replacen(RUNS_ON, &format!("{RUNS_ON}{WAITS}"), 1);
    }
    let path = repository.join(".github/workflows").join(format!("{name}.yml"));
    if new(said, &path, &text)? && waits {
        let _ = writeln!(
            said,
            "{}: its job is skipped until it names an image with the toolkit that the policy requires; GitHub's machines \
             have none",
            path.display()
        );
    }
    Ok(())
}

/// Writes a file that is not there yet; answers whether.
fn new(said: &mut String, path: &Path, content: &str) -> Result<bool, CliError> {
    let fail = |error: std::io::Error| CliError::operational(format_args!("cannot write {}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(fail)?;
    }
    match fs::File::options().write(true).create_new(true).open(path) {
        Ok(mut file) => {
            file.write_all(content.as_bytes()).map_err(fail)?;
            let _ = writeln!(said, "wrote {}", path.display());
            Ok(true)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let _ = writeln!(said, "kept {}", path.display());
            Ok(false)
        }
        Err(error) => Err(fail(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_knows_where_it_came_from() {
        let scratch = tempfile::tempdir().unwrap();
        let checkout = scratch.path().join("a checkout ü");
        let write = |path: &Path, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(&checkout.join("guard-core/Cargo.toml"), "[package]\nname = \"cudaguard\"\n");
        let library = Origin::Folder(checkout.join("guard-core"));
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
    fn the_dependency_goes_where_it_belongs() {
        let with = |text: &str| depending(text, &text.parse().unwrap(), "\"0.1\"");
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
