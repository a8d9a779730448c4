//! The project that cargo builds: the selected packages, targets and profile, read from cargo's arguments, its
//! configuration and its metadata.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cargo_metadata::{Metadata, MetadataCommand, TargetKind};
use cudaguard::internal::env::Env;
use cudaguard::internal::files;
use cudaguard::internal::glob;
use cudaguard::internal::is_device_code;
use cudaguard::internal::lock::is_locked;
use cudaguard::internal::pipeline::script_names_cuda;
use cudaguard::internal::suggest::closest_match;
use serde::{Deserialize, Serialize};

use crate::cargo::config::Config;
use crate::cli::arguments::{Call, CargoVerb};
use crate::cli::report::CliError;

/// The properties of a package that affect the guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) dir: PathBuf,
    /// Set if cudaguard is a build-dependency, so that the build script may call `cudaguard::embed!()`.
    pub(crate) embeds: bool,
    /// Set if its build script calls `cudaguard::embed!()` and sets no options, so that its result is known in advance.
    pub(crate) embeds_with_defaults: bool,
    /// The files of this call that can contain a guard.
    pub(crate) artifacts: Vec<Artifact>,
    /// Rust shared libraries that this call builds from the package. They contain no guard.
    pub(crate) rust_libraries: Vec<String>,
    /// Static libraries of the package. Their guard is in the file that they are linked into.
    pub(crate) static_libraries: Vec<String>,
    /// Directories of the packages that it depends on by path.
    pub(crate) paths: Vec<PathBuf>,
    /// The package data that cargo adds to each message: `package_id`, `manifest_path` and a target.
    pub(crate) about: serde_json::Value,
}

/// Returns true if a package contains device code, or a build script that mentions CUDA.
pub(crate) fn shows_use_of_cuda(package: &Path) -> bool {
    script_names_cuda(package) || has_device_code(package, 6)
}

fn has_device_code(directory: &Path, depth: usize) -> bool {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).any(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            depth > 0 && name != "target" && !name.starts_with('.') && has_device_code(&path, depth - 1)
        } else {
            is_device_code(&path)
        }
    })
}

/// Kind of a file that can contain a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum ArtifactKind {
    /// A program.
    Bin,
    /// An example that is a program.
    Example,
    /// A C library.
    Cdylib,
    /// An example that is a C library.
    ExampleCdylib,
}

impl ArtifactKind {
    /// Returns the name of the kind in file names.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bin => "bin",
            Self::Example => "example",
            Self::Cdylib => "cdylib",
            Self::ExampleCdylib => "example-cdylib",
        }
    }
}

/// A file that can contain a guard.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Artifact {
    pub(crate) kind: ArtifactKind,
    /// The crate's name, with underscores.
    pub(crate) name: String,
    /// The path of the final artifact below the output directory.
    pub(crate) file: String,
}

impl Artifact {
    /// Creates the artifact of a target with this name.
    pub(crate) fn from_target(kind: ArtifactKind, target: &str) -> Self {
        let name = target.replace('-', "_");
        let file = match kind {
            ArtifactKind::Bin => target.to_owned(),
            ArtifactKind::Example => format!("examples/{target}"),
            ArtifactKind::Cdylib => format!("lib{name}.so"),
            ArtifactKind::ExampleCdylib => format!("examples/lib{name}.so"),
        };
        Self { kind, name, file }
    }
}

/// All inputs of a build.
#[derive(Debug)]
pub(crate) struct Project {
    /// The root of the workspace.
    pub(crate) top: PathBuf,
    /// The target directory.
    pub(crate) target_dir: PathBuf,
    /// The build directory for intermediate files. It is the target directory unless configured.
    pub(crate) build_dir: PathBuf,
    /// All members.
    pub(crate) members: Vec<Package>,
    /// Indices of the members that this call selects.
    pub(crate) selected: Vec<usize>,
    /// The target triples; the host triple if none is specified.
    pub(crate) targets: Vec<String>,
    /// Set if a target is specified: cargo then uses a directory for each target.
    pub(crate) target_named: bool,
    /// The profile, as cargo names it.
    pub(crate) profile: String,
    /// Set if the profile is `release` or inherits from it.
    pub(crate) release: bool,
    /// Set if the lock files must not change.
    pub(crate) locked: bool,
}

