//! A program that compiles its kernels like candle, with cudaforge and the real nvcc. The binary contains the arch that the
//! crate derives from the variable.

use std::collections::BTreeSet;

use cudaguard_tests::{Call, command, e2e, parts};

use super::fixture::Tree;
use super::real_crates::tree;

const BUILD: &str = "\
fn main() {
    let out = std::env::var(\"OUT_DIR\").unwrap();
    let kernels = cudaforge::KernelBuilder::new().source_files(vec![\"src/scale.cu\"]);
    kernels.build_lib(format!(\"{out}/libscale.a\")).unwrap();
    println!(\"cargo:rustc-link-search={out}\");
    println!(\"cargo:rustc-link-search={}/lib64\", std::env::var(\"CUDA_HOME\").unwrap());
    println!(\"cargo:rustc-link-lib=static=scale\");
    println!(\"cargo:rustc-link-lib=dylib=cudart\");
    println!(\"cargo:rustc-link-lib=dylib=stdc++\");
}
";

const KERNEL: &str = "\
__global__ void scale(float *values, float by) { values[threadIdx.x] *= by; }
extern \"C\" int launch(void) {
    float *values = 0;
    cudaError_t error = cudaMalloc(&values, 128);
    if (error == cudaSuccess) scale<<<1, 32>>>(values, 2.0f);
    return (int)(error == cudaSuccess ? cudaDeviceSynchronize() : error);
}
";

const MAIN: &str = "\
unsafe extern \"C\" {
    fn launch() -> i32;
}

fn main() {
    println!(\"cudart says {}\", unsafe { launch() });
}
";

#[e2e(slow)]
fn candle_kernels_are_checked() {
    let cuda = parts::cuda("13.0");
    let driver = parts::driver("535");
    let tree = tree("cudaforge", "[build-dependencies]\ncudaforge = \"=0.1.6\"\n");
    tree.write("build.rs", BUILD);
    tree.write("src/scale.cu", KERNEL);
    tree.write("src/main.rs", MAIN);
    let path = std::env::var("PATH").expect("a PATH");
    let call = |tree: &Tree, arguments: &[&str]| {
        let call = tree.call("13.0", arguments).env("CUDA_HOME", &cuda).env("CUDA_PATH", &cuda);
        call.env("PATH", format!("{}/bin:{path}", cuda.display())).env("CUDA_COMPUTE_CAP", "90")
    };
    let fleet = |fleet: &str| tree.write("cudaguard.toml", &format!("[gpu]\nfleet = [{fleet}]\n"));
    fleet("\"H100\", \"B200\"");
    let refused = call(&tree, &["build", "--release"]).run().expect(1);
    assert!(refused.stderr.contains("error[CG156]: CUDA_COMPUTE_CAP=90 leaves B200 (10.0)"), "{refused}");
    assert!(refused.stderr.contains("crate: app -> cudaforge 0.1.6"), "{refused}");
    fleet("\"H100\"");
    let built = call(&tree, &["build"]).run().success();
    assert!(!built.stderr.contains("error[") && !built.stderr.contains("warning["), "{built}");
    let program = tree.root().join("target/debug/app");
    let listed = command::inspect(&program);
    let entries = listed["kernels"]["entries"].as_array().expect("kernels");
    let archs: BTreeSet<&str> = entries.iter().filter_map(|entry| entry["arch"].as_str()).collect();
    assert_eq!(archs, BTreeSet::from(["sm_90a"]), "the file contains the reported code: {listed}");
    assert_eq!(listed["components"][0]["archs"]["observed"], serde_json::json!(["sm_90a"]), "{listed}");
    // The program starts without a GPU, and its guard reports the same.
    let libraries = std::env::join_paths([driver.as_path(), &cuda.join("lib64")]).expect("folders");
    let printed = Call::new(&program).env("LD_LIBRARY_PATH", &libraries).run().success();
    assert!(printed.stdout.starts_with("cudart says ") && !printed.stdout.contains("says 0"), "{printed}");
    assert!(printed.stderr.is_empty(), "{printed}");
    // The loader would end the program without its cudart, and `exec` predicts this.
    let predicted = command::call(["exec", "--"]).arg(&program).env("LD_LIBRARY_PATH", &driver).run().expect(78);
    assert!(predicted.stderr.contains("libcudart.so.13"), "{predicted}");
}
