//! Build scripts that compile with the cc crate, like most: it uses the compiler from `CXX`, passes it to nvcc with
//! `-ccbin`, and does not reveal its include directories.

use std::fs;
use std::path::Path;

use cudaguard_tests::{Call, Outcome, Project, e2e, parts, tools};
use serde_json::{Value, json};

use super::fixture::{codes, manifest, with_toolkit};

const KERNEL: &str = "static __global__ void fill(int *p) { *p = 1; }\n\
                      extern \"C\" int launch() { fill<<<1, 1>>>(nullptr); return 0; }\n";
const LAUNCHES: &str = "extern \"C\" { fn launch() -> i32; }\nfn main() { std::process::exit(unsafe { launch() }) }\n";

/// Returns a package with this code in its build script.
fn package(script: &str) -> Project {
    Project::new("app")
        .append("Cargo.toml", "\n[build-dependencies]\ncc = \"1\"\n")
        .file("build.rs", format!("fn main() {{\n{script}}}\n"))
}

/// Returns the version that a compiler prints.
fn release(program: &str, option: &str) -> String {
    Call::new(tools::need(program)).arg(option).run().success().stdout.trim().to_owned()
}

/// `CXX=clang++` compiles for cc and for nvcc. The manifest and the lock record it, and a change is reported.
#[e2e(slow)]
fn cxx_compiler_is_recorded() {
    let (clang, gcc) = (release("clang++", "-dumpversion"), release("g++-11", "-dumpfullversion"));
    let script = format!(
        "    cc::Build::new().cuda(true).cudart(\"none\").flag(\"-arch=sm_80\").file(\"kernel.cu\").compile(\"kernel\");\n    \
         for word in [\"{}\", \"-lstdc++\", \"-ldl\", \"-lrt\", \"-lpthread\"] {{\n        \
         println!(\"cargo:rustc-link-arg={{word}}\");\n    }}\n    println!(\"cargo:rerun-if-changed=kernel.cu\");\n",
        parts::cuda("13.0").join("lib64/libcudart_static.a").display()
    );
    let project = package(&script).file("kernel.cu", KERNEL).file("src/main.rs", LAUNCHES);
    let call = |words: &[&str], compiler: &str| {
        // cc uses the compiler from CXX, PATH has another one, and NVCC_CCBIN is ignored.
        with_toolkit(project.cudaguard(words), Some(&parts::cuda("13.0"))).env("CXX", compiler)
    };
    let recorded = |file: &str| manifest(&project.built(file))["host_compiler"].clone();
    let right = call(&["build", "--release"], "clang++").run().success();
    assert_eq!(codes(&right), [""; 0], "{right}");
    assert_eq!(recorded("release/app"), format!("clang {clang}"));
    let _ = call(&["lock"], "clang++").run().success();
    let lock = fs::read_to_string(project.path().join("cudaguard.lock")).expect("it was written");
    assert!(lock.contains(&format!("host-compiler = \"clang {clang}")), "{lock}");
    let right = call(&["build", "--release", "--locked"], "clang++").run().success();
    assert_eq!(codes(&right), [""; 0], "{right}");
    let refused = call(&["build", "--release"], "g++-11").run();
    assert!(refused.status() != Some(0) && !project.built("release/app").exists(), "{refused}");
    assert_eq!(codes(&refused), ["error[CG107]"], "{refused}");
    let warned = call(&["build"], "g++-11").run().success();
    assert_eq!(codes(&warned), ["warning[CG107]"], "{warned}");
    assert_eq!(recorded("debug/app"), format!("gcc {gcc}"));
    let comment = Call::new(tools::need("readelf")).args(["-p", ".comment"]).arg(project.built("debug/app")).run();
    assert!(comment.stdout.contains(&gcc) && !comment.stdout.contains("clang version"), "{comment}");
}

