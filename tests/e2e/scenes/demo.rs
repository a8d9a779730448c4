//! `cargo demo`: each step has the result that it announces.

use cudaguard_tests::{Call, Test, command, crates, parts, places, tests};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        #[slow]
        demo_completes
    ]
}

fn demo_completes() {
    // Skips the test if a component cannot be fetched.
    for part in ["cuda-13.0", "cudnn-9.15.1", "cudnn-9.17.1", "cudnn-9.1.0", "cudnn-8.9.7-loader"] {
        parts::part(part);
    }
    let call =
        Call::new(crates::cargo()).args(["run", "--quiet", "--package", "cudaguard-demo-runner", "--target-dir"]);
    let call = call.arg(places::target()).dir(places::workspace()).env(command::GIVEN, command::path());
    let outcome = call.run().success();
    assert!(outcome.stdout.ends_with("Every step had the expected result.\n"), "{outcome}");
}
