//! What the scenes share: a small guarded program that is linked to cuDNN, and ways to build and start it.

use std::path::Path;

use crate::judge_equal;
use cudaguard_tests::{Call, Outcome, Project, project, snapshot};

/// A build.rs that links the cuDNN of `CUDNN_PATH`.
pub(crate) const LINKS_CUDNN: &str = "\
fn main() {
    println!(\"cargo:rerun-if-env-changed=CUDNN_PATH\");
    println!(\"cargo:rustc-link-search=native={}/lib\", std::env::var(\"CUDNN_PATH\").unwrap());
    println!(\"cargo:rustc-link-lib=cudnn\");
    EMBED
}
";

/// A main.rs that asks cuDNN for its version, and says that it got there.
pub(crate) const ASKS_CUDNN: &str = "\
extern \"C\" {
    fn cudnnGetVersion() -> usize;
}

fn main() {
    println!(\"main: cuDNN {}\", unsafe { cudnnGetVersion() });
}
";

/// A package with a program that is linked to cuDNN and guarded by `cudaguard::embed!()`.
pub(crate) fn program(name: &str) -> Project {
    finished(Project::guarded(name))
}

/// The same in a folder of another name.
pub(crate) fn program_in(name: &str, folder: &str) -> Project {
    let package = project::package(name) + &project::build_dependency();
    finished(Project::in_folder(name, folder).file("Cargo.toml", package))
}

fn finished(project: Project) -> Project {
    project.file("build.rs", LINKS_CUDNN.replace("EMBED", "cudaguard::embed!();")).file("src/main.rs", ASKS_CUDNN)
}

/// The same without a guard in its source.
pub(crate) fn unguarded(name: &str) -> Project {
    Project::new(name).file("build.rs", LINKS_CUDNN.replace("EMBED", "")).file("src/main.rs", ASKS_CUDNN)
}

/// Builds it with plain cargo against this cuDNN, in release.
#[track_caller]
pub(crate) fn build(project: &Project, cudnn: &Path) {
    let _ = project.cargo(["build", "--release"]).env("CUDNN_PATH", cudnn).run().success();
}

/// A start of this program with this cuDNN on the loader's path.
pub(crate) fn start(program: &Path, cudnn: &Path) -> Call {
    Call::new(program).env("LD_LIBRARY_PATH", cudnn.join("lib"))
}

/// It ran, and nothing was said but by `main`.
#[track_caller]
pub(crate) fn runs(outcome: Outcome, version: usize) {
    let outcome = outcome.success();
    assert_eq!(outcome.stdout, format!("main: cuDNN {version}\n"), "{outcome}");
    assert_eq!(outcome.stderr, "", "nothing is wrong, so nothing is said");
}

/// It was refused before `main`, in six lines at most and two for each further refusal; they are kept under this name.
#[track_caller]
pub(crate) fn refused(outcome: Outcome, snapshot: &str, names: &[(&Path, &str)]) -> Outcome {
    let outcome = outcome.expect(78);
    assert_eq!(outcome.stdout, "", "refused before main: {outcome}");
    assert!(judge_equal::fixture::is_short(&outcome.stderr), "six lines at most: {outcome}");
    snapshot::check(&format!("scenes/{snapshot}"), &snapshot::paths(&outcome.stderr, names));
    outcome
}
