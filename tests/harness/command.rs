//! The command under test: `cargo-cudaguard`, built once beside the suites.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::{Call, places};

/// Names the command to programs of this package that tests start.
pub const GIVEN: &str = "CUDAGUARD_COMMAND_UNDER_TEST";

/// The program `cargo-cudaguard`, built where it is not up to date.
///
/// `cargo test` builds the programs of the package under test only, so this asks cargo for it, in the profile that the
/// caller itself was built in. A program that a test starts is told which one it is by [`GIVEN`]: with another environment
/// cargo would put another file in its place, while the tests beside it run it.
pub fn path() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        if let Some(given) = std::env::var_os(GIVEN) {
            return given.into();
        }
        let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            .args(["build", "--quiet", "--bin", "cargo-cudaguard", "--workspace", "--profile", profile, "--target-dir"])
            .arg(places::target())
            .current_dir(places::workspace())
            .stdin(Stdio::null())
            .status()
            .expect("cargo can be started");
        assert!(built.success(), "cargo-cudaguard does not build");
        let folder = places::target().join(if profile == "dev" { "debug" } else { profile });
        folder.join("cargo-cudaguard")
    })
}

/// A call of `cargo-cudaguard` with these arguments.
pub fn call<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Call {
    Call::new(path()).args(arguments)
}
