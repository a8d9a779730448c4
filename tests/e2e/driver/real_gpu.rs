//! The script for machines with a GPU, on fake machines: it reports no error if the guard is right, and detects a guard
//! that is wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use cudaguard_tests::world::{A100, H100, T4, World};
use cudaguard_tests::{Outcome, e2e, places};

use super::fixture;
use super::refused_starts::{r535, r580};
use super::scenario::Stage;

/// Runs the script with these programs. Programs that need a real driver are omitted.
fn played(stage: &Stage, programs: &[(&str, &PathBuf)]) -> Outcome {
    let dir = stage.scratch.join("scenes");
    fs::create_dir_all(&dir).expect("a directory can be made");
    let script = dir.join("on-a-gpu.sh");
    fs::copy(places::workspace().join("tests/on-a-gpu.sh"), &script).expect("the script can be copied");
    for (name, program) in programs {
        fs::copy(program, dir.join(name)).expect("a program can be copied");
    }
    stage.machine.call(&script, &[]).arg(&dir).run()
}

#[e2e(slow)]
fn guard_agrees_with_real_gpu() {
    let programs = ["model", "needy", "robot"].map(|name| (name, fixture::program(name)));
    let programs = programs.each_ref().map(|(name, program)| (*name, program));
    let upgraded = r580(&[A100]).library(|library| library.init = 803);
    let mismatched = World { kernel: Some("580.65.06".into()), ..upgraded };
    let worlds = [r580(&[A100]), r580(&[T4, H100]), r535(&[H100]), mismatched, World::bare()];
    for world in worlds {
        let stage = Stage::new(&world);
        let outcome = played(&stage, &programs).success();
        assert!(!outcome.stdout.contains("WRONG"), "{outcome}");
        let scenarios = if world.kernel.is_some() { 33 } else { 27 };
        let last = format!("== {scenarios} scenarios, 0 wrong verdicts\n");
        assert!(outcome.stdout.ends_with(&last), "{outcome}");
        assert!(outcome.stdout.contains("status 78"), "{outcome}");
        if world.library.as_ref().is_some_and(|library| library.init == 0) {
            assert!(outcome.stdout.contains("cuInit 0\n"), "the child uses CUDA: {outcome}");
        }
    }
}

/// The program has an unreadable note and no code for the GPU.
#[e2e]
fn disagreement_with_gpu_is_reported() {
    let stage = Stage::new(&r580(&[T4]));
    let mut bytes = fs::read(fixture::program("model")).expect("it was built");
    let at = bytes.windows(18).position(|window| window == b"cudaguard\0\0\0cudagr").expect("a note");
    bytes[at] = b'C';
    let program = stage.scratch.file("blind", bytes);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its mode can be set");
    let outcome = played(&stage, &[("model", &program)]).expect(1);
    assert!(outcome.stdout.contains("WRONG  model: status 0"), "{outcome}");
    assert!(outcome.stdout.contains("kernels loaded, 209"), "{outcome}");
}
