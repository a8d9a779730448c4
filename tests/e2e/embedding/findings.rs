//! Findings of `embed!()` for a mixed toolchain, a policy and options.

use cudaguard_tests::{Project, e2e};

use super::{components, manifests, output};

/// `[build] unguarded` works under plain cargo if the package itself requests a guard: without a compiler, and with flags
/// that produce no guard.
#[e2e(slow)]
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
    assert_eq!(manifest["archs"].to_string(), r#"{"declared":["sm_80","compute_90"],"known":"declared"}"#);
    assert_eq!(manifest["cudnn"]["version"], "9.15.1");
    assert_eq!(manifest["requires"][0]["min"], "9.15.1", "no older patch, by the policy: {manifest}");
}
