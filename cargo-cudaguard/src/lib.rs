//! `cargo cudaguard`: checks CUDA programs against toolchains, drivers and GPUs.
//!
//! The library is for the command and its tests. It may change in any release.

#![deny(unsafe_code)]

mod artifact;
mod as_text;
pub mod binary;
mod cargo;
mod cli;
mod commands;
pub mod family;
pub mod guard;
pub mod host;
pub mod knowledge;
pub mod linked;
pub mod pipeline;
#[cfg(target_os = "linux")]
pub mod simulation;
pub mod verdict;
mod wrapper;

use std::process::ExitCode;

use cudaguard::internal::env::Env;

use cli::arguments::{self, ProbeFormat, TextOrJson, Verb};
use cli::report::{self, CliError};
use cli::{memory, shells, signals};
use commands::{
    artifact_report, check, choose, cmake, diff, doctor, exec, explain, fleet, generic_build, init, lock, map, probe,
    requirements, verify,
};

pub use cli::arguments::usage_error;
pub use cli::memory::CountingAllocator;
pub use commands::start;

/// Runs the command with the arguments and variables of this process.
pub fn run() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(status) = host::machine::run_probe_child() {
        return status;
    }
    let env = Env::from_process();
    if let Some(call) = wrapper::detect_call(&env) {
        report::configure(&env, clap::ColorChoice::Auto, false, 0);
        return wrapper::run_wrapper(&env, &call);
    }
    signals::guard_mappings();
    let (global, command) = arguments::parse_process_args();
    report::configure(&env, global.color, global.quiet, global.verbose);
    if let Some(activity) = command.activity() {
        report::progress(activity);
    }
    let reads_artifacts = matches!(
        command,
        Verb::Inspect { .. }
            | Verb::Verify(_)
            | Verb::Choose(_)
            | Verb::Diff(_)
            | Verb::Map { .. }
            | Verb::Requirements { .. }
    );
    if reads_artifacts {
        memory::limit();
    }
    let outcome = match command {
        Verb::Cargo(verb, arguments) => commands::cargo::run_cargo(&env, verb, &arguments),
        Verb::Environment(arguments) => commands::cargo::print_environment(&env, &arguments),
        Verb::Check(arguments) => check::run_check(&env, &arguments),
        Verb::Init(arguments) => init::run_init(&env, &arguments),
        Verb::Lock(arguments) => lock::run_lock(&env, &arguments),
        Verb::Inspect { file, format } => artifact_report::run_inspect(&file, format.get()),
        Verb::Verify(options) => match &options.fleet {
            Some(list) => fleet::run_fleet(&env, &options, list),
            None => verify::run_verify(&env, &options),
        },
        Verb::Choose(options) => choose::run_choose(&env, &options),
        Verb::Diff(options) => diff::run_diff(&env, &options),
        Verb::Requirements { files, name, format } => {
            requirements::run_requirements(&env, &files, name.as_deref(), format.get())
        }
        Verb::Map { files, format, output } => map::run_map(&env, &files, format.get(), output.as_deref()),
        Verb::Probe { line: true, name, .. } => probe::run_probe(&env, ProbeFormat::Line, name),
        Verb::Probe { format, name, .. } => probe::run_probe(&env, format.get(), name),
        Verb::Doctor { program, packages, format } => {
            doctor::run_doctor(&env, program.as_deref(), &packages, format.get())
        }
        Verb::Exec { command_line } => exec::run_exec(&env, &command_line[0], &command_line[1..]),
        #[cfg(target_os = "linux")]
        Verb::Simulate(options) => commands::simulate::run_simulate(&env, &options),
        #[cfg(not(target_os = "linux"))]
        Verb::Simulate(_) => Err(CliError::operational("simulate needs the namespaces of Linux")),
        Verb::Embed(options) => generic_build::run_embed(&env, &options),
        Verb::Seal(sealing) => generic_build::run_seal(&env, &sealing),
        Verb::Cmake(step) => cmake::run_step(&env, step),
        Verb::Completions { shell } => shells::write_completions(arguments::for_people(), shell),
        Verb::Man { directory } => shells::write_man_pages(arguments::build_command(false), &directory),
        Verb::Explain { words, format } => explain::run_explain(&words, format.get() == TextOrJson::Json),
    };
    outcome.unwrap_or_else(CliError::report)
}
