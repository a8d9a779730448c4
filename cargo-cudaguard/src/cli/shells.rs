//! `completions` and `man`: generate shell completions and man pages from the definition of the arguments.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

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
    write_man_page(command.disable_help_subcommand(true), dir).map_err(fail)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the man page of a command and those of its visible subcommands.
fn write_man_page(mut command: Command, dir: &Path) -> io::Result<()> {
    command.build();
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write_man_page(subcommand.clone(), dir)?;
    }
    let page = Man::new(command);
    let mut text = Vec::new();
    page.render(&mut text)?;
    std::fs::write(dir.join(page.get_filename()), escape_for_roff(&String::from_utf8_lossy(&text)))
}

/// Replaces characters that are not ASCII with escape sequences: groff reads its input as Latin-1.
fn escape_for_roff(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            escaped.push(character);
        } else {
            let _ = write!(escaped, "\\[u{:04X}]", u32::from(character));
        }
    }
    escaped
}
