//! The CMake package, on real CMake (the oldest that it promises and the newest), real nvcc (13.0 and 11.8), Make, Ninja and Ninja Multi-Config.
//!
//! A project is configured once and then asked about much: each costs seconds.

mod building;
mod cudnn;
mod failing;
mod finding;
pub(crate) mod fixture;
mod header;
mod lock;
mod many;
mod native;
mod python;
mod rebuilding;
mod same;
mod theirs;
mod unguarded;

use cudaguard_tests::Test;

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = building::tests();
    tests.extend(cudnn::tests());
    tests.extend(failing::tests());
    tests.extend(finding::tests());
    tests.extend(header::tests());
    tests.extend(lock::tests());
    tests.extend(many::tests());
    tests.extend(native::tests());
    tests.extend(python::tests());
    tests.extend(rebuilding::tests());
    tests.extend(same::tests());
    tests.extend(theirs::tests());
    tests.extend(unguarded::tests());
    tests
}
