//! A third-party project with two added lines: cuvec, Python extension modules in C++ and CUDA.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use cudaguard_tests::command::{components, inspect};
use cudaguard_tests::{Call, command, e2e, parts, places, snapshot};

use super::fixture::{Cmake, NINJA, Tree, manifest, printed, python, texts, toolkit, words};

const MODULE: &str = "src/example_cpython/example_cpython";

/// Returns the sources of cuvec with two additional lines for each target.
fn tree() -> Tree {
    let tree = Tree::new("cuvec", Cmake::Oldest, NINJA, &[]);
    let theirs = parts::part("cuvec").join("cuvec");
    let _ = Call::new("cp").args(["-r"]).arg(theirs).arg(tree.source()).run().success();
    for (file, target) in
        [("CMakeLists.txt", "cuvec_cpython"), ("src/example_cpython/CMakeLists.txt", "example_cpython")]
    {
        let mut text = fs::read_to_string(tree.source().join(file)).expect("the project has it");
        let _ = write!(text, "find_package(CudaGuard REQUIRED)\ncudaguard_embed({target})\n");
        tree.write(file, &text);
    }
    tree
}

fn module(tree: &Tree) -> PathBuf {
    let listed = fs::read_dir(tree.built("src/example_cpython")).expect("it is built").flatten();
    let module = listed.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|ending| ending == "so"));
    module.unwrap_or_else(|| panic!("no {MODULE}"))
}

fn configure(tree: &Tree) {
    let call = tree.configure(&words(&toolkit("13.0")));
    let _ = call
        .arg("-DCMAKE_CUDA_ARCHITECTURES=75")
        .arg(format!("-DCudaGuard_DIR={}", places::workspace().join("cmake").display()))
        .arg(format!("-DPython_EXECUTABLE={}", python().display()))
        // Uses the options of cuvec's own build, and disables packages that this machine may have.
        .args(["-DCMAKE_BUILD_TYPE=Release", "-DSKBUILD=ON", "-DSKBUILD_PROJECT_VERSION=6.0.1"])
        .args(["-DCMAKE_DISABLE_FIND_PACKAGE_pybind11=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_SWIG=ON"])
        .run()
        .success();
}

#[e2e(slow)]
fn third_party_project_is_guarded() {
    let tree = tree();
    configure(&tree);
    let built = tree.build(&[]).run().success();
    assert_eq!(printed(&built), "", "nothing is wrong: {built}");
    let again = tree.build(&[]).run().success();
    assert!(again.stdout.contains("ninja: no work to do"), "{again}");
    let module = module(&tree);
    assert_eq!(components(&module), ["example_cpython"]);
    let sealed = manifest(&module, "example_cpython");
    assert_eq!((&sealed["sealed"], &sealed["toolkit"]["version"]), (&true.into(), &"13.0.88".into()));
    assert_eq!(sealed["cudart"]["linkage"], "static");
    assert_eq!(texts(&sealed["archs"]["observed"]), ["sm_75", "compute_75"]);
    assert_eq!(inspect(&module)["kernels"]["entries"].as_array().map(Vec::len), Some(2));
    // Importing a guarded module prints nothing if no problem is known.
    let script = "import sys; sys.path.insert(0, sys.argv[1]); import example_cpython; print(example_cpython.__name__)";
    let imported =
        Call::new(python()).args(["-B", "-c", script]).arg(tree.built("src/example_cpython")).run().success();
    assert_eq!((&*imported.stdout, &*imported.stderr), ("example_cpython\n", ""), "{imported}");

    let mut reported = String::new();
    for (driver, gpu, status) in [("580", "T4", 0), ("580", "H100", 0), ("535", "T4", 1), ("580", "V100", 1)] {
        let call = command::call(["verify"]).arg(&module).args(["--driver", driver, "--gpu", gpu]);
        let outcome = call.run().expect(status);
        let _ = write!(reported, "# --driver {driver} --gpu {gpu}\n{}{}", outcome.stdout, outcome.stderr);
    }
    // Policies that the owner of the project could write: a fleet and a toolkit.
    for policy in ["[gpu]\nfleet = [\"V100\"]\n", "[toolkit]\nrequire = \"<13\"\n"] {
        tree.write("cudaguard.toml", policy);
        configure(&tree);
        let refused = tree.build(&["--target", "example_cpython"]).run();
        assert_ne!(refused.status(), Some(0), "{refused}");
        let _ = write!(reported, "# {}\n{}", policy.replace('\n', " ").trim(), printed(&refused));
    }
    assert!(!module.exists(), "what is refused is removed");

    let reported = reported.replace(&module.display().to_string(), "<module>");
    snapshot::check("cmake/theirs", &tree.plain(&reported));
}
