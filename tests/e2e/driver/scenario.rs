//! A scenario: a program, a machine and the expected result.

use std::fs;
use std::path::{Path, PathBuf};

use cudaguard_tests::world::{self, Machine, MakeMachine as _, Manner, World};
use cudaguard_tests::{
    Call, Outcome, Scratch, Test, command, fake_library, last_report, parts, snapshot, sorted_codes, test,
};
use serde_json::Value;

use super::fixture;
use crate::judge_equal;

/// Row of the scenario tables.
pub(crate) struct Scene {
    name: &'static str,
    program: &'static str,
    world: World,
    variables: Vec<(&'static str, String)>,
    /// Expected result: refused, or started without output.
    refused: bool,
    /// Expected level of the shim's checks.
    level: u64,
    /// Expected codes in the report, such as `CG301 error, CG303 info`.
    codes: &'static str,
}

/// Creates a scenario with this program and machine. [`Scene::runs`] or [`Scene::refused`] sets the expected result.
pub(crate) fn scene(name: &'static str, program: &'static str, world: World) -> Scene {
    Scene { name, program, world, variables: Vec::new(), refused: false, level: 0, codes: "" }
}

impl Scene {
    /// Adds an environment variable.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Expects that the program runs without output and the report has these findings.
    pub(crate) fn runs(self, level: u64, codes: &'static str) -> Self {
        Self { refused: false, level, codes, ..self }
    }

    /// Expects a refusal after the driver was probed.
    pub(crate) fn refused(self, codes: &'static str) -> Self {
        Self { refused: true, level: 1, codes, ..self }
    }

    /// Returns the scenario as a test.
    pub(crate) fn test(self, group: &str) -> Test {
        test(format!("{group}::{}", self.name.replace(',', "").replace(' ', "_")), move || self.play())
    }

    pub(crate) fn play(&self) {
        let played = Played::new(self.program, &self.world, &self.variables);
        let (outcome, report) = (&played.outcome, &played.report);
        assert_eq!(outcome.status(), Some(if self.refused { 78 } else { 0 }), "{report:#}\n{outcome}");
        assert_eq!(codes(report), self.codes, "{report:#}\n{outcome}");
        assert_eq!(report["level"], self.level, "{report:#}\n{outcome}");
        if self.refused {
            assert_eq!((&*outcome.stdout, judge_equal::fixture::is_short(&outcome.stderr)), ("", true), "{outcome}");
        } else {
            assert_eq!((&*outcome.stdout, &*outcome.stderr), ("main ran\n", ""), "{outcome}");
        }
        self.hold_against_the_driver(&played);
        let variables: Vec<(&str, &str)> = self.variables.iter().map(|(name, value)| (*name, &**value)).collect();
        let verify = played.stage.machine.call(command::path(), &variables).args(["verify", "--json"]);
        let verified = verify.arg(&played.program).run().json();
        assert_eq!(verified["verdict"], report["verdict"], "{report:#}\n{verified:#}");
        let file = self.name.replace(',', "").replace(' ', "-");
        snapshot::check(&format!("driver/{file}"), &played.reported());
    }
}

impl Scene {
    /// Compares the verdict with the driver's result for the same program without a guard. A refused program must not work.
    /// A started program works, has no GPU to use, or has an unknown result.
    fn hold_against_the_driver(&self, played: &Played) {
        let works = |library: &world::Library| library.manner == Manner::Works && library.real.is_none();
        // A real cudart requires proof that the driver is real, and the driver has no knowledge of cuDNN.
        if ["runtime", "shared", "older", "vision"].contains(&self.program)
            || !self.world.library.as_ref().is_none_or(works)
        {
            return;
        }
        let mut variables: Vec<_> = self.variables.iter().map(|(name, value)| (*name, &**value)).collect();
        variables.push(("CUDAGUARD", "off"));
        let outcome = played.stage.machine.call(&played.program, &variables).arg("use").run().success();
        let truth = &outcome.stdout;
        let (taken, left) = (truth.contains("kernels loaded, 0\n"), truth.contains("kernels loaded, 2"));
        // A stub in a build image is harmless if there is no GPU.
        let answers = if self.world.gpus.is_empty() {
            &["cuInit 803\n", "cuInit 804\n"][..]
        } else {
            &["cuInit 34\n", "cuInit 803\n", "cuInit 804\n"]
        };
        let broken = answers.iter().any(|answer| truth.contains(answer));
        let nothing = !taken && !left && !broken;
        // A program with an optional GPU starts anyway.
        if played.report["verdict"] == "refused" {
            assert!(!taken && (left || broken || nothing && self.program == "needy"), "refused, but: {truth}");
        } else {
            assert!(taken || nothing || self.codes.contains("CG505"), "not refused, but: {truth}");
        }
    }
}

/// Fake machine and the directory that contains it.
pub(crate) struct Stage {
    pub(crate) scratch: Scratch,
    pub(crate) machine: Machine,
}

impl Stage {
    /// Creates the machine. Skips the test if this is not possible here.
    pub(crate) fn new(world: &World) -> Self {
        world::need();
        let scratch = Scratch::new("driver-scene");
        let machine = world.make(&scratch.join("world"));
        Self { scratch, machine }
    }

