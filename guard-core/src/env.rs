//! The environment, through one door: what is read here is what a build.rs announces to cargo.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

thread_local! {
    static OVERLAY: RefCell<Option<BTreeMap<String, OsString>>> = const { RefCell::new(None) };
    static READ: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

/// The variable's value; unset and empty are the same: nothing.
pub fn var_os(name: &str) -> Option<OsString> {
    set(name).filter(|value| !value.is_empty())
}

/// The variable's value where it is set, empty or not: `CUDA_VISIBLE_DEVICES=` hides every GPU.
pub fn set(name: &str) -> Option<OsString> {
    READ.with_borrow_mut(|read| read.insert(name.to_owned()));
    OVERLAY.with_borrow(|overlay| match overlay {
        Some(variables) => variables.get(name).cloned(),
        #[allow(clippy::disallowed_methods)]
        None => std::env::var_os(name),
    })
}

/// The variable's value as text; what is not UTF-8 keeps what can be read.
pub fn var(name: &str) -> Option<String> {
    var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Whether this is a job of GitHub's, whose runner makes annotations of lines that begin with `::`.
pub fn is_github_workflow() -> bool {
    var("GITHUB_ACTIONS").as_deref() == Some("true")
}

/// Every variable asked for on this thread so far, sorted.
pub fn read_so_far() -> Vec<String> {
    READ.with_borrow(|read| read.iter().cloned().collect())
}

/// Runs `work` with exactly these variables in place of the process's own (this thread only): for tests, and for
/// judging a build in an environment that is not this process's.
pub fn with<T>(variables: BTreeMap<String, OsString>, work: impl FnOnce() -> T) -> T {
    struct Restore(Option<BTreeMap<String, OsString>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            OVERLAY.with_borrow_mut(|overlay| *overlay = self.0.take());
        }
    }
    let _restore = Restore(OVERLAY.with_borrow_mut(|overlay| overlay.replace(variables)));
    work()
}

/// The variables a child process should get: those of [`with`] where it is in force, otherwise `None` (inherit).
pub fn for_child() -> Option<BTreeMap<String, OsString>> {
    OVERLAY.with_borrow(Clone::clone)
}
