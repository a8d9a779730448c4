//! `cargo mutate`: changes one operator, condition or constant of the source at a time, runs tests until one fails, and prints how
//! many changes fail a test.
//!
//! `cargo mutate [--seed N] [--number N] [--tests FILTER]... [FILE]...`. Without files, the C files of the shim are changed: in a copy of
//! `templates`, which the tests compile instead of the original. A file of Rust is changed in place and restored; its tests are compiled for
//! each change. A change that does not compile, or of C that gives the same object, does not count.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, PipeReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use cudaguard_tests::{Scratch, command, places};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_child_subreaper, waitpid};

/// Tests that print nothing for this many times as long as without a change have failed: a change can make a loop endless.
const SLOWER: u32 = 2;
/// The tests of the shim: of its functions first, then those that start guarded programs.
const SUITES: [&str; 8] = [
    "judge_equal::functions::tables",
    "judge_equal::",
    "machine::described_hosts::shim_and_command_gpus_match",
    "unsealed::",
    "driver::",
    "loading::arrangements::",
    "loading::start::",
    "loading::empty_slots::",
];
/// The limit for the tests without a change.
const FIRST_LIMIT: Duration = Duration::from_secs(1800);

struct Arguments {
    seed: u64,
    number: usize,
    filters: Vec<String>,
    files: Vec<PathBuf>,
}

/// A change of a file.
struct Mutant {
    file: PathBuf,
    line: usize,
    range: Range<usize>,
    replacement: String,
}

enum Outcome {
    /// By this test, or by the time limit.
    Killed(String),
    Survived,
    /// It does not compile, or gives the same object.
    NotCounted,
}

fn main() -> ExitCode {
    let arguments = match parse_arguments() {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("error: {message}\nusage: cargo mutate [--seed N] [--number N] [--tests FILTER]... [FILE]...");
            return ExitCode::from(2);
        }
    };
    let mut mutants: Vec<Mutant> = arguments.files.iter().flat_map(|file| find_mutants(file)).collect();
    shuffle(&mut mutants, arguments.seed);
    println!("{} places, seed {}, {} mutants", mutants.len(), arguments.seed, arguments.number);
    let copy = Scratch::new("mutants");
    let templates = copy.path().join("templates");
    let mut runner = Runner {
        templates,
        filters: arguments.filters,
        program: None,
        original: None,
        limit: FIRST_LIMIT,
        silence: Duration::ZERO,
        killers: Vec::new(),
    };
    copy_templates(&runner.templates);
    runner.original = compile_shim(&runner.templates);
    set_child_subreaper(Pid::from_raw(1)).expect("a process can adopt orphans");
    runner.build();
    if let Some(test) = runner.find_failure(Path::new("")) {
        eprintln!("error: without a change, this fails: {test}");
        return ExitCode::from(2);
    }
    runner.limit = SLOWER * runner.silence;
    let (mut killed, mut counted) = (0, 0);
    for mutant in &mutants {
        if counted == arguments.number {
            break;
        }
        let start = Instant::now();
        let outcome = runner.test(mutant);
        let seconds = start.elapsed().as_secs();
        match outcome {
            Outcome::NotCounted => continue,
            Outcome::Survived => println!("SURVIVED {} ({seconds} s)", mutant.describe()),
            Outcome::Killed(test) => {
                println!("killed   {} ({seconds} s, {test})", mutant.describe());
                killed += 1;
                runner.killers.push((mutant.file.clone(), test));
            }
        }
        counted += 1;
    }
    println!("killed {killed} of {counted} (seed {})", arguments.seed);
    if killed == counted { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn parse_arguments() -> Result<Arguments, String> {
    let mut arguments = Arguments { seed: 1, number: 50, filters: Vec::new(), files: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match &*word {
            "--seed" => arguments.seed = value()?.parse().map_err(|_| "--seed needs a number".to_owned())?,
            "--number" => arguments.number = value()?.parse().map_err(|_| "--number needs a number".to_owned())?,
            "--tests" => arguments.filters.push(value()?),
            _ if word.starts_with('-') => return Err(format!("{word} is no option")),
            _ => arguments.files.push(PathBuf::from(word)),
        }
    }
    if arguments.filters.is_empty() {
        arguments.filters.extend(SUITES.map(str::to_owned));
    }
    if arguments.files.is_empty() {
        arguments.files = c_files();
    }
    match arguments.files.iter().find(|file| !places::workspace().join(file).is_file()) {
        Some(file) => Err(format!("there is no file {}", file.display())),
        None => Ok(arguments),
    }
}

/// Returns the C files of the shim, relative to the workspace.
fn c_files() -> Vec<PathBuf> {
    let entries = fs::read_dir(places::workspace().join("templates/shim")).expect("the directory of the shim");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let c = names.filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "c"));
    let mut files: Vec<PathBuf> = c.map(|name| Path::new("templates/shim").join(name)).collect();
    files.sort();
    files
}

