//! Asks one question in several ways, for random machines, and reports answers that contradict each other.
//!
//! `contradictions [--seed N] [--count N] [--command FILE] ARTIFACT…`. A question is an artifact, a GPU, a driver and a cuDNN. These answers
//! are compared: `verify` as text, JSON and SARIF, with their exit statuses; `verify --strict`; the cell of `map`; the rows of
//! `requirements`; for a directory, the gate with a driver floor; and for programs, on a simulated machine, `verify`, `doctor`, `exec` and the start.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cudaguard_tests::{Call, Dice, Outcome, command, places};
use serde_json::Value;

const GPUS: [&str; 10] = ["5.0", "6.0", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0"];
const CUDNN: [Option<&str>; 5] = [None, Some("none"), Some("8.9.7"), Some("9.1.0"), Some("9.17.1")];
/// One of so many questions is also asked on a simulated machine, which takes longer.
const SIMULATED: usize = 10;
/// The status of a program that its guard refuses.
const REFUSED_START: i32 = 78;
/// The findings that a newer driver removes.
const OF_DRIVER: [&str; 3] = ["CG301", "CG302", "CG316"];
/// The driver does not support the GPU, whatever the artifact needs.
const OF_GPU: [&str; 1] = ["CG317"];

struct Options {
    seed: u64,
    count: u64,
    command: PathBuf,
    artifacts: Vec<PathBuf>,
}

impl Options {
    fn from_arguments() -> Self {
        let mut options = Self { seed: 1, count: 100, command: PathBuf::new(), artifacts: Vec::new() };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().expect("the option has a value");
            match argument.as_str() {
                "--seed" => options.seed = value().parse().expect("a number"),
                "--count" => options.count = value().parse().expect("a number"),
                "--command" => options.command = value().into(),
                _ => options.artifacts.push(argument.into()),
            }
        }
        if options.command.as_os_str().is_empty() {
            options.command = command::path().into();
        }
        assert!(!options.artifacts.is_empty(), "name an artifact");
        options
    }
}

/// A driver branch with the CUDA version that it supports.
type Branch = (String, (u32, u32));

/// An artifact, and the answers that do not depend on a machine.
struct Artifact {
    path: PathBuf,
    map: Value,
    /// `None`: no requirements can be derived.
    requirements: Option<Value>,
    /// True if parts were not examined: the answers cover only the others.
    is_open: bool,
    /// `[runtime] gpu = "optional"`: the program also starts if the driver does not serve it, and no GPU is used.
    needs_no_gpu: bool,
}

/// What one way to ask says.
#[derive(Debug)]
struct Answer {
    status: i32,
    verdict: String,
    /// Codes with their severities.
    codes: BTreeSet<(String, String)>,
    output: String,
}

impl Answer {
    /// Returns true if something was not checked.
    fn is_limited(&self) -> bool {
        self.output.contains("\"not_judged\"")
    }

    fn errors(&self) -> impl Iterator<Item = &str> {
        self.codes.iter().filter(|(_, severity)| severity == "error").map(|(code, _)| code.as_str())
    }

    /// Returns true if an error of the other answer is a warning here, as `[runtime] mismatch = "warn"` makes it.
    fn warns_of(&self, other: &Self) -> bool {
        other.errors().any(|code| self.codes.contains(&(code.to_owned(), "warning".to_owned())))
    }
}

/// The questions, and the contradictions that were found.
struct Comparison<'a> {
    command: &'a Path,
    problems: Vec<String>,
}

