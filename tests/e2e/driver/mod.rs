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

use cudaguard_tests::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = refused::trials();
    trials.extend(accepted::trials());
    trials.extend(harmless::trials());
    trials.extend(accepting::trials());
    trials.extend(confined::trials());
    trials.extend(linked::trials());
    trials.extend(on_a_gpu::trials());
    trials.extend(real::trials());
    trials
}
