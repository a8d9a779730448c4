//! `completions` and `man`: generate shell completions and man pages from the definition of the arguments.

use std::path::Path;
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;

use crate::cli::report::{self, CliError};

const NAME: &str = "cargo-cudaguard";

/// fish completes only the command `cargo`. This rule applies the completions of `cargo-cudaguard` to `cargo
/// cudaguard`.
const FISH: &str = "\
complete -c cargo -n '__fish_seen_subcommand_from cudaguard' -f -k \
-a \"(complete -C (string replace -r '^\\s*cargo\\s+(\\+\\S+\\s+)?cudaguard\\b' cargo-cudaguard -- (commandline -cp)))\"
";

/// Prints the completion script of a shell on stdout.
pub(crate) fn write_completions(mut command: Command, shell: Shell) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, NAME, &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Fish => script.push_str(FISH),
        // clap_complete 4.6 spells the name of a command with a hyphen in two ways, so that bash would find no
        // subcommand.
        Shell::Bash => script = script.replace("cargo__subcmd__cudaguard", "cargo__cudaguard"),
        _ => {}
    }
    report::print_result(&script).map(|()| ExitCode::SUCCESS)
}

/// Writes one man page for the command and one for each visible subcommand to this directory.
pub(crate) fn write_man_pages(command: Command, dir: &Path) -> Result<ExitCode, CliError> {
    let fail =
        |error: std::io::Error| CliError::operational(format_args!("cannot write into {}: {error}", dir.display()));
    std::fs::create_dir_all(dir).map_err(fail)?;
    clap_mangen::generate_to(command, dir).map_err(fail)?;
    Ok(ExitCode::SUCCESS)
}
