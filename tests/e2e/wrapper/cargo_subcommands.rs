//! `cargo cudaguard -- NAME`: cargo's own subcommands and third-party ones, unchanged.

use std::fs;

use cudaguard_tests::{Call, Outcome, e2e, parts, scratch, skip, tools};

use super::fixture::{Fixture, GUARDED, cargo, package, sealed, summary};

const MAIN: &str = "fn main() {\n    let words: Vec<String> = std::env::args().skip(1).collect();\n    \
                    println!(\"ran {words:?}\");\n}\n";
/// Integration test that starts the program as cargo passes it.
const TEST: &str = "#[test]\nfn starts() {\n    let ran = std::process::Command::new(env!(\"CARGO_BIN_EXE_app\")).output().unwrap();\n    \
                    assert_eq!(ran.stdout, b\"ran []\\n\");\n}\n#[test]\nfn passes() {}\n";

fn program(name: &str) -> Fixture {
    let files = [("Cargo.toml", package("app", "[workspace]\n")), ("src/main.rs", MAIN.to_owned())];
    let fixture = Fixture::new(name, &files.each_ref().map(|(name, text)| (*name, text.as_str())));
    fixture.write("tests/starts.rs", TEST);
    fixture.write("benches/starts.rs", TEST);
    fixture
}

const CUDNN: &str = "cudaguard: 1 of 1 target guarded (no CUDA toolkit)";

/// Deletes the outputs of earlier builds and returns the call.
fn anew(fixture: &Fixture, words: &[&str]) -> Call {
    let _ = fs::remove_dir_all(fixture.built(""));
    fixture.guard([&["--"], words].concat())
}

/// Runs cargo's own subcommands, and a program called `cargo-NAME` that calls cargo.
#[e2e(slow)]
fn other_subcommands_are_guarded() {
    let fixture = program("subcommands");
    for (words, built) in [
        (&["rustc", "--bin", "app", "--", "-Cdebuginfo=0"][..], "debug/app"),
        (&["rustc", "--release", "--bin", "app"], "release/app"),
        (&["b"], "debug/app"),
        (&["bench"], "release/app"),
        (&["t"], "debug/app"),
    ] {
        let printed = anew(&fixture, words).run().success();
        let _ = sealed(&fixture.built(built), "app");
        assert_eq!(summary(&printed), CUDNN, "{printed}");
    }
    assert_eq!(
        fixture.guard(["--", "run", "x"]).run().success().stdout,
        "ran [\"x\"]\n",
        "a verb of ours is that verb"
    );
    // The library is a C library only in this call, and is checked as one each time.
    fixture.write("src/lib.rs", "#[no_mangle]\npub extern \"C\" fn seven() -> u32 {\n    7\n}\n");
    let words = ["--", "rustc", "--lib", "--crate-type", "cdylib"];
    for (policy, status) in [(GUARDED, 0), ("toolkit.require = \">=99\"\nbuild.dev = \"deny\"\n", 1), (GUARDED, 0)] {
        fixture.write("cudaguard.toml", policy);
        let _ = fixture.guard(words).run().expect(status);
        assert_eq!(fixture.built("debug/libapp.so").exists(), status == 0);
    }
    let _ = sealed(&fixture.built("debug/libapp.so"), "app");
    fixture.remove("src/lib.rs");
    fixture.remove("cudaguard.toml");
    for words in [&["doc"][..], &["check"], &["metadata", "--format-version", "1", "--no-deps"]] {
        let printed = anew(&fixture, words).run().success();
        assert!(!printed.stderr.contains("error") && !printed.stderr.contains("cudaguard:"), "{printed}");
    }
    scratch::program(&fixture.sibling("bin/cargo-theirs"), "#!/bin/sh\nshift\nexec \"$CARGO\" build \"$@\"\n");
    let path = format!("{}:{}", fixture.sibling("bin").display(), std::env::var("PATH").unwrap_or_default());
    fixture.write("cudaguard.toml", GUARDED);
    let _ = anew(&fixture, &["theirs", "--release"]).env("PATH", path).run().success();
    let _ = sealed(&fixture.built("release/app"), "app");
    assert_eq!(fixture.guard(["--", "no-such-subcommand"]).run().status(), Some(101), "cargo's own status");
    let _ = fixture.guard(["--"]).run().expect(2);
}

