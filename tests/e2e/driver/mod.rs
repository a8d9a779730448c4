//! Driver and GPU, end to end: programs with real kernels, guarded and sealed as users' are, started on machines with any
//! driver and any GPUs. A scene is a row: what is started, on which machine, what must come of it; what it says to the user
//! and in its report is kept as a snapshot.

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
