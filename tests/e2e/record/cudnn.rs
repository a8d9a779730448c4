//! The linked cuDNN determines the required driver and the lock, independent of the configured headers.

use cudaguard_tests::{e2e, parts};

use super::fixture::{call, codes, package};
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
