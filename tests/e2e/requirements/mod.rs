//! `requirements`: the output for each consumer, which must not admit a machine that our verdict refuses.

mod consumers;
mod held;
mod written;

use cudaguard_tests::Test;
pub(crate) use written::example;

pub(crate) fn tests() -> Vec<Test> {
    [held::tests(), written::tests()].into_iter().flatten().collect()
}
