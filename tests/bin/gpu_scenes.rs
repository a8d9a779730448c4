//! Builds the programs of the driver suite into a directory, for `tests/on-a-gpu.sh`.

#[allow(dead_code, reason = "the suite needs more of it")]
#[path = "../e2e/driver/fixture.rs"]
mod fixture;

use std::fs;
use std::path::Path;

use cudaguard_tests::parts;

fn main() {
    let dir = std::env::args_os().nth(1).expect("a directory to build into");
    let dir = Path::new(&dir);
    fs::create_dir_all(dir.join("stubs")).expect("the directory can be made");
    for name in ["model", "needy", "patient", "robot", "runtime"] {
        fs::copy(fixture::program(name), dir.join(name)).expect("a program can be copied");
    }
    // Build images often have this directory in LD_LIBRARY_PATH.
    let stub = parts::cuda("13.0").join("lib/stubs/libcuda.so");
    fs::copy(stub, dir.join("stubs/libcuda.so.1")).expect("a stub can be copied");
}
