//! `build`, `run`, `test` and `install`: check the toolchain, run cargo with its arguments and cudaguard's wrapper,
//! then print a summary line.

use crate::cli::platform;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::SystemTime;

use crate::pipeline::CheckedBuild;
use cudaguard::internal::env::{self, Env};
use cudaguard::internal::finding::{Code, Finding, Severity};
use cudaguard::internal::json;
use cudaguard::internal::pipeline::{self, BuildInputs};
use cudaguard::internal::policy;
use cudaguard::internal::rebuild_stamp;
use serde_json::Value;

use crate::cargo::build_context::{self, BUILD, BuildContext, MARK, RUNNER, STARTED};
use crate::cargo::build_records::{self, BuildRecords};
use crate::cargo::config::{self, Config, Words};
use crate::cargo::graph::{self, CrateGraph};
use crate::cargo::guards::{self, Shims};
use crate::cargo::project::{self, Artifact, Project};
use crate::cli::arguments::{Call, CargoVerb, cargo_help};
use crate::cli::findings::{self, MessageFormat};
use crate::cli::message;
use crate::cli::report::{self, CliError, REFUSED};
use crate::cli::signals;

/// Built-in subcommands of cargo. An alias with such a name has no effect.
const OF_CARGO: &[&str] = &[
    "add",
    "bench",
    "check",
    "clean",
    "config",
    "doc",
    "fetch",
    "fix",
    "generate-lockfile",
    "help",
    "info",
    "init",
    "locate-project",
    "login",
    "logout",
    "metadata",
    "new",
    "owner",
    "package",
    "pkgid",
    "publish",
    "read-manifest",
    "remove",
    "report",
    "rustc",
    "rustdoc",
    "search",
    "tree",
    "uninstall",
    "update",
    "vendor",
    "verify-project",
    "version",
    "yank",
];

/// Returns true if this subcommand can build programs. For the others, the summary of earlier builds is not printed.
fn makes_programs(words: &[OsString]) -> bool {
    let name = words.first().and_then(|word| word.to_str()).unwrap_or_default();
    ["bench", "rustc"].contains(&name) || !(OF_CARGO.contains(&name) || ["c", "d", "clippy", "fmt"].contains(&name))
}

/// Expands the aliases of the project and returns the resulting subcommand with its arguments. An alias may select a
/// profile.
fn without_aliases(env: &Env, words: &[OsString]) -> Result<(CargoVerb, Vec<OsString>), CliError> {
    let config = Config::read(env, &[])?;
    let (mut words, mut seen) = (words.to_vec(), BTreeSet::new());
    while let Some(name) = words.first().and_then(|word| word.to_str()).map(str::to_owned) {
        if let Some(verb) = CargoVerb::from_name(&name) {
            return Ok((verb, words.split_off(1)));
        }
        let Some(alias) = config.alias_words(&name).filter(|_| !OF_CARGO.contains(&&*name)) else { break };
        let _ = words.splice(..1, alias.into_iter().map(OsString::from));
        // Cargo itself reports aliases that form a cycle.
        if !seen.insert(name) {
            break;
        }
    }
    Ok((CargoVerb::Any, words))
}

