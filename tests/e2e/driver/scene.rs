//! One scene: a program, a machine, and what must come of it.

use std::fs;
use std::path::{Path, PathBuf};

use cudaguard_tests::world::{self, Machine, Manner, World};
use cudaguard_tests::{Call, Outcome, Scratch, Test, parts, snapshot, stand_in, test};
use serde_json::Value;

use super::fixture;
use crate::judge_equal;

/// A row of the tables.
pub(crate) struct Scene {
    name: &'static str,
    program: &'static str,
    world: World,
    variables: Vec<(&'static str, String)>,
    /// Refused, or runs in silence.
    refused: bool,
    /// How far the shim had to go.
    level: u64,
    /// `CG301 error, CG303 info`, as in the report.
    codes: &'static str,
}

/// This program on this machine; what must come of it says [`Scene::runs`] or [`Scene::refused`].
pub(crate) fn scene(name: &'static str, program: &'static str, world: World) -> Scene {
    Scene { name, program, world, variables: Vec::new(), refused: false, level: 0, codes: "" }
}

impl Scene {
    /// Sets a variable.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// It runs, and nothing is printed; the report has these findings.
    pub(crate) fn runs(self, level: u64, codes: &'static str) -> Self {
        Self { refused: false, level, codes, ..self }
    }

    /// It is refused, after the driver was asked.
    pub(crate) fn refused(self, codes: &'static str) -> Self {
        Self { refused: true, level: 1, codes, ..self }
    }

    /// As a test.
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
        let file = self.name.replace(',', "").replace(' ', "-");
        snapshot::check(&format!("driver/{file}"), &played.told());
    }
}

impl Scene {
    /// What the driver makes of the same program where nobody guards it: refused is only what could not have worked, and
    /// what passes works, or has no GPU to work on, or could not be told.
    fn hold_against_the_driver(&self, played: &Played) {
        let works = |library: &world::Library| library.manner == Manner::Works && library.real.is_none();
        // A real cudart asks a driver to prove what it is; of cuDNN the driver knows nothing.
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
        // The stub of an image that builds is nobody's trouble where there is no GPU.
        let answers = if self.world.gpus.is_empty() {
            &["cuInit 803\n", "cuInit 804\n"][..]
        } else {
            &["cuInit 34\n", "cuInit 803\n", "cuInit 804\n"]
        };
        let broken = answers.iter().any(|answer| truth.contains(answer));
        let nothing = !taken && !left && !broken;
        // A program that can do without a GPU is started all the same.
        if played.report["verdict"] == "refused" {
            assert!(!taken && (left || broken || nothing && self.program == "needy"), "refused, but: {truth}");
        } else {
            assert!(taken || nothing || self.codes.contains("CG505"), "not refused, but: {truth}");
        }
    }
}

/// A machine that is laid out, in a folder that goes with it.
pub(crate) struct Stage {
    pub(crate) scratch: Scratch,
    pub(crate) machine: Machine,
}

impl Stage {
    /// Skips where no such machine can be made.
    pub(crate) fn new(world: &World) -> Self {
        world::need();
        let scratch = Scratch::new("driver-scene");
        let machine = world.make(&scratch.join("world"));
        Self { scratch, machine }
    }

    /// A call of this program, by this tool, which leaves a report.
    pub(crate) fn call(&self, tool: &[&str], program: &Path, variables: &[(&str, &str)]) -> Call {
        let file = self.scratch.join("report.json");
        // Each start has a report of its own.
        let _ = fs::remove_file(&file);
        let report = [("CUDAGUARD_REPORT", file.to_str().expect("UTF-8"))];
        self.machine.under(tool, program, &[variables, &report].concat()).dir(self.scratch.path())
    }

    /// What the last start left.
    pub(crate) fn report(&self) -> Value {
        let text =
            fs::read_to_string(self.scratch.join("report.json")).unwrap_or_else(|error| panic!("no report: {error}"));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
    }

    /// A shared library from this C text, in the folder that programs are started in. `LD_PRELOAD` takes it as `./name`: a
    /// blank in a path would end the path there.
    pub(crate) fn library(&self, name: &str, source: &str) {
        let library = stand_in::shared_library(name).source(source).option("-ldl").option("-pthread");
        library.make(&self.scratch.join(name));
    }
}

/// The result of sealing.
pub(crate) struct Played {
    stage: Stage,
    program: PathBuf,
    /// Those that a scene made and put on the library path.
    folders: Vec<PathBuf>,
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
        let folders = paths.flat_map(|(_, value)| std::env::split_paths(value));
        let folders = folders.filter(|folder| !folder.starts_with(parts::folder())).collect();
        Self { stage, program, folders, outcome, report }
    }

    /// All of it, without this machine's folders.
    fn told(&self) -> String {
        let status = self.outcome.status().map_or_else(|| "none".to_owned(), |status| status.to_string());
        // Files and components are the same in all of them.
        let mut report = self.report.clone();
        let members = report.as_object_mut().expect("an object");
        for key in ["host", "pid", "started", "file", "components", "shim", "loaded_later"] {
            members.remove(key).expect("a key of every report");
        }
        let text = format!("status {status}\n--- stderr\n{}--- report\n{report:#}\n", self.outcome.stderr);
        let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
        let built = self.program.parent().expect("a folder");
        let parts = parts::folder();
        let mut names = vec![(self.stage.machine.root(), "<world>"), (built, "<built>"), (parts.as_path(), "<parts>")];
        names.extend(self.folders.iter().map(|folder| (folder.as_path(), "<folder>")));
        let text = snapshot::paths(&text, &names);
        snapshot::replace(&text, &[(&triplet, "<triplet>")])
    }
}

/// `CG301 error, CG303 info`.
pub(crate) fn codes(report: &Value) -> String {
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let mut codes: Vec<String> = report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|finding| text(finding, "code") + " " + &text(finding, "severity"))
        .collect();
    codes.sort();
    codes.join(", ")
}
