//! One scene: a program, a machine, and what must come of it.

use std::fs;
use std::path::PathBuf;

use cudaguard_tests::world::{self, World};
use cudaguard_tests::{Outcome, Scratch, Trial, parts, snapshot, trial};
use serde_json::Value;

use crate::bed;

/// A row of the tables.
pub(crate) struct Scene {
    name: &'static str,
    program: &'static str,
    world: World,
    variables: Vec<(&'static str, String)>,
    arguments: Vec<&'static str>,
    /// Refused, or runs in silence.
    refused: bool,
    /// How far the shim had to go.
    level: u64,
    /// `CG301 error, CG303 info`, as in the report.
    codes: &'static str,
}

/// This program on this machine; what must come of it says [`Scene::runs`] or [`Scene::refused`].
pub(crate) fn scene(name: &'static str, program: &'static str, world: World) -> Scene {
    Scene { name, program, world, variables: Vec::new(), arguments: Vec::new(), refused: false, level: 0, codes: "" }
}

impl Scene {
    /// With this variable.
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

    /// As a trial.
    pub(crate) fn trial(self, group: &str) -> Trial {
        trial(format!("{group}::{}", self.name.replace(' ', "_")), move || self.play())
    }

    fn play(&self) {
        world::need();
        let played = Played::new(self.program, &self.world, &self.variables, &self.arguments);
        let (outcome, report) = (&played.outcome, &played.report);
        assert_eq!(outcome.status(), Some(if self.refused { 78 } else { 0 }), "{report:#}\n{outcome}");
        assert_eq!(codes(report), self.codes, "{report:#}\n{outcome}");
        assert_eq!(report["level"], self.level, "{report:#}\n{outcome}");
        if self.refused {
            assert_eq!((&*outcome.stdout, outcome.stderr.lines().count() <= 6), ("", true), "{outcome}");
        } else {
            assert_eq!((&*outcome.stdout, &*outcome.stderr), ("main ran\n", ""), "{outcome}");
        }
        snapshot::check(&format!("driver/{}", self.name.replace(' ', "-")), &played.told());
    }
}

/// What came of it.
pub(crate) struct Played {
    scratch: Scratch,
    program: PathBuf,
    pub(crate) outcome: Outcome,
    pub(crate) report: Value,
}

impl Played {
    pub(crate) fn new(program: &str, world: &World, variables: &[(&str, String)], arguments: &[&str]) -> Self {
        let scratch = Scratch::new("driver-scene");
        let program = bed::program(program);
        let file = scratch.join("report.json");
        let mut all: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, &**value)).collect();
        all.push(("CUDAGUARD_REPORT", file.to_str().expect("UTF-8")));
        let machine = world.make(&scratch.join("world"));
        let outcome = machine.call(&program, &all).args(arguments).run();
        let report = fs::read_to_string(&file).unwrap_or_else(|error| panic!("no report: {error}: {outcome}"));
        let report = serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error} in {report}"));
        Self { scratch, program, outcome, report }
    }

    /// All of it, without this machine's folders.
    fn told(&self) -> String {
        let status = self.outcome.status().map_or_else(|| "none".to_owned(), |status| status.to_string());
        // Files and components are the same in all of them.
        let kept = ["verdict", "action", "level", "role", "findings"];
        let report: serde_json::Map<_, _> =
            kept.iter().map(|key| ((*key).to_owned(), self.report[*key].clone())).collect();
        let report = Value::Object(report);
        let text = format!("status {status}\n--- stderr\n{}--- report\n{report:#}\n", self.outcome.stderr);
        let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
        let text = snapshot::paths(
            &text,
            &[
                (&self.scratch.join("world"), "<world>"),
                (self.program.parent().expect("a folder"), "<built>"),
                (&parts::folder(), "<parts>"),
            ],
        );
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
