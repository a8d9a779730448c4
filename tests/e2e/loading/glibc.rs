//! Search rules of glibc.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use cargo_cudaguard::binary::loader::{self, Inspection};
use cudaguard::internal::env::Env;
use cudaguard_tests::e2e;

use super::scene::{Scene, compare};

const OLD: &str = "-Wl,--disable-new-dtags";
const NEW: &str = "-Wl,--enable-new-dtags";

#[e2e]
fn origin_of_linked_program_is_resolved() {
    let scene = Scene::new("called by a link");
    scene.library("lib/libx.so", &[]).program(&["-Wl,-rpath,$ORIGIN/lib", "@/lib/libx.so"]);
    scene.link_to("../prog", "elsewhere/called").equal_for("elsewhere/called");
    scene.link_to("../lib/libx.so", "links/libx.so").without("prog");
    scene.program(&["-Wl,-rpath,$ORIGIN/links", "@/lib/libx.so"]);
    scene.equal();
}

#[e2e]
fn loaded_soname_is_reused() {
    let scene = Scene::new("by soname");
    // The file name and the soname differ. The second library imports the soname and would find another file.
    scene.named("a/libreal.so.1.2", "libx.so.1", &[]).link_to("libreal.so.1.2", "a/libx.so.1");
    scene.library("b/libx.so.1", &[]).library("b/liby.so", &[NEW, "-Wl,-rpath,@/b", "@/b/libx.so.1"]);
    scene.program(&["-Wl,-rpath,@/a:@/b", "@/a/libx.so.1", "@/b/liby.so"]);
    scene.equal();
    let other = Scene::new("by path");
    other.named("a/libplain.so", "", &[]).named("a/libx.so.1", "libx.so.1", &["@/a/libplain.so"]);
    other.program(&["-Wl,-rpath,@/a", "@/a/libx.so.1", "@/a/libplain.so"]);
    other.equal();
}

#[e2e]
fn file_with_two_names_loads_once() {
    let scene = Scene::new("two names");
    scene.named("a/libx.so.1", "libx.so.1", &[]);
    scene.library("stub/libalias.so", &[]).link_to("libx.so.1", "a/libalias.so");
    scene.program(&["-Wl,-rpath,@/a", "@/a/libx.so.1", "@/stub/libalias.so"]);
    scene.equal();
    let hard = Scene::new("a hard link");
    hard.named("a/libx.so.1", "libx.so.1", &[]).library("stub/libalias.so", &[]);
    std::fs::hard_link(hard.at("a/libx.so.1"), hard.at("a/libalias.so")).unwrap();
    hard.program(&["-Wl,-rpath,@/a", "@/stub/libalias.so", "@/a/libx.so.1"]);
    hard.equal();
}

/// The search is breadth-first, so the first importer determines the file for all.
#[e2e]
fn first_match_wins() {
    for (first, second) in [("left", "right"), ("right", "left")] {
        let scene = Scene::new("diamond");
        for side in ["left", "right"] {
            scene.library(&format!("{side}/libcommon.so"), &[]);
            let rpath = format!("-Wl,-rpath,$ORIGIN:@/{side}");
            scene.library(&format!("{side}/lib{side}.so"), &[OLD, &rpath, &format!("@/{side}/libcommon.so")]);
        }
        scene.library("deep/libdeep.so", &[OLD, "-Wl,-rpath,@/left:@/right", "@/left/libcommon.so"]);
        let (one, two) = (format!("@/{first}/lib{first}.so"), format!("@/{second}/lib{second}.so"));
        scene.program(&[OLD, "-Wl,-rpath,@/left:@/right:@/deep", &one, "@/deep/libdeep.so", &two]);
        scene.equal();
        scene.program(&[NEW, "-Wl,-rpath,@/left:@/right:@/deep", "@/deep/libdeep.so", &one, &two]);
        scene.equal();
    }
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
fn missing_library_is_reported() {
    let scene = Scene::new("absent");
    scene
        .library("a/libdeep.so", &[])
        .library("a/libx.so", &["@/a/libdeep.so"])
        .library("a/liby.so", &["@/a/libdeep.so"]);
    scene.library("a/libgone.so", &[]);
    scene.program(&[OLD, "-Wl,-rpath,@/a", "@/a/libx.so", "@/a/libgone.so", "@/a/liby.so"]);
    scene.without("a/libdeep.so").without("a/libgone.so").equal();
    let graph = scene.predicted(&scene.at("prog"));
    let names: Vec<_> = graph.unresolved_requests().map(|request| request.name.as_str()).collect();
    assert_eq!(names, ["libgone.so", "libdeep.so", "libdeep.so"]);
}

#[e2e]
fn preloaded_libraries_come_first() {
    let scene = Scene::preloaded("preloaded");
    scene.library("a/libx.so", &[]).library("b/libx.so", &[]).library("p/libp.so", &["@/a/libx.so"]);
    scene.program(&[OLD, "-Wl,-rpath,@/a", "@/a/libx.so"]).file("broken.so", b"text");
    for value in [
        "@/p/libp.so",
        "@/b/libx.so",
        "@/b/libx.so:@/p/libp.so",
        "@/b/libx.so @/p/libp.so",
        "libx.so",
        "@/absent.so:@/p/libp.so",
        "@/broken.so @/b/libx.so",
        "p/libp.so",
        "$ORIGIN/p/libp.so",
    ] {
        scene.variable("LD_PRELOAD", value);
        scene.equal();
    }
    scene.variable("LD_PRELOAD", "libp.so").variable("LD_LIBRARY_PATH", "@/p");
    scene.equal();
    let ignored = {
        scene.variable("LD_PRELOAD", "@/broken.so");
        scene.predicted(&scene.at("prog")).ignored
    };
    assert_eq!(ignored.len(), 1);
}

#[e2e]
fn names_with_slash_are_paths() {
    let scene = Scene::new("slash");
    // A library without a soname is imported by the path that the linker received.
    scene.named("a/libx.so", "", &[]).program(&["a/libx.so"]);
    scene.equal();
    scene.named("a/liby.so", "$ORIGIN/a/liby.so", &[]).program(&["a/liby.so"]);
    scene.equal();
    scene.named("a/libz.so", "./gone/libz.so", &[]).program(&["a/libz.so"]);
    scene.equal();
    assert_eq!(scene.predicted(&scene.at("prog")).unresolved_requests().count(), 1);
}

#[e2e]
fn filter_libraries_are_loaded() {
    let scene = Scene::new("filters");
    scene.library("a/libreal.so", &[]);
    scene.library("a/libaux.so", &["-Wl,-f,libreal.so", "-Wl,-f,libgone.so", OLD, "-Wl,-rpath,@/a"]);
    scene.program(&[OLD, "-Wl,-rpath,@/a", "@/a/libaux.so"]);
    let graph = scene.predicted(&scene.at("prog"));
    assert_eq!(graph.unresolved_requests().count(), 0, "an auxiliary one may be missing");
    assert!(graph.objects.iter().any(|object| object.name == "libreal.so"));
}

#[e2e]
fn library_without_soname_is_matched() {
    let scene = Scene::new("no soname");
    scene.named("a/libx.so", "", &[]).named("stub/libx.so", "libx.so", &[]).library("a/liby.so", &["@/stub/libx.so"]);
    scene.program(&["@/stub/libx.so", "@/a/liby.so"]).variable("LD_LIBRARY_PATH", "@/a");
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
