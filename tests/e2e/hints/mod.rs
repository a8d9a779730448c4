//! Hints: each row of `rows.txt` builds a fault, applies the hint of the output literally, and runs the command again. The finding must
//! be gone, and no error may take its place.
//!
//! A row begins with `= NAME CODE`, and with `slow` if it compiles kernels. Its lines are a shell script, for which `prelude.sh` has
//! functions: lines that build the fault, `$ COMMAND`, `> TEXT` for a part of the hint, and lines that apply it. `{name}` in a `>` line is
//! text that the output determines, and the variable `$name` below it.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;

use cudaguard_tests::world::{self, MakeMachine as _};
use cudaguard_tests::{Call, Outcome, Scratch, Test, command, crates, e2e, parts, places, test, tools};
use serde_json::Value;

const ROWS: &str = include_str!("rows.txt");

/// The first line of each script. `variables` has the path of the prelude, once it exists.
const START: &str = "set -eu; [ ! -e variables ] || . ./variables; . \"$PRELUDE\"";

/// Forms of hints that a test cannot apply to a real machine: the row changes the simulated one.
const MARKED: [&str; 2] = ["driver", "reboot"];

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let tests = Row::all().into_iter().map(|row| {
        let (name, is_slow) = (format!("applied::{}", row.name), row.is_slow);
        let test = test(name, move || row.check());
        if is_slow { test.slow() } else { test }
    });
    tests.collect()
}

/// Prints how many hints are applied to files and variables, and how many by another simulated machine. None may be without a row.
#[e2e]
fn coverage() {
    let rows = Row::all();
    let covered: BTreeSet<&str> = rows.iter().map(|row| row.code).collect();
    let (mut applied, mut marked, mut without) = (0, 0, Vec::new());
    for finding in cudaguard_findings::read().rows.iter().filter(|row| !row.no_action) {
        let code = format!("CG{}", finding.code);
        match covered.contains(code.as_str()) {
            false => without.push(code),
            true if MARKED.contains(&finding.form.as_str()) => marked += 1,
            true => applied += 1,
        }
    }
    println!("hints: {applied} applied, {marked} by another machine, {} without a test", without.len());
    assert!(without.is_empty(), "findings whose hint no row applies: {}", without.join(" "));
}

/// A fault, and the literal application of its hint.
#[derive(Default)]
struct Row {
    name: &'static str,
    code: &'static str,
    is_slow: bool,
    scene: String,
    command: &'static str,
    hint: Vec<&'static str>,
    fix: String,
}

impl Row {
    fn all() -> Vec<Self> {
        let mut rows: Vec<Self> = Vec::new();
        for line in ROWS.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(head) = line.strip_prefix("= ") {
                let mut words = head.split(' ');
                let (name, code) = words.next().zip(words.next()).unwrap_or_else(|| panic!("{line}"));
                rows.push(Self { name, code, is_slow: words.next() == Some("slow"), ..Self::default() });
                continue;
            }
            let row = rows.last_mut().expect("a row begins with its name");
            if let Some(command) = line.strip_prefix("$ ") {
                row.command = command;
            } else if let Some(text) = line.strip_prefix("> ") {
                row.hint.push(text);
            } else {
                let script = if row.command.is_empty() { &mut row.scene } else { &mut row.fix };
                let _ = writeln!(script, "{line}");
            }
        }
        rows
    }

    fn check(&self) {
        let place = Place::new(self);
        place.shell(&self.scene);
        let before = place.run(self.command);
        let hint = hint_of(&before, self.code);
        let captured = self.hint.iter().fold(String::new(), |script, text| script + &captures(&hint, text));
        place.shell(&(captured + &self.fix));
        let after = place.run(self.command);
        for (code, severity, _) in findings(&after) {
            assert_ne!(code, self.code, "`{hint}` does not help: {after}");
            assert_ne!(severity, "error", "another error after `{hint}`: {after}");
        }
    }
}

/// The directory of a row. Its file `variables` has the exported variables, and `machine`, if it exists, the options of a simulated one.
struct Place {
    scratch: Scratch,
}

