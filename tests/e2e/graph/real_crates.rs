//! Real crates that cargo fetches: cudarc of two versions, built and checked.

use cudaguard_tests::{Call, Outcome, crates, crates::cargo, e2e, snapshot};

use super::fixture::Tree;

pub(crate) fn tree(name: &str, dependencies: &str) -> Tree {
    let tree = Tree::new(name, dependencies);
    crates::settle(&tree.root());
    tree
}

const LINKED: &str = "cudarc = { version = \"=0.19.10\", default-features = false, features = [\"std\", \"driver\", \"runtime\", \
                      \"cuda-12080\", \"dynamic-linking\"] }\n";

#[e2e(slow)]
fn linked_cudarc_major_mismatch_is_refused() {
    let tree = tree("linked", LINKED);
    tree.refused("linked", |_, arguments| tree.call("13.0", arguments));
    let printed = tree.passes(|arguments| tree.call("13.0", arguments).env("CUDARC_CUDA_VERSION", "13000"));
    assert!(printed.contains("warning[CG159]") && printed.contains("does not compile"), "{printed}");
    let printed = tree.passes(|arguments| tree.call("12.8", arguments));
    assert!(!printed.contains("[CG15"), "{printed}");
}

#[e2e(slow)]
fn loaded_cudarc_major_mismatch_is_reported() {
    let tree = tree("loaded", "cudarc = { version = \"=0.19.10\", features = [\"cuda-12080\"] }\n");
    let printed = tree.passes(|arguments| tree.call("13.0", arguments));
    assert!(printed.contains("warning[CG150]") && !printed.contains("error["), "reported, and not refused: {printed}");
    let [driver_only] =
        ["cudarc = { version = \"=0.19.10\", default-features = false, features = [\"std\", \"driver\", \"nvrtc\", \
                          \"cuda-12080\", \"dynamic-loading\"] }\n"];
    let tree = super::real_crates::tree("driver-only", driver_only);
    let printed = tree.passes(|arguments| tree.call("13.0", arguments));
    assert!(!printed.contains("[CG15"), "the driver's functions are of no toolkit: {printed}");
}

