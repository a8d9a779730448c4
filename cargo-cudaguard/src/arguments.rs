//! The arguments, and nothing done about them. cargo's verbs keep theirs as they are.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use cudaguard::guard::Tool;

use crate::cmake::Step;

/// cargo's verbs that build something to guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CargoVerb {
    /// `cargo build`
    Build,
    /// `cargo run`
    Run,
    /// `cargo test`
    Test,
    /// `cargo install`
    Install,
}

impl CargoVerb {
    /// As cargo calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Run => "run",
            Self::Test => "test",
            Self::Install => "install",
        }
    }

    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "build" | "b" => Self::Build,
            "run" | "r" => Self::Run,
            "test" | "t" => Self::Test,
            "install" => Self::Install,
            _ => return None,
        })
    }
}

/// What to do.
#[derive(Debug)]
pub(crate) enum Verb {
    /// cargo's own verb with cargo's own arguments.
    Cargo(CargoVerb, Vec<OsString>),
    /// Judge the toolchain only.
    Check(Vec<OsString>),
    /// Write the files that a project needs.
    Init(Vec<OsString>),
    /// Write the lock.
    Lock(Vec<OsString>),
    /// What is in this file.
    Inspect {
        /// The file.
        file: PathBuf,
        /// As JSON.
        json: bool,
    },
    /// Verify, then become the program.
    Exec {
        /// The program.
        program: OsString,
        /// Its arguments.
        arguments: Vec<OsString>,
    },
    /// What the CMake module asks for.
    Cmake(Step),
    /// A finding at length.
    Explain(Option<String>),
}

/// Reads the process's arguments; wrong ones, `--help` and `--version` are answered here and end the process.
pub(crate) fn read() -> Verb {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    // cargo calls `cargo-cudaguard cudaguard …`.
    let by_cargo = words.first().is_some_and(|word| word == "cudaguard");
    if by_cargo {
        words.remove(0);
    }
    if let Some(word) = words.first().and_then(|word| word.to_str()) {
        if let Some(verb) = CargoVerb::of(word) {
            return Verb::Cargo(verb, words.split_off(1));
        }
        // These read cargo's way of naming packages and profiles, as the verbs that build do.
        let verb = match word {
            "check" => Some(Verb::Check as fn(Vec<OsString>) -> Verb),
            "init" => Some(Verb::Init as fn(Vec<OsString>) -> Verb),
            "lock" => Some(Verb::Lock as fn(Vec<OsString>) -> Verb),
            _ => None,
        };
        if let Some(verb) = verb.filter(|_| !words.iter().any(|word| word == "--help" || word == "-h")) {
            let _ = command(by_cargo).get_matches_from(named(&words));
            return verb(words.split_off(1));
        }
    }
    let matches = command(by_cargo).get_matches_from(named(&words));
    understood(&matches)
}

fn named(words: &[OsString]) -> impl Iterator<Item = OsString> {
    std::iter::once(OsString::from("cargo-cudaguard")).chain(words.iter().cloned())
}

fn understood(matches: &ArgMatches) -> Verb {
    let (name, matches) = matches.subcommand().expect("a verb is required");
    match name {
        "inspect" => Verb::Inspect {
            file: matches.get_one::<PathBuf>("FILE").cloned().expect("required"),
            json: matches.get_flag("json"),
        },
        "exec" => {
            let mut words = matches.get_many::<OsString>("PROGRAM").expect("required").cloned();
            Verb::Exec { program: words.next().expect("at least one"), arguments: words.collect() }
        }
        "cmake" => Verb::Cmake(of_cmake(matches)),
        "explain" => Verb::Explain(matches.get_one::<String>("CODE").cloned()),
        other => unreachable!("{other} has been dealt with"),
    }
}

fn of_cmake(matches: &ArgMatches) -> Step {
    let (name, matches) = matches.subcommand().expect("a step is required");
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    match name {
        "begin" => Step::Begin {
            module: matches.get_one::<String>("module").cloned().expect("required"),
            tool: Tool {
                program: path("compiler").expect("required"),
                flags: matches.get_many::<String>("flag").into_iter().flatten().cloned().collect(),
            },
        },
        "embed" => Step::Embed {
            facts: path("facts").expect("required"),
            out: path("out").expect("required"),
            depfile: path("depfile"),
        },
        "seal" => Step::Seal { facts: path("facts").expect("required"), file: path("FILE").expect("required") },
        other => unreachable!("{other} has been dealt with"),
    }
}

/// What the CMake module calls; people have no use for it.
fn cmake() -> Command {
    let path = |name: &'static str| Arg::new(name).long(name).required(true).value_parser(value_parser!(PathBuf));
    let facts = || path("facts").value_name("FOLDER").help("What CMake knows of the target");
    Command::new("cmake")
        .hide(true)
        .about("What the CMake module calls")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("begin")
                .about("Whether targets can be guarded: status 1 and the reason on stdout where not")
                .arg(
                    Arg::new("module").long("module").value_name("VERSION").required(true).help("The module's version"),
                )
                .arg(path("compiler").value_name("FILE").help("Compiles C for the target"))
                .arg(
                    Arg::new("flag")
                        .long("flag")
                        .value_name("FLAG")
                        .action(ArgAction::Append)
                        .allow_hyphen_values(true)
                        .help("Makes it do so"),
                ),
        )
        .subcommand(
            Command::new("embed")
                .about("Judge what the target is built with, and make the objects of its guard")
                .arg(facts())
                .arg(path("out").value_name("FOLDER").help("Where the objects go"))
                .arg(path("depfile").required(false).value_name("FILE").help("Where to write what they depend on")),
        )
        .subcommand(
            Command::new("seal")
                .about("Verify the linked file and seal its note; a file that is refused is removed")
                .arg(facts())
                .arg(Arg::new("FILE").required(true).value_parser(value_parser!(PathBuf)).help("The linked file")),
        )
}

