//! One program, its kernels for `sm_80` alone, through every door: on each machine the same end and the same words.

use std::fs;
use std::path::PathBuf;

use cudaguard_tests::project::{build_dependency, check_dependency};
use cudaguard_tests::world::{self, A100, H100, V100, World};
use cudaguard_tests::{Call, Project, Scratch, Trial, command, parts, scratch, snapshot, tools, trials};

use crate::cmake::fixture::{Cmake, NINJA, Tree, include, toolkit, words};

use super::fixture::nvcc;

pub(crate) fn trials() -> Vec<Trial> {
    trials![the_same_through_every_door, a_static_library_says_how_it_is_linked]
}

const KERNELS: &str =
    "__global__ void k(int *p) { p[threadIdx.x] = 1; }\nextern \"C\" void run(int *p) { k<<<1, 1>>>(p); }\n";
const MAIN: &str = "#include <stdio.h>\nvoid run(int *p);\nint main(int n, char **a) {\n  (void)a;\n  if (n > 9) run(0);\n  \
                    puts(\"main ran\");\n  return 0;\n}\n";
const RUST_MAIN: &str = "extern \"C\" { fn run(p: *mut i32); }\nfn main() {\n    if std::env::args().count() > 9 {\n        \
                         unsafe { run(std::ptr::null_mut()) }\n    }\n    println!(\"main ran\");\n}\n";
const RUST_LIBRARY: &str = "extern \"C\" { fn run(p: *mut i32); }\n#[no_mangle]\npub extern \"C\" fn verdict(go: bool) {\n    \
                            if go {\n        unsafe { run(std::ptr::null_mut()) }\n    }\n    \
                            println!(\"{:?}\", cudaguard::check());\n}\n";
const FLAGS: &str = "-gencode arch=compute_80,code=sm_80";

/// What all of them are linked from.
struct Parts {
    scratch: Scratch,
    cuda: PathBuf,
}

impl Parts {
    fn new() -> Self {
        let scratch = Scratch::without_blanks("doors");
        let parts = Self { scratch, cuda: parts::cuda("13.0") };
        parts.scratch.file("main.c", MAIN);
        parts.scratch.file("kernels.cu", KERNELS);
        let call = nvcc(&parts.cuda).args(FLAGS.split(' ')).args(["-Xcompiler", "-fPIC", "-c", "-o"]);
        let _ = call.args([parts.scratch.join("kernels.o"), parts.scratch.join("kernels.cu")]).run().success();
        let _ = Call::new("gcc")
            .args(["-c", "-o"])
            .args([parts.scratch.join("main.o"), parts.scratch.join("main.c")])
            .run()
            .success();
        parts
    }

    fn library(&self) -> String {
        self.cuda.join("lib64").display().to_string()
    }

    /// The lines of a build script that links the kernels and the static cudart.
    fn script(&self, guard: &str) -> String {
        format!(
            "fn main() {{\n    {guard}\n    println!(\"cargo:rustc-link-arg={}\");\n    println!(\"cargo:rustc-link-arg=-L{}\");\n    \
             for word in [\"-lcudart_static\", \"-lstdc++\", \"-ldl\", \"-lrt\", \"-lpthread\"] {{\n        \
             println!(\"cargo:rustc-link-arg={{word}}\");\n    }}\n}}\n",
            self.scratch.join("kernels.o").display(),
            self.library()
        )
    }

    /// A call with this toolkit as the one in use.
    fn with(&self, call: Call) -> Call {
        let path = std::env::var("PATH").unwrap_or_default();
        call.env("CUDA_HOME", &self.cuda).env("PATH", format!("{}:{path}", self.cuda.join("bin").display()))
    }

    /// The program in C from these objects.
    fn linked(&self, name: &str, compiler: &str, objects: &[&str]) -> PathBuf {
        let file = self.scratch.join(name).join("my-model");
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder can be made");
        let _ = Call::new(compiler)
            .arg("-o")
            .arg(&file)
            .args([self.scratch.join("main.o"), self.scratch.join("kernels.o")])
            .args(objects)
            .args([&format!("-L{}", self.library()), "-lcudart_static", "-lstdc++", "-ldl", "-lrt", "-lpthread", "-lm"])
            .run()
            .success();
        file
    }

