//! Mounts a machine of `cudaguard_tests::world` over this one, and becomes a program on it.
//!
//! `unshare -r -m enter-world ROOT PROC [NAME=VALUE...] -- PROGRAM [ARGUMENT...]`, where PROC is `yes` or
//! `no`. All mounts exist only inside the namespace. One process creates them, because tests start hundreds of
//! programs in this way, and a call of `mount` for each path takes ten times as long as the programs.

use std::ffi::{CString, OsStr, OsString};
use std::fmt::Display;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::mount::{MountFlags, mount, mount_bind, mount_bind_recursive};

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
    if let Err(why) = lay(Path::new(root), proc == "yes") {
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

fn lay(root: &Path, proc: bool) -> Result<(), String> {
    for node in ["null", "zero", "full", "random", "urandom"] {
        bind(&Path::new("/dev").join(node), &root.join("dev").join(node))?;
    }
    printed("bind", "/dev", mount_bind_recursive(root.join("dev"), "/dev"))?;
    bind(&root.join("driver"), "/proc/driver".as_ref())?;
    bind(&root.join("pci"), "/sys/bus/pci".as_ref())?;
    let over = |name: &str, place: &str| over(root, name, place.as_ref());
    over("usr-lib", "/usr/lib")?;
    over("usr-local", "/usr/local")?;
    let configuration = root.join("ld.so.conf");
    if configuration.is_file() {
        let mut path = std::env::var_os("PATH").unwrap_or_default();
        path.push(":/sbin:/usr/sbin");
        let mut ldconfig = Command::new("ldconfig");
        ldconfig.env("PATH", path).arg("-X").arg("-C").arg(root.join("etc/ld.so.cache")).arg("-f").arg(configuration);
        if !ldconfig.status().map_err(|error| format!("ldconfig: {error}"))?.success() {
            return Err("ldconfig failed".to_owned());
        }
    }
    over("etc", "/etc")?;
    if !proc {
        printed("mount a tmpfs on", "/proc", tmpfs("/proc".as_ref()))?;
    }
    Ok(())
}

fn printed(what: &str, place: impl AsRef<Path>, done: Result<(), impl Display>) -> Result<(), String> {
    done.map_err(|error| format!("cannot {what} {}: {error}", place.as_ref().display()))
}

fn bind(from: &Path, place: &Path) -> Result<(), String> {
    printed("bind", place, mount_bind(from, place))
}

fn tmpfs(place: &Path) -> rustix::io::Result<()> {
    mount("none", place, "tmpfs", MountFlags::empty(), c"")
}

/// Mounts a directory of the machine over the existing one. If the kernel does not allow an overlay (for example over
/// two others), a tree of links to the files below has the same effect.
fn over(root: &Path, name: &str, place: &Path) -> Result<(), String> {
    let ours = root.join(name);
    if !ours.is_dir() {
        return Ok(());
    }
    let mut layers = OsString::from("lowerdir=");
    layers.push(&ours);
    layers.push(":");
    layers.push(place);
    let layers = CString::new(layers.into_encoded_bytes()).map_err(|error| error.to_string())?;
    if mount("overlay", place, "overlay", MountFlags::empty(), &*layers).is_ok() {
        return Ok(());
    }
    let (below, merged) = (root.join("below").join(name), root.join("merged").join(name));
    for dir in [&below, &merged] {
        printed("make", dir, fs::create_dir_all(dir))?;
    }
    bind(place, &below)?;
    printed("mount a tmpfs on", &merged, tmpfs(&merged))?;
    printed("lay out", &merged, merge(&ours, &below, &merged))?;
    bind(&merged, place)
}

/// Copies the files of the machine, and links the other files of the directory below.
fn merge(ours: &Path, below: &Path, into: &Path) -> io::Result<()> {
    for entry in fs::read_dir(ours)? {
        let entry = entry?;
        let (kind, to) = (entry.file_type()?, into.join(entry.file_name()));
        if kind.is_dir() {
            fs::create_dir(&to)?;
            merge(&entry.path(), &below.join(entry.file_name()), &to)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, to)?;
        } else {
            let _ = fs::copy(entry.path(), to)?;
        }
    }
    let is_new = |name: &OsStr| into.join(name).symlink_metadata().is_err();
    for entry in fs::read_dir(below).into_iter().flatten().flatten().filter(|entry| is_new(&entry.file_name())) {
        symlink(entry.path(), into.join(entry.file_name()))?;
    }
    Ok(())
}
