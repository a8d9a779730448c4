//! Findings of `embed!()` for a mixed toolchain, a policy and options.

use cudaguard_tests::{Project, e2e, parts, project, tools};

use super::{components, manifests, output};

#[e2e(slow)]
pub(super) fn builder_options_are_applied() {
    let project = Project::guarded("options")
        .file("src/main.rs", "fn main() {}\n")
        .file(
            "vendor/cudnn/cudnn_version.h",
            "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 15\n#define CUDNN_PATCHLEVEL 1\n",
        )
        .file("policies/strict.toml", "[cudnn]\npatch = \"refuse\"\n")
        .file(
            "build.rs",
            "fn main() {\n    cudaguard::Embed::new()\n        .policy(\"policies/strict.toml\")\n        \
             .cudnn_include(\"vendor/cudnn\")\n        .archs([\"sm_80\", \"compute_90\"])\n        \
             .component(\"engine\", \"9.9.9\")\n        .embed();\n}\n",
        );
    let _ = project.cargo(["build"]).run().success();
    let program = project.built("debug/options");
    assert_eq!(components(&program), ["engine"]);
    let manifest = &manifests(&program)[0];
    assert_eq!(manifest["component"]["version"], "9.9.9");
    assert_eq!(manifest["archs"], serde_json::json!({"known": "declared", "declared": ["sm_80", "compute_90"]}));
    assert_eq!(manifest["cudnn"]["version"], "9.15.1");
    assert_eq!(manifest["requires"][0]["min"], "9.15.1", "no older patch, by the policy: {manifest}");
}

/// nvcc fails before `embed!()` because of the host compiler. The command reports the cause after cargo's error.
#[e2e(slow)]
pub(super) fn rejected_compiler_is_reported_last() {
    tools::need("g++-12");
    let project = Project::guarded("early").file("src/main.rs", "fn main() {}\n").file("k.cu", "").file(
        "build.rs",
        "fn main() {\n    let object = std::env::var(\"OUT_DIR\").unwrap() + \"/k.o\";\n    \
         let nvcc = std::process::Command::new(\"nvcc\").args([\"-c\", \"k.cu\", \"-o\", &object]).status();\n    \
         assert!(nvcc.unwrap().success());\n    cudaguard::embed!();\n}\n",
    );
    let build = |words: &[&str]| {
        let path = std::env::join_paths(
            [parts::cuda("11.8").join("bin")]
                .into_iter()
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        );
        project.cudaguard(words).env("PATH", path.expect("a PATH")).env("NVCC_CCBIN", "g++-12").run()
    };
    let failed = build(&["build"]);
    let Some((_, last)) = failed.stderr.rsplit_once("unsupported GNU version") else {
        panic!("the error of nvcc: {failed}")
    };
    assert!(last.contains("[CG105]"), "{failed}");
}

/// A wrong path in a variable is a finding only if the build may use a toolkit. A build script sees no crates but those in
/// `Cargo.lock`.
#[e2e]
pub(super) fn toolkit_is_checked_if_the_lock_shows_use() {
    let features = "[features]\ndynamic-loading = []\ndynamic-linking = []\n";
    let project = Project::guarded("loads")
        .file("src/main.rs", "fn main() {}\n")
        .file("../cudarc/src/lib.rs", "")
        .file("../cudarc/Cargo.toml", project::package("cudarc") + features);
    let manifest = std::fs::read_to_string(project.path().join("Cargo.toml")).expect("a manifest");
    for (feature, warned) in [("dynamic-loading", 0), ("dynamic-linking", 1), ("dynamic-loading", 0)] {
        let dependency = format!("\n[dependencies]\ncudarc = {{ path = \"../cudarc\", features = [\"{feature}\"] }}\n");
        project.change("Cargo.toml", manifest.clone() + &dependency);
        let built = project.cargo(["build"]).env("CUDA_HOME", "/nowhere").run().success();
        assert_eq!(output(&built.stderr, "warning[CG104]"), warned, "{feature}: {built}");
    }
}
