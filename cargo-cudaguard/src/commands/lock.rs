//! `lock`: records the toolchain of the workspace in `cudaguard.lock`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::binary::file::Binary;
use crate::knowledge::vendor::CUDNN;
use crate::linked::linked_lock::observe_manifest;
use cudaguard::internal::env::Env;
use cudaguard::internal::files::write_where_new;
use cudaguard::internal::lock::{FILE, Lock, Pins, same_release};
use cudaguard::internal::manifest::{Component, Manifest};
use cudaguard::internal::pipeline::BuildInputs;
use cudaguard::internal::toolchain::Toolchain;

use crate::cargo::build_records::BuildRecords;
use crate::cargo::graph::CrateGraph;
use crate::cargo::guards;
use crate::cargo::project::Project;
use crate::cli::report::{self, CliError, REFUSED};

pub(crate) fn run_lock(env: &Env, arguments: &[OsString]) -> Result<ExitCode, CliError> {
    let (call, config, project) = Project::from_args(env, arguments)?;
    let variables = config.env_table();
    let file = Lock::lock_path(&project.top).ok_or_else(|| {
        CliError::operational(format_args!(
            "{}: cargo downloaded this package, so its lock would not be used",
            project.top.display()
        ))
    })?;
    // An unreadable lock may contain the entries of other targets, so it is not overwritten.
    let old = Lock::read(&file)?;
    let mut lock = old.clone().unwrap_or_default();
    let mut output = String::new();
    let graph = CrateGraph::from_project(&project, &call, &config, &project.target_dir.join("cudaguard"), false);
    for target in &project.targets {
        let first = project.members.first().ok_or_else(|| CliError::operational("the workspace is empty"))?;
        let nobody = Component { name: String::new(), version: String::new() };
        let workspace = BuildInputs {
            component: nobody,
            package: "",
            dir: &project.top,
            ..guards::build_inputs(&project, first, target)
        };
        let base = guards::check_package(env, &workspace, &[], &variables)?;
        let mut pins = Pins::from_toolchain(&base.policy, &base.toolchain, workspace.lock_scope());
        let manifests = last_built_pins(env, &project, target, &graph, &variables)?;
        one_of_each(&manifests)?;
        for manifest in manifests {
            observe_manifest(&mut pins, &manifest);
        }
        if pins.toolkit.is_none() {
            return Err(CliError::operational(format_args!(
                "nothing to lock: no CUDA toolkit with a known release was found for {target}; run `cargo cudaguard check` \
                 to see the searched places"
            )));
        }
        for member in &project.members {
            let judged = guards::check_package(env, &guards::build_inputs(&project, member, target), &[], &variables)?;
            let own = Pins::from_toolchain(&judged.policy, &judged.toolchain, workspace.lock_scope());
            pins.library = pins.library.or(own.library);
            if own.archs != pins.archs {
                pins.packages.insert(member.name.clone(), own.archs);
            }
        }
        let before = old.as_ref().and_then(|old| old.targets.get(target));
        describe_changes(&mut output, target, before, &pins, &base.toolchain);
        lock.targets.insert(target.clone(), pins);
    }
    write_lock(&file, old.as_ref(), &lock, output, call.locked)
}

/// Returns the manifests of the files that were last built and sealed for a target, if nothing has changed since. They
/// show the toolkit and the compiler that were used, independently of variables and PATH.
fn last_built_pins(
    env: &Env,
    project: &Project,
    target: &str,
    graph: &CrateGraph,
    variables: &BTreeMap<String, OsString>,
) -> Result<Vec<Manifest>, CliError> {
    let own = project.target_dir.join("cudaguard");
    let mut manifests = Vec::new();
    for (profile, release) in [("dev", false), ("release", true)] {
        let build_records = BuildRecords::for_target(&own, target, profile);
        for member in &project.members {
            let entries: Vec<_> =
                member.artifacts.iter().filter_map(|one| build_records.read_if_current(&member.name, one)).collect();
            if entries.is_empty() {
                continue;
            }
            let crates = graph.crates_of(target, &member.name);
            let by_crates = guards::intent_of_crates(crates, &member.dir);
            let facts = BuildInputs { by_crates, profile, release, ..guards::build_inputs(project, member, target) };
            if !guards::is_current(&facts, &guards::check_package(env, &facts, crates, variables)?, &own) {
                continue;
            }
            for entry in entries {
                let time = fs::metadata(&entry.file).and_then(|about| about.modified()).ok();
                let binary = Binary::read(&entry.file)?;
                let notes = binary.manifests().flatten().map(|note| note.manifest);
                let sealed = notes.filter(|one| one.sealed && one.component.name == member.name);
                manifests.extend(sealed.map(|manifest| (time, manifest)));
            }
        }
    }
    // The last manifest takes precedence.
    manifests.sort_by_key(|(time, _)| *time);
    Ok(manifests.into_iter().map(|(_, manifest)| manifest).collect())
}

