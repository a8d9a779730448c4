//! Command-line arguments and their help. Cargo subcommands pass theirs to cargo unchanged.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{
    ArgAction, Args, ColorChoice, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueHint,
};
use clap_complete::Shell;
use cudaguard::internal::tables::gpu_typed;

mod cargo_call;
mod cargo_options;
mod formats;
mod help;
mod options;

pub(crate) use cargo_call::Call;
use cargo_options::with_cargo_options;
pub(crate) use formats::{
    ChooseFormat, DiffFormat, Format, MapFormat, Output, ProbeFormat, RequirementsFormat, TextOrJson,
};
pub(crate) use options::{
    ChooseOptions, CmakeStep, DiffOptions, Flags, GateOptions, Options, SealArgs, SimulateOptions, VerifyOptions,
};

use crate::cli::report;

/// A cargo subcommand that builds something to guard.
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
    /// Any other subcommand that calls the compiler wrapper; its name is the first argument.
    Any,
}

impl CargoVerb {
    /// Returns the name that cargo uses.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Run => "run",
            Self::Test => "test",
            Self::Install => "install",
            Self::Any => "",
        }
    }

    /// Parses a name or a built-in alias.
    pub(crate) fn from_name(word: &str) -> Option<Self> {
        Some(match word {
            "build" | "b" => Self::Build,
            "run" | "r" => Self::Run,
            "test" | "t" => Self::Test,
            "install" => Self::Install,
            _ => return None,
        })
    }
}

#[derive(Debug, Parser)]
#[command(
    name = "cargo-cudaguard",
    version,
    long_version = long_version(),
    about = "Check CUDA programs for compatibility with toolkits, drivers and GPUs",
    after_help = "Run `cargo cudaguard <COMMAND> --help` for examples and exit status.",
    after_long_help = help::MAIN,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(flatten)]
    global: GlobalOptions,
    #[command(subcommand)]
    command: Verb,
}

/// The version and the date of the newest facts in the tables, as `--version` prints them.
fn long_version() -> String {
    format!("{}\ntables: {}", env!("CARGO_PKG_VERSION"), cudaguard::internal::tables::date())
}

