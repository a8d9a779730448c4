//! `cudaguard.h` compiles under all C and C++ standards.

use cudaguard_tests::{Call, Scratch, e2e, places, tools};

#[e2e(slow)]
fn header_compiles_under_all_standards() {
    let scratch = Scratch::new("header");
    let text = "#include <cudaguard.h>\n#include \"cudaguard.h\"\n\
                int asked(char *text, size_t size) {\n  struct cudaguard_verdict verdict;\n  \
                return cudaguard_check_text(text, size) + cudaguard_check() + cudaguard_check_verdict(&verdict);\n}\n";
    let mut missing = Vec::new();
    for (ending, compilers, standards) in [
        ("c", ["gcc", "clang"], ["c99", "c11", "gnu17", "c2x"]),
        ("cpp", ["g++", "clang++"], ["c++11", "c++14", "c++17", "c++20"]),
    ] {
        let file = scratch.file(format!("asked.{ending}"), text);
        for compiler in compilers {
            if tools::find(compiler).is_none() {
                missing.push(compiler);
                continue;
            }
            for standard in standards {
                let outcome = Call::new(compiler)
                    .args([
                        &format!("-std={standard}"),
                        "-pedantic-errors",
                        "-Wall",
                        "-Wextra",
                        "-Werror",
                        "-Wconversion",
                    ])
                    .args(["-Wshadow", "-fsyntax-only", "-I"])
                    .arg(places::workspace().join("templates"))
                    .arg(&file)
                    .run()
                    .success();
                assert_eq!(outcome.stderr, "", "{outcome}");
            }
        }
    }
    tools::done_without(&missing);
}
