//! Build directories with several targets: shared shims, and post-build steps that use the files.

use std::fs;

use cudaguard_tests::{Test, command, e2e, fake_library, rows, scratch, tools};

use super::fixture::{Cmake, MAKE, MULTI, NINJA, Tree, include, manifest, printed, toolkit, words};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    tests.extend(
        rows("several_targets::shim_is_compiled_once_per_build", [("ninja", NINJA)], shim_is_compiled_once_per_build)
            .map(Test::slow),
    );
    tests.extend(
        rows(
            "several_targets::project_linker_settings_are_kept",
            [("ninja_newest", (NINJA, Cmake::Newest)), ("make_oldest", (MAKE, Cmake::Oldest))],
            project_linker_settings_are_kept,
        )
        .map(Test::slow),
    );
    tests.extend(
        rows("several_targets::refusal_deletes_copies", [("make", MAKE)], refusal_deletes_copies).map(Test::slow),
    );
    tests.extend(
        rows(
            "several_targets::number_signs_in_path_work",
            [("ninja", NINJA), ("make", MAKE)],
            number_signs_in_path_work,
        )
        .map(Test::slow),
    );
    tests
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
fn shim_is_compiled_once_per_build(generator: &'static str) {
    let target = |number: u32| format!("add_executable(t{number} main.cpp)\ncudaguard_embed(t{number})\n");
    let lists = (0..8).map(target).collect::<Vec<_>>().concat();
    let tree = tree("many-shims", generator, &lists);
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
    assert_eq!((count("cudaguard-shim.c "), count("cudaguard-note.s ")), (1, 1), "{generator}: {calls}");
    assert_eq!(count("-dumpmachine"), 0, "it was asked when CMake configured: {calls}");
    for number in 0..8 {
        let name = format!("t{number}");
        let manifest = manifest(&tree.built(&name), &name);
        assert_eq!(manifest["archs"]["known"], "observed", "{generator}: {manifest}");
        let _ = cudaguard_tests::Call::new(tree.built(&name)).run().success();
    }
    let again = tree.build(&[]).run().success();
    let nothing = ["ninja: no work to do.", "Built target t7"];
    assert!(nothing.iter().any(|words| again.stdout.contains(words)), "{again}");
    assert_eq!(fs::read_to_string(&log).expect("a log"), calls, "{generator}: nothing is made again");
    // A changed compiler compiles the shim again.
    scratch::write(&compiler, fs::read_to_string(&compiler).expect("it is there") + "# newer\n");
    fs::remove_dir_all(tree.built("CMakeFiles/cudaguard/t0")).expect("its guard");
    let _ = tree.configure(&[]).run().success();
    let _ = tree.build(&[]).run().success();
    let calls = fs::read_to_string(&log).expect("it was called");
    assert_eq!(calls.lines().filter(|line| line.contains("cudaguard-shim.c ")).count(), 2, "{generator}: {calls}");
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

fn refusal_deletes_copies(generator: &'static str) {
    let lists = "add_executable(app main.cpp)\ntarget_link_options(app PRIVATE -Wl,--no-as-needed)\n\
                 target_link_libraries(app PRIVATE ${CUDNN}/lib/libcudnn.so)\n\
                 add_custom_command(TARGET app POST_BUILD COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:app> \
                 ${CMAKE_BINARY_DIR}/copy)\ncudaguard_embed(app)\n";
    let tree = tree("many-refused", generator, lists);
    let cudnn = tree.sibling().join("cudnn");
    fake_library::cudnn(&cudnn, (9, 1, 0));
    tree.write("cudaguard.toml", "[cudnn]\nlinkage = \"none\"\n");
    let named = format!("-DCUDNN={}", cudnn.display());
    let _ = tree.configure(&["-DCMAKE_BUILD_TYPE=Release", &named]).run().success();
    let refused = tree.build(&[]).run();
    assert!(refused.status() != Some(0) && printed(&refused).contains("error[CG142]: "), "{generator}: {refused}");
    assert!(printed(&refused).contains("or the libraries that are linked"), "{generator}: {refused}");
    assert!(!tree.built("app").exists() && !tree.built("copy").exists(), "{generator}: {refused}");
}

#[e2e(slow)]
fn target_warning_is_printed_once() {
    let lists: String = ["first", "second", "third"]
        .map(|name| {
            format!(
                "add_executable({name} main.cpp)\ntarget_include_directories({name} PRIVATE ${{CUDNN}}/include)\n\
                 target_link_directories({name} PRIVATE ${{CUDNN}}/lib)\ncudaguard_embed({name})\n"
            )
        })
        .concat();
    let tree = tree("many-warned", NINJA, &lists);
    let cudnn = tree.sibling().join("cudnn");
    fake_library::cudnn(&cudnn, (9, 1, 0));
    let header = cudnn.join("include/cudnn_version.h");
    let text = fs::read_to_string(&header).expect("just written").replace("MINOR 1", "MINOR 4");
    fs::write(&header, text.replace("90100", "90400")).expect("it can be written");
    let _ = tree.configure(&["-DCMAKE_BUILD_TYPE=Debug", &format!("-DCUDNN={}", cudnn.display())]).run().success();
    let built = printed(&tree.build(&[]).run().success());
    assert_eq!(built.matches("warning[CG110]: ").count(), 1, "{built}");
    assert!(built.contains(" of first"), "{built}");
}

/// Covers a target of another directory, which a launcher seals, its copies and the lock.
fn number_signs_in_path_work(generator: &'static str) {
    let lists = "add_executable(app main.cpp)\nadd_custom_command(TARGET app POST_BUILD COMMAND ${CMAKE_COMMAND} -E copy \
                 $<TARGET_FILE:app> \"${CMAKE_BINARY_DIR}/a # copy\" VERBATIM)\ncudaguard_embed(app)\n\
                 add_subdirectory(\"a part\")\ncudaguard_embed(other)\n";
    let tree = tree("many # signs", generator, lists);
    tree.write("a part/CMakeLists.txt", "add_executable(other ../main.cpp)\n");
    let _ = tree.configure(&["-DCMAKE_BUILD_TYPE=Release"]).run().success();
    let _ = tree.build(&["--config", "Release"]).run().success();
    let dir = if generator == MULTI { "Release/" } else { "" };
    let files = [("app", format!("{dir}app")), ("app", "a # copy".to_owned()), ("other", format!("a part/{dir}other"))];
    for (target, file) in files {
        let known = &manifest(&tree.built(&file), target)["archs"]["known"];
        assert_eq!(known, "observed", "{generator}: {file}");
    }
    let again = tree.build(&["--config", "Release"]).run().success();
    assert_eq!(printed(&again), "", "{generator}: {again}");
}

/// Only a subdirectory enables CUDA, and the top of the project guards all targets.
#[e2e(slow)]
fn language_of_subdirectory_is_recorded() {
    let top = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(app LANGUAGES CXX)\n{}cudaguard_embed_all()\nadd_subdirectory(sub)\n",
        include()
    );
    let files = [
        ("CMakeLists.txt", &*top),
        ("sub/CMakeLists.txt", "project(sub LANGUAGES CXX CUDA)\nadd_executable(inner k.cu)\n"),
        ("sub/k.cu", "__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n"),
    ];
    let tree = Tree::new("subdirectory", Cmake::Newest, NINJA, &files);
    let mut options = toolkit("13.0");
    options.push("-DCMAKE_CUDA_ARCHITECTURES=80".to_owned());
    let _ = tree.configure(&words(&options)).run().success();
    let _ = tree.build(&[]).run().success();
    assert_eq!(manifest(&tree.built("sub/inner"), "inner")["toolkit"]["version"], "13.0.88");
    // The files of CMake and of the guard in the build directory are no programs.
    let verified = command::call(["verify", "--driver", "580.95.05", "--gpu", "A100"]).arg(tree.out()).run().success();
    assert!(verified.stderr.is_empty() && !verified.stdout.contains("not checked"), "{verified}");
}