impl Place {
    fn new(row: &Row) -> Self {
        for line in row.scene.lines().chain(row.fix.lines()) {
            match *line.split(' ').collect::<Vec<_>>() {
                ["cuda", _, version] => _ = parts::cuda(version),
                ["cudnn", _, version] => _ = parts::cudnn(version),
                ["machine", ..] => world::need(),
                ["kernels", ..] => _ = (parts::cuda("13.0"), tools::need("g++")),
                ["locked;" | "locked", ..] => parts::crates(),
                ["guarded" | "library" | "program", ..] => _ = tools::need("gcc"),
                _ => {}
            }
        }
        Self { scratch: Scratch::without_blanks(row.name) }
    }

    /// Runs lines of the row, which change files and variables.
    fn shell(&self, lines: &str) {
        let script = format!("{START}\n{lines}\ncd \"$ROW\"; export -p > variables\n");
        let prelude = places::workspace().join("tests/e2e/hints/prelude.sh");
        let call = Call::new("sh")
            .env("PRELUDE", prelude)
            .env("ROW", self.scratch.path())
            .args(["-c", &script])
            .dir(self.scratch.path());
        let cargo = crates::cargo();
        let call = call.env("COMMAND", command::path()).env("PARTS", parts::dir_without_blanks()).env("CARGO", &cargo);
        let rustc = std::path::Path::new(&cargo).with_file_name("rustc");
        let tests = places::workspace().join("tests");
        let call = call.env("RUSTC", rustc).env("TESTS", tests).env("CARGO_NET_OFFLINE", "true");
        let _ = call.run().success();
    }

    /// Runs the command of the row.
    fn run(&self, command: &str) -> Outcome {
        let script = format!("{START}\n{command}\n");
        let machine = std::fs::read_to_string(self.scratch.join("machine")).ok();
        let call = match machine {
            Some(options) => {
                let mut words: VecDeque<String> = options.split_whitespace().map(str::to_owned).collect();
                let world = world::from_options(&mut words).unwrap_or_else(|| panic!("{options}"));
                let files = Scratch::new("machine");
                return world.make(&files).call("sh", &[]).args(["-c", &script]).dir(self.scratch.path()).run();
            }
            None => Call::new("sh").args(["-c", &script]),
        };
        call.dir(self.scratch.path()).run()
    }
}

/// Returns code, severity and hint of each finding, in JSON or as text.
fn findings(outcome: &Outcome) -> Vec<(String, String, String)> {
    let mut all: Vec<(String, String, String)> = Vec::new();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    if let Ok(value) = serde_json::from_str::<Value>(&outcome.stdout) {
        let findings = value["findings"].as_array().unwrap_or_else(|| panic!("no findings: {outcome}"));
        all.extend(findings.iter().map(|one| (text(one, "code"), text(one, "severity"), text(one, "hint"))));
    }
    for line in outcome.stderr.lines() {
        let head = line.split_once("]: ").and_then(|(head, _)| head.split_once("[CG"));
        if let Some((severity, number)) = head {
            all.push((format!("CG{number}"), severity.to_owned(), String::new()));
        } else if let (Some(hint), Some(last)) = (line.strip_prefix("  hint: "), all.last_mut()) {
            hint.clone_into(&mut last.2);
        }
    }
    all
}

/// Returns the hint of the finding with this code.
fn hint_of(outcome: &Outcome, code: &str) -> String {
    let finding = findings(outcome).into_iter().find(|finding| finding.0 == code);
    finding.unwrap_or_else(|| panic!("no {code}: {outcome}")).2
}

/// Returns shell assignments of the parts of a hint that `{name}` in this text matches.
fn captures(hint: &str, text: &str) -> String {
    let mut script = String::new();
    let mut pieces = text.split('{');
    let first = pieces.next().unwrap_or_default();
    let (_, mut rest) = hint.split_once(first).unwrap_or_else(|| panic!("`{text}` is not in `{hint}`"));
    for piece in pieces {
        let (name, literal) = piece.split_once('}').unwrap_or_else(|| panic!("{text}"));
        let end = if literal.is_empty() { Some(rest.len()) } else { rest.find(literal) };
        let end = end.unwrap_or_else(|| panic!("`{text}` is not in `{hint}`"));
        let _ = writeln!(script, "{name}='{}'", &rest[..end]);
        rest = &rest[end + literal.len()..];
    }
    script
}
