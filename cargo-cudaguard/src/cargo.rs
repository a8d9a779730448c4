//! `build`, `run`, `test`, `install`: the toolchain judged, then cargo with its own arguments and our wrapper, then one
//! line about what came out.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::SystemTime;

use cudaguard::digest::Digest;
use cudaguard::env;
use cudaguard::files::write_where_new;
use cudaguard::finding::{Finding, Severity};
use cudaguard::manifest::Component;
use cudaguard::policy;
use serde_json::{Value, json};

use crate::arguments::CargoVerb;
use crate::config::{self, Config, Words};
use crate::graph::{self, Graph};
use crate::guards::{self, Order};
use crate::ledger::{self, Entry, Ledger};
use crate::project::{self, Artefact, Call, Kind, Package, Project};
use crate::report::{self, REFUSED, Stop};
use crate::signals;

/// Set where our wrapper is at work.
pub(crate) const MARK: &str = "CUDAGUARD_WRAPS";
/// Names the file with what the wrapper must know of the build.
pub(crate) const BUILD: &str = "CUDAGUARD_BUILD";
/// When the build began, in seconds and nanoseconds since 1970.
pub(crate) const STARTED: &str = "CUDAGUARD_STARTED";

/// Says that cargo calls `exec` as its runner, and how many words of another runner come first.
pub(crate) const RUNNER: &str = "CUDAGUARD_RUNNER";

/// What the wrapper and the runner must know of a build: handed on in a file, because cargo stands in between.
#[derive(Debug, Default)]
pub(crate) struct Build {
    /// The folder that cudaguard has for itself in the target folder.
    pub(crate) own: PathBuf,
    pub(crate) top: PathBuf,
    /// Folders of the workspace's members; empty for a package from a registry.
    pub(crate) members: BTreeSet<PathBuf>,
    pub(crate) host: String,
    pub(crate) profile: String,
    pub(crate) release: bool,
    /// The wrapper that cargo would call around each compiler (`RUSTC_WRAPPER`, sccache): we stand in its place and call
    /// it, because it would take us for a compiler that it does not know.
    pub(crate) outer: Vec<String>,
    /// The wrapper that stood here before ours, with its arguments.
    pub(crate) inner: Vec<String>,
    /// `[env]` of cargo's configuration.
    pub(crate) variables: BTreeMap<String, OsString>,
    /// The crates that reach CUDA.
    pub(crate) graph: Graph,
    /// What the summary is about: target, package, artefact.
    made: Vec<(String, String, Artefact)>,
    quiet: bool,
}

pub(crate) fn run(verb: CargoVerb, arguments: &[OsString]) -> Result<ExitCode, Stop> {
    let call = Call::read(Some(verb), arguments);
    let mut command = Command::new(project::cargo());
    command.arg(verb.name()).args(arguments);
    if call.help {
        return Err(cannot_run(&command.exec()));
    }
    let config = Config::read(&project::here()?, &call.configs)?;
    let (outer, inner) = (outer_wrapper(&config), inner_wrapper(&config));
    let fetched = verb == CargoVerb::Install && call.path.is_none();
    let (mut build, scratch, uses) = if fetched {
        let (build, scratch) = from_registry(&call, &config, inner)?;
        (build, scratch, Vec::new())
    } else {
        let (build, uses) = prepare(verb, &call, &config, inner)?;
        (build, None, uses)
    };
    build.outer = outer;
    if !build.outer.is_empty() {
        command.env("RUSTC_WRAPPER", exe()?);
    }
    let file = build.write()?;
    command.env("RUSTC_WORKSPACE_WRAPPER", build.wrapper()?);
    command.env(MARK, "1").env(BUILD, &file).env(STARTED, now());
    command.env(cudaguard::stamp::VARIABLE, build.own.join("stamps"));
    if call.locked {
        // For the build scripts, which cannot see cargo's arguments.
        command.env(cudaguard::lock::LOCKED, "1");
    }
    if verb == CargoVerb::Run {
        set_runner(&mut command, &call, &config)?;
        // The program takes cargo's place, and cargo ours: signals and status are the program's own.
        return Err(cannot_run(&command.exec()));
    }
    let mut child = command.spawn().map_err(|error| cannot_run(&error))?;
    signals::leave_to_cargo();
    let status = child.wait().map_err(|error| cannot_run(&error))?;
    let mut refused = false;
    if status.success() {
        build.summary();
        let said = graph::stale(&command, verb, arguments, &build, &uses);
        report::findings(&said);
        report::annotations(&said);
        refused = report::refuses(&said);
    }
    if let Some(scratch) = scratch {
        let _ = fs::remove_dir_all(scratch);
    }
    Ok(if refused { ExitCode::from(REFUSED) } else { signals::end_as(status) })
}