pub(crate) fn run_cargo(env: &Env, verb: CargoVerb, arguments: &[OsString]) -> Result<ExitCode, CliError> {
    let (verb, arguments) = match verb {
        CargoVerb::Any => without_aliases(env, arguments)?,
        known => (known, arguments.to_vec()),
    };
    let arguments = &arguments[..];
    let call = Call::parse(Some(verb), arguments);
    let mut command = Command::new(project::cargo_path(env));
    if verb != CargoVerb::Any {
        command.arg(verb.name());
    }
    command.args(arguments);
    signals::restore_signals(&mut command);
    if call.help {
        if call.usage && verb != CargoVerb::Any {
            report::print_result(&cargo_help(verb))?;
        }
        return Err(cannot_run(env, &platform::replace_process(&mut command)));
    }
    let config = Config::read(env, &call.configs)?;
    let (outer, inner) = wrappers(&config);
    let form = MessageFormat::from_values(&call.message_format);
    let fetched = verb == CargoVerb::Install && call.path.is_none();
    let (mut build, scratch, made) = if fetched {
        let (build, scratch) = from_registry(&call, &config, inner)?;
        (build, scratch, BuildOutputs::default())
    } else {
        let (build, made, refused) = prepare_build(verb, &call, &config, inner)?;
        if let Some(stop) = refused {
            return Err(stop);
        }
        (build, None, made)
    };
    build.outer = outer;
    command.envs(wrapper_variables(&build, &call)?);
    let began = SystemTime::now();
    command.env(STARTED, build_context::format_now());
    if verb == CargoVerb::Run {
        set_runner(&mut command, &call, &config)?;
        // The program takes cargo's place, and cargo ours: signals and status are the program's own.
        return Err(cannot_run(env, &platform::replace_process(&mut command)));
    }
    if form.is_some() {
        command.stdout(Stdio::piped());
    }
    if verb == CargoVerb::Any {
        let mut child = command.spawn().map_err(|error| cannot_run(env, &error))?;
        signals::leave_to_cargo();
        let status = child.wait().map_err(|error| cannot_run(env, &error))?;
        if !status.success() {
            findings::print(&made.unreported_findings());
        } else if makes_programs(arguments) {
            build.print_summary();
        }
        return Ok(signals::end_as(status));
    }
    let mut child = command.spawn().map_err(|error| cannot_run(env, &error))?;
    signals::leave_to_cargo();
    let mut refused = false;
    if let Some(stdout) = child.stdout.take() {
        message::pass_on(stdout, |success, scripts| {
            if success {
                let mut reported = graph::stale_by_messages(scripts, build.release, &made.uses);
                refused = pipeline::fails_build(&reported);
                reported.extend(build.reported_findings());
                reported.extend(made.stored_findings(None));
                message::report_findings(form, &reported, |finding| made.package_of_finding(finding));
            } else {
                let mut reported = made.stored_findings(Some(began));
                reported.extend(made.unreported_findings());
                message::report_findings(form, &reported, |finding| made.package_of_finding(finding));
            }
            success && !refused
        });
    }
    let status = child.wait().map_err(|error| cannot_run(env, &error))?;
    if status.success() {
        if form.is_none() {
            let settled = build.own.join("graph").join(format!("{}.settled", build.profile));
            let reported = graph::stale_crates(&command, verb, arguments, &settled, build.release, &made.uses);
            findings::print(&reported);
            refused = pipeline::fails_build(&reported);
            if !refused {
                findings::print(&build.reported_findings());
            }
        }
        if refused {
            made.remove_outputs();
        } else {
            build.last_line();
        }
    }
    if !status.success() {
        if form.is_none() {
            findings::print(&made.unreported_findings());
        }
        if pipeline::fails_build(&made.stored_findings(Some(began))) {
            made.remove_outputs();
        }
    }
    if let Some(scratch) = scratch {
        let _ = fs::remove_dir_all(scratch);
    }
    Ok(if refused { ExitCode::from(REFUSED) } else { signals::end_as(status) })
}

/// `env`: prints the environment that cargo needs, for tools that start cargo themselves. In `eval "$(…)"`, the shell
/// ignores the status of the inner command and returns the status of the last line, so an error prints `false`. A
/// refused build gets the variables too: cargo then refuses this build, instead of building without a guard.
pub(crate) fn print_environment(env: &Env, arguments: &[OsString]) -> Result<ExitCode, CliError> {
    const FAIL: &str = "false\n";
    match environment_variables(env, arguments) {
        Ok((text, None)) => report::print_result(&text).map(|()| ExitCode::SUCCESS),
        Ok((text, Some(stop))) => report::print_result(&(text + FAIL)).and(Err(stop)),
        Err(stop) => report::print_result(FAIL).and(Err(stop)),
    }
}

