//! Objects that are compiled once for each compiler, target and flags, in a directory that many builds share.
//!
//! The name of an object is a digest of everything that it depends on, so a new policy, profile or version of cudaguard
//! finds the old object. It is compiled in a temporary directory and renamed into place, so a process that ends early
//! does not produce an incomplete object.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::{GuardCompiler, GuardError, shim_source_for, source_digest};
use crate::sys::digest::Digest;
use crate::sys::file_error::FileError;

/// Maximum waiting time for another process that compiles the object; far longer than any compiler needs. After that,
/// this process compiles its own.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory of shared objects.
#[derive(Clone, Debug)]
pub struct SharedDir(PathBuf);

impl SharedDir {
    /// The directory, which need not exist.
    pub fn new(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    /// The path of this compiler's shim, compiled or not.
    pub fn shim_path(&self, compiler: &GuardCompiler) -> PathBuf {
        self.path(compiler, "shim", "c", source_digest())
    }

    /// Compiles the shim unless it exists.
    pub fn shim(&self, compiler: &GuardCompiler) -> Result<PathBuf, GuardError> {
        self.object(&self.shim_path(compiler), |dir| {
            compiler.compile_object(dir, "cudaguard-shim", "c", &shim_source_for(&compiler.target))
        })
    }

    /// The path of an object with this name, compiled by this compiler from this text.
    pub fn path(&self, compiler: &GuardCompiler, name: &str, language: &str, text: Digest) -> PathBuf {
        self.0.join(format!("cudaguard-{name}-{}.o", key(compiler, language, text)))
    }

    /// Compiles an object unless it exists. If several processes need it at the same time, one of them compiles it and
    /// the others wait.
    pub fn object(
        &self,
        object: &Path,
        compile: impl Fn(&Path) -> Result<PathBuf, GuardError>,
    ) -> Result<PathBuf, GuardError> {
        fs::create_dir_all(&self.0).map_err(|error| FileError::write(&self.0, error))?;
        let mark = object.with_extension("making");
        let began = Instant::now();
        loop {
            if object.is_file() {
                return Ok(object.to_owned());
            }
            let own = std::process::id().to_string();
            match fs::File::create_new(&mark).and_then(|_| fs::write(&mark, &own)) {
                Ok(()) => {}
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(FileError::write(&self.0, error).into());
                }
                Err(_) if began.elapsed() < PATIENCE && is_at_work(&mark) => {
                    thread::sleep(Duration::from_millis(5));
                    continue;
                }
                // The process that began it has ended, or it hangs.
                Err(_) => fs::write(&mark, &own).map_err(|error| FileError::write(&self.0, error))?,
            }
            let made = Self::compile(object, &compile);
            let _ = fs::remove_file(&mark);
            return made;
        }
    }

    fn compile(object: &Path, compile: impl Fn(&Path) -> Result<PathBuf, GuardError>) -> Result<PathBuf, GuardError> {
        let workshop = object.with_extension(std::process::id().to_string());
        fs::create_dir_all(&workshop).map_err(|error| FileError::write(&workshop, error))?;
        let made = compile(&workshop).and_then(|made| {
            fs::rename(made, object).map_err(|error| FileError::write(&workshop, error))?;
            Ok(object.to_owned())
        });
        let _ = fs::remove_dir_all(&workshop);
        made
    }
}

/// Returns true unless the process that wrote this mark is known to have ended. A process that has not written its
/// process id yet counts as running.
fn is_at_work(mark: &Path) -> bool {
    let number = fs::read_to_string(mark).ok().and_then(|text| text.parse::<u32>().ok());
    !number.is_some_and(|number| Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{number}")).exists())
}

/// Digest of everything that an object depends on: its text, the compiler's file, the target and the flags.
fn key(compiler: &GuardCompiler, language: &str, text: Digest) -> Digest {
    let mut digest = text;
    digest.push_text(&compiler.target).push_text(&format!("{:?} {:?}", compiler.flags, compiler.own_flags(language)));
    let file = fs::canonicalize(&compiler.program).unwrap_or_else(|_| compiler.program.clone());
    digest.push_text(&file.to_string_lossy());
    if let Ok(about) = fs::metadata(&file) {
        digest.push_number(about.len()).push_text(&format!("{:?}", about.modified().ok()));
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::NoGuard;

    fn compiler(flags: &[&str], target: &str) -> GuardCompiler {
        let flags = flags.iter().map(Into::into).collect();
        GuardCompiler { program: "/bin/true".into(), is_clang: false, flags, target: target.to_owned(), is_fast: false }
    }

    fn compile(dir: &Path) -> Result<PathBuf, GuardError> {
        let file = dir.join("made");
        fs::write(&file, "made").map_err(|error| FileError::write(&file, error))?;
        Ok(file)
    }

    #[test]
    fn mark_of_dead_process_is_ignored() {
        let scratch = tempfile::tempdir().unwrap();
        let shared = SharedDir::new(scratch.path());
        let object = shared.path(&compiler(&[], "t"), "x", "c", Digest::from_bytes(b"text"));
        fs::write(object.with_extension("making"), u32::MAX.to_string()).unwrap();
        let made = shared.object(&object, compile).unwrap();
        assert_eq!(fs::read(&made).unwrap(), b"made");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
    }

    #[test]
    fn failed_compile_leaves_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        let shared = SharedDir::new(scratch.path());
        let why = NoGuard::NoClang("t".to_owned());
        let failed = shared.object(&scratch.path().join("x.o"), |_| Err(why.clone().into()));
        assert_eq!(failed, Err(why.into()));
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[test]
    fn waiting_threads_compile_once() {
        let scratch = tempfile::tempdir().unwrap();
        let shared = SharedDir::new(scratch.path());
        let object = scratch.path().join("x.o");
        let calls = std::sync::atomic::AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let slow = |dir: &Path| {
                        calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        thread::sleep(Duration::from_millis(50));
                        compile(dir)
                    };
                    assert_eq!(shared.object(&object, slow), Ok(object.clone()));
                });
            }
        });
        assert_eq!(calls.into_inner(), 1);
    }

    #[test]
    fn path_depends_on_target_and_flags() {
        let shared = SharedDir::new(Path::new("/s"));
        let path = |compiler: &GuardCompiler| shared.shim_path(compiler);
        let plain = compiler(&[], "t");
        assert_eq!(path(&plain), path(&plain.clone()));
        assert_ne!(path(&plain), path(&compiler(&[], "u")));
        assert_ne!(path(&plain), path(&compiler(&["-m64"], "t")));
        assert_ne!(path(&plain), path(&GuardCompiler { program: "/bin/sh".into(), ..plain.clone() }));
        assert_ne!(path(&plain), path(&GuardCompiler { is_fast: true, ..plain.clone() }));
    }
}
