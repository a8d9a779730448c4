//! Runs `cargo metadata` for a build, in a copy of the project if the lock file would change.

use crate::cli::platform::symlink;
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use super::uses_dev_dependencies;
use crate::cargo::config::Config;
use crate::cargo::project::{self, Project};
use crate::cli::arguments::Call;
use crate::cli::report;
use cargo_metadata::Metadata;
use cudaguard::internal::digest::Digest;
use cudaguard::internal::env::Env;
use serde_json::json;

/// A copy of the workspace directory that consists of symbolic links. Cargo writes `Cargo.lock` into the copy, so the
/// project stays unchanged.
pub(super) struct ScratchCopy(pub(super) PathBuf);

impl ScratchCopy {
    pub(super) fn copy_project(project: &Project) -> std::io::Result<Self> {
        let now = Digest::from_bytes(format!("{:?}", SystemTime::now()).as_bytes());
        let name = format!("cudaguard-graph-{}-{now}", std::process::id());
        let copy = Self(std::env::temp_dir().join(name));
        let top = copy.path_in_copy(&project.top);
        fs::create_dir_all(&top)?;
        // An unreadable `Cargo.lock` may be a symbolic link to a missing file.
        link_entries(&project.top, &top, "Cargo.lock".as_ref())?;
        // Files next to the workspace must be reachable from the copy, too.
        let mut paths = project.members.iter().flat_map(|member| &member.paths);
        if paths.any(|path| !path.starts_with(&project.top)) {
            for below in project.top.ancestors() {
                if let Some((above, name)) = below.parent().zip(below.file_name()) {
                    link_entries(above, &copy.path_in_copy(above), name)?;
                }
            }
        }
        Ok(copy)
    }

    /// Returns the path in the copy.
    pub(super) fn path_in_copy(&self, path: &Path) -> PathBuf {
        // An absolute path would replace the path of the copy: a root, and a drive on Windows.
        let names = path.components().filter(|part| matches!(part, Component::Normal(_)));
        self.0.join(names.collect::<PathBuf>())
    }
}

/// Links all entries of a directory except one.
fn link_entries(from: &Path, to: &Path, but: &OsStr) -> std::io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name() != but {
            symlink(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

impl Drop for ScratchCopy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Parameters of the call of `cargo metadata`.
pub(super) struct GraphQuery<'a> {
    pub(super) env: &'a Env,
    pub(super) project: &'a Project,
    pub(super) call: &'a Call,
    /// The directory of the workspace manifest.
    pub(super) top: &'a Path,
    /// Prefix of all paths if the project is resolved in a copy.
    pub(super) copy: Option<&'a Path>,
    /// Set if a `Cargo.lock` exists.
    pub(super) locked: bool,
    /// Set if cargo may write `Cargo.lock`.
    pub(super) builds: bool,
}

impl GraphQuery<'_> {
    /// Returns the inputs of the result that are not files.
    pub(super) fn cache_key_words(&self, config: &Config) -> String {
        let selected: Vec<&str> =
            self.project.selected.iter().map(|at| self.project.members[*at].name.as_str()).collect();
        format!(
            "{:?} {:?} {:?} {selected:?} {:?} {} {config:?} {}",
            project::cargo_path(self.env),
            // Several projects may have one target directory.
            self.top,
            self.project.targets,
            self.call.features,
            uses_dev_dependencies(self.call),
            env!("CARGO_PKG_VERSION"),
        )
    }

    fn metadata_command(&self, target: &str) -> Command {
        let mut command = Command::new(project::cargo_path(self.env));
        command.args(["metadata", "--format-version", "1", "--filter-platform", target, "--manifest-path"]);
        command.arg(self.top.join("Cargo.toml")).stdin(Stdio::null());
        command.args(project::asked_too(self.call));
        command
    }

    /// Resolves the graph: offline if the packages on this machine are sufficient. Otherwise cargo downloads what the
    /// build would download anyway.
    pub(super) fn resolve_metadata(&self, target: &str) -> Option<Metadata> {
        let features = self.call.features.to_args();
        // In a virtual workspace, cargo rejects a feature that is missing in a member. The selected features are
        // resolved in this module anyway.
        let mut choices = vec![features.clone()];
        if !features.is_empty() {
            choices.push(vec!["--all-features".to_owned()]);
        }
        if self.locked {
            // Offline without `--frozen`, cargo could select other versions than with a network.
            let frozen = choices.iter().find_map(|features| self.query_cargo(target, features, &["--frozen"]));
            if frozen.is_some() {
                return frozen;
            }
        }
        let switches = [(self.call.locked || !self.builds, "--locked"), (self.call.offline, "--offline")];
        let switches: Vec<&str> = switches.into_iter().filter(|(on, _)| *on).map(|(_, word)| word).collect();
        choices.iter().find_map(|features| self.query_cargo(target, features, &switches))
    }

    /// Runs `cargo metadata`. Its download progress is shown unless this attempt is expected to fail.
    fn query_cargo(&self, target: &str, features: &[String], switches: &[&str]) -> Option<Metadata> {
        let mut command = self.metadata_command(target);
        let quiet = self.copy.is_some() || !features.is_empty() || switches.contains(&"--frozen");
        let errors = if quiet { Stdio::null() } else { Stdio::piped() };
        let mut child = command.args(features).args(switches).stdout(Stdio::piped()).stderr(errors).spawn().ok()?;
        let passing = child.stderr.take().map(|errors| std::thread::spawn(|| pass_on(errors)));
        let output = child.wait_with_output().ok()?;
        let _ = passing.map(std::thread::JoinHandle::join);
        if !output.status.success() {
            return None;
        }
        let Some(copy) = self.copy else { return serde_json::from_slice(&output.stdout).ok() };
        let written = json!(copy.to_str()?).to_string();
        // The path in the copy lacks the drive.
        let drive = match self.project.top.components().next() {
            Some(Component::Prefix(drive)) => drive.as_os_str().to_string_lossy(),
            _ => "".into(),
        };
        let drive = json!(drive).to_string();
        let output = String::from_utf8(output.stdout).ok()?;
        serde_json::from_str(&output.replace(written.trim_matches('"'), drive.trim_matches('"'))).ok()
    }
}

/// Shows the progress messages of cargo up to its first error. The build reports the error again.
fn pass_on(errors: impl std::io::Read) {
    use std::io::BufRead as _;

    let mut over = false;
    for line in std::io::BufReader::new(errors).lines().map_while(Result::ok) {
        over |= line.starts_with("error");
        if !over {
            report::note(&line);
        }
    }
}