/// Options of every subcommand.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalOptions {
    /// When to use colors
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
    /// Print results and errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Log each decision and the rule behind it; -vv adds details
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// A cargo subcommand with its arguments.
    #[command(skip)]
    Cargo(CargoVerb, Vec<OsString>),
    #[command(skip)]
    Environment(Vec<OsString>),
    #[command(skip)]
    Check(Vec<OsString>),
    #[command(skip)]
    Init(Vec<OsString>),
    #[command(skip)]
    Lock(Vec<OsString>),
    /// Show what a binary contains: manifests, GPU code and CUDA libraries
    #[command(after_long_help = help::INSPECT)]
    Inspect {
        /// Program, library, object, wheel, package, archive, directory or image; `-` reads an archive from stdin
        file: PathBuf,
        #[command(flatten)]
        format: Format<Output>,
    },
    /// Check whether a binary will run on this machine, a described machine or a fleet
    #[command(after_long_help = help::VERIFY)]
    Verify(Box<VerifyOptions>),
    /// Choose the build that runs on this machine, a described machine or each machine of a fleet
    #[command(after_long_help = help::CHOOSE)]
    Choose(Box<ChooseOptions>),
    /// Print what a machine must have to run the given files
    #[command(after_long_help = help::REQUIREMENTS)]
    Requirements {
        /// Files, as for `verify`; the machine must be able to run all of them
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Name of the program or image for Kubernetes: my-model, registry.example/team/my-model
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        format: Format<RequirementsFormat>,
    },
    /// Show a GPU × driver compatibility matrix
    #[command(after_long_help = help::MAP)]
    Map {
        /// Files, as for `verify`; a GPU counts if it runs all of them
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        format: Format<MapFormat>,
        /// Write to this file instead of stdout
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Compare two releases: GPUs, drivers, libraries and guards that are gained or lost
    #[command(after_long_help = help::DIFF)]
    Diff(DiffOptions),
    /// Describe this machine: driver, GPUs, cuDNN and cudart
    #[command(after_long_help = help::PROBE)]
    Probe {
        #[command(flatten)]
        format: Format<ProbeFormat>,
        /// Print JSON in one line, for `verify --fleet`; same as --format line
        #[arg(long, conflicts_with_all = ["format", "json"])]
        line: bool,
        /// Name of this machine in the output
        #[arg(long)]
        name: Option<String>,
    },
    /// Diagnose this machine, or a program on this machine
    #[command(after_long_help = help::DOCTOR)]
    Doctor {
        /// Program, library, package, archive or directory to check on this machine
        #[arg(value_name = "PROGRAM")]
        program: Option<PathBuf>,
        /// Judge only this package of an environment, an image or a directory of wheels; repeatable
        #[arg(long = "package", value_name = "NAME", requires = "program")]
        packages: Vec<String>,
        #[command(flatten)]
        format: Format<TextOrJson>,
    },
    /// Verify a program on this machine, then run it
    #[command(override_usage = "cargo cudaguard exec -- <PROGRAM> [ARGUMENTS]...", after_long_help = help::EXEC)]
    Exec {
        /// Program and its arguments
        #[arg(required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
        command_line: Vec<OsString>,
    },
    /// Run a command on a simulated machine with NVIDIA GPUs; kernels do not run
    #[command(override_usage = "cargo cudaguard simulate [OPTIONS] -- <COMMAND>...", after_long_help = help::SIMULATE)]
    Simulate(Box<SimulateOptions>),
    /// Check a toolchain and write the guard as an object file, for Make, Meson, Bazel and others
    #[command(after_long_help = help::EMBED)]
    Embed(Box<Options>),
    /// Check a linked binary against the policy and update its manifest
    ///
    /// If the check fails, the binary is deleted.
    #[command(after_long_help = help::SEAL)]
    Seal(SealArgs),
    #[command(
        about = "Install the CMake package for find_package(CudaGuard)",
        after_long_help = help::CMAKE,
        subcommand,
        arg_required_else_help = true
    )]
    Cmake(CmakeStep),
    /// Print a shell completion script
    #[command(after_long_help = help::COMPLETIONS)]
    Completions {
        /// Shell to complete in
        shell: Shell,
    },
    /// Write man pages to a directory
    #[command(after_long_help = help::MAN)]
    Man {
        /// Directory to write to, such as ~/.local/share/man/man1
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: PathBuf,
    },
    /// Explain a finding, a CUDA status or an error text
    #[command(after_long_help = help::EXPLAIN)]
    Explain {
        /// Finding (CG301), number (803), name of a status, or error text; without it, a log is read from stdin
        #[arg(value_name = "TEXT")]
        words: Vec<String>,
        #[command(flatten)]
        format: Format<TextOrJson>,
    },
}

impl Verb {
    /// Returns a description of the work of a subcommand that can take long and prints nothing until it ends.
    pub(crate) fn activity(&self) -> Option<String> {
        let reading = |files: &[PathBuf]| {
            let more = if files.len() > 1 { format!(" and {} more", files.len() - 1) } else { String::new() };
            format!("reading {}{more}", files[0].display())
        };
        match self {
            Self::Inspect { file, .. } => Some(reading(std::slice::from_ref(file))),
            Self::Verify(options) => Some(reading(&options.files)),
            Self::Choose(_) => Some("reading the candidates".to_owned()),
            Self::Requirements { files, .. } | Self::Map { files, .. } => Some(reading(files)),
            Self::Diff(DiffOptions { old, new, .. }) => Some(reading(&[old.clone(), new.clone()])),
            Self::Doctor { .. } | Self::Probe { .. } => Some("querying the driver".to_owned()),
            _ => None,
        }
    }
}

