//! What the command meets outside: archives of real parts, files that are none, in every place where one is read, output that
//! nobody takes, Python, and other people's pipelines.

mod artefacts;
mod conda;
mod files;
mod output;
mod python;
mod workflows;

use cudaguard_tests::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = files::trials();
    trials.extend(artefacts::trials());
    trials.extend(conda::trials());
    trials.extend(output::trials());
    trials.extend(python::trials());
    trials.extend(workflows::trials());
    trials
}
