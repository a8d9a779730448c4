//! Temporary directories of tests.

use std::fs;
use std::io::Write as _;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::process::{Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{places, skip};

/// A directory of one test, `target/scenes/<name>-<process>-<number>`. It is removed on drop, even after a panic.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates a new directory. `name` is for people; it may contain blanks and non-ASCII characters, but no `/`.
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        static SWEPT: Once = Once::new();
        let scenes = places::target().join("scenes");
        SWEPT.call_once(|| remove_abandoned(&scenes, |name| name.rsplit('-').nth(1)?.parse().ok()));
        Self::below(&scenes, name, NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Creates a directory whose path has no blank, for variables with blank-separated lists (`RUSTFLAGS`,
    /// `LD_PRELOAD`). If the path of cargo's target directory has a blank, the directory for temporary files is used.
    pub fn without_blanks(name: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        if !has_blank(places::target()) {
            return Self::new(name);
        }
        Self::below(&temporary_without_blanks(), &format!("cudaguard-{name}"), NEXT.fetch_add(1, Ordering::Relaxed))
    }

    fn below(dir: &Path, name: &str, number: usize) -> Self {
        let dir = dir.join(format!("{name}-{}-{number}", process::id()));
        fs::create_dir_all(&dir).unwrap_or_else(|error| panic!("cannot create {}: {error}", dir.display()));
        Self(dir)
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file in the directory and creates the parent directories; returns its path.
    pub fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        write(&path, content);
        path
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for Scratch {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::env::var_os("CUDAGUARD_KEEP").is_some() {
            eprintln!("kept: {}", self.0.display());
        } else if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}

pub(crate) fn has_blank(path: &Path) -> bool {
    path.to_string_lossy().contains(char::is_whitespace)
}

/// Returns the directory for temporary files; skips the test if its path has a blank, too.
pub(crate) fn temporary_without_blanks() -> PathBuf {
    let temporary = std::env::temp_dir();
    if has_blank(&temporary) {
        skip("a directory whose path has no blank", "TMPDIR=FOLDER");
    }
    temporary
}

/// Returns cargo's target directory; if its path has a blank, one that is deleted after the run, for dlltool, which does not support
/// blanks.
pub fn target_without_blanks() -> PathBuf {
    let target = places::target();
    if has_blank(target) { temporary_without_blanks().join("target") } else { target.to_owned() }
}

/// The `TMPDIR` of a run. Some tools leave files there: dlltool, clang as the compiler of CUDA, Wine.
#[derive(Debug)]
pub(crate) struct TemporaryFiles(PathBuf);

impl TemporaryFiles {
    /// Creates a directory with a short path, because sockets are in it, and sets `TMPDIR`.
    ///
    /// # Safety
    ///
    /// No other thread runs.
    pub(crate) unsafe fn new() -> Self {
        let outer = std::env::temp_dir();
        remove_abandoned(&outer, |name| name.strip_prefix(TEMPORARY)?.parse().ok());
        let dir = outer.join(format!("{TEMPORARY}{}", process::id()));
        // As in /tmp, programs of other users can write.
        fs::create_dir_all(&dir)
            .and_then(|()| fs::set_permissions(&dir, fs::Permissions::from_mode(0o1777)))
            .unwrap_or_else(|error| panic!("cannot create {}: {error}", dir.display()));
        // SAFETY: see the comment of the function.
        unsafe { std::env::set_var("TMPDIR", &dir) };
        Self(dir)
    }
}

impl Drop for TemporaryFiles {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const TEMPORARY: &str = "cudaguard-tests-";

/// Writes a file and creates the parent directories.
pub fn write(path: &Path, content: impl AsRef<[u8]>) {
    let dir = path.parent().expect("a file has a parent directory");
    fs::create_dir_all(dir)
        .and_then(|()| fs::write(path, content))
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}

/// Writes a script and makes it executable. A child does this: while this process has a file open for writing, each child that
/// another test forks has it open, too, and nothing can execute it (`ETXTBSY`).
pub fn program(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().expect("a file has a parent directory")).expect("the directory can be created");
    let mut child = Command::new("/bin/sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    child.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("the shell reads");
    assert!(child.wait().is_ok_and(|status| status.success()), "cannot write {}", path.display());
}

/// Removes the directories of processes that were killed and could not remove them. `owner` parses a name into the
/// number of the process.
fn remove_abandoned(dir: &Path, owner: fn(&str) -> Option<u32>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let owner = owner(&entry.file_name().to_string_lossy());
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner.to_string()).exists()) {
            // Another suite may remove the same directory at the same time; the second one finds it missing.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
