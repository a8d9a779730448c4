//! `cudaguard.lock` in CMake projects: written on request, and checked in each build.

use std::fs;

use cudaguard_tests::{Test, e2e, rows, scratch, snapshot};

use super::fixture::{Cmake, MAKE, MULTI, NINJA, TAKES_HEADERS, Tree, include, printed};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    tests.extend(
        rows(
            "lock::drift_is_refused_and_accepted",
            [("make_oldest", (MAKE, Cmake::Oldest)), ("ninja_newest", (NINJA, Cmake::Newest))],
            drift_is_refused_and_accepted,
        )
        .map(Test::slow),
    );
    tests
}

/// Returns a project with two targets that use the headers of a toolkit and of cuDNN, and one target without CUDA. The
/// headers are fakes that contain only the parsed lines.
fn project() -> String {
    format!(
        "cmake_minimum_required(VERSION 3.24)\nproject(locked VERSION 1.0 LANGUAGES C)\n{}\
         foreach(name IN ITEMS app second)\n  add_executable(${{name}} main.c)\n  \
         target_include_directories(${{name}} PRIVATE ${{NAMED_${{name}}}} ../toolkit/include ../cudnn/include)\n  \
         cudaguard_embed(${{name}})\nendforeach()\nif(PLAIN)\n  add_executable(plain main.c)\n  cudaguard_embed(plain)\nendif()\n",
        include()
    )
}

fn tree(name: &str, cmake: Cmake, generator: &'static str) -> Tree {
    let files = [("CMakeLists.txt", &*project()), ("main.c", TAKES_HEADERS)];
    let tree = Tree::new(name, cmake, generator, &files);
    toolkit(&tree, "toolkit", 12040);
    let text = "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 8\n#define CUDNN_PATCHLEVEL 1\n";
    scratch::write(&tree.sibling().join("cudnn/include/cudnn_version.h"), text);
    tree
}

fn toolkit(tree: &Tree, dir: &str, version: u32) {
    let header = tree.sibling().join(dir).join("include/cuda.h");
    scratch::write(&header, format!("#define CUDA_VERSION {version}\n"));
}

fn drift_is_refused_and_accepted((generator, cmake): (&'static str, Cmake)) {
    let tree = tree("locked project", cmake, generator);
    let lock = tree.source().join("cudaguard.lock");
    let before = tree.sources();
    let in_configuration = |name: &'static str, goal: &[&'static str]| {
        let mut words = if generator == MULTI { vec!["--config", name] } else { vec![] };
        words.extend(goal);
        tree.build(&words).run()
    };
    let configure = |name: &str, more: &[&str]| {
        let _ = tree.configure(&[&format!("-DCMAKE_BUILD_TYPE={name}")]).args(more).run().success();
    };
    let locks = ["--target", "cudaguard-lock"];
    // All three generators run the same steps. Only one of them also builds the plain target.
    let thorough = generator == NINJA;
    configure("Release", if thorough { &["-DPLAIN=ON"] } else { &[] });
    assert_eq!(printed(&in_configuration("Release", &[]).success()), "", "without a lock there is no drift");
    assert!(before == tree.sources(), "building writes no lock");

    let written = in_configuration("Release", &locks).success();
    let listed: Vec<&str> = written.stdout.lines().filter(|line| line.starts_with("  ")).collect();
    assert_eq!(
        tree.plain(&listed.join("\n")),
        "  toolkit: 12.4 (<source>/../toolkit/include/cuda.h)\n  \
         cudnn: 9.8.1 (<source>/../cudnn/include/cudnn_version.h)\n",
        "{written}"
    );
    let text = fs::read_to_string(&lock).expect("the lock is written");
    assert!(text.ends_with("\n[target.x86_64-unknown-linux-gnu]\ncudnn = \"9.8.1\"\ntoolkit = \"12.4\"\n"), "{text}");
    configure("Release", &[]);
    assert_eq!(printed(&in_configuration("Release", &[]).success()), "", "what is locked is what is in use");

    toolkit(&tree, "toolkit", 12060);
    let refused = in_configuration("Release", &[]);
    assert_ne!(refused.status(), Some(0), "{refused}");
    snapshot::check("cmake/lock-release", &tree.plain(&printed(&refused)));

    // In Debug the drift is a warning, printed once for all targets that share the toolkit. With `--locked` it is an error.
    if generator != MULTI {
        configure("Debug", &[]);
    }
    let warned = in_configuration("Debug", &[]).success();
    snapshot::check("cmake/lock-debug", &tree.plain(&printed(&warned)));
    if thorough {
        assert_eq!(printed(&in_configuration("Debug", &[]).success()), "", "and reported when a target is checked");
        let _ = in_configuration("Debug", &["--target", "clean"]).success();
        assert_eq!(printed(&in_configuration("Debug", &[]).success()), printed(&warned), "anew after clean");
        toolkit(&tree, "toolkit", 12060);
        assert_eq!(printed(&in_configuration("Debug", &[]).success()), printed(&warned), "and after a touch");
        configure("Debug", &["-DCUDAGUARD_LOCKED=ON"]);
        let insisted = in_configuration("Debug", &[]);
        assert!(insisted.status() != Some(0) && printed(&insisted).starts_with("error[CG107]"), "{insisted}");
    }

    // A rewritten lock accepts the drift, even after a refused build.
    let accepted = in_configuration("Debug", &locks).success();
    assert!(accepted.stdout.contains("toolkit: 12.4 → 12.6"), "{accepted}");
    let built = in_configuration("Debug", &[]).success();
    assert_eq!(printed(&built), "", "{built}");
    if thorough {
        let again = in_configuration("Debug", &locks).success();
        assert!(again.stdout.contains("cudaguard.lock is up to date"), "{again}");
        configure("Release", &["-DCUDAGUARD_LOCKED=OFF"]);
        assert_eq!(printed(&in_configuration("Release", &[]).success()), "");
    }
}

#[e2e]
fn unreadable_locks_are_errors() {
    let tree = tree("locks", Cmake::Oldest, NINJA);
    let mut all = String::new();
    for text in [
        "version = 1\n<<<<<<< HEAD\n[target.x86_64-unknown-linux-gnu]\n=======\n>>>>>>> other\n",
        "version = 2\n",
        "version = 1\n[target.x86_64-unknown-linux-gnu]\ntolkit = \"12.4\"\n",
        // This lock is valid but has no entry for the built target.
        "version = 1\n[target.aarch64-unknown-linux-gnu]\ntoolkit = \"12.4\"\n",
    ] {
        tree.write("cudaguard.lock", text);
        let _ = tree.configure(&["-DCMAKE_BUILD_TYPE=Release"]).run().success();
        let built = tree.build(&[]).run();
        assert_eq!(built.status() == Some(0), text.contains("aarch64"), "{text}{built}");
        all += &printed(&built);
        all.push('\n');
        // An unreadable lock may contain entries of other users, so it is not overwritten.
        let locked = tree.build(&["--target", "cudaguard-lock"]).run();
        assert_eq!(locked.status() == Some(0), text.contains("aarch64"), "{locked}");
    }
    let lock = fs::read_to_string(tree.source().join("cudaguard.lock")).expect("it is there");
    assert!(lock.contains("[target.aarch64-") && lock.contains("[target.x86_64-"), "others keep their table: {lock}");
    snapshot::check("cmake/locks", &tree.plain(&all));
}