/// Operators and words, with what replaces them. Formatted code has blanks around binary operators.
const REPLACEMENTS: &[(&str, &str)] = &[
    (" == ", " != "),
    (" != ", " == "),
    (" < ", " <= "),
    (" > ", " >= "),
    (" <= ", " < "),
    (" >= ", " > "),
    (" && ", " || "),
    (" || ", " && "),
    (" + ", " - "),
    (" - ", " + "),
    (" += ", " -= "),
    (" | ", " & "),
    (" & ", " | "),
    ("if (!", "if ("),
    ("if !", "if "),
    ("return 0;", "return 1;"),
    ("return 1;", "return 0;"),
    ("continue;", "break;"),
    ("true", "false"),
    ("false", "true"),
];

/// Returns all changes of a file, in the order of the text.
fn find_mutants(file: &Path) -> Vec<Mutant> {
    let text = fs::read_to_string(places::workspace().join(file)).expect("a source file is UTF-8");
    let code = blank_text(&text);
    let code = code.split("#[cfg(test)]").next().unwrap_or_default();
    let mut mutants = Vec::new();
    let mut at = 0;
    for (number, line) in code.split_inclusive('\n').enumerate() {
        let start = at;
        at += line.len();
        // Changes of types, includes, tables and attributes would not compile, or change nothing.
        if !line.starts_with(' ') || line.trim_start().starts_with("#[") || line.trim_start().starts_with("use ") {
            continue;
        }
        // A parent that continues as its child starts processes without end.
        if line.contains("if (child == 0)") {
            continue;
        }
        let mut add = |range: Range<usize>, replacement: String| {
            let range = start + range.start..start + range.end;
            mutants.push(Mutant { file: file.to_owned(), line: number + 1, range, replacement });
        };
        for (from, to) in REPLACEMENTS {
            for (found, _) in line.match_indices(from) {
                add(found..found + from.len(), (*to).to_owned());
            }
        }
        for range in find_numbers(line) {
            let value: u64 = line[range.clone()].parse().unwrap_or_default();
            // 1 is often true.
            add(range, if value == 1 { 0 } else { value + 1 }.to_string());
        }
    }
    mutants
}

/// Returns the decimal numbers of a line that are no part of a name or of another number.
fn find_numbers(line: &str) -> Vec<Range<usize>> {
    let bytes = line.as_bytes();
    let is_word =
        |at: usize| bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = (at..bytes.len()).find(|end| !is_word(*end)).unwrap_or(bytes.len());
        if end > at && end - at < 10 && bytes[at..end].iter().all(u8::is_ascii_digit) {
            found.push(at..end);
        }
        at = end + 1;
    }
    found
}

