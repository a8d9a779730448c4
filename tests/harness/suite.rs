//! Trials and how they are run.

use std::any::Any;
use std::cell::RefCell;
use std::num::NonZero;
use std::panic::{self, AssertUnwindSafe};
use std::thread;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::skip::Skip;

thread_local! {
    /// What the panic of the trial on this thread said, and where.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
    static IN_TRIAL: RefCell<bool> = const { RefCell::new(false) };
}

/// Runs the trials as `cargo test` wants it (filters, threads, `--list` …) and ends the process.
pub fn suite(trials: Vec<Trial>) -> ! {
    let otherwise = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if IN_TRIAL.with_borrow(|inside| *inside) {
            SAID.with_borrow_mut(|said| *said = Some(info.to_string()));
        } else {
            otherwise(info);
        }
    }));
    let mut arguments = Arguments::from_args();
    // Most trials call cargo, which takes every core by itself.
    let cores = thread::available_parallelism().map_or(2, NonZero::get);
    arguments.test_threads.get_or_insert(cores.min(8));
    libtest_mimic::run(&arguments, trials).exit()
}

/// One trial: it passes where `body` returns, fails where it panics, and is skipped where it calls [`skip`](crate::skip()).
pub fn trial(name: impl Into<String>, body: impl FnOnce() + Send + 'static) -> Trial {
    let name = name.into();
    Trial::ignorable_test(name.clone(), move || {
        IN_TRIAL.set(true);
        let result = panic::catch_unwind(AssertUnwindSafe(body));
        IN_TRIAL.set(false);
        let Err(payload) = result else { return Ok(Completion::Completed) };
        match payload.downcast::<Skip>() {
            Ok(why) if std::env::var_os("CUDAGUARD_NO_SKIP").is_some_and(|value| !value.is_empty()) => {
                Err(format!("skipped although CUDAGUARD_NO_SKIP is set: {}", why.0).into())
            }
            Ok(why) => {
                eprintln!("skipped: {name}: {}", why.0);
                Ok(Completion::ignored_with(why.0))
            }
            Err(payload) => Err(Failed::from(said(&*payload))),
        }
    })
}

/// What the last panic said: with its place where the hook saw it, else its payload.
fn said(payload: &(dyn Any + Send)) -> String {
    SAID.take().unwrap_or_else(|| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").to_owned()
    })
}

/// Trials of these functions, named like them and like the module they stand in.
#[macro_export]
macro_rules! trials {
    ($($body:ident),* $(,)?) => {
        vec![$($crate::trial(
            concat!(module_path!(), "::", stringify!($body)).split_once("::").map_or("", |(_, name)| name),
            $body,
        )),*]
    };
}
