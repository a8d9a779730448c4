//! `cudaguard.lock`.

use cudaguard_tests::{Call, Project, crates, e2e, snapshot};

use super::fixture::{Tree, equipped, with};

const FILE: &str = "cudaguard.lock";

#[e2e]
fn lock_is_written_and_updated() {
    let tree = Tree::package("lock-round");
    tree.write("cudaguard.toml", "[gpu]\narchs = [\"sm_80\", \"compute_90\"]\n");
    let absent = tree.call("13.0", &["check", "--release", "--locked"]).run().expect(2).clean_stderr();
    assert!(absent.contains("cudaguard.lock does not exist, but --locked requires it"), "{absent}");

    let printed = tree.call("12.4", &["lock"]).run().success().stdout;
    assert!(printed.contains("  toolkit: 12.4.131 (") && printed.contains("  archs: sm_80 compute_90\n"), "{printed}");
    let lock = tree.read(FILE);
    assert!(lock.contains("\ntoolkit = \"12.4.131\"\n") && lock.contains("\nhost-compiler = \"gcc "), "{lock}");
    assert!(lock.contains("\narchs = [\"sm_80\", \"compute_90\"]\n") && !lock.contains('/'), "{lock}");
    let printed = tree.call("12.4", &["lock"]).run().success().stdout;
    assert!(printed.ends_with("\ncudaguard.lock is up to date\n"), "{printed}");
    let _ = tree.call("12.4", &["lock", "--locked"]).run().success();
    assert_eq!(tree.read(FILE), lock);
    for arguments in [&["check"][..], &["check", "--release"], &["check", "--locked"]] {
        assert_eq!(tree.call("12.4", arguments).run().success().clean_stderr(), "", "{arguments:?}");
    }

    // A different toolkit is an error in release builds and with --locked, and a warning otherwise.
    let refused = tree.call("13.0", &["check", "--release"]).run().expect(1).clean_stderr();
    snapshot::check("policy/drift", &snapshot::paths(&refused, &[(tree.sibling(), "SCENE")]));
    for option in ["--locked", "--frozen"] {
        assert_eq!(tree.call("13.0", &["check", option]).run().expect(1).clean_stderr(), refused, "{option}");
    }
    let warned = tree.call("13.0", &["check"]).run().success().clean_stderr();
    assert_eq!(warned, refused.replace("error[", "warning["));

    for (value, status) in [("1", 1), ("true", 1), ("0", 0), ("false", 0), ("", 0)] {
        let _ = tree.call("13.0", &["check"]).env("CUDAGUARD_LOCKED", value).run().expect(status);
    }

    // Allows the drift with a reason, and reverts it.
    let policy = tree.read("cudaguard.toml");
    tree.write("cudaguard.toml", &format!("{policy}[allow]\nCG107 = \"trying 13\"\n"));
    let allowed = tree.call("13.0", &["check", "--release", "--locked"]).run().success().clean_stderr();
    assert!(allowed.starts_with("info[CG107]: ") && allowed.contains("allowed: trying 13"), "{allowed}");
    tree.write("cudaguard.toml", &policy);

    let kept = tree.call("13.0", &["lock", "--locked"]).run().expect(1).stdout;
    assert!(kept.contains("  toolkit: 12.4.131 → 13.0.131 ("), "{kept}");
    assert_eq!(tree.read(FILE), lock, "--locked writes nothing");
    let _ = tree.call("13.0", &["lock"]).run().success();
    assert_eq!(tree.read(FILE), lock.replace("12.4.131", "13.0.131"));
    assert_eq!(tree.call("13.0", &["check", "--release", "--locked"]).run().success().clean_stderr(), "");

    // A variable that was unset when the lock was written adds archs.
    let drifted = tree.call("13.0", &["check", "--release"]);
    tree.write("cudaguard.toml", "");
    let drifted = drifted.env("CUDAARCHS", "75").run().expect(1).clean_stderr();
    assert!(drifted.contains("archs differs from the lock: sm_80 compute_90 → "), "{drifted}");
    assert!(drifted.contains("(CUDAARCHS)"), "by which source: {drifted}");

    // A container's arch list for PyTorch does not concern this project.
    for (verb, words) in [(&["lock"][..], "toolkit: 13.0.131"), (&["check", "--release", "--locked"], "")] {
        let printed = tree.call("13.0", verb).env("TORCH_CUDA_ARCH_LIST", "8.0+PTX").run().success();
        assert!(printed.stdout.contains(words) && printed.clean_stderr().is_empty(), "{printed}");
        assert!(!tree.read(FILE).contains("\narchs"), "{}", tree.read(FILE));
    }
}

#[e2e]
fn lock_keeps_other_targets() {
    let tree = Tree::package("lock-targets");
    let head = "# The toolchain of this project. `cargo cudaguard lock`, or CMake's target cudaguard-lock, writes this file; commit it.\nversion = 1\n";
    let other = "\n[target.riscv64gc-unknown-linux-gnu]\ntoolkit = \"11.8.89\"\n";
    tree.write(FILE, &format!("{head}{other}"));
    let lacking = tree.call("12.4", &["check", "--release"]).run().success().clean_stderr();
    assert!(lacking.starts_with("warning[CG108]: "), "{lacking}");
    let refused = tree.call("12.4", &["check", "--locked"]).run().expect(1).clean_stderr();
    assert!(refused.starts_with("error[CG108]: "), "{refused}");
    let _ = tree.call("12.4", &["lock"]).run().success();
    let lock = tree.read(FILE);
    assert!(lock.starts_with(head) && lock.contains(other) && lock.contains("\"12.4.131\""), "{lock}");
    assert_eq!(tree.call("12.4", &["check", "--locked"]).run().success().clean_stderr(), "");
}

