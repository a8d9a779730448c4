//! Interaction with cargo: other wrappers, its output, its status, its configuration.

use std::fs;

use cudaguard_tests::{Outcome, Scratch, e2e};

use super::fixture::{Fixture, GUARDED, cargo, compiled, notes, package, sealed, set, summary};
use cudaguard_tests::scratch;

const MAIN: &str = "fn main() {\n    println!(\"ran\");\n}\n";

fn program(name: &str) -> Fixture {
    Fixture::new(name, &[("Cargo.toml", &package("app", "[workspace]\n")), ("src/main.rs", MAIN)])
}

/// Creates a wrapper that logs its arguments.
fn wrapper(fixture: &Fixture, name: &str) -> std::path::PathBuf {
    let script = fixture.sibling(name);
    scratch::program(&script, "#!/bin/sh\nprintf '%s\\n' \"$*\" >> \"$0.log\"\nexec \"$@\"\n");
    script
}

fn log(script: &std::path::Path) -> String {
    fs::read_to_string(script.with_extension("log")).unwrap_or_default()
}

#[e2e(slow)]
fn environment_wrappers_are_chained() {
    let fixture = program("chain");
    let (outer, inner) = (wrapper(&fixture, "outer"), wrapper(&fixture, "inner"));
    let call = || fixture.guard(["build", "-v"]).env("RUSTC_WRAPPER", &outer).env("RUSTC_WORKSPACE_WRAPPER", &inner);
    let _ = call().run().success();
    let _ = sealed(&fixture.built("debug/app"), "app");
    let line = |log: &str| log.lines().find(|line| line.contains("--crate-name app ")).unwrap_or_default().to_owned();
    let seen = line(&log(&outer));
    // sccache and similar wrappers query the program that they call, which must be the same as without cudaguard.
    assert!(!seen.contains("cargo-cudaguard "), "the outer one meets no wrapper of ours: {seen}");
    assert!(seen.contains("inner") && seen.contains("link-arg="), "the outer one calls the inner one: {seen}");
    let seen = line(&log(&inner));
    assert!(seen.contains("rustc --crate-name app ") && seen.contains("link-arg="), "which calls the compiler: {seen}");
    assert_eq!(compiled(&call().run().success()), set(&[]), "nothing changed");
}

#[e2e(slow)]
fn configured_wrapper_is_chained() {
    let fixture = program("chain-config");
    let inner = wrapper(&fixture, "inner");
    fixture.write(".cargo/config.toml", format!("[build]\nrustc-workspace-wrapper = '{}'\n", inner.display()));
    let _ = fixture.guard(["build"]).run().success();
    let _ = sealed(&fixture.built("debug/app"), "app");
    assert!(log(&inner).contains("--crate-name app "), "{}", log(&inner));
}

/// cargo separates the outputs of different wrappers, and cudaguard separates those of wrappers that it calls.
#[e2e(slow)]
fn changed_wrapper_rebuilds() {
    let fixture = program("chain-change");
    let (one, other) = (wrapper(&fixture, "one"), wrapper(&fixture, "other"));
    let call = |script| fixture.guard(["build", "-v"]).env("RUSTC_WORKSPACE_WRAPPER", script).run().success();
    assert_eq!(compiled(&call(&one)), set(&["app:bin"]));
    assert_eq!(compiled(&call(&other)), set(&["app:bin"]));
    assert_eq!(compiled(&fixture.guard(["build", "-v"]).run().success()), set(&["app:bin"]));
    assert_eq!(compiled(&call(&one)), set(&[]));
}

