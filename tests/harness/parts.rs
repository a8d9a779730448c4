//! Real components, fetched once: toolkits, cuDNN and driver libraries. See `tests/parts/fetch.py`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};

use crate::{layout, places, scratch, skip};

/// The reason why a component is not available.
#[derive(Clone, Debug)]
pub enum PartError {
    /// The component cannot be fetched; the message describes how to provide it manually.
    NoNetwork(String),
    /// Another failure.
    Broken(String),
}

/// Returns the shared cudart of a real toolkit. A wheel has the one of 11.8, whose toolkit takes a minute to unpack.
pub fn cudart(version: &str) -> PathBuf {
    match version {
        "11.8" => part("cudart-11.8").join("lib/libcudart.so.11.0"),
        _ => cuda(version).join("lib/libcudart.so.13"),
    }
}

/// Returns the root of a real toolkit: `13.0`, `13.2`, `13.5` or `11.8`.
pub fn cuda(version: &str) -> PathBuf {
    part(&format!("cuda-{version}"))
}

/// Returns the root of a toolkit by a path without blanks, for build systems such as CMake that parse directories from
/// the output of nvcc.
pub fn cuda_without_blanks(version: &str) -> PathBuf {
    let _ = cuda(version);
    dir_without_blanks().join(format!("cuda-{version}"))
}

/// Returns the directory of the components by a path without blanks. If they are below a directory with a blank, it is
/// a link in the directory for temporary files, which is removed after the suites.
pub fn dir_without_blanks() -> PathBuf {
    let dir = dir();
    if !scratch::has_blank(&dir) {
        return dir;
    }
    let link = LINK.get_or_init(|| {
        let link = scratch::temporary_without_blanks().join(format!("cudaguard-parts-{}", std::process::id()));
        layout::link(&dir, &link);
        link
    });
    link.clone()
}

/// The link to the components, if there is one.
static LINK: OnceLock<PathBuf> = OnceLock::new();

/// Returns the link that [`dir_without_blanks`] has created, if any.
pub fn link() -> Option<&'static Path> {
    LINK.get().map(PathBuf::as_path)
}

/// Returns a real cuDNN, a directory with `include/` and `lib/`: `9.15.1`, `9.1.0`, `8.9.7-loader` …
pub fn cudnn(version: &str) -> PathBuf {
    part(&format!("cudnn-{version}"))
}

/// Returns the directory with the real libraries of a driver such as `535`: `libcuda.so.1` and `libnvidia-ml.so.1`.
pub fn driver(version: &str) -> PathBuf {
    part(&format!("driver-{version}"))
}

/// Returns a compiler with the standard library of other targets, for `RUSTC`: see `tests/parts/finish.py`.
pub fn rustc_for_others() -> PathBuf {
    part("rust-cross").join("bin/rustc")
}

/// Returns the directory of this component of `tests/parts/parts.json`. Skips the test if it cannot be fetched, and
/// panics if it is damaged.
pub fn part(name: &str) -> PathBuf {
    match fetch(name) {
        Ok(dir) => dir,
        Err(PartError::NoNetwork(why)) => skip_without(name, &why),
        Err(PartError::Broken(why)) => panic!("{why}"),
    }
}

/// Fetches the crates that tests build into cargo's home directory. Skips the test if this is not possible.
pub fn crates() {
    let _ = part("crates");
}

/// Skips the test because this component cannot be fetched for the given reason.
pub fn skip_without(name: &str, why: &str) -> ! {
    let why: Vec<&str> = why.lines().map(str::trim).collect();
    skip(format!("the part {name}"), why.join(" "))
}

/// Returns a program of a component that contains programs.
pub fn program(part: &str, name: &str) -> PathBuf {
    self::part(part).join("bin").join(name)
}

/// Returns a `PATH` in which the programs of these components come first.
pub fn path(parts: &[&str]) -> OsString {
    let theirs = parts.iter().map(|name| part(name).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(theirs.chain(std::env::split_paths(&path))).expect("the path of the parts contains no colon")
}

/// Returns the directory of the components: `CUDAGUARD_PARTS`, or else `parts` in cargo's target directory.
pub fn dir() -> PathBuf {
    let given = std::env::var_os("CUDAGUARD_PARTS").filter(|value| !value.is_empty());
    given.map_or_else(|| places::target().join("parts"), PathBuf::from)
}

/// Returns the directory of this component, and fetches it if it is missing. Progress is printed to stderr.
pub fn fetch(name: &str) -> Result<PathBuf, PartError> {
    type Answers = BTreeMap<String, Arc<OnceLock<Result<PathBuf, PartError>>>>;
    static ANSWERS: Mutex<Answers> = Mutex::new(BTreeMap::new());
    let answer = ANSWERS.lock().expect("nothing panics here").entry(name.to_owned()).or_default().clone();
    answer.get_or_init(|| ask(name)).clone()
}

fn ask(name: &str) -> Result<PathBuf, PartError> {
    let script = places::workspace().join("tests/parts/fetch.py");
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| OsString::from("python3"));
    let failed = |error| PartError::Broken(format!("cannot start {}: {error}", Path::new(&python).display()));
    let mut child = Command::new(&python)
        .args([script.as_os_str(), "--into".as_ref(), dir().as_os_str(), name.as_ref()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // Lines of progress are forwarded immediately. From the first error on, lines are collected for the caller.
    let mut error = String::new();
    for line in BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok) {
        if line.starts_with("error: ") || !error.is_empty() {
            error = error + &line + "\n";
        } else {
            eprintln!("{line}");
        }
    }
    match child.wait().map_err(failed)?.code() {
        Some(0) => Ok(dir().join(name)),
        Some(3) => Err(PartError::NoNetwork(error.trim_end().to_owned())),
        status => Err(PartError::Broken(format!("fetch.py {name} ended with {status:?}: {error}"))),
    }
}
