//! Ways to find the CMake package, and error messages for wrong uses.

use std::fmt::Write as _;
use std::fs;

use cudaguard_tests::command::components;
use cudaguard_tests::{Call, Test, command, e2e, parts, places, rows, scratch, snapshot};

use super::fixture::{Cmake, MAKE, MULTI, NINJA, Tree, include, manifest};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    tests.extend(
        rows(
            "package_discovery::untouched_projects_are_guarded",
            [("ninja_oldest", (Cmake::Oldest, NINJA)), ("ninja_multi_newest", (Cmake::Newest, MULTI))],
            untouched_projects_are_guarded,
        )
        .map(Test::slow),
    );
    tests
}

const MAIN: &str = "#include <cudaguard.h>\nint main(void) { return cudaguard_check() == CUDAGUARD_INCOMPATIBLE; }\n";

/// A project that includes the package in the way that `WAY` selects.
const WAYS: &str = r#"cmake_minimum_required(VERSION 3.24)
project(ways LANGUAGES C)
if(WAY STREQUAL "include")
  include("${CHECKOUT}/cmake/CudaGuard.cmake")
elseif(WAY STREQUAL "subdirectory")
  add_subdirectory("${CHECKOUT}/cmake" cudaguard)
elseif(WAY STREQUAL "fetched")
  include(FetchContent)
  FetchContent_Declare(CudaGuard SOURCE_DIR "${CHECKOUT}" SOURCE_SUBDIR cmake OVERRIDE_FIND_PACKAGE)
  find_package(CudaGuard REQUIRED)
else()
  find_package(CudaGuard 0.1 REQUIRED)
  # Found twice, as by two parts of a project.
  find_package(CudaGuard 0.1.0 REQUIRED)
endif()
add_executable(app main.c)
cudaguard_embed(app)
"#;

#[e2e(slow)]
fn package_is_found_by_all_methods() {
    let tree = Tree::new("ways in", Cmake::Oldest, NINJA, &[("CMakeLists.txt", WAYS), ("main.c", MAIN)]);
    let checkout = places::workspace();
    // An installed package finds the command that is installed next to it.
    let prefix = tree.sibling().join("a prefix");
    let own = tree.sibling().join("package");
    let _ = tree
        .cmake(&["-S"])
        .arg(checkout.join("cmake"))
        .arg("-B")
        .arg(&own)
        .arg(format!("-DCUDAGUARD_COMMAND={}", command::path().display()))
        .run()
        .success();
    let _ = tree.cmake(&["--install"]).arg(&own).arg("--prefix").arg(&prefix).run().success();
    let cargo = tree.sibling().join("cargo");
    let script = format!(
        "#!/bin/sh\n[ \"$1 $2 $3 $4 $5\" = 'build --quiet --locked --package cargo-cudaguard' ] || exit 3\n\
         while [ $# -gt 0 ]; do\n  case $1 in\n  --manifest-path) [ -f \"$2\" ] || exit 4 ;;\n  --target-dir) dir=$2/debug ;;\n  \
         esac\n  shift\ndone\nmkdir -p \"$dir\" && cp '{}' \"$dir\"\n",
        command::path().display()
    );
    scratch::write(&cargo, script);
    let _ = Call::new("chmod").arg("+x").arg(&cargo).run().success();
    let found_by = [
        ("include", vec![format!("-DCUDAGUARD_COMMAND={}", command::path().display())]),
        ("subdirectory", vec![format!("-DCUDAGUARD_COMMAND={}", command::path().display())]),
        ("fetched", vec![format!("-DCUDAGUARD_COMMAND={}", command::path().display())]),
        ("prefix", vec![format!("-DCMAKE_PREFIX_PATH={}", prefix.display())]),
        // A script in place of cargo, which would compile the command once more, puts it where CMake expects it.
        (
            "checkout",
            vec![
                format!("-DCudaGuard_DIR={}", checkout.join("cmake").display()),
                "-DCUDAGUARD_BUILD_COMMAND=ON".to_owned(),
                format!("-DCUDAGUARD_CARGO={}", cargo.display()),
                format!("-DCUDAGUARD_CARGO_TARGET_DIR={}", tree.sibling().join("by cargo").display()),
                "-DCUDAGUARD_CARGO_PROFILE=dev".to_owned(),
            ],
        ),
    ];
    for (way, mut words) in found_by {
        words.push(format!("-DWAY={way}"));
        let build = tree.sibling().join(way);
        let call = tree.cmake(&["-G", NINJA, "-S"]).arg(tree.source()).arg("-B").arg(&build);
        let call = call.arg(format!("-DCHECKOUT={}", checkout.display())).env("CARGO_NET_OFFLINE", "true");
        let _ = call.args(&words).run().success();
        let _ = tree.cmake(&["--build"]).arg(&build).run().success();
        assert_eq!(components(&build.join("app")), ["app"], "{way}");
        let _ = Call::new(build.join("app")).run().success();
    }
    // `cargo cudaguard cmake install` installs the same package without the checkout.
    let by_command = tree.sibling().join("by command");
    let _ = command::call(["cmake", "install", "--prefix"]).arg(&by_command).run().success();
    let _ = Call::new("diff").args(["-r", "-x", "bin"]).arg(&prefix).arg(&by_command).run().success();
    let header = fs::read(prefix.join("include/cudaguard/cudaguard.h")).expect("the header is installed");
    assert!(header == fs::read(checkout.join("templates/cudaguard.h")).expect("the header is there"));
}

