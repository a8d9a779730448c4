//! What the command meets outside: archives of real parts, files that are none, in every place where one is read, output that
//! nobody takes, Python, and other people's pipelines.

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