/// An alias of the project or a tool that calls cargo may build a release without the guard's knowledge. The note and the
/// severity of a mismatch follow the real profile.
#[e2e(slow)]
fn changed_profile_is_detected() {
    let fixture = program("profiles");
    fixture.write("Cargo.toml", package("app", "[workspace]\n[profile.dist]\ninherits = \"release\"\n"));
    fixture.write(
        ".cargo/config.toml",
        "[alias]\nrel = \"build --release\"\nship = [\"rel\", \"--quiet\"]\nclean = \"rel\"\n",
    );
    let by_a_tool = |words: &str| {
        let line = format!("{}\"$CARGO\" build {words}", fixture.guard(["env"]).run().success().stdout);
        let call = Call::new("sh").args(["-ec", &line]).dir(&fixture.root);
        call.env("CARGO", cargo()).env("CARGO_NET_OFFLINE", "true").run()
    };
    for (words, dir, profile) in
        [("", "debug", "dev"), ("-r", "release", "release"), ("--profile dist", "dist", "dist")]
    {
        let _ = by_a_tool(words).success();
        assert_eq!(sealed(&fixture.built(&format!("{dir}/app")), "app").manifest.profile, profile);
    }
    let printed = anew(&fixture, &["rel"]).run().success();
    assert_eq!(summary(&printed), CUDNN, "{printed}");
    assert_eq!(sealed(&fixture.built("release/app"), "app").manifest.profile, "release");
    let cleaned = fixture.guard(["--", "clean"]).run().success();
    assert!(!fixture.built("").exists(), "cargo's own subcommand, despite an alias: {cleaned}");
    fixture.write("cudaguard.toml", "toolkit.require = \">=99\"\n");
    let _ = by_a_tool("").success();
    for refused in [by_a_tool("-r"), by_a_tool("--profile dist"), anew(&fixture, &["ship"]).run()] {
        assert!(refused.status() != Some(0) && refused.stderr.contains("error[CG10"), "{refused}");
        assert!(refused.stderr.contains("app 0.1.0 was not built"), "{refused}");
    }
    assert!(!fixture.built("release/app").exists() && !fixture.built("dist/app").exists());
}

/// The program that a test starts is sealed in each profile. nextest's own profiles are not cargo profiles.
#[e2e(slow)]
fn nextest_runs_guarded() {
    let path = parts::path(&["nextest"]);
    let fixture = program("nextest");
    fixture.write(".config/nextest.toml", "[profile.ci]\nfail-fast = false\n");
    fixture.write("Cargo.toml", package("app", "[workspace]\n[profile.dist]\ninherits = \"release\"\n"));
    for (words, built, profile) in [
        (&["nextest", "r", "--profile", "ci", "starts"][..], "debug/app", "dev"),
        (&["nextest", "run", "--cargo-profile", "dist"], "dist/app", "dist"),
        (&["nextest", "archive", "--archive-file", "tests.tar.zst"], "debug/app", "dev"),
    ] {
        let printed = anew(&fixture, words).env("PATH", &path).run().success();
        assert_eq!(sealed(&fixture.built(built), "app").manifest.profile, profile, "{words:?}");
        assert_eq!(summary(&printed), CUDNN, "{printed}");
    }
    fixture.write("tests/starts.rs", "#[test]\nfn fails() {\n    panic!()\n}\n");
    let failed = anew(&fixture, &["nextest", "run"]).env("PATH", &path).run();
    assert_eq!(failed.status(), Some(100), "nextest's own status: {failed}");
}

/// Calls zig's compiler and linker, for the glibc release at the end of the target name.
#[e2e(slow)]
fn zigbuild_runs_guarded() {
    tools::need("gcc");
    let path = parts::path(&["zigbuild"]);
    let fixture = program("zigbuild");
    let host = super::cache::host();
    if !host.starts_with("x86_64-unknown-linux-gnu") {
        skip("the headers of this machine's C library in the part zigbuild", "an x86-64 machine with glibc");
    }
    let target = format!("{host}.2.17");
    let cache = fixture.sibling("cache");
    let with = |call: Call| -> Outcome {
        let call = call.env("PATH", &path).env("XDG_CACHE_HOME", &cache).env("CARGO_ZIGBUILD_CACHE_DIR", &cache);
        call.env("ZIG_GLOBAL_CACHE_DIR", &cache).env("ZIG_LOCAL_CACHE_DIR", &cache).run().success()
    };
    let printed = with(anew(&fixture, &["zigbuild", "--release", "--target", &target]));
    assert_eq!(summary(&printed), CUDNN, "{printed}");
    let built = fixture.built(&format!("{host}/release/app"));
    let is_sealed = || {
        assert_eq!(sealed(&built, "app").manifest.target, host);
        assert_eq!(Call::new(&built).arg("x").run().success().stdout, "ran [\"x\"]\n");
    };
    is_sealed();
    assert!(
        fs::read(&built).expect("it was built").windows(10).any(|text| text == b"Linker: LL"),
        "linked by what zig brings"
    );
    // The variables work, too; they are needed if zigbuild is called as a separate program.
    let variables = with(fixture.guard(["env", "--release", "--target", &target])).stdout;
    let _ = fs::remove_file(&built);
    fixture.change("src/main.rs", &format!("{MAIN}// changed\n"));
    let line = format!("{variables}cargo-zigbuild zigbuild --release --target {target}");
    let _ = with(
        Call::new("sh").args(["-ec", &line]).dir(&fixture.root).env("CARGO", cargo()).env("CARGO_NET_OFFLINE", "true"),
    );
    is_sealed();
}
