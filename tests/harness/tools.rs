//! Programs that tests call and that may be missing on a machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::skip::{Missing, Remedy, skip_all};

/// The Debian packages that contain each program.
const PACKAGES: &[(&str, &str)] = &[
    ("/lib/ld-musl-x86_64.so.1", "musl-tools"),
    ("/usr/lib/wine/wine64", "wine64"),
    ("/usr/sbin/ldconfig", "libc-bin"),
    ("Python.h", "python3-dev"),
    ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"),
    ("bazel", "bazel-bootstrap"),
    ("chrpath", "chrpath"),
    ("clang", "clang"),
    ("clang++", "clang"),
    ("debootstrap", "debootstrap"),
    ("g++", "g++"),
    ("g++-11", "g++-11"),
    ("gcc", "gcc"),
    ("gcc-11", "g++-11"),
    ("gdb", "gdb"),
    ("git", "git"),
    ("ld.bfd", "binutils"),
    ("ld.gold", "binutils"),
    ("ld.lld", "lld"),
    ("ld.mold", "mold"),
    ("lld-link", "lld"),
    ("lldb", "lldb"),
    ("llvm-dlltool", "llvm"),
    ("mold", "mold"),
    ("musl-gcc", "musl-tools"),
    ("mypy", "mypy"),
    ("patchelf", "patchelf"),
    ("perf", "linux-perf"),
    ("pkg-config", "pkg-config"),
    ("python3", "python3"),
    ("qemu-aarch64", "qemu-user"),
    ("setpriv", "util-linux"),
    ("setuptools", "python3-setuptools"),
    ("strace", "strace"),
    ("unshare", "util-linux"),
    ("valgrind", "valgrind"),
    ("wasm-ld", "lld"),
    ("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64-win32"),
];

/// Returns the path of this program in `PATH`. A name with a slash is the path of a file.
pub fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| file.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Returns the path of this program in `PATH`; skips the test if it is missing.
pub fn need(program: &str) -> PathBuf {
    find(program).unwrap_or_else(|| skip_all(vec![missing(program)]))
}

/// Skips the test unless all of these are in `PATH`. The skip lists everything that is missing.
pub fn need_all(programs: &[&str]) {
    let missing: Vec<&str> = programs.iter().copied().filter(|program| find(program).is_none()).collect();
    done_without(&missing);
}

/// The names of linkers that gcc and clang accept.
pub const LINKERS: [&str; 4] = ["bfd", "gold", "lld", "mold"];

/// Skips the test unless this linker is in `PATH`.
pub fn need_linker(linker: &str) {
    need(&format!("ld.{linker}"));
}

/// Returns the linkers of this machine, and adds the missing ones to `missing`.
pub fn linkers(missing: &mut Vec<String>) -> Vec<&'static str> {
    let mut found = LINKERS.to_vec();
    found.retain(|linker| {
        let program = format!("ld.{linker}");
        let is_here = find(&program).is_some();
        missing.extend((!is_here).then_some(program));
        is_here
    });
    found
}

/// Returns the combinations of these compilers and all linkers that this machine has, and adds the missing programs to
/// `missing`.
pub fn linking<'a>(compilers: &[&'a str], missing: &mut Vec<String>) -> Vec<(&'a str, &'static str)> {
    let linkers = linkers(missing);
    let (found, lacking): (Vec<&str>, Vec<&str>) = compilers.iter().partition(|compiler| find(compiler).is_some());
    missing.extend(lacking.into_iter().map(str::to_owned));
    found.into_iter().flat_map(|compiler| linkers.iter().map(move |linker| (compiler, *linker))).collect()
}

/// Ends a test that has omitted these programs: skips it and lists them, or passes if the list is empty.
pub fn done_without(programs: &[impl AsRef<str>]) {
    let all: BTreeSet<_> = programs.iter().map(|name| missing(name.as_ref())).collect();
    if !all.is_empty() {
        skip_all(all.into_iter().collect());
    }
}

/// Returns a missing program or header with the package that contains it.
pub fn missing(program: &str) -> Missing {
    let known = PACKAGES.iter().find(|(name, _)| *name == program);
    let (_, packages) = known.unwrap_or_else(|| panic!("tests/harness/tools.rs names no package of {program}"));
    Missing { what: program.to_owned(), remedy: Remedy::Packages(packages) }
}
