//! The subcommands `run`, `test`, `install`, `check`, `inspect`, `exec` and `explain`, and the help.

use std::fs;

use cudaguard_tests::{command, e2e, fake_library, snapshot};

use super::fixture::{Fixture, package, summary};

const MAIN: &str = "fn main() {\n    let words: Vec<String> = std::env::args().skip(1).collect();\n    \
                    println!(\"ran {words:?}\");\n}\n";

fn program(name: &str) -> Fixture {
    Fixture::new(name, &[("Cargo.toml", &package("app", "[workspace]\n")), ("src/main.rs", MAIN)])
}

/// docs/reference/cli.md has the long help.
#[e2e]
fn help_lists_subcommands() {
    for (name, words) in
        [("help-short", &["cudaguard", "-h"][..]), ("help-verify-short", &["cudaguard", "verify", "-h"])]
    {
        snapshot::check(&format!("wrapper/{name}"), &command::call(words).run().success().stdout);
    }
    assert!(command::call(["--version"]).run().success().stdout.starts_with("cargo-cudaguard "));
    let _ = command::call(["no-such-verb"]).run().expect(2);
    for verb in ["build", "run", "test", "install"] {
        let printed = command::call([verb, "--help"]).run().success().stdout;
        let (ours, cargos) = printed.split_once("Help of `cargo ").expect("both");
        assert!(ours.contains(&format!("Usage: cargo cudaguard {verb} [CARGO OPTIONS]")), "{printed}");
        assert!(ours.contains("Example") && ours.contains("Exit status:"), "{printed}");
        assert!(cargos.contains("--target-dir"), "{printed}");
    }
    let by_name = command::call(["--help"]).run().success().stdout;
    assert!(by_name.contains("Usage: cargo-cudaguard [OPTIONS] <COMMAND>"), "{by_name}");
}

#[e2e(slow)]
fn run_passes_program_arguments() {
    let fixture = program("started");
    let outcome = fixture.guard(["run", "--release", "--", "--quiet", "two words"]).run().success();
    assert_eq!(outcome.stdout, "ran [\"--quiet\", \"two words\"]\n");
    assert_eq!(summary(&outcome), "cudaguard: 1 of 1 target guarded (no CUDA toolkit)");
    let at = |text: &str| outcome.stderr.find(text).unwrap_or_else(|| panic!("{text}: {outcome}"));
    assert!(at("Running") < at("cudaguard: ") && outcome.stderr.contains(" exec -- target/release/app"), "{outcome}");
    // The program's environment contains no variables of the build.
    fixture.change(
        "src/main.rs",
        "fn main() {\n    for (name, _) in std::env::vars() {\n        println!(\"{name}\");\n    }\n}\n",
    );
    let names = fixture.guard(["run", "-q"]).run().success().stdout;
    for name in names.lines() {
        let ours = name.starts_with("CUDAGUARD_") && !["CUDAGUARD_PARTS", "CUDAGUARD_LOG"].contains(&name);
        assert!(!ours && !name.contains("WRAPPER"), "{name}");
    }
}

/// Returns a program that links a library which is missing at its start.
fn orphan(name: &str) -> Fixture {
    let fixture = Fixture::new(
        name,
        &[
            ("Cargo.toml", &package("app", "[workspace]\n")),
            (
                "src/main.rs",
                "extern \"C\" {\n    fn gone() -> u64;\n}\nfn main() {\n    println!(\"ran {}\", unsafe { gone() });\n}\n",
            ),
            (
                "build.rs",
                "fn main() {\n    println!(\"cargo:rustc-link-search=native=lib\");\n    println!(\"cargo:rustc-link-lib=gone\");\n}\n",
            ),
        ],
    );
    let _ = fake_library::shared_library("libgone.so.7").answers("gone", 7).make(&fixture.root.join("lib/libgone.so"));
    fixture
}

#[e2e]
fn run_reports_missing_libraries() {
    let fixture = orphan("orphan");
    let outcome = fixture.guard(["run"]).run().expect(78);
    assert!(outcome.stderr.contains("CG210") && outcome.stderr.contains("libgone.so.7"), "{outcome}");
    assert!(outcome.stdout.is_empty(), "{outcome}");
    let there = fixture.root.join("lib");
    let outcome = fixture.guard(["run"]).env("LD_LIBRARY_PATH", &there).run().success();
    assert_eq!(outcome.stdout, "ran 7\n");
    let outcome = fixture.guard(["exec", "--", "target/debug/app"]).run().expect(78);
    assert!(outcome.stderr.contains("libgone.so.7"), "{outcome}");
    // The loader reports the error if the guard is off.
    let _ = fixture.guard(["exec", "--", "target/debug/app"]).env("CUDAGUARD", "off").run().expect(127);
}

