//! Steps behind the linker. What those before ours copy is not sealed yet, and what any of them has copied once is still there
//! when the target is refused. CMake tells nobody of a target's steps, so they are read where its generator has written them.

use std::fs;
use std::path::{Path, PathBuf};

use cudaguard::binary::Binary;

use super::facts::Facts;

/// How our own step begins, behind the command's path.
const OURS: &str = "cmake seal --facts";
/// How Ninja's line with a target's steps begins.
const POST_BUILD: &str = "POST_BUILD = ";
/// Programs that take the file and leave no other one behind.
const HARMLESS: [&str; 14] = [
    "strip", "chmod", "chown", "chrpath", "patchelf", "setcap", "echo", "test", "size", "nm", "readelf", "objdump",
    "ldd", "file",
];

/// What the steps before ours have made of a linked file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Copies {
    /// Files that are the same, byte by byte.
    pub(super) same: Vec<PathBuf>,
    /// The first command that was given the file, where no such copy of it is found.
    pub(super) unknown: Option<String>,
}

impl Copies {
    /// Of the file as it is now. `known` is the folder of the target's facts, `binary` the build folder.
    pub(super) fn of(known: &Path, binary: &Path, file: &Path) -> Self {
        let mut copies = Self::default();
        for Step { folder, words } in steps(known, binary, file).unwrap_or_default() {
            let Some((program, arguments)) = words.split_first() else { continue };
            if !arguments.iter().any(|word| folder.join(word) == file) || is_harmless(program, arguments) {
                continue;
            }
            let same: Vec<PathBuf> =
                others(&folder, arguments, file).into_iter().filter(|path| is_same(path, file)).collect();
            if same.is_empty() && copies.unknown.is_none() {
                copies.unknown = Some(words.join(" "));
            }
            copies.same.extend(same);
        }
        copies
    }

    /// Puts the sealed file in their place.
    pub(super) fn replace(&self, file: &Path) -> Result<(), String> {
        for copy in &self.same {
            let fail = |error: std::io::Error| format!("cannot write {}: {error}", copy.display());
            // Not into it: it may be running, or another name of a file that is not meant.
            fs::remove_file(copy).map_err(fail)?;
            fs::copy(file, copy).map_err(fail)?;
        }
        Ok(())
    }

    /// Takes them away with the file that is refused.
    pub(super) fn remove(&self) {
        for copy in &self.same {
            let _ = fs::remove_file(copy);
        }
    }
}

/// Takes away what commands of this build have made of a target's file in an earlier run: also what steps behind ours have
/// copied, and what was stripped on the way.
pub(super) fn remove_earlier(facts: &Facts, file: &Path) {
    let binary = &facts.binary;
    let lines = [of_ninja(binary, file), of_make(binary, file)].concat();
    for Line { words, with_linker } in lines {
        for Step { folder, words } in parted(&words, binary) {
            if !words.iter().any(|word| folder.join(word) == file) {
                continue;
            }
            for made in others(&folder, &words, file) {
                // A target of the project's own may deploy what it builds: that is none of this build's.
                if (with_linker || made.starts_with(binary)) && is_of_target(&made, facts) {
                    let _ = fs::remove_file(made);
                }
            }
        }
    }
}

/// Whether its guard is in there. Several configurations may copy to one place, and only one of them is refused.
fn is_of_target(file: &Path, facts: &Facts) -> bool {
    let (itself, several) = (fs::symlink_metadata(file).is_ok_and(|about| about.is_file()), several(facts));
    itself
        && Binary::read(file).is_ok_and(|file| {
            file.manifests().flatten().any(|note| {
                note.manifest.component == facts.component && (!several || note.manifest.profile == facts.profile())
            })
        })
}

fn several(facts: &Facts) -> bool {
    facts.binary.join("CMakeFiles").join(format!("impl-{}.ninja", facts.configuration)).exists()
}

/// Commands in a generator's file that name a file.
#[derive(Clone)]
struct Line {
    words: Vec<String>,
    /// They run whenever the file is linked.
    with_linker: bool,
}

fn of_ninja(binary: &Path, file: &Path) -> Vec<Line> {
    let in_folder = fs::read_dir(binary.join("CMakeFiles")).into_iter().flatten().flatten().map(|entry| entry.path());
    let of_configurations = in_folder.filter(|path| path.extension().is_some_and(|extension| extension == "ninja"));
    let mut lines = Vec::new();
    for path in of_configurations.chain([binary.join("build.ninja")]) {
        for line in fs::read_to_string(path).unwrap_or_default().lines() {
            let (behind, own) =
                (line.trim_start().strip_prefix(POST_BUILD), line.trim_start().strip_prefix("COMMAND = "));
            if let Some(text) = behind.or(own).map(of_ninjas).filter(|text| names(text, file)) {
                lines.push(Line { words: words(&text), with_linker: behind.is_some() });
            }
        }
    }
    lines
}

fn of_make(binary: &Path, file: &Path) -> Vec<Line> {
    let folders = fs::read_to_string(binary.join("CMakeFiles/TargetDirectories.txt")).unwrap_or_default();
    let mut lines = Vec::new();
    for folder in folders.lines() {
        let text = fs::read_to_string(Path::new(folder).join("build.make")).unwrap_or_default();
        for rule in text.split("\n\n").filter(|rule| names(&of_makes(rule), file)) {
            let with_linker = rule.contains("cmake_link_script");
            let recipe = rule.lines().filter(|line| line.starts_with('\t')).map(of_makes);
            lines.extend(recipe.map(|text| Line { words: words(&text), with_linker }));
        }
    }
    lines
}