fn cannot_run(error: &std::io::Error) -> Stop {
    Stop::no_look(format_args!("cannot run {}: {error}", Path::new(&project::cargo()).display()))
}

/// A name that nobody else takes, with the process number before it.
pub(crate) fn now() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{}.{}", since.as_secs(), since.subsec_nanos())
}

/// Judges the toolchain for every package that is built, and lays the guards ready.
fn prepare(
    verb: CargoVerb,
    call: &Call,
    config: &Config,
    inner: Vec<String>,
) -> Result<(Build, Vec<graph::Judged>), Stop> {
    let project = Project::of(Some(verb), call, config)?;
    let variables = config.variables();
    let own = project.target_dir.join("cudaguard");
    let graph = Graph::of_project(&project, call, config, &own, true);
    let mut findings = Vec::new();
    let mut made = Vec::new();
    let mut ready = Vec::new();
    for target in &project.targets {
        for (package, artefacts) in project.made() {
            let crates = graph.of(target, &package.name);
            let order = Order { crates, ..order(&project, package, target) };
            let judged = order.judge(&variables).map_err(Stop::no_look)?;
            // An info about a crate is for who asks: `check`.
            findings.extend(judged.of_crates.iter().filter(|one| one.severity > Severity::Info).cloned());
            if package.embeds {
                // Its build script judges by itself, with what its author says there.
                guards::stamp(&order, &judged, &own.join("stamps")).map_err(Stop::no_look)?;
            } else {
                findings.extend(judged.findings.iter().cloned());
            }
            made.extend(artefacts.iter().map(|one| (target.clone(), package.name.clone(), (*one).clone())));
            ready.push((order, judged, artefacts));
        }
    }
    say(&findings, project.release)?;
    for (order, judged, artefacts) in &ready {
        guards::make(order, judged, &own, None).map_err(Stop::no_look)?;
        let ledger = Ledger::of(&own, order.target, order.profile);
        for artefact in artefacts {
            let out = project.out(order.target);
            ledger::drop_strangers(&ledger, &out, &order.component.name, artefact).map_err(Stop::no_look)?;
        }
    }
    let uses = ready
        .into_iter()
        .filter(|(order, ..)| !order.crates.is_empty())
        .map(|(order, judged, _)| graph::Judged {
            component: order.component.to_string(),
            policy: judged.policy,
            uses: judged.uses,
        })
        .collect();
    let host = if project.target_named { String::new() } else { project.targets[0].clone() };
    let build = Build {
        own,
        members: project.members.iter().map(|package| package.dir.clone()).collect(),
        host,
        profile: project.profile.clone(),
        release: project.release,
        outer: Vec::new(),
        inner,
        variables,
        made,
        quiet: is_quiet(call, config),
        top: project.top.clone(),
        graph: graph.clone(),
    };
    Ok((build, uses))
}

/// The order for a package of this project, whose crates nobody has asked for yet.
pub(crate) fn order<'a>(project: &'a Project, package: &'a Package, target: &'a str) -> Order<'a> {
    Order {
        component: Component { name: package.name.clone(), version: package.version.clone() },
        dir: &package.dir,
        top: &project.top,
        target,
        profile: &project.profile,
        release: project.release,
        locked: project.locked,
        only_declared: false,
        crates: &[],
    }
}

fn say(findings: &[Finding], release: bool) -> Result<(), Stop> {
    report::findings(findings);
    report::annotations(findings);
    let refused = findings.iter().filter(|finding| finding.severity == Severity::Error);
    let refused: BTreeSet<&str> = refused.map(|finding| finding.component.as_str()).collect();
    for component in &refused {
        report::line(&format!("cudaguard: {}", policy::not_built(component, release)));
    }
    if refused.is_empty() { Ok(()) } else { Err(Stop::silent(REFUSED)) }
}

