//! `cargo demo` itself: each of its steps comes out as said.

use cudaguard_tests::{Call, Trial, command, parts, trials};

pub(crate) fn trials() -> Vec<Trial> {
    trials![the_demo_comes_out_as_said]
}

fn the_demo_comes_out_as_said() {
    // Fetched here, so that the trial is skipped by name where they cannot be had.
    for part in ["cuda-13.0", "cudnn-9.15.1", "cudnn-9.17.1", "cudnn-9.1.0", "cudnn-8.9.7-loader"] {
        parts::part(part);
    }
    let told = Call::new(env!("CARGO_BIN_EXE_demo")).env(command::GIVEN, command::path()).run().success();
    assert!(told.stdout.ends_with("Each step came out as said.\n"), "{told}");
}
