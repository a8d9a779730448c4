//! A refused build leaves no outputs that look built, and emits cargo messages.

use std::fs;
use std::path::PathBuf;

use cargo_metadata::Message;
use cargo_metadata::diagnostic::DiagnosticLevel;
use cudaguard_tests::{Call, Outcome, e2e, parts};

use super::cache::host;
use super::fixture::{Fixture, package};

const EXPORT: &str = "#[no_mangle]\npub extern \"C\" fn seven() -> u32 {\n    7\n}\n";

/// Returns a package with a program, an example and a C library, whose build script links cudart.
fn linking(name: &str) -> Fixture {
    let dir = parts::cuda("13.0").join("lib64");
    let script = format!(
        "fn main() {{\n    for word in [\"-L{}\", \"-Wl,--no-as-needed\", \"-lcudart\"] {{\n        \
         println!(\"cargo:rustc-link-arg={{word}}\");\n    }}\n}}\n",
        dir.display()
    );
    let more = "[lib]\nname = \"app_c\"\ncrate-type = [\"cdylib\", \"staticlib\"]\n[workspace]\n[profile.dist]\ninherits = \"release\"\n";
    Fixture::new(
        name,
        &[
            ("Cargo.toml", &package("my-app", more)),
            ("build.rs", &script),
            ("src/main.rs", "fn main() {}\n"),
            ("src/lib.rs", EXPORT),
            ("examples/shown-here.rs", "fn main() {}\n"),
        ],
    )
}

/// Puts nvcc 13.0 first in `PATH` and sets `CUDA_HOME`.
fn with(call: Call, home: &str) -> Call {
    let cuda = parts::cuda("13.0");
    let path = format!("{}:{}", cuda.join("bin").display(), std::env::var("PATH").expect("a PATH"));
    call.env("PATH", path).env("CUDA_HOME", parts::cuda(home))
}

/// Returns the outputs that exist in a directory below the target directory.
fn lying(fixture: &Fixture, dir: &str) -> Vec<PathBuf> {
    let names = ["my-app", "libapp_c.so", "libapp_c.a", "examples/shown-here"];
    names.iter().map(|name| fixture.built(dir).join(name)).filter(|file| file.exists()).collect()
}

#[e2e(slow)]
fn refusal_after_linking_removes_outputs() {
    let fixture = linking("refused-linked");
    let host = host();
    let named = format!("{host}/release");
    for (words, dir) in [
        (vec!["--release"], "release"),
        (vec!["--profile", "dist"], "dist"),
        (vec!["--release", "--target", &host], named.as_str()),
    ] {
        let build = |home: &str| {
            let words = ["build", "--bins", "--lib", "--examples"].into_iter().chain(words.iter().copied());
            with(fixture.guard(words), home).run()
        };
        for round in 0..2 {
            let right = build("13.0").success();
            assert!(right.stderr.contains("3 of 3 targets guarded"), "{right}");
            assert_eq!(lying(&fixture, dir).len(), 4, "{dir}, {round}");
            let refused = build("11.8").expect(101);
            assert!(refused.stderr.contains("error[CG101]: ") && !refused.stderr.contains("guarded"), "{refused}");
            assert_eq!(lying(&fixture, dir), [] as [PathBuf; 0], "{dir}, {round}");
        }
    }
}

#[e2e]
fn refusal_before_cargo_removes_outputs() {
    let fixture = linking("refused-before");
    let right = with(fixture.guard(["build", "--release", "--all-targets"]), "13.0").run().success();
    assert_eq!(lying(&fixture, "release").len(), 4, "{right}");
    fixture.write("cudaguard.toml", "[toolkit]\nrequire = \"^11\"\n");
    for words in [&["build", "--release", "--all-targets"][..], &["run", "--release"]] {
        let refused = with(fixture.guard(words), "13.0").run().expect(1);
        assert!(refused.stderr.contains("error[CG103]: ") && !refused.stderr.contains("guarded"), "{refused}");
        assert!(!fixture.built("release/my-app").exists(), "{refused}");
    }
    assert_eq!(lying(&fixture, "release"), [] as [PathBuf; 0]);
    fs::remove_file(fixture.root.join("cudaguard.toml")).expect("just written");
    let _ = with(fixture.guard(["build", "--release", "--all-targets"]), "13.0").run().success();
    assert_eq!(lying(&fixture, "release").len(), 4, "it comes back");
}

