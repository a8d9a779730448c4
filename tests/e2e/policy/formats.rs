//! Machine-readable findings.

use cudaguard_tests::{Outcome, Project, e2e, scratch};
use serde_json::Value;

use super::fixture::{Tree, equipped, with};

/// Returns a package whose policy requires another toolkit and has an unused `allow`.
fn tree(name: &str) -> Tree {
    let tree = Tree::package(name);
    tree.write("cudaguard.toml", "[toolkit]\nrequire = \">=13\"\n");
    tree
}

#[e2e]
fn check_formats_match_snapshot() {
    let tree = tree("forms");
    let check = |form: &str| tree.call("12.4", &["check", "--release", "--format", form]).run().expect(1);
    let text = check("text");
    assert!(text.stderr.contains("error[CG103]: ") && text.stdout.contains("CUDA 12.4.131"), "{text}");
    let json: Value = serde_json::from_str(&check("json").stdout).expect("JSON");
    assert_eq!(json["findings"][0]["code"], "CG103");
    let github = check("github").stdout;
    let title = "::error title=CG103%3A the policy does not allow this toolkit::";
    assert!(github.starts_with(title) && github.lines().count() == 1 && github.contains("%0A"), "{github}");

    let sarif: Value = serde_json::from_str(&check("sarif").stdout).expect("JSON");
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    assert_eq!(run["tool"]["driver"]["name"], "cudaguard");
    let result = &run["results"][0];
    assert_eq!(result["ruleId"], "CG103");
    assert_eq!(result["level"], "error");
    let rule = &run["tool"]["driver"]["rules"][usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
    assert_eq!(rule["id"], result["ruleId"]);
    for text in [&rule["shortDescription"], &rule["fullDescription"], &rule["help"], &result["message"]] {
        assert!(text["text"].as_str().is_some_and(|text| !text.is_empty()), "{sarif}");
    }
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "Cargo.toml");
    assert_eq!(place["region"]["startLine"], 1);
    assert!(result.get("suppressions").is_none());

    tree.write("cudaguard.toml", "[toolkit]\nrequire = \">=13\"\n[allow]\nCG103 = \"old builder\"\n");
    let allowed = tree.call("12.4", &["check", "--release", "--format", "sarif"]).run().success().stdout;
    let allowed: Value = serde_json::from_str(&allowed).expect("JSON");
    assert_eq!(allowed["runs"][0]["results"][0]["level"], "note");
    assert_eq!(allowed["runs"][0]["results"][0]["suppressions"][0]["justification"], "old builder");

    let wrong = tree.call("12.4", &["check", "--format", "xml"]).run().expect(2);
    assert!(wrong.stderr.contains("sarif"), "{wrong}");
}

/// A typing error in a workflow must not pass.
#[e2e]
fn nothing_to_check_is_reported() {
    let tree = tree("forms-nothing");
    for (arguments, words) in [
        (&["check", "-p", "ap"][..], "error: this workspace has no package `ap`; did you mean `app`?\n"),
        (&["check", "-p", "app", "-p", "nobody", "--json"], "error: this workspace has no package `nobody`\n"),
        (&["check", "--profile", "relase"], "error: profile `relase` is not defined\n"),
        (&["init", "-p", "nobody"], "error: this workspace has no package `nobody`\n"),
    ] {
        let printed = tree.call("12.4", arguments).run().expect(2);
        assert_eq!((printed.stdout.as_str(), printed.clean_stderr().as_str()), ("", words), "{arguments:?}");
    }
    let _ = tree.call("12.4", &["check", "-p", "a*@0.1"]).run().success();
    for verb in ["check", "lock"] {
        for (target, words) in [
            ("nonsense", " cannot build for target `nonsense`: "),
            ("x.json", "x.json: target specification not found"),
        ] {
            let printed = tree.call("12.4", &[verb, "--target", target]).run().expect(2);
            assert_eq!(printed.stdout, "", "{verb}");
            assert!(printed.stderr.contains(words), "{printed}");
        }
    }
    assert!(!tree.sibling().join("tree/cudaguard.lock").exists(), "nothing is locked for what no compiler knows");
    let _ = tree.call("12.4", &["check", "--target", "aarch64-unknown-linux-gnu"]).run().success();
}

