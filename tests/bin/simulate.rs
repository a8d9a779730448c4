//! Runs a program on a simulated machine, see [`cudaguard_tests::world`]:
//! `target/debug/simulate --driver 580.95.05 --gpu H100 -- cargo-cudaguard doctor`.

use std::collections::VecDeque;
use std::process::ExitCode;

use cudaguard_tests::Scratch;
use cudaguard_tests::world::{self, MakeMachine as _};

const USAGE: &str = "simulate [OPTIONS] -- PROGRAM [ARGUMENTS]
  --driver RELEASE   the driver: kernel module and libcuda
  --libcuda RELEASE  libcuda of another release than the kernel module
  --compat           that libcuda is cuda-compat in LD_LIBRARY_PATH, next to that of the driver
  --compat-cached    the same, but the loader cache contains it
  --gpu NAME         V100, T4, A100, A10, RTX4090, H100, RTX5090 or News; can be repeated
  --proprietary      the kernel module is not the open one
  --init STATUS      the result of cuInit
  --wsl              a WSL2 of Windows with that driver
  --no-jit           libcuda without the library that compiles PTX
  --no-uvm           without /dev/nvidia-uvm
  --crashes          libcuda aborts";

fn main() -> ExitCode {
    let mut words: VecDeque<String> = std::env::args().skip(1).collect();
    let Some((world, program)) = world::from_options(&mut words).zip(words.pop_front()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let scratch = Scratch::new("simulate");
    let outcome = world.make(&scratch).call(program, &[]).args(&words).run();
    print!("{}", outcome.stdout);
    eprint!("{}", outcome.stderr);
    outcome.status().and_then(|status| u8::try_from(status).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
