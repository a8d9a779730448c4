//! Tables of single functions of the shim, written in C: the program includes the shim, and prints a line for each wrong row.

use cudaguard_tests::{Call, Scratch, e2e, places};

use super::fixture::templates;

/// Symbols and names that the rows about files read from the program itself.
const LINKED_AS: &str = "-Wl,--enable-new-dtags,-rpath,/first:/second,-soname,libcudnn.so.9,--hash-style=gnu";

#[e2e]
fn tables() {
    let scratch = Scratch::new("functions");
    let program = scratch.join("functions");
    let sources = places::workspace().join("tests/e2e/judge_equal/functions");
    let compile = Call::new("cc").args(["-w", "-O0", "-rdynamic", LINKED_AS, "-I"]).arg(templates());
    let _ = compile.arg("-o").args([&program, &sources.join("main.c")]).arg("-ldl").run().success();
    let library = Call::new("cc").args(["-shared", "-fPIC", "-o"]).arg(scratch.join("libfake.so"));
    let _ = library.arg(sources.join("fake.c")).run().success();
    let library =
        Call::new("cc").args(["-shared", "-Wl,--disable-new-dtags,-rpath,/third", "-x", "c", "/dev/null", "-o"]);
    let _ = library.arg(scratch.join("librpath.so")).run().success();
    let outcome = Call::new(&program).dir(scratch.path()).env("CUDAGUARD", "off").run().success();
    assert_eq!(outcome.stdout, "");
}
