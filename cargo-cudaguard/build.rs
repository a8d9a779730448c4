//! Compiles the judge of a start, and the reader of getters. The shim contains both too.

fn main() {
    for file in [
        "attributes.h",
        "coverage.c",
        "coverage.h",
        "judge.c",
        "judge.h",
        "note_layout.h",
        "returned_constant.h",
        "tables.h",
    ] {
        println!("cargo::rerun-if-changed=templates/shim/{file}");
    }
    println!("cargo::rerun-if-changed=src/host/machine/judge/returned_constant.c");
    cc::Build::new()
        .files(["templates/shim/coverage.c", "templates/shim/judge.c", "src/host/machine/judge/returned_constant.c"])
        .include("templates/shim")
        .define("CUDAGUARD_EXPORT_JUDGE", None)
        .compile("cudaguard_judge");
}