/// Returns the root of the git repository of a directory, or the directory itself if it is in none. GitHub's paths
/// start from the root. In a worktree or a submodule, `.git` is a file.
pub(crate) fn repository_root(dir: &Path) -> &Path {
    dir.ancestors().find(|above| above.join(".git").exists()).unwrap_or(dir)
}

impl Project {
    /// Reads the arguments of one of cudaguard's subcommands, cargo's configuration and the project.
    pub(crate) fn from_args(env: &Env, arguments: &[OsString]) -> Result<(Call, Config, Self), CliError> {
        let call = Call::parse(None, arguments);
        let config = Config::read(env, &call.configs)?;
        let project = Self::from_call(None, &call, &config)?;
        Ok((call, config, project))
    }

    /// Reads the project of this call.
    pub(crate) fn from_call(verb: Option<CargoVerb>, call: &Call, config: &Config) -> Result<Self, CliError> {
        let mut targets = call.targets.clone();
        if targets.is_empty() && verb != Some(CargoVerb::Install) {
            targets = config.string_values(&["build", "target"]);
        }
        let target_named = !targets.is_empty();
        // If cargo is about to build, it reports an unknown target itself.
        if verb.is_none() {
            targets.iter().try_for_each(|target| check_target(target, call, config))?;
        }
        let host_wanted = !target_named || targets.iter().any(|target| target == "host-tuple");
        let host = host_wanted.then(|| HostQuery::spawn_rustc(config)).transpose()?;
        let manifest = match (verb, &call.path) {
            (Some(CargoVerb::Install), Some(path)) => Some(path.join("Cargo.toml")),
            _ => call.manifest_path.clone(),
        };
        let metadata = cargo_metadata(&config.env, manifest.as_deref(), call)?;
        let top = metadata.workspace_root.clone().into_std_path_buf();
        let (profile, kind) = selected_profile(verb, call, config, &top);
        // If cargo is about to build, it reports an undefined profile itself.
        if verb.is_none() && kind.is_none() {
            return Err(CliError::operational(format_args!("profile `{profile}` is not defined")));
        }
        let release = kind == Some(true);
        let reported_dir = metadata.target_directory.clone().into_std_path_buf();
        let target_dir = match &call.target_dir {
            Some(dir) => absolute_path(dir),
            None => reported_dir.clone(),
        };
        let build_dir = match &metadata.build_directory {
            Some(dir) if dir.as_std_path() != reported_dir => dir.clone().into_std_path_buf(),
            _ => target_dir.clone(),
        };
        let mut members: Vec<Package> = metadata
            .workspace_packages()
            .iter()
            .map(|one| package_from_metadata(one, verb, call, &turned_on(&metadata, one, call)))
            .collect();
        members.sort_by(|a, b| a.dir.cmp(&b.dir));
        let selected = selected_packages(&metadata, &members, call);
        let unexpected = call.packages.iter().find(|spec| !members.iter().any(|member| spec_matches(spec, member)));
        if let Some(spec) = unexpected.filter(|_| verb.is_none()) {
            let suggestion =
                closest_match(spec, &members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>());
            let suggestion = suggestion.map(|suggestion| format!("; did you mean `{suggestion}`?")).unwrap_or_default();
            return Err(CliError::operational(format_args!("this workspace has no package `{spec}`{suggestion}")));
        }
        if let Some(host) = host {
            targets.retain(|target| target != "host-tuple");
            targets.push(host.wait_for_triple()?);
        }
        let locked = call.locked || is_locked(&config.env);
        Ok(Self { top, target_dir, build_dir, members, selected, targets, target_named, profile, release, locked })
    }

