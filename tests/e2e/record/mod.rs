//! A manifest records the compiled and linked components, independent of the environment: real toolkits of one or two
//! majors, with cargo and CMake. A mismatch is refused in a release build, which leaves no outputs. It is a warning in a
//! dev build. Matching components produce no output.

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
