//! `simulate`: replaces this process with a program on a simulated machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use cudaguard::internal::env::Env;

use crate::cli::arguments::SimulateOptions;
use crate::cli::platform;
use crate::cli::report::CliError;
use crate::cli::signals;
use crate::commands::exec::cannot_start;
use crate::commands::verify::machine_from_options;
use crate::host::machine::parse_release;
use crate::simulation::{Extras, Fakes, SimulationError, World, describe, namespace};

pub(crate) fn run_simulate(env: &Env, options: &SimulateOptions) -> Result<ExitCode, CliError> {
    if options.host.is_none() && !options.flags.is_any_set() {
        return Err(CliError::operational("no machine is described: add --gpu, --driver, --cudnn or --host"));
    }
    let machine = machine_from_options(options.host.as_deref(), &options.flags)?;
    if machine.is_windows() {
        return Err(CliError::operational(
            "a Windows machine cannot be simulated: the programs are those of this system",
        ));
    }
    let world = describe(&machine, &extras_of(options)?);
    let cache = cache_dir(env).ok_or_else(|| {
        CliError::operational(
            "the fake driver has no directory: set HOME or XDG_CACHE_HOME to a directory that can be written",
        )
    })?;
    let (library_path, programs) = enter(&world, &cache)?;
    let mut command = Command::new(&options.command[0]);
    command.args(&options.command[1..]);
    for (name, dirs) in [("LD_LIBRARY_PATH", library_path), ("PATH", programs)] {
        if let Some(list) = prepended(env, name, &dirs)? {
            command.env(name, list);
        }
    }
    command.envs(machine.variables);
    if world.mps {
        command.env("CUDA_MPS_PIPE_DIRECTORY", World::mps_directory(&machine_root(&cache)));
    }
    signals::restore_signals(&mut command);
    Err(cannot_start(&options.command[0], &platform::replace_process(&mut command)))
}

/// Moves this process to the machine. Returns the directories that precede `LD_LIBRARY_PATH` and `PATH`.
fn enter(world: &World, cache: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), SimulationError> {
    let (root, fakes) = (machine_root(cache), Fakes::new(cache.join("fakes")));
    // The fakes are compiled outside of the namespace, in which the cache is a different directory.
    world.compile(&fakes)?;
    std::fs::create_dir_all(&root).map_err(|error| SimulationError::File(root.clone(), error))?;
    namespace::enter()?;
    // The files of the machine exist only in the namespace, so they end with its last process.
    namespace::mount_empty(&root)?;
    let library_path = world.write(&root, &fakes)?;
    let programs = namespace::mount_machine(&root, world.proc)?;
    if world.library.is_none() {
        namespace::check_no_driver()?;
    }
    Ok((library_path, programs))
}

fn machine_root(cache: &Path) -> PathBuf {
    cache.join("machine")
}

fn cache_dir(env: &Env) -> Option<PathBuf> {
    let absolute = |name: &str| env.var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("cudaguard/simulate"))
}

/// Returns the list of directories of a variable with these in front; `None` if there are none.
fn prepended(env: &Env, name: &str, dirs: &[PathBuf]) -> Result<Option<OsString>, CliError> {
    if dirs.is_empty() {
        return Ok(None);
    }
    let others = env.path_list(name);
    std::env::join_paths(dirs.iter().chain(&others)).map(Some).map_err(|_| {
        CliError::operational(format_args!(
            "{name} cannot contain {}\n  hint: set XDG_CACHE_HOME to a path without a colon",
            dirs[0].display()
        ))
    })
}

fn extras_of(options: &SimulateOptions) -> Result<Extras, CliError> {
    let compat = options.compat.as_deref().map(|text| {
        parse_release(text).ok_or_else(|| {
            CliError::operational(format_args!("--compat {text}: expected a release of cuda-compat such as 580.95.05"))
        })
    });
    let failures = options.failures.iter().map(|text| {
        let parts = text.split_once('=').and_then(|(call, status)| Some((call.to_owned(), status.parse().ok()?)));
        parts.filter(|(call, _)| call.starts_with("cu") || call.starts_with("nvml")).ok_or_else(|| {
            CliError::operational(format_args!(
                "--fail {text}: expected a function of the driver and its status, such as cuInit=802 or nvmlInit=9"
            ))
        })
    });
    Ok(Extras {
        mig: options.mig,
        compat: compat.transpose()?,
        wsl: options.wsl,
        mps: options.mps,
        memory: options.memory,
        failures: failures.collect::<Result<_, _>>()?,
    })
}