    /// Returns a call of this program under a tool, which writes a report.
    pub(crate) fn call(&self, tool: &[&str], program: &Path, variables: &[(&str, &str)]) -> Call {
        let file = self.scratch.join("report.json");
        // Each start writes its own report.
        let _ = fs::remove_file(&file);
        let report = [("CUDAGUARD_REPORT", file.to_str().expect("UTF-8"))];
        self.machine.under(tool, program, &[variables, &report].concat()).dir(self.scratch.path())
    }

    /// Returns the report of the last start.
    pub(crate) fn report(&self) -> Value {
        last_report(&self.scratch.join("report.json"))
    }

    /// Compiles this C text into a shared library in the start directory. Use it in `LD_PRELOAD` as `./name`, because a
    /// blank would end a path there.
    pub(crate) fn library(&self, name: &str, source: &str) {
        let library = fake_library::shared_library(name).source(source).option("-ldl").option("-pthread");
        library.make(&self.scratch.join(name));
    }
}

/// Result of a scenario.
pub(crate) struct Played {
    stage: Stage,
    program: PathBuf,
    /// Directories on the library path that the scenario created.
    dirs: Vec<PathBuf>,
    pub(crate) outcome: Outcome,
    pub(crate) report: Value,
}

impl Played {
    pub(crate) fn new(program: &str, world: &World, variables: &[(&str, String)]) -> Self {
        let stage = Stage::new(world);
        let program = fixture::program(program);
        let all: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, &**value)).collect();
        let outcome = stage.call(&[], &program, &all).run();
        let report = stage.report();
        let paths = variables.iter().filter(|(name, _)| *name == "LD_LIBRARY_PATH");
        let dirs = paths.flat_map(|(_, value)| std::env::split_paths(value));
        let dirs = dirs.filter(|dir| !dir.starts_with(parts::dir())).collect();
        Self { stage, program, dirs, outcome, report }
    }

    /// Returns status, output and report without the directories of this machine.
    fn reported(&self) -> String {
        let status = self.outcome.status().map_or_else(|| "none".to_owned(), |status| status.to_string());
        // Files and components are the same in all reports.
        let mut report = self.report.clone();
        let members = report.as_object_mut().expect("an object");
        for key in ["host", "pid", "started", "file", "components", "shim"] {
            members.remove(key).expect("a key of every report");
        }
        report.sort_all_objects();
        let text = format!("status {status}\n--- stderr\n{}--- report\n{report:#}\n", self.outcome.stderr);
        let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
        let built = self.program.parent().expect("a folder");
        let parts = parts::dir();
        let mut names = vec![(self.stage.machine.root(), "<world>"), (built, "<built>"), (parts.as_path(), "<parts>")];
        names.extend(self.dirs.iter().map(|dir| (dir.as_path(), "<folder>")));
        let text = snapshot::paths(&text, &names);
        snapshot::replace(&text, &[(&triplet, "<triplet>")])
    }
}

/// Returns the codes of a report, such as `CG301 error, CG303 info`.
pub(crate) fn codes(report: &Value) -> String {
    sorted_codes(report).join(", ")
}