fn environment_variables(env: &Env, arguments: &[OsString]) -> Result<(String, Option<CliError>), CliError> {
    let call = Call::parse(Some(CargoVerb::Build), arguments);
    let config = Config::read(env, &call.configs)?;
    let (outer, inner) = wrappers(&config);
    let (mut build, _, refused) = prepare_build(CargoVerb::Build, &call, &config, inner)?;
    build.outer = outer;
    let mut text = String::new();
    for (name, value) in wrapper_variables(&build, &call)? {
        let quoted = value.to_string_lossy().replace('\'', "'\\''");
        text.push_str("export ");
        text.extend([name, "='", &quoted, "'\n"]);
    }
    Ok((text, refused))
}

/// Writes the facts for the wrapper, and returns the variables with which cargo calls it.
fn wrapper_variables(build: &BuildContext, call: &Call) -> Result<Vec<(&'static str, OsString)>, CliError> {
    let mut variables: Vec<(&str, OsString)> = vec![
        ("RUSTC_WORKSPACE_WRAPPER", build.wrapper_path()?.into()),
        (MARK, "1".into()),
        (env::STAMP_DIR_VAR, build.own.join("stamps").into()),
        (BUILD, build.write()?.into()),
    ];
    if !build.outer.is_empty() {
        variables.push(("RUSTC_WRAPPER", build_context::current_exe_path()?.into()));
    }
    if call.locked {
        // For the build scripts, which cannot see cargo's arguments.
        variables.push((cudaguard::internal::lock::LOCKED, "1".into()));
    }
    Ok(variables)
}

/// The outputs of a build, as far as they are known before it starts.
#[derive(Debug, Default)]
struct BuildOutputs {
    /// The crates of each package.
    uses: Vec<graph::StaleCheck>,
    /// The final artifacts that cargo creates.
    files: Vec<PathBuf>,
    /// The package data that cargo adds to each message, by component.
    about: BTreeMap<String, Value>,
    /// Files in which build scripts with `embed!()` store their findings.
    left: BTreeSet<PathBuf>,
    /// The findings of the check before the build, for each build script that repeats it in `embed!()`, with the file in
    /// which that stores its own. The script may fail before the call, because of what they report.
    expected: Vec<(PathBuf, Vec<Finding>)>,
}

impl BuildOutputs {
    fn package_of_finding(&self, finding: &Finding) -> Option<Value> {
        self.about.get(&finding.component).cloned()
    }

    /// Returns the findings that build scripts stored: all, or those since this time. After a failed build, older
    /// findings do not count.
    fn stored_findings(&self, since: Option<SystemTime>) -> Vec<Finding> {
        let time = |file: &PathBuf| fs::metadata(file).and_then(|about| about.modified()).ok();
        let counts = |file: &&PathBuf| since.is_none_or(|since| time(file).is_some_and(|time| time >= since));
        self.left.iter().filter(counts).flat_map(|file| build_records::read_stored_findings(file)).collect()
    }

    /// Returns the warnings that no `embed!()` has reported.
    fn unreported_findings(&self) -> Vec<Finding> {
        let mut unreported = Vec::new();
        for (file, findings) in &self.expected {
            let reported: BTreeSet<Code> =
                build_records::read_stored_findings(file).iter().map(|finding| finding.code).collect();
            let is_unreported =
                |finding: &&Finding| finding.severity > Severity::Info && !reported.contains(&finding.code);
            unreported.extend(findings.iter().filter(is_unreported).cloned());
        }
        unreported
    }

    /// Removes files that would look like outputs of this build. If cargo builds them after all, it creates them again.
    fn remove_outputs(&self) {
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
    }
}

fn cannot_run(env: &Env, error: &std::io::Error) -> CliError {
    CliError::operational(format_args!("cannot run {}: {error}", Path::new(&project::cargo_path(env)).display()))
}

