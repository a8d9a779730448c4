//! The command with packages of all kinds: several programs, workspaces, cargo's own arguments, unusual directories.

use std::path::Path;

use cudaguard_tests::{Call, Project, Test, command, parts, project, tests};
use serde_json::Value;

use super::fixture::{ASKS_CUDNN, LINKS_CUDNN, build, program_in, runs, start, unguarded};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        command_guards_package_without_embed,
        #[slow]
        package_programs_are_all_guarded,
        #[slow]
        workspace_arguments_reach_cargo,
        #[slow]
        non_ascii_directories_work,
    ]
}

/// Returns the names of the components in a file.
pub(crate) fn components(file: &Path) -> Vec<String> {
    let outcome = command::call(["inspect", "--json"]).arg(file).run().success();
    let reported: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"));
    let components = reported["components"].as_array().unwrap_or_else(|| panic!("no components: {reported}"));
    let mut names: Vec<_> =
        components.iter().map(|one| one["component"]["name"].as_str().expect("a name").to_owned()).collect();
    names.sort();
    names
}

fn command_guards_package_without_embed() {
    let project = unguarded("plain");
    let cudnn = parts::cudnn("9.15.1");
    let _ = project.cudaguard(["build", "--release"]).env("CUDNN_PATH", &cudnn).run().success();
    let program = project.built("release/plain");
    assert_eq!(components(&program), ["plain"]);
    runs(start(&program, &cudnn).run(), 91501);
    let _ = start(&program, &parts::cudnn("9.1.0")).run().expect(78);
    let call = || project.cudaguard(["run", "--release", "--quiet"]).env("CUDNN_PATH", &cudnn);
    runs(call().env("LD_LIBRARY_PATH", cudnn.join("lib")).run(), 91501);
    let absent = call().run().expect(78);
    assert!(absent.stderr.contains("libcudnn.so.9") && absent.stdout.is_empty(), "{absent}");
    let other = call().env("LD_LIBRARY_PATH", parts::cudnn("8.9.7-loader").join("lib")).run().expect(78);
    assert!(other.stderr.contains("libcudnn.so.9") && other.stdout.is_empty(), "{other}");
}

fn package_programs_are_all_guarded() {
    let cudnn = parts::cudnn("9.15.1");
    let project = unguarded("many").file("src/bin/second.rs", ASKS_CUDNN).file("examples/third.rs", ASKS_CUDNN);
    let call = project.cudaguard(["build", "--release", "--bins", "--examples"]);
    let _ = call.env("CUDNN_PATH", &cudnn).run().success();
    for file in ["release/many", "release/second", "release/examples/third"] {
        assert_eq!(components(&project.built(file)), ["many"], "{file}");
        runs(start(&project.built(file), &cudnn).run(), 91501);
        let _ = start(&project.built(file), &parts::cudnn("9.1.0")).run().expect(78);
    }
    let call = project.cudaguard(["run", "--release", "--quiet", "--bin", "second", "--", "--version", "-p"]);
    runs(call.env("CUDNN_PATH", &cudnn).env("LD_LIBRARY_PATH", cudnn.join("lib")).run(), 91501);
}

fn workspace_arguments_reach_cargo() {
    let cudnn = parts::cudnn("9.15.1");
    let member = |name: &str| project::package(name).replace("\n[workspace]\n", "");
    let project = Project::bare("family")
        .file("Cargo.toml", "[workspace]\nresolver = \"2\"\nmembers = [\"one\", \"two\"]\n")
        .file("one/Cargo.toml", member("one") + &project::build_dependency())
        .file("one/build.rs", LINKS_CUDNN.replace("EMBED", "cudaguard::embed!();"))
        .file("one/src/main.rs", ASKS_CUDNN)
        .file("two/Cargo.toml", member("two"))
        .file("two/build.rs", LINKS_CUDNN.replace("EMBED", ""))
        .file("two/src/main.rs", ASKS_CUDNN);
    let elsewhere = project.sibling().join("built elsewhere");
    let build = |arguments: &[&str]| {
        let call = project.cudaguard(["build", "--release"]).args(arguments).env("CUDNN_PATH", &cudnn);
        let _ = call.run().success();
    };
    build(&["-p", "two"]);
    assert_eq!(components(&project.built("release/two")), ["two"]);
    assert!(!project.built("release/one").exists(), "-p is cargo's to honour");
    build(&["--target-dir", elsewhere.to_str().expect("UTF-8")]);
    for name in ["one", "two"] {
        let file = elsewhere.join("release").join(name);
        assert_eq!(components(&file), [name]);
        let _ = start(&file, &parts::cudnn("9.1.0")).run().expect(78);
    }
    let manifest = project.path().join("one/Cargo.toml");
    let call = command::call(["build", "--release", "--offline", "--manifest-path"]).arg(manifest);
    let _ = call.dir(project.sibling()).env("CUDNN_PATH", &cudnn).run().success();
    assert_eq!(components(&project.built("release/one")), ["one"]);
}

fn non_ascii_directories_work() {
    let project = program_in("odd", "größe 大 'quoted' $HOME");
    let built = project.sibling().join("cuDNN für alle");
    cudaguard_tests::layout::farm(&parts::cudnn("9.15.1"), &built);
    build(&project, &built);
    let program = project.built("release/odd");
    runs(start(&program, &built).run(), 91501);
    assert_eq!(components(&program), ["odd"]);
    let _ = project.cudaguard(["build", "--release"]).env("CUDNN_PATH", &built).run().success();
    assert_eq!(components(&program), ["odd"]);
    let older = project.sibling().join("ältere cuDNN");
    cudaguard_tests::layout::farm(&parts::cudnn("9.1.0"), &older);
    let refused = start(&program, &older).run().expect(78);
    assert!(refused.stderr.contains("ältere cuDNN/lib/libcudnn.so.9"), "{refused}");
    let renamed = project.sibling().join("das Programm");
    std::fs::copy(&program, &renamed).expect("a program can be copied");
    runs(Call::new(&renamed).env("LD_LIBRARY_PATH", built.join("lib")).run(), 91501);
}
