//! The environment, as a value that is passed to its readers and that logs every variable that is read. clippy.toml
//! bans all other ways to read variables, so a build script that announces the log to cargo announces every variable.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Variable with the directory of the stamp files, whose changes make cargo rerun the build scripts of guarded
/// packages. Every build script that embeds a guard announces it.
pub const STAMP_DIR_VAR: &str = "CUDAGUARD_STAMPS";

/// The variables and the current directory of a process.
#[derive(Clone)]
pub struct Env {
    /// `None`: the variables of this process.
    variables: Option<BTreeMap<String, OsString>>,
    dir: PathBuf,
    read: Rc<RefCell<BTreeSet<String>>>,
}

impl Env {
    /// Returns the variables and current directory of this process. The directory is empty if it was deleted.
    #[allow(clippy::disallowed_methods)]
    pub fn from_process() -> Self {
        Self { variables: None, dir: std::env::current_dir().unwrap_or_default(), read: Rc::default() }
    }

    /// Creates an environment of only these variables, for tests and for a program that runs in another environment.
    pub fn from_variables(variables: impl IntoIterator<Item = (String, OsString)>, dir: impl Into<PathBuf>) -> Self {
        Self { variables: Some(variables.into_iter().collect()), dir: dir.into(), read: Rc::default() }
    }

    /// Creates an environment without variables, in the root directory.
    pub fn without_variables() -> Self {
        Self::from_variables([], "/")
    }

    /// Returns a copy with additional or replaced variables. Both environments share one log.
    #[must_use]
    #[allow(clippy::disallowed_methods)]
    pub fn with_variables(&self, more: impl IntoIterator<Item = (String, OsString)>) -> Self {
        let mut variables = self.variables.clone().unwrap_or_else(|| {
            std::env::vars_os().map(|(name, value)| (name.to_string_lossy().into_owned(), value)).collect()
        });
        for (name, value) in more {
            variables.insert(name, value);
        }
        Self { variables: Some(variables), dir: self.dir.clone(), read: Rc::clone(&self.read) }
    }

    /// Returns the environment of a build script in this directory, with a new, empty log.
    #[must_use]
    pub fn in_dir(&self, dir: &Path) -> Self {
        Self { variables: self.variables.clone(), dir: dir.to_owned(), read: Rc::default() }
    }

    /// Returns the current directory.
    pub fn current_dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the value of a variable. `None` if it is unset or empty.
    pub fn var_os(&self, name: &str) -> Option<OsString> {
        self.var_os_raw(name).filter(|value| !value.is_empty())
    }

    /// Returns the value of a variable if it is set, even if it is empty: `CUDA_VISIBLE_DEVICES=` hides every GPU.
    #[allow(clippy::disallowed_methods)]
    pub fn var_os_raw(&self, name: &str) -> Option<OsString> {
        self.read.borrow_mut().insert(name.to_owned());
        match &self.variables {
            Some(variables) => variables.get(name).cloned().or_else(|| {
                // Windows ignores case, and calls `PATH` `Path`.
                let mut others = variables.iter().filter(|_| cfg!(windows));
                others.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone())
            }),
            None => std::env::var_os(name),
        }
    }

    /// Returns the value of a variable as text. Bytes that are not UTF-8 are replaced.
    pub fn var(&self, name: &str) -> Option<String> {
        self.var_os(name).map(|value| value.to_string_lossy().into_owned())
    }

    /// Returns the path in a variable. A relative path is in the current directory.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.var_os(name).map(|value| self.dir.join(value))
    }

    /// Returns the paths in a variable with the format of `PATH`, without empty entries. A relative path is in the
    /// current directory.
    pub fn path_list(&self, name: &str) -> Vec<PathBuf> {
        let value = self.var_os(name).unwrap_or_default();
        let paths = std::env::split_paths(&value).filter(|path| !path.as_os_str().is_empty());
        paths.map(|path| self.dir.join(path)).collect::<Vec<_>>()
    }

    /// Returns true if these variables have the same values in this process. A library that reads them from the process
    /// then gets the values of this environment.
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn matches_process(&self, names: &[&str]) -> bool {
        // Every variable is read, so that the log contains all of them.
        names.iter().filter(|name| self.var_os_raw(name) == std::env::var_os(name)).count() == names.len()
    }

    /// Returns true in a GitHub job, whose runner turns lines that begin with `::` into annotations.
    pub fn is_github_workflow(&self) -> bool {
        self.var("GITHUB_ACTIONS").as_deref() == Some("true")
    }

    /// Returns the variables that were read, sorted.
    pub fn accessed(&self) -> Vec<String> {
        self.read.borrow().iter().cloned().collect()
    }

    /// Returns the variables for a child process. `None`: it inherits those of this process.
    pub fn for_child(&self) -> Option<&BTreeMap<String, OsString>> {
        self.variables.as_ref()
    }
}

/// Prints no variables, because some contain secrets.
impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlay_reads_are_logged() {
        let env = Env::from_variables([("A".to_owned(), "1".into()), ("EMPTY".to_owned(), "".into())], "/");
        let over = env.with_variables([("A".to_owned(), "2".into())]);
        assert_eq!((env.var("A").as_deref(), over.var("A").as_deref()), (Some("1"), Some("2")));
        assert_eq!((over.var_os("EMPTY"), over.var_os_raw("EMPTY")), (None, Some("".into())));
        assert_eq!(over.var("ABSENT"), None);
        assert_eq!(env.accessed(), ["A", "ABSENT", "EMPTY"]);
        let apart = env.in_dir(Path::new("/b"));
        assert_eq!((apart.var("A").as_deref(), apart.accessed()), (Some("1"), vec!["A".to_owned()]));
        assert_eq!(env.accessed(), ["A", "ABSENT", "EMPTY"]);
    }

    #[test]
    fn child_inherits_process_environment() {
        let env = Env::from_process();
        assert!(env.for_child().is_none() && env.current_dir().is_absolute());
        let with_a = env.with_variables([("A".to_owned(), "2".into())]);
        assert!(with_a.for_child().unwrap()["A"] == "2");
    }

    #[test]
    fn path_lists_are_split() {
        let env = Env::from_variables([("PATH".to_owned(), "/a::b".into()), ("ROOT".to_owned(), "c".into())], "/d");
        assert_eq!(env.path_list("PATH"), ["/a", "/d/b"].map(PathBuf::from));
        assert_eq!(env.path("ROOT"), Some("/d/c".into()));
        assert_eq!(env.path("NOTHING"), None);
        assert_eq!(env.path_list("NOTHING"), [""; 0].map(PathBuf::from));
    }
}
