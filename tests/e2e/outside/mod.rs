//! Environment of the command: archives of real parts, special files in place of each input, output that cannot be written,
//! Python, and CI pipelines.

mod artefacts;
mod conda;
mod files;
mod output;
mod python;
mod workflows;

use cudaguard_tests::Test;

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = files::tests();
    tests.extend(artefacts::tests());
    tests.extend(conda::tests());
    tests.extend(output::tests());
    tests.extend(python::tests());
    tests.extend(workflows::tests());
    tests
}