/// A package from a registry or a repository: cargo unpacks it somewhere and builds it in a folder of its own, so that
/// all that can be known beforehand is nothing. The wrapper finds out.
fn from_registry(call: &Call, config: &Config, inner: Vec<String>) -> Result<(Build, Option<PathBuf>), Stop> {
    let kept = call.target_dir.clone().or_else(|| env::var_os("CARGO_TARGET_DIR").map(PathBuf::from));
    let (own, scratch) = if let Some(folder) = kept {
        (project::absolute(folder).join("cudaguard").join("installed"), None)
    } else {
        let own = std::env::temp_dir().join(format!("cudaguard-install-{}", std::process::id()));
        (own.clone(), Some(own))
    };
    let profile = match (&call.profile, call.debug) {
        (Some(profile), _) => profile.clone(),
        (None, true) => "dev".to_owned(),
        (None, false) => "release".to_owned(),
    };
    let host = project::host(config)?;
    let release = profile != "dev" && profile != "test";
    let variables = config.variables();
    // Which package comes, and whether its guard still holds, is not known yet: in a target folder that is kept, cargo
    // then misses the guard and links anew.
    match fs::remove_dir_all(&own) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Stop::no_look(format_args!("cannot remove {}: {error}", own.display())));
        }
        _ => {}
    }
    let quiet = is_quiet(call, config);
    Ok((Build { own, host, profile, release, inner, variables, quiet, ..Build::default() }, scratch))
}

fn is_quiet(call: &Call, config: &Config) -> bool {
    call.quiet || config.switch(&["term", "quiet"])
}

/// The wrapper that cargo would call were it not for ours. Within a build of ours it is the one that we call.
fn inner_wrapper(config: &Config) -> Vec<String> {
    if env::var_os(MARK).is_some() {
        if let Some(outer) = env::var_os(BUILD).and_then(|file| Build::read(Path::new(&file))) {
            return outer.inner;
        }
    }
    // A variable holds one word, as cargo takes it: a path with blanks is one.
    if let Some(wrapper) = env::var("RUSTC_WORKSPACE_WRAPPER") {
        return vec![wrapper];
    }
    config.program(&["build", "rustc-workspace-wrapper"]).map(|Words(words)| words).unwrap_or_default()
}

/// The wrapper around every compiler: `RUSTC_WRAPPER`, where an empty one is none, else cargo's configuration.
fn outer_wrapper(config: &Config) -> Vec<String> {
    if env::var_os(MARK).is_some() {
        if let Some(outer) = env::var_os(BUILD).and_then(|file| Build::read(Path::new(&file))) {
            return outer.outer;
        }
    }
    match std::env::var_os("RUSTC_WRAPPER") {
        Some(wrapper) if wrapper.is_empty() => Vec::new(),
        Some(wrapper) => vec![wrapper.to_string_lossy().into_owned()],
        None => config.program(&["build", "rustc-wrapper"]).map(|Words(words)| words).unwrap_or_default(),
    }
}

/// `run`: the program is started by our runner, which says beforehand what the loader would die of.
fn set_runner(command: &mut Command, call: &Call, config: &Config) -> Result<(), Stop> {
    let target = match call.targets.first().cloned().or_else(|| config.texts(&["build", "target"]).pop()) {
        Some(target) if target != "host-tuple" => target,
        _ => project::host(config)?,
    };
    let key = ["target", &target, "runner"];
    let before = match config.program(&key) {
        Some(Words(words)) => words,
        None => runner_by_condition(&target, config),
    };
    let ours = exe()?.to_string_lossy().into_owned();
    command.env(RUNNER, before.len().to_string());
    let words: Vec<&str> = [ours.as_str(), "exec", "--"].into_iter().chain(before.iter().map(String::as_str)).collect();
    if words.iter().any(|word| word.contains(char::is_whitespace)) {
        // A basic string of TOML and one of JSON are spelled alike.
        let list: Vec<String> = words.iter().map(|word| Value::from(*word).to_string()).collect();
        // Before the verb's own arguments: after `--` it would be the program's.
        let mut anew = Command::new(command.get_program());
        anew.args(["--config", &format!("target.{target}.runner=[{}]", list.join(", "))]).args(command.get_args());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                anew.env(name, value);
            }
        }
        *command = anew;
    } else {
        command.env(config::variable(&key), words.join(" "));
    }
    Ok(())
}

