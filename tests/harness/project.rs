//! Small cargo packages on disk.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::{BuiltOnce, Call, Scratch, command, places, scratch};

/// Variables that would select another toolkit or cuDNN than that of a test, or change the format of the output.
pub const LEAD_ELSEWHERE: &[&str] = &[
    "NVCC",
    "CUDACXX",
    "CUDA_TOOLKIT_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_ROOT",
    "CUDA_TOOLKIT_ROOT_DIR",
    "CUDAToolkit_ROOT",
    "CUDA_LIBRARY_PATH",
    "CUDNN_PATH",
    "CUDNN_LIB",
    "CUDAARCHS",
    "CUDA_COMPUTE_CAP",
    "CUDARC_CUDA_VERSION",
    "CUDAGUARD_LOCKED",
    "GITHUB_ACTIONS",
];

/// A cargo package in a scratch directory, with the dependency versions of the workspace (its Cargo.lock), and with
/// `cudaguard` and its dependencies already compiled. Its target directory is its `target/`.
#[derive(Debug)]
pub struct Project {
    scratch: Scratch,
    root: PathBuf,
}

impl Project {
    /// Creates a package with this name and version 0.1.0, without any source. Add files with [`Project::file`].
    pub fn new(name: &str) -> Self {
        Self::bare(name).file("Cargo.toml", package(name))
    }

    /// Creates a package whose build.rs only calls `cudaguard::embed!()`.
    pub fn guarded(name: &str) -> Self {
        Self::new(name)
            .append("Cargo.toml", &build_dependency())
            .file("build.rs", "fn main() {\n    cudaguard::embed!();\n}\n")
    }

    /// Creates a directory with only a Cargo.lock and compiled dependencies, for workspaces.
    pub fn bare(name: &str) -> Self {
        Self::in_dir(name, name)
    }

    /// Creates such a project in a directory with this name, which may contain blanks and non-ASCII characters.
    pub fn in_dir(name: &str, dir: &str) -> Self {
        static SEED: BuiltOnce = BuiltOnce::new();
        let scratch = Scratch::new(name);
        let root = scratch.join(dir);
        fs::create_dir_all(&root).expect("a temporary directory takes directories");
        let seed = SEED.path(|| build_seed("scenes-seed", &["dev", "release"], &check_dependency(), None));
        copy(seed, &root, "-a", &["Cargo.lock"]);
        copy(&seed.join("target"), &root.join("target"), "-a", &[".rustc_info.json", "CACHEDIR.TAG"]);
        let project = Self { scratch, root };
        project.copy_outputs(seed, &["target/debug", "target/release"]);
        project
    }

    /// Adds the build-dependencies, compiled in dev builds by another compiler.
    #[must_use]
    pub fn with_compiler(self, rustc: &Path) -> Self {
        static SEED: BuiltOnce = BuiltOnce::new();
        let seed = SEED.path(|| build_seed("scenes-seed-cross", &["dev"], "", Some(rustc)));
        self.copy_outputs(seed, &["target/debug"]);
        self
    }

    fn copy_outputs(&self, seed: &Path, profiles: &[&str]) {
        for profile in profiles {
            copy(&seed.join(profile), &self.root.join(profile), "-a", &[".fingerprint", "build"]);
            // 70 MB, which rustc and the linker replace and never change in place.
            copy(&seed.join(profile), &self.root.join(profile), "-al", &["deps"]);
        }
    }

    /// Returns the directory of the package.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Returns the scratch directory that contains the package, for files next to it.
    pub fn sibling(&self) -> &Path {
        self.scratch.path()
    }

    /// Writes a file of the package, for a chain of calls.
    #[must_use]
    pub fn file(self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Self {
        self.write(name, content);
        self
    }

    /// Appends text to a file of the package.
    #[must_use]
    pub fn append(self, name: &str, text: &str) -> Self {
        let kept = fs::read_to_string(self.root.join(name)).unwrap_or_default();
        self.file(name, kept + text)
    }

    /// Writes a file of the package, for a chain of calls.
    pub fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        scratch::write(&self.root.join(name), content);
    }

