//! Finds copies of a target's file that post-build steps have created, so that they can be deleted if the target is
//! refused. CMake has no interface for the steps of a target, so they are read from the files of its generator.

use std::fs;
use std::path::{Path, PathBuf};

use crate::binary::file::Binary;

use super::target_properties::TargetDescription;
use cudaguard::internal::shell_words::split_words;

/// Beginning of the line with the post-build steps of a target in a Ninja file.
const POST_BUILD: &str = "POST_BUILD = ";

/// Deletes the files that commands of an earlier build have created from the file of a target: the copies of post-build
/// steps, and stripped intermediate files.
pub(super) fn remove_earlier(facts: &TargetDescription, file: &Path) {
    let binary = &facts.binary;
    let lines = [ninja_lines(binary, file), make_lines(binary, file)].concat();
    for Line { words, with_linker } in lines {
        for CommandStep { dir, words } in split_commands(&words, binary) {
            if !words.iter().any(|word| dir.join(word) == file) {
                continue;
            }
            for made in other_file_args(&dir, &words, file) {
                // A target of the project may deploy the files that it builds. Deployed files do not belong to this
                // build.
                if (with_linker || made.starts_with(binary)) && is_of_target(&made, facts) {
                    let _ = fs::remove_file(made);
                }
            }
        }
    }
}

/// Returns true if the file contains the guard of this target. Several configurations may copy to one place, and only
/// one of them is refused.
fn is_of_target(file: &Path, facts: &TargetDescription) -> bool {
    let (itself, several) = (fs::symlink_metadata(file).is_ok_and(|about| about.is_file()), is_shared_output(facts));
    itself
        && Binary::read(file).is_ok_and(|file| {
            file.manifests().flatten().any(|note| {
                note.manifest.component == facts.component
                    && (!several || note.manifest.profile == facts.profile_name())
            })
        })
}

fn is_shared_output(facts: &TargetDescription) -> bool {
    facts.binary.join("CMakeFiles").join(format!("impl-{}.ninja", facts.configuration)).exists()
}

/// Commands in a generator's file that mention a file.
#[derive(Clone)]
struct Line {
    words: Vec<String>,
    /// Set if the commands run whenever the file is linked.
    with_linker: bool,
}

fn ninja_lines(binary: &Path, file: &Path) -> Vec<Line> {
    let in_dir = fs::read_dir(binary.join("CMakeFiles")).into_iter().flatten().flatten().map(|entry| entry.path());
    let of_configurations = in_dir.filter(|path| path.extension().is_some_and(|extension| extension == "ninja"));
    let mut lines = Vec::new();
    for path in of_configurations.chain([binary.join("build.ninja")]) {
        for line in fs::read_to_string(path).unwrap_or_default().lines() {
            let (behind, own) =
                (line.trim_start().strip_prefix(POST_BUILD), line.trim_start().strip_prefix("COMMAND = "));
            if let Some(text) = behind.or(own).map(unescape_ninja).filter(|text| mentions_file(text, file)) {
                lines.push(Line { words: split_words(&text), with_linker: behind.is_some() });
            }
        }
    }
    lines
}

fn make_lines(binary: &Path, file: &Path) -> Vec<Line> {
    let dirs = fs::read_to_string(binary.join("CMakeFiles/TargetDirectories.txt")).unwrap_or_default();
    let mut lines = Vec::new();
    for dir in dirs.lines() {
        let text = fs::read_to_string(Path::new(dir).join("build.make")).unwrap_or_default();
        for rule in text.split("\n\n").filter(|rule| mentions_file(&unescape_make(rule), file)) {
            let with_linker = rule.contains("cmake_link_script");
            let recipe = rule.lines().filter(|line| line.starts_with('\t')).map(unescape_make);
            lines.extend(recipe.map(|text| Line { words: split_words(&text), with_linker }));
        }
    }
    lines
}

/// Returns true if the text contains the file name at all. Most lines do not.
fn mentions_file(text: &str, file: &Path) -> bool {
    file.file_name().is_some_and(|name| text.contains(&*name.to_string_lossy()))
}

/// A command and its working directory.
#[derive(Debug, PartialEq, Eq)]
struct CommandStep {
    dir: PathBuf,
    words: Vec<String>,
}

/// Splits a line into its commands. The first command starts in this directory.
fn split_commands(line: &[String], dir: &Path) -> Vec<CommandStep> {
    let mut dir = dir.to_owned();
    let mut steps = Vec::new();
    for words in line.split(|word| word == "&&") {
        match words {
            [cd, to] if cd == "cd" => dir = dir.join(to),
            _ => steps.push(CommandStep { dir: dir.clone(), words: words.to_vec() }),
        }
    }
    steps
}

/// Returns the files that a command may have created from a file: its other arguments as paths.
fn other_file_args(dir: &Path, words: &[String], file: &Path) -> Vec<PathBuf> {
    let names = words.iter().map(|word| dir.join(word)).filter(|path| path != file);
    let files = names.map(|path| match (path.is_dir(), file.file_name()) {
        (true, Some(name)) => path.join(name),
        _ => path,
    });
    files.filter(|path| path != file).collect()
}

/// Removes Ninja's escapes from a line, as Ninja does for a shell.
pub(super) fn unescape_ninja(line: &str) -> String {
    line.replace("$$", "$")
}

/// Removes make's escapes from a line, as make does for a shell.
fn unescape_make(line: &str) -> String {
    line.trim_start().trim_start_matches('@').replace("$$", "$").replace("\\#", "#")
}
