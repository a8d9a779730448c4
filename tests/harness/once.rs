//! Cache for values that take long to compute and are equal for all tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Returns the bytes for this key. The first caller computes them; callers with the same key wait, and callers with
/// other keys do not.
pub fn once(key: &str, make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    static MADE: Mutex<BTreeMap<String, Arc<OnceLock<Vec<u8>>>>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let cell = Arc::clone(made.entry(key.to_owned()).or_default());
    drop(made);
    cell.get_or_init(make).clone()
}

/// A file or directory that is built once. After a failure, each caller panics with its message, and no one builds again.
#[derive(Debug, Default)]
pub struct BuiltOnce(OnceLock<Result<PathBuf, String>>);

impl BuiltOnce {
    /// Returns the path of something that is not built yet.
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns the path. The first caller builds.
    pub fn path(&self, build: impl FnOnce() -> Result<PathBuf, String>) -> &Path {
        self.0.get_or_init(build).as_ref().unwrap_or_else(|why| panic!("{why}"))
    }
}