    /// Returns the members of which this call builds artifacts, including the C libraries of members that a selected
    /// member depends on.
    pub(crate) fn built_packages(&self) -> Vec<(&Package, Vec<&Artifact>)> {
        let by_dir: BTreeMap<&Path, usize> =
            self.members.iter().enumerate().map(|(at, package)| (package.dir.as_path(), at)).collect();
        let (mut seen, mut open) = (BTreeSet::new(), self.selected.clone());
        while let Some(at) = open.pop() {
            if seen.insert(at) {
                open.extend(self.members[at].paths.iter().filter_map(|dir| by_dir.get(dir.as_path())));
            }
        }
        seen.into_iter()
            .map(|at| {
                let package = &self.members[at];
                let along = !self.selected.contains(&at);
                (package, package.artifacts.iter().filter(|one| !along || one.kind == ArtifactKind::Cdylib).collect())
            })
            .filter(|(_, artifacts): &(_, Vec<_>)| !artifacts.is_empty())
            .collect()
    }

    /// Returns the Rust shared libraries of the selected packages.
    pub(crate) fn rust_libraries(&self) -> Vec<String> {
        self.selected.iter().flat_map(|at| self.members[*at].rust_libraries.clone()).collect()
    }

    /// Returns the static libraries of the selected packages that get no guard from a build script.
    pub(crate) fn bare_archives(&self) -> Vec<String> {
        let bare = self.with_static_libraries().filter(|package| !package.embeds);
        bare.flat_map(|package| &package.static_libraries).filter(|file| !file.contains('/')).cloned().collect()
    }

    /// Returns the selected packages with static libraries, which may contain a guard but are not sealed.
    pub(crate) fn with_static_libraries(&self) -> impl Iterator<Item = &Package> {
        self.selected.iter().map(|at| &self.members[*at]).filter(|package| !package.static_libraries.is_empty())
    }

    /// Creates the target directory in the way of cargo: marked as a cache, so that backups skip it and `cargo clean`
    /// deletes it.
    pub(crate) fn make_target_dir(&self) {
        const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n# This file is a cache directory tag created by cargo.\n\
                           # For information about cache directory tags see https://bford.info/cachedir/\n";
        for dir in [&self.target_dir, &self.build_dir] {
            // A later write reports an error of the directory.
            if !dir.exists() && std::fs::create_dir_all(dir).is_ok() {
                let _ = std::fs::write(dir.join("CACHEDIR.TAG"), TAG);
            }
        }
    }

    /// Returns the directory with the files of a profile: `target/debug` or `target/<triple>/release`.
    pub(crate) fn output_dir(&self, target: &str) -> PathBuf {
        self.output_dir_below(&self.build_dir, target)
    }

    /// Returns the path of the final artifact.
    pub(crate) fn handed_over(&self, target: &str, file: &str) -> PathBuf {
        self.output_dir_below(&self.target_dir, target).join(file)
    }

    fn output_dir_below(&self, top: &Path, target: &str) -> PathBuf {
        let dir = match self.profile.as_str() {
            "dev" | "test" => "debug",
            "bench" => "release",
            other => other,
        };
        if self.target_named { top.join(target).join(dir) } else { top.join(dir) }
    }
}

/// Message for users in the directory of a CMake project.
const OF_CMAKE: &str = "  this directory contains a CMakeLists.txt: run `cargo cudaguard init --cmake` to add the guard to the \
                        CMake project, and `cmake --build BUILD --target cudaguard-lock` to lock its toolchain";

/// Returns the options of this call that cargo needs to read the same project.
pub(crate) fn asked_too(call: &Call) -> Vec<String> {
    let configs = call.configs.iter().map(|one| ["--config".to_owned(), one.clone()]);
    configs.chain(call.unstable.iter().map(|one| ["-Z".to_owned(), one.clone()])).flatten().collect()
}

fn cargo_metadata(env: &Env, manifest: Option<&Path>, call: &Call) -> Result<Metadata, CliError> {
    let mut command = MetadataCommand::new();
    command.cargo_path(cargo_path(env)).no_deps();
    if let Some(path) = manifest {
        command.manifest_path(path);
    }
    command.other_options(asked_too(call));
    command.exec().map_err(|error| match error {
        // The error message of cargo, without changes.
        cargo_metadata::Error::CargoMetadata { stderr } => {
            let message = stderr.trim().trim_start_matches("error: ");
            let of_cmake =
                manifest.is_none() && Path::new("CMakeLists.txt").exists() && !Path::new("Cargo.toml").exists();
            CliError::operational(if of_cmake { format!("{message}\n{OF_CMAKE}") } else { message.to_owned() })
        }
        other => CliError::operational(format_args!("cannot read the project with cargo: {other}")),
    })
}