/// Removes hashes, times and the directory from cargo's output.
fn same(text: &str, fixture: &Fixture) -> String {
    let dir = fixture.root.display().to_string();
    // Replaces the directory in plain and URL form.
    let in_url = |byte: u8| match byte {
        b' ' | 128.. => format!("%{byte:02X}"),
        _ => char::from(byte).to_string(),
    };
    let url: String = dir.bytes().map(in_url).collect();
    let text = text.replace(&dir, "<tree>").replace(&url, "<tree>");
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut kept = String::new();
        let mut rest = line;
        while let Some(at) = rest.find('-') {
            let (before, after) = rest.split_at(at + 1);
            kept.push_str(before);
            let hash = after.chars().take_while(char::is_ascii_hexdigit).count();
            if hash == 16 {
                kept.push_str("<hash>");
                rest = &after[16..];
            } else {
                rest = after;
            }
        }
        kept.push_str(rest);
        if let Some((printed, _)) = kept.split_once(" target(s) in ") {
            kept = format!("{printed} target(s)");
        }
        lines.push(kept);
    }
    lines.join("\n")
}

#[e2e(slow)]
fn message_formats_are_kept() {
    let text = "fn main() {\n    let unused = 1;\n    println!(\"ran\");\n}\n";
    for format in
        ["human", "short", "json", "json-diagnostic-short", "json-diagnostic-rendered-ansi", "json-render-diagnostics"]
    {
        let fixture = |name: &str| {
            let fixture = program(&format!("format-{name}"));
            fixture.write("src/main.rs", text);
            fixture
        };
        let (plain, guarded) = (fixture("plain"), fixture("guarded"));
        let words = ["build", "--message-format", format];
        let by_cargo = plain.cargo(words).run().success();
        let by_us = guarded.guard(words).run().success();
        assert_eq!(same(&by_us.stdout, &guarded), same(&by_cargo.stdout, &plain), "{format}: stdout");
        let announced = |line: &&str| line.contains("cudaguard's start-up check");
        let ours = by_us.clean_stderr();
        assert_eq!(ours.lines().filter(announced).count(), 1, "{by_us}");
        let ours: Vec<&str> = ours.lines().filter(|line| !announced(line)).collect();
        let ours: String = same(&ours.join("\n"), &guarded);
        let expected = same(&by_cargo.clean_stderr(), &plain) + "\ncudaguard: 1 of 1 target guarded (no CUDA toolkit)";
        assert_eq!(ours.trim(), expected.trim(), "{format}: stderr, and one line of ours at the end");
    }
}

#[e2e]
fn quiet_prints_nothing() {
    let fixture = program("quiet");
    for (words, variable) in [(&["build", "-q"][..], None), (&["build"], Some(("CARGO_TERM_QUIET", "true")))] {
        let mut call = fixture.guard(words);
        if let Some((name, value)) = variable {
            call = call.env(name, value);
        }
        let outcome = call.run().success();
        assert_eq!((outcome.stdout.as_str(), outcome.clean_stderr().as_str()), ("", ""));
    }
    let _ = sealed(&fixture.built("debug/app"), "app");
}

#[e2e]
fn cargo_status_is_returned() {
    let fixture = program("status");
    let same_as_cargo = |words: &[&str]| {
        let (ours, cargos) = (fixture.guard(words).run(), fixture.cargo(words).run());
        assert_eq!(ours.status(), cargos.status(), "{ours}\n{cargos}");
        ours
    };
    let _ = same_as_cargo(&["build", "--no-such-option"]);
    let _ = same_as_cargo(&["build", "--help"]);
    fixture.write("src/main.rs", "fn main() { std::process::exit(41) }\n");
    assert_eq!(same_as_cargo(&["run"]).status(), Some(41));
    assert_eq!(same_as_cargo(&["run", "--", "--release", "-q"]).status(), Some(41));
    fixture.change("src/main.rs", "fn main() { no_such_thing() }\n");
    let outcome = same_as_cargo(&["build"]);
    assert!(!outcome.stderr.contains("cudaguard: "), "nothing was built, nothing is summed up: {outcome}");
    let outcome = fixture.guard(["build", "--manifest-path", "nowhere/Cargo.toml"]).run().expect(2);
    assert!(outcome.stderr.contains("nowhere/Cargo.toml"), "{outcome}");
}

