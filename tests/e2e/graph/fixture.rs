//! Fixtures: packages with recorded cargo graphs, fake toolkits, and functions that run the command.

use std::fs;
use std::path::{Path, PathBuf};

use cudaguard_tests::crates::cargo;
use cudaguard_tests::{Call, Outcome, Scratch, command, project, scratch, snapshot};

/// Package with fake toolkits and fake cuDNNs in sibling directories: nvcc and headers that only provide a version.
pub(crate) struct Tree {
    scratch: Scratch,
}

impl Tree {
    /// Creates a package with these dependencies, which cargo resolves.
    pub(crate) fn new(name: &str, dependencies: &str) -> Self {
        let scratch = Scratch::new(name);
        for release in ["11.8", "12.4", "12.8", "13.0", "13.5"] {
            toolkit(&scratch.join(format!("cuda-{release}")), release);
        }
        let manifest = format!("{}\n[dependencies]\n{dependencies}", project::package("app"));
        scratch::write(&scratch.join("tree/Cargo.toml"), manifest);
        scratch::write(&scratch.join("tree/src/main.rs"), "fn main() {}\n");
        let tree = Self { scratch };
        tree.cudnn((9, 1, 0));
        tree.cudnn((9, 15, 1));
        tree
    }

    /// Writes the headers of this cuDNN, for example to `cudnn-9.15`.
    pub(crate) fn cudnn(&self, (major, minor, patch): (u32, u32, u32)) {
        let include = self.sibling(&format!("cudnn-{major}.{minor}/include"));
        scratch::write(
            &include.join("cudnn_version.h"),
            format!("#define CUDNN_MAJOR {major}\n#define CUDNN_MINOR {minor}\n#define CUDNN_PATCHLEVEL {patch}\n"),
        );
        scratch::write(&include.join("cudnn.h"), "");
    }

    /// Creates a package whose graph is recorded in `recorded/NAME.json`. A fake cargo prints the recording.
    pub(crate) fn recorded(name: &str, graph: &str) -> Self {
        let tree = Self::new(name, "");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e/graph/recorded").join(format!("{graph}.json"));
        let text = fs::read_to_string(&source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
        let root = fs::canonicalize(tree.root()).expect("it was made");
        let metadata: serde_json::Value =
            serde_json::from_str(&text.replace("@ROOT@", &root.display().to_string())).expect("recorded as JSON");
        scratch::write(&tree.scratch.join("metadata.json"), metadata.to_string());
        let lock = metadata["packages"]
            .as_array()
            .expect("packages")
            .iter()
            .fold(String::new(), |lock, package| lock + &format!("[[package]]\nname = {}\n", package["name"]));
        scratch::write(&tree.root().join("Cargo.lock"), lock);
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in\n*--no-deps*) exec {} \"$@\" ;;\nmetadata*) exec cat {} ;;\n*) echo \"cargo $*\" >&2; \
             exit 9 ;;\nesac\n",
            shell(&cargo()),
            shell(tree.scratch.join("metadata.json").as_os_str()),
        );
        scratch::program(&tree.scratch.join("cargo"), &script);
        tree
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.scratch.join("tree")
    }

    pub(crate) fn sibling(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        scratch::write(&self.root().join(file), text);
    }

    /// Returns a call of the command in the package. The nvcc of this release is first in `PATH`, and `CUDA_HOME` contains
    /// the same toolkit.
    pub(crate) fn call(&self, release: &str, arguments: &[&str]) -> Call {
        let toolkit = self.sibling(&format!("cuda-{release}"));
        let path = std::env::var("PATH").expect("a PATH");
        let recorded = self.sibling("cargo");
        let cargo = if recorded.is_file() { recorded.into_os_string() } else { cargo() };
        project::LEAD_ELSEWHERE
            .iter()
            .fold(command::call(arguments).dir(self.root()), Call::env_remove)
            .env("CARGO", cargo)
            .env("CARGO_TERM_COLOR", "never")
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
            .env("PATH", format!("{}/bin:{path}", toolkit.display()))
            .env("CUDA_HOME", &toolkit)
    }

    /// Returns stderr without text that differs between machines.
    pub(crate) fn printed(&self, outcome: &Outcome) -> String {
        let text = snapshot::paths(&outcome.clean_stderr(), &[(&self.root(), "<tree>"), (&self.scratch, "<installs>")]);
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("Locking") && !line.contains("Adding "));
        lines.fold(String::new(), |text, line| text + line + "\n")
    }

    /// Checks that a release build is refused before it compiles anything, and that other builds print the same findings as
    /// warnings. One snapshot contains both outputs.
    #[track_caller]
    pub(crate) fn refused(&self, name: &str, with: impl Fn(&str, &[&str]) -> Call) {
        let release = with("release", &["build", "--release"]).run().expect(1);
        assert!(!self.root().join("target/release/app").exists(), "{release}");
        let dev = with("dev", &["check"]).run().success();
        let warned = self.printed(&dev);
        assert!(warned.contains("warning[CG1") && !warned.contains("error["), "{dev}");
        snapshot::check(
            &format!("graph/{name}"),
            &format!(
                "$ cargo cudaguard build --release\n{}\n$ cargo cudaguard check\n{warned}",
                self.printed(&release)
            ),
        );
    }

    /// Returns the output of `check` for a release build that passes.
    #[track_caller]
    pub(crate) fn passes(&self, call: impl Fn(&[&str]) -> Call) -> String {
        self.printed(&call(&["check", "--release"]).run().success())
    }
}

/// Creates a fake toolkit that compiles nothing.
fn toolkit(root: &Path, release: &str) {
    let (major, minor) = release.split_once('.').expect("two numbers");
    let script = format!(
        "#!/bin/sh\ncat <<END\nnvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2024 NVIDIA Corporation\n\
         Built on Thu_Mar_28_02:18:24_PDT_2024\nCuda compilation tools, release {major}.{minor}, V{major}.{minor}.131\n\
         Build cuda_{major}.{minor}.r{major}.{minor}/compiler.34097967_0\nEND\n"
    );
    scratch::program(&root.join("bin/nvcc"), &script);
    scratch::write(&root.join("include/cuda.h"), format!("#define CUDA_VERSION {major}0{minor}0\n"));
}

fn shell(word: &std::ffi::OsStr) -> String {
    format!("'{}'", word.to_string_lossy().replace('\'', "'\\''"))
}
