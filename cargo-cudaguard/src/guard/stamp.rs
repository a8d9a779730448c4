//! The stamp that makes cargo run a build script again: a digest of everything that a guard depends on.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use cudaguard::internal::digest::Digest;
use cudaguard::internal::env::Env;
use cudaguard::internal::file_error::FileError;
use cudaguard::internal::files;
use cudaguard::internal::files::write_where_new;
use cudaguard::internal::policy::Policy;
use cudaguard::internal::rebuild_stamp::given_by_cargo;
use cudaguard::internal::toolchain::Toolchain;

/// Size up to which a file is digested completely. Compilers and libraries are larger: their two ends, which
/// contain the build id and the section table, their size and their time are digested instead, because a complete
/// digest would take longer than cargo.
const WHOLE: u64 = 1 << 20;
const END: u64 = 1 << 16;

/// A digest of all dependencies of a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp(Digest);

impl Stamp {
    /// Computes the stamp of this toolchain, policy and lock: the contents of every file that they were read from,
    /// the accessed variables of the environment, the target, and cudaguard's version.
    ///
    /// A file that cannot be read counts as absent, which is a valid state.
    pub fn from_toolchain(env: &Env, policy: &Policy, lock: Option<&Path>, toolchain: &Toolchain) -> Self {
        let mut files = toolchain.read_files();
        files.extend(policy.path.clone());
        files.extend(lock.map(Path::to_owned));
        let mut digest = Digest::new();
        digest
            .push_text(env!("CARGO_PKG_VERSION"))
            .push_text(&toolchain.target)
            .push_number(u64::from(toolchain.release));
        digest_files(&mut digest, files);
        for name in env.accessed().iter().filter(|name| !given_by_cargo(name)) {
            digest.push_text(name);
            match env.var_os(name) {
                Some(value) => digest.push_number(1).push_bytes(value.as_encoded_bytes()),
                None => digest.push_number(0),
            };
        }
        Self(digest)
    }

    /// Computes the stamp of the contents of these files, in any order.
    pub fn from_files(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut digest = Digest::new();
        digest_files(&mut digest, files.into_iter().collect());
        Self(digest)
    }

    /// Writes the stamp if the file is missing or has other contents, and creates its parent directories. Returns
    /// true if it wrote the file, so that cargo will detect a change.
    pub fn write_if_changed(self, file: &Path) -> Result<bool, FileError> {
        write_where_new(file, format!("{self}\n").as_bytes())
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn digest_files(digest: &mut Digest, mut files: Vec<PathBuf>) {
    files.sort();
    files.dedup();
    for path in files {
        digest.push_bytes(path.as_os_str().as_encoded_bytes());
        if let Err(error) = file(digest, &path) {
            digest.push_text("absent").push_text(&error.kind().to_string());
        }
    }
}

fn file(digest: &mut Digest, path: &Path) -> io::Result<()> {
    let mut file = files::open_regular(path)?;
    let facts = file.metadata()?;
    if facts.len() <= WHOLE {
        let mut bytes = Vec::new();
        file.take(WHOLE).read_to_end(&mut bytes)?;
        digest.push_bytes(&bytes);
        return Ok(());
    }
    let time = facts.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    digest.push_number(facts.len()).push_number(time.as_secs()).push_number(time.subsec_nanos().into());
    for start in [SeekFrom::Start(0), SeekFrom::Start(facts.len() - END)] {
        let mut bytes = Vec::new();
        file.seek(start)?;
        (&mut file).take(END).read_to_end(&mut bytes)?;
        digest.push_bytes(&bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::{self, File};
    use std::time::{Duration, SystemTime};

    use super::*;
    use cudaguard::internal::env::Env;
    use cudaguard::internal::policy::Policy;
    use cudaguard::internal::toolchain::Toolchain;

    fn set_time(path: &Path, seconds: u64) {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn contents_count_but_not_times() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        fs::write(&one, "12.4").unwrap();
        fs::write(&two, "9.1").unwrap();
        let stamp = || Stamp::from_files([one.clone(), two.clone()]);
        let before = stamp();
        assert_eq!(before, Stamp::from_files([two.clone(), one.clone(), one.clone()]));
        set_time(&one, 1_000_000);
        assert_eq!(before, stamp(), "an older time alone is no change");
        fs::write(&one, "12.2").unwrap();
        set_time(&one, 1_000_000);
        assert_ne!(before, stamp(), "other contents with an older time are one");
        fs::write(&one, "12.4").unwrap();
        assert_eq!(before, stamp());
        fs::remove_file(&two).unwrap();
        assert_ne!(before, stamp(), "a file that is gone is a change");
    }

    #[test]
    fn both_ends_of_large_file_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nvcc");
        let mut bytes = vec![7; usize::try_from(WHOLE).unwrap() + 1];
        let stamp = |bytes: &[u8], seconds: u64| {
            fs::write(&path, bytes).unwrap();
            set_time(&path, seconds);
            Stamp::from_files([path.clone()])
        };
        let before = stamp(&bytes, 5);
        assert_eq!(before, stamp(&bytes, 5));
        assert_ne!(before, stamp(&bytes, 6));
        *bytes.last_mut().unwrap() = 8;
        assert_ne!(before, stamp(&bytes, 5));
    }

    #[test]
    fn variables_set_by_cargo_are_ignored() {
        let stamp = |variables: &[(&str, &str)]| {
            let variables: BTreeMap<_, _> =
                variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
            let env = Env::from_variables(variables, "/");
            for name in ["CUDA_HOME", "OUT_DIR"] {
                let _ = env.var_os(name);
            }
            Stamp::from_toolchain(&env, &Policy::default(), None, &Toolchain::default())
        };
        let before = stamp(&[("CUDA_HOME", "/a")]);
        assert_eq!(before, stamp(&[("CUDA_HOME", "/a"), ("OUT_DIR", "/o"), ("OTHER", "1")]));
        assert_ne!(before, stamp(&[("CUDA_HOME", "/b")]));
        assert_ne!(before, stamp(&[]));
    }
}