    fn by_cargo(&self) -> Project {
        let project = Project::new("my-model").append("Cargo.toml", &build_dependency());
        project.file("build.rs", self.script("cudaguard::embed!();")).file("src/main.rs", RUST_MAIN)
    }

    fn by_our_command(&self) -> Project {
        Project::new("my-model").file("build.rs", self.script("")).file("src/main.rs", RUST_MAIN)
    }

    fn by_cmake() -> Tree {
        let text = format!(
            "cmake_minimum_required(VERSION 3.24)\nproject(mine VERSION 0.1.0 LANGUAGES C CXX CUDA)\n{}\
             add_executable(my-model main.c kernels.cu)\ncudaguard_embed(my-model)\n",
            include()
        );
        let files = [("CMakeLists.txt", text.as_str()), ("main.c", MAIN), ("kernels.cu", KERNELS)];
        let tree = Tree::new("doors", Cmake::Oldest, NINJA, &files);
        let mut configured = toolkit("13.0");
        configured.push("-DCMAKE_CUDA_ARCHITECTURES=80-real".to_owned());
        let _ = tree.configure(&words(&configured)).run().success();
        let _ = tree.build(&[]).run().success();
        tree
    }

    /// `embed`, linked; and the same sealed.
    fn by_embed(&self) -> [PathBuf; 2] {
        let guard = self.scratch.join("guard.o");
        let nvcc = self.cuda.join("bin/nvcc");
        let call =
            command::call(["embed", "--name", "my-model", "--version", "0.1.0", "--nvcc-flags", FLAGS, "--nvcc"]);
        let _ = call.arg(nvcc).arg("-o").arg(&guard).run().success();
        let object = guard.to_str().expect("UTF-8");
        let both = ["embedded", "sealed"].map(|name| self.linked(name, "gcc", &[object]));
        let _ = command::call(["seal"]).arg(&both[1]).arg(&guard).run().success();
        both
    }

    /// A static library of Rust with the guard, in a program in C.
    fn by_static_library(&self) -> PathBuf {
        let project = Project::guarded("my-model")
            .append("Cargo.toml", "\n[lib]\ncrate-type = [\"staticlib\"]\n")
            .file("src/lib.rs", "#[no_mangle]\npub extern \"C\" fn seven() -> i32 {\n    7\n}\n");
        let _ = self.with(project.cargo(["build"])).run().success();
        let archive = project.built("debug/libmy_model.a").display().to_string();
        self.linked("archive", "gcc", &["-Wl,--whole-archive", &archive, "-Wl,--no-whole-archive"])
    }

    /// A C library of Rust, for Python.
    fn by_c_library(&self) -> Project {
        Project::new("my-model")
            .append("Cargo.toml", "\n[lib]\ncrate-type = [\"cdylib\"]\n")
            .append("Cargo.toml", &build_dependency())
            .append("Cargo.toml", &check_dependency())
            .file("build.rs", self.script("cudaguard::embed!();"))
            .file("src/lib.rs", RUST_LIBRARY)
    }
}

/// (what, the machine, whether the program is refused there).
fn machines() -> Vec<(&'static str, World, bool)> {
    let r580 = |gpus: &[world::Gpu]| World::new("580.95.05", 13000, gpus);
    vec![
        ("V100", r580(&[V100]), true),
        ("A100", r580(&[A100]), false),
        ("H100", r580(&[H100]), true),
        ("no GPU", r580(&[]), false),
        ("A100 with 535", World::new("535.261.03", 12020, &[A100]), true),
    ]
}

