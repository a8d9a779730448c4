//! Each recipe of the book through the events of a project: what is built again, and what is reported.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};

use cudaguard_tests::{Call, Outcome, Test, command, e2e, parts, rows, snapshot};

use super::{KERNELS, Project};
use crate::cmake::fixture::{Cmake, include};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    rows("recipes_follow_events", [("make", MAKE), ("meson", MESON), ("cmake", CMAKE)], follow_events)
        .map(Test::slow)
        .collect()
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
    /// The guard, the compiled kernels and the program.
    files: [(&'static str, &'static str); 3],
}

const MAKE: Recipe = Recipe {
    name: "make",
    project: || Project::of_page("make", "Makefile", &[]),
    configure: |_| None,
    build: |project, jobs| make(project, &["-j", jobs]),
    clean: |project| make(project, &["clean"]),
    install: |project| make(project, &["install"]),
    files: [("guard", "guard.o"), ("kernels", "kernels.o"), ("program", "my-model")],
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
        ("guard", "build/guard.o"),
        ("kernels", "build/my-model-linked.p/kernels.cu.o"),
        ("program", "build/my-model"),
    ],
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
    configure: |project| {
        let nvcc = project.path("toolkit").canonicalize().expect("a toolkit").join("bin/nvcc");
        let call = on_toolkit(project, Cmake::Newest.program()).args(["-G", "Ninja", "-B", "build"]);
        let call = call.arg(format!("-DCMAKE_CUDA_COMPILER={}", nvcc.display())).arg("-DCMAKE_BUILD_TYPE=Release");
        let call = call.arg("-DCMAKE_CUDA_ARCHITECTURES=80");
        Some(call.arg(format!("-DCUDAGUARD_COMMAND={}", command::path().display())).run())
    },
    build: |project, jobs| ninja(project, &["-j", jobs]),
    clean: |project| ninja(project, &["clean"]),
    install: |project| ninja(project, &["install"]),
    files: [
        ("guard", "build/cudaguard/my-model/cudaguard-note.o"),
        ("kernels", "build/CMakeFiles/my-model.dir/kernels.cu.o"),
        ("program", "build/my-model"),
    ],
};

fn ninja(project: &Project, words: &[&str]) -> Outcome {
    on_toolkit(project, parts::program("ninja", "ninja")).args(["-C", "build"]).args(words).run()
}

/// Returns a call with the toolkit of the project first in `PATH`.
fn on_toolkit(project: &Project, program: impl AsRef<std::ffi::OsStr>) -> Call {
    let mut path = project.path("toolkit/bin").into_os_string();
    path.push(":");
    path.push(project.search_path());
    project.call(program).env("PATH", path).env("DESTDIR", project.path("installed"))
}

/// Selects a toolkit, as an administrator who changes the link `/usr/local/cuda`.
fn use_toolkit(project: &Project, version: &str) {
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

impl Events {
    /// Runs a step of the recipe, and adds a row with the files that it made and the codes that it reported.
    fn run(&mut self, event: &str, step: fn(&Self) -> Outcome) -> Outcome {
        let before = self.identities();
        let outcome = step(self);
        let after = self.identities();
        let files = self.recipe.files.iter().zip(before.iter().zip(&after));
        let made = files.filter(|(_, (old, new))| new.is_some() && old != new).map(|((name, _), _)| *name);
        let made: Vec<&str> = made.collect();
        let text = format!("{}{}", outcome.stdout, outcome.stderr);
        let heads = text.lines().filter_map(|line| line.split_once(']').filter(|(head, _)| head.contains("[CG")));
        let codes: Vec<String> = heads.map(|(head, _)| head.replace('[', " ")).collect();
        let state = if after[2].is_some() { "" } else { ", no program" };
        let _ = writeln!(self.table, "{event}: made {}; reported {}{state}", list(&made), list(&codes));
        outcome
    }

    /// Returns a value for each file that differs if the file was written again.
    fn identities(&self) -> [Option<(u64, i64)>; 3] {
        let about = self.recipe.files.map(|(_, file)| fs::metadata(self.project.path(file)).ok());
        about.map(|about| about.map(|about| (about.ino(), about.mtime_nsec())))
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

fn follow_events(recipe: Recipe) {
    let mut events = Events { recipe, project: (recipe.project)(), table: String::new() };
    use_toolkit(&events.project, "13.0");
    use_cudnn(&events.project, "9.15.1");
    events.configure();
    let _ = events.run("build", Events::build).success();
    let _ = events.run("nothing", Events::build).success();
    events.project.write("cudaguard.toml", "gpu.fleet = [\"T4\"]\n");
    let refused = events.run("policy added", Events::build);
    assert_ne!(refused.status(), Some(0), "{refused}");
    events.project.write("cudaguard.toml", "gpu.fleet = [\"A100\"]\n");
    let _ = events.run("policy changed", Events::build).success();
    fs::remove_file(events.project.path("cudaguard.toml")).expect("the policy");
    let _ = events.run("policy removed", Events::build).success();
    use_cudnn(&events.project, "9.17.1");
    let _ = events.run("cuDNN changed", Events::build).success();
    events.project.write("kernels.cu", &format!("{KERNELS}// changed\n"));
    let _ = events.run("source changed", Events::build).success();
    use_toolkit(&events.project, "13.2");
    events.configure();
    let _ = events.run("toolkit changed", Events::build).success();
    let _ = events.run("clean", Events::clean).success();
    let _ = events.run("build in parallel", Events::build_in_parallel).success();
    let _ = events.run("install", Events::install).success();
    let installed = fs::read(events.project.path("installed/usr/local/bin/my-model")).expect("it is installed");
    let built = fs::read(events.project.path(recipe.files[2].1)).expect("it was built");
    // CMake changes the runtime path of the installed file.
    assert!(installed == built || recipe.name == "cmake", "the sealed program is installed");
    snapshot::check(&format!("recipes/events-{}", recipe.name), &events.table);
}

fn list<T: AsRef<str>>(words: &[T]) -> String {
    if words.is_empty() { "nothing".to_owned() } else { words.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ") }
}
