//! Mounts a machine of `cudaguard_tests::world` over this one, and becomes a program on it.
//!
//! `unshare -r -m enter-world ROOT PROC [NAME=VALUE...] -- PROGRAM [ARGUMENT...]`, where PROC is `yes` or
//! `no`. All mounts exist only inside the namespace. One process creates them, because tests start hundreds of
//! programs in this way, and a call of `mount` for each path takes ten times as long as the programs.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use cargo_cudaguard::simulation::namespace;

/// Exit status of `mount` for a failed mount.
const CANNOT_MOUNT: u8 = 32;
/// Exit status of a shell for a program that cannot be started.
const CANNOT_START: u8 = 127;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mut parts = words.splitn(2, |word| word == "--");
    let (Some([root, proc, variables @ ..]), Some([program, arguments @ ..])) = (parts.next(), parts.next()) else {
        eprintln!("enter-world ROOT PROC [NAME=VALUE...] -- PROGRAM [ARGUMENT...]");
        return ExitCode::from(2);
    };
    if let Err(why) = namespace::mount_machine(Path::new(root), proc == "yes") {
        eprintln!("enter-world: {why}");
        return ExitCode::from(CANNOT_MOUNT);
    }
    let mut command = Command::new(program);
    command.args(arguments);
    for variable in variables {
        let bytes = variable.as_bytes();
        let at = bytes.iter().position(|byte| *byte == b'=').unwrap_or(bytes.len());
        command.env(OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(bytes.get(at + 1..).unwrap_or_default()));
    }
    let error = command.exec();
    eprintln!("enter-world: {}: {error}", Path::new(program).display());
    ExitCode::from(CANNOT_START)
}
