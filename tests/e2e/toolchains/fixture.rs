//! Machine of a test: a system root in a scratch directory, with links to real parts. If tests may not fetch a real part, a
//! fake prints the output of the real nvcc (`nvcc.json`). The tests run the command like users.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use cudaguard::internal::env::Env;
use cudaguard::internal::toolchain::{DetectOptions, SYSROOT, Toolchain};
use cudaguard_tests::{Call, Outcome, Scratch, codes, command, parts, project, scratch, snapshot};
use serde_json::Value;

/// Machine, its environment and its target.
pub(crate) struct Bench {
    name: &'static str,
    root: Scratch,
    variables: BTreeMap<String, OsString>,
    /// Target to build for, or `None` for this machine.
    pub(crate) target: Option<String>,
}

/// Output of `check --release --json`.
pub(crate) struct ReportedFinding {
    /// Output as text.
    printed: String,
    value: Value,
}

impl ReportedFinding {
    /// Returns all detected facts.
    pub(crate) fn toolchain(&self) -> &Value {
        &self.value["packages"][0]["toolchain"]
    }

    /// Returns a value of the toolchain as text, for example `/cudart/path`, or an empty text.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.toolchain().pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the version of the selected toolkit.
    pub(crate) fn toolkit(&self) -> &str {
        self.text("/toolkit/version")
    }

    /// Returns the version of the selected cuDNN.
    pub(crate) fn cudnn(&self) -> &str {
        self.text("/cudnn/version")
    }

    /// Returns the host compiler as text.
    pub(crate) fn host_compiler(&self) -> &str {
        self.value["packages"][0]["host_compiler"].as_str().unwrap_or_default()
    }

    /// Returns the number of detected `toolkits` or `cudnns`.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.toolchain()[what].as_array().map_or(0, Vec::len)
    }

    /// Returns the toolkit whose nvcc compiles.
    pub(crate) fn compiling(&self) -> &Value {
        let toolkits = self.toolchain()["toolkits"].as_array().expect("a list");
        toolkits.iter().find(|toolkit| toolkit.get("compiles").is_some()).expect("one compiles")
    }

    /// Returns the declared archs.
    pub(crate) fn declared(&self) -> Vec<&str> {
        let declared = self.toolchain()["archs"]["declared"].as_array().expect("a list");
        declared.iter().filter_map(Value::as_str).collect()
    }

    /// Returns the hints of the findings.
    pub(crate) fn hints(&self) -> Vec<&str> {
        let findings = self.value["findings"].as_array().expect("a list");
        findings.iter().filter_map(|finding| finding["hint"].as_str()).collect()
    }

    /// Returns codes and severities, such as `CG101 error`.
    pub(crate) fn findings(&self) -> Vec<String> {
        for finding in self.value["findings"].as_array().expect("a list") {
            assert!(finding["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "a finding has a hint: {finding}");
        }
        codes(&self.value)
    }
}

/// Returns the output of `nvcc --version` of this build.
pub(crate) fn text_printed(build: &str) -> String {
    let releases = recorded();
    let release = releases
        .iter()
        .find(|release| release["version"] == build)
        .unwrap_or_else(|| panic!("nvcc.json knows nothing of {build}"));
    let built = release["built"].as_str().expect("a text");
    let (short, year) = (build.rsplit_once('.').expect("three numbers").0, built.rsplit('_').next().expect("a year"));
    let last = release["build"].as_str().map(|build| format!("Build {build}\n"));
    format!(
        "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-{year} NVIDIA Corporation\nBuilt on {built}\nCuda \
         compilation tools, release {short}, V{build}\n{}",
        last.unwrap_or_default()
    )
}

/// Returns the three numbers of a version.
pub(crate) fn three_numbers(version: &str) -> (u32, u32, u32) {
    let mut numbers = version.split('.').map(|number| number.parse().expect("a number"));
    let mut next = || numbers.next().expect("three numbers");
    (next(), next(), next())
}

/// Returns the releases of `nvcc.json`, oldest first.
pub(crate) fn recorded() -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("nvcc.json")).expect("JSON");
    all["releases"].as_array().expect("a list").clone()
}

impl Bench {
    /// Creates a machine with gcc 12.2.0 in `/usr/bin`, which is its `PATH`, and a package to build.
    pub(crate) fn new(name: &'static str) -> Self {
        Self::in_dir(name, Scratch::new(name))
    }

    /// Creates a machine whose paths contain no blanks, for variables that are split at blanks.
    pub(crate) fn without_blanks(name: &'static str) -> Self {
        Self::in_dir(name, Scratch::without_blanks(name))
    }