/// GitHub resolves paths from the top of the repository.
#[e2e]
fn subdirectory_paths_are_relative() {
    let manifest = cudaguard_tests::project::package("app");
    let tree = Tree::new(
        "forms-below",
        &[
            ("native/app/Cargo.toml", &manifest),
            ("native/app/src/main.rs", "fn main() {}\n"),
            ("native/app/cudaguard.toml", "[toolkit]\nrequire = \">=13\"\n"),
        ],
    );
    let below = tree.sibling().join("tree/native/app");
    let printed = tree.call("12.4", &["check", "--release", "--format", "sarif"]).dir(below).run().expect(1).stdout;
    let sarif: Value = serde_json::from_str(&printed).expect("JSON");
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "native/app/Cargo.toml");
}

#[e2e]
fn workflow_annotations_are_printed() {
    let tree = tree("annotations");
    for arguments in [&["check", "--release"][..], &["check", "--release", "--json"], &["build", "--release"]] {
        let printed = tree.call("12.4", arguments).env("GITHUB_ACTIONS", "true").run().expect(1);
        let ours: Vec<&str> = printed.stderr.lines().filter(|line| line.starts_with("::")).collect();
        assert_eq!(ours.len(), 1, "{printed}");
        assert!(ours[0].starts_with("::error title=CG103%3A "), "{printed}");
        assert!(!printed.stdout.contains("::error"), "stdout is the report's: {printed}");
    }
    let fine = tree.call("13.0", &["check", "--release"]).env("GITHUB_ACTIONS", "true").run().success();
    assert!(!fine.stderr.contains("::"), "{fine}");
}

/// cargo prints the output of a failing build script indented, and the runner ignores leading blanks.
#[e2e(slow)]
fn build_script_annotations_are_printed() {
    let project = equipped(Project::guarded("annotated").file("src/main.rs", "fn main() {}\n"));
    project.write("cudaguard.toml", "[toolkit]\nrequire = \">=13\"\n");
    let call = |project: &Project| with(project.cargo(["build", "--release"]), project.sibling(), "12.4");
    let printed = call(&project).env("GITHUB_ACTIONS", "true").run().expect(101);
    let ours: Vec<&str> = printed.stderr.lines().map(str::trim_start).filter(|line| line.starts_with("::")).collect();
    assert_eq!(ours.len(), 1, "{printed}");
    assert!(ours[0].starts_with("::error title=CG103%3A ") && ours[0].contains("%0Ahint: "), "{printed}");
    let plain = call(&project).run().expect(101);
    assert!(!plain.stderr.contains("::error"), "{plain}");
    // An unreadable policy is not a finding, but is annotated anyway.
    project.change("cudaguard.toml", "[build]\nrelese = \"warn\"\n");
    let by_cargo = call(&project).env("GITHUB_ACTIONS", "true").run().expect(101);
    let check = with(project.cudaguard(["check"]), project.sibling(), "12.4").env("GITHUB_ACTIONS", "true");
    for printed in [by_cargo, check.run().expect(2)] {
        let ours: Vec<&str> =
            printed.stderr.lines().map(str::trim_start).filter(|line| line.starts_with("::")).collect();
        assert_eq!(ours.len(), 1, "{printed}");
        assert!(
            ours[0].starts_with("::error title=cudaguard::") && ours[0].contains("cudaguard.toml:2: "),
            "{printed}"
        );
    }
}

#[e2e(slow)]
fn linked_file_annotations_are_printed() {
    let script = |path: &str| format!("fn main() {{\n    println!(\"cargo:rustc-link-arg=-Wl,-rpath,{path}\");\n}}\n");
    let policy = "[toolkit]\nrequire = \">=12\"\n";
    let project = Project::new("annotated").file("src/main.rs", "fn main() {}\n").file("cudaguard.toml", policy);
    let project = equipped(project);
    let build = |path: &str| {
        project.change("build.rs", script(path));
        let call = with(project.cudaguard(["build", "--release"]), project.sibling(), "12.4");
        call.env("GITHUB_ACTIONS", "true").run()
    };
    let lines = |printed: &Outcome| -> Vec<String> {
        printed.stderr.lines().filter(|line| line.starts_with("::")).map(str::to_owned).collect()
    };
    let refused = build("/opt/cuda/lib64/stubs").expect(101);
    let ours = lines(&refused);
    assert!(ours.len() == 1 && ours[0].starts_with("::error title=CG106%3A "), "{refused}");
    let warned = build("/tmp/built/here").success();
    let ours = lines(&warned);
    assert!(ours.len() == 1 && ours[0].starts_with("::warning title=CG134%3A "), "{warned}");
}

