//! The mount namespace in which the files of a simulated machine cover those of this one. All mounts exist only there.

use std::env::consts::ARCH;
use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change};

use super::SimulationError;

/// The devices that each machine has.
pub(super) const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// The directories of devices that each machine has.
pub(super) const DEVICE_DIRS: [&str; 3] = ["shm", "pts", "mqueue"];
/// Links to devices.
pub(super) const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// The directories of a machine that are laid over those of this one.
const OVERLAID: [(&str, &str); 5] = [
    ("usr-lib", "/usr/lib"),
    ("usr-lib64", "/usr/lib64"),
    ("usr-local", "/usr/local"),
    ("usr-bin", "/usr/bin"),
    ("etc", "/etc"),
];

/// Returns the directory in which the dynamic linker of this machine finds the C library.
pub(super) fn library_dir() -> String {
    let usual = format!("/usr/lib/{ARCH}-linux-gnu");
    let has_libc = |dir: &String| Path::new(dir).join("libc.so.6").exists();
    [usual.clone(), "/usr/lib64".to_owned(), "/usr/lib".to_owned()].into_iter().find(has_libc).unwrap_or(usual)
}

/// Returns the place of a file of the machine below its root.
pub(super) fn place_in(root: &Path, path: &str) -> PathBuf {
    let below = OVERLAID.iter().find_map(|(name, place)| Some((name, Path::new(path).strip_prefix(place).ok()?)));
    below.map_or_else(|| root.join(path.trim_start_matches('/')), |(name, rest)| root.join(name).join(rest))
}

/// Moves this process, which must have one thread, to a new mount namespace. An ordinary user gets a user namespace, too,
/// in which its numbers do not change.
///
/// # Errors
/// If the kernel does not permit it.
pub fn enter() -> Result<(), SimulationError> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    if unshare(libc::CLONE_NEWNS).is_err() {
        unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)
            .map_err(|error| SimulationError::Namespace("unshare".to_owned(), error))?;
        let maps = [
            ("/proc/self/setgroups", "deny".to_owned()),
            ("/proc/self/uid_map", format!("{user} {user} 1")),
            ("/proc/self/gid_map", format!("{group} {group} 1")),
        ];
        for (file, text) in maps {
            fs::write(file, text).map_err(|error| SimulationError::Namespace(format!("write {file}"), error))?;
        }
    }
    // Otherwise the mounts of a privileged user would also appear outside.
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    reported("make mounts private below", "/", mount_change("/", private))
}

fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes only flags. The file descriptors and the memory of this process stay shared.
    #[allow(unsafe_code)]
    let status = unsafe { libc::unshare(flags) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Mounts an empty file system on a directory.
///
/// # Errors
/// If the kernel does not permit it.
pub fn mount_empty(place: &Path) -> Result<(), SimulationError> {
    reported("mount a tmpfs on", place, tmpfs(place))
}

/// Mounts the files of a machine over those of this one. Without `proc`, `/proc` is empty. Returns directories to add to
/// `PATH`.
///
/// # Errors
/// If the kernel does not permit it, or if the loader cache cannot be written.
pub fn mount_machine(root: &Path, proc: bool) -> Result<Vec<PathBuf>, SimulationError> {
    let devices = root.join("dev");
    for name in NODES.into_iter().chain(DEVICE_DIRS) {
        let (from, to) = (Path::new("/dev").join(name), devices.join(name));
        if from.exists() {
            reported("bind", &from, mount_bind_recursive(&from, &to))?;
        }
    }
    reported("bind", "/dev", mount_bind_recursive(&devices, "/dev"))?;
    bind(&root.join("driver"), "/proc/driver".as_ref())?;
    bind(&root.join("pci"), "/sys/bus/pci".as_ref())?;
    let mut programs = Vec::new();
    for (name, place) in OVERLAID.into_iter().filter(|(name, _)| *name != "etc") {
        if overlay(root, name, place.as_ref()) {
            continue;
        }
        // Links to programs would change the directory in which a program finds itself.
        if name == "usr-bin" {
            programs.push(root.join(name));
        } else {
            merge_over(root, name, place.as_ref())?;
        }
    }
    let configuration = root.join("ld.so.conf");
    if configuration.is_file() {
        write_loader_cache(root, &configuration)?;
    }
    if !overlay(root, "etc", "/etc".as_ref()) {
        merge_over(root, "etc", "/etc".as_ref())?;
    }
    if !proc {
        mount_empty("/proc".as_ref())?;
    }
    Ok(programs)
}

fn write_loader_cache(root: &Path, configuration: &Path) -> Result<(), SimulationError> {
    // The `PATH` of an ordinary user does not have its directory.
    let program = which::which("ldconfig").unwrap_or_else(|_| "/sbin/ldconfig".into());
    let mut ldconfig = Command::new(program);
    ldconfig.arg("-X").arg("-C").arg(root.join("etc/ld.so.cache")).arg("-f").arg(configuration);
    let output = ldconfig.output().map_err(SimulationError::Ldconfig)?;
    if output.status.success() {
        return Ok(());
    }
    Err(SimulationError::Ldconfig(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())))
}