impl Comparison<'_> {
    fn call(&self, arguments: &[&str], path: &Path) -> Outcome {
        Call::new(self.command).arg("cudaguard").args(arguments).arg(path).run()
    }

    fn read(&self, path: &Path) -> Artifact {
        let map = self.call(&["map", "--json"], path);
        let map = map.json();
        let requirements = self.call(&["requirements", "--format", "json"], path);
        let is_open = requirements.stderr.contains("not examined");
        let requirements = serde_json::from_str(&requirements.stdout).ok();
        let needs_no_gpu = self.call(&["inspect", "--json"], path).stdout.contains("\"gpu\": \"optional\"");
        Artifact { path: path.to_owned(), map, requirements, is_open, needs_no_gpu }
    }

    /// Compares the answers to one question.
    fn ask(&mut self, dice: &mut Dice, artifact: &Artifact, branches: &[Branch]) {
        let path = &artifact.path;
        let (branch, cuda) = &branches[dice.below(branches.len())];
        let (cc, cudnn) = (dice.pick(&GPUS), dice.pick(&CUDNN));
        let mut machine = vec!["verify", "--driver", branch, "--gpu", cc];
        machine.extend(cudnn.iter().flat_map(|version| ["--cudnn", version]));
        let before = self.problems.len();

        let json = self.answer_in_json(&machine, path);
        for other in [self.answer_in_text(&machine, path), self.answer_in_sarif(&machine, path)] {
            let is_same = (json.status, &json.verdict, &json.codes) == (other.status, &other.verdict, &other.codes);
            self.check(is_same, "text or SARIF differ from JSON", &[&json, &other]);
        }
        let expected = match json.verdict.as_str() {
            "runs" => 0,
            "refused" => 1,
            _ => 2,
        };
        self.check(json.status == expected, "the status is not that of the verdict", &[&json]);
        let is_explained = json.verdict == "runs" || json.is_limited() || !json.codes.is_empty();
        self.check(is_explained, "nothing explains the verdict", &[&json]);

        let mut strict = machine.clone();
        strict.push("--strict");
        let strict = self.answer_in_json(&strict, path);
        let is_certain = json.verdict == "runs" && !json.is_limited();
        self.check(is_certain || strict.status != 0, "--strict accepts something unknown", &[&json, &strict]);
        let is_named = strict.status == 0 || strict.codes.iter().any(|(_, severity)| severity == "error");
        self.check(is_named, "--strict does not name its reason", &[&strict]);

        if cudnn.is_none() {
            self.compare_with_map(artifact, branch, cc, &json);
            self.compare_with_requirements(artifact, *cuda, cc, &json);
            if path.is_dir() {
                self.compare_with_gate(path, branch, &json);
            }
        }
        if cudnn.is_none() && is_program(path) && dice.one_in(SIMULATED) {
            self.compare_on_simulated_machine(artifact, branch, cc);
        }
        if self.problems.len() > before {
            println!("{} {}: {}", machine.join(" "), path.display(), self.problems[before..].join("\n"));
        }
    }

    fn check(&mut self, holds: bool, problem: &str, answers: &[&Answer]) {
        if !holds {
            self.problems.push(format!("{problem}: {answers:#?}"));
        }
    }

    fn answer_in_json(&self, machine: &[&str], path: &Path) -> Answer {
        let outcome = self.call(&[machine, &["--json"]].concat(), path);
        let value: Value = serde_json::from_str(&outcome.stdout).unwrap_or(Value::Null);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let findings = value["findings"].as_array().into_iter().flatten();
        let codes = findings.map(|finding| (text(&finding["code"]), text(&finding["severity"]))).collect();
        Answer { status: status(&outcome), verdict: text(&value["verdict"]), codes, output: outcome.stdout }
    }

    fn answer_in_text(&self, machine: &[&str], path: &Path) -> Answer {
        let outcome = self.call(machine, path);
        let output = outcome.stdout.clone() + &outcome.stderr;
        Answer { status: status(&outcome), verdict: verdict_in(&output, path), codes: codes_in(&output), output }
    }

    fn answer_in_sarif(&self, machine: &[&str], path: &Path) -> Answer {
        let outcome = self.call(&[machine, &["--format", "sarif"]].concat(), path);
        let value: Value = serde_json::from_str(&outcome.stdout).unwrap_or(Value::Null);
        let results = value["runs"][0]["results"].as_array().into_iter().flatten();
        let codes = results.map(|result| {
            let level = result["level"].as_str().unwrap_or_default();
            let severity = if level == "note" { "info" } else { level };
            (result["ruleId"].as_str().unwrap_or_default().to_owned(), severity.to_owned())
        });
        let verdict = match outcome.status() {
            Some(0) => "runs",
            Some(1) => "refused",
            _ => "unknown",
        };
        Answer { status: status(&outcome), verdict: verdict.to_owned(), codes: codes.collect(), output: outcome.stdout }
    }

    fn compare_with_map(&mut self, artifact: &Artifact, branch: &str, cc: &str, json: &Answer) {
        let rows = artifact.map["gpus"].as_array().into_iter().flatten();
        let Some(row) = rows.into_iter().find(|row| row["cc"] == cc) else { return };
        let cells = row["cells"].as_array().into_iter().flatten();
        let Some(cell) = cells.into_iter().find(|cell| cell["branch"].as_u64() == branch.parse().ok()) else { return };
        let state = cell["state"].as_str().unwrap_or_default();
        let is_same = match json.verdict.as_str() {
            "unknown" => state == "unknown",
            "refused" => !matches!(state, "runs" | "native" | "ptx" | "unknown"),
            // What no option states is `not checked`, and does not change the verdict.
            _ => !matches!(state, "refused" | "none") && (state != "unknown" || json.is_limited()),
        };
        self.check(is_same, &format!("the cell of the map is {cell}"), &[json]);
    }

    fn compare_with_requirements(&mut self, artifact: &Artifact, cuda: (u32, u32), cc: &str, json: &Answer) {
        let Some(requirements) = &artifact.requirements else { return };
        let ranges = requirements["gpus"].as_array().into_iter().flatten();
        let fits = |range: &Value| {
            let is_within = at_least(cc, &range["from"]) && at_most(cc, &range["to"]);
            let needed = range["driver"]["cuda"].as_str().map(pair);
            is_within && needed.is_none_or(|needed| cuda >= needed)
        };
        let fits = ranges.into_iter().any(fits) || requirements["gpus"].is_null();
        // A GPU that the driver does not support is no matter of the artifact.
        let is_undriven = json.errors().any(|code| OF_GPU.contains(&code));
        let is_same = match json.verdict.as_str() {
            // A program that runs without a GPU does not use one that the driver does not support.
            "runs" => fits || requirements["driver_needed"] == false,
            "unknown" => !fits || artifact.is_open || json.is_limited(),
            _ => !fits || is_undriven,
        };
        self.check(is_same, &format!("requirements say {fits}: {}", requirements["gpus"]), &[json]);
    }

    fn compare_with_gate(&mut self, path: &Path, branch: &str, json: &Answer) {
        let gate = self.answer_in_json(&["verify", "--driver-floor", branch], path);
        let passes = gate.status == 0;
        // The gate accepts one of several builds that fits the driver. On this GPU, it may lack code.
        let needs_newer = json.errors().next().is_some() && json.errors().all(|code| OF_DRIVER.contains(&code));
        self.check(!passes || !needs_newer, "the gate accepts a file that needs a newer driver", &[&gate, json]);
    }

    /// Compares what is done on a machine: `verify`, `doctor` and `exec` of a program, and its start.
    fn compare_on_simulated_machine(&mut self, artifact: &Artifact, branch: &str, cc: &str) {
        let (path, simulator) = (artifact.path.as_path(), self.command);
        let on_machine = |arguments: &[&str]| {
            let call = Call::new(simulator).args(["cudaguard", "simulate", "--driver", branch, "--gpu", cc, "--"]);
            call.args(arguments).env("XDG_CACHE_HOME", places::target().join("simulate")).run()
        };
        let (command, program) = (self.command.display().to_string(), path.display().to_string());
        let ask = |arguments: &[&str]| {
            let outcome = on_machine(arguments);
            let output = outcome.stdout.clone() + &outcome.stderr;
            Answer { status: status(&outcome), verdict: verdict_in(&output, path), codes: codes_in(&output), output }
        };
        let [verify, doctor, exec] =
            ["verify", "doctor", "exec"].map(|verb| ask(&[&command, "cudaguard", verb, &program]));
        self.check(verify.status == doctor.status, "doctor differs from verify", &[&verify, &doctor]);
        let is_refused = verify.status == 1;
        let is_same = is_refused == (exec.status == REFUSED_START)
            || is_refused && (artifact.needs_no_gpu || exec.warns_of(&verify));
        self.check(is_same, "exec differs from verify", &[&verify, &exec]);
        let start = ask(&[&program]);
        self.check(start.status != REFUSED_START || is_refused, "the start is refused", &[&verify, &start]);
        let is_for_start = verify.output.contains("not checked at start-up") || verify.output.contains("(no manifest)");
        let may_start = artifact.needs_no_gpu || start.warns_of(&verify);
        let is_stopped = start.status != 0 || !is_refused || is_for_start || may_start;
        self.check(is_stopped, "the program starts", &[&verify, &start]);
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o100 != 0)
}