/// Replaces comments, strings and preprocessor lines by blanks of the same length.
fn blank_text(text: &str) -> String {
    let mut code = text.as_bytes().to_vec();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"/*") => find_end(text, at + 2, "*/"),
            b'/' if bytes[at..].starts_with(b"//") => find_end(text, at, "\n") - 1,
            b'#' if at == 0 || bytes[at - 1] == b'\n' => find_end(text, at, "\n") - 1,
            b'"' => find_quote(bytes, at),
            b'\'' if bytes.get(at + 2) == Some(&b'\'') => at + 3,
            b'\'' if bytes.get(at + 1) == Some(&b'\\') => find_end(text, at + 3, "'"),
            _ => {
                at += 1;
                continue;
            }
        };
        for byte in &mut code[at..end.min(bytes.len())] {
            if *byte != b'\n' {
                *byte = b'.';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8(code).expect("only ASCII was inserted")
}

fn find_end(text: &str, from: usize, end: &str) -> usize {
    text.as_bytes()[from..]
        .windows(end.len())
        .position(|window| window == end.as_bytes())
        .map_or(text.len(), |found| from + found + end.len())
}

/// Returns the end of the string that begins here.
fn find_quote(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// Permutes a list: the same seed gives the same order.
fn shuffle<T>(list: &mut [T], seed: u64) {
    let mut state = seed;
    for at in (1..list.len()).rev() {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut random = state;
        random = (random ^ random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        random = (random ^ random >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        random ^= random >> 31;
        list.swap(at, usize::try_from(random % (at as u64 + 1)).expect("an index"));
    }
}

impl Mutant {
    fn apply(&self, text: &str) -> String {
        format!("{}{}{}", &text[..self.range.start], self.replacement, &text[self.range.end..])
    }

    fn describe(&self) -> String {
        let text = fs::read_to_string(places::workspace().join(&self.file)).expect("a source file");
        let line = text.lines().nth(self.line - 1).unwrap_or_default().trim();
        let from = text[self.range.clone()].trim();
        format!("{}:{}: `{from}` to `{}` in `{line}`", self.file.display(), self.line, self.replacement.trim())
    }
}

struct Runner {
    /// The copy of `templates` that the tests compile.
    templates: PathBuf,
    filters: Vec<String>,
    /// The test program, if the changes need no new one.
    program: Option<PathBuf>,
    /// The shim without a change, compiled.
    original: Option<Vec<u8>>,
    /// The longest time in which the tests of a change print nothing.
    limit: Duration,
    /// The longest time in which the tests printed nothing.
    silence: Duration,
    /// For each change that was found: its file, and the test that failed.
    killers: Vec<(PathBuf, String)>,
}

impl Runner {
    fn test(&mut self, mutant: &Mutant) -> Outcome {
        match mutant.file.strip_prefix("templates") {
            Ok(part) => self.test_c(mutant, part),
            Err(_) => self.test_rust(mutant),
        }
    }

    fn test_c(&mut self, mutant: &Mutant, part: &Path) -> Outcome {
        let file = self.templates.join(part);
        let text = fs::read_to_string(&file).expect("a copy");
        fs::write(&file, mutant.apply(&text)).expect("the copy can be written");
        let after = compile_shim(&self.templates);
        let counts = after.is_some() && after != self.original;
        let outcome = if counts { self.run_tests(mutant) } else { Outcome::NotCounted };
        fs::write(&file, text).expect("the copy can be written");
        outcome
    }

    fn test_rust(&mut self, mutant: &Mutant) -> Outcome {
        let file = places::workspace().join(&mutant.file);
        let text = fs::read_to_string(&file).expect("a source file");
        fs::write(&file, mutant.apply(&text)).expect("a source file can be written");
        self.program = None;
        let counts = cargo(&["check", "--quiet", "--workspace"]);
        let outcome = if counts { self.run_tests(mutant) } else { Outcome::NotCounted };
        fs::write(&file, text).expect("a source file can be written");
        outcome
    }

    fn run_tests(&mut self, mutant: &Mutant) -> Outcome {
        self.find_failure(&mutant.file).map_or(Outcome::Survived, Outcome::Killed)
    }

    /// Compiles the tests and the command, unless they are. Some tests compile another command at the same path.
    fn build(&mut self) {
        if self.program.is_none() && cargo(&["build", "--quiet", "--workspace", "--bin", "cargo-cudaguard"]) {
            fs::copy(places::target().join("debug/cargo-cudaguard"), self.command()).expect("the command is there");
            self.program = build_tests();
        }
    }

    fn command(&self) -> PathBuf {
        self.templates.with_file_name("cargo-cudaguard")
    }

    /// Runs the tests until one fails, and returns its name. Tests that failed after earlier changes of this file run first.
    fn find_failure(&mut self, file: &Path) -> Option<String> {
        self.build();
        let Some(program) = &self.program else { return Some("the tests do not compile".to_owned()) };
        let words = [self.list_killers(file), self.filters.clone()].concat();
        let mut call = Command::new(program);
        call.env("CUDAGUARD_TESTS", words.join(",")).env("CUDAGUARD_TEMPLATES", &self.templates);
        call.env("CARGO_MANIFEST_DIR", places::workspace().join("tests")).env(command::GIVEN, self.command());
        let (output, input) = std::io::pipe().expect("a pipe");
        call.current_dir(places::workspace().join("tests")).stderr(input.try_clone().expect("a pipe")).stdout(input);
        let mut child = call.spawn().expect("the test program can be started");
        drop(call); // which has the other end of the pipe
        let failure = self.first_failure(&mut child, output);
        end_all_children();
        failure
    }

    /// Waits until a test fails, and returns its name; `None` if all pass.
    fn first_failure(&mut self, child: &mut Child, output: PipeReader) -> Option<String> {
        let (sender, lines) = mpsc::channel();
        let output = BufReader::new(output);
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        loop {
            let start = Instant::now();
            match lines.recv_timeout(self.limit) {
                Ok(line) => {
                    self.silence = self.silence.max(start.elapsed());
                    if let Some(rest) = line.strip_prefix("FAILED: ") {
                        return Some(rest.split_once(": ").map_or(rest, |(test, _)| test).to_owned());
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Some("the time limit".to_owned()),
                Err(RecvTimeoutError::Disconnected) => {
                    let passed = child.wait().is_ok_and(|status| status.success());
                    return (!passed).then(|| "the test program".to_owned());
                }
            }
        }
    }

    /// Returns the tests that found changes, ordered by the number of changes: first of this file, then of all.
    fn list_killers(&self, file: &Path) -> Vec<String> {
        let mut found: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (of, test) in &self.killers {
            let (here, everywhere) = found.entry(test).or_default();
            *here += usize::from(of == file);
            *everywhere += 1;
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_by_key(|(_, numbers)| Reverse(*numbers));
        found.into_iter().map(|(test, _)| test.to_owned()).collect()
    }
}

/// Ends the test program and all programs that it started. This process adopts those whose parent has ended.
fn end_all_children() {
    let list = format!("/proc/self/task/{}/children", std::process::id());
    loop {
        let children = fs::read_to_string(&list).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|number| number.parse().ok()).filter_map(Pid::from_raw);
        for child in children {
            let _ = kill_process(child, Signal::KILL);
        }
        if waitpid(None, WaitOptions::empty()).is_err() {
            return;
        }
    }
}

/// Compiles the test program and returns its path, or `None` if it does not compile.
fn build_tests() -> Option<PathBuf> {
    let arguments = ["test", "--quiet", "--workspace", "--test", "e2e", "--no-run", "--message-format=json"];
    let output = cargo_command(&arguments).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut programs = messages.filter(|message| message["target"]["name"] == "e2e");
    programs.find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

fn cargo_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.args(arguments).current_dir(places::workspace());
    command
}

fn cargo(arguments: &[&str]) -> bool {
    cargo_command(arguments).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Compiles the shim of this directory and returns the object, or `None` if it does not compile.
fn compile_shim(templates: &Path) -> Option<Vec<u8>> {
    let object = templates.join("mutant.o");
    let mut command = Command::new("cc");
    command.args(["-Os", "-w", "-c", "-o"]).arg(&object).arg("shim.c").current_dir(templates);
    let status = command.stderr(Stdio::null()).status().ok()?;
    status.success().then(|| fs::read(&object).ok()).flatten()
}

fn copy_templates(to: &Path) {
    let from = places::workspace().join("templates");
    let status = Command::new("cp").arg("-r").arg(from).arg(to).status();
    assert!(status.is_ok_and(|status| status.success()), "templates can be copied");
}