/// If a signal kills cargo, the command ends with the same signal.
#[e2e(slow)]
fn cargo_signal_is_returned() {
    let fixture = program("death");
    let fake = fixture.sibling("cargo");
    let text = format!(
        "#!/bin/sh\ncase $1 in metadata) exec {:?} \"$@\";; esac\nkill -TERM $$\nsleep 60\n",
        cargo().to_string_lossy()
    );
    scratch::program(&fake, &text);
    let outcome = fixture.guard(["build"]).env("CARGO", &fake).run();
    assert_eq!(outcome.signal(), Some(15), "{outcome}");
}

/// A build script or a test calls cargo or the command for another project.
#[e2e(slow)]
fn nested_command_works() {
    let fixture = program("nested");
    let inner = program("nested-inner");
    let guard = cudaguard_tests::command::path();
    let script = format!(
        "use std::process::Command;\nfn main() {{\n    for program in [\"cargo\", \"{}\"] {{\n        let status = \
         Command::new(program).args([\"build\", \"--target-dir\"]).arg(format!(\"by-{{}}\", program.len()))\n            \
         .current_dir(\"{}\").status().unwrap();\n        assert!(status.success());\n    }}\n}}\n",
        guard.display(),
        inner.root.display()
    );
    fixture.write("build.rs", script);
    let _ = fixture.guard(["build"]).run().success();
    let _ = sealed(&fixture.built("debug/app"), "app");
    assert!(notes(&inner.root.join("by-5/debug/app")).is_empty(), "plain cargo on another project guards nothing");
    let _ = sealed(&inner.root.join(format!("by-{}/debug/app", guard.as_os_str().len())), "app");
}

#[e2e(slow)]
fn configured_variables_are_read() {
    let fixture = program("config-env");
    let cudnn = fixture.root.join("cudnn");
    cudaguard_tests::fake_library::cudnn(&cudnn, (9, 1, 0));
    // Only the policy shows that this package uses CUDA.
    fixture.write("cudaguard.toml", "[cudnn]\nrequire = \"9\"\n");
    fixture.write(
        ".cargo/config.toml",
        "[env]\nCUDNN_PATH = { value = \"cudnn\", relative = true }\nCUDAARCHS = \"90\"\n",
    );
    let _ = fixture.guard(["build"]).run().success();
    let note = sealed(&fixture.built("debug/app"), "app");
    let declared: Vec<String> = note.manifest.declared.iter().map(ToString::to_string).collect();
    assert!(declared.contains(&"sm_90".to_owned()), "{declared:?}");
    assert_eq!(compiled(&fixture.guard(["build", "-v"]).run().success()), set(&[]));
}

#[e2e(slow)]
fn directory_with_blanks_works() {
    let scratch = Scratch::new("ein Ordner mit größeren Lücken");
    let root = scratch.join("tree");
    cudaguard_tests::scratch::write(&root.join("Cargo.toml"), package("app", "[workspace]\n"));
    cudaguard_tests::scratch::write(&root.join("src/main.rs"), MAIN);
    cudaguard_tests::scratch::write(&root.join("cudaguard.toml"), GUARDED);
    let call = |words: &[&str]| -> Outcome {
        cudaguard_tests::command::call(words).dir(&root).env("CARGO", cargo()).env("CARGO_NET_OFFLINE", "true").run()
    };
    let _ = call(&["build"]).success();
    let _ = sealed(&root.join("target/debug/app"), "app");
    assert_eq!(compiled(&call(&["build", "-v"]).success()), set(&[]), "the guard's path is read back as one");
    assert_eq!(call(&["run"]).success().stdout, "ran\n");
    let from_outside = cudaguard_tests::command::call(["build", "-v", "--manifest-path"]).arg(root.join("Cargo.toml"));
    let from_outside = from_outside.dir(scratch.path()).env("CARGO", cargo()).env("CARGO_NET_OFFLINE", "true");
    assert_eq!(compiled(&from_outside.run().success()), set(&[]), "it is the same build");
    // The command itself is in such a directory, which a runner variable cannot name.
    let copy = scratch.join("a copy");
    fs::copy(cudaguard_tests::command::path(), &copy).expect("a program can be copied");
    let outcome = cudaguard_tests::Call::new(&copy)
        .args(["run", "--", "word"])
        .dir(&root)
        .env("CARGO", cargo())
        .env("CARGO_NET_OFFLINE", "true")
        .run()
        .success();
    assert_eq!(outcome.stdout, "ran\n");
}