#[e2e]
fn missing_command_is_reported() {
    let tree = Tree::new("no command", Cmake::Newest, MAKE, &[("CMakeLists.txt", WAYS), ("main.c", MAIN)]);
    let nowhere = tree.sibling().join("nobody");
    for (way, snapshot) in [("include", "cmake/no-command"), ("package", "cmake/no-package")] {
        let outcome = tree
            .cmake(&["-G", MAKE, "-S"])
            .arg(tree.source())
            .arg("-B")
            .arg(tree.sibling().join(way))
            .arg(format!("-DCHECKOUT={}", places::workspace().display()))
            .arg(format!("-DWAY={way}"))
            .arg(format!("-DCudaGuard_DIR={}", places::workspace().join("cmake").display()))
            // Hides cargo's install directory and `PATH`, which differ between machines.
            .env("HOME", &nowhere)
            .env("CARGO_HOME", &nowhere)
            .env("PATH", "/usr/bin:/bin")
            .arg(format!("-DCMAKE_MAKE_PROGRAM={}", parts::program("make", "make").display()))
            .run()
            .expect(1);
        snapshot::check(snapshot, &tree.plain(&errors(&outcome.stderr)));
    }
}

/// Returns CMake's error messages without the call stack, which differs between releases of CMake.
fn errors(stderr: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for line in stderr.lines() {
        if line.starts_with("CMake Error at") {
            inside = true;
            text.push_str("CMake Error\n");
        } else if line.starts_with("Call Stack") || line.starts_with("-- ") {
            inside = false;
        } else if inside && !line.is_empty() {
            // CMake breaks long lines, and paths are long on some machines.
            text.push_str(line.trim());
            text.push(' ');
        }
    }
    text.replace(".  ", ". ").replace("CMake Error\n", "CMake Error: ")
}

const THEIRS: &[(&str, &str)] = &[
    (
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.18)\nproject(theirs VERSION 4.2 LANGUAGES C CXX)\nadd_executable(app main.c)\n\
         add_subdirectory(inner/tools)\nadd_library(plain STATIC part.c)\n",
    ),
    (
        "inner/tools/CMakeLists.txt",
        "add_executable(tool tool.c)\nadd_library(shared SHARED ../../part.c)\ntarget_link_libraries(tool shared)\n\
         set_target_properties(tool PROPERTIES OUTPUT_NAME \"their tool\")\n",
    ),
    ("main.c", "int main(void) { return 0; }\n"),
    ("part.c", "int part(void) { return 0; }\n"),
    ("inner/tools/tool.c", "int part(void);\nint main(void) { return part(); }\n"),
];

