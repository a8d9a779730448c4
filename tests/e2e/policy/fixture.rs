//! Fake toolkits that compile nothing, and calls that detect only one of them.

use std::fs;
use std::path::Path;

use cudaguard::internal::toolchain::SYSROOT;
use cudaguard_tests::{Call, Project, Scratch, command, project, scratch};

/// Creates a fake toolkit of this release: an nvcc that prints it, a `cuda.h`, and a host compiler that both accept,
/// independent of this machine.
pub(crate) fn toolkit(sibling: &Path, release: &str) {
    let (major, minor) = release.split_once('.').expect("two numbers");
    let root = sibling.join(format!("cuda-{release}"));
    let script = format!(
        "#!/bin/sh\ncat <<END\nnvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2024 NVIDIA Corporation\n\
         Built on Thu_Mar_28_02:18:24_PDT_2024\nCuda compilation tools, release {major}.{minor}, V{major}.{minor}.131\n\
         Build cuda_{major}.{minor}.r{major}.{minor}/compiler.34097967_0\nEND\n"
    );
    let gcc = "#!/bin/sh\necho 'g++-12 (a fake) 12.2.0'\necho '(C) Free Software Foundation, Inc.'\n";
    for (name, script) in [("nvcc", &*script), ("g++-12", gcc)] {
        let program = root.join("bin").join(name);
        scratch::program(&program, script);
    }
    let header = format!("#define CUDA_VERSION {major}0{minor}0\n");
    scratch::write(&root.join("include/cuda.h"), header);
}

/// Puts the toolkit of this release first in the search order.
pub(crate) fn with(call: Call, sibling: &Path, release: &str) -> Call {
    let path = std::env::var("PATH").expect("a PATH");
    let nvcc = sibling.join(format!("cuda-{release}/bin"));
    // Hides toolkits in the default locations of the build machine.
    let call = call.env("PATH", format!("{}:{path}", nvcc.display())).env(SYSROOT, sibling);
    let call = call.env("NVCC_CCBIN", nvcc.join("g++-12"));
    project::LEAD_ELSEWHERE.iter().fold(call, Call::env_remove)
}

/// Source tree that is checked but never built.
pub(crate) struct Tree {
    scratch: Scratch,
}

impl Tree {
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let scratch = Scratch::new(name);
        for release in ["12.4", "13.0"] {
            toolkit(scratch.path(), release);
        }
        // Creates a separate repository, because parent directories belong to the repository of these tests.
        scratch::write(&scratch.join("tree/.git/HEAD"), "ref: refs/heads/main\n");
        for (file, text) in files {
            scratch::write(&scratch.join("tree").join(file), text);
        }
        Self { scratch }
    }

    /// Creates one package, `app 0.1.0`.
    pub(crate) fn package(name: &str) -> Self {
        let manifest = cudaguard_tests::project::package("app");
        // cargo does not write a lock with --locked.
        let lock = "version = 3\n\n[[package]]\nname = \"app\"\nversion = \"0.1.0\"\n";
        Self::new(name, &[("Cargo.toml", &manifest), ("Cargo.lock", lock), ("src/main.rs", "fn main() {}\n")])
    }

    pub(crate) fn sibling(&self) -> &Path {
        self.scratch.path()
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        scratch::write(&self.scratch.join("tree").join(file), text);
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.scratch.join("tree").join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// Returns a call of `cargo cudaguard` with the toolkit of this release.
    pub(crate) fn call(&self, release: &str, arguments: &[&str]) -> Call {
        let call = command::call(arguments).dir(self.scratch.join("tree")).env("CARGO_NET_OFFLINE", "true");
        let call = match std::env::var_os("CARGO") {
            Some(cargo) => call.env("CARGO", cargo),
            None => call,
        };
        // Sets the compiler of the cc crate; nothing is compiled in such a tree.
        let compiler = self.sibling().join(format!("cuda-{release}/bin/g++-12"));
        with(call, self.sibling(), release).env("CXX", compiler)
    }
}

/// Adds toolkits next to a project.
pub(crate) fn equipped(project: Project) -> Project {
    for release in ["12.4", "13.0"] {
        toolkit(project.sibling(), release);
    }
    project
}
