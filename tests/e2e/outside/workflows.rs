//! CI pipelines: the GitHub action, the pre-commit hook, the last line of the container recipe. Each test extracts the
//! commands from the file and runs them.

use std::{fs::Permissions, os::unix::fs::PermissionsExt};

use cudaguard_tests::{Call, Outcome, Scratch, command, e2e, places};

use crate::machine::fixture::{asks_driver, program};

fn template(name: &str) -> String {
    let path = places::workspace().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Creates a program for driver 580, and a directory with the command.
fn scene(name: &str) -> (Scratch, String) {
    let scratch = Scratch::new(name);
    program(&scratch.join("a program"), &[asks_driver()]);
    std::fs::create_dir(scratch.join("bin")).expect("a directory");
    std::os::unix::fs::symlink(command::path(), scratch.join("bin/cargo-cudaguard")).expect("a link");
    let path = format!("{}:{}", scratch.join("bin").display(), std::env::var("PATH").expect("PATH"));
    (scratch, path)
}

/// The runner starts a step with bash, which ends at the first error.
#[e2e(slow)]
fn github_action_verifies() {
    let action = template("action.yml");
    let (_, step) = action.split_once("- name: Verify\n").expect("the step");
    let step = step.split_once("    - name: Upload").map_or(step, |(step, _)| step);
    let (variables, script) = step.split_once("      run: |\n").expect("its script");
    let script: String =
        script.lines().map(|line| line.strip_prefix("        ").unwrap_or(line).to_owned() + "\n").collect();
    let inputs: Vec<(&str, &str)> =
        variables.lines().filter_map(|line| line.trim().strip_suffix(" }}")?.split_once(": ${{ inputs.")).collect();
    // All inputs but `prebuilt`, which another step reads.
    assert_eq!(inputs.len() + 1, action.matches("    description: ").count(), "{inputs:?}");
    let (scratch, path) = scene("action");
    let run = |given: &[(&str, &str)]| -> Outcome {
        let call =
            Call::new("bash").args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script]).dir(scratch.path());
        let value = |input: &str| given.iter().find(|(name, _)| *name == input).map_or("", |(_, value)| value);
        let call = inputs.iter().fold(call, |call, (variable, input)| call.env(variable, value(input)));
        let call = call.env("PATH", &path).env("GITHUB_ACTIONS", "true");
        call.env("GITHUB_STEP_SUMMARY", scratch.join("summary.md")).run()
    };
    let new = [("files", "a program\n"), ("driver", "580.95.05"), ("gpu", "A100,H100")];
    let _ = run(&new).success();
    let old = run(&[new[0], ("driver", "535.261.03"), new[2]]).expect(1);
    assert!(old.stdout.contains("::error file=a program::does not meet the requirements (status 1)"), "{old}");
    // Each file is looked at, whatever becomes of those before.
    let both = run(&[("files", "a program\nnone\n"), ("driver", "535.261.03"), new[2]]).expect(2);
    assert!(both.stdout.contains("::error file=a program::") && both.stdout.contains("::error file=none::"), "{both}");
    let fleet = r#"{"driver":{"user":"580.95.05"},"gpus":[{"name":"A100"}]}"#;
    scratch.file("fleet.jsonl", format!("{fleet}\n{}\n", fleet.replace("580.95.05", "535.261.03")));
    let _ = run(&[new[0], ("fleet", "fleet.jsonl")]).expect(1);
    let nowhere = run(&[new[0]]).expect(2);
    assert!(nowhere.stdout.contains("::error::set fleet, or driver and gpu"), "{nowhere}");

    // The requirements of a release, the summary and the findings for code scanning.
    let summary = || std::fs::read_to_string(scratch.join("summary.md")).unwrap_or_default();
    let _ = std::fs::remove_file(scratch.join("summary.md"));
    let on = [("summary", "true"), ("sarif", "true"), ("guarded", "true"), ("compare", "a program\n")];
    let _ = run(&[&[new[0], ("driver-floor", "580")], &on[..]].concat()).success();
    for title in ["### a program: GPU × driver", "### a program → a program", "No support is lost."] {
        assert!(summary().contains(title), "{title}: {}", summary());
    }
    let sarif = std::fs::read_to_string(scratch.join("cudaguard.sarif")).expect("findings");
    assert!(sarif.contains("sarif-2.1.0"), "{sarif}");
    let _ = run(&[new[0], ("driver-floor", "570")]).expect(1);
    scratch.file("cudaguard.toml", "[release]\ndriver-floor = \"570\"\n");
    let _ = run(&[new[0]]).expect(1);
}