    /// Writes a file with a time after all builds so far: a few seconds in the future, so that every file system shows
    /// the difference.
    pub fn change(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        self.write(&name, content);
        self.touch(name);
    }

    /// Sets the time of a file after all builds so far, without changing its content.
    pub fn touch(&self, name: impl AsRef<Path>) {
        let path = self.root.join(name);
        let later = SystemTime::now() + Duration::from_secs(5);
        fs::File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_modified(later))
            .unwrap_or_else(|error| panic!("cannot touch {}: {error}", path.display()));
    }

    /// Returns a call of plain cargo in the package, offline: `cargo(["build", "--release"])`.
    pub fn cargo<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Call {
        cargo(arguments).dir(&self.root)
    }

    /// Returns a call of `cargo-cudaguard` in the package, offline: `cudaguard(["build", "--release"])`.
    pub fn cudaguard<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Call {
        let call = command::call(arguments).dir(&self.root).env("CARGO_NET_OFFLINE", "true");
        match std::env::var_os("CARGO") {
            Some(cargo) => call.env("CARGO", cargo),
            None => call,
        }
    }

    /// Returns the default path of a build output: `debug/name`, `release/libname.so`, `debug/examples/name`.
    pub fn built(&self, file: &str) -> PathBuf {
        self.root.join("target").join(file)
    }
}

/// Returns a call of plain cargo, offline.
pub fn cargo<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Call {
    Call::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(arguments)
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_TERM_COLOR", "never")
}

/// Returns the beginning of a Cargo.toml. It declares a workspace, because cargo would otherwise find the one of this
/// repository.
pub fn package(name: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\npublish = false\n\n[workspace]\n")
}

/// Returns `[build-dependencies]` with `cudaguard` from this repository.
pub fn build_dependency() -> String {
    format!("\n[build-dependencies]\ncudaguard = {{ path = '{}' }}\n", guard_core().display())
}

/// Returns `[dependencies]` with `cudaguard` from this repository, without the features that only a build.rs needs, for
/// `cudaguard::check()`.
pub fn check_dependency() -> String {
    let path = guard_core();
    format!("\n[dependencies]\ncudaguard = {{ path = '{}', default-features = false }}\n", path.display())
}

fn guard_core() -> PathBuf {
    places::workspace().join("guard-core")
}

/// Builds a package with `cudaguard` as build-dependency and these dependencies, and returns its directory. Every project
/// starts with a copy of its target directory, so that no test compiles those crates again. Cargo keeps it up to date and
/// locks it.
fn build_seed(name: &str, profiles: &[&str], dependencies: &str, rustc: Option<&Path>) -> Result<PathBuf, String> {
    let dir = places::target().join(name);
    let settle = |name: &str, content: &[u8]| {
        let path = dir.join(name);
        if fs::read(&path).ok().as_deref() != Some(content) {
            scratch::write(&path, content);
        }
    };
    settle("Cargo.toml", (package("seed") + &build_dependency() + dependencies).as_bytes());
    settle("build.rs", b"fn main() {}\n");
    settle("src/lib.rs", b"");
    let lock = dir.join("Cargo.lock");
    let ours = places::workspace().join("Cargo.lock");
    let modified = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    if modified(&lock) < modified(&ours) {
        fs::copy(&ours, &lock).expect("the workspace has a Cargo.lock");
    }
    for profile in profiles {
        let mut call = cargo(["build", "--quiet", "--profile", profile]).dir(&dir);
        if let Some(rustc) = rustc {
            // Without a target, cargo gives build scripts other debug information.
            call = call.args(["--target", "x86_64-unknown-linux-gnu"]).env("RUSTC", rustc);
        }
        let built = call.run();
        if built.status() != Some(0) {
            return Err(built.to_string());
        }
    }
    Ok(dir)
}

/// Copies these files and directories with their times, which cargo compares. `-al` creates hard links.
fn copy(from: &Path, to: &Path, options: &str, names: &[&str]) {
    fs::create_dir_all(to).expect("a temporary directory takes directories");
    let names = names.iter().map(|name| from.join(name));
    let _ = Call::new("cp").args([options, "--reflink=auto", "-t"]).arg(to).args(names).run().success();
}
