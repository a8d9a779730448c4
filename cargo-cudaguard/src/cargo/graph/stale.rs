//! Finds crates whose build scripts ran before the environment or the files that they depend on changed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cli::arguments::CargoVerb;
use crate::knowledge::crates::{CrateUse, Ran};
use cargo_metadata::{BuildScript, Message};
use cudaguard::internal::digest::Digest;
use cudaguard::internal::files::write_where_new;
use cudaguard::internal::finding::Finding;
use cudaguard::internal::policy::Policy;

/// The crates of a package and the policy that applies to them, for checks that need the output of the build.
#[derive(Debug)]
pub(crate) struct StaleCheck {
    pub(crate) component: String,
    pub(crate) policy: Policy,
    pub(crate) uses: Vec<CrateUse>,
}

/// Finds crates whose build scripts ran earlier, with another toolchain, and were reused by this build. To get the
/// output of each script, cargo is called again when the build is up to date. The call is skipped until the inputs of
/// the crates change; the file `settled` stores them.
pub(crate) fn stale_crates(
    build_command: &Command,
    verb: CargoVerb,
    arguments: &[OsString],
    settled: &Path,
    release: bool,
    judged: &[StaleCheck],
) -> Vec<Finding> {
    let own_form = arguments.iter().any(|word| word.to_string_lossy().starts_with("--message-format"));
    let mut rows = judged.iter().flat_map(|one| &one.uses).filter_map(|used| used.of.table_row());
    if own_form || rows.all(|row| row.tells.is_empty()) {
        return Vec::new();
    }
    let uses: Vec<&Vec<CrateUse>> = judged.iter().map(|one| &one.uses).collect();
    let state = Digest::from_bytes(format!("{uses:?} {arguments:?}").as_bytes()).to_string();
    if fs::read_to_string(settled).is_ok_and(|settled| settled == state) {
        return Vec::new();
    }
    let Some(ran) = run_build_scripts(build_command, verb, arguments) else { return Vec::new() };
    let findings = stale_by(&ran, release, judged);
    if findings.is_empty() {
        // Only a state without findings is stored: with a changed state, an earlier finding may appear again.
        let _ = write_where_new(settled, state.as_bytes());
    }
    findings
}

/// Checks the output of the build scripts.
fn stale_by(ran: &[Ran], release: bool, judged: &[StaleCheck]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in judged {
        let found = crate::knowledge::crates::check_stale_builds(&one.uses, ran, release);
        let found = one.policy.apply_to(found, release).findings;
        findings.extend(found.into_iter().map(|finding| finding.with_component(&one.component)));
    }
    findings
}

/// Checks the messages of the build itself.
pub(crate) fn stale_by_messages(scripts: &[BuildScript], release: bool, judged: &[StaleCheck]) -> Vec<Finding> {
    stale_by(&scripts.iter().filter_map(parse_build_script).collect::<Vec<_>>(), release, judged)
}

/// Runs cargo once more and returns the output of the build scripts of this build. `None` if cargo fails.
fn run_build_scripts(build_command: &Command, verb: CargoVerb, arguments: &[OsString]) -> Option<Vec<Ran>> {
    let mut command = Command::new(build_command.get_program());
    command.arg(verb.name()).args(["--message-format", "json"]);
    if verb == CargoVerb::Test {
        command.arg("--no-run");
    }
    command.args(arguments);
    for (name, value) in build_command.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let output =
        command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok().filter(|output| output.status.success())?;
    let scripts = Message::parse_stream(output.stdout.as_slice()).filter_map(|message| match message {
        Ok(Message::BuildScriptExecuted(script)) => Some(script),
        _ => None,
    });
    Some(scripts.filter_map(|script| parse_build_script(&script)).collect())
}

fn parse_build_script(script: &BuildScript) -> Option<Ran> {
    // For example `registry+https://…#cudarc@0.19.10` or `path+file:///w/cudarc#0.1.0`.
    let (source, rest) = script.package_id.repr.rsplit_once('#')?;
    let by_dir = source.rsplit('/').next().unwrap_or_default();
    let (name, version) = rest.split_once('@').unwrap_or((by_dir, rest));
    let variables: BTreeMap<String, String> = script.env.iter().cloned().collect();
    let headers = variables.get("CUDA_INCLUDE_DIR").and_then(|dir| {
        let file = Path::new(dir).join("cuda.h");
        Some((file.clone(), cudaguard::internal::toolchain::cuda_h_release(&file)?))
    });
    Some(Ran {
        name: name.to_owned(),
        version: version.to_owned(),
        variables,
        conditions: script.cfgs.clone(),
        headers,
    })
}
