//! Fixtures: CMake projects on disk, and functions that configure, build and inspect them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cudaguard_tests::skip::skip_all;
use cudaguard_tests::world::Machine;
use cudaguard_tests::{Call, Outcome, Scratch, command, parts, places, scratch, snapshot, tools};
use serde_json::Value;

pub(crate) const MAKE: &str = "Unix Makefiles";
pub(crate) const NINJA: &str = "Ninja";
pub(crate) const MULTI: &str = "Ninja Multi-Config";

/// C program that includes the headers of CUDA and cuDNN if they are on the include path.
pub(crate) const TAKES_HEADERS: &str = "#if __has_include(<cuda.h>)\n#include <cuda.h>\n#endif\n\
    #if __has_include(<cudnn_version.h>)\n#include <cudnn_version.h>\n#endif\nint main(void) { return 0; }\n";

/// Returns a program from `PATH`. Skips the test if it is missing.
pub(crate) fn program(name: &str) -> PathBuf {
    tools::need(name)
}

/// Returns a Python that has headers for extension modules. Skips the test if there is none.
pub(crate) fn python() -> PathBuf {
    let python = program("python3");
    let asked =
        Call::new(&python).args(["-c", "import sysconfig; print(sysconfig.get_path('include'))"]).run().success();
    let headers = Path::new(asked.stdout.trim());
    if !headers.join("Python.h").is_file() {
        skip_all(vec![tools::missing("Python.h")]);
    }
    python
}

/// Version of CMake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cmake {
    /// Oldest release that the package supports.
    Oldest,
    /// Newest known release.
    Newest,
}

impl Cmake {
    pub(crate) fn program(self) -> PathBuf {
        match self {
            Self::Oldest => parts::program("cmake-3.24", "cmake"),
            Self::Newest => parts::program("cmake-4.4", "cmake"),
        }
    }

    pub(crate) fn ctest(self) -> PathBuf {
        self.program().with_file_name("ctest")
    }
}

/// Source tree and its build directory.
pub(crate) struct Tree {
    scratch: Scratch,
    cmake: PathBuf,
    generator: &'static str,
    /// Fake machine that configures and builds the project, or `None` for this machine.
    machine: Option<Machine>,
}

impl Tree {
    /// Creates a project in a scratch directory called `name`, which may contain blanks and non-ASCII characters.
    pub(crate) fn new(name: &str, cmake: Cmake, generator: &'static str, files: &[(&str, &str)]) -> Self {
        let scratch = Scratch::new(name);
        let tree = Self { scratch, cmake: cmake.program(), generator, machine: None };
        for (file, text) in files {
            tree.write(file, text);
        }
        tree
    }

    pub(crate) fn source(&self) -> PathBuf {
        self.scratch.join("source")
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.scratch.join("build")
    }

    pub(crate) fn sibling(&self) -> &Path {
        self.scratch.path()
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        scratch::write(&self.source().join(file), text);
    }

    /// Returns a call of cmake in the source directory, with make and ninja in `PATH`.
    pub(crate) fn cmake(&self, words: &[&str]) -> Call {
        let call = self.machine.as_ref().map(|machine| machine.call(&self.cmake, &[]));
        let path = parts::path(&["make", "ninja"]);
        call.unwrap_or_else(|| Call::new(&self.cmake)).args(words).env("PATH", path).dir(self.source())
    }

    /// Configures with these arguments in addition to the generator and the command.
    pub(crate) fn configure(&self, words: &[&str]) -> Call {
        let call = self.cmake(&["-G", self.generator, "-S"]).arg(self.source()).arg("-B").arg(self.out());
        // Passes the full path, because some tests set their own `PATH`.
        let tool = if self.generator == MAKE { "make" } else { "ninja" };
        let call = call
            .arg(format!("-DCMAKE_MAKE_PROGRAM={}", parts::program(tool, tool).display()))
            .arg(format!("-DCUDAGUARD_COMMAND={}", command::path().display()))
            .args(words);
        if self.machine.is_some() {
            return call;
        }
        let tree = self.scratch.path().to_owned();
        call.prepared(move |command| super::detected::reuse(&tree, command))
    }

