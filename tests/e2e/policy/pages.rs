//! What the repository says of itself, held against the code.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cudaguard::finding::Code;
use cudaguard_tests::{Call, Scratch, command, trials};

const HEAD: &str = "\
# Findings

Each finding has a code that stays, and words that may improve. `cargo cudaguard explain CG101` says the same in the
terminal. Under `[allow]` in `cudaguard.toml` a code and a reason turn a finding of the build into an info; the reason is
recorded in the binary.

The first digit tells where it comes from: 1 the build, 2 the start of a program, 3 GPU and driver, 4 kernels, 5 what
cannot be told.

This page is written from `guard-core/src/finding/codes.rs`; a test keeps it so.
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for code in Code::ALL {
        let _ = write!(page, "\n## {code}: {}\n\n*{}*\n", code.title(), code.severity());
        for paragraph in code.explanation().lines() {
            let _ = write!(page, "\n{paragraph}\n");
        }
    }
    page
}

fn every_code_has_its_place_in_the_docs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/findings.md");
    if std::env::var_os("CUDAGUARD_BLESS").is_some_and(|value| !value.is_empty()) {
        cudaguard_tests::scratch::write(&path, page());
    }
    let kept = fs::read_to_string(&path).unwrap_or_else(|error| panic!("docs/findings.md: {error}"));
    for (number, (kept, new)) in kept.lines().zip(page().lines()).enumerate() {
        assert_eq!(kept, new, "docs/findings.md:{}: CUDAGUARD_BLESS=1 rewrites it", number + 1);
    }
    assert!(kept == page(), "docs/findings.md: CUDAGUARD_BLESS=1 rewrites it");
}

/// Words as they stand on a command line, and what bash offers for the last one.
fn bash_completes_verbs_and_options() {
    let script = command::call(["completions", "bash"]).run().success().stdout;
    let scratch = Scratch::new("completions");
    let file = scratch.file("completions", script);
    let offered = |words: &[&str]| -> Vec<String> {
        let ask = "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); f=$(complete -p cargo-cudaguard); \
                   f=${f##*-F }; ${f%% *} cargo-cudaguard \"${@: -1}\" \"${@: -2:1}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
        let call = Call::new("bash").args(["-c", ask, "bash"]).arg(&file).arg("cargo-cudaguard").args(words);
        call.run().success().stdout.lines().map(str::to_owned).collect()
    };
    assert_eq!(offered(&["che"]), ["check"]);
    assert_eq!(offered(&["check", "--fo"]), ["--format"]);
    assert_eq!(offered(&["check", "--format", "sa"]), ["sarif"]);
    assert_eq!(offered(&["build", "--rel"]), ["--release"]);
    assert_eq!(offered(&["init", "--c"]), ["--cmake", "--config"]);
    let verbs = offered(&[""]);
    for verb in ["build", "run", "test", "install", "check", "inspect", "exec", "explain", "lock", "init"] {
        assert!(verbs.iter().any(|word| word == verb), "{verb}: {verbs:?}");
    }
    assert!(!verbs.iter().any(|word| word == "cmake"), "what only programs call is not offered: {verbs:?}");
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script = command::call(["completions", shell]).run().success().stdout;
        assert!(script.contains("explain") && script.contains("manifest-path"), "{shell}: {script}");
    }
}

/// A page for every verb, each with its options and without a word that `man` stumbles over.
fn manual_pages_of_every_verb() {
    let scratch = Scratch::new("manual");
    let folder = scratch.join("share/man/man1");
    let _ = command::call(["man"]).arg(&folder).run().success();
    let page = |name: &str| {
        fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}")).replace('\\', "")
    };
    let index = page("cargo-cudaguard.1");
    assert!(index.contains("Exit status: 0 fine, 1 findings that refuse"), "{index}");
    for verb in ["build", "run", "test", "install", "check", "inspect", "exec", "explain", "lock", "init"] {
        assert!(index.contains(&format!("cargo-cudaguard-{verb}(1)")), "{verb}: {index}");
        assert!(page(&format!("cargo-cudaguard-{verb}.1")).contains(".SH NAME"), "{verb}");
    }
    assert!(page("cargo-cudaguard-check.1").contains("--format"));
    assert!(!folder.join("cargo-cudaguard-cmake.1").exists());
    let not_there = scratch.file("file", "");
    let failed = command::call(["man"]).arg(not_there.join("man1")).run().expect(2);
    assert!(failed.stderr.contains("cannot write into "), "{failed}");
}

pub(super) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![every_code_has_its_place_in_the_docs, bash_completes_verbs_and_options, manual_pages_of_every_verb]
}
