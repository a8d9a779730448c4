//! The linked cuDNN, compared with the headers that CMake uses.

use std::path::{Path, PathBuf};

use cudaguard_tests::{Test, parts, tests};
use serde_json::json;

use super::{FIND, build, codes, judged_as, tree};
use crate::cmake::fixture::Tree;
use crate::record::fixture::manifest;

pub(super) fn tests() -> Vec<Test> {
    tests![
        #[slow]
        oldest_driver_is_checked_against_cudnn,
        #[slow]
        lock_records_linked_cudnn
    ]
}

const MAIN: &str = "#include <cudnn_version.h>\nextern \"C\" unsigned long cudnnGetVersion();\n\
                    int main() { return cudnnGetVersion() < CUDNN_MAJOR; }\n";

fn library(cudnn: &str) -> PathBuf {
    parts::cudnn(cudnn).join("lib/libcudnn.so.9")
}

/// Returns a program that is compiled with these headers.
fn project(name: &str, find: &str, headers: &str, policy: &str) -> Tree {
    let include = parts::cudnn(headers).join("include");
    let tree = tree(name, &format!("{find}\ninclude_directories(\"{}\")", include.display()), policy);
    tree.write("main.cpp", MAIN);
    tree
}

fn oldest_driver_is_checked_against_cudnn() {
    for (cudnn, fleet, fine) in [("9.15.1", "535", false), ("9.15.1", "580", true), ("9.15.1-cu12", "535", true)] {
        let tree = project("fleet", "", "9.15.1", &format!("[driver]\nfleet = \"{fleet}\"\n"));
        let build = |configuration: &str| build(&tree, configuration, None, &[&library(cudnn)]);
        if fine {
            let built = build("Release").success();
            assert_eq!(codes(&built), [""; 0], "{cudnn} {fleet}: {built}");
        } else {
            judged_as(&tree, "CG133", build);
        }
    }
}

fn lock_records_linked_cudnn() {
    let tree = project("locked", FIND, "9.15.1", "");
    let build =
        |configuration: &str, cudnn: &str| build(&tree, configuration, Some("13.0"), &[&library(cudnn) as &Path]);
    let lock = || tree.build(&["--target", "cudaguard-lock"]).run().success();
    let text = || std::fs::read_to_string(tree.source().join("cudaguard.lock")).expect("it was written");
    let right = build("Release", "9.15.1").success();
    assert_eq!(codes(&right), [""; 0], "{right}");
    let written = lock();
    assert!(text().contains("cudnn = \"9.15.1\""), "{written}");
    let right = build("Release", "9.15.1").success();
    assert_eq!(codes(&right), [""; 0], "{right}");

    let refused = build("Release", "9.1.0");
    assert!(refused.status() != Some(0) && !tree.built("app").exists(), "{refused}");
    assert_eq!(codes(&refused), ["error[CG107]", "error[CG110]", "error[CG111]"], "{refused}");
    assert!(refused.stdout.contains("cuDNN differs from the lock: 9.15.1 → 9.1.0."), "{refused}");
    let warned = build("Debug", "9.1.0").success();
    assert_eq!(codes(&warned), ["warning[CG107]", "warning[CG110]", "warning[CG111]"], "{warned}");
    let recorded = json!({"version": "9.15.1", "linkage": "linked", "library": "9.1.0"});
    assert_eq!(manifest(&tree.built("app"))["cudnn"], recorded, "{warned}");
    let accepted = lock();
    assert!(accepted.stdout.contains("cudnn: 9.15.1 → 9.1.0 (from the linked files)"), "{accepted}");
    // The finding about headers and library is independent of this.
    let warned = build("Debug", "9.1.0").success();
    assert!(!codes(&warned).iter().any(|code| code.contains("CG107")), "{warned}");
    // The program does not link the library any more, but still uses the headers.
    tree.write("main.cpp", "int main() { return 0; }\n");
    let refused = build("Release", "9.1.0");
    assert!(refused.status() != Some(0) && codes(&refused) == ["error[CG107]"], "{refused}");
    assert!(!refused.stdout.contains("cmake --build BUILD"), "the hint names the directory: {refused}");
}