/// What cargo itself would be told.
fn of_cargo() -> [Arg; 2] {
    [
        Arg::new("manifest-path").long("manifest-path").value_name("PATH").help("Path to Cargo.toml"),
        Arg::new("config")
            .long("config")
            .value_name("KEY=VALUE|PATH")
            .action(ArgAction::Append)
            .help("Override a configuration value of cargo's"),
    ]
}

fn locks(help: &'static str) -> [Arg; 2] {
    let locked = Arg::new("locked").long("locked").action(ArgAction::SetTrue);
    [locked.help(help), Arg::new("frozen").long("frozen").action(ArgAction::SetTrue).hide(true)]
}

fn command(by_cargo: bool) -> Command {
    let json = || Arg::new("json").long("json").action(ArgAction::SetTrue).help("As JSON on stdout");
    let cargos = |name: &'static str, about: &'static str| {
        Command::new(name).about(about).override_usage(format!("cargo cudaguard {name} [cargo's own arguments]"))
    };
    Command::new("cargo-cudaguard")
        .bin_name(if by_cargo { "cargo cudaguard" } else { "cargo-cudaguard" })
        .version(env!("CARGO_PKG_VERSION"))
        .about("Builds CUDA programs that know what they were built with, and says where they will run")
        .after_help(
            "Exit status: 0 fine, 1 findings that refuse, 2 could not look, 78 refused at start-up (run, exec); cargo's \
             own where cargo failed.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(cargos("build", "cargo build, with guard and manifest in what it makes"))
        .subcommand(cargos("run", "cargo run, guarded; what the loader would die of is said beforehand"))
        .subcommand(cargos("test", "cargo test, with guarded programs"))
        .subcommand(cargos("install", "cargo install, guarded"))
        .subcommand(
            Command::new("check")
                .about("Judge the toolchain only")
                .arg(json())
                .arg(
                    Arg::new("package")
                        .short('p')
                        .long("package")
                        .value_name("SPEC")
                        .action(ArgAction::Append)
                        .help("Package to judge for"),
                )
                .arg(Arg::new("workspace").long("workspace").action(ArgAction::SetTrue).help("For every member"))
                .arg(
                    Arg::new("release")
                        .short('r')
                        .long("release")
                        .action(ArgAction::SetTrue)
                        .help("As for a release build"),
                )
                .arg(Arg::new("profile").long("profile").value_name("NAME").help("As for a build of this profile"))
                .arg(Arg::new("target").long("target").value_name("TRIPLE").help("As for a build for this target"))
                .arg(
                    Arg::new("format")
                        .long("format")
                        .value_name("FORM")
                        .value_parser(["text", "json", "sarif", "github"])
                        .conflicts_with("json")
                        .help("How to say it"),
                )
                .args(of_cargo())
                .args(locks("Where cudaguard.lock says otherwise, refuse")),
        )
        .subcommand(
            Command::new("init")
                .about("Write what a project needs: build.rs, its dependency, cudaguard.toml, a workflow; never over a file")
                .arg(
                    Arg::new("package")
                        .short('p')
                        .long("package")
                        .value_name("SPEC")
                        .action(ArgAction::Append)
                        .help("Package to guard"),
                )
                .arg(Arg::new("workspace").long("workspace").action(ArgAction::SetTrue).help("Every member"))
                .arg(
                    Arg::new("cmake")
                        .long("cmake")
                        .action(ArgAction::SetTrue)
                        .conflicts_with_all(["package", "workspace", "manifest-path"])
                        .help("For the CMake project in this folder: lines of CMakeLists.txt, cudaguard.toml, a workflow"),
                )
                .args(of_cargo()),
        )
        .subcommand(
            Command::new("lock")
                .about("Write cudaguard.lock: what the workspace is built with, to be kept from now on")
                .arg(
                    Arg::new("target")
                        .long("target")
                        .value_name("TRIPLE")
                        .action(ArgAction::Append)
                        .help("For this target; what is locked for others stays"),
                )
                .args(of_cargo())
                .args(locks("Write nothing; refuse where the file would be changed")),
        )
        .subcommand(
            Command::new("inspect")
                .about("Manifests, kernels and CUDA libraries of a file")
                .arg(Arg::new("FILE").required(true).value_parser(value_parser!(PathBuf)).help(
                    "An executable, a shared library, an object or a static archive",
                ))
                .arg(json()),
        )
        .subcommand(
            Command::new("exec")
                .about("Verify, then become the program: says what the loader would die of")
                .override_usage("cargo cudaguard exec -- PROGRAM [ARGUMENTS]…")
                .arg(
                    Arg::new("PROGRAM")
                        .required(true)
                        .num_args(1..)
                        .trailing_var_arg(true)
                        .allow_hyphen_values(true)
                        .value_parser(value_parser!(OsString))
                        .help("The program and its arguments"),
                ),
        )
        .subcommand(cmake())
        .subcommand(
            Command::new("explain")
                .about("A finding at length; without a code, the list of them")
                .arg(Arg::new("CODE").help("CG and three digits")),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        command(true).debug_assert();
        command(false).debug_assert();
    }
}
