//! Cache for values that take long to compute and are equal for all tests.

use std::collections::BTreeMap;
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
