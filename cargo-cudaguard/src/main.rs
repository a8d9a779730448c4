//! `cargo cudaguard`: builds CUDA programs that know what they were built with, and says where they will run.

#![deny(unsafe_code)]

mod arguments;
mod cargo;
mod check;
mod cmake;
mod config;
mod doctor;
mod exec;
mod explain;
mod fleet;
mod graph;
mod guards;
mod handover;
mod init;
mod inspect;
mod ledger;
mod lock;
mod own_kernels;
mod probe;
mod project;
mod report;
mod sarif;
mod shells;
mod signals;
mod verify;
mod wrapper;

use std::process::ExitCode;

use arguments::Verb;
use report::Stop;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(status) = cudaguard::machine::asked() {
        return status;
    }
    if let Some(call) = wrapper::called() {
        return wrapper::run(&call);
    }
    let outcome = match arguments::read() {
        Verb::Cargo(verb, arguments) => cargo::run(verb, &arguments),
        Verb::Check(arguments) => check::run(&arguments),
        Verb::Init(arguments) => init::run(&arguments),
        Verb::Lock(arguments) => lock::run(&arguments),
        Verb::Inspect { file, json } => inspect::run(&file, json),
        Verb::Verify(question) => verify::run(&question),
        Verb::Fleet { files, list, json } => fleet::run(&files, &list, json),
        Verb::Probe { json } => probe::run(json),
        Verb::Doctor { program, json } => doctor::run(program.as_deref(), json),
        Verb::Exec { program, arguments } => exec::run(&program, &arguments),
        Verb::Cmake(step) => cmake::run(step),
        Verb::Completions(shell) => shells::completions(arguments::for_people(false), shell),
        Verb::Man(folder) => shells::man(arguments::for_people(false), &folder),
        Verb::Explain(code) => explain::run(code.as_deref()),
    };
    outcome.unwrap_or_else(Stop::say)
}
