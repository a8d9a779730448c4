//! Requirements of a project on its builds: the policy and the lock, and findings in editors and CI.

mod doors;
mod fixture;
mod formats;
mod init;
mod lock;
pub(crate) mod pages;

use cudaguard_tests::Test;

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = lock::tests();
    tests.extend(doors::tests());
    tests.extend(formats::tests());
    tests.extend(init::tests());
    tests.extend(pages::tests());
    tests
}
