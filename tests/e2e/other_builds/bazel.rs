//! Bazel, offline: the rules of the documentation, and replacements for the parts of its C rules that Bazel would download.

use std::fs;
use std::os::unix::fs::symlink;

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

/// Returns a call that only writes to the project's directory, with errors in its output. It uses the system's compiler, because Bazel passes the
/// compiler's directory to the linker without quotes.
fn call(project: &Project) -> Call {
    let home = project.0.join("home");
    let call = project.call("sh").args(["-c", "exec \"$@\" 2>&1", "sh"]).arg(tools::need("bazel"));
    let call = call.args(["--max_idle_secs=120", "--nohome_rc"]);
    let call = call.arg(format!("--output_user_root={}", project.0.join("out").display()));
    call.env("HOME", home).env("PATH", compiled_once::left_out(&project.search_path()))
}

/// Runs a command of Bazel with these arguments.
pub(super) fn run(project: &Project, words: &[&str]) -> Outcome {
    let rules = RULES.iter().map(|(name, _)| {
        format!("--override_repository=rules_{name}={}", project.0.join(format!("rules_{name}")).display())
    });
    call(project).args(&words[..1]).args(rules).arg("--color=no").args(&words[1..]).run()
}

/// Stops the server. Makes Bazel's directories writable, because otherwise only root could delete them.
pub(super) fn end(project: &Project) {
    let _ = call(project).arg("shutdown").run();
    let _ = project.shell("chmod -R u+w ../out");
}

struct Ended<'a>(&'a Project);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        end(self.0);
    }
}

/// Returns the project of the page, which uses the toolkit in its directory `toolkit`.
pub(super) fn project() -> Project {
    let _ = tools::need("bazel");
    // Bazel rejects a path with a blank.
    let project = Project::below(Scratch::without_blanks("bazel"));
    for (name, rules) in RULES {
        let text = rules.iter().map(|rule| format!("{rule} = native.{rule}\n")).collect::<Vec<_>>().concat();
        project.write(&format!("../rules_{name}/WORKSPACE"), "");
        project.write(&format!("../rules_{name}/{name}/BUILD"), "");
        project.write(&format!("../rules_{name}/{name}/defs.bzl"), &text);
    }
    let [file] = &blocks("python")[..] else { panic!("one BUILD file") };
    project.write("WORKSPACE", "");
    project.write("BUILD", &file.replace("/usr/local/cuda", &project.path("toolkit").display().to_string()));
    project
}

#[e2e(slow)]
fn bazel() {
    let project = project();
    let _ended = Ended(&project);
    symlink(parts::cuda("13.0"), project.path("toolkit")).expect("a link can be made");
    let build = || run(&project, &["build", "//:my-model"]);
    let built = build().success();
    assert!(!built.stdout.contains("cudaguard: ") && !built.stdout.contains("[CG"), "{built}");
    is_whole(&project, "bazel-bin/my-model-sealed");
    let sealed = fs::read(project.path("bazel-bin/my-model-sealed")).expect("it was built");
    project.write("cudaguard.toml", "gpu.fleet = [\"A100\"]\n");
    let _ = build().success();
    is_whole(&project, "bazel-bin/my-model-sealed");
    fs::remove_file(project.path("cudaguard.toml")).expect("just written");
    let _ = build().success();
    assert_eq!(fs::read(project.path("bazel-bin/my-model-sealed")).ok(), Some(sealed), "equal inputs, equal bytes");
}
