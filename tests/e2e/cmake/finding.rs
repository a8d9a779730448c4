//! Ways to the package, and what is said to those who use it wrongly.

use std::fmt::Write as _;
use std::fs;

use cudaguard_tests::{Call, Trial, command, parts, places, snapshot, trials};

use super::bed::{Cmake, MAKE, NINJA, Tree, components};

pub(crate) fn trials() -> Vec<Trial> {
    trials![every_way_in, without_the_command, wrong_uses]
}

const MAIN: &str = "#include <cudaguard.h>\nint main(void) { return cudaguard_check() == CUDAGUARD_WRONG; }\n";

/// `WAY` says how the package comes in.
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

fn every_way_in() {
    let tree = Tree::new("ways in", Cmake::Oldest, NINJA, &[("CMakeLists.txt", WAYS), ("main.c", MAIN)]);
    let checkout = places::workspace();
    // An installed package has its command beside it.
    let prefix = tree.beside().join("a prefix");
    let own = tree.beside().join("package");
    let _ = tree
        .cmake(&["-S"])
        .arg(checkout.join("cmake"))
        .arg("-B")
        .arg(&own)
        .arg(format!("-DCUDAGUARD_COMMAND={}", command::path().display()))
        .run()
        .success();
    let _ = tree.cmake(&["--install"]).arg(&own).arg("--prefix").arg(&prefix).run().success();
    let found_by = [
        ("include", vec![format!("-DCUDAGUARD_COMMAND={}", command::path().display())]),
        ("subdirectory", vec![format!("-DCUDAGUARD_COMMAND={}", command::path().display())]),
        ("fetched", vec![format!("-DCUDAGUARD_COMMAND={}", command::path().display())]),
        ("prefix", vec![format!("-DCMAKE_PREFIX_PATH={}", prefix.display())]),
        // Built from the checkout.
        (
            "checkout",
            vec![
                format!("-DCudaGuard_DIR={}", checkout.join("cmake").display()),
                "-DCUDAGUARD_BUILD_COMMAND=ON".to_owned(),
                // Not into this target folder: other features make another file of the command that the suites run.
                format!("-DCUDAGUARD_CARGO_TARGET_DIR={}", places::target().join("by-cmake").display()),
                format!("-DCUDAGUARD_CARGO_PROFILE={}", if cfg!(debug_assertions) { "dev" } else { "release" }),
            ],
        ),
    ];
    for (way, mut words) in found_by {
        words.push(format!("-DWAY={way}"));
        let build = tree.beside().join(way);
        let call = tree.cmake(&["-G", NINJA, "-S"]).arg(tree.source()).arg("-B").arg(&build);
        let call = call.arg(format!("-DCHECKOUT={}", checkout.display())).env("CARGO_NET_OFFLINE", "true");
        let _ = call.args(&words).run().success();
        let _ = tree.cmake(&["--build"]).arg(&build).run().success();
        assert_eq!(components(&build.join("app")), ["app"], "{way}");
        let _ = Call::new(build.join("app")).run().success();
    }
    // The command alone brings the same package.
    let by_command = tree.beside().join("by command");
    let _ = command::call(["cmake", "install", "--prefix"]).arg(&by_command).run().success();
    let _ = Call::new("diff").args(["-r", "-x", "bin"]).arg(&prefix).arg(&by_command).run().success();
    let header = fs::read(prefix.join("include/cudaguard/cudaguard.h")).expect("the header is installed");
    assert!(header == fs::read(checkout.join("templates/cudaguard.h")).expect("the header is there"));
}

fn without_the_command() {
    let tree = Tree::new("no command", Cmake::Newest, MAKE, &[("CMakeLists.txt", WAYS), ("main.c", MAIN)]);
    let nowhere = tree.beside().join("nobody");
    for (way, snapshot) in [("include", "cmake/no-command"), ("package", "cmake/no-package")] {
        let outcome = tree
            .cmake(&["-G", MAKE, "-S"])
            .arg(tree.source())
            .arg("-B")
            .arg(tree.beside().join(way))
            .arg(format!("-DCHECKOUT={}", places::workspace().display()))
            .arg(format!("-DWAY={way}"))
            .arg(format!("-DCudaGuard_DIR={}", places::workspace().join("cmake").display()))
            // Where cargo installs, and what is in PATH, is of the machine that runs this.
            .env("HOME", &nowhere)
            .env("CARGO_HOME", &nowhere)
            .env("PATH", "/usr/bin:/bin")
            .arg(format!("-DCMAKE_MAKE_PROGRAM={}", parts::program("make", "make").display()))
            .run()
            .expect(1);
        snapshot::check(snapshot, &tree.plain(&errors(&outcome.stderr)));
    }
}

/// CMake's error messages without the stack of calls, which differs between its releases.
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
            // CMake breaks lines where they become too long, as paths are on some machines.
            text.push_str(line.trim());
            text.push(' ');
        }
    }
    text.replace(".  ", ". ").replace("CMake Error\n", "CMake Error: ")
}

fn wrong_uses() {
    let cases = [
        ("cudaguard_embed(app COMPONNET x)", "unknown-keyword"),
        ("cudaguard_embed(app POLICY)", "no-value"),
        ("cudaguard_embed(ap)", "no-target"),
        ("cudaguard_embed(app)\ncudaguard_embed(app)", "twice"),
        ("add_library(i INTERFACE)\ncudaguard_embed(i)", "interface"),
        ("add_custom_target(u)\ncudaguard_embed(u)", "utility"),
        ("add_library(there SHARED IMPORTED)\ncudaguard_embed(there)", "imported"),
        ("add_executable(alias ALIAS app)\ncudaguard_embed(alias)", "alias"),
        ("add_subdirectory(below)", "elsewhere"),
        ("cudaguard_add_test(app)", "no-host"),
        ("add_library(archive STATIC main.c)\ncudaguard_add_test(archive HOST a.json)", "archive"),
        ("cudaguard_add_test(app HOST a.json b.json NAME one)", "two-hosts"),
        ("set(CUDAGUARD_COMMAND /bin/false)\ncudaguard_embed(app)", "wrong-command"),
    ];
    let mut text = format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(wrong LANGUAGES C)\n\
         if(PACKAGE)\n  include(\"${{PACKAGE}}/CudaGuard.cmake\")\nelse()\n{}endif()\nadd_executable(app main.c)\n\
         if(CASE STREQUAL newer)\n  cudaguard_embed(app)\nendif()\n",
        super::bed::include()
    );
    for (line, name) in &cases {
        let _ = write!(text, "if(CASE STREQUAL \"{name}\")\n{line}\nendif()\n");
    }
    let tree = Tree::new(
        "wrong uses",
        Cmake::Oldest,
        NINJA,
        &[("CMakeLists.txt", &text), ("main.c", MAIN), ("below/CMakeLists.txt", "cudaguard_embed(app)\n")],
    );
    let mut all = String::new();
    for (line, name) in cases {
        // One build folder: the compiler is looked at once.
        let outcome = tree.configure(&[&format!("-DCASE={name}")]).run().expect(1);
        let _ = write!(all, "{line}\n{}\n", errors(&outcome.stderr));
    }
    // A package that is newer than the command, or older.
    let package = tree.beside().join("package");
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
