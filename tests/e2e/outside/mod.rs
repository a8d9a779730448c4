//! What the command meets outside: files that are none, in every place where one is read, and output that nobody takes.

mod files;
mod output;

use cudaguard_tests::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = files::trials();
    trials.extend(output::trials());
    trials
}