    /// Builds with these arguments, for example `["--config", "Release"]`. Uses one job so that the order of the output is
    /// fixed.
    pub(crate) fn build(&self, words: &[&str]) -> Call {
        self.cmake(&["--build"]).arg(self.out()).args(["--parallel", "1"]).args(words)
    }

    pub(crate) fn built(&self, file: &str) -> PathBuf {
        self.out().join(file)
    }

    /// Replaces paths and other values that depend on this machine.
    pub(crate) fn plain(&self, text: &str) -> String {
        let checkout = places::workspace();
        let parts = parts::dir();
        let text = snapshot::paths(
            text,
            &[
                (&self.source(), "<source>"),
                (&self.out(), "<build>"),
                (self.sibling(), "<installs>"),
                (&parts, "<parts>"),
                (parts::link().unwrap_or(&parts), "<parts>"),
                (command::path(), "<cargo-cudaguard>"),
                (checkout, "<checkout>"),
            ],
        );
        // A path that contains a blank is quoted in a command.
        let text = text.replace("\"<build>\"", "<build>");
        let word = |word: &'_ str| if word.starts_with("0x") { "<offset>".to_owned() } else { word.to_owned() };
        let line = |line: &str| line.trim_end().split(' ').map(word).collect::<Vec<_>>().join(" ") + "\n";
        text.lines().map(line).collect()
    }

    /// Returns all files of the source tree with their contents.
    pub(crate) fn sources(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut dirs = vec![self.source()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(&dir).expect("a directory can be read") {
                let path = entry.expect("an entry can be read").path();
                if path.is_dir() {
                    dirs.push(path);
                } else {
                    found.insert(path.clone(), fs::read(&path).expect("a file can be read"));
                }
            }
        }
        found
    }
}

/// Returns the CMake options that select this toolkit and a host compiler that it accepts.
pub(crate) fn toolkit(version: &str) -> Vec<String> {
    let root = parts::cuda_without_blanks(version);
    let mut words = vec![
        format!("-DCMAKE_CUDA_COMPILER={}", root.join("bin/nvcc").display()),
        format!("-DCUDAToolkit_ROOT={}", root.display()),
    ];
    if version == "11.8" {
        words.push(format!("-DCMAKE_CUDA_HOST_COMPILER={}", program("g++-11").display()));
    }
    words
}

pub(crate) fn words(owned: &[String]) -> Vec<&str> {
    owned.iter().map(String::as_str).collect()
}

/// Extracts cudaguard's output from a build, without the text that make or ninja adds.
pub(crate) fn printed(outcome: &Outcome) -> String {
    let text = format!("{}{}", outcome.stdout, outcome.stderr);
    let ours = |line: &&str| {
        let heads = ["error[", "warning[", "info[", "error: ", "cudaguard: "];
        heads.iter().any(|head| line.starts_with(head))
    };
    let mut printed = String::new();
    let mut inside = false;
    for line in text.lines() {
        inside = ours(&line) || inside && line.starts_with("  ");
        if inside {
            printed.push_str(line);
            printed.push('\n');
        }
    }
    printed
}

/// Returns the manifest of a component in a file.
pub(crate) fn manifest(file: &Path, component: &str) -> Value {
    let all = command::inspect(file);
    let found = all["components"].as_array().into_iter().flatten().find(|one| one["component"]["name"] == component);
    found.cloned().unwrap_or_else(|| panic!("{} has no component {component}: {all:#}", file.display()))
}

/// Returns the strings of a JSON array.
pub(crate) fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns the line that includes the package from this checkout.
pub(crate) fn include() -> String {
    format!("include(\"{}\")\n", places::workspace().join("cmake/CudaGuard.cmake").display())
}
