//! The toolkit changes while cargo keeps outputs of an earlier one. Cargo detects newer files, and changed variables that a
//! build script announced. It does not detect a redirected symbolic link, a toolkit that was replaced by an older one, or a
//! changed `PATH`. The manifest always records the code in the file.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cudaguard_tests::{Call, Project, e2e, layout, parts, project, tools};

use super::fixture::{codes, independently, manifest, with_toolkit};

/// Ways in which the build script's toolkit changes.
#[derive(Clone, Copy, Debug)]
enum Switch {
    /// The directory in `PATH` contains a symbolic link, which is redirected.
    Link,
    /// Older files replace the files in the directory.
    InPlace,
    /// Another directory is first in `PATH`.
    Path,
}

impl Switch {
    /// Returns the toolkit root that is now in `PATH`.
    fn root(self, project: &Project, version: &str) -> PathBuf {
        let (real, root) = (parts::cuda(version), project.sibling().join("cuda"));
        match self {
            Self::Path => return real,
            Self::Link => layout::link(&real, &root),
            Self::InPlace => {
                let _ = fs::remove_dir_all(&root);
                for file in ["bin/nvcc", "include/cuda.h"] {
                    let (from, to) = (real.join(file), root.join(file));
                    fs::create_dir_all(to.parent().expect("a folder"))
                        .expect("a temporary directory takes directories");
                    fs::copy(from, &to).expect("a part can be copied");
                    age(&to);
                }
                layout::farm(&real, &root);
            }
        }
        root
    }
}

fn age(file: &Path) {
    let old = SystemTime::now() - Duration::from_secs(10_000_000);
    fs::File::options().append(true).open(file).and_then(|file| file.set_modified(old)).expect("a time can be set");
}

/// Calls nvcc directly and links its object.
const BY_ITSELF: &str = r#"
    let object = format!("{out}/kernel.o");
    let made = Command::new("nvcc").args(["-ccbin", "g++-11", "-arch=sm_80", "-c", "kernel.cu", "-o", &object]).status().unwrap();
    assert!(made.success());
    println!("cargo:rustc-link-arg={object}");
"#;

/// Calls nvcc through the cc crate.
const BY_CC: &str = r#"
    cc::Build::new().cuda(true).cudart("none").flag("-arch=sm_80").file("kernel.cu").compile("kernel");
"#;

/// Compiles PTX, which the program loads, as `bindgen_cuda` does for candle.
const PTX: &str = r#"
    let ptx = format!("{out}/kernel.ptx");
    let made = Command::new("nvcc").args(["-ccbin", "g++-11", "-arch=sm_80", "--ptx", "kernel.cu", "-o", &ptx]).status().unwrap();
    assert!(made.success());
"#;

/// Links the cudart of the nvcc in `PATH`.
const CUDART: &str = r#"
    let path = env::var_os("PATH").unwrap();
    let bin = env::split_paths(&path).find(|folder| folder.join("nvcc").exists()).unwrap();
    println!("cargo:rustc-link-arg={}", bin.join("../lib64/libcudart_static.a").canonicalize().unwrap().display());
    for library in ["-lstdc++", "-ldl", "-lrt", "-lpthread"] {
        println!("cargo:rustc-link-arg={library}");
    }
"#;

const KERNEL: &str = "extern \"C\" __global__ void fill(int *p) { *p = 1; }\n\
                      extern \"C\" int launch() { fill<<<1, 1>>>(nullptr); return 0; }\n";
const LAUNCHES: &str = "extern \"C\" { fn launch() -> i32; }\nfn main() { std::process::exit(unsafe { launch() }) }\n";
const LOADS: &str = "static PTX: &str = include_str!(concat!(env!(\"OUT_DIR\"), \"/kernel.ptx\"));\n\
                     fn main() { println!(\"{}\", std::hint::black_box(PTX)); }\n";

/// Returns a package whose build script compiles in this way, and reruns only if its kernel changes.
fn package(way: &str) -> Project {
    let links = if way == PTX { "" } else { CUDART };
    let script = format!(
        "#![allow(unused_imports, unused_variables)]\nuse std::{{env, process::Command}};\nfn main() {{\n    \
         println!(\"cargo:rerun-if-changed=kernel.cu\");\n    let out = env::var(\"OUT_DIR\").unwrap();\n{way}{links}}}\n"
    );
    let dependency = if way == BY_CC { "\n[build-dependencies]\ncc = \"1\"\n" } else { "" };
    Project::new("app")
        .append("Cargo.toml", dependency)
        .file("build.rs", script)
        .file("kernel.cu", KERNEL)
        .file("src/main.rs", if way == PTX { LOADS } else { LAUNCHES })
}

