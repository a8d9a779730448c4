//! What takes long to make, and is the same for every test that asks for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The bytes under this key, made by the first who asks; whoever asks meanwhile waits, but for no other key's.
pub fn once(key: &str, make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    static MADE: Mutex<BTreeMap<String, Arc<OnceLock<Vec<u8>>>>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let cell = Arc::clone(made.entry(key.to_owned()).or_default());
    drop(made);
    cell.get_or_init(make).clone()
}
