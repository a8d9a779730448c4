//! Tests, their two layers, and the harness that runs them.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZero;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use libtest_mimic::{Arguments, Completion, Failed, FormatSetting};

use crate::cost::Cost;
use crate::run::used_by_processes;
use crate::scratch::TemporaryFiles;
use crate::skip::Skip;
use crate::summary::{End, Summary};
use crate::table::failed_step;
use crate::{cost, parts};

thread_local! {
    /// The message and the location of the panic of the test on this thread.
    static MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
    static IN_TEST: RefCell<bool> = const { RefCell::new(false) };
}

/// A test that has not been run yet.
pub struct Test {
    name: String,
    is_slow: bool,
    body: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Test").field("name", &self.name).field("is_slow", &self.is_slow).finish_non_exhaustive()
    }
}

impl Test {
    /// Moves the test to the slow layer: `cargo test` lists it as ignored, `cargo matrix` runs it.
    #[must_use]
    pub fn slow(mut self) -> Self {
        self.is_slow = true;
        self
    }
}

/// Creates a test. It passes if `body` returns, fails if it panics, and is skipped if it calls [`skip`](crate::skip()).
pub fn test(name: impl Into<String>, body: impl FnOnce() + Send + 'static) -> Test {
    Test { name: name.into(), is_slow: false, body: Box::new(body) }
}

/// Creates a test for each row of a table, named `name::row`.
pub fn rows<T: Send + 'static>(
    name: &str,
    rows: impl IntoIterator<Item = (&'static str, T)>,
    body: fn(T),
) -> impl Iterator<Item = Test> {
    rows.into_iter().map(move |(row, value)| test(format!("{name}::{row}"), move || body(value)))
}

/// A function with the attribute [`e2e`](crate::e2e): the path of its module, its name, and itself.
#[derive(Debug)]
pub enum Registered {
    /// A test of the fast layer.
    Fast(&'static str, &'static str, fn()),
    /// A test of the slow layer.
    Slow(&'static str, &'static str, fn()),
    /// A function that returns tests.
    Rows(&'static str, &'static str, fn() -> Vec<Test>),
}

inventory::collect!(Registered);

/// Registers a function. The attribute [`e2e`](crate::e2e) calls it.
#[macro_export]
macro_rules! register {
    ($kind:ident, $name:ident) => {
        $crate::inventory::submit! { $crate::Registered::$kind(module_path!(), stringify!($name), $name) }
    };
}

/// Returns all registered tests, each with its suite.
pub fn registered() -> Vec<(&'static str, Test)> {
    let mut all = Vec::new();
    for registered in inventory::iter::<Registered> {
        let (Registered::Fast(module, name, _) | Registered::Slow(module, name, _) | Registered::Rows(module, name, _)) =
            *registered;
        // `e2e::suite::module` or `e2e::suite`.
        let path = module.split_once("::").map_or("", |(_, path)| path);
        let (suite, module) = path.split_once("::").unwrap_or((path, ""));
        let name = if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") };
        match *registered {
            Registered::Fast(.., body) => all.push((suite, test(name, body))),
            Registered::Slow(.., body) => all.push((suite, test(name, body).slow())),
            Registered::Rows(.., rows) => all.extend(rows().into_iter().map(|test| (suite, test))),
        }
    }
    all.sort_by(|(suite, test), (other, second)| (suite, &test.name).cmp(&(other, &second.name)));
    all
}

/// Runs the registered tests, prints a table of the results, and ends the process.
///
/// It takes the arguments of the standard test harness, and `--shard K/N`: only the tests of the K-th of N parts.
pub fn run() -> ! {
    let otherwise = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if IN_TEST.with_borrow(|inside| *inside) {
            MESSAGE.set(Some(format!("{info}{}", failed_step())));
        } else {
            otherwise(info);
        }
    }));
    let (shard, arguments) = Shard::from_arguments(std::env::args()).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        std::process::exit(2);
    });
    let mut arguments = Arguments::from_iter(arguments);
    // Most tests wait for processes, and builds often end with one process on one core.
    let cores = thread::available_parallelism().map_or(2, NonZero::get);
    arguments.test_threads.get_or_insert((2 * cores).min(8));

    let summary = Arc::new(Mutex::new(Summary::default()));
    let all = registered().into_iter();
    let mut tests: Vec<_> = all.map(|(suite, test)| (suite, prepared(suite, test, &summary))).collect();
    if let Some(shard) = shard {
        tests = shard.select(tests, |(_, test)| {
            let is_slow = test.has_ignored_flag();
            arguments.include_ignored || is_slow == arguments.ignored
        });
    }
    let began = Instant::now();
    // SAFETY: no test has started a thread.
    let temporary = unsafe { TemporaryFiles::new() };
    let conclusion = libtest_mimic::run(&arguments, select(interleave(tests)));
    drop(temporary);
    if !arguments.list && arguments.format != Some(FormatSetting::Json) {
        let summary = summary.lock().expect("nothing panics with it");
        let slowest = std::env::var("CUDAGUARD_SLOWEST").ok().and_then(|number| number.parse().ok()).unwrap_or(0);
        print!("{}{}{}", summary.table(began.elapsed()), summary.slowest(slowest), summary.failures());
        let slow = conclusion.num_ignored - summary.skipped();
        if slow > 0 {
            println!("{slow} slow tests were not run. To run them: cargo matrix\n");
        }
    }
    if let Some(link) = parts::link() {
        let _ = std::fs::remove_file(link);
    }
    conclusion.exit()
}

