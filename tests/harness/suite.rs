//! Trials and how they are run.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::num::NonZero;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use libtest_mimic::{Arguments, Completion, Failed, FormatSetting};

use crate::parts;
use crate::skip::{Cure, Skip};
use crate::summary::{End, Summary};

thread_local! {
    /// What the panic of the trial on this thread said, and where.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
    static IN_TRIAL: RefCell<bool> = const { RefCell::new(false) };
}

/// A trial that has not been run yet.
pub struct Trial {
    name: String,
    body: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trial").field(&self.name).finish()
    }
}

/// One trial: it passes where `body` returns, fails where it panics, and is skipped where it calls [`skip`](crate::skip()).
pub fn trial(name: impl Into<String>, body: impl FnOnce() + Send + 'static) -> Trial {
    Trial { name: name.into(), body: Box::new(body) }
}

/// Runs the suites, each a name and its trials, as `cargo test` wants it (filters, threads, `--list` …), tells in a table
/// what came of them, and ends the process. With `--quick` only the trials that `quick` names are run.
pub fn run(suites: Vec<(&'static str, Vec<Trial>)>, quick: &[&str]) -> ! {
    let otherwise = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if IN_TRIAL.with_borrow(|inside| *inside) {
            SAID.with_borrow_mut(|said| *said = Some(info.to_string()));
        } else {
            otherwise(info);
        }
    }));
    let (ours, theirs): (Vec<_>, Vec<_>) = std::env::args_os().partition(|argument| argument == "--quick");
    let mut arguments = Arguments::from_iter(theirs);
    // Most trials call cargo, which takes every core by itself, and all wait now and then: half as many again as there are cores.
    let cores = thread::available_parallelism().map_or(2, NonZero::get);
    arguments.test_threads.get_or_insert((cores + cores / 2).min(8));

    let mut all: Vec<_> =
        suites.into_iter().flat_map(|(suite, trials)| trials.into_iter().map(move |trial| (suite, trial))).collect();
    let full = |suite: &str, trial: &Trial| format!("{suite}::{}", trial.name);
    for name in quick {
        assert!(all.iter().any(|(suite, trial)| full(suite, trial) == *name), "there is no trial {name}");
    }
    if !ours.is_empty() {
        all.retain(|(suite, trial)| quick.contains(&&*full(suite, trial)));
    }
    let summary = Arc::new(Mutex::new(Summary::default()));
    let trials = all.into_iter().map(|(suite, trial)| prepared(suite, full(suite, &trial), trial.body, &summary));
    let began = Instant::now();
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    if !arguments.list && arguments.format != Some(FormatSetting::Json) {
        let summary = summary.lock().expect("nothing panics with it");
        let slowest = std::env::var("CUDAGUARD_SLOWEST").ok().and_then(|number| number.parse().ok()).unwrap_or(0);
        print!("{}{}{}", summary.table(began.elapsed()), summary.slowest(slowest), summary.failures());
    }
    if let Some(link) = parts::link() {
        let _ = std::fs::remove_file(link);
    }
    conclusion.exit()
}

fn prepared(
    suite: &'static str,
    name: String,
    body: Box<dyn FnOnce() + Send>,
    summary: &Arc<Mutex<Summary>>,
) -> libtest_mimic::Trial {
    let summary = Arc::clone(summary);
    libtest_mimic::Trial::ignorable_test(name.clone(), move || {
        let began = Instant::now();
        let end = ended(body);
        let answer = match &end {
            End::Passed => Ok(Completion::Completed),
            End::Failed(why) => {
                // At once: a run that is ended in its middle has told what it knew.
                eprintln!("FAILED: {name}: {why}");
                Err(Failed::from(why))
            }
            End::Skipped(lacks) => {
                let what: Vec<&str> = lacks.iter().map(|lack| lack.what.as_str()).collect();
                eprintln!("skipped: {name}: {}", what.join(", "));
                Ok(Completion::ignored_with(what.join(", ")))
            }
        };
        summary.lock().expect("nothing panics with it").add(suite, name, began.elapsed(), end);
        answer
    })
}

fn ended(body: Box<dyn FnOnce() + Send>) -> End {
    IN_TRIAL.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    IN_TRIAL.set(false);
    let Err(payload) = result else { return End::Passed };
    match payload.downcast::<Skip>() {
        Ok(skip) if skip.0.iter().any(|lack| !matches!(lack.cure, Cure::Machine(_))) && no_skip() => {
            let what: Vec<String> = skip.0.iter().map(|lack| format!("{} ({})", lack.what, lack.cure)).collect();
            End::Failed(format!("skipped although CUDAGUARD_NO_SKIP is set, for want of {}", what.join(", ")))
        }
        Ok(skip) => End::Skipped(skip.0),
        Err(payload) => End::Failed(said(&*payload)),
    }
}

fn no_skip() -> bool {
    std::env::var_os("CUDAGUARD_NO_SKIP").is_some_and(|value| !value.is_empty())
}

/// What the last panic said: with its place where the hook saw it, else its payload.
fn said(payload: &(dyn Any + Send)) -> String {
    SAID.take().unwrap_or_else(|| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").to_owned()
    })
}

/// Trials of these functions, named like them and like the module that they stand in below their suite's.
#[macro_export]
macro_rules! trials {
    ($($body:ident),* $(,)?) => {
        vec![$($crate::trial(
            concat!(module_path!(), "::", stringify!($body)).splitn(3, "::").nth(2).unwrap_or_default(),
            $body,
        )),*]
    };
}