/// A third-party project is guarded by its own files and one variable. With each generator it is sealed, or refused if its
/// policy demands this.
fn untouched_projects_are_guarded((cmake, generator): (Cmake, &'static str)) {
    let tree = Tree::new("hook ü", cmake, generator, THEIRS);
    let before = tree.sources();
    let hook = places::workspace().join("cmake/CudaGuardAll.cmake");
    let hook = format!("-DCMAKE_PROJECT_theirs_INCLUDE={}", hook.display());
    let (kind, built): (&[&str], _) =
        if generator == MULTI { (&["--config", "Release"], "Release/") } else { (&[], "") };
    let _ = tree.configure(&[&hook, "-DCMAKE_BUILD_TYPE=Release"]).run().success();
    let _ = tree.build(kind).run().success();
    let files = [
        (format!("{built}app"), "app"),
        (format!("inner/tools/{built}their tool"), "tool"),
        (format!("inner/tools/{built}libshared.so"), "shared"),
    ];
    for (file, name) in &files {
        let found = manifest(&tree.built(file), name);
        assert_eq!(found["sealed"], true, "{generator}: {found:#}");
        assert_eq!(found["profile"], "release", "{generator}: {found:#}");
    }
    let again = tree.build(kind).run().success();
    assert!(!again.stdout.contains("Linking"), "{generator}: {again}");
    let _ = Call::new(tree.built(&files[1].0)).run().success();
    assert!(tree.sources() == before, "nothing is written into their tree");
    // A target that the policy refuses is not built.
    tree.write("cudaguard.toml", "toolkit.require = \">=12\"\n");
    let _ = tree.configure(&[&hook, "-DCMAKE_BUILD_TYPE=Release"]).run().success();
    let refused = tree.build(kind).run();
    assert_ne!(refused.status(), Some(0), "{refused}");
    assert!(format!("{refused}").contains("error[CG100]"), "{refused}");
}

#[e2e]
fn wrong_uses_are_errors() {
    let cases = [
        ("cudaguard_embed(app COMPONNET x)", "unknown-keyword"),
        ("cudaguard_embed(app POLICY)", "no-value"),
        ("cudaguard_embed(ap)", "no-target"),
        ("cudaguard_embed(app)\ncudaguard_embed(app)", "twice"),
        ("add_custom_target(u)\ncudaguard_embed(u)", "utility"),
        ("add_library(there SHARED IMPORTED)\ncudaguard_embed(there)", "imported"),
        ("add_executable(alias ALIAS app)\ncudaguard_embed(alias)", "alias"),
        ("cudaguard_embed_all(app)", "all-of-one"),
        ("cudaguard_add_test(app)", "no-host"),
        ("add_library(archive STATIC main.c)\ncudaguard_add_test(archive HOST a.json)", "archive"),
        ("cudaguard_add_test(app HOST a.json b.json NAME one)", "two-hosts"),
        ("set(CUDAGUARD_COMMAND /bin/false)\ncudaguard_embed(app)", "wrong-command"),
    ];
    let mut text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(wrong LANGUAGES C)\n\
         if(PACKAGE)\n  include(\"${{PACKAGE}}/CudaGuard.cmake\")\nelse()\n{}endif()\nadd_executable(app main.c)\n\
         if(CASE STREQUAL newer)\n  cudaguard_embed(app)\nendif()\n",
        include()
    );
    for (line, name) in &cases {
        let _ = write!(text, "if(CASE STREQUAL \"{name}\")\n{line}\nendif()\n");
    }
    let tree = Tree::new("wrong uses", Cmake::Oldest, NINJA, &[("CMakeLists.txt", &text), ("main.c", MAIN)]);
    let mut all = String::new();
    for (line, name) in cases {
        // The build directory is shared, so CMake detects the compiler only once.
        let outcome = tree.configure(&[&format!("-DCASE={name}")]).run().expect(1);
        let _ = write!(all, "{line}\n{}\n", errors(&outcome.stderr));
    }
    // The package is newer or older than the command.
    let package = tree.sibling().join("package");
    let _ = Call::new("cp").args(["-r"]).arg(places::workspace().join("cmake")).arg(&package).run().success();
    let version = package.join("CudaGuardConfigVersion.cmake");
    let known = format!("PACKAGE_VERSION {}", env!("CARGO_PKG_VERSION"));
    let text = fs::read_to_string(&version).expect("it is there");
    assert!(text.contains(&known), "{text}");
    fs::write(&version, text.replace(&known, "PACKAGE_VERSION 99.1.2")).expect("it is ours");
    let outcome = tree.configure(&["-DCASE=newer"]).arg(format!("-DPACKAGE={}", package.display())).run().expect(1);
    let _ = write!(all, "# of two releases\n{}\n", errors(&outcome.stderr));
    snapshot::check("cmake/wrong-uses", &tree.plain(&all));
}
