//! Bazel, offline: the rules of the documentation, and replacements for the parts of its C rules that Bazel would download.

use std::fs;

use cudaguard_tests::{Call, Outcome, Scratch, compiled_once, e2e, parts, tools};

use super::{Project, blocks, is_whole};

/// Files that Bazel's own rules load from repositories on the network. They re-export built-in rules.
const RULES: &[(&str, &[&str])] = &[
    (
        "cc",
        &[
            "cc_binary",
            "cc_import",
            "cc_library",
            "cc_proto_library",
            "cc_test",
            "cc_toolchain",
            "cc_toolchain_suite",
            "fdo_prefetch_hints",
            "fdo_profile",
            "objc_import",
            "objc_library",
            "cc_toolchain_alias",
        ],
    ),
    (
        "java",
        &[
            "java_binary",
            "java_import",
            "java_library",
            "java_package_configuration",
            "java_plugin",
            "java_proto_library",
            "java_runtime",
            "java_test",
            "java_toolchain",
        ],
    ),
];

/// Returns a call that only writes to the project's directory. It uses the system's compiler, because Bazel passes the
/// compiler's directory to the linker without quotes.
fn call(project: &Project) -> Call {
    let home = project.0.join("home");
    let call = project.call(tools::need("bazel")).args(["--max_idle_secs=120", "--nohome_rc"]);
    let call = call.arg(format!("--output_user_root={}", project.0.join("out").display()));
    call.env("HOME", home).env("PATH", compiled_once::left_out(&project.search_path()))
}

fn build(project: &Project) -> Outcome {
    let rules = RULES.iter().map(|(name, _)| {
        format!("--override_repository=rules_{name}={}", project.0.join(format!("rules_{name}")).display())
    });
    call(project).arg("build").args(rules).args(["--color=no", "//:my-model"]).run()
}

/// Stops the server. Makes Bazel's directories writable, because otherwise only root could delete them.
struct Ended<'a>(&'a Project);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let _ = call(self.0).arg("shutdown").run();
        let _ = self.0.shell("chmod -R u+w ../out");
    }
}

#[e2e(slow)]
fn bazel() {
    let _ = tools::need("bazel");
    // Bazel rejects a path with a blank.
    let project = Project::below(Scratch::without_blanks("bazel"));
    let _ended = Ended(&project);
    for (name, rules) in RULES {
        let text = rules.iter().map(|rule| format!("{rule} = native.{rule}\n")).collect::<Vec<_>>().concat();
        project.write(&format!("../rules_{name}/WORKSPACE"), "");
        project.write(&format!("../rules_{name}/{name}/BUILD"), "");
        project.write(&format!("../rules_{name}/{name}/defs.bzl"), &text);
    }
    let [file] = &blocks("python")[..] else { panic!("one BUILD file") };
    project.write("WORKSPACE", "");
    let toolkit = project.0.join("cuda");
    std::os::unix::fs::symlink(parts::cuda("13.0"), &toolkit).expect("a link can be made");
    project.write("BUILD", &file.replace("/usr/local/cuda", &toolkit.display().to_string()));
    let build = || build(&project);
    let built = build().success();
    assert!(!built.stderr.contains("cudaguard: ") && !built.stderr.contains("[CG"), "{built}");
    is_whole(&project, "bazel-bin/my-model-sealed");
    // Both rules detect a new policy.
    let sealed = fs::read(project.path("bazel-bin/my-model-sealed")).expect("it was built");
    project.write("cudaguard.toml", "gpu.fleet = [\"T4\"]\n");
    let refused = build();
    assert_ne!(refused.status(), Some(0), "{refused}");
    assert!(refused.stderr.contains("error[CG130]") && refused.stderr.contains("T4"), "{refused}");
    project.write("cudaguard.toml", "gpu.fleet = [\"A100\"]\n");
    let _ = build().success();
    is_whole(&project, "bazel-bin/my-model-sealed");
    fs::remove_file(project.path("cudaguard.toml")).expect("just written");
    let _ = build().success();
    assert_eq!(fs::read(project.path("bazel-bin/my-model-sealed")).ok(), Some(sealed), "equal inputs, equal bytes");
}
