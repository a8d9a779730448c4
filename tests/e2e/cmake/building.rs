//! Kinds of targets that the CMake package guards, and the contents of their manifests.

use std::fmt::Write as _;

use cudaguard_tests::command::components;
use cudaguard_tests::{Call, e2e, tools};

use super::fixture::{Cmake, MULTI, NINJA, Tree, include, manifest, program, texts, toolkit, words};

const KERNEL: &str = "__global__ void fill(int *p) { *p = 1; }\n";
const MAIN: &str = "#include <cudaguard.h>\n#include <stdio.h>\n\
                    int main(void) { printf(\"main: %d\\n\", cudaguard_check()); return 0; }\n";

const KINDS: &str = r#"
project(kinds VERSION 1.2.3 LANGUAGES C CXX CUDA)
find_package(CUDAToolkit REQUIRED)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CUDA_ARCHITECTURES 80-real)

# Device code in two files, linked on its own; the static library hands its guard on.
add_library(st STATIC device.cu)
set_target_properties(st PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
cudaguard_embed(st)
add_library(sh SHARED kernel.cu)
cudaguard_embed(sh COMPONENT "shared library" VERSION 9.9)
# Both signatures of target_link_libraries, keyword and plain, must go on working.
add_library(ob OBJECT object.c)
target_link_libraries(ob PRIVATE m)
cudaguard_embed(ob)

add_executable(app app.cu)
target_link_libraries(app st sh ob)
target_compile_options(app PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall>)
target_include_directories(app PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:${CMAKE_CURRENT_SOURCE_DIR}/policies>)
set_target_properties(app PROPERTIES CUDA_SEPARABLE_COMPILATION ON CUDA_ARCHITECTURES 80-real)
cudaguard_embed(app POLICY policies/app.toml)

add_executable(lto lto.cu device.cu)
set_target_properties(lto PROPERTIES CUDA_SEPARABLE_COMPILATION ON INTERPROCEDURAL_OPTIMIZATION ON)
cudaguard_embed(lto)

add_executable(plain plain.c $<TARGET_OBJECTS:ob>)
set_target_properties(plain PROPERTIES INTERPROCEDURAL_OPTIMIZATION ON)
target_link_libraries(plain PRIVATE CUDA::cudart)
cudaguard_embed(plain)
# Not guarded itself: the object library's guard reaches it.
add_executable(through main.c)
target_link_libraries(through PRIVATE ob)
target_include_directories(through PRIVATE $<TARGET_PROPERTY:plain,INCLUDE_DIRECTORIES>)

# Runs on no GPU of its fleet.
add_executable(unfit EXCLUDE_FROM_ALL fill.cu)
cudaguard_embed(unfit POLICY policies/t4.toml)
# One source is compiled for more than the policy asks for, which only the linked file tells.
add_executable(surplus EXCLUDE_FROM_ALL surplus.cu)
cudaguard_embed(surplus POLICY policies/archs.toml)
# Linked on its own, device code is for what the device linker was told.
add_executable(lacking EXCLUDE_FROM_ALL surplus.cu)
cudaguard_embed(lacking POLICY policies/lacking.toml)
set_target_properties(lacking PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
set_source_files_properties(surplus.cu PROPERTIES COMPILE_OPTIONS "--generate-code=arch=compute_86,code=[sm_86]")
set(CMAKE_CUDA_FLAGS_DEBUG "${CMAKE_CUDA_FLAGS_DEBUG} --generate-code=arch=compute_86,code=[sm_86]")

enable_testing()
cudaguard_add_test(app HOST hosts/a100.json hosts/t4.json)
cudaguard_add_test(plain HOST hosts/t4.json NAME "plain on a T4")
install(TARGETS app sh plain)
# A library that is handed on leaves the build directory behind.
install(TARGETS st EXPORT kinds)
install(EXPORT kinds DESTINATION lib/cmake/kinds)
"#;

const PRESETS: &str = r#"{
  "version": 3,
  "configurePresets": [{
    "name": "guarded", "generator": "Ninja Multi-Config", "binaryDir": "${sourceDir}/../build",
    "cacheVariables": {"CMAKE_INSTALL_PREFIX": "${sourceDir}/../prefix"}
  }],
  "buildPresets": [{"name": "release", "configurePreset": "guarded", "configuration": "Release"}]
}
"#;

#[e2e(slow)]
fn all_target_kinds_are_guarded() {
    let head = format!("cmake_minimum_required(VERSION 3.24)\n{}", include());
    let fill = format!("{KERNEL}int main() {{ if (!getenv(\"HOME\")) fill<<<1, 1>>>(nullptr); return 0; }}\n");
    let tree = Tree::new(
        "kinds größer",
        Cmake::Oldest,
        MULTI,
        &[
            ("CMakeLists.txt", &(head + KINDS)),
            ("CMakePresets.json", PRESETS),
            ("policies/app.toml", "[allow]\nCG123 = \"the test says so\"\n"),
            ("hosts/a100.json", &host("580.65.06", "13.0", "A100", "8.0")),
            ("hosts/t4.json", &host("580.65.06", "13.0", "Tesla T4", "7.5")),
            ("policies/archs.toml", "[gpu]\narchs = [\"sm_80\"]\n"),
            (
                "policies/lacking.toml",
                "[gpu]\narchs = [\"sm_86\"]\n[allow]\nCG123 = \"to see it in the linked file\"\n",
            ),
            ("surplus.cu", &fill),
            ("policies/t4.toml", "[gpu]\nfleet = [\"T4\"]\n"),
            ("device.cu", "__device__ int twice(int x) { return 2 * x; }\n"),
            ("kernel.cu", "__global__ void q(int *p) { *p = 7; }\nvoid launch() { q<<<1, 1>>>(nullptr); }\n"),
            (
                "app.cu",
                "__device__ int twice(int);\nvoid launch();\n\
                 __global__ void k(int *p) { *p = twice(1); }\n\
                 int main() { if (!getenv(\"HOME\")) { k<<<1, 1>>>(nullptr); launch(); } return 0; }\n",
            ),
            (
                "lto.cu",
                "__device__ int twice(int);\n__global__ void k(int *p) { *p = twice(1); }\n\
                 int main() { if (!getenv(\"HOME\")) k<<<1, 1>>>(nullptr); return 0; }\n",
            ),
            ("fill.cu", &fill),
            ("object.c", "int object(void) { return 1; }\n"),
            ("main.c", MAIN),
            (
                "plain.c",
                &MAIN.replace(
                    "int main(void) {",
                    "#include <cuda_runtime.h>\nint main(void) { int v; cudaRuntimeGetVersion(&v);",
                ),
            ),
        ],
    );
    let before = tree.sources();
    let cuda = toolkit("13.0");
    let command = format!("-DCUDAGUARD_COMMAND={}", cudaguard_tests::command::path().display());
    let _ = tree.cmake(&["--preset", "guarded", &command]).args(words(&cuda)).run().success();
    let built = tree.cmake(&["--build", "--preset", "release"]).run().success();
    assert!(!built.stdout.contains("warning["), "without a problem there is no output: {built}");
    let _ = tree.build(&["--config", "Debug", "--target", "app"]).run().success();
    let again = tree.cmake(&["--build", "--preset", "release"]).run().success();
    assert!(again.stdout.contains("ninja: no work to do"), "{again}");

    let app = tree.built("Release/app");
    assert_eq!(components(&app), ["app", "ob", "st"], "several in one file");
    let sealed = manifest(&app, "app");
    assert_eq!(sealed["component"]["version"], "1.2.3");
    assert_eq!(sealed["profile"], "release");
    assert_eq!(sealed["target"], "x86_64-unknown-linux-gnu");
    assert_eq!(sealed["toolkit"]["version"], "13.0.88");
    assert_eq!(texts(&sealed["archs"]["declared"]), ["sm_80"]);
    assert_eq!(texts(&sealed["archs"]["observed"]), ["sm_80"]);
    assert_eq!((&sealed["sealed"], &sealed["cudart"]["linkage"]), (&true.into(), &"static".into()));
    let debug = manifest(&tree.built("Debug/app"), "app");
    assert_eq!((&debug["profile"], texts(&debug["archs"]["declared"])), (&"debug".into(), vec!["sm_80", "sm_86"]));

    let library = manifest(&tree.built("Release/libsh.so"), "shared library");
    assert_eq!((&library["component"]["version"], &library["sealed"]), (&"9.9".into(), &true.into()));
    let lto = manifest(&tree.built("Release/lto"), "lto");
    assert_eq!(texts(&lto["archs"]["observed"]), ["sm_80"], "{lto:#}");
    let plain = manifest(&tree.built("Release/plain"), "plain");
    assert_eq!((&plain["cudart"]["linkage"], texts(&plain["archs"]["observed"]).len()), (&"linked".into(), 0));
    assert_eq!(components(&tree.built("Release/through")), ["ob"]);
    for program in ["app", "plain", "through"] {
        // Status 2: the machine has no GPU, so the verdict is unknown. On a machine with a GPU the status is 0.
        let outcome = Call::new(tree.built(&format!("Release/{program}"))).env("CUDAGUARD", "enforce").run().success();
        assert_eq!(outcome.stderr, "", "{outcome}");
        assert!(program == "app" || ["main: 0\n", "main: 2\n"].contains(&outcome.stdout.as_str()), "{outcome}");
    }

    let unfit = tree.build(&["--config", "Release", "--target", "unfit"]).run();
    assert_ne!(unfit.status(), Some(0), "{unfit}");
    cudaguard_tests::snapshot::check("cmake/unfit", &tree.plain(&super::fixture::printed(&unfit)));
    assert!(!tree.built("Release/unfit").exists(), "a refused file is deleted: {unfit}");

    let surplus = tree.build(&["--config", "Release", "--target", "surplus"]).run().success();
    cudaguard_tests::snapshot::check("cmake/surplus", &tree.plain(&super::fixture::printed(&surplus)));
    let lacking = tree.build(&["--config", "Release", "--target", "lacking"]).run();
    assert_ne!(lacking.status(), Some(0), "{lacking}");
    cudaguard_tests::snapshot::check("cmake/lacking", &tree.plain(&super::fixture::printed(&lacking)));

    // CTest gets one test per host file. The kernels of `app` are built for sm_80 only.
    let tested = Call::new(Cmake::Oldest.ctest()).args(["-C", "Release", "--output-on-failure"]).dir(tree.out());
    let tested = tested.run().expect(8);
    for (line, verdict) in
        [("cudaguard.app.a100", "Passed"), ("cudaguard.app.t4", "***Failed"), ("plain on a T4", "Passed")]
    {
        let found = tested.stdout.lines().find(|reported| reported.contains(line) && reported.contains("Test #"));
        assert!(found.is_some_and(|found| found.contains(verdict)), "{line}: {tested}");
    }
    cudaguard_tests::snapshot::check("cmake/tested", &tree.plain(&super::fixture::printed(&tested)));

    // The installation removes the build directory from the runtime path. The sealed note stays unchanged.
    let _ = tree.cmake(&["--install"]).arg(tree.out()).args(["--config", "Release", "--strip"]).run().success();
    let installed = tree.sibling().join("prefix");
    for (file, component) in [("bin/app", "app"), ("lib/libsh.so", "shared library"), ("bin/plain", "plain")] {
        let name = file.rsplit('/').next().unwrap();
        assert_eq!(
            manifest(&installed.join(file), component),
            manifest(&tree.built(&format!("Release/{name}")), component)
        );
    }
    assert!(before == tree.sources(), "nothing is written into the source tree");
}

/// Returns a host file for a machine with one GPU, in the format that `probe` writes.
fn host(driver: &str, cuda: &str, name: &str, cc: &str) -> String {
    format!(
        "{{\"revision\": 1, \"platform\": \"x86_64-linux\", \
         \"driver\": {{\"user\": \"{driver}\", \"kernel\": \"{driver}\", \"cuda\": \"{cuda}\"}}, \
         \"gpus\": [{{\"name\": \"{name}\", \"cc\": \"{cc}\"}}], \"cudnn\": [], \
         \"cudart\": [{{\"soname\": \"libcudart.so.13\", \"version\": \"13.0.96\"}}]}}\n"
    )
}

/// Compares the architectures in each target's manifest with its `CUDA_ARCHITECTURES`. Only the guards are compiled.
#[e2e(slow)]
fn architecture_spellings_are_accepted() {
    let cases = [
        ("list", "75;90", vec!["sm_75", "sm_90", "compute_75", "compute_90"]),
        ("real", "75-real", vec!["sm_75"]),
        ("virtual", "90-virtual", vec!["compute_90"]),
        ("mixed", "80-real;90-virtual", vec!["sm_80", "compute_90"]),
        ("suffix", "90a-real", vec!["sm_90a"]),
        ("off", "OFF", vec![]),
    ];
    let mut text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(archs LANGUAGES CXX CUDA)\n{}set(CMAKE_CUDA_ARCHITECTURES 75)\n",
        include()
    );
    for (name, value, _) in &cases {
        let _ = write!(
            text,
            "add_executable({name} app.cu)\nset_property(TARGET {name} PROPERTY CUDA_ARCHITECTURES \"{value}\")\n\
             cudaguard_embed({name})\n"
        );
    }
    for (name, word) in [("every", "all"), ("major", "all-major")] {
        let _ = write!(
            text,
            "add_executable({name} app.cu)\nset_property(TARGET {name} PROPERTY CUDA_ARCHITECTURES {word})\n\
             cudaguard_embed({name})\n"
        );
    }
    text += "add_executable(keyword app.cu)\ncudaguard_embed(keyword ARCHITECTURES 89-real 90a-real)\n\
             add_executable(flags app.cu)\nset_property(TARGET flags PROPERTY CUDA_ARCHITECTURES OFF)\n\
             target_compile_options(flags PRIVATE \"$<$<CONFIG:Release>:SHELL:-gencode arch=compute_80,code=sm_80>\"\n  \
             $<$<CONFIG:Debug>:--generate-code=arch=compute_90,code=sm_90>)\ncudaguard_embed(flags)\n\
             # Without a kernel of its own, what the project compiles for is nothing to it.\n\
             add_library(none STATIC main.cpp)\ncudaguard_embed(none)\n\
             # Its kernels are compiled by another tool.\n\
             add_library(other STATIC main.cpp)\ncudaguard_embed(other ARCHITECTURES 90a-real)\n";
    let tree = Tree::new(
        "archs",
        Cmake::Oldest,
        NINJA,
        &[("CMakeLists.txt", &text), ("app.cu", KERNEL), ("main.cpp", "int main() { return 0; }\n")],
    );
    let mut cuda = toolkit("13.0");
    cuda.push("-DCMAKE_BUILD_TYPE=Release".to_owned());
    let _ = tree.configure(&words(&cuda)).run().success();
    let mut names: Vec<&str> = cases.iter().map(|case| case.0).collect();
    names.extend(["every", "major", "keyword", "flags", "none", "other"]);
    let notes: Vec<String> = names.iter().map(|name| format!("CMakeFiles/cudaguard/{name}/cudaguard-note.o")).collect();
    let mut goals = vec!["--target"];
    goals.extend(notes.iter().map(String::as_str));
    let _ = tree.build(&goals).run().success();
    let declared = |name: &str| {
        let manifest = manifest(&tree.built(&format!("CMakeFiles/cudaguard/{name}/cudaguard-note.o")), name);
        texts(&manifest["archs"]["declared"]).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (name, value, expected) in &cases {
        assert_eq!(declared(name), *expected, "{value}");
    }
    // The manual of nvcc 13.0 lists sm_75 and newer, and PTX for the newest.
    let all = declared("every");
    assert!(all.starts_with(&["sm_75".to_owned(), "sm_80".to_owned()]) && all.len() > 8, "{all:?}");
    let major = declared("major");
    assert!(major.contains(&"sm_90".to_owned()) && !major.contains(&"sm_86".to_owned()), "{major:?}");
    assert_eq!(declared("keyword"), ["sm_89", "sm_90a"]);
    assert_eq!(declared("flags"), ["sm_80"]);
    assert_eq!(declared("none"), Vec::<String>::new());
    assert_eq!(declared("other"), ["sm_90a"]);
}

/// A cross compiler builds the guard for its target, also for Windows. Another system gets no guard, and its build continues.
#[e2e(slow)]
fn cross_compilers_build_their_guard() {
    tools::need_all(&["aarch64-linux-gnu-gcc", "x86_64-w64-mingw32-gcc"]);
    let text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(other VERSION 2.0 LANGUAGES C ASM)\n{}\
         add_executable(app main.c)\ncudaguard_embed(app)\nadd_executable(second main.c)\ncudaguard_embed(second)\n",
        include()
    );
    let tree = |name: &str| Tree::new(name, Cmake::Oldest, NINJA, &[("CMakeLists.txt", &text), ("main.c", MAIN)]);
    let arm = tree("aarch64");
    let compiler = format!("-DCMAKE_C_COMPILER={}", program("aarch64-linux-gnu-gcc").display());
    let system = ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", "-DCMAKE_BUILD_TYPE=Release"];
    let _ = arm.configure(&[&compiler]).args(system).run().success();
    let _ = arm.build(&[]).run().success();
    let app = manifest(&arm.built("app"), "app");
    assert_eq!((&app["target"], &app["sealed"]), (&"aarch64-unknown-linux-gnu".into(), &true.into()));

    let windows = tree("windows");
    let compiler = format!("-DCMAKE_C_COMPILER={}", program("x86_64-w64-mingw32-gcc").display());
    let _ = windows.configure(&[&compiler, "-DCMAKE_SYSTEM_NAME=Windows"]).run().success();
    let _ = windows.build(&[]).run().success();
    let app = manifest(&windows.built("app.exe"), "app");
    assert_eq!((&app["target"], &app["sealed"]), (&"x86_64-pc-windows-gnu".into(), &true.into()));

    let other = tree("other");
    let compiler = format!("-DCMAKE_C_COMPILER={}", program("cc").display());
    let configured = other.configure(&[&compiler, "-DCMAKE_SYSTEM_NAME=FreeBSD"]).run().success();
    let reported: Vec<&str> = configured.stdout.lines().filter(|line| line.starts_with("-- cudaguard")).collect();
    assert_eq!(
        reported,
        ["-- cudaguard: app is built without the guard: the guard needs ELF files that start through a Linux C \
             library; FreeBSD has none"],
        "once: {configured}"
    );
    let _ = other.build(&[]).run().success();
    assert!(other.built("second").exists());
}
