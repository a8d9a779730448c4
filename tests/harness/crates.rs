//! Published crates for tests. All of them were fetched before (see `tests/parts/crates.py`), each in the version of
//! one lock.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Call, Outcome, parts, places, scratch};

/// Returns the path of the cargo that runs the tests.
pub fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Writes a lock for this package with the versions of `tests/crates`, and resolves it without a network. Newer
/// releases of the crates therefore have no effect. Skips the test if the crates cannot be fetched.
#[track_caller]
pub fn settle(package: &Path) {
    parts::crates();
    scratch::write(&package.join("Cargo.lock"), lock());
    let _ = in_hand(fetch(["--offline"]).dir(package).run());
}

/// Does the same with the lock of `tests/crates` alone, for packages that do not depend on `cudaguard`.
#[track_caller]
pub fn settle_with_listed(package: &Path) {
    parts::crates();
    let lock = places::workspace().join("tests/crates/Cargo.lock");
    fs::copy(lock, package.join("Cargo.lock")).expect("the lock of the list");
    let _ = in_hand(fetch(["--offline"]).dir(package).run());
}

fn fetch<const N: usize>(words: [&str; N]) -> Call {
    Call::new(cargo()).args(["fetch", "--target", "x86_64-unknown-linux-gnu"]).args(words)
}

#[track_caller]
fn in_hand(outcome: Outcome) -> Outcome {
    assert!(
        outcome.status() == Some(0),
        "a crate that no list names: add it to tests/crates/Cargo.toml, or to PROGRAMS of \
         tests/parts/crates.py. {outcome}"
    );
    outcome
}

/// Returns the directory into which cargo has unpacked a crate, if it exists.
pub fn source(name: &str, version: &str) -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let registries = fs::read_dir(home.join("registry/src")).ok()?;
    registries
        .filter_map(|registry| Some(registry.ok()?.path().join(format!("{name}-{version}"))))
        .find(|dir| dir.is_dir())
}

/// Returns the lock of the test crates merged with the lock of this repository, for packages that depend on
/// `cudaguard`. Cargo removes the unused packages.
fn lock() -> String {
    let read = |path: &str| {
        let path = places::workspace().join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    both(&read("tests/crates/Cargo.lock"), &read("Cargo.lock"))
}

/// Merges the packages of two locks without duplicates.
fn both(one: &str, other: &str) -> String {
    let (head, _) = one.split_once("[[package]]").unwrap_or((one, ""));
    let packages = |lock: &str| -> Vec<String> {
        lock.split("[[package]]\n").skip(1).map(|package| package.trim().to_owned()).collect()
    };
    let named = |package: &String| package.lines().take(2).collect::<Vec<_>>().join("\n");
    let mut seen = BTreeSet::new();
    let packages = packages(one).into_iter().chain(packages(other)).filter(|package| seen.insert(named(package)));
    packages.fold(head.to_owned(), |lock, package| lock + "[[package]]\n" + &package + "\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each crate version that the tests use is in the lock: otherwise a test would need the network.
    #[test]
    fn crate_list_is_locked() {
        let manifest = places::workspace().join("tests/crates/Cargo.toml");
        let manifest = fs::read_to_string(manifest).expect("the list");
        let lock = fs::read_to_string(places::workspace().join("tests/crates/Cargo.lock")).expect("its lock");
        let exact: Vec<&str> = manifest.split("\"=").skip(1).filter_map(|behind| behind.split('"').next()).collect();
        assert!(exact.len() > 5, "{exact:?}");
        for version in exact {
            assert!(lock.contains(&format!("version = \"{version}\"")), "{version} is not locked");
        }
    }
}
