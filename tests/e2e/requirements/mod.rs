//! `requirements`: the output for each consumer, which must not admit a machine that our verdict refuses.

mod cel;
mod consumer_agreement;
mod consumers;
mod output;

use cudaguard_tests::Test;
pub(crate) use output::example;

pub(crate) fn tests() -> Vec<Test> {
    [consumer_agreement::tests(), output::tests()].into_iter().flatten().collect()
}
