use std::{env, process::Command};

fn main() {
    let ptx = env::var("OUT_DIR").unwrap() + "/scale.ptx";
    let nvcc = Command::new("nvcc").args(["-arch=compute_80", "-ptx", "src/scale.cu", "-o", &ptx]).status();
    assert!(nvcc.is_ok_and(|status| status.success()), "nvcc failed");
    cudaguard::embed!();
}
