//! `cargo cudaguard build --target …` and `embed!()` for machines that are not this one: guards of the right machine where
//! there can be one, and a word where there cannot.

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