/// Checks the toolchain of each package of the build and writes the guards. If the build is refused, all findings are
/// printed and the error is returned.
fn prepare_build(
    verb: CargoVerb,
    call: &Call,
    config: &Config,
    inner: Vec<String>,
) -> Result<(BuildContext, BuildOutputs, Option<CliError>), CliError> {
    let project = Project::from_call(Some(verb), call, config)?;
    let variables = config.env_table();
    project.make_target_dir();
    let own = project.target_dir.join("cudaguard");
    let graph = CrateGraph::from_project(&project, call, config, &own, true);
    let mut findings = Vec::new();
    let mut of_build = Vec::new();
    let mut ready = Vec::new();
    let mut unguarded = Vec::new();
    let mut made = BuildOutputs::default();
    let quiet = is_quiet(call, config);
    for target in &project.targets {
        for (package, artifacts) in project.built_packages() {
            let crates = graph.crates_of(target, &package.name);
            let by_crates = guards::intent_of_crates(crates, &package.dir);
            let facts = BuildInputs { by_crates, ..guards::build_inputs(&project, package, target) };
            of_build.extend(artifacts.iter().map(|one| (target.clone(), package.name.clone(), (*one).clone())));
            made.files.extend(artifacts.iter().map(|one| project.handed_over(target, &one.file)));
            made.about.insert(facts.component.to_string(), package.about.clone());
            let policy = facts.read_policy()?;
            let wants_guard = facts.wants_guard(&policy);
            // A file of this package may have been guarded because of its linker inputs: that guard has to follow the
            // policy, too.
            let guards = wants_guard || guards::exists(&facts, &own);
            if !guards && crates.is_empty() {
                unguarded.push((facts, artifacts));
                continue;
            }
            let judged = guards::check_package(&config.env, &facts, crates, &variables)?;
            // Only `check` reports infos about crates.
            findings.extend(judged.of_crates.iter().filter(|one| one.severity > Severity::Info).cloned());
            if package.embeds {
                // The build script of this package runs the check itself, with the options of its author.
                guards::write_stamp(&facts, &judged, &own.join("stamps"))?;
                let stored = rebuild_stamp::findings_path(&own.join("stamps"), &facts.component);
                if package.embeds_with_defaults && judged.is_refused() {
                    findings.extend(judged.findings.iter().cloned());
                } else if package.embeds_with_defaults {
                    made.expected.push((stored.clone(), judged.findings.clone()));
                }
                made.left.insert(stored);
            } else {
                findings.extend(judged.findings.iter().cloned());
            }
            ready.push(Ready { facts, judged, artifacts, wants_guard, guards });
        }
        for package in project.with_static_libraries() {
            if package.embeds && package.artifacts.is_empty() {
                let crates = graph.crates_of(target, &package.name);
                let facts = BuildInputs {
                    by_crates: guards::intent_of_crates(crates, &package.dir),
                    ..guards::build_inputs(&project, package, target)
                };
                let judged = guards::check_package(&config.env, &facts, crates, &variables)?;
                guards::write_stamp(&facts, &judged, &own.join("stamps"))?;
                made.left.insert(rebuild_stamp::findings_path(&own.join("stamps"), &facts.component));
            }
            made.files.extend(package.static_libraries.iter().map(|file| project.handed_over(target, file)));
        }
    }
    let refused =
        report_findings(&findings, project.release, MessageFormat::from_values(&call.message_format), &made).err();
    if refused.is_some() {
        made.remove_outputs();
        ready.clear();
        unguarded.clear();
    }
    let records = ready.iter().map(|one| (&one.facts, &one.artifacts));
    for (facts, artifacts) in records.chain(unguarded.iter().map(|(facts, artifacts)| (facts, artifacts))) {
        let build_records = BuildRecords::for_target(&own, facts.target, facts.profile);
        for artifact in artifacts {
            let out = project.output_dir(facts.target);
            build_records::remove_unexpected_copies(&build_records, &out, &facts.component.name, artifact)?;
        }
    }
    let mut shims = Shims::new(&own, quiet);
    for one in ready.iter().filter(|one| one.guards) {
        guards::make_guard(&one.facts, &one.judged, &own, None, &mut shims)?;
        if one.wants_guard {
            guards::expire_unguarded(&one.facts, &own)?;
        }
    }
    made.uses = ready
        .into_iter()
        .filter(|one| !one.judged.uses.is_empty())
        .map(|Ready { facts, judged, .. }| graph::StaleCheck {
            component: facts.component.to_string(),
            policy: judged.build.policy,
            uses: judged.uses,
        })
        .collect();
    let for_others = makes_libraries(verb, call);
    let host = if project.target_named { String::new() } else { project.targets[0].clone() };
    let build = BuildContext {
        own,
        members: project.members.iter().map(|package| package.dir.clone()).collect(),
        host,
        profile: project.profile.clone(),
        release: project.release,
        outer: Vec::new(),
        inner,
        variables,
        made: of_build,
        rust_libraries: if for_others { project.rust_libraries() } else { Vec::new() },
        bare_archives: if for_others { project.bare_archives() } else { Vec::new() },
        static_libraries: project
            .with_static_libraries()
            .flat_map(|package| package.static_libraries.clone())
            .collect(),
        quiet,
        verbose: call.verbose > 0,
        message_format: call.message_format.clone(),
        kept: project.build_dir.clone(),
        top: project.top.clone(),
        graph: graph.clone(),
    };
    Ok((build, made, refused))
}