fn call(project: &Project, words: &[&str], root: &Path) -> Call {
    with_toolkit(project.cudaguard(words), Some(root))
}

/// Returns the release that compiled the file. Checks that the manifest records the same.
#[track_caller]
fn recorded(file: &Path) -> String {
    let printed = manifest(file);
    let version = printed["toolkit"]["version"].as_str().unwrap_or_else(|| panic!("no toolkit: {printed:#}"));
    let mut parts = version.split('.');
    let release = format!("{}.{}", parts.next().expect("a major"), parts.next().expect("a minor"));
    assert_eq!(independently(file), BTreeSet::from([release.clone()]), "{printed:#}");
    release
}

/// Builds with one toolkit, switches, and builds again. The retained output is refused in release, warned of in dev, and
/// never recorded as output of the other toolkit.
fn switched(switch: Switch, way: &str, old: &str, new: &str) {
    let _ = tools::need("strings");
    let project = package(way);
    let root = switch.root(&project, old);
    for (words, dir) in [(&["build", "--release"][..], "release/app"), (&["build"], "debug/app")] {
        let right = call(&project, words, &root).run().success();
        assert_eq!(codes(&right), [""; 0], "{switch:?} {way}: {right}");
        assert_eq!(recorded(&project.built(dir)), old, "{switch:?} {way}");
    }
    let root = switch.root(&project, new);
    let refused = call(&project, &["build", "--release"], &root).run();
    let file = project.built("release/app");
    assert!(refused.status() != Some(0) && !file.exists(), "{switch:?} {way}: {refused}");
    assert_eq!(codes(&refused), ["error[CG144]"], "{switch:?} {way}: {refused}");
    let words = format!("app contains code from CUDA {old}, but the toolkit in use is CUDA {new}.");
    assert!(refused.stderr.contains(&words), "{refused}");
    let warned = call(&project, &["build"], &root).run().success();
    assert_eq!(codes(&warned), ["warning[CG144]"], "{switch:?} {way}: {warned}");
    assert_eq!(recorded(&project.built("debug/app")), old, "{switch:?} {way}: {warned}");
    // Runs the command from the hint.
    let _ = project.cargo(["clean", "--release", "-p", "app"]).run().success();
    let right = call(&project, &["build", "--release"], &root).run().success();
    assert_eq!(codes(&right), [""; 0], "{switch:?} {way}: {right}");
    assert_eq!(recorded(&file), new, "{switch:?} {way}");
}

#[e2e(slow)]
fn redirected_link_rebuilds() {
    switched(Switch::Link, BY_ITSELF, "13.0", "13.2");
}

#[e2e(slow)]
fn toolkit_replaced_by_older_rebuilds() {
    switched(Switch::InPlace, BY_CC, "13.2", "13.0");
}

#[e2e(slow)]
fn other_toolkit_in_path_rebuilds() {
    switched(Switch::Path, PTX, "11.8", "13.0");
}

/// If the compiling script calls `embed!()`, the command makes it run again, independent of times. Under plain cargo the
/// same run writes note and code, so both are old or both are new.
#[e2e(slow)]
fn embed_script_runs_again() {
    let (switch, old, new) = (Switch::InPlace, "13.2", "13.0");
    let project = package(BY_ITSELF).append("Cargo.toml", &project::build_dependency());
    let script = fs::read_to_string(project.path().join("build.rs")).expect("just written");
    let project = project.file("build.rs", script.replace("fn main() {", "fn main() {\n    cudaguard::embed!();"));
    for guarded in [true, false] {
        let build = |root: &Path| {
            let words = ["build", "--release"];
            let call = if guarded { project.cudaguard(words) } else { project.cargo(words) };
            let built = with_toolkit(call, Some(root)).run().success();
            assert!(!built.stderr.contains("[CG"), "{guarded}: {built}");
            recorded(&project.built("release/app"))
        };
        assert_eq!(build(&switch.root(&project, old)), old, "{guarded}");
        let now = build(&switch.root(&project, new));
        assert!(now == new || !guarded, "{now}");
        let _ = project.cargo(["clean", "--release", "-p", "app"]).run().success();
    }
}
