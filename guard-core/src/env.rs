//! The environment: a value that is passed to whoever reads it, and that keeps a log of what was read. There is no other
//! door (clippy.toml bans them), so that a build.rs, which announces the log to cargo, announces every variable.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Names the folder of the files that tell cargo of what a guarded build was judged by. Every build script that embeds announces it.
pub const STAMP_DIR_VAR: &str = "CUDAGUARD_STAMPS";

/// The variables of a process and its current folder.
#[derive(Clone)]
pub struct Env {
    /// `None`: this process's own.
    variables: Option<BTreeMap<String, OsString>>,
    folder: PathBuf,
    read: Rc<RefCell<BTreeSet<String>>>,
}

impl Env {
    /// This process's own, and its current folder (empty where that is gone).
    #[allow(clippy::disallowed_methods)]
    pub fn from_process() -> Self {
        Self { variables: None, folder: std::env::current_dir().unwrap_or_default(), read: Rc::default() }
    }

    /// These variables and no others: for tests, and for a program that is started in another environment than ours.
    pub fn from_variables(variables: BTreeMap<String, OsString>, folder: impl Into<PathBuf>) -> Self {
        Self { variables: Some(variables), folder: folder.into(), read: Rc::default() }
    }

    /// No variables at all, in the folder above all others.
    pub fn without_variables() -> Self {
        Self::from_variables(BTreeMap::new(), "/")
    }

    /// The same with these variables laid over it. What is read of either stands in one log.
    #[must_use]
    #[allow(clippy::disallowed_methods)]
    pub fn with_variables(&self, more: impl IntoIterator<Item = (String, OsString)>) -> Self {
        let mut variables = self.variables.clone().unwrap_or_else(|| {
            std::env::vars_os().map(|(name, value)| (name.to_string_lossy().into_owned(), value)).collect()
        });
        variables.extend(more);
        Self { variables: Some(variables), folder: self.folder.clone(), read: Rc::clone(&self.read) }
    }

    /// The same with a log of its own, empty so far.
    #[must_use]
    pub fn with_fresh_log(&self) -> Self {
        Self { read: Rc::default(), ..self.clone() }
    }

    /// The current folder.
    pub fn current_dir(&self) -> &Path {
        &self.folder
    }

    /// The variable's value; unset and empty are the same: nothing.
    pub fn var_os(&self, name: &str) -> Option<OsString> {
        self.var_os_raw(name).filter(|value| !value.is_empty())
    }

    /// The variable's value where it is set, empty or not: `CUDA_VISIBLE_DEVICES=` hides every GPU.
    #[allow(clippy::disallowed_methods)]
    pub fn var_os_raw(&self, name: &str) -> Option<OsString> {
        self.read.borrow_mut().insert(name.to_owned());
        match &self.variables {
            Some(variables) => variables.get(name).cloned(),
            None => std::env::var_os(name),
        }
    }

    /// The variable's value as text; what is not UTF-8 keeps what can be read.
    pub fn var(&self, name: &str) -> Option<String> {
        self.var_os(name).map(|value| value.to_string_lossy().into_owned())
    }

    /// The folders or files that a variable lists as `PATH` does; empty entries are left out.
    pub fn path_list(&self, name: &str) -> Vec<PathBuf> {
        let value = self.var_os(name).unwrap_or_default();
        std::env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect()
    }

    /// Whether this process itself has these variables as we have them: what a library reads of it is then what we would
    /// tell that library.
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn matches_process(&self, names: &[&str]) -> bool {
        let same = |name: &&str| self.var_os_raw(name) == std::env::var_os(name);
        // Each is asked for, so that each is in the log.
        names.iter().filter(|name| same(name)).count() == names.len()
    }

    /// Whether this is a job of GitHub's, whose runner makes annotations of lines that begin with `::`.
    pub fn is_github_workflow(&self) -> bool {
        self.var("GITHUB_ACTIONS").as_deref() == Some("true")
    }

    /// Every variable asked for so far, sorted.
    pub fn accessed(&self) -> Vec<String> {
        self.read.borrow().iter().cloned().collect()
    }

    /// The variables that a child process gets in place of ours; `None`: it inherits them.
    pub fn for_child(&self) -> Option<BTreeMap<String, OsString>> {
        self.variables.clone()
    }
}

/// Without what is in it: some variables hold secrets.
impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_logged_also_through_what_is_laid_over() {
        let env =
            Env::from_variables(BTreeMap::from([("A".to_owned(), "1".into()), ("EMPTY".to_owned(), "".into())]), "/");
        let over = env.with_variables([("A".to_owned(), "2".into())]);
        assert_eq!((env.var("A").as_deref(), over.var("A").as_deref()), (Some("1"), Some("2")));
        assert_eq!((over.var_os("EMPTY"), over.var_os_raw("EMPTY")), (None, Some("".into())));
        assert_eq!(over.var("ABSENT"), None);
        assert_eq!(env.accessed(), ["A", "ABSENT", "EMPTY"]);
        let apart = env.with_fresh_log();
        assert_eq!((apart.var("A").as_deref(), apart.accessed()), (Some("1"), vec!["A".to_owned()]));
        assert_eq!(env.accessed(), ["A", "ABSENT", "EMPTY"]);
    }

    #[test]
    fn a_child_inherits_what_is_the_process_s_own() {
        let env = Env::from_process();
        assert!(env.for_child().is_none() && env.current_dir().is_absolute());
        assert_eq!(env.with_variables([("A".to_owned(), "2".into())]).for_child().unwrap()["A"], "2");
    }

    #[test]
    fn lists_of_paths() {
        let env = Env::from_variables(BTreeMap::from([("PATH".to_owned(), "/a::/b".into())]), "/");
        assert_eq!(env.path_list("PATH"), ["/a", "/b"].map(PathBuf::from));
        assert_eq!(env.path_list("NOTHING"), [""; 0].map(PathBuf::from));
    }
}
