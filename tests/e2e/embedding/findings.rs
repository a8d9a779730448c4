//! Findings of `embed!()` for a mixed toolchain, a policy and options.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use cudaguard_tests::{Call, Project, snapshot};

use super::{components, manifests, output};

/// Creates a fake toolkit that compiles nothing: an nvcc that prints its release, and a `cuda.h`.
fn toolkit(root: &Path, nvcc: (u32, u32), headers: (u32, u32)) {
    let (major, minor) = nvcc;
    let program = root.join("bin/nvcc");
    fs::create_dir_all(root.join("bin")).expect("a temporary directory takes directories");
    fs::create_dir_all(root.join("include")).expect("a temporary directory takes directories");
    let script = format!(
        "#!/bin/sh\ncat <<END\nnvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2024 NVIDIA Corporation\n\
         Built on Thu_Mar_28_02:18:24_PDT_2024\nCuda compilation tools, release {major}.{minor}, V{major}.{minor}.131\n\
         Build cuda_{major}.{minor}.r{major}.{minor}/compiler.34097967_0\nEND\n"
    );
    fs::write(&program, script).expect("a temporary directory takes files");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode can be set");
    let (major, minor) = headers;
    let number = major * 1000 + minor * 10;
    fs::write(root.join("include/cuda.h"), format!("#define CUDA_VERSION {number}\n")).expect("a file");
}

/// Returns a project with nvcc 12.4 in `PATH`, and `CUDA_HOME` with headers of 13.0.
fn mixed(name: &str) -> Project {
    let project = Project::guarded(name).file("src/main.rs", "fn main() {}\n");
    toolkit(&project.sibling().join("cuda-12.4"), (12, 4), (12, 4));
    toolkit(&project.sibling().join("cuda-13.0"), (13, 0), (13, 0));
    project
}

fn cargo(project: &Project, arguments: &[&str]) -> Call {
    let path = std::env::var("PATH").expect("a PATH");
    let nvcc = project.sibling().join("cuda-12.4/bin");
    let home = project.sibling().join("cuda-13.0");
    project.cargo(arguments).env("PATH", format!("{}:{path}", nvcc.display())).env("CUDA_HOME", home)
}

pub(super) fn mixed_toolchain_fails_release() {
    let project = mixed("mixed");
    let failed = cargo(&project, &["build", "--release"]).run().expect(101);
    let (_, reason) = failed.stderr.split_once("--- stderr\n").unwrap_or_else(|| panic!("no reason: {failed}"));
    assert!(!failed.stderr.contains("cargo:"), "no cargo directive precedes the reason: {failed}");
    snapshot::check("embedding/mixed", &snapshot::paths(reason.trim_end(), &[(project.sibling(), "SCENE")]));
}

pub(super) fn mixed_toolchain_warns_dev() {
    let project = mixed("mixed");
    let built = cargo(&project, &["build"]).run().success();
    assert_eq!(output(&built.stderr, "warning[CG101]"), 1, "{built}");
    assert_eq!(output(&built.stderr, "error["), 0, "{built}");
    assert_eq!(manifests(&project.built("debug/mixed"))[0]["toolkit"]["version"], "12.4.131");
}

pub(super) fn policy_sets_severity() {
    let project = mixed("mixed");
    project.write("cudaguard.toml", "[build]\nrelease = \"warn\"\n");
    let built = cargo(&project, &["build", "--release"]).run().success();
    assert_eq!(output(&built.stderr, "warning[CG101]"), 1, "{built}");

    project.change("cudaguard.toml", "[allow]\nCG101 = \"headers of 13.0 on purpose\"\nCG121 = \"gone long ago\"\n");
    let built = cargo(&project, &["build", "--release"]).run().success();
    assert_eq!(output(&built.stderr, "CG101"), 0, "{built}");
    let manifest = &manifests(&project.built("release/mixed"))[0];
    assert_eq!(manifest["allow"].to_string(), r#"{"CG101":"headers of 13.0 on purpose"}"#, "{manifest}");

    project.change("cudaguard.toml", "[build]\nrelese = \"warn\"\n");
    let failed = cargo(&project, &["build", "--release"]).run().expect(101);
    assert!(failed.stderr.contains("cudaguard.toml:2: ") && failed.stderr.contains("relese"), "{failed}");
}

/// `[build] unguarded` works under plain cargo if the package itself requests a guard: without a compiler, and with flags
/// that produce no guard.
pub(super) fn require_guard_refuses_unguarded_targets() {
    let project = Project::guarded("denied").file("src/main.rs", "fn main() {}\n");
    for (name, value) in
        [("CC", "/nowhere/cc"), ("CFLAGS", "-march=no-such-machine"), ("CFLAGS", "-fsyntax-only"), ("CFLAGS", "-S")]
    {
        let build = |policy: &str, words: &[&str]| {
            project.change("cudaguard.toml", policy);
            let call = project.cargo([&["build"], words].concat()).env(name, value);
            (call.run(), project.cudaguard([&["build"], words].concat()).env(name, value).run())
        };
        let deny = "build.unguarded = \"deny\"\n";
        let (plain, ours) = build(deny, &["--release"]);
        for refused in [&plain, &ours] {
            assert_ne!(refused.status(), Some(0), "{value}: {refused}");
            assert!(
                refused.stderr.contains("error[CG140]: denied 0.1.0 is built without the guard"),
                "{value}: {refused}"
            );
        }
        for (policy, words) in [(deny, &[][..]), ("", &["--release"])] {
            let (plain, ours) = build(policy, words);
            let (plain, _) = (plain.success(), ours.success());
            assert_eq!(output(&plain.stderr, "warning[CG140]"), 1, "{value}: {plain}");
        }
    }
}

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
    assert_eq!(manifest["archs"].to_string(), r#"{"declared":["sm_80","compute_90"],"known":"declared"}"#);
    assert_eq!(manifest["cudnn"]["version"], "9.15.1");
    assert_eq!(manifest["requires"][0]["min"], "9.15.1", "no older patch, by the policy: {manifest}");
}
