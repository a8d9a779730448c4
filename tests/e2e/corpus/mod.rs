//! The corpus: one table of pairs, a program with its libraries and a machine, and one expected verdict for each.
//!
//! Each pair is judged in every form that it can have (a file, a directory, an archive, a wheel, an environment, an image) and by each
//! description of the machine, and its program is started if the fakes permit that. `differences.txt` lists the answers that are known to be
//! wrong. It may only get shorter: a difference that it does not list fails the test, and so does a line for a difference that is gone.
//! `CUDAGUARD_BLESS=1` removes such lines, and adds none.

mod arrangement;
mod forms;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use cudaguard_tests::{Dice, Test, command, e2e, places, test, tools, world};

use arrangement::Arrangement;

/// One of so many pairs is in the fast layer.
const FAST: usize = 100;

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let pairs = read_pairs();
    let mut all = Vec::new();
    for (number, pair) in pairs.into_iter().enumerate() {
        let one = test(pair.name.clone(), move || check(&pair));
        all.push(if number % FAST == 0 { one } else { one.slow() });
    }
    all
}

/// Returns the answer of a cell for a form and a question: `unknown, refused CG210 for image root:here`.
fn answer_for<'a>(cell: &'a str, form: &str) -> &'a str {
    let Some((general, exception)) = cell.split_once(", ") else { return cell };
    let (answer, forms) = exception.split_once(" for ").expect("an answer for forms");
    let is_listed = |listed: &str| listed == form || form.split(':').next() == Some(listed);
    if forms.split(' ').any(is_listed) { answer } else { general }
}

/// A row of the table with one program, one place of the libraries and one machine.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    name: String,
    /// The library that the program needs: `cudnn9`.
    needs: String,
    /// How it needs it: `links`, `opens`, `opens-with-code`, `inner` (a library of the program links it), `guarded-links`, `guarded-opens`.
    program: String,
    /// The set of libraries that is present, such as `cudnn-9.15.1`; `-` if there is none.
    files: String,
    /// What is different about the files: `without-graph`, `cut-main`, `before:cudnn-9.1.0`.
    change: String,
    /// How the dynamic linker finds them.
    place: String,
    machine: String,
    /// The answer on this machine, and for its host file.
    here: String,
    /// The answer for options, which state driver and GPU alone.
    options: String,
    /// Set if the program can be started on a simulated machine.
    starts: bool,
}

impl Pair {
    fn new(columns: [&str; 6], here: &str, options: &str, start: &str) -> Self {
        let name = columns.join("/");
        let [needs, program, files, change, place, machine] = columns.map(str::to_owned);
        let options = if options == "=" { here } else { options }.to_owned();
        let (here, starts) = (here.to_owned(), start == "yes");
        Self { name, needs, program, files, change, place, machine, here, options, starts }
    }
}

/// Returns the pairs of `pairs.txt`: each row with each of its programs, places and machines.
fn read_pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    let text = fs::read_to_string(places::workspace().join("tests/e2e/corpus/pairs.txt")).expect("the table of pairs");
    for row in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        let [needs, programs, files, changes, places, machines, here, options, start] = columns[..] else {
            panic!("nine columns, not {row}");
        };
        for program in programs.split(' ') {
            for library in files.split(' ') {
                for change in changes.split(' ') {
                    for place in places.split(' ') {
                        for machine in machines.split(' ') {
                            let columns = [needs, program, library, change, place, machine];
                            pairs.push(Pair::new(columns, here, options, start));
                        }
                    }
                }
            }
        }
    }
    pairs
}

#[e2e]
fn pairs_are_distinct() {
    let pairs = read_pairs();
    let names: BTreeSet<&str> = pairs.iter().map(|pair| pair.name.as_str()).collect();
    assert_eq!(names.len(), pairs.len(), "a pair is in the table twice");
    assert!(pairs.len() >= 280, "{} pairs", pairs.len());
}

fn list() -> PathBuf {
    places::workspace().join("tests/e2e/corpus/differences.txt")
}