/// Returns a program whose code includes cuDNN's headers and links the library of 9.15.1.
fn with_cudnn(compile: &str) -> Project {
    let script = format!(
        "    let include = std::fs::read_to_string(\"include\").unwrap();\n    let cuda = \"{}\";\n    \
         let out = std::env::var(\"OUT_DIR\").unwrap();\n    println!(\"cargo:rerun-if-changed=include\");\n{compile}    \
         println!(\"cargo:rustc-link-search=native={}\");\n    println!(\"cargo:rustc-link-arg=-lcudnn\");\n    \
         println!(\"cargo:rustc-link-arg=-lstdc++\");\n",
        parts::cuda("13.0").join("include").display(),
        parts::cudnn("9.15.1").join("lib").display(),
    );
    let source = "#include <cudnn.h>\nextern \"C\" int launch() {\n    cudnnHandle_t handle;\n    \
                  return cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS && cudnnGetVersion() == CUDNN_VERSION;\n}\n";
    package(&script).file("ops.cpp", source).file("ops.cu", source).file("src/main.rs", LAUNCHES)
}

/// Compiles with the cc crate and announces the header, as bindgen's callbacks do.
const ANNOUNCED: &str = "    cc::Build::new().cpp(true).include(&include).include(cuda).file(\"ops.cpp\").compile(\"ops\");\n    \
                         let _ = out;\n    println!(\"cargo:rerun-if-changed={include}/cudnn.h\");\n";

/// Compiles with nvcc, which lists its dependencies.
const LISTED: &str = "    let _ = cuda;\n    let object = format!(\"{out}/ops.o\");\n    \
                      let words = [\"-MD\", \"-I\", &include, \"-c\", \"ops.cu\", \"-o\", &object];\n    \
                      assert!(std::process::Command::new(\"nvcc\").args(words).status().unwrap().success());\n    \
                      println!(\"cargo:rustc-link-arg={object}\");\n    \
                      println!(\"cargo:rustc-link-arg=-Wl,--as-needed\");\n    \
                      println!(\"cargo:rustc-link-arg={cuda}/../lib64/libcudart_static.a\");\n    \
                      for library in [\"-ldl\", \"-lrt\", \"-lpthread\"] {\n        \
                      println!(\"cargo:rustc-link-arg={library}\");\n    }\n";

/// Builds with nvcc 13.0 and the headers in this directory.
fn build(project: &Project, words: &[&str], include: &Path) -> Outcome {
    let text = include.display().to_string();
    if fs::read_to_string(project.path().join("include")).ok().as_ref() != Some(&text) {
        project.write("include", text);
    }
    call(project, words).run()
}

fn call(project: &Project, words: &[&str]) -> Call {
    with_toolkit(project.cudaguard(words), Some(&parts::cuda("13.0")))
}

fn cudnn(project: &Project, file: &str) -> Value {
    manifest(&project.built(file))["cudnn"].clone()
}

/// The program is compiled with one release and linked with another.
#[e2e(slow)]
fn other_header_release_is_reported() {
    let include = parts::cudnn("9.1.0").join("include");
    for way in [ANNOUNCED, LISTED] {
        let project = with_cudnn(way);
        let refused = build(&project, &["build", "--release"], &include);
        assert!(refused.status() != Some(0) && !project.built("release/app").exists(), "{way}: {refused}");
        assert_eq!(codes(&refused), ["error[CG110]"], "{way}: {refused}");
        for words in [
            "cuDNN's headers are 9.1.0, its library is 9.15.1.",
            &include.join("cudnn_version.h").display().to_string(),
            &parts::cudnn("9.15.1").join("lib/libcudnn.so").display().to_string(),
        ] {
            assert!(refused.stderr.contains(words), "{words}: {refused}");
        }
        let warned = build(&project, &["build"], &include).success();
        assert_eq!(codes(&warned), ["warning[CG110]"], "{way}: {warned}");
        let recorded = json!({"version": "9.1.0", "linkage": "linked", "library": "9.15.1"});
        assert_eq!(cudnn(&project, "debug/app"), recorded, "{way}");
    }
}
