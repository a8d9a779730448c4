//! `cudaguard.lock` as CMake's target writes it: it records the linked components if they are known, and is compared with
//! them.

use std::fs;

use cudaguard_tests::{Outcome, e2e};

use super::{build, codes, cudart, object, tree};
use crate::cmake::fixture::Tree;

fn lock(tree: &Tree) -> Outcome {
    tree.build(&["--target", "cudaguard-lock"]).run()
}

/// CMake knows no toolkit.
#[e2e(slow)]
fn lock_records_linked_toolkit() {
    let tree = tree("linked", "", "");
    let of = |version: &str| [object(&tree, version), cudart(version)];
    let build = |configuration: &str, version: &str| {
        let link = of(version);
        build(&tree, configuration, None, &[&link[0], &link[1]])
    };
    let silent = |version: &str| {
        let built = build("Release", version).success();
        assert_eq!(codes(&built), [""; 0], "{built}");
    };
    silent("13.0");
    fs::remove_file(tree.built("app")).expect("it was built");
    let nothing = lock(&tree);
    assert!(nothing.status() != Some(0) && nothing.stdout.contains("nothing to lock"), "{nothing}");
    silent("13.0");
    let written = lock(&tree).success();
    assert!(written.stdout.contains("  toolkit: 13.0 (from the linked files)\n"), "{written}");
    silent("13.0");
    let refused = build("Release", "13.2");
    assert!(refused.status() != Some(0) && !tree.built("app").exists(), "{refused}");
    assert_eq!(codes(&refused), ["error[CG107]"], "{refused}");
    assert!(refused.stdout.contains("the toolkit differs from the lock: 13.0 → 13.2."), "{refused}");
    let warned = build("Debug", "13.2").success();
    assert_eq!(codes(&warned), ["warning[CG107]"], "{warned}");
    let accepted = lock(&tree).success();
    assert!(accepted.stdout.contains("toolkit: 13.0 → 13.2 (from the linked files)"), "{accepted}");
    silent("13.2");
}