#[e2e(slow)]
fn read_only_target_directory_fails() {
    let fixture = program("read-only");
    fixture.write("target/cudaguard", "a file where a directory should be");
    let outcome = fixture.guard(["build"]).run().expect(2);
    assert!(outcome.stderr.contains("target/cudaguard"), "the place is named: {outcome}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
}

/// Creates a fake cuDNN whose headers and library differ, which causes a finding.
fn mixed_cudnn(fixture: &Fixture) -> std::path::PathBuf {
    let cudnn = fixture.sibling("cudnn");
    cudaguard_tests::fake_library::cudnn(&cudnn, (9, 1, 0));
    let header = cudnn.join("include/cudnn_version.h");
    let text = fs::read_to_string(&header).expect("just written").replace("MINOR 1", "MINOR 4");
    fs::write(&header, text.replace("90100", "90400")).expect("it can be written");
    cudnn
}

#[e2e(slow)]
fn release_errors_stop_before_cargo() {
    let fixture = Fixture::new(
        "stops",
        &[
            ("Cargo.toml", "[workspace]\nresolver = \"2\"\nmembers = [\"strict\", \"lax\"]\n"),
            ("strict/Cargo.toml", &package("strict", "")),
            ("strict/src/main.rs", MAIN),
            ("lax/Cargo.toml", &package("lax", "")),
            ("lax/src/main.rs", MAIN),
            ("strict/cudaguard.toml", "[cudnn]\nrequire = \"9\"\n"),
            ("lax/cudaguard.toml", "[cudnn]\nrequire = \"9\"\n[build]\nrelease = \"warn\"\n"),
        ],
    );
    let cudnn = mixed_cudnn(&fixture);
    let build = |words: &[&str]| fixture.guard(words).env("CUDNN_PATH", &cudnn).run();
    let outcome = build(&["build", "--release"]).expect(1);
    assert!(outcome.stderr.contains("error[CG110]"), "{outcome}");
    assert!(!outcome.stderr.contains("Compiling"), "cargo was not started: {outcome}");
    let outcome = build(&["build", "--release", "-p", "lax"]).success();
    assert!(outcome.stderr.contains("warning[CG110]"), "only what is built is judged: {outcome}");
    let outcome = build(&["build"]).success();
    assert_eq!(outcome.stderr.matches("[CG110]").count(), 1, "reported once for both: {outcome}");
    assert_eq!(summary(&outcome), "cudaguard: 2 of 2 targets guarded (no CUDA toolkit)");
}

#[e2e]
fn unreadable_policy_fails() {
    let fixture = program("policy");
    fixture.write("cudaguard.toml", "[cudnn]\nrequires = \"9\"\n");
    let outcome = fixture.guard(["build"]).run().expect(2);
    assert!(outcome.stderr.contains("cudaguard.toml") && outcome.stderr.contains("requires"), "{outcome}");
}

/// Builds a tree in two directories. The wrapper's path must not be in the program.
#[e2e(slow)]
fn builds_are_reproducible() {
    let build = |name: &str| {
        let fixture = program(name);
        // Passes a list, because RUSTFLAGS is split at blanks, and the path may contain one.
        let flags = format!("[build]\nrustflags = ['--remap-path-prefix={}=/tree']\n", fixture.root.display());
        fixture.write(".cargo/config.toml", flags);
        let _ = fixture.guard(["build", "--release"]).run().success();
        fs::read(fixture.built("release/app")).expect("it was built")
    };
    let note = |bytes: &[u8]| {
        let mark = b"cudagrd\0";
        let at = bytes.windows(mark.len()).position(|window| window == mark).expect("a note");
        bytes[at..at + 4096].to_vec()
    };
    assert!(note(&build("equal-one")) == note(&build("equal-other-and-longer")), "the notes differ");
}
