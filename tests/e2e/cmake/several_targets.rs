//! Build directories with several targets: shared shims, and post-build steps that use the files.

use std::fs;

use cudaguard_tests::{Test, e2e, rows, scratch, tools};

use super::fixture::{Cmake, MAKE, MULTI, NINJA, Tree, include, manifest, printed};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let settings = rows(
        "several_targets::project_linker_settings_are_kept",
        [("ninja_newest", (NINJA, Cmake::Newest)), ("make_oldest", (MAKE, Cmake::Oldest))],
        project_linker_settings_are_kept,
    );
    settings.map(Test::slow).collect()
}

const MAIN: &str = "int main() { return 0; }\n";

fn head() -> String {
    format!("cmake_minimum_required(VERSION 3.24)\nproject(many LANGUAGES CXX)\n{}", include())
}

fn tree(name: &str, generator: &'static str, lists: &str) -> Tree {
    let lists = head() + lists;
    Tree::new(name, Cmake::Newest, generator, &[("CMakeLists.txt", &lists), ("main.cpp", MAIN)])
}

/// A compiler wrapper logs its calls.
#[e2e(slow)]
fn shim_is_compiled_once_per_build() {
    let target = |number: u32| format!("add_executable(t{number} main.cpp)\ncudaguard_embed(t{number})\n");
    let lists = (0..8).map(target).collect::<Vec<_>>().concat();
    let tree = tree("many-shims", NINJA, &lists);
    let (compiler, log) = (tree.sibling().join("logging-c++"), tree.sibling().join("log"));
    let real = tools::need("c++");
    let script = format!("#!/bin/sh\necho \"$@\" >> '{}'\nexec '{}' \"$@\"\n", log.display(), real.display());
    scratch::program(&compiler, &script);
    let named = format!("-DCMAKE_CXX_COMPILER={}", compiler.display());
    let _ = tree.configure(&[&named, "-DCMAKE_BUILD_TYPE=Release"]).run().success();
    fs::write(&log, "").expect("it can be written");
    let _ = tree.cmake(&["--build"]).arg(tree.out()).args(["--parallel", "4"]).run().success();
    let calls = fs::read_to_string(&log).expect("it was called");
    let count = |word: &str| calls.lines().filter(|line| line.contains(word)).count();
    assert_eq!((count("cudaguard-shim.c "), count("cudaguard-note.s ")), (1, 8), "{calls}");
    assert_eq!(count("-dumpmachine"), 0, "it was asked when CMake configured: {calls}");
    for number in 0..8 {
        let name = format!("t{number}");
        let manifest = manifest(&tree.built(&name), &name);
        assert_eq!(manifest["archs"]["known"], "observed", "{manifest}");
        let _ = cudaguard_tests::Call::new(tree.built(&name)).run().success();
    }
    let again = tree.build(&[]).run().success();
    let nothing = ["ninja: no work to do.", "Built target t7"];
    assert!(nothing.iter().any(|words| again.stdout.contains(words)), "{again}");
    assert_eq!(fs::read_to_string(&log).expect("a log"), calls, "nothing is made again");
    // A changed compiler compiles the shim again.
    scratch::write(&compiler, fs::read_to_string(&compiler).expect("it is there") + "# newer\n");
    fs::remove_dir_all(tree.built("CMakeFiles/cudaguard/t0")).expect("its guard");
    let _ = tree.configure(&[]).run().success();
    let _ = tree.build(&[]).run().success();
    let calls = fs::read_to_string(&log).expect("it was called");
    assert_eq!(calls.lines().filter(|line| line.contains("cudaguard-shim.c ")).count(), 2, "{calls}");
}