/// The answers that are known to be wrong: for each pair, the forms and questions, each with its answer.
type Differences = BTreeMap<String, BTreeMap<String, String>>;

/// Reads lines such as `PAIR | ANSWER | FORM:QUESTION FORM:QUESTION`.
fn read_differences() -> Differences {
    let mut differences = Differences::new();
    let text = fs::read_to_string(list()).expect("the list of differences");
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let columns: Vec<&str> = line.split(" | ").collect();
        let [pair, answer, forms] = columns[..] else { panic!("three columns, not {line}") };
        for form in forms.split(' ') {
            differences.entry(pair.to_owned()).or_default().insert(form.to_owned(), answer.to_owned());
        }
    }
    differences
}

/// Returns the lines of one pair, one for each answer.
fn lines(pair: &str, differences: &BTreeMap<String, String>) -> String {
    let mut by_answer: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (form, answer) in differences {
        by_answer.entry(answer).or_default().push(form);
    }
    let mut text = String::new();
    for (answer, forms) in by_answer {
        let _ = writeln!(text, "{pair} | {answer} | {}", forms.join(" "));
    }
    text
}

#[e2e]
fn differences_name_pairs() {
    let names: BTreeSet<String> = read_pairs().into_iter().map(|pair| pair.name).collect();
    let stale: Vec<String> = read_differences().into_keys().filter(|pair| !names.contains(pair)).collect();
    assert!(stale.is_empty(), "differences.txt has lines for pairs that the table does not contain: {stale:?}");
}

fn check(pair: &Pair) {
    world::need();
    tools::need_all(&["cc", "python3", "/usr/sbin/ldconfig"]);
    let arrangement = Arrangement::new(pair);
    let mut found = BTreeMap::new();
    for answer in forms::answers(pair, &arrangement) {
        if answer.is != answer.expected {
            found.insert(answer.form, answer.is);
        }
    }
    let known = read_differences().remove(&pair.name).unwrap_or_default();
    let is_known = |(form, answer): &(&String, &String)| known.get(*form) == Some(*answer);
    let new: BTreeMap<String, String> =
        found.iter().filter(|one| !is_known(one)).map(|(form, answer)| (form.clone(), answer.clone())).collect();
    assert!(
        new.is_empty(),
        "expected: {} (for options: {}); new differences:\n{}",
        pair.here,
        pair.options,
        lines(&pair.name, &new)
    );
    if found.len() == known.len() {
        return;
    }
    let bless = std::env::var_os("CUDAGUARD_BLESS").is_some_and(|value| !value.is_empty());
    assert!(
        bless,
        "these differences are gone; CUDAGUARD_BLESS=1 removes them from differences.txt:\n{}",
        lines(&pair.name, &known.into_iter().filter(|(form, _)| !found.contains_key(form)).collect())
    );
    replace_lines(&pair.name, &lines(&pair.name, &found));
}

/// Judges combinations that the table does not contain. `CUDAGUARD_PAIRS` and `CUDAGUARD_SEED` change their number and the seed.
#[e2e(slow)]
fn random_pairs_do_not_contradict() {
    world::need();
    tools::need_all(&["cc", "python3", "/usr/sbin/ldconfig"]);
    let number = |name: &str, default: u64| match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("{name}: {error}")),
        Err(_) => default,
    };
    let seed = number("CUDAGUARD_SEED", 1);
    let pairs: Vec<Pair> = read_pairs().into_iter().filter(|pair| pair.place != "windows").collect();
    let mut wrong = Vec::new();
    for index in 0..number("CUDAGUARD_PAIRS", 30) {
        let pair = random_pair(&pairs, &mut Dice::new(seed, index));
        let answers = forms::answers(&pair, &Arrangement::new(&pair));
        wrong.extend(contradictions(&pair, &answers).into_iter().map(|why| format!("{}: {why}", pair.name)));
    }
    assert!(wrong.is_empty(), "seed {seed}:\n{}", wrong.join("\n"));
}