/// Reads the arguments of this process. Prints help, version and usage errors, and ends the process after them.
pub(crate) fn parse_process_args() -> (GlobalOptions, Verb) {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    // cargo calls `cargo-cudaguard cudaguard …`.
    let by_cargo = words.first().is_some_and(|word| word == "cudaguard");
    if by_cargo {
        words.remove(0);
    }
    words = move_global_options(words);
    // `cargo cudaguard help verify` means `verify --help`, as in cargo.
    if words.first().is_some_and(|word| word == "help") {
        words.remove(0);
        words.truncate(1);
        words.push("--help".into());
    }
    let word = |at: usize| words.get(at).and_then(|word| word.to_str());
    match word(0).map(|name| (name, CargoVerb::from_name(name))) {
        Some((_, Some(verb))) => return cargo(verb, &words[1..]),
        Some(("--", _)) if words.len() > 1 => {
            return match word(1).and_then(CargoVerb::from_name) {
                Some(verb) => cargo(verb, &words[2..]),
                None => cargo(CargoVerb::Any, &words[1..]),
            };
        }
        Some(("--", _)) => words.clear(),
        Some((name, _)) => {
            if let Some((_, verb)) = PROJECT_COMMANDS.iter().find(|(command, _)| *command == name) {
                // `Call` parses these arguments; clap only rejects unknown ones.
                let matches = parse(by_cargo, &words);
                let global = GlobalOptions::from_arg_matches(matches.subcommand().expect("required").1);
                return (global.expect("declared"), verb(words.split_off(1)));
            }
            if matches!(name, "verify" | "simulate") {
                words = separate_gpus(words);
            }
        }
        None => {}
    }
    let cli = Cli::from_arg_matches(&parse(by_cargo, &words)).expect("the same declaration");
    (cli.global, cli.command)
}

/// Moves the global options before a subcommand behind its name, where cargo accepts them too.
fn move_global_options(mut words: Vec<OsString>) -> Vec<OsString> {
    let mut options = 0;
    while let Some(word) = words.get(options).and_then(|word| word.to_str()) {
        options += match word {
            "--color" => 2,
            "--quiet" | "--verbose" => 1,
            _ if word.starts_with("--color=") => 1,
            _ if word.len() > 1 && word.starts_with('-') && word[1..].chars().all(|c| matches!(c, 'q' | 'v')) => 1,
            _ => break,
        };
    }
    // In `-v -- clippy`, the name follows `--`.
    let name = options + usize::from(words.get(options).is_some_and(|word| word == "--"));
    if name < words.len() {
        words[..=name].rotate_left(options);
    }
    words
}

/// A function that creates a subcommand from its arguments.
type VerbConstructor = fn(Vec<OsString>) -> Verb;

/// Subcommands that accept cargo's options for packages, features and profiles.
const PROJECT_COMMANDS: [(&str, VerbConstructor); 4] =
    [("check", Verb::Check), ("env", Verb::Environment), ("init", Verb::Init), ("lock", Verb::Lock)];

/// Parses a cargo subcommand and reads the global options from cargo's arguments.
fn cargo(verb: CargoVerb, arguments: &[OsString]) -> (GlobalOptions, Verb) {
    let call = Call::parse(Some(verb), arguments);
    let color = match call.color.as_deref() {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    };
    let global = GlobalOptions { color, quiet: call.quiet, verbose: call.verbose };
    (global, Verb::Cargo(verb, arguments.to_vec()))
}

fn parse(by_cargo: bool, words: &[OsString]) -> clap::ArgMatches {
    let words = std::iter::once(OsString::from("cargo-cudaguard")).chain(words.iter().cloned());
    build_command(by_cargo).try_get_matches_from(words).unwrap_or_else(|mut error| {
        if error.kind() == ErrorKind::InvalidSubcommand {
            suggest_cargo_subcommand(&mut error);
        }
        if error.use_stderr() {
            error.exit();
        }
        std::process::exit(report::check_written(error.print()).map_or_else(|stop| stop.report_status().into(), |_| 0))
    })
}

