//! Tests of the checks before a release: `verify` with requirements, and `diff` of two releases.

mod diff;
mod gate;

use std::fs;
use std::path::{Path, PathBuf};

use cudaguard_tests::{Call, Outcome, Scratch, command, once, parts, tools};

/// Compiles kernels of one source for these `-gencode` values, once for all tests.
fn compile(scratch: &Scratch, name: &str, gencodes: &[&str]) -> PathBuf {
    let cuda = parts::cuda("13.0");
    let source = scratch.file(
        format!("{name}.cu"),
        format!("__global__ void {name}(int *p) {{ *p = 1; }}\nvoid f_{name}(int *p) {{ {name}<<<1, 1>>>(p); }}\n"),
    );
    let object = scratch.join(format!("{name}.o"));
    let compiled = once(&format!("release {name} {gencodes:?}"), || {
        let options = gencodes.iter().flat_map(|gencode| ["-gencode", gencode]);
        let call = Call::new(cuda.join("bin/nvcc")).args(["-c", "-Xcompiler", "-fPIC"]).args(options);
        let _ = call.arg(&source).arg("-o").arg(&object).dir(scratch.path()).run().success();
        fs::read(&object).expect("an object")
    });
    fs::write(&object, compiled).expect("a directory of this test");
    object
}

/// Links a shared library against the shared libcudart.
fn link(scratch: &Scratch, name: &str, objects: &[&Path]) -> PathBuf {
    tools::need("g++");
    let library = scratch.join(name);
    fs::create_dir_all(library.parent().expect("a directory")).expect("a directory");
    let _ = Call::new("g++")
        .args(["-shared", "-o"])
        .arg(&library)
        .args(objects)
        .arg(parts::cuda("13.0").join("lib/libcudart.so.13"))
        .run()
        .success();
    library
}

/// Packs the directory `tree` as a wheel with this name.
fn wheel(scratch: &Scratch, name: &str) -> PathBuf {
    tools::need("python3");
    let script =
        "import sys, shutil; shutil.make_archive('packed', 'zip', 'tree'); shutil.move('packed.zip', sys.argv[1])";
    let _ = Call::new("python3").args(["-c", script, name]).dir(scratch.path()).run().success();
    scratch.join(name)
}

fn verify(scratch: &Scratch, words: &[&str]) -> Outcome {
    command::call(["verify"]).args(words).dir(scratch.path()).run()
}
