//! Compiles the kernel, links cuDNN and adds the guard to the program.

use std::env;
use std::path::PathBuf;

/// Machine code for Turing, Ampere and Hopper, and PTX, which the driver compiles for later GPUs.
const ARCHS: [&str; 3] =
    ["arch=compute_75,code=sm_75", "arch=compute_80,code=sm_80", "arch=compute_90,code=[sm_90,compute_90]"];

fn main() {
    let mut build = cc::Build::new();
    build.cuda(true).cudart("static").file("src/saxpy.cu");
    for arch in ARCHS {
        build.flag("-gencode").flag(arch);
    }
    build.compile("saxpy");

    if let Some(cudnn) = env::var_os("CUDNN_PATH") {
        println!("cargo::rustc-link-search=native={}", PathBuf::from(cudnn).join("lib").display());
    }
    println!("cargo::rerun-if-env-changed=CUDNN_PATH");
    println!("cargo::rustc-link-lib=cudnn");

    cudaguard::embed!();
}