fn reported(
    operation: &str,
    place: impl AsRef<Path>,
    done: Result<(), rustix::io::Errno>,
) -> Result<(), SimulationError> {
    done.map_err(|error| SimulationError::Namespace(format!("{operation} {}", place.as_ref().display()), error.into()))
}

fn bind(from: &Path, place: &Path) -> Result<(), SimulationError> {
    reported("bind", place, mount_bind(from, place))
}

fn tmpfs(place: &Path) -> rustix::io::Result<()> {
    mount("none", place, "tmpfs", MountFlags::empty(), c"")
}

/// Mounts a directory of the machine over the existing one. Returns false if the kernel does not allow an overlay, for
/// example over two others.
fn overlay(root: &Path, name: &str, place: &Path) -> bool {
    let ours = root.join(name);
    if !ours.is_dir() {
        return true;
    }
    let mut layers = b"lowerdir=".to_vec();
    for byte in ours.as_os_str().as_encoded_bytes() {
        // These bytes separate layers and options.
        if b":,\\".contains(byte) {
            layers.push(b'\\');
        }
        layers.push(*byte);
    }
    layers.push(b':');
    layers.extend(place.as_os_str().as_encoded_bytes());
    CString::new(layers).is_ok_and(|layers| mount("overlay", place, "overlay", MountFlags::empty(), &*layers).is_ok())
}

/// Has the effect of an overlay: a tree of links to the files below.
fn merge_over(root: &Path, name: &str, place: &Path) -> Result<(), SimulationError> {
    let (below, merged) = (root.join("below").join(name), root.join("merged").join(name));
    for dir in [&below, &merged] {
        fs::create_dir_all(dir).map_err(|error| SimulationError::file(dir, error))?;
    }
    bind(place, &below)?;
    mount_empty(&merged)?;
    merge(&root.join(name), &below, &merged).map_err(|error| SimulationError::file(&merged, error))?;
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

/// Checks that the driver of this machine is not visible.
///
/// # Errors
/// If its library is in the directory of the system's libraries.
pub fn check_no_driver() -> Result<(), SimulationError> {
    let file = Path::new(&library_dir()).join("libcuda.so.1");
    if file.exists() { Err(SimulationError::Visible(file)) } else { Ok(()) }
}

/// Returns the settings of this system that forbid namespaces, each with the command that changes it.
pub(super) fn obstacles() -> Vec<String> {
    let mut found = Vec::new();
    for (setting, forbidding, allowing) in [
        ("user.max_user_namespaces", "0", "15000"),
        ("user.max_mnt_namespaces", "0", "15000"),
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ] {
        let file = Path::new("/proc/sys").join(setting.replace('.', "/"));
        if fs::read_to_string(file).is_ok_and(|value| value.trim() == forbidding) {
            found.push(format!("{setting} is {forbidding}; run `sudo sysctl -w {setting}={allowing}`"));
        }
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2")) {
        found.push(
            "a seccomp filter is active; start the container with `--security-opt seccomp=unconfined --security-opt \
             apparmor=unconfined`"
                .to_owned(),
        );
    }
    found
}
