//! The options of cargo that the help and the completions list.

use clap::{Arg, ArgAction, Command, ValueHint};

use super::help;

/// An option of cargo: name, short name, value, help, and the subcommands that have it: `b`uild, `r`un, `t`est, `i`nstall,
/// `c`heck, `e`nv, i`n`it, `l`ock.
pub(super) type CargoOption = (&'static str, Option<char>, Option<&'static str>, &'static str, &'static str);

/// The options that the help and the completions list. [`Call`](super::Call) and cargo parse them.
pub(super) const CARGO_OPTIONS: &[CargoOption] = &[
    ("package", Some('p'), Some("SPEC"), "Package to build", "brte"),
    ("package", Some('p'), Some("SPEC"), "Package to check", "c"),
    ("package", Some('p'), Some("SPEC"), "Package to set up", "n"),
    ("workspace", None, None, "Select all packages of the workspace", "btcen"),
    ("exclude", None, Some("SPEC"), "Exclude this package", "bt"),
    ("lib", None, None, "Build only the library", "bt"),
    ("bin", None, Some("NAME"), "Build only this binary", "brti"),
    ("bins", None, None, "Build all binaries", "bti"),
    ("example", None, Some("NAME"), "Build only this example", "brti"),
    ("examples", None, None, "Build all examples", "bti"),
    ("test", None, Some("NAME"), "Build only this test", "bt"),
    ("tests", None, None, "Build all targets that have tests", "bt"),
    ("all-targets", None, None, "Build all targets", "bt"),
    ("release", Some('r'), None, "Use the release profile", "brtce"),
    ("debug", None, None, "Use the dev profile", "i"),
    ("profile", None, Some("NAME"), "Use this profile", "brtice"),
    ("features", Some('F'), Some("FEATURES"), "Enable these features", "brtice"),
    ("all-features", None, None, "Enable all features", "brtice"),
    ("no-default-features", None, None, "Disable the default feature", "brtice"),
    ("target", None, Some("TRIPLE"), "Build for this target", "brtie"),
    ("target", None, Some("TRIPLE"), "Check for this target", "c"),
    ("target", None, Some("TRIPLE"), "Lock this target; entries of other targets do not change", "l"),
    ("target-dir", None, Some("DIR"), "Directory for build output", "brtie"),
    ("manifest-path", None, Some("PATH"), "Path to Cargo.toml", "brtcenl"),
    ("message-format", None, Some("FORMAT"), "Output format of cargo", "brti"),
    ("no-run", None, None, "Build the tests, but do not run them", "t"),
    ("no-fail-fast", None, None, "Run all tests even if one fails", "t"),
    ("path", None, Some("DIR"), "Install the package in this directory", "i"),
    ("git", None, Some("URL"), "Install a package of this repository", "i"),
    ("version", None, Some("VERSION"), "Install this version", "i"),
    ("root", None, Some("DIR"), "Directory to install to", "i"),
    ("force", Some('f'), None, "Replace an installed package", "i"),
    ("jobs", Some('j'), Some("N"), "Number of parallel jobs", "brti"),
    ("keep-going", None, None, "Build as much as possible after an error", "bi"),
    ("cmake", None, None, "Set up the CMake project in this directory", "n"),
    ("path", None, Some("DIR"), "Depend on the cudaguard library in this directory", "n"),
    ("git", None, Some("URL"), "Depend on the cudaguard library in this repository", "n"),
    ("dry-run", None, None, "Print what would be written, but write nothing", "n"),
    ("format", None, Some("FORMAT"), "Output format", "c"),
    ("json", None, None, "", "c"),
    ("locked", None, None, "Fail if Cargo.lock or cudaguard.lock would change", "brtice"),
    ("locked", None, None, "Write nothing; fail if cudaguard.lock would change", "l"),
    ("offline", None, None, "Do not access the network", "brtice"),
    ("frozen", None, None, "Same as --locked and --offline", "brtice"),
    ("frozen", None, None, "Same as --locked, and do not access the network", "l"),
    ("config", None, Some("KEY=VALUE|PATH"), "Override a cargo configuration value", "brticenl"),
];

/// Adds help and options to a subcommand that parses its arguments as cargo does.
pub(super) fn with_cargo_options(command: Command, name: &str) -> Command {
    let (_, letter, about, long) =
        help::WITH_CARGO_OPTIONS.iter().find(|(command, ..)| *command == name).expect("the table has it");
    let options = CARGO_OPTIONS.iter().filter(|(.., commands)| commands.contains(*letter));
    let command = command.about(*about).after_long_help(*long).args(options.map(|(name, short, value, help, _)| {
        let option = Arg::new(*name).long(*name).short(*short).help(*help);
        match value {
            Some(value @ "DIR") => option.value_name(*value).value_hint(ValueHint::DirPath),
            Some(value @ "PATH") => option.value_name(*value).value_hint(ValueHint::FilePath),
            Some(value @ ("SPEC" | "FEATURES" | "TRIPLE" | "KEY=VALUE|PATH")) => {
                option.value_name(*value).action(ArgAction::Append)
            }
            Some(value) => option.value_name(*value),
            None => option.action(ArgAction::SetTrue),
        }
    }));
    if "brti".contains(*letter) {
        command.disable_version_flag(true).override_usage(format!("cargo cudaguard {name} [CARGO OPTIONS]"))
    } else {
        command
    }
}