/// Returns the features of a member that may be on in this call: the selected ones, those that other members enable,
/// and those that they enable in turn.
fn turned_on(metadata: &Metadata, package: &cargo_metadata::Package, call: &Call) -> BTreeSet<String> {
    let dir = package.manifest_path.parent();
    let mut on = call.features.enabled_features(&package.name, &package.features);
    for asks in metadata.packages.iter().flat_map(|one| &one.dependencies).filter(|one| one.path.as_deref() == dir) {
        on.extend(asks.features.iter().cloned());
        on.extend(asks.uses_default_features.then(|| "default".to_owned()));
    }
    let mut open: Vec<String> = on.iter().cloned().collect();
    while let Some(feature) = open.pop() {
        for brought in package.features.get(&feature).into_iter().flatten() {
            if on.insert(brought.clone()) {
                open.push(brought.clone());
            }
        }
    }
    on
}

fn package_from_metadata(
    package: &cargo_metadata::Package,
    verb: Option<CargoVerb>,
    call: &Call,
    features: &BTreeSet<String>,
) -> Package {
    let named = call.all_bins || call.all_examples || call.all_targets || call.others;
    let named = named || !call.bins.is_empty() || !call.examples.is_empty();
    let tests = verb == Some(CargoVerb::Test);
    let (mut artifacts, mut rust_libraries, mut static_libraries) = (Vec::new(), Vec::new(), Vec::new());
    for target in &package.targets {
        let named_types = if target.kind.contains(&TargetKind::Lib) { &call.crate_types[..] } else { &[] };
        let types: Vec<String> =
            target.crate_types.iter().map(ToString::to_string).chain(named_types.to_vec()).collect();
        let [dylib, staticlib, c_library, program] =
            ["dylib", "staticlib", "cdylib", "bin"].map(|wanted| types.iter().any(|kind| kind == wanted));
        if dylib && !target.kind.contains(&TargetKind::Example) {
            rust_libraries.push(format!("lib{}.so", target.name.replace('-', "_")));
        }
        if staticlib {
            let directory = if target.kind.contains(&TargetKind::Example) { "examples/" } else { "" };
            static_libraries.push(format!("{directory}lib{}.a", target.name.replace('-', "_")));
        }
        let (kind, made) = if target.kind.contains(&TargetKind::Bin) {
            // An integration test may start any program of the package, so cargo builds them too.
            let is_named = call.bins.iter().any(|pattern| glob::matches(pattern, &target.name));
            let made = !named || call.all_bins || call.all_targets || is_named;
            (ArtifactKind::Bin, made || tests && call.others)
        } else if target.kind.contains(&TargetKind::Example) {
            let is_named = call.examples.iter().any(|pattern| glob::matches(pattern, &target.name));
            let made = call.all_examples || call.all_targets || is_named;
            let kind = if c_library { ArtifactKind::ExampleCdylib } else { ArtifactKind::Example };
            (kind, (c_library || program) && (made || tests && !named))
        } else {
            (ArtifactKind::Cdylib, c_library)
        };
        // A feature of a dependency (`name/feature`) is not resolved: it counts as on.
        let mut required = target.required_features.iter();
        if made && required.all(|feature| features.contains(feature) || !package.features.contains_key(feature)) {
            artifacts.push(Artifact::from_target(kind, &target.name));
        }
    }
    let build = cargo_metadata::DependencyKind::Build;
    let embeds = package.dependencies.iter().any(|one| one.kind == build && one.name == "cudaguard");
    Package {
        name: package.name.to_string(),
        version: package.version.to_string(),
        dir: parent_dir(package.manifest_path.as_std_path()),
        embeds,
        embeds_with_defaults: embeds && package.targets.iter().any(calls_embed_macro),
        artifacts,
        rust_libraries,
        static_libraries,
        paths: package.dependencies.iter().filter_map(|one| one.path.clone()).map(Into::into).collect(),
        about: serde_json::json!({
            "package_id": package.id,
            "manifest_path": package.manifest_path,
            "target": package.targets.iter().find(|one| one.kind.contains(&TargetKind::Bin)).or(package.targets.first()),
        }),
    }
}

