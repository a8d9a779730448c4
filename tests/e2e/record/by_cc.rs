//! Build scripts that compile with the cc crate, like most: it uses the compiler from `CXX`, passes it to nvcc with
//! `-ccbin`, and does not reveal its include directories.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use cudaguard_tests::{Call, Outcome, Project, e2e, parts, project, scratch, tools};
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

/// Compiles with the cc crate, whose `-I` options are not recorded.
const BY_CC: &str = "    cc::Build::new().cpp(true).include(&include).include(cuda).file(\"ops.cpp\").compile(\"ops\");\n    let _ = out;\n";

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

/// A compiler's dependency list or an announcement of the script show the headers. A build by cc alone shows nothing, so
/// the library's release is recorded instead, with a warning.
#[e2e(slow)]
fn script_headers_are_recorded() {
    let include = parts::cudnn("9.15.1").join("include");
    let known = json!({"version": "9.15.1", "linkage": "linked"});
    let by_library = json!({"version": "9.15.1", "linkage": "linked", "known": "linked"});
    for (way, warnings, recorded) in
        [(BY_CC, &["warning[CG146]"][..], &by_library), (ANNOUNCED, &[], &known), (LISTED, &[], &known)]
    {
        let project = with_cudnn(way);
        let built = build(&project, &["build", "--release"], &include).success();
        assert_eq!(codes(&built), warnings, "{way}: {built}");
        assert_eq!(&cudnn(&project, "release/app"), recorded, "{way}: {built}");
        let built = build(&project, &["build"], &include).success();
        assert_eq!(codes(&built), warnings, "{way}: {built}");
        assert_eq!(&cudnn(&project, "debug/app"), recorded, "{way}: {built}");
        let needed = Call::new(tools::need("readelf")).arg("-d").arg(project.built("debug/app")).run().success();
        assert!(needed.stdout.contains("[libcudnn.so.9]"), "{needed}");
        // Unused headers in /usr/include are ignored.
        let root = project.sibling().join("root");
        let old = "#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 9\n#define CUDNN_PATCHLEVEL 7\n";
        scratch::write(&root.join("usr/include/cudnn_version.h"), old);
        project.touch("include");
        let built = call(&project, &["build"]).env("CUDAGUARD_SYSROOT", &root).run().success();
        assert!(
            codes(&built).iter().all(|code| code.starts_with("info") || warnings.contains(&code.as_str())),
            "{way}: {built}"
        );
        assert_eq!(&cudnn(&project, "debug/app"), recorded, "{way}: {built}");
    }
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

/// The directory contains other headers now than at compile time, with older modification times, so they prove nothing.
#[e2e(slow)]
fn replaced_headers_are_reported() {
    let project = with_cudnn(LISTED);
    let include = project.sibling().join("headers");
    let lay = |version: &str| {
        let _ = fs::remove_dir_all(&include);
        fs::create_dir(&include).expect("a folder");
        for header in fs::read_dir(parts::cudnn(version).join("include")).expect("headers") {
            let header = header.expect("a header").path();
            let to = include.join(header.file_name().expect("a name"));
            fs::copy(&header, &to).expect("a copy");
            let long_ago = SystemTime::now() - Duration::from_secs(10_000_000);
            fs::File::options().append(true).open(&to).and_then(|file| file.set_modified(long_ago)).expect("a time");
        }
    };
    lay("9.15.1");
    let built = build(&project, &["build", "--release"], &include).success();
    assert_eq!(codes(&built), [""; 0], "{built}");
    lay("9.1.0");
    project.change("src/main.rs", format!("{LAUNCHES}// Linked anew.\n"));
    let built = build(&project, &["build", "--release"], &include).success();
    assert_eq!(codes(&built), ["warning[CG146]"], "{built}");
    assert_eq!(cudnn(&project, "release/app")["known"], "linked", "{built}");
}

/// `embed!()` announces the headers that it detects, so that cargo reruns the script if they change. This does not prove
/// that they were used.
#[e2e(slow)]
fn guard_inspected_headers_are_ignored() {
    let ours = project::build_dependency().replace("[build-dependencies]\n", "");
    let project = with_cudnn(BY_CC).append("Cargo.toml", &ours);
    let script = fs::read_to_string(project.path().join("build.rs")).expect("just written");
    project.write("build.rs", script.replace("fn main() {", "fn main() {\n    cudaguard::embed!();"));
    let root = project.sibling().join("root");
    let old = "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 1\n#define CUDNN_PATCHLEVEL 0\n";
    scratch::write(&root.join("usr/include/cudnn_version.h"), old);
    project.write("include", parts::cudnn("9.15.1").join("include").display().to_string());
    let built = call(&project, &["build", "--release"]).env("CUDAGUARD_SYSROOT", &root).run().success();
    assert_eq!(codes(&built), ["warning[CG146]"], "{built}");
    let linked = json!({"version": "9.15.1", "linkage": "linked", "known": "linked"});
    assert_eq!(cudnn(&project, "release/app"), linked, "{built}");
}

/// The cc crate prints its calls on request, and older releases always do: `running: "c++" "-I" …`.
#[e2e(slow)]
fn headers_in_cc_calls_are_recorded() {
    let root = |project: &Project| {
        let root = project.sibling().join("root");
        let old = "#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 9\n#define CUDNN_PATCHLEVEL 7\n";
        scratch::write(&root.join("usr/include/cudnn_version.h"), old);
        root
    };
    for (headers, printed) in [("9.15.1", &[][..]), ("9.1.0", &["CG110"])] {
        let project = with_cudnn(BY_CC);
        project.write("include", parts::cudnn(headers).join("include").display().to_string());
        let build = |words: &[&str]| {
            let around = call(&project, words).env("CC_ENABLE_DEBUG_OUTPUT", "1");
            around.env("CUDAGUARD_SYSROOT", root(&project)).run()
        };
        let built = build(&["build", "--release"]);
        let expected: Vec<_> = printed.iter().map(|code| format!("error[{code}]")).collect();
        let heavy: Vec<_> = codes(&built).into_iter().filter(|code| !code.starts_with("info")).collect();
        assert_eq!(heavy, expected, "{headers}: {built}");
        assert_eq!(built.status() == Some(0), printed.is_empty(), "{headers}: {built}");
        assert_eq!(project.built("release/app").exists(), printed.is_empty(), "{headers}: {built}");
        if printed.is_empty() {
            let known = json!({"version": "9.15.1", "linkage": "linked"});
            assert_eq!(cudnn(&project, "release/app"), known, "{built}");
        }
    }
}
