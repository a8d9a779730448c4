//! Requirements of a project on its builds: the policy and the lock, and findings in editors and CI.

mod fixture;
mod formats;
mod front_ends;
mod init;
mod lock;
pub(crate) mod pages;

use cudaguard_tests::Test;

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = lock::tests();
    tests.extend(front_ends::tests());
    tests.extend(formats::tests());
    tests.extend(init::tests());
    tests.extend(pages::tests());
    tests
}
