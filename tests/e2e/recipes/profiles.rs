//! Profiles: only the inherited profile determines the severity, not other settings, under plain cargo and under the
//! command.

use std::fs;
use std::path::Path;

use cargo_cudaguard::binary::file::Binary;
use cudaguard_tests::{Call, Project, Test, e2e, once, scratch, test};

use super::fixture::Machine;

/// Settings that make a release build look like a dev build and vice versa.
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

[profile.deep]
inherits = "dist"
opt-level = 1

[profile.fast]
inherits = "dev"
opt-level = 3
strip = true

[profile.faster]
inherits = "fast"
codegen-units = 1
"#;

/// Build script of each profile. It runs the build script of another package, which is compiled once, as cargo would.
const BUILD_RS: &str = r#"fn main() {
    let script = std::env::var_os("RECIPE_SCRIPT").expect("a build script");
    let status = std::process::Command::new(script).status().expect("it runs");
    std::process::exit(status.code().unwrap_or(1));
}
"#;

/// Arguments, whether they select a release build, output directory, and name of the profile in the manifest.
type Row = (&'static [&'static str], bool, &'static str, &'static str);

const TABLE: &[Row] = &[
    (&[], false, "debug", "dev"),
    (&["--release"], true, "release", "release"),
    (&["--profile=release"], true, "release", "release"),
    (&["--profile", "bench"], true, "release", "release"),
    (&["--profile", "deep"], true, "deep", "deep"),
    (&["--profile", "faster"], false, "faster", "faster"),
    // Profiles from cargo's configuration: a file, the command line, and a setting there for a profile of the manifest.
    (&["--profile", "ci"], true, "ci", "ci"),
    (&["--profile", "given", "--config", "profile.given.inherits='release'"], true, "given", "given"),
    (&["--config", "profile.dev.opt-level='z'"], false, "debug", "dev"),
];

/// The policy applies even to a program without CUDA.
const POLICY: &str = "[toolkit]\nrequire = \">=11\"\n";

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let mut tests: Vec<Test> = TABLE
        .iter()
        .map(|row| {
            let name = if row.0.is_empty() { "none".to_owned() } else { row.0.join("_").replace(['-', '\''], "") };
            test(format!("profiles::{name}"), move || build(row)).slow()
        })
        .collect();
    tests.push(test("profiles::manifest_names_the_profile", record_name).slow());
    tests
}

/// Two packages, for plain cargo and for the command, on a machine with two toolkits.
struct Scene {
    by_cargo: Project,
    by_command: Project,
    machine: Machine,
}

impl Scene {
    fn new() -> Self {
        let made = |name: &str| {
            Project::new(name)
                .append("Cargo.toml", PROFILES)
                .file("src/main.rs", "fn main() {}\n")
                .file("cudaguard.toml", POLICY)
                .file(".cargo/config.toml", "[profile.ci]\ninherits = \"release\"\n")
        };
        let by_cargo = made("app").file("build.rs", BUILD_RS);
        let by_command = made("app");
        let script = by_cargo.sibling().join("script");
        let bytes = by_cargo.sibling().join("script.bytes");
        scratch::write(&bytes, once("the build script of recipes::profiles", compile_script));
        // A child process writes the program, so that no fork of this process has it open for writing.
        let _ = Call::new("install").args(["-m", "755"]).args([&bytes, &script]).run().success();
        let mut machine = Machine::in_dir(by_cargo.sibling().join("mixed"));
        machine.cuda("cuda-13.0", "13.0");
        machine.cuda("cuda-13.5", "13.5");
        machine.path_first("cuda-13.0/bin");
        machine.set_at("CUDA_HOME", "cuda-13.5");
        machine.set("RECIPE_SCRIPT", &script);
        Self { by_cargo, by_command, machine }
    }

    /// Returns the same build by plain cargo and by the command.
    fn calls(&self, arguments: &[&str]) -> [(&Project, Call); 2] {
        let arguments: Vec<&str> = std::iter::once("build").chain(arguments.iter().copied()).collect();
        [
            (&self.by_cargo, self.machine.on(self.by_cargo.cargo(&arguments))),
            (&self.by_command, self.machine.on(self.by_command.cudaguard(&arguments))),
        ]
    }
}

fn build((arguments, release, dir, name): &Row) {
    let scene = Scene::new();
    for (project, call) in scene.calls(arguments) {
        let outcome = call.run().expect(if *release { 101 } else { 0 });
        let severity = if *release { "error[CG101]: " } else { "warning[CG101]: " };
        assert!(outcome.stderr.contains(severity), "{outcome}");
        let program = project.built(dir).join("app");
        assert_eq!(program.exists(), !release, "{}", program.display());
        if !release {
            assert_eq!(profile(&program), *name);
        }
    }
}

fn record_name() {
    let scene = Scene::new();
    for project in [&scene.by_cargo, &scene.by_command] {
        project.change("cudaguard.toml", format!("{POLICY}[build]\nrelease = \"warn\"\n"));
    }
    for (project, call) in scene.calls(&["--profile", "deep"]) {
        let _ = call.run().success();
        assert_eq!(profile(&project.built("deep/app")), "deep");
    }
}

/// Compiles the build script of a package that calls `embed!()`.
fn compile_script() -> Vec<u8> {
    let project = Project::guarded("app").file("src/main.rs", "fn main() {}\n");
    let _ = project.cargo(["build"]).run().success();
    let dirs = fs::read_dir(project.built("debug/build")).expect("it was built");
    let mut scripts = dirs
        .map(|dir| dir.expect("a directory can be listed").path())
        .filter(|dir| dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with("app-")))
        .map(|dir| dir.join("build-script-build"))
        .filter(|script| script.is_file());
    fs::read(scripts.next().expect("cargo compiles the build script")).expect("a script")
}

fn profile(program: &Path) -> String {
    let binary = Binary::read(program).unwrap_or_else(|error| panic!("{error}"));
    let note = binary.manifests().next().unwrap_or_else(|| panic!("{}: no manifest", program.display()));
    note.unwrap_or_else(|error| panic!("{error}")).manifest.profile
}