#[e2e]
fn exec_replaces_the_process() {
    let fixture = program("exec");
    let _ = fixture.guard(["build"]).run().success();
    let outcome = fixture.guard(["exec", "--", "target/debug/app", "-q", "--json"]).run().success();
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("ran [\"-q\", \"--json\"]\n", ""));
    assert_eq!(command::call(["exec", "--", "sh", "-c", "exit 9"]).run().status(), Some(9));
    assert_eq!(command::call(["exec", "--", "sh", "-c", "kill -TERM $$"]).run().signal(), Some(15));
    let outcome = command::call(["exec", "--", "/no/such/program"]).run().expect(2);
    assert!(outcome.stderr.contains("/no/such/program"), "{outcome}");
    // A non-executable file in PATH is skipped, and not checked instead of the started program.
    let (first, second) = (fixture.sibling("first"), fixture.built("debug"));
    fs::create_dir_all(&first).expect("a folder");
    let mut foreign = fs::read(second.join("app")).expect("it was built");
    foreign[18] = 183; // EM_AARCH64
    fs::write(first.join("app"), foreign).expect("it can be written");
    let path = std::env::join_paths([&first, &second]).expect("no colon in them");
    let outcome = fixture.guard(["exec", "--", "app"]).env("PATH", path).run().success();
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("ran []\n", ""));
}

#[e2e]
fn check_prints_toolchain_and_findings() {
    let manifest = package("app", "[workspace]\n[features]\ncudnn = []\n");
    let script = "fn main() {\n    println!(\"cargo:rustc-link-lib=cudnn\");\n}\n";
    let fixture = Fixture::new("check", &[("Cargo.toml", &manifest), ("build.rs", script), ("src/main.rs", MAIN)]);
    let outcome = fixture.guard(["check"]).run().success();
    assert!(outcome.stdout.starts_with("app 0.1.0 for ") && outcome.stderr.is_empty(), "{outcome}");
    let cudnn = fixture.sibling("cudnn");
    fake_library::cudnn(&cudnn, (9, 1, 0));
    let header = cudnn.join("include/cudnn_version.h");
    let text = fs::read_to_string(&header).expect("just written").replace("MINOR 1", "MINOR 4");
    fs::write(&header, text.replace("90100", "90400")).expect("it can be written");
    let check = |words: &[&str]| fixture.guard(words).env("CUDNN_PATH", &cudnn).run();
    assert!(check(&["check"]).success().stderr.contains("warning[CG110]"));
    assert!(check(&["check", "--release"]).expect(1).stderr.contains("error[CG110]"));
    let outcome = check(&["check", "--json", "-r"]).expect(1);
    let value = outcome.json();
    let finding = &value["findings"][0];
    for key in ["code", "severity", "component", "subject", "message", "hint"] {
        assert!(finding[key].is_string(), "{key}: {value}");
    }
    assert_eq!((finding["code"].as_str(), finding["component"].as_str()), (Some("CG110"), Some("app 0.1.0")));
    assert_eq!(value["packages"][0]["cudnn"]["version"], "9.4.0");
    assert!(!fixture.built("").exists(), "nothing is built, nothing is written");
    let _ = fixture.guard(["check", "--no-such-option"]).run().expect(2);
}

#[e2e]
fn inspect_works_without_manifest() {
    let fixture = program("inspect-none");
    let _ = fixture.cargo(["build"]).run().success();
    let outcome = fixture.guard(["inspect", "target/debug/app"]).run().expect(0);
    assert!(outcome.stderr.contains("no manifest"), "{outcome}");
    assert!(outcome.stdout.contains("target/debug/app: executable"), "what there is is shown: {outcome}");
    let outcome = fixture.guard(["inspect", "--json", "target/debug/app"]).run().expect(0);
    let value = outcome.json();
    assert_eq!(value["components"], serde_json::json!([]));
    for file in ["Cargo.toml", "nowhere"] {
        let outcome = fixture.guard(["inspect", file]).run().expect(2);
        assert!(outcome.stderr.contains(file) && outcome.stdout.is_empty(), "{outcome}");
    }
    // A directory is searched. The absence of CUDA in it is a valid result.
    let outcome = fixture.guard(["inspect", "src"]).run().expect(0);
    assert!(outcome.stdout.starts_with("src: directory"), "{outcome}");
}

#[e2e]
fn explain_prints_a_finding() {
    snapshot::check("wrapper/explain-cg202", &command::call(["explain", "cg202"]).run().success().stdout);
    let list = command::call(["explain"]).run().success().stdout;
    for code in cudaguard::internal::finding::Code::ALL {
        assert!(list.contains(&code.to_string()), "{code}");
        let text = command::call(["explain", &code.to_string()]).run().success().stdout;
        assert!(text.contains(code.title()) && text.contains("What to do"), "{text}");
    }
    let outcome = command::call(["explain", "CG999"]).run().expect(2);
    assert!(outcome.stderr.contains("CG999"), "{outcome}");
}
