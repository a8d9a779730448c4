//! The build context: the data that a build passes to the wrapper and the runner. It is stored in a file because cargo
//! starts them.

use crate::cli::platform;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use cudaguard::internal::digest::Digest;
use cudaguard::internal::env::Env;
use cudaguard::internal::files::write_where_new;
use cudaguard::internal::finding::{Finding, Severity};
use serde::{Deserialize, Serialize};

use crate::cargo::build_records::{BuildRecord, BuildRecords, NotGuarded};
use crate::cargo::graph::CrateGraph;
use crate::cargo::project::Artifact;
use crate::cli::report::{self, CliError, Level};
use crate::cli::{counts, findings};

/// Environment variable that is set while cargo calls the compiler wrapper of cudaguard.
pub(crate) const MARK: &str = "CUDAGUARD_WRAPS";
/// Environment variable with the path of the build context file.
pub(crate) const BUILD: &str = "CUDAGUARD_BUILD";
/// Environment variable with the start time of the build, in seconds and nanoseconds since 1970.
pub(crate) const STARTED: &str = "CUDAGUARD_STARTED";

/// Environment variable that is set if cargo calls `exec` as its runner: the number of arguments that belong to another
/// runner and come first.
pub(crate) const RUNNER: &str = "CUDAGUARD_RUNNER";

/// The data of a build that the wrapper and the runner need.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct BuildContext {
    /// cudaguard's directory in the target directory.
    pub(crate) own: PathBuf,
    /// Cargo's build directory, which holds intermediate files. Cargo writes its final artifacts to the parent
    /// directory of `own`.
    pub(crate) kept: PathBuf,
    pub(crate) top: PathBuf,
    /// Directories of the workspace members; empty for a package from a registry.
    pub(crate) members: BTreeSet<PathBuf>,
    pub(crate) host: String,
    pub(crate) profile: String,
    pub(crate) release: bool,
    /// The wrapper that cargo would call for each compiler (`RUSTC_WRAPPER`, for example sccache), with its arguments.
    /// cudaguard replaces it and calls it, because it would reject cudaguard's wrapper as an unknown compiler.
    pub(crate) outer: Vec<String>,
    /// The workspace wrapper that was configured before cudaguard's, with its arguments.
    pub(crate) inner: Vec<String>,
    /// The `[env]` table of cargo's configuration.
    pub(crate) variables: BTreeMap<String, OsString>,
    /// The crates that use CUDA.
    pub(crate) graph: CrateGraph,
    /// The artifacts of the summary, as target, package and artifact.
    pub(crate) made: Vec<(String, String, Artifact)>,
    /// Built files that cannot be guarded because of their type.
    pub(crate) rust_libraries: Vec<String>,
    /// Static libraries that got no guard from a build script.
    pub(crate) bare_archives: Vec<String>,
    /// Built files that no step seals. They are deleted if the build is refused.
    pub(crate) static_libraries: Vec<String>,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    /// Values of `--message-format`.
    pub(crate) message_format: Vec<String>,
}

/// Returns the current time in the format of [`STARTED`].
pub(crate) fn format_now() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{}.{}", since.as_secs(), since.subsec_nanos())
}

/// Returns the time when the entire build began.
pub(crate) fn build_start_time(env: &Env) -> Option<SystemTime> {
    let text = env.var(STARTED)?;
    let (seconds, nanoseconds) = text.split_once('.')?;
    let since = Duration::new(seconds.parse().ok()?, nanoseconds.parse().ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since)
}

/// Returns the modification time of a key that is written while cargo builds: it must not look newer than that build. If a
/// tool calls cargo, the start of the build is unknown. A new key then gets an earlier time. Another key gets the current
/// time (`None`), because files that were linked with its older content must look older.
pub(crate) fn key_time(env: &Env, is_new: bool) -> Option<SystemTime> {
    build_start_time(env).or_else(|| {
        let earlier = fs::metadata(env.var_os(BUILD)?).ok()?.modified().ok();
        earlier.filter(|_| is_new)
    })
}

impl BuildContext {
    /// Writes the build context to the file that the wrapper reads, and returns its path. Equal builds share one file.
    pub(crate) fn write(&self) -> Result<PathBuf, CliError> {
        let text = serde_json::to_string(self)?;
        let file = self.own.join("builds").join(format!("{}.json", Digest::from_bytes(text.as_bytes())));
        write_where_new(&file, text.as_bytes())?;
        Ok(file)
    }

