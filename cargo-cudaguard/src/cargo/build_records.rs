//! Records of the files that the wrapper built, stored next to the guards. Cargo calls the wrapper only for files that
//! are not fresh, but the final summary covers all files.

use crate::cli::report::CliError;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cudaguard::internal::files::write_where_new;
use cudaguard::internal::finding::{Finding, Severity};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::cargo::project::{Artifact, ArtifactKind};

/// The record of one built file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BuildRecord {
    pub(crate) package: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    /// The final path of the artifact that cargo creates.
    pub(crate) file: PathBuf,
    /// Fingerprint of the file when the wrapper finished. Another file at this path has another fingerprint.
    pub(crate) mark: FileFingerprint,
    /// The reason why the file has no guard; `None` if it has one.
    pub(crate) unguarded: Option<NotGuarded>,
    /// The toolchain of each component in the file, as its notes record it.
    pub(crate) built_with: Vec<String>,
    /// Findings that each build reports again.
    #[serde(serialize_with = "write_findings", deserialize_with = "read_findings")]
    pub(crate) findings: Vec<Finding>,
}

/// Why a built file has no guard.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum NotGuarded {
    /// Its package does not use CUDA.
    NoCuda,
    /// Any other reason, in one line.
    Because(String),
}

impl fmt::Display for NotGuarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCuda => f.write_str("does not use CUDA"),
            Self::Because(why) => f.write_str(why),
        }
    }
}

/// Properties that change when a file changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileFingerprint {
    inode: u64,
    seconds: i64,
    nanoseconds: i64,
    size: u64,
}

impl FileFingerprint {
    /// Returns the fingerprint of the current file at this path.
    pub(crate) fn from_path(path: &Path) -> io::Result<Self> {
        let about = fs::metadata(path)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            Ok(Self { inode: about.ino(), seconds: about.mtime(), nanoseconds: about.mtime_nsec(), size: about.len() })
        }
        #[cfg(not(unix))]
        {
            let written = about.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            let seconds = i64::try_from(written.as_secs()).unwrap_or(i64::MAX);
            Ok(Self { inode: 0, seconds, nanoseconds: written.subsec_nanos().into(), size: about.len() })
        }
    }
}

/// The records of one target and profile.
#[derive(Clone, Debug)]
pub(crate) struct BuildRecords {
    dir: PathBuf,
}

impl BuildRecords {
    /// Returns the records below cudaguard's directory in the target directory.
    pub(crate) fn for_target(own: &Path, target: &str, profile: &str) -> Self {
        Self { dir: own.join("made").join(target).join(profile) }
    }

    fn record_path(&self, package: &str, kind: &str, name: &str) -> PathBuf {
        self.dir.join(format!("{package}.{kind}.{name}.json"))
    }

    /// Returns the record of this artifact if the file has not changed since.
    pub(crate) fn read_if_current(&self, package: &str, artifact: &Artifact) -> Option<BuildRecord> {
        self.read(package, artifact)
            .filter(|entry| FileFingerprint::from_path(&entry.file).is_ok_and(|mark| mark == entry.mark))
    }

    /// Reads the record of this artifact.
    pub(crate) fn read(&self, package: &str, artifact: &Artifact) -> Option<BuildRecord> {
        read_entry(&self.record_path(package, artifact.kind.name(), &artifact.name))
    }

    /// Reads all records.
    pub(crate) fn read_all(&self) -> Vec<BuildRecord> {
        let Ok(files) = fs::read_dir(&self.dir) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
        paths.sort();
        paths.iter().filter_map(|path| read_entry(path)).collect()
    }

    /// Writes the record of a file.
    pub(crate) fn write_entry(&self, entry: &BuildRecord) -> Result<(), CliError> {
        let text = serde_json::to_string(entry)?;
        write_where_new(&self.record_path(&entry.package, &entry.kind, &entry.name), format!("{text}\n").as_bytes())?;
        Ok(())
    }
}

