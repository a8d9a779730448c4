//! `cargo cudaguard`: builds CUDA programs that know what they were built with, and says where they will run.

#![deny(unsafe_code)]

mod arguments;
mod artefact;
mod build_context;
mod build_records;
mod bundle;
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

use arguments::Verb;
use report::CliError;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(status) = cudaguard::machine::asked() {
        return status;
    }
    let env = Env::from_process();
    if let Some(call) = wrapper::called(&env) {
        return wrapper::run(&env, &call);
    }
    let outcome = match arguments::read() {
        Verb::Cargo(verb, arguments) => cargo::run(&env, verb, &arguments),
        Verb::Environment(arguments) => cargo::environment(&env, &arguments),
        Verb::Check(arguments) => check::run(&env, &arguments),
        Verb::Init(arguments) => init::run(&env, &arguments),
        Verb::Lock(arguments) => lock::run(&env, &arguments),
        Verb::Inspect { file, form } if artefact::is_one(&file) => whole::inspect(&file, form),
        Verb::Inspect { file, form } => inspect::run(&file, form),
        Verb::Verify(question) => verify::run(&env, &question),
        Verb::Requirements { files, form } => requirements::run(&env, &files, form),
        Verb::Fleet { files, list, json } => fleet::run(&env, &files, &list, json),
        Verb::Map { files, form, output } => map::run(&env, &files, form, output.as_deref()),
        Verb::Probe { form, name } => probe::run(&env, form, name),
        Verb::Doctor { program, json, bundle } => doctor::run(&env, program.as_deref(), json, bundle.as_deref()),
        Verb::Exec { program, arguments } => exec::run(&env, &program, &arguments),
        Verb::Embed(options) => generic_build::embed(&env, &options),
        Verb::Seal(sealing) => generic_build::seal(&env, &sealing),
        Verb::Cmake(step) => cmake::run(&env, step),
        Verb::Completions(shell) => shells::completions(arguments::for_people(false), shell),
        Verb::Man(folder) => shells::man(arguments::command(false), &folder),
        Verb::Explain { words, json } => explain::run(&words, json),
    };
    outcome.unwrap_or_else(CliError::say)
}
