//! The CMake package with real CMake (oldest supported and newest), real nvcc (13.0 and 11.8), Make, Ninja and Ninja
//! Multi-Config.
//!
//! Each configuration takes seconds, so a test configures a project once and checks many properties.

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
