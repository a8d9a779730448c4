//! Shared fixtures: a small guarded program that links cuDNN, and functions that build and start it.

use std::path::Path;

use cudaguard_tests::{Call, Outcome, Project, project};

/// Build script that links the cuDNN in `CUDNN_PATH`.
pub(crate) const LINKS_CUDNN: &str = "\
fn main() {
    println!(\"cargo:rerun-if-env-changed=CUDNN_PATH\");
    println!(\"cargo:rustc-link-search=native={}/lib\", std::env::var(\"CUDNN_PATH\").unwrap());
    println!(\"cargo:rustc-link-lib=cudnn\");
    EMBED
}
";

/// Program that prints the version of cuDNN.
pub(crate) const ASKS_CUDNN: &str = "\
extern \"C\" {
    fn cudnnGetVersion() -> usize;
}

fn main() {
    println!(\"main: cuDNN {}\", unsafe { cudnnGetVersion() });
}
";

/// Returns a package with a program that links cuDNN and is guarded by `cudaguard::embed!()`.
pub(crate) fn program(name: &str) -> Project {
    finished(Project::guarded(name))
}

/// Returns the package in a directory with this name.
pub(crate) fn program_in(name: &str, dir: &str) -> Project {
    let package = project::package(name) + &project::build_dependency();
    finished(Project::in_dir(name, dir).file("Cargo.toml", package))
}

fn finished(project: Project) -> Project {
    project.file("build.rs", LINKS_CUDNN.replace("EMBED", "cudaguard::embed!();")).file("src/main.rs", ASKS_CUDNN)
}

/// Builds a release with plain cargo and this cuDNN.
#[track_caller]
pub(crate) fn build(project: &Project, cudnn: &Path) {
    let _ = project.cargo(["build", "--release"]).env("CUDNN_PATH", cudnn).run().success();
}

/// Returns a start of this program with this cuDNN on the library path.
pub(crate) fn start(program: &Path, cudnn: &Path) -> Call {
    Call::new(program).env("LD_LIBRARY_PATH", cudnn.join("lib"))
}

/// Checks that the program ran, and that only `main` printed.
#[track_caller]
pub(crate) fn runs(outcome: Outcome, version: usize) {
    let outcome = outcome.success();
    assert_eq!(outcome.stdout, format!("main: cuDNN {version}\n"), "{outcome}");
    assert_eq!(outcome.stderr, "", "without a problem there is no output");
}
