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

use cudaguard_tests::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = by_cargo::trials();
    trials.extend(by_cc::trials());
    trials.extend(by_cmake::trials());
    trials.extend(cudnn::trials());
    trials.extend(surroundings::trials());
    trials.extend(switched::trials());
    trials
}
