//! `cargo cudaguard`: checks CUDA programs against toolchains, drivers and GPUs.

#![deny(unsafe_code)]

mod arguments;
mod artefact;
mod build_context;
mod build_records;
mod cargo;
mod check;
mod cmake;
mod config;
mod doctor;
mod exec;
mod explain;
mod fleet;
mod generic_build;
mod graph;
mod guards;
mod init;
mod inspect;
mod kernel_ownership;
mod linker;
mod lock;
mod map;
mod memory;
mod message;
mod probe;
mod project;
mod report;
mod requirements;
mod sarif;
mod shells;
mod signals;
mod verify;
mod whole;
mod wrapper;

use std::process::ExitCode;

use cudaguard::env::Env;

use arguments::{GlobalOptions, ProbeFormat, TextOrJson, Verb, VerifyTarget};
use report::CliError;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(status) = cudaguard::machine::asked() {
        return status;
    }
    let env = Env::from_process();
    if let Some(call) = wrapper::called(&env) {
        report::configure(&env, GlobalOptions::default());
        return wrapper::run(&env, &call);
    }
    signals::guard_mappings();
    let (global, command) = arguments::read();
    report::configure(&env, global);
    if let Some(activity) = command.activity() {
        report::progress(activity);
    }
    let reads_artifacts =
        matches!(command, Verb::Inspect { .. } | Verb::Verify(_) | Verb::Map { .. } | Verb::Requirements { .. });
    if reads_artifacts {
        memory::limit();
    }
    let outcome = match command {
        Verb::Cargo(verb, arguments) => cargo::run(&env, verb, &arguments),
        Verb::Environment(arguments) => cargo::environment(&env, &arguments),
        Verb::Check(arguments) => check::run(&env, &arguments),
        Verb::Init(arguments) => init::run(&env, &arguments),
        Verb::Lock(arguments) => lock::run(&env, &arguments),
        Verb::Inspect { file, format } => inspect::run(&file, format.get()),
        Verb::Verify(options) => match options.target() {
            VerifyTarget::Machine(question) => verify::run(&env, &question),
            VerifyTarget::Fleet { files, list, json } => fleet::run(&env, &files, &list, json),
        },
        Verb::Requirements { files, format } => requirements::run(&env, &files, format.get()),
        Verb::Map { files, format, output } => map::run(&env, &files, format, output.as_deref()),
        Verb::Probe { line: true, name, .. } => probe::run(&env, ProbeFormat::Line, name),
        Verb::Probe { format, name, .. } => probe::run(&env, format.get(), name),
        Verb::Doctor { program, format } => doctor::run(&env, program.as_deref(), format.get()),
        Verb::Exec { command_line } => exec::run(&env, &command_line[0], &command_line[1..]),
        Verb::Embed(options) => generic_build::embed(&env, &options),
        Verb::Seal(sealing) => generic_build::seal(&env, &sealing),
        Verb::Cmake(step) => cmake::run(&env, step),
        Verb::Completions { shell } => shells::completions(arguments::for_people(), shell),
        Verb::Man { directory } => shells::man(arguments::command(false), &directory),
        Verb::Explain { words, format } => explain::run(&words, format.get() == TextOrJson::Json),
    };
    outcome.unwrap_or_else(CliError::say)
}