fn status(outcome: &Outcome) -> i32 {
    outcome.status().unwrap_or(-1)
}

/// Returns the verdict in the line that begins with the path.
fn verdict_in(output: &str, path: &Path) -> String {
    let start = format!("{}: ", path.display());
    let line = output.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_default();
    line.split([' ', ',']).next().unwrap_or_default().to_owned()
}

/// Returns the findings of a text: `error[CG301]: …`.
fn codes_in(output: &str) -> BTreeSet<(String, String)> {
    let mut codes = BTreeSet::new();
    for line in output.lines() {
        let line = line.strip_prefix("cudaguard: ").unwrap_or(line);
        let Some((severity, rest)) = line.split_once("[CG") else { continue };
        if let Some((number, _)) = rest.split_once("]: ").filter(|_| ["error", "warning", "info"].contains(&severity)) {
            codes.insert((format!("CG{number}"), severity.to_owned()));
        }
    }
    codes
}

/// Reads `8.6`. A compute capability without a minor includes all of them.
fn pair(text: &str) -> (u32, u32) {
    let (major, minor) = text.split_once('.').unwrap_or((text, "255"));
    (major.parse().unwrap_or_default(), minor.parse().unwrap_or_default())
}

fn at_least(cc: &str, from: &Value) -> bool {
    from.as_str().is_none_or(|from| pair(cc) >= pair(from))
}

