//! What the repository says of itself, held against the code.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cudaguard::finding::Code;
use cudaguard_tests::trials;

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

pub(super) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![every_code_has_its_place_in_the_docs]
}
