//! Hints: each row of `rows.txt` builds a fault, applies the hint of the output literally, and runs the command again. The finding must
//! be gone, and no error may take its place.
//!
//! A row begins with `= NAME TEMPLATE`, and with `slow` if it needs more than a second, `cmake` or `options` if another tool than cargo builds.
//! TEMPLATE is the message template of `findings.toml` whose hint the output must have; `explain:SYMPTOM` is a command of another tool
//! that fails, and the answer of `explain` to its output. Its lines are a shell script, for which `prelude.sh` has functions: lines that build the fault, `$ COMMAND`,
//! `> TEXT` for a part of the hint, and lines that apply it. `{name}` in a `>` line is text that the output determines, and the variable
//! `$name` below it.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::LazyLock;

use cargo_cudaguard::knowledge::symptoms::Symptom;
use cudaguard_findings::{Findings, MessageTemplate};
use cudaguard_tests::world::{self, MakeMachine as _};
use cudaguard_tests::{Call, Outcome, Scratch, Test, command, crates, e2e, parts, places, test, tools};
use serde_json::Value;

use crate::windows::{self, wine::Wine};

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

/// The tools of `[front_ends]`.
const TOOLS: [&str; 3] = ["cargo", "cmake", "options"];

static TABLE: LazyLock<Findings> = LazyLock::new(cudaguard_findings::read);

/// Prints how many hint texts are applied to files and variables, and how many by another simulated machine. An action of
/// `[front_ends]` counts once for each text. A row applies each text.
#[e2e]
fn coverage() {
    let (explained, rows): (Vec<Row>, Vec<Row>) = Row::all().into_iter().partition(|row| row.symptom.is_some());
    let covered: BTreeSet<(&str, &str)> = rows.iter().map(|row| (row.code.as_str(), row.hint_template())).collect();
    let (mut applied, mut marked, mut without) = (0, 0, Vec::new());
    for finding in TABLE.rows.iter().filter(|row| !row.no_action) {
        let code = format!("CG{}", finding.code);
        let mut seen = BTreeSet::new();
        for template in finding.words.iter().filter(|template| seen.insert(&template.hint)) {
            match covered.contains(&(code.as_str(), template.hint.as_str())) {
                false => without.push((template.name.clone(), template.hint.as_str())),
                true if MARKED.contains(&finding.form.as_str()) => marked += 1,
                true => applied += 1,
            }
        }
    }
    for (action, texts) in &TABLE.front_ends {
        let place = format!("{{{action}}}");
        let shown = rows.iter().filter(|row| row.hint_template().contains(&place));
        let shown: BTreeSet<&String> = shown.map(|row| &texts[row.tool_index()]).collect();
        let texts: BTreeSet<&String> = texts.iter().filter(|text| !text.is_empty()).collect();
        applied += texts.intersection(&shown).count();
        without.extend(texts.difference(&shown).map(|text| (action.clone(), text.as_str())));
    }
    println!("hints: {applied} applied, {marked} by another machine, {} without a test", without.len());
    println!("answers of explain to errors of other tools: {} applied", explained.len());
    assert!(without.is_empty(), "no row applies {without:#?}");
}

/// Returns true if a row with this name applies a hint of the symptom, or of a finding that detects one of its causes.
pub(crate) fn is_applied(row: &str, symptom: &Symptom) -> bool {
    let row = Row::all().into_iter().find(|one| one.name == row);
    row.is_some_and(|row| match row.symptom {
        Some(name) => name == symptom.name,
        None => symptom.causes.iter().flat_map(|cause| &cause.codes).any(|code| code.to_string() == row.code),
    })
}

