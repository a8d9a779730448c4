//! `cargo mutate`: changes one operator, condition or constant of the source at a time, runs tests, and prints how many changes fail a
//! test.
//!
//! `cargo mutate [--seed N] [--number N] [--tests FILTER]... [FILE]...`. Without files, the C files of the shim are changed: in a copy of
//! `templates`, which the tests compile instead of the original. A file of Rust is changed in place and restored; its tests are compiled for
//! each change. A change that does not compile, or of C that gives the same object, does not count.

use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use cudaguard_tests::{Scratch, places};

/// A test run that takes this many times as long as without a change has failed: a change can make a loop endless.
const SLOWER: u32 = 4;
/// The limit of the run without a change.
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

#[derive(PartialEq)]
enum Outcome {
    Killed,
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
    let mut runner = Runner { templates, filters: arguments.filters, program: None, limit: FIRST_LIMIT };
    copy_templates(&runner.templates);
    runner.build();
    let start = Instant::now();
    if !runner.passes() {
        eprintln!("error: the tests fail without a change");
        return ExitCode::from(2);
    }
    runner.limit = SLOWER * start.elapsed();
    let (mut killed, mut counted) = (0, 0);
    for mutant in &mutants {
        if counted == arguments.number {
            break;
        }
        let outcome = runner.test(mutant);
        if outcome == Outcome::NotCounted {
            continue;
        }
        counted += 1;
        killed += usize::from(outcome == Outcome::Killed);
        let word = if outcome == Outcome::Killed { "killed  " } else { "SURVIVED" };
        println!("{word} {}", mutant.describe());
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
        arguments.filters.extend(["judge_equal::", "unsealed::", "driver::", "loading::"].map(str::to_owned));
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
            add(range, (value + 1).to_string());
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
    /// The longest time for the tests of a change.
    limit: Duration,
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
        let before = compile_shim(&self.templates);
        fs::write(&file, mutant.apply(&text)).expect("the copy can be written");
        let after = compile_shim(&self.templates);
        let outcome = match after {
            Some(object) if Some(&object) != before.as_ref() => {
                if self.passes() {
                    Outcome::Survived
                } else {
                    Outcome::Killed
                }
            }
            _ => Outcome::NotCounted,
        };
        fs::write(&file, text).expect("the copy can be written");
        outcome
    }

    fn test_rust(&mut self, mutant: &Mutant) -> Outcome {
        let file = places::workspace().join(&mutant.file);
        let text = fs::read_to_string(&file).expect("a source file");
        fs::write(&file, mutant.apply(&text)).expect("a source file can be written");
        self.program = None;
        let outcome = if !cargo(&["check", "--quiet", "--workspace"]) {
            Outcome::NotCounted
        } else if self.passes() {
            Outcome::Survived
        } else {
            Outcome::Killed
        };
        fs::write(&file, text).expect("a source file can be written");
        outcome
    }

    /// Compiles the tests, unless they are.
    fn build(&mut self) {
        if self.program.is_none() {
            self.program = build_tests();
        }
    }

    /// Returns true if all tests pass.
    fn passes(&mut self) -> bool {
        self.build();
        let Some(program) = &self.program else { return false };
        self.filters.iter().all(|filter| {
            let mut command = Command::new(program);
            command.arg(filter).env("CUDAGUARD_TEMPLATES", &self.templates).env("CUDAGUARD_FIRST_FAILURE", "1");
            command.env("CARGO_MANIFEST_DIR", places::workspace().join("tests"));
            command
                .current_dir(places::workspace().join("tests"))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .process_group(0);
            succeeds_in_time(&mut command.spawn().expect("the test program can be started"), self.limit)
        })
    }
}

/// Waits for a process; ends it at the time limit.
fn succeeds_in_time(child: &mut Child, limit: Duration) -> bool {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Ok(Some(status)) = child.try_wait() {
            return status.success();
        }
        thread::sleep(Duration::from_millis(100));
    }
    // The programs that the tests started are in the same group.
    let group = rustix::process::Pid::from_child(child);
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    let _ = child.wait();
    false
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