/// Whether its name stands there at all: most lines are about others.
fn names(text: &str, file: &Path) -> bool {
    file.file_name().is_some_and(|name| text.contains(&*name.to_string_lossy()))
}

fn is_harmless(program: &str, arguments: &[String]) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    // `strip -o`, `objcopy a b`: these do make another one.
    let other = arguments.iter().any(|word| word == "-o");
    let by_cmake = arguments.first().is_some_and(|word| word == "-E")
        && !arguments.get(1).is_some_and(|verb| verb.starts_with("copy") || verb.ends_with("link") || verb == "tar");
    by_cmake || !other && HARMLESS.iter().any(|harmless| name == *harmless || name.ends_with(&format!("-{harmless}")))
}

fn is_same(one: &Path, other: &Path) -> bool {
    let length = |path: &Path| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|about| about.len());
    // A link that leads to the file leads to what is sealed, too.
    let link = fs::symlink_metadata(one).is_ok_and(|about| about.is_symlink());
    !link && length(one).is_some() && length(one) == length(other) && fs::read(one).ok() == fs::read(other).ok()
}

/// A command, and the folder that it runs in.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    folder: PathBuf,
    words: Vec<String>,
}

/// The commands before ours, in the files of Ninja or Make.
fn steps(known: &Path, binary: &Path, file: &Path) -> Option<Vec<Step>> {
    let text = [ninja(known, binary), make(known)].into_iter().flatten().next()?;
    // But for the program itself, started.
    let other = |step: &Step| step.words.first().is_some_and(|program| step.folder.join(program) != *file);
    Some(parted(&text, binary).into_iter().filter(other).collect())
}

/// The commands of a line, which begins in this folder.
fn parted(line: &[String], folder: &Path) -> Vec<Step> {
    let mut folder = folder.to_owned();
    let mut steps = Vec::new();
    for words in line.split(|word| word == "&&") {
        match words {
            [cd, to] if cd == "cd" => folder = folder.join(to),
            _ => steps.push(Step { folder: folder.clone(), words: words.to_vec() }),
        }
    }
    steps
}

/// What a command may have made of a file: its other words, as files.
fn others(folder: &Path, words: &[String], file: &Path) -> Vec<PathBuf> {
    let names = words.iter().map(|word| folder.join(word)).filter(|path| path != file);
    let files = names.map(|path| match (path.is_dir(), file.file_name()) {
        (true, Some(name)) => path.join(name),
        _ => path,
    });
    files.filter(|path| path != file).collect()
}

/// The words before ours in `POST_BUILD` of the target's build statement. With several configurations each has a file.
fn ninja(known: &Path, binary: &Path) -> Option<Vec<String>> {
    let configuration = known.file_name()?.to_string_lossy().into_owned();
    let files = [binary.join("build.ninja"), binary.join("CMakeFiles").join(format!("impl-{configuration}.ninja"))];
    files.iter().find_map(|file| {
        let text = fs::read_to_string(file).ok()?;
        let before = text.match_indices(OURS).find_map(|(at, _)| {
            let line = text[..at].rsplit('\n').next()?;
            is_of(&text[at + OURS.len()..], known).then(|| of_ninjas(line))
        })?;
        Some(words(before.trim_start().strip_prefix(POST_BUILD)?))
    })
}

/// The lines before ours in the rule of the target's own makefile.
fn make(known: &Path) -> Option<Vec<String>> {
    let (folder, target) = (known.parent()?.parent()?, known.file_name()?.to_string_lossy().into_owned());
    let file = folder.join("CMakeFiles").join(format!("{target}.dir")).join("build.make");
    let text = fs::read_to_string(file).ok()?;
    let lines: Vec<&str> = text.lines().collect();
    let ours = lines.iter().position(|line| line.split_once(OURS).is_some_and(|(_, rest)| is_of(rest, known)))?;
    let rule = lines[..ours].iter().rposition(|line| !line.starts_with('\t')).map_or(0, |line| line + 1);
    let mut all = Vec::new();
    for line in &lines[rule..ours] {
        all.extend(words(&of_makes(line)));
        all.push("&&".to_owned());
    }
    Some(all)
}

/// Whether what follows our step's beginning is about this target.
fn is_of(rest: &str, known: &Path) -> bool {
    words(&of_makes(rest.lines().next().unwrap_or_default())).first().is_some_and(|word| Path::new(word) == known)
}

/// A line of Ninja's, as it gives it to a shell.
pub(super) fn of_ninjas(line: &str) -> String {
    line.replace("$$", "$")
}

/// The same of make's.
fn of_makes(line: &str) -> String {
    line.trim_start().trim_start_matches('@').replace("$$", "$").replace("\\#", "#")
}

/// The words of a command line, as a shell splits them.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(letters.next()),
            (_, Some(open)) if letter == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (' ' | '\t', None) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_as_a_shell_splits_them() {
        assert_eq!(words(r#"cd "/a b" && cp 'x y' z\ w "" "#), ["cd", "/a b", "&&", "cp", "x y", "z w", ""]);
    }

    #[test]
    fn what_leaves_no_copy_is_harmless() {
        let harmless = |line: &str| {
            let words = words(line);
            is_harmless(&words[0], &words[1..])
        };
        for line in
            ["/usr/bin/strip /b/app", "cmake -E echo /b/app", "x86_64-linux-gnu-strip /b/app", "chmod 755 /b/app"]
        {
            assert!(harmless(line), "{line}");
        }
        for line in ["cp /b/app /d", "cmake -E copy /b/app /d", "strip -o /d/app /b/app", "sh deploy.sh /b/app"] {
            assert!(!harmless(line), "{line}");
        }
    }
}
