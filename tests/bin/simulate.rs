//! Runs a program on a simulated machine, see [`cudaguard_tests::world`]:
//! `target/debug/simulate --driver 580.95.05 --gpu H100 -- cargo-cudaguard doctor`.

use std::collections::VecDeque;
use std::process::ExitCode;

use cudaguard::internal::tables;
use cudaguard_tests::Scratch;
use cudaguard_tests::world::{A10, A100, Gpu, H100, Library, NEWS, RTX_4090, RTX_5090, T4, V100, World};

const USAGE: &str = "simulate [OPTIONS] -- PROGRAM [ARGUMENTS]
  --driver RELEASE   the driver: kernel module and libcuda
  --libcuda RELEASE  libcuda of another release than the kernel module
  --compat           that libcuda is cuda-compat in LD_LIBRARY_PATH, next to that of the driver
  --compat-cached    the same, but the loader cache contains it
  --gpu NAME         V100, T4, A100, A10, RTX4090, H100, RTX5090 or News; can be repeated
  --proprietary      the kernel module is not the open one
  --init STATUS      the result of cuInit";

/// The names of GPUs in options.
const GPUS: [(&str, Gpu); 8] = [
    ("V100", V100),
    ("T4", T4),
    ("A100", A100),
    ("A10", A10),
    ("RTX4090", RTX_4090),
    ("H100", H100),
    ("RTX5090", RTX_5090),
    ("News", NEWS),
];

fn main() -> ExitCode {
    let mut words: VecDeque<String> = std::env::args().skip(1).collect();
    let Some((world, program)) = read(&mut words).zip(words.pop_front()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let scratch = Scratch::new("simulate");
    let outcome = world.make(&scratch).call(program, &[]).args(&words).run();
    print!("{}", outcome.stdout);
    eprint!("{}", outcome.stderr);
    outcome.status().and_then(|status| u8::try_from(status).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Takes the options up to `--`. `None` if one is wrong.
fn read(words: &mut VecDeque<String>) -> Option<World> {
    let (mut world, mut libcuda, mut compat) = (World::bare(), None, false);
    loop {
        let option = words.pop_front()?;
        match option.as_str() {
            "--" => break,
            "--driver" => {
                let library = library(words.pop_front()?)?;
                world.kernel = Some(library.release);
                world.library = Some(library);
            }
            "--libcuda" => libcuda = Some(library(words.pop_front()?)?),
            "--compat" => compat = true,
            "--compat-cached" => (compat, world.compat_cached) = (true, true),
            "--gpu" => {
                let name = words.pop_front()?;
                world.gpus.push(GPUS.iter().find(|(known, _)| *known == name)?.1);
            }
            "--proprietary" => world.open = false,
            "--init" => {
                let status = words.pop_front()?.parse().ok()?;
                libcuda.as_mut().or(world.library.as_mut())?.init = status;
            }
            _ => return None,
        }
    }
    if compat {
        world.compat = libcuda;
    } else if libcuda.is_some() {
        world.library = libcuda;
    }
    Some(world)
}

/// Returns a library of this driver release, with the CUDA version that it supports.
fn library(release: String) -> Option<Library> {
    let cuda = tables::driver_supports(release.parse().ok()?).least?;
    Some(Library::new(release.leak(), cuda.major * 1000 + cuda.minor * 10))
}
