//! Cargo and CMake build one program from the same toolchain and write equivalent manifests.

use std::fs;
use std::path::PathBuf;

use cudaguard_tests::{Project, Test, parts, tests};
use serde_json::Value;

use super::fixture::{Cmake, NINJA, Tree, include, manifest, toolkit, words};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        #[slow]
        cargo_and_cmake_findings_match
    ]
}

const KERNEL: &str = "__global__ void fill(int *p) { *p = 1; }\n\
                      extern \"C\" int launch() { fill<<<1, 1>>>(nullptr); return 0; }\n";
const POLICY: &str =
    "[cudnn]\nlinkage = \"dlopened\"\n[gpu]\narchs = [\"sm_80\", \"compute_90\"]\n[runtime]\ngpu = \"optional\"\n";

fn cargo_and_cmake_findings_match() {
    let cuda = parts::cuda("13.0");
    let cudnn = parts::cudnn("9.15.1");
    let text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(app VERSION 0.1.0 LANGUAGES CXX CUDA)\n{}\
         add_executable(app main.cpp kernel.cu)\ntarget_include_directories(app PRIVATE \"{}\")\ncudaguard_embed(app)\n",
        include(),
        cudnn.join("include").display()
    );
    let main = "extern \"C\" int launch();\nint main() { return launch(); }\n";
    let tree = Tree::new(
        "same",
        Cmake::Oldest,
        NINJA,
        &[("CMakeLists.txt", &text), ("main.cpp", main), ("kernel.cu", KERNEL), ("cudaguard.toml", POLICY)],
    );
    let mut configured = toolkit("13.0");
    configured
        .extend(["-DCMAKE_CUDA_ARCHITECTURES=80-real;90-virtual".to_owned(), "-DCMAKE_BUILD_TYPE=Release".to_owned()]);
    let _ = tree.configure(&words(&configured)).run().success();
    let _ = tree.build(&[]).run().success();

    let project = Project::new("app")
        .file(
            "build.rs",
            "use std::process::Command;\n\
             fn main() {\n    \
                 let out = std::env::var(\"OUT_DIR\").unwrap();\n    \
                 let cuda = std::env::var(\"CUDA_HOME\").unwrap();\n    \
                 let run = |program: &str, words: &[&str]| {\n        \
                     assert!(Command::new(program).args(words).status().unwrap().success())\n    \
                 };\n    \
                 let (object, library) = (format!(\"{out}/kernel.o\"), format!(\"{out}/libkernel.a\"));\n    \
                 run(&format!(\"{cuda}/bin/nvcc\"), &[\"-gencode=arch=compute_80,code=sm_80\", \
                      \"-gencode=arch=compute_90,code=compute_90\", \"-c\", \"kernel.cu\", \"-o\", &object]);\n    \
                 run(\"ar\", &[\"rcs\", &library, &object]);\n    \
                 println!(\"cargo:rustc-link-search=native={out}\");\n    \
                 println!(\"cargo:rustc-link-search=native={cuda}/lib64\");\n    \
                 for name in [\"static=kernel\", \"cudart_static\", \"stdc++\", \"dl\", \"rt\", \"pthread\"] {\n        \
                     println!(\"cargo:rustc-link-lib={name}\");\n    \
                 }\n\
             }\n",
        )
        .file("kernel.cu", KERNEL)
        .file("cudaguard.toml", POLICY)
        .file(
            "src/main.rs",
            "extern \"C\" { fn launch() -> i32; }\nfn main() { std::process::exit(unsafe { launch() }) }\n",
        );
    let path = std::env::var("PATH").expect("a PATH");
    let _ = project
        .cudaguard(["build", "--release"])
        .env("CUDA_HOME", &cuda)
        .env("PATH", format!("{}:{path}", cuda.join("bin").display()))
        .env("CUDNN_INCLUDE_DIR", cudnn.join("include"))
        .run()
        .success();
    let _ = tree.build(&["--target", "cudaguard-lock"]).run().success();
    let _ = project
        .cudaguard(["lock"])
        .env("CUDA_HOME", &cuda)
        .env("PATH", format!("{}:{path}", cuda.join("bin").display()))
        .env("CUDNN_INCLUDE_DIR", cudnn.join("include"))
        .run()
        .success();
    let lock = |file: PathBuf| fs::read_to_string(file).expect("the lock is written");
    let locked = lock(tree.source().join("cudaguard.lock"));
    assert_eq!(locked, lock(project.path().join("cudaguard.lock")), "one toolchain, one lock");
    for fact in
        ["archs = [\"sm_80\", \"compute_90\"]", "cudnn = \"9.15.1\"", "host-compiler = \"gcc ", "toolkit = \"13.0.88\""]
    {
        assert!(locked.contains(fact), "{fact}: {locked}");
    }
    let by_cmake = manifest(&tree.built("app"), "app");
    let by_cargo = manifest(&project.built("release/app"), "app");
    assert!(by_cargo["sealed"] == true && !by_cargo["requires"].as_array().is_none_or(Vec::is_empty), "{by_cargo:#}");
    // Name, version and profile name are the same, so the manifests must not differ.
    let differ = |one: &Value, other: &Value| {
        let keys = one.as_object().into_iter().chain(other.as_object()).flat_map(|object| object.keys());
        let mut keys: Vec<String> = keys.filter(|key| one[*key] != other[*key]).cloned().collect();
        keys.dedup();
        keys
    };
    assert_eq!(differ(&by_cmake, &by_cargo), Vec::<String>::new(), "{by_cmake:#}\n{by_cargo:#}");
}
