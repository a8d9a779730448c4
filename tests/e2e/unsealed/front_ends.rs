//! A program with kernels for `sm_80` only, built by each front end: on each machine it has the same result and output.

use std::fs;
use std::path::PathBuf;

use cudaguard_tests::project::{build_dependency, check_dependency};
use cudaguard_tests::world::{self, A100, H100, MakeMachine as _, V100, World};
use cudaguard_tests::{Call, Project, Scratch, command, e2e, last_report, parts, scratch, snapshot, tools};

use crate::cmake::fixture::{Cmake, NINJA, Tree, include, toolkit, words};
use crate::other_builds::{self, KERNELS, MAIN};

use super::fixture::{PLAIN_DATA, STATIC_CUDART, nvcc};

const RUST_MAIN: &str = "extern \"C\" { fn run(p: *mut i32); }\nfn main() {\n    if std::env::args().count() > 9 {\n        \
                         unsafe { run(std::ptr::null_mut()) }\n    }\n    println!(\"main ran\");\n}\n";
const RUST_LIBRARY: &str = "extern \"C\" { fn run(p: *mut i32); }\n#[no_mangle]\npub extern \"C\" fn verdict(go: bool) {\n    \
                            if go {\n        unsafe { run(std::ptr::null_mut()) }\n    }\n    \
                            println!(\"{}\", cudaguard::check());\n}\n";
const FLAGS: &str = "-gencode arch=compute_80,code=sm_80";

/// Inputs that all programs are linked from.
struct Parts {
    scratch: Scratch,
    cuda: PathBuf,
}

