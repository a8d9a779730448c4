//! `cargo cudaguard build --target …` and `embed!()` for other machines. The guard is built for the target; if this is
//! impossible, the build prints the reason.

mod aarch64;
mod fixture;
mod other_targets;
mod static_programs;
mod windows;

use cudaguard_tests::Test;

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = aarch64::tests();
    tests.extend(static_programs::tests());
    tests.extend(other_targets::tests());
    tests.extend(windows::tests());
    tests
}
