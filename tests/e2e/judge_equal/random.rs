//! Random machines and programs: each started program has the findings that the judge has for the facts of its machine.
//!
//! A machine is made once, which takes a tenth of a second, and each of its programs takes some milliseconds. More of both, with
//! another seed:
//!
//!     CUDAGUARD_STARTED=100000 CUDAGUARD_SEED=7 cargo test --test e2e judge_equal::random

use cudaguard_tests::e2e;

use super::driver::{need_worlds, random_machines, start_all};

/// Programs on each machine.
const PROGRAMS: usize = 50;

/// The seed must not be 0: the generator would return 0 forever.
fn seed() -> u64 {
    number("CUDAGUARD_SEED", 0x5851_f42d_4c95_7f2d).max(1)
}

#[e2e]
fn random_started_programs_agree() {
    need_worlds();
    let started = usize::try_from(number("CUDAGUARD_STARTED", 200)).expect("so many fit");
    let (mut differences, mut pairs) = (Vec::new(), 0);
    for (machine, programs) in random_machines(seed().rotate_left(17), started.div_ceil(PROGRAMS), PROGRAMS) {
        differences.extend(start_all(&machine, &programs));
        pairs += programs.len();
    }
    let shown = differences.iter().take(3).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} of {pairs} pairs:\n{shown}", differences.len());
}

/// Returns the value of a variable of the tests.
pub(crate) fn number(variable: &str, otherwise: u64) -> u64 {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty());
    text.map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}: expected a number")))
}
