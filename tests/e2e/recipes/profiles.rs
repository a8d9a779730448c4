//! Profiles: each is judged by what it inherits, and by nothing else that it sets; under plain cargo as under the command.

use std::fs;
use std::path::{Path, PathBuf};

use cudaguard::binary::Binary;
use cudaguard_tests::{Call, Project};

use super::fixture::Machine;

/// Settings that make a release build look like a dev build and the other way round.
const PROFILES: &str = r#"
[profile.dev]
opt-level = 3
debug = false
debug-assertions = false

[profile.release]
opt-level = 0
debug = true
debug-assertions = true
incremental = true

[profile.dist]
inherits = "release"
opt-level = 3
lto = "thin"

[profile.deep]
inherits = "dist"
opt-level = 1

[profile.fast]
inherits = "dev"
opt-level = 3
strip = true

[profile.faster]
inherits = "fast"
lto = "fat"

[profile.profiling]
inherits = "bench"

[profile.probing]
inherits = "test"
"#;

/// The build script of every profile: the one of another package, compiled once, called as cargo calls a build script.
const BUILD_RS: &str = r#"fn main() {
    let script = std::env::var_os("RECIPE_SCRIPT").expect("a build script");
    let status = std::process::Command::new(script).status().expect("it runs");
    std::process::exit(status.code().unwrap_or(1));
}
"#;

/// Arguments, whether it is a release, the folder of what it makes, and the profile's name in the manifest.
const TABLE: &[(&[&str], bool, &str, &str)] = &[
    (&[], false, "debug", "dev"),
    (&["--release"], true, "release", "release"),
    (&["-r"], true, "release", "release"),
    (&["--profile", "dev"], false, "debug", "dev"),
    (&["--profile=release"], true, "release", "release"),
    (&["--profile", "test"], false, "debug", "dev"),
    (&["--profile", "bench"], true, "release", "release"),
    (&["--profile", "dist"], true, "dist", "dist"),
    (&["--profile", "deep"], true, "deep", "deep"),
    (&["--profile", "fast"], false, "fast", "fast"),
    (&["--profile", "faster"], false, "faster", "faster"),
    (&["--profile", "profiling"], true, "profiling", "profiling"),
    (&["--profile", "probing"], false, "probing", "probing"),
    // Of cargo's configuration: a file, the command line, and a setting of the manifest's profile there.
    (&["--profile", "ci"], true, "ci", "ci"),
    (&["--profile", "given", "--config", "profile.given.inherits='release'"], true, "given", "given"),
    (&["--config", "profile.dev.opt-level='z'"], false, "debug", "dev"),
];

/// What the owner asks for: a program without anything of CUDA is judged by it, too.
const POLICY: &str = "[toolkit]\nrequire = \">=11\"\n";

pub(crate) fn profiles() {
    let embedded = Project::guarded("app").file("src/main.rs", "fn main() {}\n");
    let _ = embedded.cargo(["build"]).run().success();
    let script = script(&embedded);
    let main = "fn main() {}\n";
    let made = |name: &str| {
        Project::new(name)
            .append("Cargo.toml", PROFILES)
            .file("src/main.rs", main)
            .file("cudaguard.toml", POLICY)
            .file(".cargo/config.toml", "[profile.ci]\ninherits = \"release\"\n")
    };
    let by_cargo = made("app").file("build.rs", BUILD_RS);
    let by_command = made("app");

    let mut machine = Machine::in_folder(embedded.beside().join("mixed"));
    machine.cuda("cuda-13.0", "13.0");
    machine.cuda("cuda-13.5", "13.5");
    machine.path_first("cuda-13.0/bin");
    machine.set_at("CUDA_HOME", "cuda-13.5");
    machine.set("RECIPE_SCRIPT", &script);
    for (arguments, release, folder, name) in TABLE {
        let arguments: Vec<&str> = std::iter::once("build").chain(arguments.iter().copied()).collect();
        let doors: [(&Project, Call); 2] = [
            (&by_cargo, machine.on(by_cargo.cargo(&arguments))),
            (&by_command, machine.on(by_command.cudaguard(&arguments))),
        ];
        for (project, call) in doors {
            let outcome = call.run().expect(if *release { 101 } else { 0 });
            let weighs = if *release { "error[CG101]: " } else { "warning[CG101]: " };
            assert!(outcome.stderr.contains(weighs), "{arguments:?}: {outcome}");
            let program = project.built(folder).join("app");
            assert_eq!(program.exists(), !release, "{arguments:?}: {}", program.display());
            if !release {
                assert_eq!(profile(&program), *name, "{arguments:?}");
            }
        }
    }
    // Its own name is recorded, not what it inherits.
    for project in [&by_cargo, &by_command] {
        project.change("cudaguard.toml", format!("{POLICY}[build]\nrelease = \"warn\"\n"));
    }
    let arguments = ["build", "--profile", "deep"];
    let _ = machine.on(by_cargo.cargo(arguments)).run().success();
    let _ = machine.on(by_command.cudaguard(arguments)).run().success();
    for project in [&by_cargo, &by_command] {
        assert_eq!(profile(&project.built("deep/app")), "deep");
    }
}

/// The compiled build script of a package.
fn script(project: &Project) -> PathBuf {
    let folders = fs::read_dir(project.built("debug/build")).expect("it was built");
    let mut scripts = folders
        .map(|folder| folder.expect("a folder can be listed").path())
        .filter(|folder| folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("app-")))
        .map(|folder| folder.join("build-script-build"))
        .filter(|script| script.is_file());
    scripts.next().expect("cargo compiles the build script")
}

fn profile(program: &Path) -> String {
    let binary = Binary::read(program).unwrap_or_else(|error| panic!("{error}"));
    let note = binary.manifests().next().unwrap_or_else(|| panic!("{}: no manifest", program.display()));
    note.unwrap_or_else(|error| panic!("{error}")).manifest.profile
}