/// A fault, and the literal application of its hint.
#[derive(Default)]
struct Row {
    name: &'static str,
    template: &'static str,
    symptom: Option<&'static str>,
    code: String,
    is_slow: bool,
    tool: &'static str,
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
                let (name, template) = words.next().zip(words.next()).unwrap_or_else(|| panic!("{line}"));
                let finding = TABLE.rows.iter().find(|row| row.words.iter().any(|words| words.name == template));
                let symptom = template.strip_prefix("explain:");
                assert!(finding.is_some() || symptom.is_some(), "{line}: findings.toml has no such template");
                let marks: Vec<&str> = words.collect();
                let tool = TOOLS.into_iter().find(|tool| marks.contains(tool)).unwrap_or(TOOLS[0]);
                let code = finding.map(|finding| format!("CG{}", finding.code)).unwrap_or_default();
                let is_slow = marks.contains(&"slow");
                rows.push(Self { name, template, symptom, code, is_slow, tool, ..Self::default() });
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

    /// Returns the template of the hint.
    fn hint_template(&self) -> &'static str {
        let template = self.templates().find(|template| template.name == self.template);
        &template.expect("the row names a template of its code").hint
    }

    /// Returns the template of the code that a hint is made from. It is the one with the most literal text.
    fn template_of(&self, hint: &str) -> &'static MessageTemplate {
        let matching = self.templates().filter(|template| is_made_from(hint, &self.with_actions(&template.hint)));
        let best = matching.max_by_key(|template| literal_length(&self.with_actions(&template.hint)));
        best.unwrap_or_else(|| panic!("no template of {hint}"))
    }

    /// Inserts the actions for the tool that builds.
    fn with_actions(&self, template: &str) -> String {
        let mut text = template.to_owned();
        for (name, texts) in &TABLE.front_ends {
            text = text.replace(&format!("{{{name}}}"), &texts[self.tool_index()]);
        }
        // The module of CMake inserts the build directory.
        text.replace(" BUILD ", " {build} ")
    }

    fn tool_index(&self) -> usize {
        TOOLS.iter().position(|tool| *tool == self.tool).unwrap_or_default()
    }

    fn templates(&self) -> impl Iterator<Item = &'static MessageTemplate> {
        TABLE.rows.iter().filter(|row| format!("CG{}", row.code) == self.code).flat_map(|row| &row.words)
    }

    fn check(&self) {
        let place = Place::new(self);
        place.shell(&self.scene);
        let before = place.run(self.command);
        if let Some(symptom) = self.symptom {
            assert_ne!(before.status(), Some(0), "{before}");
            place.scratch.file("error.log", format!("{}{}", before.stdout, before.stderr));
            let answer = place.run("\"$COMMAND\" explain --json < error.log").success();
            let answer = answer.json();
            let shown = &answer["symptoms"][0];
            assert_eq!(shown["name"], symptom, "{before}");
            let causes = shown["causes"].as_array().expect("a symptom has causes");
            let fixes: Vec<&str> = causes.iter().filter_map(|cause| cause["do"].as_str()).collect();
            self.apply(&place, &fixes.join("\n"));
            let _ = place.run(self.command).success();
            return;
        }
        let hint = hint_of(&before, &self.code);
        assert_eq!(self.template_of(&hint).hint, self.hint_template(), "`{hint}` is not the hint of {}", self.template);
        self.apply(&place, &hint);
        let after = place.run(self.command);
        for (code, severity, _) in findings(&after) {
            assert_ne!(code, self.code, "`{hint}` does not help: {after}");
            assert_ne!(severity, "error", "another error after `{hint}`: {after}");
        }
    }

    fn apply(&self, place: &Place, hint: &str) {
        let captured = self.hint.iter().fold(String::new(), |script, text| script + &captures(hint, text));
        place.shell(&(captured + &self.fix));
    }
}

/// Waits for a component. Nothing if a part of its name is in a variable of the script.
fn need_part(name: &str) {
    if !name.is_empty()
        && !name.ends_with('-')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
    {
        let _ = parts::part(name);
    }
}

/// The directory of a row. Its file `variables` has the exported variables, and `machine`, if it exists, the options of a simulated one.
struct Place {
    scratch: Scratch,
    wine: Option<Wine>,
}