impl Parts {
    fn new() -> Self {
        let scratch = Scratch::without_blanks("front-ends");
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

    /// Returns a build script that links the kernels and the static cudart.
    fn script(&self, guard: &str) -> String {
        format!(
            "fn main() {{\n    {guard}\n    println!(\"cargo:rustc-link-arg={}\");\n    println!(\"cargo:rustc-link-arg=-L{}\");\n    \
             for word in [\"-lcudart_static\", \"-lstdc++\", \"-ldl\", \"-lrt\", \"-lpthread\"] {{\n        \
             println!(\"cargo:rustc-link-arg={{word}}\");\n    }}\n}}\n",
            self.scratch.join("kernels.o").display(),
            self.library()
        )
    }

    /// Selects this toolkit for a call.
    fn with(&self, call: Call) -> Call {
        let path = std::env::var("PATH").unwrap_or_default();
        call.env("CUDA_HOME", &self.cuda).env("PATH", format!("{}:{path}", self.cuda.join("bin").display()))
    }

    /// Links these objects into the C program.
    fn linked(&self, name: &str, compiler: &str, objects: &[&str]) -> PathBuf {
        let file = self.scratch.join(name).join("my-model");
        fs::create_dir_all(file.parent().expect("a folder")).expect("a directory can be made");
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
        let tree = Tree::new("front-ends", Cmake::Oldest, NINJA, &files);
        let mut configured = toolkit("13.0");
        configured.push("-DCMAKE_CUDA_ARCHITECTURES=80-real".to_owned());
        let _ = tree.configure(&words(&configured)).run().success();
        let _ = tree.build(&[]).run().success();
        tree
    }

    /// Builds the projects of docs/start/other-build-systems.md. The component has the same name as in the other front
    /// ends, and there is no PTX.
    fn by_make_and_meson() -> [other_builds::Project; 2] {
        let version = ("1.2.0", "0.1.0");
        let make = other_builds::Project::of_page("make", "Makefile", &[version]);
        let _ = make.make().success();
        let flags = ("-arch=sm_80", "-gencode=arch=compute_80,code=sm_80");
        let meson = other_builds::Project::of_page("meson", "meson.build", &[version, flags]);
        // A debug build compresses the machine code, which then needs a newer driver.
        let _ = meson.meson("plain");
        [make, meson]
    }

    /// Links the program with the guard of `embed`. Returns it unsealed and sealed.
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

    /// Links a Rust static library with the guard into a C program.
    fn by_static_library(&self) -> PathBuf {
        let project = Project::guarded("my-model")
            .append("Cargo.toml", "\n[lib]\ncrate-type = [\"staticlib\"]\n")
            .file("src/lib.rs", "#[no_mangle]\npub extern \"C\" fn seven() -> i32 {\n    7\n}\n");
        let _ = self.with(project.cargo(["build"])).run().success();
        let archive = project.built("debug/libmy_model.a").display().to_string();
        self.linked("archive", "gcc", &["-Wl,--whole-archive", &archive, "-Wl,--no-whole-archive"])
    }

    /// Builds a Rust C library for Python.
    fn by_c_library(&self) -> Project {
        Project::new("my-model")
            .append("Cargo.toml", "\n[lib]\ncrate-type = [\"cdylib\"]\n")
            .append("Cargo.toml", &build_dependency())
            .append("Cargo.toml", &check_dependency())
            .file("build.rs", self.script("cudaguard::embed!();"))
            .file("src/lib.rs", RUST_LIBRARY)
    }
}

/// Cases: name, machine, whether the program is refused there.
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

#[e2e(slow)]
fn front_ends_seal_alike() {
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
    let [make, meson] = Parts::by_make_and_meson();
    let front_ends = [
        ("cargo", cargo.built("debug/my-model")),
        ("cargo cudaguard", ours.built("debug/my-model")),
        ("CMake", cmake.built("my-model")),
        ("Make", make.path("my-model")),
        ("Meson", meson.path("build/my-model")),
        ("embed", embedded),
        ("embed and seal", sealed),
        ("a static library in C", parts.by_static_library()),
    ];
    for (front_end, program) in &front_ends {
        let page = command::call(["inspect"]).arg(program).run().success().stdout;
        let seals = ["cargo cudaguard", "CMake", "Make", "Meson", "embed and seal"].contains(front_end);
        assert!(!page.contains("requires   nothing"), "{front_end}: {page}");
        assert_eq!(
            page.contains("not recorded for its kernels: the file is not sealed"),
            !seals,
            "{front_end}: {page}"
        );
    }
    for (place, world, refused) in machines() {
        let scratch = Scratch::new("front-ends-world");
        let machine = world.make(&scratch.join("world"));
        let mut first: Option<String> = None;
        for (front_end, program) in &front_ends {
            let outcome = machine.call(program, &[]).dir(scratch.path()).run();
            assert_eq!(outcome.status(), Some(if refused { 78 } else { 0 }), "{front_end} on {place}: {outcome}");
            let text = snapshot::paths(&format!("{}{}", outcome.stdout, outcome.stderr), &[(program, "<program>")]);
            let expected = first.get_or_insert_with(|| text.clone());
            assert_eq!(&text, expected, "{front_end} on {place}");
        }
        // A library keeps its verdict until it is queried.
        let asked = machine.call(&python, &[]).args(["-c", script]).arg(&shared).dir(scratch.path()).run().success();
        let text_printed = first.expect("there are front ends");
        let head = text_printed.lines().next().unwrap_or_default().split_once("]: ").map(|(_, text)| text.to_owned());
        assert_eq!(asked.stdout.starts_with("error["), refused, "{place}: {asked}");
        assert!(!refused || head.is_some_and(|head| asked.stdout.contains(&head)), "{place}: {text_printed}\n{asked}");
        let right = format!("compatible; not checked: {PLAIN_DATA}\n");
        assert_eq!(asked.stdout == right, place == "A100", "{place}: {asked}");
    }
}

/// A build script that compiled PTX of CUDA 13.0, before it embeds the guard.
const PTX_IN_OUT_DIR: &str = r#"fn main() {
    let ptx = ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry a()\n{\nret;\n}\n";
    std::fs::write(std::env::var("OUT_DIR").unwrap() + "/scale.ptx", ptx).unwrap();
    cudaguard::embed!();
}
"#;

