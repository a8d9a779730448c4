//! Determines the directories in which the linker found the libraries of a target. The runtime path shows them only if
//! CMake writes one (`CMAKE_SKIP_RPATH`, `CMAKE_BUILD_WITH_INSTALL_RPATH`), and never shows directories from options.
//! The arguments of the linker are therefore read from the files of CMake's generator.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind::NotFound};
use std::path::{Path, PathBuf};

use cudaguard::internal::guard;
use cudaguard::internal::manifest::Manifest;
use cudaguard::internal::shell_words::split_words;
use cudaguard::internal::toolchain::BuildSystem;

use super::NOTE;
use super::copies::unescape_ninja;
use super::target_properties::TargetDescription;
use crate::linked::linker;

/// File with the arguments that delay-load DLLs of Windows, next to the objects of the guard. It is absent if there are none.
pub(super) const DELAYED: &str = "delayed";

pub(super) fn write_delayed(file: &Path, manifest: &Manifest) -> io::Result<()> {
    let arguments = guard::windows::delay_load_arguments(manifest);
    if arguments.is_empty() {
        return fs::remove_file(file).or_else(|error| if error.kind() == NotFound { Ok(()) } else { Err(error) });
    }
    fs::write(file, arguments.join("\n"))
}

/// Returns these arguments as the linker expects them, or as the driver of a compiler does.
pub(super) fn read_delayed(dir: &Path, is_driver: bool) -> Vec<String> {
    let text = fs::read_to_string(dir.join(DELAYED)).unwrap_or_default();
    text.lines().map(|line| format!("{}{line}", if is_driver && line.starts_with('/') { "-Wl," } else { "" })).collect()
}

/// Returns the directories in the order of the linker.
pub(super) fn library_dirs(facts: &TargetDescription) -> Vec<PathBuf> {
    if facts.given.by != BuildSystem::CMake {
        return Vec::new();
    }
    let found = match &facts.link_command {
        Some(command) => Some(command.clone()),
        None => ninja_link_statement(facts)
            .map(|text| (text, facts.binary.clone()))
            .or_else(|| make_link_script(facts))
            .map(|(text, dir)| (split_words(&text), dir)),
    };
    let Some((words, base)) = found else { return Vec::new() };
    linker::Dirs::from_args(words.iter().map(String::as_str), &base).into_dirs().collect()
}

/// Returns the arguments of a linker command, with those of its response files.
pub(super) fn expand_response_files(words: &[OsString]) -> Vec<String> {
    let mut expanded = Vec::new();
    let mut is_file = false;
    for word in words {
        let word = word.to_string_lossy();
        let named = if is_file { Some(&*word) } else { word.trim_start_matches("-Wl,").strip_prefix('@') };
        match named.and_then(|file| fs::read_to_string(file).ok()) {
            Some(text) => expanded.extend(split_words(&text)),
            None => expanded.push(word.to_string()),
        }
        is_file = matches!(&*word, "--options-file" | "-optf");
    }
    expanded
}

/// Returns the directories of the guards that a linker command names: those of the target, and of libraries in it.
pub(super) fn guard_dirs(words: &[String]) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = Vec::new();
    for dir in words.iter().filter_map(|word| Path::new(word).parent().filter(|_| word.ends_with(NOTE))) {
        if !dirs.iter().any(|known| known == dir) {
            dirs.push(dir.to_owned());
        }
    }
    dirs
}

/// Returns the variables of the Ninja statement that builds the file of the target, in the order of the rule.
fn ninja_link_statement(facts: &TargetDescription) -> Option<String> {
    let output = facts.output.as_ref()?;
    let of_configuration = facts.binary.join("CMakeFiles").join(format!("impl-{}.ninja", facts.configuration));
    [of_configuration, facts.binary.join("build.ninja")].iter().find_map(|file| {
        let text = fs::read_to_string(file).ok()?;
        let statement = text.split("\n\n").find(|statement| {
            let made = statement_value(statement, "TARGET_FILE");
            made.is_some_and(|made| facts.binary.join(made) == *output)
        })?;
        let all = ["FLAGS", "LINK_FLAGS", "LINK_PATH", "LINK_LIBRARIES"];
        let all: Vec<String> = all.iter().filter_map(|name| statement_value(statement, name)).collect();
        Some(all.join(" "))
    })
}

fn statement_value(statement: &str, name: &str) -> Option<String> {
    let lines = statement.lines().filter_map(|line| line.strip_prefix("  ")?.split_once(" = "));
    lines.filter(|(key, _)| *key == name).map(|(_, value)| unescape_ninja(value)).next()
}

/// Returns the script that calls the linker, and the directory that it runs in: the build directory of the target's
/// CMakeLists.txt.
fn make_link_script(facts: &TargetDescription) -> Option<(String, PathBuf)> {
    let known = facts.files.first()?.parent()?;
    // They are in `CMakeFiles/cudaguard/TARGET`.
    let (files, target) = (known.parent()?.parent()?, known.file_name()?.to_string_lossy());
    let script = files.join(format!("{target}.dir")).join("link.txt");
    Some((fs::read_to_string(script).ok()?, files.parent()?.to_owned()))
}