/// `check` uses the versions that cargo would resolve now, and writes no lock. If it cannot resolve them, it reports this.
#[e2e(slow)]
fn project_without_lock_is_checked() {
    let tree = Tree::new("no-lock", "");
    let manifest = |dependency: &str| {
        format!("[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\n{dependency}")
    };
    tree.write("app/src/main.rs", "fn main() {}\n");
    // A path dependency outside the workspace pulls it in.
    tree.write("app/Cargo.toml", &manifest("beside = { path = \"../../beside\" }\ncudarc.workspace = true\n"));
    let sibling = "[package]\nname = \"beside\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    tree.write("../beside/Cargo.toml", sibling);
    tree.write("../beside/src/lib.rs", "");
    tree.write(
        "Cargo.toml",
        &format!("[workspace]\nmembers = [\"app\"]\nresolver = \"2\"\n[workspace.dependencies]\n{LINKED}"),
    );
    crates::settle(&tree.root());
    let lock = tree.root().join("Cargo.lock");
    std::fs::remove_file(&lock).expect("cargo made one");
    let files = |tree: &Tree| {
        let entries = std::fs::read_dir(tree.root()).expect("a folder");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    let before = files(&tree);
    let outcome = tree.call("13.0", &["check", "--release", "--offline"]).run().expect(1);
    snapshot::check("graph/without-a-lock", &tree.printed(&outcome));
    assert_eq!(files(&tree), before, "nothing remains");
    tree.write("app/Cargo.toml", &manifest("cudarc = \"=0.19.999\"\n"));
    let outcome = tree.call("13.0", &["check", "--release", "--offline"]).run().expect(2);
    assert!(outcome.stderr.contains("error: the dependencies cannot be checked: "), "{outcome}");
    let unknown = outcome.stdout.lines().find(|line| line.contains("not checked")).expect("a line").trim();
    snapshot::check("graph/not-judged", &format!("{unknown}\n"));
    let json = tree.call("13.0", &["check", "--offline", "--json"]).run().expect(2).stdout;
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let why = value["packages"][0]["crates_not_judged"].as_str().expect("a reason");
    assert!(unknown.ends_with(why), "{why}");
    assert_eq!(files(&tree), before, "nothing remains");
    // A lock does not help if cargo cannot read the packages in it.
    tree.write("Cargo.lock", "version = 4\n\n[[package]]\nname = \"cudarc\"\nversion = \"0.19.999\"\n");
    let outcome = tree.call("13.0", &["check", "--offline"]).run().expect(2);
    assert!(outcome.stderr.contains("cannot be checked: `cargo metadata` fails"), "{outcome}");
    std::fs::write(&lock, b"\xff").expect("it can be written");
    let outcome = tree.call("13.0", &["check", "--offline"]).run().expect(2);
    assert!(outcome.stderr.contains("cannot be checked: Cargo.lock cannot be read: is not UTF-8 text"), "{outcome}");
}

const BOTH: &str = "old = { package = \"cudarc\", version = \"=0.17.8\", features = [\"cuda-12080\"] }\n\
                    cudarc = { version = \"=0.19.10\", features = [\"cuda-13000\"] }\n";

#[e2e(slow)]
fn two_cudarc_levels_are_checked() {
    let tree = tree("both", BOTH);
    tree.refused("two-levels", |_, arguments| tree.call("13.0", arguments));
}

#[e2e]
fn cudnn_bindings_major_is_checked() {
    let dependency = "cudarc = { version = \"=0.19.10\", default-features = false, features = [\"std\", \"driver\", \
                      \"cudnn-08009\", \"cuda-13000\", \"dynamic-loading\"] }\n";
    let tree = tree("cudnn-major", dependency);
    tree.refused("cudnn-major", |_, arguments| {
        tree.call("13.0", arguments).env("CUDNN_PATH", tree.sibling("cudnn-9.15"))
    });
}

#[e2e(slow)]
fn cudnn_without_function_is_reported() {
    let dependency = "cudarc = { version = \"=0.17.8\", default-features = false, features = [\"std\", \"driver\", \"cudnn\", \
                      \"cuda-12080\", \"dynamic-loading\"] }\n";
    let tree = tree("cudnn-lacks", dependency);
    tree.refused("cudnn-lacks", |_, arguments| {
        tree.call("12.8", arguments).env("CUDNN_PATH", tree.sibling("cudnn-9.1"))
    });
    let printed = tree.passes(|arguments| tree.call("12.8", arguments).env("CUDNN_PATH", tree.sibling("cudnn-9.15")));
    assert!(!printed.contains("[CG15"), "{printed}");
}

const BY_NVCC: &str = "cudarc = { version = \"=0.19.10\", default-features = false, features = [\"driver\", \
                       \"cuda-version-from-build-system\", \"dynamic-loading\"] }\n";

/// The build script panics. Before that, cudaguard prints the cause and the fix.
#[e2e(slow)]
fn unknown_toolkit_is_reported() {
    let tree = tree("unknown", BY_NVCC);
    let outcome = tree.call("13.5", &["build", "--release"]).run();
    assert!(!matches!(outcome.status(), Some(0 | 1)), "cargo's own status: {outcome}");
    assert!(outcome.stderr.contains("Unsupported cuda toolkit version: `13.5`"), "{outcome}");
    let printed = tree.printed(&outcome);
    let ours: String =
        printed.split_inclusive('\n').take_while(|line| !line.trim_start().starts_with("Compiling")).collect();
    snapshot::check("graph/unknown-toolkit", &ours);
}

/// Returns the output from the finding of a cached level on.
fn of_kept(tree: &Tree, outcome: &Outcome) -> String {
    tree.printed(outcome).split_inclusive('\n').skip_while(|line| !line.contains("CG155")).collect()
}

/// Returns a package whose release build is as fast as a dev build.
fn quick(name: &str, dependency: &str) -> Tree {
    let tree = tree(name, dependency);
    let manifest = std::fs::read_to_string(tree.root().join("Cargo.toml")).expect("a manifest");
    tree.write("Cargo.toml", &(manifest + "\n[profile.release]\nopt-level = 0\ndebug = false\n"));
    tree
}

#[e2e(slow)]
fn cached_level_is_reported() {
    let tree = quick("kept", BY_NVCC);
    // The build script depends on CUDA_HOME but not on PATH.
    let build = |release| tree.call(release, &["build", "--release"]).env_remove("CUDA_HOME");
    let built = build("13.0").run().success();
    assert!(!built.stderr.contains("[CG15"), "{built}");
    let again = build("13.0").run().success();
    assert!(!again.stderr.contains("[CG15"), "{again}");
    // A different nvcc is first in PATH: plain cargo prints nothing and keeps the build for 13.0.
    let kept = build("12.4").run().expect(1);
    let again = build("12.4").run().expect(1);
    assert_eq!(of_kept(&tree, &kept), of_kept(&tree, &again), "it is reported each time");
    tree.write("cudaguard.toml", "[build]\nrelease = \"warn\"\n");
    let warned = build("12.4").run().success();
    snapshot::check(
        "graph/kept",
        &format!("{}\n$ with [build] release = \"warn\"\n{}", of_kept(&tree, &kept), of_kept(&tree, &warned)),
    );
    // The command that the finding suggests.
    let clean = Call::new(cargo()).args(["clean", "--release", "-p", "cudarc@0.19.10"]).dir(tree.root());
    let _ = clean.env("CARGO_TERM_COLOR", "never").run().success();
    let cured = build("12.4").run().success();
    assert!(!cured.stderr.contains("[CG15"), "{cured}");
}

const BY_HEADERS: &str = "cudarc = { version = \"=0.19.10\", default-features = false, features = [\"std\", \"driver\", \
                          \"cuda-12040\", \"cudnn-version-from-build-system\", \"dynamic-loading\"] }\n";

#[e2e(slow)]
fn cached_cudnn_is_reported() {
    let tree = quick("cudnn-kept", BY_HEADERS);
    tree.cudnn((8, 9, 7));
    tree.cudnn((9, 10, 2));
    let build = |cudnn: &str| tree.call("12.4", &["build", "--release"]).env("CUDNN_PATH", tree.sibling(cudnn)).run();
    let built = build("cudnn-8.9").success();
    assert!(!built.stderr.contains("[CG15"), "{built}");
    // The build script does not run again for CUDNN_PATH, so plain cargo rebuilds nothing and prints nothing.
    let plain = Call::new(cargo()).args(["build", "--release"]).dir(tree.root()).env("CARGO_TERM_COLOR", "never");
    let plain = plain.env("CUDA_HOME", tree.sibling("cuda-12.4")).env("CUDNN_PATH", tree.sibling("cudnn-9.10"));
    let plain = plain.run().success();
    assert!(plain.stderr.contains("Finished") && !plain.stderr.contains("Compiling cudarc"), "{plain}");
    let kept = build("cudnn-9.10").expect(1);
    // The script would fail for 9.1 if it ran.
    let unknown = build("cudnn-9.1").expect(1);
    snapshot::check(
        "graph/cudnn-kept",
        &format!(
            "$ cargo cudaguard build --release\n{}\n$ with CUDNN_PATH of 9.1\n{}",
            of_kept(&tree, &kept),
            of_kept(&tree, &unknown)
        ),
    );
}

/// Features that only a build script or another workspace member requests are not in the program.
#[e2e(slow)]
fn call_features_select_the_graph() {
    let workspace = "[workspace]\nmembers = [\"app\", \"other\"]\nresolver = \"2\"\n";
    let tree = Tree::new("features", "");
    tree.write("Cargo.toml", workspace);
    let cudarc = |features: &str| {
        format!("{{ version = \"=0.19.10\", default-features = false, features = [{features}], optional = true }}")
    };
    let member = |name: &str, features: &str, more: &str| {
        format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[features]\ngpu = [\"dep:cudarc\"]\n\
             [dependencies]\ncudarc = {}\n{more}",
            cudarc(features)
        )
    };
    let linked = "\"driver\", \"runtime\", \"dynamic-linking\", \"cuda-13000\"";
    let build = "[build-dependencies]\ncudarc = { version = \"=0.19.10\", default-features = false, features = \
                 [\"cuda-12080\", \"dynamic-loading\"] }\n";
    tree.write("app/Cargo.toml", &member("app", linked, build));
    tree.write("app/src/main.rs", "fn main() {}\n");
    tree.write(
        "other/Cargo.toml",
        &member("other", "\"driver\", \"runtime\", \"dynamic-linking\", \"cuda-12080\"", ""),
    );
    tree.write("other/src/main.rs", "fn main() {}\n");
    crates::settle(&tree.root());
    let printed = |arguments: &[&str]| {
        let call: Vec<&str> = ["check", "--release"].iter().chain(arguments).copied().collect();
        tree.printed(&tree.call("13.0", &call).run())
    };
    assert!(!printed(&["-p", "app"]).contains("[CG15"), "the feature is off");
    let on = printed(&["-p", "app", "--features", "gpu"]);
    assert!(!on.contains("[CG15"), "only the build script takes 12.8: {on}");
    let other = printed(&["-p", "other", "-F", "gpu"]);
    assert!(other.contains("error[CG150]") && other.contains("other/Cargo.toml:8"), "{other}");
    let all = printed(&["--workspace", "--all-features"]);
    assert!(!all.contains("[CG15"), "cargo gives each the features of both, and the newest level counts: {all}");
}
