//! A package with a typical build script that calls nvcc.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use cargo_cudaguard::binary::file::Binary;
use cudaguard::internal::manifest::Manifest;
use cudaguard_tests::compiled_once::nvcc_once;
use cudaguard_tests::{Call, Outcome, Project, parts, project, snapshot};

/// Build script that compiles all `kernels/*.cu` with the flags in `kernels/flags` (or `kernels/NAME.flags` for one
/// source). It links them, the objects in that directory, and the libraries in `kernels/link`.
const BUILD_RS: &str = r#"use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    let cuda = PathBuf::from(env::var_os("CUDA_HOME").unwrap());
    let read = |path: PathBuf| fs::read_to_string(path).ok();
    println!("cargo:rerun-if-changed=kernels");
    println!("cargo:rerun-if-env-changed=NVCC_APPEND_FLAGS");
    let mut files: Vec<_> = fs::read_dir("kernels").unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for file in files {
        let mut object = fs::canonicalize(&file).unwrap();
        match file.extension().and_then(|ending| ending.to_str()) {
            Some("cu") => {
                object = out.join(file.with_extension("o").file_name().unwrap());
                let flags = read(file.with_extension("flags")).or_else(|| read("kernels/flags".into())).unwrap();
                let mut nvcc = Command::new("nvcc");
                nvcc.arg("-c").args(flags.split_whitespace());
                nvcc_once(nvcc, &file, &object);
            }
            Some("o") => {}
            _ => continue,
        }
        println!("cargo:rustc-link-arg={}", object.display());
    }
    println!("cargo:rustc-link-arg={}", cuda.join("lib/libcudart_static.a").display());
    for library in ["-lstdc++", "-ldl", "-lrt", "-lpthread"] {
        println!("cargo:rustc-link-arg={library}");
    }
    for argument in read("kernels/link".into()).iter().flat_map(|text| text.lines()) {
        println!("cargo:rustc-link-arg={argument}");
    }
}
"#;

/// Package, its toolkit and the changes since the last build.
pub(crate) struct Fixture {
    name: &'static str,
    pub(crate) project: Project,
    pub(crate) cuda: PathBuf,
    variables: Vec<(&'static str, OsString)>,
}

impl Fixture {
    /// Creates a package with one kernel, these nvcc flags and this policy.
    pub(crate) fn new(name: &'static str, flags: &str, policy: &str) -> Self {
        let cuda = parts::cuda("13.0");
        let tree = Project::in_dir(name, "tree");
        for (file, content) in [
            ("Cargo.toml", &*project::package("app")),
            ("build.rs", &(BUILD_RS.to_owned() + &nvcc_once())),
            ("src/main.rs", "fn main() {\n    println!(\"ran\");\n}\n"),
            ("kernels/first.cu", "__global__ void first(int *p) { p[threadIdx.x] = 1; }\n"),
            ("kernels/flags", flags),
            ("cudaguard.toml", policy),
        ] {
            tree.write(file, content);
        }
        Self { name, project: tree, cuda, variables: Vec::new() }
    }

    /// Adds a source.
    pub(crate) fn source(&self, name: &str) {
        self.change(
            &format!("kernels/{name}.cu"),
            &format!("__global__ void {name}(int *p) {{ p[threadIdx.x] = 2; }}\n"),
        );
    }

    /// Writes a file with a modification time after all builds.
    pub(crate) fn change(&self, name: &str, content: &str) {
        self.project.change(name, content);
        // For an announced directory, cargo compares its own time and those of its files.
        let path = self.project.path().join(name);
        if let Some(dir) = path.parent().filter(|dir| *dir != self.project.path()) {
            let dir = fs::File::open(dir).expect("a folder");
            dir.set_modified(SystemTime::now() + Duration::from_secs(5)).expect("a time can be set");
        }
    }

    /// Runs nvcc in the package's directory.
    pub(crate) fn nvcc(&self, arguments: &str) {
        let call = self.with_toolkit(Call::new(self.cuda.join("bin/nvcc")).args(arguments.split_whitespace()));
        let _ = call.run().success();
    }

    fn with_toolkit(&self, call: Call) -> Call {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let dirs = std::iter::once(self.cuda.join("bin")).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(dirs).expect("a PATH");
        let call = call.dir(self.project.path()).env("PATH", path).env("CUDA_HOME", &self.cuda);
        self.variables.iter().fold(call, |call, (name, value)| call.env(name, value))
    }

    /// Runs `cargo cudaguard build`.
    pub(crate) fn build(&self, arguments: &[&str]) -> Outcome {
        let call = self.project.cudaguard(["build"].iter().chain(arguments));
        self.with_toolkit(call.env("CARGO_TERM_COLOR", "never")).run()
    }

    /// Returns cudaguard's output in a build, without paths of this machine.
    pub(crate) fn printed(&self, outcome: &Outcome) -> String {
        let starts = ["error[", "warning[", "info[", "cudaguard: ", "error: cudaguard: "];
        let mut text = snapshot::blocks(&outcome.stderr, &starts);
        if text.is_empty() && outcome.status() != Some(0) {
            // The error of another program.
            text.clone_from(&outcome.stderr);
        }
        let names = [
            (self.project.path(), "<package>"),
            (self.project.sibling(), "<scratch>"),
            (self.cuda.as_path(), "<cuda>"),
        ];
        snapshot::paths(text.trim_end(), &names)
    }

    /// Compares the output with the snapshot of this test.
    #[track_caller]
    pub(crate) fn check(&self, part: &str, outcome: &Outcome) {
        snapshot::check(&format!("verified/{}-{part}", self.name), &self.printed(outcome));
    }

    pub(crate) fn built(&self, profile: &str) -> PathBuf {
        self.project.built(&format!("{profile}/app"))
    }

    /// Returns the manifest in the built program.
    #[track_caller]
    pub(crate) fn manifest(&self, profile: &str) -> Manifest {
        let binary = Binary::read(&self.built(profile)).unwrap_or_else(|error| panic!("{error}"));
        let note = binary.manifests().next().expect("a note").unwrap_or_else(|error| panic!("{error}"));
        assert!(note.manifest.sealed);
        note.manifest
    }
}

/// Returns a `-gencode` option for each word, such as `80:sm_80 90:sm_90,compute_90`.
pub(crate) fn gencode(asked: &str) -> String {
    let one = |word: &str| {
        let (compute, codes) = word.split_once(':').expect("compute:codes");
        format!("-gencode arch=compute_{compute},code=[{codes}]")
    };
    asked.split(' ').map(one).collect::<Vec<_>>().join(" ")
}