impl Place {
    fn new(row: &Row) -> Self {
        // The prelude builds with this toolkit.
        let _ = parts::cuda("13.0");
        let lines = format!("{}{}\n{}", row.scene, row.command, row.fix);
        for statement in lines.split(['\n', ';']) {
            match *statement.split_whitespace().collect::<Vec<_>>() {
                ["cuda", _, version] => need_part(&format!("cuda-{version}")),
                ["cudnn" | "cudnn_files", _, version] | ["cudnn_build", version] => {
                    need_part(&format!("cudnn-{version}"));
                }
                ["machine", ..] => world::need(),
                ["kernels", ..] => _ = tools::need("g++"),
                ["locked", ..] => parts::crates(),
                [windows::COMPILER, ..] => _ = tools::need(windows::COMPILER),
                ["guarded" | "library" | "program", ..] => _ = tools::need("gcc"),
                _ => {}
            }
        }
        for text in lines.split("$PARTS").skip(1) {
            let text = text.trim_start_matches(['"', '/']);
            need_part(text.split(|c: char| c.is_whitespace() || "/\"';:)}".contains(c)).next().unwrap_or_default());
        }
        let wine = row.command.contains("wine64").then(|| Wine::new(row.name));
        Self { scratch: Scratch::without_blanks(row.name), wine }
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
            // A row may call `simulate`.
            None => Call::new("sh").env("XDG_CACHE_HOME", places::target().join("simulate")).args(["-c", &script]),
        };
        let call = match &self.wine {
            Some(wine) => call.env("WINEPREFIX", wine.prefix()).env("WINEDEBUG", "-all"),
            None => call,
        };
        call.dir(self.scratch.path()).run()
    }
}

/// Returns true if the text can result from the template: `{name}` is any text, and a part in `[ ]` with a placeholder may be absent.
fn is_made_from(text: &str, template: &str) -> bool {
    let Some(at) = template.find(['{', '[']) else { return text == template };
    let Some(text) = text.strip_prefix(&template[..at]) else { return false };
    let (is_optional, rest) = (template[at..].starts_with('['), &template[at + 1..]);
    let (inside, rest) =
        rest.split_once(if is_optional { ']' } else { '}' }).expect("findings.toml closes what it opens");
    if is_optional && inside.contains('{') {
        return is_made_from(text, rest) || is_made_from(text, &format!("{inside}{rest}"));
    }
    if is_optional {
        return text.strip_prefix(&format!("[{inside}]")).is_some_and(|text| is_made_from(text, rest));
    }
    text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| is_made_from(&text[at..], rest))
}

/// Returns the number of characters outside of placeholders and brackets.
fn literal_length(template: &str) -> usize {
    if let Some((before, rest)) = template.split_once('[') {
        return literal_length(before) + rest.split_once(']').map_or(0, |(_, rest)| literal_length(rest));
    }
    template.split('{').map(|piece| piece.split_once('}').map_or(piece, |(_, literal)| literal).len()).sum()
}

/// Returns code, severity and hint of each finding, in JSON or as text.
fn findings(outcome: &Outcome) -> Vec<(String, String, String)> {
    let mut all: Vec<(String, String, String)> = Vec::new();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    if let Ok(value) = serde_json::from_str::<Value>(&outcome.stdout) {
        let findings = value["findings"].as_array().unwrap_or_else(|| panic!("no findings: {outcome}"));
        all.extend(findings.iter().map(|one| (text(one, "code"), text(one, "severity"), text(one, "hint"))));
    }
    // CMake indents what it prints, and a program that refuses to start has other words before the hint.
    for line in outcome.stderr.lines().map(str::trim_start) {
        let head = line.split_once("]: ").and_then(|(head, _)| head.split_once("[CG"));
        if let Some((severity, number)) = head {
            all.push((format!("CG{number}"), severity.to_owned(), String::new()));
        } else if let (Some(hint), Some(last)) = (strip_label(line), all.last_mut()) {
            hint.clone_into(&mut last.2);
        }
    }
    all
}

fn strip_label(line: &str) -> Option<&str> {
    ["hint: ", "what to do: "].iter().find_map(|label| line.strip_prefix(label))
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
