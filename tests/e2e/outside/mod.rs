//! Environment of the command: archives of real parts, special files in place of each input, output that cannot be written,
//! Python, and CI pipelines.

mod artifacts;
mod closed_output;
mod conda;
mod environment;
mod family;
mod libraries;
mod memory;
mod python;
mod special_files;
mod workflows;

use cudaguard_tests::Test;

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = special_files::tests();
    tests.extend(artifacts::tests());
    tests.extend(conda::tests());
    tests.extend(environment::tests());
    tests.extend(family::tests());
    tests.extend(libraries::tests());
    tests.extend(closed_output::tests());
    tests.extend(memory::tests());
    tests.extend(python::tests());
    tests.extend(workflows::tests());
    tests
}
