//! Compiles each kernel to PTX for the oldest GPU of the fleet.

use std::{env, process::Command};

fn main() {
    let out = env::var("OUT_DIR").unwrap();
    for name in ["add", "scale"] {
        let source = format!("src/{name}.cu");
        println!("cargo:rerun-if-changed={source}");
        let nvcc = Command::new("nvcc").args(["-arch=compute_80", "-ptx", &source, "-o", &format!("{out}/{name}.ptx")]).status();
        assert!(nvcc.is_ok_and(|status| status.success()), "nvcc failed");
    }
}
