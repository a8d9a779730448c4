//! What the command meets outside: archives of real parts, files that are none, in every place where one is read, and output that
//! nobody takes.

mod artefacts;
mod files;
mod output;

use cudaguard_tests::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = files::trials();
    trials.extend(artefacts::trials());
    trials.extend(output::trials());
    trials
}