/// Returns libraries of one row for a program, a place and a machine of others.
fn random_pair(pairs: &[Pair], dice: &mut Dice) -> Pair {
    let one = dice.pick(pairs);
    let siblings: Vec<&Pair> = pairs.iter().filter(|other| other.needs == one.needs).collect();
    let (program, place) = (&dice.pick(&siblings).program, &dice.pick(&siblings).place);
    let machine = dice.pick(pairs).machine;
    let start = if one.starts { "yes" } else { "no" };
    Pair::new([&one.needs, program, &one.files, &one.change, place, &machine], "", "", start)
}

/// Returns the questions to which one form answers that the program runs and another that it does not, and a start that does
/// not agree.
fn contradictions(pair: &Pair, answers: &[forms::Answer]) -> Vec<String> {
    let mut wrong = Vec::new();
    for question in ["here", "host", "options"] {
        // An image is complete, and the machine may have what the other forms lack.
        let counts = |form: &str| question == "here" || !["image", "root", "root-tar"].contains(&form);
        let asked = answers
            .iter()
            .filter(|one| one.form.split_once(':').is_some_and(|(form, of)| of == question && counts(form)));
        let (runs, others): (Vec<_>, Vec<_>) = asked.partition(|one| one.is == "runs");
        let refused = others.iter().find(|one| one.is.starts_with("refused"));
        if let Some((runs, refused)) = runs.first().zip(refused) {
            wrong.push(format!("{} runs, {} {}", runs.form, refused.form, refused.is));
        }
    }
    let answer = |form: &str| answers.iter().find(|one| one.form == form).map(|one| one.is.as_str());
    // A guarded program runs without the cuDNN that it opens.
    let is_complete = !pair.program.contains("opens");
    match (answer("start"), answer("file:here")) {
        (Some("fails"), Some("runs")) if is_complete => wrong.push("it runs, and its start fails".to_owned()),
        (Some("starts"), Some(refused)) if refused.contains("CG2") => {
            wrong.push(format!("it is {refused}, and it starts"));
        }
        _ => {}
    }
    wrong
}

/// Without the large libraries of cuDNN and cuBLAS.
#[e2e]
fn answers_do_not_contradict() {
    let small = |pair: &Pair| ["cudart13/", "own/", "nothing/"].iter().any(|needs| pair.name.starts_with(needs));
    ask(&read_pairs().into_iter().filter(small).step_by(30).collect::<Vec<Pair>>(), 2);
}

#[e2e(slow)]
fn many_answers_do_not_contradict() {
    ask(&read_pairs().into_iter().step_by(20).collect::<Vec<Pair>>(), 200);
}

/// Asks random questions (`tests/bin/contradictions.rs`) about these pairs.
fn ask(pairs: &[Pair], count: u32) {
    world::need();
    tools::need_all(&["cc", "python3", "/usr/sbin/ldconfig"]);
    let arrangements: Vec<Arrangement> = pairs.iter().map(Arrangement::new).collect();
    let call = command::call_program("contradictions").args(["--count", &count.to_string()]);
    let trees = arrangements.iter().map(|one| one.path().join("tree"));
    let programs = arrangements.iter().map(|one| one.path().join("tree/app/bin/prog"));
    print!("{}", call.args(trees.chain(programs)).run().success().stdout);
}

/// Replaces the lines of this pair in the list.
fn replace_lines(pair: &str, lines: &str) {
    static WRITES: Mutex<()> = Mutex::new(());
    let _one = WRITES.lock().unwrap_or_else(PoisonError::into_inner);
    let text = fs::read_to_string(list()).expect("the list of differences");
    let prefix = format!("{pair} | ");
    let (mut kept, mut is_written) = (String::new(), false);
    for line in text.lines() {
        if !line.starts_with(&prefix) {
            kept += line;
            kept.push('\n');
        } else if !is_written {
            kept += lines;
            is_written = true;
        }
    }
    fs::write(list(), kept).expect("the list can be written");
}
