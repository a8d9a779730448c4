//! Each recipe of the book through the events of a project: what is built again, what is reported, and how long a refusal is.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use cudaguard_tests::{Call, Outcome, Test, command, crates, e2e, parts, places, rows, snapshot, tools};

use super::{EXTENSION, Project, bazel, setup_script};
use crate::cmake::fixture::{Cmake, MAKE as MAKEFILES, NINJA, include, python};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let recipes = [
        ("make", MAKE),
        ("meson", MESON),
        ("cmake", CMAKE),
        ("cmake_make", CMAKE_MAKE),
        ("embed", EMBED),
        ("cargo", CARGO),
        ("maturin", MATURIN),
        ("pip", PIP),
        ("bazel", BAZEL),
    ];
    rows("recipes_follow_events", recipes, follow_events).map(Test::slow).collect()
}

/// A recipe, and how a user runs it.
#[derive(Clone, Copy)]
struct Recipe {
    name: &'static str,
    project: fn() -> Project,
    /// Configures for the toolkit in use, if the build system has to be told.
    configure: fn(&Project) -> Option<Outcome>,
    /// Builds with this number of jobs.
    build: fn(&Project, &str) -> Outcome,
    clean: fn(&Project) -> Outcome,
    install: fn(&Project) -> Outcome,
    /// Patterns of the guard, the compiled kernels, the program and the installed program.
    files: [&'static str; 4],
    /// A policy that refuses the program, and one that accepts it.
    policies: [&'static str; 2],
    /// The source that changes.
    source: &'static str,
    /// The installation changes the file, such as its runtime path.
    changes_installed: bool,
}

const GPUS: [&str; 2] = ["gpu.fleet = [\"T4\"]\n", "gpu.fleet = [\"A100\"]\n"];

const MAKE: Recipe = Recipe {
    name: "make",
    project: || Project::of_page("make", "Makefile", &[]),
    configure: |_| None,
    build: |project, jobs| make(project, &["-j", jobs]),
    clean: |project| make(project, &["clean"]),
    install: |project| make(project, &["install"]),
    files: ["guard.o", "kernels.o", "my-model", "installed/usr/local/bin/my-model"],
    policies: GPUS,
    source: "kernels.cu",
    changes_installed: false,
};

fn make(project: &Project, words: &[&str]) -> Outcome {
    let cuda = format!("CUDA='{}'", project.path("toolkit").display());
    on_toolkit(project, parts::program("make", "make")).arg(cuda).args(words).run()
}

const MESON: Recipe = Recipe {
    name: "meson",
    project: || {
        let include = "'--release', '-I', meson.project_source_root() / 'include',";
        Project::of_page("meson", "meson.build", &[("'--release',", include)])
    },
    configure: |project| {
        let wipe = if project.path("build").exists() { &["--wipe"][..] } else { &[] };
        let call = on_toolkit(project, parts::program("meson", "meson")).args(["setup", "build"]);
        Some(call.args(wipe).run())
    },
    build: |project, jobs| ninja(project, &["-j", jobs]),
    clean: |project| ninja(project, &["clean"]),
    install: |project| ninja(project, &["install"]),
    files: [
        "build/guard.o",
        "build/my-model-linked.p/kernels.cu.o",
        "build/my-model",
        "installed/usr/local/bin/my-model",
    ],
    policies: GPUS,
    source: "kernels.cu",
    changes_installed: false,
};

const CMAKE: Recipe = Recipe {
    name: "cmake",
    project: || {
        let project = Project::new();
        let text = format!(
            "cmake_minimum_required(VERSION 3.24)\nproject(my-model VERSION 1.2.0 LANGUAGES C CXX CUDA)\n{}\
             add_executable(my-model main.c kernels.cu)\ntarget_include_directories(my-model PRIVATE include)\n\
             cudaguard_embed(my-model)\ninstall(TARGETS my-model)\n",
            include()
        );
        project.write("CMakeLists.txt", &text);
        project
    },
    configure: |project| Some(cmake(project, NINJA)),
    build: |project, jobs| ninja(project, &["-j", jobs]),
    clean: |project| ninja(project, &["clean"]),
    install: |project| ninja(project, &["install"]),
    files: [
        "build/CMakeFiles/cudaguard/my-model/cudaguard-note.o",
        "build/CMakeFiles/my-model.dir/kernels.cu.o",
        "build/my-model",
        "installed/usr/local/bin/my-model",
    ],
    policies: GPUS,
    source: "kernels.cu",
    changes_installed: true,
};

const CMAKE_MAKE: Recipe = Recipe {
    name: "cmake_make",
    configure: |project| Some(cmake(project, MAKEFILES)),
    build: |project, jobs| cmake_build(project, &["-j", jobs]),
    clean: |project| cmake_build(project, &["--target", "clean"]),
    install: |project| cmake_build(project, &["--target", "install"]),
    ..CMAKE
};

fn cmake_build(project: &Project, words: &[&str]) -> Outcome {
    on_toolkit(project, Cmake::Newest.program()).args(["--build", "build"]).args(words).run()
}

fn cmake(project: &Project, generator: &str) -> Outcome {
    let nvcc = project.path("toolkit").canonicalize().expect("a toolkit").join("bin/nvcc");
    let call = on_toolkit(project, Cmake::Newest.program()).args(["-G", generator, "-B", "build"]);
    let call = call.arg(format!("-DCMAKE_CUDA_COMPILER={}", nvcc.display())).arg("-DCMAKE_BUILD_TYPE=Release");
    let call = call.arg("-DCMAKE_CUDA_ARCHITECTURES=80");
    call.arg(format!("-DCUDAGUARD_COMMAND={}", command::path().display())).run()
}

fn ninja(project: &Project, words: &[&str]) -> Outcome {
    on_toolkit(project, parts::program("ninja", "ninja")).args(["-C", "build"]).args(words).run()
}

/// Build script that compiles the kernels.
const BUILD_RS: &str = r#"use std::{env, process::Command};

fn main() {
    println!("cargo:rerun-if-changed=kernels.cu");
    let object = env::var("OUT_DIR").unwrap() + "/kernels.o";
    let nvcc = Command::new("nvcc").args(["-arch=sm_80", "-Xcompiler", "-fPIC", "-c", "kernels.cu", "-o", &object]).status();
    assert!(nvcc.is_ok_and(|status| status.success()), "nvcc failed");
    let cuda = env::var("CUDA_HOME").unwrap();
    for word in [&object, &format!("-L{cuda}/lib64"), "-lcudart_static", "-lstdc++", "-ldl", "-lrt", "-lpthread"] {
        println!("cargo:rustc-link-arg={word}");
    }
    // cudaguard
}
"#;

const MAIN_RS: &str = "unsafe extern \"C\" {\n    fn run(p: *mut i32);\n}\nfn main() {\n    if std::env::args().count() > 9 {\n        \
                       unsafe { run(std::ptr::null_mut()) };\n    }\n}\n";

const PACKAGE: &str = "[package]\nname = \"my-model\"\nversion = \"1.2.0\"\nedition = \"2024\"\n\n[workspace]\n";

fn package(manifest: &str, script: &str) -> Project {
    let project = Project::new();
    project.write("Cargo.toml", &format!("{PACKAGE}{manifest}"));
    project.write("build.rs", &BUILD_RS.replace("// cudaguard", script));
    project.write("src/main.rs", MAIN_RS);
    project
}

const EMBED: Recipe = Recipe {
    name: "embed",
    project: || {
        let library = places::workspace().join("guard-core");
        let manifest = format!("\n[build-dependencies]\ncudaguard = {{ path = '{}' }}\n", library.display());
        let project = package(&manifest, "cudaguard::embed!();");
        crates::settle(&project.path("."));
        project
    },
    configure: |_| None,
    build: |project, jobs| cargo(project, &["build", "--release", "-j", jobs]),
    clean: |project| cargo(project, &["clean"]),
    install: |project| cargo(project, &["install", "--path", ".", "--root", "installed"]),
    files: [
        "target/release/build/my-model-*/out/cudaguard-note.o",
        "target/release/build/my-model-*/out/kernels.o",
        "target/release/my-model",
        "installed/bin/my-model",
    ],
    // A build script does not see the linked file, so the policy declares its architectures.
    policies: ["gpu.archs = [\"sm_80\"]\ngpu.fleet = [\"T4\"]\n", "gpu.archs = [\"sm_80\"]\ngpu.fleet = [\"A100\"]\n"],
    source: "kernels.cu",
    changes_installed: false,
};

/// The guard that `cargo cudaguard` links.
const COMMAND_GUARD: &str = "target/cudaguard/guards/*/release/my-model-1.2.0/cudaguard-note.o";

const CARGO: Recipe = Recipe {
    name: "cargo",
    project: || package("", ""),
    build: |project, jobs| cargo(project, &["cudaguard", "build", "--release", "-j", jobs]),
    install: |project| cargo(project, &["cudaguard", "install", "--path", ".", "--root", "installed"]),
    files: [COMMAND_GUARD, EMBED.files[1], EMBED.files[2], EMBED.files[3]],
    policies: GPUS,
    ..EMBED
};

fn cargo(project: &Project, words: &[&str]) -> Outcome {
    let call = on_toolkit(project, crates::cargo()).args(words).env("CARGO_NET_OFFLINE", "true");
    with_toolkit(call.env("CARGO_TERM_COLOR", "never"), project).run()
}

const MATURIN: Recipe = Recipe {
    name: "maturin",
    project: || {
        let manifest = "[lib]\nname = \"my_model\"\ncrate-type = [\"cdylib\"]\n\n[dependencies]\npyo3-ffi = { path = \"pyo3-ffi\" }\n";
        let project = package(manifest, "");
        project.write(
            "src/lib.rs",
            &MAIN_RS.replace("fn main", "#[unsafe(no_mangle)]\npub extern \"C\" fn PyInit_my_model"),
        );
        fs::remove_file(project.path("src/main.rs")).expect("it was written");
        // maturin only needs the name of the bindings.
        let bindings = "[package]\nname = \"pyo3-ffi\"\nversion = \"0.22.0\"\nedition = \"2024\"\n[features]\nextension-module = []\n";
        project.write("pyo3-ffi/Cargo.toml", bindings);
        project.write("pyo3-ffi/src/lib.rs", "");
        project.write("pyproject.toml", "[build-system]\nrequires = [\"maturin>=1\"]\nbuild-backend = \"maturin\"\n");
        project
    },
    build: |project, jobs| {
        let maturin = parts::program("maturin", "maturin").display().to_string();
        let line = format!(
            "eval \"$(cargo cudaguard env --release)\" && '{maturin}' build --release --offline --skip-auditwheel -j {jobs} \
             --interpreter python3 -o dist"
        );
        with_toolkit(on_toolkit(project, "sh"), project).args(["-ec", &line]).run()
    },
    install: |project| on_toolkit(project, "sh").args(["-ec", "python3 -m zipfile -e dist/*.whl installed"]).run(),
    files: [
        COMMAND_GUARD,
        "target/release/build/my-model-*/out/kernels.o",
        // maturin takes the linked copy in target/release.
        "target/release/deps/libmy_model.so",
        "installed/my_model/my_model*.so",
    ],
    policies: GPUS,
    changes_installed: true,
    ..EMBED
};

const PIP: Recipe = Recipe {
    name: "pip",
    project: || {
        if Call::new(python()).args(["-m", "pip", "--version"]).run().status() != Some(0) {
            cudaguard_tests::skip::skip_all(vec![tools::missing("pip")]);
        }
        let project = Project::new();
        project.write("setup.py", &setup_script());
        project.write("my_extension.c", EXTENSION);
        project
    },
    configure: |_| None,
    build: |project, _| {
        let line = "python3 -m pip wheel . --no-build-isolation --no-deps --no-index -w dist";
        with_toolkit(on_toolkit(project, "sh"), project).args(["-ec", line]).run()
    },
    clean: |project| on_toolkit(project, "sh").args(["-ec", "rm -rf build dist *.egg-info"]).run(),
    install: |project| {
        let line = "python3 -m pip install --no-index --target installed dist/*.whl";
        on_toolkit(project, "sh").args(["-ec", line]).run()
    },
    files: [
        "build/temp.*/my_extension.guard.o",
        "build/temp.*/my_extension.o",
        "build/lib.*/my_extension*.so",
        "installed/my_extension*.so",
    ],
    source: "my_extension.c",
    policies: ["driver.fleet = \"535\"\n", "driver.fleet = \"580\"\n"],
    ..MAKE
};

const BAZEL: Recipe = Recipe {
    name: "bazel",
    project: bazel::project,
    // As the page says: Bazel does not see another toolkit.
    configure: |project| Some(bazel::run(project, &["clean"])),
    build: |project, jobs| bazel::run(project, &["build", "//:my-model", "--jobs", jobs]),
    clean: |project| bazel::run(project, &["clean"]),
    install: |project| project.shell("install -D bazel-bin/my-model-sealed installed/my-model"),
    files: ["bazel-bin/guard.c", "bazel-bin/kernels.o", "bazel-bin/my-model-sealed", "installed/my-model"],
    ..MAKE
};

/// Selects the toolkit and cuDNN of the project by variables.
fn with_toolkit(call: Call, project: &Project) -> Call {
    let call = call.env("PYTHONPATH", parts::part("python-packaging").join("lib"));
    call.env("CUDA_HOME", project.path("toolkit")).env("CUDNN_PATH", project.path("."))
}

/// Returns a call with the toolkit of the project first in `PATH`. Its error output is part of the output, in order.
fn on_toolkit(project: &Project, program: impl AsRef<std::ffi::OsStr>) -> Call {
    let mut path = project.path("toolkit/bin").into_os_string();
    path.push(":");
    path.push(project.search_path());
    let call = project.call("sh").args(["-c", "exec \"$@\" 2>&1", "sh"]).arg(program.as_ref());
    call.env("PATH", path).env("DESTDIR", project.path("installed"))
}

/// Selects a toolkit, as an administrator who changes the link `/usr/local/cuda`.
pub(super) fn use_toolkit(project: &Project, version: &str) {
    let link = project.path("toolkit");
    let _ = fs::remove_file(&link);
    symlink(parts::cuda(version), link).expect("a link can be made");
}

fn use_cudnn(project: &Project, version: &str) {
    let header = fs::read_to_string(parts::cudnn(version).join("include/cudnn_version.h")).expect("a header");
    project.write("include/cudnn_version.h", &header);
}

/// A project that goes through the events, and the table of what happened.
struct Events {
    recipe: Recipe,
    project: Project,
    table: String,
}

/// Names of the files of a recipe.
const KINDS: [&str; 4] = ["guard", "kernels", "program", "installed program"];

impl Events {
    /// Runs a step of the recipe, and adds a row with the files that it made and the codes that it reported.
    fn run(&mut self, event: &str, step: fn(&Self) -> Outcome) -> Outcome {
        let before = self.identities();
        let outcome = step(self);
        let after = self.identities();
        let files = KINDS.iter().zip(before.iter().zip(&after));
        let made: Vec<&str> =
            files.filter(|(_, (old, new))| new.is_some() && old != new).map(|(name, _)| *name).collect();
        let heads =
            outcome.stdout.lines().filter_map(|line| line.split_once(']').filter(|(head, _)| head.contains("[CG")));
        // The RUNPATH depends on the Python of this machine.
        let heads = heads.filter(|(head, _)| !head.ends_with("CG134"));
        // cargo prints the package before a message of its build script.
        let heads = heads.map(|(head, _)| head.rsplit(": ").next().unwrap_or_default().trim());
        let codes: Vec<String> = heads.map(|head| head.replace('[', " ")).collect();
        let state = if after[2].is_some() { "" } else { ", no program" };
        let _ = write!(self.table, "{event}: made {}; reported {}{state}", list(&made), list(&codes));
        if outcome.status() != Some(0) {
            let (_, refusal) = outcome.stdout.split_once("error[").expect("a refusal");
            let lines = refusal.lines().filter(|line| !line.trim().is_empty()).count();
            let _ = write!(self.table, "; {lines} lines to the end");
            assert!(lines <= 12, "{lines} lines from the first error to the end: {outcome}");
        }
        self.table.push('\n');
        outcome
    }

    /// Returns a value for each file that differs if the file was written again.
    fn identities(&self) -> [Option<(u64, i64)>; 4] {
        let files = self.recipe.files.map(|pattern| find(&self.project.path("."), pattern));
        let about = files.map(|file| file.and_then(|file| fs::metadata(file).ok()));
        about.map(|about| about.map(|about| (about.ino(), about.mtime_nsec())))
    }

    /// Runs a build that has to pass.
    fn passes(&mut self, event: &str) {
        let _ = self.run(event, Self::build).success();
    }

    fn policy(&self, which: usize) {
        self.project.write("cudaguard.toml", self.recipe.policies[which]);
    }

    fn build(&self) -> Outcome {
        (self.recipe.build)(&self.project, "1")
    }

    fn build_in_parallel(&self) -> Outcome {
        (self.recipe.build)(&self.project, "4")
    }

    fn clean(&self) -> Outcome {
        (self.recipe.clean)(&self.project)
    }

    fn install(&self) -> Outcome {
        (self.recipe.install)(&self.project)
    }

    fn configure(&self) {
        let _ = (self.recipe.configure)(&self.project).map(Outcome::success);
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if self.recipe.name == "bazel" {
            bazel::end(&self.project);
        }
    }
}

/// Returns the first file that matches a pattern with at most one `*` in each component.
fn find(dir: &Path, pattern: &str) -> Option<PathBuf> {
    let (first, rest) = pattern.split_once('/').map_or((pattern, None), |(first, rest)| (first, Some(rest)));
    let (begin, end) = first.split_once('*').unwrap_or((first, ""));
    let mut names: Vec<_> = fs::read_dir(dir).ok()?.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    let fits = |name: &OsStr| {
        let name = name.to_string_lossy();
        if first.contains('*') { name.starts_with(begin) && name.ends_with(end) } else { name == first }
    };
    names.iter().filter(|name| fits(name)).find_map(|name| match rest {
        Some(rest) => find(&dir.join(name), rest),
        None => Some(dir.join(name)),
    })
}

fn follow_events(recipe: Recipe) {
    let mut events = Events { recipe, project: (recipe.project)(), table: String::new() };
    use_toolkit(&events.project, "13.0");
    use_cudnn(&events.project, "9.15.1");
    events.configure();
    events.passes("build");
    events.passes("nothing");
    events.policy(0);
    if recipe.name == "embed" {
        // As the page says: plain cargo does not see a file that did not exist.
        events.project.write("build.rs", &events.project.read("build.rs"));
    }
    let refused = events.run("policy added", Events::build);
    assert_ne!(refused.status(), Some(0), "{refused}");
    events.policy(1);
    events.passes("policy changed");
    fs::remove_file(events.project.path("cudaguard.toml")).expect("the policy");
    events.passes("policy removed");
    use_cudnn(&events.project, "9.17.1");
    events.passes("cuDNN changed");
    events.project.write(recipe.source, &format!("{}// changed\n", events.project.read(recipe.source)));
    events.passes("source changed");
    use_toolkit(&events.project, "13.2");
    events.configure();
    // A build script of the user may not compile its kernels again, which `cargo cudaguard` reports.
    let _ = events.run("toolkit changed", Events::build);
    let _ = events.run("clean", Events::clean).success();
    let _ = events.run("build in parallel", Events::build_in_parallel).success();
    let _ = events.run("install", Events::install).success();
    let [built, installed] = [2, 3].map(|at| {
        let file = find(&events.project.path("."), recipe.files[at]).expect("it was built and installed");
        fs::read(file).expect("a program")
    });
    assert!(installed == built || recipe.changes_installed, "the sealed program is installed");
    snapshot::check(&format!("recipes/events-{}", recipe.name), &events.table);
}

fn list<T: AsRef<str>>(words: &[T]) -> String {
    if words.is_empty() { "nothing".to_owned() } else { words.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ") }
}
