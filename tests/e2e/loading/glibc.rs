//! Search rules of glibc. Most are blocks of `layouts.txt` ([`Table`]), whose lines build files and compare the prediction with the real
//! loader, in their order; `@` is the directory:
//!
//! - `library` PATH ARGUMENTS: a library whose soname is its file name; `named` PATH SONAME ARGUMENTS: one with another soname, or with none
//!   (`-`); `program` ARGUMENTS: the program `prog`
//! - `file` PATH TEXT; `link`, `hard-link` PATH TARGET; `remove` PATH; `set` NAME=VALUE; `empty`: another directory, without files
//! - `equal` [PROGRAM]: the loader finds what is predicted; of the prediction for `prog`: `absent` NAMES, in their order; `loads` NAME;
//!   `ignored` COUNT: of preloaded files

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use cargo_cudaguard::binary::loader::{self, Inspection};
use cudaguard::internal::env::Env;
use cudaguard_tests::{Block, Table, Test, e2e};

use super::scene::{Scene, compare};

const NEW: &str = "-Wl,--enable-new-dtags";

const LAYOUTS: Table = Table { file: "layouts.txt", text: include_str!("layouts.txt"), marks: &["without-blanks"] };

#[e2e(rows)]
fn tests() -> Vec<Test> {
    LAYOUTS.tests("glibc::", |block| {
        let mut scene = empty(block);
        block.follow(|word, rest| follow(&mut scene, block, word, rest));
    })
}

/// Creates the directory of a layout.
fn empty(block: &Block) -> Scene {
    if block.has("without-blanks") { Scene::preloaded(block.name) } else { Scene::new(&block.name.replace('_', " ")) }
}

/// Follows a line of a layout. Returns false for an unknown word.
fn follow(scene: &mut Scene, block: &Block, word: &str, rest: &str) -> bool {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let (first, text) = rest.split_once(' ').unwrap_or((rest, ""));
    match word {
        "library" => _ = scene.library(first, &words[1..]),
        "named" => _ = scene.named(first, if words[1] == "-" { "" } else { words[1] }, &words[2..]),
        "program" => _ = scene.program(&words),
        "file" => _ = scene.file(first, text.as_bytes()),
        "link" => _ = scene.link_to(text, first),
        "hard-link" => std::fs::hard_link(scene.at(text), scene.at(first)).expect("a link"),
        "remove" => _ = scene.without(first),
        "set" => {
            let (name, value) = rest.split_once('=').expect("NAME=VALUE");
            scene.variable(name, value);
        }
        "empty" => *scene = empty(block),
        "equal" => scene.equal_for(if first.is_empty() { "prog" } else { first }),
        "absent" => {
            let graph = scene.predicted(&scene.at("prog"));
            let absent: Vec<_> = graph.unresolved_requests().map(|request| request.name.as_str()).collect();
            assert_eq!(absent, if rest == "-" { Vec::new() } else { words });
        }
        "loads" => {
            let graph = scene.predicted(&scene.at("prog"));
            assert!(graph.objects.iter().any(|object| object.name == first), "{graph:#?}");
        }
        "ignored" => assert_eq!(scene.predicted(&scene.at("prog")).ignored.len().to_string(), first),
        _ => return false,
    }
    true
}

const MACHINE: usize = 18;

#[e2e]
fn fatal_files_end_the_loader() {
    let make = |name: &str| {
        let scene = Scene::new("broken");
        scene.library("good/libx.so", &[]).program(&["@/good/libx.so"]);
        scene.variable("LD_LIBRARY_PATH", "@/bad:@/good");
        let whole = std::fs::read(scene.at("good/libx.so")).unwrap();
        let mut other = whole.clone();
        match name {
            "empty" => other.clear(),
            "text" => other = "INPUT(libx.so.1) /* a linker script, as libx.so often is */\n".repeat(3).into(),
            "short" => other.truncate(45),
            "headers only" => other.truncate(200),
            "cut off" => other.truncate(5000),
            "big-endian" => other[5] = 2,
            "another system" => other[7] = 9,
            "object" => other[16] = 1,
            "core dump" => other[16] = 4,
            "version" => other[20] = 7,
            other => panic!("{other}"),
        }
        scene.file("bad/libx.so", &other);
        scene
    };
    for name in [
        "empty",
        "text",
        "short",
        "headers only",
        "cut off",
        "big-endian",
        "another system",
        "object",
        "core dump",
        "version",
    ] {
        let scene = make(name);
        let graph = scene.predicted(&scene.at("prog"));
        assert_eq!(graph.unresolved_requests().count(), 1, "{name}: {graph:#?}");
        scene.equal();
    }
    let scene = Scene::new("a folder");
    scene.library("good/libx.so", &[]).program(&["@/good/libx.so"]).file("bad/libx.so/file", b"");
    scene.variable("LD_LIBRARY_PATH", "@/bad:@/good");
    scene.equal();
}

