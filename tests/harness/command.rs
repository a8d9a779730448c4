//! The command under test: `cargo-cudaguard`, built once for all suites.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{BuiltOnce, Call, places, world};

/// Environment variable that passes the path of the command to programs of this package that tests start.
pub const GIVEN: &str = "CUDAGUARD_COMMAND_UNDER_TEST";

/// Returns the path of `cargo-cudaguard`, and builds it if it is not up to date.
///
/// `cargo test` builds only the programs of the package under test, so this function calls cargo for the command: in
/// the profile `dev`, or for benchmarks in the one that releases use. Programs that a test starts get the path in
/// [`GIVEN`]: in another environment, cargo would build another file at this path while other tests run it.
pub fn path() -> &'static Path {
    static PROGRAM: BuiltOnce = BuiltOnce::new();
    PROGRAM.path(|| {
        if let Some(given) = std::env::var_os(GIVEN) {
            return Ok(given.into());
        }
        let profile = if cfg!(debug_assertions) { "dev" } else { "dist" };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            .args(["build", "--quiet", "--bin", "cargo-cudaguard", "--workspace", "--profile", profile, "--target-dir"])
            .arg(places::target())
            .current_dir(places::workspace())
            .stdin(Stdio::null())
            .status()
            .expect("cargo can be started");
        let directory = places::target().join(if profile == "dev" { "debug" } else { profile });
        built
            .success()
            .then(|| directory.join("cargo-cudaguard"))
            .ok_or_else(|| "cargo-cudaguard does not build".to_owned())
    })
}

/// Returns a call of a program of this package that runs the same `cargo-cudaguard`.
pub fn call_program(name: &str) -> Call {
    Call::new(world::sibling(name)).env(GIVEN, path())
}

/// Returns a call of `cargo-cudaguard` with these arguments.
pub fn call<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Call {
    Call::new(path()).args(arguments)
}

/// Returns the output of `inspect --json` for a file.
#[track_caller]
pub fn inspect(file: &Path) -> Value {
    call(["inspect", "--json"]).arg(file).run().success().json()
}

/// Returns the names of the components in a file, sorted.
#[track_caller]
pub fn components(file: &Path) -> Vec<String> {
    let all = inspect(file);
    let components = all["components"].as_array().unwrap_or_else(|| panic!("no components: {all}"));
    let names = components.iter().map(|one| one["component"]["name"].as_str().expect("a name").to_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::{places, project};

    /// Otherwise cargo would compile the command and its dependencies a second time for the end-to-end tests.
    #[test]
    fn tests_and_command_share_compiled_crates() {
        let crates = |edges: &str| -> BTreeSet<String> {
            let tree =
                project::cargo(["tree", "--workspace", "--prefix", "none", "--format", "{p} {f}", "--edges", edges]);
            let listed = tree.dir(places::workspace()).run().success().stdout;
            listed.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
        };
        let (without, with) = (crates("normal,build"), crates("normal,build,dev"));
        assert!(without.len() > 50, "{without:?}");
        let differing: Vec<_> = without.difference(&with).collect();
        assert!(differing.is_empty(), "a dev-dependency enables more features of {differing:?}: see tests/Cargo.toml");
    }
}
