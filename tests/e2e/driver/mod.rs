//! Driver and GPU, end to end: programs with real kernels, guarded and sealed like those of users, on machines with
//! different drivers and GPUs. A scenario is a table row with a program, a machine and the expected result. Its output and
//! report are snapshots.

mod accepted;
mod accepting;
mod confined;
mod fixture;
mod harmless;
mod linked;
mod on_a_gpu;
mod real;
mod refused;
mod scene;

use cudaguard_tests::Test;

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = refused::tests();
    tests.extend(accepted::tests());
    tests.extend(harmless::tests());
    tests.extend(accepting::tests());
    tests.extend(confined::tests());
    tests.extend(linked::tests());
    tests.extend(on_a_gpu::tests());
    tests.extend(real::tests());
    tests
}