/// Orders the tests so that each suite runs one in turn. Neighbors in a suite often wait for the same build.
fn interleave<T>(tests: Vec<(&'static str, T)>) -> Vec<T> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut all: Vec<_> = tests
        .into_iter()
        .map(|(suite, test)| {
            let number = seen.entry(suite).or_default();
            *number += 1;
            (*number, test)
        })
        .collect();
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, test)| test).collect()
}

/// Selects the tests that match a word of `CUDAGUARD_TESTS`, if it is set. A test whose name is a word precedes those that contain one.
fn select(tests: Vec<libtest_mimic::Trial>) -> Vec<libtest_mimic::Trial> {
    let Ok(words) = std::env::var("CUDAGUARD_TESTS") else { return tests };
    let words: Vec<&str> = words.split(',').collect();
    let mut chosen: Vec<_> =
        tests.into_iter().filter(|test| words.iter().any(|word| test.name().contains(word))).collect();
    chosen.sort_by_key(|test| words.iter().position(|word| *word == test.name()).unwrap_or(words.len()));
    chosen
}

fn prepared(suite: &'static str, test: Test, summary: &Arc<Mutex<Summary>>) -> libtest_mimic::Trial {
    let summary = Arc::clone(summary);
    let name = format!("{suite}::{}", test.name);
    let runner = libtest_mimic::Trial::ignorable_test(name.clone(), move || {
        let used = || cost::this_thread() + used_by_processes();
        let (began, before) = (Instant::now(), used());
        let end = ended(test.body);
        let answer = match &end {
            End::Passed => Ok(Completion::Completed),
            End::Failed(why) => {
                // Reported immediately, because a run may be interrupted.
                eprintln!("FAILED: {name}: {why}");
                Err(Failed::from(why))
            }
            End::Skipped(missing) => {
                let what: Vec<&str> = missing.iter().map(|missing| missing.what.as_str()).collect();
                eprintln!("skipped: {name}: {}", what.join(", "));
                Ok(Completion::ignored_with(what.join(", ")))
            }
        };
        let took = Cost { wall: began.elapsed(), processor: used().saturating_sub(before) };
        summary.lock().expect("nothing panics with it").add(suite, name, took, end);
        answer
    });
    runner.with_ignored_flag(test.is_slow)
}

/// A part of the tests. Several machines each run one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shard {
    index: usize,
    count: usize,
}

impl Shard {
    /// Removes `--shard K/N` from the arguments and parses it.
    fn from_arguments(arguments: impl Iterator<Item = String>) -> Result<(Option<Self>, Vec<String>), String> {
        let (mut shard, mut rest, mut arguments) = (None, Vec::new(), arguments);
        while let Some(argument) = arguments.next() {
            let value = match argument.strip_prefix("--shard") {
                Some("") => arguments.next().unwrap_or_default(),
                Some(value) if value.starts_with('=') => value[1..].to_owned(),
                _ => {
                    rest.push(argument);
                    continue;
                }
            };
            let numbers = value
                .split_once('/')
                .and_then(|(index, count)| Some(Self { index: index.parse().ok()?, count: count.parse().ok()? }));
            let numbers = numbers.filter(|numbers| (1..=numbers.count).contains(&numbers.index));
            shard = Some(numbers.ok_or_else(|| format!("--shard needs K/N with 1 <= K <= N, not {value:?}"))?);
        }
        Ok((shard, rest))
    }

    /// Selects every N-th of the tests that would run, because neighbors often take equally long.
    fn select<T>(self, tests: Vec<T>, would_run: impl Fn(&T) -> bool) -> Vec<T> {
        let counted = tests.into_iter().filter(would_run).enumerate();
        counted.filter(|(number, _)| number % self.count == self.index - 1).map(|(_, test)| test).collect()
    }
}

fn ended(body: Box<dyn FnOnce() + Send>) -> End {
    IN_TEST.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    IN_TEST.set(false);
    let Err(payload) = result else { return End::Passed };
    match payload.downcast::<Skip>() {
        Ok(skip) if no_skip() => {
            let what: Vec<String> =
                skip.0.iter().map(|missing| format!("{} ({})", missing.what, missing.remedy)).collect();
            End::Failed(format!("skipped although CUDAGUARD_NO_SKIP is set; missing: {}", what.join(", ")))
        }
        Ok(skip) => End::Skipped(skip.0),
        Err(payload) => End::Failed(panic_message(&*payload)),
    }
}

fn no_skip() -> bool {
    std::env::var_os("CUDAGUARD_NO_SKIP").is_some_and(|value| !value.is_empty())
}

/// Returns the message that the hook recorded, or else the payload of the panic.
fn panic_message(payload: &(dyn Any + Send)) -> String {
    MESSAGE.take().unwrap_or_else(|| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(Option<Shard>, Vec<String>), String> {
        Shard::from_arguments(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn shards_are_disjoint_and_complete() {
        let mut all: Vec<u32> = Vec::new();
        for index in 1..=3 {
            let (shard, _) = read(&format!("e2e --shard {index}/3")).unwrap();
            all.extend(shard.unwrap().select((0..10).collect(), |_| true));
        }
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn shard_is_removed_from_arguments() {
        let (shard, rest) = read("e2e --ignored --shard=2/4 cmake").unwrap();
        assert_eq!((shard, rest.join(" ").as_str()), (Some(Shard { index: 2, count: 4 }), "e2e --ignored cmake"));
        assert_eq!(read("e2e cmake").unwrap().0, None);
        for wrong in ["--shard", "--shard 0/4", "--shard 5/4", "--shard 1", "--shard a/b"] {
            assert!(read(wrong).unwrap_err().contains("K/N"), "{wrong}");
        }
    }
}
