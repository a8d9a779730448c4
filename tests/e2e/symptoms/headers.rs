//! What the headers of CUDA 11.8 declare and those of CUDA 13.5 do not, compared with the answers of `explain`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use cargo_cudaguard::knowledge::symptoms::{SymptomMatches, diagnose};
use cudaguard_tests::{e2e, parts};

/// The code of the headers of the driver API and the runtime, without comments.
fn headers(version: &str) -> String {
    let include = parts::cudart(version).with_file_name("../include");
    let mut code = String::new();
    for name in
        ["cuda.h", "cudaTypedefs.h", "cuda_runtime_api.h", "driver_types.h", "texture_types.h", "surface_types.h"]
    {
        let text = fs::read_to_string(include.join(name)).unwrap();
        code.extend(text.split("/*").map(|piece| piece.split_once("*/").map_or(piece, |(_, code)| code)));
    }
    code
}

/// The names of the API. Those of the compiler's variants for streams are not for programs.
fn names(code: &str) -> BTreeSet<&str> {
    let words = code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words
        .filter(|word| ["cu", "CU_", "PFN_cu"].iter().any(|start| word.starts_with(start)) && !word.contains("_pt"))
        .collect()
}

/// The number of arguments of each function.
fn functions(code: &str) -> BTreeMap<&str, usize> {
    let declared = code.split("CUDARTAPI ").chain(code.split("CUDAAPI "));
    let calls = declared.filter_map(|text| text.split_once(';')?.0.trim().split_once('('));
    calls.map(|(name, arguments)| (name.trim(), arguments.split(',').count())).collect()
}

fn is_about_the_api(text: &str) -> bool {
    let SymptomMatches::Shown(shown) = diagnose(text) else { return false };
    ["cuda12-api", "cuda13-api", "arch-renamed"].contains(&shown[0].name.as_str())
}

#[e2e]
fn removed_and_changed_names_are_explained() {
    let (old, new) = (headers("11.8"), headers("13.5"));
    let (old_names, new_names) = (names(&old), names(&new));
    let removed: Vec<_> = old_names.difference(&new_names).collect();
    let (old_functions, new_functions) = (functions(&old), functions(&new));
    let has_changed = |(name, count): &(&&str, &usize)| new_functions.get(*name).is_some_and(|new| new != *count);
    let changed: Vec<_> = old_functions.iter().filter(has_changed).map(|(name, _)| name).collect();
    assert!(removed.len() > 100 && changed.len() > 10, "{} {}", removed.len(), changed.len());
    let removed =
        removed.into_iter().filter(|name| !is_about_the_api(&format!("error: identifier \"{name}\" is undefined")));
    let call = |name: &str| format!("error: too few arguments to function 'int {name}(int)'");
    let changed = changed.into_iter().filter(|name| !is_about_the_api(&call(name)));
    let unexplained: Vec<_> = removed.chain(changed).collect();
    assert!(unexplained.is_empty(), "explain has no answer for {unexplained:?}");
}