/// `[target.'cfg(…)'] runner`, which a runner named for the triple would hide.
fn runner_by_condition(target: &str, config: &Config) -> Vec<String> {
    let runners = config.cfg_runners();
    if runners.is_empty() {
        return Vec::new();
    }
    let asked = Command::new(project::rustc(config))
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

impl Build {
    /// Writes it where the wrapper finds it; equal builds share one file.
    fn write(&self) -> Result<PathBuf, Stop> {
        let variables: serde_json::Map<String, Value> =
            self.variables.iter().map(|(name, value)| (name.clone(), value.to_string_lossy().into())).collect();
        let made: Vec<Value> = self
            .made
            .iter()
            .map(|(target, package, artefact)| json!([target, package, artefact.kind.name(), artefact.name]))
            .collect();
        let text = json!({
            "own": self.own,
            "top": self.top,
            "members": self.members,
            "host": self.host,
            "profile": self.profile,
            "release": self.release,
            "outer": self.outer,
            "inner": self.inner,
            "variables": variables,
            "made": made,
            "quiet": self.quiet,
            "graph": self.graph.to_json(),
        })
        .to_string();
        let file = self.own.join("builds").join(format!("{}.json", Digest::of(text.as_bytes())));
        write_where_new(&file, text.as_bytes()).map_err(Stop::no_look)?;
        Ok(file)
    }

    /// Reads what [`Self::write`] wrote.
    pub(crate) fn read(file: &Path) -> Option<Self> {
        let value: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let texts = |value: &Value| value.as_array()?.iter().map(text).collect::<Option<Vec<String>>>();
        let made = |one: &Value| {
            let kind = match one[2].as_str()? {
                "bin" => Kind::Bin,
                "example" => Kind::Example,
                "cdylib" => Kind::Cdylib,
                _ => Kind::ExampleCdylib,
            };
            Some((text(&one[0])?, text(&one[1])?, Artefact { kind, name: text(&one[3])? }))
        };
        Some(Self {
            own: text(&value["own"])?.into(),
            top: text(&value["top"])?.into(),
            members: texts(&value["members"])?.into_iter().map(PathBuf::from).collect(),
            host: text(&value["host"])?,
            profile: text(&value["profile"])?,
            release: value["release"].as_bool()?,
            outer: texts(&value["outer"])?,
            inner: texts(&value["inner"])?,
            variables: value["variables"]
                .as_object()?
                .iter()
                .map(|(name, value)| Some((name.clone(), text(value)?.into())))
                .collect::<Option<_>>()?,
            made: value["made"].as_array()?.iter().map(made).collect::<Option<_>>()?,
            quiet: value["quiet"].as_bool()?,
            graph: Graph::from_json(&value["graph"])?,
        })
    }

    /// What cargo calls: this very program. cargo keeps the programs of one wrapper's path apart from those of
    /// another's, and the path holds nothing of the project, so that equal trees give equal programs. A wrapper inside
    /// ours counts for cargo as much, so with one we go by a name of its own.
    fn wrapper(&self) -> Result<PathBuf, Stop> {
        let exe = exe()?;
        if self.inner.is_empty() {
            return Ok(exe);
        }
        let folder = self.own.join(format!("around-{}", Digest::of(self.inner.join("\0").as_bytes())));
        let link = folder.join("cargo-cudaguard");
        if fs::read_link(&link).is_ok_and(|to| to == exe) {
            return Ok(link);
        }
        let fail = |error: std::io::Error| Stop::no_look(format_args!("cannot make {}: {error}", link.display()));
        fs::create_dir_all(&folder).map_err(fail)?;
        let beside = folder.join(format!(".{}", std::process::id()));
        std::os::unix::fs::symlink(&exe, &beside).and_then(|()| fs::rename(&beside, &link)).map_err(fail)?;
        Ok(link)
    }

    /// What is to be said of the files, and the one line at the end.
    pub(crate) fn summary(&self) {
        let entries = self.entries();
        // As cargo does: quiet is about its own words, not about warnings.
        let said = entries.iter().flat_map(|entry| &entry.findings);
        let said: Vec<Finding> =
            said.filter(|finding| !self.quiet || finding.severity > Severity::Info).cloned().collect();
        report::findings(&said);
        report::annotations(&said);
        if self.quiet {
            return;
        }
        if let Some(text) = summary(&entries) {
            report::line(&text);
        }
    }

    fn entries(&self) -> Vec<Entry> {
        if self.members.is_empty() {
            return Ledger::of(&self.own, &self.host, &self.profile).all();
        }
        let known = |(target, package, artefact): &(String, String, Artefact)| {
            Ledger::of(&self.own, target, &self.profile).valid(package, artefact)
        };
        self.made.iter().filter_map(known).collect()
    }
}

fn summary(entries: &[Entry]) -> Option<String> {
    if entries.is_empty() {
        return None;
    }
    let guarded = entries.iter().filter(|entry| entry.unguarded.is_none()).count();
    let built: BTreeSet<&str> = entries.iter().flat_map(|entry| &entry.built_with).map(String::as_str).collect();
    let mut text = format!("cudaguard: {guarded} of {} target{} guarded", entries.len(), plural(entries.len()));
    if !built.is_empty() {
        let built: Vec<&str> = built.into_iter().collect();
        let _ = write!(text, " ({})", built.join("; "));
    }
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in entries {
        if let Some(why) = &entry.unguarded {
            reasons.entry(why).or_default().push(&entry.name);
        }
    }
    for (why, names) in reasons {
        let _ = write!(text, "\n  not guarded: {}: {why}", names.join(", "));
    }
    Some(text)
}

const fn plural(number: usize) -> &'static str {
    if number == 1 { "" } else { "s" }
}