/// Adds the form in which the command passes any other subcommand to cargo, such as `clippy`.
fn suggest_cargo_subcommand(error: &mut clap::Error) {
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) {
        let tip = format!("to run a subcommand of cargo, put it after `--`: `cargo cudaguard -- {name}`");
        let _ = error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

/// Returns the error message for these arguments of a subcommand that cargo does not have, without running it. `None` if they are
/// valid.
pub fn usage_error(words: &[&str]) -> Option<String> {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let words = if words.first().is_some_and(|word| word == "verify") { separate_gpus(words) } else { words };
    let words = std::iter::once(OsString::from("cargo-cudaguard")).chain(words);
    build_command(true).try_get_matches_from(words).err().filter(clap::Error::use_stderr).map(|error| error.to_string())
}

/// Repeats `--gpu` before each GPU that follows it. Files may follow the GPUs: the first argument that names no GPU is
/// a file. A command after `--` does not change.
fn separate_gpus(words: Vec<OsString>) -> Vec<OsString> {
    let gpu = |word: &OsString| word.to_str().is_some_and(|word| word.split(',').all(|one| gpu_typed(one).is_some()));
    let mut separated = Vec::new();
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            separated.push(word);
            separated.extend(words);
            break;
        }
        let option = word == "--gpu";
        separated.push(word);
        if option {
            separated.extend(words.next());
            while let Some(more) = words.next_if(gpu) {
                separated.extend(["--gpu".into(), more]);
            }
        }
    }
    separated
}

/// Returns cudaguard's part of the help of a cargo subcommand. Cargo's own help follows it.
pub(crate) fn cargo_help(verb: CargoVerb) -> String {
    let name = verb.name();
    let mut command = with_cargo_options(Command::new(name), name);
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.render_usage();
    let examples = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    format!("{about}\n\n{usage}\n\n{examples}\n\nHelp of `cargo {name}`:\n\n")
}

/// Declares all subcommands. `by_cargo` selects the name that the help shows.
pub(crate) fn build_command(by_cargo: bool) -> Command {
    let command = Cli::command().bin_name(if by_cargo { "cargo cudaguard" } else { "cargo-cudaguard" });
    let cargo = help::WITH_CARGO_OPTIONS.iter().map(|(name, ..)| with_cargo_options(Command::new(*name), name));
    let command = command.subcommands(cargo).mut_subcommand("init", |init| {
        let init = init.mut_arg("cmake", |arg| arg.conflicts_with_all(["package", "workspace", "manifest-path"]));
        init.mut_arg("path", |arg| arg.conflicts_with("git"))
    });
    let command = command.mut_subcommand("check", |check| {
        let check = check.mut_arg("format", |arg| {
            arg.value_parser(["text", "json", "sarif", "github"]).default_value("text").conflicts_with("json")
        });
        check.mut_arg("json", |arg| arg.help("Print JSON; same as --format json"))
    });
    let mut groups = String::new();
    for (title, names) in help::GROUPS {
        let _ = write!(groups, "\n\n{title}:");
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            let _ = write!(groups, "\n  {name:<13} {}", about.unwrap_or_default());
        }
    }
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}{groups}\n\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// Declares the subcommands that users call, for shell completions.
pub(crate) fn for_people() -> Command {
    let all = build_command(false);
    let people = all.get_subcommands().filter(|one| one.get_name() != "cmake").cloned().collect::<Vec<_>>();
    let command = Command::new("cargo-cudaguard").version(env!("CARGO_PKG_VERSION")).disable_help_subcommand(true);
    command.args(all.get_arguments().cloned()).subcommands(people)
}

#[cfg(test)]
mod tests;