fn the_same_through_every_door() {
    world::need();
    tools::need_all(&["gcc", "g++", "python3"]);
    let parts = Parts::new();
    let (cargo, ours, cmake) = (parts.by_cargo(), parts.by_our_command(), Parts::by_cmake());
    let _ = parts.with(cargo.cargo(["build"])).run().success();
    let _ = parts.with(ours.cudaguard(["build"])).run().success();
    let [embedded, sealed] = parts.by_embed();
    let library = parts.by_c_library();
    let _ = parts.with(library.cargo(["build"])).run().success();
    let python = tools::need("python3");
    let script = "import ctypes, sys\nctypes.CDLL(sys.argv[1]).verdict(False)\n";
    let shared = library.built("debug/libmy_model.so");
    let doors = [
        ("cargo", cargo.built("debug/my-model")),
        ("cargo cudaguard", ours.built("debug/my-model")),
        ("CMake", cmake.built("my-model")),
        ("embed", embedded),
        ("embed and seal", sealed),
        ("a static library in C", parts.by_static_library()),
    ];
    for (door, program) in &doors {
        let page = command::call(["inspect"]).arg(program).run().success().stdout;
        let seals = ["cargo cudaguard", "CMake", "embed and seal"].contains(door);
        assert!(!page.contains("requires   nothing"), "{door}: {page}");
        assert_eq!(page.contains("what its kernels ask for: nobody sealed it"), !seals, "{door}: {page}");
    }
    for (place, world, refused) in machines() {
        let scratch = Scratch::new("doors-world");
        let machine = world.make(&scratch.join("world"));
        let mut first: Option<String> = None;
        for (door, program) in &doors {
            let outcome = machine.call(program, &[]).dir(scratch.path()).run();
            assert_eq!(outcome.status(), Some(if refused { 78 } else { 0 }), "{door} on {place}: {outcome}");
            let text = snapshot::paths(&format!("{}{}", outcome.stdout, outcome.stderr), &[(program, "<program>")]);
            let expected = first.get_or_insert_with(|| text.clone());
            assert_eq!(&text, expected, "{door} on {place}");
        }
        // A library keeps its verdict for whoever asks.
        let asked = machine.call(&python, &[]).args(["-c", script]).arg(&shared).dir(scratch.path()).run().success();
        let said = first.expect("there are doors");
        let head = said.lines().next().unwrap_or_default().split_once("]: ").map(|(_, text)| text.to_owned());
        assert_eq!(asked.stdout.starts_with("Wrong("), refused, "{place}: {asked}");
        assert!(!refused || head.is_some_and(|head| asked.stdout.contains(&head)), "{place}: {said}\n{asked}");
    }
}

/// What such a package carries, and what a linker has to be told so as to take it.
fn a_static_library_says_how_it_is_linked() {
    let static_only = Project::guarded("carries")
        .append("Cargo.toml", "\n[lib]\ncrate-type = [\"staticlib\"]\n")
        .file("src/lib.rs", "#[no_mangle]\npub extern \"C\" fn seven() -> i32 {\n    7\n}\n");
    let built = static_only.cargo(["build"]).run().success();
    assert!(
        built.stderr.contains("libcarries.a carries the guard") && built.stderr.contains("--whole-archive"),
        "{built}"
    );
    let with_program = Project::guarded("carries")
        .append("Cargo.toml", "\n[lib]\ncrate-type = [\"staticlib\", \"cdylib\"]\n")
        .file("src/lib.rs", "#[no_mangle]\npub extern \"C\" fn seven() -> i32 {\n    7\n}\n");
    let built = with_program.cargo(["build"]).run().success();
    assert!(!built.stderr.contains("carries the guard"), "{built}");
    // As it says: the guard is in the program then.
    let folder = Scratch::new("carries");
    scratch::write(&folder.join("main.c"), "int seven(void);\nint main(void) { return seven() != 7; }\n");
    let archive = static_only.built("debug/libcarries.a");
    let link = |before: &[&str], name: &str| {
        let file = folder.join(name);
        let call = Call::new("gcc").arg("-o").arg(&file).arg(folder.join("main.c")).args(before).arg(&archive);
        let _ = call.args(["-Wl,--no-whole-archive", "-lpthread", "-ldl", "-lm"]).run().success();
        let _ = Call::new(&file).run().success();
        crate::cmake::fixture::components(&file).len()
    };
    assert_eq!(link(&["-Wl,--whole-archive"], "whole"), 1);
}