fn at_most(cc: &str, to: &Value) -> bool {
    to.as_str().is_none_or(|to| pair(cc) <= pair(to))
}

/// Returns the driver branches that the maps name.
fn branches(artifacts: &[Artifact]) -> Vec<Branch> {
    let mut all = BTreeMap::new();
    for artifact in artifacts {
        for driver in artifact.map["drivers"].as_array().into_iter().flatten() {
            all.insert(driver["branch"].to_string(), pair(driver["cuda"].as_str().unwrap_or_default()));
        }
    }
    all.into_iter().collect()
}

fn main() -> ExitCode {
    let options = Options::from_arguments();
    let mut comparison = Comparison { command: &options.command, problems: Vec::new() };
    let artifacts: Vec<Artifact> = options.artifacts.iter().map(|path| comparison.read(path)).collect();
    let branches = branches(&artifacts);
    for index in 0..options.count {
        let dice = &mut Dice::new(options.seed, index);
        let artifact = &artifacts[dice.below(artifacts.len())];
        comparison.ask(dice, artifact, &branches);
    }
    println!(
        "{} questions about {} artifacts (seed {}): {} contradictions",
        options.count,
        artifacts.len(),
        options.seed,
        comparison.problems.len()
    );
    ExitCode::from(u8::from(!comparison.problems.is_empty()))
}