    fn in_dir(name: &'static str, root: Scratch) -> Self {
        let mut bench = Self { name, root, variables: BTreeMap::new(), target: None };
        bench.file("home/app/Cargo.toml", project::package("app") + "[features]\ncudnn = []\n");
        bench.file("home/app/src/main.rs", "fn main() {}\n");
        bench.file("home/app/src/scale.cu", "__global__ void scale(float *x) { *x *= 2; }\n");
        bench.gcc("usr/bin/gcc", "12.2.0");
        let path = bench.at("usr/bin");
        bench.set("PATH", path);
        bench
    }

    /// Writes the package's `cudaguard.toml`.
    pub(crate) fn policy(&self, text: &str) {
        self.file("home/app/cudaguard.toml", text);
    }

    /// Returns a path on this machine.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Sets a variable.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.insert(name.to_owned(), value.into());
    }

    /// Sets a variable to a path on this machine.
    pub(crate) fn set_at(&mut self, name: &str, path: &str) {
        let path = self.at(path);
        self.set(name, path);
    }

    /// Puts a directory of this machine first in `PATH`.
    pub(crate) fn path_first(&mut self, dir: &str) {
        let mut path = self.at(dir).into_os_string();
        path.push(":");
        path.push(&self.variables["PATH"]);
        self.set("PATH", path);
    }

    /// Writes a file.
    pub(crate) fn file(&self, path: &str, text: impl AsRef<[u8]>) {
        scratch::write(&self.at(path), text);
    }

    /// Creates a symbolic link to another path of this machine.
    pub(crate) fn link(&self, path: &str, to: &str) {
        self.link_to(path, &self.at(to));
    }

    fn link_to(&self, path: &str, to: &Path) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, &path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Creates a shell script. It may only use shell built-ins, because `PATH` contains no other programs.
    pub(crate) fn program(&self, path: &str, script: &str) {
        scratch::program(&self.at(path), &format!("#!/bin/sh\n{script}\n"));
    }

    /// Creates a fake gcc. It prints this version for `--version`, and for nvcc, which preprocesses a file to detect it.
    pub(crate) fn gcc(&self, path: &str, version: &str) {
        let name = Path::new(path).file_name().unwrap().to_string_lossy().into_owned();
        let mut numbers = version.split('.');
        let (major, minor) = (numbers.next().unwrap(), numbers.next().unwrap());
        let machine = if cfg!(target_arch = "aarch64") { "AARCH64" } else { "X86_64" };
        self.program(
            path,
            &format!(
                "if [ \"$1\" = -E ]; then\necho '__NV_CPLUSPLUS 201703L'\necho '__NV_GNUC__ {major}'\necho '__NV_GNUC_MINOR__ \
                 {minor}'\necho '__NV_GNUC_PATCHLEVEL__ 0'\necho __NV_LINUX__\necho __NV_{machine}__\nexit\nfi\necho '{name} (a \
                 stand-in) {version}'\necho '(C) Free Software Foundation, Inc.'"
            ),
        );
    }

    /// Creates a real toolkit at this root. Its directories are symbolic links to the part.
    pub(crate) fn cuda(&self, root: &str, version: &str) {
        self.all_of(root, &parts::cuda(version));
    }

    /// Creates a real cuDNN at this root.
    pub(crate) fn cudnn(&self, root: &str, version: &str) {
        self.all_of(root, &parts::cudnn(version));
    }

    fn all_of(&self, root: &str, part: &Path) {
        for entry in fs::read_dir(part).unwrap() {
            let entry = entry.unwrap();
            self.link_to(&format!("{root}/{}", entry.file_name().to_string_lossy()), &entry.path());
        }
    }

    /// Links the files of a part's directory whose names have this prefix into a directory.
    pub(crate) fn some_of(&self, dir: &str, part: &Path, prefix: &str) {
        for entry in fs::read_dir(part).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(prefix) {
                // Relative links to a sibling stay relative, as in packages.
                let link = fs::read_link(entry.path()).ok().filter(|link| link.components().count() == 1);
                self.link_to(&format!("{dir}/{name}"), &link.unwrap_or(entry.path()));
            }
        }
    }

    /// Creates a wrapper script for an nvcc of this machine.
    pub(crate) fn wrapper(&self, path: &str, nvcc: &str) {
        self.program(path, &format!("exec '{}' \"$@\"", self.at(nvcc).display()));
    }

    /// Creates a fake toolkit: an nvcc that prints the output of the real build, `cuda.h` with its `CUDA_VERSION`, and an
    /// empty libcudart. No package that tests may fetch contains these releases.
    pub(crate) fn fake_library(&self, root: &str, build: &str) {
        self.stand_in_nvcc(root, build);
        self.stand_in_headers(&format!("{root}/include"), build);
        self.stand_in_cudart(&format!("{root}/lib64"), build);
    }

    /// Creates a fake nvcc: the real output of `--version`, and the part of `--dryrun` that all releases print.
    pub(crate) fn stand_in_nvcc(&self, root: &str, build: &str) {
        let top = self.at(root);
        self.program(
            &format!("{root}/bin/nvcc"),
            &format!(
                "case $1 in\n--version) printf '%s' '{}' ;;\n--dryrun)\necho '#$ TOP={top}/bin/..' >&2\necho '#$ \
                 INCLUDES=\"-I{top}/bin/../include\"' >&2 ;;\n*) exit 1 ;;\nesac",
                text_printed(build),
                top = top.display()
            ),
        );
    }

    /// Creates only `cuda.h`.
    pub(crate) fn stand_in_headers(&self, include: &str, build: &str) {
        let mut numbers = build.split('.').map(|number| number.parse::<u32>().unwrap());
        let number = numbers.next().unwrap() * 1000 + numbers.next().unwrap() * 10;
        self.file(&format!("{include}/cuda.h"), format!("#ifndef __cuda_cuda_h__\n#define CUDA_VERSION {number}\n"));
    }

    /// Creates an empty libcudart, because only its name is read.
    pub(crate) fn stand_in_cudart(&self, lib: &str, build: &str) {
        let mut numbers = build.split('.');
        let (major, minor) = (numbers.next().unwrap(), numbers.next().unwrap());
        let soname = match major {
            "10" => format!("{major}.{minor}"),
            "11" => "11.0".to_owned(),
            _ => major.to_owned(),
        };
        let file = format!("libcudart.so.{build}");
        self.file(&format!("{lib}/{file}"), "");
        symlink(&file, self.at(&format!("{lib}/libcudart.so.{soname}"))).unwrap();
        symlink(format!("libcudart.so.{soname}"), self.at(&format!("{lib}/libcudart.so"))).unwrap();
    }

    /// Detects the toolchain of this machine with the library, for facts that the command does not print.
    pub(crate) fn look(&self, change: impl FnOnce(&mut DetectOptions)) -> Toolchain {
        let mut request =
            DetectOptions::new(&Env::from_variables(self.variables.clone(), "/"), "x86_64-unknown-linux-gnu");
        request.release = true;
        self.root.path().clone_into(&mut request.system_root);
        change(&mut request);
        Toolchain::detect(&request)
    }

    /// Runs `cargo cudaguard check --release` on this machine: in the package for text, outside of it for JSON. Relative
    /// paths in variables are those of the package, because cargo runs its build script there.
    fn check(&self, json: bool) -> Outcome {
        let package = self.at("home/app");
        let mut call = command::call(["check", "--release"]).env(SYSROOT, self.root.path());
        call = if json {
            call.args(["--json", "--manifest-path"]).arg(package.join("Cargo.toml")).dir(self.root.path())
        } else {
            call.dir(package)
        };
        call = cargo_of_this_test(self.variables.iter().fold(call, |call, (name, value)| call.env(name, value)));
        if let Some(target) = &self.target {
            call = call.args(["--target", target]);
        }
        call.run()
    }

    /// Runs the command without a snapshot.
    pub(crate) fn tell(&self) -> ReportedFinding {
        let outcome = self.check(true);
        let value = outcome.json();
        let reported = ReportedFinding { printed: outcome.stdout.clone(), value };
        let refuses = reported.findings().iter().any(|finding| finding.ends_with(" error"));
        let outcome = outcome.expect(i32::from(refuses));
        assert_eq!(outcome.clean_stderr(), "", "a program reads the answer on stdout");
        reported
    }

    /// Runs the command. Compares the codes and severities (`CG101 error`), and the text output with the snapshot.
    pub(crate) fn expect(&self, codes: &[&str]) -> ReportedFinding {
        let reported = self.tell();
        let read = self.check(false);
        let text = self.hide(&(read.stdout.clone() + "\n" + &read.clean_stderr()));
        assert_eq!(reported.findings(), codes, "{text}");
        snapshot::check(&format!("toolchains/{}", self.name), &text);
        reported
    }

    /// Additionally compares the output of `check --json` with a separate snapshot.
    pub(crate) fn expect_json(&self, codes: &[&str]) -> ReportedFinding {
        let reported = self.expect(codes);
        snapshot::check(&format!("toolchains/{}.json", self.name), &self.hide(&reported.printed));
        reported
    }

    fn hide(&self, text: &str) -> String {
        snapshot::paths(text, &[(self.root.path(), ""), (&*parts::dir(), "<parts>")])
    }
}

/// `PATH` of the machine contains no cargo, so the command receives the cargo and the compiler of this test.
fn cargo_of_this_test(call: Call) -> Call {
    let call = call.env("CARGO_NET_OFFLINE", "true");
    let Some(cargo) = std::env::var_os("CARGO") else { return call };
    let rustc = Path::new(&cargo).with_file_name("rustc");
    call.env("CARGO", cargo).env("RUSTC", rustc)
}
