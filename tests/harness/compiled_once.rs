//! A cache for the compiled shim, one entry for each compiler and its flags. Hundreds of tests build a guard, and gcc
//! needs a second for the same object each time, which was two fifths of a complete run. As with ccache, scripts
//! precede the real compilers in `PATH`: they copy the object of the shim from the cache, and run the compiler for
//! everything else. Tests that set `PATH`, or specify a compiler by its path, do not use the cache.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use cudaguard::internal::digest::Digest;

use crate::{places, scratch, tools};

/// The first argument of the program that runs all suites, if it is called in place of a compiler.
const COMPILE: &str = "--compile-once";
/// `musl-gcc` calls gcc.
const COMPILERS: [&str; 9] =
    ["aarch64-linux-gnu-gcc", "c++", "cc", "clang", "g++", "g++-11", "gcc", "gcc-11", "x86_64-w64-mingw32-gcc"];
/// Environment variables that affect the output of a compiler.
const FROM_OUTSIDE: [&str; 4] = ["CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"];

/// If the program was called in place of a compiler, compiles and exits. Otherwise, if the scripts are not in `PATH`
/// yet, restarts the program with them.
pub fn prepare() {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let [first, compiler, arguments @ ..] = &words[..]
        && first == COMPILE
    {
        compile(Path::new(compiler), arguments);
    }
    let dir = dir();
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|known| known == dir) {
        return;
    }
    let own = std::env::current_exe().expect("a program has a file");
    for name in COMPILERS {
        let Some(compiler) = tools::find(name) else { continue };
        let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', "'\\''"));
        let script = format!("#!/bin/sh\nexec {} {COMPILE} {} \"$@\"\n", quoted(&own), quoted(&compiler));
        let temporary = dir.join(format!(".{name}-{}", std::process::id()));
        scratch::write(&temporary, script);
        fs::set_permissions(&temporary, fs::Permissions::from_mode(0o755)).expect("a mode can be set");
        fs::rename(&temporary, dir.join(name)).expect("it is a directory of ours");
    }
    let longer = std::env::join_paths(std::iter::once(dir).chain(std::env::split_paths(&path)));
    // `PATH` cannot contain a directory with a colon: then nothing is cached.
    if let Ok(longer) = longer {
        let error = Command::new(&own).args(words).env("PATH", longer).exec();
        panic!("cannot start {}: {error}", own.display());
    }
}

/// Returns a function for build scripts. It runs nvcc, which turns `source` into `output`, or copies the output of an equal
/// call. nvcc needs seconds even for one kernel.
pub fn nvcc_once() -> String {
    let shared = places::target().join("kernels-once");
    fs::create_dir_all(&shared).expect("it is a directory of ours");
    NVCC_ONCE.replace("SHARED", &shared.display().to_string())
}

const NVCC_ONCE: &str = r#"
fn nvcc_once(mut nvcc: std::process::Command, source: &std::path::Path, output: &std::path::Path) {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    let variables = ["NVCC_CCBIN", "NVCC_APPEND_FLAGS", "PATH"].map(std::env::var_os);
    (format!("{nvcc:?} {source:?} {variables:?}"), std::fs::read(source).unwrap()).hash(&mut hasher);
    let shared = format!("SHARED/{:x}.o", hasher.finish());
    if std::fs::copy(&shared, output).is_err() {
        assert!(nvcc.arg(source).arg("-o").arg(output).status().unwrap().success());
        let temporary = format!("{shared}-{}", std::process::id());
        std::fs::copy(output, &temporary).and_then(|_| std::fs::rename(&temporary, &shared)).unwrap();
    }
}
"#;

/// Returns a `PATH` without these scripts, for programs that need the real path of a compiler.
pub fn left_out(path: &OsStr) -> OsString {
    let dir = dir();
    let others = std::env::split_paths(path).filter(|known| *known != dir);
    std::env::join_paths(others).expect("what was split can be joined")
}

fn dir() -> PathBuf {
    places::target().join("compiled-once")
}

fn compile(compiler: &Path, arguments: &[OsString]) -> ! {
    let arguments = with_changed_shim(arguments);
    let mut call = Command::new(compiler);
    call.args(&arguments);
    let kept = kept(compiler, &arguments);
    if let Some((output, kept)) = &kept {
        if fs::copy(kept, output).is_ok() {
            std::process::exit(0);
        }
        let status = call.status().unwrap_or_else(|error| panic!("cannot start {}: {error}", compiler.display()));
        if status.success() {
            let temporary = kept.with_extension(std::process::id().to_string());
            let _ = fs::copy(output, &temporary).and_then(|_| fs::rename(&temporary, kept));
        }
        std::process::exit(status.code().unwrap_or(1));
    }
    panic!("cannot start {}: {}", compiler.display(), call.exec());
}

/// Replaces the joined text of the shim for Linux by the files that `cargo mutate` changes.
fn with_changed_shim(arguments: &[OsString]) -> Vec<OsString> {
    let changed = places::templates().join("shim.c");
    let is_joined = |one: &OsString| {
        Path::new(one).ends_with("cudaguard-shim.c")
            && fs::read_to_string(one).is_ok_and(|text| text.contains("CUDAGUARD_ONE_FILE") && text.contains("__ELF__"))
    };
    if std::env::var_os("CUDAGUARD_TEMPLATES").is_none() {
        return arguments.to_vec();
    }
    let replaced = arguments.iter().map(|one| if is_joined(one) { changed.clone().into() } else { one.clone() });
    replaced.collect()
}

/// Returns the text of a source file, with all files of the shim if it includes them.
fn read_source(source: &Path) -> Option<Vec<u8>> {
    let mut text = fs::read(source).ok()?;
    if source.ends_with("shim.c") {
        let entries = fs::read_dir(source.with_file_name("shim")).ok()?;
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.sort();
        for file in files.iter().filter(|file| file.is_file()) {
            text.extend(fs::read(file).ok()?);
        }
    }
    Some(text)
}

/// Returns true for the source of the shim, alone or after the note of a guard for another build system.
fn is_shim(path: &Path) -> bool {
    path == places::templates().join("shim.c")
        || path.extension() == Some("c".as_ref())
            && fs::read_to_string(path).is_ok_and(|text| text.contains("CUDAGUARD_ONE_FILE"))
}

/// Returns the output path and the path in the cache, if these arguments compile the shim.
fn kept(compiler: &Path, arguments: &[OsString]) -> Option<(PathBuf, PathBuf)> {
    let source = arguments.iter().position(|one| is_shim(Path::new(one)))?;
    let output = arguments.iter().position(|one| one == "-o")? + 1;
    if FROM_OUTSIDE.iter().any(|name| std::env::var_os(name).is_some()) || !arguments.iter().any(|one| one == "-c") {
        return None;
    }
    let about = fs::metadata(compiler).ok()?;
    let text = read_source(Path::new(&arguments[source]))?;
    let rest = arguments.iter().enumerate().filter(|(at, _)| *at != source && *at != output);
    let rest: Vec<&OsStr> = rest.map(|(_, one)| one.as_os_str()).collect();
    let of = format!("{} {} {} {rest:?}", compiler.display(), about.mtime(), about.size());
    let key = Digest::from_bytes(&[of.as_bytes(), &text].concat());
    let dir = dir().join("objects");
    fs::create_dir_all(&dir).ok()?;
    Some((PathBuf::from(arguments.get(output)?), dir.join(format!("{key}.o"))))
}