/// Parses the output with cargo's own parser. Returns the codes with their levels, and the results of the build.
fn read(outcome: &Outcome) -> (Vec<(String, DiagnosticLevel)>, Vec<bool>) {
    let (mut printed, mut ended) = (Vec::new(), Vec::new());
    for message in Message::parse_stream(outcome.stdout.as_bytes()) {
        match message.expect("a message") {
            Message::CompilerMessage(one) => {
                assert!(one.package_id.repr.contains("my-app"), "{outcome}");
                assert!(one.target.src_path.exists(), "{outcome}");
                let code = one.message.code.expect("ours have one").code;
                // Editors do not show messages without a position.
                assert!(one.message.spans[0].is_primary, "{outcome}");
                assert!(one.message.spans[0].file_name.ends_with("Cargo.toml"), "{outcome}");
                assert!(one.message.rendered.expect("a text").contains(&code), "{outcome}");
                printed.push((code, one.message.level));
            }
            Message::BuildFinished(end) => ended.push(end.success),
            Message::TextLine(line) => panic!("no message: {line}: {outcome}"),
            _ => {}
        }
    }
    (printed, ended)
}

#[e2e(slow)]
fn findings_are_cargo_messages() {
    // The first finding comes from the linked file, the second is reported before cargo starts.
    let after = ("", "11.8", "CG101", 101);
    let before = ("[toolkit]\nrequire = \"^11\"\n", "13.0", "CG103", 1);
    for (asked, home, code, status) in [after, before] {
        let fixture = linking("refused-messages");
        if !asked.is_empty() {
            fixture.write("cudaguard.toml", asked);
        }
        for format in ["json", "json-diagnostic-short", "json,json-diagnostic-rendered-ansi"] {
            let call = |words: &[&str], home: &str| {
                let words = words.iter().copied().chain(["--bin", "my-app", "--message-format", format]);
                with(fixture.guard(words), home).run()
            };
            let refused = call(&["build", "--release"], home).expect(status);
            let (printed, ended) = read(&refused);
            assert!(printed.contains(&(code.to_owned(), DiagnosticLevel::Error)), "{format}: {refused}");
            assert_eq!(ended, [false], "{format}: {refused}");
            assert!(!fixture.built("release/my-app").exists(), "{format}: {refused}");
            assert!(!refused.stderr.contains(&format!("error[{code}]")), "said once: {refused}");
            for round in 0..2 {
                let warned = call(&["build"], home).success();
                let (printed, ended) = read(&warned);
                let heavy = printed.iter().filter(|(known, _)| known == code).collect::<Vec<_>>();
                assert_eq!(heavy, [&(code.to_owned(), DiagnosticLevel::Warning)], "{format}, {round}: {warned}");
                assert_eq!(ended, [true], "{warned}");
                assert!(!warned.stderr.contains(code), "said once: {warned}");
            }
            if asked.is_empty() {
                let right = call(&["build", "--release"], "13.0").success();
                assert_eq!(read(&right), (Vec::new(), vec![true]), "{right}");
            }
        }
        // This format prints text for users on stderr.
        let words = ["build", "--release", "--bin", "my-app", "--message-format", "json-render-diagnostics"];
        let refused = with(fixture.guard(words), home).run();
        assert_ne!(refused.status(), Some(0), "{refused}");
        assert_eq!(read(&refused), (Vec::new(), vec![false]), "{refused}");
        assert!(refused.stderr.contains(&format!("error[{code}]: ")), "{refused}");
    }
}

/// A refused program is not installed. An earlier installed version stays, as with plain cargo.
#[e2e(slow)]
fn refused_program_is_not_installed() {
    let fixture = linking("refused-install");
    let root = fixture.sibling("installed");
    let install = |home: &str| {
        let words = ["install", "--path", ".", "--bins", "--force", "--root"];
        with(fixture.guard(words).arg(&root), home).run()
    };
    let program = root.join("bin/my-app");
    let refused = install("11.8");
    assert!(refused.status() != Some(0) && refused.stderr.contains("error[CG101]: "), "{refused}");
    assert!(!program.exists() && !fixture.built("release/my-app").exists(), "{refused}");
    let right = install("13.0").success();
    let accepted = fs::read(&program).unwrap_or_else(|error| panic!("{error}: {right}"));
    let refused = install("11.8");
    assert!(refused.status() != Some(0) && !fixture.built("release/my-app").exists(), "{refused}");
    assert!(fs::read(&program).expect("of the accepted build") == accepted, "{refused}");
}