    /// Reads what [`Self::write`] wrote.
    pub(crate) fn read(file: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(file).ok()?).ok()
    }

    /// Returns the path of the wrapper that cargo calls, which is the running executable. Cargo separates the outputs
    /// of different wrapper paths. The path contains nothing of the project, so equal sources give equal programs. If
    /// an inner wrapper exists, it also affects the output, so cargo gets a link whose path depends on the inner
    /// wrapper.
    pub(crate) fn wrapper_path(&self) -> Result<PathBuf, CliError> {
        let exe = current_exe_path()?;
        if self.inner.is_empty() {
            return Ok(exe);
        }
        let dir = self.own.join(format!("around-{}", Digest::from_bytes(self.inner.join("\0").as_bytes())));
        let link = dir.join(format!("cargo-cudaguard{}", std::env::consts::EXE_SUFFIX));
        if platform::is_link_to(&link, &exe) {
            return Ok(link);
        }
        let fail =
            |error: std::io::Error| CliError::operational(format_args!("cannot create {}: {error}", link.display()));
        fs::create_dir_all(&dir).map_err(fail)?;
        let temporary = dir.join(format!(".{}", std::process::id()));
        platform::symlink(&exe, &temporary).and_then(|()| fs::rename(&temporary, &link)).map_err(fail)?;
        Ok(link)
    }

    /// Prints the findings of the built files and the final summary line.
    pub(crate) fn print_summary(&self) {
        findings::print(&self.reported_findings());
        self.last_line();
    }

    /// Returns the findings of the built files that each build reports again.
    pub(crate) fn reported_findings(&self) -> Vec<Finding> {
        let entries = self.record_entries();
        // As in cargo, `--quiet` hides status messages but not warnings.
        let reported = entries.into_iter().flat_map(|entry| entry.findings);
        reported.filter(|finding| !self.quiet || finding.severity > Severity::Info).collect()
    }

    /// Prints the final summary line.
    pub(crate) fn last_line(&self) {
        if self.quiet {
            return;
        }
        let entries = self.record_entries();
        for BuildRecord { package, kind, name, file, unguarded, built_with, .. } in &entries {
            report::log(Level::Info, || {
                let file = file.display();
                match unguarded {
                    None => format!("guarded: {kind} {name} of {package} ({}): {file}", built_with.join("; ")),
                    Some(why) => format!("not guarded: {kind} {name} of {package}, because {why}: {file}"),
                }
            });
        }
        if let Some(text) = summary_line(&entries, &self.rust_libraries, &self.bare_archives, self.verbose) {
            report::print_line(&text);
        }
    }

    fn record_entries(&self) -> Vec<BuildRecord> {
        if self.members.is_empty() {
            return BuildRecords::for_target(&self.own, &self.host, &self.profile).read_all();
        }
        let known = self.made.iter().filter_map(|(target, package, artifact)| {
            BuildRecords::for_target(&self.own, target, &self.profile).read_if_current(package, artifact)
        });
        known.collect()
    }
}

/// Maximum number of targets without CUDA that the summary names without `-v`.
const NAMED: usize = 4;

fn summary_line(
    entries: &[BuildRecord],
    rust_libraries: &[String],
    bare_archives: &[String],
    verbose: bool,
) -> Option<String> {
    if entries.is_empty() && rust_libraries.is_empty() && bare_archives.is_empty() {
        return None;
    }
    let guarded = entries.iter().filter(|entry| entry.unguarded.is_none()).count();
    let built: BTreeSet<&str> = entries.iter().flat_map(|entry| &entry.built_with).map(String::as_str).collect();
    let mut text = format!("cudaguard: {guarded} of {} guarded", counts::count_of(entries.len() as u64, "target"));
    if !built.is_empty() {
        let built: Vec<&str> = built.into_iter().collect();
        let _ = write!(text, " ({})", built.join("; "));
    }
    let mut reasons: BTreeMap<&NotGuarded, Vec<&str>> = BTreeMap::new();
    for entry in entries {
        if let Some(why) = &entry.unguarded {
            reasons.entry(why).or_default().push(&entry.name);
        }
    }
    for (why, names) in reasons {
        let _ = match names.len().checked_sub(NAMED + 1) {
            Some(_) if *why == NotGuarded::NoCuda && !verbose => {
                let (named, others) = names.split_at(NAMED);
                write!(text, "\n  not guarded: {} and {} others (-v lists them): {why}", named.join(", "), others.len())
            }
            _ => write!(text, "\n  not guarded: {}: {why}", names.join(", ")),
        };
    }
    for (names, why) in [
        (rust_libraries, "the programs that load a dylib are guarded instead"),
        (
            bare_archives,
            "to guard a static library, call cudaguard::embed!() in its build.rs, or guard the program that links it",
        ),
    ] {
        if !names.is_empty() {
            let _ = write!(text, "\n  not guarded: {}: {why}", names.join(", "));
        }
    }
    Some(text)
}

