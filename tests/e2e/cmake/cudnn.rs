//! Detection of the cuDNN that a target uses, for each way in which a project can find it.

use cudaguard_tests::{e2e, parts, snapshot};

use super::fixture::{Cmake, MULTI, Tree, include, manifest, printed};

const MAIN: &str = "#include <stddef.h>\n#include <cudnn_version.h>\nsize_t cudnnGetVersion(void);\n\
                    int main(void) { return cudnnGetVersion() < CUDNN_MAJOR; }\n";

#[e2e(slow)]
fn cudnn_is_found_by_all_methods() {
    let (new, old) = (parts::cudnn("9.15.1"), parts::cudnn("9.1.0"));
    let text = format!(
        r#"cmake_minimum_required(VERSION 3.24)
project(nets VERSION 1.0 LANGUAGES C)
set(NEW "{new}")
set(OLD "{old}")
{include}
link_libraries(-Wl,--allow-shlib-undefined)

# As cuDNN's own frontend and many find modules have it.
add_library(CUDNN::cudnn UNKNOWN IMPORTED)
set_target_properties(CUDNN::cudnn PROPERTIES
  IMPORTED_LOCATION "${{NEW}}/lib/libcudnn.so.9" INTERFACE_INCLUDE_DIRECTORIES "${{NEW}}/include")
add_library(layers INTERFACE)
target_link_libraries(layers INTERFACE CUDNN::cudnn)
add_executable(imported linked.c)
target_link_libraries(imported PRIVATE layers)
cudaguard_embed(imported)

# Variables of find_path and find_library.
add_executable(variables linked.c)
target_include_directories(variables PRIVATE "${{NEW}}/include")
target_link_libraries(variables PRIVATE "${{NEW}}/lib/libcudnn.so.9")
cudaguard_embed(variables)

# Loaded by name when the program runs; only the policy can say so.
add_executable(dlopened none.c)
cudaguard_embed(dlopened CUDNN_INCLUDE_DIR "${{NEW}}/include" POLICY dlopened.toml)

add_executable(none none.c)
cudaguard_embed(none)

# Headers of one, library of the other: seen when it is linked.
add_executable(mixed EXCLUDE_FROM_ALL linked.c)
target_include_directories(mixed PRIVATE "${{NEW}}/include")
target_link_libraries(mixed PRIVATE "${{OLD}}/lib/libcudnn.so.9")
cudaguard_embed(mixed)

if(ELSEWHERE)
  add_executable(elsewhere none.c)
  cudaguard_embed(elsewhere CUDNN_INCLUDE_DIR nowhere)
endif()
"#,
        new = new.display(),
        old = old.display(),
        include = include(),
    );
    let tree = Tree::new(
        "nets",
        Cmake::Newest,
        MULTI,
        &[
            ("CMakeLists.txt", &text),
            ("linked.c", MAIN),
            ("none.c", "int main(void) { return 0; }\n"),
            ("dlopened.toml", "[cudnn]\nlinkage = \"dlopened\"\n"),
        ],
    );
    let _ = tree.configure(&[]).run().success();
    let built = tree.build(&["--config", "Release"]).run().success();
    assert_eq!(printed(&built), "", "nothing is wrong: {built}");
    let cudnn = |target: &str| manifest(&tree.built(&format!("Release/{target}")), target)["cudnn"].clone();
    for (target, linkage) in [("imported", "linked"), ("variables", "linked"), ("dlopened", "dlopened")] {
        let found = cudnn(target);
        assert_eq!((&found["version"], &found["linkage"]), (&"9.15.1".into(), &linkage.into()), "{target}");
    }
    assert!(cudnn("none").is_null());

    let mixed = tree.build(&["--config", "Release", "--target", "mixed"]).run();
    assert_ne!(mixed.status(), Some(0), "{mixed}");
    snapshot::check("cmake/mixed-cudnn", &tree.plain(&printed(&mixed)));
    assert!(!tree.built("Release/mixed").exists(), "{mixed}");
    let warned = tree.build(&["--config", "Debug", "--target", "mixed"]).run().success();
    assert!(printed(&warned).starts_with("warning[CG110]"), "{warned}");

    // A cuDNN directory that is set but contains no cuDNN is an error. It does not mean that the program uses no cuDNN.
    let _ = tree.configure(&["-DELSEWHERE=ON"]).run().success();
    let elsewhere = tree.build(&["--config", "Debug", "--target", "elsewhere"]).run();
    assert_ne!(elsewhere.status(), Some(0), "{elsewhere}");
    assert_eq!(
        tree.plain(&printed(&elsewhere)),
        "error: CUDNN_INCLUDE_DIR of elsewhere names <source>/nowhere, which contains no cudnn_version.h or cudnn.h\n"
    );
}