fn read_entry(path: &Path) -> Option<BuildRecord> {
    // An unreadable record is treated as missing: the file is then built again.
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn write_findings<S: Serializer>(findings: &[Finding], output: S) -> Result<S::Ok, S::Error> {
    output.collect_seq(findings.iter().map(finding_to_json))
}

fn read_findings<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Finding>, D::Error> {
    Ok(Vec::<Value>::deserialize(input)?.iter().filter_map(finding_from_json).collect())
}

fn finding_to_json(finding: &Finding) -> Value {
    json!({
        "code": finding.code.to_string(),
        "severity": finding.severity.name(),
        "component": finding.component,
        "subject": finding.subject,
        "message": finding.message,
        "hint": finding.hint,
    })
}

/// Reads the findings that a build script stored in this file.
pub(crate) fn read_stored_findings(file: &Path) -> Vec<Finding> {
    let value: Option<Value> = fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    value.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(finding_from_json).collect()
}

fn finding_from_json(value: &Value) -> Option<Finding> {
    let severity = value["severity"].as_str()?;
    let severity =
        [Severity::Info, Severity::Warning, Severity::Error].into_iter().find(|one| one.name() == severity)?;
    let [component, subject, message, hint] =
        ["component", "subject", "message", "hint"].map(|key| value[key].as_str().map(str::to_owned));
    let code = value["code"].as_str()?.parse().ok()?;
    Some(Finding::from_record(code, severity, [component?, subject?, message?, hint?]))
}

/// Removes files that cargo would treat as fresh although the wrapper did not build them. `cargo build` and `cargo
/// cudaguard build` share a file whose name contains no hash (a cdylib); cargo rebuilds a missing one.
pub(crate) fn remove_unexpected_copies(
    build_records: &BuildRecords,
    out: &Path,
    package: &str,
    artifact: &Artifact,
) -> Result<(), CliError> {
    let shared = match artifact.kind {
        ArtifactKind::Cdylib => Some(out.join("deps")),
        ArtifactKind::ExampleCdylib => Some(out.join("examples")),
        ArtifactKind::Bin | ArtifactKind::Example => None,
    };
    let unexpected = match build_records.read(package, artifact) {
        Some(entry) if FileFingerprint::from_path(&entry.file).is_ok_and(|mark| mark == entry.mark) => None,
        Some(entry) => Some(entry.file),
        None => shared.map(|dir| dir.join(format!("lib{}.so", artifact.name))),
    };
    match unexpected.map(|file| (fs::remove_file(&file), file)) {
        Some((Err(error), file)) if error.kind() != io::ErrorKind::NotFound => {
            let file = file.display();
            Err(CliError::operational(format_args!("cannot remove {file}, which was built without the guard: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_file_is_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path();
        let out = dir.join("debug");
        fs::create_dir_all(out.join("deps")).unwrap();
        let file = out.join("deps/libx.so");
        let artifact = Artifact::from_target(ArtifactKind::Cdylib, "x");
        let build_records = BuildRecords::for_target(dir, "t", "dev");
        fs::write(&file, "plain").unwrap();
        remove_unexpected_copies(&build_records, &out, "p", &artifact).unwrap();
        assert!(!file.exists(), "nothing is known of it");
        fs::write(&file, "guarded").unwrap();
        let entry = BuildRecord {
            package: "p".into(),
            kind: "cdylib".into(),
            name: "x".into(),
            file: file.clone(),
            mark: FileFingerprint::from_path(&file).unwrap(),
            unguarded: None,
            built_with: vec!["CUDA 13.0".into()],
            findings: vec![
                cudaguard::internal::finding::MessageTemplate::NoPtx.to_finding(
                    &cudaguard::internal::finding::Values::default()
                        .with("built_for", "sm_80")
                        .with("component", "p 1.0.0"),
                ),
            ],
        };
        build_records.write_entry(&entry).unwrap();
        assert_eq!(build_records.read_if_current("p", &artifact), Some(entry.clone()));
        assert_eq!(build_records.read_all(), [entry]);
        remove_unexpected_copies(&build_records, &out, "p", &artifact).unwrap();
        assert!(file.exists(), "ours stays");
        fs::remove_file(&file).unwrap();
        fs::write(&file, "plain again").unwrap();
        remove_unexpected_copies(&build_records, &out, "p", &artifact).unwrap();
        assert!(!file.exists(), "another file has taken its place");
    }
}
