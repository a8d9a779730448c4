//! Compiles the judge of a start, which the shim contains too.

fn main() {
    for file in ["attributes.h", "coverage.h", "judge.c", "judge.h", "note_layout.h", "returned_constant.h", "tables.h"]
    {
        println!("cargo::rerun-if-changed=templates/shim/{file}");
    }
    cc::Build::new().file("templates/shim/judge.c").define("CUDAGUARD_EXPORT_JUDGE", None).compile("cudaguard_judge");
}
