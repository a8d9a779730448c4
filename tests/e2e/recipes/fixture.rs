//! Machines that consist of real parts.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use cudaguard::internal::toolchain::SYSROOT;
use cudaguard_tests::{Call, parts};

/// Directory with the files of a machine, and the variables of its builds.
pub(crate) struct Machine {
    root: PathBuf,
    variables: Vec<(String, OsString)>,
    /// Directories that precede `PATH` of the build machine.
    path: Vec<PathBuf>,
}

impl Machine {
    /// Creates a machine without additional files.
    pub(crate) fn in_dir(root: PathBuf) -> Self {
        Self { root, variables: Vec::new(), path: Vec::new() }
    }

    /// Runs a call on this machine. Toolkits in the default locations of the build machine are hidden.
    pub(crate) fn on(&self, call: Call) -> Call {
        fs::create_dir_all(&self.root).expect("a temporary directory takes directories");
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let path = self.path.iter().cloned().chain(std::env::split_paths(&inherited));
        let call = call
            .env("PATH", std::env::join_paths(path).expect("a PATH"))
            .env("CARGO_TERM_COLOR", "never")
            .env(SYSROOT, &self.root);
        self.variables.iter().fold(call, |call, (name, value)| call.env(name, value))
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.push((name.to_owned(), value.into()));
    }

    /// Sets a variable to a path on this machine.
    pub(crate) fn set_at(&mut self, name: &str, path: &str) {
        self.set(name, self.at(path));
    }

    /// Puts a directory of this machine first in `PATH`.
    pub(crate) fn path_first(&mut self, dir: &str) {
        self.path.insert(0, self.at(dir));
    }

    fn link(&self, path: &str, to: &Path) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("a link has a parent directory"))
            .expect("a temporary directory takes directories");
        symlink(to, &path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Links a real toolkit to this root.
    pub(crate) fn cuda(&self, root: &str, version: &str) {
        self.all_of(root, &parts::cuda(version));
    }

    fn all_of(&self, root: &str, part: &Path) {
        for entry in fs::read_dir(part).unwrap_or_else(|error| panic!("{}: {error}", part.display())) {
            let entry = entry.expect("a part can be listed");
            self.link(&format!("{root}/{}", entry.file_name().to_string_lossy()), &entry.path());
        }
    }
}