#[e2e(slow)]
fn workspace_shares_one_lock() {
    let member = |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    let tree = Tree::new(
        "lock-workspace",
        &[
            ("Cargo.toml", "[workspace]\nmembers = [\"a\", \"b\"]\nresolver = \"2\"\n"),
            ("a/Cargo.toml", &member("a")),
            ("a/src/main.rs", "fn main() {}\n"),
            ("b/Cargo.toml", &member("b")),
            ("b/src/main.rs", "fn main() {}\n"),
            ("cudaguard.toml", "[gpu]\narchs = [\"sm_80\"]\n[package.b.gpu]\narchs = [\"sm_90a\"]\n"),
        ],
    );
    crates::settle(&tree.sibling().join("tree"));
    let _ = tree.call("12.4", &["lock", "--manifest-path", "b/Cargo.toml"]).run().success();
    let lock = tree.read(FILE);
    assert!(lock.contains("\narchs = [\"sm_80\"]\n"), "{lock}");
    assert!(lock.ends_with(".packages]\nb = [\"sm_90a\"]\n"), "{lock}");
    let _ = tree.call("12.4", &["check", "--workspace", "--locked"]).run().success();
    tree.write("cudaguard.toml", "[gpu]\narchs = [\"sm_80\"]\n");
    let _ = tree.call("12.4", &["check", "-p", "a", "--locked"]).run().success();
    let drifted = tree.call("12.4", &["check", "-p", "b", "--locked"]).run().expect(1).clean_stderr();
    assert!(drifted.contains(": sm_90a → sm_80."), "{drifted}");
}

#[e2e]
fn unreadable_lock_names_its_line() {
    let tree = Tree::package("lock-bad");
    tree.write("cudaguard.toml", "[gpu]\narchs = [\"sm_80\"]\n");
    for (text, line, words) in [
        ("version = 1\n\n<<<<<<< HEAD\n", 3, "merge conflict markers"),
        ("version = 7\n", 1, "has format 7"),
        ("version = 1\n[target.t]\ntoolkit = 13\n", 3, "expected a version"),
        ("version = 1\n[target.t]\ntoolkti = \"13.0\"\n", 3, "no such key"),
    ] {
        tree.write(FILE, text);
        for verb in [&["check"][..], &["build"], &["lock"]] {
            let printed = tree.call("12.4", verb).run().expect(2).clean_stderr();
            assert!(
                printed.contains(&format!("cudaguard.lock:{line}: ")) && printed.contains(words),
                "{verb:?}: {printed}"
            );
        }
        assert_eq!(tree.read(FILE), text, "what cannot be read is not thrown away");
    }
}

#[e2e]
fn non_regular_lock_is_not_opened() {
    let tree = Tree::package("lock-fifo");
    for file in [FILE, "cudaguard.toml"] {
        let path = tree.sibling().join("tree").join(file);
        let _ = Call::new("mkfifo").arg(&path).run().success();
        let printed = tree.call("12.4", &["check"]).run().expect(2).clean_stderr();
        assert!(printed.contains(&format!("{file}: is not a regular file; expected a ")), "{printed}");
        std::fs::remove_file(path).expect("it was made");
    }
}

#[e2e(slow)]
fn lock_applies_to_plain_cargo() {
    let project = equipped(Project::guarded("lock-embedded").file("src/main.rs", "fn main() {}\n"));
    let sibling = project.sibling().to_owned();
    let cargo = |release: &str, arguments: &[&str]| with(project.cargo(arguments), &sibling, release);
    let compiles = |stderr: &str| stderr.lines().any(|line| line.trim_start().starts_with("Compiling "));
    let _ = with(project.cudaguard(["lock"]), &sibling, "12.4").run().success();

    let failed = cargo("13.0", &["build", "--release"]).run().expect(101);
    assert!(failed.stderr.contains("error[CG107]: ") && failed.stderr.contains("12.4.131 → 13.0.131"), "{failed}");
    let warned = cargo("13.0", &["build"]).run().success();
    assert!(warned.stderr.contains("warning[CG107]: "), "{warned}");
    let failed = cargo("13.0", &["build"]).env("CUDAGUARD_LOCKED", "1").run().expect(101);
    assert!(failed.stderr.contains("error[CG107]: "), "{failed}");
    let warned = cargo("13.0", &["build"]).env("CUDAGUARD_LOCKED", "0").run().success();
    assert!(warned.stderr.contains("warning[CG107]: "), "{warned}");
    // The build script only receives --locked through the command.
    let failed = with(project.cudaguard(["build", "--locked"]), &sibling, "13.0").run().expect(1);
    assert!(failed.stderr.contains("error[CG107]: "), "{failed}");

    // The lock is updated, and the guard is built once more.
    let lock = std::fs::read_to_string(project.path().join(FILE)).expect("it was written");
    let _ = cargo("13.0", &["build"]).run().success();
    project.change(FILE, lock.replace("12.4.131", "13.0.131"));
    let built = cargo("13.0", &["build"]).run().success();
    assert!(compiles(&built.stderr) && !built.stderr.contains("CG107"), "{built}");
}
