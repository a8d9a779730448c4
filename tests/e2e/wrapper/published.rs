//! Published programs and crates, unchanged: guarded and started. Cargo fetches them once, and they are cached under
//! `target/`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cudaguard_tests::{Call, Outcome, command, crates, e2e, parts, places, scratch};

use super::fixture::{cargo, notes, package, sealed, summary};

/// Returns a persistent directory, so that a published crate is compiled once.
fn kept(name: &str) -> PathBuf {
    places::target().join("published").join(name)
}

fn settled(call: Call, cuda: Option<&Path>) -> Call {
    let call = call.env("CARGO", cargo()).env("CARGO_TERM_COLOR", "never").env("CARGO_PROFILE_DEV_DEBUG", "false");
    let Some(root) = cuda else { return call };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::iter::once(root.join("bin")).chain(std::env::split_paths(&path));
    call.env("PATH", std::env::join_paths(dirs).expect("folders"))
        .env("CUDA_HOME", root)
        .env("CUDA_PATH", root)
        .env("CUDA_LIBRARY_PATH", root)
}

/// Builds a guarded package with these dependencies and this program.
fn build(name: &str, dependencies: &str, main: &str, cuda: &Path) -> (PathBuf, Outcome) {
    let root = kept(name);
    let settle = |file: &str, content: &str| {
        let path = root.join(file);
        if std::fs::read_to_string(&path).ok().as_deref() != Some(content) {
            scratch::write(&path, content);
        }
    };
    settle("Cargo.toml", &package(name, &format!("[dependencies]\n{dependencies}\n[workspace]\n")));
    settle("src/main.rs", main);
    crates::settle(&root);
    let outcome = settled(command::call(["build", "--offline"]), Some(cuda)).dir(&root).run().success();
    (root.join("target/debug").join(name), outcome)
}

#[e2e(slow)]
fn hexyl_builds_without_cuda() {
    let (target, root) = (kept("hexyl-target"), kept("hexyl-root"));
    parts::crates();
    let words: [&OsStr; 10] = [
        "install".as_ref(),
        "hexyl".as_ref(),
        "--version".as_ref(),
        "=0.16.0".as_ref(),
        "--locked".as_ref(),
        "--offline".as_ref(),
        "--force".as_ref(),
        "--root".as_ref(),
        root.as_os_str(),
        "--debug".as_ref(),
    ];
    let call = settled(command::call(words), None).env("CARGO_TARGET_DIR", &target);
    let outcome = call.run().success();
    assert_eq!(summary(&outcome), "cudaguard: 0 of 1 target guarded");
    let program = root.join("bin/hexyl");
    assert!(notes(&program).is_empty());
    let printed = Call::new(&program).args(["--color=never", "--border=none", "-n", "4"]).arg(&program).run().success();
    assert!(printed.stdout.contains("7f 45 4c 46"), "{printed}");
    assert!(printed.stderr.is_empty(), "{printed}");
}

/// Program that initializes the driver API, with a driver but without a GPU.
const CUDARC: &str = "fn main() {\n    match cudarc::driver::result::init() {\n        Ok(()) => println!(\"a GPU\"),\n        \
                      Err(error) => println!(\"no GPU: {error:?}\"),\n    }\n}\n";

#[e2e(slow)]
fn linked_cudarc_is_guarded() {
    let cuda = parts::cuda("13.0");
    let features = "cudarc = { version = \"=0.19.10\", default-features = false, features = [\"std\", \"driver\", \
                    \"cuda-version-from-build-system\", \"dynamic-linking\"] }";
    let (program, outcome) = build("cudarc-linked", features, CUDARC, &cuda);
    assert!(summary(&outcome).contains("1 of 1 target guarded (CUDA 13.0"), "{outcome}");
    let note = sealed(&program, "cudarc-linked");
    assert_eq!(note.manifest.toolkit.map(|version| (version.major, version.minor)), Some((13, 0)));
    let driver = parts::driver("535");
    let printed = Call::new(&program).env("LD_LIBRARY_PATH", &driver).run().success();
    assert!(printed.stdout.contains("GPU"), "it starts, and its guard reports the findings: {printed}");
    // The loader would report the missing driver library. `exec` reports it before the start.
    let outcome = command::call(["exec", "--"]).arg(&program).env_remove("LD_LIBRARY_PATH").run();
    if outcome.status() != Some(0) {
        let outcome = outcome.expect(78);
        assert!(outcome.stderr.contains("libcuda.so.1"), "{outcome}");
    }
}

#[e2e(slow)]
fn cust_program_is_guarded() {
    let cuda = parts::cuda("13.0");
    let main = "fn main() {\n    match cust::quick_init() {\n        Ok(_) => println!(\"a GPU\"),\n        \
                Err(error) => println!(\"no GPU: {error:?}\"),\n    }\n}\n";
    let (program, _) = build("cust-driver", "cust = \"=0.3.2\"", main, &cuda);
    let _ = sealed(&program, "cust-driver");
    let driver = parts::driver("535");
    let printed = Call::new(&program).env("LD_LIBRARY_PATH", &driver).run().success();
    assert!(printed.stdout.contains("GPU"), "{printed}");
}