/// Checks that the last built files of all packages agree. A lock has one toolkit, one cuDNN and one host compiler.
fn one_of_each(manifests: &[Manifest]) -> Result<(), CliError> {
    type PinOf = fn(&Pins) -> Option<&String>;
    let facts: [(&str, PinOf); 3] = [
        ("toolkit", |pins| pins.toolkit.as_ref()),
        (CUDNN.name, |pins| pins.library.as_ref()),
        ("host compiler", |pins| pins.host_compiler.as_ref()),
    ];
    let last: BTreeMap<&str, &Manifest> = manifests.iter().map(|one| (one.component.name.as_str(), one)).collect();
    let shown = last.into_iter().map(|(name, manifest)| {
        let mut pins = Pins::default();
        observe_manifest(&mut pins, manifest);
        (name, pins)
    });
    let shown: Vec<(&str, Pins)> = shown.collect();
    for (what, fact) in facts {
        let mut all = shown.iter().filter_map(|(name, pins)| Some((name, fact(pins)?)));
        let Some((first, its)) = all.next() else { continue };
        if let Some((other, others)) = all.find(|(_, others)| *others != its) {
            return Err(CliError::operational(format_args!(
                "the packages of this workspace were last built with different {what}s, but a lock can contain only one: {its} ({first}), \
                 {others} ({other})"
            )));
        }
    }
    Ok(())
}

/// Replaces a lock and prints its contents. With `--locked`, reports if it would change instead.
pub(crate) fn write_lock(
    file: &Path,
    old: Option<&Lock>,
    lock: &Lock,
    mut output: String,
    locked: bool,
) -> Result<ExitCode, CliError> {
    let same = old == Some(lock);
    let _ = match (same, locked) {
        (true, _) => writeln!(output, "{FILE} is up to date"),
        (false, true) => writeln!(output, "{FILE} is not up to date, but --locked was passed"),
        (false, false) => writeln!(output, "wrote {}", file.display()),
    };
    if !same && !locked {
        let _ = write_where_new(file, lock.to_text().as_bytes())?;
    }
    report::print_result(&output)?;
    Ok(if !same && locked { ExitCode::from(REFUSED) } else { ExitCode::SUCCESS })
}

/// Prints the locked values of a target, one a line, with the previous value if it differs.
pub(crate) fn describe_changes(
    output: &mut String,
    target: &str,
    before: Option<&Pins>,
    pins: &Pins,
    toolchain: &Toolchain,
) {
    let _ = writeln!(output, "{target}");
    let found = toolchain.toolkit_version().map(|version| version.to_string());
    let by_file = || Some("from the linked files".to_owned());
    let as_found = same_release(pins.toolkit.as_deref(), found.as_deref());
    let toolkit = if as_found { toolchain.sourced_toolkit_version().map(|fact| fact.source) } else { by_file() };
    let as_found = toolchain.library_version().map(|version| version.to_string()) == pins.library;
    let headers = || toolchain.library_headers_used().map(|headers| headers.path.display().to_string());
    let library = if as_found { headers() } else { by_file() };
    let host = toolchain.host.as_ref().filter(|host| host.display_name() == pins.host_compiler);
    let sources: BTreeMap<&str, String> = [
        ("toolkit", toolkit),
        (CUDNN.key, library),
        ("host-compiler", host.map(|host| host.path.display().to_string()).or_else(by_file)),
    ]
    .into_iter()
    .filter_map(|(name, source)| Some((name, source?)))
    .collect();
    let facts = |pins: &Pins| {
        let archs = |archs: &[String]| (!archs.is_empty()).then(|| archs.join(" "));
        let mut facts = vec![
            ("toolkit".to_owned(), pins.toolkit.clone()),
            (CUDNN.key.to_owned(), pins.library.clone()),
            ("host-compiler".to_owned(), pins.host_compiler.clone()),
            ("archs".to_owned(), archs(&pins.archs)),
        ];
        facts.extend(pins.packages.iter().map(|(name, own)| (format!("archs of {name}"), archs(own))));
        facts
    };
    let was: BTreeMap<String, Option<String>> =
        before.map(|pins| facts(pins).into_iter().collect()).unwrap_or_default();
    for (name, fact) in facts(pins) {
        let was = before.map(|_| was.get(&name).cloned().flatten());
        let words = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "none".to_owned());
        let source = sources.get(name.as_str()).filter(|_| fact.is_some()).map(|source| format!(" ({source})"));
        let source = source.unwrap_or_default();
        let _ = match was {
            Some(was) if was != fact => writeln!(output, "  {name}: {} → {}{source}", words(&was), words(&fact)),
            _ if fact.is_none() => continue,
            _ => writeln!(output, "  {name}: {}{source}", words(&fact)),
        };
    }
    if pins.library.is_none() && toolchain.library_version().is_some() {
        let means = toolchain.by.choose("a variable", "an include directory of a target", "--include");
        let _ = writeln!(
            output,
            "  {}: not locked: one is installed, but neither {means} nor the policy selects it",
            CUDNN.key
        );
    }
}
