//! The command under test: `cargo-cudaguard`, built once for all suites.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::{Call, places};

/// Environment variable that passes the path of the command to programs of this package that tests start.
pub const GIVEN: &str = "CUDAGUARD_COMMAND_UNDER_TEST";

/// Returns the path of `cargo-cudaguard`, and builds it if it is not up to date.
///
/// `cargo test` builds only the programs of the package under test, so this function calls cargo for the command, in
/// the profile of the caller. Programs that a test starts get the path in [`GIVEN`]: in another environment, cargo
/// would build another file at this path while other tests run it.
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
        let directory = places::target().join(if profile == "dev" { "debug" } else { profile });
        directory.join("cargo-cudaguard")
    })
}

/// Returns a call of `cargo-cudaguard` with these arguments.
pub fn call<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Call {
    Call::new(path()).args(arguments)
}
