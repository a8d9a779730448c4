//! Checks that `docs/reference/environment.md` lists exactly the variables that the code uses.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::places;

/// Names in the code that look like variables but are not.
const NO_VARIABLES: &[&str] = &[
    // Names of SPDX.
    "OPTIONAL_DEPENDENCY_OF",
    "RUNTIME_DEPENDENCY_OF",
    "STATIC_LINK",
    // Names of CMake.
    "CMAKE_CUDA_ARCHITECTURES",
    "CMAKE_CUDA_ARCHITECTURES_NATIVE",
    "CMAKE_CUDA_COMPILER",
    "CMAKE_CUDA_FLAGS",
    "CMAKE_CUDA_HOST_COMPILER",
    "CUDAToolkit_NVCC_EXECUTABLE",
    "CUDA_NVCC_EXECUTABLE",
    "CUDA_ARCHITECTURES",
    "LINK_FLAGS",
    "LINK_LIBRARIES",
    "LINK_PATH",
    "TARGET_FILE",
    // Names of C macros.
    "CUDA_VERSION",
    "CUDNN_MAJOR",
    "CUDNN_MINOR",
    "CUDNN_PATCHLEVEL",
    "HEAD_SIZE",
    "ROW_SIZE",
    // Names of ELF tags, and values.
    "DT_RPATH",
    "DT_RUNPATH",
    "PCI_BUS_ID",
    // Names in the source of a crate's build script.
    "CUDA_MAJOR_VERSION",
    "CUDA_MINOR_VERSION",
    // A variable that is read at compile time.
    "CARGO_PKG_REPOSITORY",
];
/// Names of variables without an underscore. All other variable names contain one.
const SHORT: &[&str] = &[
    "PATH",
    "HOME",
    "HOST",
    "TARGET",
    "NVCC",
    "CC",
    "CXX",
    "CFLAGS",
    "CUDACXX",
    "CUDAARCHS",
    "CUDAHOSTCXX",
    "CPATH",
    "LDFLAGS",
    "PROFILE",
    "CARGO",
    "RUSTC",
    "RUSTFLAGS",
];

fn sources(dir: &str, endings: &[&str]) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![places::workspace().join(dir)]);
    while let Some(dir) = open.pop() {
        for path in fs::read_dir(&dir).expect("a folder").flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && name != "tests" {
                open.push(path);
            } else if endings.iter().any(|ending| name.ends_with(ending)) && name != "tests.rs" {
                found.push(path);
            }
        }
    }
    found
}

fn is_a_name(text: &str) -> bool {
    let letters = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let shouted = text.split('_').next_back().is_some_and(|last| last.bytes().all(|byte| !byte.is_ascii_lowercase()));
    let whole = text.starts_with(|c: char| c.is_ascii_uppercase()) && !text.ends_with('_');
    letters && whole && shouted && (SHORT.contains(&text) || text.contains('_') || text == "CUDAGUARD")
}

/// Returns the quoted strings of this text that look like the name of a variable.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').skip(1).filter(|word| is_a_name(word))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the variables in the code of library, command and shim without their tests, and the `CUDAGUARD…` variables
/// in the CMake package and the tests.
fn named_in_code() -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for dir in ["guard-core/src", "cargo-cudaguard/src"] {
        for file in sources(dir, &[".rs"]) {
            let text = read(&file);
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            named.extend(quoted(code).map(str::to_owned));
        }
    }
    for file in sources("templates/shim", &[".c"]) {
        let text = read(&file);
        for call in ["variable(\"", "getenv(\""] {
            named.extend(text.split(call).skip(1).filter_map(|behind| behind.split('"').next()).map(str::to_owned));
        }
    }
    for file in sources("cmake", &[".cmake"]) {
        let text = read(&file);
        named.extend(text.split("$ENV{").skip(1).filter_map(|behind| behind.split('}').next()).map(str::to_owned));
    }
    for file in sources("tests/harness", &[".rs"]).into_iter().chain(sources("tests/e2e", &[".rs"])) {
        let text = read(&file);
        let asked = text.split("var_os(\"").skip(1).chain(text.split("env::var(\"").skip(1));
        let asked = asked.filter_map(|behind| behind.split('"').next()).filter(|name| name.starts_with("CUDAGUARD"));
        named.extend(asked.map(str::to_owned));
    }
    named.retain(|name| !NO_VARIABLES.contains(&&**name));
    named
}

/// Returns the names in the first column of the page's tables.
fn reported() -> BTreeSet<String> {
    let page = read(&places::workspace().join("docs/reference/environment.md"));
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" | "));
    rows.flat_map(|(names, _)| names.split(", ")).map(|name| name.trim_matches('`').to_owned()).collect()
}

#[test]
fn variables_are_documented() {
    let (named, reported) = (named_in_code(), reported());
    assert!(named.len() > 60, "{named:?}");
    let undocumented: Vec<_> = named.difference(&reported).collect();
    assert!(undocumented.is_empty(), "docs/reference/environment.md  does not mention {undocumented:?}");
    let everywhere: String = ["guard-core/src", "cargo-cudaguard/src", "tests/harness", "tests/e2e"]
        .iter()
        .flat_map(|dir| sources(dir, &[".rs"]))
        .map(|file| read(&file))
        .collect();
    // `anstream` reads these variables.
    let by_libraries = ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"];
    let gone = reported.difference(&named).filter(|name| !everywhere.contains(&format!("\"{name}\"")));
    let gone: Vec<_> = gone.filter(|name| !by_libraries.contains(&name.as_str())).collect();
    assert!(gone.is_empty(), "docs/reference/environment.md lists {gone:?}, which no code names");
}