fn exe() -> Result<PathBuf, Stop> {
    std::env::current_exe().map_err(|error| Stop::no_look(format_args!("cannot find this program's own file: {error}")))
}

/// Takes what is ours out of the environment of a program that is started at the end of a build.
pub(crate) fn leave_no_trace(command: &mut Command) {
    let build = env::var_os(BUILD).and_then(|file| Build::read(Path::new(&file))).unwrap_or_default();
    for name in [MARK, BUILD, STARTED, RUNNER, cudaguard::stamp::VARIABLE, cudaguard::lock::LOCKED] {
        command.env_remove(name);
    }
    command.env_remove("RUSTC_WORKSPACE_WRAPPER");
    for (name, stood) in [("RUSTC_WORKSPACE_WRAPPER", &build.inner), ("RUSTC_WRAPPER", &build.outer)] {
        if let Some(wrapper) = stood.first() {
            command.env(name, OsStr::from_bytes(wrapper.as_bytes()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, unguarded: Option<&str>, built_with: &[&str]) -> Entry {
        let file = std::env::current_exe().unwrap();
        Entry {
            package: "p".into(),
            kind: "bin".into(),
            name: name.into(),
            mark: ledger::Mark::of(&file).unwrap(),
            file,
            unguarded: unguarded.map(str::to_owned),
            built_with: built_with.iter().map(|one| (*one).to_owned()).collect(),
            findings: Vec::new(),
        }
    }

    #[test]
    fn one_line_about_everything() {
        assert_eq!(summary(&[]), None);
        let both = ["CUDA 13.0, cuDNN 9.15.1"];
        assert_eq!(
            summary(&[entry("a", None, &both), entry("b", None, &both)]).unwrap(),
            "cudaguard: 2 of 2 targets guarded (CUDA 13.0, cuDNN 9.15.1)"
        );
        assert_eq!(summary(&[entry("a", None, &["no CUDA"])]).unwrap(), "cudaguard: 1 of 1 target guarded (no CUDA)");
        assert_eq!(
            summary(&[entry("a", Some("no ELF"), &[]), entry("b", Some("no ELF"), &[])]).unwrap(),
            "cudaguard: 0 of 2 targets guarded\n  not guarded: a, b: no ELF"
        );
    }

    #[test]
    fn what_the_wrapper_reads_is_what_was_written() {
        let own = std::env::temp_dir().join(format!("cudaguard-build-{}", std::process::id()));
        let build = Build {
            own: own.clone(),
            top: "/w".into(),
            members: ["/w/a".into(), "/w/b".into()].into(),
            host: "h".into(),
            profile: "dist".into(),
            release: true,
            outer: vec!["/usr/bin/sccache".into()],
            inner: vec!["/usr/bin/clippy-driver".into()],
            variables: [("A".to_owned(), "b".into())].into(),
            made: vec![("t".into(), "p".into(), Artefact { kind: Kind::Cdylib, name: "x".into() })],
            quiet: true,
            graph: Graph::default(),
        };
        let file = build.write().unwrap();
        assert_eq!(format!("{:?}", Build::read(&file).unwrap()), format!("{build:?}"));
        fs::remove_dir_all(own).unwrap();
    }
}