/// A package that was checked before cargo starts.
struct Ready<'a> {
    facts: BuildInputs<'a>,
    judged: CheckedBuild,
    artifacts: Vec<&'a Artifact>,
    /// Set if the package is guarded independently of its linked files.
    wants_guard: bool,
    /// Set if the package is guarded, or was guarded once because of its linked files.
    guards: bool,
}

/// Returns true if the user selected libraries, not only the programs or tests that depend on them.
fn makes_libraries(verb: CargoVerb, call: &Call) -> bool {
    let named = call.all_bins || call.all_examples || !(call.bins.is_empty() && call.examples.is_empty());
    matches!(verb, CargoVerb::Build | CargoVerb::Any) && !call.tests && (!named || call.all_targets || call.others)
}

fn report_findings(
    findings: &[Finding],
    release: bool,
    form: Option<MessageFormat>,
    made: &BuildOutputs,
) -> Result<(), CliError> {
    message::report_findings(form, findings, |finding| made.package_of_finding(finding));
    let refused = findings.iter().filter(|finding| finding.severity == Severity::Error);
    let refused: BTreeSet<&str> = refused.map(|finding| finding.component.as_str()).collect();
    for component in &refused {
        report::print_line(&format!("cudaguard: {}", policy::not_built(component, release)));
    }
    if refused.is_empty() {
        return Ok(());
    }
    if form.is_some() {
        message::report_finished(false);
    }
    Err(CliError::already_reported(REFUSED))
}

/// Prepares a build of a package from a registry or a repository. Cargo unpacks and builds it in directories that are
/// unknown at this point, so nothing can be checked in advance: the wrapper does this.
fn from_registry(
    call: &Call,
    config: &Config,
    inner: Vec<String>,
) -> Result<(BuildContext, Option<PathBuf>), CliError> {
    let kept = call.target_dir.clone().or_else(|| config.env.var_os("CARGO_TARGET_DIR").map(PathBuf::from));
    let (own, scratch) = if let Some(dir) = kept {
        (project::absolute_path(dir).join("cudaguard").join("installed"), None)
    } else {
        let own = std::env::temp_dir().join(format!("cudaguard-install-{}", std::process::id()));
        (own.clone(), Some(own))
    };
    let profile = match (&call.profile, call.debug) {
        (Some(profile), _) => profile.clone(),
        (None, true) => "dev".to_owned(),
        (None, false) => "release".to_owned(),
    };
    let host = project::host_triple(config)?;
    let release = profile != "dev" && profile != "test";
    let variables = config.env_table();
    // The package, and whether its guard is still valid, are not known yet. If the target directory is kept, cargo then
    // finds the guard missing and links again.
    match fs::remove_dir_all(&own) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(CliError::operational(format_args!("cannot remove {}: {error}", own.display())));
        }
        _ => {}
    }
    let quiet = is_quiet(call, config);
    let verbose = call.verbose > 0;
    Ok((
        BuildContext { own, host, profile, release, inner, variables, quiet, verbose, ..BuildContext::default() },
        scratch,
    ))
}