/// No guard can see the kernels, but `[gpu] archs` declares them, or the build script left PTX: they are checked like visible
/// kernels, with the same message. If the program has visible kernels, these count.
#[e2e(slow)]
fn policy_declaration_is_used() {
    world::need();
    tools::need_all(&["gcc", "g++"]);
    let parts = Parts::new();
    let seen = parts.by_cargo().file("cudaguard.toml", "gpu.archs = [\"sm_90\"]\n");
    let unseen = Project::guarded("my-model").file("src/main.rs", "fn main() {\n    println!(\"main ran\");\n}\n");
    let unseen = unseen.file("cudaguard.toml", "gpu.archs = [\"sm_80\"]\n");
    let compiled = Project::guarded("my-model").file("src/main.rs", "fn main() {\n    println!(\"main ran\");\n}\n");
    let compiled = compiled.file("cudaguard.toml", "gpu.archs = [\"compute_80\"]\n");
    let in_out_dir = Project::guarded("my-model").file("src/main.rs", "fn main() {\n    println!(\"main ran\");\n}\n");
    let in_out_dir = in_out_dir.file("build.rs", PTX_IN_OUT_DIR);
    for project in [&seen, &unseen, &compiled, &in_out_dir] {
        let _ = parts.with(project.cargo(["build"])).run().success();
    }
    let of = |project: &Project| project.built("debug/my-model");
    for (place, world, refused) in machines() {
        let scratch = Scratch::new("word-world");
        let machine = world.make(&scratch.join("world"));
        let report = scratch.join("report.json");
        let start = |project: &Project| {
            let call = machine.call(of(project), &[]).env("CUDAGUARD_REPORT", &report).dir(scratch.path());
            let outcome = call.run();
            let text = format!("{}{}", outcome.stdout, outcome.stderr);
            (outcome.status(), text.lines().next().unwrap_or_default().to_owned())
        };
        let twin = start(&seen);
        assert_eq!(twin.0, Some(if refused { 78 } else { 0 }), "{place}: {twin:?}");
        let text_printed = start(&unseen);
        let reported = last_report(&report);
        assert_eq!(reported["components"][0]["not_judged"], serde_json::json!([STATIC_CUDART]), "{place}: {reported}");
        // The policy does not declare a cudart, which requires that driver.
        let by_cudart = place == "A100 with 535";
        assert!(text_printed == twin || by_cudart && text_printed.0 == Some(0), "{place}: {text_printed:?}, {twin:?}");
        // PTX of CUDA 13.0, which a sufficiently new driver compiles for a newer GPU.
        let wanted = if ["V100", "A100 with 535"].contains(&place) { 78 } else { 0 };
        for project in [&compiled, &in_out_dir] {
            let text_printed = start(project);
            assert_eq!(text_printed.0, Some(wanted), "{place}: {text_printed:?}");
        }
    }
    for (project, gpu, status) in [
        (&unseen, "V100", 1),
        (&unseen, "A100", 0),
        (&unseen, "H100", 1),
        (&compiled, "H100", 0),
        (&in_out_dir, "V100", 1),
        (&in_out_dir, "H100", 0),
    ] {
        let options = ["verify", "--driver", "580.95.05", "--gpu", gpu];
        let outcome = command::call(options).arg(of(project)).run();
        assert_eq!(outcome.status(), Some(status), "{gpu}: {outcome}");
    }
}

