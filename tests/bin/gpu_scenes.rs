//! Builds the programs of the driver suite into a directory, for `tests/on-a-gpu.sh`.

#[allow(dead_code, reason = "the suite needs more of it")]
#[path = "../e2e/driver/fixture.rs"]
mod fixture;

use std::fs;
use std::path::Path;

use cudaguard_tests::parts;

fn main() {
    let folder = std::env::args_os().nth(1).expect("a folder to build into");
    let folder = Path::new(&folder);
    fs::create_dir_all(folder.join("stubs")).expect("the folder can be made");
    for name in ["model", "needy", "patient", "robot", "runtime"] {
        fs::copy(fixture::program(name), folder.join(name)).expect("a program can be copied");
    }
    // Build images often have this directory in LD_LIBRARY_PATH.
    let stub = parts::cuda("13.0").join("lib/stubs/libcuda.so");
    fs::copy(stub, folder.join("stubs/libcuda.so.1")).expect("a stub can be copied");
}