/// Returns true if this is a build script that calls `embed!()` and never names the type of its options.
fn calls_embed_macro(target: &cargo_metadata::Target) -> bool {
    if !target.kind.contains(&TargetKind::CustomBuild) {
        return false;
    }
    let text = files::read_text(target.src_path.as_std_path()).unwrap_or_default();
    text.lines().any(|line| line.trim_start().trim_start_matches("cudaguard::").starts_with("embed!()"))
        && !text.contains("Embed")
}

fn selected_packages(metadata: &Metadata, members: &[Package], call: &Call) -> Vec<usize> {
    let all = 0..members.len();
    if call.workspace {
        return all.filter(|one| !call.excluded.iter().any(|spec| spec_matches(spec, &members[*one]))).collect();
    }
    if !call.packages.is_empty() {
        return all.filter(|one| call.packages.iter().any(|spec| spec_matches(spec, &members[*one]))).collect();
    }
    if !metadata.workspace_default_members.is_available() {
        return all.collect();
    }
    let defaults = metadata.workspace_default_packages();
    let dirs = defaults.iter().map(|package| parent_dir(package.manifest_path.as_std_path()));
    dirs.filter_map(|dir| members.iter().position(|package| package.dir == dir)).collect()
}

/// Returns true if a package ID specification (`name`, `name@1.2.3`, `path+file:///…#name@1.2.3`) or a pattern matches
/// the package.
fn spec_matches(spec: &str, package: &Package) -> bool {
    let (url, rest) = match spec.rsplit_once('#') {
        Some((url, rest)) => (Some(url), rest),
        None if spec.contains("://") => (Some(spec), ""),
        None => (None, spec),
    };
    if let Some(url) = url {
        let path = url.split_once("file://").map_or("", |(_, path)| path);
        if !Path::new(path.trim_end_matches('/')).eq(&package.dir) {
            return false;
        }
        if rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return rest.is_empty() || package.version.starts_with(rest);
        }
    }
    let (name, version) = rest.split_once(['@', ':']).unwrap_or((rest, ""));
    glob::matches(name, &package.name) && package.version.starts_with(version)
}

/// Returns the name of the profile, and whether it is a release profile. A custom profile inherits this. `None`: the
/// profile is not defined.
fn selected_profile(verb: Option<CargoVerb>, call: &Call, config: &Config, top: &Path) -> (String, Option<bool>) {
    let name = match (&call.profile, call.release, verb) {
        (Some(name), ..) if name == "test" => "dev".to_owned(),
        (Some(name), ..) if name == "bench" => "release".to_owned(),
        (Some(name), ..) => name.clone(),
        (None, true, _) => "release".to_owned(),
        (None, false, Some(CargoVerb::Install)) if !call.debug => "release".to_owned(),
        _ => "dev".to_owned(),
    };
    let kind = is_release(&name, config, top);
    (name, kind)
}

/// Returns true if the profile is `release` or inherits from it. `None`: the profile is not defined.
fn is_release(name: &str, config: &Config, top: &Path) -> Option<bool> {
    let manifest: toml::Table =
        files::read_text(&top.join("Cargo.toml")).ok().and_then(|text| text.parse().ok()).unwrap_or_default();
    let mut root = name.to_owned();
    // A chain of profiles has a bounded length, and cargo itself reports a cycle.
    for _ in 0..32 {
        match root.as_str() {
            "release" | "dev" => break,
            "bench" => "release".clone_into(&mut root),
            "test" => "dev".clone_into(&mut root),
            _ => {}
        }
        let parent = config
            .string_value(&["profile", &root, "inherits"])
            .or_else(|| manifest.get("profile")?.get(&root)?.get("inherits")?.as_str().map(str::to_owned));
        match parent {
            Some(parent) => root = parent,
            None => break,
        }
    }
    matches!(root.as_str(), "release" | "dev").then_some(root == "release")
}

