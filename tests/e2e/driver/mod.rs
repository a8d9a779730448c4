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