/// The program compresses its kernels. Even for a sealed file, the output states that declared kernels were not checked.
/// Without compression they are.
#[e2e(slow)]
fn unreadable_kernels_are_unknown() {
    world::need();
    tools::need_all(&["gcc", "g++"]);
    let parts = Parts::new();
    let fatbin = parts.scratch.join("kernels.fatbin");
    let call = nvcc(&parts.cuda).args(FLAGS.split(' ')).arg("-fatbin").arg(parts.scratch.join("kernels.cu"));
    let _ = call.arg("-o").arg(&fatbin).run().success();
    let plain = fs::read(&fatbin).expect("it was made");
    let packed: Vec<u8> = plain.iter().map(|byte| byte ^ 0x5a).collect();
    let main = "#[repr(C, align(16))]\nstruct Aligned<T: ?Sized>(T);\nstatic KERNELS: &Aligned<[u8]> = \
                &Aligned(*include_bytes!(\"kernels\"));\nfn main() {\n    std::hint::black_box(&KERNELS.0);\n    println!(\"{}\", \
                cudaguard::check());\n}\n";
    let by_cargo = |kernels: &[u8]| {
        let project = Project::new("my-model").append("Cargo.toml", &check_dependency());
        let project = project.file("cudaguard.toml", "gpu.archs = [\"sm_80\"]\n");
        let project = project.file("src/main.rs", main).file("src/kernels", kernels);
        let _ = parts.with(project.cudaguard(["build"])).run().success();
        project
    };
    let [of_plain, of_packed] = [&plain, &packed].map(|kernels| by_cargo(kernels));
    // Declares the archs with the flags of a build system.
    let guard = parts.scratch.join("packed-guard.o");
    let call = command::call(["embed", "--name", "my-model", "--version", "0.1.0", "--nvcc-flags", FLAGS, "--nvcc"]);
    let _ = call.arg(parts.cuda.join("bin/nvcc")).arg("-o").arg(&guard).run().success();
    let templates = cudaguard_tests::places::templates();
    parts.scratch.file(
        "packed.c",
        "#include <cudaguard.h>\n#include <stdio.h>\nint main(void) {\n  struct cudaguard_verdict all;\n  int is = \
         cudaguard_check_verdict(&all);\n  printf(\"%d %s\\n\", is, all.not_judged);\n  return 0;\n}\n",
    );
    let in_c = parts.scratch.join("packed");
    let call = Call::new("gcc").arg("-I").arg(templates).arg("-o").arg(&in_c).arg(parts.scratch.join("packed.c"));
    let _ = call.arg(&guard).arg("-ldl").run().success();
    let _ = command::call(["seal"]).arg(&in_c).arg(&guard).run().success();
    let name = "declared GPU code that was not found";
    let scratch = Scratch::new("packed-world");
    let machine = World::new("580.95.05", 13000, &[A100]).make(&scratch.join("world"));
    for (program, left, text_printed) in [
        (of_plain.built("debug/my-model"), None, "compatible\n".to_owned()),
        (of_packed.built("debug/my-model"), Some(name), format!("compatible; not checked: {name}\n")),
        (in_c, Some(name), format!("0 {name}\n")),
    ] {
        let report = scratch.join("report.json");
        let outcome = machine.call(&program, &[]).env("CUDAGUARD_REPORT", &report).dir(scratch.path()).run().success();
        assert_eq!((&*outcome.stdout, &*outcome.stderr), (&*text_printed, ""), "{}", program.display());
        let reported = last_report(&report);
        let left: Vec<&str> = left.into_iter().collect();
        assert_eq!(reported["verdict"], "runs", "{reported}");
        assert_eq!(reported["components"][0]["not_judged"], serde_json::json!(left), "{reported}");
        let verify = |more: &[&str]| {
            let options = ["verify", "--driver", "580.95.05", "--gpu", "A100"];
            command::call(options).args(more).arg(&program).run().success().stdout
        };
        let page = verify(&[]);
        assert_eq!(page.contains(&format!("\n  not checked: {name}\n")), !left.is_empty(), "{page}");
        let json: serde_json::Value = serde_json::from_str(&verify(&["--json"])).expect("JSON");
        assert_eq!(json.get("not_judged"), (!left.is_empty()).then(|| serde_json::json!(left)).as_ref(), "{json}");
        let fleet =
            scratch.file("fleet.jsonl", "{\"driver\": {\"user\": \"580.95.05\"}, \"gpus\": [{\"cc\": \"8.0\"}]}\n");
        let page = command::call(["verify", "--fleet"]).args([&fleet, &program]).run().success().stdout;
        assert_eq!(page.contains(&format!("not checked: {name}")), !left.is_empty(), "{page}");
        let page = command::call(["inspect"]).arg(&program).run().success().stdout;
        assert!(!page.contains("requires   nothing"), "{page}");
        assert_eq!(page.contains(&format!("unknown for {name}")), !left.is_empty(), "{page}");
        assert!(page.contains(if left.is_empty() { "sm_80 (observed)" } else { "sm_80 (declared)" }), "{page}");
    }
}