#[e2e]
fn missing_symbol_versions_are_reported() {
    let scene = Scene::new("versions");
    scene.file("new.c", b"int f(void) { return 1; } int g(void) { return 2; }");
    scene.file("new.map", b"V_1 { global: f; }; V_2 { global: g; } V_1;");
    scene.file("old.map", b"V_1 { global: f; local: *; };");
    let build = |path: &str, map: &str| {
        std::fs::create_dir_all(scene.at(path).parent().unwrap()).unwrap();
        let script = format!("-Wl,--version-script={}", scene.at(map).display());
        let arguments = ["-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libv.so", &script, "-o"];
        let done = Command::new("gcc").args(arguments).arg(scene.at(path)).arg(scene.at("new.c")).status().unwrap();
        assert!(done.success());
    };
    build("new/libv.so", "new.map");
    build("old/libv.so", "old.map");
    scene.file("main.c", b"int f(void); int g(void); int main(void) { return f() + g() - 3; }");
    scene.program(&["@/new/libv.so"]);
    for (dir, missing) in [("@/new", 0), ("@/old", 1)] {
        scene.variable("LD_LIBRARY_PATH", dir);
        let graph = scene.predicted(&scene.at("prog"));
        let found = graph.missing_versions();
        assert_eq!(found.len(), missing, "{found:?}");
        let library_path = dir.replace('@', &scene.at("").display().to_string());
        let ran = Command::new(scene.at("prog")).env_clear().env("LD_LIBRARY_PATH", library_path).output().unwrap();
        assert_eq!(ran.status.success(), missing == 0);
        for one in found {
            assert_eq!(one.version, "V_2");
            assert!(String::from_utf8_lossy(&ran.stderr).contains("version `V_2' not found"));
        }
    }
}

#[e2e]
fn all_candidates_are_listed() {
    let scene = Scene::new("candidates");
    scene.library("a/libx.so", &[]).library("b/libx.so", &[]).library("c/libx.so", &[]);
    scene.altered("a/libx.so", "foreign/libx.so", MACHINE, 183);
    scene.program(&[NEW, "-Wl,-rpath,@/c", "@/a/libx.so"]).variable("LD_LIBRARY_PATH", "@/foreign:@/gone:@/a:@/b:@/a");
    let graph = scene.predicted(&scene.at("prog"));
    let found = graph.candidates(0, "libx.so");
    let paths: Vec<_> = found.iter().map(|candidate| candidate.path.clone()).collect();
    let expected = ["foreign", "a", "b", "c"].map(|dir| scene.at(dir).join("libx.so"));
    assert_eq!(paths, expected);
    assert_eq!(found[0].inspection, Inspection::WrongArchitecture("is for aarch64".to_owned()));
    assert!(found[1..].iter().all(|candidate| candidate.inspection == Inspection::Usable));
    assert!(found[3].place.to_string().starts_with("DT_RUNPATH of "), "{}", found[3].place);
    assert_eq!(graph.resolve_file(0, "libx.so").unwrap(), found[1]);
}

#[e2e(slow)]
fn system_programs_resolve_alike() {
    let env = Env::without_variables();
    let mut seen = 0;
    for dir in ["/usr/bin", "/usr/sbin"] {
        let Ok(files) = std::fs::read_dir(dir) else { continue };
        for file in files.map(|file| file.unwrap().path()) {
            let Ok(graph) = loader::resolve_program(&file, &env) else { continue };
            let glibc = graph.interpreter.as_ref().is_some_and(|path| path.to_string_lossy().contains("ld-linux"));
            // The loader does not print the list for a setuid program, and starts the program instead.
            let rights = std::fs::metadata(&file).unwrap().mode() & 0o6000 != 0;
            if rights || !glibc || graph.interpreter_problem.is_some() {
                continue;
            }
            compare(&graph, &file, Path::new("/"), &BTreeMap::new());
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} programs were compared");
}

#[e2e]
fn missing_interpreter_is_reported() {
    let scene = Scene::new("no interpreter");
    scene.program(&["-Wl,--dynamic-linker,@/gone/ld.so"]);
    let graph = scene.predicted(&scene.at("prog"));
    assert!(graph.interpreter_problem.as_ref().unwrap().contains("gone/ld.so"), "{graph:?}");
    assert!(Command::new(scene.at("prog")).status().is_err());
    scene.program(&["-static"]);
    let graph = scene.predicted(&scene.at("prog"));
    assert!(graph.interpreter.is_none() && graph.interpreter_problem.is_none() && graph.requests.is_empty());
    let error = loader::resolve_program(&scene.at("main.c"), &Env::without_variables()).unwrap_err();
    assert!(error.to_string().contains("main.c") && error.to_string().contains("is not an ELF file"), "{error}");
}
