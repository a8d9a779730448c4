//! The linked cuDNN determines the required driver and the lock, independent of the configured headers.

use cudaguard_tests::{e2e, parts};
use serde_json::json;

use super::fixture::{build, call, call_of, codes, manifest, package, refused};
use crate::wrapper::fixture::Fixture;

const MAIN: &str = "unsafe extern \"C\" { fn cudnnGetVersion() -> usize; }\n\
                    fn main() { println!(\"{}\", unsafe { cudnnGetVersion() }) }\n";

/// Returns a program whose build script links a cuDNN, and no other CUDA library.
fn project(name: &str, policy: &str) -> Fixture {
    let fixture = package(name, policy);
    fixture.write("src/main.rs", MAIN);
    fixture
}

fn linked_to(cudnn: &str) -> String {
    format!("search {}\nlink -lcudnn\n", parts::cudnn(cudnn).join("lib").display())
}

/// A cuDNN contains its own cudart: 9.15.1 exists for CUDA 12 and for CUDA 13, with the same headers.
#[e2e(slow)]
fn oldest_driver_is_checked_against_cudnn() {
    let include = parts::cudnn("9.15.1").join("include");
    for (cudnn, fleet, fine) in [
        ("9.15.1", "535", false),
        ("9.15.1", "580", true),
        ("9.15.1-cu12", "535", true),
        ("9.15.1-cu12", "470", false),
        ("8.9.7", "535", true),
    ] {
        let fixture = project("fleet", &format!("[driver]\nfleet = \"{fleet}\"\n"));
        fixture.write("tools", linked_to(cudnn));
        let include = if cudnn == "8.9.7" { parts::cudnn(cudnn).join("include") } else { include.clone() };
        let build = |words: &[&str]| call(&fixture, words, None).env("CUDNN_INCLUDE_DIR", &include).run();
        if fine {
            let built = build(&["--release"]).success();
            assert_eq!(codes(&built), [""; 0], "{cudnn} {fleet}: {built}");
            continue;
        }
        let refused = build(&["--release"]);
        assert!(refused.status() != Some(0) && !fixture.built("release/app").exists(), "{cudnn} {fleet}: {refused}");
        assert_eq!(codes(&refused), ["error[CG133]"], "{cudnn} {fleet}: {refused}");
        let major = if cudnn == "9.15.1" { 13 } else { 12 };
        for words in [
            &format!("its cuDNN is built for CUDA {major}"),
            &parts::cudnn(cudnn).join("lib/libcudnn.so").display().to_string(),
        ] {
            assert!(refused.stderr.contains(words), "{words}: {refused}");
        }
        let warned = build(&[]).success();
        assert_eq!(codes(&warned), ["warning[CG133]"], "{cudnn} {fleet}: {warned}");
    }
}

/// The headers are unknown, so the lock records the linked library, and a different one is reported.
#[e2e(slow)]
fn lock_records_linked_cudnn() {
    let fixture = project("locked", "");
    let tools = |cudnn: &str| super::fixture::nvcc("13.0") + &super::fixture::cudart("13.0") + &linked_to(cudnn);
    fixture.write("tools", tools("9.15.1"));
    let _ = build(&fixture, &["--release"], Some("13.0")).success();
    let lock = || call_of(&fixture, &["lock"], Some("13.0")).run().success();
    let text = || std::fs::read_to_string(fixture.root.join("cudaguard.lock")).expect("it was written");
    let written = lock();
    assert!(written.stdout.contains("  cudnn: 9.15.1 (from the linked files)\n"), "{written}");
    assert!(text().contains("cudnn = \"9.15.1\""), "{written}");
    let right = build(&fixture, &["--release", "--locked"], Some("13.0")).success();
    assert_eq!(codes(&right), ["warning[CG146]"], "{right}");

    fixture.change("tools", &tools("9.17.1"));
    let refused = refused(&fixture, Some("13.0"));
    assert_eq!(codes(&refused), ["error[CG107]", "warning[CG146]"], "{refused}");
    assert!(refused.stderr.contains("cuDNN differs from the lock: 9.15.1 → 9.17.1."), "{refused}");
    let warned = build(&fixture, &[], Some("13.0")).success();
    assert_eq!(codes(&warned), ["warning[CG107]", "warning[CG146]"], "{warned}");
    let linked = json!({"version": "9.17.1", "linkage": "linked", "known": "linked"});
    assert_eq!(manifest(&fixture.built("debug/app"))["cudnn"], linked);
    let accepted = lock();
    assert!(accepted.stdout.contains("cudnn: 9.15.1 → 9.17.1 (from the linked files)"), "{accepted}");
    let right = build(&fixture, &["--release", "--locked"], Some("13.0")).success();
    assert_eq!(codes(&right), ["warning[CG146]"], "{right}");
    // Mismatched headers are allowed with a reason. The linked library is still locked.
    fixture.change("cudaguard.toml", "[allow]\nCG110 = \"a test\"\n");
    let include = parts::cudnn("9.15.1").join("include");
    let with_headers = || {
        let built = call(&fixture, &["--release", "--locked"], Some("13.0")).env("CUDNN_INCLUDE_DIR", &include);
        built.run().success()
    };
    let right = with_headers();
    assert_eq!(codes(&right).iter().filter(|code| code.contains("CG107")).count(), 0, "{right}");
    let recorded = json!({"version": "9.15.1", "linkage": "linked", "library": "9.17.1"});
    assert_eq!(manifest(&fixture.built("release/app"))["cudnn"], recorded, "{right}");
}
