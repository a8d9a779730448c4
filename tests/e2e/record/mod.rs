//! What a manifest records is what was compiled and linked, whatever the environment promised: real toolkits of one major and
//! of two, by cargo and by CMake. Wrong in a release build is refused and leaves nothing, wrong in a dev build is said, and
//! right is silent.

mod by_cargo;
mod by_cc;
mod by_cmake;
mod cudnn;
mod fixture;
mod independent;
mod surroundings;
mod switched;

use cudaguard_tests::Test;

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = by_cargo::tests();
    tests.extend(by_cc::tests());
    tests.extend(by_cmake::tests());
    tests.extend(cudnn::tests());
    tests.extend(surroundings::tests());
    tests.extend(switched::tests());
    tests
}
