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

use cudaguard_tests::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = building::trials();
    trials.extend(cudnn::trials());
    trials.extend(failing::trials());
    trials.extend(finding::trials());
    trials.extend(header::trials());
    trials.extend(lock::trials());
    trials.extend(many::trials());
    trials.extend(native::trials());
    trials.extend(python::trials());
    trials.extend(rebuilding::trials());
    trials.extend(same::trials());
    trials.extend(theirs::trials());
    trials.extend(unguarded::trials());
    trials
}