pub(crate) fn current_exe_path() -> Result<PathBuf, CliError> {
    std::env::current_exe()
        .map_err(|error| CliError::operational(format_args!("cannot determine the path of this program: {error}")))
}

/// Removes the internal variables from the environment of a program that starts at the end of a build.
pub(crate) fn clear_internal_env(env: &Env, command: &mut Command) {
    let build = env.var_os(BUILD).and_then(|file| BuildContext::read(Path::new(&file))).unwrap_or_default();
    for name in
        [MARK, BUILD, STARTED, RUNNER, cudaguard::internal::env::STAMP_DIR_VAR, cudaguard::internal::lock::LOCKED]
    {
        command.env_remove(name);
    }
    command.env_remove("RUSTC_WORKSPACE_WRAPPER");
    for (name, stood) in [("RUSTC_WORKSPACE_WRAPPER", &build.inner), ("RUSTC_WRAPPER", &build.outer)] {
        if let Some(wrapper) = stood.first() {
            command.env(name, wrapper);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, unguarded: Option<NotGuarded>, built_with: &[&str]) -> BuildRecord {
        let file = std::env::current_exe().unwrap();
        BuildRecord {
            package: "p".into(),
            kind: "bin".into(),
            name: name.into(),
            mark: crate::cargo::build_records::FileFingerprint::from_path(&file).unwrap(),
            file,
            unguarded,
            built_with: built_with.iter().map(|one| (*one).to_owned()).collect(),
            findings: Vec::new(),
        }
    }

    #[test]
    fn summary_counts_guarded_targets() {
        assert_eq!(summary_line(&[], &[], &[], false), None);
        assert!(
            summary_line(&[], &["libpart.so".to_owned()], &["libpart.a".to_owned()], false)
                .unwrap()
                .contains("0 of 0 targets guarded\n  not guarded: libpart.so: ")
        );
        let both = ["CUDA 13.0, cuDNN 9.15.1"];
        assert_eq!(
            summary_line(&[entry("a", None, &both), entry("b", None, &both)], &[], &[], false).unwrap(),
            "cudaguard: 2 of 2 targets guarded (CUDA 13.0, cuDNN 9.15.1)"
        );
        assert_eq!(
            summary_line(&[entry("a", None, &["no CUDA toolkit"])], &[], &[], false).unwrap(),
            "cudaguard: 1 of 1 target guarded (no CUDA toolkit)"
        );
        let no_elf = Some(NotGuarded::Because("no ELF".to_owned()));
        assert_eq!(
            summary_line(&[entry("a", no_elf.clone(), &[]), entry("b", no_elf, &[])], &[], &[], false).unwrap(),
            "cudaguard: 0 of 2 targets guarded\n  not guarded: a, b: no ELF"
        );
    }

    #[test]
    fn summary_names_few_without_cuda() {
        let names: Vec<String> = (0..6).map(|number| format!("p{number}")).collect();
        let entries: Vec<BuildRecord> = names.iter().map(|name| entry(name, Some(NotGuarded::NoCuda), &[])).collect();
        assert_eq!(
            summary_line(&entries, &[], &[], false).unwrap(),
            "cudaguard: 0 of 6 targets guarded\n  not guarded: p0, p1, p2, p3 and 2 others (-v lists them): does not use CUDA"
        );
        assert_eq!(
            summary_line(&entries, &[], &[], true).unwrap(),
            "cudaguard: 0 of 6 targets guarded\n  not guarded: p0, p1, p2, p3, p4, p5: does not use CUDA"
        );
    }

    #[test]
    fn context_roundtrips() {
        let scratch = tempfile::tempdir().unwrap();
        let own = scratch.path();
        let build = BuildContext {
            own: own.to_owned(),
            kept: "/b".into(),
            message_format: vec!["json".into()],
            top: "/w".into(),
            members: ["/w/a".into(), "/w/b".into()].into(),
            host: "h".into(),
            profile: "dist".into(),
            release: true,
            outer: vec!["/usr/bin/sccache".into()],
            inner: vec!["/usr/bin/clippy-driver".into()],
            variables: [("A".to_owned(), "b".into())].into(),
            made: vec![(
                "t".into(),
                "p".into(),
                Artifact::from_target(crate::cargo::project::ArtifactKind::Cdylib, "x"),
            )],
            rust_libraries: vec!["libx.so".into()],
            bare_archives: vec!["liby.a".into()],
            static_libraries: vec!["libx.a".into()],
            quiet: true,
            verbose: true,
            graph: CrateGraph::default(),
        };
        let file = build.write().unwrap();
        assert_eq!(format!("{:?}", BuildContext::read(&file).unwrap()), format!("{build:?}"));
    }
}
