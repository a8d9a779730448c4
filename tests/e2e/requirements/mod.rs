//! `requirements`: what is written for each consumer, and that none of them takes a machine which the judge refuses.

mod consumers;
mod held;
mod written;

use cudaguard_tests::Trial;
pub(crate) use written::example;

pub(crate) fn trials() -> Vec<Trial> {
    [held::trials(), written::trials()].into_iter().flatten().collect()
}