/// If a variable sets archs for all builds, a program without visible kernels may have hidden ones. `TORCH_CUDA_ARCH_LIST`
/// does not count, because containers set it globally.
#[e2e(slow)]
fn unintended_archs_are_reported() {
    world::need();
    tools::need("gcc");
    let scratch = Scratch::new("meant-world");
    let machine = World::new("580.95.05", 13000, &[A100]).make(&scratch.join("world"));
    let parts = Parts::new();
    for (variable, named) in [("TORCH_CUDA_ARCH_LIST", false), ("CUDA_COMPUTE_CAP", true)] {
        let value = if named { "80" } else { "8.0" };
        let project = Project::guarded("tool").append("Cargo.toml", &check_dependency());
        let project = project.file("src/main.rs", "fn main() {\n    println!(\"{}\", cudaguard::check());\n}\n");
        let _ = parts.with(project.cudaguard(["build"])).env(variable, value).run().success();
        let outcome = machine.call(project.built("debug/tool"), &[]).dir(scratch.path()).run().success();
        let left = if named { "; not checked: declared GPU code that was not found" } else { "" };
        assert_eq!(outcome.stdout, format!("compatible{left}\n"), "{variable}");
    }
}

/// The output describes what the static library contains, and the linker options that include the guard.
#[e2e(slow)]
fn static_library_linkage_is_recorded() {
    let static_only = Project::guarded("carries")
        .append("Cargo.toml", "\n[lib]\ncrate-type = [\"staticlib\"]\n")
        .file("src/lib.rs", "#[no_mangle]\npub extern \"C\" fn seven() -> i32 {\n    7\n}\n");
    let built = static_only.cargo(["build"]).run().success();
    assert!(
        built.stderr.contains("libcarries.a contains the guard") && built.stderr.contains("--whole-archive"),
        "{built}"
    );
    let with_program = Project::guarded("carries")
        .append("Cargo.toml", "\n[lib]\ncrate-type = [\"staticlib\", \"cdylib\"]\n")
        .file("src/lib.rs", "#[no_mangle]\npub extern \"C\" fn seven() -> i32 {\n    7\n}\n");
    let built = with_program.cargo(["build"]).run().success();
    assert!(!built.stderr.contains("carries the guard"), "{built}");
    // Uses the printed linker options, and the program has a guard.
    let dir = Scratch::new("carries");
    scratch::write(&dir.join("main.c"), "int seven(void);\nint main(void) { return seven() != 7; }\n");
    let archive = static_only.built("debug/libcarries.a");
    let link = |before: &[&str], name: &str| {
        let file = dir.join(name);
        let call = Call::new("gcc").arg("-o").arg(&file).arg(dir.join("main.c")).args(before).arg(&archive);
        let _ = call.args(["-Wl,--no-whole-archive", "-lpthread", "-ldl", "-lm"]).run().success();
        let _ = Call::new(&file).run().success();
        command::components(&file).len()
    };
    assert_eq!(link(&["-Wl,--whole-archive"], "whole"), 1);
}