/// The version that pre-commit and the action install is this one.
/// The command comes from a tarball; if that cannot be installed, cargo builds the checkout that contains the action.
#[e2e(slow)]
fn github_action_installs() {
    let action = template("action.yml");
    let (_, step) = action.split_once("- name: Install\n").expect("the step");
    let (_, script) = step.split_once("      run: |\n").expect("its script");
    let script = script.split_once("    - name: Verify").map_or(script, |(script, _)| script);
    let scratch = Scratch::new("install");
    let executable = |name: &str, script: &str| {
        let path = scratch.file(name, format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("a mode can be set");
        path
    };
    let command = executable("cudaguard-0.1.0/bin/cargo-cudaguard", "echo \"the command $*\"");
    let _ = executable("fake/cargo", "echo \"cargo $*\"; mkdir -p \"$6/bin\"; cp \"$COMMAND\" \"$6/bin/\"");
    let _ = Call::new("tar").args(["-czf", "a tarball.tar.gz", "cudaguard-0.1.0"]).dir(scratch.path()).run().success();
    let run = |prebuilt: &str, place: &str| {
        let call = Call::new("bash").args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
        let call = call.dir(scratch.path()).env("PREBUILT", prebuilt).env("RUNNER_TEMP", scratch.join(place));
        let call = call.env("GITHUB_PATH", scratch.join(place).with_extension("path"));
        let call = call.env("GITHUB_ACTION_PATH", places::workspace());
        call.env("COMMAND", &command).env("PATH", format!("{}:/usr/bin:/bin", scratch.join("fake").display())).run()
    };
    let unpacked = run("a tarball.tar.gz", "unpacked").success();
    assert!(
        unpacked.stdout.contains("the command --version") && !unpacked.stdout.contains("cargo install"),
        "{unpacked}"
    );
    for prebuilt in ["", "no such.tar.gz", "no-such.whl"] {
        let built = run(prebuilt, &format!("built {}", prebuilt.len())).success();
        assert!(
            built.stdout.contains("cargo install --locked --path ") && built.stdout.contains("the command --version"),
            "{built}"
        );
        assert_eq!(built.stdout.contains("::warning::"), !prebuilt.is_empty(), "{built}");
    }
}

/// The hook passes in a package without CUDA, and fails if the policy is invalid.
#[e2e]
fn pre_commit_hook_checks() {
    let (hook, project) = (template(".pre-commit-hooks.yaml"), template("pyproject.toml"));
    let version = env!("CARGO_PKG_VERSION");
    assert!(
        project.contains(&format!("version = \"{version}\"")) && project.contains(&format!("cudaguard=={version}"))
    );
    let entry = hook.lines().find_map(|line| line.trim().strip_prefix("entry: ")).expect("an entry");
    let (scratch, path) = scene("hook");
    scratch.file("Cargo.toml", "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n");
    scratch.file("src/main.rs", "fn main() {}\n");
    let run = || {
        let call = Call::new("sh").args(["-c", entry]).dir(scratch.path()).env("PATH", &path);
        call.env("CARGO_NET_OFFLINE", "true").run()
    };
    let _ = run().success();
    scratch.file("cudaguard.toml", "[toolkit]\nrequier = \"13\"\n");
    let wrong = run().expect(2);
    assert!(wrong.stderr.contains("requier"), "{wrong}");
}

/// Runs the last line of the container recipe, with the path of the local program.
#[e2e]
fn container_verifies() {
    let recipe = template("templates/examples/docker/Containerfile");
    let lines: Vec<&str> = recipe.lines().collect();
    let at = lines.iter().rposition(|line| line.starts_with("RUN ")).expect("a last line");
    let line = lines[at + 1].trim();
    let program = "/usr/local/bin/my-model";
    assert!(lines[at].ends_with('\\') && line.contains(program), "{line}");
    let (scratch, path) = scene("container");
    let line = line.replace(program, "'a program'");
    let run = |driver: &str| {
        let call = Call::new("sh").args(["-c", &line]).dir(scratch.path()).env("PATH", &path);
        call.env("DRIVER", driver).env("GPU", "A10,H100").run()
    };
    let _ = run("580.95.05").success();
    let _ = run("535").expect(1);
}
