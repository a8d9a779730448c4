//! `cargo cudaguard build --target …` and `embed!()` for machines that are not this one: guards of the right machine where
//! there can be one, and a word where there cannot.

mod aarch64;
mod fixture;
mod others;
mod statics;

use cudaguard_tests::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = aarch64::trials();
    trials.extend(statics::trials());
    trials.extend(others::trials());
    trials
}