fn is_quiet(call: &Call, config: &Config) -> bool {
    call.quiet || config.bool_value(&["term", "quiet"])
}

/// Returns the wrapper for all compilers, and the wrapper for the workspace, that cargo would call without cudaguard. In a nested
/// build they are those of the outer build.
fn wrappers(config: &Config) -> (Vec<String>, Vec<String>) {
    if config.env.var_os(MARK).is_some()
        && let Some(build) = config.env.var_os(BUILD).and_then(|file| BuildContext::read(Path::new(&file)))
    {
        return (build.outer, build.inner);
    }
    let outer = match config.env.var_os_raw("RUSTC_WRAPPER") {
        // An empty value means none.
        Some(wrapper) if wrapper.is_empty() => Vec::new(),
        Some(wrapper) => vec![wrapper.to_string_lossy().into_owned()],
        None => config.program_path(&["build", "rustc-wrapper"]).into_iter().collect(),
    };
    let inner = match config.env.var("RUSTC_WORKSPACE_WRAPPER") {
        // Cargo reads the variable as one path, even if it contains blanks.
        Some(wrapper) => vec![wrapper],
        None => config.program_path(&["build", "rustc-workspace-wrapper"]).into_iter().collect(),
    };
    (outer, inner)
}

/// Makes cargo start the program with cudaguard's runner, which reports loader problems before the program starts.
fn set_runner(command: &mut Command, call: &Call, config: &Config) -> Result<(), CliError> {
    let target = match call.targets.first().cloned().or_else(|| config.string_values(&["build", "target"]).pop()) {
        Some(target) if target != "host-tuple" => target,
        _ => project::host_triple(config)?,
    };
    let key = ["target", &target, "runner"];
    let before = match config.program_with_args(&key) {
        Some(Words(words)) => words,
        None => runner_by_condition(&target, config),
    };
    let ours = build_context::current_exe_path()?.to_string_lossy().into_owned();
    command.env(RUNNER, before.len().to_string());
    let words: Vec<&str> = [ours.as_str(), "exec", "--"].into_iter().chain(before.iter().map(String::as_str)).collect();
    if words.iter().any(|word| word.contains(char::is_whitespace)) {
        // A basic string of TOML and a string of JSON have the same syntax.
        let list: Vec<String> = words.iter().copied().map(json::quote).collect();
        // The option must precede the arguments of the subcommand: after `--` it would belong to the program.
        let mut rerun = Command::new(command.get_program());
        rerun.args(["--config", &format!("target.{target}.runner=[{}]", list.join(", "))]).args(command.get_args());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                rerun.env(name, value);
            }
        }
        *command = rerun;
    } else {
        command.env(config::variable_name(&key), words.join(" "));
    }
    Ok(())
}

/// Returns the runner of `[target.'cfg(…)']`, which a runner for the target triple would hide.
fn runner_by_condition(target: &str, config: &Config) -> Vec<String> {
    let runners = config.cfg_runners();
    if runners.is_empty() {
        return Vec::new();
    }
    let asked = Command::new(project::rustc_path(config))
        .args(["--print", "cfg", "--target", target])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let Ok(answer) = asked else { return Vec::new() };
    let set: Vec<String> = String::from_utf8_lossy(&answer.stdout).lines().map(str::to_owned).collect();
    runners
        .into_iter()
        .find(|(condition, _)| config::cfg_holds(condition, &set))
        .map(|(_, Words(words))| words)
        .unwrap_or_default()
}
