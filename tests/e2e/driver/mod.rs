//! Driver and GPU, end to end: programs with real kernels, guarded and sealed like those of users, on machines with
//! different drivers and GPUs. A scenario is a table row with a program, a machine and the expected result. Its output and
//! report are snapshots.

mod accepted_starts;
mod fixture;
mod process_invariants;
mod real_gpu;
mod real_libraries;
mod refused_starts;
mod scenario;
mod seccomp;
mod system_calls;

use cudaguard_tests::Test;

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = refused_starts::tests();
    tests.extend(accepted_starts::tests());
    tests.extend(process_invariants::tests());
    tests.extend(system_calls::tests());
    tests.extend(seccomp::tests());
    tests.extend(real_gpu::tests());
    tests.extend(real_libraries::tests());
    tests
}