#[e2e(slow)]
fn stale_allows_are_reported() {
    let tree = Tree::package("stale");
    tree.write("cudaguard.toml", "[allow]\nCG101 = \"old headers\"\n");
    let printed = tree.call("12.4", &["check", "--release"]).run().success().clean_stderr();
    assert!(printed.starts_with("info[CG109]: CG101 is allowed, but this build has no such finding."), "{printed}");
    assert!(printed.contains("old headers") && printed.contains("cudaguard.toml"), "{printed}");
}

#[e2e]
fn unknown_packages_are_reported() {
    let tree = Tree::package("strangers");
    tree.write("cudaguard.toml", "[package.app.build]\ndev = \"deny\"\n[package.ap.build]\nrelease = \"warn\"\n");
    let printed = tree.call("12.4", &["check"]).run().success().clean_stderr();
    assert!(
        printed
            .starts_with("warning[CG141]: the policy has a table for the package ap, which is not in this workspace"),
        "{printed}"
    );
    assert!(printed.contains("did you mean package.app?") && printed.matches("CG141").count() == 1, "{printed}");
    assert!(printed.contains("tree/cudaguard.toml:3\n"), "{printed}");
}

/// A variable that names a missing directory, or one with nothing in it, is reported by its name, and not ignored. It is a finding
/// only if the package uses what the variable names, like a host compiler that nvcc does not accept.
#[e2e]
fn variables_are_findings_if_used() {
    let tree = Tree::package("gone-directories");
    tree.write("empty/file", "");
    let empty = tree.sibling().join("tree/empty").display().to_string();
    let newer = tree.sibling().join("g++-99");
    scratch::program(&newer, "#!/bin/sh\necho 'g++-99 (a fake) 99.1.0'\necho '(C) Free Software Foundation, Inc.'\n");
    let newer = newer.display().to_string();
    let none = "names a path without any part of CUDA or cuDNN.";
    let rows = [
        ("CUDA_PATH", "/nowhere", "CG104", none, "warning"),
        ("CUDA_PATH", &empty, "CG104", none, "warning"),
        ("NVCC", "/nowhere", "CG104", none, "warning"),
        ("NVCC_CCBIN", &newer, "CG105", "does not accept gcc 99", "error"),
        ("CUDNN_PATH", "/nowhere", "CG104", none, "info"),
        ("CUDNN_PATH", &empty, "CG104", none, "info"),
    ];
    for uses_cuda in [false, true] {
        if uses_cuda {
            tree.write("src/k.cu", "");
        }
        for (variable, value, code, problem, severity) in rows {
            let call = tree.call("13.0", &["check", "--release"]).env(variable, value);
            // Only the build script knows which compiler calls nvcc, unless both are the same.
            let checked = if variable == "NVCC_CCBIN" { call.env("CXX", value) } else { call }.run();
            let severity = if uses_cuda { severity } else { "info" };
            let line = checked.stderr.lines().find(|line| line.starts_with(&format!("{severity}[{code}]: ")));
            assert!(line.is_some_and(|line| line.contains(problem)), "{variable} {value} {uses_cuda}: {checked}");
            assert_eq!(checked.status(), Some(i32::from(severity == "error")), "{checked}");
        }
    }
    tree.write("cudaguard.toml", "[cudnn]\nrequire = \"^9.1\"\n");
    let missing = tree.call("13.0", &["check"]).env("CUDNN_PATH", "/nowhere").run().success();
    assert!(missing.stderr.contains("warning[CG104]: CUDNN_PATH names"), "{missing}");
}