/// Returns the profile that cargo builds in this directory, and whether it counts as a release profile. An undefined
/// profile counts as release, because a tool that calls cargo may select another profile for cargo than for the guard.
pub(crate) fn profile_of_dir(dir: &str, env: &Env, top: &Path) -> (String, bool) {
    match dir {
        "debug" => ("dev".to_owned(), false),
        "release" => (dir.to_owned(), true),
        other => {
            let inherits = Config::read(env, &[]).ok().and_then(|config| is_release(other, &config, top));
            (other.to_owned(), inherits != Some(false))
        }
    }
}

/// Returns the path of cargo. The cargo that called this process is used, so that `cargo +nightly cudaguard` continues
/// with nightly.
pub(crate) fn cargo_path(env: &Env) -> OsString {
    env.var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Returns the compiler that cargo would use.
pub(crate) fn rustc_path(config: &Config) -> OsString {
    if let Some(rustc) = config.env.var_os("RUSTC") {
        return rustc;
    }
    if let Some(rustc) = config.program_path(&["build", "rustc"]) {
        return rustc.into();
    }
    // The rustc next to the calling cargo, which avoids the rustup proxy.
    let neighbor = Path::new(&cargo_path(&config.env)).with_file_name("rustc");
    if neighbor.is_absolute() && neighbor.is_file() { neighbor.into() } else { "rustc".into() }
}

/// Checks that the compiler knows a target. Stable compilers do not read target files (`NAME.json`); only cargo can
/// resolve one from its configuration.
fn check_target(target: &str, call: &Call, config: &Config) -> Result<(), CliError> {
    if target.ends_with(".json") && !call.targets.is_empty() && !Path::new(target).is_file() {
        return Err(CliError::operational(format_args!("{target}: target specification not found")));
    }
    if target == "host-tuple" || target.ends_with(".json") {
        return Ok(());
    }
    let rustc = rustc_path(config);
    let asked = Command::new(&rustc).args(["--print", "cfg", "--target", target]).stdin(Stdio::null()).output();
    let rustc = Path::new(&rustc).display();
    let message = asked.map_err(|error| CliError::operational(format_args!("cannot run {rustc}: {error}")))?;
    if message.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&message.stderr);
    let message = message.trim().trim_start_matches("error: ");
    Err(CliError::operational(format_args!("{rustc} cannot build for target `{target}`: {message}")))
}

/// Returns the host triple.
pub(crate) fn host_triple(config: &Config) -> Result<String, CliError> {
    HostQuery::spawn_rustc(config)?.wait_for_triple()
}

/// A running query for the host triple. It runs in parallel to `cargo metadata`.
struct HostQuery(OsString, Child);

impl HostQuery {
    fn spawn_rustc(config: &Config) -> Result<Self, CliError> {
        let rustc = rustc_path(config);
        let child = Command::new(&rustc)
            .arg("-vV")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                CliError::operational(format_args!("cannot run {}: {error}", Path::new(&rustc).display()))
            })?;
        Ok(Self(rustc, child))
    }

    fn wait_for_triple(self) -> Result<String, CliError> {
        let why = match self.1.wait_with_output() {
            Err(error) => error.to_string(),
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout);
                if let Some(host) = text.lines().find_map(|line| line.strip_prefix("host: ")) {
                    return Ok(host.to_owned());
                }
                String::from_utf8_lossy(&output.stderr).trim().to_owned()
            }
        };
        let program = Path::new(&self.0).display();
        Err(CliError::operational(format_args!("{program} -vV does not print the host: {why}")))
    }
}

fn parent_dir(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_owned()
}

/// Returns the absolute path, relative to the current directory.
pub(crate) fn absolute_path(path: impl AsRef<OsStr>) -> PathBuf {
    let path = Path::new(path.as_ref());
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests;
