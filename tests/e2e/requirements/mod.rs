//! `requirements`: what is written for each consumer, and that none of them takes a machine which the judge refuses.

mod consumers;
mod held;
mod written;

use cudaguard_tests::Test;
pub(crate) use written::example;

pub(crate) fn tests() -> Vec<Test> {
    [held::tests(), written::tests()].into_iter().flatten().collect()
}
