//! Real parts, fetched once: toolkits, cuDNN, driver libraries. See `tests/parts/fetch.py`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};

use crate::{layout, places, scratch, skip};

/// Why a part is not available.
#[derive(Clone, Debug)]
pub enum PartError {
    /// It cannot be fetched; the message says how to provide it by hand.
    NoNetwork(String),
    /// Another failure.
    Broken(String),
}

/// The root of a real toolkit: `13.0`, `13.2`, `13.5`, `11.8`.
pub fn cuda(version: &str) -> PathBuf {
    part(&format!("cuda-{version}"))
}

/// The same by a path without blanks, for builders that read its folders out of what nvcc prints, as CMake does. Where the parts lie
/// below a folder with a blank it leads through a link among the temporary files, which goes when the suites have ended.
pub fn cuda_without_blanks(version: &str) -> PathBuf {
    let root = cuda(version);
    if !scratch::has_blank(&root) {
        return root;
    }
    let link = LINK.get_or_init(|| {
        let link = scratch::temporary_without_blanks().join(format!("cudaguard-parts-{}", std::process::id()));
        layout::link(&folder(), &link);
        link
    });
    link.join(format!("cuda-{version}"))
}

/// The link to the parts, where there is one.
static LINK: OnceLock<PathBuf> = OnceLock::new();

/// The link by which [`cuda_without_blanks`] leads to the parts, where it has made one.
pub fn link() -> Option<&'static Path> {
    LINK.get().map(PathBuf::as_path)
}

/// A real cuDNN, a folder with `include/` and `lib/`: `9.15.1`, `9.1.0`, `8.9.7-loader` …
pub fn cudnn(version: &str) -> PathBuf {
    part(&format!("cudnn-{version}"))
}

/// The folder of a driver's real libraries, `libcuda.so.1` and `libnvidia-ml.so.1`: `535`.
pub fn driver(version: &str) -> PathBuf {
    part(&format!("driver-{version}"))
}

/// A compiler with the standard library of other targets, as `RUSTC` takes it: see `tests/parts/finish.py`.
pub fn rustc_for_others() -> PathBuf {
    part("rust-cross").join("bin/rustc")
}

/// The folder of this part of `tests/parts/parts.json`. Skips the test where it cannot be had, panics where it is broken.
pub fn part(name: &str) -> PathBuf {
    match fetch(name) {
        Ok(folder) => folder,
        Err(PartError::NoNetwork(why)) => skip_without(name, &why),
        Err(PartError::Broken(why)) => panic!("{why}"),
    }
}

/// Has the crates that tests build in cargo's own home. Skips the test where they cannot be had.
pub fn crates() {
    let _ = part("crates");
}

/// Skips the test because this part cannot be fetched, for this reason.
pub fn skip_without(name: &str, why: &str) -> ! {
    let why: Vec<&str> = why.lines().map(str::trim).collect();
    skip(format!("the part {name}"), why.join(" "))
}

/// A program of a part that holds programs.
pub fn program(part: &str, name: &str) -> PathBuf {
    self::part(part).join("bin").join(name)
}

/// `PATH` with the programs of these parts before all others.
pub fn path(parts: &[&str]) -> OsString {
    let theirs = parts.iter().map(|name| part(name).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(theirs.chain(std::env::split_paths(&path))).expect("parts lie in a folder without a colon")
}

/// Where parts are kept: `CUDAGUARD_PARTS`, else `parts` in cargo's target folder.
pub fn folder() -> PathBuf {
    let given = std::env::var_os("CUDAGUARD_PARTS").filter(|value| !value.is_empty());
    given.map_or_else(|| places::target().join("parts"), PathBuf::from)
}

/// The folder of this part, fetched where it is not there yet; progress goes to stderr.
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
        .args([script.as_os_str(), "--into".as_ref(), folder().as_os_str(), name.as_ref()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // Lines of progress go on as they come; from the first error on they are kept for whoever asked.
    let mut error = String::new();
    for line in BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok) {
        if line.starts_with("error: ") || !error.is_empty() {
            error = error + &line + "\n";
        } else {
            eprintln!("{line}");
        }
    }
    match child.wait().map_err(failed)?.code() {
        Some(0) => Ok(folder().join(name)),
        Some(3) => Err(PartError::NoNetwork(error.trim_end().to_owned())),
        status => Err(PartError::Broken(format!("fetch.py {name} ended with {status:?}: {error}"))),
    }
}
