//! `cargo cudaguard build --target …` and `embed!()` for other machines. The guard is built for the target; if this is
//! impossible, the build prints the reason.

mod aarch64;
mod fixture;
mod others;
mod statics;

use cudaguard_tests::Test;

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = aarch64::tests();
    tests.extend(statics::tests());
    tests.extend(others::tests());
    tests
}