#[e2e(slow)]
fn earlier_post_build_steps_see_seal() {
    let step = |what: &str| format!("add_custom_command(TARGET app POST_BUILD COMMAND {what} VERBATIM)\n");
    let lists = [
        "file(MAKE_DIRECTORY \"${CMAKE_BINARY_DIR}/a folder\")\nadd_executable(app main.cpp)\n",
        &step("strip -g $<TARGET_FILE:app>"),
        &step("${CMAKE_COMMAND} -E copy $<TARGET_FILE:app> \"${CMAKE_BINARY_DIR}/a folder\""),
        &step("cp $<TARGET_FILE:app> ${CMAKE_BINARY_DIR}/copy"),
        &step("ln -f $<TARGET_FILE:app> ${CMAKE_BINARY_DIR}/linked"),
        &step("${CMAKE_COMMAND} -E echo $<TARGET_FILE:app>"),
        &step("app"),
        "cudaguard_embed(app)\n",
    ]
    .concat();
    for generator in [NINJA, MAKE, MULTI] {
        let tree = tree("many-copies", generator, &lists);
        let _ = tree.configure(&["-DCMAKE_BUILD_TYPE=Release"]).run().success();
        let built = tree.build(&["--config", "Release"]).run().success();
        assert_eq!(printed(&built), "", "{generator}");
        let out = if generator == MULTI { tree.built("Release") } else { tree.out() };
        let file = fs::read(out.join("app")).expect("it was built");
        for copy in ["a folder/app", "copy", "linked"] {
            let known = &manifest(&tree.built(copy), "app")["archs"]["known"];
            assert_eq!(known, "observed", "{generator}: {copy}");
            assert!(fs::read(tree.built(copy)).expect("it was made") == file, "{generator}: {copy}");
        }
    }
    // This includes steps whose commands cannot be analyzed.
    let script = "#!/bin/sh\ncat \"$1\" > packed\n";
    let lists = "add_executable(app main.cpp)\nadd_custom_command(TARGET app POST_BUILD COMMAND sh \
                 ${CMAKE_SOURCE_DIR}/pack.sh $<TARGET_FILE:app> VERBATIM)\ncudaguard_embed(app)\n";
    for generator in [NINJA, MAKE, MULTI] {
        let tree = tree("many-packed", generator, lists);
        tree.write("pack.sh", script);
        let _ = tree.configure(&["-DCMAKE_BUILD_TYPE=Release"]).run().success();
        assert_eq!(printed(&tree.build(&["--config", "Release"]).run().success()), "", "{generator}");
        let out = if generator == MULTI { tree.built("Release") } else { tree.out() };
        let packed = fs::read(tree.built("packed")).expect("it was packed");
        assert!(packed == fs::read(out.join("app")).expect("it was built"), "{generator}");
    }
}

/// A launcher of `ctest`, a launcher of the linker and replaced link options all stay in effect. The build directory is a
/// symbolic link, and some directories contain blanks.
fn project_linker_settings_are_kept((generator, cmake): (&'static str, Cmake)) {
    let lists = "include(CTest)\nset(CMAKE_RUNTIME_OUTPUT_DIRECTORY \"${CMAKE_BINARY_DIR}/out of it\")\n\
                 add_executable(app main.cpp)\ncudaguard_embed(app)\n\
                 set_target_properties(app PROPERTIES LINK_OPTIONS -Wl,-O1)\n\
                 add_library(versioned SHARED main.cpp)\ncudaguard_embed(versioned)\n\
                 set_target_properties(versioned PROPERTIES VERSION 1.2.3 SOVERSION 1 CXX_LINKER_LAUNCHER \"env;A=b\")\n";
    let files = [("CMakeLists.txt", &*(head() + lists)), ("main.cpp", MAIN)];
    let tree = Tree::new("many-launchers", cmake, generator, &files);
    let real = tree.sibling().join("real");
    fs::create_dir(&real).expect("a folder");
    std::os::unix::fs::symlink(&real, tree.out()).expect("a link");
    let _ = tree.configure(&["-DCMAKE_BUILD_TYPE=Release", "-DCTEST_USE_LAUNCHERS=ON"]).run().success();
    let built = tree.build(&["--config", "Release", "--verbose"]).run().success();
    assert_eq!(printed(&built), "", "{generator}");
    let line = built.stdout.lines().find(|line| line.contains(" cmake link ") && line.contains("--target-name app"));
    let line = line.unwrap_or_else(|| panic!("{generator}: {built}"));
    assert!(line.contains("-- ") && line.contains("--launch") && line.contains("-Wl,-O1"), "{generator}: {line}");
    let dir = if generator == MULTI { "Release/" } else { "" };
    for (file, target) in [(format!("out of it/{dir}app"), "app"), (format!("{dir}libversioned.so.1.2.3"), "versioned")]
    {
        assert_eq!(manifest(&tree.built(&file), target)["archs"]["known"], "observed", "{generator}: {file}");
    }
}
