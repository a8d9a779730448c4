//! Search rules of musl.

use cudaguard_tests::{e2e, tools};

use super::scene::Scene;

fn need() {
    tools::need("/lib/ld-musl-x86_64.so.1");
    tools::need("musl-gcc");
}

fn scene(name: &str) -> Scene {
    need();
    Scene::new(name).by("musl-gcc")
}

const NEW: &str = "-Wl,--enable-new-dtags";
const OLD: &str = "-Wl,--disable-new-dtags";

#[e2e]
fn musl_searches_variable_first() {
    for style in [OLD, NEW] {
        let scene = scene("musl variable");
        scene.library("a/libx.so", &[]).library("b/libx.so", &[]).link_to("libx.so", "loop/libx.so");
        scene.program(&[style, "-Wl,-rpath,@/a", "@/a/libx.so"]);
        scene.equal();
        for value in ["@/b", "@/gone:@/b", "::@/b", "@/b;@/a", "b", "@/loop"] {
            scene.variable("LD_LIBRARY_PATH", value);
            scene.equal();
        }
    }
}

#[e2e]
fn musl_inherits_all_paths() {
    for style in [OLD, NEW] {
        let scene = scene("musl inherits");
        scene.library("inner/libinner.so", &[]).library("outer/libouter.so", &["@/inner/libinner.so"]);
        scene.program(&[style, "-Wl,-rpath,@/outer:@/inner", "@/outer/libouter.so"]);
        scene.equal();
        assert_eq!(scene.predicted(&scene.at("prog")).unresolved_requests().count(), 0);
    }
}

#[e2e]
fn musl_expands_only_origin() {
    for entry in ["$ORIGIN/a", "${ORIGIN}/a", "$LIB:$ORIGIN/a", "@/a/$ORIGIN:@/a"] {
        let scene = scene("musl origin");
        let rpath = format!("-Wl,-rpath,{entry}");
        scene.library("a/libx.so", &[]).program(&[&rpath, "@/a/libx.so"]);
        scene.equal();
    }
}

#[e2e]
fn musl_is_its_own_libc() {
    let scene = scene("musl libc");
    scene.library("a/libpthread.so.0", &[]).program(&["-Wl,-rpath,@/a", "@/a/libpthread.so.0"]);
    scene.equal();
    let graph = scene.predicted(&scene.at("prog"));
    assert_eq!(graph.unresolved_requests().count(), 0);
    assert_eq!(graph.objects.len(), 2, "the program and musl itself: {graph:?}");
}

#[e2e]
fn musl_reports_missing_library() {
    let scene = scene("musl misses");
    scene.library("a/libx.so", &[]).program(&["@/a/libx.so"]);
    scene.equal();
    assert_eq!(scene.predicted(&scene.at("prog")).unresolved_requests().count(), 1);
}

#[e2e]
fn musl_honours_preloads() {
    need();
    let scene = Scene::preloaded("musl preloads").by("musl-gcc");
    scene.library("a/libx.so", &[]).library("b/libx.so", &[]);
    scene.program(&["-Wl,-rpath,@/a", "@/a/libx.so"]);
    for value in ["@/b/libx.so", "@/gone.so:@/b/libx.so", "libx.so"] {
        scene.variable("LD_PRELOAD", value);
        if value.contains("gone") {
            // musl continues, although its message reads like a fatal error.
            assert_eq!(scene.predicted(&scene.at("prog")).unresolved_requests().count(), 0);
        } else {
            scene.equal();
        }
    }
}
